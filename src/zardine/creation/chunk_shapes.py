"""Choosing and reading chunk and shard shapes for new arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf, prod
from operator import index as as_index
from typing import Any

import numpy as np

from zardine.chunk_grids import ChunkGrid, RectilinearGrid, RegularGrid
from zardine.creation.options import is_word

_CHUNK_BYTES = 2**20
"""Bytes of a chunk that is an object of its own, about, where the choice is ours."""
INNER_CHUNK_BYTES = 2**17
"""Bytes of an inner chunk of shards, at most, where the choice is ours."""
_SHARD_BYTES = 2**26
"""Bytes of the elements of a shard, at most, where the choice is ours."""


def choose_grid(
    shape: tuple[int, ...], item_size: int, chunks: Any, shards: Any
) -> tuple[ChunkGrid, tuple[int, ...] | None]:
    """Return the grid of stored objects, and the inner chunk shape where these are shards.

    ``chunks`` is ``"auto"`` or ``None``, a length for all axes, a length for each axis (``-1``: the whole axis),
    ``False`` (one chunk for the whole array), or lists of lengths for a rectilinear grid. ``shards`` is ``None``,
    ``"auto"``, lengths, or lists of lengths.
    Raises ``ValueError`` where they do not fit the shape or each other.
    """
    if has_lists(chunks):
        if shards is not None:
            raise ValueError(
                "chunks of differing lengths are not possible inside of shards; give such lengths as shards"
            )
        return _rectilinear(chunks, shape, "chunks"), None
    if has_lists(shards):
        grid = _rectilinear(shards, shape, "shards")
        inner = _chunk_shape(chunks, shape, item_size, [_common(axis) for axis in grid.chunk_shapes])
        for axis, (small, sizes) in enumerate(zip(inner, grid.chunk_shapes, strict=True)):
            for large in [sizes] if isinstance(sizes, int) else [size for size, _ in sizes]:
                _check_division(inner, "shards", axis, small, large)
        return grid, inner
    if shards is None:
        return RegularGrid(_chunk_shape(chunks, shape, item_size, None)), None
    if is_word(shards, "auto"):
        inner = _chunk_shape(chunks, shape, item_size, None, INNER_CHUNK_BYTES)
        return RegularGrid(side_by_side(shape, inner, item_size)), inner
    outer = _lengths(shards, shape, "shards")
    inner = _chunk_shape(chunks, shape, item_size, list(outer))
    swapped = all(small % large == 0 for small, large in zip(inner, outer, strict=True))
    for axis, (small, large) in enumerate(zip(inner, outer, strict=True)):
        _check_division(inner, f"shards {outer}", axis, small, large, swapped=swapped)
    return RegularGrid(outer), inner


def _check_division(
    chunks: tuple[int, ...], shards: str, axis: int, small: int, large: int, *, swapped: bool = False
) -> None:
    if large % small:
        hint = "; are they swapped? Chunks are the parts of a shard, as in chunks=(10,), shards=(100,)"
        raise ValueError(
            f"chunks {chunks} do not evenly divide {shards}: on axis {axis}, {small} does not divide {large}"
            f"{hint if swapped else ''}"
        )


def auto_chunks(shape: tuple[int, ...], item_size: int, target: int = _CHUNK_BYTES) -> tuple[int, ...]:
    """Return a chunk shape of at most about ``target`` bytes: the longest axis is halved until it fits."""
    chunks = [max(length, 1) for length in shape]
    while prod(chunks) * item_size > target and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        chunks[axis] = ceil(chunks[axis] / 2)
    return tuple(chunks)


def side_by_side(
    shape: Sequence[int], piece: Sequence[int], item_size: int, most_pieces: float = inf
) -> tuple[int, ...]:
    """Return whole multiples of ``piece``: no more than an array of ``shape`` needs, and no more than about 64 MiB.

    They hold ``most_pieces`` at most, but one in any case.
    """
    most = [max(1, ceil(length / size)) for length, size in zip(shape, piece, strict=True)]
    counts = [1] * len(piece)
    while True:
        open_axes = [i for i, (count, top) in enumerate(zip(counts, most, strict=True)) if count < top]
        total = prod(counts) * prod(piece) * item_size
        if not open_axes or total * 2 > _SHARD_BYTES or prod(counts) * 2 > most_pieces:
            break
        axis = min(open_axes, key=lambda i: counts[i] * piece[i])
        counts[axis] = min(counts[axis] * 2, most[axis])
    return tuple(count * size for count, size in zip(counts, piece, strict=True))


def _chunk_shape(
    chunks: Any, shape: tuple[int, ...], item_size: int, within: list[int] | None, target: int = _CHUNK_BYTES
) -> tuple[int, ...]:
    if not _is_left_to_us(chunks):
        return _lengths(chunks, shape, "chunks")
    if within is None:
        return auto_chunks(shape, item_size, target)
    sizes = list(within)
    while prod(sizes) * item_size > INNER_CHUNK_BYTES:
        candidates = [(size, i) for i, size in enumerate(sizes) if size > 1]
        if not candidates:
            break
        size, axis = max(candidates)
        sizes[axis] = size // _smallest_factor(size)
    return tuple(sizes)


def chunk_lengths(chunks: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return a user's ``chunks=`` as lengths; ``None`` where it leaves the choice to us."""
    return None if _is_left_to_us(chunks) else _lengths(chunks, shape, "chunks")


