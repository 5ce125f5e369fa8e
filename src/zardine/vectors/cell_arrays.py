"""Arrays with one cell of bytes for each chunk: many cells are read, or written, at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.arrays import Array
from zardine.buffers import BytesLike
from zardine.engine.freshness import note_fresh
from zardine.engine.workers import for_each
from zardine.errors import ContainsGroupError, CorruptionError, DataError
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes import find_node
from zardine.settings import thread_count
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Store
from zardine.vectors.fresh_files import can_write_files, write_files
from zardine.vectors.layouts import Layout
from zardine.vectors.ragged import Ints

NONEMPTY, ORIGIN = "nonempty_chunks", "chunk_grid_origin"
_FRAME = struct.Struct("<II")


@dataclass(frozen=True, slots=True, eq=False)
class CellArray:
    """An array with one cell for each chunk. Cells are named by the chunk they belong to: a row of integers."""

    array: Array
    origin: tuple[int, ...]
    """The chunk of the first cell."""

    @classmethod
    def open(cls, store: Store, path: str, metadata: ArrayMetadata | None = None) -> CellArray | None:
        """The array at ``path`` (with the document ``metadata``, if that is known); ``None`` where there is none."""
        if metadata is None:
            node = find_node(store, path, 3)
            if node is None:
                return None
            if not isinstance(node, ArrayMetadata):
                raise ContainsGroupError(f"{path} is a group; an array of cells is expected")
            metadata = node
        if metadata.data_type.name not in ("bytes", "variable_length_bytes"):
            raise CorruptionError(f"cells are of data type bytes, not {metadata.data_type.name}", array=path)
        array = Array(store, path, metadata)
        note_fresh(array._source)
        return cls(array, origin_of(metadata.attributes, len(metadata.shape), path))

    @property
    def attributes(self) -> Mapping[str, Any]:
        """What the document says."""
        return self.array.metadata.attributes

    @property
    def layout(self) -> Layout:
        """How it is stored."""
        return Layout(self.array.shards, tuple(self.array.compressors))

    @property
    def rank(self) -> int:
        """Axes of the grid."""
        return len(self.origin)

    def listed(self) -> Ints | None:
        """The chunks of ``nonempty_chunks``, as they stand there; ``None`` where it is missing or makes no sense."""
        return parse_keys(self.attributes.get(NONEMPTY), self.rank)

    def found(self) -> Ints:
        """The chunks whose cells are stored, by looking: at keys, and at the indexes of shards."""
        source = self.array._source
        cells = np.array([each for key in self._keys() for each in self._in_object(key)], np.int64)
        if len(cells) == 0:
            return np.zeros((0, len(source.layout.metadata.shape)), np.int64)
        chunks: Ints = cells.reshape(len(cells), -1) + np.asarray(self.origin)
        return chunks

    def inside(self, chunks: Ints) -> npt.NDArray[np.bool_]:
        """Which chunks are on the grid."""
        local = chunks - np.asarray(self.origin)
        return np.asarray(((local >= 0) & (local < np.asarray(self.array.shape))).all(axis=1), np.bool_)

    def read(self, chunks: Ints) -> list[bytes]:
        """The cells of ``chunks`` ``(C, K)``; ``b""`` for those that are not stored, or off the grid."""
        if len(chunks) == 0:
            return []
        on_grid = self.inside(chunks)
        local = chunks[on_grid] - np.asarray(self.origin)
        found: list[bytes] = self.array.get_coordinate_selection(tuple(local.T)).tolist()
        if on_grid.all():
            return found
        cells = [b""] * len(chunks)
        for place, cell in zip(np.flatnonzero(on_grid).tolist(), found, strict=True):
            cells[place] = cell
        return cells

    def write_new(self, chunks: Ints, cells: Sequence[bytes]) -> None:
        """Write all cells of an array that no document names yet: one object for each shard, or cell."""
        if len(chunks) == 0:
            return
        local = chunks - np.asarray(self.origin)
        if self.array.shards is None:
            self._write_objects(local, cells)
            return
        values = np.empty(len(cells), object)
        values[:] = cells
        shape = self.array.shape
        if prod(shape) <= 4 * len(cells) + 4096:  # as a block: each shard is written without a look at what was there
            block = np.full(shape, b"", object)
            block[tuple(local.T)] = values
            self.array[...] = block
        else:
            self.array.set_coordinate_selection(tuple(local.T), values)

    def _write_objects(self, local: Ints, cells: Sequence[bytes]) -> None:
        source = self.array._source
        chain = source.layout.chain((1,) * self.rank)
        prefix = f"{source.path}/" if source.path else ""
        names = [source.layout.keys.encode(each) for each in local.tolist()]
        keep = [i for i, cell in enumerate(cells) if cell]

        def encoded(i: int) -> BytesLike:
            data: BytesLike = _FRAME.pack(1, len(cells[i])) + cells[i]
            for codec in chain.compressors:
                data = codec.encode(data)
            return data

        if can_write_files(source.store):
            write_files(source.store, ((prefix + names[i], encoded(i)) for i in keep))
            return
        requests = max(thread_count(), source.store.cost.requests)
        for_each(lambda i: source.store.set(prefix + names[i], encoded(i)), keep, len(keep), requests)

    def _keys(self) -> Iterator[tuple[int, ...]]:
        """Grid coordinates of the stored objects."""
        source = self.array._source
        grid = tuple(axis.count for axis in source.layout.grids.objects)
        first = source.layout.keys.encode((0,) * len(grid))
        separator = first[1] if len(first) > 1 else "/"
        prefix = f"{source.path}/" if source.path else ""
        names = (
            source.store.list_prefix(f"{prefix}{first[0]}/") if separator == "/" else source.store.list_dir(prefix)[0]
        )
        for name in names:
            parts = name[len(prefix) :].split(separator)[1:]
            if all(part.isdecimal() and part.isascii() for part in parts) and len(parts) == len(grid):
                where = tuple(int(part) for part in parts)
                if all(a < b for a, b in zip(where, grid, strict=True)):
                    yield where

    def _in_object(self, where: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Which cells are in the stored object: those of which the index of a shard knows bytes."""
        layout = self.array._source.layout.shard(where)
        if layout is None:
            yield where
            return
        yield from self._in_shard(where, layout)

    def _in_shard(self, where: tuple[int, ...], layout: ShardLayout) -> Iterator[tuple[int, ...]]:
        from zardine.sharding.index import decode_index

        source = self.array._source
        key = source.key(where)
        reading = source.store.read(key, (layout.index_range,))
        if reading is None:
            return
        try:
            index = decode_index(reading.parts[0], layout.index_chain)
        except DataError as error:
            raise error.at(array=source.path, key=key) from None
        for number in np.flatnonzero(index.stored()).tolist():
            inner = np.unravel_index(number, layout.grid)
            cell = tuple(int(a * s + b) for a, s, b in zip(where, layout.grid, inner, strict=True))
            if all(a < b for a, b in zip(cell, self.array.shape, strict=True)):
                yield cell


