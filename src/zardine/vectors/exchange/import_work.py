"""Importing a file as jobs: each reads a part and keeps it in a hidden folder of the target; then all are written.

What was read stays there until the store counts, so that whoever is killed goes on with the parts that are missing. A
part has a checksum, and jobs record it: one that is gone or damaged is read again. Where the file, or what is asked
for, is another one, so is the plan, and what an earlier one has left is removed when it begins.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from zardine.codecs.crc32c import crc32c
from zardine.engine.documents import get_document
from zardine.errors import PlanError
from zardine.hierarchy.find import HIDDEN, document_key, find_node, taken
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done, Records
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Work
from zardine.json_document import parse_json
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.path import StorePath
from zardine.vectors.changing.creating import REPLACED, complete_all, erase_leftover
from zardine.vectors.exchange.features import FeatureParts
from zardine.vectors.exchange.file_parts import FORM, FileParts, Part, Step, Whole
from zardine.vectors.exchange.geff import GeffParts
from zardine.vectors.exchange.meshes import ObjParts, PlyParts, StlParts
from zardine.vectors.exchange.parquet_parts import parquet_parts
from zardine.vectors.exchange.precomputed.reading import precomputed_parts
from zardine.vectors.exchange.scans import ScanParts
from zardine.vectors.exchange.streamlines import TckParts, TrkParts
from zardine.vectors.exchange.swc import SwcParts
from zardine.vectors.exchange.targets import files_of_target
from zardine.vectors.exchange.trx import TrxParts
from zardine.vectors.outside import keeping, repeat, warn
from zardine.vectors.storing.store import ORIGIN

PARTS: Final[dict[str, Callable[[Any, Mapping[str, Any], int, Any], FileParts]]] = {
    "geff": GeffParts,
    "geojson": FeatureParts,
    "gpkg": FeatureParts,
    "las": ScanParts,
    "laz": ScanParts,
    "obj": ObjParts,
    "parquet": parquet_parts,
    "ply": PlyParts,
    "precomputed": precomputed_parts,
    "shp": FeatureParts,
    "stl": StlParts,
    "swc": SwcParts,
    "tck": TckParts,
    "trk": TrkParts,
    "trx": TrxParts,
}
"""Formats whose files, or folders, can be read in parts, in any order."""

_FACTS: Final = "import.json"
"""Says beside the parts what they are of."""
_ENDS: Final = 2**20
"""Bytes at the beginning and at the end of a file that its digest is of."""

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
class SourceFile:
    """A file, or a folder of files, as it was when its import was planned."""

    path: str
    """Absolute."""
    size: int
    """Of all files."""
    modified: int
    """In nanoseconds, as the file system says it: when the one was that was changed last."""
    digest: str
    """SHA-256 of the first and the last bytes; of a folder, and what belongs to a file, of names, sizes and times."""

    @classmethod
    def of(cls, path: Path) -> SourceFile:
        """Look at a file, or at a folder and all that is below it. Raises ``OSError``."""
        digest = hashlib.sha256()
        if path.is_dir():
            size = modified = 0
            for name, about in sorted(_below(path, "")):
                size, modified = size + about.st_size, max(modified, about.st_mtime_ns)
                digest.update(
                    f"{len(name)} {name} {about.st_size} {about.st_mtime_ns}\n".encode(errors="surrogateescape")
                )
            return cls(str(path.absolute()), size, modified, digest.hexdigest())
        with path.open("rb") as file:
            about = path.stat()
            digest.update(file.read(_ENDS))
            file.seek(max(0, about.st_size - _ENDS))
            digest.update(file.read(_ENDS))
        for each in files_of_target(path)[1:]:
            if each.exists():
                digest.update(f"{each.suffix} {each.stat().st_size} {each.stat().st_mtime_ns}\n".encode())
        return cls(str(path.absolute()), about.st_size, about.st_mtime_ns, digest.hexdigest())

    @staticmethod
    def size_of(path: Path) -> int:
        """Return how many bytes there are in a file, or in all files below a folder. Raises ``OSError``."""
        if not path.is_dir():
            return path.stat().st_size
        return sum(about.st_size for _, about in _below(path, ""))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"path": self.path, "size": self.size, "modified": self.modified, "digest": self.digest}


def _below(folder: Path, before: str) -> Iterator[tuple[str, os.stat_result]]:
    """Names and facts of all files below a folder."""
    with os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False):
                yield from _below(Path(each.path), f"{before}{each.name}/")
            else:
                yield f"{before}{each.name}", each.stat(follow_symlinks=os.path.exists(each.path))


@dataclass(frozen=True)
class ImportWork(Work):
    """A file, or a folder of files, to be written to a new store at ``target``."""

    kind: ClassVar[str] = "import"

    source: SourceFile
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
        return (self.target,)

    def describe(self) -> str:
        return f"import {self.source.path} to {self.target}"

    def job_bytes(self, stage: int, job: int) -> int:
        return self.source.size * (job + 1) // self.count - self.source.size * job // self.count

    @cached_property
    def _parts(self) -> FileParts:
        return PARTS[self.format](Path(self.source.path), self.options, self.at_once, self.outline)

    def _folder(self, plan: str) -> str:
        return join_path(self.target.path, f"{HIDDEN}/import/{plan}/")

    def _key(self, plan: str, number: int) -> str:
        return f"{self._folder(plan)}part-{number}"

    @cached_property
    def _plan(self) -> str:
        return Plan(self).id

    # the jobs

    def run(self, job: Job) -> JobDone:
        self.check()
        key = self._key(self._plan, job.number)
        store = job.guarded(self.target.store, [key])
        with keeping() as told:
            piece = self._parts.read(job.number)
        data = Part.of(piece, self.options.get("dtype"), f"{self.source.path}, part {job.number}", told).to_bytes()
        store.set(key, data)
        job.advance(self.job_bytes(0, job.number))
        return JobDone(_seen(data))

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterator[tuple[int, str]]:
        for number in jobs:
            key = self._key(self._plan, number)
            data = self.target.store.get(key)
            if surely:  # it was found not to be what the job has written
                what = "gone" if data is None else "damaged"
                warn(self.source.path, f"part {number} is read again: {key} of {self.target.store} is {what}")
            yield number, "gone" if data is None else _seen(bytes(data))

    # before and after

    def check(self) -> None:
        try:
            now = SourceFile.of(Path(self.source.path))
        except OSError as error:
            raise PlanError(f"{self.source.path} cannot be read any more ({error}): plan its import anew") from None
        if now != self.source:
            raise PlanError(f"{self.source.path} has changed since its import was planned: plan it anew")

    def begin(self, plan: str) -> None:
        store, path = self.target.store, self.target.path
        node = find_node(store, path)
        if document_digest(self.target) != self.replaced:
            if node is not None:
                raise taken(store, path, node, REPLACED)
            raise PlanError(f"what was at {self.target} when the import was planned is gone: plan it anew")
        own, (_, folders) = self._folder(plan), store.list_dir(join_path(path, f"{HIDDEN}/import/"))
        for folder in folders:
            if folder != own:
                self._discard(folder)
        if store.get(own + _FACTS) is None:
            store.set(own + _FACTS, json.dumps(self._facts()).encode())

    def _facts(self) -> dict[str, Any]:
        return {"source": self.source.to_json(), "options": {"format": self.format, **self.options}}

    def _discard(self, folder: str) -> None:
        """Remove what another import to the same place has left, and say why."""
        store, now = self.target.store, self._facts()
        try:
            found: Any = parse_json(store.get(folder + _FACTS) or b"")
            source, options = dict(found["source"]), dict(found["options"])
        except (ValueError, TypeError, KeyError, RecursionError):
            source, options, why = {}, {}, "what it was of is not known any more"
        else:
            differing = [
                name for name in {**options, **now["options"]} if options.get(name) != now["options"].get(name)
            ]
            if source.get("path") != self.source.path:
                why = f"it was of {source.get('path')}"
            elif source != now["source"]:
                why = "the file has changed since"
            elif differing:
                why = f"it had other options: {', '.join(sorted(differing))}"
            else:
                why = "it was cut into other parts, or what it was to replace has changed"
        warn(self.source.path, f"an unfinished import to {self.target} is discarded: {why}")
        Records(self.target, folder.rstrip("/").rpartition("/")[2]).erase()
        store.erase_prefix(folder)

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
        return {
            "places": {"target": self.target.to_json()},
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
        source, numbers = document["source"], [document[name] for name in ("at_once", "count", "vertices", "memory")]
        texts = [document["format"], source["path"], source["digest"]]
        sizes = [source["size"], source["modified"]]
        if not all(type(each) is int and each >= 0 for each in (*numbers, *sizes)) or min(numbers[:2]) < 1:
            raise PlanError("a plan of an import has numbers of vertices, parts and bytes")
        if not all(isinstance(each, str) for each in texts) or document["format"] not in PARTS:
            raise PlanError(f"a plan of an import names one of the formats {', '.join(PARTS)}")
        file = SourceFile(source["path"], source["size"], source["modified"], source["digest"])
        options, outline = dict(document["options"]), document["outline"]
        if outline is not None and (len(outline) != numbers[1] + 1 or not all(map(_is_place, outline))):
            raise PlanError("a plan of an import says of each part where it begins")
        at_once, count, vertices, memory = numbers
        made = file, document["format"], places.target(), options, document["replaced"]
        return cls(*made, at_once, count, vertices, memory, outline)


def _is_place(numbers: Any) -> bool:
    """Whether these are bytes, lines and vertices."""
    return isinstance(numbers, list) and len(numbers) == 3 and all(type(each) is int and each >= 0 for each in numbers)


def _seen(data: bytes) -> str:
    return f"{len(data)} {crc32c(data):08x}"


def document_digest(place: Place) -> str | None:
    """Return the digest of the document of the node at a place; ``None`` where there is none."""
    node = find_node(place.store, place.path)
    if node is None:
        return None
    return hashlib.sha256(bytes(get_document(place.store, document_key(place.path, node)) or b"")).hexdigest()


__all__ = ["PARTS", "ImportWork", "SourceFile", "document_digest", "telling"]
