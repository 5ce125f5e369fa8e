"""The codecs of Zarr v3, under the names that zarr-python gives them.

Each class is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zardine.public_names import Exports

if TYPE_CHECKING:
    from zardine.codecs.bitround import BitRoundCodec as BitRoundCodec
    from zardine.codecs.blosc.codec import BloscCodec as BloscCodec
    from zardine.codecs.bytes_codec import BytesCodec as BytesCodec
    from zardine.codecs.cast.codec import CastValue as CastValue
    from zardine.codecs.crc32c import Crc32cCodec as Crc32cCodec
    from zardine.codecs.gzip import GzipCodec as GzipCodec
    from zardine.codecs.numcodecs import BZ2 as BZ2
    from zardine.codecs.numcodecs import CRC32 as CRC32
    from zardine.codecs.numcodecs import CRC32C as CRC32C
    from zardine.codecs.numcodecs import LZ4 as LZ4
    from zardine.codecs.numcodecs import LZMA as LZMA
    from zardine.codecs.numcodecs import ZFPY as ZFPY
    from zardine.codecs.numcodecs import Adler32 as Adler32
    from zardine.codecs.numcodecs import AsType as AsType
    from zardine.codecs.numcodecs import BitRound as BitRound
    from zardine.codecs.numcodecs import Blosc as Blosc
    from zardine.codecs.numcodecs import Delta as Delta
    from zardine.codecs.numcodecs import FixedScaleOffset as FixedScaleOffset
    from zardine.codecs.numcodecs import Fletcher32 as Fletcher32
    from zardine.codecs.numcodecs import GZip as GZip
    from zardine.codecs.numcodecs import JenkinsLookup3 as JenkinsLookup3
    from zardine.codecs.numcodecs import PackBits as PackBits
    from zardine.codecs.numcodecs import PCodec as PCodec
    from zardine.codecs.numcodecs import Quantize as Quantize
    from zardine.codecs.numcodecs import Shuffle as Shuffle
    from zardine.codecs.numcodecs import Zlib as Zlib
    from zardine.codecs.numcodecs import Zstd as Zstd
    from zardine.codecs.options import BloscCname as BloscCname
    from zardine.codecs.options import BloscShuffle as BloscShuffle
    from zardine.codecs.options import Endian as Endian
    from zardine.codecs.options import ShardingCodecIndexLocation as ShardingCodecIndexLocation
    from zardine.codecs.options import SubchunkWriteOrder as SubchunkWriteOrder
    from zardine.codecs.packbits import PackBitsCodec as PackBitsCodec
    from zardine.codecs.registry import codec_from as codec_from
    from zardine.codecs.registry import parse_codec as parse_codec
    from zardine.codecs.registry import register_codec as register_codec
    from zardine.codecs.reshape import ReshapeCodec as ReshapeCodec
    from zardine.codecs.scale_offset import ScaleOffset as ScaleOffset
    from zardine.codecs.sharding_indexed import ShardingCodec as ShardingCodec
    from zardine.codecs.transpose import TransposeCodec as TransposeCodec
    from zardine.codecs.vlen.bytes import VLenBytesCodec as VLenBytesCodec
    from zardine.codecs.vlen.utf8 import VLenUTF8Codec as VLenUTF8Codec
    from zardine.codecs.zstd import ZstdCodec as ZstdCodec

_exports = Exports(
    __name__,
    {
        "bitround": ("BitRoundCodec",),
        "blosc.codec": ("BloscCodec",),
        "bytes_codec": ("BytesCodec",),
        "cast.codec": ("CastValue",),
        "crc32c": ("Crc32cCodec",),
        "gzip": ("GzipCodec",),
        "numcodecs": (  # those of the package numcodecs, as they are called in Zarr v3
            *("Adler32", "AsType", "BZ2", "BitRound", "Blosc", "CRC32", "CRC32C", "Delta", "FixedScaleOffset"),
            *("Fletcher32", "GZip", "JenkinsLookup3", "LZ4", "LZMA", "PCodec", "PackBits", "Quantize", "Shuffle"),
            *("ZFPY", "Zlib", "Zstd"),
        ),
        "options": ("BloscCname", "BloscShuffle", "Endian", "ShardingCodecIndexLocation", "SubchunkWriteOrder"),
        "packbits": ("PackBitsCodec",),
        "registry": ("codec_from", "parse_codec", "register_codec"),
        "reshape": ("ReshapeCodec",),
        "scale_offset": ("ScaleOffset",),
        "sharding_indexed": ("ShardingCodec",),
        "transpose": ("TransposeCodec",),
        "vlen.bytes": ("VLenBytesCodec",),
        "vlen.utf8": ("VLenUTF8Codec",),
        "zstd": ("ZstdCodec",),
    },
    modules=("numcodecs",),
)

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
