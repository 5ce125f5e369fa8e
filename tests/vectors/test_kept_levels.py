"""Levels in local folders that are read again by their path: opened once, as long as all is as it was."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import SelectionError
from zardine.storage import LocalStore
from zardine.stores import resolve
from zardine.stores.local import store as local_store
from zardine.vectors.reading import kept_levels, rereading
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.storing.store import VectorStore

P = np.random.default_rng(2).uniform(0, 100, (300, 2)).astype("f4")


def write(path: Path, positions: Any = P, **options: Any) -> None:
    options = {"chunk_shape": 20, "vertex_attributes": {"n": np.arange(len(positions))}} | options
    vectors.write_points(str(path), positions, **options)


def settle(path: Path) -> None:
    """Let all directories be some seconds old: of those that are younger no names are kept."""
    for folder, _, _ in os.walk(path):
        status = os.stat(folder)
        os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns - 5 * 10**9))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each level that was opened to be read."""
    told: list[int] = []
    real = rereading.open_level

    def noted(path: Any, number: int, *expected: Any) -> Any:
        told.append(number)
        return real(path, number, *expected)

    monkeypatch.setattr(rereading, "open_level", noted)
    return told


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    kept_levels._kept.clear()


def read(path: Path, **query: Any) -> list[Any]:
    return np.sort(vectors.read_points(str(path), **query).positions, axis=0).tolist()


@pytest.mark.parametrize("shards", [None, 3])
def test_a_level_that_is_read_again_is_kept(tmp_path: Path, opened: list[int], shards: int | None) -> None:
    write(tmp_path, shard_shape=shards)
    settle(tmp_path)
    found = [read(tmp_path) for _ in range(4)]
    assert found == [np.sort(P, axis=0).tolist()] * 4
    assert opened == [0, 0]
    assert len(vectors.read_points(tmp_path, bbox=((0, 0), (50, 50))).positions) == (P <= 50).all(axis=1).sum()
    assert opened == [0, 0]


def test_of_what_is_new_nothing_is_kept(tmp_path: Path, opened: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "_STEP_OF_TIMES", 10**12)  # however slow the machine is
    write(tmp_path)
    for _ in range(3):
        read(tmp_path)
    assert opened == [0, 0, 0]
    assert len(kept_levels._kept) == 0


def test_nothing_is_kept_by_who_reads_between_changes(tmp_path: Path, opened: list[int]) -> None:
    write(tmp_path)
    for number in range(3):
        vectors.append_points(str(tmp_path), P[:1], vertex_attributes={"n": [1]})
        settle(tmp_path)
        assert len(read(tmp_path)) == 301 + number
        ((kept, _),) = (kept_levels._kept.get(each) for each in kept_levels._kept)
        assert kept.documents.nbytes == 0
    assert opened == [0, 0, 0]


CHANGES: dict[str, Any] = {
    "added to": lambda path: vectors.append_points(str(path), P[:9] + 1, vertex_attributes={"n": np.arange(9)}),
    "some removed": lambda path: vectors.delete(str(path), bbox=((0, 0), (30, 30))),
    "values set": lambda path: vectors.set_attribute(str(path), "n", np.zeros(300, np.int64)),
    "a new attribute": lambda path: vectors.set_attribute(str(path), "m", np.zeros(300), new=True),
    "other shards": lambda path: vectors.reshard(str(path), 2),
    "another store": lambda path: write(path, P[::-1] * 0.5, overwrite=True),
    "another one moved there": lambda path: (shutil.rmtree(path), write(path, P[:50])),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_seen(tmp_path: Path, change: Any, opened: list[int]) -> None:
    path = tmp_path / "a"
    write(path)
    settle(path)
    for _ in range(3):
        vectors.read_points(str(path))
    assert opened == [0, 0]
    change(path)
    settle(path)
    for _ in range(4):
        found, wanted = vectors.read_points(str(path)), vectors.read_points(LocalStore(path))
        assert found.positions.tolist() == wanted.positions.tolist()
        assert sorted(found.attributes) == sorted(wanted.attributes)
        assert all(found.attributes[name].tolist() == wanted.attributes[name].tolist() for name in wanted.attributes)


def test_attributes_of_other_programs_come_and_go(tmp_path: Path) -> None:
    write(tmp_path)
    family = tmp_path / "0/vertex_attributes"
    shutil.copytree(family / "n", tmp_path / "other")
    settle(tmp_path)
    for name in ("m", "k"):
        read(tmp_path)
        read(tmp_path)
        assert sorted(vectors.read_points(str(tmp_path)).attributes) == sorted({"n", name} - {name})
        shutil.copytree(tmp_path / "other", family / name)  # the document of the level stays as it was
        assert sorted(vectors.read_points(str(tmp_path)).attributes) == sorted({"n", name})
        settle(tmp_path)
        assert sorted(vectors.read_points(str(tmp_path)).attributes) == sorted({"n", name})
        shutil.rmtree(family / name)
        assert sorted(vectors.read_points(str(tmp_path)).attributes) == ["n"]
        settle(tmp_path)


def test_a_link_may_lead_elsewhere(tmp_path: Path) -> None:
    for name, positions in (("a", P), ("b", P[:20])):
        write(tmp_path / name, positions)
        settle(tmp_path / name)
    link = tmp_path / "link"
    for name, count in (("a", 300), ("b", 20), ("a", 300)):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        assert [len(vectors.read_points(str(link)).positions) for _ in range(3)] == [count] * 3


def test_what_is_gone_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path)
    settle(path)
    for _ in range(3):
        read(path)
    shutil.rmtree(path)
    with pytest.raises(zardine.errors.NodeNotFoundError):
        read(path)


