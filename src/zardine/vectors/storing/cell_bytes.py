"""Cells as the encoded bytes they are stored as: finding, taking out of objects and putting into objects.

An object is one cell, or a shard of many. Cells are numbered from the first one of the array, along each axis.

A store replaces each value at one moment, under a lock, so that readers and other writers are never led astray. Cells
that no document names cannot be read by anybody, and what a killed writer leaves of them is erased before the next one
begins: there plain files do (:func:`write_files`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.codecs.chain import CodecChain
from zardine.engine.freshness import check_fresh
from zardine.engine.locate import read_index
from zardine.engine.workers import for_each, most_requests
from zardine.errors import DataError, StoreError
from zardine.nodes.array import Array
from zardine.sharding.index import ShardIndex
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore
from zardine.vectors.format.ragged import unique_rows

_FRAME = struct.Struct("<II")


def encode_cells(array: Array, cells: Sequence[bytes]) -> list[BytesLike]:
    """The stored form of cells that are not empty."""
    compressors = array._handle.layout.chain((1,) * array.ndim).compressors
    encoded = []
    for cell in cells:
        data: BytesLike = _FRAME.pack(1, len(cell)) + cell
        for codec in compressors:
            data = codec.encode(data)
        encoded.append(data)
    return encoded


def write_encoded(array: Array, cells: Ints, encoded: Sequence[BytesLike]) -> None:
    """Store encoded cells ``(C, K)`` of an array that no document names yet and that has none: each object once."""
    handle = array._handle
    store, prefix = handle.store, f"{handle.path}/" if handle.path else ""
    keys = handle.layout.keys
    if array.shards is None:
        values = ((prefix + keys.encode(cell), data) for cell, data in zip(cells.tolist(), encoded, strict=True))
        count = len(encoded)
    else:
        shards, number = unique_rows(cells // np.asarray(array.shards))
        count = len(shards)
        values = (
            (prefix + keys.encode(where), data) for where, data in _assembled(array, cells, encoded, shards, number)
        )
    if can_write_files(store):
        write_files(store, values)
    else:
        for_each(lambda pair: store.set(*pair), values, count, most_requests(store))


def read_files(array: Array, cells: Ints) -> list[bytes]:
    """Cells that are files of their own, ``b""`` for those that are not there.

    Raises :class:`~zardine.errors.CorruptionError` for damaged ones.
    """
    handle = array._handle
    chain = handle.layout.chain((1,) * array.ndim)
    prefix = f"{handle.path}/" if handle.path else ""
    found = []
    for cell in cells.tolist():
        key = prefix + handle.layout.keys.encode(cell)
        reading = handle.store.read_up_to(key, chain.most_stored())
        if reading is None:
            check_fresh(handle)
            found.append(b"")
        else:
            try:
                chain.check_stored(reading.size)
                found.append(_decoded(chain, reading.parts[0]))
            except DataError as error:
                raise error.at(array=handle.path, key=key, chunk=tuple(cell)) from None
    return found


def _decoded(chain: CodecChain, data: BytesLike) -> bytes:
    """The cell that is stored as ``data``; where it is framed as usual, without making an array of it."""
    body = data
    for codec, limit in zip(reversed(chain.compressors), reversed(chain.limits), strict=True):
        try:
            body = codec.decode(body, limit.now())
        except DataError as error:
            raise error.at(codec=codec.name) from None
    if not chain.filters and len(body) >= _FRAME.size and _FRAME.unpack_from(body) == (1, len(body) - _FRAME.size):
        return bytes(body[_FRAME.size :])
    cell: bytes = chain.decode(data).item()
    return cell


def find_cells(array: Array, *, off_grid: bool = False) -> Ints:
    """Every stored cell, by its key or by the index of its shard; with ``off_grid``, also what lies beyond the grid."""
    handle = array._handle
    cells: list[Ints] = []
    for where in _objects(array, off_grid=off_grid):
        layout = handle.layout.shard(where)
        if layout is None:
            cells.append(np.array([where], np.int64))
            continue
        key = handle.key(where)
        try:
            found = read_index(handle.store, key, layout)
        except DataError as error:
            raise error.at(array=handle.path, key=key) from None
        if found is not None:
            cells.append(_rows(array, where, layout.grid, found.index, off_grid=off_grid)[1])
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


def can_write_files(store: Store) -> bool:
    """Whether values of ``store`` are plain files in a local directory, and need not be on the disk at once."""
    return type(store) is LocalStore and not store.durable and not store.read_only


def write_files(store: Store, values: Iterable[tuple[str, BytesLike]]) -> None:
    """Write values under keys that nothing is stored under. Raises :class:`~zardine.errors.StoreError`."""
    assert isinstance(store, LocalStore)
    try:
        _write_plainly(store, values)
    except OSError as error:
        raise StoreError(f"cannot write to {store}: {error}") from error


def name_files(store: Store, names: Iterable[tuple[str, str]]) -> None:
    """Give files a second key each, under which nothing is stored; a copy where files cannot have two names.

    Raises :class:`~zardine.errors.StoreError`.
    """
    assert isinstance(store, LocalStore)
    root, made = str(store.root), set[str]()
    try:
        for old, new in names:
            path = f"{root}/{new}"
            _make_folder(path, made)
            try:
                os.link(f"{root}/{old}", path, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:
                _write_plainly(store, [(new, store.get(old) or b"")])
    except OSError as error:
        raise StoreError(f"cannot write to {store}: {error}") from error


def _make_folder(path: str, made: set[str]) -> None:
    """Make the folder of a file, unless that is among those ``made``."""
    folder = path.rpartition("/")[0]
    if folder not in made:
        os.makedirs(folder, exist_ok=True)
        made.add(folder)


def _write_plainly(store: LocalStore, values: Iterable[tuple[str, BytesLike]]) -> None:
    root = str(store.root)
    made: set[str] = set()
    for key, value in values:
        path = f"{root}/{key}"
        _make_folder(path, made)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            rest = memoryview(value)
            while len(rest):
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
