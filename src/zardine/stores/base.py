"""The abstract store interface, by the names of the specification (core 3.1, "Abstract store interface").

A store maps keys to values. A *key* is a non-empty string of parts joined by ``/``; a *prefix* is empty (the whole
store) or ends with ``/``. What every store promises:

- Values are replaced whole: a reader sees the old value or the new one, never a mixture.
- ``set`` returns only after other readers of the same store can see the value.
- Operations may be called from many threads at once.
- A missing key is not an error: ``get`` gives ``None``, ``erase`` does nothing.

Subclasses implement :meth:`Store.read`, :meth:`Store.set`, :meth:`Store.erase` and :meth:`Store.list_dir`; everything
else has a fallback made of these, to be replaced where a store can do better. Caching, counting and prefixing are
wrappers, not options of stores. Names that only programs written for zarr-python use are those of
:class:`~zardine.stores.zarr_python_names.ZarrPythonNames`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from itertools import count
from types import TracebackType
from typing import ClassVar, Final, Protocol, Self

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, InvalidKeyError
from zardine.public_names import public
from zardine.stores.attempts import EDITS, attempts
from zardine.stores.byte_ranges import WHOLE, ByteRange, Version, resolve_range
from zardine.stores.condition import Condition
from zardine.stores.file_seam import StoreFiles, check_writable
from zardine.stores.locks import KeyedLock
from zardine.stores.object_meter import RequestMeter
from zardine.stores.open_files import EditableFile, FilePart, OpenFile
from zardine.stores.zarr_python_names import ZarrPythonNames


class Versioned(Protocol):
    """What was read of a value, with its version."""

    @property
    def version(self) -> Version | None:
        """The version; ``None`` if the store does not tell it."""


@public("zardine.storage")
@dataclass(frozen=True, slots=True)
class Reading:
    """The answer to one :meth:`Store.read`: all ``parts`` come from the same version of the value."""

    parts: tuple[BytesLike, ...]
    version: Version | None
    """``None`` where the store has no version tokens."""
    size: int
    """Bytes of the whole value."""


_SLOW: Final = 0.005
"""Seconds of a request from which on one is worth saving."""
MOST_REQUESTS: Final = 64
"""Requests to one store that are under way at the same time, where the store does not say otherwise."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """The cost model of a store: a request takes ``latency`` seconds, and then ``bandwidth`` bytes a second flow.

    ``requests`` is how many of them at a time are worth while, which is how many are under way then: object stores and
    web servers say what has been seen to be good (:mod:`zardine.stores.pace`). So many more are ``waiting`` for their
    turn there, that more can be tried. ``flows`` are bytes that flow in the time of a request, of one answer and of
    many at the same time, where that is measured.
    """

    latency: float = 0.02
    bandwidth: float = 1e8
    requests: int = MOST_REQUESTS
    waiting: int = 0
    flows: tuple[int, int] | None = None

    @property
    def is_slow(self) -> bool:
        """Whether a request takes so long that it is worth saving at the price of bytes, or of another one beside."""
        return self.latency >= _SLOW

    @property
    def spare(self) -> tuple[int, int]:
        """Bytes that may be read unasked to save a request: of one value, and of all that are read at the same time.

        They flow in a quarter of the time of a request, and in the time of one.
        """
        one, most = self.flows or (self.gap, self.gap)
        return one // 4, most

    def as_measured(self, requests: int, flows: tuple[int, int]) -> ReadCost:
        """Return the same with what was measured since; ``self`` where that is nothing new."""
        if (requests, flows) == (self.requests, self.flows):
            return self
        return replace(self, requests=requests, waiting=requests // 2, flows=flows)

    @property
    def gap(self) -> int:
        """Bytes that flow in the time of one request: unwanted ones up to here are worth reading along."""
        return int(self.latency * self.bandwidth)


NEAR: Final = ReadCost(latency=2e-5, bandwidth=2e9, requests=1)
"""Of files of this machine."""

FAR: Final = ReadCost(latency=0.03, bandwidth=5e7)
"""Of object stores far away."""


class NewValue(ABC):
    """A value that is written piece by piece; see :meth:`Store.new_value`."""

    __slots__ = ("size",)

    is_in_memory: ClassVar[bool] = False
    """Whether all that was written is held in memory until it is stored."""

    size: int
    """Bytes that it has so far."""

    @abstractmethod
    def write(self, parts: Sequence[BytesLike]) -> None:
        """Add ``parts`` to its end, one after the other."""

    @abstractmethod
    def write_at(self, offset: int, parts: Sequence[BytesLike]) -> None:
        """Write ``parts`` over what was written from ``offset`` on, within it."""

    @abstractmethod
    def put(self, condition: Condition | None = None) -> Version | None:
        """Store it as :meth:`Store.set` does, as the last thing that is done with it; gives the version."""


@public("zardine.storage")
class Store(ZarrPythonNames, ABC):
    """A mapping of keys to bytes. See the module's text for keys, prefixes and promises."""

    def __init__(self, *, read_only: bool = False) -> None:
        self._read_only = read_only
        self._unique_number = _Number()  # here already, so that with_read_only keeps it

    @property
    def read_only(self) -> bool:
        """Whether writing is refused (:class:`~zardine.errors.ReadOnlyError`)."""
        return self._read_only

    def with_read_only(self, read_only: bool = False) -> Self:
        """A store over the same values that refuses writes, or one that allows them; ``self`` stays as it is."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._read_only = read_only
        return twin

    # readable

    @abstractmethod
    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        """Byte ranges of one value, all of the same version, with that version; ``None`` if the key is missing."""

    def get(self, key: str) -> BytesLike | None:
        """The value of ``key``, or ``None``."""
        reading = self.read(key)
        return None if reading is None else reading.parts[0]

    def read_up_to(self, key: str, most: int) -> Reading | None:
        """The whole value, if it has at most ``most`` bytes; of a longer one no ``parts``, only its ``size``.

        So nobody holds a value of which the length alone is wrong. The fallback reads a range.
        """
        reading = self.read(key, ((0, most),))
        return reading if reading is None or reading.size <= most else Reading((), reading.version, reading.size)

    def read_and_look(self, key: str, most: int, *others: str) -> tuple[Reading | None, bool]:
        """What :meth:`read_up_to` gives; if that is a value, also what :meth:`seems_missing` says then of ``others``.

        Stores for which that is less work do both at once.
        """
        reading = self.read_up_to(key, most)
        return reading, reading is not None and self.seems_missing(*others)

    def read_small(self, keys: Iterable[str], most: int) -> Iterator[BytesLike | None]:
        """For each of ``keys`` its value, if it has at most ``most`` bytes and can be had for less than by itself.

        ``None``: it is to be asked for by itself, and may be missing. Values that are asked for before their turn count
        for a moment, and not after this process has written to such a store. The fallback asks for nothing.
        """
        return (None for _ in keys)

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange]]) -> list[BytesLike | None]:
        """Parts of values, in the order asked for; ``None`` for each missing key.

        The fallback reads each key once, so that all parts of one key come from the same version.
        """
        pairs = list(key_ranges)
        places: dict[str, list[int]] = {}
        for place, (key, _) in enumerate(pairs):
            places.setdefault(key, []).append(place)
        parts: list[BytesLike | None] = [None] * len(pairs)
        for key, wanted in places.items():
            reading = self.read(key, [pairs[place][1] for place in wanted])
            if reading is not None:
                for place, part in zip(wanted, reading.parts, strict=True):
                    parts[place] = part
        return parts

    def exists(self, key: str) -> bool:
        """Whether ``key`` has a value."""
        return self.read(key, ((0, 0),)) is not None

    def seems_missing(self, *keys: str) -> bool:
        """Whether nothing that may be seen is at any of ``keys``; false where a look costs as much as reading."""
        return False

    def size(self, key: str) -> int | None:
        """Bytes of the value of ``key``, or ``None``."""
        reading = self.read(key, ((0, 0),))
        return None if reading is None else reading.size

    def version(self, key: str) -> Version | None:
        """The present version of ``key``; ``None`` if it is missing or the store has no versions."""
        reading = self.read(key, ((0, 0),))
        return None if reading is None else reading.version

    def is_unchanged(self, key: str, version: Version | None) -> bool:
        """Whether ``key`` still has this version; false where that cannot be told. Costs as little as a look can."""
        return version is not None and self.version(key) == version

    @property
    def has_cheap_looks(self) -> bool:
        """Whether :meth:`is_unchanged` takes microseconds and no request, so that one may ask at every operation."""
        return False

    def version_of_names(self, prefix: str) -> Version | None:
        """What differs when names come or go directly below ``prefix``; ``None`` where no cheap look tells that."""
        return None

    # writeable

    @abstractmethod
    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        """Store a value, replacing the old one atomically; gives the new version.

        With a ``condition`` the write happens only if it holds at that moment, else
        :class:`~zardine.errors.ConditionFailedError` is raised and nothing changes.
        """

    def new_value(self, key: str) -> AbstractContextManager[NewValue]:
        """A context in which a value of ``key`` is written piece by piece, and then put in its place, or given up.

        For values so large that they had better not be in memory. With the fallback they are, once; :meth:`set` stores
        them then.
        """
        self._check_writable()
        return nullcontext(_ValueInMemory(self, key))

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        """Overwrite parts of values from ``start`` on; ranges of one key must not overlap.

        A value grows where a part reaches past its end; a gap so made is filled with zero bytes. The fallback replaces
        each value whole, so that readers see all parts of one key or none; where the store has versions, writers that
        do this at once lose nothing.
        """
        self._check_writable()
        parts: dict[str, list[tuple[int, BytesLike]]] = {}
        for key, start, value in key_start_values:
            parts.setdefault(check_key(key), []).append((start, flat_bytes(value)))
        for key, pieces in parts.items():
            pieces.sort(key=lambda piece: piece[0])
            end = 0
            for start, value in pieces:
                if start < end:
                    raise ValueError(f"set_partial_values: overlapping or negative ranges for key {key!r}")
                end = start + len(value)
        for key, pieces in parts.items():
            with self.lock(key):
                _merge(self, key, pieces)

    def condition_on(self, key: str, reading: Versioned | None, *, strict: bool = False) -> Condition | None:
        """Return the condition of a write of ``key`` that is made of ``reading`` (``None``: the key was missing).

        ``strict`` as in :class:`Condition`. ``None`` if the store told no version: see :meth:`accept_races`.
        """
        if reading is not None and reading.version is None:
            self.accept_races(key, strict=strict)
            return None
        return Condition(None if reading is None else reading.version, strict)

    def accept_races(self, key: str, *, strict: bool = False) -> None:
        """Decide on a write of ``key`` that can undo what another process or machine writes at the same time.

        A store may warn, or refuse it with :class:`~zardine.errors.UnsupportedError`; ``strict`` as in
        :class:`Condition`. This method does neither.
        """
        return

    @abstractmethod
    def erase(self, key: str) -> None:
        """Remove ``key`` if it is there.

        Stores of files raise :class:`~zardine.errors.StoreError`, and remove nothing, if ``key`` is a directory with
        keys below it: see :meth:`erase_prefix`.
        """

    def erase_version(self, key: str, version: Version | None) -> None:
        """Remove ``key`` if it has this version, else :class:`~zardine.errors.ConditionFailedError`.

        For who holds :meth:`lock` where that is exclusive: programs that take no locks are noticed by the version.
        ``None`` where the store has no versions: then this is :meth:`erase`.
        """
        if version is not None and self.version(key) != version:
            raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; it was not erased")
        self.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys."""
        self._check_writable()
        for key in keys:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that starts with ``prefix``."""
        check_prefix(prefix)
        self._check_writable()
        self.erase_values(tuple(self.list_prefix(prefix)))

    def move_prefix(self, source: str, dest: str) -> bool:
        """Rename every key that starts with ``source`` so that it starts with ``dest``, in one instant.

        Returns False, and changes nothing, if the store cannot do that, or something is stored at ``dest``.
        """
        check_prefix(source)
        check_prefix(dest)
        self._check_writable()
        return False

    # listable

    @abstractmethod
    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """``(keys, prefixes)`` directly below ``prefix``, both sorted, both as full names (``a/b``, ``a/d/``)."""

    def list(self) -> Iterator[str]:
        """Every key, sorted."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Every key that starts with ``prefix``, sorted by code point."""
        keys, prefixes = self.list_dir(prefix)
        for name in sorted(keys + prefixes):
            if name.endswith("/"):
                yield from self.list_prefix(name)
            else:
                yield name

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]] | None:
        """Every key that starts with ``prefix``, sorted, each with its version, in no more requests than listing takes.

        ``None`` where that cannot be had, as with this fallback.
        """
        return None

    def is_empty(self, prefix: str = "") -> bool:
        """Return whether no key is below the path ``prefix``."""
        path = prefix.strip("/")
        keys, prefixes = self.list_dir(f"{path}/" if path else "")
        return not keys and not prefixes

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed."""
        return True

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        """A context in which no other writer of ``key`` comes in between, as far as this store can promise that.

        The fallback excludes threads that take the lock of the same store object. A lock saves vain work where several
        write one value; what keeps updates from being lost is the condition of :meth:`set`. One thread may nest it, and
        may write the key inside of it; a write of that key that it hands to another thread and waits for never ends.
        """
        return KeyedLock((id(self), check_key(key)))

    def writer(self, prefix: str) -> AbstractContextManager[bool]:
        """A context for who writes below ``prefix``: :meth:`wait_for_writers` waits until it is left.

        Any number may be in it at the same time. Gives whether all who wait are able to know of it; the fallback makes
        no one wait. Nothing that waits for writers of the same prefix may be called inside.
        """
        return nullcontext(False)

    def wait_for_writers(self, prefix: str) -> bool:
        """Wait for those who are in :meth:`writer` of ``prefix`` now. False where not all can be known, or waited for.

        Whoever waits has made sure before that no new ones begin.
        """
        return False

    def without_writers(self, prefix: str) -> AbstractContextManager[bool]:
        """A context in which nobody is in :meth:`writer` of ``prefix``: who is, is waited for, who comes waits.

        Gives what :meth:`wait_for_writers` gives; the fallback keeps out nobody who comes later. Nothing that writes
        below the same prefix may be called inside.
        """
        return nullcontext(self.wait_for_writers(prefix))

    @property
    def cost(self) -> ReadCost:
        """What reading costs, about; engines plan by it."""
        return ReadCost()

    @property
    def erased_together(self) -> int:
        """How many keys one request of :meth:`erase_values` removes at most."""
        return 1

    @property
    def files(self) -> StoreFiles | None:
        """Values as files of this machine; ``None`` for stores whose values are none."""
        return None

    @property
    def lock_is_exclusive(self) -> bool:
        """Whether :meth:`lock` excludes all writers of this store, those of other processes too."""
        return False

    def is_locked(self, key: str) -> bool:
        """Whether another thread or process holds :meth:`lock` of ``key`` now. Does not wait.

        For stores with :attr:`lock_is_exclusive`. True where that cannot be told, as with this fallback.
        """
        return True

    # what only some stores can tell

    @property
    def origin(self) -> tuple[str, str, str] | None:
        """Return where a store of buckets is: scheme, host of the service (empty for the cloud's own), and account.

        ``None`` where there are no buckets. Stores of two origins that are known and differ share nothing.
        """
        return None

    @property
    def unique_name(self) -> str:
        """Return a name that no store of other keys has or had in this process; that of ``path`` here follows a slash.

        The fallback has a number of its own for each object, but for those of :meth:`with_read_only`. Stores of the
        same keys had better have the same name.
        """
        number = self.__dict__.setdefault("_unique_number", _Number())  # one that was not initialised has none yet
        return f"{number.value} {self}"

    def beneath(self, path: str) -> tuple[Store, str]:
        """Return the store beneath all wrappers, and there the path of what is at ``path`` here.

        What lies in local files is told by the root of the file system, links followed, so that two ways to one place
        are one. The fallback is a store with nothing beneath.
        """
        return self, path

    @property
    def meter(self) -> RequestMeter | None:
        """Return the count of the requests that this store, and those made of it, have sent; ``None``: none is kept."""
        return None

    def faults(self) -> Iterator[str]:
        """Say what is wrong with the store as a whole, as opposed to single values; nothing where that is not known."""
        return iter(())

    def left_out(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Give what lies below ``prefix`` and no listing shows: its name, and in words what it is."""
        check_prefix(prefix)
        return iter(())

    @property
    def is_foreign(self) -> bool:
        """Whether the values are made of a file of another format: its codecs may be such as few programs know."""
        return False

    def remarks(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Give what nodes below ``prefix`` say in other words than the file they are made of: paths, and in words what.

        Nothing where values are what was stored.
        """
        check_prefix(prefix)
        return iter(())

    def leftovers(self, older_than: float = 3600.0) -> Iterator[str]:
        """Name what writers that died have left in the whole store, and nobody changed for ``older_than`` seconds."""
        return iter(())

    def remove_leftovers(self, older_than: float = 3600.0) -> int:
        """Remove the :meth:`leftovers`, or put them in order; give their number."""
        self._check_writable("clean up")
        return 0

    def close(self) -> None:
        """Release what the store holds; it may not be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_writable(self, what: str = "write to") -> None:
        check_writable(self, self.read_only, what)


class _ValueInMemory(NewValue):
    """Its bytes are those of a ``bytes`` object, which the store may keep: they are not copied again."""

    __slots__ = ("_data", "_key", "_store")

    is_in_memory = True

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        self._data = BytesIO()
        self.size = 0

    def write(self, parts: Sequence[BytesLike]) -> None:
        for part in parts:
            self.size += self._data.write(part)

    def write_at(self, offset: int, parts: Sequence[BytesLike]) -> None:
        self._data.seek(offset)
        for part in parts:
            self._data.write(part)
        self._data.seek(self.size)

    def put(self, condition: Condition | None = None) -> Version | None:
        return self._store.set(self._key, self._data.getvalue(), condition=condition)


class _Number:
    """A number that no other object has; what comes out of a pickle, with values of its own perhaps, has a new one."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = next(_counter)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number)  # for stores that compare all their attributes

    def __hash__(self) -> int:
        return hash(_Number)

    def __reduce__(self) -> tuple[type[_Number], tuple[()]]:
        return _Number, ()


_counter = count(1)


def _merge(store: Store, key: str, pieces: Sequence[tuple[int, BytesLike]]) -> None:
    for last in attempts():
        old = store.read(key)
        whole = bytearray(b"" if old is None else old.parts[0])
        for start, value in pieces:
            whole.extend(bytes(max(0, start - len(whole))))
            whole[start : start + len(value)] = value
        try:
            store.set(key, bytes(whole), condition=store.condition_on(key, old))
        except ConditionFailedError:
            if last:
                raise
        else:
            return


def is_key(key: object) -> bool:
    """Whether ``key`` is a well formed key; see :func:`check_key`."""
    if not isinstance(key, str) or not key or "\0" in key:
        return False
    framed = f"/{key}/"
    if "//" in framed or "/./" in framed or "/../" in framed:
        return False
    return key.isascii() or not any("\ud800" <= character <= "\udfff" for character in key)


_SHORT: Final = 128
"""Characters of a key that is worth remembering."""

_is_known_key = lru_cache(maxsize=4096)(is_key)


def check_key(key: str) -> str:
    """``key`` if it is well formed, else :class:`~zardine.errors.InvalidKeyError`.

    No empty parts (so no ``/`` at either end), no ``.`` or ``..`` parts, no NUL character, no lone surrogates.
    """
    if not (_is_known_key(key) if isinstance(key, str) and len(key) <= _SHORT else is_key(key)):
        raise InvalidKeyError(
            f"invalid store key {key!r}: parts joined by '/' are needed, none empty, '.' or '..', without NUL "
            "characters and lone surrogates"
        )
    return key


def check_prefix(prefix: str) -> str:
    """``prefix`` if it is well formed (empty, or a key followed by ``/``)."""
    if prefix != "":
        if not isinstance(prefix, str) or not prefix.endswith("/"):
            raise InvalidKeyError(f"invalid store prefix {prefix!r}: a prefix is empty or ends with '/'")
        check_key(prefix[:-1])
    return prefix


def flat_bytes(value: object) -> BytesLike:
    """Any object with a buffer (or with ``to_bytes()``) as contiguous bytes whose ``len`` counts bytes.

    Nothing is copied where the buffer is contiguous and its format is one that :meth:`memoryview.cast` knows.
    :class:`TypeError` if ``value`` has no bytes.
    """
    if isinstance(value, bytes | bytearray):
        return value
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        to_bytes = None if isinstance(value, int) else getattr(value, "to_bytes", None)  # zarr-python's Buffer
        if to_bytes is None:
            raise TypeError(f"the value of a store key must be bytes-like, not {type(value).__name__}") from None
        return bytes(to_bytes())
    if view.ndim == 1 and view.format == "B" and view.c_contiguous:
        return view
    if view.nbytes == 0:
        return b""
    if view.c_contiguous:
        try:
            return view.cast("B")
        except (TypeError, ValueError):
            pass
    return view.tobytes()


def is_soon_unlocked(store: Store, key: str) -> bool:
    """Wait until no writer holds the lock of ``key``; return False if one holds it for long, since it may be stopped.

    For readers of stores with :attr:`Store.lock_is_exclusive`.
    """
    return any(not store.is_locked(key) for _ in attempts(EDITS))


__all__ = [
    "FAR",
    "MOST_REQUESTS",
    "NEAR",
    "WHOLE",
    "ByteRange",
    "Condition",
    "EditableFile",
    "FilePart",
    "NewValue",
    "OpenFile",
    "ReadCost",
    "Reading",
    "Store",
    "Version",
    "check_key",
    "check_prefix",
    "flat_bytes",
    "is_key",
    "is_soon_unlocked",
    "resolve_range",
]
