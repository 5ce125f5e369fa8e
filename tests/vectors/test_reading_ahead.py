"""What an answer asks a far store for is asked for at once, and counts only if it is what is stored at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from engine.far_store import Far
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine import vectors
from zardine.engine.side_by_side import begun
from zardine.errors import SelectionError, StoreError
from zardine.storage import CountingStore, MemoryStore
from zardine.stores.base import WHOLE
from zardine.vectors.reading import ahead as ahead_module
from zardine.vectors.reading.ahead import AheadStore

RANDOM = np.random.default_rng(0)
LINES = [
    np.clip(each + np.cumsum(RANDOM.normal(0, 3, (6, 2)), axis=0), 0, 79.9) for each in RANDOM.uniform(0, 79, (80, 2))
]
HOW: Any = {"chunk_shape": 10, "shard_shape": 5, "bounds": ((0, 0), (80, 80))}
BOX = ((20, 20), (29, 29))


def write(kind: str, store: Any) -> None:
    positions = np.concatenate(LINES)
    of_vertices = {"vertex_attributes": {"a": np.arange(480), "b": np.arange(480) / 2}}
    rows = np.arange(480).reshape(80, 6)
    if kind == "points":
        vectors.write_points(store, positions, **of_vertices, **HOW)
    elif kind == "lines":
        vectors.write_polylines(store, LINES, **of_vertices, object_attributes={"n": range(80)}, **HOW)
    elif kind == "graph":
        edges = np.stack([rows[:, :-1].ravel(), rows[:, 1:].ravel()], axis=-1)
        vectors.write_graph(store, positions, edges, **of_vertices, edge_attributes={"w": np.arange(400)}, **HOW)
    elif kind == "mesh":
        vectors.write_mesh(store, positions, rows.reshape(-1, 3), **of_vertices, **HOW)
    else:
        parents = np.where(rows % 6, rows - 1, -1).ravel()
        vectors.write_skeleton(store, positions, parents, **of_vertices, **HOW)


READERS: dict[str, Callable[..., Any]] = {
    "points": vectors.read_points,
    "lines": vectors.read_polylines,
    "graph": vectors.read_graph,
    "mesh": vectors.read_mesh,
    "skeleton": vectors.read_skeleton,
}


@pytest.mark.parametrize("query", [{}, {"bbox": BOX}], ids=["all", "box"])
@pytest.mark.parametrize(("kind", "most"), [("points", 4), ("lines", 4), ("graph", 5), ("mesh", 5), ("skeleton", 5)])
def test_an_answer_takes_few_rounds_of_requests(kind: str, most: int, query: Any) -> None:
    """Documents; cells of vertices, and documents of attributes; cells of these; those of links; a last look."""
    bucket, proxy = servers.new_bucket(), FaultProxy(int(servers.s3().url.rpartition(":")[2]))

    def place(url: str) -> Any:
        from obstore.store import S3Store

        keys = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
        return S3Store(bucket, prefix="v", endpoint=url, client_options={"allow_http": True}, **keys)

    write(kind, place(servers.s3().url))
    read, rounds = READERS[kind], []
    with suppress(SelectionError):  # connections and threads are there
        read(place(proxy.url), level=9)
    for _ in range(8):
        proxy.reset()
        proxy.latency = 0.1
        found = read(place(proxy.url), **query)
        rounds.append(proxy.rounds())
        if rounds[-1] <= most:
            break
    assert len(found.positions)
    assert min(rounds) <= most, (rounds, proxy.requests)  # a busy machine may begin some late
    proxy.reset()
    proxy.latency = 0.1
    held = vectors.open(place(proxy.url))
    held.read(**query)
    rounds = []
    while len(rounds) < 5 and not (rounds and rounds[-1] <= most - 2):
        proxy.spans = []
        held.read(**query)
        rounds.append(proxy.rounds())
    assert min(rounds) <= most - 2, (rounds, proxy.requests[-60:])
    proxy.close()


@pytest.mark.parametrize("kind", READERS)
def test_far_stores_read_as_near_ones(kind: str) -> None:
    store = MemoryStore()
    write(kind, store)
    for query in ({}, {"bbox": BOX}, {"bbox": BOX, "attributes": None}, {"where": {"a": slice(10, 300)}}):
        near, far = (READERS[kind](each, **query) for each in (store, Far(store)))
        assert near.positions.tolist() == far.positions.tolist()
        assert {name: each.tolist() for name, each in near.attributes.items()} == {
            name: each.tolist() for name, each in far.attributes.items()
        }


class Changing(Far):
    """A store that somebody changes right after one of its values, or some names, were read for the first time."""

    after: str = ""
    change: Callable[[], object] | None = None

    def _read(self, name: str, found: Any) -> Any:
        change = self.change
        if name == self.after and change is not None:
            self.change = None
            change()
        return found

    def read(self, key: str, ranges: Sequence[Any] = (WHOLE,)) -> Any:
        return self._read(key, super().read(key, ranges))

    def read_up_to(self, key: str, most: int) -> Any:
        return self._read(key, self._store.read_up_to(key, most))

    def list_dir(self, prefix: str) -> Any:
        return self._read(prefix, super().list_dir(prefix))


AHEAD = [
    *("zarr.json", "0/zarr.json", "0/vertices/zarr.json", "0/vertex_fragments/zarr.json", "0/object_index/zarr.json"),
    *("0/object_index/manifests/zarr.json", "0/object_index/object_ids/zarr.json", "0/object_index/manifests/c/0"),
    *("0/object_index/object_ids/c/0", "0/vertex_attributes/", "0/object_attributes/"),
]


@pytest.mark.parametrize("after", AHEAD)
def test_what_is_older_than_the_level_does_not_count(after: str) -> None:
    """Lines are added, far from the others and beside them, while documents come in that were asked for ahead."""
    store = MemoryStore()
    write("lines", store)
    more = [np.array([[3.0, 3], [4, 4]]), np.array([[55.0, 5], [66, 66]])]

    def change() -> None:
        values = {"a": np.full(4, -1), "b": np.full(4, -1.0)}
        vectors.append_polylines(store, more, vertex_attributes=values, object_attributes={"n": [-1, -1]})

    changing = Changing(store)
    changing.after, changing.change = after, change
    found = vectors.read_polylines(changing)
    assert changing.change is None  # it was asked for
    assert len(found.starts) - 1 in (80, 82)
    rows = {80: 480, 82: 484}[len(found.starts) - 1]
    assert len(found.positions) == len(found.attributes["a"]) == rows
    assert len(found.object_attributes["n"]) == len(found.object_ids) == len(found.starts) - 1
    assert (found.attributes["a"] == -1).sum() == rows - 480
    held = vectors.open(changing)
    assert len(held.read().object_ids) == 82


def asked(store: Any) -> AheadStore:
    ahead = AheadStore(Far(store))
    ahead.ask(["a/zarr.json", "none"], ["a/"], ["t/c/0", "t/c/1"], ["t/"])
    return ahead


def filled() -> MemoryStore:
    store = MemoryStore()
    for key in ("a/zarr.json", "a/x", "t/c/0"):
        store.set(key, b"old")
    return store


def test_each_thing_is_given_once() -> None:
    store = filled()
    ahead = asked(store)
    for key in ("a/zarr.json", "t/c/0"):
        first = ahead.read_up_to(key, 100)
        assert first is not None
        store.set(key, b"new")
        second = ahead.read_up_to(key, 100)
        assert second is not None
        assert (bytes(first.parts[0]), bytes(second.parts[0])) == (b"old", b"new")
    assert ahead.read("none") is None
    store.set("none", b"new")
    assert ahead.read("none") is not None
    assert ahead.list_dir("a/") == (["a/x", "a/zarr.json"], [])
    store.set("a/y", b"")
    assert len(ahead.list_dir("a/")[0]) == 3
    assert not ahead.holds()


def test_what_is_too_long_has_no_parts() -> None:
    found = asked(filled()).read_up_to("t/c/0", 2)
    assert found is not None
    assert (found.parts, found.size) == ((), 3)


@pytest.mark.parametrize("key", ["a/zarr.json", "none", "a/y", "t/c/0", "t/c/1"])
@pytest.mark.parametrize("gone", [False, True])
def test_it_is_noticed_what_does_not_hold(key: str, gone: bool) -> None:
    store = filled()
    ahead = asked(store)
    for each in ("a/zarr.json", "none", "t/c/0", "t/c/1"):
        ahead.read_up_to(each, 100)
    ahead.list_dir("a/")
    assert ahead.holds()
    was_there = store.exists(key)
    if gone:
        store.erase(key)
    else:
        store.set(key, b"new")
    assert ahead.holds() == (gone and not was_there)
    assert ahead.holds(key) == (gone and not was_there) or key != "a/y"


def test_what_nobody_has_used_does_not_matter() -> None:
    store = filled()
    ahead = asked(store)
    ahead.read("t/c/0")
    store.set("a/zarr.json", b"new")
    assert ahead.holds()


def test_values_without_versions_are_compared() -> None:
    class Versionless(Far):
        def read_up_to(self, key: str, most: int) -> Any:
            found = self._store.read_up_to(key, most)
            return None if found is None else type(found)(found.parts, None, found.size)

    store = filled()
    ahead = AheadStore(Versionless(store))
    ahead.ask(["a/zarr.json"], [], ["t/c/0"], ["t/"])
    for each in ("a/zarr.json", "t/c/0"):
        ahead.read_up_to(each, 100)
    assert ahead.holds()
    store.set("t/c/0", b"new")
    assert not ahead.holds()


def test_errors_come_to_who_asks() -> None:
    class Failing(Far):
        fails = True

        def read_up_to(self, key: str, most: int) -> Any:
            if self.fails:
                raise StoreError("no answer")
            return super().read_up_to(key, most)

    failing = Failing(filled())
    ahead = AheadStore(failing)
    ahead.ask(["a/zarr.json"])
    with pytest.raises(StoreError, match="no answer"):
        ahead.read("a/zarr.json")
    failing.fails = False
    assert ahead.read("a/zarr.json") is not None
    assert ahead.holds()


class Forbidding(Far):
    """A store that gives values and lists nothing, as buckets may be set up."""

    def list_versions(self, prefix: str) -> Any:
        raise StoreError("AccessDenied")


def test_who_may_not_list_reads_once() -> None:
    store = filled()
    ahead = AheadStore(Forbidding(store))
    ahead.ask(["a/zarr.json"], [], ["t/c/0", "t/c/1"], ["t/"])
    for each in ("a/zarr.json", "t/c/0", "t/c/1"):
        ahead.read_up_to(each, 100)
    assert ahead.holds()
    store.set("t/c/0", b"new")
    assert not ahead.holds()


def test_a_level_that_is_not_there_is_not_looked_for_in_all_below() -> None:
    store = MemoryStore()
    write("points", store)
    counting = CountingStore(Far(store))
    with pytest.raises(SelectionError, match="has no level"):
        vectors.read_points(counting, level=50_000)
    assert counting.counts.requests < 30


def test_after_an_error_no_more_is_asked_for() -> None:
    made: list[int] = []

    def call(number: int) -> None:
        made.append(number)
        raise StoreError(str(number))

    results = begun(Far(MemoryStore()), [partial(call, number) for number in range(200)])
    assert len(made) < 40
    with pytest.raises(StoreError, match=r"^0$"):
        results[0]()


def test_what_is_long_is_left_to_who_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead_module, "_TOGETHER", 10)
    store = filled()
    store.set("a/zarr.json", b"long enough")
    ahead = AheadStore(Far(store))
    ahead.ask(["a/zarr.json", "none"], [], ["t/c/0"])
    found = ahead.read_up_to("a/zarr.json", 100)
    assert found is not None
    assert bytes(found.parts[0]) == b"long enough"
    assert ahead.holds()


def test_a_store_held_open_sees_what_other_programs_add() -> None:
    """Without a change of the level's document, as zarr-vectors does."""
    store, more = MemoryStore(), MemoryStore()
    write("lines", store)
    vectors.write_polylines(
        more, LINES, object_attributes={"n": range(80), "m": range(80)}, vertex_attributes={"a": range(480)}, **HOW
    )
    held = vectors.open(Far(store))
    assert sorted(held.read().object_attributes) == ["n"]
    for key in more.list_prefix("0/object_attributes/m/"):
        store.set(key, bytes(more.get(key) or b""))
    assert sorted(held.read().object_attributes) == ["m", "n"]
    assert sorted(vectors.read_polylines(Far(store)).object_attributes) == ["m", "n"]
