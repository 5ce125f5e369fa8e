"""What ``zardine.verify`` says in the words of the data: how much is stored, and the coordinates of what is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import CountingStore, LocalStore


def make(root: Path, **of_time: Any) -> None:
    """Store days and latitudes, ``plain`` in 6 × 3 chunks, and 5 of the 2 × 3 shards of ``sharded``."""
    group = zardine.create_group(str(root))
    about = {"units": "days since 2004-01-01", **of_time.pop("attributes", {})}
    settings = {"data": np.arange(366), "dimension_names": ["time"], **of_time}
    group.create_array("time", attributes=about, **settings)
    group.create_array("lat", data=np.arange(0, 105, 5, "f4"), dimension_names=["lat"])
    names = ["time", "lat", "x"]
    shape, chunks = (366, 21, 4), (61, 7, 4)
    group.create_array("plain", shape=shape, chunks=chunks, dtype="f4", dimension_names=names)[...] = 1
    sharded = group.create_array(
        "sharded", shape=shape, chunks=chunks, shards=(183, 7, 4), dtype="f4", dimension_names=names
    )
    sharded[:, :14] = 1
    sharded[:100, 14:] = 1


def coordinates(root: Path) -> list[str]:
    return [fault.coordinates for fault in zardine.verify(str(root)).faults]


@pytest.mark.parametrize(
    ("calendar", "first", "last"),
    [
        ("standard", "2004-03-02", "2004-05-01"),
        ("noleap", "2004-03-03", "2004-05-02"),
        ("360_day", "2004-03-02", "2004-05-02"),
    ],
)
def test_damage_is_named_by_coordinates(tmp_path: Path, calendar: str, first: str, last: str) -> None:
    make(tmp_path / "g", attributes={"calendar": calendar})
    (tmp_path / "g/plain/c/1/1/0").write_bytes(b"short")
    (tmp_path / "g/sharded/c/1/1/0").write_bytes(b"short")
    report = zardine.verify(str(tmp_path / "g"))
    chunk, shard = report.faults
    assert chunk.coordinates == f"time {first} to {last}, lat 35 to 65"
    assert f"chunk (1, 1, 0), time {first} to {last}, lat 35 to 65: " in str(chunk)
    assert shard.chunk is None
    assert shard.coordinates.startswith("time 2004-07-0")
    assert shard.coordinates.endswith(", lat 35 to 65")
    assert json.loads(json.dumps(report.to_dict()))["faults"][0]["coordinates"] == chunk.coordinates


def test_how_much_is_stored(run: Any, tmp_path: Path) -> None:
    make(tmp_path / "g")
    report = zardine.verify(str(tmp_path / "g"))
    assert report.stored == {"shards": (5, 6), "chunks": (20, 20)}
    assert report.summary.startswith("no faults: 5 nodes, 5 of 6 shards and 20 of 20 chunks stored, 34 chunks, ")
    assert run("verify", tmp_path / "g").stdout.strip() == report.summary == str(report)
    only = str(zardine.verify(str(tmp_path / "g"), path="sharded", deep=False))
    assert only.startswith("no faults: 1 node, 5 of 6 shards stored, 14 inner chunks, ")
    assert str(zardine.verify(str(tmp_path / "g"), path="plain")).startswith(
        "no faults: 1 node, 18 of 18 chunks stored, "
    )
    records = str(tmp_path / "records")
    assert zardine.verify(str(tmp_path / "g"), records=records).stored == report.stored
    zardine.create_group(str(tmp_path / "empty"))
    assert str(zardine.verify(str(tmp_path / "empty"))) == "no faults: 1 node, 0 bytes"


def test_times_of_numpy_and_text_are_named(tmp_path: Path) -> None:
    days = np.datetime64("2004-01-01", "ns") + np.arange(366) * np.timedelta64(6, "h")
    make(tmp_path / "g", data=days)
    (tmp_path / "g/plain/c/0/0/0").write_bytes(b"short")
    assert coordinates(tmp_path / "g") == ["time 2004-01-01 to 2004-01-16, lat 0 to 30"]


@pytest.mark.parametrize("damage", ["chunk", "document", "gone", "folder"])
def test_damaged_coordinates_name_nothing(tmp_path: Path, damage: str) -> None:
    make(tmp_path / "g")
    (tmp_path / "g/plain/c/1/1/0").write_bytes(b"short")
    if damage == "chunk":
        (tmp_path / "g/time/c/0").write_bytes(b"short")
    elif damage == "document":
        (tmp_path / "g/time/zarr.json").write_text("{")
    else:
        (tmp_path / "g/time/zarr.json").unlink()
        if damage == "folder":
            (tmp_path / "g/time/zarr.json").mkdir()
    faults = [each for each in zardine.verify(str(tmp_path / "g")).faults if each.place == "/plain"]
    assert [each.coordinates for each in faults] == ["lat 35 to 65"]


@pytest.mark.parametrize(
    ("of_time", "why"),
    [
        ({"data": np.arange(365)}, "another length"),
        ({"data": np.full(366, np.nan)}, "missing values"),
        ({"attributes": {"scale_factor": 2.0}}, "packed"),
        ({"data": np.arange(366).reshape(366, 1), "dimension_names": ["time", "y"]}, "two dimensions"),
        ({"data": np.arange(366) + 1j}, "no order"),
    ],
)
def test_other_arrays_name_nothing(tmp_path: Path, of_time: dict[str, Any], why: str) -> None:
    make(tmp_path / "g", **of_time)
    (tmp_path / "g/plain/c/1/1/0").write_bytes(b"short")
    assert coordinates(tmp_path / "g") == ["lat 35 to 65"], why


def test_coordinates_are_read_for_faults_only_and_once(tmp_path: Path) -> None:
    make(tmp_path / "g")

    def asked() -> int:
        store = CountingStore(LocalStore(str(tmp_path / "g"), read_only=True))
        zardine.verify(store)
        return store.counts.requests

    asked()  # what is remembered afterwards is remembered below, too
    before = asked()
    (tmp_path / "g/plain/c/1/1/0").write_bytes(b"short")
    one = asked()
    assert before < one <= before + 30
    for i in range(6):
        for j in range(3):
            (tmp_path / f"g/plain/c/{i}/{j}/0").write_bytes(b"short")
    assert asked() <= one + 17 * 6


def test_long_coordinates_are_not_read(tmp_path: Path) -> None:
    group = zardine.create_group(str(tmp_path / "g"))
    size = 2 * 10**6
    group.create_array("t", shape=size, chunks=size, dtype="i1", dimension_names=["t"])[...] = 1
    group.create_array("a", shape=size, chunks=size, dtype="i1", dimension_names=["t"])[...] = 1
    (tmp_path / "g/a/c/0").write_bytes(b"short")
    assert coordinates(tmp_path / "g") == [""]
