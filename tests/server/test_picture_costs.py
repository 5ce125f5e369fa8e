"""What a picture costs: requests, memory and time do not grow with the chunks of an array."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from engine.far_store import Far
from server.test_viewer import Asker, asker
from zardine.errors import StoreError
from zardine.server.viewer.canvas import GUESSED, MISSING, VALUE
from zardine.storage import CountingStore, MemoryStore, WrapperStore

__all__ = ["asker"]

LARGE: dict[str, Any] = {"shape": (100_000, 100_000), "chunks": (100, 100), "shards": (4000, 4000), "dtype": "u1"}
"""10^10 elements in 10^6 chunks, in 625 shards."""
ALL = {"axes": "0,1", "at": "0,0", "box": "0,100000,0,100000", "step": "128,128"}


class Slow(Far):
    """A store where each request takes 50 ms."""

    def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
        time.sleep(0.05)
        return super().read(key, ranges)

    def exists(self, key: str) -> bool:
        time.sleep(0.05)
        return super().exists(key)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        time.sleep(0.05)
        return super().list_prefix(prefix)

    @property
    def files(self) -> None:
        return None


class Unlisted(Far):
    """One that may be read and not listed."""

    def list_prefix(self, prefix: str) -> Iterator[str]:
        raise StoreError("403 Forbidden")


def counted(store: Any, wrapper: type[WrapperStore] | None) -> CountingStore:
    return CountingStore(store if wrapper is None else wrapper(store))


def most_of_one_object(store: CountingStore) -> int:
    return max(
        (count for key, count in store.counts.keys.items() if not key.endswith(("zarr.json", "zarray"))), default=0
    )


@pytest.mark.parametrize("reduction", ["nearest", "max"])
@pytest.mark.parametrize("wrapper", [None, Far, Slow, Unlisted])
def test_an_array_that_was_never_written(asker: Any, wrapper: type[WrapperStore] | None, reduction: str) -> None:
    """There is one request for each shard, or a listing and a few requests; the document is asked for now and then."""
    inner = MemoryStore()
    zardine.create_array(inner, **LARGE)
    store = counted(inner, wrapper)
    ask: Asker = asker(store)
    number = ask.json("node")["snapshot"]
    store.reset()
    start = time.monotonic()
    facts, _, states = ask.picture(**ALL, reduce=reduction, snapshot=number)
    seconds = time.monotonic() - start
    assert (states == MISSING).all()
    assert facts["chunks"] == facts["missing"] == facts["total"] > 500_000
    assert most_of_one_object(store) == 1
    documents = store.counts.keys["zarr.json"]
    assert documents <= 2 + seconds / 2
    assert store.counts.operations - documents <= (20 if wrapper in (Far, Slow) else 626)
    before = store.counts.operations
    objects = ask.json("objects", **ALL, snapshot=number)
    assert (objects["stored"], objects["total"], len(objects["missing"])) == (0, 625, 625)
    ask.picture(**{**ALL, "box": "10000,60000,3000,90000", "step": "64,64"}, reduce=reduction, snapshot=number)
    assert store.counts.operations - before <= (256 if wrapper is Unlisted else 1) + 2


def test_the_first_picture_of_a_store_that_is_far_away(asker: Any) -> None:
    """It is there within a second also where each request takes 50 ms; each shard is asked a few times in all."""
    inner = MemoryStore()
    array = zardine.create_array(inner, **LARGE)
    array[:8000, :8000] = 3
    store = counted(inner, Slow)
    ask: Asker = asker(store)
    number = ask.json("node")["snapshot"]
    store.reset()
    start = time.monotonic()
    status, _ = ask.ask("picture", **ALL, seconds=0.2, snapshot=number)
    assert status == 200
    assert time.monotonic() - start < 1.5
    facts, pixels, states = ask.picture(**ALL, snapshot=number)
    assert facts["chunks"] == facts["total"]
    assert (pixels[:62, :62] == 3).all()
    assert (states[63:] == MISSING).all()
    assert store.counts.operations < 150
    assert most_of_one_object(store) < 60  # of a stored shard its parts, in several rounds; of others one


@pytest.mark.parametrize("reduction", ["nearest", "mean", "max"])
@pytest.mark.parametrize(
    ("shards", "wrapper"),
    [
        *((None, wrapper) for wrapper in (None, Far)),
        *(((40, 60), wrapper) for wrapper in (None, Far, Unlisted)),
        ((300, 200), Far),
    ],
)
def test_samples_become_the_whole_picture(
    asker: Any, shards: tuple[int, int] | None, wrapper: type[WrapperStore] | None, reduction: str
) -> None:
    """Some shards are stored, some inner chunks of these are; each chunk counts once, wherever the box begins."""
    rng = np.random.default_rng(3)
    store = MemoryStore()
    array = zardine.create_array(
        store, shape=(2, 290, 301), chunks=(1, 4, 4), shards=None if shards is None else (2, *shards), dtype="i4"
    )
    values = rng.integers(1, 1000, (290, 301), dtype="i4")
    there = np.kron(
        np.kron(rng.random((8, 6)) < 0.3, np.ones((10, 15), bool)) & (rng.random((80, 90)) < 0.8), np.ones((4, 4), bool)
    )
    there = there[:290, :301]
    values[~there] = 0
    array[1] = values
    ask: Asker = asker(counted(store, wrapper))
    top, left = 13, 22
    facts, pixels, states = ask.picture(
        axes="2,1", at="1,0,0", box=f"{left},301,{top},290", step="1,1", reduce=reduction
    )
    np.testing.assert_array_equal(pixels, values.T[left:, top:])
    np.testing.assert_array_equal(states, np.where(there.T[left:, top:], VALUE, MISSING))
    chunks = there[top - top % 4 :: 4, left - left % 4 :: 4]
    assert (facts["chunks"], facts["total"], facts["missing"]) == (chunks.size, chunks.size, (~chunks).sum())


def test_a_request_that_fails_is_made_again_and_no_chunk_counts_twice(asker: Any) -> None:
    class Failing(Far):
        """One whose fifth, tenth, ... request of a chunk fails."""

        asked = 0

        def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
            self.asked += key.startswith("c/")
            if key.startswith("c/") and self.asked % 5 == 0:
                raise StoreError("503 Slow Down")
            return super().read(key, ranges)

    values = np.random.default_rng(4).normal(size=(16, 48))
    inner = MemoryStore()
    zardine.create_array(inner, data=values, chunks=(4, 4), shards=(8, 8))
    ask: Asker = asker(counted(inner, Failing))
    number = ask.json("node")["snapshot"]
    view = {"axes": "0,1", "at": "0,0", "box": "0,16,0,48", "step": "8,16", "reduce": "mean", "snapshot": number}
    statuses = [ask.ask("picture", **view)[0] for _ in range(30)]
    assert statuses[0] == 500
    assert statuses[-1] == 200
    facts, pixels, _ = ask.picture(**view)
    assert facts["chunks"] == facts["total"] == 48
    np.testing.assert_allclose(pixels, values.reshape(2, 8, 3, 16).mean((1, 3)))


def test_a_picture_of_many_objects_far_away_is_a_sample(asker: Any) -> None:
    """Where each chunk is a request there are so many of them and no more, from all over the picture."""
    inner = MemoryStore()
    zardine.create_array(inner, data=np.arange(1, 10_001).reshape(100, 100), chunks=(1, 1))
    store = counted(inner, Far)
    ask: Asker = asker(store)
    number = ask.json("node")["snapshot"]
    store.reset()
    facts, _, states = ask.picture(axes="0,1", at="0,0", box="0,100,0,100", step="1,1", snapshot=number)
    assert facts["finished"]
    assert 4000 < facts["chunks"] == store.counts.operations - store.counts.keys["zarr.json"] < 8200 < facts["total"]
    assert ((states == VALUE).sum(), (states == VALUE | GUESSED).sum()) == (facts["chunks"], 10_000 - facts["chunks"])


def test_what_was_not_stored_is_not_mixed_with_what_is(asker: Any) -> None:
    """What a listing said holds until the page asks for what is there now, and the page is told."""
    inner = MemoryStore()
    array = zardine.create_array(inner, **{**LARGE, "shape": (40_000, 40_000)})
    ask: Asker = asker(counted(inner, Far))
    box = {**ALL, "box": "0,40000,0,40000"}
    number = ask.json("node")["snapshot"]
    assert (ask.picture(**box, snapshot=number)[2] == MISSING).all()
    for i in range(100):
        array[i // 10 * 4000, i % 10 * 4000] = 1
    assert (ask.picture(**{**box, "step": "256,256"}, snapshot=number)[2] == MISSING).all()
    assert ask.json("value", at="0,0", snapshot=number)["state"] == "missing"
    assert ask.ask("changes", snapshot=number)[0] == 409
    number = ask.json("node")["snapshot"]
    assert ask.json("value", at="0,0", snapshot=number) == {"state": "value", "text": "1", "labels": [None, None]}


def test_coordinates_in_many_objects_are_not_read_as_a_whole(asker: Any) -> None:
    inner = MemoryStore()
    root = zardine.create_group(inner)
    root.create_array("v", shape=(2000, 4), chunks=(1000, 4), dtype="f4", dimension_names=("time", "x"))
    root.create_array("time", data=np.arange(2000), chunks=(1,), attributes={"units": "days since 2000-1-1"})
    store = counted(inner, Far)
    ask: Asker = asker(store)
    ask.json("node", "v")
    assert store.counts.operations < 30
    assert ask.json("value", "v", at="366,0")["labels"][0] == "2001-01-01"


def test_a_table_of_many_objects(asker: Any) -> None:
    inner = MemoryStore()
    zardine.create_array(inner, data=np.arange(600).reshape(50, 12), chunks=(1, 1))
    start = time.monotonic()
    cells = asker(counted(inner, Slow)).json("table", at="0,0", axes="0,1", count="50,12")["cells"]
    assert cells == [[str(12 * i + j) for j in range(12)] for i in range(50)]
    assert time.monotonic() - start < 0.05 * 600 / 3  # several at a time


_PEAK = """
import http.client, json, resource, sys, time
from urllib.parse import urlencode
import zardine
from zardine.storage import MemoryStore
from server.test_viewer import Asker

