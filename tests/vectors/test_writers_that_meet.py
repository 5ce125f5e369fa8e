"""Somebody else changes a document while a change is prepared: it is given up, and nothing of theirs is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zardine
from vectors.geometry_samples import rows
from zardine import vectors
from zardine.errors import ChunkDecodeError, StoreError
from zardine.storage import CountingStore, MemoryStore
from zardine.vectors.format.fragment_index import decode_index, encode_indexes

POINTS = np.random.default_rng(3).uniform(0, 40, (60, 3))


class Meeting(MemoryStore):
    """Calls :attr:`other` once, when the first cell of a change is stored."""

    other: Callable[[], object] | None = None

    def set(self, key: str, value: Any, **more: Any) -> Any:
        if self.other is not None and not key.endswith("zarr.json"):
            other, self.other = self.other, None
            other()
        return super().set(key, value, **more)


def store_of_points(shard: int | None = None) -> Meeting:
    store = Meeting()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=shard)
    return store


@pytest.mark.parametrize("shard", [None, 2])
def test_a_level_that_somebody_changes_while_points_are_appended(shard: int | None) -> None:
    store = store_of_points(shard)
    store.other = lambda: zardine.open_group(store, path="0").attrs.update(note="theirs")
    vectors.append_points(store, iter([[5.0, 5, 5]]))  # type: ignore[arg-type]
    assert store.other is None
    assert zardine.open_group(store, path="0").attrs["note"] == "theirs"
    assert rows(vectors.read_points(store).positions) == rows([*POINTS, [5.0, 5, 5]])


@pytest.mark.parametrize("shard", [None, 2])
def test_a_level_that_somebody_changes_while_rows_of_it_are_changed(shard: int | None) -> None:
    store = store_of_points(shard)
    store.other = lambda: zardine.open_group(store, path="0").attrs.update(note="theirs")
    with pytest.raises(StoreError, match="somebody else has changed"):
        vectors.move_vertices(store, [0], [[5.0, 5, 5]])
    assert store.other is None
    assert zardine.open_group(store, path="0").attrs["note"] == "theirs"
    assert rows(vectors.read_points(store).positions) == rows(POINTS)
    vectors.move_vertices(store, [0], [[5.0, 5, 5]])
    assert zardine.open_group(store, path="0").attrs["note"] == "theirs"
    assert len(vectors.read_points(store)) == 60


@pytest.mark.parametrize(("shard", "target"), [(None, 2), (2, None), (2, 3)])
def test_an_array_that_somebody_changes_while_it_is_stored_anew(shard: int | None, target: int | None) -> None:
    store = store_of_points(shard)

    def change() -> None:
        for name in ("vertices", "vertex_fragments"):
            zardine.open_array(store, path=f"0/{name}").attrs["note"] = "theirs"

    store.other = change
    with pytest.raises(StoreError, match="somebody else has changed"):
        vectors.reshard(store, target)
    for name in ("vertices", "vertex_fragments"):
        assert zardine.open_array(store, path=f"0/{name}").attrs["note"] == "theirs"
    assert rows(vectors.read_points(store).positions) == rows(POINTS)
    vectors.reshard(store, target)
    assert zardine.open_array(store, path="0/vertices").attrs["note"] == "theirs"
    assert rows(vectors.read_points(store).positions) == rows(POINTS)


def test_a_listed_row_one_too_far() -> None:
    """Rows that are listed one by one: the last row there is, and the one behind it."""
    for listed in ([0, 2, 4], [4, 0, 2]):
        (blob,) = encode_indexes(np.array([0, 1]), np.array([3]), np.array(listed))
        assert decode_index(blob, 5).rows.tolist() == listed
        for count in (4, 3, 0):
            with pytest.raises(ChunkDecodeError, match="rows that the cell"):
                decode_index(blob, count)


@pytest.mark.parametrize("bins", [None, 5])
def test_a_box_reads_no_cells_beside_it(bins: int | None) -> None:
    store = MemoryStore()
    grid = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 10.0 + 5
    vectors.write_points(store, grid, chunk_shape=10, bin_shape=bins)
    for low, high, cells in ((11, 19, 1), (12, 18, 1), (11, 29, 8), (10, 19, 1 if bins is None else 8)):
        counting = CountingStore(store)
        found = vectors.read_points(counting, bbox=([low] * 3, [high] * 3), attributes=None)
        assert len(found) == len(range(low // 10, high // 10 + 1)) ** 3
        read = [key for key in counting.counts.keys if key.startswith("0/vertices/c/")]
        assert len(read) == cells
