"""Nodes at nested paths far away: the groups above are asked for together, and stored together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import zardine
from engine.far_store import Far
from servers.far_bucket import FarBucket
from zardine import vectors
from zardine.errors import StoreError
from zardine.hierarchy.create import create_ancestors
from zardine.storage import MemoryStore, StorePath, WrapperStore

ARRAY: dict[str, Any] = {"shape": (8,), "chunks": (4,), "dtype": "i4"}


def create(store: Any, **options: Any) -> None:
    zardine.create_array(store, name="a/b/c/d", **ARRAY, **options)


def write_points(store: Any) -> None:
    place = StorePath(store, "a/b/c/d")
    bounds = ((0, 0, 0), (99, 99, 99))
    vectors.write_points(place, np.arange(30.0).reshape(10, 3), chunk_shape=10, shard_shape=4, bounds=bounds)


CALLS: dict[str, tuple[int, Callable[[Any], object]]] = {
    "array": (5, create),
    "array of v2": (5, lambda store: create(store, zarr_format=2)),
    "group": (5, lambda store: zardine.create_group(store, path="a/b/c/d")),
    "opened group": (5, lambda store: zardine.open_group(store, path="a/b/c/d")),
    "opened": (5, lambda store: zardine.open(store, path="a/b/c/d", mode="a")),
    "opened group of v2": (5, lambda store: zardine.open_group(store, path="a/b/c/d", zarr_format=2)),
    "opened array": (7, lambda store: zardine.open_array(store, path="a/b/c/d", **ARRAY)),
    "saved": (6, lambda store: zardine.save_array(store, np.arange(8), path="a/b/c/d")),
    "vectors": (8, write_points),
}


@pytest.fixture
def bucket() -> Iterator[FarBucket]:
    made = FarBucket()
    yield made
    made.proxy.close()


@pytest.mark.parametrize("name", CALLS)
def test_rounds_where_nothing_is(bucket: FarBucket, name: str) -> None:
    rounds, call = CALLS[name]
    places = itertools.count()
    bucket.in_rounds(rounds, lambda: call(bucket.far(f"{next(places)}")))
    near = MemoryStore()
    call(near)
    assert sorted(bucket.near("0").list()) == sorted(near.list())


def test_rounds_where_the_groups_are(bucket: FarBucket) -> None:
    zardine.create_group(bucket.near("3"), path="a/b/c")
    zardine.create_group(bucket.near("2"), path="a/b/c", zarr_format=2)
    names = (f"a/b/c/d{number}" for number in itertools.count())
    bucket.in_rounds(2, lambda: zardine.create_array(bucket.far("3"), name=next(names), **ARRAY))
    bucket.in_rounds(3, lambda: zardine.create_array(bucket.far("2"), name=next(names), zarr_format=2, **ARRAY))
    group = zardine.open_group(bucket.far("3"))
    bucket.in_rounds(1, lambda: zardine.open_array(bucket.far("3"), path="a/b/c/d0", mode="r"))
    bucket.in_rounds(1, lambda: zardine.open_group(bucket.far("3"), path="a/b/c"))
    bucket.in_rounds(1, lambda: group["a/b/c/d0"])


def test_rounds_in_a_bucket_that_is_in_use(bucket: FarBucket) -> None:
    bucket.near("").set("other/file", b"of no program that we know")
    bucket.in_rounds(6, lambda: create(bucket.far("")))


GROUP_3, GROUP_2 = b'{"zarr_format": 3, "node_type": "group"}', b'{"zarr_format": 2}'
ARRAY_2 = b'{"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<i4", "compressor": null, "fill_value": 0, '
ARRAY_2 += b'"order": "C", "filters": null}'
STORED: dict[str, dict[str, bytes]] = {
    "nothing": {},
    "a group": {"a/zarr.json": GROUP_3},
    "a group of v2": {"a/b/.zgroup": GROUP_2},
    "a group of v2 at the root": {".zgroup": GROUP_2},
    "both versions": {"a/.zgroup": GROUP_2, "a/zarr.json": GROUP_3},
    "an array of v2": {"a/b/.zarray": ARRAY_2},
    "an array of v2 at the root": {".zarray": ARRAY_2},
    "an array of v2 and a group": {"a/.zarray": ARRAY_2, "a/.zgroup": GROUP_2},
    "a group above an array": {"a/.zarray": ARRAY_2, "a/b/zarr.json": GROUP_3},
    "a broken document": {"a/b/zarr.json": b"{"},
    "a broken document above a group": {"a/zarr.json": b"{", "a/b/zarr.json": GROUP_3},
    "two that are broken": {"a/zarr.json": b"{", "a/b/.zgroup": b"["},
    "broken attributes": {"a/b/.zgroup": GROUP_2, "a/b/.zattrs": b"["},
    "a work": {"a/b/zardine-conversion.json": b'{"function": "rechunk"}'},
    "a work at the root": {"zardine-conversion.json": b'{"function": "convert"}'},
    "a work above a group": {"a/zardine-conversion.json": b'{"function": "convert"}', "a/b/zarr.json": GROUP_3},
    "other files": {"a/file": b"1", "other/file": b"2", "a/b/meta": b"3"},
    "a node below": {"a/b/c/x/zarr.json": GROUP_3},
    "a node at the place": {"a/b/c/d/zarr.json": GROUP_3},
}


@pytest.mark.parametrize("version", [3, 2, None])
@pytest.mark.parametrize("name", STORED)
def test_far_away_as_near(name: str, version: int | None) -> None:
    def told(kind: Callable[[MemoryStore], Any]) -> tuple[str, dict[str, bytes]]:
        store, error = MemoryStore(), ""
        for key, value in STORED[name].items():
            store.set(key, value)
        try:
            create_ancestors(kind(store), "a/b/c/d", version)
            if version is not None:
                create(kind(store), zarr_format=version)
            zardine.open_group(kind(store), path="a/b/c/e/f", zarr_format=version)
            zardine.open(kind(store), path="a/b/c/e/g", mode="a", zarr_format=version)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}".replace(str(store), "")
        return error, {key: bytes(store.get(key) or b"") for key in store.list()}

    near, far = told(lambda store: store), told(Far)
    assert far == near


class Refusing(WrapperStore):
    """A store that does not store some keys."""

    refused: frozenset[str] = frozenset()

    def set(self, key: str, value: Any, **options: Any) -> Any:
        if key in self.refused:
            raise StoreError(f"{key} is not stored")
        return super().set(key, value, **options)


def test_groups_that_were_left_out_are_made_by_the_next() -> None:
    groups = ["zarr.json", "a/zarr.json", "a/b/zarr.json", "a/b/c/zarr.json"]
    for count in range(len(groups) + 1):
        for refused in itertools.combinations(groups, count):
            store = MemoryStore()
            failing = Refusing(Far(store))
            failing.refused = frozenset(refused)
            if refused:
                with pytest.raises(StoreError, match="is not stored"):
                    create(failing)
                stored = set(store.list())
                assert "a/b/c/d/zarr.json" not in stored  # nothing is where groups above it may be missing
                assert not stored or groups[0] in stored
            create(Far(store))
            assert sorted(store.list()) == sorted([*groups, "a/b/c/d/zarr.json"])


@pytest.mark.parametrize("there", ["a/b/zarr.json", "a/b/c/zarr.json"])
def test_who_may_not_store_groups_that_were_left_out_creates_below_them(there: str) -> None:
    store = MemoryStore()
    store.set("zarr.json", GROUP_3)
    store.set(there, GROUP_3)
    guest = Refusing(Far(store))
    guest.refused = frozenset({"zarr.json", "a/zarr.json"})
    create(guest)
    assert "a/b/c/d/zarr.json" in set(store.list())
    assert {"a/b/zarr.json", "a/b/c/zarr.json"} <= set(store.list())
    assert not store.exists("a/zarr.json")
    create(Far(store), overwrite=True)
    assert store.exists("a/zarr.json")


def test_groups_that_were_all_there_are_not_asked_for_again(bucket: FarBucket) -> None:
    group = zardine.create_group(bucket.near(), path="a/b/c")
    store = bucket.far()
    counts = []
    for number in range(3):
        bucket.proxy.reset()
        zardine.create_array(store, name=f"a/b/c/d{number}", **ARRAY)
        counts.append(len(bucket.proxy.requests))
    assert counts == [6, 3, 3]
    del zardine.open_group(bucket.near())["a"]
    zardine.create_array(store, name="a/b/c/d", **ARRAY)  # all of which are missing
    assert group.store.exists("a/zarr.json")
    assert group.store.exists("a/b/c/zarr.json")


def test_what_is_above_the_outermost_group_stays_as_it_is() -> None:
    store = MemoryStore()
    store.set("a/b/zarr.json", GROUP_3)
    create(Far(store))
    assert sorted(store.list()) == ["a/b/c/d/zarr.json", "a/b/c/zarr.json", "a/b/zarr.json"]
    for above in ({"a/.zgroup": GROUP_2}, {"a/zarr.json": b"{"}, {"a/zardine-conversion.json": b"{}"}):
        store = MemoryStore()
        stored = {"zarr.json": GROUP_3, "a/b/c/zarr.json": GROUP_3, **above}
        for key, value in stored.items():
            store.set(key, value)
        create(Far(store))
        others = ["a/b/zarr.json", "a/b/c/d/zarr.json"]  # between two groups; and what was asked for
        assert sorted(store.list()) == sorted([*stored, *others])


def test_two_who_create_at_the_same_time_get_along() -> None:
    for _ in range(20):
        store, barrier, errors = MemoryStore(), Barrier(4), []

        def run(number: int, store: Any = store, barrier: Barrier = barrier, errors: list[Any] = errors) -> None:
            barrier.wait()
            try:
                zardine.create_array(Far(store), name=f"a/b/c/d{number}", **ARRAY)
            except Exception as error:
                errors.append(error)

        threads = [Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert [path for path, _ in zardine.open_group(store).members(max_depth=None)] == sorted(
            ["a", "a/b", "a/b/c", *(f"a/b/c/d{number}" for number in range(4))]
        )


def test_a_server_that_forbids_names_and_unknown_keys() -> None:
    class Forbidding(Far):
        def list_dir(self, prefix: str) -> Any:
            raise StoreError("forbidden")

        def list_prefix(self, prefix: str) -> Any:
            raise StoreError("forbidden")

    for version in (3, 2):
        store = MemoryStore()
        create(Forbidding(store), zarr_format=version)
        near = MemoryStore()
        create(near, zarr_format=version)
        assert sorted(store.list()) == sorted(near.list())
