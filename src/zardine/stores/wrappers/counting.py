"""Counting what is asked of a store, for tests and benchmarks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zardine.buffers import BytesLike
from zardine.contexts import sure_context
from zardine.public_names import public
from zardine.stores.base import WHOLE, ByteRange, Condition, EditableFile, FilePart, Reading, Store, Version, flat_bytes
from zardine.stores.object_meter import RequestMeter
from zardine.stores.wrappers.wrapper import WrappedFiles, WrapperStore


@public("zardine.storage")
@dataclass(slots=True)
class Counts:
    """How often, and how much, since the last reset; calls that fail, or find nothing, count as well."""

    reads: int = 0
    """Values asked for: one for each key of a call, however many ranges."""
    ranges: int = 0
    """Byte ranges asked for (none where only existence, size or version was)."""
    bytes_read: int = 0
    writes: int = 0
    bytes_written: int = 0
    erases: int = 0
    lists: int = 0
    keys: Counter[str] = field(default_factory=Counter)
    """How often each key was read, written or erased; prefixes that were listed or erased are not in it."""
    sent: int | None = None
    """Requests that an object store or web server was sent; ``None`` for a store that sends none, or does not tell.

    One read may be several: one for each range that is apart, or one more for the size of a value. Those that obstore
    repeats without saying so, after a failure, are not in it.
    """

    @property
    def operations(self) -> int:
        """All reads, writes, erasures and listings: what was asked of the store."""
        return self.reads + self.writes + self.erases + self.lists

    @property
    def requests(self) -> int:
        """Requests :attr:`sent`; where none are, or that is not known, :attr:`operations`."""
        return self.operations if self.sent is None else self.sent


class _CountingFiles(WrappedFiles):
    """Files that are edited, which counts; what is read from an open file could not be counted, so that none is."""

    __slots__ = ()

    _store: CountingStore
    can_read = False

    @sure_context
    def edit(self, key: str) -> Generator[EditableFile | None, None, None]:
        with super().edit(key) as file:
            if file is None:
                yield None
                return
            counted = _CountedFile(file, self._store._shared)
            try:
                yield counted
            finally:
                self._store._count((key,), reads=counted.was_opened_in_vain())


@public("zardine.storage")
class CountingStore(WrapperStore):
    """Another store, with :attr:`counts` of what goes through.

    ``reads``, ``writes``, ``erases`` and ``lists`` are operations of the store. What an :class:`ObjectStore` or
    :class:`HTTPStore` below makes of them is counted in ``sent``: all that is sent by way of that store object, so also
    by others who use it at the same time.
    """

    files_class = _CountingFiles

    def __init__(self, store: Store, *, read_only: bool = False) -> None:
        super().__init__(store, read_only=read_only)
        self._shared = _Shared(store.meter)  # so that a read-only twin counts into the same

    @property
    def counts(self) -> Counts:
        """The present counts; :meth:`reset` begins new ones and leaves these as they are."""
        return self._shared.read_meter()

    def reset(self) -> Counts:
        """Begin to count from zero; gives the counts so far."""
        return self._shared.reset()

    def _count(self, keys: Iterable[str] = (), **numbers: int) -> None:
        self._shared.add(keys, numbers)

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        reading = super().read(key, ranges)
        size = 0 if reading is None else sum(map(len, reading.parts))
        self._count((key,), reads=1, ranges=len(ranges), bytes_read=size)
        return reading

    def read_up_to(self, key: str, most: int) -> Reading | None:
        reading = self._store.read_up_to(self._key(key), most)
        size = 0 if reading is None else sum(map(len, reading.parts))
        self._count((key,), reads=1, ranges=1, bytes_read=size)
        return reading

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange]]) -> list[BytesLike | None]:
        pairs = list(key_ranges)
        parts = super().get_partial_values(pairs)
        keys = {key for key, _ in pairs}
        size = sum(len(part) for part in parts if part is not None)
        self._count(keys, reads=len(keys), ranges=len(pairs), bytes_read=size)
        return parts

    def exists(self, key: str) -> bool:
        self._count((key,), reads=1)
        return super().exists(key)

    def size(self, key: str) -> int | None:
        self._count((key,), reads=1)
        return super().size(key)

    def version(self, key: str) -> Version | None:
        self._count((key,), reads=1)
        return super().version(key)

    def is_unchanged(self, key: str, version: Version | None) -> bool:
        """Counted where it is a request."""
        if not self.has_cheap_looks:
            self._count((key,), reads=1)
        return super().is_unchanged(key, version)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        data = flat_bytes(value)
        self._count((key,), writes=1, bytes_written=len(data))
        return super().set(key, data, condition=condition)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        triples = [(key, start, flat_bytes(value)) for key, start, value in key_start_values]
        keys = {key for key, _, _ in triples}
        self._count(keys, writes=len(keys), bytes_written=sum(len(value) for _, _, value in triples))
        super().set_partial_values(triples)

    def erase(self, key: str) -> None:
        self._count((key,), erases=1)
        super().erase(key)

    def erase_version(self, key: str, version: Version | None) -> None:
        self._count((key,), erases=1)
        super().erase_version(key, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        names = list(keys)
        self._count(names, erases=len(names))
        super().erase_values(names)

    def erase_prefix(self, prefix: str) -> None:
        self._count(erases=1)
        super().erase_prefix(prefix)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        self._count(lists=1)
        return super().list_prefix(prefix)

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]] | None:
        self._count(lists=1)
        return super().list_versions(prefix)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        self._count(lists=1)
        return super().list_dir(prefix)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_shared": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy counts for itself, from zero."""
        self.__dict__.update(state)
        self._shared = _Shared(self._store.meter)


