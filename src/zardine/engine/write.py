"""Writing: from a chunk plan and values to one conditional write for each stored object.

:mod:`zardine.engine.kernel_writes` writes first what the kernel can. This module writes the objects that are left, each
by itself: chunks of which nothing stored is needed are encoded from the values alone; others are read, changed and
encoded again; chunks of a shard that the plan does not touch are carried over as the encoded bytes they are.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.border import versions_at_border
from zardine.engine.change import Change, PendingChange, PendingPart, SeenVersion, whole_chunk
from zardine.engine.freshness import Writing, check_before_put
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES
from zardine.engine.kernel_writes import write_by_kernel
from zardine.engine.new_shard import new_shard
from zardine.engine.read_ahead import window_bytes
from zardine.engine.update_shard import AnyChange, condition_of, update_shard
from zardine.engine.workers import for_each, most_requests
from zardine.engine.write_buffer import PendingChunk, WriteBuffer
from zardine.errors import ConditionFailedError, CorruptionError, DataError, UnsupportedError
from zardine.indexing.plan import ChunkPlan, ObjectPart
from zardine.limits import no_memory
from zardine.settings import thread_count
from zardine.sharding.index import MISSING, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.stores.attempts import attempts
from zardine.stores.base import Condition, Reading
from zardine.stores.file_seam import files_to_edit

_COPIES = 2
"""An object is in memory that often while it is written, at most: as it is stored, and as it is to be."""


def write_plan(
    handle: ArrayHandle,
    plan: ChunkPlan,
    values: npt.NDArray[Any],
    fields: str | list[str] | None = None,
    *,
    growing: bool = False,
) -> None:
    """Store ``values`` (of the selection's full shape; flat for points) where ``plan`` says.

    With ``fields``, only these fields of a struct type are written. Every object is written whole or, after an error,
    not at all. ``growing``: the handle has a shape that the document is to get from the caller, who has its lock and is
    within :class:`~zardine.engine.freshness.Writing`. What objects hold beyond that shape is kept then.
    """
    check_strategy(handle)
    at_once, threads = _share_threads(handle, plan.object_count, plan.chunk_count)

    def change_of(part: ObjectPart) -> Change:
        layout = handle.layout.shard(part.object)
        return Change(handle, plan, part, handle.key(part.object), layout, values, fields, threads)

    at_border = [] if growing else plan.border_parts(handle.layout.grids.storage)
    seen = versions_at_border(handle, map(change_of, at_border)) if at_border else {}

    def write(part: ObjectPart) -> None:
        change = change_of(part)
        _write(replace(change, seen=seen.get(change.key)) if seen else change)

    with nullcontext() if growing else Writing(handle, looked=bool(seen), beside=True):
        # the kernel writes while these parts are asked for, and yields those that it leaves
        parts = plan.parts() if fields is not None else write_by_kernel(handle, plan, values, seen)
        for_each(write, parts, plan.object_count, at_once)


def flush(handle: ArrayHandle, buffer: WriteBuffer) -> None:
    """Write all that waits in ``buffer``. After an error, what was not written waits still."""
    if not buffer.objects:
        return
    check_strategy(handle)
    count = len(buffer.objects)
    at_once, threads = _share_threads(handle, count, sum(map(len, buffer.objects.values())))

    def change_of(item: tuple[tuple[int, ...], dict[int, PendingChunk]]) -> PendingChange:
        coordinates, held = item
        rows = tuple(sorted(held))
        part = PendingPart(coordinates, rows, tuple(held[row] for row in rows))
        return PendingChange(handle, part, handle.key(coordinates), handle.layout.shard(coordinates), threads)

    def write(change: PendingChange) -> None:
        _write(replace(change, seen=seen.get(change.key)))
        buffer.forget(change.part.object)

    changes = list(map(change_of, buffer.objects.items()))
    seen = versions_at_border(handle, changes)
    try:
        with Writing(handle, looked=bool(seen), beside=True):
            for_each(write, changes, count, at_once)
    finally:
        buffer.recount()


def check_strategy(handle: ArrayHandle) -> None:
    """Raise :class:`~zardine.errors.UnsupportedError` where the store cannot write as ``write_strategy`` says."""
    strategy = handle.config.write_strategy
    if strategy != "rewrite" and handle.layout.sharding is not None and files_to_edit(handle.store) is None:
        raise UnsupportedError(
            f"write_strategy {strategy!r} needs a store of local files; {handle.store} replaces values whole"
        )


def rows_of(handle: ArrayHandle, part: ObjectPart) -> list[int]:
    """The row of each chunk of ``part`` in the index of its object; 0 where an object is one chunk."""
    layout = handle.layout.shard(part.object)
    return [0] if layout is None else part.positions(layout.strides).tolist()


def _share_threads(handle: ArrayHandle, objects: int, chunks: int) -> tuple[int, int]:
    """How many objects are written at a time, and how many threads encode the chunks of each."""
    if chunks == 1:
        return 1, 1
    if objects == 1:
        return 1, thread_count()
    fitting = window_bytes() // (_COPIES * max(1, handle.layout.object_nbytes))
    at_once = max(1, min(objects, fitting, most_requests(handle.store)))
    return at_once, max(1, thread_count() // at_once)


def _write(change: AnyChange) -> None:
    handle, key = change.handle, change.key
    write = _write_chunk if change.layout is None else _write_shard
    for last in attempts():
        try:
            write(change)
            return
        except ConditionFailedError:
            if last:
                raise
            change = replace(change, seen=None)
        except DataError as error:
            raise error.at(array=handle.path, key=key) from None
        except MemoryError:
            raise no_memory("what is stored under one key", handle.layout.object_nbytes).at(
                array=handle.path, key=key
            ) from None


def _write_chunk(change: AnyChange) -> None:
    store, key = change.handle.store, change.key
    seen, covered = change.seen, bool(change.needs_no_read()[0])
    with store.lock(key):
        old = None if covered else _old_chunk(change)
        keeps_others = change.handle.is_shared and not covered and not bool(change.replaces_all_valid()[0])
        many = change.encode_many(np.zeros(1, np.int64), None if old is None else whole_chunk(old.parts[0]))
        if many is not None:
            encoded: BytesLike | None = None if many.lengths[0] == MISSING else many.data
        else:
            encoded = change.encode(0, None if old is None else old.parts[0], covered)
        there: Reading | SeenVersion | None = old
        condition = None if covered else condition_of(store, key, old, keeps_others=keeps_others)
        if seen is not None:
            there = seen if seen.version is not None else None
            condition = Condition(seen.version)
        check_before_put(change.handle)
        if encoded is not None:
            store.set(key, encoded, condition=condition)
        elif covered and seen is None:
            store.erase(key)
        elif there is None:
            return
        elif store.lock_is_exclusive:
            store.erase_version(key, there.version)
        else:  # to erase cannot be made conditional: another writer's values could go with it
            config = replace(change.handle.config, write_empty_chunks=True)
            kept = replace(change, handle=change.handle.with_config(config))
            whole = kept.encode(0, None if old is None else old.parts[0], covered)
            assert whole is not None
            store.set(key, whole, condition=condition)


def _old_chunk(change: AnyChange) -> Reading | None:
    """What is stored of a chunk; of one that is longer than any can be nothing, if nothing of it is to stay."""
    chain = change.handle.layout.chain_of(change.part.object)
    old = change.handle.store.read_up_to(change.key, chain.most_stored())
    if old is None or old.parts:
        return old
    if not change.replaces_all_valid()[0]:
        chain.check_stored(old.size)
    return Reading((b"",), old.version, old.size)


def _write_shard(change: AnyChange) -> None:
    layout = change.layout
    assert layout is not None
    rows = change.part.positions(layout.strides)
    keeps = change.handle.is_shared and change.seen is None
    in_array = change.handle.layout.chunks_in_array(change.part.object)
    all_chunks = layout.count if keeps else in_array
    if change.part.count == all_chunks and bool(change.needs_no_read().all()):
        _replace_shard(change, layout, rows)
        return
    partial = change.part.count < in_array or not bool(change.replaces_all_valid().all())
    try:
        update_shard(change, layout, rows, keeps_others=partial and change.handle.is_shared)
    except CorruptionError:
        if partial:
            raise
        _replace_shard(change, layout, rows)  # nothing of what is damaged is to stay


def _replace_shard(change: AnyChange, layout: ShardLayout, rows: npt.NDArray[np.int64]) -> None:
    """Write a shard of which nothing stored is kept."""
    store, key, seen = change.handle.store, change.key, change.seen
    order = change.handle.config.chunk_order
    ranks = chunk_ranks(layout.grid, layout.strides, order) if order in ("f", "morton") else None
    with new_shard(change, layout, rows, np.ones(len(rows), np.bool_), ranks) as shard, store.lock(key):
        check_before_put(change.handle)
        if shard is not None:
            shard.put(None if seen is None else Condition(seen.version))
        elif seen is None:
            store.erase(key)
        elif seen.version is not None and store.lock_is_exclusive:
            store.erase_version(key, seen.version)
        elif seen.version is not None:  # see _write_chunk
            nothing = layout.merged(empty_index(layout.count), {}, None)
            store.set(key, nothing.joined(b""), condition=Condition(seen.version))
    INDEXES.drop(change.handle.cache_space, key)
