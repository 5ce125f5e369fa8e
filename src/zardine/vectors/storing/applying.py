"""Storing what the log of a change holds where it belongs. Doing it twice, or again after a kill, does no harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from zardine.buffers import Ints
from zardine.engine.array_config import ArrayConfig
from zardine.errors import CorruptionError
from zardine.hierarchy.find import find_node
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.nodes.array import Array
from zardine.stores.base import Store
from zardine.vectors.format.cell_documents import origin_of
from zardine.vectors.format.change_log import Changed, ChangeLog
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.node_writing import write_document
from zardine.vectors.storing.table_rows import row_values


def apply_log(store: Store, path: str, log: ChangeLog, known: Mapping[str, ArrayMetadata]) -> None:
    """Store the cells and rows of ``log`` below the level at ``path``, and then its documents.

    ``known``: documents of its arrays that are not in it. Raises :class:`~zardine.errors.CorruptionError` for places
    that the arrays do not have.
    """
    documents: dict[str, NodeMetadata] = {
        relative: parse_node_json(dict(document), f"the logged document of {relative}")
        for relative, document in log.documents.items()
    }
    for relative, changed in log.cells.items():
        array = _array(store, path, relative, documents, known)
        origin = origin_of(array.metadata.attributes, array.ndim, array.path)
        _check(array, changed, array.ndim, changed.places - np.asarray(origin))
        values = np.empty(len(changed.values), object)
        values[:] = changed.values
        array.set_coordinate_selection(tuple((changed.places - np.asarray(origin)).T), values)
    for relative, changed in log.rows.items():
        table = _array(store, path, relative, documents, known)
        _check(table, changed, 1, changed.places)
        rows = changed.places[:, 0]
        values = row_values(table, changed.values)
        if len(rows) and (np.diff(rows) == 1).all():
            table[int(rows[0]) : int(rows[-1]) + 1] = values
        else:
            table.set_orthogonal_selection((rows,), values)
    for relative, metadata in documents.items():
        write_document(store, child(path, relative), metadata)


def _array(
    store: Store,
    path: str,
    relative: str,
    documents: Mapping[str, NodeMetadata],
    known: Mapping[str, ArrayMetadata],
) -> Array:
    """An array by the document that it has, or is to have."""
    where = child(path, relative)
    metadata = documents.get(relative) or known.get(relative) or find_node(store, where, 3)
    if not isinstance(metadata, ArrayMetadata):
        raise CorruptionError("the log of a change names an array that is not there", array=where)
    config = replace(ArrayConfig.from_settings(), write_empty_chunks=False)
    if store.edits_files and config.write_strategy == "rewrite":
        config = replace(config, write_strategy="append")  # costs the cells, and not the shards that they are in
    array = Array(store, where, metadata, config)
    return array._with_handle(replace(array._handle, watched=False))  # its document may not be stored yet


def _check(array: Array, changed: Changed, rank: int, places: Ints) -> None:
    shape = np.asarray(array.shape[:rank])
    if changed.places.shape[1] != rank or ((places < 0) | (places >= shape)).any():
        raise CorruptionError("the log of a change names places that the array does not have", array=array.path)
