"""What jobs saw of a source: sums of the versions of all that is stored in a block, and such sums as they are now.

A sum does not depend on an order, so that millions of objects are looked at as the store lists them, and nothing of
them is kept but a number for each job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.engine.handle import ArrayHandle
from zardine.engine.workers import for_each, most_requests
from zardine.errors import UnsupportedError
from zardine.jobs.ranges import Ranges
from zardine.jobs.stages import Cells
from zardine.limits import check_size
from zardine.stores.base import WHOLE, ByteRange, OpenFile, Reading, Store, Version
from zardine.stores.wrappers.wrapper import WrappedFiles, WrapperStore

_TOGETHER: Final = 2**14
"""Stored objects that are looked at together."""
_SEVERAL: Final = "several"
"""In place of the version of what changed while it was read: what is stored has another."""
BUCKETS: Final = 1024

Seen = tuple[str, Version | None]


class _NotingFiles(WrappedFiles):
    """Files of which the versions are noted when they are opened."""

    __slots__ = ()

    _store: NotingStore

    def open(self, key: str) -> OpenFile | None:
        file = super().open(key)
        self._store._note(key, None if file is None else file.version)
        return file


class NotingStore(WrapperStore):
    """Another store, read-only; :attr:`versions` are those that were read, by key, ``None`` for missing keys."""

    files_class = _NotingFiles

    def __init__(self, store: Store) -> None:
        super().__init__(store, read_only=True)
        self.versions: dict[str, Version | None] = {}

    def digest(self, keys: Iterable[str]) -> str:
        """Return :func:`digest` of what was read of these keys."""
        return digest((key, self.versions.get(key)) for key in set(keys))

    def _note(self, key: str, version: Version | None) -> None:
        if self.versions.setdefault(key, version) != version:
            self.versions[key] = _SEVERAL

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        reading = super().read(key, ranges)
        self._note(key, None if reading is None else reading.version)
        return reading

    def version(self, key: str) -> Version | None:
        version = super().version(key)
        self._note(key, version)
        return version


def digest(versions: Iterable[Seen]) -> str:
    """Return 16 characters that are others if a key has another version; none where no key has one."""
    marks = [_mark(*each) for each in versions if each[1] is not None]
    return _text(sum(marks)) if marks else ""


class Buckets:
    """Sums of the versions of all objects of an array, those outside of its shape too, by a hash of their keys."""

    def __init__(self, sums: Sequence[int] = ()) -> None:
        self.sums = list(sums) or [0] * BUCKETS

    @classmethod
    def from_json(cls, document: object) -> Buckets:
        """Return what :meth:`to_json` wrote; nothing is known by anything else."""
        known = isinstance(document, list) and len(document) == BUCKETS and all(type(each) is int for each in document)
        return cls(document if known else ())  # type: ignore[arg-type]

    def to_json(self) -> list[int]:
        """Return it as JSON."""
        return self.sums

    def add(self, key: str, mark: int) -> None:
        """Count one object by the mark of its version; 0 for one that has none."""
        place = self.place(key)
        self.sums[place] = (self.sums[place] + mark) % 2**64

    def add_stored(self, source: ArrayHandle) -> None:
        """Count all stored objects of an array."""
        for key, version in stored_versions(source):
            self.add(key, 0 if version is None else _mark(key, version))

    @staticmethod
    def place(key: str) -> int:
        """Return the number of the bucket of a key."""
        return _hash(key) % BUCKETS


def seen_now(
    source: ArrayHandle, blocks: Sequence[Axis], jobs: Ranges, *, per_job: int = 1, surely: bool, note: Buckets | None
) -> Iterator[tuple[int, str]]:
    """Yield what each of ``jobs`` would see of the source now: its number, and what :func:`digest` makes of that.

    Jobs are ``per_job`` cells, in C order, of the grid that ``blocks`` make of the elements. Keys are listed, with
    their versions where listing gives them and not ``surely``; else those of these jobs are asked for. ``note`` counts
    all that is stored.
    """
    cells = Cells(tuple(axis.count for axis in blocks))
    count = -(-cells.count // per_job)
    check_size("what jobs see of the source", 9 * count)
    sums, wanted, found = np.zeros(count, np.uint64), np.zeros(count, bool), np.zeros(count, bool)
    for start, stop in jobs.pairs():
        wanted[start:stop] = True
    for keys, versions, rows in _stored(source, surely=surely):
        which, places = blocks_of_objects(source.layout.grids.storage, blocks, rows)
        numbers = _numbers(cells, places, per_job)
        pairs = np.unique(np.stack([numbers, which])[:, wanted[numbers]], axis=1)
        if versions is None:
            asked = range(len(keys)) if note is not None else np.unique(pairs[1]).tolist()
            looked = _versions(source.store, [keys[i] for i in asked])
            versions = [looked.get(key) for key in keys]
        stored = np.array([each is not None for each in versions], bool)
        each_mark = [0 if v is None else _mark(key, v) for key, v in zip(keys, versions, strict=True)]
        if note is not None:
            for key, mark in zip(keys, each_mark, strict=True):
                note.add(key, mark)
        marks = np.array(each_mark, np.uint64)
        pairs = pairs[:, stored[pairs[1]]]
        np.add.at(sums, pairs[0], marks[pairs[1]])
        found[pairs[0]] = True
    for job in jobs:
        yield job, _text(int(sums[job])) if found[job] else ""


def lists_versions(store: Store) -> bool:
    """Whether versions of what is stored come with listing, so that looking at them takes no request each."""
    return store.supports_listing and store.list_versions("") is not None


def stored_versions(source: ArrayHandle) -> Iterator[tuple[str, Version | None]]:
    """Yield the keys of all stored objects of an array, and their versions; of those outside of its shape, too."""
    for keys, versions, _ in _stored(source, surely=False):
        looked = versions or list(map(_versions(source.store, keys).get, keys))
        yield from zip(keys, looked, strict=True)


def blocks_of_objects(objects: Sequence[Axis], blocks: Sequence[Axis], rows: Ints) -> tuple[Ints, Ints]:
    """Return which of some objects lie in which blocks: numbers of ``rows``, and places of blocks."""
    which = np.flatnonzero((rows < np.array([axis.count for axis in objects], np.int64)).all(axis=1))
    rows = rows[which]
    touched = np.empty((len(rows), 0), np.int64)
    for number, (axis, other) in enumerate(zip(objects, blocks, strict=True)):
        column = rows[:, number]
        starts = axis.starts(column)
        stops = np.minimum(starts + axis.extents(column), axis.length)
        first, last = other.locate(starts)[0], other.locate(stops - 1)[0]
        lengths = last - first + 1
        again = np.repeat(np.arange(len(rows)), lengths)
        within = np.arange(len(again)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        which, rows, touched = which[again], rows[again], np.column_stack([touched[again], first[again] + within])
    return which, touched


def _stored(source: ArrayHandle, *, surely: bool) -> Iterator[tuple[list[str], list[Version | None] | None, Ints]]:
    """Yield keys of stored objects with their versions, if those come with listing, and coordinates; some at a time.

    Where none can be listed they are those that there may be.
    """
    ndim = len(source.layout.metadata.shape)
    start = len(source.path) + 1 if source.path else 0
    waiting, known = _listed(source, surely=surely)
    while some := list(islice(waiting, _TOGETHER)):
        decoded = ((key, version, source.layout.keys.decode(key[start:], ndim)) for key, version in some)
        chunks = [each for each in decoded if each[2] is not None]
        rows = np.array([each[2] for each in chunks], np.int64).reshape(len(chunks), ndim)
        yield [each[0] for each in chunks], [each[1] for each in chunks] if known else None, rows


def _listed(source: ArrayHandle, *, surely: bool) -> tuple[Iterator[Seen], bool]:
    """Return keys, with versions where the second is true."""
    prefix = f"{source.path}/" if source.path else ""
    try:
        listed = None if surely else source.store.list_versions(prefix)
        if listed is not None:
            return listed, True
        return ((key, None) for key in source.store.list_prefix(prefix)), False
    except UnsupportedError:
        cells = Cells(tuple(axis.count for axis in source.layout.grids.storage))
        numbers = iter(Ranges([(0, cells.count)]))
        return ((source.key(cells.place(number)), None) for number in numbers), False


def _versions(store: Store, keys: Sequence[str]) -> dict[str, Version | None]:
    found: dict[str, Version | None] = {}

    def look(key: str) -> None:
        found[key] = store.version(key)

    for_each(look, keys, len(keys), most_requests(store))
    return found


def _numbers(cells: Cells, places: Ints, per_job: int) -> Ints:
    """Return the numbers of the jobs of cells."""
    if cells.count >= 2**62 or not cells.counts:
        return np.array([cells.number(place) // per_job for place in places.tolist()], np.int64)
    numbers: Ints = np.ravel_multi_index(tuple(places.T), cells.counts).astype(np.int64) // per_job
    return numbers


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mark(key: str, version: Version | None) -> int:
    return _hash(f"{key}\0{version!r}")


def _text(total: int) -> str:
    return f"{total % 2**64:016x}"


__all__ = [
    "Buckets",
    "NotingStore",
    "blocks_of_objects",
    "digest",
    "lists_versions",
    "seen_now",
    "stored_versions",
]
