"""Readers while another process converts a store; requests that readers make; stores behind a web server."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.stores_of_all_kinds import WRITERS, read_all, store_of
from zardine import vectors
from zardine.errors import MetadataError, SelectionError, StoreError, UnsupportedError
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.storing.steady import read_table
from zardine.vectors.storing.store import Level
from zardine.vectors.validation import validate as checks


def _convert(path: str, stop: Any) -> None:
    while not stop.is_set():
        vectors.shard_store(path, 4)
        vectors.unshard_store(path)


@pytest.mark.parametrize("kind", ["points_of_objects", "graph"])
def test_readers_during_conversions(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    WRITERS[kind](path, chunk_shape=20)
    whole = read_all(path, kind)
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    other = context.Process(target=_convert, args=(path, stop))
    other.start()
    try:
        ends = time.monotonic() + (2 if SOAK else 0.6)
        while time.monotonic() < ends:
            assert read_all(path, kind) == whole
    finally:
        stop.set()
        other.join(60)


MANY = 60


def _places(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.stack([numbers % 50, numbers * 7 % 50, numbers * 13 % 50], axis=1).astype("f8")


def _write(path: str, kind: str, version: int, chunk: float) -> None:
    number = np.arange(MANY)
    told: dict[str, Any] = {"chunk_shape": chunk, "overwrite": True, "object_ids": number % 5}
    columns: dict[str, Any] = {"n": number, "version": np.full(MANY, version)}
    if kind == "points":
        vectors.write_points(path, _places(number), vertex_attributes=columns, **told)
    elif kind == "graph":
        edges = np.stack([number, (number + 1) % MANY], axis=1)
        vectors.write_graph(
            path, _places(number), edges, vertex_attributes=columns, edge_attributes={"w": number}, **told
        )
    else:
        told |= {"object_ids": range(6), "object_attributes": {"version": [version] * 6}}
        vectors.write_polylines(path, np.split(_places(number), 6), vertex_attributes=columns, **told)


def _append(path: str, kind: str, version: int) -> None:
    number = np.arange(MANY, MANY + 10)
    columns = {"n": number, "version": np.full(10, version)}
    if kind == "points":
        vectors.append_points(path, _places(number), vertex_attributes=columns, object_ids=[9] * 10)
    elif kind == "graph":
        edges, ids = np.stack([np.arange(9), np.arange(1, 10)], axis=1), [9] * 10
        weights = {"w": number[:-1]}
        vectors.append_graph(
            path, _places(number), edges, vertex_attributes=columns, edge_attributes=weights, object_ids=ids
        )
    else:
        objects = {"object_ids": [9], "object_attributes": {"version": [version]}}
        vectors.append_polylines(path, [_places(number)], vertex_attributes=columns, **objects)


def _edit(path: str, kind: str, stop: Any) -> None:
    version = 0
    while not stop.is_set():
        version += 1
        for change in (
            lambda: vectors.set_attribute(path, "version", np.full(MANY, version)),  # noqa: B023
            lambda: kind == "polylines" and vectors.set_attribute(path, "version", np.full(6, version), kind="object"),  # noqa: B023
            lambda: _append(path, kind, version),  # noqa: B023
            lambda: vectors.build_pyramid(path),
            lambda: vectors.reshard(path, 4 if version % 2 else None),  # noqa: B023
            lambda: vectors.delete(path, object_ids=[9]),
            lambda: _write(path, kind, version, 13 if version % 2 else 20),  # noqa: B023
        ):
            change()
            time.sleep(0.15)  # readers that are slower than changes follow each other have to give up


@pytest.mark.parametrize("kind", ["points", "graph", "polylines"])
def test_readers_during_edits(kind: str, tmp_path: Path) -> None:
    """Every answer is that of one state: as many vertices, one version of the attribute, links of these vertices."""
    path = str(tmp_path / "a.zv")
    _write(path, kind, 0, 20)
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    other = context.Process(target=_edit, args=(path, kind, stop))
    other.start()
    seen, read = set(), getattr(vectors, f"read_{kind}")
    try:
        ends = time.monotonic() + (3 if SOAK else 0.7)
        while time.monotonic() < ends or (len(seen) < 2 and time.monotonic() < ends + 60):
            found = read(path)
            number, version = found.attributes["n"], set(found.attributes["version"].tolist())
            assert sorted(number.tolist()) == list(range(len(number)))
            assert len(number) in (MANY, MANY + 10)
            assert np.array_equal(found.positions, _places(number))
            assert len(version) == 1
            if kind == "graph":
                assert len(found.edges) == (MANY if len(number) == MANY else MANY + 9)
                assert np.array_equal(number[found.edges[:, 0]], found.edge_attributes["w"])
            elif kind == "polylines":
                assert found.object_ids.tolist() == [*range(6), *([9] if len(number) > MANY else [])]
                assert len(set(found.object_attributes["version"].tolist())) == 1
            some = read(path, bbox=([0] * 3, [30] * 3)).attributes["n"]
            inside = (_places(np.arange(MANY)) <= 30).all(axis=1)
            assert kind == "polylines" or np.flatnonzero(inside).tolist() == sorted(some[some < MANY].tolist())
            assert len(vectors.read_objects(path).ids) in (5, 6, 7)
            assert vectors.read_fragments(path).vertex_counts.sum() in (MANY, MANY + 10)
            try:
                assert len(vectors.read_points(path, level=1, attributes=None)) > 0
                assert len(vectors.read_cross_level_links(path, 0)) in (MANY, MANY + 10)
            except SelectionError:  # the level is not there at the moment
                pass
            seen |= {(len(number), *version)}
    finally:
        stop.set()
        other.join(60)
    assert other.exitcode == 0
    assert len(seen) > 1
    assert vectors.validate(path).ok


SELECTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "box": {"bbox": ([-30] * 3, [5] * 3)},
    "ids": {"object_ids": [10, 12]},
    "group": {"group_ids": [0]},
    "chunks": {"chunks": [(-1, -1, -1), (0, 0, 0), (-2, 0, 1)]},
    "where": {"where": {"n": slice(3, 20)}},
    "all of it": {"bbox": ([-20] * 3, [30] * 3), "group_ids": [0], "where": {"kind": ["k0", "k1"]}},
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_one_shard_costs_two_requests_an_array(kind: str, selection: str) -> None:
    if kind == "points" and ("group" in selection or selection in ("ids", "all of it")):
        pytest.skip("no objects")
    store = CountingStore(store_of(kind, shard_shape=8))
    store.reset()
    read_all(store, kind, **SELECTIONS[selection], level=0)
    asked = {key: count for key, count in store.counts.keys.items() if "/c/" in key}
    assert any("vertices" in key for key in asked)
    assert max(asked.values()) <= 2, asked


def _unlisted(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document["attributes"].items() if name != "nonempty_chunks"}


def test_a_consolidated_store_behind_a_web_server(tmp_path: Path) -> None:
    import threading
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    import zardine

    class Quiet(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def list_directory(self, path: Any) -> None:
            self.send_error(403)

        def log_message(self, *args: Any) -> None:
            pass

    for kind in ("points_of_objects", "graph"):
        WRITERS[kind](str(tmp_path / kind), chunk_shape=50)
        vectors.build_pyramid(str(tmp_path / kind), factors=[(2, 1)])
    zardine.consolidate_metadata(LocalStore(str(tmp_path / "graph")))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        assert read_all(f"{url}/graph", "graph") == read_all(str(tmp_path / "graph"), "graph")
        assert vectors.validate(f"{url}/graph").ok
        assert len(vectors.describe_store(f"{url}/graph")["levels"]) == 2
        plain = vectors.read_points(f"{url}/points_of_objects", attributes=["n"], object_ids=[11])
        here = vectors.read_points(str(tmp_path / "points_of_objects"), attributes=["n"], object_ids=[11])
        assert np.array_equal(plain.attributes["n"], here.attributes["n"])
        assert len(vectors.read_points(f"{url}/points_of_objects", level=1, attributes=None)) > 0
        for ask in (vectors.read_points, vectors.validate):  # that nothing can be told is no fault of the store
            with pytest.raises(UnsupportedError, match="consolidate_metadata"):
                ask(f"{url}/points_of_objects")
        for node in ("vertices", "vertex_fragments"):
            file = tmp_path / "points_of_objects" / "0" / node / "zarr.json"
            file.write_text(json.dumps({**(told := json.loads(file.read_text())), "attributes": _unlisted(told)}))
        small = ([-30] * 3, [30] * 3)
        with pytest.raises(UnsupportedError, match=r"nonempty_chunks.*repair"):
            vectors.read_points(f"{url}/points_of_objects", attributes=["n"])
        few = vectors.read_points(f"{url}/points_of_objects", attributes=["n"], chunks=[(0, 0, 0), (-1, 0, 0)])
        assert sorted(few.attributes["n"]) == sorted(
            vectors.read_points(str(tmp_path / "points_of_objects"), chunks=[(0, 0, 0), (-1, 0, 0)]).attributes["n"]
        )
        vectors.repair(str(tmp_path / "points_of_objects"))
        assert len(vectors.read_points(f"{url}/points_of_objects", attributes=["n"], bbox=small)) == 40
    finally:
        server.shutdown()


def test_ids_of_vertices_that_objects_share(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    rng = np.random.default_rng(0)
    ids = np.repeat([10, 20, 30], 40)
    vectors.write_points(path, rng.uniform(0, 100, (120, 3)), object_ids=ids, chunk_shape=50)
    vectors.build_pyramid(path, factors=[(2, 1)])
    for wanted in (10, 20, 30):
        found = vectors.read_points(path, level=1, object_ids=[wanted])
        assert found.object_ids is not None
        assert set(found.object_ids.tolist()) == {wanted}
    both = vectors.read_points(path, level=1, object_ids=[20, 30]).object_ids
    assert both is not None
    assert set(both.tolist()) <= {20, 30}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store that somebody changes once in each wait of those who read it again."""
    store = MemoryStore()
    vectors.write_points(store, _places(np.arange(MANY)), chunk_shape=20)
    vectors.build_pyramid(store, factors=[(2, 1)])
    _change(store)
    monkeypatch.setattr("zardine.stores.attempts.time.sleep", lambda seconds: _change(store))
    return store


