"""Readers while another process converts a store; requests that readers make; stores behind a web server."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.stores_of_all_kinds import WRITERS, read_all, store_of
from zardine import vectors
from zardine.storage import CountingStore, LocalStore


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
        ends = time.monotonic() + 4
        while time.monotonic() < ends:
            assert read_all(path, kind) == whole
    finally:
        stop.set()
        other.join(60)


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
        WRITERS[kind](str(tmp_path / kind), chunk_shape=20)
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