made, views = json.loads(sys.argv[1])
with zardine.view({"data": zardine.create_array(MemoryStore(), **made)}) as shown:
    ask = Asker(shown.server)
    number = ask.json("node")["snapshot"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    for view in views:
        assert ask.ask("picture", snapshot=number, seconds=0.25, **view)[0] == 200
    seconds = time.perf_counter() - start
    assert ask.ask("objects", snapshot=number, **views[0])[0] == 200
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, seconds / len(views))
"""

_LINE = {"axes": "0", "at": "0"}
_PLANE = {"axes": "0,1", "at": "0,0", "box": "0,1000000,0,1000000", "step": "1024,1024"}


@pytest.mark.parametrize(
    ("made", "view"),
    [
        ({"shape": 10**10, "chunks": 1000}, {**_LINE, "box": f"0,{10**10}", "step": "8388608"}),
        ({"shape": 10**11, "chunks": 1000}, {**_LINE, "box": f"0,{10**11}", "step": "100000000"}),
        ({"shape": 10**11, "chunks": 1000, "zarr_format": 2}, {**_LINE, "box": f"0,{10**11}", "step": "67108864"}),
        ({"shape": (10**6, 10**6), "chunks": (100, 100)}, _PLANE),
        ({"shape": (10**6, 10**6), "chunks": (100, 100), "shards": (10**4, 10**4)}, _PLANE),
        (
            {"shape": (500, 10**6, 10**6), "chunks": (10, 1, 10), "zarr_format": 2},
            {**_PLANE, "axes": "1,2", "at": "7,0,0"},
        ),
    ],
)
def test_memory_and_time_do_not_grow_with_chunks(made: dict[str, Any], view: dict[str, str]) -> None:
    """A picture takes 200 MB at most, and answers within a second (here: of a machine that has much else to do)."""
    views = [{**view, "reduce": reduction} for reduction in ("nearest", "mean", "max")]
    code = [sys.executable, "-c", _PEAK, json.dumps([{"dtype": "f4", **made}, views])]
    ran = subprocess.run(code, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    megabytes, seconds = map(float, ran.stdout.split())
    assert megabytes < 200
    assert seconds < 3


def test_memory_where_chunks_are_stored() -> None:
    """The same of a sample of 4096 chunks of a megabyte, all of which are stored."""
    made = {"shape": (32_768, 32_768), "chunks": (512, 512), "fill_value": 1}
    code = (
        _PEAK.replace("MemoryStore()", "store")
        .replace("made, views", "store = MemoryStore()\nmade, views", 1)
        .replace("    before =", "    for key in keys(): store.set(key, store.get('c/0/0'))\n    before =")
    )
    code = code.replace(
        "with zardine.view",
        "def keys():\n"
        "    zardine.open_array(store)[:512, :512] = 2\n"
        "    return [f'c/{i}/{j}' for i in range(64) for j in range(64) if i or j]\n"
        "with zardine.view",
    )
    views = [
        {**_PLANE, "box": "0,32768,0,32768", "step": "32,32", "reduce": reduction} for reduction in ("nearest", "mean")
    ]
    ran = subprocess.run(
        [sys.executable, "-c", code, json.dumps([{"dtype": "f4", **made}, views])],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.split()[0]) < 200
