"""What a change has read of a store, so that it asks for nothing twice.

A change reads a cell, or the last rows of a table, to work out what is to be there, and puts that into the same object
when it is agreed on: into the same shard, or the same chunk. Where locks are exclusive nobody else changes these
meanwhile. Who does not ask for the lock, as other programs, or writers where locks keep nobody out, is noticed as ever:
what is written says which version it replaces, and is worked out anew from another one. Documents, by which such
writers agree, are read each time then, but where they are replaced.

Far away, what a change is going to read is asked for ahead, side by side (:meth:`HeldValues.ask`): the answer to such a
question is given to the first who has it, and not again. But while the change holds the claim of the store
(:mod:`.claims`) nobody else begins to change documents, or to make or remove nodes: then documents, also those that are
written, and names are held as well. One that tells of a change that is not carried out yet is not: another writer, who
came before the claim, may be about to end that.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.cache import Cache
from zardine.contexts import sure_context
from zardine.engine.freshness import is_far
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES
from zardine.engine.side_by_side import side_by_side
from zardine.engine.workers import for_each, most_requests
from zardine.errors import StoreError, UnsupportedError
from zardine.limits import DOCUMENT, limit_of
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.nodes.array import Array
from zardine.stores.base import WHOLE, ByteRange, Condition, EditableFile, Reading, Store, Version, resolve_range
from zardine.stores.file_seam import files_to_edit, files_to_read
from zardine.stores.wrappers.wrapper import WrappedFiles, WrapperStore
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.claims import claim_of

_MOST = 64 * 2**20
"""Bytes of values that one change holds."""

_MOST_NAMES = 4096
"""Names in a folder that are held."""

_UNSETTLED = (b'"zardine_pending"', b'"zardine_log"')
"""What is in the document of a level with a change that is not carried out yet."""

_END = 2**18
"""Bytes at the end of a file, the index of a shard and what was stored last, that are read together."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """The bytes of a value from ``start`` on."""

    reading: Reading
    start: int = 0

    def parts(self, ranges: Sequence[ByteRange]) -> tuple[BytesLike, ...] | None:
        """Some ranges of the value; ``None`` where they are not all held."""
        data = memoryview(self.reading.parts[0])
        spans = [resolve_range(each, self.reading.size) for each in ranges]
        if any(start < self.start for start, _ in spans):
            return None
        return tuple(data[start - self.start : stop - self.start] for start, stop in spans)


class _HeldFiles(WrappedFiles):
    """Files that, when they are edited, are no longer held as values."""

    __slots__ = ()

    _store: HeldValues

    @sure_context
    def edit(self, key: str) -> Generator[EditableFile | None, None, None]:
        with self._store._changing(key), super().edit(key) as file:
            yield file


class HeldValues(WrapperStore):
    """A store whose values, once they or their ends were read, are not read again before they are written."""

    files_class = _HeldFiles

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._held: Cache[str, _Held] = Cache(_MOST)
        self._seen: Cache[str, Reading] = Cache(_MOST)
        """Documents that are read each time, as they were the last time."""
        self._absent: set[str] = set()
        """Keys that nothing was stored under, as far as that is held like values."""
        self._ahead: dict[str, Reading | None] = {}
        self._names_ahead: dict[str, tuple[list[str], list[str]]] = {}
        self._names: dict[str, tuple[list[str], list[str]]] = {}
        """What is directly in folders, while the store is claimed."""
        self._turn = Lock()
        self._is_alone = store.lock_is_exclusive
        self._claim = claim_of(store)
        self.has_agreed = False
        """Whether the change counts already, so that it must not be made again."""

    @property
    def asks_ahead(self) -> bool:
        """Whether it is worth while to ask for what is going to be read."""
        return is_far(self._store)

    def ask(self, documents: Iterable[str], folders: Iterable[str] = (), values: Sequence[str] = ()) -> None:
        """Ask for documents by their keys, names in folders (prefixes), and ``values`` as :meth:`hold` does, together.

        What cannot be had is left to those who read it: they are told. So are documents that are long, of which many do
        not fit.
        """
        keys = list(dict.fromkeys(documents))
        most = min(limit_of(DOCUMENT), _MOST // max(1, len(keys)))

        def read(key: str) -> None:
            with suppress(StoreError):
                reading = self._store.read_up_to(self._key(key), most)
                if reading is None or reading.parts:
                    self._ahead[key] = reading

        def names(prefix: str) -> None:
            with suppress(StoreError, UnsupportedError):
                self._names_ahead[prefix] = super(HeldValues, self).list_dir(prefix)

        def hold() -> None:
            with suppress(StoreError):
                self.hold(values)

        calls: list[Callable[[], None]] = [partial(read, key) for key in keys]
        calls += [partial(names, prefix) for prefix in dict.fromkeys(folders)]
        side_by_side(self._store, [*calls, *([hold] if values else [])])

    @property
    def holds_documents(self) -> bool:
        """Whether the store is claimed, far away: then documents and names are held, too.

        Not where somebody who came before the claim was just ending a change: documents may be of before that, or not.
        """
        claim = self._claim
        return claim is not None and claim.is_held and claim.is_quiet and self.asks_ahead

    def has_asked(self, key: str) -> bool:
        """Whether the document of this key was asked for, and nobody has read it yet."""
        return key in self._ahead

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[str]]:
        if self._is_known_absent(prefix):
            return [], []
        found = self._names.get(prefix)
        if found is None:
            found = self._names_ahead.pop(prefix, None)
            found = super().list_dir(prefix) if found is None else found
            if self.holds_documents and sum(map(len, found)) <= _MOST_NAMES:
                self._names[prefix] = found
        return list(found[0]), list(found[1])

    def is_empty(self, prefix: str = "") -> bool:
        return self._is_known_absent(f"{prefix.strip('/')}/") or super().is_empty(prefix)

    def _is_known_absent(self, name: str) -> bool:
        """Whether the names of a folder that is held tell that there is nothing of this key, or prefix."""
        if self._names and self.holds_documents and name.strip("/"):
            for folder, inner in _folders_of(name):
                found = self._names.get(folder)
                if found is not None:
                    return inner not in found[inner.endswith("/")]
        return False

    def hold(self, keys: Sequence[str]) -> list[Reading | None]:
        """Read values that are to be changed, and of which parts are asked for before.

        Files, which are changed in their places, may be much longer than that: of these the ends, unless there are so
        many that these do not fit. What is too long to be held has no ``parts``.
        """
        most = _MOST // max(1, len(keys))
        found: list[Reading | None] = [None] * len(keys)
        if files_to_edit(self._store) and most < _END:
            return found

        def read(which: int) -> None:
            held = self._held.get(keys[which])
            if held is not None:
                found[which] = held.reading
            elif keys[which] in self._absent:
                return
            elif files_to_edit(self._store):
                found[which] = WrapperStore.read(self, keys[which], ((-_END, None),))
                self._hold(keys[which], found[which])
            else:
                found[which] = self.read_up_to(keys[which], most)
                if found[which] is None and self.asks_ahead and not keys[which].endswith(DOCUMENT_NAME):
                    self._absent.add(keys[which])

        for_each(read, range(len(keys)), len(keys), most_requests(self._store))
        return found

    def seen(self, key: str) -> Reading | None:
        """Return a value as it was when it was last read, for who replaces it only if that is what is stored still."""
        held = self._held.get(key)
        return self._seen.get(key) or (self.read(key) if held is None or held.start else held.reading)

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        held = self._held.get(key)
        parts = None if held is None else held.parts(ranges)
        if held is not None and parts is not None:
            return Reading(parts, held.reading.version, held.reading.size)
        if key in self._absent or self._is_known_absent(key):
            return None
        is_whole = tuple(ranges) == (WHOLE,)
        reading = self._ahead.pop(key) if is_whole and key in self._ahead else super().read(key, ranges)
        if is_whole:
            self._hold(key, reading)
        return reading

    def read_up_to(self, key: str, most: int) -> Reading | None:
        held = self._held.get(key)
        if key in self._absent or self._is_known_absent(key):
            return None
        if held is None or held.start:
            reading = self._ahead.pop(key) if key in self._ahead else self._store.read_up_to(self._key(key), most)
            if reading is not None and reading.size > most:
                return Reading((), reading.version, reading.size)
            self._hold(key, reading)
            return reading
        return held.reading if held.reading.size <= most else Reading((), held.reading.version, held.reading.size)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        with self._changing(key):
            version = super().set(key, value, condition=condition)
        self._note_name(key, is_there=True)
        if version is not None and self.holds_documents and key.endswith(DOCUMENT_NAME):
            self._hold(key, Reading((value,), version, len(value)))
        return version

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        triples = list(key_start_values)
        keys = [key for key, _, _ in triples]
        with self._changing(*keys):
            super().set_partial_values(triples)
        for key in keys:
            self._note_name(key, is_there=True)

    def erase(self, key: str) -> None:
        with self._changing(key, goes=True):
            super().erase(key)

    def erase_version(self, key: str, version: Version | None) -> None:
        with self._changing(key, goes=True):
            super().erase_version(key, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        names = list(keys)
        with self._changing(*names, goes=True):
            super().erase_values(names)

    def erase_prefix(self, prefix: str) -> None:
        if self.holds_documents:  # which has no folders, and of all others what is held stays
            self.erase_values(list(self.list_prefix(prefix)))
            return
        try:
            super().erase_prefix(prefix)
        finally:
            self.forget()

    def forget(self) -> None:
        """Forget all, as before another change begins."""
        self._held.clear()
        self._seen.clear()
        self._absent.clear()
        self._ahead.clear()
        self._names_ahead.clear()
        self._names.clear()

    @sure_context
    def _changing(self, *keys: str, goes: bool = False) -> Generator[None, None, None]:
        """Forget values after they are changed, or somebody else was found to have changed them."""
        try:
            yield
        except BaseException:
            goes = True  # what was put may be there all the same: the answer got lost
            raise
        finally:
            for key in keys:
                if goes:
                    self._note_name(key, is_there=False)
                self._held.drop(key)
                self._seen.drop(key)
                self._absent.discard(key)
                self._ahead.pop(key, None)
            for prefix in list(self._names_ahead) if self._names_ahead else ():
                if any(key.startswith(prefix) for key in keys):
                    self._names_ahead.pop(prefix, None)

    def _note_name(self, key: str, *, is_there: bool) -> None:
        """Note a key in the folders that it is in, or where it no longer ``is_there`` forget the names in these."""
        if self._names:
            with self._turn:
                for folder, inner in _folders_of(key):
                    found = self._names.get(folder)
                    if found is None:
                        continue
                    names = found[inner.endswith("/")]
                    if not is_there or sum(map(len, found)) > _MOST_NAMES:
                        del self._names[folder]
                    elif inner not in names:
                        insort(names, inner)

    def _hold(self, key: str, reading: Reading | None) -> None:
        is_document = key.endswith(DOCUMENT_NAME)
        if reading is None and is_document and self.holds_documents:
            self._absent.add(key)
        if reading is None or not reading.parts:
            return
        size = len(reading.parts[0])
        is_steady = not is_document or (self.holds_documents and _is_settled(bytes(reading.parts[0])))
        if self._is_alone or (reading.version is not None and is_steady):
            self._held.put(key, _Held(reading, reading.size - size), size)
        elif size == reading.size:
            self._seen.put(key, reading, size)


def _is_settled(document: bytes) -> bool:
    """Whether a document tells of no change that is not carried out yet."""
    return not any(each in document for each in _UNSETTLED)


def _folders_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield the prefixes that a key, or prefix, is below, each with the name of what is directly in it; inner first."""
    end = len(name)
    while end:
        start = name.rfind("/", 0, end - 1) + 1
        yield name[:start], name[:end]
        end = start


