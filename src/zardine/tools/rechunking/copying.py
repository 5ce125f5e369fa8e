"""Jobs that copy an array block by block into other chunks, straight or by way of arrays between; nothing else.

Blocks are boxes of *cells*: elements, or whole chunks where these are moved as the encoded bytes they are. What makes
the copy count is said by those that build on this: rechunking (:mod:`zardine.tools.rechunking.work`) and resharding.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.cache import Cache
from zardine.chunk_grids.axis import Axis
from zardine.creation.v3 import new_array_metadata
from zardine.engine.array_config import ArrayConfig, WriteStrategy
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.read import read_plan
from zardine.engine.read_ahead import window
from zardine.engine.stored import stored_objects
from zardine.engine.write import write_plan
from zardine.errors import PlanError
from zardine.hierarchy.find import HIDDEN
from zardine.indexing.boxes import box_of
from zardine.indexing.plan import plan_grid
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.ranges import Ranges
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found, Work
from zardine.limits import check_size, within_memory
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.settings import thread_count
from zardine.tools.rechunking.append import append_block, array_prefix
from zardine.tools.rechunking.blocks import Between, Blocks, pieces_between
from zardine.tools.rechunking.cells import cell_of, cells_of, in_cells, item_size_of, share_of
from zardine.tools.rechunking.sums import sum_of, total
from zardine.tools.resharding.move import encoded_chunks, put_encoded
from zardine.tools.sampling import stored_sample
from zardine.tools.seen import Buckets, NotingStore, digest, lists_versions, seen_now

_FIXED: Final = 16 * 2**20
"""Bytes that a job takes beside its blocks, about."""
_WINDOW: Final = 16
"""One part in so many of the memory is for fetching ahead."""

_OF_A_CHUNK: Final = 64
"""Bytes that a chunk along an axis takes in the plan of a block, about."""
_OF_AN_OBJECT: Final = 256
"""Bytes that are held for an object of a block while it is read or written, about."""

_HANDLES: Final[Cache[tuple[Place, str], ArrayHandle]] = Cache(8)
"""Of arrays between, by place and document."""

Box = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class CopyWork(Work):
    """The array at ``source``, to be stored in other chunks at ``target``."""

    source: Place
    target: Place
    between: Place | None
    """Below which arrays between are; ``None`` where there are none."""
    old: ArrayMetadata
    new: ArrayMetadata
    blocks: Blocks
    """In cells; where the new objects differ in shape ``write`` counts objects."""
    max_memory: int

    # what it is

    @property
    def encoded(self) -> bool:
        """Whether chunks are moved as they are encoded: the same ones in both arrays."""
        return False

    @property
    def looks(self) -> int:
        """How often the versions of all source objects are looked at."""
        return 1

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        blocks = [each.block for each in self.blocks.between]
        last = "append" if self.blocks.appends else "write" if self.between is not None else "copy"
        names = ["read", *("regroup" for _ in blocks[1:])][: len(blocks)]
        grids = [BlockGrid(self._shape, block) for block in blocks]
        shape = self._shape if self._is_regular else tuple(axis.count for axis in self._new_layout.grids.storage)
        grids.append(BlockGrid(shape, self.blocks.write))
        named = enumerate(zip([*names, last], grids, strict=True))
        return tuple(Stage(name, (grid,), self._memory(number)) for number, (name, grid) in named)

    @property
    def home(self) -> Place:
        return self.target

    def places(self) -> tuple[Place, ...]:
        found = (self.source,) if self.target == self.source else (self.source, self.target)
        return found if self.between is None else (*found, self.between)

    def job_bytes(self, stage: int, job: int) -> int:
        return prod(stop - start for start, stop in self._elements(self._box(stage, job))) * self._item_size

    @property
    def _item_size(self) -> int:
        return item_size_of(self._old_layout)

    @cached_property
    def _cell(self) -> tuple[int, ...]:
        """Elements of a cell along each axis."""
        return cell_of(self._old_layout, encoded=self.encoded)

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return cells_of(self.old.shape, self._cell)

    @property
    def _is_regular(self) -> bool:
        return self._new_layout.object_shape is not None

    def _memory(self, stage: int) -> int:
        """Return bytes that a job takes: a block, the same encoded, and some chunks for each thread."""
        if stage < len(self.blocks.between):
            block = self.blocks.between[stage].block
        elif self._is_regular:
            block = self.blocks.write
        else:
            storage = zip(self._new_layout.grids.storage, self.blocks.write, self._cell, strict=True)
            block = tuple(n * max((size for size, _ in axis.runs), default=1) // cell for axis, n, cell in storage)
        cells = prod(min(a, b) for a, b in zip(block, self._shape, strict=True))
        size = cells * prod(self._cell) * self._item_size
        chunks = max(self._old_layout.chunk_nbytes, self._new_layout.chunk_nbytes)
        copies = share_of(place.store for place in self.places())
        copies -= copies > 2  # what a block leaves free
        return copies * size + 2 * thread_count() * chunks + self._window + _FIXED

    @property
    def _window(self) -> int:
        return max(2**20, self.max_memory // _WINDOW)

    @cached_property
    def _old_layout(self) -> ArrayLayout:
        return prepare_layout(self.old)

    @cached_property
    def _new_layout(self) -> ArrayLayout:
        return prepare_layout(self.new)

    def _box(self, stage: int, job: int) -> Box:
        """Return the cells of a job."""
        box = self.stages[stage].grids[0].box(job)
        if stage < len(self.blocks.between) or self._is_regular:
            return box
        cells = []
        for axis, (first, stop), cell in zip(self._new_layout.grids.storage, box, self._cell, strict=True):
            end = min(axis.start(stop - 1) + axis.extent(stop - 1), axis.length)
            cells.append((axis.start(first) // cell, -(-end // cell)))
        return cells

    def _elements(self, box: Box) -> list[tuple[int, int]]:
        """Return the elements of a box of cells."""
        axes = zip(box, self._cell, self.old.shape, strict=True)
        return [(start * cell, min(stop * cell, length)) for (start, stop), cell, length in axes]

    # the jobs

    def run(self, job: Job) -> JobDone:
        box = self._box(job.stage, job.number)
        if job.stage:
            return JobDone(found=self._copy(job, self._between(job.stage - 1), box))
        noting = NotingStore(self.source.store)
        source = self._handle(Place(noting, self.source.path), self._old_layout, watched=self._watches)
        found = self._copy(job, source, box)
        return JobDone(digest((key, noting.versions.get(key)) for key in set(self._source_keys(box))), found)

    @property
    def _watches(self) -> bool:
        """Whether reading the source looks whether its document still says what it did."""
        return True

    def _copy(self, job: Job, source: ArrayHandle, box: Box) -> list[Any] | None:
        """Copy the cells of a box to where the stage writes.

        Gives the sum of what was copied, where that is compared, and the number of target objects that were stored.
        """
        last = job.stage == len(self.blocks.between)
        target = self._target() if last else self._between(job.stage)
        ranges = self._elements(box)
        elements = box_of(ranges)
        region = elements if last else box_of(box)
        size = elements.size * self._item_size
        appends = last and self.blocks.appends
        if job.stage == 0:
            _check_plan(self._old_layout, ranges)
        if last:
            _check_plan(self._new_layout, ranges)
        written = plan_grid(region, target.layout.grids)
        guarded = None
        if not appends:
            guarded = job.guarded(target.store, (target.key(part.object) for part in written.parts()))
            target = replace(target, store=guarded)
        elif job.looks:
            target.store.wait_for_writers(array_prefix(target))  # what a late worker appends is there by then
        with window(self._window), within_memory("a block", size, array=target.path):
            values = self._read(job.stage, source, box)
            sums = sum_of(values) if self.blocks.between else None
            if appends:
                append_block(job, target, region, values)
            elif last and self.encoded:
                put_encoded(target, written, values)
            else:
                write_plan(target, written, _whole(values) if self.encoded else values)
        job.advance(size)
        made = 0 if not last else self._begun(box) if guarded is None else guarded.stored
        return [sums, made] if sums is not None or made else None

    def _read(self, stage: int, source: ArrayHandle, box: Box) -> npt.NDArray[Any]:
        """Return the cells of a box: elements, or encoded chunks (``None`` where nothing is stored)."""
        region = box_of(self._elements(box)) if stage == 0 else box_of(box)
        plan = plan_grid(region, source.layout.grids)
        if self.encoded and stage == 0:
            return encoded_chunks(source, plan)
        values = np.empty(region.full_shape, source.layout.metadata.dtype)
        read_plan(source, plan, values)
        if self.encoded:
            values[values == b""] = None
        return values

    def _begun(self, box: Box) -> int:
        """Return how many target objects have their first cell in a box."""
        shape = self._new_layout.object_shape
        assert shape is not None
        sizes = cells_of(shape, self._cell)
        return prod(-(-stop // size) + -start // size for (start, stop), size in zip(box, sizes, strict=True))

    def _target(self) -> ArrayHandle:
        return self._handle(
            self.target, self._new_layout, write_strategy="append" if self.blocks.appends else "rewrite"
        )

    def _between(self, number: int) -> ArrayHandle:
        """Return the handle of this process, which remembers indexes of shards from one job to the next."""
        assert self.between is not None
        where = replace(self.between, path=join_path(self.between.path, str(number)))
        made = between_metadata(self.old, self._shape, self.blocks.between[number], encoded=self.encoded)
        place = where, json.dumps(made.to_dict(), sort_keys=True)
        handle = _HANDLES.get(place)
        if handle is None:
            handle = self._handle(where, prepare_layout(made))
            _HANDLES.put(place, handle, 1)
        return handle

    def _handle(
        self, place: Place, layout: ArrayLayout, *, watched: bool = False, write_strategy: WriteStrategy = "rewrite"
    ) -> ArrayHandle:
        settings = replace(ArrayConfig.from_settings(), cache=0, write_strategy=write_strategy)
        return ArrayHandle(place.store, place.path, layout, settings, watched=watched)

    def erase_between(self) -> None:
        """Erase what jobs have written between: once nobody counts on it, whatever records say."""
        if self.between is not None:
            for number in range(len(self.blocks.between)):
                handle = self._between(number)
                handle.store.erase_values([key for key, _ in stored_objects(handle)])

    # what the jobs saw

    def _source_keys(self, box: Box) -> Iterator[str]:
        """Give the keys of all source objects that have elements of a box."""
        key = self._handle(self.source, self._old_layout).key
        ranges = []
        for axis, (start, stop) in zip(self._old_layout.grids.storage, self._elements(box), strict=True):
            first, last = axis.locate(np.array([start, max(start, stop - 1)], np.int64))[0].tolist()
            ranges.append(range(first, last + 1))
        return map(key, product(*ranges))

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        if stage:
            return iter(())
        source = self._handle(self.source, self._old_layout)
        return seen_now(source, self._cuts(), jobs, surely=surely, note=None if surely else self._new_look())

    def _new_look(self) -> Buckets | None:
        """Return where all that is stored of the source is counted, where that is of use."""
        return None

    def _cuts(self) -> list[Axis]:
        """Return the blocks of the first stage along each axis, in elements."""
        (grid,) = self.stages[0].grids
        if self.blocks.between or self._is_regular:
            axes = zip(self.old.shape, grid.block, self._cell, strict=True)
            return [Axis.regular(length, size * cell) for length, size, cell in axes]
        return [_together(axis, n) for axis, n in zip(self._new_layout.grids.storage, grid.block, strict=True)]

    def after(self, stage: int, jobs: Ranges) -> dict[int, Ranges]:
        found: dict[int, Ranges] = {}
        for later in range(stage + 1, len(self.stages)):
            before, grid = self.stages[later - 1].grids[0], self.stages[later].grids[0]
            jobs = Ranges.of({each for job in jobs for each in grid.meeting(before.box(job))})
            found[later] = jobs
        return found

    def compare_sums(self, found: Found) -> None:
        """Raise :class:`~zardine.errors.PlanError` where a stage read other elements than the one before wrote."""
        if not self.blocks.between:
            return
        sums = [total(each[0] for each in found.get(stage, {}).values()) for stage in range(len(self.stages))]
        for stage, (before, after) in enumerate(pairwise(sums)):
            if before != after:
                raise PlanError(
                    f"the sum of the elements that stage {stage + 2} ({self.stages[stage + 1].name!r}) has read of "
                    f"{self.between} is not that of those which stage {stage + 1} ({self.stages[stage].name!r}) has "
                    "written there, so something was changed or lost in between: cancel the plan, and run it again"
                )

    # forecasts

    def forecast(self) -> Forecast:
        source = self._handle(self.source, self._old_layout)
        stored, size = stored_sample(source)
        share = stored / max(1, prod(axis.count for axis in self._old_layout.grids.storage))
        objects = made = round(share * prod(axis.count for axis in self._new_layout.grids.storage))
        reads = stored * self.blocks.times_read
        if self._old_layout.sharding is not None and self.blocks.times_read > 1:
            reads *= 2  # of parts, the index and the chunks
        looks = 0 if lists_versions(self.source.store) else self.looks * stored
        raw = prod(self.old.shape) * self._item_size
        read, written = int(size * (1 if self.encoded else self.blocks.times_read)), size
        requests = round(reads) + looks + made
        for stage, following in pairwise(self.stages):
            shards = len(stage)
            objects += shards
            requests += 3 * shards + _meetings(stage, following)  # written, erased, and its index read once
            read += size if self.encoded else raw
            written += size if self.encoded else raw
        return Forecast(objects, requests, read, written)

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {
            "places": {
                "source": self.source.to_json(),
                "target": self.target.to_json(),
                "between": None if self.between is None else self.between.to_json(),
            },
            "old": self.old.to_dict(),
            "new": self.new.to_dict(),
            "write": list(self.blocks.write),
            "between": [{"block": list(each.block), "inner": list(each.inner)} for each in self.blocks.between],
            "appends": self.blocks.appends,
            "times_read": self.blocks.times_read,
            "max_memory": self.max_memory,
        }

    @classmethod
    @abstractmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> CopyWork: ...


def parts_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a :class:`CopyWork` its JSON has beside the places, by the names of fields."""
    blocks = Blocks(
        _lengths(document["write"]),
        tuple(Between(_lengths(each["block"]), _lengths(each["inner"])) for each in document["between"]),
        float(document["times_read"]),
        bool(document["appends"]),
    )
    old, new = ArrayMetadata.from_dict(document["old"]), ArrayMetadata.from_dict(document["new"])
    return {"old": old, "new": new, "blocks": blocks, "max_memory": int(document["max_memory"])}


