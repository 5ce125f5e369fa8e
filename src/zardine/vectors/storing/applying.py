"""Storing what the log of a change holds where it belongs. Doing it twice, or again after a kill, does no harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import LEASE, is_far
from zardine.engine.side_by_side import side_by_side
from zardine.errors import ConditionFailedError, CorruptionError
from zardine.frozen import with_fields
from zardine.hierarchy.find import document_key, find_node
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.nodes.array import Array
from zardine.stores.attempts import attempts
from zardine.stores.base import WHOLE, ByteRange, Condition, Reading, Store, Version
from zardine.stores.file_seam import files_to_edit
from zardine.stores.wrappers.wrapper import WrapperStore
from zardine.vectors.content.plan import as_objects
from zardine.vectors.format.cell_documents import origin_of
from zardine.vectors.format.change_log import Changed, ChangeLog
from zardine.vectors.storing.cell_bytes import replace_cells
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.extended_shards import extend_shards
from zardine.vectors.storing.held_values import HeldValues, held_values, keys_of
from zardine.vectors.storing.logs import token_in
from zardine.vectors.storing.node_writing import write_document
from zardine.vectors.storing.table_rows import row_values


class _CarriedOutError(Exception):
    """Another writer has stored all of the log, and may have gone on."""


class _Guarded(WrapperStore):
    """A store without exclusive locks, for who carries out a change as others may, too.

    Values that are written were read before, or are now. If the level still names the log after that, they are what was
    there before the change, or after it; and if nobody has written since, they are so when the new ones are stored. One
    look at the level does for all values that were read before it, for a lease: who stores arrays anew gives others
    that time.
    """

    def __init__(self, store: Store, still: Callable[[], bool]) -> None:
        super().__init__(store)
        self._still = still
        self._read: dict[str, Version | None] = {}
        """Versions of values that were read; ``None``: there was no value."""
        self._sure: dict[str, Version | None] = {}
        """Those that were read before the last look at the level."""
        self._documents: dict[str, Reading | None] = {}
        self._looked = -inf

    def look(self, keys: Sequence[str], documents: Sequence[str]) -> None:
        """Read values that are to be changed, and documents that are to be replaced, and look at the level."""
        if self._see(keys, documents):
            self._check()

    def _see(self, keys: Sequence[str], documents: Sequence[str]) -> bool:
        """Read what is to be changed, and replaced; whether that is to be done before."""
        held = self._store
        if not isinstance(held, HeldValues) or files_to_edit(held) is not None:
            return False
        of_documents = [partial(self._see_document, held, key) for key in documents]
        side_by_side(held, [partial(self._see_values, held, keys), *of_documents])
        return True

    def _see_values(self, held: HeldValues, keys: Sequence[str]) -> None:
        for key, reading in zip(keys, held.hold(keys), strict=True):
            self._note(key, reading)

    def _see_document(self, held: HeldValues, key: str) -> None:
        self._documents[key] = self._note(key, held.seen(key))

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        return self._note(key, super().read(key, ranges))

    def read_up_to(self, key: str, most: int) -> Reading | None:
        return self._note(key, self._store.read_up_to(self._key(key), most))

    def _note(self, key: str, reading: Reading | None) -> Reading | None:
        if reading is None or reading.version is not None:
            self._read[key] = None if reading is None else reading.version
        return reading

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        for last in attempts():
            expected = condition
            if condition is None:
                reading = self._documents.pop(key) if key in self._documents else self.read(key)
                if reading is not None and bytes(reading.parts[0]) == bytes(value):
                    return reading.version
                if reading is None or reading.version is not None:
                    expected = Condition(None if reading is None else reading.version)
            is_sure = expected is not None and key in self._sure and self._sure[key] == expected.version
            if not is_sure or time.monotonic() - self._looked > LEASE:
                self._check()
            try:
                return self._store.set(key, value, condition=expected)
            except ConditionFailedError:
                if last or condition is not None:
                    raise
        raise AssertionError("unreachable")

    def erase(self, key: str) -> None:
        self._check()
        self._store.erase(key)

    def erase_version(self, key: str, version: Version | None) -> None:
        self._check()
        self._store.erase_version(key, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check()
        self._store.erase_values(keys)

    def note_look(self, began: float) -> None:
        """Somebody has looked at the level, which named the log, since ``began``, and after all that was read."""
        self._sure, self._looked = dict(self._read), began

    def _check(self) -> None:
        read, began = dict(self._read), time.monotonic()
        if not self._still():
            raise _CarriedOutError
        self._sure, self._looked = read, began


def can_look_ahead(store: Store) -> bool:
    """Whether what a change is to replace is worth reading before the change is agreed on: see :func:`look_ahead`."""
    return isinstance(store, HeldValues) and is_far(store) and not (store.lock_is_exclusive or files_to_edit(store))


def look_ahead(store: Store, path: str, log: ChangeLog, known: Mapping[str, Array]) -> Ahead:
    """Read what ``log`` is to replace below the level at ``path``, before it is agreed on; see :func:`apply_log`.

    So that the write by which it is agreed on is the look at the level that else comes after that.
    """
    guarded = _guarded(store, path, log)
    ready = _Ready.of(guarded, path, log, known)
    guarded._see(*ready.keys(path))
    return Ahead(guarded, ready)


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """What was read ahead of a change."""

    store: _Guarded
    ready: _Ready
    is_in_document: bool = False
    """Whether the document that agrees on the change has its log in itself."""

    def agreeing(self) -> Callable[[], None]:
        """Return what to call when a write of the level's document that begins now has named the log."""
        return partial(self.store.note_look, time.monotonic())


