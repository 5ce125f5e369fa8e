"""Groups far away: who goes through all that is below one waits for few rounds of requests, however much it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import zardine
from engine.far_store import Far
from servers.far_bucket import FarBucket
from zardine.cli.facts import group_facts, stored_facts
from zardine.cli.walk import nodes_below
from zardine.engine.side_by_side import Descent, each_begun
from zardine.errors import StoreError
from zardine.storage import MemoryStore

GROUPS, ARRAYS = 3, 6


def fill(store: Any) -> None:
    root = zardine.open_group(store, mode="w")
    for number in range(GROUPS):
        group = root.create_group(f"g{number}/h")
        for name in range(ARRAYS):
            group.create_array(f"a{name}", data=list(range(name, name + 8)), chunks=(4,), shards=(8,))


@pytest.fixture(scope="module")
def bucket() -> Iterator[FarBucket]:
    made = FarBucket()
    fill(made.near())
    yield made
    made.proxy.close()


def nothing(*args: Any, **kwargs: Any) -> None:
    pass


def test_what_is_below_is_told_in_few_rounds(bucket: FarBucket) -> None:
    near, far = zardine.open_group(bucket.near()), zardine.open_group(bucket.far())
    assert bucket.in_rounds(6, lambda: str(far.tree())) == str(near.tree())
    assert bucket.in_rounds(2, lambda: str(far.tree(level=1))) == str(near.tree(level=1))
    members = bucket.in_rounds(6, lambda: far.members(max_depth=None))
    assert [path for path, _ in members] == [path for path, _ in near.members(max_depth=None)]
    assert bucket.in_rounds(4, lambda: far.nmembers(1)) == near.nmembers(1) == 2 * GROUPS
    facts = bucket.in_rounds(6, lambda: group_facts(far, nothing))
    assert (facts["groups_below"], facts["arrays_below"]) == (2 * GROUPS, GROUPS * ARRAYS)
    stored = bucket.in_rounds(12, lambda: stored_facts(far, nothing))
    assert stored == stored_facts(near, nothing)
    assert bucket.in_rounds(4, lambda: str(far["g0/h/a0"].info_complete())).count("Shards stored") == 1


def test_verify_takes_few_rounds(bucket: FarBucket) -> None:
    store = bucket.far()
    found = bucket.in_rounds(24, lambda: zardine.verify(store))
    assert found == zardine.verify(bucket.near())
    assert found.objects == GROUPS * ARRAYS


def test_copies_are_made_at_the_same_time(bucket: FarBucket) -> None:
    source, numbers = zardine.open_group(bucket.far()), count()
    lines: list[str] = []

    def copy() -> Any:
        target = zardine.open_group(bucket.far(f"copy{next(numbers)}"), mode="w")
        lines.clear()
        return target, zardine.copy(source, target, name="x", log=lines.append)

    target, counts = bucket.in_rounds(50, copy)
    assert counts[:2] == (1 + 2 * GROUPS + GROUPS * ARRAYS, 0)
    assert len(lines) == counts[0]
    assert counts[2] == sum(node.nbytes for _, node in source.members(max_depth=None) if hasattr(node, "shape"))
    for path, node in source.members(max_depth=None):
        if hasattr(node, "shape"):
            assert target[f"x/{path}"][...].tolist() == node[...].tolist()


def test_consolidating_takes_few_rounds() -> None:
    made = FarBucket()
    fill(made.near())
    store = made.far()
    group = made.in_rounds(12, lambda: zardine.consolidate_metadata(store))
    assert len(group.metadata.consolidated_metadata or ()) == 2 * GROUPS + GROUPS * ARRAYS
    made.proxy.close()


def test_what_cannot_be_opened_is_told_the_same_of_near_and_far_stores() -> None:
    store = MemoryStore()
    fill(store)
    store.set("g1/h/a2/zarr.json", b"{")
    store.set("g2/zarr.json", b"[]")
    far, near = zardine.open_group(Far(store)), zardine.open_group(store)

    def told(group: Any) -> list[tuple[str, str]]:
        return [(path, type(node).__name__) for path, node in nodes_below(group)]

    assert told(far) == told(near)
    assert {kind for _, kind in told(far)} == {"Group", "Array", "MetadataError"}
    assert zardine.verify(Far(store)).faults == zardine.verify(store).faults
    store.erase("g2/zarr.json")
    for group in (far, near):
        with pytest.raises(zardine.errors.MetadataError, match="g1/h/a2"):
            group.members(max_depth=None)


def test_no_more_is_held_ahead_than_that() -> None:
    looked: list[int] = []

    def look(node: int) -> list[int]:
        looked.append(node)
        return [3 * node + each for each in (1, 2, 3)] if node < 40 else []

    descent = Descent(Far(MemoryStore()), 0, look, lambda node, found: found, name=str, size=len, most=10)
    assert sorted(looked) == list(range(4))  # which gives 12 nodes
    for node in range(121):
        assert descent.of(node) == ([3 * node + each for each in (1, 2, 3)] if node < 40 else [])
    assert sorted(looked) == list(range(121))
    Descent(MemoryStore(), 0, look, lambda node, found: found, name=str, size=len)
    assert len(looked) == 121


@pytest.mark.parametrize("kind", [MemoryStore, lambda: Far(MemoryStore())], ids=["near", "far"])
def test_errors_come_in_their_turn(kind: Any) -> None:
    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise StoreError("no more")

    def call(item: int) -> int:
        if item == 2:
            raise StoreError("not two")
        return 10 * item

    each = each_begun(kind(), call, items())
    found = dict([next(each), next(each), next(each)])
    assert [*found] == [1, 2, 3]
    assert (found[1](), found[3]()) == (10, 30)
    with pytest.raises(StoreError, match="not two"):
        found[2]()
    with pytest.raises(StoreError, match="no more"):
        next(each)
