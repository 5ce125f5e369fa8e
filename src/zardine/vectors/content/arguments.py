"""Checking what users give: positions, boxes, ids, shapes. Pure; raises before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError, SelectionError
from zardine.vectors.format.grids import automatic_chunk_shape, bins_per_chunk
from zardine.vectors.format.ragged import extent_of

_MOST_BINS = 2**20

Lengths: TypeAlias = float | Sequence[float] | None
"""One for all axes, or one for each."""

Box: TypeAlias = tuple[Sequence[float], Sequence[float]] | npt.ArrayLike | None
"""The lowest and the highest corner, or all numbers of the one and then all of the other."""

LINK_COLUMNS: Final = ("source", "target")
"""How columns of edges are called in a table."""

Attributes: TypeAlias = Mapping[str, Any] | None
"""Values by name."""

OutOfBounds: TypeAlias = Literal["raise", "ignore", "expand"]
"""What becomes of positions outside of the bounds: an error, they are left out, or the bounds grow."""

GroupsLike: TypeAlias = Mapping[int, Collection[int]] | Mapping[str, Collection[int]] | Sequence[Collection[int]] | None
"""Lists of object ids, in order, by number or by name."""


def checked_positions(positions: Any, dtype: Any = None, what: str = "positions") -> npt.NDArray[Any]:
    """Positions ``(N, D)`` in float32 or float64, all finite, D from 1 to 4.

    Without ``dtype`` float32 and float64 stay as they are, in the byte order of this machine, and everything else
    becomes float64. Raises :class:`~zardine.errors.DataError`.
    """
    return positions_and_corners(positions, dtype, what)[0]


def positions_and_corners(
    positions: Any, dtype: Any, what: str
) -> tuple[npt.NDArray[Any], tuple[npt.NDArray[Any], npt.NDArray[Any]] | None]:
    """:func:`checked_positions`, and their lowest and highest corner, if these were found meanwhile."""
    array = plain_array(positions, what)
    if array.ndim != 2 or not 1 <= array.shape[1] <= 4 or array.dtype.kind not in "iuf":
        raise DataError(f"{what} are numbers of shape (N, D), D from 1 to 4; not {array.dtype} of shape {array.shape}")
    try:
        wanted = (np.dtype(dtype) if dtype is not None else array.dtype).newbyteorder("=")
    except (TypeError, ValueError):
        wanted = np.dtype(object)
    if wanted not in (np.dtype("f4"), np.dtype("f8")):
        if dtype is not None:
            raise DataError(f"positions are stored as float32 or float64, not {dtype!r}")
        wanted = np.dtype("f8")
    corners = extent_of(array)
    if array.size and corners is None and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise DataError(f"{what} must be finite; row {row} is {array[row].tolist()}")
    if array.dtype == wanted:
        return array, corners
    with np.errstate(over="ignore"):
        stored = array.astype(wanted)
    if stored.size and not np.isfinite(stored).all():
        raise DataError(f"{what} are too large for {wanted}")
    return stored, None


def checked_shapes(
    chunk_shape: Any, bin_shape: Any, bounds: tuple[Sequence[float], Sequence[float]], count: int
) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
    """The shapes of chunks and bins; ``chunk_shape=None`` chooses. Raises :class:`~zardine.errors.DataError`."""
    rank = len(bounds[0])
    if chunk_shape is None:
        chunks = automatic_chunk_shape(np.asarray(bounds[0]), np.asarray(bounds[1]), count)
        if bin_shape is not None:
            raise DataError("bin_shape needs a chunk_shape that it divides")
    else:
        chunks = _lengths(chunk_shape, rank, "chunk_shape")
    if bin_shape is None:
        return chunks, None
    bins = _lengths(bin_shape, rank, "bin_shape")
    if prod(bins_per_chunk(chunks, bins)) > _MOST_BINS:
        raise DataError(
            f"chunks of {chunks} have more than {_MOST_BINS} bins of {bins}: all are stored, also empty ones"
        )
    return chunks, bins


def checked_box(bbox: Any, rank: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The corners of a closed box. Raises :class:`~zardine.errors.SelectionError`."""
    try:
        corners = as_corners(np.asarray(bbox, np.float64))
    except (TypeError, ValueError, OverflowError):
        corners = np.zeros(0)
    if corners.shape != (2, rank) or np.isnan(corners).any():
        raise SelectionError(f"bbox {shown(bbox)} is no lowest and highest corner of {rank} coordinates each")
    if (corners[0] > corners[1]).any():
        axis = int(np.flatnonzero(corners[0] > corners[1])[0])
        raise SelectionError(
            f"bbox {shown(bbox)} ends before it begins on axis {axis}: it is the lowest corner, then the highest"
        )
    return tuple(corners[0].tolist()), tuple(corners[1].tolist())


