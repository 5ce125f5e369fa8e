"""What values are made of: entries with keys, put together where they belong, whoever found them. Pure.

Values of a table are put into **bins** by their ids: a shard is one, and of values that are files some are. Each job
that reads a part of a level makes a **run**: its entries by bin, so that those of one bin can be read out of all runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.crc32c import crc32c
from zardine.errors import CorruptionError
from zardine.json_document import parse_json
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.sharding import Ids, Sharding, murmurhash3_x86_128, sharding_for
from zardine.vectors.exchange.precomputed.spatial import cells_of
from zardine.vectors.format.ragged import starts_of

Data: TypeAlias = "npt.NDArray[Any] | list[bytes]"
"""Entries of one size as an array of bytes, others as a list."""
_BIN: Final = 2**26
"""Bytes of the values of a bin that are files, about."""
_MOST_FILES: Final = 1000
"""Values of a table above which they are put into shards."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Values of a table, or what goes into its lists."""

    keys: Ids
    """The id of the value of each."""
    orders: Ids
    """Those of one list are in this order."""
    data: Data

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: npt.NDArray[np.int64]) -> Entries:
        """Return some of them."""
        data = [self.data[row] for row in rows.tolist()] if isinstance(self.data, list) else self.data[rows]
        return Entries(self.keys[rows], self.orders[rows], data)

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """Return those of all parts."""
        keys, orders = (np.concatenate([np.zeros(0, np.uint64), *each]) for each in _columns(parts))
        sizes = {each.data.itemsize for each in parts if not isinstance(each.data, list)}
        if len(sizes) == 1 and not any(isinstance(each.data, list) for each in parts):
            return cls(keys, orders, np.concatenate([np.asarray(each.data) for each in parts]))
        return cls(keys, orders, [bytes(one) for each in parts for one in each.data])

    def in_order(self) -> Entries:
        """Return them by keys, and those of each in their order."""
        return self.take(np.lexsort((self.orders, self.keys)))


def _columns(parts: Sequence[Entries]) -> tuple[list[Ids], list[Ids]]:
    return [each.keys for each in parts], [each.orders for each in parts]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the values of a table are stored."""

    index: Index
    count: int
    """How many values there are, about."""
    nbytes: int
    """Of all of them, about."""
    listed: bool = False
    """Whether they are lists of annotations, whose entries come from several parts."""
    ending: str = ""
    """What follows the id in the names of files."""
    grid_shape: tuple[int, ...] = ()
    """Of cells, after which files are named; their ids are the codes of these."""

    def stored(self, sharded: bool | None) -> Layout:
        """Return the same with shards, or without; ``None``: where there are more than 1,000 values."""
        chosen = self.count > _MOST_FILES if sharded is None else sharded
        sharding = sharding_for(self.count, self.nbytes) if chosen else None
        return Layout(**{**_fields(self), "index": Index(self.index.key, sharding, self.index.id)})

    @property
    def bins(self) -> int:
        """How many bins there are."""
        sharding = self.index.sharding
        return max(1, -(-self.nbytes // _BIN)) if sharding is None else 1 << sharding.shard_bits

    def bins_of(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Return the bin of each id."""
        sharding = self.index.sharding
        if sharding is None:
            return (murmurhash3_x86_128(ids) % np.uint64(self.bins)).astype(np.int64)
        return sharding.places(ids)[0].astype(np.int64)

    def names(self, ids: Ids) -> list[str]:
        """Return what values are called that are files."""
        if self.grid_shape:
            return ["_".join(map(str, cell)) for cell in cells_of(ids, self.grid_shape).tolist()]
        return [f"{each}{self.ending}" for each in ids.tolist()]

    def values(self, entries: Entries) -> Iterator[tuple[int, str, BytesLike]]:
        """Yield ids, names and values of entries that are in order."""
        if not len(entries):
            return
        keys, firsts = np.unique(entries.keys, return_index=True)
        data, names = entries.data, self.names(keys)
        if not self.listed:
            if len(keys) != len(entries):
                raise CorruptionError(f"a value of {self.index.key!r} is there twice")
            yield from ((int(key), names[row], bytes(data[row])) for row, key in enumerate(keys.tolist()))
            return
        assert not isinstance(data, list)
        rows = np.ascontiguousarray(data).view(np.uint8).reshape(len(data), data.itemsize)
        for key, name, first, last in zip(
            keys.tolist(), names, firsts.tolist(), [*firsts[1:].tolist(), len(data)], strict=True
        ):
            own = rows[first:last]
            yield key, name, (last - first).to_bytes(8, "little") + own[:, :-8].tobytes() + own[:, -8:].tobytes()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        sharding = self.index.sharding
        told = {**_fields(self), "index": [self.index.key, self.index.id], "grid_shape": list(self.grid_shape)}
        return {**told, "sharding": None if sharding is None else sharding.document()}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Layout:
        """Return what :meth:`to_json` wrote."""
        fields_ = {name: each for name, each in told.items() if name not in ("index", "sharding", "grid_shape")}
        key, name = told["index"]
        index = Index(key, Sharding.parse(told["sharding"], key), name)
        return cls(index=index, grid_shape=tuple(told["grid_shape"]), **fields_)


