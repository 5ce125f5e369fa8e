"""Changing hierarchies of Zarr v2: all that is made in them is v2. And arrays never hide what is stored below them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from zardine.errors import ContainsArrayError, ContainsGroupError
from zardine.storage import LocalStore, MemoryStore

DATA = np.arange(12, dtype="i4").reshape(3, 4)


@pytest.fixture(params=["memory", "local"])
def store(request: Any, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path / "store")


def formats(group: zardine.Group) -> set[int]:
    return {node.metadata.zarr_format for _, node in group.members(max_depth=None)}


def documents(store: Any) -> list[str]:
    return sorted(key for key in store.list() if key.endswith(("zarr.json", ".zarray", ".zgroup")))


def test_moving(store: Any) -> None:
    root = zardine.create_group(store, zarr_format=2)
    root.create_array("a/b", data=DATA, chunks=(2, 2), attributes={"k": 1})
    root.move("a/b", "x/y/z")
    assert documents(store) == [".zgroup", "a/.zgroup", "x/.zgroup", "x/y/.zgroup", "x/y/z/.zarray"]
    assert [path for path, _ in root.members(max_depth=None)] == ["a", "x", "x/y", "x/y/z"]
    np.testing.assert_array_equal(root["x/y/z"][...], DATA)
    assert dict(root["x/y/z"].attrs) == {"k": 1}
    root.move("x", "n/m")
    assert formats(root) == {2}
    np.testing.assert_array_equal(root["n/m/y/z"][...], DATA)
    assert not [key for key in store.list() if key.startswith("x")]


def test_moves_are_seen_by_zarr_python(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path, zarr_format=2)
    root["a"] = DATA
    root.move("a", "x/y")
    theirs = zarr.open_group(tmp_path, mode="r", zarr_format=2)
    np.testing.assert_array_equal(theirs["x/y"][...], DATA)


def test_a_move_to_where_nodes_are_stored_below_is_refused(store: Any) -> None:
    root = zardine.create_group(store)
    root["a"] = DATA
    root["foo/bar"] = DATA
    store.erase("foo/zarr.json")
    with pytest.raises(ContainsGroupError):
        root.move("a", "foo")
    assert "a" in root


@pytest.mark.parametrize(
    "make",
    [
        lambda store, name: zardine.create_array(store, name=name, shape=3, dtype="i4"),
        lambda store, name: zardine.create(3, store=store, path=name),
        lambda store, name: zardine.open_array(store, path=name, shape=3, dtype="i4"),
        lambda store, name: zardine.open_group(store).create_array(name, shape=3, dtype="i4"),
        lambda store, name: zardine.from_array(store, data=np.arange(3), name=name),
        lambda store, name: zardine.zeros_like(np.arange(3), store=store, path=name),
        lambda store, name: list(
            zardine.create_hierarchy(store=store, nodes={name: zardine.zeros(3, store=None).metadata})
        ),
        lambda store, name: zardine.open_group(store).create_array(name, shape=3, dtype="i4", zarr_format=2),
        lambda store, name: zardine.create_array(store, name=name, shape=3, dtype="i4", zarr_format=1),
    ],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_does_not_hide_nodes_below_it(store: Any, make: Any, zarr_format: int) -> None:
    root = zardine.create_group(store, zarr_format=zarr_format)
    root["foo/deep/bar"] = DATA
    for document in ("foo/zarr.json", "foo/.zgroup", "foo/deep/zarr.json", "foo/deep/.zgroup"):
        store.erase(document)
    before = list(store.list())
    with pytest.raises(ContainsGroupError, match="foo"):
        make(store, "foo")
    assert list(store.list()) == before
    assert root.require_group("foo/deep").path == "foo/deep"
    assert zardine.create_group(store, path="foo").path == "foo"  # its document is missing, and nothing is hidden
    np.testing.assert_array_equal(zardine.open_array(store, path="foo/deep/bar")[...], DATA)
    zardine.create_array(store, name="foo", shape=3, dtype="i4", overwrite=True)
    assert not [key for key in store.list() if key.startswith("foo/deep")]


def test_an_array_at_the_root_does_not_hide_nodes(store: Any) -> None:
    zardine.create_array(store, name="foo", data=DATA)
    store.erase("zarr.json")
    with pytest.raises(ContainsGroupError):
        zardine.create_array(store, shape=3, dtype="i4")
    with pytest.raises(ContainsGroupError):
        zardine.open_group(store, mode="w-")


def test_an_array_of_v3_does_not_hide_one_of_v1(store: Any) -> None:
    zardine.create_array(store, name="a", data=DATA, zarr_format=1)
    for version in (2, 3):
        with pytest.raises(ContainsArrayError, match="v1"):
            zardine.create_array(store, name="a", shape=3, dtype="i4", zarr_format=version)
    np.testing.assert_array_equal(zardine.open_array(store, path="a")[...], DATA)
