"""Edits that fail leave the store as it was, levels and bounds included; and two writers of one new store."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import NodeExistsError, StoreError
from zardine.storage import MemoryStore, WrapperStore

P = np.arange(12.0).reshape(4, 3)


class FullStore(MemoryStore):
    """One that takes ``room`` more values."""

    room = 10**9

    def set(self, key: str, value: Any, **more: Any) -> Any:
        if self.room <= 0:
            raise StoreError("no space left on device")
        self.room -= 1
        return super().set(key, value, **more)


def state(store: MemoryStore) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


EDITS: dict[str, Callable[[Any], object]] = {
    "append": lambda store: vectors.append_points(store, [[50, 50, 50]], object_ids=[1]),
    "delete": lambda store: vectors.delete(store, bbox=(P[0], P[0])),
    "move": lambda store: vectors.move_vertices(store, [0], [[60, 60, 60]]),
    "attribute": lambda store: vectors.set_attribute(store, "size", [1, 2], kind="object"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_full_disk_leaves_levels_and_bounds(edit: str) -> None:
    done = FullStore()
    vectors.write_points(done, P, chunk_shape=5, object_ids=[1, 1, 2, 2], checksum=False)
    EDITS[edit](done)
    old, new = sorted(P.tolist()), sorted(vectors.read_points(done).positions.tolist())
    kept: list[bool] = []
    completed_later = 0
    start = FullStore()
    vectors.write_points(start, P, chunk_shape=5, object_ids=[1, 1, 2, 2], checksum=False)
    vectors.build_pyramid(start)
    for room in range(200):
        store = FullStore()
        for key, value in state(start).items():
            store.set(key, value)
        before = vectors.validate(store).vertex_counts, vectors.describe_store(store)["bounds"]
        store.room = room
        failure: StoreError | None = None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                EDITS[edit](store)
            except StoreError as error:
                failure = error
        store.room = 10**9
        found = sorted(vectors.read_points(store).positions.tolist())
        if failure is not None:
            assert found == old
            assert failure.takes_effect is False
            report = vectors.validate(store)
            kept.append((report.vertex_counts, vectors.describe_store(store)["bounds"]) == before)
            assert report.ok or not kept[-1]
            assert not completed_later
            continue
        assert found == new
        if not any("is committed, but not completed" in str(each.message) for each in told):
            break
        completed_later += 1
        vectors.repair(store)
        assert sorted(vectors.read_points(store).positions.tolist()) == new
    # links of coarser levels go when all is stored; the writes after that set bounds, commit the change and complete it
    assert completed_later
    assert kept == sorted(kept, reverse=True)
    assert sum(kept) > (1 if edit == "append" else 2)
    report = vectors.validate(store)
    assert [each.kind for each in report.findings] == ["levels-older"]
    assert len(report.vertex_counts) == 2


class UnreadableStore(WrapperStore):
    """One of which a read fails, after ``room`` of them, and then all that is to be written."""

    room, failed = 0, False

    def read(self, key: str, *args: Any, **more: Any) -> Any:
        self.room -= 1
        if self.room == -1:
            self.failed = True
            raise StoreError("the network is gone")
        return super().read(key, *args, **more)

    def set(self, key: str, value: Any, **more: Any) -> Any:
        if self.failed:
            raise StoreError("the network is gone")
        return super().set(key, value, **more)


def test_what_cannot_be_read_is_not_erased_to_be_overwritten() -> None:
    start = MemoryStore()
    vectors.write_points(start, P, chunk_shape=5)
    vectors.build_pyramid(start)
    old, new, seen = sorted(P.tolist()), sorted((P + 7).tolist()), set()
    for room in count():
        whole = MemoryStore()
        for key, value in state(start).items():
            whole.set(key, value)
        store = UnreadableStore(whole)
        store.room = room
        try:
            vectors.write_points(store, P + 7, chunk_shape=5, overwrite=True)
        except StoreError:
            assert store.failed
        vectors.repair(whole)  # which ends what was agreed on
        found = sorted(vectors.read_points(whole).positions.tolist())
        assert found in (old, new), room
        seen.add(found == new)
        if not store.failed:
            break
    assert room > 3
    assert seen == {False, True}


def test_of_two_writers_of_a_new_store_one_wins() -> None:
    for _ in range(8):
        store, told = MemoryStore(), list[str]()

        def write(number: int, store: MemoryStore = store, told: list[str] = told) -> None:
            positions = np.random.default_rng(number).uniform(0, 10, (500, 3))
            try:
                vectors.write_points(store, positions, chunk_shape=2, vertex_attributes={"w": np.full(500, number)})
                told.append("stored")
            except NodeExistsError:
                told.append("refused")

        threads = [threading.Thread(target=write, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == ["refused", "stored"]
        assert len(np.unique(vectors.read_points(store).attributes["w"])) == 1
        assert vectors.validate(store).findings == ()


def test_boxes_find_the_farthest_points() -> None:
    store = MemoryStore()
    vectors.write_points(store, [[6e15, 0.0]], chunk_shape=1)
    assert len(vectors.read_points(store, bbox=([-np.inf] * 2, [np.inf] * 2))) == 1
    assert len(vectors.read_points(store, bbox=([6e15, 0], [6e15, 0]))) == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_means_lie_among_what_they_stand_for(dtype: str) -> None:
    store = MemoryStore()
    vectors.write_points(store, np.full((3, 2), 0.1, dtype), chunk_shape=1)
    vectors.build_pyramid(store)
    bounds = vectors.describe_store(store)["bounds"]
    assert len(vectors.read_points(store, level=1, bbox=bounds)) == len(vectors.read_points(store, level=1)) == 1


def test_results_may_be_written() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=5, vertex_attributes={"a": np.arange(4)})
    for box in (None, (P[0], P[1])):
        found = vectors.read_points(store, bbox=box)
        found.positions[:] = 0
        found.attributes["a"][:] = 0
    assert vectors.read_points(store).positions.tolist() == P.tolist()