def origin_of(attributes: Mapping[str, Any], rank: int, path: str = "") -> tuple[int, ...]:
    """The chunk of an array's first cell. Raises :class:`CorruptionError` for what is no such thing."""
    origin = attributes.get(ORIGIN)
    if origin is None:
        return (0,) * rank
    if not isinstance(origin, Sequence) or len(origin) != rank or not all(isinstance(each, int) for each in origin):
        raise CorruptionError(f"{ORIGIN} is {origin!r}: {rank} integers are needed", array=path)
    return tuple(origin)


def key_texts(chunks: Ints) -> list[str]:
    """``nonempty_chunks`` for ``chunks``: sorted as text."""
    return sorted(".".join(map(str, chunk)) for chunk in chunks.tolist())


def parse_keys(keys: Any, rank: int) -> Ints | None:
    """The chunks that ``nonempty_chunks`` names; ``None`` for what is no list of keys of ``rank`` numbers."""
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        return None
    if not keys:
        return np.zeros((0, rank), np.int64)
    try:
        numbers = np.array([int(each) for each in ".".join(keys).split(".")], np.int64)
    except (TypeError, ValueError, OverflowError):
        return None
    if len(numbers) != rank * len(keys) or any(key.count(".") != rank - 1 for key in keys):
        return None
    return numbers.reshape(-1, rank)


def cell_attributes(chunks: Ints, origin: Sequence[int], more: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an array with cells for ``chunks``."""
    attributes: dict[str, Any] = {NONEMPTY: key_texts(chunks)}
    if any(origin):
        attributes[ORIGIN] = [int(each) for each in origin]
    return {**attributes, **more}


def child(path: str, *names: str) -> str:
    """A path below ``path``."""
    return join_path(path, "/".join(names))
