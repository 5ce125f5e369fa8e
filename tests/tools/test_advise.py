"""``zardine.advise``: the numbers are those that counting gives, and the proposal is no worse than other layouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.stores.base import ReadCost
from zardine.tools.advice_costs import Access, Layout, cost_of
from zardine.tools.advise import COSTS

SHAPE = (60, 64, 96)


class Priced(zardine.storage.MemoryStore):
    price = ReadCost()

    @property
    def cost(self) -> ReadCost:
        return self.price


def counted(layout: Layout, box: tuple[int, ...], cost: ReadCost, times: int = 60) -> tuple[float, float, float]:
    """Average objects, requests and bytes of reads at random places, nothing cached."""
    inner = Priced()
    inner.price = cost
    values = np.random.default_rng(1).integers(1, 255, layout.shape, "u1")
    zardine.create_array(
        inner,
        shape=layout.shape,
        dtype="u1",
        chunks=layout.chunks,
        shards=layout.shards,
        compressors=None,
        checksum=False,
    )[...] = values
    rng = np.random.default_rng(2)
    sums = np.zeros(3)
    for _ in range(times):
        store = zardine.storage.CountingStore(inner)
        array = zardine.open_array(store, mode="r")
        store.reset()
        starts = [int(rng.integers(0, n - w + 1)) for n, w in zip(layout.shape, box, strict=True)]
        region = tuple(slice(start, start + w) for start, w in zip(starts, box, strict=True))
        np.testing.assert_array_equal(array[region], values[region])
        requests = store.counts.ranges
        sums += len(store.counts.keys), requests, store.counts.bytes_read
    return tuple((sums / times).tolist())


@pytest.mark.parametrize("box", [(1, 1, 1), (1, 64, 96), (60, 1, 1), (60, 64, 1), (20, 20, 20), SHAPE], ids=str)
@pytest.mark.parametrize(
    "layout",
    [((4, 8, 8), (20, 32, 48)), ((1, 32, 96), (60, 64, 96)), ((10, 4, 4), (10, 64, 96)), ((4, 8, 8), None)],
    ids=str,
)
@pytest.mark.parametrize("gap", [0, 2000])
def test_numbers_are_what_counting_gives(box: Any, layout: Any, gap: int) -> None:
    cost = ReadCost(latency=gap / 1e6, bandwidth=1e6, requests=4)
    tried = Layout(SHAPE, 1, layout[0], layout[1], 1.0)
    found = cost_of(tried, Access("box", box), cost)
    objects, requests, nbytes = counted(tried, box, cost, 3 if box == SHAPE else 30)
    assert found.objects == pytest.approx(objects, rel=0.25, abs=0.3)
    assert found.requests == pytest.approx(requests, rel=0.45, abs=1)
    assert found.nbytes == pytest.approx(nbytes, rel=0.45, abs=3000)


def test_costs_are_those_of_the_stores(tmp_path: Path) -> None:
    assert COSTS["local"] == zardine.storage.LocalStore(tmp_path).cost
    assert COSTS["s3"].latency >= 0.01


@pytest.mark.parametrize("store", ["local", "s3"])
@pytest.mark.parametrize(
    "access",
    [None, "plane:0", "line:2", "point", "all", {"plane:0": 3, "line:0": 1}, ["box:16,16,16", "plane:2"]],
    ids=str,
)
def test_the_proposal_is_better_than_others(access: Any, store: str) -> None:
    advice = zardine.advise((365, 720, 1440), "f4", access=access, store=store)
    best, *others = advice.choices
    array = zardine.create_array({}, shape=advice.shape, dtype="f4", chunks=advice.chunks, shards=advice.shards)
    assert array.chunks == advice.chunks
    assert 2**12 <= best.chunk_nbytes <= 2**26
    for other in others:
        assert best.relative <= other.relative * 1.05 or other.shards is None
    if best.shards is not None:
        assert best.object_nbytes <= 2**27
    assert len(advice.reasons) == 3
    assert json.dumps(advice.to_dict(), default=list)


def test_shapes_follow_the_reads() -> None:
    planes = zardine.advise((512, 512, 512), "u2", access="plane:0").chunks
    assert planes[0] == 1
    lines = zardine.advise((512, 512, 512), "u2", access="line:0").chunks
    assert lines[0] == 512
    cube = zardine.advise((512, 512, 512), "u2", access=[f"plane:{axis}" for axis in range(3)]).chunks
    assert max(cube) <= 4 * min(cube)


def test_a_stored_array_is_compared(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zarr")
    zardine.create_array(path, shape=(100, 1000), dtype="f8", chunks=(100, 10), shards=(100, 1000))[...] = 1
    advice = zardine.advise(path, access="plane:0")
    assert advice.choices[-1].name == "as it is now"
    assert advice.choices[-1].chunks == (100, 10)
    assert advice.choices[0].reads[0].nbytes < 8000  # it compresses well
    assert zardine.advise(zardine.open_array(path), access="plane:0") == advice
    store = zardine.storage.MemoryStore()
    assert zardine.advise((10, 10), "u1", store=store).store == str(store)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (((10, 10),), TypeError),
        (((), "u1"), ValueError),
        (((0, 3), "u1"), ValueError),
        (((10, 10), "u1", {"access": "plane:2"}), ValueError),
        (((10, 10), "u1", {"access": "box:3"}), ValueError),
        (((10, 10), "u1", {"access": []}), ValueError),
        (((10, 10), "u1", {"access": {"point": 0}}), ValueError),
        (((10, 10), "u1", {"store": "tape"}), ValueError),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception]) -> None:
    *positional, last = arguments
    more = last if isinstance(last, dict) else {}
    with pytest.raises(error):
        zardine.advise(*(positional if more else arguments), **more)


def test_command(run: Any, tmp_path: Path) -> None:
    result = run("advise", "365,720,1440", "float32", "--access", "plane:0=2", "--access", "point", "--store", "s3")
    assert result.exit_code == 0
    assert result.stdout.startswith("proposed: chunks (")
    facts = json.loads(run("advise", "100,100", "u1", "--json").stdout)
    assert facts["choices"][0]["reads"][0]["access"] == "point"
    assert run("advise", "100,100").exit_code == 2
    assert run("advise", "100,100", "u1", "--access", "x").exit_code == 2
    zardine.create_array(str(tmp_path / "a.zarr"), shape=(100, 100), dtype="u1")
    assert "as it is now" in run("advise", tmp_path / "a.zarr").stdout


@pytest.mark.parametrize("shape", [7, (3, 3)])
def test_elements_that_are_larger_than_a_chunk_is_wanted(shape: Any) -> None:
    advice = zardine.advise(shape, "S100000000")
    assert set(advice.chunks) == {1}
    assert advice.shards is None
    assert "No shards: one chunk is as large as a shard may be." in advice.reasons


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("10,10", "f4", "--access", "plane:7"), "the array has 2 axes, called 0 to 1"),
        (("10", "f4", "--access", "line:1"), "the array has 1 axis, called 0"),
        (("10,10", "f4", "--access", "box:3"), "the box needs 2 lengths, one for each axis, not 1"),
        (("10;10", "f4"), "'10;10' is neither a shape, such as 10,10, nor a stored array"),
        (("5.5", "f4"), "'5.5' is neither a shape, such as 10,10, nor a stored array"),
    ],
)
def test_command_says_what_is_wrong(run: Any, arguments: Any, text: str) -> None:
    result = run("advise", *arguments)
    assert result.exit_code == 2
    assert text in result.stderr
