"""Writes collected in memory, so that each stored object is written once: what ``Array.buffered`` uses.

What waits is named by chunk, and so belongs to a layout. Of a chunk that the end of the array cuts, the rest never
counts as new: others may append to it before it is stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import prod
from operator import gt
from sys import getsizeof
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from zardine.chunk_grids.axis import Axis
from zardine.data_types.numpy_types import AnyObject
from zardine.engine.layout import ArrayLayout
from zardine.indexing.plan import ChunkPlan, GridPlan, ObjectPart
from zardine.json_document import Extension

RowsOf: TypeAlias = Callable[[ObjectPart], list[int]]
"""The row of each chunk of a part in the index of its object."""


@dataclass(slots=True, eq=False)
class PendingChunk:
    """New values of one chunk, decoded."""

    chunk: tuple[int, ...]
    """Grid coordinates."""
    values: npt.NDArray[Any]
    """Of the full shape of the chunk; the fill value where nothing new is."""
    mask: npt.NDArray[np.bool_] | None
    """Which of ``values`` are new; ``None``: all of them."""

    def inside(self, axes: tuple[Axis, ...]) -> tuple[slice, ...]:
        """The elements that lie in an array, of whose chunks ``axes`` tell."""
        return tuple(slice(max(0, axis.length - axis.start(i))) for axis, i in zip(axes, self.chunk, strict=True))

    def covers(self, inside: tuple[Any, ...] = ()) -> bool:
        """Whether all elements are new, or all that the index ``inside`` takes."""
        return self.mask is None or bool(self.mask[inside].all())

    def cut(self, axes: tuple[Axis, ...], fill: npt.NDArray[Any]) -> PendingChunk | None:
        """This chunk without what lies beyond the array; ``None`` if nothing is left."""
        inside = self.inside(axes)
        if all(part.stop >= length for part, length in zip(inside, self.values.shape, strict=True)):
            return self
        values, mask = np.empty_like(self.values), np.zeros(self.values.shape, np.bool_)
        values[...] = fill
        values[inside] = self.values[inside]
        mask[inside] = True if self.mask is None else self.mask[inside]
        return PendingChunk(self.chunk, values, mask) if mask.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """What waits of a selection: chunks, each with the index of what it is wanted for, and of where that goes."""

    chunks: tuple[tuple[PendingChunk, tuple[Any, ...], tuple[Any, ...]], ...]
    whole: frozenset[tuple[int, ...]]
    """Grid coordinates of chunks of which nothing stored is wanted."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class WriteBuffer:
    """Chunks that wait to be written, by stored object and by row in its index (0 where an object is one chunk)."""

    limit: int
    layout: ArrayLayout
    """Where the objects are."""
    nbytes: int = 0
    """Bytes that wait; about, where elements vary in length."""
    ended: bool = False
    """The block is over: nothing new is collected, but something may wait still since it could not be stored."""
    closed: bool = False
    """Nothing is collected any more, and nothing waits."""
    reach: tuple[int, ...] = ()
    """No element that waits lies beyond this shape."""
    objects: dict[tuple[int, ...], dict[int, PendingChunk]] = field(default_factory=dict)
    lock: Any = field(default_factory=RLock)

    def __post_init__(self) -> None:
        _buffers.add(self)

    def add(self, layout: ArrayLayout, plan: ChunkPlan, values: npt.NDArray[Any], rows_of: RowsOf) -> None:
        """Collect ``values`` (of the selection's full shape; flat for points), planned by ``layout``."""
        shape = layout.metadata.shape
        self.reach = tuple(map(max, self.reach, shape)) if self.reach else shape
        for part in plan.parts():
            for i, (row, whole) in enumerate(zip(rows_of(part), part.whole().tolist(), strict=True)):
                chunk = self.objects.get(part.object, {}).get(row)
                if chunk is None:
                    chunk = self._hold(part, i, whole)
                    self.objects.setdefault(part.object, {})[row] = chunk
                elif whole and chunk.mask is not None:
                    self.nbytes -= chunk.mask.nbytes
                    chunk.mask = None
                inner, new = part.inner(i), self._own(values[part.outer(i)])
                chunk.values[inner] = new
                if chunk.mask is not None:
                    chunk.mask[inner] = True
                self.nbytes += _outside(new)

    def pending(self, plan: ChunkPlan, rows_of: RowsOf) -> Pending:
        """What waits of a selection. It stays as it is, or gets newer, when it is stored meanwhile."""
        found, whole = [], []
        for part in plan.parts() if self.objects else ():
            held = self.objects.get(part.object)
            if not held:
                continue
            for i, row in enumerate(rows_of(part)):
                chunk = held.get(row)
                if chunk is not None:
                    inner = part.inner(i)
                    found.append((chunk, inner, part.outer(i)))
                    if chunk.covers(inner):
                        whole.append(chunk.chunk)
        return Pending(tuple(found), frozenset(whole))

    def put(self, pending: Pending, out: npt.NDArray[Any]) -> None:
        """Put what waits over what was read."""
        for chunk, inner, outer in pending.chunks:
            new = self._own(chunk.values[inner])
            out[outer] = new if chunk.mask is None else np.where(chunk.mask[inner], new, out[outer])

    def forget(self, coordinates: tuple[int, ...]) -> None:
        """The chunks of an object do not wait any more."""
        del self.objects[coordinates]

    def recount(self) -> None:
        """Count the bytes that wait."""
        self.nbytes = sum(_size(chunk) for chunk in self.held())

    def discard(self) -> None:
        """Forget everything."""
        self.objects.clear()
        self.nbytes = 0

    def held(self) -> Iterator[PendingChunk]:
        """Every chunk."""
        for chunks in self.objects.values():
            yield from chunks.values()

    def one_by_one(self) -> Iterator[WriteBuffer]:
        """For each object that waits, a buffer that holds this one only."""
        for coordinates, chunks in tuple(self.objects.items()):
            yield replace(self, objects={coordinates: chunks})

    def reaches_beyond(self, shape: tuple[int, ...]) -> bool:
        """Whether elements may wait that lie beyond a shape."""
        return any(map(gt, self.reach, shape))

    def cut(self, layout: ArrayLayout) -> None:
        """Forget what lies beyond the shape of ``layout``, which is like that of this buffer in all else."""
        shape = layout.metadata.shape
        if not self.reaches_beyond(shape):
            return
        for coordinates, chunks in tuple(self.objects.items()):
            cut = {row: chunk.cut(layout.grids.chunks, layout.metadata.fill) for row, chunk in chunks.items()}
            self.objects[coordinates] = {row: chunk for row, chunk in cut.items() if chunk is not None}
            if not self.objects[coordinates]:
                del self.objects[coordinates]
        self.reach = tuple(map(min, self.reach, shape))
        self.recount()

    def bytes_of(self, plan: ChunkPlan) -> int:
        """Bytes of all chunks of a plan, which is what may come to wait when its values are collected."""
        if isinstance(plan, GridPlan):
            elements = prod(int(axis.extents.sum()) for axis in plan.axes)
        else:
            elements = int(np.prod(plan.extents, axis=0, dtype=np.int64).sum()) if plan.extents else 1
        return elements * self.layout.metadata.dtype.itemsize

    def _hold(self, part: ObjectPart, i: int, whole: bool) -> PendingChunk:
        fill = self.layout.metadata.fill
        values = np.empty(part.chunk_shape(i), fill.dtype)
        values[...] = fill
        chunk = PendingChunk(part.chunk(i), values, None if whole else np.zeros(values.shape, np.bool_))
        self.nbytes += _size(chunk)
        return chunk

    def _own(self, values: Any) -> Any:
        """Python objects as they are now: whoever gave or got them may change them."""
        return deepcopy(values) if isinstance(self.layout.metadata.data_type, AnyObject) else values