def _lengths(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int and each >= 1 for each in value):
        raise PlanError(f"blocks of a plan have lengths of 1 or more, not {value!r}")
    return tuple(value)


def _check_plan(layout: ArrayLayout, ranges: Box) -> None:
    """Raise :class:`~zardine.errors.ChunkTooLargeError` where a block has more chunks than the limits allow."""
    chunks, objects = (
        [
            int(np.diff(axis.locate(np.array([start, max(start, stop - 1)], np.int64))[0])[0]) + 1
            for axis, (start, stop) in zip(axes, ranges, strict=True)
        ]
        for axes in (layout.grids.chunks, layout.grids.storage)
    )
    check_size("the list of the chunks of a block", _OF_A_CHUNK * sum(chunks) + _OF_AN_OBJECT * prod(objects))


def _whole(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return encoded chunks as elements of an array between: nothing stored is no bytes."""
    made = np.empty(values.shape, object)
    made.reshape(-1)[:] = [b"" if each is None else bytes(each) for each in values.reshape(-1).tolist()]
    return made


def _together(axis: Axis, number: int) -> Axis:
    """Return the axis in which ``number`` pieces at a time are one."""
    if axis.is_regular:
        return Axis.regular(axis.length, axis.runs[0][0] * number)
    starts = axis.starts(np.arange(0, axis.count, number, dtype=np.int64))
    lengths = np.diff(np.append(starts, max(axis.length, int(starts[-1]) + 1 if len(starts) else 1)))
    return Axis(axis.length, (*((int(each), 1) for each in lengths), (1, None)))


def _meetings(stage: Stage, following: Stage) -> int:
    """Return how many pieces of the blocks of a stage those of the following one read."""
    first, second = stage.grids[0], following.grids[0]
    axes = zip(first.shape, first.block, second.block, strict=True)
    return prod(pieces_between(length, r, w) for length, r, w in axes)


def between_metadata(old: ArrayMetadata, cells: tuple[int, ...], between: Between, *, encoded: bool) -> ArrayMetadata:
    """Return the metadata of an array between: raw, with a crc32c behind each piece. Its document is never stored.

    Its elements are those of ``old``, or ``encoded`` chunks.
    """
    made = new_array_metadata(
        shape=cells,
        dtype="variable_length_bytes" if encoded else old.data_type,
        chunks=between.inner,
        shards=between.block,
        filters=None,
        compressors=None,
        checksum=True,
    )
    return made if encoded else replace(made, fill=old.fill)


def default_between(target: Place) -> Place:
    """Return where arrays between are, if the user says nothing else."""
    return Place(target.store, join_path(target.path, f"{HIDDEN}/between"), target.url)


__all__ = ["CopyWork", "between_metadata", "default_between", "in_cells", "parts_of"]
