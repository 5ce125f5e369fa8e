"""Storing nodes: contents first, documents last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from zardine.chunk_keys import DefaultChunkKeyEncoding
from zardine.engine.array_config import ArrayConfig
from zardine.engine.workers import for_each
from zardine.hierarchy.find import document_key, names_of
from zardine.kernel import KERNEL
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, to_documents
from zardine.nodes.array import Array
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.vectors.content.plan import Node, as_objects
from zardine.vectors.format.cell_documents import origin_of
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.storing.cell_bytes import can_write_files, write_cells, write_encoded, write_pieces
from zardine.vectors.storing.cells import child

USUAL, OTHER = "/", "."
"""Separators in the keys of objects. The other one serves to write an array anew beside the one that is stored."""

_CHUNKS_AT_ONCE = 16
"""Of a table of bytes whose values are in a file."""


_AT_A_TIME = 2
"""Nodes in a local folder: while one is written, and the kernel works, the next one is planned."""


def write_nodes(store: Store, path: str, nodes: Iterable[Node]) -> list[Node]:
    """Store new nodes below ``path``, each with what it holds, and return them. No document names any of them yet."""
    made: list[Node] = []

    def noted() -> Iterator[Node]:
        for node in nodes:
            made.append(node)
            yield node

    def write(node: Node) -> None:
        where = child(path, node.path)
        write_values(store, where, node, node.metadata)
        write_document(store, where, node.metadata)

    threads = min(_AT_A_TIME, thread_count()) if can_write_files(store) else 1
    for_each(write, noted(), _AT_A_TIME, threads)
    return made


def write_values(store: Store, path: str, node: Node, metadata: NodeMetadata) -> None:
    """Store what a node holds, as ``metadata`` says, and not its document."""
    if not isinstance(metadata, ArrayMetadata):
        return
    config = replace(ArrayConfig.from_settings(), write_empty_chunks=False)
    array = Array(store, path, metadata, config)
    array = array._with_handle(replace(array._handle, watched=False))  # its document is not stored yet
    if node.chunks is not None:
        origin = origin_of(metadata.attributes, len(metadata.shape))
        places = node.chunks - np.asarray(origin)
        if node.encoded:
            write_encoded(array, places, node.cells)
        else:
            write_cells(array, places, Pieces.of(node.cells))
    elif isinstance(node.rows, Pieces) and KERNEL is not None and array.fill_value == b"":
        write_pieces(array, node.rows)
    elif node.rows is not None:
        step = _CHUNKS_AT_ONCE * array.chunks[0]
        for start in range(0, len(node.rows), step):
            rows = node.rows[start : start + step]
            array[start : start + len(rows)] = as_objects(rows)
    elif node.values is not None and node.values.size:
        array[...] = node.values


def write_document(store: Store, path: str, metadata: NodeMetadata) -> None:
    """Store a node's document, in the place of what is there."""
    document = to_documents(metadata)[names_of(metadata)[0]]
    assert document is not None
    store.set(document_key(path, metadata), document)


def with_separator(metadata: ArrayMetadata, separator: Any) -> ArrayMetadata:
    """The same array with objects under keys such as ``c/0/1`` or ``c.0.1``."""
    return replace(metadata, chunk_key_encoding=DefaultChunkKeyEncoding(separator).to_extension())


def separator_of(metadata: ArrayMetadata) -> str:
    """:data:`USUAL` or :data:`OTHER`."""
    configuration = metadata.chunk_key_encoding.configuration or {}
    return str(configuration.get("separator", USUAL))


def erase_objects(store: Store, path: str, separator: str) -> None:
    """Remove the objects of an array that have keys with ``separator``."""
    if separator == USUAL:
        store.erase_prefix(f"{path}/c/")
    else:
        store.erase_values(stray_objects(store, path))


def stray_objects(store: Store, path: str) -> list[str]:
    """Keys of the objects of an array that are named with :data:`OTHER`."""
    return [key for key in store.list_dir(f"{path}/")[0] if key[len(path) + 1 :].startswith(f"c{OTHER}")]
