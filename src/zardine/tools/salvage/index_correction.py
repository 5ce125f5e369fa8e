"""Putting right a shard index of which one byte is damaged, by means of its CRC32C. Pure.

The checksums of two messages that differ in one byte differ by a value that says where, and by what: for an index of
``n`` bytes there are ``255 n`` such values among ``2**32``. Damage of more bytes gives one of them by chance with a
probability of ``n / 2**24``; what is then put right would have to be an index whose entries all lie within the shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from zardine.buffers import BytesLike
from zardine.codecs.crc32c import Crc32cCodec, crc32c
from zardine.errors import DataError
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout, reader

_MOST: Final = 2**20
"""Bytes of an index up to which it is tried."""
_POLYNOMIAL: Final = 0x82F63B78


def _make_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE: Final = _make_table()
_BYTE_OF: Final = {value: byte for byte, value in enumerate(_TABLE)}
_BY_TOP: Final = {value >> 24: byte for byte, value in enumerate(_TABLE)}


def corrected_index(shard: BytesLike, layout: ShardLayout) -> ShardIndex | None:
    """Return the index of ``shard`` if it is right but for one byte, and there is only one such byte; else ``None``."""
    size = layout.index_size
    compressors = layout.index_chain.compressors
    if not compressors or not isinstance(compressors[-1], Crc32cCodec) or not size <= min(len(shard), _MOST):
        return None
    start, _ = layout.index_bytes(len(shard))
    stored = bytes(memoryview(shard)[start : start + size])
    found = []
    for place, change in one_byte_changes(stored[:-4], int.from_bytes(stored[-4:], "little")):
        right = bytearray(stored)
        right[place] ^= change
        try:
            index = layout.decode_index(bytes(right))
            layout.check(index, len(shard), reader(shard))
        except DataError:
            continue
        found.append(index)
    return found[0] if len(found) == 1 else None


def one_byte_changes(body: bytes, checksum: int) -> Iterator[tuple[int, int]]:
    """Yield every change of one byte, as its place and what to XOR, after which ``body`` has this CRC32C.

    Places from ``len(body)`` on are bytes of the checksum itself (little endian).
    """
    difference = crc32c(body) ^ checksum
    for byte in range(4):
        change = difference >> 8 * byte & 255
        if change and difference == change << 8 * byte:
            yield len(body) + byte, change
    for place in range(len(body) - 1, -1, -1):
        change = _BYTE_OF.get(difference, 0)
        if change:
            yield place, change
        entry = _BY_TOP[difference >> 24]  # one step of the checksum backwards
        difference = (difference ^ _TABLE[entry]) << 8 | entry
