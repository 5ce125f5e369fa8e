"""The base classes of codecs."""

from __future__ import annotations

from zardine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec, SizeLimit

BaseCodec = Codec

__all__ = ["ArrayArrayCodec", "ArrayBytesCodec", "BaseCodec", "BytesBytesCodec", "ChunkSpec", "Codec", "SizeLimit"]


def __dir__() -> list[str]:
    return sorted(__all__)
