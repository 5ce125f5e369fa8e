"""A folder of values, in any store: documents, files, and what is packed into shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit
from zardine.codecs.gzip import GzipCodec
from zardine.errors import CorruptionError, DataError
from zardine.hierarchy.find import describe
from zardine.json_document import load_object
from zardine.limits import CHUNK, DOCUMENT, check_size, limit_of, too_large
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store, is_key
from zardine.stores.local.store import LocalStore
from zardine.stores.resolve import StoreLike, resolve_store
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.sharding import Sharding

PREFIX: Final = "precomputed://"
_SUFFIX: Final = ".gz"
"""What CloudFiles adds to the names of local files that it compresses."""
_GAP: Final = 2**20
_TOGETHER: Final = 2**28
"""Bytes of a minishard that are read by one request."""

Ids: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Portion:
    """Some of the values of an index, which are read together."""

    index: Index
    names: tuple[str, ...]
    """Of their files, or of the shard that they are in."""
    nbytes: int
    """About."""
    minishards: tuple[int, int] = (0, 0)
    """Those of a shard: the first, and the one behind the last."""


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

    def document(self, name: str = "info") -> Mapping[str, Any] | None:
        """Return a JSON object, or ``None``. Raises :class:`MetadataError` for what is none."""
        found = self._read(join_path(self.path, name), DOCUMENT)
        return None if found is None else load_object(bytes(found), self.where(name))

    def names(self) -> list[str]:
        """Return the names of the values of the folder. Raises :class:`UnsupportedError` where nothing is listed."""
        prefix = f"{self.path}/" if self.path else ""
        keys, _ = self.store.list_dir(prefix)
        return [key[len(prefix) :].removesuffix(_SUFFIX) for key in keys]

    def write(self, name: str, value: BytesLike) -> None:
        """Store a value."""
        self.store.set(join_path(self.path, name), value)

    def write_document(self, name: str, document: Mapping[str, Any]) -> None:
        """Store a JSON object."""
        self.write(name, json.dumps(document, allow_nan=False).encode())

    def portions(self, index: Index, at_once: int, *, cells: bool = False) -> list[Portion]:
        """Return the values of an index, those of about ``at_once`` bytes together; ``cells``: they are named as such.

        Raises :class:`UnsupportedError` where nothing can be listed.
        """
        folder, sharding = self.below(index.key), index.sharding
        names = sorted(set(folder.names()), key=lambda name: (len(name), name))
        if sharding is None:
            plain = [name for name in names if _is_cell(name) and (cells or _is_id(name))]
            return [Portion(index, some, size) for some, size in folder.together(plain, at_once, lambda name: (name,))]
        found: list[Portion] = []
        for name in names:
            if name.endswith(".shard"):
                size = self.store.size(join_path(folder.path, name)) or 0
                count = min(1 << sharding.minishard_bits, max(1, -(-size // at_once)))
                cuts = [(number << sharding.minishard_bits) // count for number in range(count + 1)]
                found += [Portion(index, (name,), size // count, each) for each in pairwise(cuts)]
        return found

    def together(
        self, names: Sequence[str], at_once: int, files: Callable[[str], Iterable[str]]
    ) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield runs of names, of whose ``files`` there are about ``at_once`` bytes, and how many bytes.

        Only on this machine is it free to ask how large files are; elsewhere a run has 256 names.
        """
        local, some, waiting = isinstance(self.store, LocalStore), list[str](), 0
        for name in names:
            size = sum(map(self._size, files(name))) if local else at_once // _PART
            if some and waiting + size > at_once:
                yield tuple(some), waiting
                some, waiting = [], 0
            some.append(name)
            waiting += size
        if some:
            yield tuple(some), waiting

    def _size(self, name: str) -> int:
        """Bytes of a value; of one that is compressed four times those that are stored, about."""
        key = join_path(self.path, name)
        found = self.store.size(key)
        return 4 * (self.store.size(key + _SUFFIX) or 0) if found is None else found

    def values(self, portion: Portion) -> Iterator[tuple[str, BytesLike]]:
        """Yield the values of a portion, and what they are called: their ids, or the names of their files.

        Raises :class:`CorruptionError`.
        """
        folder, sharding = self.below(portion.index.key), portion.index.sharding
        for name in portion.names:
            if sharding is not None:
                for number, value in folder._of_shard(name, sharding, portion.minishards):
                    yield str(number), value
            elif (found := folder.read(name)) is not None:
                yield name, found

    def value(self, index: Index, number: int, name: str) -> BytesLike | None:
        """Return the value of an id, or ``None``; ``name``: of its file where there are no shards."""
        folder = self.below(index.key)
        if index.sharding is None:
            return folder.read(name)
        sharding = index.sharding
        shard, minishard = (int(each[0]) for each in sharding.places(np.array([number], np.uint64)))
        file = sharding.name(shard)
        key = join_path(folder.path, file)
        reading = self.store.read(key, (sharding.entry_range(minishard),))
        if reading is None:
            return None
        try:
            if len(reading.parts[0]) != 16:
                raise CorruptionError(f"the shard has {reading.size} bytes, fewer than its index")
            start, length = sharding.index_ranges(reading.parts[0], reading.size)[0].tolist()
            if not length:
                return None
            ids, starts, lengths = sharding.minishard(self._part(key, start, length), reading.size)
            row = np.flatnonzero(ids == np.uint64(number))
            if not len(row):
                return None
            return sharding.value(self._part(key, int(starts[row[0]]), int(lengths[row[0]])))
        except DataError as error:
            raise error.at(key=key) from None

    def _of_shard(self, name: str, sharding: Sharding, minishards: tuple[int, int]) -> Iterator[tuple[int, BytesLike]]:
        """The values of some minishards of a shard, the last of which is not among them."""
        key = join_path(self.path, name)
        try:
            size = self.store.size(key) or 0
            if size < sharding.index_size:
                raise CorruptionError(f"the shard has {size} bytes, fewer than its index of {sharding.index_size}")
            ranges = sharding.index_ranges(self._part(key, 0, sharding.index_size), size)
            room = size
            first, last = minishards
            for own in (first + np.flatnonzero(ranges[first:last, 1])).tolist():
                index = sharding.minishard(self._part(key, *ranges[own].tolist()), size)
                shards, own_minishards = sharding.places(index[0])
                elsewhere = own_minishards != np.uint64(own)
                elsewhere |= np.isin(shards, [each for each in np.unique(shards) if sharding.name(int(each)) != name])
                if elsewhere.any():
                    number = int(index[0][elsewhere][0])
                    raise CorruptionError(f"id {number} is in this shard, where it belongs into another place")
                if len(np.unique(index[0])) != len(index[0]):
                    raise CorruptionError("an id is in this shard twice")
                room -= sum(index[2].tolist())
                if room < 0:
                    raise CorruptionError("values overlap: they have more bytes than the shard")
                for number, stored in self._values_of(key, *index):
                    yield number, sharding.value(stored)
        except DataError as error:
            raise error.at(key=key) from None

    def _values_of(self, key: str, ids: Ids, starts: Ids, lengths: Ids) -> Iterator[tuple[int, BytesLike]]:
        """The stored values of a minishard; by one request, where not much lies between them."""
        ends = starts + lengths
        first, last = (int(starts.min()), int(ends.max())) if len(ids) else (0, 0)
        if last - first <= min(2 * int(lengths.astype(np.float64).sum()) + _GAP, _TOGETHER):
            together = memoryview(self._part(key, first, last - first))
            for number, start, end in zip(ids.tolist(), starts.tolist(), ends.tolist(), strict=True):
                yield number, together[start - first : end - first]
            return
        for number, start, length in zip(ids.tolist(), starts.tolist(), lengths.tolist(), strict=True):
            yield number, self._part(key, start, length)

    def _part(self, key: str, start: int, length: int) -> BytesLike:
        """Bytes of a value; the range has been compared with its size."""
        check_size(f"a part of {key!r}", length)
        if length == 0:
            return b""
        reading = self.store.read(key, ((start, length),))
        if reading is None or len(reading.parts[0]) != length:
            raise CorruptionError("the shard is another one by now")
        return reading.parts[0]

    def _read(self, key: str, setting: str) -> BytesLike | None:
        limit = limit_of(setting)
        reading = self.store.read_up_to(key, limit)
        if reading is None:
            return None
        if not reading.parts:
            raise too_large(repr(key), reading.size, setting, limit)
        return reading.parts[0]


def _is_cell(name: str) -> bool:
    """Whether a name is that of an id, or of a cell: a number or several."""
    return name.isascii() and all(each.isdecimal() for each in name.split("_"))


def _is_id(name: str) -> bool:
    return name.isdecimal() and int(name) < 2**64


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


def shards_of(index: Index, ids: npt.NDArray[np.uint64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows of ``ids`` that are stored together: those of each shard, or parts of those that are files."""
    if index.sharding is None:
        for start in range(0, len(ids), _PART):
            yield np.arange(start, min(len(ids), start + _PART))
        return
    shards, _ = index.sharding.places(ids)
    order = np.argsort(shards, kind="stable")
    cuts = np.flatnonzero(np.diff(shards[order])) + 1
    yield from np.split(order, cuts) if len(order) else ()


_PART: Final = 256
"""Values that are read and written at a time."""


__all__ = ["PREFIX", "Folder", "Portion", "shards_of", "write_index"]
