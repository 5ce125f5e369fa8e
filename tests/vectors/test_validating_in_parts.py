"""``validate`` goes through a level in parts: finds the same, reads each cell once, names what lies off the grid."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from effort import some
from vectors.stores_of_all_kinds import COUNT, WRITERS, store_of
from zardine import vectors
from zardine.storage import CountingStore, MemoryStore
from zardine.vectors.validation import rows

POINTS = np.random.default_rng(0).uniform(0, 80, (4000, 3)).astype("f4")


@pytest.mark.parametrize(("kind", "shards"), list(some(product(sorted(WRITERS), [None, 2]), 2)))
def test_in_small_parts(kind: str, shards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", 3)
    store = store_of(kind, shard_shape=shards)
    report = vectors.validate(store)
    assert report.findings == ()
    assert report.vertex_counts == (COUNT,)


@pytest.mark.parametrize("at_once", [7, 2**18])
def test_what_is_wrong_in_one_part_is_told_of_the_whole(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", at_once)
    store = MemoryStore()
    vectors.write_points(store, POINTS[:300], chunk_shape=10, vertex_attributes={"n": np.arange(300)})
    cells = sorted(key for key in store.list() if key.startswith("0/vertices/c/"))
    store.set(cells[-1], bytes(store.get(cells[0])))  # as many positions, which belong elsewhere
    report = vectors.validate(store)
    assert [(each.kind, each.place) for each in report.faults] == [("outside-chunk", "0/vertices")]
    assert report.vertex_counts == (300,)
    store.erase(cells[-1])
    assert {"vertices", "chunk-lost"} <= vectors.validate(store).codes


@pytest.mark.parametrize("at_once", [50, 2**18])
def test_each_shard_of_positions_is_read_once(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", at_once)
    store = CountingStore(MemoryStore())
    values = {"a": POINTS[:, 0], "b": POINTS[:, 1]}
    vectors.write_points(store, POINTS, chunk_shape=10, compressor=None, vertex_attributes=values)
    before = Counter(store.counts.keys)
    assert vectors.validate(store).ok
    found = Counter(store.counts.keys) - before
    cells = {key: count for key, count in found.items() if key.startswith("0/vertices/c/")}
    assert len(cells) == 512
    assert set(cells.values()) <= {1, 2}  # with a look at its size


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", 2000)
    store = MemoryStore()
    many = np.random.default_rng(0).uniform(0, 80, (200_000, 3))
    vectors.write_points(store, many, chunk_shape=20, vertex_attributes={"a": many[:, 0]})
    tracemalloc.start()
    try:
        assert vectors.validate(store).ok
        assert tracemalloc.get_traced_memory()[1] < many.nbytes / 2
    finally:
        tracemalloc.stop()


def test_shards_off_the_grid_are_named() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=8)
    assert vectors.validate(store).findings == ()
    store.set("0/vertices/c/0/3/0", bytes(store.get("0/vertices/c/0/0/0")))
    report = vectors.validate(store)
    assert report.ok
    assert [(each.kind, each.place) for each in report.notes] == [("shards-off-grid", "0/vertices")]
    assert "0/vertices/c/0/3/0" in report.notes[0].message