def placed_alike(a: ArrayLayout, b: ArrayLayout) -> bool:
    """Whether chunks have the same places and encodings by both layouts, so that these differ in shape at most."""
    if a is b:
        return True
    one, other = a.metadata, b.metadata
    return (
        (one.zarr_format, one.data_type, one.ndim) == (other.zarr_format, other.data_type, other.ndim)
        and _same_extensions((one.chunk_key_encoding, *one.codecs), (other.chunk_key_encoding, *other.codecs))
        and _bits(one.data_type.item_size, one.fill) == _bits(other.data_type.item_size, other.fill)
        and all(map(_same_chunks, a.grids.storage, b.grids.storage))
        and all(map(_same_chunks, a.grids.chunks, b.grids.chunks))
    )


def _bits(item_size: int | None, fill: npt.NDArray[Any]) -> bytes | str:
    return repr(fill[()]) if item_size is None else fill.tobytes()


def _same_extensions(a: tuple[Extension, ...], b: tuple[Extension, ...]) -> bool:
    """Whether documents say the same. What was read from one has lists where the user may have given tuples."""
    return a == b or _json(a) == _json(b)


def _json(extensions: tuple[Extension, ...]) -> str:
    return json.dumps([each.to_json() for each in extensions], sort_keys=True)


def _same_chunks(a: Axis, b: Axis) -> bool:
    """Whether two axes are cut alike, as far as both are told. Grids grow by chunks behind the last."""
    shorter, longer = sorted((a.runs, b.runs), key=len)
    if not shorter:
        return True
    (*firsts, (size, number)), last = shorter, longer[len(shorter) - 1]
    if longer[: len(firsts)] != tuple(firsts) or last[0] != size:
        return False
    return len(shorter) == len(longer) or (number is not None and last[1] is not None and number <= last[1])


def _size(chunk: PendingChunk) -> int:
    return chunk.values.nbytes + (0 if chunk.mask is None else chunk.mask.nbytes) + _outside(chunk.values)


def _outside(values: Any) -> int:
    """Bytes of elements that vary in length, which lie beside their array; about."""
    if not isinstance(values, np.ndarray):
        return 0
    if values.dtype.kind == "T":
        return int(np.strings.str_len(values).sum())
    return sum(map(getsizeof, values.flat)) if values.dtype.kind == "O" else 0


_buffers: WeakSet[WriteBuffer] = WeakSet()


def _after_fork_in_child() -> None:
    """What waits in the parent is the parent's to store. A child collects nothing: nobody would ever store it."""
    for buffer in tuple(_buffers):
        buffer.lock = RLock()
        buffer.discard()
        buffer.closed = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
