"""Changes far away: how many requests go one after the other, and how many there are, on a server of S3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from servers import servers
from servers.fault_proxy import FaultProxy
from zardine import vectors
from zardine.stores.object.urls import object_store_of_url
from zardine.vectors.storing import applying, claims, logs

LATENCY = 0.2
"""Seconds that each request waits: more than the machine needs between the first and the last one of a round."""
PLACE: dict[str, Any] = {"chunk_shape": 10, "shard_shape": 4, "bounds": ((0, 0, 0), (99, 99, 99))}


@pytest.fixture(autouse=True)
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (claims, applying):
        monkeypatch.setattr(module, "LEASE", 600.0)  # however slow this machine is


class FarBucket:
    """A store in a bucket of its own, and what is asked of it."""

    def __init__(self) -> None:
        self.proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
        self._bucket = servers.new_bucket()

    def place(self) -> Any:
        """The store, as for one who knows nothing of it."""
        return object_store_of_url("s3", f"{self._bucket}/a.zv", servers.s3_options(self.proxy.url))

    def make(self, change: Callable[[Any], object], *, rounds: int, requests: int, latency: float = LATENCY) -> None:
        """Make a change, in so many rounds and requests at most."""
        place = self.place()
        self.proxy.reset()
        self.proxy.latency = latency
        try:
            change(place)
        finally:
            self.proxy.latency = 0.0
        cost = self.proxy.rounds(), len(self.proxy.requests)
        assert cost[0] <= rounds
        assert cost[1] <= requests


@pytest.fixture
def bucket() -> Iterator[FarBucket]:
    made = FarBucket()
    yield made
    made.proxy.close()


def lines_along(count: int, first: int = 0) -> list[np.ndarray[Any, Any]]:
    """Lines of six vertices, each through two or three cells of 10 along the first axis."""
    number = np.arange(first, first + count)
    starts = np.stack([number * 7.0 % 70, number * 3.0 % 20, number % 9], axis=1)
    return [start + np.arange(6)[:, None] * np.array([4.0, 0, 0]) for start in starts]


def values_of(lines: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    return {"fa": [each[:, 0] for each in lines]}


def write_lines(place: Any) -> None:
    lines = lines_along(30)
    vectors.write_polylines(place, lines, vertex_attributes=values_of(lines), **PLACE)


def append_lines(place: Any) -> None:
    lines = lines_along(3, 30)
    vectors.append_polylines(place, lines, vertex_attributes=values_of(lines))


def write_points(place: Any) -> None:
    points = np.concatenate(lines_along(30))
    vectors.write_points(place, points, vertex_attributes={"a": points[:, 0]}, **PLACE)


def test_lines(bucket: FarBucket) -> None:
    bucket.make(write_lines, rounds=6, requests=27)
    names = [request.partition("a.zv/")[2] for request in bucket.proxy.requests if request.startswith("PUT")]
    assert names[0] == names[-1] == "zarr.json"  # marked as unfinished first; what it leads to comes in between
    bucket.make(append_lines, rounds=8, requests=34)
    found = vectors.read_polylines(bucket.place())
    assert [line.tolist() for line in found.lines] == [line.tolist() for line in lines_along(33)]
    assert found.attributes["fa"].tolist() == found.positions[:, 0].tolist()
    assert vectors.validate(bucket.place()).findings == ()


def test_a_log_that_is_an_object_of_its_own(bucket: FarBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.make(write_lines, rounds=6, requests=27)
    monkeypatch.setattr(logs, "_MOST_BESIDE", 0)
    bucket.make(append_lines, rounds=10, requests=36)
    assert len(vectors.read_polylines(bucket.place())) == 33
    assert not [key for key in bucket.place().list() if "zardine_log" in key]


def test_points(bucket: FarBucket) -> None:
    bucket.make(write_points, rounds=6, requests=17)
    more = np.array([[5.0, 5, 5], [15, 5, 5]])
    values = {"a": [1.0, 2]}
    bucket.make(lambda place: vectors.append_points(place, more, vertex_attributes=values), rounds=6, requests=20)
    inside = ((0, 0, 0), (9, 9, 9))
    bucket.make(lambda place: vectors.delete(place, bbox=inside), rounds=8, requests=27)
    points = np.concatenate([*lines_along(30), more])
    kept = points[(points > 9).any(axis=1)]
    assert sorted(vectors.read_points(bucket.place()).positions.tolist()) == sorted(kept.tolist())
    assert vectors.validate(bucket.place()).findings == ()


def test_objects_that_are_there(bucket: FarBucket) -> None:
    bucket.make(write_lines, rounds=6, requests=27)
    other = np.arange(6.0)
    bucket.make(lambda place: vectors.set_attribute(place, "fa", other, object_ids=[4]), rounds=11, requests=32)
    assert vectors.read_polylines(bucket.place(), object_ids=[4]).attributes["fa"].tolist() == other.tolist()
    bucket.make(lambda place: vectors.delete(place, object_ids=[4]), rounds=9, requests=41)
    assert vectors.read_polylines(bucket.place()).object_ids.tolist() == [0, 1, 2, 3, *range(5, 30)]
    assert vectors.validate(bucket.place()).findings == ()


def test_a_level_of_points(bucket: FarBucket) -> None:
    bucket.make(write_points, rounds=6, requests=17)
    bucket.make(lambda place: vectors.build_pyramid(place, factors=[(2.0, 1.0)]), rounds=18, requests=60, latency=0.1)
    assert vectors.validate(bucket.place()).findings == ()


def test_levels_of_lines(bucket: FarBucket) -> None:
    bucket.make(write_lines, rounds=6, requests=27)
    bucket.make(lambda place: vectors.build_pyramid(place, factors=[(2.0, 1.0)] * 2), rounds=28, requests=100)
    assert vectors.validate(bucket.place()).findings == ()
    anew: dict[str, Any] = {"factors": [(2.0, 1.0)] * 2, "anew": True}
    bucket.make(lambda place: vectors.build_pyramid(place, **anew), rounds=48, requests=155, latency=0.1)
    bucket.make(vectors.build_pyramid, rounds=6, requests=48, latency=0.1)  # nothing has changed
    bucket.make(validate, rounds=38, requests=380)


def validate(place: Any) -> None:
    assert vectors.validate(place).findings == ()
