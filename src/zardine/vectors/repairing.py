"""``repair``: what can be put right without guessing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zardine.errors import ZardineError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.node_changes import update_node
from zardine.nodes import load_array, load_group
from zardine.stores.resolve import StoreLike
from zardine.vectors.cell_arrays import NONEMPTY, CellArray, child, key_texts
from zardine.vectors.columns import Column, join_columns
from zardine.vectors.converting import cell_arrays
from zardine.vectors.documents import LEVEL
from zardine.vectors.fragment_index import decode_index
from zardine.vectors.level_access import Level, VectorStore
from zardine.vectors.level_plan import Node, cut
from zardine.vectors.loading import dtype_of, load_cells, row_shape_of
from zardine.vectors.loading_links import deltas_of, stored_links
from zardine.vectors.loading_objects import load_manifests
from zardine.vectors.manifests import encode_manifests
from zardine.vectors.offsets import segment_of, signed
from zardine.vectors.one_writer import alone
from zardine.vectors.ragged import Ints, find_rows, row_numbers, starts_of, unique_rows
from zardine.vectors.rebuilding import is_settled, rebuild, reopened, settle
from zardine.vectors.transactions import finish


@alone
def repair(path: StoreLike, *, drop_lost: bool = False) -> list[str]:
    """Put right what :func:`validate` finds and what can be put right; gives a line for each thing done.

    - changes and conversions that were interrupted are brought to an end;
    - ``nonempty_chunks`` gets what is stored and was not in it;
    - attributes that lack rows get fill values for them;
    - ``vertex_count`` becomes what is true where there are more vertices, and ``fragments_tile`` in any case.

    What says that data is lost stays, so that :func:`validate` and readers go on saying so. ``drop_lost``: forget what
    is lost (chunks of ``nonempty_chunks``, rows of the fragment index, fragments of objects, links, counts), so that
    the rest can be read. What cannot be put right is left as it is.
    """
    owner = VectorStore.open(path, writable=True)
    done: list[str] = []
    for number in owner.level_numbers():
        level = owner.level(number)
        if level.pending:
            finish(level)
            done.append(f"{number}: carried out a change that was agreed on")
        for name, array in cell_arrays(owner.level(number)):
            done += (f"{number}/{name}: {line}" for line in _mend_array(array, drop_lost))
        level = owner.level(number)
        if drop_lost:
            done += (f"{number}: {line}" for line in _drop_lost(level))
            done += (f"{number}: {line}" for line in _drop_links(level))
        done += (f"{number}: {line}" for line in _mend_attributes(level, drop_lost))
        done += (f"{number}: {line}" for line in _mend_level(level, drop_lost))
    return done


def _mend_array(array: CellArray, drop_lost: bool) -> Iterator[str]:
    store, path, metadata = array.array.store, array.array.path, array.array.metadata
    if not is_settled(store, path, metadata):
        settle(store, path, metadata)
        yield "brought a conversion to an end"
        array = _again(array)
    found, listed = unique_rows(array.found())[0], array.listed()
    lost = found[:0] if listed is None else unique_rows(listed[find_rows(found, listed) < 0])[0]
    chunks = found if drop_lost or not len(lost) else np.concatenate([found, lost])
    names = key_texts(chunks)
    if array.attributes.get(NONEMPTY) != names:
        update_node(
            store, path, array.array.metadata, lambda old: old.with_attributes({**old.attributes, NONEMPTY: names})
        )
        if len(chunks) > len(found):
            yield f"{NONEMPTY} names the {len(found)} chunks that are stored, and still {len(lost)} that are lost"
        else:
            yield f"{NONEMPTY} names the {len(names)} chunks that are stored"


def _again(array: CellArray) -> CellArray:
    store, path = array.array.store, array.array.path
    return reopened(store, path, load_array(store, path))


def _mend_attributes(level: Level, drop_lost: bool) -> Iterator[str]:
    try:
        content = load_cells(level, trust_count=not drop_lost)
    except ZardineError:
        return
    for family, counts in (
        ("vertex_attributes", np.diff(content.row_starts)),
        ("fragment_attributes", np.diff(content.fragments.before)),
    ):
        for name in level.names(family):
            array = level.cells(f"{family}/{name}")
            if array is not None and (missing := _fill_up(array, name, content.keys, counts)):
                yield f"{family}/{name}: filled up {missing} missing rows"


def _fill_up(array: CellArray, name: str, keys: Ints, counts: Ints) -> int:
    """Store fill values for rows that cells lack; gives how many."""
    dtype, shape = dtype_of(array), row_shape_of(array)
    cells = array.read(keys)
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    missing = counts - np.array([len(cell) // size for cell in cells], np.int64)
    listed = array.listed()
    if listed is not None:  # what was there once, and is gone, is lost: not to be filled up unless it was forgotten
        missing[np.array([not cell for cell in cells], np.bool_) & (find_rows(unique_rows(listed)[0], keys) >= 0)] = 0
    short = np.flatnonzero(missing > 0)
    for place in short.tolist():
        column = Column(np.frombuffer(cells[place], dtype)[: (len(cells[place]) // size) * (size // dtype.itemsize)])
        values = column.values.reshape(-1, *shape)
        missing_code = array.attributes.get("_FillValue")
        filled = join_columns(name, Column(values), None, int(missing[place])).values
        if missing_code is not None:
            filled[len(values) :] = missing_code
        cells[place] = cut(filled, np.array([0, len(filled)]))[0]
    if len(short):
        kept = keys if listed is None else unique_rows(np.concatenate([keys, listed]))[0]
        more: Mapping[str, Any] = {**array.attributes, NONEMPTY: key_texts(kept)}
        metadata = array.array.metadata
        rebuild(array.array.store, array.array.path, metadata, _node(metadata.with_attributes(more), keys, cells))
    return int(missing[short].sum())


def _node(metadata: ArrayMetadata, keys: Ints, cells: list[bytes]) -> Node:
    """The cells that hold anything, to be stored."""
    full = np.array([bool(cell) for cell in cells], np.bool_)
    return Node("", metadata, keys[full], [cell for cell in cells if cell])


def _drop_lost(level: Level) -> Iterator[str]:
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    if vertices is None or index is None:
        return
    there, listed = unique_rows(vertices.found())[0], unique_rows(index.found())[0]
    lost = find_rows(there, listed) < 0
    if lost.any():
        kept = listed[~lost]
        attributes = {**index.attributes, NONEMPTY: key_texts(kept)}
        metadata = index.array.metadata
        node = Node("", metadata.with_attributes(attributes), kept, index.read(kept))
        rebuild(index.array.store, index.array.path, metadata, node)
        yield f"forgot the fragments of {int(lost.sum())} chunks whose vertices are lost"
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
            _set(level, "object_index", {"num_present": left})
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
    _set(level, "object_index", {"num_present": present})
    yield f"forgot {int((~good).sum())} fragments of objects that are lost"


def _drop_links(level: Level) -> Iterator[str]:
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
            _set(level, relative, fewer)
            yield f"{relative}: forgot {named - count} links that are lost"
    plain = level.cells(f"links/0/{segment_of(((0,) * level.rank,) * (_width(level) - 1))}")
    index = level.cells("link_fragments")
    if plain is None or index is None:
        return
    there, listed = unique_rows(plain.found())[0], unique_rows(index.found())[0]
    lost = find_rows(there, listed) < 0
    if lost.any():
        kept = listed[~lost]
        metadata = index.array.metadata.with_attributes({**index.attributes, NONEMPTY: key_texts(kept)})
        rebuild(index.array.store, index.array.path, index.array.metadata, _node(metadata, kept, index.read(kept)))
        yield f"forgot the fragments of links of {int(lost.sum())} chunks whose links are lost"


def _width(level: Level) -> int:
    width = (level.attributes("links/0") or {}).get("link_width")
    return width if isinstance(width, int) and 1 <= width <= 12 else 2


def _mend_level(level: Level, drop_lost: bool) -> Iterator[str]:
    try:
        content = load_cells(level, trust_count=False)
    except ZardineError:
        return
    block = dict(level.document.block)
    count = len(content.positions)
    claimed = level.document.vertex_count
    if claimed not in (count, int(content.visible().sum())) and (claimed < count or drop_lost):
        block["vertex_count"] = count
        yield f"vertex_count is {count}"
    if level.document.tiles and not content.fragments.tile:
        del block["fragments_tile"]
        yield "fragments_tile is no longer claimed"
    if block != level.document.block:
        _set(level, "", {LEVEL: block})


def _set(level: Level, relative: str, attributes: Mapping[str, Any]) -> None:
    store, path = level.owner.store, child(level.path, relative) if relative else level.path

    def change(old: GroupMetadata) -> GroupMetadata:
        return old.with_attributes({**old.attributes, **attributes})

    update_node(store, path, load_group(store, path, 3), change)
