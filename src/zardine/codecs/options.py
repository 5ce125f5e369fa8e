"""The names of codec options as string enums; every codec takes the plain strings just as well."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from zardine.public_names import public

__all__ = ["BloscCname", "BloscShuffle", "Endian", "ShardingCodecIndexLocation"]


@public("zardine.codecs")
class Endian(StrEnum):
    """Byte order of the ``bytes`` codec."""

    big = "big"
    little = "little"


@public("zardine.codecs")
class BloscShuffle(StrEnum):
    """What blosc does before compressing: nothing, group bytes, or group bits of the elements."""

    noshuffle = "noshuffle"
    shuffle = "shuffle"
    bitshuffle = "bitshuffle"


@public("zardine.codecs")
class BloscCname(StrEnum):
    """The compressor inside blosc."""

    lz4 = "lz4"
    lz4hc = "lz4hc"
    blosclz = "blosclz"
    snappy = "snappy"
    zlib = "zlib"
    zstd = "zstd"


SubchunkWriteOrder: TypeAlias = Literal["morton", "unordered", "lexicographic", "colexicographic"]
"""Order of inner chunks in new shards, in the words of zarr-python."""


@public("zardine.codecs")
class ShardingCodecIndexLocation(StrEnum):
    """Where in a shard the index is."""

    start = "start"
    end = "end"
