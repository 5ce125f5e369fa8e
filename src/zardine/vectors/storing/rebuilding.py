"""Storing an array anew beside what is stored of it, so that it reads whole at every moment.

Objects of an array have keys such as ``c/0/1``; those of its new form are stored under ``c.0.1`` first. One write of
the document then changes from one to the other. Then the old objects go, the new ones are copied to the usual keys, the
document changes again, and the others go. Whoever is killed in between leaves an array that every reader of Zarr reads,
and that the next conversion or :func:`zardine.vectors.repair` brings to the usual form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zardine.engine.workers import for_each
from zardine.errors import StoreError
from zardine.hierarchy.find import describe
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.array import Array
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.vectors.content.plan import Node
from zardine.vectors.storing.cell_bytes import stored_cells
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.fresh_files import can_write_files, write_files
from zardine.vectors.storing.node_writing import (
    OTHER,
    USUAL,
    erase_objects,
    separator_of,
    stray_objects,
    with_separator,
    write_values,
)

Step = Callable[[], object]


def rebuild(store: Store, path: str, old: ArrayMetadata, node: Node) -> None:
    """Store the array at ``path`` anew, as ``node`` says; ``old`` is its document now.

    Raises :class:`~zardine.errors.StoreError` if somebody else changes the document meanwhile.
    """
    assert isinstance(node.metadata, ArrayMetadata)
    new = prepare(store, path, old, node)
    switch(store, path, old, new)
    settle(store, path, new)


def prepare(store: Store, path: str, old: ArrayMetadata | None, node: Node) -> ArrayMetadata:
    """Store what ``node`` holds beside what ``old`` describes; gives the document that will make it count."""
    assert isinstance(node.metadata, ArrayMetadata)
    separator = OTHER if old is not None and separator_of(old) == USUAL else USUAL
    erase_objects(store, path, separator)
    new = with_separator(node.metadata, separator)
    write_values(store, path, node, new)
    return new


def switch(store: Store, path: str, old: ArrayMetadata, new: ArrayMetadata) -> None:
    """Let ``new`` be the document, if ``old`` still is it."""

    def change(current: ArrayMetadata) -> ArrayMetadata:
        if current != old:
            raise StoreError(f"somebody else has changed {describe(store, path)} meanwhile: try again")
        return new

    update_node(store, path, old, change)


def settle(store: Store, path: str, metadata: ArrayMetadata) -> None:
    """Bring the objects of an array to the usual keys, and remove those that no longer count."""
    if separator_of(metadata) == OTHER:
        erase_objects(store, path, USUAL)
        keys = stray_objects(store, path)

        def usual(key: str) -> str:
            return f"{path}/c/" + key[len(path) + 3 :].replace(OTHER, "/")

        def copy(key: str) -> None:
            store.set(usual(key), store.get(key) or b"")

        if can_write_files(store):
            write_files(store, ((usual(key), store.get(key) or b"") for key in keys))
        else:
            for_each(copy, keys, len(keys), max(thread_count(), store.cost.requests))
        switch(store, path, metadata, with_separator(metadata, USUAL))
    stray = stray_objects(store, path)
    if stray:
        store.erase_values(stray)


def is_settled(store: Store, path: str, metadata: ArrayMetadata) -> bool:
    """Whether an array is in the usual form, and nothing else lies beside it."""
    return separator_of(metadata) == USUAL and not stray_objects(store, path)


def cells_node(array: CellArray, metadata: ArrayMetadata) -> Node:
    """All cells of ``array`` as the encoded bytes they are, for an array of the same compression."""
    cells, encoded = stored_cells(array.array)
    return Node("", metadata, cells + np.asarray(array.origin), encoded, encoded=True)


def reopened(store: Store, path: str, metadata: ArrayMetadata) -> CellArray:
    """An array of cells by its document."""
    array = CellArray.open(store, path, metadata)
    assert array is not None
    assert isinstance(array.array, Array)
    return array
