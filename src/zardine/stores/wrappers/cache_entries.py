"""Where a cache keeps parts of values: each belongs to one version of one key."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Iterable

from zardine.buffers import BytesLike
from zardine.cache import GUARD, Cache

Span = tuple[int, int]
"""Start and stop of a part, in bytes; stop exclusive."""

_PREFIX = "zardine-cache-"

_OF_A_KEY = 1024
"""Bytes of memory that a key takes beside its parts: name, version, entries of tables."""

_OF_A_PART = 320
"""Bytes of memory that a part takes beside its bytes: an object, its span, an entry of a table."""

_BLOCK = 4096
"""Bytes that a file takes at least, and a multiple of which it takes; file systems with other blocks are rare."""

_OF_A_FILE = 512
"""Bytes that a file takes beside its blocks: its name in the directory, and what the file system notes of it."""


class _Kept:
    """What is kept of one version of a value: the spans, and how many bytes that takes."""

    __slots__ = ("nbytes", "parts", "size", "sorted", "version")

    def __init__(self, version: str, size: int) -> None:
        self.version = version
        self.size = size
        self.parts: dict[Span, BytesLike] = {}
        self.sorted: list[Span] = []
        self.nbytes = _OF_A_KEY

    def around(self, span: Span) -> Span | None:
        """A span that is kept and has ``span`` in it: this one, the whole value, or the nearest that begins before."""
        if span in self.parts:
            return span
        if (0, self.size) in self.parts:
            return 0, self.size
        before = bisect_right(self.sorted, (span[0], self.size)) - 1
        near = self.sorted[before] if before >= 0 else None
        return near if near is not None and span[1] <= near[1] else None

    def add(self, span: Span, part: BytesLike) -> None:
        """Keep a part."""
        self.parts[span] = part
        insort(self.sorted, span)


class CacheEntries(ABC):
    """Parts of values, the keys that were not used lately going first when they take more than ``limit`` bytes.

    What counts is the room that is taken, by Python's objects or by files, not only the bytes of the parts. Parts that
    cannot be stored are not kept: the first time a warning says why.
    """

    def __init__(self, limit: int) -> None:
        self._kept: Cache[str, _Kept] = Cache(limit)
        self._warned = False

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """Return the bytes that are taken now."""
        return self._kept.nbytes

    def get(self, key: str) -> tuple[str, int] | None:
        """Return version and size of the value of which parts are kept."""
        kept = self._kept.get(key)
        return None if kept is None else (kept.version, kept.size)

    def part(self, key: str, version: str, size: int, span: Span) -> BytesLike | None:
        """A part that is kept, or that lies within one; ``None`` if there is none, or of another version."""
        if span[0] == span[1]:
            return b""
        with GUARD:
            kept = self._kept.get(key)
            if kept is None or (kept.version, kept.size) != (version, size):
                return None
            around = kept.around(span)
            if around is None:
                return None
            data = kept.parts[around]
        loaded = self._load(key, kept.version, around, data)
        return None if loaded is None else memoryview(loaded)[span[0] - around[0] : span[1] - around[0]]

    def put(self, key: str, version: str, size: int, parts: dict[Span, BytesLike]) -> None:
        """Keep parts of a version; those of another version of the key go."""
        new = {span: bytes(part) for span, part in parts.items() if span[1] > span[0]}
        if sum(map(self._cost, new)) + _OF_A_KEY > self._kept.limit or not new:
            return
        try:
            stored = {span: self._store(key, version, span, part) for span, part in new.items()}
        except OSError as error:
            self._warn(error)
            return
        with GUARD:
            kept, gone = self._kept.drop(key), []
            if kept is None or (kept.version, kept.size) != (version, size):
                gone = [] if kept is None else [(key, kept)]
                kept = _Kept(version, size)
            for span, part in stored.items():
                if span not in kept.parts:
                    kept.add(span, part)
                    kept.nbytes += self._cost(span)
            gone += self._kept.put(key, kept, kept.nbytes)
            if kept.nbytes > self._kept.limit:
                gone.append((key, kept))
        self._forget_all(gone)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"values cannot be kept in the cache, and are read anew each time: {error}", stacklevel=4)

    def drop(self, key: str) -> None:
        """Forget a key."""
        kept = self._kept.drop(key)
        self._forget_all([] if kept is None else [(key, kept)])

    def clear(self) -> None:
        """Forget all keys."""
        self._forget_all(self._kept.clear())

    def _forget_all(self, gone: Iterable[tuple[str, _Kept]]) -> None:
        for key, kept in gone:
            for span in kept.parts:
                self._forget(key, kept.version, span)

    @abstractmethod
    def _cost(self, span: Span) -> int:
        """Bytes that a part takes where it is kept."""

    @abstractmethod
    def _store(self, key: str, version: str, span: Span, data: bytes) -> BytesLike:
        """Put a part away; what this gives is held in memory, and handed to :meth:`_load`. ``OSError`` if it cannot."""

    @abstractmethod
    def _load(self, key: str, version: str, span: Span, held: BytesLike) -> BytesLike | None:
        """The part again, or ``None`` if it got lost."""

    @abstractmethod
    def _forget(self, key: str, version: str, span: Span) -> None:
        """Remove a part."""


class MemoryEntries(CacheEntries):
    """In the memory of this process."""

    def _cost(self, span: Span) -> int:
        return span[1] - span[0] + _OF_A_PART

    def _store(self, key: str, version: str, span: Span, data: bytes) -> BytesLike:
        return data

    def _load(self, key: str, version: str, span: Span, held: BytesLike) -> BytesLike | None:
        return held

    def _forget(self, key: str, version: str, span: Span) -> None:
        pass


class DirectoryEntries(CacheEntries):
    """In files of a directory, each named by what it is a part of, and with a checksum.

    Which files are there is known in memory only; those of a process that ended are removed by the next one.
    """

    def __init__(self, directory: str, limit: int, store: str) -> None:
        super().__init__(limit)
        self._directory = directory
        self._of = store
        os.makedirs(directory, exist_ok=True)
        self._own = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._remove_old()

    def _remove_old(self) -> None:
        """Remove files of processes that are no more."""
        for name in os.listdir(self._directory):
            if name.startswith(_PREFIX):
                owner = name[len(_PREFIX) :].partition("-")[0]
                if owner.isdigit() and not _alive(int(owner)):
                    with contextlib.suppress(OSError):
                        os.unlink(os.path.join(self._directory, name))

    def _cost(self, span: Span) -> int:
        return -(-(span[1] - span[0] + 4) // _BLOCK) * _BLOCK + _OF_A_FILE

    def _store(self, key: str, version: str, span: Span, data: bytes) -> BytesLike:
        path = self._path(key, version, span)
        try:
            self._write(path, data)
        except FileNotFoundError:  # someone removed the directory
            os.makedirs(self._directory, exist_ok=True)
            self._write(path, data)
        return b""

    def _write(self, path: str, data: bytes) -> None:
        try:
            with open(path, "wb") as file:
                file.write(zlib.crc32(data).to_bytes(4, "little") + data)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise

    def _load(self, key: str, version: str, span: Span, held: BytesLike) -> BytesLike | None:
        try:
            with open(self._path(key, version, span), "rb") as file:
                whole = file.read()
        except OSError:
            return None
        data = memoryview(whole)[4:]
        sound = len(data) == span[1] - span[0] and zlib.crc32(data).to_bytes(4, "little") == whole[:4]
        return data if sound else None

    def _forget(self, key: str, version: str, span: Span) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(key, version, span))

    def _path(self, key: str, version: str, span: Span) -> str:
        named = "\0".join((self._of, key, version, str(span)))
        name = hashlib.blake2b(named.encode(), digest_size=20).hexdigest()
        return os.path.join(self._directory, f"{_PREFIX}{self._own}-{name}")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


__all__ = ["CacheEntries", "DirectoryEntries", "MemoryEntries"]
