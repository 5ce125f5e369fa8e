"""A folder of files of one format, read as if they were one file: its parts are theirs, one file after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from zardine.errors import PlanError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.export_folder import PARTS_DOCUMENT, check_complete
from zardine.vectors.exchange.file_lists import FileList
from zardine.vectors.exchange.file_parts import FileParts, Piece, Step, Whole


class RowParts(FileParts, Protocol):
    """A file of rows: points, lines or features."""

    rows: int
    """How many there are, those without positions among them: so many are told to have been there when it is stored."""


Make: TypeAlias = Callable[[Path, Mapping[str, Any], int, Any], FileParts]


PartsT = TypeVar("PartsT", bound=FileParts)


class JoinedFiles(Generic[PartsT]):
    """The files of a folder as :class:`~zardine.vectors.exchange.file_parts.FileParts`, in the order of their names.

    What a file says of all of it, such as the reference system, is that of the first one. Raises
    :class:`~zardine.errors.DataError` for a folder without such files, or that an export has not completed.
    """

    def __init__(self, make: Make, found: FileList, options: Mapping[str, Any], at_once: int, outline: Any) -> None:
        files = found.files
        outlines = [None] * len(files) if outline is None else outline
        if not isinstance(outlines, list) or len(outlines) != len(files):
            raise PlanError(f"the plan is not of the {len(files)} files in {files[0].parent}: plan the import anew")
        self._list = found
        self._files: list[PartsT] = []
        try:
            for file, own in zip(files, outlines, strict=True):
                self._files.append(cast(PartsT, make(file, options, at_once, own)))
        except BaseException:
            self.close()
            raise
        self._ends = list(accumulate(each.count for each in self._files))

    @property
    def count(self) -> int:
        """How many parts there are."""
        return self._ends[-1]

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return sum(each.vertices for each in self._files)

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one."""
        return max(each.memory for each in self._files)

    @property
    def outline(self) -> Any:
        """Those of all files."""
        found = [each.outline for each in self._files]
        return None if all(each is None for each in found) else found

    def read(self, number: int) -> Piece:
        """Return a part."""
        which = bisect_right(self._ends, number)
        return self._files[which].read(number - (self._ends[which - 1] if which else 0))

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all parts, as the first file does."""
        files = cast(list[RowParts], self._files)
        first = files[0]
        first.rows = sum(each.rows for each in files)
        self._tell()
        first.store(path, whole, options, step, origin)

    def _tell(self) -> None:
        """Warn of the files of the folder that are left out."""
        self._list.warn_of_others(self._list.files[0].parent, (PARTS_DOCUMENT,))

    def close(self) -> None:
        """Let go what is kept open."""
        for each in self._files:
            each.close()


def joined(
    endings: Collection[str],
    make: Make,
    each: Make | None = None,
    *,
    join: Callable[..., FileParts] = JoinedFiles,
    unpacked: str | None = None,
) -> Make:
    """Return what opens a file by ``make``, and a folder as all files in it that end so (by ``each``), by ``join``.

    ``unpacked``: the name of what is in a folder that is a file itself.
    """

    def opened(source: Path, options: Mapping[str, Any], at_once: int, outline: Any = None) -> FileParts:
        if not source.is_dir() or (unpacked is not None and (source / unpacked).exists()):
            return make(source, options, at_once, outline)
        check_complete(source)
        return join(each or make, FileList.of(source, endings, 1), options, at_once, outline)

    return opened


__all__ = ["JoinedFiles", "joined"]
