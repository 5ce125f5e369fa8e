"""Storing nodes: contents first, documents last.

Far away all nodes wait together: what they hold goes side by side with their documents, as many requests at a time as
are worth while: nobody reads any of them before a document above names them. What is made of them, and planned, is in
memory for so many bytes at a time (:data:`_TOGETHER`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter, is_
from typing import Any, Final

import numpy as np

from zardine.cache import Cache
from zardine.chunk_keys import DefaultChunkKeyEncoding
from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import is_far
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.workers import for_each, in_background, most_requests
from zardine.hierarchy.find import document_key, names_of
from zardine.kernel import KERNEL
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, to_documents
from zardine.nodes.array import Array
from zardine.settings import thread_count
from zardine.stores.base import Condition, Store, Version
from zardine.stores.file_seam import files_to_make
from zardine.vectors.content.plan import Node, as_objects
from zardine.vectors.format.cell_documents import origin_of
from zardine.vectors.format.pieces import Pieces, RunPieces
from zardine.vectors.storing.cell_bytes import (
    can_make_cells,
    portions_of_cells,
    write_cells,
    write_encoded,
    write_integers,
    write_pieces,
)
from zardine.vectors.storing.cell_files import CellFiles, NewCells, new_cells, put_documents
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.spools import SpooledBlobs

USUAL, OTHER = "/", "."
"""Separators in the keys of objects. The other one serves to write an array anew beside the one that is stored."""

_of_a_layout = attrgetter(
    *("shape", "chunk_grid", "chunk_key_encoding", "codecs", "data_type", "fill", "storage_transformers")
)
"""What the layout of an array of cells comes from; the very same objects where only attributes differ."""
_OF_ONE = 16 * 2**10
"""Bytes that a layout takes, about."""

_CHUNKS_AT_ONCE = 16
"""Of a table of bytes whose values are in a file."""


_AT_A_TIME = 2
"""Nodes in a local folder: while one is written, the next one is planned."""

_WAITING = 4096
"""Documents, at most, and cells that they may list: what they are made of is in memory until they are stored."""
_LISTED = 2**20

_OF_A_CALL: Final = 1024
"""Bytes that an object takes in memory beside what it holds, about, until it is stored."""
_TOGETHER: Final = 32 * 2**20
"""Bytes of objects, about, that go together to a store that is far away: no more are made, and no more nodes planned,
before these are there."""


def write_nodes(store: Store, path: str, nodes: Iterable[Node]) -> list[Node]:
    """Store new nodes below ``path``, each with what it holds, and return them. No document names any of them yet."""
    if is_far(store):
        return write_side_by_side(store, path, nodes)
    if can_make_cells(store):
        return _write_together(store, path, nodes)
    made: list[Node] = []

    def noted() -> Iterator[Node]:
        for node in nodes:
            made.append(node)
            yield node

    def write(node: Node) -> None:
        where = child(path, node.path)
        write_values(store, where, node, node.metadata)
        write_document(store, where, node.metadata)

    threads = min(_AT_A_TIME, thread_count()) if files_to_make(store) is not None else 1
    for_each(write, noted(), _AT_A_TIME, threads)
    return made


def write_side_by_side(
    store: Store,
    path: str,
    nodes: Iterable[Node],
    *,
    first: Callable[[], object] | None = None,
    about: Callable[[Sequence[Node]], NodeMetadata] | None = None,
) -> list[Node]:
    """:func:`write_nodes` far away.

    ``first`` is called before anything is stored; nodes are planned meanwhile. ``about`` gives the document of the node
    at ``path``, which is stored with the last ones below it.
    """
    made: list[Node] = []

    def noted() -> Iterator[tuple[str, Node, NodeMetadata]]:
        for node in nodes:
            made.append(node)
            yield child(path, node.path), node, node.metadata

    def last() -> Callable[[], object] | None:
        return None if about is None else partial(write_document, store, path, about(made))

    waiting = _batches(store, noted(), documents=True, last=last)
    if first is not None:
        planned = in_background(next, waiting)
        try:
            first()
        except BaseException:
            with suppress(Exception):
                planned()  # nothing is planned any more when the error is out
            raise
        _make(store, planned())
    for calls in waiting:
        _make(store, calls)
    return made


def write_values_of(store: Store, nodes: Iterable[tuple[str, Node, NodeMetadata]]) -> None:
    """Store what nodes hold far away, as :func:`write_values` does, side by side: by place, and document to come."""
    for calls in _batches(store, nodes, documents=False):
        _make(store, calls)


def _batches(
    store: Store,
    nodes: Iterable[tuple[str, Node, NodeMetadata]],
    *,
    documents: bool,
    last: Callable[[], Callable[[], object] | None] = lambda: None,
) -> Iterator[list[Callable[[], object]]]:
    """Yield calls that store what nodes hold, and their ``documents``, in any order: some at a time.

    ``last`` gives one more call for the last ones, when all nodes are planned.
    """
    calls: list[Callable[[], object]] = []
    size = 0
    for path, node, metadata in nodes:
        for some, held in _calls_of(store, path, node, metadata):
            calls += some
            size += held
            if size >= _TOGETHER:
                yield calls
                calls, size = [], 0
        if documents:
            calls.append(partial(write_document, store, path, metadata))
    end = last()
    yield calls if end is None else [*calls, end]


def _make(store: Store, calls: Sequence[Callable[[], object]]) -> None:
    for_each(lambda call: call(), calls, len(calls), most_requests(store))


def _calls_of(
    store: Store, path: str, node: Node, metadata: NodeMetadata
) -> Iterator[tuple[list[Callable[[], object]], int]]:
    """Yield calls that together do what :func:`write_values` does, some at a time, and the bytes that these hold."""
    if not isinstance(metadata, ArrayMetadata):
        return
    if node.chunks is None:
        held = 0 if node.values is None else node.values.nbytes
        held += int(node.rows.lengths.sum()) if isinstance(node.rows, Pieces) else 0
        yield [partial(write_values, store, path, node, metadata)], held
        return
    places = node.chunks - np.asarray(origin_of(metadata.attributes, len(metadata.shape)))
    for some in portions_of_cells(_new_array(store, path, metadata), places, node.cells, encoded=node.encoded):
        yield [partial(store.set, key, data) for key, data in some], sum(len(data) + _OF_A_CALL for _, data in some)


def _write_together(store: Store, path: str, nodes: Iterable[Node]) -> list[Node]:
    """:func:`write_nodes` where the kernel makes the files: of many nodes at once, and then their documents."""
    made: list[Node] = []
    waiting: list[Node] = []
    listed = 0
    with CellFiles(store, path) as files:
        for node in nodes:
            made.append(node)
            waiting.append(node)
            listed += 0 if node.chunks is None else len(node.chunks)
            new = _for_kernel(node)
            if new is not None:
                files.add(new)
            elif isinstance(node.metadata, ArrayMetadata):
                files.call(partial(write_values, store, child(path, node.path), node, node.metadata))
            if len(waiting) == _WAITING or listed > _LISTED:
                _put_documents(store, path, waiting, files)
                waiting, listed = [], 0
        _put_documents(store, path, waiting, files)
    return made


def _put_documents(store: Store, path: str, nodes: Sequence[Node], files: CellFiles) -> None:
    """Store the documents of nodes, when all that these hold is stored."""
    files.start()  # while documents are made
    found = [(document_key(child(path, node.path), node.metadata), document_of(node.metadata)) for node in nodes]
    files.finish()
    put_documents(store, found)


def _for_kernel(node: Node) -> NewCells | None:
    """What a new node holds, for the kernel; ``None`` where it does not make the files of that, or there is nothing."""
    metadata = node.metadata
    if not isinstance(metadata, ArrayMetadata) or node.encoded:
        return None
    if node.chunks is not None and len(node.chunks):
        origin = origin_of(metadata.attributes, len(metadata.shape))
        cells = node.cells if isinstance(node.cells, RunPieces) else Pieces.of(node.cells)
        return new_cells(node.path, _layout_of(metadata), node.chunks - np.asarray(origin), cells)
    return None


_layouts: Cache[int, tuple[ArrayMetadata, ArrayLayout]] = Cache(2**20)
"""Layouts of arrays of cells, by the identity of their codecs: those of a level differ in nothing but attributes."""


def _layout_of(metadata: ArrayMetadata) -> ArrayLayout:
    known = _layouts.get(id(metadata.codecs))
    if known is not None and all(map(is_, _of_a_layout(known[0]), _of_a_layout(metadata))):
        return known[1]
    layout = prepare_layout(metadata)
    _layouts.put(id(metadata.codecs), (metadata, layout), _OF_ONE)
    return layout


def write_values(store: Store, path: str, node: Node, metadata: NodeMetadata) -> None:
    """Store what a node holds, as ``metadata`` says, and not its document."""
    if not isinstance(metadata, ArrayMetadata):
        return
    array = _new_array(store, path, metadata)
    if node.chunks is not None:
        origin = origin_of(metadata.attributes, len(metadata.shape))
        places = node.chunks - np.asarray(origin)
        if node.encoded:
            write_encoded(array, places, node.cells)
        else:
            write_cells(array, places, Pieces.of(node.cells))
    elif isinstance(node.rows, (Pieces, SpooledBlobs)) and KERNEL is not None and array.fill_value == b"":
        write_pieces(array, node.rows)
    elif node.rows is not None:
        step = _CHUNKS_AT_ONCE * array.chunks[0]
        for start in range(0, len(node.rows), step):
            rows = node.rows[start : start + step]
            array[start : start + len(rows)] = as_objects(rows)
    elif node.values is not None and node.values.size:
        if node.values.ndim == 1 and node.values.dtype == np.int64 and len(node.values) <= array.chunks[0]:
            write_integers(array, node.values)
        else:
            array[...] = node.values


def _new_array(store: Store, path: str, metadata: ArrayMetadata) -> Array:
    """An array whose document is not stored yet."""
    config = replace(ArrayConfig.from_settings(), write_empty_chunks=False)
    array = Array(store, path, metadata, config)
    return array._with_handle(replace(array._handle, is_shared=False))


def write_document(
    store: Store, path: str, metadata: NodeMetadata, *, condition: Condition | None = None
) -> Version | None:
    """Store a node's document, in the place of what is there; gives its version, as ``set`` of the store does."""
    return store.set(document_key(path, metadata), document_of(metadata), condition=condition)


def document_of(metadata: NodeMetadata) -> bytes:
    """Return the bytes of a node's document."""
    document = to_documents(metadata)[names_of(metadata)[0]]
    assert document is not None
    return document


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
