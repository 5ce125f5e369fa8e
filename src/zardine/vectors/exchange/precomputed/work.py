"""Exporting a level for neuroglancer as jobs: the first goes through it, others sort its parts, others write values.

A part of the level becomes a **run** in a hidden folder of the target: what it has for each shard, or for each bin of
values that are files. Who writes a bin reads what all runs have for it, so that nobody holds more than a part or a bin,
and each shard is written once. A run that is gone or damaged is made again by whoever needs it. The document comes
last: until then nothing counts. Each value is the same whoever writes it, and when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final

from zardine.errors import ArrayChangedError, CorruptionError, NodeExistsError, PlanError, UnsupportedError
from zardine.hierarchy.find import HIDDEN
from zardine.jobs.job import Job, JobDone, NotWantedError
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found
from zardine.stores.path import StorePath
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.exchange.level_cuts import LevelCuts, checked_cuts, row_bytes, state_of
from zardine.vectors.exchange.level_work import EXPORT, LevelWork, steps_of
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
from zardine.vectors.exchange.unfinished import discard, folder_of, left, note, noted
from zardine.vectors.outside import keeping, repeat, warn
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.reading.rereading import open_level

_LOOK, _SORT, _WRITE = range(3)
_PLAN: Final = "zardine_export"
"""The member of the document that says of which plan it is."""
_OURS: Final = re.compile(r"info|[0-9]+(:0(:0)?)?|[0-9a-f]*\.shard|[0-9]+(_[0-9]+)*", re.ASCII)
"""Names of files in such a folder."""
_COPIES: Final = 24
"""How often what a part has is in memory at a time, about: as it is stored and read, its entries, and a run of them."""
_OF_AN_ENTRY: Final = 200
"""Bytes of a piece of an object in a chunk, about, of those that are listed."""
_FIXED: Final = 512 * 2**20
"""Bytes of a bin as it is put together, and of the cells that are counted, about."""


@dataclass(frozen=True)
class PrecomputedWork(LevelWork):
    """A level of a store, to be written into a folder of neuroglancer."""

    kind: ClassVar[str] = "precomputed"

    sharded: bool | None
    annotation_type: str | None
    cuts: tuple[int, ...]
    """Where the parts of the level begin, and where the last one ends."""
    size: int
    """Bytes of all vertices and their attributes."""
    memory: int
    """Bytes that a job needs."""

    @property
    def count(self) -> int:
        """How many parts there are, and as many jobs that write."""
        return len(self.cuts) - 1

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        counts = {"look": 1, "sort": self.count, "write": self.count}
        return tuple(Stage(name, (BlockGrid.regular((count,), (1,)),), self.memory) for name, count in counts.items())

    def describe(self) -> str:
        return f"export {self.source} to {self._folder}, for neuroglancer"

    def job_bytes(self, stage: int, job: int) -> int:
        if stage == _LOOK:
            return self.size
        return self.size * (job + 1) // self.count - self.size * job // self.count

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

    @property
    def uses_findings(self) -> bool:
        return True

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
            tell_of_kinds(self.path, self.level, name)
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

    def begin(self, plan: str) -> None:
        store, own = self.target.store, self.hidden(plan)
        if own not in left(self.target, EXPORT):
            if what_is_at(self.target) != self.replaced:
                check_room(self.target, overwrite=False)
                raise PlanError(f"what was in {self._folder} when the export was planned is gone: plan it anew")
            note(self.target, EXPORT, plan, self.facts())
        if store.get(f"{own}{_BEGUN}") is None:
            discard(self.target, EXPORT, str(self.source), self.facts(), own)
            self._remove_values()
            store.set(f"{own}{_BEGUN}", b"{}")

    def _remove_values(self) -> None:
        """Remove what is of this format, the document first."""
        prefix = _prefix(self.target)
        ours = [
            each for each in _stored(self.target) if _OURS.fullmatch(each.rpartition("/")[2]) and each.count("/") < 2
        ]
        ours.sort(key=lambda name: name != "info")
        self.target.store.erase_values([f"{prefix}{name}" for name in ours])

    def is_finished(self, plan: str) -> bool:
        document = self._folder.document()
        return document is not None and document.get(_PLAN) == plan

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
            self._folder.write_document("info", {**own, _PLAN: plan})
        self._tidy(plan)

    def cancel(self, plan: str) -> None:
        if self.hidden(plan) in left(self.target, EXPORT):
            self._remove_values()
        self._tidy(plan)

    def _tidy(self, plan: str) -> None:
        self.target.store.erase_prefix(self.hidden(plan))

    def forecast(self) -> Forecast:
        return Forecast(3 * self.count, 8 * self.count + self.count**2, 3 * self.size, 4 * self.size)

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "sharded": self.sharded,
            "annotation_type": self.annotation_type,
            "cuts": list(self.cuts),
            "size": self.size,
            "memory": self.memory,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> PrecomputedWork:
        numbers = {name: document[name] for name in ("level", "size", "memory")}
        if not all(type(each) is int and each >= 0 for each in numbers.values()):
            raise PlanError("a plan of an export has numbers of a level and bytes")
        cuts = checked_cuts(document["cuts"])
        words = {name: document[name] for name in ("state", "format", "replaced", "annotation_type")}
        if not all(isinstance(each, str) or (each is None and name[0] in "ra") for name, each in words.items()):
            raise PlanError("a plan of an export names a format, and has digests")
        if document["format"] != cls.kind or document["sharded"] not in (None, True, False):
            raise PlanError(f"a plan of the kind {cls.kind} is of that format, and says whether there are shards")
        made = {**numbers, **words, "sharded": document["sharded"], "cuts": cuts}
        return cls(source=places.source(), target=places.target(), **made)


_BEGUN: Final = "begun.json"
"""Lies beside runs from when there is room for values."""


_OTHER: Final = "no document"


def what_is_at(target: Place) -> str | None:
    """Return the digest of the document at a target; ``None`` where nothing is stored, or by an unfinished export."""
    found: list[str] = []
    Folder(target.store, target.path).document(tell=found.append)
    return found[0] or (_OTHER if _stored(target) and not left(target, EXPORT) else None)


def _stored(target: Place) -> list[str]:
    """What is stored at a target, but what is hidden there."""
    prefix = _prefix(target)
    names = (key[len(prefix) :] for key in target.store.list_prefix(prefix))
    return [name for name in names if not name.startswith(f"{HIDDEN}/")]


def _prefix(target: Place) -> str:
    return f"{target.path}/" if target.path else ""


def check_room(target: Place, *, overwrite: bool) -> None:
    """Raise :class:`NodeExistsError` where something is stored at a target that is not to be replaced.

    What exports that were not finished have left there does not count.
    """
    if not overwrite and not left(target, EXPORT) and _stored(target):
        raise NodeExistsError(f"something is stored at {target} already: overwrite=True replaces it")


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
    with keeping():
        tell_of_kinds(path, level, str(target))
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
        replaced=what_is_at(target),
        sharded=sharded,
        annotation_type=annotation_type,
        cuts=tuple(cuts.pieces_of(AT_ONCE)),
        size=vertices * row,
        memory=_COPIES * (row + 32) * min(AT_ONCE, vertices) + _OF_AN_ENTRY * cuts.entries + _FIXED,
    )
    for each in left(target, EXPORT):  # the same was begun, and has removed the document that was there
        with suppress(ValueError, TypeError, KeyError):
            begun = Plan(replace(work, replaced=noted(target.store, each)["replaced"]))
            if folder_of(target, EXPORT, begun.id) == each:
                return begun
    check_room(target, overwrite=overwrite)
    return Plan(work)


__all__ = ["PrecomputedWork", "planned_precomputed"]
