"""Forgetting what is lost, so that the rest can be read: a part of ``repair``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zardine.errors import ZardineError
from zardine.hierarchy.find import load_group
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.vectors.content.plan import Node
from zardine.vectors.format.fragment_index import decode_index, encode_indexes
from zardine.vectors.format.manifests import encode_manifests
from zardine.vectors.format.offsets import segment_of, signed
from zardine.vectors.format.ragged import Ints, find_rows, row_numbers, starts_of, unique_rows
from zardine.vectors.reading.loading import dtype_of, load_cells
from zardine.vectors.reading.loading_links import deltas_of, stored_links
from zardine.vectors.reading.loading_objects import load_manifests
from zardine.vectors.storing.cells import NONEMPTY, CellArray, child, key_texts
from zardine.vectors.storing.rebuilding import rebuild
from zardine.vectors.storing.store import Level


def forget_vertices(level: Level) -> Iterator[str]:
    """Forget chunks whose vertices or fragments are lost, and fragments of objects that are; a line for each thing."""
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    if vertices is None or index is None:
        return
    there = unique_rows(vertices.found())[0]
    lost = _forget_fragments(index, there)
    if lost:
        yield f"forgot the fragments of {lost} chunks whose vertices are lost"
    yield from _forget_values(level, there)
    yield from _without_fragments(level, vertices, there)
    try:
        manifests = load_manifests(level, trust_count=False)
    except ZardineError:
        return
    if manifests is None:
        return
    index = level.cells("vertex_fragments")
    assert index is not None
    keys = unique_rows(index.found())[0]
    try:
        counts = np.array([len(decode_index(blob, 2**31).counts) for blob in index.read(keys)], np.int64)
    except ZardineError:  # damaged, not lost
        return
    cell = find_rows(keys, manifests.chunks)
    good = (cell >= 0) & (manifests.fragments < np.append(counts, 0)[cell])
    if good.all():
        left = int((np.diff(manifests.starts) > 0).sum())
        named = (level.attributes("object_index") or {}).get("num_present")
        if isinstance(named, int) and named > left:
            set_attributes(level, "object_index", {"num_present": left})
            yield f"forgot {named - left} objects whose manifests are lost"
        return
    owner = row_numbers(np.diff(manifests.starts))[good]
    starts = starts_of(np.bincount(owner, minlength=len(manifests.ids)))
    table = level.table("object_index/manifests")
    assert table is not None
    blobs = np.empty(len(manifests.ids), object)
    blobs[:] = encode_manifests(starts, manifests.chunks[good], manifests.fragments[good])
    table[...] = blobs
    present = int((np.diff(starts) > 0).sum())
    set_attributes(level, "object_index", {"num_present": present})
    yield f"forgot {int((~good).sum())} fragments of objects that are lost"


def _forget_values(level: Level, there: Ints) -> Iterator[str]:
    """Forget the attributes of chunks that are not ``there``: their vertices are lost."""
    for family in ("vertex_attributes", "fragment_attributes"):
        for name in level.names(family):
            array = level.cells(f"{family}/{name}")
            stored = None if array is None else unique_rows(array.found())[0]
            if array is None or stored is None or (find_rows(there, stored) >= 0).all():
                continue
            kept = stored[find_rows(there, stored) >= 0]
            _restore(array, kept, array.read(kept))
            yield f"{family}/{name}: forgot the values of {len(stored) - len(kept)} chunks whose vertices are lost"


def _without_fragments(level: Level, vertices: CellArray, there: Ints) -> Iterator[str]:
    """Give an index to chunks that have lost theirs: one fragment, or where fragments belong to objects, none."""
    index = level.cells("vertex_fragments")
    assert index is not None
    listed = unique_rows(index.found())[0]
    bare = there[find_rows(listed, there) < 0]
    if len(bare) == 0:
        return
    size = dtype_of(vertices, "float32").itemsize * level.owner.root.ndim
    has_objects = level.attributes("object_index") is not None
    fresh = []
    for cell in vertices.read(bare):
        counts = np.array([] if has_objects else [len(cell) // size], np.int64)
        fresh += encode_indexes(np.array([0, len(counts)]), counts, np.arange(counts.sum()))
    _restore(index, np.concatenate([listed, bare]), [*index.read(listed), *fresh])
    what = "the vertices" if has_objects else "how the vertices are ordered"
    yield f"forgot {what} of {len(bare)} chunks whose fragments are lost"


def _restore(array: CellArray, chunks: Ints, cells: list[bytes]) -> None:
    """Let these be all the cells of an array."""
    metadata = array.array.metadata.with_attributes({**array.attributes, NONEMPTY: key_texts(chunks)})
    rebuild(array.array.store, array.array.path, array.array.metadata, filled_node(metadata, chunks, cells))


def forget_links(level: Level) -> Iterator[str]:
    """Forget links whose cells are lost: counts of families become what is there."""
    try:
        content = load_cells(level, trust_count=False)
        deltas = deltas_of(level)
    except ZardineError:
        return
    for delta in deltas:
        relative = f"links/{signed(delta)}"
        about = level.attributes(relative) or {}
        try:
            count = stored_links(level, content, delta)
        except ZardineError:
            continue
        named = about.get("num_physical_records", about.get("num_links"))
        if isinstance(named, int) and named > count:
            fewer = {"num_physical_records": count}
            if about.get("store") != "duplicate":
                fewer["num_links"] = count
            set_attributes(level, relative, fewer)
            yield f"{relative}: forgot {named - count} links that are lost"
    plain = level.cells(f"links/0/{segment_of(((0,) * level.rank,) * (_width(level) - 1))}")
    index = level.cells("link_fragments")
    if plain is None or index is None:
        return
    lost = _forget_fragments(index, unique_rows(plain.found())[0])
    if lost:
        yield f"forgot the fragments of links of {lost} chunks whose links are lost"


def _forget_fragments(index: CellArray, there: Ints) -> int:
    """Keep the fragment indexes of the chunks that are ``there`` only; gives how many others there were."""
    listed = unique_rows(index.found())[0]
    lost = find_rows(there, listed) < 0
    if lost.any():
        kept = listed[~lost]
        _restore(index, kept, index.read(kept))
    return int(lost.sum())


def _width(level: Level) -> int:
    width = (level.attributes("links/0") or {}).get("link_width")
    return width if isinstance(width, int) and 1 <= width <= 12 else 2


def filled_node(metadata: ArrayMetadata, keys: Ints, cells: list[bytes]) -> Node:
    """The cells that hold anything, to be stored."""
    full = np.array([bool(cell) for cell in cells], np.bool_)
    return Node("", metadata, keys[full], [cell for cell in cells if cell])


def set_attributes(level: Level, relative: str, attributes: Mapping[str, Any]) -> None:
    """Change some attributes of a node of a level."""
    store, path = level.owner.store, child(level.path, relative) if relative else level.path

    def change(old: GroupMetadata) -> GroupMetadata:
        return old.with_attributes({**old.attributes, **attributes})

    update_node(store, path, load_group(store, path, 3), change)
