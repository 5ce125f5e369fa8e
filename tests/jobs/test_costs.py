"""What plans forecast is what the logs of servers, and the file system, count: objects and requests exactly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from servers.servers import new_bucket, nginx, s3, s3_options
from zardine.jobs import Plan

VALUES = np.random.default_rng(0).integers(0, 100, (24, 40, 36)).astype("int32")
LAYOUTS: dict[str, dict[str, Any]] = {
    "flat": {"chunks": (1, 40, 36)},
    "shards": {"chunks": (1, 40, 12), "shards": (4, 40, 36)},
}


def make(store: Any, layout: str, options: Any = None) -> None:
    array = zardine.create_array(store, shape=VALUES.shape, dtype="int32", storage_options=options, **LAYOUTS[layout])
    array[...] = VALUES


def planned(what: str, source: Any, target: Any, options: Any = None, target_options: Any = None) -> Plan:
    plans: dict[str, Callable[[], Plan]] = {
        "verify": lambda: zardine.plan_verify(source, storage_options=options),
        "convert": lambda: zardine.plan_convert(
            source, target, shards=(8, 40, 36), storage_options=options, target_options=target_options
        ),
        "reshard": lambda: zardine.plan_reshard(source, shards=(8, 40, 36), target=target, storage_options=options),
        "rechunk": lambda: zardine.plan_rechunk(
            source,
            target,
            chunks=(4, 40, 12),
            max_memory="512 KiB",
            storage_options=options,
            target_options=target_options,
        ),
    }
    return plans[what]()


def check(plan: Plan, chunks: list[tuple[str, str, int]], target: Any, options: Any = None) -> None:
    """``chunks``: method, key and bytes of all requests for chunks."""
    assert plan.requests == len(chunks)
    read = sum(nbytes for method, _, nbytes in chunks if method == "GET")
    assert abs(plan.bytes_read - read) <= 0.1 * read
    assert plan.objects == len({key for method, key, _ in chunks if method == "PUT"})
    assert plan.cost({"requests": 1.0}) == plan.requests
    if plan.work.kind != "verify":
        found = zardine.open_array(target, storage_options=options)
        assert np.array_equal(found[...], VALUES)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", ["verify", "convert", "rechunk", "reshard"])
def test_on_s3(what: str, layout: str) -> None:
    url, options = f"s3://{new_bucket()}", s3_options()
    make(f"{url}/a", layout, options)
    target: Any = f"{url}/b" if what != "reshard" else None
    plan = planned(what, f"{url}/a", target, options, options if target else None)
    forecast = plan.requests
    s3().log()
    assert plan.run()
    lines = [line.split() for line in s3().log()]
    chunks = [(words[0], words[1], int(words[4])) for words in lines if _is_chunk(words[1])]
    assert forecast == plan.requests
    check(plan, chunks, target or f"{url}/a", options)


def test_chunks_of_differing_lengths() -> None:
    url, options = f"s3://{new_bucket()}", s3_options()
    chunks = ((1, 2, 5, 1, 3, 6, 6), (40,), (13, 3, 20))
    array = zardine.create_array(
        f"{url}/a", shape=VALUES.shape, dtype="int32", chunks=chunks, compressors=None, storage_options=options
    )
    array[...] = VALUES
    both: dict[str, Any] = {"storage_options": options, "target_options": options}
    plan = zardine.plan_rechunk(
        f"{url}/a", f"{url}/b", chunks=((24,), (7, 3, 30), (4,) * 9), max_memory="75 KiB", **both
    )
    assert [stage.name for stage in plan.work.stages] == ["read", "write"]
    s3().log()
    assert plan.run()
    lines = [line.split() for line in s3().log()]
    seen = [(words[0], words[1], int(words[4])) for words in lines if _is_chunk(words[1])]
    erased = [("POST", "", 0)]  # all pieces between by one request, whose log does not name them
    check(plan, seen + erased, f"{url}/b", options)


def _is_chunk(path: str) -> bool:
    parts = path.partition("?")[0].split("/")
    return parts[-1].isdigit() and parts[-2].isdigit()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", ["verify", "convert", "rechunk", "reshard"])
def test_over_http(what: str, layout: str, tmp_path: Path) -> None:
    web = nginx()
    shutil.rmtree(web.root / "costs", ignore_errors=True)
    make(web.root / "costs", layout)
    plan = planned(what, f"{web.url}/costs", tmp_path / "b.zarr")
    forecast = plan.requests
    web.log()
    assert plan.run()
    lines = [line.split() for line in web.log()]
    chunks = [(words[0], words[1], int(words[-1])) for words in lines if _is_chunk(words[1])]
    made = [("PUT", str(path), 0) for path in (tmp_path / "b.zarr").rglob("c/*/*/*")]
    check(plan, chunks + made, tmp_path / "b.zarr")
    assert forecast == plan.requests


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", ["verify", "convert", "rechunk", "reshard"])
def test_of_local_files(what: str, layout: str, tmp_path: Path) -> None:
    """What is made are the objects that are forecast, of about as many bytes."""
    make(tmp_path / "a.zarr", layout)
    size = sum(path.stat().st_size for path in (tmp_path / "a.zarr").rglob("c/*/*/*"))
    plan = planned(what, tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert plan.run()
    made = list((tmp_path / "b.zarr").rglob("c/*/*/*"))
    assert plan.objects == len(made)
    assert abs(plan.bytes_read - size) <= 0.1 * size
    assert abs(plan.bytes_written - sum(path.stat().st_size for path in made)) <= 0.25 * size