def test_wrong_questions_are_told_of_as_ever(tmp_path: Path, opened: list[int]) -> None:
    write(tmp_path)
    settle(tmp_path)
    for _ in range(4):
        with pytest.raises(SelectionError, match="no vertex attribute 'x'"):
            vectors.read_points(str(tmp_path), attributes="x")
        assert read(tmp_path) == np.sort(P, axis=0).tolist()
    assert opened == [0] * 5  # one each time that what is kept may be what is wrong


def test_settings_count_from_the_next_call_on(tmp_path: Path) -> None:
    write(tmp_path, shard_shape=3)
    settle(tmp_path)
    wanted = read(tmp_path)
    for settings in ({"array.cache": 10**6}, {"array.read_missing_chunks": False}, {}):
        with zardine.config.set(settings):
            assert [read(tmp_path) for _ in range(3)] == [wanted] * 3


def test_stores_and_other_levels_are_opened_each_time(tmp_path: Path, opened: list[int]) -> None:
    write(tmp_path)
    vectors.build_pyramid(str(tmp_path), factors=[(2, 1)])
    settle(tmp_path)
    opened.clear()
    for _ in range(2):
        vectors.read_points(LocalStore(tmp_path))
        vectors.read_points(str(tmp_path), level=1)
    assert opened == [0, 1, 0, 1]


def test_no_more_is_kept_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_levels._kept, "limit", 10**6)
    for number in range(30):
        path = tmp_path / str(number)
        write(path, P[:5])
        settle(path)
        for _ in range(3):
            assert len(read(path)) == 5
        assert kept_levels._kept.nbytes <= 10**6
    assert 3 < len(kept_levels._kept) < 30
    assert VectorStore.open(str(tmp_path / "0")).root.ndim == 2


def test_what_documents_hold_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of chunks as numbers; its text where it makes no sense, and all else that a document says."""
    write(tmp_path)
    place = tmp_path / "0/vertices/zarr.json"
    plain = json.loads(place.read_bytes())

    def size(**attributes: Any) -> int:
        document = plain | {"attributes": plain["attributes"] | attributes}
        place.write_text(json.dumps(document, indent=2))
        level = replace(KeptLevel.of(rereading.open_level(tmp_path, 0)), versions={})
        before = level.nbytes
        assert level.node("vertices") is not None
        return level.nbytes - before

    usual, text = size(), "x" * 10**5
    keys = [f"{a}.{b}" for a in range(100) for b in range(100)]
    assert 1024 < usual < 2**15
    assert 10**4 * 16 < size(nonempty_chunks=keys) < usual + 10**4 * 40
    assert size(nonempty_chunks=[*keys, keys[0]]) > usual + 8 * sum(map(len, keys))
    assert size(more=text) > usual + 8 * len(text) - 100
    for name in ("zarr.json", "0/zarr.json"):
        document = json.loads((tmp_path / name).read_bytes())
        document["attributes"]["more"] = text
        (tmp_path / name).write_text(json.dumps(document))
    place.write_text(json.dumps(plain))
    settle(tmp_path)
    for limit, kept in ((3 * 8 * len(text), 1), (8 * len(text), 0)):
        monkeypatch.setattr(kept_levels._kept, "limit", limit)
        kept_levels._kept.clear()
        for _ in range(2):
            read(tmp_path)
        assert len(kept_levels._kept) == kept
        assert 2 * 8 * len(text) * kept <= kept_levels._kept.nbytes <= limit


def test_a_store_is_made_once_for_each_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    with zardine.storage.ZipStore(path, mode="w") as store:
        vectors.write_points(store, P, chunk_shape=20)
    made: list[Any] = []
    real = resolve._zip

    def noted(*args: Any) -> Any:
        made.append(args)
        return real(*args)

    monkeypatch.setattr(resolve, "_zip", noted)
    assert read(path) == np.sort(P, axis=0).tolist()
    assert len(made) == 1


def test_threads_may_read_more_meanwhile(tmp_path: Path) -> None:
    write(tmp_path)
    settle(tmp_path)
    held = vectors.open(str(tmp_path))
    held.read()
    documents, faults = held._documents, list[BaseException]()
    level = documents.get(0, LocalStore(tmp_path))
    assert level is not None

    def use(number: int) -> None:
        try:
            for each in range(number, 300, 2):
                level.names(f"family{each}")
                level.node(f"node{each}")
                assert level.is_as_kept()
                documents.keep(each % 7, level, {})
                assert documents.nbytes > 0
        except BaseException as fault:
            faults.append(fault)

    threads, interval = [threading.Thread(target=use, args=(number,)) for number in (1, 2)], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
    finally:
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert faults == []


def test_what_an_answer_says_of_its_place_is_its_own(tmp_path: Path) -> None:
    place = {"epsg": 4326, "more": {"names": ["x"]}}
    write(tmp_path / "points", crs=place)
    vectors.write_polylines(str(tmp_path / "lines"), [P[:5], P[5:9]], chunk_shape=20, crs=place)
    for path in (tmp_path / "points", tmp_path / "lines"):
        settle(path)
        held = vectors.open(str(path))
        reads: list[Any] = [lambda path=path: vectors.open(str(path)).read(), held.read]
        for read_it in reads * 3:
            found = read_it().crs
            assert found == place
            found["more"]["names"].append("y")
        for batches in range(2):
            for part in held.select().batches(4):
                assert part.crs == place
                part.crs["more"]["names"].append(batches)
        for _ in range(2):
            told: Any = held.crs
            assert told == place
            told["more"]["names"].clear()
