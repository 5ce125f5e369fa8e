"""Choosing and reading chunk and shard shapes for new arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from operator import index as as_index
from typing import Any

import numpy as np

from zardine.chunk_grids import ChunkGrid, RectilinearGrid, RegularGrid

_CHUNK_BYTES = 2**20
_INNER_CHUNK_BYTES = 2**17
_SHARD_BYTES = 2**26


def choose_grid(
    shape: tuple[int, ...], item_size: int, chunks: Any, shards: Any
) -> tuple[ChunkGrid, tuple[int, ...] | None]:
    """The grid of stored objects, and the inner chunk shape where these are shards.

    ``chunks`` is ``"auto"``, a length for all axes, a length for each axis (``-1``: the whole axis), or lists of
    lengths for a rectilinear grid. ``shards`` is ``None``, ``"auto"``, lengths, or lists of lengths.
    Raises ``ValueError`` where they do not fit the shape or each other.
    """
    if _has_lists(chunks):
        if shards is not None:
            raise ValueError(
                "chunks of differing lengths are not possible inside of shards; give such lengths as shards"
            )
        return _rectilinear(chunks, shape, "chunks"), None
    if _has_lists(shards):
        grid = _rectilinear(shards, shape, "shards")
        inner = _chunk_shape(chunks, shape, item_size, [_common(axis) for axis in grid.chunk_shapes])
        return grid, inner
    if shards is None:
        return RegularGrid(_chunk_shape(chunks, shape, item_size, None)), None
    if _is_auto(shards):
        inner = _chunk_shape(chunks, shape, item_size, None, _INNER_CHUNK_BYTES)
        return RegularGrid(_auto_shards(shape, inner, item_size)), inner
    outer = _lengths(shards, shape, "shards")
    inner = _chunk_shape(chunks, shape, item_size, list(outer))
    for axis, (small, large) in enumerate(zip(inner, outer, strict=True)):
        if large % small:
            raise ValueError(
                f"chunks {inner} do not evenly divide shards {outer}: on axis {axis}, {small} does not divide {large}"
            )
    return RegularGrid(outer), inner


def auto_chunks(shape: tuple[int, ...], item_size: int, target: int = _CHUNK_BYTES) -> tuple[int, ...]:
    """A chunk shape of at most about ``target`` bytes: the longest axis is halved until it fits."""
    chunks = [max(length, 1) for length in shape]
    while prod(chunks) * item_size > target and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        chunks[axis] = ceil(chunks[axis] / 2)
    return tuple(chunks)


def _auto_shards(shape: tuple[int, ...], inner: tuple[int, ...], item_size: int) -> tuple[int, ...]:
    """Whole multiples of ``inner``: no more than the array needs, and no more than about 64 MiB."""
    most = [max(1, ceil(length / size)) for length, size in zip(shape, inner, strict=True)]
    counts = [1] * len(inner)
    while True:
        open_axes = [i for i, (count, top) in enumerate(zip(counts, most, strict=True)) if count < top]
        total = prod(counts) * prod(inner) * item_size
        if not open_axes or total * 2 > _SHARD_BYTES:
            break
        axis = min(open_axes, key=lambda i: counts[i] * inner[i])
        counts[axis] = min(counts[axis] * 2, most[axis])
    return tuple(count * size for count, size in zip(counts, inner, strict=True))


def _chunk_shape(
    chunks: Any, shape: tuple[int, ...], item_size: int, within: list[int] | None, target: int = _CHUNK_BYTES
) -> tuple[int, ...]:
    if not _is_auto(chunks):
        return _lengths(chunks, shape, "chunks")
    if within is None:
        return auto_chunks(shape, item_size, target)
    sizes = list(within)
    while prod(sizes) * item_size > _INNER_CHUNK_BYTES:
        candidates = [(size, i) for i, size in enumerate(sizes) if size > 1]
        if not candidates:
            break
        size, axis = max(candidates)
        sizes[axis] = size // _smallest_factor(size)
    return tuple(sizes)


def _lengths(value: Any, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = (value,) * len(shape)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError(f"{what} are an integer or a sequence of integers, not {value!r}")
    if len(value) != len(shape):
        raise ValueError(f"{what} {tuple(value)} have {len(value)} lengths, the array has {len(shape)} dimensions")
    lengths = []
    for axis, (each, length) in enumerate(zip(value, shape, strict=True)):
        number = max(length, 1) if each is None or as_index(each) == -1 else as_index(each)
        if number < 1:
            raise ValueError(f"{what} {tuple(value)}: the length {number} on axis {axis} is not 1 or more")
        lengths.append(number)
    return tuple(lengths)


def _rectilinear(value: Sequence[Any], shape: tuple[int, ...], what: str) -> RectilinearGrid:
    if len(value) != len(shape):
        raise ValueError(f"{what} have {len(value)} axes, the array has {len(shape)} dimensions")
    axes: list[int | list[int]] = []
    for axis, (each, length) in enumerate(zip(value, shape, strict=True)):
        if isinstance(each, (int, np.integer)):
            axes.append(max(length, 1) if each == -1 else int(each))
            continue
        sizes = [as_index(size) for size in each]
        if any(size < 1 for size in sizes) or sum(sizes) < length:
            raise ValueError(
                f"{what}: the lengths on axis {axis} must be 1 or more and add up to at least {length}, found {sizes}"
            )
        axes.append(sizes)
    return RectilinearGrid.from_lengths(axes)


def _common(axis: int | Sequence[tuple[int, int]]) -> int:
    from math import gcd

    return axis if isinstance(axis, int) else gcd(*(size for size, _ in axis))


def _smallest_factor(number: int) -> int:
    return next((n for n in range(2, int(number**0.5) + 1) if number % n == 0), number)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _has_lists(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(isinstance(each, (Sequence, np.ndarray)) for each in value)
    )


def shards_shape(shards: Any) -> tuple[Any, str]:
    """A user's ``shards=`` as its shape and the index location; a mapping may name both."""
    if isinstance(shards, Mapping):
        location = shards.get("index_location", "end")
        return shards["shape"], str(getattr(location, "value", location) or "end")
    return shards, "end"
