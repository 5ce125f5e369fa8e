"""A thousand groups within each other: more than Python lets functions call themselves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zardine
from zardine.storage import LocalStore, MemoryStore

DEPTH = 1000
PLACE = "/".join(["a"] * DEPTH)


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    folder = tmp_path / "deep"
    made = MemoryStore() if request.param == "memory" else LocalStore(folder)
    zardine.create_array(made, name=f"{PLACE}/x", data=[1, 2, 3])
    zardine.create_array(made, name="a/b", data=[4])
    yield made
    while (folder / "a" / "a").exists():  # what pytest removes folders by calls itself, too
        (folder / "a").rename(tmp_path / "above")
        (tmp_path / "above" / "a").rename(folder / "a")
        shutil.rmtree(tmp_path / "above")


def test_members_and_what_is_made_of_them(store: Any) -> None:
    group = zardine.open_group(store)
    paths = [path for path, _ in group.members(max_depth=None)]
    assert len(paths) == DEPTH + 2
    assert paths[:3] == ["a", "a/a", "a/a/a"]
    assert paths[-2:] == [f"{PLACE}/x", "a/b"]
    assert [path for path, _ in group.members(max_depth=1)] == ["a", "a/a", "a/b"]
    assert [path for path, _ in group.members(max_depth=0)] == ["a"]
    values = zardine.load(store)
    for _ in range(DEPTH):
        values = values["a"]
    assert values["x"].tolist() == [1, 2, 3]
    assert f"{PLACE}/x" in zardine.consolidate_metadata(store)
    assert not zardine.verify(store).faults


def test_removals(store: Any) -> None:
    group = zardine.open_group(store)
    group.move("a", "b")
    assert group[f"b{PLACE[1:]}/x"][...].tolist() == [1, 2, 3]
    assert "a" not in group
    del group[f"b{PLACE[1:]}/x"]
    del group["b"]
    assert list(store.list()) == ["zarr.json"]
    zardine.create_array(store, name=f"{PLACE}/x", data=[1, 2, 3])
    zardine.create_group(store, path="a/a", overwrite=True)
    assert list(store.list()) == ["a/a/zarr.json", "a/zarr.json", "zarr.json"]
    zardine.create_array(store, name=f"{PLACE}/x", data=[1, 2, 3])
    store.clear()
    assert not list(store.list())
    assert not list(store.leftovers(0))
    assert not list(store.left_out())


def test_empty_directories_within_each_other_that_are_in_the_way(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set(f"{PLACE}/x", b"")
    (tmp_path / PLACE / "x").unlink()
    store.set("a", b"one")
    assert store.get("a") == b"one"


def test_copies(store: Any) -> None:
    group = zardine.open_group(store)
    copied = zardine.create_group(MemoryStore())
    assert zardine.copy(group["a"], copied, "a")[0] == DEPTH + 2
    target = MemoryStore()
    assert zardine.copy_store(store, target)[0] == len(list(store.list()))
    for each in (copied, zardine.open_group(target), zardine.convert(store, MemoryStore())):
        assert each[f"{PLACE}/x"][...].tolist() == [1, 2, 3]
        assert each["a/b"][...].tolist() == [4]
