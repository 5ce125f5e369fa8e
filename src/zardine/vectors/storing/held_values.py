"""What a change has read of a store, so that it asks for nothing twice.

A change reads a cell, or the last rows of a table, to work out what is to be there, and puts that into the same object
when it is agreed on: into the same shard, or the same chunk. Where locks are exclusive nobody else changes these
meanwhile. Who does not ask for the lock, as other programs, or writers where locks keep nobody out, is noticed as ever:
what is written says which version it replaces, and is worked out anew from another one. Documents, by which such
writers agree, are read each time then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.cache import Cache
from zardine.engine.workers import for_each, most_requests
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import WHOLE, ByteRange, Condition, EditableFile, Reading, Store, Version, resolve_range
from zardine.stores.wrappers.wrapper import WrapperStore
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.cells import CellArray

_MOST = 64 * 2**20
"""Bytes of values that one change holds."""


class HeldValues(WrapperStore):
    """A store whose values, once they were read whole, are not read again before they are written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._held: Cache[str, Reading] = Cache(_MOST)
        self._is_alone = store.lock_is_exclusive

    def hold(self, keys: Sequence[str]) -> None:
        """Read values that are to be replaced, and of which parts are asked for before."""
        most = _MOST // max(1, len(keys))
        for_each(lambda key: self.read_up_to(key, most), keys, len(keys), most_requests(self._store))

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        held = self._held.get(key)
        if held is not None:
            data = memoryview(held.parts[0])
            spans = [resolve_range(each, held.size) for each in ranges]
            return Reading(tuple(data[start:stop] for start, stop in spans), held.version, held.size)
        reading = super().read(key, ranges)
        if tuple(ranges) == (WHOLE,):
            self._hold(key, reading)
        return reading

    def read_up_to(self, key: str, most: int) -> Reading | None:
        held = self._held.get(key)
        if held is None:
            held = self._store.read_up_to(self._key(key), most)
            self._hold(key, held)
            return held
        return held if held.size <= most else Reading((), held.version, held.size)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        with self._changing(key):
            return super().set(key, value, condition=condition)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        triples = list(key_start_values)
        with self._changing(*(key for key, _, _ in triples)):
            super().set_partial_values(triples)

    def erase(self, key: str) -> None:
        with self._changing(key):
            super().erase(key)

    def erase_version(self, key: str, version: Version | None) -> None:
        with self._changing(key):
            super().erase_version(key, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        names = list(keys)
        with self._changing(*names):
            super().erase_values(names)

    def erase_prefix(self, prefix: str) -> None:
        try:
            super().erase_prefix(prefix)
        finally:
            self._held.clear()

    @contextmanager
    def edit_file(self, key: str) -> Generator[EditableFile | None, None, None]:
        with self._changing(key), super().edit_file(key) as file:
            yield file

    @contextmanager
    def _changing(self, *keys: str) -> Generator[None, None, None]:
        """Forget values after they are changed, or somebody else was found to have changed them."""
        try:
            yield
        finally:
            for key in keys:
                self._held.drop(key)

    def _hold(self, key: str, reading: Reading | None) -> None:
        if reading is None or not reading.parts:
            return
        if self._is_alone or (reading.version is not None and not key.endswith(DOCUMENT_NAME)):
            self._held.put(key, reading, reading.size)


def held_values(store: Store) -> Store:
    """Return ``store`` for one change: where files are at hand, which are looked at in their places, as it is."""
    return store if store.gives_files else HeldValues(store)


def hold_shards(arrays: Callable[[], Iterable[CellArray]], store: Store, chunks: Ints) -> None:
    """Read the shards of cells that are to be replaced, where that means to replace the shards.

    Then cells are not looked for by ranges first. Files of shards are changed in their places instead.
    """
    if not isinstance(store, HeldValues) or store.edits_files:
        return
    keys: list[str] = []
    for array in arrays():
        shape = array.array.shards
        if shape is not None:
            cells = chunks[array.inside(chunks)] - np.asarray(array.origin)
            shards = unique_rows(cells // np.asarray(shape))[0]
            keys += [array.array._handle.key(tuple(each)) for each in shards.tolist()]
    store.hold(keys)
