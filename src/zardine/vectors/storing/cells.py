"""Arrays with one cell of bytes for each chunk: many cells are read, or written, at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.cache import Cache
from zardine.engine.freshness import leave_to_owner
from zardine.errors import ContainsGroupError, CorruptionError, DataError, UnsupportedError
from zardine.frozen import with_fields
from zardine.hierarchy.find import describe, find_node
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.stores.base import Store
from zardine.stores.file_seam import files_to_read
from zardine.vectors.format.cell_documents import NONEMPTY, ChunkList, origin_of, parse_keys
from zardine.vectors.format.layouts import Layout, asked_shards, fitting_shards
from zardine.vectors.format.ragged import find_rows, slices_of, unique_rows
from zardine.vectors.storing.cell_bytes import find_cells, read_cells
from zardine.vectors.storing.cells_together import Cells, read_cells_together, share_indexes

_OF_A_KEY = 128
"""Bytes that one chunk of a list takes in a document, about: a list of integers."""
_MORE, _OF_A_CELL = 1.25, 16
"""How much longer than on average the cells of a shard are taken to be, and bytes that each takes beside its rows."""
_parsed: Cache[int, tuple[Any, int, Ints | None]] = Cache(256 * 2**20)
"""Lists of chunks seen lately, by the identity of what a document says, which does not change: it is held here."""


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
        if any(size != 1 for size in array.chunks):
            raise CorruptionError(f"cells are chunks of one element each, not of {array.chunks}", array=path)
        share_indexes(array)
        leave_to_owner(array._handle)
        return cls(array, origin_of(metadata.attributes, len(metadata.shape), path))

    def expecting(self, nbytes: float) -> CellArray:
        """Return the same array, whose cells take so many bytes on average: that tells what to read unasked."""
        handle = with_fields(self.array._handle, usual_nbytes=int(_MORE * nbytes) + _OF_A_CELL)
        return with_fields(self, array=self.array._with_handle(handle))

    @property
    def attributes(self) -> Mapping[str, Any]:
        """What the document says."""
        return self.array.metadata.attributes

    @property
    def layout(self) -> Layout:
        """How it is stored; with the shards that were asked for, of which a small grid has smaller ones."""
        asked = asked_shards(self.array.shards, self.array.shape, self.attributes)
        return Layout(asked, tuple(self.array.compressors))

    def layout_for(self, grid: Sequence[int]) -> Layout:
        """How it is to be stored when the grid has this shape.

        Where the shards that were asked for would have too many cells in it, that is with those that there are.
        """
        layout = self.layout
        try:
            fitting_shards(layout.shard_shape, grid)
        except DataError:
            return layout.with_shards(self.array.shards)
        return layout

    @property
    def rank(self) -> int:
        """Axes of the grid."""
        return len(self.origin)

    def listed(self) -> Ints | None:
        """The chunks of ``nonempty_chunks``, as they stand there; ``None`` where it is missing or makes no sense."""
        keys = self.attributes.get(NONEMPTY)
        if isinstance(keys, ChunkList):
            return parse_keys(keys, self.rank)
        known = _parsed.get(id(keys))
        if known is not None and known[0] is keys and known[1] == self.rank:
            return known[2]
        found = parse_keys(keys, self.rank)
        if found is not None:
            found.flags.writeable = False
        size = 0 if found is None else found.nbytes + len(found) * _OF_A_KEY
        _parsed.put(id(keys), (keys, self.rank, found), 1024 + size)
        return found

    def lists(self, chunks: Ints) -> npt.NDArray[np.bool_] | None:
        """Which of ``chunks`` ``(N, K)`` are among those :meth:`listed`; ``None`` where there is no such list."""
        keys = self.attributes.get(NONEMPTY)
        if isinstance(keys, ChunkList) and keys.chunks.shape[1] == self.rank:
            return keys.has(chunks)
        listed = self.listed()
        return None if listed is None else np.asarray(find_rows(unique_rows(listed)[0], chunks) >= 0, np.bool_)

    def found(self) -> Ints:
        """The chunks whose cells are stored, by looking: at keys, and at the indexes of shards.

        Raises :class:`~zardine.errors.UnsupportedError` where the store, a web server, does not tell.
        """
        try:
            chunks: Ints = find_cells(self.array) + np.asarray(self.origin)
        except UnsupportedError:
            place = describe(self.array.store, self.array.path)
            raise UnsupportedError(
                f"which chunks of {place} are stored cannot be told: its {NONEMPTY} is missing or contradicts another, "
                "and nothing can be listed here; zardine.vectors.repair(...) where the store lies adds it"
            ) from None
        return chunks

    def count(self) -> int:
        """How many chunks are listed; where no list makes sense, how many are stored, as :meth:`found` says."""
        listed = self.listed()
        return len(self.found() if listed is None else listed)

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
        plain = self.array.shards is None and files_to_read(self.array.store) is not None
        if plain:
            found = read_cells(self.array, local)
        else:
            box = slices_of(local)
            values = self.array.get_coordinate_selection(tuple(local.T)) if box is None else self.array[box]
            found = values.reshape(-1).tolist()
        if on_grid.all():
            return found
        cells = [b""] * len(chunks)
        for place, cell in zip(np.flatnonzero(on_grid).tolist(), found, strict=True):
            cells[place] = cell
        return cells

    def read_together(self, chunks: Ints) -> Cells:
        """The same cells one after the other: see :meth:`read`."""
        if len(chunks) and self.inside(chunks).all():
            found = read_cells_together(self.array, chunks - np.asarray(self.origin))
            if found is not None:
                return found
        return Cells.of(self.read(chunks))


def child(path: str, *names: str) -> str:
    """A path below ``path``."""
    return join_path(path, "/".join(names))
