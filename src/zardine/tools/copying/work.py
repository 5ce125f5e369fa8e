"""Jobs that copy an array block by block into other chunks, straight or by way of arrays between; nothing else.

Blocks are boxes of *cells*: elements, or whole chunks where these are moved as the encoded bytes they are. What makes
the copy count is said by those that build on this: rechunking (at a new place) and resharding (in place, too).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.cache import Cache
from zardine.chunk_grids.axis import Axis
from zardine.engine.array_config import ArrayConfig, WriteStrategy
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.read_ahead import window
from zardine.engine.stored import erase_stored
from zardine.engine.write import write_plan
from zardine.errors import PlanError
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
from zardine.tools.copying.append import append_block, array_prefix
from zardine.tools.copying.array_blocks import (
    OF_A_JOB,
    cell_of,
    copies_of,
    fetched_ahead,
    in_cells,
    item_size_of,
    stage_grids,
)
from zardine.tools.copying.between import between_of, passage
from zardine.tools.copying.blocks import Blocks
from zardine.tools.copying.compare import sum_of, total
from zardine.tools.copying.move import encoded_chunks, keys_of, put_encoded, read_elements
from zardine.tools.sampling import carried_sample, encoded_sample, full_size, stored_sample
from zardine.tools.seen import Buckets, NotingStore, lists_versions, seen_now

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
    """In cells, where they do not count objects."""
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
        last = "append" if self.blocks.appends else "write" if self.between is not None else "copy"
        names = ["read", *("regroup" for _ in self.blocks.between[1:])][: len(self.blocks.between)]
        grids = stage_grids(self._old_layout, self._new_layout, self.blocks, self._cell)
        return tuple(Stage(name, (grid,), self._memory(grid)) for name, grid in zip([*names, last], grids, strict=True))

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

    def _memory(self, grid: BlockGrid) -> int:
        """Return bytes that a job takes: a block, the same encoded, and some chunks for each thread."""
        size = prod(grid.largest) * prod(self._cell) * self._item_size
        chunks = max(self._old_layout.chunk_nbytes, self._new_layout.chunk_nbytes)
        copies = copies_of(place.store for place in self.places())
        return copies * size + 2 * thread_count() * chunks + fetched_ahead(self.max_memory) + OF_A_JOB

    @cached_property
    def _old_layout(self) -> ArrayLayout:
        return prepare_layout(self.old)

    @cached_property
    def _new_layout(self) -> ArrayLayout:
        return prepare_layout(self.new)

    def _box(self, stage: int, job: int) -> Box:
        """Return the cells of a job."""
        return self.stages[stage].grids[0].box(job)

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
        source = self._handle(Place(noting, self.source.path), self._old_layout, is_shared=self._watches)
        found = self._copy(job, source, box)
        return JobDone(noting.digest(keys_of(source, box_of(self._elements(box)))), found)

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
        with window(fetched_ahead(self.max_memory)), within_memory("a block", size, array=target.path):
            values = self._read(job.stage, source, box)
            job.advance(size // 2)
            sums = sum_of(values) if self.blocks.between else None
            if appends:
                append_block(job, target, region, values)
            elif last and self.encoded:
                put_encoded(target, written, values)
            else:
                write_plan(target, written, _whole(values) if self.encoded else values)
        job.advance(size - size // 2)
        made = 0 if not last else self._begun(box) if guarded is None else guarded.stored
        return [sums, made] if sums is not None or made else None

    def _read(self, stage: int, source: ArrayHandle, box: Box) -> npt.NDArray[Any]:
        """Return the cells of a box: elements, or encoded chunks (``None`` where nothing is stored)."""
        region = box_of(self._elements(box)) if stage == 0 else box_of(box)
        if self.encoded and stage == 0:
            return encoded_chunks(source, plan_grid(region, source.layout.grids))
        values = read_elements(source, region)
        if self.encoded:
            values[values == b""] = None
        return values

    def _begun(self, box: Box) -> int:
        """Return how many target objects have their first cell in a box."""
        axes = zip(box, in_cells(self._new_layout.grids.storage, self._cell), strict=True)
        return prod(_begun_before(axis, stop) - _begun_before(axis, start) for (start, stop), axis in axes)

    def _target(self) -> ArrayHandle:
        return self._handle(
            self.target, self._new_layout, write_strategy="append" if self.blocks.appends else "rewrite"
        )

    def _between(self, number: int) -> ArrayHandle:
        """Return the handle of this process, which remembers indexes of shards from one job to the next."""
        assert self.between is not None
        where = replace(self.between, path=join_path(self.between.path, str(number)))
        cut = self.stages[number : number + 2]
        made = between_of(self.old, self.blocks.between[number], [each.grids[0] for each in cut], encoded=self.encoded)
        place = where, json.dumps(made.to_dict(), sort_keys=True)
        handle = _HANDLES.get(place)
        if handle is None:
            handle = self._handle(where, prepare_layout(made))
            _HANDLES.put(place, handle, 1)
        return handle

    def _handle(
        self, place: Place, layout: ArrayLayout, *, is_shared: bool = False, write_strategy: WriteStrategy = "rewrite"
    ) -> ArrayHandle:
        settings = replace(ArrayConfig.from_settings(), cache=0, write_strategy=write_strategy)
        return ArrayHandle(place.store, place.path, layout, settings, is_shared=is_shared)

    def erase_between(self) -> None:
        """Erase what jobs have written between: once nobody counts on it, whatever records say."""
        if self.between is not None:
            for number in range(len(self.blocks.between)):
                erase_stored(self._between(number))

    # what the jobs saw

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
        axes = zip(grid.axes, self._cell, self.old.shape, strict=True)
        return [Axis(length, tuple((size * cell, number) for size, number in axis.runs)) for axis, cell, length in axes]

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
        source, target = self._handle(self.source, self._old_layout), self._target()
        stored, size = stored_sample(source)
        if self.encoded:
            made = carried_sample(source, target, stored, size)
        else:
            made = encoded_sample(source, target, stored, size)
        asked, put = (
            prod(axis.count for axis in layout.grids.storage) for layout in (self._old_layout, self._new_layout)
        )
        reads = asked * self.blocks.times_read
        if self._old_layout.sharding is not None and self.blocks.times_read > 1:
            reads += stored * self.blocks.times_read  # of parts, the index and the chunks
        looks = 0 if lists_versions(self.source.store) else self.looks * asked
        requests = round(reads) + looks + put  # of what is empty it is asked whether it is there
        read = int(size * (1 if self.encoded else self.blocks.times_read))
        found = Forecast(made.objects, requests, read, made.nbytes, made.text)
        for number, (stage, following) in enumerate(pairwise(self.stages)):
            array = self._between(number)
            nbytes = size if self.encoded else round(full_size(array.layout) * made.share)
            found += passage(array, stage.grids[0], following.grids[0], nbytes)
        return found

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
            **self.blocks.to_json(),
            "max_memory": self.max_memory,
        }

    @classmethod
    @abstractmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> CopyWork: ...


def parts_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a :class:`CopyWork` its JSON has beside the places, by the names of fields."""
    blocks = Blocks.from_json(document)
    old, new = ArrayMetadata.from_dict(document["old"]), ArrayMetadata.from_dict(document["new"])
    return {"old": old, "new": new, "blocks": blocks, "max_memory": int(document["max_memory"])}


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


def _begun_before(axis: Axis, end: int) -> int:
    """Return how many chunks of an axis have their first element before ``end``."""
    return 0 if end == 0 else axis.find(end - 1) + 1


__all__ = ["CopyWork", "parts_of"]
