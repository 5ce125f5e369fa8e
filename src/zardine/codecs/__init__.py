"""The codecs of Zarr v3, under the names that zarr-python gives them.

Each class is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zardine.codecs.options import BloscCname, BloscShuffle, Endian, ShardingCodecIndexLocation
from zardine.codecs.registry import codec_from, parse_codec, register_codec

if TYPE_CHECKING:
    from zardine.codecs.bitround import BitRoundCodec
    from zardine.codecs.blosc import BloscCodec
    from zardine.codecs.bytes_codec import BytesCodec
    from zardine.codecs.cast_value import CastValue
    from zardine.codecs.crc32c import Crc32cCodec
    from zardine.codecs.gzip import GzipCodec
    from zardine.codecs.packbits import PackBitsCodec
    from zardine.codecs.reshape import ReshapeCodec
    from zardine.codecs.scale_offset import ScaleOffset
    from zardine.codecs.sharding_indexed import ShardingCodec
    from zardine.codecs.transpose import TransposeCodec
    from zardine.codecs.vlen_bytes import VLenBytesCodec
    from zardine.codecs.vlen_utf8 import VLenUTF8Codec
    from zardine.codecs.zstd import ZstdCodec

__all__ = [
    "BitRoundCodec",
    "BloscCname",
    "BloscCodec",
    "BloscShuffle",
    "BytesCodec",
    "CastValue",
    "Crc32cCodec",
    "Endian",
    "GzipCodec",
    "PackBitsCodec",
    "ReshapeCodec",
    "ScaleOffset",
    "ShardingCodec",
    "ShardingCodecIndexLocation",
    "TransposeCodec",
    "VLenBytesCodec",
    "VLenUTF8Codec",
    "ZstdCodec",
    "codec_from",
    "parse_codec",
    "register_codec",
]

_MODULES = {
    "BitRoundCodec": "bitround",
    "BloscCodec": "blosc",
    "BytesCodec": "bytes_codec",
    "CastValue": "cast_value",
    "Crc32cCodec": "crc32c",
    "GzipCodec": "gzip",
    "PackBitsCodec": "packbits",
    "ReshapeCodec": "reshape",
    "ScaleOffset": "scale_offset",
    "ShardingCodec": "sharding_indexed",
    "TransposeCodec": "transpose",
    "VLenBytesCodec": "vlen_bytes",
    "VLenUTF8Codec": "vlen_utf8",
    "ZstdCodec": "zstd",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