def apply_log(store: Store, path: str, log: ChangeLog, known: Mapping[str, Array], ahead: Ahead | None = None) -> None:
    """Store the cells and rows of ``log`` below the level at ``path``, and then its documents; far away side by side.

    ``known``: arrays in it, as they were opened before their documents changed. ``ahead``: what was read before the
    change was agreed on, which the caller has just done. Where locks are not exclusive, several writers may do this at
    the same time. Raises :class:`~zardine.errors.CorruptionError` for places that the arrays do not have.
    """
    if store.lock_is_exclusive:
        _apply(store, path, log, _Ready.of(store, path, log, known))
        return
    with suppress(_CarriedOutError):
        if ahead is None:
            guarded = _guarded(store, path, log)
            ready = _Ready.of(guarded, path, log, known)
            guarded.look(*ready.keys(path))
        else:
            guarded, ready = ahead.store, ahead.ready
        _apply(guarded, path, log, ready)


def _guarded(store: Store, path: str, log: ChangeLog) -> _Guarded:
    def still() -> bool:
        level = find_node(store, path, 3)
        return level is not None and token_in(level.attributes) == log.token

    return _Guarded(store if isinstance(store, HeldValues) else held_values(store), still)


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """What a log names, as it is to be."""

    documents: Mapping[str, NodeMetadata]
    arrays: Mapping[str, Array]
    cells: Mapping[str, Ints]
    """Places in the arrays of the cells that change."""
    rows: Mapping[str, Ints]
    """Places in the tables of the rows that change."""

    @classmethod
    def of(cls, store: Store, path: str, log: ChangeLog, known: Mapping[str, Array]) -> _Ready:
        documents: dict[str, NodeMetadata] = {
            relative: parse_node_json(dict(document), f"the logged document of {relative}")
            for relative, document in log.documents.items()
        }
        config = _config_for(ArrayConfig.from_settings(), files_to_edit(store) is not None)
        names = (*log.cells, *log.rows)
        arrays = {relative: _array(store, path, relative, documents, known, config) for relative in names}
        cells = {relative: _cells(arrays[relative], changed) for relative, changed in log.cells.items()}
        for relative, changed in log.rows.items():
            _check(arrays[relative], changed, 1, changed.places)
        return cls(documents, arrays, cells, {relative: changed.places for relative, changed in log.rows.items()})

    def keys(self, path: str) -> tuple[list[str], list[str]]:
        """The keys of the objects that change, and of the documents, below the level at ``path``."""
        places = (*self.cells.items(), *self.rows.items())
        keys = [key for relative, some in places for key in keys_of(self.arrays[relative], some)]
        return keys, [document_key(child(path, relative), each) for relative, each in self.documents.items()]


