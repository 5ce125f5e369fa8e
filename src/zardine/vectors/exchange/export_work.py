"""Exporting a level to a folder as jobs: the first sees what files have, the others write a file each, or several.

Files are made in a hidden folder of the target, and are put into it when all are there, so that whoever is killed goes
on with those that are missing. Jobs record a checksum of each: one that is gone or damaged is made again. Where the
level, or what is asked for, is another one, so is the plan, and what an earlier one has left is removed when it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar, Final

from zardine.errors import ArrayChangedError, CorruptionError, PlanError
from zardine.hierarchy.find import HIDDEN
from zardine.hierarchy.place import find_place
from zardine.jobs.job import Job, JobDone, NotWantedError
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Found
from zardine.stores.file_calls import replace_file
from zardine.stores.file_seam import local_folder
from zardine.stores.path import StorePath
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.exchange.export_folder import (
    PARTS_DOCUMENT,
    digest_of,
    document_of,
    listed,
    part_name,
    sum_of_file,
    write_document,
)
from zardine.vectors.exchange.features_out import features_out
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.level_cuts import LevelCuts, checked_cuts, row_bytes, state_of
from zardine.vectors.exchange.level_parts import LevelParts
from zardine.vectors.exchange.level_work import EXPORT, LevelWork, steps_of
from zardine.vectors.exchange.losses import check_store
from zardine.vectors.exchange.object_files import ObjectFiles
from zardine.vectors.exchange.part_files import FileWriter
from zardine.vectors.exchange.scans import scan_out
from zardine.vectors.exchange.streamlines import streamlines_out
from zardine.vectors.exchange.tables_out import csv_out, feather_out
from zardine.vectors.exchange.targets import check_folder, writing
from zardine.vectors.exchange.trx import trx_out
from zardine.vectors.exchange.unfinished import discard, folder_of, left, note, noted, sum_of
from zardine.vectors.outside import keeping, needing, repeat, warn
from zardine.vectors.reading.rereading import open_level

WRITERS: Final[dict[str, FileWriter]] = {
    "csv": csv_out,
    "feather": feather_out,
    "las": scan_out,
    "laz": scan_out,
    "parquet": features_out,
    "tck": streamlines_out,
    "trk": streamlines_out,
    "trx": trx_out,
}
"""Formats of which several files can be read as one."""
OF_OBJECTS: Final = ("obj", "ply", "stl", "swc")
"""Those of which a folder has a file for each object."""

_FINISHING: Final = "finishing"
"""Lies beside the files from when the old ones are about to be removed."""
_LOOK, _WRITE = range(2)
_COPIES: Final = 12
"""How often the vertices of a time are in memory, about: as they are stored, read, put in order and written."""
_OF_AN_ENTRY: Final = 200
"""Bytes of a piece of an object in a chunk, about: of the object index, where it is put, and of whole objects."""
_FIXED: Final = 128 * 2**20
"""Bytes that libraries take beside, about."""


@dataclass(frozen=True)
class ExportWork(LevelWork):
    """A level of a store, to be written to files in the folder ``target``."""

    kind: ClassVar[str] = EXPORT

    vertices_per_file: int
    cuts: tuple[int, ...]
    """Where the pieces of the level begin that jobs write, and where the last one ends."""
    vertices: int
    size: int
    """Bytes of all vertices and their attributes."""
    memory: int
    """Bytes that a job needs."""

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return len(self.cuts) - 1

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        grids = (BlockGrid.regular((1,), (1,)), BlockGrid.regular((self.count,), (1,)))
        return tuple(Stage(name, (grid,), self.memory) for name, grid in zip(("look", "write"), grids, strict=True))

    def describe(self) -> str:
        files = f"a {self.format} file for each object" if self._are_objects else f"{self.count} {self.format} files"
        return f"export {self.source} to {files} in {self.folder}"

    def job_bytes(self, stage: int, job: int) -> int:
        if stage == _LOOK:
            return self.size
        return self.size * (job + 1) // self.count - self.size * job // self.count

    @property
    def folder(self) -> Path:
        """Where the files go."""
        folder = local_folder(self.target.store)
        assert folder is not None
        return Path(folder)

    def _made(self, plan: str) -> Path:
        """Where they are made."""
        return self.folder / self.hidden(plan)

    @property
    def _ending(self) -> str:
        return f".{self.format}"

    @cached_property
    def _cuts(self) -> LevelCuts:
        cuts = LevelCuts(self.opened(), whole_objects=self._are_objects)
        if len(cuts) != self.cuts[-1]:
            raise self.changed()
        return cuts

    # the jobs

    @property
    def uses_findings(self) -> bool:
        return True

    def given(self, stage: int, job: int, found: Found) -> Any:
        return found.get(_LOOK, {}).get(0) if stage == _WRITE else None

    def run(self, job: Job) -> JobDone:
        self.check()
        step = steps_of(job, self.job_bytes(job.stage, job.number))
        if job.stage == _LOOK:
            return self._look(step)
        return self._write_objects(job, step) if self._are_objects else self._write(job, step)

    def _look(self, step: Step) -> JobDone:
        with keeping() as told:
            if self._are_objects:
                parts = LevelParts[Any](self.path, self.level, step, 1)
                layout = self._objects.look(parts)
            else:
                writer, is_kept = WRITERS[self.format], self.count == 1 or not self._cuts.are_lines
                parts = LevelParts[Any](self.path, self.level, step, writer.ways - 1, in_order=is_kept)
                layout = writer.look(self.path, self.folder / f"*{self._ending}", self.level, parts)
        return JobDone(found={"layout": layout, "told": told, "there": layout.get("files", parts.seen)})

    def _write(self, job: Job, step: Step) -> JobDone:
        writer, layout = WRITERS[self.format], job.share()["layout"]
        chosen = self._cuts.chosen(*self.cuts[job.number : job.number + 2])
        parts = LevelParts[Any](self.path, self.level, step, 1, chosen, self.vertices // self.count)
        target = self._made(self.plan_id) / part_name(job.number, self._ending)
        with keeping() as told, writing(target) as place:
            writer.write(self.path, place, parts, layout)
            seen = _sum_of([place])
            if not job.is_wanted():
                raise NotWantedError("the plan was finished or cancelled meanwhile")
        return JobDone(seen, {"told": told, "there": parts.seen})

    def _write_objects(self, job: Job, step: Step) -> JobDone:
        level, place = self.opened(), self._place(self.plan_id, job.number)
        rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            with needing(self.folder):
                count = self._objects.write(place, self._ids_of(job.number), job.share()["layout"], step)
            if not level.is_current():
                raise ArrayChangedError(f"{self.source} was changed while it was exported: export it again")
            if not job.is_wanted():
                raise NotWantedError("the plan was finished or cancelled meanwhile")
        except BaseException:
            rmtree(place, ignore_errors=True)
            raise
        return JobDone(_sum_of(self._files_of(self.plan_id, job.number)), {"told": [], "there": count})

    @property
    def _are_objects(self) -> bool:
        return self.format in OF_OBJECTS

    @cached_property
    def _objects(self) -> ObjectFiles:
        return ObjectFiles(self.path, self.level, self.folder, self._ending)

    def _ids_of(self, number: int) -> Collection[int]:
        """The objects of a piece."""
        return self._cuts.chosen(*self.cuts[number : number + 2])["object_ids"] or ()

    def _place(self, plan: str, number: int) -> Path:
        """Where the files of a piece are made."""
        return self._made(plan) / f"objects-{number:05}" if self._are_objects else self._made(plan)

    def _files_of(self, plan: str, number: int) -> list[Path]:
        """The files of a piece, where they are made."""
        if not self._are_objects:
            return [self._made(plan) / part_name(number, self._ending)]
        return [self._place(plan, number) / name for name in self._objects.names(self._ids_of(number))]

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        for number in jobs if stage == _WRITE else ():
            files = self._files_of(self.plan_id, number)
            try:
                found = _sum_of(files)
            except OSError:
                found = "gone"
            if surely:  # it was found not to be what the job has written
                what = files[0] if len(files) == 1 else files[0].parent if files else ""
                told = "gone" if found == "gone" else "damaged"
                warn(self.folder, f"part {number} is written again: {what} is {told}")
            yield number, found

    # before and after

    def begin(self, plan: str) -> None:
        folder = self.folder
        if not (self._made(plan) / _FINISHING).exists() and digest_of(folder) != self.replaced:
            check_room(folder, self.format, overwrite=False)
            raise PlanError(f"what was in {folder} when the export was planned is gone: plan it anew")
        discard(self.target, self.kind, str(self.source), self.facts(), self.hidden(plan))
        self._made(plan).mkdir(parents=True, exist_ok=True)
        note(self.target, self.kind, plan, self.facts())

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "vertices_per_file": self.vertices_per_file}

    def is_finished(self, plan: str) -> bool:
        document = document_of(self.folder)
        return document is not None and document.get("plan") == plan

    def finish(self, plan: str, done: Done) -> None:
        if not self.is_finished(plan):
            look, jobs = done.found.get(_LOOK, {}).get(0), done.found.get(_WRITE, {})
            there = sum(int(each["there"]) for each in jobs.values())
            if look is None or len(jobs) != self.count or there != look["there"]:
                what = "objects" if self._are_objects else "vertices"
                raise CorruptionError(
                    f"the files in {self._made(plan)} have {there} {what} of {self.source}, which has "
                    f"{None if look is None else look['there']}: cancel the export, and begin again"
                )
            for text in dict.fromkeys([*look["told"], *(text for each in jobs.values() for text in each["told"])]):
                repeat(text)
            (self._made(plan) / _FINISHING).touch()
            (self.folder / PARTS_DOCUMENT).unlink(missing_ok=True)
            made = {each.name: each for number in range(self.count) for each in self._files_of(plan, number)}
            for name in listed(self.folder):
                if name not in made or made[name].exists():
                    (self.folder / name).unlink()
            for name, place in made.items():
                if place.exists():  # else it was moved before this was cut off
                    replace_file(place, self.folder / name)
            sizes = {name: (self.folder / name).stat().st_size for name in made}
            facts = {"format": self.format, "vertices": self.vertices, "level": self.level, "plan": plan}
            write_document(self.folder, {**facts, "files": sizes})
        self._tidy(plan)

    def cancel(self, plan: str) -> None:
        self._tidy(plan)

    def _tidy(self, plan: str) -> None:
        self.target.store.erase_prefix(self.hidden(plan))
        for place in (self.folder / HIDDEN / self.kind, self.folder / HIDDEN / "jobs", self.folder / HIDDEN):
            with suppress(OSError):
                place.rmdir()

    def forecast(self) -> Forecast:
        return Forecast(self.count, 4 * self.count, 2 * self.size, self.size)

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "vertices_per_file": self.vertices_per_file,
            "cuts": list(self.cuts),
            "vertices": self.vertices,
            "size": self.size,
            "memory": self.memory,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> ExportWork:
        names = ("level", "vertices_per_file", "vertices", "size", "memory")
        numbers = {name: document[name] for name in names}
        cuts, digests = checked_cuts(document["cuts"]), (document["state"], document["replaced"] or "")
        if not all(type(each) is int and each >= 0 for each in numbers.values()) or not numbers["vertices_per_file"]:
            raise PlanError("a plan of an export has numbers of a level, vertices and bytes")
        known = (*WRITERS, *OF_OBJECTS)
        if document["format"] not in known or not all(isinstance(each, str) for each in digests):
            raise PlanError(f"a plan of an export names one of the formats {', '.join(known)}, and has digests")
        target = places.target()
        if local_folder(target.store) is None or target.path:
            raise PlanError("a plan of an export writes to a folder of this machine")
        more = {name: document[name] for name in ("state", "format", "replaced")}
        return cls(source=places.source(), target=target, cuts=cuts, **numbers, **more)


def _sum_of(files: Sequence[Path]) -> str:
    """What a job says of the files that it has written. Raises ``OSError`` where one is gone."""
    sums = [sum_of_file(each) for each in files]
    return sums[0] if len(sums) == 1 else sum_of(each.encode() for each in sums)


def check_room(folder: Path, name: str, *, overwrite: bool) -> None:
    """Raise where files of a format cannot go to a folder; see :func:`~.targets.check_folder`."""
    check_folder(folder, f".{name}", overwrite, besides=(HIDDEN, PARTS_DOCUMENT))


def planned_export(source: Place, level: int, name: str, folder: Path, count: int, overwrite: bool) -> Plan:
    """Return the plan of files, or of jobs, of about ``count`` vertices; see :func:`zardine.vectors.plan_export`."""
    check_room(folder, name, overwrite=True)
    opened = open_level(StorePath(source.store, source.path), level)
    are_objects = name in OF_OBJECTS
    if are_objects:
        with keeping():  # it is told by the first job
            kinds = ("skeleton" if name == "swc" else "mesh",)
            check_store(StorePath(source.store, source.path), folder, level, kinds, ())
    target = Place.of(*find_place(str(folder), mode="a"))
    vertices, row, cuts = opened.document.vertex_count, row_bytes(opened), LevelCuts(opened, whole_objects=are_objects)
    work = ExportWork(
        source=source,
        level=level,
        state=state_of(opened),
        format=name,
        target=target,
        replaced=digest_of(folder),
        vertices_per_file=count,
        cuts=tuple(cuts.pieces_of(count)),
        vertices=vertices,
        size=vertices * row,
        memory=_COPIES * row * min(AT_ONCE, vertices) + _OF_AN_ENTRY * cuts.entries + _FIXED,
    )
    for each in left(target, work.kind):
        if (folder / each / _FINISHING).exists():  # the same was cut off as it put files there
            with suppress(ValueError, TypeError, KeyError):
                begun = Plan(replace(work, replaced=noted(target.store, each)["replaced"]))
                if folder_of(target, work.kind, begun.id) == each:
                    return begun
    check_room(folder, name, overwrite=overwrite)
    return Plan(work)


__all__ = ["WRITERS", "ExportWork", "planned_export"]
