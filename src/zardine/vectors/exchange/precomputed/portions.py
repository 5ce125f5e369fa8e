"""The values of an index in portions, each of which is read by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Final, Protocol

import numpy as np

from zardine.buffers import BytesLike
from zardine.errors import ArrayChangedError, CorruptionError, DataError, UnsupportedError
from zardine.stores.byte_ranges import Version
from zardine.stores.file_seam import local_folder
from zardine.vectors.exchange.listing import Seen
from zardine.vectors.exchange.precomputed.annotations import Index, SpatialLevel
from zardine.vectors.exchange.precomputed.folder import Folder
from zardine.vectors.exchange.precomputed.numbers import is_number
from zardine.vectors.exchange.precomputed.spatial import morton_codes

TOGETHER: Final = 256
"""Values of a portion, where nothing tells how large they are."""
_MOST: Final = 2**20
"""Portions of an index, and cells of a grid that are asked for one by one."""


class Portion(Protocol):
    """Some of the values of an index."""

    @property
    def nbytes(self) -> int:
        """Bytes of them, about."""
        ...

    @property
    def where(self) -> str:
        """Return the folder of their index."""
        ...

    def values(self, folder: Folder) -> Iterator[tuple[str, BytesLike]]:
        """Yield the values, and what they are called: their ids, or cells.

        Raises :class:`~zardine.errors.CorruptionError`, and :class:`~zardine.errors.ArrayChangedError` where something
        is not as it was seen.
        """
        ...


@dataclass(frozen=True, slots=True)
class Files:
    """Values that are files, as they were listed."""

    where: str
    names: tuple[str, ...]
    nbytes: int

    def values(self, folder: Folder) -> Iterator[tuple[str, BytesLike]]:
        inner = folder.below(self.where)
        for name, value in zip(self.names, inner.each(inner.read, self.names), strict=True):
            if value is None:
                raise ArrayChangedError(f"{inner.where(name)} was erased while it was imported: import it again")
            yield name, value


@dataclass(frozen=True, slots=True)
class Minishards:
    """Values in some minishards of a shard, the last of which is not among them."""

    index: Index
    name: str
    first: int
    last: int
    nbytes: int
    version: Version | None

    @property
    def where(self) -> str:
        return self.index.key

    def values(self, folder: Folder) -> Iterator[tuple[str, BytesLike]]:
        sharding = self.index.sharding
        assert sharding is not None
        inner = folder.below(self.where)
        for number, value in inner.of_shard(self.name, sharding, (self.first, self.last), self.version):
            yield str(number), value


@dataclass(frozen=True, slots=True)
class Asked:
    """Values of ids that are known otherwise, where nothing can be listed; some may be missing."""

    index: Index
    names: tuple[str, ...]
    nbytes: int

    @property
    def where(self) -> str:
        return self.index.key

    def values(self, folder: Folder) -> Iterator[tuple[str, BytesLike]]:
        return ((name, value) for name, value in self._found(folder) if value is not None)

    def all_values(self, folder: Folder) -> Iterator[tuple[str, BytesLike]]:
        """Yield the same. Raises :class:`~zardine.errors.CorruptionError` for one that is missing."""
        for name, value in self._found(folder):
            if value is None:
                raise CorruptionError(f"annotation {name} of {folder} is missing in {self.index.key}")
            yield name, value

    def _found(self, folder: Folder) -> Iterator[tuple[str, BytesLike | None]]:
        found = folder.each(lambda name: folder.value(self.index, int(name), name), self.names)
        return zip(self.names, found, strict=True)


@dataclass(frozen=True, slots=True)
class Cells:
    """Values of some cells of a grid, counted row by row, where nothing can be listed; most may be missing."""

    level: SpatialLevel
    first: int
    last: int
    nbytes: int

    @property
    def where(self) -> str:
        return self.level.index.key

    def values(self, folder: Folder) -> Iterator[tuple[str, BytesLike]]:
        level = self.level
        cells = np.stack(np.unravel_index(np.arange(self.first, self.last), level.grid_shape), axis=1)
        codes = morton_codes(cells, level.grid_shape).tolist()
        names = ["_".join(map(str, cell)) for cell in cells.tolist()]
        pairs = list(zip(codes, names, strict=True))
        found = folder.each(lambda pair: folder.value(level.index, *pair), pairs)
        return ((name, value) for name, value in zip(names, found, strict=True) if value is not None)


def portions_of(folder: Folder, index: Index, at_once: int, seen: Seen, *, cells: bool = False) -> list[Portion]:
    """Return the values of an index, those of about ``at_once`` bytes together; ``cells``: they are named as such.

    Raises :class:`UnsupportedError` where nothing can be listed, and nothing else tells the names of files, and
    :class:`DataError` for shards that are said to have no end.
    """
    inner = folder.below(index.key)
    if index.sharding is None:
        versions = inner.versions()
        plain = [name for name in versions if all(map(is_number, name.split("_"))) and (cells or "_" not in name)]
        plain.sort(key=lambda name: (len(name), name))
        for name in plain:
            seen.add(name, versions[name])
        return [Files(index.key, some, size) for some, size in together(inner, plain, at_once, lambda name: (name,))]
    sharding, shards = index.sharding, inner.shards(index.sharding)
    found: list[Portion] = []
    for name, about in shards:
        seen.add(name, about.size, about.version)
        count = min(1 << sharding.minishard_bits, max(1, -(-about.size // at_once)))
        if len(found) + count > _MOST:
            raise DataError(f"{inner}: its shards are said to have too many bytes to be read: {about.size}")
        cuts = [(number << sharding.minishard_bits) // count for number in range(count + 1)]
        size = about.size // count
        found += [Minishards(index, name, first, last, size, about.version) for first, last in pairwise(cuts)]
    return found


def portions_of_ids(index: Index, ids: Iterable[int], at_once: int) -> list[Portion]:
    """Return the values of these ids, which are asked for one by one."""
    names = [str(each) for each in ids]
    return [Asked(index, tuple(names[start : start + TOGETHER]), at_once) for start in range(0, len(names), TOGETHER)]


def portions_of_cells(levels: Sequence[SpatialLevel], at_once: int, name: str) -> list[Portion]:
    """Return the values of all cells of grids, which are asked for one by one.

    Raises :class:`UnsupportedError` for so many cells that this has no end; they are of the folder ``name``.
    """
    counts = [prod(level.grid_shape) for level in levels]
    if sum(counts) > _MOST:
        raise UnsupportedError(
            f"{name}: nothing can be listed there, and the spatial index has {sum(counts)} cells, more than the "
            f"{_MOST} that are asked for one by one"
        )
    return [
        Cells(level, start, min(count, start + TOGETHER), at_once)
        for level, count in zip(levels, counts, strict=True)
        for start in range(0, count, TOGETHER)
    ]


def together(
    folder: Folder, names: Sequence[str], at_once: int, files: Callable[[str], Iterable[str]]
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield runs of names, of whose ``files`` there are about ``at_once`` bytes, and how many bytes.

    Only on this machine is it free to ask how large files are; elsewhere a run has 256 names.
    """
    local, some, waiting = local_folder(folder.store) is not None, list[str](), 0
    for name in names:
        size = sum(map(folder.size, files(name))) if local else -(-at_once // TOGETHER)
        if some and (waiting + size > at_once or (len(some) == TOGETHER and not local)):
            yield tuple(some), waiting
            some, waiting = [], 0
        some.append(name)
        waiting += size
    if some:
        yield tuple(some), waiting


__all__ = [
    "Asked",
    "Cells",
    "Files",
    "Minishards",
    "Portion",
    "portions_of",
    "portions_of_cells",
    "portions_of_ids",
    "together",
]
