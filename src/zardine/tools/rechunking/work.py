"""Rechunking as jobs: blocks of the source into the target, or into an array between and from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise, product
from math import prod
from typing import Any, ClassVar, Final

import numpy as np

from zardine.cache import Cache
from zardine.creation.v3 import new_array_metadata
from zardine.engine.array_config import ArrayConfig, WriteStrategy
from zardine.engine.freshness import GENERATION, generation_of
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.read import read_plan
from zardine.engine.read_ahead import window
from zardine.engine.stored import stored_objects
from zardine.engine.workers import for_each, most_requests
from zardine.engine.write import write_plan
from zardine.errors import ContainsArrayError, MetadataError, NodeExistsError, PlanError
from zardine.hierarchy.create import create_ancestors
from zardine.hierarchy.find import HIDDEN, describe, find_node, load_array
from zardine.indexing.boxes import box_of
from zardine.indexing.plan import plan_grid
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Work
from zardine.json_document import JSON
from zardine.limits import within_memory
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.tools.converting.target import OtherConversionError, Target, write_documents
from zardine.tools.rechunking.append import append_block, array_prefix
from zardine.tools.rechunking.blocks import Between, Blocks, pieces_between
from zardine.tools.rechunking.seen import NotingStore, digest
from zardine.tools.rechunking.sums import sum_of, total
from zardine.tools.sampling import stored_sample

_TOGETHER: Final = 4096
"""Jobs whose source is looked at in one go."""
_FIXED: Final = 16 * 2**20
"""Bytes that a job takes beside its blocks, about."""
_COPIES: Final = 2
"""A block is in memory that often at most: as elements, and encoded."""
_COPIES_FAR: Final = 3
"""The same where stores are no local files, so that what is fetched or sent is there as well."""
_WINDOW: Final = 16
"""One part in so many of the memory is for fetching ahead."""

_HANDLES: Final[Cache[tuple[Place, str], ArrayHandle]] = Cache(8)
"""Of arrays between, by place and document."""

Box = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class RechunkWork(Work):
    """The array at ``source``, to be stored in other chunks at ``target``."""

    kind: ClassVar[str] = "rechunk"

    source: Place
    target: Place
    between: Place | None
    """Below which arrays between are; ``None`` where there are none."""
    old: ArrayMetadata
    new: ArrayMetadata
    blocks: Blocks
    max_memory: int

    # what it is

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        blocks = [*(each.block for each in self.blocks.between), self.blocks.write]
        last = "append" if self.blocks.appends else "write" if self.between is not None else "copy"
        names = ["read", *("regroup" for _ in blocks[2:])][: len(blocks) - 1]
        return tuple(
            Stage(name, (BlockGrid(self.old.shape, block),), self._memory(block))
            for name, block in zip([*names, last], blocks, strict=True)
        )

    @property
    def home(self) -> Place:
        return self.target

    def places(self) -> tuple[Place, ...]:
        return (self.source, self.target) if self.between is None else (self.source, self.target, self.between)

    def describe(self) -> str:
        how = "" if self.between is None else f" by way of {self.between}"
        return f"rechunk {self.source} to {self.target}{how}"

    def job_bytes(self, stage: int, job: int) -> int:
        box = self.stages[stage].grids[0].box(job)
        return prod(stop - start for start, stop in box) * self._item_size

    @property
    def _item_size(self) -> int:
        return self.old.data_type.item_size or _VARIABLE

    def _memory(self, block: Sequence[int]) -> int:
        """Return bytes that a job takes: a block, the same encoded, and some chunks for each thread."""
        size = prod(min(a, b) for a, b in zip(block, self.old.shape, strict=True)) * self._item_size
        chunks = max(self._old_layout.chunk_nbytes, self._new_layout.chunk_nbytes)
        copies = _COPIES if all(place.store.gives_files for place in self.places()) else _COPIES_FAR
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

    # the jobs

    def run(self, job: Job) -> JobDone:
        box = self.stages[job.stage].grids[0].box(job.number)
        if job.stage:
            return JobDone(found=self._copy(job, self._between(job.stage - 1), box))
        noting = NotingStore(self.source.store)
        source = self._handle(Place(noting, self.source.path), self._old_layout, watched=True)
        elements = self._copy(job, source, box)
        return JobDone(digest((key, noting.versions.get(key)) for key in set(self._source_keys(box))), elements)

    def _copy(self, job: Job, source: ArrayHandle, box: Box) -> str | None:
        """Copy the elements of a box to where the stage writes. Gives their sum, where that is compared."""
        last = job.stage == len(self.blocks.between)
        target = self._target() if last else self._between(job.stage)
        region = box_of(box)
        size = region.size * self._item_size
        appends = last and self.blocks.appends
        written = plan_grid(region, target.layout.grids)
        if not appends:
            store = job.guarded(target.store, (target.key(part.object) for part in written.parts()))
            target = replace(target, store=store)
        elif job.looks:
            target.store.wait_for_writers(array_prefix(target))  # what a late worker appends is there by then
        with window(self._window), within_memory("a block", size, array=target.path):
            values = np.empty(region.full_shape, source.layout.metadata.dtype)
            read_plan(source, plan_grid(region, source.layout.grids), values)
            if appends:
                append_block(job, target, region, values)
            else:
                write_plan(target, written, values)
            elements = sum_of(values) if self.blocks.between else None
        job.advance(size)
        return elements

    def _target(self) -> ArrayHandle:
        return self._handle(
            self.target, self._new_layout, write_strategy="append" if self.blocks.appends else "rewrite"
        )

    def _between(self, number: int) -> ArrayHandle:
        """Return the handle of this process, which remembers indexes of shards from one job to the next."""
        assert self.between is not None
        where = replace(self.between, path=join_path(self.between.path, str(number)))
        made = between_metadata(self.old, self.blocks.between[number])
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

    def _source_keys(self, box: Box) -> Iterator[str]:
        """Give the keys of all source objects that have elements of a box."""
        handle_key = self._handle(self.source, self._old_layout).key
        for places in product(*self._source_ranges(box)):
            yield handle_key(places)

    def _source_ranges(self, box: Box) -> list[range]:
        ranges = []
        for axis, (start, stop) in zip(self._old_layout.grids.storage, box, strict=True):
            first, last = axis.locate(np.array([start, max(start, stop - 1)], np.int64))[0].tolist()
            ranges.append(range(first, last + 1))
        return ranges

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        waiting = iter(jobs if stage == 0 else ())
        while some := list(islice(waiting, _TOGETHER)):
            yield from self._seen(some)

    def _seen(self, jobs: Sequence[int]) -> Iterator[tuple[int, str]]:
        store = self.source.store
        keys = {job: list(self._source_keys(self.stages[0].grids[0].box(job))) for job in jobs}
        every = sorted({key for each in keys.values() for key in each})
        versions: dict[str, Any] = {}

        def look(key: str) -> None:
            versions[key] = store.version(key)

        for_each(look, every, len(every), most_requests(store))
        return ((job, digest((key, versions[key]) for key in each)) for job, each in keys.items())

    def after(self, stage: int, jobs: Ranges) -> dict[int, Ranges]:
        found: dict[int, Ranges] = {}
        for later in range(stage + 1, len(self.stages)):
            before, grid = self.stages[later - 1].grids[0], self.stages[later].grids[0]
            jobs = Ranges.of({each for job in jobs for each in grid.meeting(before.box(job))})
            found[later] = jobs
        return found

    def _compare(self, found: Mapping[int, Mapping[int, Any]]) -> None:
        """Raise :class:`~zardine.errors.PlanError` where a stage read other elements than the one before wrote."""
        sums = [total(found.get(stage, {}).values()) for stage in range(len(self.stages))]
        for stage, (before, after) in enumerate(pairwise(sums)):
            if before != after:
                raise PlanError(
                    f"the sum of the elements that stage {stage + 2} ({self.stages[stage + 1].name!r}) has read of "
                    f"{self.between} is not that of those which stage {stage + 1} ({self.stages[stage].name!r}) has "
                    "written there, so something was changed or lost in between: cancel the plan, and run it again"
                )

    # before and after

    def check(self) -> None:
        now = load_array(self.source.store, self.source.path)
        wrong = differences(self.old, now)
        if wrong:
            raise PlanError(
                f"the plan was made for {self.source} as it was: since then its {wrong[0]}; cancel this plan, and make "
                "it again"
            )

    def _mark(self, plan: str) -> Target:
        options: dict[str, JSON] = {
            "chunks": list(self._inner_chunks()),
            "shards": list(self._new_layout.object_shape or ()) if self._new_layout.sharding is not None else None,
            "max_memory": self.max_memory,
        }
        return Target(self.target.store, self.target.path, str(self.source), plan, options, "rechunk")

    def _inner_chunks(self) -> tuple[int, ...]:
        sharding = self._new_layout.sharding
        return (self._new_layout.object_shape or ()) if sharding is None else sharding.chunk_shape

    def begin(self, plan: str) -> None:
        mark = self._mark(plan)
        if not self._look(mark):
            with suppress(NodeExistsError):  # another worker was faster
                mark.begin(overwrite=False)
            if not self._look(mark):
                raise NodeExistsError(f"{self.target} was begun and cancelled just now: begin again")

    def _look(self, mark: Target) -> bool:
        """Return whether this plan is begun. Raises where the place is taken."""
        try:
            return mark.look(overwrite=False, resume=True, way="a new array needs a place of its own")
        except OtherConversionError as error:
            anew = "cancelling its plan, or erasing what is there, and calling again"
            raise NodeExistsError(error.in_words(lambda name, value: f"{name}={value}", anew=anew)) from None

    def is_finished(self, plan: str) -> bool:
        try:
            node = find_node(self.target.store, self.target.path, 3)
        except MetadataError:
            return False
        return isinstance(node, ArrayMetadata) and generation_of(node) == plan

    def finish(self, plan: str, done: Done) -> None:
        member: JSON = {"must_understand": False, "id": plan}
        store, path = self.target.store, self.target.path
        if not self.is_finished(plan):
            self._compare(done.found)
            create_ancestors(store, path, 3)
            write_documents(store, path, replace(self.new, unknown={**self.new.unknown, GENERATION: member}))
        store.erase(self._mark(plan).key)
        self._erase_between()

    def cancel(self, plan: str) -> None:
        mark = self._mark(plan)
        if mark.is_begun():
            handle = self._target()
            handle.store.erase_values([key for key, _ in stored_objects(handle)])
            self._erase_between()
            handle.store.erase(mark.key)

    def _erase_between(self) -> None:
        for number in range(len(self.blocks.between)):
            handle = self._between(number)
            handle.store.erase_values([key for key, _ in stored_objects(handle)])

    # forecasts

    def forecast(self) -> Forecast:
        stored, size = stored_sample(self._handle(self.source, self._old_layout))
        raw = prod(self.old.shape) * self._item_size
        new_objects = prod(axis.count for axis in self._new_layout.grids.storage)
        read = int(size * self.blocks.times_read)
        written = size
        requests = 2 * round(stored * self.blocks.times_read) + new_objects  # each source object is looked at again
        objects = new_objects
        for stage, following in pairwise(self.stages):
            shards = len(stage)
            objects += shards
            requests += 3 * shards + _meetings(stage, following)  # written, erased, and its index read once
            read += raw
            written += raw
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
    def from_json(
        cls,
        document: Mapping[str, Any],
        *,
        storage_options: Mapping[str, Any] | None,
        target_options: Mapping[str, Any] | None,
    ) -> RechunkWork:
        places = document["places"]
        source = Place.from_json(places["source"], mode="r", storage_options=storage_options)
        target = Place.from_json(places["target"], mode="a", storage_options=target_options)
        between = places["between"]
        if between is not None:
            between = Place.from_json(between, mode="a", storage_options=target_options)
        blocks = Blocks(
            _shape(document["write"]),
            tuple(Between(_shape(each["block"]), _shape(each["inner"])) for each in document["between"]),
            float(document["times_read"]),
            bool(document["appends"]),
        )
        old, new = ArrayMetadata.from_dict(document["old"]), ArrayMetadata.from_dict(document["new"])
        return cls(source, target, between, old, new, blocks, int(document["max_memory"]))


_VARIABLE: Final = 16
"""Bytes that an element of varying length is taken for."""


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int and each >= 1 for each in value):
        raise PlanError(f"blocks of a plan have lengths of 1 or more, not {value!r}")
    return tuple(value)


def _meetings(stage: Stage, following: Stage) -> int:
    """Return how many pieces of the blocks of a stage those of the following one read."""
    first, second = stage.grids[0], following.grids[0]
    axes = zip(first.shape, first.block, second.block, strict=True)
    return prod(pieces_between(length, r, w) for length, r, w in axes)


def between_metadata(old: ArrayMetadata, between: Between) -> ArrayMetadata:
    """Return the metadata of an array between: raw, with a crc32c behind each piece. Its document is never stored."""
    made = new_array_metadata(
        shape=old.shape,
        dtype=old.data_type,
        chunks=between.inner,
        shards=between.block,
        filters=None,
        compressors=None,
        checksum=True,
    )
    return replace(made, fill=old.fill)


def differences(old: ArrayMetadata, now: ArrayMetadata) -> list[str]:
    """Return in words what of an array, as far as its elements and where they are, is not as it was."""
    wrong = []
    if now.shape != old.shape:
        wrong.append(f"shape has become {now.shape}, which was {old.shape}")
    if now.data_type != old.data_type:
        wrong.append(f"data type has become {now.data_type}, which was {old.data_type}")
    for name, words in (
        ("chunk_grid", "chunk grid"),
        ("chunk_key_encoding", "chunk key encoding"),
        ("codecs", "chain of codecs"),
        ("zarr_format", "version of Zarr"),
    ):
        if getattr(now, name) != getattr(old, name):
            wrong.append(f"{words} has become another one")
    if now.fill.tobytes() != old.fill.tobytes():
        wrong.append("fill value has become another one")
    if generation_of(now) != generation_of(old):
        wrong.append("contents were replaced as a whole")
    return wrong


def share_of(stores: Iterable[Store]) -> int:
    """Return which part of the memory a block may take: one in so many."""
    return _COPIES if all(store.gives_files for store in stores) else _COPIES_FAR + 1


def refuse_taken(target: Place) -> None:
    """Raise :class:`~zardine.errors.ContainsArrayError` where an array is at the place already."""
    try:
        node = find_node(target.store, target.path)
    except MetadataError:
        return
    if isinstance(node, ArrayMetadata):
        raise ContainsArrayError(
            f"an array is already stored at {describe(target.store, target.path)}: a new array needs a place of its own"
        )


def default_between(target: Place) -> Place:
    """Return where the array between is, if the user says nothing else."""
    return Place(target.store, join_path(target.path, f"{HIDDEN}/between"), target.url)


def own_folder(folder: str, source: Place, target: Place) -> str:
    """Return a path below ``folder`` that is for this work alone: several may have their arrays between there."""
    name = hashlib.sha256(f"{source}\n{target}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return join_path(folder, f"between-{name}")


__all__ = ["RechunkWork", "between_metadata", "default_between", "own_folder", "refuse_taken", "share_of"]
