"""Verifying as jobs: one that looks at documents and lists what is stored, and many that look at a part of that."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate, chain
from threading import Lock
from typing import Any, ClassVar, Final

from zardine.cache import Cache
from zardine.engine.array_config import ArrayConfig
from zardine.engine.documents import get_document
from zardine.engine.freshness import is_far
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.read_ahead import window_bytes
from zardine.errors import PlanError, UnsupportedError
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.ranges import Ranges, batches
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Cells, Stage
from zardine.jobs.work import Forecast, Found, Work
from zardine.json_document import parse_json
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.settings import thread_count
from zardine.shown_text import counted
from zardine.stores.base import Store
from zardine.stores.memory import MemoryStore
from zardine.tools.checking.chunk import is_seen
from zardine.tools.checking.consolidated import check_consolidated
from zardine.tools.checking.coordinates import name_coordinates
from zardine.tools.checking.outside import drop_passing
from zardine.tools.checking.scan import Scan, scan_existing
from zardine.tools.checking.stored_object import StoredObject, check_objects, shares_of
from zardine.tools.converting.nodes import read_nodes
from zardine.tools.listing import GatheredCells, listing_memory
from zardine.tools.report import Fault, Report, note, sort_faults
from zardine.tools.sampling import stored_sample

_JOB_BYTES: Final = 2**28
"""Decoded bytes of a job, about, where there are many."""
_MOST_JOBS: Final = 2**16
_LEAST: Final = 8
"""Objects of a job, where there are as many."""
_MOST: Final = 2**14
"""Objects of a job, where there would not be too many jobs."""
_OBJECT: Final = 200
"""Bytes that an object of a job takes beside what is read of it, about."""
_FEW: Final = 2**10
"""Stored objects of an array that are in memory together, where several arrays are listed at the same time."""
_FIXED: Final = 16 * 2**20
"""Bytes that a job takes beside what it reads, about."""

_HANDLES: Final[Cache[tuple[Store, str, str], ArrayHandle]] = Cache(64)
"""By store, path and document."""


@dataclass(frozen=True, slots=True)
class Verification(Report):
    """What :func:`zardine.verify` found, and what it looked at. True where there are no faults."""

    deep: bool = True
    """Whether every chunk was decoded."""
    nodes: int = 0
    objects: int = 0
    """Stored chunks and shards looked at."""
    chunks: int = 0
    """Stored chunks, inner chunks of shards among them, looked at."""
    nbytes: int = 0
    """Bytes read of them."""
    stored: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    """By ``"shards"`` and, of arrays without shards, ``"chunks"``: how many are stored, and how many there may be."""

    @property
    def summary(self) -> str:
        """What was found and looked at, in a line."""
        parts = [counted(self.nodes, "node")]
        kinds = [
            f"{count:,} of {counted(total, kind.removesuffix('s'))}" for kind, (count, total) in self.stored.items()
        ]
        if kinds:
            parts.append(f"{' and '.join(kinds)} stored")
        if "shards" in self.stored:
            parts.append(counted(self.chunks, "chunk" if "chunks" in self.stored else "inner chunk"))
        parts.append(counted(self.nbytes, "byte"))
        faults = counted(len(self.faults), "fault") if self.faults else "no faults"
        return f"{faults}: {', '.join(parts)}{'' if self.deep else ' (chunks were not decoded)'}"

    def __str__(self) -> str:
        words = {"error": "fault", "warning": "note"}
        return "\n".join([*(f"{words[each.severity]} {each}" for each in (*self.faults, *self.notes)), self.summary])


@dataclass(frozen=True)
class VerifyWork(Work):
    """All at and below ``source``, to be looked at in ``jobs`` equal parts."""

    kind: ClassVar[str] = "verify"

    source: Place
    records: Place | None
    """Where what is done and found is recorded; ``None``: in the memory of the process that runs the plan."""
    deep: bool
    jobs: int
    job_objects: int
    """Stored objects of a job, at most."""
    job_nbytes: int
    """Decoded bytes of a job, about."""
    list_nbytes: int
    """Bytes that listing takes."""
    chunk_nbytes: int
    """Decoded bytes of the largest chunk."""

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        checking = window_bytes() + 2 * self.chunk_nbytes * thread_count() + self.job_objects * _OBJECT
        return (
            Stage("list", (BlockGrid.regular((1,), (1,)),), self.list_nbytes + _FIXED),
            Stage("check", (BlockGrid.regular((self.jobs,), (1,)),), checking + _FIXED),
        )

    @cached_property
    def home(self) -> Place:
        return Place(MemoryStore(), "") if self.records is None else self.records

    @property
    def is_recorded_here(self) -> bool:
        return self.records is None

    @property
    def uses_findings(self) -> bool:
        return True

    def places(self) -> tuple[Place, ...]:
        return (self.source,) if self.records is None else (self.source, self.records)

    def describe(self) -> str:
        return f"verify {self.source}{'' if self.deep else ' without decoding chunks'}"

    def job_bytes(self, stage: int, job: int) -> int:
        return self.job_nbytes if stage else 0

    def check(self) -> None:
        """Nothing can be stale: what is verified is what is listed when the plan runs."""

    def begin(self, plan: str) -> None:
        """Nothing has to be prepared."""

    # the jobs

    def run(self, job: Job) -> JobDone:
        if job.stage == 0:
            return JobDone(found=self.__dict__.get("_listing") or list_stored(self.source)[0])
        return JobDone(found=self._check(job))

    def _check(self, job: Job) -> dict[str, Any]:
        objects: list[StoredObject] = []
        for path, document, pairs in job.share():
            handle = self._handle(path, document)
            cells = _cells(handle)
            for number in Ranges(pairs):
                place = cells.place(number)
                objects.append(StoredObject(handle, handle.key(place), place))
        each_nbytes = self.job_nbytes // max(1, len(objects))
        checked = check_objects(
            self.source.store, objects, deep=self.deep, progress=lambda done, total: job.advance(each_nbytes)
        )
        is_stored = [each.nbytes > 0 or bool(each.faults) for each in checked]
        return {
            "objects": sum(is_stored),
            "stored": Counter(_kind(one.handle.layout) for one, there in zip(objects, is_stored, strict=True) if there),
            "chunks": sum(each.chunks for each in checked),
            "nbytes": sum(each.nbytes for each in checked),
            **_as_json(
                [each for one in checked for each in one.faults], [each for one in checked for each in one.notes]
            ),
        }

    def _handle(self, path: str, document: dict[str, Any]) -> ArrayHandle:
        place = self.source.store, path, json.dumps(document, sort_keys=True)
        handle = _HANDLES.get(place)
        if handle is None:
            layout = prepare_layout(ArrayMetadata.from_dict(document), "")
            handle = ArrayHandle(self.source.store, path, layout, ArrayConfig.from_settings())
            _HANDLES.put(place, handle, 1)
        return handle

    # who looks at what

    def given(self, stage: int, job: int, found: Found) -> Any:
        return self._shares(found).part(job, self.jobs) if stage else None

    def idle(self, stage: int, found: Found) -> Ranges:
        if not stage:
            return Ranges()
        count = self._shares(found).count
        busy = Ranges.of(
            {((number + 1) * self.jobs - 1) // count for number in range(count)} if count < self.jobs else ()
        )
        return busy.missing(self.jobs) if count < self.jobs else Ranges()

    def _shares(self, found: Found) -> _Shares:
        listing = found[0][0]
        last: tuple[Any, _Shares] | None = self.__dict__.get("_last")
        if last is None or last[0] is not listing:
            last = listing, _Shares(listing["arrays"])
            self.__dict__["_last"] = last
        return last[1]

    # the end

    def _report_key(self, plan: str) -> str:
        return join_path(self.home.path, f"verified-{plan}.json")

    def is_finished(self, plan: str) -> bool:
        return self.home.store.exists(self._report_key(plan))

    def finish(self, plan: str, done: Done) -> None:
        if self.is_finished(plan):
            return
        listing, checked = done.found[0][0], list(done.found.get(1, {}).values())
        documents = {each["path"]: each["document"] for each in listing["arrays"]}
        possible: Counter[str] = Counter()
        for path, document in ((each["path"], each["document"]) for each in listing["arrays"]):
            handle = self._handle(path, document)
            possible[_kind(handle.layout)] += _cells(handle).count
        stored = sum((Counter(each["stored"]) for each in checked), Counter())
        faults = sort_faults(
            Fault.from_dict(each) for each in chain(listing["faults"], *(one["faults"] for one in checked))
        )
        named = name_coordinates(
            self.source.store,
            faults,
            lambda path: self._handle(path, documents[path]).layout if path in documents else None,
        )
        report = {
            "deep": self.deep,
            "nodes": listing["nodes"],
            **{name: sum(each[name] for each in checked) for name in ("objects", "chunks", "nbytes")},
            "stored": {kind: (stored[kind], possible[kind]) for kind in ("shards", "chunks") if possible[kind]},
            "faults": [each.to_dict() for each in named],
            "notes": listing["notes"] + [note for each in checked for note in each["notes"]],
        }
        self.home.store.set(self._report_key(plan), json.dumps(report).encode())

    def result(self, plan: str) -> Verification:
        data = get_document(self.home.store, self._report_key(plan))
        if data is None:
            raise PlanError(f"there is no report of {self.describe()}: the plan is not finished")
        report: Any = parse_json(data)
        faults = sort_faults(Fault.from_dict(each) for each in report.pop("faults"))
        notes = sort_faults(Fault.from_dict(each, "warning") for each in report.pop("notes"))
        stored = {kind: (count, total) for kind, (count, total) in report.pop("stored").items()}
        return Verification(faults, notes, **report, stored=stored)

    def forget(self, plan: str) -> None:
        """Remove the report of an earlier run."""
        self.home.store.erase(self._report_key(plan))

    def cancel(self, plan: str) -> None:
        """Nothing was written but records."""

    # forecasts

    def forecast(self) -> Forecast:
        requests = nbytes = 0
        for handle in array_handles(self.source):
            count, size = stored_sample(handle)
            chain = handle.layout.chain(_chunk_shape(handle))
            sharding = handle.layout.sharding
            if sharding is None:
                requests += 2 * count
                nbytes += size
                continue
            index = handle.layout.shard((0,) * handle.layout.metadata.ndim)
            assert index is not None
            requests += 2 * count
            nbytes += index.index_size * count
            if is_seen(chain, deep=self.deep) and count:
                _, threads, most = shares_of(self.source.store, max(1, count // self.jobs))
                data = size // count - index.index_size
                requests += count * (1 + max(0, data - 1) // max(1, most // threads))
                nbytes += data * count
        return Forecast(0, requests, nbytes, 0)

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {
            "places": {
                "source": self.source.to_json(),
                "records": None if self.records is None else self.records.to_json(),
            },
            "deep": self.deep,
            "jobs": self.jobs,
            "job_objects": self.job_objects,
            "job_nbytes": self.job_nbytes,
            "list_nbytes": self.list_nbytes,
            "chunk_nbytes": self.chunk_nbytes,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> VerifyWork:
        if places.named["records"] is None:
            raise PlanError("the plan has no place for what its jobs find: make it again with records= (--records)")
        numbers = [document[each.name] for each in fields(cls) if each.type == "int"]
        if not all(type(each) is int and 0 <= each < 2**63 for each in numbers) or not numbers[0]:
            raise PlanError(f"a plan of verifying has numbers of jobs, objects and bytes, not {numbers}")
        return cls(
            places.source(mode=None),
            places.target("records"),
            bool(document["deep"]),
            *numbers,
        )


def list_stored(source: Place) -> tuple[dict[str, Any], list[tuple[int, ArrayLayout]]]:
    """Return what is stored, and what is wrong with documents and keys, as JSON; and the size of each array.

    That is how many stored objects it has, and its layout.
    """
    store, path = source.store, source.path
    arrays: dict[str, Sequence[ArrayHandle]] = {}
    """By path; several where an array is stored in several versions of Zarr."""
    found, lock = GatheredCells(), Lock()

    def collect(sources: Sequence[ArrayHandle], objects: Iterable[StoredObject]) -> None:
        if not sources:
            return
        path = sources[0].path
        with lock:
            for i in range(len(arrays.get(path, ()))):
                found.forget((path, i))
        arrays[path] = sources
        grids = list(map(_cells, sources))
        for some in batches(objects, _FEW) if is_far(store) else batches(objects):
            for i, (handle, cells) in enumerate(zip(sources, grids, strict=True)):
                ranges = Ranges.of(cells.number(each.coordinates) for each in some if each.handle is handle)
                with lock:
                    found.add((path, i), ranges)

    try:
        scanned = scan_existing(store, path, collect=collect)
        drop_passing(store, scanned)
    except UnsupportedError:  # nothing can be listed there: what documents tell of is looked for
        arrays, found = {}, GatheredCells()
        for handle in _told_of(source):
            mine = arrays.setdefault(handle.path, ())
            found.add((handle.path, len(mine)), Ranges([(0, _cells(handle).count)]))
            arrays[handle.path] = [*mine, handle]
        scanned = Scan(nodes={each: [] for each in arrays})
    faults = [*scanned.faults, *check_consolidated(scanned.nodes)]
    faults += [Fault("/", kind="torn", message=each) for each in store.faults()]
    message = "left behind by a writer that died: zardine.repair removes it"
    notes = scanned.notes + [note("/", each, kind="leftover", message=message) for each in store.leftovers()]
    listed = [
        (handle.path, handle.layout, found.cells((each, i)))
        for each in sorted(arrays)
        for i, handle in enumerate(arrays[each])
    ]
    listing = {
        "nodes": len(scanned.nodes),
        "arrays": [
            {"path": each, "document": layout.metadata.to_dict(), "cells": cells.to_json()}
            for each, layout, cells in listed
        ],
        **_as_json(faults, notes),
    }
    return listing, [(cells.count, layout) for _, layout, cells in listed]


class _Shares:
    """What is listed, cut into parts of as many objects each."""

    def __init__(self, arrays: Sequence[Mapping[str, Any]]) -> None:
        self._arrays = [(each["path"], each["document"], Ranges.from_json(each["cells"])) for each in arrays]
        self._ends = list(accumulate(cells.count for _, _, cells in self._arrays))
        self.count = self._ends[-1] if self._ends else 0

    def part(self, number: int, parts: int) -> list[tuple[str, dict[str, Any], list[tuple[int, int]]]]:
        """Return paths, documents and ranges of cells of one of so many parts."""
        start, stop = number * self.count // parts, (number + 1) * self.count // parts
        found = []
        at = bisect_right(self._ends, start)
        while start < stop:
            path, document, cells = self._arrays[at]
            begin = self._ends[at - 1] if at else 0
            end = min(stop, self._ends[at])
            pairs = list(cells.part(start - begin, end - begin).pairs())
            if pairs:
                found.append((path, document, pairs))
            start, at = end, at + 1
        return found


def plan_listed(source: Place, *, deep: bool) -> VerifyWork:
    """Return the work by what is stored, which is listed now, and not again where the plan runs in this process."""
    listing, sizes = list_stored(source)
    work = _work_of(source, None, deep, sizes)
    work.__dict__["_listing"] = listing
    return work


def plan_described(source: Place, records: Place | None, *, deep: bool) -> VerifyWork:
    """Return the work by the documents of the arrays there: nothing is listed."""
    handles = array_handles(source)
    return _work_of(source, records, deep, [(_cells(handle).count, handle.layout) for handle in handles])


def _work_of(source: Place, records: Place | None, deep: bool, arrays: Sequence[tuple[int, ArrayLayout]]) -> VerifyWork:
    objects = sum(count for count, _ in arrays)
    nbytes = sum(count * layout.object_nbytes for count, layout in arrays)
    wanted = max(-(-nbytes // _JOB_BYTES), -(-objects // _MOST))
    jobs = max(1, min(objects, _MOST_JOBS, wanted, -(-objects // _LEAST)))
    job_nbytes, chunk = min(-(-nbytes // jobs), 2**62), max((layout.chunk_nbytes for _, layout in arrays), default=0)
    listing = listing_memory(count for count, _ in arrays)
    return VerifyWork(source, records, deep, jobs, min(-(-objects // jobs), 2**48), job_nbytes, listing, chunk)


def array_handles(source: Place) -> Iterator[ArrayHandle]:
    """Yield the arrays that are described at and below a place."""
    found: dict[str, Sequence[ArrayHandle]] = {}

    def collect(sources: Sequence[ArrayHandle], objects: Iterable[StoredObject]) -> None:
        if sources:
            found[sources[0].path] = sources  # and nothing is listed

    try:
        scan_existing(source.store, source.path, collect=collect)
    except UnsupportedError:
        yield from _told_of(source)
        return
    for path in sorted(found):
        yield from found[path]


def _told_of(source: Place) -> Iterator[ArrayHandle]:
    """Yield the arrays that documents tell of, where nothing can be listed."""
    for name, node in read_nodes(source.store, source.path).items():
        if isinstance(node, ArrayMetadata):
            path = join_path(source.path, name)
            yield ArrayHandle(source.store, path, prepare_layout(node, ""), ArrayConfig.from_settings())


def _cells(handle: ArrayHandle) -> Cells:
    return Cells(tuple(axis.count for axis in handle.layout.grids.storage))


def _kind(layout: ArrayLayout) -> str:
    return "chunks" if layout.sharding is None else "shards"


def _chunk_shape(handle: ArrayHandle) -> tuple[int, ...]:
    return StoredObject(handle, "", (0,) * handle.layout.metadata.ndim).chunk_shape()


def _as_json(faults: Iterable[Fault], notes: Iterable[Fault]) -> dict[str, Any]:
    return {"faults": [each.to_dict() for each in faults], "notes": [each.to_dict() for each in notes]}


__all__ = ["Verification", "VerifyWork", "array_handles", "plan_described", "plan_listed"]