def held_values(store: Store) -> Store:
    """Return ``store`` for one change: where files are at hand, which are looked at in their places, as it is."""
    return store if files_to_read(store) else HeldValues(store)


def hold_shards(cells: Callable[[], Iterable[tuple[CellArray, Ints]]], store: Store) -> None:
    """Read the shards of cells that are to be replaced, by their chunks, so that each is asked for once.

    Otherwise their indexes are asked for first, and then what they say where cells are. Files whose indexes are known,
    as those that were changed by an earlier call, are left: of these only the cells are asked for.
    """
    if not isinstance(store, HeldValues):
        return
    keys: list[str] = []
    for array, chunks in cells():
        if array.array.shards is not None:
            space = array.array._handle.cache_space
            touched = keys_of(array.array, chunks[array.inside(chunks)] - np.asarray(array.origin))
            keys += [key for key in touched if not (files_to_edit(store) and INDEXES.get(space, key))]
    store.hold(keys)


def look_at_shards(array: CellArray, chunks: Ints) -> None:
    """Read the indexes of shards that are to be changed, by chunks in them, where they are not known.

    So that damage of a shard is told of before a change of it is agreed on: after that it could not be carried out, and
    nothing else be changed. Raises :class:`~zardine.errors.CorruptionError`.
    """
    shards = array.array.shards
    chunks = chunks[array.inside(chunks)]
    if shards is None or not len(chunks):
        return
    handle = array.array._handle
    numbers, which = unique_rows((chunks - np.asarray(array.origin)) // np.asarray(shards))
    first = np.zeros(len(numbers), np.int64)
    first[which[::-1]] = np.arange(len(chunks))[::-1]
    known = [_is_index_known(handle, handle.key(tuple(number))) for number in numbers.tolist()]
    some = chunks[first[~np.asarray(known)]]
    hold_shards(lambda: [(array, some)], array.array.store)
    array.read(some)


def _is_index_known(handle: ArrayHandle, key: str) -> bool:
    """Whether the index of a shard is known as it is stored; where a look is a request, as it was stored lately."""
    known = INDEXES.get(handle.cache_space, key)
    store = handle.store
    return known is not None and (not store.has_cheap_looks or store.is_unchanged(key, known.version))


def look_at_chunks(table: Array, rows: Ints) -> None:
    """Read the chunks of a table of which some rows are to be changed, and others kept, as :func:`look_at_shards`."""
    size, count = (table.shards or table.chunks)[0], len(table)
    numbers, changed = np.unique(rows[rows < count] // size, return_counts=True)
    first = numbers * size
    kept = first[changed < np.minimum(size, count - first)]
    if len(kept):
        table.get_orthogonal_selection((kept,))


def keys_of(array: Array, places: Ints) -> list[str]:
    """The keys of the objects that some elements of an array are in, by their places along its first axes."""
    shape = np.asarray(array.shards or array.chunks)[: places.shape[1]]
    rest = (0,) * (array.ndim - places.shape[1])
    return [array._handle.key((*each, *rest)) for each in unique_rows(places // shape)[0].tolist()]