def as_corners(box: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Two rows of a box that is given as one: (x, y, x, y), (x, y, z, x, y, z)."""
    return box.reshape(2, -1) if box.ndim == 1 and len(box) in (2, 4, 6, 8) else box


def is_masked(values: Any) -> bool:
    """Return whether some of a user's values are masked; only a user who has such has imported ``numpy.ma`` (slow)."""
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))


def plain_array(values: Any, what: str, columns: Sequence[str] = ("x", "y", "z", "w")) -> npt.NDArray[Any]:
    """A user's values as an array; those of a table whose columns have no names, or are called ``columns``.

    Raises :class:`~zardine.errors.DataError` for rows of different lengths, for values that are masked, and for other
    names of columns: the mask, and the names, would be lost.
    """
    names = (
        None if isinstance(values, np.ndarray) else getattr(values, "column_names", getattr(values, "columns", None))
    )
    if names is not None and list(names) not in (list(range(len(names))), list(columns[: len(names)])):
        told = ", ".join(map(repr, names))
        raise DataError(
            f"{what}: the names of the table's columns would be lost: {told}. Give its to_numpy(), with axes= if these "
            "are axes, or take the table by Points.from_pandas"
        )
    if is_masked(values):
        raise DataError(f"{what}: some values are masked; leave them out, or fill them")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        reason = "rows of different lengths" if "inhomogeneous" in str(error) else str(error)
        raise DataError(f"{what}: no array of values: {reason}") from None


def checked_ids(ids: Any, count: int | None, what: str) -> Ints:
    """Ids as 64-bit integers, ``count`` of them if that is given. Raises :class:`~zardine.errors.DataError`."""
    array = plain_array(ids, what)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (count is not None and len(array) != count):
        wanted = "" if count is None else f" {count}"
        raise DataError(f"{what}:{wanted} integers are needed, not {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise DataError(f"{what}: {int(array.max())} does not fit in 64 bits with a sign")
    return array.astype(np.int64)


def plain_ids(ids: Any) -> npt.NDArray[Any] | None:
    """Return a user's ids as an array that is not checked yet; ``None`` for none."""
    return None if ids is None else plain_array(ids, "object_ids")


def checked_links(links: Any, what: str, least: int) -> Ints:
    """Check edges ``(E, 2)``, or faces of ``least`` 3 corners or more. Raises :class:`~zardine.errors.DataError`."""
    array = plain_array(links, what, LINK_COLUMNS)
    if array.size == 0 and array.ndim < 2:
        array = np.zeros((0, least), np.int64)
    good = array.ndim == 2 and (array.shape[1] == 2 if least == 2 else 3 <= array.shape[1] <= 12)
    if not good or (array.dtype.kind not in "iu" and array.size):
        shape = "(E, 2)" if least == 2 else "(F, 3), or up to 12 corners"
        raise DataError(f"{what} are integers of shape {shape}, not {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise DataError(f"{what}: {int(array.max())} does not fit in 64 bits with a sign")
    return array.astype(np.int64)


def checked_rows(links: Ints, count: int, what: str) -> Ints:
    """Return links that are rows of ``count`` vertices. Raises :class:`~zardine.errors.DataError` for others."""
    if len(links) and (links.min() < 0 or links.max() >= count):
        raise DataError(f"{what} name rows {int(links.min())} to {int(links.max())}; there are {count} vertices")
    return links


def checked_parents(parents: Any, count: int) -> Ints:
    """Return the parents of ``count`` vertices: rows of these, or -1. Raises :class:`~zardine.errors.DataError`."""
    found = checked_ids(parents, count, "parents")
    wrong = found[(found < -1) | (found >= count)]
    if len(wrong):
        raise DataError(f"parents are rows of the {count} vertices, or -1; found {int(wrong[0])}")
    return found


def one_of(attributes: Any, same: Any, name: str) -> Any:
    """Return the attributes of links, which may be given by either of two names. Raises :class:`DataError` for both."""
    if attributes is not None and same is not None:
        raise DataError(f"link_attributes and {name} are the same: give one of them")
    return same if attributes is None else attributes


def _lengths(value: Any, rank: int, name: str) -> tuple[float, ...]:
    try:
        array = np.asarray(value)
        flags = array.dtype.kind == "b" or (np.iterable(value) and any(isinstance(each, bool) for each in value))
        array = np.zeros(0) if array.dtype.kind in "US" or flags else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.ndim == 0:
        array = np.full(rank, float(array))
    if array.shape != (rank,) or not np.isfinite(array).all() or (array <= 0).any():
        raise DataError(f"{name} is a length above 0 for each of {rank} axes, not {shown(value)}")
    return tuple(array.tolist())


def shown(value: Any) -> str:
    """What a user gave, for an error, which is not to be as long as that."""
    try:
        text = repr(value)
    except ValueError:  # of integers that Python has no text for
        text = f"what was given ({type(value).__name__})"
    return text if len(text) <= 200 else f"{text[:200]}…"
