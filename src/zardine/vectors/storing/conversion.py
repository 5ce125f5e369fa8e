"""Giving an array of cells other shards: the engine of resharding, for one writer and the keys that others expect.

The array reads whole at every moment. Of its two forms, the one of fewer objects goes through :data:`OTHER` keys, so
that each of the many is written once, or read once:

- To more objects: the old ones are made anew under ``c.0.1``, one write of the document names these, the others go, and
  the new ones are made of them under keys such as ``c/0/1``, which one write of the document names.
- To fewer: the new ones are made under ``c.0.1``, one write of the document names these, the old ones go, and
  :func:`~zardine.vectors.storing.transactions.settle` gives the new ones the usual keys.

Which step a killed writer came to is told by the document alone: what it names counts, and the rest goes. The next
conversion begins with what counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.engine.workers import for_each, most_requests
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.tools.resharding.move import Box, block_shape, box_at, move
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.cell_bytes import can_write_files, write_files
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.node_writing import OTHER, USUAL, erase_objects, separator_of, with_separator
from zardine.vectors.storing.transactions import settle, switch


def convert_cells(array: CellArray, new: ArrayMetadata, chunks: Ints) -> None:
    """Let ``new`` be the document of ``array``, and store its cells, which are those of ``chunks`` ``(C, K)``, so.

    Cells stay the encoded bytes that they are. In memory are the cells of one old or new shard; elsewhere than in a
    local folder, of as many as there are threads.

    Raises :class:`~zardine.errors.StoreError` if somebody else changes the document meanwhile, and
    :class:`~zardine.errors.DataError` for a damaged shard; then the array is stored as it was.
    """
    store, path, old = array.array.store, array.array.path, array.array.metadata
    cells = chunks - np.asarray(array.origin)
    if separator_of(old) == USUAL and len(_objects(new, cells)) > len(_objects(old, cells)):
        aside = with_separator(old, OTHER)
        _make(store, path, old, aside, cells)
        switch(store, path, old, aside)
        old = aside
    new = with_separator(new, OTHER if separator_of(old) == USUAL else USUAL)
    _make(store, path, old, new, cells)
    switch(store, path, old, new)
    settle(store, path, new)


def _make(store: Store, path: str, old: ArrayMetadata, new: ArrayMetadata, cells: Ints) -> None:
    """Make the objects of ``new`` of those of ``old``, under keys that no document names, where nothing stays."""
    erase_objects(store, path, separator_of(new))
    source, target = _handle(store, path, old), _handle(store, path, new)
    stored = set(map(tuple, _objects(old, cells).tolist()))
    shape = block_shape(source, target)
    firsts = unique_rows(_objects(new, cells) // np.asarray(shape))[0] * np.asarray(shape)

    def put(objects: Iterable[tuple[str, BytesLike | None]]) -> None:
        values = [(key, value) for key, value in objects if value is not None]
        if can_write_files(store):
            write_files(store, values)
        else:
            for_each(lambda pair: store.set(*pair), values, len(values), most_requests(store))

    def work(box: Box) -> None:
        move(source, target, box, encoded=True, exists=stored.__contains__, put=put)

    for_each(
        work,
        (box_at(target, first, shape) for first in firsts.tolist()),
        len(firsts),
        1 if can_write_files(store) else thread_count(),
    )


def _handle(store: Store, path: str, metadata: ArrayMetadata) -> ArrayHandle:
    """Return a handle by a document that may not be stored yet."""
    return ArrayHandle(store, path, prepare_layout(metadata), replace(ArrayConfig(), cache=0), watched=False)


def _objects(metadata: ArrayMetadata, cells: Ints) -> Ints:
    """Return grid coordinates of the objects that hold ``cells``, each once."""
    shape = [axis.runs[0][0] for axis in prepare_layout(metadata).grids.storage]
    return np.asarray(unique_rows(cells // np.asarray(shape))[0], np.int64)


__all__ = ["convert_cells"]
