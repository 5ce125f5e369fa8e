"""Resharding as jobs: each makes new objects. ``finish`` makes again what has changed since, and switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, ClassVar, Final

import numpy as np

from zardine.chunk_grids.axis import Axis
from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import generation_of
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.read_ahead import window_bytes
from zardine.engine.workers import for_each
from zardine.errors import ArrayNotFoundError, MetadataError, PlanError
from zardine.hierarchy.find import find_node, load_array
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Cells, Stage
from zardine.jobs.work import Forecast, Work
from zardine.limits import within_memory
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import thread_count
from zardine.tools.rechunking.seen import NotingStore, digest
from zardine.tools.resharding.elsewhere import Elsewhere
from zardine.tools.resharding.in_place import InPlace
from zardine.tools.resharding.move import Box, block_shape, count, move, object_bytes, region_of, sources_of
from zardine.tools.resharding.plan import moves_encoded
from zardine.tools.resharding.run import Noted, Resharding, name_of, what_goes_into
from zardine.tools.resharding.state import BegunMeanwhileError, Sources, load_journal, members
from zardine.tools.sampling import stored_sample

_JOB_BYTES: Final = 2**26
"""Bytes of elements that a job handles, about; more where one block has more."""
_LEAST_JOBS: Final = 16
"""Jobs of an array of as many objects."""
_MOST_JOBS: Final = 2**20
_FIXED: Final = 16 * 2**20
"""Bytes that a job takes beside its blocks, about."""


@dataclass(frozen=True)
class ReshardWork(Work):
    """The array at ``source``, to be stored in other shards at ``target``: the same place, or another one."""

    kind: ClassVar[str] = "reshard"

    source: Place
    target: Place
    old: ArrayMetadata
    new: ArrayMetadata
    """As it is to be; in place under keys of another encoding."""
    units: tuple[int, ...]
    """New objects of a job along each axis."""
    grace: float | None = None

    @property
    def in_place(self) -> bool:
        """Whether the new objects replace the old ones."""
        return self.source == self.target

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        counts = tuple(axis.count for axis in self._new_layout.grids.storage)
        target = self._handle(self.target, self._new_layout)
        shape = block_shape(self._handle(self.source, self._old_layout), target, window_bytes() // (2 * thread_count()))
        block = 3 * prod(shape) * object_bytes(target)
        return (Stage("write", (BlockGrid(counts, self.units),), max(window_bytes(), block) + _FIXED),)

    @property
    def home(self) -> Place:
        return self.target

    def places(self) -> tuple[Place, ...]:
        return (self.source,) if self.in_place else (self.source, self.target)

    def describe(self) -> str:
        return f"reshard {self.source} {'in place' if self.in_place else f'to {self.target}'}"

    @cached_property
    def _old_layout(self) -> ArrayLayout:
        return prepare_layout(self.old)

    @cached_property
    def _new_layout(self) -> ArrayLayout:
        return prepare_layout(self.new)

    @staticmethod
    def _handle(place: Place, layout: ArrayLayout) -> ArrayHandle:
        return ArrayHandle(place.store, place.path, layout, replace(ArrayConfig(), cache=0), watched=False)

    def _box(self, job: int) -> Box:
        return tuple(range(*each) for each in self.stages[0].grids[0].box(job))

    def job_bytes(self, stage: int, job: int) -> int:
        region = region_of(self._handle(self.target, self._new_layout), self._box(job))
        return region.size * (self.old.data_type.item_size or 16)

    # the jobs

    def run(self, job: Job) -> JobDone:
        noting = NotingStore(self.source.store)
        source = self._handle(Place(noting, self.source.path), self._old_layout)
        target = self._handle(self.target, self._new_layout)
        encoded = moves_encoded(source.layout, target.layout)
        shape = block_shape(source, target, window_bytes() // (2 * thread_count()))
        nbytes = prod(shape) * object_bytes(target)
        at_once = max(1, min(thread_count(), window_bytes() // (2 * nbytes)))
        job = replace(job, is_wanted=_both(job.is_wanted, self._is_open))

        def work(block: Box) -> None:
            keys = (target.key(unit) for unit in product(*block))  # there may be millions
            guarded = replace(target, store=job.guarded(target.store, keys))
            first = target.key(tuple(each[0] for each in block))
            with within_memory("new objects", nbytes, array=target.path, key=first):
                move(source, guarded, block, encoded=encoded)
            job.advance(region_of(target, block).size * (self.old.data_type.item_size or 16))

        box = self._box(job.number)
        cells = Cells(tuple(-(-len(each) // size) for each, size in zip(box, shape, strict=True)))
        for_each(work, _blocks_in(box, shape, cells), cells.count, at_once)
        prefix = f"{self.source.path}/" if self.source.path else ""
        stored: Sources = {
            key[len(prefix) :]: version for key, version in noting.versions.items() if version is not None
        }
        made = sum(bool(what_goes_into(source, target, unit, stored)) for unit in product(*box))
        return JobDone(_digest(source, target, box, stored), made or None)

    def _is_open(self) -> bool:
        """Whether the new objects do not count yet."""
        journal = load_journal(self.target.store, self.target.path)
        return journal is not None and journal.phase in ("copying", "closing") and journal.about == self._about()

    def _about(self) -> dict[str, Any]:
        return self._runner().about(self.old)

    def noted(self, done: Done) -> Noted:
        """Return what says which new objects are made of what is stored still."""

        def compare(source: ArrayHandle, target: ArrayHandle, stored: Sources) -> dict[str, Sources]:
            found: dict[str, Sources] = {}
            if target.layout.metadata.shape != self.new.shape:
                counts = [axis.count for axis in target.layout.grids.storage]
            else:
                counts = [2**63] * len(self.units)
            for job, seen in done.seen.get(0, {}).items():
                box = self._box(job)
                ranges = [range(each.start, min(each.stop, most)) for each, most in zip(box, counts, strict=True)]
                if _digest(source, self._handle(self.target, self._new_layout), box, stored) == seen:
                    for unit in product(*ranges):
                        sources = what_goes_into(source, self._handle(self.target, self._new_layout), unit, stored)
                        if sources:
                            found[name_of(unit)] = sources
            return found

        return compare

    # before and after

    def _runner(self) -> Elsewhere | InPlace:
        request = {"planned": self.new}
        if self.in_place:
            return InPlace(self.source.store, self.source.path, request, self.grace)
        return Elsewhere(self.source.store, self.source.path, request, self.target.store, self.target.path)

    def check(self) -> None:
        try:
            now = load_array(self.source.store, self.source.path)
        except (ArrayNotFoundError, MetadataError) as error:
            raise PlanError(f"the plan was made for {self.source}, which cannot be read any more: {error}") from None
        if members(now) != members(self.old) or generation_of(now) != generation_of(self.old):
            raise PlanError(
                f"the plan was made for {self.source} as it was: since then its chunks have been stored in another "
                "way; cancel this plan, and make it again"
            )

    def begin(self, plan: str) -> None:
        runner = self._runner()
        journal = load_journal(self.target.store, self.target.path)
        if journal is not None and journal.phase != "beginning" and journal.about == self._about():
            return
        if isinstance(runner, InPlace):
            runner.refuse_older_documents()
        while True:
            with suppress(BegunMeanwhileError), runner.lock():
                journal = load_journal(self.target.store, self.target.path)
                runner.begin(journal, load_array(self.source.store, self.source.path))
                return

    def is_finished(self, plan: str) -> bool:
        store, path = self.target.store, self.target.path
        try:
            node = find_node(store, path, 3)
        except MetadataError:
            return False
        return isinstance(node, ArrayMetadata) and members(node) == members(self.new)

    def finish(self, plan: str, done: Done) -> Resharding:
        runner = self._runner()
        made = sum(done.found.get(0, {}).values())
        runner.first = lambda old, new: (made, self.noted(done))
        return runner.run()

    def cancel(self, plan: str) -> None:
        self._runner().cancel()

    # forecasts

    def forecast(self) -> Forecast:
        stored, size = stored_sample(self._handle(self.source, self._old_layout))
        total = prod(axis.count for axis in self._old_layout.grids.storage)
        made = round(count(self._handle(self.target, self._new_layout)) * stored / max(1, total))
        looks = 3 if self.in_place else 1  # at versions: before and after writers are kept away, and before erasing
        return Forecast(made, round(self._reads() * stored / max(1, total)) + looks * stored + made, size, size)

    def _reads(self) -> int:
        """Return how often old objects are read: once for each block that has something of them; of parts twice."""
        target = self._handle(self.target, self._new_layout)
        source = self._handle(self.source, self._old_layout)
        shape = block_shape(source, target, window_bytes() // (2 * thread_count()))
        reads, whole = 1, True
        for axis, old, size, units in zip(
            target.layout.grids.storage, source.layout.grids.storage, shape, self.units, strict=True
        ):
            step, length = min(size, units), 0
            for first in range(0, axis.count, step):
                last = min(first + step, axis.count) - 1
                length += _touched(old, axis.start(first), min(axis.start(last) + axis.extent(last), axis.length))
            reads *= max(1, length)
            whole &= length == old.count
        return reads if whole or source.layout.sharding is None else 2 * reads

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {
            "places": {"source": self.source.to_json(), "target": self.target.to_json()},
            "old": self.old.to_dict(),
            "new": self.new.to_dict(),
            "units": list(self.units),
            "grace": self.grace,
        }

    def identity(self) -> dict[str, Any]:
        return {name: each for name, each in self.to_json().items() if name != "grace"}

    @classmethod
    def from_json(
        cls,
        document: Mapping[str, Any],
        *,
        storage_options: Mapping[str, Any] | None,
        target_options: Mapping[str, Any] | None,
    ) -> ReshardWork:
        places = document["places"]
        in_place = places["source"] == places["target"]
        source = Place.from_json(places["source"], mode="r+" if in_place else "r", storage_options=storage_options)
        target = source
        if not in_place:
            target = Place.from_json(places["target"], mode="a", storage_options=target_options)
        units, grace = document["units"], document["grace"]
        if not isinstance(units, list) or not all(type(each) is int and each >= 1 for each in units):
            raise PlanError(f"jobs of resharding have numbers of objects along each axis, not {units!r}")
        if grace is not None and not (isinstance(grace, (int, float)) and 0 <= grace < 10**6):
            raise PlanError(f"grace is a number of seconds, not {grace!r}")
        old, new = ArrayMetadata.from_dict(document["old"]), ArrayMetadata.from_dict(document["new"])
        return cls(source, target, old, new, tuple(units), grace)


def plan_jobs(
    source: Place, target: Place, old: ArrayMetadata, new: ArrayMetadata, grace: float | None = None
) -> ReshardWork:
    """Return the work, cut into jobs. No I/O."""
    before, after = (
        ArrayHandle(place.store, place.path, prepare_layout(metadata), ArrayConfig(), watched=False)
        for place, metadata in ((source, old), (target, new))
    )
    counts = [axis.count for axis in after.layout.grids.storage]
    units = list(block_shape(before, after, _JOB_BYTES))
    nbytes = object_bytes(after)
    for i in reversed(range(len(units))):
        while units[i] < counts[i]:
            jobs = prod(-(-n // k) for n, k in zip(counts, units, strict=True))
            small = 2 * prod(units) * nbytes <= _JOB_BYTES and jobs >= 2 * _LEAST_JOBS
            if not small and jobs <= _MOST_JOBS:
                break
            units[i] = min(2 * units[i], counts[i])
    return ReshardWork(source, target, old, new, tuple(max(1, each) for each in units), grace)


def _blocks_in(box: Box, shape: Sequence[int], cells: Cells) -> Iterator[Box]:
    """Yield the blocks of this ``shape`` that make up a box, whose grid is ``cells``: there may be millions."""
    for number in range(cells.count):
        firsts = [i * size for i, size in zip(cells.place(number), shape, strict=True)]
        yield tuple(each[first : first + size] for each, first, size in zip(box, firsts, shape, strict=True))


def _digest(source: ArrayHandle, target: ArrayHandle, box: Box, stored: Sources) -> str:
    found = {key: stored[key] for key in sources_of(source, target, box) if key in stored}
    return digest([*found.items(), ("", str(region_of(target, box).full_shape))])


def _touched(old: Axis, start: int, stop: int) -> int:
    """Return how many old objects have elements from ``start`` to ``stop``."""
    first, last = old.locate(np.array([start, max(start, stop - 1)], np.int64))[0].tolist()
    return int(last - first + 1)


def _both(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() and other()


__all__ = ["ReshardWork", "plan_jobs"]
