"""``repair``: what can be put right without guessing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zardine.errors import ZardineError
from zardine.metadata.documents import GroupMetadata
from zardine.nodes import load_array, load_group, update_node
from zardine.stores.resolve import StoreLike
from zardine.vectors.cell_arrays import NONEMPTY, CellArray, child, key_texts
from zardine.vectors.columns import Column, join_columns
from zardine.vectors.converting import cell_arrays
from zardine.vectors.documents import LEVEL
from zardine.vectors.fragment_index import decode_index
from zardine.vectors.level_access import Level, VectorStore
from zardine.vectors.level_plan import Node, cut
from zardine.vectors.loading import dtype_of, load_cells
from zardine.vectors.loading_objects import load_manifests
from zardine.vectors.manifests import encode_manifests
from zardine.vectors.one_writer import alone
from zardine.vectors.ragged import Ints, find_rows, row_numbers, starts_of, unique_rows
from zardine.vectors.rebuilding import is_settled, rebuild, reopened, settle
from zardine.vectors.transactions import finish


@alone
def repair(path: StoreLike, *, drop_lost: bool = False) -> list[str]:
    """Put right what :func:`validate` finds and what can be put right; gives a line for each thing done.

    - changes and conversions that were interrupted are brought to an end;
    - ``nonempty_chunks`` becomes what is stored;
    - attributes that lack rows get fill values for them;
    - ``vertex_count`` and ``fragments_tile`` become what is true.

    ``drop_lost``: where rows of the fragment index, or fragments of objects, are lost, forget them, so that the rest
    can be read. What cannot be put right is left as it is.
    """
    owner = VectorStore.open(path, writable=True)
    done: list[str] = []
    for number in owner.level_numbers():
        level = owner.level(number)
        if level.pending:
            finish(level)
            done.append(f"{number}: carried out a change that was agreed on")
        for name, array in cell_arrays(owner.level(number)):
            done += (f"{number}/{name}: {line}" for line in _mend_array(array))
        level = owner.level(number)
        if drop_lost:
            done += (f"{number}: {line}" for line in _drop_lost(level))
        done += (f"{number}: {line}" for line in _mend_attributes(level))
        done += (f"{number}: {line}" for line in _mend_level(level))
    return done


def _mend_array(array: CellArray) -> Iterator[str]:
    store, path, metadata = array.array.store, array.array.path, array.array.metadata
    if not is_settled(store, path, metadata):
        settle(store, path, metadata)
        yield "brought a conversion to an end"
        array = _again(array)
    names = key_texts(unique_rows(array.found())[0])
    if array.attributes.get(NONEMPTY) != names:
        update_node(
            store, path, array.array.metadata, lambda old: old.with_attributes({**old.attributes, NONEMPTY: names})
        )
        yield f"{NONEMPTY} names the {len(names)} chunks that are stored"


def _again(array: CellArray) -> CellArray:
    store, path = array.array.store, array.array.path
    return reopened(store, path, load_array(store, path))


def _mend_attributes(level: Level) -> Iterator[str]:
    try:
        content = load_cells(level)
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
    dtype, shape = dtype_of(array), tuple(array.attributes.get("row_shape") or ())
    cells = array.read(keys)
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    missing = counts - np.array([len(cell) // size for cell in cells], np.int64)
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
        more: Mapping[str, Any] = {**array.attributes, NONEMPTY: key_texts(keys)}
        metadata = array.array.metadata
        rebuild(array.array.store, array.array.path, metadata, Node("", metadata.with_attributes(more), keys, cells))
    return int(missing[short].sum())


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
    manifests = load_manifests(level)
    if manifests is None:
        return
    index = level.cells("vertex_fragments")
    assert index is not None
    keys = unique_rows(index.found())[0]
    counts = np.array([len(decode_index(blob, 2**31).counts) for blob in index.read(keys)], np.int64)
    cell = find_rows(keys, manifests.chunks)
    good = (cell >= 0) & (manifests.fragments < np.append(counts, 0)[cell])
    if good.all():
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


def _mend_level(level: Level) -> Iterator[str]:
    try:
        content = load_cells(level)
    except ZardineError:
        return
    block = dict(level.document.block)
    count = len(content.positions)
    if block.get("vertex_count") not in (count, int(content.visible().sum())):
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
