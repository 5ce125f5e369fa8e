"""Links between a level and the one above it, by the cells that they are filed under: some go, or become others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zardine.buffers import Ints
from zardine.metadata.documents import GroupMetadata
from zardine.vectors.changing.patching import Patch, UnfitError, counted, is_listed, put_node
from zardine.vectors.content.coarsening import Nesting
from zardine.vectors.content.plan import Node
from zardine.vectors.format.links import decode_links, segment_of, signed
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.store import Level

_PLAIN = {"dtype": "int64", "link_width": 2, "has_perm": False}


def nesting_of(fine: Level, coarse: Level) -> Nesting:
    """How the chunks of two levels nest."""
    root = np.asarray(fine.owner.root.chunk_shape)
    own, its = (np.rint(np.asarray(each.document.chunk_shape) / root).astype(np.int64) for each in (fine, coarse))
    return Nesting(own, its)


def put_links_between(patch: Patch, nesting: Nesting, delta: int, chunks: Ints, nodes: Iterable[Node] = ()) -> None:
    """Let the links of a level to the next one be those of ``nodes``, of all ends in the blocks of ``chunks``.

    ``chunks``: of the finer of the two levels; all that hold, or held, vertices in these blocks. ``delta``: 1 where it
    is that of ``patch``, -1 where that is the coarser. Raises :class:`UnfitError` where links are stored otherwise.
    """
    level, family = patch.level, patch.level.node(f"links/{signed(delta)}")
    fresh = {node.path: node for node in nodes if node.chunks is not None}
    if not isinstance(family, GroupMetadata):
        if fresh:
            raise UnfitError("links")
        return
    for name in level.names("link_attributes"):
        if level.node(f"link_attributes/{name}/{signed(delta)}") is not None:
            raise UnfitError("link_attributes")
    fine, coarse = nesting.pairs(chunks)
    own = fine if delta > 0 else coarse
    offsets, which = unique_rows(nesting.offsets(fine, coarse, delta))
    more = 0
    for number, offset in enumerate(offsets.tolist()):
        path = f"links/{signed(delta)}/{segment_of((tuple(offset),))}"
        more += _put(patch, path, own[which == number], fresh.pop(path, None))
    if fresh:
        raise UnfitError("links lead out of their blocks")
    if more:
        patch.documents[f"links/{signed(delta)}"] = counted(family, more, "num_links", "num_physical_records")


def _put(patch: Patch, path: str, chunks: Ints, node: Node | None) -> int:
    """Let the cells of ``chunks`` be those of ``node``, and no others; gives how many more links there are."""
    array = patch.level.cells(path)
    more = 0 if node is None else sum(_count(bytes(cell)) for cell in node.cells)
    if array is None:
        patch.nodes += [] if node is None else [node]
        return more
    if any(array.attributes.get(name, value) != value for name, value in _PLAIN.items()):
        raise UnfitError(f"{path} is stored otherwise")
    chunks = unique_rows(chunks)[0]
    old = chunks[is_listed(array, chunks)]
    more -= sum(map(_count, _cells(array, old)))
    gone = old if node is None or node.chunks is None else old[find_rows(unique_rows(node.chunks)[0], old) < 0]
    cells: list[bytes] = [] if node is None else [bytes(cell) for cell in node.cells]
    places = gone if node is None or node.chunks is None else np.concatenate([node.chunks, gone])
    if len(places):
        put_node(patch, Node(path, array.array.metadata, places, [*cells, *(b"" for _ in gone)]), array)
    return more


def _cells(array: CellArray, chunks: Ints) -> list[bytes]:
    cells = array.read(chunks)
    if not all(cells):
        raise UnfitError("a cell is lost")
    return cells


def _count(cell: bytes) -> int:
    return len(decode_links(cell, np.dtype("<i8"), 2, grouped=True))


__all__ = ["nesting_of", "put_links_between"]