def _apply(store: Store, path: str, log: ChangeLog, ready: _Ready) -> None:
    arrays, cells = ready.arrays, ready.cells
    sharded = [relative for relative in log.cells if arrays[relative].shards is not None]
    undone = extend_shards([(arrays[each], cells[each], log.cells[each].values) for each in sharded])
    still_to_do = dict(zip(sharded, undone, strict=True))
    calls: list[Callable[[], None]] = []
    for relative, changed in log.cells.items():
        array, left = arrays[relative], still_to_do.get(relative)
        if left is None:
            calls.append(partial(replace_cells, array, cells[relative], changed.values))
        elif len(left):
            values = as_objects([changed.values[cell] for cell in left.tolist()])
            calls.append(partial(array.set_coordinate_selection, tuple(cells[relative][left].T), values))
    calls += [partial(_put_rows, arrays[relative], changed) for relative, changed in log.rows.items()]
    side_by_side(store, calls)
    documents = [(child(path, relative), each) for relative, each in ready.documents.items()]
    side_by_side(store, [partial(write_document, store, *each) for each in documents])


def _put_rows(table: Array, changed: Changed) -> None:
    rows = changed.places[:, 0]
    values = row_values(table, changed.values)
    if len(rows) and (np.diff(rows) == 1).all():
        table[int(rows[0]) : int(rows[-1]) + 1] = values
    else:
        table.set_orthogonal_selection((rows,), values)


@lru_cache(maxsize=8)
def _config_for(config: ArrayConfig, edits_files: bool) -> ArrayConfig:
    """How cells and rows are put in their places, where the settings say ``config``."""
    config = replace(config, write_empty_chunks=False)
    if edits_files and config.write_strategy == "rewrite":
        config = replace(config, write_strategy="append")  # costs the cells, and not the shards that they are in
    return config


def _cells(array: Array, changed: Changed) -> Ints:
    """The places in the array of the cells that change."""
    if changed.places.shape[1] != array.ndim:
        raise CorruptionError("the log of a change has cells of another array", array=array.path)
    cells: Ints = changed.places - np.asarray(origin_of(array.metadata.attributes, array.ndim, array.path))
    _check(array, changed, array.ndim, cells)
    return cells


def _array(
    store: Store,
    path: str,
    relative: str,
    documents: Mapping[str, NodeMetadata],
    known: Mapping[str, Array],
    config: ArrayConfig,
) -> Array:
    """An array by the document that it has, or is to have."""
    where, before = child(path, relative), known.get(relative)
    metadata = documents.get(relative)
    if metadata is None:
        metadata = find_node(store, where, 3) if before is None else before.metadata
    if not isinstance(metadata, ArrayMetadata):
        raise CorruptionError("the log of a change names an array that is not there", array=where)
    array = Array(store, where, metadata, config) if before is None else before
    if metadata is not array.metadata and metadata != array.metadata:
        array = array._with_handle(array._handle.with_shape(metadata))
    return _to_change(array, store, config)


def to_change(array: Array, store: Store) -> Array:
    """An array, for who puts cells and rows in their places and looks after its document."""
    return _to_change(array, store, _config_for(ArrayConfig.from_settings(), files_to_edit(store) is not None))


def _to_change(array: Array, store: Store, config: ArrayConfig) -> Array:
    return array._with_handle(with_fields(array._handle, store=store, config=config, is_shared=False))


def _check(array: Array, changed: Changed, rank: int, places: Ints) -> None:
    shape = np.asarray(array.shape[:rank])
    if changed.places.shape[1] != rank or ((places < 0) | (places >= shape)).any():
        raise CorruptionError("the log of a change names places that the array does not have", array=array.path)