class _CountedFile(EditableFile):
    """A file that is changed in place, with the bytes read and written counted; whoever opened it closes it.

    What is read of it counts once, in however many parts, and so does what is written.
    """

    __slots__ = ("_reads", "_shared", "_writes")

    def __init__(self, file: EditableFile, shared: _Shared) -> None:
        super().__init__(
            file.fd,
            file.size,
            file.version,
            file.path,
            file.finished,
            file._put,
            file._record,
            durable=file.durable,
            lent=True,
        )
        self._shared = shared
        self._reads = self._writes = 1

    def read(self, byte_range: ByteRange) -> BytesLike:
        data = super().read(byte_range)
        self._shared.add((), {"reads": self._reads, "ranges": 1, "bytes_read": len(data)})
        self._reads = 0
        return data

    def fd_to_read(self) -> int:
        """Count a read; of how many bytes is not known."""
        self._shared.add((), {"reads": self._reads})
        self._reads = 0
        return super().fd_to_read()

    def write_at(self, offset: int, parts: Sequence[BytesLike]) -> None:
        size = sum(len(memoryview(part).cast("B")) for part in parts)
        self._shared.add((), {"writes": self._writes, "bytes_written": size})
        self._writes = 0
        super().write_at(offset, parts)

    def was_opened_in_vain(self) -> bool:
        """Whether nothing of it was read or written: its size and version were all that was asked for."""
        return bool(self._reads and self._writes)

    def replace(self, pieces: Sequence[BytesLike | FilePart]) -> Version:
        size = sum(each.length if isinstance(each, FilePart) else len(memoryview(each).cast("B")) for each in pieces)
        self._shared.add((), {"writes": self._writes, "bytes_written": size})
        self._writes = 0
        return super().replace(pieces)


class _Shared:
    """Counts that several threads add to, and the meter of the requests behind them."""

    def __init__(self, meter: RequestMeter | None) -> None:
        self._guard = threading.Lock()
        self._meter = meter
        self._begin()

    def _begin(self) -> None:
        self._counts = Counts(sent=None if self._meter is None else 0)
        self._before = 0 if self._meter is None else self._meter.sent

    def add(self, keys: Iterable[str], numbers: Mapping[str, int]) -> None:
        with self._guard:
            self._counts.keys.update(keys)
            for name, number in numbers.items():
                setattr(self._counts, name, getattr(self._counts, name) + number)

    def read_meter(self) -> Counts:
        with self._guard:
            return self._read_meter()

    def reset(self) -> Counts:
        with self._guard:
            old = self._read_meter()
            self._begin()
        return old

    def _read_meter(self) -> Counts:
        if self._meter is not None:
            self._counts.sent = self._meter.sent - self._before
        return self._counts


__all__ = ["CountingStore", "Counts"]
