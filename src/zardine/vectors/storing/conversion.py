"""Giving an array of cells other shards, for one writer and the keys that others expect.

The array reads whole at every moment. Of its two forms, the one of fewer objects goes through :data:`OTHER` keys, so
that each of the many is written once, or read once:

- To more objects: the old ones get a second key each, ``c.0.1`` for ``c/0/1``; one write of the document names these,
  the first keys go, and the new ones are made under keys such as ``c/0/1``, which one write of the document names.
- To fewer: the new ones are made under ``c.0.1``, one write of the document names these, the old ones go, and
  :func:`~zardine.vectors.storing.transactions.settle` gives the new ones the usual keys.

A second key of a file in a local folder is a second name; elsewhere the object is stored again. Which step a killed
writer came to is told by the document alone: what it names counts, and the rest goes. The next conversion begins with
what counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.array_config import ArrayConfig
from zardine.engine.layout import prepare_layout
from zardine.engine.workers import for_each
from zardine.errors import CorruptionError, DataError, ZardineError
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.array import Array
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.stores.file_seam import files_to_edit, files_to_make
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.cell_bytes import read_encoded, write_encoded
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.node_writing import OTHER, USUAL, erase_objects, separator_of, with_separator
from zardine.vectors.storing.transactions import add_keys, settle, switch

_AT_ONCE = 1024
"""Cells that are read and written together, or those of one shard."""


def convert_cells(array: CellArray, new: ArrayMetadata, chunks: Ints) -> None:
    """Let ``new`` be the document of ``array``, and store its cells, which are those of ``chunks`` ``(C, K)``, so.

    Cells stay the encoded bytes that they are. In memory are about a thousand of them, or the cells of one old or new
    shard; elsewhere than in a local folder, of as many as there are threads.

    Raises :class:`~zardine.errors.StoreError` if somebody else changes the document meanwhile, and
    :class:`~zardine.errors.DataError` for a damaged shard; then the array is stored as it was.
    """
    store, path, old = array.array.store, array.array.path, array.array.metadata
    cells = chunks - np.asarray(array.origin)
    aside: ArrayMetadata | None = None
    if separator_of(old) == USUAL and len(_objects(new, cells)) > len(_objects(old, cells)):
        aside = with_separator(old, OTHER)
        erase_objects(store, path, OTHER)
        _add_other_keys(_array(store, path, old), _array(store, path, aside), _objects(old, cells))
        switch(store, path, old, aside)
        old = aside
    new = with_separator(new, OTHER if separator_of(old) == USUAL else USUAL)
    erase_objects(store, path, separator_of(new))
    try:
        _make(_array(store, path, old), _array(store, path, new), cells)
    except DataError:
        if aside is not None:
            with suppress(ZardineError):
                settle(store, path, aside)
        raise
    switch(store, path, old, new)
    settle(store, path, new)


def _make(source: Array, target: Array, cells: Ints) -> None:
    """Make the objects of ``target`` of those of ``source``, under keys that no document names, where nothing is."""

    def work(part: Ints) -> None:
        found: list[BytesLike] = []
        for cell, data in zip(part, read_encoded(source, part), strict=True):
            if data is None:
                reason = "the cell was there, and is not any more: somebody else changes the store"
                raise CorruptionError(reason, array=source.path, chunk=tuple(cell.tolist()))
            found.append(data)
        write_encoded(target, part, found)

    parts = list(_parts(source, target, cells))
    for_each(work, parts, len(parts), 1 if files_to_make(source.store) is not None else thread_count())


def _parts(source: Array, target: Array, cells: Ints) -> Iterator[Ints]:
    """Yield the cells in parts, none of which shares an object of ``target`` with another, nor of ``source`` if may be.

    A part is a block, or several of fewer than :data:`_AT_ONCE` cells together.
    """
    if len(cells) == 0:
        return
    blocks, number = unique_rows(cells // np.asarray(_block_shape(source.shards, target.shards, cells.shape[1])))
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(blocks)), side="right")
    start = 0
    for end, following in zip(ends.tolist(), [*ends[1:].tolist(), None], strict=True):
        if following is None or following - start > _AT_ONCE:
            yield cells[order[start:end]]
            start = end


def _block_shape(old: tuple[int, ...] | None, new: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Cells along each axis of the smallest box of whole new objects; of whole old ones where borders allow."""
    pairs = zip(old or (1,) * rank, new or (1,) * rank, strict=True)
    return tuple(a if a % b == 0 else b for a, b in pairs)


def _add_other_keys(array: Array, aside: Array, objects: Ints) -> None:
    """Let objects have the keys of ``aside``, too; writes into their files that were cut off come to an end first."""
    store, pairs = array.store, []
    files = files_to_edit(store)
    for place in map(tuple, objects.tolist()):
        key = array._handle.key(place)
        if files is not None:
            with files.edit(key) as file:
                if file is not None:
                    file.mend()
        pairs.append((key, aside._handle.key(place)))
    add_keys(store, pairs)


def _array(store: Store, path: str, metadata: ArrayMetadata) -> Array:
    """Return an array by a document that may not be stored yet."""
    array = Array(store, path, metadata, replace(ArrayConfig(), cache=0))
    return array._with_handle(replace(array._handle, is_shared=False))


def _objects(metadata: ArrayMetadata, cells: Ints) -> Ints:
    """Return grid coordinates of the objects that hold ``cells``, each once."""
    shape = [axis.runs[0][0] for axis in prepare_layout(metadata).grids.storage]
    return np.asarray(unique_rows(cells // np.asarray(shape))[0], np.int64)


__all__ = ["convert_cells"]
