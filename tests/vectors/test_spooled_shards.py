"""Cells and rows that wait in a temporary file: stored as those in memory, without all of a shard in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine.storage import LocalStore, MemoryStore, Store
from zardine.vectors.content.plan import MANIFESTS_AT_ONCE, Node, grid_of, plan_level, plan_objects, rows_of_a_chunk
from zardine.vectors.content.point_content import binned_points
from zardine.vectors.format.layouts import Layout
from zardine.vectors.storing import cell_bytes
from zardine.vectors.storing.node_writing import write_nodes
from zardine.vectors.storing.spools import Spool, SpooledBlobs

CELLS = np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def node_of(cells: Any, chunks: Any) -> Node:
    """An array of 6 x 6 x 6 cells in shards of 4 x 4 x 4."""
    bounds = ([0.0] * 3, [60.0] * 3)
    grid = grid_of(CELLS, bounds, (10.0,) * 3, Layout(shard_shape=(4, 4, 4)))
    content = binned_points(CELLS * 10.0 + 5, {}, (10.0,) * 3, None)
    (like,) = (node for node in plan_level(content, grid, always_links=False) if node.path == "vertices")
    return Node("vertices", like.metadata, chunks, cells, encoded=True)


def spooled(blobs: list[bytes], apart: bool) -> SpooledBlobs:
    """Blobs in a file; ``apart``: others lie between them."""
    spool = Spool()
    found, others = SpooledBlobs(spool), SpooledBlobs(spool)
    for start in range(0, len(blobs), 7):
        found.extend(blobs[start : start + 7])
        if apart:
            others.extend([b"other"])
    return found


def stored(store: Store) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("most", [0, 5000, 2**25])
@pytest.mark.parametrize("local", [False, True])
def test_shards_of_cells_in_a_file(
    local: bool, most: int, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(CELLS))[:150]
    blobs = [rng.bytes(int(length)) for length in rng.integers(1, 300, len(chosen))]
    wanted: Store = MemoryStore()
    write_nodes(wanted, "0", [node_of(blobs, CELLS[chosen])])
    monkeypatch.setattr(cell_bytes, "_PACKED_AT_ONCE", most)
    monkeypatch.setattr(cell_bytes, "_COPIED_AT_ONCE", 100)
    found: Store = LocalStore(tmp_path) if local else MemoryStore()
    write_nodes(found, "0", [node_of(spooled(blobs, apart), CELLS[chosen])])
    assert stored(found) == stored(wanted)
    assert len(stored(found)) == 1 + 8


def test_a_shard_in_a_local_folder_is_not_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_bytes, "_PACKED_AT_ONCE", 2**20)
    monkeypatch.setattr(cell_bytes, "_COPIED_AT_ONCE", 2**18)
    blobs = spooled([bytes(2**17)] * len(CELLS), apart=False)
    node = node_of(blobs, CELLS)
    tracemalloc.start()
    try:
        write_nodes(LocalStore(tmp_path), "0", [node])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "0/vertices/c/0/0/0").stat().st_size > 2**23
    assert peak < 2**22


@pytest.mark.parametrize("apart", [False, True])
def test_rows_in_a_file(apart: bool) -> None:
    rng = np.random.default_rng(1)
    count = 2 * MANIFESTS_AT_ONCE + 100
    assert rows_of_a_chunk(count, MANIFESTS_AT_ONCE) < count
    blobs = [rng.bytes(int(length)) for length in rng.integers(0, 9, count)]
    stores = [MemoryStore(), MemoryStore()]
    for store, rows in zip(stores, (blobs, spooled(blobs, apart)), strict=True):
        size = sum(map(len, blobs))
        write_nodes(store, "0", plan_objects(np.arange(count), {}, rows, size, count, 3, Layout(), sole=True))
    assert stored(stores[0]) == stored(stores[1])
    assert len([key for key in stored(stores[0]) if "/manifests/c/" in key]) == 3