def _lengths(value: Any, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    if value is False and what == "chunks":
        value = -1
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = (value,) * len(shape)
    if not isinstance(value, Sequence) or isinstance(value, str):
        other = "None" if what == "shards" and value is False else "'auto'"
        hint = f"; use {what}={other}" if isinstance(value, (bool, str)) else ""
        raise TypeError(f"{what} are an integer or a sequence of integers, not {value!r}{hint}")
    if len(value) != len(shape):
        raise ValueError(f"{what} {tuple(value)} are for {len(value)} dimensions, the array has {len(shape)}")
    lengths = []
    for axis, (each, length) in enumerate(zip(value, shape, strict=True)):
        try:
            number = max(length, 1) if each is None or as_index(each) == -1 else as_index(each)
        except TypeError:
            raise TypeError(f"{what} {tuple(value)}: {each!r} on axis {axis} is not an integer") from None
        if not 1 <= number < 2**63:
            raise ValueError(f"{what} {tuple(value)}: the length {number} on axis {axis} is not in 1 to 2^63 - 1")
        lengths.append(number)
    return tuple(lengths)


def _rectilinear(value: Sequence[Any], shape: tuple[int, ...], what: str) -> RectilinearGrid:
    if len(value) != len(shape):
        raise ValueError(f"{what} are for {len(value)} dimensions, the array has {len(shape)}")
    axes: list[int | list[int]] = []
    for axis, (each, length) in enumerate(zip(value, shape, strict=True)):
        if isinstance(each, (int, np.integer)) or each is None:
            axes.append(*_lengths((each,), (length,), what))
            continue
        try:
            sizes = [as_index(size) for size in each]
        except TypeError:
            raise TypeError(f"{what}: the lengths on axis {axis} are integers, not {each!r}") from None
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


def _is_left_to_us(value: Any) -> bool:
    return value is None or is_word(value, "auto")


def has_lists(value: Any) -> bool:
    """Return whether ``chunks=`` or ``shards=`` has a list of lengths for some axis, as rectilinear grids do."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(isinstance(each, (Sequence, np.ndarray)) for each in value)
    )


def shards_shape(shards: Any) -> tuple[Any, str]:
    """Return a user's ``shards=`` as its shape and the index location; a mapping may name both."""
    if isinstance(shards, Mapping):
        if "shape" not in shards or shards.keys() - {"shape", "index_location"}:
            raise ValueError(f"shards as a mapping have the members 'shape' and 'index_location', found {dict(shards)}")
        location = shards.get("index_location") or "end"
        location = str(getattr(location, "value", location))
        if location not in ("start", "end"):
            raise ValueError(f"the index_location of shards is 'start' or 'end', not {location!r}")
        return shards["shape"], location
    return shards, "end"
