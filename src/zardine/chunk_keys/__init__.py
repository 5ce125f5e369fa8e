"""How chunks are named in a store."""

from zardine.chunk_keys.encodings import (
    ChunkKeyEncoding,
    DefaultChunkKeyEncoding,
    V2ChunkKeyEncoding,
    parse_chunk_key_encoding,
    register_chunk_key_encoding,
)

__all__ = [
    "ChunkKeyEncoding",
    "DefaultChunkKeyEncoding",
    "V2ChunkKeyEncoding",
    "parse_chunk_key_encoding",
    "register_chunk_key_encoding",
]
