"""The abstract store interface, by the names of the specification (core 3.1, "Abstract store interface").

A store maps keys to values. A *key* is a non-empty string of parts joined by ``/``; a *prefix* is empty (the whole
store) or ends with ``/``. What every store promises:

- Values are replaced whole: a reader sees the old value or the new one, never a mixture.
- ``set`` returns only after other readers of the same store can see the value.
- Operations may be called from many threads at once.
- A missing key is not an error: ``get`` gives ``None``, ``erase`` does nothing.

Subclasses implement :meth:`Store.read`, :meth:`Store.set`, :meth:`Store.erase` and :meth:`Store.list_dir`; everything
else has a fallback made of these, to be replaced where a store can do better. Caching, counting and prefixing are
wrappers, not options of stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import InvalidKeyError, ReadOnlyError

ByteRange: TypeAlias = tuple[int, int | None]
"""``(start, length)``; a length of ``None`` reaches to the end; ``(-n, None)`` is the last ``n`` bytes.

A range that reaches past the end of the value gives the bytes that are there; ``(-n, None)`` of a shorter value gives
all of it.
"""

WHOLE: Final[ByteRange] = (0, None)

Version: TypeAlias = str
"""A token that changes whenever the value of a key changes (an ETag, or a file's identity and times)."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold for a conditional write: the key has this version, or (``version`` is ``None``) does not exist."""

    version: Version | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer to one :meth:`Store.read`: all ``parts`` come from the same version of the value."""

    parts: tuple[BytesLike, ...]
    version: Version | None
    """``None`` where the store has no version tokens."""
    size: int
    """Bytes of the whole value."""


class Store(ABC):
    """A mapping of keys to bytes. See the module's text for keys, prefixes and promises."""

    def __init__(self, *, read_only: bool = False) -> None:
        self._read_only = read_only

    @property
    def read_only(self) -> bool:
        """Whether writing is refused (:class:`~zardine.errors.ReadOnlyError`)."""
        return self._read_only

    # readable

    @abstractmethod
    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        """Byte ranges of one value, all of the same version, with that version; ``None`` if the key is missing."""

    def get(self, key: str) -> BytesLike | None:
        """The value of ``key``, or ``None``."""
        reading = self.read(key)
        return None if reading is None else reading.parts[0]

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange]]) -> list[BytesLike | None]:
        """Parts of values, in the order asked for; ``None`` for each missing key."""
        parts: list[BytesLike | None] = []
        for key, byte_range in key_ranges:
            reading = self.read(key, (byte_range,))
            parts.append(None if reading is None else reading.parts[0])
        return parts

    def exists(self, key: str) -> bool:
        """Whether ``key`` has a value."""
        return self.read(key, ((0, 0),)) is not None

    def size(self, key: str) -> int | None:
        """Bytes of the value of ``key``, or ``None``."""
        reading = self.read(key, ((0, 0),))
        return None if reading is None else reading.size

    def version(self, key: str) -> Version | None:
        """The present version of ``key``; ``None`` if it is missing or the store has no versions."""
        reading = self.read(key, ((0, 0),))
        return None if reading is None else reading.version

    # writeable

    @abstractmethod
    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        """Store a value, replacing the old one atomically; gives the new version.

        With a ``condition`` the write happens only if it holds at that moment, else
        :class:`~zardine.errors.ConditionFailedError` is raised and nothing changes.
        """

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        """Overwrite parts of values from ``start`` on; ranges of one key must not overlap.

        A value grows where a part reaches past its end; a gap so made is filled with zero bytes. The fallback replaces
        each value whole.
        """
        parts: dict[str, list[tuple[int, BytesLike]]] = {}
        for key, start, value in key_start_values:
            parts.setdefault(key, []).append((start, value))
        for key, pieces in parts.items():
            pieces.sort(key=lambda piece: piece[0])
            end = 0
            for start, value in pieces:
                if start < end:
                    raise ValueError(f"set_partial_values: overlapping or negative ranges for key {key!r}")
                end = start + len(value)
        for key, pieces in parts.items():
            old = self.read(key)
            whole = bytearray(b"" if old is None else old.parts[0])
            for start, value in pieces:
                whole.extend(bytes(max(0, start - len(whole))))
                whole[start : start + len(value)] = value
            versioned = old is None or old.version is not None
            condition = Condition(None if old is None else old.version) if versioned else None
            self.set(key, bytes(whole), condition=condition)

    @abstractmethod
    def erase(self, key: str) -> None:
        """Remove ``key`` if it is there."""

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys."""
        for key in keys:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that starts with ``prefix``."""
        check_prefix(prefix)
        self.erase_values(tuple(self.list_prefix(prefix)))

    # listable

    @abstractmethod
    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """``(keys, prefixes)`` directly below ``prefix``, both sorted, both as full names (``a/b``, ``a/d/``)."""

    def list(self) -> Iterator[str]:
        """Every key."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Every key that starts with ``prefix``."""
        keys, prefixes = self.list_dir(prefix)
        yield from keys
        for below in prefixes:
            yield from self.list_prefix(below)

    # the rest

    def local_path(self, key: str) -> str | None:
        """The path of a local file whose bytes are the value of ``key``, where there is such a file."""
        return None

    def close(self) -> None:  # noqa: B027 - a store that holds nothing has nothing to release
        """Release what the store holds; it may not be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_writable(self, what: str = "write to") -> None:
        if self._read_only:
            raise ReadOnlyError(f"cannot {what} {self}: it was opened read-only")


def check_key(key: str) -> str:
    """``key`` if it is well formed, else :class:`~zardine.errors.InvalidKeyError`.

    No empty parts (so no ``/`` at either end), no ``.`` or ``..`` parts, no NUL character.
    """
    if not isinstance(key, str) or not key or "\0" in key or any(part in ("", ".", "..") for part in key.split("/")):
        raise InvalidKeyError(f"invalid store key {key!r}: parts joined by '/' are needed, none empty, '.' or '..'")
    return key


def check_prefix(prefix: str) -> str:
    """``prefix`` if it is well formed (empty, or a key followed by ``/``)."""
    if prefix != "":
        if not isinstance(prefix, str) or not prefix.endswith("/"):
            raise InvalidKeyError(f"invalid store prefix {prefix!r}: a prefix is empty or ends with '/'")
        check_key(prefix[:-1])
    return prefix


def resolve_range(byte_range: ByteRange, size: int) -> tuple[int, int]:
    """``byte_range`` of a value of ``size`` bytes as ``(start, stop)``, stop exclusive, both within the value."""
    start, length = byte_range
    if start < 0:
        start = max(0, size + start)
        return start, size
    start = min(start, size)
    return start, size if length is None else min(size, start + max(0, length))


__all__ = [
    "WHOLE",
    "ByteRange",
    "Condition",
    "Reading",
    "Store",
    "Version",
    "check_key",
    "check_prefix",
    "resolve_range",
]
