"""Finding where chunks end that lie one after the other, each with its CRC32C behind it. Pure."""

from __future__ import annotations

from typing import Final

import google_crc32c

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import Crc32cCodec

_MOST: Final = 2**20
"""Bytes that are looked through: a second or so."""


def ends_with_checksum(chain: CodecChain) -> bool:
    """Whether the last bytes of an encoded chunk are its CRC32C."""
    return bool(chain.compressors) and isinstance(chain.compressors[-1], Crc32cCodec)


def cut_into_chunks(shard: BytesLike, start: int, end: int) -> list[tuple[int, int]] | None:
    """Offsets and lengths of the chunks that fill the bytes from ``start`` to ``end``; ``None`` if none do."""
    if end - start > _MOST:
        return None
    data = bytes(memoryview(shard)[start:end])
    found = []
    first, checksum = 0, 0
    for place in range(len(data) - 4):
        checksum = google_crc32c.extend(checksum, data[place : place + 1])
        if checksum.to_bytes(4, "little") == data[place + 1 : place + 5] and place >= first:
            found.append((start + first, place + 5 - first))
            first, checksum = place + 5, 0
        elif place < first:
            checksum = 0  # these bytes are a checksum themselves
    return found if first == len(data) else None
