"""Making a shard of which nothing stored is kept: a small one in memory, a large one while it is written.

Of a large one a few megabytes of chunks are encoded at a time, the next ones while those are written, in the order in
which they lie in the shard. The index comes last; where it stands at the start, room is left for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.contexts import sure_context
from zardine.engine.change import Change, PendingChange
from zardine.engine.handle import ArrayHandle
from zardine.engine.read import row_batches
from zardine.engine.read_ahead import ahead, window_bytes
from zardine.engine.workers import for_each
from zardine.settings import thread_count
from zardine.sharding.index import MISSING, ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Condition, NewValue, Version

_AT_A_TIME: Final = 2**23
"""Bytes of the elements of chunks that are encoded together; a shard with no more is made in memory."""
_IN_MEMORY: Final = 2**25
"""The same of a shard that has to be in memory anyway: up to here it costs less to make it there at once."""


@dataclass(frozen=True, slots=True, eq=False)
class NewShard:
    """A shard that is whole, and not yet stored."""

    index: ShardIndex
    put: Callable[[Condition | None], Version | None]
    """Stores it, as :meth:`~zardine.stores.base.Store.set` does."""


@dataclass(frozen=True, slots=True, eq=False)
class _Chunks:
    """Encoded chunks, one after the other in ``pieces``; offset and length are :data:`MISSING` for those left out."""

    pieces: list[BytesLike]
    offsets: Ints
    lengths: Ints


@sure_context
def new_shard(
    change: Change | PendingChange,
    layout: ShardLayout,
    rows: Ints,
    covered: npt.NDArray[np.bool_],
    ranks: Ints | None = None,
) -> Generator[NewShard | None, None, None]:
    """Make a shard of the chunks of ``change``, which are the ``rows`` of the index; ``None`` if all of them are empty.

    Those that are not ``covered`` have the fill value where ``change`` says nothing. They lie in the order of the
    ``ranks`` of their rows; without, in that of ``change`` where the kernel encodes them, else in that of the rows.
    """
    handle, key = change.handle, change.key
    if ranks is not None:
        jobs = np.argsort(ranks[rows])
    else:
        jobs = np.arange(len(rows)) if change.encodes_many() else np.argsort(rows)
    index = empty_index(layout.count)
    at_a_time = _chunks_of(handle, _AT_A_TIME)
    with nullcontext() if len(jobs) <= at_a_time else handle.store.new_value(key) as value:
        if value is None or (value.is_in_memory and len(jobs) <= _chunks_of(handle, _IN_MEMORY)):
            shard = _in_memory(change, layout, rows, jobs, covered, index)
            yield None if shard is None else NewShard(index, lambda to: handle.store.set(key, shard, condition=to))
            return
        for some, chunks in _encoded(change, jobs, covered, at_a_time):
            if layout.index_at_start and not value.size:
                value.write([bytes(layout.index_size)])
            _place(index, rows[some], chunks, value.size)
            while chunks.pieces:  # which are released as they are written
                value.write([chunks.pieces.pop(0)])
        yield _finished(layout, index, value)


def _finished(layout: ShardLayout, index: ShardIndex, value: NewValue) -> NewShard | None:
    if not index.stored().any():
        return None
    encoded = layout.encode_index(index)
    if layout.index_at_start:
        value.write_at(0, [encoded])
    else:
        value.write([encoded])
    return NewShard(index, value.put)


def _in_memory(
    change: Change | PendingChange,
    layout: ShardLayout,
    rows: Ints,
    jobs: Ints,
    covered: npt.NDArray[np.bool_],
    index: ShardIndex,
) -> BytesLike | None:
    """The bytes of a shard, and its index in ``index``."""
    head, tail = (layout.index_size, 0) if layout.index_at_start else (0, layout.index_size)
    fresh = change.encode_many(jobs, head=head, tail=tail)
    if fresh is not None:
        index.offsets[rows[jobs]] = fresh.offsets
        index.lengths[rows[jobs]] = fresh.lengths
        at = 0 if layout.index_at_start else len(fresh.data) - layout.index_size
        fresh.data[at : at + layout.index_size] = layout.encode_index(index)
        return fresh.data if index.stored().any() else None
    chunks = _encode(change, jobs, covered)
    _place(index, rows[jobs], chunks, head)
    if not index.stored().any():
        return None
    encoded = layout.encode_index(index)
    return b"".join([encoded, *chunks.pieces] if layout.index_at_start else [*chunks.pieces, encoded])


def _place(index: ShardIndex, rows: Ints, chunks: _Chunks, start: int) -> None:
    """Say in ``index`` that ``chunks`` lie from ``start`` on."""
    index.offsets[rows] = np.where(chunks.lengths == MISSING, MISSING, chunks.offsets + start)
    index.lengths[rows] = chunks.lengths


def _chunks_of(handle: ArrayHandle, nbytes: int) -> int:
    """How many chunks of so many bytes are encoded together: some for each thread, if they are small; else one.

    All within a quarter of the window, as they are in memory more than once.
    """
    fitting = window_bytes() // 4 // max(1, handle.layout.chunk_nbytes)
    return max(1, min(fitting, max(nbytes // max(1, handle.layout.chunk_nbytes), thread_count())))


def _encoded(
    change: Change | PendingChange, jobs: Ints, covered: npt.NDArray[np.bool_], at_a_time: int
) -> Iterator[tuple[Ints, _Chunks]]:
    """Some of ``jobs`` after the other, each with its chunks: the next ones are encoded while these are written.

    Not so where they are large; then no more than one for each thread is in memory.
    """
    parts = (jobs[start : start + at_a_time] for start in range(0, len(jobs), at_a_time))
    if at_a_time > thread_count():
        yield from ahead(lambda some: _encode(change, some, covered), parts)
    else:
        yield from ((some, _encode(change, some, covered)) for some in parts)


def _encode(change: Change | PendingChange, jobs: Ints, covered: npt.NDArray[np.bool_]) -> _Chunks:
    """The chunks numbered ``jobs``, together where the kernel encodes them."""
    offsets, lengths = np.full(len(jobs), MISSING, np.int64), np.full(len(jobs), MISSING, np.int64)
    batches = [range(len(jobs))] if change.encodes_many() else row_batches(change.handle, len(jobs))
    pieces: list[BytesLike] = [b""] * len(batches)

    def work(number: int) -> None:
        batch = slice(batches[number].start, batches[number].stop)
        some = jobs[batch]
        fresh = change.encode_many(some)
        if fresh is not None:
            pieces[number], offsets[batch], lengths[batch] = fresh.data, fresh.offsets, fresh.lengths
            return
        chunks = [change.encode(job, None, bool(covered[job])) for job in some.tolist()]
        lengths[batch] = [MISSING if chunk is None else len(chunk) for chunk in chunks]
        sizes = np.maximum(lengths[batch], 0)
        offsets[batch] = np.cumsum(sizes) - sizes
        found = [chunk for chunk in chunks if chunk is not None]
        pieces[number] = found[0] if len(found) == 1 else b"".join(found)

    for_each(work, range(len(batches)), len(batches))
    start = 0
    for batch, piece in zip(batches, pieces, strict=True):
        offsets[batch.start : batch.stop] += start
        start += len(piece)
    return _Chunks([piece for piece in pieces if len(piece)], offsets, lengths)


__all__ = ["NewShard", "new_shard"]
