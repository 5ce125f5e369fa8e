"""Which chunks and shards a new variable gets: what was asked for, what it had, or what size and tasks suggest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any, TypeAlias

from zardine.creation.block_shapes import shapes_for_blocks
from zardine.creation.chunk_shapes import INNER_CHUNK_BYTES
from zardine.creation.options import is_word

Lengths: TypeAlias = Mapping[Any, int] | Sequence[int] | int | str | None
"""Lengths as a user gives them: by name of dimension, one for each axis, one for all, ``"auto"``, or none."""


@dataclass(frozen=True, slots=True)
class Variable:
    """What is known of a variable that is to be stored."""

    name: str
    dims: tuple[Any, ...]
    shape: tuple[int, ...]
    item_size: int
    tasks: tuple[tuple[int, ...], ...] | None
    """Lengths of its Dask chunks on each axis, if it has such."""


def choose_shapes(variable: Variable, chunks: Any, shards: Any, *, sharded: bool = True) -> tuple[Any, Any]:
    """Return chunks and shards as ``create_array`` takes them (``None``: no shards).

    ``chunks`` and ``shards`` are :data:`Lengths`, or for ``shards`` also what ``create_array`` takes. Where ``"auto"``
    leaves the choice, shards are whole Dask chunks, so that a task writes its own (small ones are inner chunks), and a
    variable of a single chunk gets no shard. Without ``sharded`` (Zarr v2 has no shards) Dask chunks are chunks. Raises
    ``ValueError`` or ``TypeError`` for lengths that do not fit the variable.
    """
    inner = lengths_of_axes(variable, chunks, "chunks")
    if inner is None and is_word(shards, "auto") and sharded:
        inner = _small_tasks(variable)
    outer: Any = shards
    if is_by_name(shards) or (isinstance(shards, int) and not isinstance(shards, bool)):
        outer = lengths_of_axes(variable, shards, "shards")
        if inner is not None and is_by_name(shards):
            outer = tuple(ceil(large / small) * small for large, small in zip(outer, inner, strict=True))
    if outer == () and not variable.shape:
        outer = None  # one value needs no shard, and not every program reads such
    if sharded and is_word(outer, "auto") and _is_single(variable, inner):
        return variable.shape if inner is None and 0 not in variable.shape else inner or "auto", None
    wanted = "auto" if inner is None else inner
    if variable.tasks is None:
        return wanted, outer if sharded else None
    return shapes_for_blocks(variable.tasks, variable.item_size, wanted, outer, sharded=sharded)


def _small_tasks(variable: Variable) -> tuple[int, ...] | None:
    """Return the lengths of Dask chunks that are regular, and small enough to be inner chunks as they are."""
    tasks = variable.tasks
    if tasks is None or any(not each or {*each[:-1]} - {each[0]} or each[-1] > each[0] for each in tasks):
        return None
    lengths = tuple(each[0] for each in tasks)
    return lengths if 0 < prod(lengths) * variable.item_size <= INNER_CHUNK_BYTES else None


def _is_single(variable: Variable, inner: tuple[int, ...] | None) -> bool:
    """Return whether one chunk holds the whole variable; of chunks that are left to us, one of the usual size."""
    if inner is None:
        return prod(variable.shape) * variable.item_size <= INNER_CHUNK_BYTES
    return all(size >= length for size, length in zip(inner, variable.shape, strict=True))


def is_by_name(value: Any) -> bool:
    """Return whether lengths are given by the names of dimensions."""
    return isinstance(value, Mapping) and "shape" not in value


def lengths_of_axes(variable: Variable, value: Any, what: str) -> tuple[int, ...] | None:
    """Return lengths for the axes of the variable; a dimension that is not named is one whole length."""
    if value is None or is_word(value, "auto"):
        return None
    if is_by_name(value):
        found = [value.get(dim, -1) for dim in variable.dims]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        found = list(value)
    else:
        found = [value] * len(variable.shape)
    if len(found) != len(variable.shape):
        raise ValueError(
            f"{what} {tuple(found)} are for {len(found)} dimensions, variable {variable.name!r} has {variable.dims}"
        )
    for each in found:
        if isinstance(each, (tuple, list)):
            raise TypeError(
                f"{what} of variable {variable.name!r} are rectilinear (of differing lengths), {value!r}: give one "
                "length for each dimension, or forget those of what was read, by ds.drop_encoding()"
            )
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(
                f"{what} of variable {variable.name!r} must be an int or a tuple of ints, or lengths by the names of "
                f"dimensions, not {value!r}"
            )
    return tuple(
        max(length, 1) if int(each) == -1 else int(each) for each, length in zip(found, variable.shape, strict=True)
    )