def _fields(layout: Layout) -> dict[str, Any]:
    return {name: getattr(layout, name) for name in Layout.__slots__}


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of all tables, numbered one after the other."""

    layouts: tuple[Layout, ...]

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where those of each table begin, and how many there are in all."""
        return starts_of([each.bins for each in self.layouts])

    def table(self, number: int) -> tuple[int, Layout]:
        """Return the table of a bin, and its number."""
        table = int(np.searchsorted(self.starts, number, side="right")) - 1
        return table, self.layouts[table]


@dataclass(slots=True)
class Run:
    """The entries of a part of a level, by bin, as bytes."""

    bins: Bins
    _found: dict[int, list[Entries]] = field(default_factory=dict)

    def add(self, table: int, entries: Entries) -> None:
        """Put entries of a table into their bins."""
        if not len(entries):
            return
        numbers = self.bins.layouts[table].bins_of(entries.keys) + self.bins.starts[table]
        order = np.argsort(numbers, kind="stable")
        there, firsts = np.unique(numbers[order], return_index=True)
        for number, rows in zip(there.tolist(), np.split(order, firsts[1:]), strict=True):
            self._found.setdefault(number, []).append(entries.take(rows))

    def to_bytes(self) -> bytes:
        """Return it with a document before that says where which bin is."""
        pieces, places, at = list[bytes](), dict[str, list[int]](), 0
        for number in sorted(self._found):
            data = _packed(Entries.joined(self._found[number]))
            places[str(number)] = [at, len(data), crc32c(data)]
            pieces.append(data)
            at += len(data)
        head = json.dumps(places).encode()
        return b"".join((len(head).to_bytes(8, "little"), crc32c(head).to_bytes(8, "little"), head, *pieces))


_HEAD: Final = 16
"""Bytes that say how long the document is, and its checksum."""
Ranged: TypeAlias = Callable[[int, int], BytesLike]
"""Gives so many bytes from a place on."""


def bin_of_run(read: Ranged, number: int) -> Entries | None:
    """Return the entries of a bin in a run; ``None``: there are none. Raises :class:`CorruptionError`."""
    head = bytes(read(0, _HEAD))
    length = int.from_bytes(head[:8], "little")
    told = bytes(read(_HEAD, length)) if len(head) == _HEAD and length < 2**40 else b""
    if len(told) != length or crc32c(told) != int.from_bytes(head[8:], "little"):
        raise CorruptionError("the document of the run is damaged")
    places: Any = parse_json(told)
    if str(number) not in places:
        return None
    start, size, checksum = places[str(number)]
    data = bytes(read(_HEAD + length + start, size))
    if len(data) != size or crc32c(data) != checksum:
        raise CorruptionError("a part of the run is damaged")
    return _unpacked(data)


def _packed(entries: Entries) -> bytes:
    count = len(entries)
    if isinstance(entries.data, list):
        size, lengths = -1, np.array([len(each) for each in entries.data], "<u8").tobytes()
        data = b"".join(entries.data)
    else:
        size, lengths, data = entries.data.itemsize, b"", entries.data.tobytes()
    head = np.array([count, size], "<i8").tobytes()
    return b"".join((head, entries.keys.astype("<u8").tobytes(), entries.orders.astype("<u8").tobytes(), lengths, data))


def _unpacked(data: bytes) -> Entries:
    count, size = np.frombuffer(data, "<i8", 2).tolist()
    keys, orders = np.frombuffer(data, "<u8", 2 * count, 16).astype(np.uint64).reshape(2, count)
    at = 16 + 16 * count
    if size >= 0:
        return Entries(keys, orders, np.frombuffer(data, f"V{size}", count, at))
    starts = starts_of(np.frombuffer(data, "<u8", count, at)) + at + 8 * count
    return Entries(keys, orders, [data[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)])


__all__ = ["Bins", "Data", "Entries", "Layout", "Run", "bin_of_run"]
