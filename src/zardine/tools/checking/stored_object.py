"""Verifying one stored object, shard or chunk: its index, then its chunks, a bounded number of bytes at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.engine.chunk_stack import sound_chunks
from zardine.engine.file_index import recorded_index_of
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.joined_ranges import join_ranges
from zardine.engine.read_ahead import window_bytes
from zardine.engine.read_index import read_index
from zardine.engine.whole_shard import most_of_shard
from zardine.engine.workers import for_each, most_requests
from zardine.errors import ArrayChangedError, CorruptionError, DataError, StoreError
from zardine.settings import thread_count
from zardine.sharding.containers import HEAD, is_container
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.attempts import LOOKS
from zardine.stores.base import Store, Version
from zardine.stores.file_seam import files_to_read
from zardine.tools.checking.beyond_shape import NOTE, has_values_beyond, reaches_beyond
from zardine.tools.checking.chunk import check_chunk, flaw_of, is_seen
from zardine.tools.checking.index import check_entries, usable_rows
from zardine.tools.progress import Progress, Steps
from zardine.tools.report import Fault, Flaw
from zardine.tools.salvage.older_index import last_index

_MOST_GAP = 2**20
"""Bytes between chunks that are read along, at most, wherever the store is."""
_MOST_SEARCHED = 2**28
"""Bytes of a shard with a damaged index that are looked through for an older one."""


@dataclass(slots=True)
class Checked:
    """What was found in one object."""

    faults: list[Fault] = field(default_factory=list)
    notes: list[Fault] = field(default_factory=list)
    chunks: int = 0
    nbytes: int = 0


class _ChangedError(Exception):
    """The object was replaced while it was looked at."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A stored chunk or shard of an array: its key, and where it belongs in the grid."""

    handle: ArrayHandle
    key: str
    coordinates: tuple[int, ...]

    def fault(self, found: Flaw) -> Fault:
        """Return a flaw as a fault, with its place."""
        chunk = None
        if found.row is not None:
            chunk = self.chunk_of(found.row)
        elif self.handle.layout.sharding is None and found.severity != "warning":
            chunk = self.coordinates
        return Fault(
            f"/{self.handle.path}", self.key, chunk, found.byte_range, found.kind, found.message, found.severity
        )

    def chunk_of(self, row: int) -> tuple[int, ...]:
        """Return grid coordinates of the inner chunk in a row of the index."""
        layout = self.handle.layout.shard(self.coordinates)
        assert layout is not None
        grids = self.handle.layout.grids
        return tuple(
            objects.start(i) // chunks.runs[0][0] + row // stride % count
            for i, objects, chunks, stride, count in zip(
                self.coordinates, grids.storage, grids.chunks, layout.strides, layout.grid, strict=True
            )
        )

    def reach_beyond(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of the inner chunks in these rows of the index reach beyond the array."""
        layout = self.handle.layout.shard(self.coordinates)
        assert layout is not None
        grids = self.handle.layout.grids
        beyond = np.zeros(len(rows), np.bool_)
        for i, objects, chunks, stride, count in zip(
            self.coordinates, grids.storage, grids.chunks, layout.strides, layout.grid, strict=True
        ):
            size = chunks.runs[0][0]
            beyond |= objects.start(i) + (rows // stride % count + 1) * size > objects.length
        return beyond

    def chunk_shape(self) -> tuple[int, ...]:
        """Return the shape of the chunks in it."""
        sharding = self.handle.layout.sharding
        if sharding is not None:
            return sharding.chunk_shape
        axes = self.handle.layout.grids.storage
        return tuple(axis.extent(i) for axis, i in zip(axes, self.coordinates, strict=True))


def check_objects(
    store: Store, objects: list[StoredObject], *, deep: bool, progress: Progress | None = None
) -> list[Checked]:
    """Look at many objects, several at a time; gives what was found in each."""
    at_once, threads, most_bytes = shares_of(store, len(objects))
    results: list[Checked] = [Checked()] * len(objects)
    advance = Steps(progress, len(objects))

    def work(number: int) -> None:
        results[number] = check_object(objects[number], deep=deep, most_bytes=most_bytes, threads=threads)
        advance()

    for_each(work, range(len(objects)), len(objects), at_once)
    return results


def shares_of(store: Store, count: int) -> tuple[int, int, int]:
    """Return how many of ``count`` objects are looked at at a time, by how many threads each, and its bytes."""
    threads = thread_count()
    at_once = max(1, min(count, most_requests(store, threads)))
    return at_once, max(1, threads // at_once), max(2**20, window_bytes() // (2 * at_once))


def check_object(stored: StoredObject, *, deep: bool, most_bytes: int, threads: int) -> Checked:
    """Look at a stored object; reads about ``most_bytes`` at a time. Nothing is raised, whatever is stored.

    An object that changes meanwhile is looked at again. One that is gone is no fault.
    """
    for _ in range(LOOKS):
        try:
            before = stored.handle.store.version(stored.key)
            checked = _look(stored, deep=deep, most_bytes=most_bytes, threads=threads)
            if not checked.faults:
                return checked
            check_fresh(stored.handle, surely=True)
            now, holder = _settled_version(stored)
            if holder:
                checked = Checked()
                message = f"{holder} has it locked, and may be stopped while it writes it: look again when that is over"
                checked.notes.append(stored.fault(Flaw("busy", message, severity="warning")))
                return checked
            if before is None or now == before:
                return checked
        except _ChangedError:
            _settled_version(stored)
        except ArrayChangedError:
            checked = Checked()
            message = "its array was resharded or replaced meanwhile: look again"
            checked.notes.append(stored.fault(Flaw("busy", message, severity="warning")))
            return checked
        except StoreError as error:
            checked = Checked()
            checked.faults.append(stored.fault(Flaw("store", str(error))))
            return checked
    checked = Checked()
    checked.notes.append(stored.fault(Flaw("busy", "it was written again and again meanwhile", severity="warning")))
    return checked


def _settled_version(stored: StoredObject) -> tuple[Version | None, str]:
    """Return the version once no writer edits the object in place; and which process does if it does not end."""
    store = stored.handle.store
    files = files_to_read(store)
    if files is None:
        return store.version(stored.key), ""
    file = files.open(stored.key)
    if file is None:
        return None, ""
    with file:
        file.wait()
        return file.version, file.lock_holder() if file.is_stalled else ""


def _look(stored: StoredObject, *, deep: bool, most_bytes: int, threads: int) -> Checked:
    checked = Checked()
    layout = stored.handle.layout.shard(stored.coordinates)
    found = (
        _chunk(stored, checked, deep) if layout is None else _shard(stored, layout, checked, deep, most_bytes, threads)
    )
    for each in found:
        (checked.notes if each.severity == "warning" else checked.faults).append(stored.fault(each))
    return checked


def _chunk(stored: StoredObject, checked: Checked, deep: bool) -> list[Flaw]:
    chain = stored.handle.layout.chain(stored.chunk_shape())
    reading = stored.handle.store.read_up_to(stored.key, chain.most_stored())
    if reading is None:
        return []
    checked.chunks, checked.nbytes = 1, reading.size
    if not reading.parts:
        return [_too_long(chain, reading.size)]
    found = list(check_chunk(chain, reading.parts[0], deep=deep))
    if deep and not found and reaches_beyond(stored.handle, stored.coordinates):
        found += [NOTE] * has_values_beyond(stored.handle, chain, stored.coordinates, reading.parts[0])
    return found


def _shard(
    stored: StoredObject, layout: ShardLayout, checked: Checked, deep: bool, most_bytes: int, threads: int
) -> list[Flaw]:
    store, key = stored.handle.store, stored.key
    try:
        found_index = read_index(store, key, layout, check=False)
        if found_index is None:
            return []
        index, size, version = found_index.index, found_index.size, found_index.version
        if layout.is_chunk is not None and not index.beyond(*layout.data_bounds(size)).any():
            layout.check(index, size, partial(_part, stored, version))
    except DataError as error:
        whole = store.size(key) or 0
        checked.nbytes += min(whole, layout.index_size)
        fault = flaw_of(error)
        other = _other_index(stored, layout, whole) if isinstance(error, CorruptionError) else ""
        return [replace(fault, message=fault.message + other)]
    checked.nbytes += layout.index_size
    found = list(check_entries(index, layout, size))
    if any(each.kind == "unused" for each in found):
        head = store.read(key, ((0, HEAD),))
        if head is not None and is_container(head.parts[0], index, layout):
            found = [each for each in found if each.kind != "unused"]
    rows = usable_rows(index, layout, size)
    checked.chunks = int(index.stored().sum())
    chain = stored.handle.layout.chain(stored.chunk_shape())
    if not is_seen(chain, deep=deep):
        if chain.encoded_size is not None:
            wrong = rows[index.lengths[rows] != chain.encoded_size]
            message = f"its length is not {chain.encoded_size} bytes, which every chunk takes"
            found += [Flaw("chunk", message, row, _range(index, row)) for row in wrong.tolist()]
        return found
    too_long = index.lengths[rows] > chain.most_stored()
    for row in rows[too_long].tolist():
        found.append(replace(_too_long(chain, int(index.lengths[row])), row=row, byte_range=_range(index, row)))
    rows = rows[~too_long]
    guard = Lock()
    at_edge = deep and reaches_beyond(stored.handle, stored.coordinates)
    is_beyond = False

    def work(batch: npt.NDArray[np.int64]) -> None:
        nonlocal is_beyond
        offsets, lengths = index.offsets[batch], index.lengths[batch]
        joined = join_ranges(offsets, lengths, min(store.cost.gap, _MOST_GAP))
        part = store.read(key, joined.fetched)
        if part is None or part.version != version:
            raise _ChangedError
        places = np.stack((joined.within, joined.offsets, lengths), axis=1)
        doubtful = ~sound_chunks(stored.handle.layout.pipeline, chain, part.parts, places, deep=deep)
        beyond = stored.reach_beyond(batch) if at_edge else np.zeros(len(batch), np.bool_)
        mine = []
        for i in np.flatnonzero(doubtful | beyond).tolist():
            row, (within, at, length) = int(batch[i]), places[i].tolist()
            data = memoryview(part.parts[within])[at : at + length]
            wrong = list(check_chunk(chain, data, deep=deep)) if doubtful[i] else []
            mine += [Flaw(each.kind, each.message, row, _range(index, row), each.severity) for each in wrong]
            if beyond[i] and not wrong and not is_beyond:
                is_beyond = has_values_beyond(stored.handle, chain, stored.chunk_of(row), data)
        with guard:
            found.extend(mine)
            checked.nbytes += int(lengths.sum())

    batches = list(_batches(rows, index, max(1, most_bytes // max(1, threads))))
    for_each(work, batches, len(batches), threads)
    found += [NOTE] * is_beyond
    return sorted(found, key=lambda each: -1 if each.row is None else each.row)


def _part(stored: StoredObject, version: Version | None, part_range: tuple[int, int]) -> BytesLike:
    """Return bytes of the object that was read."""
    part = stored.handle.store.read(stored.key, (part_range,))
    if part is None or part.version != version:
        raise _ChangedError
    return part.parts[0]


def _other_index(stored: StoredObject, layout: ShardLayout, size: int) -> str:
    """Return what a shard of ``size`` bytes with a damaged index has instead, in words."""
    store, key = stored.handle.store, stored.key
    if recorded_index_of(store, layout, key, store.version(key)) is not None:
        return "; the last write was cut off, so it is read as it was before: zardine.repair puts it in order"
    most = min(_MOST_SEARCHED, most_of_shard(layout, stored.handle.layout.chain(stored.chunk_shape())))
    whole = store.read(key) if size <= most else None
    if whole is None or last_index(whole.parts[0], layout) is None:
        return ""
    return "; no record says that a write was cut off, but an earlier index is in it: zardine.repair saves what it can"


def _batches(rows: npt.NDArray[np.int64], index: ShardIndex, most: int) -> Iterable[npt.NDArray[np.int64]]:
    """Return rows in the order of their bytes, in batches of about ``most`` bytes."""
    if not len(rows):
        return []
    rows = rows[np.argsort(index.offsets[rows], kind="stable")]
    ends = np.cumsum(index.lengths[rows])
    borders = np.flatnonzero(np.diff(ends // most)) + 1
    return np.split(rows, borders)


def _too_long(chain: CodecChain, length: int) -> Flaw:
    """Return the flaw for a chunk of ``length`` bytes, which is more than may be read."""
    try:
        chain.check_stored(length)
    except DataError as error:
        return flaw_of(error)
    raise AssertionError("it is not too long")


def _range(index: ShardIndex, row: int) -> tuple[int, int]:
    return int(index.offsets[row]), int(index.lengths[row])


__all__ = ["Checked", "StoredObject", "check_object", "check_objects", "shares_of"]
