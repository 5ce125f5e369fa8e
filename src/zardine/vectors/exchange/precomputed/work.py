"""Exporting a level for neuroglancer as jobs: the first goes through it, others sort its parts, others write values.

A part of the level becomes a **run** in a hidden folder of the target: what it has for each shard, or for each bin of
values that are files. Who writes a bin reads what all runs have for it, so that nobody holds more than a part or a bin,
and each shard is written once. A run that is gone or damaged is made again by whoever needs it. The document comes
last: until then nothing counts. Each value is the same whoever writes it, and when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final

from zardine.errors import ArrayChangedError, CorruptionError, MetadataError, PlanError, UnsupportedError
from zardine.jobs.job import Job, JobDone, NotWantedError
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found
from zardine.stores.path import StorePath
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.exchange.level_cuts import LevelCuts, row_bytes, state_of
from zardine.vectors.exchange.level_work import steps_of
from zardine.vectors.exchange.precomputed.entries import Bins, Entries, Run, bin_of_run
from zardine.vectors.exchange.precomputed.folder import Folder, write_index
from zardine.vectors.exchange.precomputed.writing import (
    AnyLayout,
    Values,
    are_annotations,
    kind_of,
    layout_of,
    tell_of_kinds,
    values_of,
)
from zardine.vectors.exchange.values_work import PLAN, ValuesWork, plan_of, what_is_at
from zardine.vectors.outside import keeping, repeat, warn
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.reading.rereading import open_level

_LOOK, _SORT, _WRITE = range(3)
_OURS: Final = re.compile(r"info|[0-9]+(:0(:0)?)?|[0-9a-f]*\.shard|[0-9]+(_[0-9]+)*", re.ASCII)
"""Names of files in such a folder."""
_COPIES: Final = 24
"""How often what a part has is in memory at a time, about: as it is stored and read, its entries, and a run of them."""
_OF_AN_ENTRY: Final = 200
"""Bytes of a piece of an object in a chunk, about, of those that are listed."""
_FIXED: Final = 512 * 2**20
"""Bytes of a bin as it is put together, and of the cells that are counted, about."""


@dataclass(frozen=True)
class PrecomputedWork(ValuesWork):
    """A level of a store, to be written into a folder of neuroglancer."""

    kind: ClassVar[str] = "precomputed"
    document: ClassVar[str] = "info"

    sharded: bool | None
    annotation_type: str | None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        counts = {"look": 1, "sort": self.count, "write": self.count}
        return tuple(Stage(name, (BlockGrid.regular((count,), (1,)),), self.memory) for name, count in counts.items())

    def describe(self) -> str:
        return f"export {self.source} to {self._folder}, for neuroglancer"

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "sharded": self.sharded, "annotation_type": self.annotation_type}

    @property
    def _folder(self) -> Folder:
        return Folder(self.target.store, self.target.path)

    @cached_property
    def _pieces(self) -> list[QueryOptions]:
        cuts = LevelCuts(self.opened(), whole_objects=not are_annotations(self.path))
        if len(cuts) != self.cuts[-1]:
            raise self.changed()
        return [cuts.chosen(start, end) for start, end in pairwise(self.cuts)]

    @cached_property
    def _values(self) -> Values:
        return values_of(self.path, self.level, self.annotation_type)

    # the jobs

    def given(self, stage: int, job: int, found: Found) -> Any:
        return None if stage == _LOOK else found.get(_LOOK, {}).get(0)

    def run(self, job: Job) -> JobDone:
        level = self.opened()
        self.check()
        done = self._look(job) if job.stage == _LOOK else self._do(job, layout_of(self._values, job.share()["layout"]))
        if not level.is_current():
            raise ArrayChangedError(f"{self.source} was changed while it was exported: export it again")
        return done

    def _do(self, job: Job, layout: AnyLayout) -> JobDone:
        if job.stage == _WRITE:
            return self._write(job, layout)
        self._sort(job.number, layout)
        return JobDone()

    def _look(self, job: Job) -> JobDone:
        name = str(self._folder)
        with keeping() as told:
            step = steps_of(job, self.job_bytes(_LOOK, 0))
            layout = self._values.look(self._pieces, step, lambda text: warn(name, text))
        sharded = self.sharded if kind_of(self.path) != "mesh" else False
        stored = replace(layout, tables=tuple(each.stored(sharded) for each in layout.tables))
        return JobDone(found={"layout": stored.to_json(), "told": told})

    def _run_key(self, number: int) -> str:
        return f"{self.hidden(self.plan_id)}run-{number:05}"

    def _sort(self, number: int, layout: AnyLayout) -> None:
        values: Any = self._values
        run = Run(Bins(layout.tables))
        for table, entries in values.entries(values.part(self._pieces[number]), number, layout):
            run.add(table, entries)
        self.target.store.set(self._run_key(number), run.to_bytes())

    def _write(self, job: Job, layout: AnyLayout) -> JobDone:
        bins, folder, written = Bins(layout.tables), self._folder, [0] * len(layout.tables)
        mine = range(job.number, int(bins.starts[-1]), self.count)
        step = steps_of(job, self.job_bytes(_WRITE, job.number))
        for done, number in enumerate(mine, 1):
            table, about = bins.table(number)
            entries = Entries.joined([each for part in range(self.count) for each in self._bin(part, number, layout)])
            if not job.is_wanted():
                raise NotWantedError("the plan was finished or cancelled meanwhile")
            values = list(about.values(entries.in_order()))
            write_index(folder, about.index, values)
            written[table] += len(values)
            step(done / len(mine))
        return JobDone(found=written)

    def _bin(self, part: int, number: int, layout: AnyLayout) -> Iterator[Entries]:
        """The entries that a part has of a bin."""
        key, store = self._run_key(part), self.target.store

        def read(start: int, size: int) -> bytes:
            found = store.read(key, ((start, size),))
            if found is None:
                raise CorruptionError("the run is gone")
            return bytes(found.parts[0])

        try:
            found = bin_of_run(read, number)
        except CorruptionError as error:
            warn(str(self._folder), f"part {part} is sorted again: {error} ({key} of {store})")
            self._sort(part, layout)
            found = bin_of_run(read, number)
        if found is not None:
            yield found

    # before and after

    def is_ours(self, name: str) -> bool:
        return name.count("/") < 2 and _OURS.fullmatch(name.rpartition("/")[2]) is not None

    def is_finished(self, plan: str) -> bool:
        try:
            document = self._folder.document()
        except MetadataError:  # of what is to be replaced
            return False
        return document is not None and document.get(PLAN) == plan

    def finish(self, plan: str, done: Done) -> None:
        if not self.is_finished(plan):
            look, writes = done.found.get(_LOOK, {}).get(0), done.found.get(_WRITE, {})
            if look is None or len(writes) != self.count:
                raise CorruptionError(f"what was done for {self._folder} is not known: cancel the export, begin again")
            layout = layout_of(self._values, look["layout"])
            written = [sum(each) for each in zip(*writes.values(), strict=True)]
            wanted = layout.tables[0].count
            if written[0] != wanted:
                raise CorruptionError(
                    f"{written[0]} values were written to {self._folder}, where {self.source} has {wanted}: cancel the "
                    "export, and begin again"
                )
            for text in look["told"]:
                repeat(text)
            documents: dict[str, dict[str, Any]] = self._values.documents(layout)  # type: ignore[arg-type]
            own = documents.pop("info")
            for name, each in documents.items():
                self._folder.write_document(name, each)
            self._folder.write_document("info", {**own, PLAN: plan})
        self.tidy(plan)

    def forecast(self) -> Forecast:
        return Forecast(3 * self.count, 8 * self.count + self.count**2, 3 * self.size, 4 * self.size)

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "sharded": self.sharded, "annotation_type": self.annotation_type}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> PrecomputedWork:
        sharded, kind = document["sharded"], document["annotation_type"]
        if not (sharded is None or isinstance(sharded, bool)) or not isinstance(kind or "", str):
            raise PlanError(f"a plan of the kind {cls.kind} says whether there are shards, and of what kind values are")
        more = {"sharded": sharded, "annotation_type": kind}
        return cls(source=places.source(), target=places.target(), **cls.fields_of(document), **more)


def planned_precomputed(
    source: Place,
    level: int,
    target: Place,
    *,
    sharded: bool | None = None,
    annotation_type: str | None = None,
    overwrite: bool = False,
) -> Plan:
    """Return the plan of an export for neuroglancer; see :func:`zardine.vectors.plan_export`."""
    path = StorePath(source.store, source.path)
    opened = open_level(path, level)
    tell_of_kinds(path, level, str(Folder(target.store, target.path)))
    values_of(path, level, annotation_type)
    if sharded and kind_of(path) == "mesh":
        raise UnsupportedError(f"{target}: meshes of one resolution are files of their own: leave sharded out")
    cuts, row = LevelCuts(opened, whole_objects=not are_annotations(path)), row_bytes(opened)
    vertices = opened.document.vertex_count
    work = PrecomputedWork(
        source=source,
        level=level,
        state=state_of(opened),
        format=PrecomputedWork.kind,
        target=target,
        replaced=what_is_at(target, PrecomputedWork.document),
        sharded=sharded,
        annotation_type=annotation_type,
        cuts=tuple(cuts.pieces_of(AT_ONCE)),
        size=vertices * row,
        memory=_COPIES * (row + 32) * min(AT_ONCE, vertices) + _OF_AN_ENTRY * cuts.entries + _FIXED,
    )
    return plan_of(work, overwrite=overwrite)


__all__ = ["PrecomputedWork", "planned_precomputed"]
