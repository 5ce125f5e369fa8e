"""What is imported, as it was when that was planned: a file, a folder of files, or a folder of values in any store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from zardine.errors import PlanError
from zardine.jobs.places import Place, Places
from zardine.stores.path import StorePath
from zardine.vectors.exchange.targets import files_of_target

_ENDS: Final = 2**20
"""Bytes at the beginning and at the end of a file that its digest is of."""


@dataclass(frozen=True)
class SourceFile:
    """A file, or a folder of files, on this machine."""

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

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.path

    @property
    def given(self) -> Path:
        """What it is read by."""
        return Path(self.path)

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
class SourceFolder:
    """A folder of values, in any store."""

    place: Place
    size: int
    """Bytes of all values, about."""
    digest: str
    """What :attr:`~zardine.vectors.exchange.file_parts.FolderParts.seen` was."""

    @property
    def name(self) -> str:
        """What errors call it."""
        return str(self.place)

    @property
    def given(self) -> StorePath:
        """What it is read by."""
        return StorePath(self.place.store, self.place.path)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, without its place."""
        return {"size": self.size, "digest": self.digest}


Source = SourceFile | SourceFolder


def source_of(document: Any, places: Places) -> Source:
    """Return the source that ``to_json`` wrote. Raises :class:`~zardine.errors.PlanError` for anything else."""
    texts = [document["digest"], *([document["path"]] if "path" in document else [])]
    sizes = [document["size"], *([document["modified"]] if "path" in document else [])]
    if not all(type(each) is int and each >= 0 for each in sizes) or not all(isinstance(each, str) for each in texts):
        raise PlanError("a plan of an import has the path, size, time and digest of a file, or the size and digest")
    if "path" in document:
        return SourceFile(document["path"], document["size"], document["modified"], document["digest"])
    return SourceFolder(places.source(), document["size"], document["digest"])


__all__ = ["Source", "SourceFile", "SourceFolder", "source_of"]
