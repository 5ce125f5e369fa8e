"""Objects in files that the kernel writes, many in one call: it *puts* new ones and *changes* a part of others.

An object is put where nothing that is stored of it stays (``rust/src/encode/boxes.rs``, ``run_into``). It is changed
where the rest stays, which the kernel reads, decodes and encodes again as far as needed (``run_changes`` there). Either
way it writes a new file beside the old one, which gives way to it (``rust/src/files/new_file.rs``).
:func:`write_by_kernel` decides what the kernel writes: layouts whose codecs it knows, in stores of files. Anything that
it meets and does not expect (a file that another writer has locked, an edit that was cut off, a damaged chunk, an error
of the system) it leaves as it is. Those objects, and all others, are written by :mod:`zardine.engine.write`, which says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.change import SeenVersion
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.block import BlockPlan
from zardine.indexing.plan import ChunkPlan, GridPart, GridPlan, ObjectPart, PointPlan
from zardine.settings import thread_count
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.stores.base import Condition
from zardine.stores.file_seam import StoreFiles
from zardine.stores.late_closing import close_late
from zardine.stores.open_files import version_from

BoxPlan: TypeAlias = GridPlan | BlockPlan
BoxPart: TypeAlias = GridPart | BlockPlan

_MOST_PUT: Final = 1024
"""Objects that one call puts, at most."""
_MOST_DIRECTORIES: Final = 64
"""Directories that are open for it, at most."""
_MOST_BYTES: Final = 2**28
"""Bytes of the elements of these, at most, where that is more than one object for each thread: calls can be stopped
between them only."""
_MOST_CHANGED: Final = 64
"""Objects that one call changes, at most."""
_SMALL: Final = 4 * 2**20
"""Bytes that one thread changes by itself: of the decoded chunks that a write touches in one object (the object may be
of any size), or of its index."""
_ALONE: Final = 2**20
"""The same where there are fewer objects than threads, so that these would have nothing to do in compressing."""
_DONE: Final = 1
"""The answer of the kernel for an object that is in its file now."""


def write_by_kernel(
    handle: ArrayHandle, plan: ChunkPlan, values: npt.NDArray[Any], seen: dict[str, SeenVersion]
) -> Iterator[ObjectPart]:
    """Write what of ``plan`` the kernel writes, and yield the parts that are left to do.

    ``seen`` are the versions that some objects must still have, by their keys.
    """
    layout, files = handle.layout, handle.store.files
    knows_codecs = layout.pipeline is not None and layout.fits_memory
    shard = layout.uniform_shard
    knows_shards = layout.sharding is None or (
        shard is not None and shard.has_words and shard.index_memory <= window_bytes()
    )
    if files is None or not knows_codecs or not knows_shards or isinstance(plan, PointPlan):
        return plan.parts()
    return _FileWrites(handle, files, plan, values.view(f"V{values.dtype.itemsize}"), seen).parts_left()


class _FileWrites:
    """A write of one plan."""

    def __init__(
        self,
        handle: ArrayHandle,
        files: StoreFiles,
        plan: BoxPlan,
        values: npt.NDArray[Any],
        seen: dict[str, SeenVersion],
    ) -> None:
        self._handle = handle
        self._files = files
        self._plan = plan
        self._values = values
        self._seen = seen
        self._most_changed = self._most_bytes_changed()

    def parts_left(self) -> Iterator[ObjectPart]:
        """Write, and yield the parts that the kernel leaves."""
        plan, most = self._plan, self._most_at_once()
        is_sharded = self._handle.layout.sharding is not None
        if isinstance(plan, GridPlan) and plan.all_whole and not (is_sharded or self._seen or plan.object_count == 1):
            yield from self._put_whole_chunks(plan, most)
            return
        parts: Iterator[BoxPart] = plan.parts()
        changed: list[tuple[BoxPart, str]] = []
        while batch := list(islice(parts, most)):
            new: list[tuple[BoxPart, str]] = []
            for part in batch:
                key = self._handle.key(part.object)
                if self._is_new(part, key):
                    new.append((part, key))
                elif self._is_to_be_changed(part, key):
                    changed.append((part, key))
                else:
                    yield part
            yield from self._put_some(new)
            while len(changed) >= _MOST_CHANGED:
                yield from self._change_some(changed[:_MOST_CHANGED])
                del changed[:_MOST_CHANGED]
        yield from self._change_some(changed)

    # new objects

    def _is_new(self, part: BoxPart, key: str) -> bool:
        """Whether a part is all of its object. What lies beyond the array counts, unless ``seen`` names the object."""
        layout = self._handle.layout
        beyond = self._handle.is_shared and key not in self._seen
        if layout.uniform_shard is not None:
            count = layout.uniform_shard.count if beyond else layout.chunks_in_array(part.object)
            if part.count != count:
                return False
        elif self._plan.object_count == 1 and key not in self._seen:
            return False  # one chunk is stored faster by itself
        return part.is_whole() if beyond else part.is_covered()

    def _most_at_once(self) -> int:
        """How many objects one call puts. Those that follow each other along the last axis lie in one directory."""
        if isinstance(self._plan, BlockPlan):
            return 1
        in_one = len(self._plan.groups[-1].objects) if self._plan.groups else 1
        most = min(_MOST_PUT, (_MOST_DIRECTORIES - 1) * in_one) if in_one > 1 else _MOST_DIRECTORIES
        return min(most, max(thread_count(), _MOST_BYTES // max(1, self._handle.layout.object_nbytes)))

    def _put_some(self, new: list[tuple[BoxPart, str]]) -> Iterator[ObjectPart]:
        if not new:
            return
        known = [self._seen.get(key) for _, key in new]
        conditions = [None if each is None else Condition(each.version) for each in known]
        done = self._put(_bounds([part for part, _ in new]), [key for _, key in new], conditions)
        yield from [part for (part, _), put in zip(new, done, strict=True) if put != _DONE]

    def _put_whole_chunks(self, plan: GridPlan, most: int) -> Iterator[ObjectPart]:
        """Put objects that are one chunk each, of each of which everything is new."""
        coordinates = plan.object_coordinates()
        for start in range(0, plan.object_count, most):
            objects = list(islice(coordinates, most))
            rows = plan.rows_of_objects(start, len(objects))
            done = self._put(np.concatenate((rows, rows + 1), axis=1), self._handle.keys(objects), ())
            for number, put in enumerate(done):
                if put != _DONE:
                    low, high = tuple(rows[number].tolist()), tuple((rows[number] + 1).tolist())
                    yield GridPart(plan, objects[number], low, high)

    def _put(self, bounds: Ints, keys: Sequence[str], conditions: Sequence[Condition | None]) -> bytes:
        """Put some objects, whose parts the plan has within ``bounds``, and return what became of each."""
        handle, layout = self._handle, self._handle.layout
        shard, form = layout.uniform_shard, None
        if shard is not None:
            order = handle.config.chunk_order
            ranks = chunk_ranks(shard.grid, shard.strides, order) if order in ("f", "morton") else None
            form = _shard_form(shard, self._plan, ranks)
        with self._files.replace(keys, conditions=conditions) as files:
            if files is None:
                return bytes(len(keys))
            if shard is not None:
                for key in keys:
                    INDEXES.drop(handle.cache_space, key)
            threads = thread_count()
            is_large = layout.object_nbytes > window_bytes() // (2 * threads)
            done: bytes
            done, _ = layout.pipeline.encode_to_files(
                self._values,
                bounds,
                self._plan.kernel_axes(),
                write_empty=handle.write_empty_chunks,
                threads=threads,
                files=files,
                shard=form,
                few_at_a_time=shard is not None and (len(keys) < threads or is_large),
            )
        return done

    # objects of which a part stays

    def _most_bytes_changed(self) -> int:
        """The most bytes of decoded chunks that a write may touch in one object for the kernel to change it.

        The object itself may be of any size. -1 where the kernel changes none.
        """
        handle = self._handle
        chunks, config, shard = handle.layout.blocks, handle.config, handle.layout.uniform_shard
        if chunks is None or not self._files.can_read or not handle.is_shared or chunks.chain.most_for_kernel() < 0:
            return -1
        if shard is not None:
            is_rewritten = config.write_strategy == "rewrite" and config.chunk_order == "as_written"
            if not is_rewritten or shard.is_chunk is not None or shard.index_memory > _SMALL:
                return -1
        threads = thread_count()
        has_work_for_all = self._plan.object_count >= threads or not chunks.is_compressed
        return min(_SMALL if has_work_for_all else _ALONE, window_bytes() // (2 * threads))

    def _is_to_be_changed(self, part: BoxPart, key: str) -> bool:
        chunks = self._handle.layout.blocks
        return chunks is not None and key not in self._seen and part.count * chunks.nbytes <= self._most_changed

    def _change_some(self, wanted: list[tuple[BoxPart, str]]) -> Iterator[ObjectPart]:
        if not wanted:
            return
        handle, layout = self._handle, self._handle.layout
        chunks, shard = layout.blocks, layout.uniform_shard
        assert chunks is not None
        with self._files.replace([key for _, key in wanted], changing=True) as files:
            done: Sequence[Any] = [None] * len(wanted)
            if files is not None:
                done, _ = layout.pipeline.change_files(
                    self._values,
                    _bounds([part for part, _ in wanted]),
                    self._plan.kernel_axes(),
                    write_empty=handle.write_empty_chunks,
                    threads=thread_count(),
                    files=files,
                    most=chunks.chain.most_for_kernel(),
                    shard=None if shard is None else _shard_form(shard, self._plan),
                )
        shares = zip(wanted, done, strict=True)
        yield from [part for (part, key), each in shares if not note_changed(handle, key, each)]


def note_changed(handle: ArrayHandle, key: str, done: Any) -> bool:
    """Note what the kernel says of a file that it was to change; whether it has changed it."""
    if done is None:
        return False
    old, status, offsets, lengths = done
    if old is not None:
        close_late(old.detach())
    if status is not None:
        index = ShardIndex(np.frombuffer(offsets, np.int64), np.frombuffer(lengths, np.int64))
        INDEXES.put(handle.cache_space, key, KnownIndex(index, version_from(*status)))
    return True


def _bounds(parts: Sequence[BoxPart]) -> Ints:
    """Return where parts of one plan begin and end, as the kernel takes them."""
    return np.array([part.low + part.high for part in parts], np.int64)


def _shard_form(shard: ShardLayout, plan: BoxPlan, ranks: Ints | None = None) -> tuple[Any, ...]:
    """Return what shards are whose chunks are those of parts of ``plan``, written in the order of ``ranks``, if any."""
    return shard.count, shard.index_at_start, shard.has_checksum, plan.kernel_places(shard.strides), ranks


__all__ = ["note_changed", "write_by_kernel"]
