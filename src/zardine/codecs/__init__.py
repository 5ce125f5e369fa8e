"""The codecs of Zarr v3, under the names that zarr-python gives them.

Each class is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zardine.codecs.options import BloscCname, BloscShuffle, Endian, ShardingCodecIndexLocation, SubchunkWriteOrder
from zardine.codecs.registry import codec_from, parse_codec, register_codec

if TYPE_CHECKING:
    from zardine.codecs.bitround import BitRoundCodec
    from zardine.codecs.blosc.codec import BloscCodec
    from zardine.codecs.bytes_codec import BytesCodec
    from zardine.codecs.cast.codec import CastValue
    from zardine.codecs.crc32c import Crc32cCodec
    from zardine.codecs.gzip import GzipCodec
    from zardine.codecs.numcodecs import (
        BZ2,
        CRC32,
        CRC32C,
        LZ4,
        LZMA,
        ZFPY,
        Adler32,
        AsType,
        BitRound,
        Blosc,
        Delta,
        FixedScaleOffset,
        Fletcher32,
        GZip,
        JenkinsLookup3,
        PackBits,
        PCodec,
        Quantize,
        Shuffle,
        Zlib,
        Zstd,
    )
    from zardine.codecs.packbits import PackBitsCodec
    from zardine.codecs.reshape import ReshapeCodec
    from zardine.codecs.scale_offset import ScaleOffset
    from zardine.codecs.sharding_indexed import ShardingCodec
    from zardine.codecs.transpose import TransposeCodec
    from zardine.codecs.vlen.bytes import VLenBytesCodec
    from zardine.codecs.vlen.utf8 import VLenUTF8Codec
    from zardine.codecs.zstd import ZstdCodec

__all__ = [
    "BZ2",
    "CRC32",
    "CRC32C",
    "LZ4",
    "LZMA",
    "ZFPY",
    "Adler32",
    "AsType",
    "BitRound",
    "BitRoundCodec",
    "Blosc",
    "BloscCname",
    "BloscCodec",
    "BloscShuffle",
    "BytesCodec",
    "CastValue",
    "Crc32cCodec",
    "Delta",
    "Endian",
    "FixedScaleOffset",
    "Fletcher32",
    "GZip",
    "GzipCodec",
    "JenkinsLookup3",
    "PCodec",
    "PackBits",
    "PackBitsCodec",
    "Quantize",
    "ReshapeCodec",
    "ScaleOffset",
    "ShardingCodec",
    "ShardingCodecIndexLocation",
    "Shuffle",
    "SubchunkWriteOrder",
    "TransposeCodec",
    "VLenBytesCodec",
    "VLenUTF8Codec",
    "Zlib",
    "Zstd",
    "ZstdCodec",
    "codec_from",
    "parse_codec",
    "register_codec",
]

_NUMCODECS = (
    "Adler32",
    "AsType",
    "BZ2",
    "BitRound",
    "Blosc",
    "CRC32",
    "CRC32C",
    "Delta",
    "FixedScaleOffset",
    "Fletcher32",
    "GZip",
    "JenkinsLookup3",
    "LZ4",
    "LZMA",
    "PCodec",
    "PackBits",
    "Quantize",
    "Shuffle",
    "ZFPY",
    "Zlib",
    "Zstd",
)
"""Those of the package numcodecs, as they are called in Zarr v3."""

_MODULES = {
    "BitRoundCodec": "bitround",
    "BloscCodec": "blosc.codec",
    "BytesCodec": "bytes_codec",
    "CastValue": "cast.codec",
    "Crc32cCodec": "crc32c",
    "GzipCodec": "gzip",
    "PackBitsCodec": "packbits",
    "ReshapeCodec": "reshape",
    "ScaleOffset": "scale_offset",
    "ShardingCodec": "sharding_indexed",
    "TransposeCodec": "transpose",
    "VLenBytesCodec": "vlen.bytes",
    "VLenUTF8Codec": "vlen.utf8",
    "ZstdCodec": "zstd",
    **dict.fromkeys(_NUMCODECS, "numcodecs"),
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"zardine.codecs.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
