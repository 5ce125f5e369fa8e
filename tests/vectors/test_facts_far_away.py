"""What is told of stores far away, in few rounds of requests, and the same as of near ones, damaged or not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.far_store import Far
from servers.far_bucket import FarBucket
from vectors.test_reading_ahead import BOX, write
from zardine import vectors
from zardine.errors import StoreError, ZardineError
from zardine.storage import MemoryStore
from zardine.vectors.reading.looking_below import looked_below
from zardine.vectors.storing.level_nodes import NO_CELLS, Survey, cell_arrays, nodes_below
from zardine.vectors.storing.store import VectorStore


@pytest.fixture(scope="module")
def bucket() -> Iterator[FarBucket]:
    made = FarBucket()
    write("lines", made.near())
    yield made
    made.proxy.close()


def test_repr_takes_few_rounds(bucket: FarBucket) -> None:
    held = [vectors.open(bucket.far()) for _ in range(5)]
    told = bucket.in_rounds(10, lambda: repr(held.pop()))
    assert told == repr(vectors.open(bucket.near()))
    opened = vectors.open(bucket.far())
    repr(opened)
    assert bucket.in_rounds(3, lambda: repr(opened)) == told


@pytest.mark.parametrize("sizes", [False, True])
def test_facts_take_few_rounds(bucket: FarBucket, sizes: bool) -> None:
    store = bucket.far()
    facts = bucket.in_rounds(10, lambda: vectors.describe_store(store, sizes=sizes))
    info = bucket.in_rounds(8 + 2 * sizes, lambda: vectors.get_shard_info(store, sizes=sizes))
    near = bucket.near()
    assert {**facts, "path": ""} == {**vectors.describe_store(near, sizes=sizes), "path": ""}
    assert info == vectors.get_shard_info(near, sizes=sizes)


def test_facts_of_more_levels_take_no_more_rounds() -> None:
    made = FarBucket()
    write("points", made.near())
    levels = vectors.build_pyramid(made.near(), factors=[(2.0, 1.0), (4.0, 1.0)])
    assert len(levels) == 2
    store = made.far()
    assert len(made.in_rounds(7, lambda: vectors.describe_store(store))["levels"]) == 3
    assert made.in_rounds(8, lambda: vectors.get_shard_info(store)) == vectors.get_shard_info(made.near())
    made.proxy.close()


def test_validate_takes_few_rounds(bucket: FarBucket) -> None:
    store = bucket.far()
    report = bucket.in_rounds(40, lambda: vectors.validate(store))
    assert report
    assert report.vertex_counts == (480,)


def test_batches_read_indexes_of_shards_once(bucket: FarBucket) -> None:
    held = vectors.open(bucket.far())
    bucket.proxy.reset()
    parts = list(held.select(bbox=BOX).batches(1000))
    assert sum(len(part.positions) for part in parts) == len(held.read(bbox=BOX).positions)
    asked = zip(bucket.proxy.requests, bucket.proxy.headers, strict=True)
    indexes = [line for line, headers in asked if "/vertices/" in line and headers.get("range") == "bytes=-404"]
    assert 0 < len(indexes) == len(set(indexes))


def without(store: MemoryStore, key: str) -> None:
    store.erase(key)


def cut(store: MemoryStore, key: str) -> None:
    store.set(key, bytes(store.get(key) or b"")[:-7])


def with_attribute(name: str, change: Callable[[Any], Any]) -> Callable[[MemoryStore, str], None]:
    def edit(store: MemoryStore, key: str) -> None:
        document = json.loads(bytes(store.get(key) or b""))
        document["attributes"][name] = change(document["attributes"].get(name))
        store.set(key, json.dumps(document).encode())

    return edit


CHUNKS = "nonempty_chunks"
DAMAGE: dict[str, list[tuple[Callable[[MemoryStore, str], None], str]]] = {
    "documents": [(cut, f"0/{name}/zarr.json") for name in ("links/0", "vertex_attributes/a", "object_index")],
    "nodes": [(without, "0/vertex_fragments/zarr.json"), (without, "0/object_attributes/n/zarr.json")],
    "shards": [(cut, "0/vertices/c/1/0"), (cut, "0/vertex_attributes/b/c/0/0"), (without, "0/vertices/c/0/1")],
    "lists": [
        (with_attribute(CHUNKS, lambda keys: [*keys[::-1], "77.3"]), "0/vertices/zarr.json"),
        (with_attribute(CHUNKS, lambda keys: keys[3:]), "0/vertex_attributes/a/zarr.json"),
        (with_attribute(CHUNKS, lambda keys: "all"), "0/links/0/0.+1/zarr.json"),
    ],
    "counts": [
        (with_attribute("num_links", lambda count: 3), "0/links/0/zarr.json"),
        (with_attribute("num_objects", lambda count: 5), "0/object_index/zarr.json"),
    ],
    "tables": [(cut, "0/object_attributes/n/c/0"), (without, "0/object_index/manifests/c/0")],
    "level": [(cut, "0/zarr.json")],
    "root": [(cut, "zarr.json")],
}
DAMAGE["all"] = [each for kind in ("nodes", "shards", "lists", "counts") for each in DAMAGE[kind]]


def told(look: Callable[[Any], Any], store: Any) -> str:
    """What is told of a store, or the error, without names that differ, and links, counted only if that is cheap."""
    try:
        facts = look(store)
        if isinstance(facts, dict) and "levels" in facts:
            facts["levels"] = [{**level, "links": None, "links_counted": None} for level in facts["levels"]]
        found = json.dumps(facts, default=str)
    except ZardineError as error:
        found = f"{type(error).__name__}: {error}"
    return re.sub(r"memory://\d+", "memory", found)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_the_same_of_near_and_far_stores(damage: str) -> None:
    store = MemoryStore()
    write("lines", store)
    for change, key in DAMAGE[damage]:
        change(store, key)
    looks: list[Callable[[Any], Any]] = [
        lambda place: vectors.validate(place).to_dict(),
        vectors.describe_store,
        lambda place: vectors.describe_store(place, sizes=True),
        lambda place: vectors.get_shard_info(place, sizes=True),
        lambda place: repr(vectors.open(place)),
    ]
    assert not vectors_are_sound(store)
    for look in looks:
        assert told(look, store) == told(look, Far(store))


def vectors_are_sound(store: Any) -> bool:
    return bool(vectors.validate(store).ok)


class Failing(Far):
    """A store some of whose values cannot be read."""

    failing: tuple[str, ...] = ()

    def read_up_to(self, key: str, most: int) -> Any:
        if key in self.failing:
            raise StoreError(f"no answer for {key}")
        return super().read_up_to(key, most)


def test_who_walks_meets_the_same_error_as_one_by_one() -> None:
    store = MemoryStore()
    write("lines", store)
    failing = Failing(store)
    level = VectorStore.open(failing).level(0)
    names = [name for name, _ in cell_arrays(level)]
    assert names == [name for name, _ in cell_arrays(VectorStore.open(store).level(0))]
    failing.failing = (f"0/{names[2]}/zarr.json", "0/vertices/zarr.json")
    arrays = cell_arrays(level)
    assert [next(arrays)[0], next(arrays)[0]] == names[:2]
    with pytest.raises(StoreError, match=re.escape(failing.failing[0])):
        next(arrays)
    with pytest.raises(StoreError, match=re.escape(failing.failing[0])):
        nodes_below(level)


class Counting(Far):
    """A store that notes what it is asked for."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.asked: list[str] = []

    def read_up_to(self, key: str, most: int) -> Any:
        self.asked.append(key)
        return super().read_up_to(key, most)

    def list_dir(self, prefix: str) -> Any:
        self.asked.append(prefix)
        return super().list_dir(prefix)


def test_nothing_is_asked_for_twice() -> None:
    store = MemoryStore()
    write("lines", store)
    counting = Counting(store)
    level = VectorStore.open(counting).level(0)
    counting.asked = []
    looked = looked_below(level, names=("links", "links/0"), nodes=("vertices",))
    assert looked.cells("vertices") is not None
    assert looked.names("links/0") == level.names("links/0")
    below = nodes_below(looked)
    assert len(below) == len({*below}) > 12
    once = [each for each in counting.asked if each != "0/links/0/"]
    assert len(once) == len({*once})


def test_what_is_left_out_is_not_asked_for() -> None:
    store = MemoryStore()
    write("lines", store)
    counting = Counting(store)
    level = VectorStore.open(counting).level(0)
    counting.asked = []
    Survey(level, left_out=NO_CELLS)
    assert "0/vertices/zarr.json" in counting.asked
    assert not [each for each in counting.asked if each.split("/")[1] in NO_CELLS]
