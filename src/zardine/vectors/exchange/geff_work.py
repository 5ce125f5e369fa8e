"""Exporting a level as a graph of GEFF as jobs: the first goes through it, each of the others writes shards of arrays.

The first creates the arrays, and keeps what it has surveyed of a graph in a hidden folder of the target, so that the
others read only those cells that have rows of their shards. What the graph is comes last: until then there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from zardine.api.open import open_group
from zardine.errors import ArrayChangedError, CorruptionError, MetadataError, NodeNotFoundError
from zardine.jobs.job import Job, JobDone, NotWantedError
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found
from zardine.nodes.group import Group
from zardine.stores.path import StorePath
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.geff import KEY
from zardine.vectors.exchange.geff_out import KINDS, GeffLayout, GeffValues
from zardine.vectors.exchange.level_cuts import LevelCuts, row_bytes, state_of
from zardine.vectors.exchange.level_work import steps_of
from zardine.vectors.exchange.losses import LINES, check_store, warn_kind
from zardine.vectors.exchange.values_work import PLAN, ValuesWork, plan_of, what_is_at
from zardine.vectors.outside import keeping, repeat, warn
from zardine.vectors.reading.batches_of_links import LinkedCells
from zardine.vectors.reading.kept import kind_of
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.reading.rereading import open_level
from zardine.vectors.results import Geometry
from zardine.vectors.selecting import Selection
from zardine.vectors.storing.store import Level

_LOOK, _WRITE = range(2)
_COPIES = 24
"""How often what a part has is in memory at a time, about: read, and as rows of arrays that wait."""
_OF_AN_ENTRY = 200
"""Bytes of a piece of an object in a chunk, about, of those that are listed."""
_FIXED = 128 * 2**20


@dataclass(frozen=True)
class GeffWork(ValuesWork):
    """A level of a graph, skeletons or lines, to be written as a graph of GEFF."""

    kind: ClassVar[str] = "geff"
    document: ClassVar[str] = "zarr.json"

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        counts = {"look": 1, "write": self.count}
        return tuple(Stage(name, (BlockGrid.regular((each,), (1,)),), self.memory) for name, each in counts.items())

    def describe(self) -> str:
        return f"export {self.source} to {self.target}, a graph of GEFF"

    def is_ours(self, name: str) -> bool:
        return True

    @cached_property
    def _opened_once(self) -> Level:
        """The level; each job looks whether it is still that."""
        return self.opened()

    @cached_property
    def _geometry(self) -> str:
        return kind_of(self._opened_once.owner.root)

    # the jobs

    def given(self, stage: int, job: int, found: Found) -> Any:
        return found.get(_LOOK, {}).get(0) if stage == _WRITE else None

    def run(self, job: Job) -> JobDone:
        level = self.opened()
        self.check()
        step = steps_of(job, self.job_bytes(job.stage, job.number))
        done = self._look(step) if job.stage == _LOOK else self._write(job, step)
        if not level.is_current():
            raise ArrayChangedError(f"{self.source} was changed while it was exported: export it again")
        return done

    def _look(self, step: Step) -> JobDone:
        name = str(self.target)
        with keeping() as told:
            if self._geometry not in LINES:
                self._survey()
            layout = self._values.look(name, step)
        group = open_group(StorePath(self.target.store, self.target.path), mode="a", zarr_format=3)
        for each in ("nodes", "edges"):
            if each in group:  # of who was killed over this
                del group[each]
        layout.create(group)
        return JobDone(found={"layout": layout.to_json(), "told": told})

    def _write(self, job: Job, step: Step) -> JobDone:
        layout = GeffLayout.from_json(job.share()["layout"])
        if not job.is_wanted():
            raise NotWantedError("the plan was finished or cancelled meanwhile")
        return JobDone(found=list(self._values.write(self._group(), layout, job.number, step)))

    def _group(self) -> Group:
        return open_group(StorePath(self.target.store, self.target.path), mode="r+", zarr_format=3)

    @cached_property
    def _values(self) -> GeffValues:
        return GeffValues(self.path, self.level, self._part, self.count)

    def _part(self, number: int) -> Iterator[Geometry]:
        """What is in a part."""
        if self._geometry in LINES:
            chosen = self._line_cuts.chosen(*self.cuts[number : number + 2])
            asked: QueryOptions = {**chosen, "level": self.level}
            yield from Selection(self.path, self._geometry, **asked).batches(AT_ONCE)
            return
        cells = self._cells.runs(self.cuts)[number]
        for part, _ in self._cells.batches(self._opened_once, cells, AT_ONCE) if len(cells) else ():
            if part is not None:
                yield part

    @cached_property
    def _line_cuts(self) -> LevelCuts:
        cuts = LevelCuts(self.opened())
        if len(cuts) != self.cuts[-1]:
            raise self.changed()
        return cuts

    @property
    def _survey_key(self) -> str:
        return f"{self.hidden(self.plan_id)}cells.npz"

    def _survey(self) -> LinkedCells:
        found = LinkedCells.of(self._opened_once, self._geometry, AT_ONCE)
        self.target.store.set(self._survey_key, found.to_bytes())
        return found

    @cached_property
    def _cells(self) -> LinkedCells:
        data = self.target.store.get(self._survey_key)
        try:
            if data is not None:
                return LinkedCells.from_bytes(self._geometry, data)
        except Exception as error:  # what a library makes of damaged bytes
            warn(str(self.target), f"the level is surveyed again: {self._survey_key} is damaged ({error})")
        return self._survey()

    # before and after

    def is_finished(self, plan: str) -> bool:
        if self.target.store.get(self._document_key) is None:
            return False
        try:
            return bool(self._group().attrs.get(PLAN) == plan)
        except (MetadataError, NodeNotFoundError):  # of what is to be replaced
            return False

    @property
    def _document_key(self) -> str:
        return f"{self.target.path}/{self.document}" if self.target.path else self.document

    def finish(self, plan: str, done: Done) -> None:
        if not self.is_finished(plan):
            look, writes = done.found.get(_LOOK, {}).get(0), done.found.get(_WRITE, {})
            if look is None or len(writes) != self.count:
                raise CorruptionError(f"what was done for {self.target} is not known: cancel the export, begin again")
            layout = GeffLayout.from_json(look["layout"])
            written = [sum(each) for each in zip(*writes.values(), strict=True)]
            if written != [layout.nodes[-1], layout.edges[-1]]:
                raise CorruptionError(
                    f"{written} nodes and edges were written to {self.target}, where {self.source} has "
                    f"{[layout.nodes[-1], layout.edges[-1]]}: cancel the export, and begin again"
                )
            for text in look["told"]:
                repeat(text)
            self._group().attrs.update({KEY: layout.document, PLAN: plan})
        self.tidy(plan)

    def forecast(self) -> Forecast:
        return Forecast(4 * self.count, 12 * self.count, 3 * self.size, self.size)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> GeffWork:
        return cls(source=places.source(), target=places.target(), **cls.fields_of(document))


def planned_geff(source: Place, level: int, target: Place, *, overwrite: bool = False) -> Plan:
    """Return the plan of an export to GEFF; see :func:`zardine.vectors.plan_export`."""
    path = StorePath(source.store, source.path)
    opened = open_level(path, level)
    kept = ("vertex_attributes", "link_attributes")
    kind = check_store(path, str(target), level, KINDS, kept, crs=True, axes=True)
    warn_kind(kind, "graph", str(target))
    vertices, row, entries = opened.document.vertex_count, row_bytes(opened), 0
    if kind in LINES:
        lines = LevelCuts(opened)
        cuts, entries = tuple(lines.pieces_of(AT_ONCE)), lines.entries
    else:
        count = max(1, -(-vertices // AT_ONCE))
        cuts = tuple(vertices * each // count for each in range(count + 1))
    work = GeffWork(
        source=source,
        level=level,
        state=state_of(opened),
        format=GeffWork.kind,
        target=target,
        replaced=what_is_at(target, GeffWork.document),
        cuts=cuts,
        size=vertices * row,
        memory=_COPIES * (row + 32) * min(AT_ONCE, vertices) + _OF_AN_ENTRY * entries + _FIXED,
    )
    return plan_of(work, overwrite=overwrite)


__all__ = ["GeffWork", "planned_geff"]
