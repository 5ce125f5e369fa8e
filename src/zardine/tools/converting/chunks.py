"""Chunk and shard lengths of converted arrays."""

from __future__ import annotations

from math import prod

from zardine.creation.chunk_shapes import side_by_side

_LARGE = 4 * 2**20
"""Bytes from which on a chunk of the source is cut into smaller inner chunks."""
_WANTED = 2**20
"""Bytes of an inner chunk that was cut off a larger one, at most, where the lengths can be divided."""
_LARGEST_FACTOR = 7
"""Lengths are divided by numbers up to this one."""
_MOST_INNER = 2**15
"""Inner chunks of a shard: its index takes 16 bytes for each."""


def inner_chunks(chunks: tuple[int, ...], item_size: int) -> tuple[int, ...]:
    """Return the inner chunks for chunks of the source: the same, or equal parts of large ones."""
    sizes = list(chunks)
    if prod(sizes) * item_size <= _LARGE:
        return chunks
    while prod(sizes) * item_size > _WANTED:
        candidates = [(size, -axis) for axis, size in enumerate(sizes) if _small_factor(size) is not None]
        if not candidates:
            break
        size, axis = max(candidates)
        sizes[-axis] = size // (_small_factor(size) or 1)
    return tuple(sizes)


def shard_shape(
    shape: tuple[int, ...], unit: tuple[int, ...], inner: tuple[int, ...], item_size: int
) -> tuple[int, ...]:
    """Return whole multiples of ``unit``, itself one of ``inner``: as much as the array needs, or about 64 MiB."""
    parts = prod(outer // small for outer, small in zip(unit, inner, strict=True))
    return side_by_side(shape, unit, item_size, _MOST_INNER // parts)


def _small_factor(number: int) -> int | None:
    return next((n for n in range(2, _LARGEST_FACTOR + 1) if number % n == 0), None)
