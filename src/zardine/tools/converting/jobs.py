"""Converting as jobs: one lists what is stored, many write a part of the target, and compare it if that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import prod
from typing import Any, ClassVar, Final

from zardine.engine.array_config import ArrayConfig
from zardine.errors import ConversionError, MetadataError, PlanError, Problem
from zardine.hierarchy.find import describe, find_node
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done, Records
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found, Work
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.settings import thread_count
from zardine.sources.opening import foreign_store
from zardine.stores.base import Store
from zardine.tools.converting.compare import MOST, compare_array
from zardine.tools.converting.data import COPIES, at_once, convert_array
from zardine.tools.converting.nodes import read_nodes
from zardine.tools.converting.plan import NodePlan, consolidated, document_text
from zardine.tools.converting.target import Target
from zardine.tools.converting.work import ArrayWork, stored_cells, work_of
from zardine.tools.sampling import stored_sample
from zardine.tools.seen import NotingStore, digest, seen_now

_JOB_BYTES: Final = 2**26
"""Bytes of elements that a job handles, where an array has as many; more where there would be too many jobs."""
_MOST_JOBS: Final = 2**16
"""Jobs of an array, about."""
_FIXED: Final = 16 * 2**20
"""Bytes that a job takes beside its portions, about."""


@dataclass(frozen=True)
class ConvertWork(Work):
    """All nodes at and below ``source``, to be stored in another form at ``target``."""

    kind: ClassVar[str] = "convert"

    source: Place
    plans: tuple[NodePlan, ...]
    """Of the nodes, parents first."""
    target: Target
    target_url: str | None
    compares: bool
    """Whether all is read again and compared before the result counts."""
    per_job: tuple[int, ...]
    """How many blocks of each array a job makes."""

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        each = zip(self._all, self.per_job, strict=True)
        grids = tuple(BlockGrid((work.grid.count,), (per_job,)) for work, per_job in each)
        memory = max(map(_memory, self._all), default=_FIXED)
        found = Stage("list", (BlockGrid((1,), (1,)),), _FIXED), Stage("write", grids, memory)
        return (*found, Stage("compare", grids, memory)) if self.compares else found

    @cached_property
    def home(self) -> Place:
        return Place(self.target.store, self.target.path, self.target_url)

    @property
    def uses_findings(self) -> bool:
        return True

    def places(self) -> tuple[Place, ...]:
        return self.source, self.home

    def describe(self) -> str:
        return f"convert {self.source} to {self.home}"

    @cached_property
    def _arrays(self) -> list[NodePlan]:
        return [plan for plan in self.plans if isinstance(plan.source, ArrayMetadata)]

    @cached_property
    def _all(self) -> list[ArrayWork]:
        """How each array is made of that of the source."""
        return [self._work(self.source.store, plan) for plan in self._arrays]

    def _work(self, source: Store, plan: NodePlan) -> ArrayWork:
        return _array_work(source, self.source.path, self.target, plan)

    def job_bytes(self, stage: int, job: int) -> int:
        if stage == 0:
            return 0
        which, number = self.stages[1].locate(job)
        grid = self.stages[1].grids[which]
        ((start, stop),) = grid.box(number)
        nbytes = self._nbytes[which]
        return nbytes * stop // grid.shape[0] - nbytes * start // grid.shape[0]

    def jobs_bytes(self, stage: int, jobs: Ranges) -> int:
        if stage == 0:
            return 0
        total = first = 0
        for grid, nbytes in zip(self.stages[1].grids, self._nbytes, strict=True):
            (cells,), (each,) = grid.shape, grid.block
            for start, stop in jobs.between(first, first + len(grid)).pairs():
                low, high = (start - first) * each, min(cells, (stop - first) * each)
                total += nbytes * high // cells - nbytes * low // cells
            first += len(grid)
        return total

    @cached_property
    def _nbytes(self) -> list[int]:
        return [work.target.nbytes for work in self._all]

    # the jobs

    def run(self, job: Job) -> JobDone:
        if job.stage == 0:
            cells = [
                work.cells if plan.everything else stored_cells(work)
                for plan, work in zip(self._arrays, self._all, strict=True)
            ]
            return JobDone(found=[each.to_json() for each in cells])
        which, _ = self.stages[1].locate(job.number)
        noting = NotingStore(self.source.store)
        work = replace(self._work(noting, self._arrays[which]), cells=Ranges(job.given or ()))
        if self.source.store.is_foreign:
            work = replace(work, behind=self._work(self.source.store, self._arrays[which]).behind)
        if job.stage == 2:
            problems = compare_array(work, job.advance)
            return JobDone(found=[[each.place, each.message] for each in problems] or None)
        made = convert_array(work, job)
        keys = work.source._handle.layout.keys
        start = len(work.source.path) + 1 if work.source.path else 0
        seen = [
            (key, version)
            for key, version in noting.versions.items()
            if version is not None and keys.decode(key[start:], work.source.ndim) is not None
        ]
        return JobDone(digest(seen), made or None)

    def given(self, stage: int, job: int, found: Found) -> Any:
        if stage == 0:
            return None
        which, number = self.stages[1].locate(job)
        ((start, stop),) = self.stages[1].grids[which].box(number)
        return list(self._cells(found)[which].between(start, stop).pairs())

    def idle(self, stage: int, found: Found) -> Ranges:
        if stage == 0:
            return Ranges()
        busy: list[tuple[int, int]] = []
        first = 0
        for cells, grid in zip(self._cells(found), self.stages[1].grids, strict=True):
            per_job = grid.block[0]
            busy += [(first + start // per_job, first + -(-stop // per_job)) for start, stop in cells.pairs()]
            first += len(grid)
        return Ranges(busy).missing(first)

    def _cells(self, found: Found) -> list[Ranges]:
        """Return which blocks of each array have something in them."""
        listing = found[0][0]
        last: tuple[Any, list[Ranges]] | None = self.__dict__.get("_last")
        if last is None or last[0] is not listing:
            last = listing, list(map(Ranges.from_json, listing))
            self.__dict__["_last"] = last
        return last[1]

    # what the jobs saw

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        if stage == 0:  # what was stored since then is seen by the jobs that should have been given it
            return
        first = 0
        for work, grid in zip(self._all, self.stages[1].grids, strict=True):
            mine = jobs.between(first, first + len(grid)) if stage == 1 else Ranges()
            if mine:
                own = Ranges((start - first, stop - first) for start, stop in mine.pairs())
                handle = work.source._handle
                now = seen_now(handle, work.block_axes, own, per_job=grid.block[0], surely=surely, note=None)
                yield from ((first + job, text) for job, text in now)
            first += len(grid)

    def after(self, stage: int, jobs: Ranges) -> dict[int, Ranges]:
        """Return the same jobs of the next stage, which read what these write; and what is stored is listed again."""
        if stage != 1:
            return {}
        return {0: Ranges([(0, 1)]), 2: jobs} if self.compares else {0: Ranges([(0, 1)])}

    # before and after

    def check(self) -> None:
        wanted = {plan.path: document_text(plan.source) for plan in self.plans}
        now = {path: document_text(node) for path, node in read_nodes(self.source.store, self.source.path).items()}
        if now != wanted:
            path = min(path for path in {*now, *wanted} if now.get(path) != wanted.get(path))
            what = "is gone" if path not in now else "is new" if path not in wanted else "is another one"
            raise StaleSourceError(
                f"documents of {describe(self.source.store, self.source.path)} changed while it was converted (that of "
                f"/{path} {what}), so {self.target} stays unfinished: begin anew with overwrite=True"
            )

    def begin(self, plan: str) -> None:
        if not self.target.look(overwrite=False, resume=True, way="a plan needs an empty place"):
            self.target.begin(overwrite=False)

    def is_finished(self, plan: str) -> bool:
        try:
            node = find_node(self.target.store, self.target.path, self.plans[0].target.zarr_format)
        except MetadataError:
            return False
        return node is not None and document_text(node) == document_text(self.plans[0].target)

    def finish(self, plan: str, done: Done) -> dict[str, Any]:
        problems = [Problem(*each) for found in done.found.get(2, {}).values() for each in found]
        works = self._all
        if 0 in done.found.get(0, {}) and (self.compares or done.round):
            for work, cells in zip(works, self._cells(done.found), strict=True):
                keys = replace(work, cells=cells).unplanned()
                if done.round:  # its source was erased since
                    self.target.store.erase_values(list(keys))
                    continue
                text = "key {}: it is stored, and nothing of the source is there"
                problems += [Problem(f"/{work.target.path}", text.format(key)) for key in islice(keys, MOST)]
        if problems:
            Records(self.home, plan).void(done, {2: Ranges([(0, len(self.stages[2]))])})
            text = f"{self.target} is not what was to be converted, so it stays unfinished"
            raise ConversionError(text, sorted(problems, key=str))
        self.target.publish(self.plans)
        return {"objects": sum(done.found.get(1, {}).values()), "compared": self.compares}

    def cancel(self, plan: str) -> None:
        if self.target.is_begun():
            for work in self._all:
                self.target.store.erase_values(list(replace(work, cells=Ranges()).unplanned()))
            self.target.store.erase(self.target.key)

    # forecasts

    def forecast(self) -> Forecast:
        objects = requests = read = written = 0
        for work in self._all:
            stored, size = stored_sample(work.source._handle)
            cells = _objects_of(work, stored)
            objects += cells
            requests += stored + cells
            if not self.source.store.supports_listing:  # each is looked at when the plan is finished
                requests += prod(axis.count for axis in work.source._handle.layout.grids.storage)
            read += size
            written += size
            if self.compares:
                requests += stored + cells
                read += 2 * size
        return Forecast(objects, requests, read, written)

    # JSON

    def identity(self) -> dict[str, Any]:
        return {name: each for name, each in self.to_json().items() if name != "compares"}

    def to_json(self) -> dict[str, Any]:
        return {
            "places": {"source": self.source.to_json(), "target": self.home.to_json()},
            "foreign": self.source.store.is_foreign,
            "nodes": [
                {
                    "path": plan.path,
                    "source": plan.source.to_dict(),
                    "target": plan.target.to_dict(),
                    "consolidated": isinstance(plan.target, GroupMetadata)
                    and plan.target.consolidated_metadata is not None,
                    "as_text": plan.as_text,
                    "everything": plan.everything,
                }
                for plan in self.plans
            ],
            "request": self.target.fingerprint,
            "options": dict(self.target.options),
            "compares": self.compares,
            "per_job": list(self.per_job),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> ConvertWork:
        if document["foreign"]:
            named = places.named["source"]
            url = str(named["store"])
            source = Place(foreign_store(url, storage_options=places.storage_options), named["path"], url)
        else:
            source = places.source()
        home = places.target()
        plans = {each["path"]: _node_plan(each) for each in document["nodes"]}
        if not plans:
            raise PlanError("a plan of converting has nodes, and this one has none")
        made = Target(
            home.store, home.path, describe(source.store, source.path), document["request"], document["options"]
        )
        per_job, count = document["per_job"], sum(isinstance(each.source, ArrayMetadata) for each in plans.values())
        if len(per_job) != count or not all(type(each) is int and each >= 1 for each in per_job):
            raise PlanError(f"a plan of converting {count} arrays has as many numbers of blocks, not {per_job!r}")
        nodes = tuple(consolidated(plans).values())
        return cls(source, nodes, made, home.url, bool(document["compares"]), tuple(per_job))


class StaleSourceError(PlanError, ConversionError):
    """The documents of the source are not what they were when it was planned."""

    def __init__(self, message: str) -> None:
        ConversionError.__init__(self, message, ())


def _node_plan(document: Mapping[str, Any]) -> NodePlan:
    return NodePlan(
        path=document["path"],
        source=_metadata(document["source"]),
        target=_metadata(document["target"], consolidated=document["consolidated"]),
        as_text=bool(document["as_text"]),
        everything=bool(document["everything"]),
    )


def _metadata(document: Mapping[str, Any], *, consolidated: bool = False) -> NodeMetadata:
    if "shape" in document:
        return ArrayMetadata.from_dict(document)
    group = GroupMetadata.from_dict(document)
    return group.with_consolidated({}) if consolidated else group


def plan_jobs(
    source: Place, plans: tuple[NodePlan, ...], target: Target, target_url: str | None, *, compares: bool
) -> ConvertWork:
    """Return the work, cut into jobs. No I/O."""
    arrays = [plan for plan in plans if isinstance(plan.source, ArrayMetadata)]
    per_job = tuple(_per_job(_array_work(source.store, source.path, target, plan)) for plan in arrays)
    return ConvertWork(source, plans, target, target_url, compares, per_job)


def _array_work(source: Store, path: str, target: Target, plan: NodePlan) -> ArrayWork:
    assert isinstance(plan.source, ArrayMetadata)
    assert isinstance(plan.target, ArrayMetadata)
    settings = ArrayConfig()  # whatever this process has set: objects have to be written whole
    old = Array(source, join_path(path, plan.path), plan.source, settings)
    new = Array(target.store, join_path(target.path, plan.path), plan.target, settings)
    return work_of(old, new, as_text=plan.as_text, everything=plan.everything)


def _per_job(work: ArrayWork) -> int:
    """Return how many blocks of an array one job makes."""
    count = max(1, work.grid.count)
    each = max(1, work.target.nbytes // count)
    return max(1, _JOB_BYTES // each, -(-count // _MOST_JOBS))


def _memory(work: ArrayWork) -> int:
    chunks = work.source._handle.layout.chunk_nbytes + work.target._handle.layout.chunk_nbytes
    return COPIES * at_once(work) * work.portion_nbytes + 2 * thread_count() * chunks + _FIXED


def _objects_of(work: ArrayWork, stored: int) -> int:
    """Return how many objects of the target are made, about, of so many of the source."""
    total = prod(axis.count for axis in work.source._handle.layout.grids.storage)
    return work.count if stored >= total else round(work.count * stored / max(1, total))


__all__ = ["ConvertWork", "StaleSourceError", "plan_jobs"]
