"""A folder of values, in any store: documents, files, and what is packed into shards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit
from zardine.codecs.gzip import GzipCodec
from zardine.engine.workers import for_each, most_requests
from zardine.errors import ArrayChangedError, CorruptionError, DataError, UnsupportedError
from zardine.hierarchy.find import describe
from zardine.json_document import load_object
from zardine.limits import CHUNK, DOCUMENT, check_size, limit_of, too_large
from zardine.metadata.node_names import join_path
from zardine.stores.base import Reading, Store, is_key
from zardine.stores.byte_ranges import Version
from zardine.stores.resolve import StoreLike, resolve_store
from zardine.vectors.exchange.listing import listed
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.sharding import Sharding

PREFIX: Final = "precomputed://"
_SUFFIX: Final = ".gz"
"""What CloudFiles adds to the names of local files that it compresses."""
_GAP: Final = 2**20
_TOGETHER: Final = 2**28
"""Bytes of a minishard that are read by one request."""
_MOST_SHARD_BITS: Final = 10
"""Of the shards that are asked for one by one, where nothing is listed."""

Ids: TypeAlias = npt.NDArray[np.uint64]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """Where values lie: a store, and a path in it."""

    store: Store
    path: str

    @classmethod
    def at(cls, place: StoreLike, *, writable: bool = False) -> Folder:
        """Return the folder at ``place``; a URL may begin with ``precomputed://``, as neuroglancer has it."""
        if isinstance(place, str):
            place = place.removeprefix(PREFIX)
        return cls(*resolve_store(place, mode="a" if writable else "r"))

    def __str__(self) -> str:
        return describe(self.store, self.path)

    def where(self, name: str) -> str:
        """Return how errors call a value."""
        return f"{self}/{name}"

    def below(self, name: str) -> Folder:
        """Return a folder in this one, or beside it. Raises :class:`DataError` for a name that leads out."""
        parts = [part for part in self.path.split("/") if part]
        for part in name.split("/"):
            if part == ".." and parts:
                parts.pop()
            elif part == ".." or "\0" in part:
                raise DataError(f"{self.where('info')} names {name!r}, which leads out of {self.store}")
            elif part not in ("", "."):
                parts.append(part)
        return Folder(self.store, "/".join(parts))

    def read(self, name: str) -> BytesLike | None:
        """Return a value, or ``None``. Raises :class:`ChunkTooLargeError` for one that the settings do not allow."""
        key = join_path(self.path, name)
        if not is_key(key):
            return None
        found = self._read(key, CHUNK)
        if found is None and (packed := self._read(key + _SUFFIX, CHUNK)) is not None:
            found = GzipCodec().decode(packed, SizeLimit(0, False, (CHUNK,)).now())
        return found

    def document(self, name: str = "info", tell: Callable[[str], object] | None = None) -> Mapping[str, Any] | None:
        """Return a JSON object, or ``None``; ``tell`` is told its digest. Raises :class:`MetadataError` for others."""
        found = self._read(join_path(self.path, name), DOCUMENT)
        if tell is not None:
            tell("" if found is None else hashlib.sha256(found).hexdigest())
        return None if found is None else load_object(bytes(found), self.where(name))

    def versions(self) -> dict[str, Version | None]:
        """Return the names of the values of the folder, sorted, with their versions where these come along.

        Raises :class:`UnsupportedError` where nothing is listed.
        """
        prefix = f"{self.path}/" if self.path else ""
        found: dict[str, Version | None] = {}
        for key, version in listed(self.store, prefix):
            name = key[len(prefix) :]
            if "/" not in name:
                found.setdefault(name.removesuffix(_SUFFIX), version)
        return found

    def shards(self, sharding: Sharding) -> list[tuple[str, Reading]]:
        """Return the names of shards, with their sizes and versions.

        Where nothing is listed, all names that there may be are asked for. Raises :class:`UnsupportedError` where these
        are too many.
        """
        prefix = f"{self.path}/" if self.path else ""
        try:
            names = [key[len(prefix) :] for key in self.store.list_dir(prefix)[0] if key.endswith(".shard")]
        except UnsupportedError:
            if sharding.shard_bits > _MOST_SHARD_BITS:
                raise
            names = [sharding.name(number) for number in range(1 << sharding.shard_bits)]
        names.sort(key=lambda name: (len(name), name))
        looks = self.each(lambda name: self.store.read(join_path(self.path, name), ((0, 0),)), names)
        return [(name, look) for name, look in zip(names, looks, strict=True) if look is not None]

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Yield what ``work`` gives for each item, in their order; far away as many at a time as are worth while."""
        threads = most_requests(self.store, 1)
        for start in range(0, len(items), threads):
            yield from _at_once(work, items[start : start + threads])

    def write(self, name: str, value: BytesLike) -> None:
        """Store a value."""
        self.store.set(join_path(self.path, name), value)

    def write_document(self, name: str, document: Mapping[str, Any]) -> None:
        """Store a JSON object."""
        self.write(name, json.dumps(document, allow_nan=False).encode())

    def size(self, name: str) -> int:
        """Return bytes of a value; of one that is compressed four times those that are stored, about."""
        key = join_path(self.path, name)
        found = self.store.size(key)
        return 4 * (self.store.size(key + _SUFFIX) or 0) if found is None else found

    def value(self, index: Index, number: int, name: str) -> BytesLike | None:
        """Return the value of an id, or ``None``; ``name``: of its file where there are no shards."""
        folder = self.below(index.key)
        if index.sharding is None:
            return folder.read(name)
        sharding = index.sharding
        places = sharding.places(np.array([number], np.uint64))
        place, minishard = (int(each[0]) for each in places)
        key = join_path(folder.path, sharding.name(place))
        reading = self.store.read(key, (sharding.entry_range(minishard),))
        if reading is None:
            return None
        shard = _Shard(self.store, key, reading.version)
        try:
            if len(reading.parts[0]) != 16:
                raise CorruptionError(f"the shard has {reading.size} bytes, fewer than its index")
            start, length = sharding.index_ranges(reading.parts[0], reading.size)[0].tolist()
            if not length:
                return None
            ids, starts, lengths = sharding.minishard(shard.part(start, length), reading.size)
            row = np.flatnonzero(ids == np.uint64(number))
            if not len(row):
                return None
            return sharding.value(shard.part(int(starts[row[0]]), int(lengths[row[0]])))
        except DataError as error:
            raise error.at(key=describe(self.store, key)) from None

    def of_shard(
        self, name: str, sharding: Sharding, minishards: tuple[int, int], version: Version | None
    ) -> Iterator[tuple[int, BytesLike]]:
        """Yield ids and values of some minishards of a shard, the last of which is not among them.

        Raises :class:`CorruptionError`, and :class:`ArrayChangedError` where the shard has another ``version`` by now.
        """
        shard = _Shard(self.store, join_path(self.path, name), version)
        try:
            size = shard.size
            if size < sharding.index_size:
                raise CorruptionError(f"the shard has {size} bytes, fewer than its index of {sharding.index_size}")
            first, last = minishards
            start, length = sharding.entry_range(first)
            ranges = sharding.index_ranges(shard.part(start, length * (last - first)), size)
            rows = np.flatnonzero(ranges[:, 1]).tolist()

            def look(row: int) -> tuple[Ids, Ids, Ids]:
                index = sharding.minishard(shard.part(*ranges[row].tolist()), size)
                _check_ids(index[0], name, sharding, first + row)
                return index

            indexes, room = list[tuple[Ids, Ids, Ids]](), size
            for index in self.each(look, rows):
                room -= sum(index[2].tolist())
                if room < 0:
                    raise CorruptionError("values overlap: they have more bytes than the shard")
                indexes.append(index)
            for values in self.each(lambda index: list(shard.values(*index)), indexes):
                for number, stored in values:
                    yield number, sharding.value(stored)
        except DataError as error:
            raise error.at(key=self.where(name)) from None

    def _read(self, key: str, setting: str) -> BytesLike | None:
        limit = limit_of(setting)
        reading = self.store.read_up_to(key, limit)
        if reading is None:
            return None
        if not reading.parts:
            raise too_large(repr(key), reading.size, setting, limit)
        return reading.parts[0]


def _check_ids(ids: Ids, name: str, sharding: Sharding, minishard: int) -> None:
    """Raise :class:`CorruptionError` unless ids belong into a minishard of the shard ``name``, each there once."""
    shards, minishards = sharding.places(ids)
    elsewhere = minishards != np.uint64(minishard)
    elsewhere |= np.isin(shards, [each for each in np.unique(shards) if sharding.name(int(each)) != name])
    if elsewhere.any():
        raise CorruptionError(f"id {int(ids[elsewhere][0])} is in this shard, where it belongs into another place")
    if len(np.unique(ids)) != len(ids):
        raise CorruptionError("an id is in this shard twice")


def _at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    found: dict[int, R] = {}

    def do(row: int) -> None:
        found[row] = work(items[row])

    for_each(do, range(len(items)), len(items), len(items))
    return [found[row] for row in range(len(items))]


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard of which parts are read, all of one version."""

    store: Store
    key: str
    version: Version | None
    """``None``: whichever is there."""

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        reading = self.store.read(self.key, ((0, 0),))
        self._check(reading)
        return 0 if reading is None else reading.size

    def part(self, start: int, length: int) -> BytesLike:
        """Return bytes of the shard; the range has been compared with its size."""
        check_size(f"a part of {self.key!r}", length)
        if length == 0:
            return b""
        reading = self.store.read(self.key, ((start, length),))
        self._check(reading)
        if reading is None or len(reading.parts[0]) != length:
            raise CorruptionError("the shard is another one by now")
        return reading.parts[0]

    def values(self, ids: Ids, starts: Ids, lengths: Ids) -> Iterator[tuple[int, BytesLike]]:
        """Yield the stored values of a minishard; by one request, where not much lies between them."""
        ends = starts + lengths
        first, last = (int(starts.min()), int(ends.max())) if len(ids) else (0, 0)
        if last - first <= min(2 * int(lengths.astype(np.float64).sum()) + _GAP, _TOGETHER):
            together = memoryview(self.part(first, last - first))
            for number, start, end in zip(ids.tolist(), starts.tolist(), ends.tolist(), strict=True):
                yield number, together[start - first : end - first]
            return
        for number, start, length in zip(ids.tolist(), starts.tolist(), lengths.tolist(), strict=True):
            yield number, self.part(start, length)

    def _check(self, reading: Reading | None) -> None:
        if self.version is not None and (reading is None or reading.version != self.version):
            raise ArrayChangedError(f"{self.key} of {self.store} was changed while it was imported: import it again")


def write_index(folder: Folder, index: Index, values: Iterable[tuple[int, str, BytesLike]]) -> None:
    """Store values of ids, with the names of their files: as such, or as one shard that all of them are of."""
    inner = folder.below(index.key)
    if index.sharding is None:
        for _, name, value in values:
            inner.write(name, value)
        return
    given = [(number, value) for number, _, value in values]
    if given:
        shard = index.sharding.places(np.array([given[0][0]], np.uint64))[0]
        inner.write(index.sharding.name(int(shard[0])), index.sharding.shard(given))


__all__ = ["PREFIX", "Folder", "write_index"]