def _change(store: MemoryStore) -> None:
    vectors.append_points(store, [[1.0, 2, 3]])


def test_what_changes_before_it_is_read_again_is_no_change(busy: MemoryStore) -> None:
    """Waits grow: they may be longer than it takes others to change something, however short the reading is."""
    tried = 0

    def read(level: Level) -> int:
        nonlocal tried
        tried += 1
        if tried == 1:
            _change(busy)
        return level.document.level

    assert read_steadily(busy, 0, read) == 0
    assert tried == 2


def test_what_changes_before_it_is_checked_again_is_no_change(
    busy: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def report(*args: Any) -> Any:
        tried.append(len(tried))
        if len(tried) == 1:
            _change(busy)
        return real(*args)

    real = checks._report
    monkeypatch.setattr(checks, "_report", report)
    assert [each.kind for each in vectors.validate(busy).findings] == ["levels-older"]
    assert len(tried) == 2


class Meddled(CountingStore):
    """A store in which somebody does something once, right after a number of requests."""

    left = -1
    other: Any = None

    def _after(self, found: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self.other()
        return found

    def read(self, *args: Any, **kwargs: Any) -> Any:
        return self._after(super().read(*args, **kwargs))

    def read_up_to(self, *args: Any, **kwargs: Any) -> Any:
        return self._after(super().read_up_to(*args, **kwargs))

    def list_dir(self, *args: Any, **kwargs: Any) -> Any:
        return self._after(super().list_dir(*args, **kwargs))


@pytest.mark.parametrize("tell", ["facts", "shards"])
def test_levels_that_come_and_go_while_they_are_told_of(tell: str) -> None:
    """After each request of who tells of them: that was an error, of a level that is not there, or half of it."""

    def told(place: Any) -> Any:
        if tell == "shards":
            return vectors.get_shard_info(place)
        facts = vectors.describe_store(place)
        assert len(vectors.open(place)) == MANY
        return {key: value for key, value in facts.items() if key != "path"}

    store, states, known = MemoryStore(), dict[int, dict[str, bytes]](), {}

    def become(count: int) -> None:
        for key in list(store.list()):
            store.erase(key)
        for key, value in states[count].items():
            store.set(key, value)

    vectors.write_points(store, _places(np.arange(MANY)), chunk_shape=20, object_ids=np.arange(MANY) % 5)
    for count in (1, 2):
        vectors.build_pyramid(store, factors=[(2, 1)] * count, anew=True)
        states[count] = {key: bytes(store.get(key) or b"") for key in store.list()}
        known[count] = told(store)
    assert known[1] != known[2]
    for before, after in ((2, 1), (1, 2)):
        requests, met = 1, True
        while met:
            become(before)
            meddled = Meddled(store)
            meddled.left, meddled.other = requests, lambda: become(after)  # noqa: B023
            found = told(meddled)
            met = meddled.left <= 0
            assert found in (known[after], known[before]) if met else found == known[before]
            requests += 1
        assert requests > 20


def test_levels_that_change_again_and_again_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are added all the time, and the bounds become wider: nothing comes or goes."""
    monkeypatch.setattr("zardine.stores.attempts.time.sleep", lambda seconds: None)
    store = MemoryStore()
    vectors.write_points(store, _places(np.arange(MANY)), chunk_shape=20)
    vectors.build_pyramid(store, factors=[(2, 1)])
    added: list[int] = []

    class Busy(CountingStore):
        def list_dir(self, *args: Any) -> Any:
            found = super().list_dir(*args)
            added.append(len(added))
            vectors.append_points(store, _places(np.array([added[-1] % MANY])) + 100 * len(added))
            return found

    facts = vectors.describe_store(Busy(store))
    assert [each["level"] for each in facts["levels"]] == [0, 1]
    assert MANY < facts["levels"][0]["vertex_count"] <= MANY + len(added)

    class Remade(CountingStore):
        def list_dir(self, *args: Any) -> Any:
            found = super().list_dir(*args)
            added.append(len(added))
            vectors.append_points(store, _places(np.array([added[-1] % MANY])))
            vectors.build_pyramid(store, factors=[(2, 1)], anew=True)
            return found

    with pytest.raises(StoreError, match="change again and again"):
        vectors.describe_store(Remade(store))


def test_a_level_without_a_document_that_nobody_makes_is_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, waits = MemoryStore(), list[float]()
    vectors.write_points(store, _places(np.arange(MANY)), chunk_shape=20)
    store.set("1/vertices/c/0/0/0", b"")
    monkeypatch.setattr("zardine.stores.attempts.time.sleep", waits.append)
    with pytest.raises(MetadataError, match="no level 1"):
        vectors.describe_store(store)
    assert len(waits) == 3


def test_a_table_that_others_store_anew_is_opened_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = 0

    class Stored:
        fill_value = 0

        def __init__(self) -> None:
            nonlocal stored
            self.metadata = stored
            stored += stored == 0  # the first time somebody stores it anew before it is read

        def __getitem__(self, key: object) -> list[int]:
            return [self.metadata if self.metadata == stored else self.fill_value]

    def wait(seconds: float) -> None:
        nonlocal stored
        stored += 1

    monkeypatch.setattr("zardine.stores.attempts.time.sleep", wait)
    found = read_table(Stored)  # type: ignore[arg-type]
    assert found is not None
    assert found[1].tolist() == [2]
