"""Importing a file as jobs: each reads a part and keeps it in a hidden folder of the target; then all are written.

What was read stays there until the store counts, so that whoever is killed goes on with the parts that are missing. A
part has a checksum, and jobs record it: one that is gone or damaged is read again. Where the file, or what is asked
for, is another one, so is the plan, and what an earlier one has left is removed when it begins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from zardine.engine.documents import get_document
from zardine.errors import DataError, MetadataError, PlanError
from zardine.hierarchy.find import document_key, find_node, taken
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Work
from zardine.metadata.documents import GroupMetadata
from zardine.stores.path import StorePath
from zardine.vectors.changing.creating import REPLACED, complete_all, erase_leftover
from zardine.vectors.exchange.arrow_tables import FeatherTable, ParquetTable, is_plain_parquet
from zardine.vectors.exchange.csv_tables import CsvTable
from zardine.vectors.exchange.feature_parts import FeatureParts
from zardine.vectors.exchange.file_parts import FORM, FileParts, Part, Step, Whole
from zardine.vectors.exchange.geff import GeffParts
from zardine.vectors.exchange.joined_files import joined
from zardine.vectors.exchange.meshes import ObjParts, PlyParts, StlParts
from zardine.vectors.exchange.parquet_parts import ParquetParts, parquet_parts
from zardine.vectors.exchange.precomputed.reading import precomputed_parts
from zardine.vectors.exchange.scans import ScanParts
from zardine.vectors.exchange.sources import Source, SourceFile, SourceFolder, source_of
from zardine.vectors.exchange.streamlines import TckParts, TrkParts
from zardine.vectors.exchange.swc import SwcParts
from zardine.vectors.exchange.table_columns import ROLES
from zardine.vectors.exchange.tables import table_parts
from zardine.vectors.exchange.trx import JoinedTrx, TrxParts
from zardine.vectors.exchange.unfinished import discard, folder_of, note, sum_of
from zardine.vectors.outside import keeping, repeat, warn
from zardine.vectors.storing.store import ORIGIN

_plain_parquet = table_parts((".parquet",), ParquetTable)
_geo_parquet = joined((".parquet",), parquet_parts, ParquetParts)


def _parquet(source: Path, options: Mapping[str, Any], at_once: int, outline: Any = None) -> FileParts:
    """Open GeoParquet; or columns, where there are no geometries or where options say which are coordinates."""
    is_table = not {*ROLES}.isdisjoint(options) or isinstance(outline, dict) or is_plain_parquet(source)
    return (_plain_parquet if is_table else _geo_parquet)(source, options, at_once, outline)


PARTS: Final[dict[str, Callable[[Any, Mapping[str, Any], int, Any], FileParts]]] = {
    "csv": table_parts((".csv", ".tsv"), CsvTable),
    "feather": table_parts((".arrow", ".feather"), FeatherTable),
    "geff": GeffParts,
    "geojson": FeatureParts,
    "gpkg": FeatureParts,
    "las": joined((".las",), ScanParts),
    "laz": joined((".laz",), ScanParts),
    "obj": ObjParts,
    "parquet": _parquet,
    "parquet-table": _plain_parquet,
    "ply": PlyParts,
    "precomputed": precomputed_parts,
    "shp": FeatureParts,
    "stl": StlParts,
    "swc": SwcParts,
    "tck": joined((".tck",), TckParts),
    "trk": joined((".trk",), TrkParts),
    "trx": joined((".trx",), TrxParts, join=JoinedTrx, unpacked="header.json"),
}
"""Formats whose files, or folders, can be read in parts, in any order."""
_OUTLINED: Final = ("csv", "feather", "geojson", "gpkg", "parquet", "parquet-table", "shp")
"""Those of them whose plan says what the columns of all parts become."""
FOLDERS: Final = ("geff", "precomputed")
"""Those of them that are folders of values, in any store."""

_step: ContextVar[Step] = ContextVar("step", default=lambda share: None)


@contextmanager
def telling(step: Step) -> Iterator[None]:
    """Call ``step`` with the share that is written, where a plan is finished within the block."""
    token = _step.set(step)
    try:
        yield
    finally:
        _step.reset(token)


@dataclass(frozen=True)
class ImportWork(Work):
    """A file, a folder of files, or one of values, to be written to a new store at ``target``."""

    kind: ClassVar[str] = "import"

    source: Source
    format: str
    target: Place
    options: Mapping[str, Any]
    """Of the writer, as JSON."""
    replaced: str | None
    """Digest of the document of the node that the store takes the place of; ``None``: the place is empty."""
    at_once: int
    """Vertices of a part, about."""
    count: int
    """How many parts there are."""
    vertices: int
    memory: int
    """Bytes that a job needs."""
    outline: Any = None
    """Where the parts are, if the file does not say that."""

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return (Stage("read", (BlockGrid.regular((self.count,), (1,)),), self.memory),)

    @property
    def home(self) -> Place:
        return self.target

    def places(self) -> tuple[Place, ...]:
        return (self.target,) if isinstance(self.source, SourceFile) else (self.source.place, self.target)

    def describe(self) -> str:
        return f"import {self.source.name} to {self.target}"

    def job_bytes(self, stage: int, job: int) -> int:
        return self.source.size * (job + 1) // self.count - self.source.size * job // self.count

    @cached_property
    def _parts(self) -> FileParts:
        parts = self._opened()
        if isinstance(self.source, SourceFolder):
            self._check_seen(parts)
        return parts

    def _opened(self) -> FileParts:
        return PARTS[self.format](self.source.given, self.options, self.at_once, self.outline)

    def _check_seen(self, parts: Any) -> None:
        if (parts.seen, parts.count) != (self.source.digest, self.count):
            raise PlanError(f"{self.source.name} has changed since its import was planned: plan it anew")

    def _folder(self, plan: str) -> str:
        return folder_of(self.target, self.kind, plan)

    def _key(self, plan: str, number: int) -> str:
        return f"{self._folder(plan)}part-{number}"

    @cached_property
    def _plan(self) -> str:
        return Plan(self).id

    # the jobs

    def run(self, job: Job) -> JobDone:
        if isinstance(self.source, SourceFile):
            self.check()
        key = self._key(self._plan, job.number)
        store = job.guarded(self.target.store, [key])
        with keeping() as told:
            piece = self._parts.read(job.number)
        data = Part.of(piece, self.options.get("dtype"), f"{self.source.name}, part {job.number}", told).to_bytes()
        store.set(key, data)
        job.advance(self.job_bytes(0, job.number))
        return JobDone(sum_of((data,)))

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        for number in jobs:
            key = self._key(self._plan, number)
            data = self.target.store.get(key)
            if surely:  # it was found not to be what the job has written
                what = "gone" if data is None else "damaged"
                warn(self.source.name, f"part {number} is read again: {key} of {self.target.store} is {what}")
            yield number, "gone" if data is None else sum_of((bytes(data),))

    # before and after

    def check(self) -> None:
        name = self.source.name
        try:
            if isinstance(self.source, SourceFile):
                if SourceFile.of(self.source.given) != self.source:
                    raise PlanError(f"{name} has changed since its import was planned: plan it anew")
            else:
                with keeping():
                    self._check_seen(self._opened())
        except (OSError, DataError, MetadataError) as error:
            raise PlanError(f"{name} cannot be read any more ({error}): plan its import anew") from None

    def begin(self, plan: str) -> None:
        store, path = self.target.store, self.target.path
        node = find_node(store, path)
        if document_digest(self.target) != self.replaced:
            if node is not None:
                raise taken(store, path, node, REPLACED)
            raise PlanError(f"what was at {self.target} when the import was planned is gone: plan it anew")
        discard(self.target, self.kind, self.source.name, self._facts(), self._folder(plan))
        note(self.target, self.kind, plan, self._facts())

    def _facts(self) -> dict[str, Any]:
        source = {"path": self.source.name, **self.source.to_json()}
        return {"source": source, "options": {"format": self.format, **self.options}}

    def is_finished(self, plan: str) -> bool:
        node = find_node(self.target.store, self.target.path, 3)
        return isinstance(node, GroupMetadata) and node.attributes.get(ORIGIN) == plan

    def finish(self, plan: str, done: Done) -> None:
        store, path = self.target.store, self.target.path
        if self.is_finished(plan):
            complete_all(store, path)
        else:
            whole = Whole.stored(store, [self._key(plan, number) for number in range(self.count)])
            for text in whole.told:
                repeat(text)
            options = {name: value for name, value in self.options.items() if name != "dtype"}
            more = {"overwrite": self.replaced is not None}
            self._parts.store(StorePath(store, path), whole, {**options, **more}, _step.get(), plan)
        store.erase_prefix(self._folder(plan))

    def cancel(self, plan: str) -> None:
        self.target.store.erase_prefix(self._folder(plan))
        erase_leftover(self.target.store, self.target.path)

    def forecast(self) -> Forecast:
        size = self.source.size
        return Forecast(self.count, 4 * self.count, 4 * size, 2 * size)

    # JSON

    def identity(self) -> dict[str, Any]:
        return {"form": FORM, **{name: each for name, each in self.to_json().items() if name != "memory"}}

    def to_json(self) -> dict[str, Any]:
        places = {"source": self.source.place.to_json()} if isinstance(self.source, SourceFolder) else {}
        return {
            "places": {**places, "target": self.target.to_json()},
            "source": self.source.to_json(),
            "format": self.format,
            "options": dict(self.options),
            "replaced": self.replaced,
            "at_once": self.at_once,
            "count": self.count,
            "vertices": self.vertices,
            "memory": self.memory,
            "outline": self.outline,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> ImportWork:
        numbers = [document[name] for name in ("at_once", "count", "vertices", "memory")]
        if not all(type(each) is int and each >= 0 for each in numbers) or min(numbers[:2]) < 1:
            raise PlanError("a plan of an import has numbers of vertices, parts and bytes")
        if not isinstance(document["format"], str) or document["format"] not in PARTS:
            raise PlanError(f"a plan of an import names one of the formats {', '.join(PARTS)}")
        source = source_of(document["source"], places)
        if isinstance(source, SourceFolder) != (document["format"] in FOLDERS):
            raise PlanError(f"a plan of an import has a place for the folders of {', '.join(FOLDERS)}, else a file")
        options, outline = dict(document["options"]), document["outline"]
        outlines = outline if isinstance(outline, list) and outline and isinstance(outline[0], list) else []
        files = outlines if outlines and all(outlines) and isinstance(outlines[0][0], list) else [outlines]
        listed = all(isinstance(each, list) and all(map(_is_place, each)) for each in files)
        listed = listed and sum(len(each) - 1 for each in files) == numbers[1]
        is_scheme = isinstance(outline, dict) and document["format"] in _OUTLINED
        if outline is not None and not is_scheme and not listed:
            raise PlanError("a plan of an import says of each part where it begins")
        at_once, count, vertices, memory = numbers
        made = source, document["format"], places.target(), options, document["replaced"]
        return cls(*made, at_once, count, vertices, memory, outline)


def _is_place(numbers: Any) -> bool:
    """Whether these are bytes, lines and vertices."""
    return isinstance(numbers, list) and len(numbers) == 3 and all(type(each) is int and each >= 0 for each in numbers)


def document_digest(place: Place) -> str | None:
    """Return the digest of the document of the node at a place; ``None`` where there is none."""
    node = find_node(place.store, place.path)
    if node is None:
        return None
    return hashlib.sha256(bytes(get_document(place.store, document_key(place.path, node)) or b"")).hexdigest()


__all__ = ["FOLDERS", "PARTS", "ImportWork", "document_digest", "telling"]
