"""Folders of files that are an object each: which they are, what they are called, and which are read together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.parts import ENDS
from zardine.vectors.exchange.file_parts import LENGTHS, Piece
from zardine.vectors.outside import warn

_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class FileList:
    """Files in the order of the ids of their objects: a single one, or those of a folder."""

    files: tuple[Path, ...]
    ids: Ints
    """The numbers that all files of a folder are called by, or else numbers from 0 on."""
    names: tuple[str, ...] | None
    """What the files of a folder are called, without their ending; ``None``: there is a single file, not in one."""
    cuts: tuple[int, ...]
    """The first file of each part, and how many files there are."""
    sizes: tuple[int, ...]
    """Bytes of the files."""

    @classmethod
    def of(cls, source: Path, endings: Collection[str], at_once: int) -> FileList:
        """Look at a file, or at the files of a folder that end so; parts are of about ``at_once`` bytes.

        Raises ``OSError``, and :class:`~zardine.errors.DataError` for a folder without such files.
        """
        if not source.is_dir():
            return cls((source,), np.zeros(1, np.int64), None, (0, 1), (source.stat().st_size,))
        found = [each for each in files_of(source) if each.suffix.lower() in endings]
        if not found:
            raise DataError(f"{source} holds no files that end in {' or '.join(sorted(endings))}")
        stems = [each.stem for each in found]
        numbers = [int(each) if re.fullmatch("[0-9]{1,19}", each) else -1 for each in stems]
        numbered = len(set(numbers)) == len(found) and min(numbers) >= 0 and max(numbers) <= _LARGEST
        keys = numbers if numbered else [_natural(each) for each in stems]
        order = sorted(range(len(found)), key=lambda row: (keys[row], found[row].name))
        files = tuple(found[row] for row in order)
        ids = np.array(sorted(numbers) if numbered else range(len(found)), np.int64)
        sizes = tuple(each.stat().st_size for each in files)
        cuts, waiting = [0], 0
        for number, size in enumerate(sizes):
            if waiting and waiting + size > at_once:
                cuts.append(number)
                waiting = 0
            waiting += size
        return cls(files, ids, tuple(each.stem for each in files), (*cuts, len(files)), sizes)

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.cuts) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes)

    @property
    def largest(self) -> int:
        """Bytes of the largest part."""
        return max(sum(self.sizes[a:b]) for a, b in zip(self.cuts, self.cuts[1:], strict=False))

    def part(self, number: int) -> Sequence[Path]:
        """Return the files of a part."""
        return self.files[self.cuts[number] : self.cuts[number + 1]]

    def warn_of_others(self, source: Path, besides: Collection[str] = ()) -> None:
        """Warn of the files of the folder that are left out, but of those called so."""
        if self.names is not None:
            others = sum(each.name not in besides for each in files_of(source)) - len(self.files)
            if others:
                warn(source, f"{others} files that do not end in {self.files[0].suffix.lower()} are left out")


def together(pieces: Sequence[Piece], files: Sequence[Path]) -> Piece:
    """Return what is in some files as one piece; its table :data:`LENGTHS` says how many vertices each has.

    Raises :class:`~zardine.errors.DataError` for files that do not have the same attributes.
    """
    first = pieces[0]
    for piece, file in zip(pieces, files, strict=True):
        for what, own, others in (("vertices", piece.values, first.values), ("faces", piece.links, first.links)):
            told = {name: (each.dtype, each.shape[1:]) for name, each in own.items() if each.dtype.kind not in "UTO"}
            like = {name: (each.dtype, each.shape[1:]) for name, each in others.items() if each.dtype.kind not in "UTO"}
            if told != like or set(own) != set(others):
                names = sorted(name for name in {*own, *others} if told.get(name) != like.get(name))
                differing = ", ".join(map(repr, names)) if any(names) else "how many corners they have"
                raise DataError(
                    f"{file}: its {what} have other attributes, or of other types, than those of {files[0]}: "
                    f"{differing}; import such files by themselves"
                )
    lengths = np.array([len(each.positions) for each in pieces], np.int64)
    starts = np.cumsum(lengths) - lengths
    links = {name: np.concatenate([each.links[name] for each in pieces]) for name in first.links if name != ENDS}
    if first.links:
        ends = [each.links[ENDS] + start for each, start in zip(pieces, starts, strict=True)]
        links = {ENDS: np.concatenate(ends), **links}
    values = {name: np.concatenate([each.values[name] for each in pieces]) for name in first.values}
    positions = np.concatenate([each.positions for each in pieces])
    return Piece(positions, values, {LENGTHS: lengths}, links, first.about)


def files_of(folder: Path) -> Iterator[Path]:
    """Give the files of a folder, but hidden ones."""
    return (each for each in folder.iterdir() if not each.name.startswith(".") and each.is_file())


def _natural(text: str) -> list[tuple[int, int, str]]:
    """A key by which numbers within names count as such."""
    return [
        (0, int(each), "") if each.isdecimal() else (1, 0, each) for each in re.split("([0-9]+)", text, flags=re.ASCII)
    ]


__all__ = ["FileList", "files_of", "together"]
