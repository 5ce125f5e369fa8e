"""Converting as jobs: one lists what is stored, many write a part of the target, and compare it if that is wanted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from math import prod
from typing import Any, ClassVar, Final

from zardine.codecs.crc32c import Crc32cCodec
from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.engine.stored import erase_stored
from zardine.errors import ConversionError, MetadataError, PlanError, Problem
from zardine.hierarchy.find import describe, find_node
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places, whole_url
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done, Records
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found, Work, holds_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import join_path
from zardine.settings import parse_bytes, thread_count
from zardine.sources.opening import foreign_store
from zardine.stores.base import Store
from zardine.tools.converting.compare import MOST, compare_array
from zardine.tools.converting.data import at_once, convert_array, text_of
from zardine.tools.converting.foreign import may_be_lost_text
from zardine.tools.converting.nodes import read_nodes
from zardine.tools.converting.plan import NodePlan, consolidated, document_text
from zardine.tools.converting.work import ArrayWork, blocks_of, gather_stored, steps_of
from zardine.tools.copying.array_blocks import OF_A_JOB, fetched_ahead
from zardine.tools.copying.between import folder_between, passage, pieces_read
from zardine.tools.copying.blocks import Blocks
from zardine.tools.copying.compare import total
from zardine.tools.copying.move import keys_of
from zardine.tools.copying.new_place import Target
from zardine.tools.listing import GatheredCells, listing_memory
from zardine.tools.sampling import Written, carried_sample, encoded_sample, full_size, stored_sample
from zardine.tools.seen import NotingStore, seen_now

_MOST_TOLD: Final = 3
"""Arrays of which a plan says what was looked at to forecast them."""
_JOB_BYTES: Final = 2**26
"""Bytes of elements that a job handles, where an array has as many; more where there would be too many jobs."""
_MOST_JOBS: Final = 2**16
"""Jobs of an array, about."""
_COUNTED: Final = 2**16
"""Blocks that are looked at one by one."""
_OBJECTS: Final = 2**14
"""Objects that a job reads or writes, where there would not be too many jobs."""
_OBJECT: Final = 300
"""Bytes that each of them takes beside its elements, about."""


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
    blocks: tuple[Blocks | None, ...]
    """Of each array how it is copied, where that is not object by object; with the arrays between."""
    per_job: tuple[tuple[int, ...], ...]
    """Of each array how many blocks a job makes: of every array between, and of the target."""
    max_memory: int | None = None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        stored = (prod(axis.count for axis in steps[0].source.layout.grids.storage) for steps in self._steps)
        listing = listing_memory(stored, (work.grid.cells.count for steps in self._steps for work in steps))
        names = ["list", "read", *("regroup" for _ in self._grids[3:])][: self._last]
        stages = [Stage("list", (BlockGrid.regular((1,), (1,)),), listing + OF_A_JOB)]
        for name, which in zip([*names[1:], "write", "compare"], self._grids[1:], strict=False):
            works = [self._steps[array][step] for array, step in which]
            grids = [
                BlockGrid.regular((work.grid.cells.count,), (self.per_job[array][step],))
                for work, (array, step) in zip(works, which, strict=True)
            ]
            numbers = [self.per_job[array][step] * _objects_in(self._steps[array][step]) for array, step in which]
            memory = (_memory(work) + number * _OBJECT for work, number in zip(works, numbers, strict=True))
            stages.append(Stage(name, tuple(grids), max(memory, default=OF_A_JOB)))
        return tuple(stages)

    @cached_property
    def _grids(self) -> list[list[tuple[int, int]]]:
        """Of each stage the numbers of the array, and of the step of it, that each of its grids is of."""
        last = [len(steps) - 1 for steps in self._steps]
        grids: list[list[tuple[int, int]]] = [[]]
        grids += (
            [(array, step) for array, end in enumerate(last) if step < end] for step in range(max(last, default=0))
        )
        grids.append(list(enumerate(last)))
        if self.compares:
            grids.append([(array, step) for array, end in enumerate(last) for step in range(end + 1)])
        return grids

    @cached_property
    def _last(self) -> int:
        """The number of the stage that writes the target."""
        return len(self._grids) - 1 - self.compares

    def _stage_of(self, array: int, step: int) -> int:
        """Return the number of the stage that makes a step."""
        return self._last if step == len(self._steps[array]) - 1 else 1 + step

    def _jobs(self, stage: int) -> Iterator[tuple[int, int, BlockGrid, int]]:
        """Yield array, step, grid and the number of the first job of each grid of a stage."""
        first = 0
        for (array, step), grid in zip(self._grids[stage], self.stages[stage].grids, strict=True):
            yield array, step, grid, first
            first += len(grid)

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
    def _steps(self) -> list[tuple[ArrayWork, ...]]:
        """How each array is made of that of the source: straight, or by way of arrays between."""
        return [self._steps_from(self.source.store, array) for array in range(len(self._arrays))]

    def _steps_from(self, source: Store, array: int) -> tuple[ArrayWork, ...]:
        plan = self._arrays[array]
        store, folder = self._between
        place = store, join_path(folder, f"{self._layout}/{array}")
        options: Any = {"as_text": plan.as_text, "everything": plan.everything}
        old, new = _arrays_of(source, self.source.path, self.target, plan)
        return steps_of(old, new, self.blocks[array], place, self.max_memory, **options)

    @cached_property
    def _between(self) -> tuple[Store, str]:
        """The store and folder below which arrays between are, also those of another plan for the same."""
        return folder_between(self.target.store, self.target.path)

    @cached_property
    def _layout(self) -> str:
        """The name of a folder for arrays between that are laid out like these."""
        text = json.dumps([None if each is None else each.to_json() for each in self.blocks])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def _works(self) -> list[ArrayWork]:
        """The steps that write the target."""
        return [steps[-1] for steps in self._steps]

    def job_bytes(self, stage: int, job: int) -> int:
        return self.jobs_bytes(stage, Ranges([(job, job + 1)]))

    def jobs_bytes(self, stage: int, jobs: Ranges) -> int:
        if stage == 0:
            return 0
        total = 0
        for array, step, grid, first in self._jobs(stage):
            cells, each = self._steps[array][step].grid.cells.count, self.per_job[array][step]
            nbytes = _nbytes(self._works[array])
            for start, stop in jobs.between(first, first + len(grid)).pairs():
                low, high = (start - first) * each, min(cells, (stop - first) * each)
                total += nbytes * high // cells - nbytes * low // cells
        return total

    # the jobs

    def run(self, job: Job) -> JobDone:
        if job.stage == 0:
            return JobDone(found=self._list(job))
        grid, _ = self.stages[job.stage].locate(job.number)
        array, step = self._grids[job.stage][grid]
        work, noting = self._steps[array][step], NotingStore(self.source.store)
        if step == 0:
            source = work.source
            work = replace(work, source=ArrayHandle(noting, source.path, source.layout, source.config))
        work = replace(work, cells=Ranges(job.share()))
        if job.stage > self._last:
            problems = compare_array(work, job.advance, f"/{self._works[array].target.path}")
            return JobDone(found=[[each.place, each.message] for each in problems] or None)
        made, total = convert_array(work, job, sums=len(self._steps[array]) > 1)
        if total is not None:
            found: Any = [made, total]
        else:
            found = made or None
        if step:
            return JobDone(found=found)
        keys = (key for box in work.portions() for key in keys_of(work.source, box))
        return JobDone(noting.digest(keys), found)

    def _list(self, job: Job) -> list[list[Any]]:
        """Return which blocks of each step of each array have something in them; as JSON."""
        found = GatheredCells()
        for array, steps in enumerate(self._steps):
            if self._arrays[array].everything:
                for step, work in enumerate(steps):
                    found.add((array, step), work.cells)
            else:
                gather_stored(found, array, steps[0].source, steps)
        listed = []
        for array, steps in enumerate(self._steps):
            listed.append([found.cells((array, step)) for step in range(len(steps))])
            if job.looks:  # what was listed before, and is gone, is not to be read between
                for work, cells in zip(steps[:-1], listed[-1], strict=False):
                    work.target.store.erase_values(list(replace(work, cells=cells).unplanned()))
        return [list(map(Ranges.to_json, each)) for each in listed]

    def given(self, stage: int, job: int, found: Found) -> Any:
        if stage == 0:
            return None
        which, number = self.stages[stage].locate(job)
        array, step = self._grids[stage][which]
        ((start, stop),) = self.stages[stage].grids[which].box(number)
        return list(self._cells(found)[array][step].between(start, stop).pairs())

    def idle(self, stage: int, found: Found) -> Ranges:
        if stage == 0:
            return Ranges()
        cells = self._cells(found)
        busy = Ranges.union(
            cells[array][step].blocks(self.per_job[array][step], first=first)
            for array, step, _, first in self._jobs(stage)
        )
        return busy.missing(len(self.stages[stage]))

    def _cells(self, found: Found) -> list[list[Ranges]]:
        """Return which blocks of each step of each array have something in them."""
        listing = found[0][0]
        last: tuple[Any, list[list[Ranges]]] | None = self.__dict__.get("_listed")
        if last is None or last[0] is not listing:
            last = listing, [list(map(Ranges.from_json, each)) for each in listing]
            self.__dict__["_listed"] = last
        return last[1]

    # what the jobs saw

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        if (
            not 1 <= stage <= self._last
        ):  # what was stored since listing is seen by the jobs that should have been given it
            return
        for array, step, grid, first in self._jobs(stage):
            mine = jobs.between(first, first + len(grid)) if step == 0 else Ranges()
            if not mine:
                continue
            own = Ranges((start - first, stop - first) for start, stop in mine.pairs())
            work = self._steps[array][step]
            each = self.per_job[array][step]
            now = seen_now(work.source, work.grid.axes, own, per_job=each, surely=surely, note=None)
            yield from ((first + job, text) for job, text in now)

    def after(self, stage: int, jobs: Ranges) -> dict[int, Ranges]:
        """Return the jobs that read what these write, and so on; and what is stored is listed again."""
        if not 1 <= stage <= self._last:
            return {}
        found: dict[int, list[tuple[int, int]]] = {0: [(0, 1)]}
        for array, step, grid, first in self._jobs(stage):
            mine = jobs.between(first, first + len(grid))
            own = Ranges((start - first, stop - first) for start, stop in mine.pairs())
            for later in range(step, len(self._steps[array]) if own else step):
                if later > step:
                    own = self._meeting(array, later, own)
                others = {self._stage_of(array, later), *([self._last + 1] if self.compares else [])}
                for other in others - {stage}:
                    at = self._first_job(other, array, later)
                    found.setdefault(other, []).extend((at + start, at + stop) for start, stop in own.pairs())
        return {other: Ranges(pairs) for other, pairs in found.items()}

    def _first_job(self, stage: int, array: int, step: int) -> int:
        return next(first for *which, _, first in self._jobs(stage) if which == [array, step])

    def _meeting(self, array: int, step: int, jobs: Ranges) -> Ranges:
        """Return the jobs of a step that read what some of the step before write."""
        before, work = self._steps[array][step - 1 : step + 1]
        each, per_job = self.per_job[array][step - 1 : step + 1]
        cells = [(start * each, min(stop * each, before.grid.cells.count)) for start, stop in jobs.pairs()]
        if sum(stop - start for start, stop in cells) > _COUNTED:
            return Ranges([(0, -(-work.grid.cells.count // per_job))])
        boxes = (before.grid.box(cell) for start, stop in cells for cell in range(start, stop))
        return Ranges.of({number // per_job for box in boxes for number in work.grid.meeting(box)})

    # before and after

    def check(self) -> None:
        wanted = {plan.path: document_text(plan.source) for plan in self.plans}
        nodes = read_nodes(self.source.store, self.source.path)
        now = {
            path: document_text(node)
            for path, node in nodes.items()
            if path in wanted or not may_be_lost_text(self.source.store, node)
        }
        if now != wanted:
            path = min(path for path in {*now, *wanted} if now.get(path) != wanted.get(path))
            what = "is gone" if path not in now else "is new" if path not in wanted else "is another one"
            raise StaleSourceError(
                f"documents of {describe(self.source.store, self.source.path)} changed while it was converted (that of "
                f"/{path} {what}), so {self.target} stays unfinished: begin anew with overwrite=True"
            )

    def begin(self, plan: str) -> None:
        self.target.take("a plan needs an empty place")

    def is_finished(self, plan: str) -> bool:
        try:
            node = find_node(self.target.store, self.target.path, self.plans[0].target.zarr_format)
        except MetadataError:
            return False
        return node is not None and document_text(node) == document_text(self.plans[0].target)

    def may_be_finished(self, plan: str) -> bool:
        return holds_node(self.home)  # which held none when the plan was begun

    def finish(self, plan: str, done: Done) -> dict[str, Any]:
        compared = done.found.get(self._last + 1, {}) if self.compares else {}
        problems = [Problem(*each) for found in compared.values() for each in found]
        if 0 in done.found.get(0, {}) and (self.compares or done.round):
            for work, cells in zip(self._works, self._cells(done.found), strict=True):
                keys = replace(work, cells=cells[-1]).unplanned()
                if done.round:  # its source was erased since
                    self.target.store.erase_values(list(keys))
                    continue
                text = "key {}: it is stored, and nothing of the source is there"
                problems += [Problem(f"/{work.target.path}", text.format(key)) for key in islice(keys, MOST)]
        problems += self._other_sums(done.found)
        if problems:
            again = range(1 if any(self.blocks) else self._last + 1, len(self.stages))
            Records(self.home, plan).void(done, {stage: Ranges([(0, len(self.stages[stage]))]) for stage in again})
            text = f"{self.target} is not what was to be converted, so it stays unfinished"
            raise ConversionError(text, sorted(problems, key=str))
        self.target.publish({plan.path: plan.target for plan in self.plans})
        self._erase_between()
        self.target.unmark()
        made = (each[0] if isinstance(each, list) else each for each in done.found.get(self._last, {}).values())
        return {"objects": sum(made), "compared": self.compares}

    def _other_sums(self, found: Found) -> Iterator[Problem]:
        """Yield arrays of which a step has read other elements than the one before wrote."""
        sums = [[0] * len(steps) for steps in self._steps]
        for stage in range(1, self._last + 1):
            for job, each in found.get(stage, {}).items():
                if isinstance(each, list):
                    array, step = self._grids[stage][self.stages[stage].locate(job)[0]]
                    sums[array][step] = total([f"{sums[array][step]:x}", each[1]])
        for work, each in zip(self._works, sums, strict=True):
            if len(set(each)) > 1:
                text = "the sum of the elements that were read between is not that of those which were written there"
                yield Problem(f"/{work.target.path}", text)

    def _erase_between(self) -> None:
        """Erase what lies between, of other plans for the same, too."""
        if any(each is not None and each.between for each in self.blocks):
            store, folder = self._between
            store.erase_values(list(store.list_prefix(f"{folder}/")))

    def cancel(self, plan: str) -> None:
        if self.target.is_begun():
            for work in self._works:
                erase_stored(work.target)
            self._erase_between()
            self.target.unmark()

    # forecasts

    def forecast(self) -> Forecast:
        found = Forecast(0, 0, 0, 0)
        samples = []
        for steps, blocks in zip(self._steps, self.blocks, strict=True):
            source = steps[0].source
            stored, size = stored_sample(source)
            made = _made_of(steps, stored, size)
            several = made.text and len(self._steps) > 1
            samples.append(f"/{steps[-1].target.path}: {made.text}" if several else made.text)
            times = 1.0 if blocks is None else blocks.times_read
            reads = round(stored * times) * (2 if source.layout.sharding is not None and times > 1 else 1)
            reads += max(
                made.objects, _objects_of(steps[-1], stored)
            )  # of what is empty it is asked whether it is there
            looks = 0  # at each object when the plan is finished
            if not self.source.store.supports_listing:
                looks = prod(axis.count for axis in source.layout.grids.storage)
            found += Forecast(made.objects, reads + looks, round(size * times), made.nbytes)
            if self.compares:
                found += Forecast(0, reads, round(size * times) + made.nbytes, 0)
            for before, after in pairwise(steps):
                nbytes = round(full_size(before.target.layout) * made.share)
                found += passage(before.target, before.grid, after.grid, nbytes)
                if self.compares:
                    found += Forecast(0, before.count + pieces_read(before.grid, after.grid), 2 * nbytes, 0)
        told = [each for each in samples if each]
        more = [f"and of {len(told) - _MOST_TOLD} more arrays"] if len(told) > _MOST_TOLD else []
        return replace(found, sample="; ".join(told[:_MOST_TOLD] + more))

    # JSON

    def identity(self) -> dict[str, Any]:
        return {name: each for name, each in self.to_json().items() if name not in ("compares", "max_memory")}

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
            "blocks": [None if each is None else each.to_json() for each in self.blocks],
            "per_job": list(map(list, self.per_job)),
            "max_memory": self.max_memory,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> ConvertWork:
        if document["foreign"]:
            named = places.named["source"]
            url = whole_url(named, places.urls)
            source = Place(foreign_store(url, storage_options=places.storage_options), named["path"], url)
        else:
            source = places.source()
        home = places.target()
        plans = {each["path"]: _node_plan(each) for each in document["nodes"]}
        if not plans:
            raise PlanError("a plan of converting has nodes, and this one has none")
        made = Target(
            home.store,
            home.path,
            describe(source.store, source.path),
            document["request"],
            document["options"],
            zarr_format=next(iter(plans.values())).target.zarr_format,
        )
        nodes = tuple(consolidated(plans).values())
        arrays = [each for each in nodes if isinstance(each.target, ArrayMetadata)]
        blocks = tuple(None if each is None else Blocks.from_json(each) for each in document["blocks"])
        per_job, memory = tuple(map(tuple, document["per_job"])), document["max_memory"]
        if not len(blocks) == len(per_job) == len(arrays) or not all(map(_fit, arrays, blocks, per_job)):
            raise PlanError(f"a plan of converting {len(arrays)} arrays has blocks and numbers of blocks for them")
        if memory is not None and (type(memory) is not int or memory < 1):
            raise PlanError(f"max_memory is a number of bytes, not {memory!r}")
        return cls(source, nodes, made, home.url, bool(document["compares"]), blocks, per_job, memory)


def _fit(plan: NodePlan, blocks: Blocks | None, per_job: tuple[Any, ...]) -> bool:
    """Whether blocks, and how many a job makes, are such as an array can have."""
    between = () if blocks is None else blocks.between
    if len(per_job) != 1 + len(between) or not all(type(each) is int and each >= 1 for each in per_job):
        return False
    if blocks is None:
        return True
    assert isinstance(plan.target, ArrayMetadata)
    if blocks.counted:
        return all(len(each) == len(plan.target.shape) for each in (blocks.write, *(each.block for each in between)))
    shape = prepare_layout(plan.target).object_shape
    pairs = (
        [(each.block, each.inner) for each in between]
        if shape is None
        else [(blocks.write, shape), *((each.block, each.inner) for each in between)]
    )
    return shape is not None and all(
        len(whole) == len(part) == len(shape) and all(a % b == 0 for a, b in zip(whole, part, strict=True))
        for whole, part in pairs
    )


class StaleSourceError(PlanError, ConversionError):
    """The documents of the source are not what they were when it was planned."""

    def __init__(self, message: str) -> None:
        ConversionError.__init__(self, message, ())


def _node_plan(document: Mapping[str, Any]) -> NodePlan:
    path = document["path"]
    if not isinstance(path, str):
        raise PlanError(f"the path of a node is text, not {path!r}")
    return NodePlan(
        path=path,
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
    source: Place,
    plans: tuple[NodePlan, ...],
    target: Target,
    target_url: str | None,
    max_memory: int | str | None = None,
) -> ConvertWork:
    """Return the work, cut into jobs, without comparing. No I/O.

    Raises ``ValueError`` where ``max_memory`` is given, and a chunk or a new object of an array does not fit.
    """
    memory = None if max_memory is None else parse_bytes(max_memory)
    blocks, per_job = [], []
    for plan in plans:
        if isinstance(plan.source, ArrayMetadata):
            old, new = _arrays_of(source.store, source.path, target, plan)
            try:
                blocks.append(blocks_of(old, new, memory))
            except ValueError as error:
                raise ValueError(f"/{plan.path}: {error}") from None
            per_job.append(
                tuple(map(_per_job, steps_of(old, new, blocks[-1], folder_between(target.store, target.path), memory)))
            )
    return ConvertWork(source, plans, target, target_url, False, tuple(blocks), tuple(per_job), memory)


def _arrays_of(source: Store, path: str, target: Target, plan: NodePlan) -> tuple[ArrayHandle, ArrayHandle]:
    assert isinstance(plan.source, ArrayMetadata)
    assert isinstance(plan.target, ArrayMetadata)
    settings = ArrayConfig()  # whatever this process has set: objects have to be written whole
    old = ArrayHandle(source, join_path(path, plan.path), prepare_layout(plan.source), settings)
    new = ArrayHandle(target.store, join_path(target.path, plan.path), prepare_layout(plan.target), settings)
    return old, new


def _per_job(work: ArrayWork) -> int:
    """Return how many blocks of an array one job makes."""
    count = max(1, work.grid.cells.count)
    wanted = min(_JOB_BYTES // max(1, _nbytes(work) // count), _OBJECTS // _objects_in(work))
    return max(1, wanted, -(-count // _MOST_JOBS))


def _nbytes(work: ArrayWork) -> int:
    """Return bytes of all elements of the array."""
    return prod(work.target.layout.metadata.shape) * work.item_size


def _objects_in(work: ArrayWork) -> int:
    """Return how many objects are read or written for a block, about."""
    counts = [
        prod(axis.count for axis in each.layout.grids.storage) // max(1, work.grid.cells.count)
        for each in (work.source, work.target)
    ]
    return max(1, *counts)


def _memory(work: ArrayWork) -> int:
    chunks = work.source.layout.chunk_nbytes + work.target.layout.chunk_nbytes
    fetched = 0 if work.memory is None else fetched_ahead(work.memory)
    return work.copies * at_once(work) * work.portion_nbytes + 2 * thread_count() * chunks + fetched + OF_A_JOB


def _made_of(steps: Sequence[ArrayWork], stored: int, nbytes: int) -> Written:
    """Return what the target of some steps takes; ``stored`` objects of the source have ``nbytes`` bytes."""
    first, target = steps[0], steps[-1].target
    if first.behind is not None and all(isinstance(each, Crc32cCodec) for each in first.behind):
        more = sum(each.encoded_size(0) or 0 for each in first.behind)
        return carried_sample(first.source, target, stored, nbytes, more)
    change = partial(text_of, first) if first.as_text else None
    return encoded_sample(first.source, target, stored, nbytes, change)


def _objects_of(work: ArrayWork, stored: int) -> int:
    """Return how many objects of the target are made, about, of so many of the source."""
    total = prod(axis.count for axis in work.source.layout.grids.storage)
    return work.count if stored >= total else round(work.count * stored / max(1, total))


__all__ = ["ConvertWork", "StaleSourceError", "plan_jobs"]
