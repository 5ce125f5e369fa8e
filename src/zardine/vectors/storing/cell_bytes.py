"""Cells as the encoded bytes they are stored as: finding, taking out of objects and putting into objects.

An object is one cell, or a shard of many. Cells are numbered from the first one of the array, along each axis.

A store replaces each value at one moment, under a lock, so that readers and other writers are never led astray. Cells
that no document names cannot be read by anybody, and what a killed writer leaves of them is erased before the next one
begins: there plain files do (:meth:`StoreFiles.make <zardine.stores.file_seam.StoreFiles.make>`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import find_chunks, read_chunk_object
from zardine.engine.read_elements import decode_element
from zardine.engine.read_index import read_index
from zardine.engine.side_by_side import each_begun
from zardine.engine.stored import sizes_of
from zardine.engine.workers import for_each, most_requests
from zardine.errors import DataError
from zardine.indexing.plan import plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection
from zardine.kernel import KERNEL
from zardine.nodes.array import Array
from zardine.settings import thread_count
from zardine.sharding.index import ShardIndex, empty_index
from zardine.sharding.layout import MergedShard, ShardLayout
from zardine.stores.base import Store
from zardine.stores.file_seam import files_to_make, files_to_read
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.format.ragged import starts_of, unique_rows
from zardine.vectors.storing.cell_files import form_of_cells, make_cells, new_cells
from zardine.vectors.storing.spools import SpooledBlobs

_FRAME = struct.Struct("<II")

_A_FEW = 4096
"""Objects that are given at a time: small ones take more memory than they hold."""
_PACKED_AT_ONCE = 32 * 2**20
"""Bytes of cells, about, whose objects are made together, and may be in memory."""

_COPIED_AT_ONCE = 4 * 2**20
"""Bytes that are copied at a time from a temporary file to a shard."""

_SEVERAL = 8
"""Files that are read together sooner than one by one."""


def encode_cells(array: Array, cells: Iterable[bytes]) -> list[BytesLike]:
    """The stored form of cells that are not empty."""
    compressors = array._handle.layout.chain((1,) * array.ndim).compressors
    encoded = []
    for cell in cells:
        data: BytesLike = _FRAME.pack(1, len(cell)) + cell
        for codec in compressors:
            data = codec.encode(data)
        encoded.append(data)
    return encoded


def write_cells(array: Array, cells: Ints, values: Pieces) -> None:
    """Store cells ``(C, K)``, none of them empty, as :func:`write_encoded` does."""
    handle = array._handle
    if len(values) and can_make_cells(handle.store):
        new = new_cells("", handle.layout, cells, values)
        if new is not None:
            make_cells(handle.store, handle.path, [new])
            return
    packing = _Packing.of(array, cells, values) if len(values) else None
    if packing is None:
        write_encoded(array, cells, encode_cells(array, values))
        return
    for some in packing.portions():
        _write(array, packing.packed(some), len(some))


def portions_of_cells(
    array: Array, cells: Ints, values: Sequence[BytesLike], *, encoded: bool = False
) -> Iterator[list[tuple[str, BytesLike]]]:
    """Yield what :func:`write_cells` stores, as keys and values, a few at a time: made when they are asked for.

    ``encoded``: the values are as they are to be stored, as for :func:`write_encoded`.
    """
    key = array._handle.key
    packing = None if encoded or not len(values) else _Packing.of(array, cells, Pieces.of(values))
    if packing is not None:
        for some in packing.portions():
            packed = iter(packing.packed(some))
            while few := [(key(where), data) for where, data in islice(packed, _A_FEW)]:
                yield few
        return
    stored = values if encoded else encode_cells(array, map(bytes, values))
    for where, data in _objects_of(array, cells, stored)[0]:
        yield [(key(where), data)]


@dataclass(frozen=True, slots=True, eq=False)
class _Packing:
    """Cells that the kernel makes objects of: shards, or each one by itself."""

    objects: Ints
    """Grid coordinates: ``(N, K)``."""
    cells: Pieces
    """Object by object, by the rows of its index."""
    sums: int
    """Checksums of each cell."""
    bounds: Ints
    """Where the cells of each object start, and in all."""
    rows: Ints | None
    """Of each cell, in the index of its shard; ``None``: there are no shards."""
    form: tuple[int, bool, bool]
    """Rows of the index of a shard, whether it is in front of the cells, and whether it has a checksum."""

    @classmethod
    def of(cls, array: Array, cells: Ints, values: Pieces) -> _Packing | None:
        """Return how the kernel makes the objects of an array; ``None`` where it does not."""
        form = form_of_cells(array._handle.layout)
        if form is None:
            return None
        sums, shard = form
        if shard is None:
            return cls(cells, values, sums, np.arange(len(cells) + 1), None, (0, False, False))
        shards, order, bounds, rows = by_shard(cells, shard)
        return cls(
            shards, values.take(order), sums, bounds, rows, (shard.count, shard.index_at_start, shard.has_checksum)
        )

    def portions(self) -> Iterator[range]:
        """Yield runs of objects that are made together."""
        portion = starts_of(self.cells.lengths)[self.bounds[:-1]] // _PACKED_AT_ONCE
        edges = np.flatnonzero(np.diff(portion)) + 1
        for start, stop in pairwise([0, *edges.tolist(), len(portion)]):
            yield range(start, stop)

    def elements(self, some: range) -> tuple[BytesLike, Ints, Ints]:
        """Return the cells of some objects."""
        own = self._own(some)
        return self.cells.data, self.cells.starts[own], self.cells.lengths[own]

    def table(self, some: range) -> tuple[Ints, Ints, int, bool, bool] | None:
        """Return which of these cells are in which shard, and where; ``None`` where there are no shards."""
        own = self._own(some)
        bounds = self.bounds[some.start : some.stop + 1] - own.start
        return None if self.rows is None else (bounds, self.rows[own], *self.form)

    def packed(self, some: range) -> Iterator[tuple[tuple[int, ...], BytesLike]]:
        """Yield some objects as the bytes that they are to be, with their grid coordinates."""
        assert KERNEL is not None
        data, sizes = KERNEL.pack_elements(self.elements(some), self.sums, self.table(some), thread_count())
        ends = np.cumsum(sizes).tolist()
        for which, size, end in zip(some, sizes, ends, strict=True):
            yield tuple(self.objects[which].tolist()), memoryview(data)[end - size : end]

    def _own(self, some: range) -> slice:
        return slice(int(self.bounds[some.start]), int(self.bounds[some.stop]))


def by_shard(cells: Ints, shard: ShardLayout) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the shards of cells ``(C, K)``, and these in the order of shards, and of rows of their indexes.

    That is the order, where the cells of each shard start in it, and in all, and the rows.
    """
    shards, number = unique_rows(cells // np.asarray(shard.grid))
    rows = (cells % np.asarray(shard.grid)) @ np.asarray(shard.strides)
    order = np.lexsort((rows, number))
    return shards, order, np.searchsorted(number[order], np.arange(len(shards) + 1)), rows[order]


def write_pieces(array: Array, rows: Pieces | SpooledBlobs) -> None:
    """Store the rows of a table of byte strings that no document names yet, whose fill value is the empty one.

    Of those that are in a file a chunk at a time is in memory.
    """
    assert KERNEL is not None
    step = array.chunks[0]
    compressors = array._handle.layout.chain(array.chunks).compressors
    for number, start in enumerate(range(0, len(rows), step)):
        stop = min(len(rows), start + step)
        some = rows.pieces(start, stop) if isinstance(rows, SpooledBlobs) else rows.take(np.arange(start, stop))
        if some.filled.any():
            framed = rows.framed_part(start, stop) if isinstance(rows, Pieces) else None
            joined = framed or KERNEL.join_pieces(some.parts)
            data: BytesLike = b"".join([step.to_bytes(4, "little"), joined, bytes(4 * (step - len(some)))])
            for codec in compressors:
                data = codec.encode(data)
            _write(array, [((number,), data)], 1)


def write_integers(array: Array, rows: Ints) -> None:
    """Store the rows of a table of integers that no document names yet, and that fit in one chunk."""
    chunk = np.full(array.chunks, array.fill_value, array.dtype)
    chunk[: len(rows)] = rows
    if (chunk != array.fill_value).any():
        _write(array, [((0,), array._handle.layout.chain(array.chunks).encode(chunk))], 1)


def write_encoded(array: Array, cells: Ints, encoded: Sequence[BytesLike]) -> None:
    """Store encoded cells ``(C, K)`` of an array that no document names yet and that has none: each object once.

    Of cells that are in a file, a shard in a local folder is never in memory whole.
    """
    store = array._handle.store
    files = files_to_make(store)
    if isinstance(encoded, SpooledBlobs) and array.shards is not None and len(encoded) and files is not None:
        files.make(_small_ones(array, cells, encoded))
    else:
        _write(array, *_objects_of(array, cells, encoded))


def _small_ones(array: Array, cells: Ints, encoded: SpooledBlobs) -> Iterator[tuple[str, BytesLike]]:
    """Yield the keys and values of small shards in a local folder; the others are stored meanwhile, part by part."""
    files = files_to_make(array._handle.store)
    assert files is not None
    for where, shard in _spooled_shards(array, cells, encoded):
        key = array._handle.key(where)
        if shard.size > _PACKED_AT_ONCE:
            files.make_parts(key, shard.parts())
        else:
            yield key, shard.joined()


def _objects_of(
    array: Array, cells: Ints, encoded: Sequence[BytesLike]
) -> tuple[Iterator[tuple[tuple[int, ...], BytesLike]], int]:
    """The objects of encoded cells, with their grid coordinates, and how many these are."""
    if array.shards is None:
        return zip(map(tuple, cells.tolist()), encoded, strict=True), len(encoded)
    shards, number = unique_rows(cells // np.asarray(array.shards))
    if isinstance(encoded, SpooledBlobs) and len(encoded):
        return ((where, shard.joined()) for where, shard in _spooled_shards(array, cells, encoded)), len(shards)
    return _assembled(array, cells, encoded, shards, number), len(shards)


@dataclass(frozen=True, slots=True, eq=False)
class _SpooledShard:
    """A shard whose cells are in a file, to be copied from there."""

    made: MergedShard
    """Of spans of that file."""
    cells: SpooledBlobs

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.made.index.used() + len(self.made.encoded_index)

    def parts(self) -> Iterator[BytesLike]:
        """Yield its bytes, a limited number at a time."""
        for piece in self.made.pieces:
            if isinstance(piece, tuple):
                end = sum(piece)
                for at in range(piece[0], end, _COPIED_AT_ONCE):
                    yield self.cells.take_bytes(at, min(_COPIED_AT_ONCE, end - at))
            else:
                yield piece

    def joined(self) -> bytearray:
        """All its bytes, which are in memory once."""
        whole, at = bytearray(self.size), 0
        for part in self.parts():
            whole[at : at + len(part)] = part
            at += len(part)
        return whole


def _spooled_shards(
    array: Array, cells: Ints, encoded: SpooledBlobs
) -> Iterator[tuple[tuple[int, ...], _SpooledShard]]:
    """Yield how shards are made of cells that are in a file, with their grid coordinates."""
    layout = array._handle.layout.uniform_shard
    assert layout is not None  # as of all arrays of cells
    shards, order, bounds, rows = by_shard(cells, layout)
    places, lengths = encoded.extents
    for which, where in enumerate(map(tuple, shards.tolist())):
        own = slice(int(bounds[which]), int(bounds[which + 1]))
        spans = empty_index(layout.count)
        spans.offsets[rows[own]], spans.lengths[rows[own]] = places[order[own]], lengths[order[own]]
        yield where, _SpooledShard(layout.merged(spans, {}), encoded)


def _write(array: Array, objects: Iterable[tuple[tuple[int, ...], BytesLike]], count: int) -> None:
    store = array._handle.store
    values = ((array._handle.key(where), data) for where, data in objects)
    files = files_to_make(store)
    if files is not None:
        files.make(values)
    else:
        for_each(lambda pair: store.set(*pair), values, count, most_requests(store))


def replace_cells(array: Array, cells: Ints, values: Sequence[bytes]) -> None:
    """Store cells ``(C, K)``, each an object of its own, in the places of those that are there; empty ones go.

    Nothing is read: a cell is whole.
    """
    handle = array._handle
    filled = [number for number, value in enumerate(values) if value]
    encoded = dict(zip(filled, encode_cells(array, [values[number] for number in filled]), strict=True))

    def put(number: int) -> None:
        key = handle.key(tuple(cells[number].tolist()))
        if number in encoded:
            handle.store.set(key, encoded[number])
        else:
            handle.store.erase(key)

    for_each(put, range(len(values)), len(values), most_requests(handle.store))


def read_cells(array: Array, cells: Ints) -> list[bytes]:
    """Cells ``(C, K)`` that are objects of their own in a local folder, ``b""`` for those that are not there.

    Raises :class:`~zardine.errors.CorruptionError` for damaged ones.
    """
    handle = array._handle
    chain = handle.layout.chain((1,) * array.ndim)
    found = []
    for cell, data in zip(cells.tolist(), _read_objects(handle, cells), strict=True):
        if data is None:
            check_fresh(handle)
            found.append(b"")
        else:
            try:
                found.append(decode_element(chain, data))
            except DataError as error:
                raise error.at(array=handle.path, key=handle.key(tuple(cell)), chunk=tuple(cell)) from None
    return found


def read_encoded(array: Array, cells: Ints) -> list[BytesLike | None]:
    """The stored form of cells ``(C, K)``, each named once; ``None`` for those that are not there.

    Each object is read once. Raises :class:`~zardine.errors.DataError` for damaged ones.
    """
    handle, shape = array._handle, array.shards
    if shape is None:
        return _read_objects(handle, cells)
    found: list[BytesLike | None] = [None] * len(cells)
    shards, number = unique_rows(cells // np.asarray(shape))
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(len(shards) + 1)).tolist()

    def fetch(which: int) -> None:
        places = order[edges[which] : edges[which + 1]]
        for place, data in zip(places.tolist(), _read_shard(handle, shards[which], cells[places]), strict=True):
            found[place] = data

    for_each(fetch, range(len(shards)), len(shards), 1 if files_to_read(handle.store) else most_requests(handle.store))
    return found


def _read_objects(handle: ArrayHandle, cells: Ints) -> list[BytesLike | None]:
    """Objects that are one cell each, encoded; ``None`` for those that are not there."""
    places = [tuple(cell) for cell in cells.tolist()]
    keys = [handle.key(place) for place in places]
    found: list[BytesLike | None] = [None] * len(keys)
    files = files_to_read(handle.store)
    if files is not None and len(keys) >= _SEVERAL:
        found = [*files.read_whole(keys, handle.layout.chain_of(places[0]).most_stored())]

    def fetch(which: int) -> None:
        try:
            reading = read_chunk_object(handle, places[which], keys[which])
        except DataError as error:
            raise error.at(array=handle.path, key=keys[which], chunk=places[which]) from None
        found[which] = None if reading is None else reading.parts[0]

    others = [which for which, data in enumerate(found) if data is None]
    for_each(fetch, others, len(others), 1 if files_to_read(handle.store) else most_requests(handle.store))
    return found


def _read_shard(handle: ArrayHandle, where: Ints, cells: Ints) -> list[BytesLike | None]:
    """Cells of one shard, encoded; of a shard whose last write was cut off as they were before."""
    low, high = cells.min(axis=0), cells.max(axis=0) + 1
    axes = tuple(AxisSlice(a, 1, b - a) for a, b in zip(low.tolist(), high.tolist(), strict=True))
    (part,) = plan_grid(GridSelection(axes, (False,) * len(axes), (False,) * len(axes)), handle.layout.grids).parts()
    key, files = handle.key(tuple(where.tolist())), files_to_read(handle.store) is not None
    rows = np.ravel_multi_index(tuple((cells - low).T), tuple((high - low).tolist()))
    try:
        with closing(find_chunks(handle, part, key, files=files, unlocked=files)) as found:
            encoded = found.chunks(rows)
            if not handle.layout.is_checked:
                found.check_untorn(key)
            return encoded
    except DataError as error:
        raise error.at(array=handle.path, key=key) from None


def find_cells(array: Array, *, off_grid: bool = False) -> Ints:
    """Every stored cell, by its key or by the index of its shard; with ``off_grid``, also what lies beyond the grid."""
    handle = array._handle

    def stored(where: tuple[int, ...]) -> Ints:
        layout = handle.layout.shard(where)
        if layout is None:
            return np.array([where], np.int64)
        key = handle.key(where)
        try:
            found = read_index(handle.store, key, layout)
        except DataError as error:
            raise error.at(array=handle.path, key=key) from None
        if found is None:
            return np.zeros((0, array.ndim), np.int64)
        return _rows(array, where, layout.grid, found.index, off_grid=off_grid)[1]

    places = _objects(array, off_grid=off_grid)
    if handle.layout.sharding is None:
        cells = list(map(stored, places))
    else:
        cells = [found() for _, found in each_begun(handle.store, stored, places)]
    return np.concatenate([np.zeros((0, array.ndim), np.int64), *cells])


def _rows(
    array: Array, where: Sequence[int], grid: Sequence[int], index: ShardIndex, *, off_grid: bool = False
) -> tuple[Ints, Ints]:
    """Rows of a shard's index that hold cells of the array, and these cells."""
    rows = np.flatnonzero(index.stored())
    inner = np.stack(np.unravel_index(rows, tuple(grid)), axis=1) if len(rows) else np.zeros((0, array.ndim), np.int64)
    cells = inner + np.asarray(where) * np.asarray(grid)
    inside = (cells < np.asarray(array.shape)).all(axis=1) | off_grid
    return rows[inside], cells[inside]


def _assembled(
    array: Array, cells: Ints, encoded: Sequence[BytesLike], shards: Ints, number: Ints
) -> Iterator[tuple[tuple[int, ...], bytes]]:
    shape = array.shards
    assert shape is not None
    layout = array._handle.layout.shard(tuple(shards[0].tolist())) if len(shards) else None
    rows = np.ravel_multi_index(tuple((cells % np.asarray(shape)).T), shape) if len(cells) else number
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(len(shards) + 1)).tolist()
    for which, where in enumerate(map(tuple, shards.tolist())):
        assert layout is not None
        chunks: list[BytesLike | None] = [None] * layout.count
        for cell in order[edges[which] : edges[which + 1]].tolist():
            chunks[int(rows[cell])] = encoded[cell]
        yield where, layout.assemble(chunks)


def _objects(array: Array, *, off_grid: bool = False) -> Iterator[tuple[int, ...]]:
    """Grid coordinates of the stored objects; with ``off_grid``, also of those that the grid does not have."""
    handle = array._handle
    grid = tuple(axis.count for axis in handle.layout.grids.storage)
    first = handle.layout.keys.encode((0,) * len(grid))
    separator = first[1] if len(first) > 1 else "/"
    prefix = f"{handle.path}/" if handle.path else ""
    names = handle.store.list_prefix(f"{prefix}{first[0]}/") if separator == "/" else handle.store.list_dir(prefix)[0]
    for name in names:
        parts = name[len(prefix) :].split(separator)[1:]
        if all(part.isdecimal() and part.isascii() for part in parts) and len(parts) == len(grid):
            where = tuple(map(int, parts))
            if off_grid or all(a < b for a, b in zip(where, grid, strict=True)):
                yield where


def stored_sizes(array: Array) -> tuple[int, int]:
    """How many objects of an array are stored, and how many bytes they have together."""
    store, keys = array.store, [array._handle.key(where) for where in _objects(array)]
    return len(keys), sizes_of(store, keys)


def objects_off_grid(array: Array) -> Iterator[str]:
    """Keys of stored objects that the grid of the array does not have."""
    grid = tuple(axis.count for axis in array._handle.layout.grids.storage)
    for where in _objects(array, off_grid=True):
        if any(a >= b for a, b in zip(where, grid, strict=True)):
            yield array._handle.key(where)


def can_make_cells(store: Store) -> bool:
    """Whether the kernel makes files of new cells in ``store``."""
    return KERNEL is not None and files_to_make(store) is not None
