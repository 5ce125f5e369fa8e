"""A backslash in the name of a node: an ordinary character in Zarr v3, and ``/`` in v2; the same at every entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import NodeNotFoundError
from zardine.storage import LocalStore, MemoryStore, StorePath


@pytest.fixture(params=["memory", "local"])
def store(request: Any, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path)


def opened(store: Any, path: str, **how: Any) -> list[Any]:
    """The values that every entry gives for a path."""
    entries = [
        lambda: zardine.open_array(store, path=path, **how),
        lambda: zardine.open(store, path=path, **how),
        lambda: zardine.open_array(StorePath(store, path), **how),
        lambda: zardine.open(StorePath(store, path), **how),
        lambda: zardine.open_array(store, path=path, mode="r", **how),
    ]
    if not how:
        entries += [
            lambda: zardine.Array.open(StorePath(store, path)),
            lambda: zardine.open_group(store, mode="r")[path],
            lambda: zardine.open_group(store, mode="r").get_array(path),
        ]
    if isinstance(store, LocalStore):
        entries += [lambda: zardine.open(f"{store.root}::{path}", **how)]
    return [int(entry()[0]) for entry in entries]


def test_both_names_in_v3(store: Any) -> None:
    root = zardine.create_group(store)
    root.create_array("a\\b", data=np.array([1]))
    root["a/b"] = np.array([2])
    zardine.create_array(store, name="g\\h/x\\y", data=np.array([3]))
    assert sorted(store.list_dir("")[1]) == ["a/", "a\\b/", "g\\h/"]
    assert list(root) == ["a", "a\\b", "g\\h"]
    for _ in range(2):
        root = zardine.open_group(store)
        assert [path for path, _ in root.members(max_depth=None)] == ["a", "a/b", "a\\b", "g\\h", "g\\h/x\\y"]
        assert [node.path for node in root.values()] == list(root)
        for path, node in root.members(max_depth=None):
            assert path in root
            assert root[path] == node
        assert set(opened(store, "a\\b")) == {1} == set(opened(store, "a\\b", zarr_format=3))
        assert set(opened(store, "a/b")) == {2}
        assert set(opened(store, "g\\h/x\\y")) == {3}
        assert root["g\\h"]["x\\y"][0] == 3
        zardine.consolidate_metadata(store)  # and once more
    assert zardine.open_group(store).metadata.consolidated_metadata
    zardine.open_group(store, use_consolidated=False).move("a\\b", "c\\d")
    del zardine.open_group(store, use_consolidated=False)["g\\h"]
    assert list(zardine.open_group(store, use_consolidated=False)) == ["a", "c\\d"]
    assert "g/h" not in root


def test_only_a_slash_in_v2(store: Any) -> None:
    root = zardine.create_group(store, zarr_format=2)
    root.create_array("a\\b", data=np.array([2]))
    zardine.create_array(store, name="c\\d/e", data=np.array([4]), zarr_format=2)
    assert list(root) == ["a", "c"]
    assert [path for path, _ in root.members(max_depth=None)] == ["a", "a/b", "c", "c/d", "c/d/e"]
    for _ in range(2):
        for path in ("a\\b", "a/b"):
            assert set(opened(store, path)) == {2} == set(opened(store, path, zarr_format=2))
        assert set(opened(store, "c/d\\e")) == {4} == set(opened(store, "c\\d\\e"))
        assert "a\\b" in zardine.open_group(store)
        zardine.consolidate_metadata(store)
    assert root.require_group("c\\d").path == "c/d"
    root.move("a\\b", "x\\y")
    assert [path for path, _ in root["x"].members()] == ["y"]
    del root["x\\y"]
    assert "x/y" not in root


def test_a_listing_shows_no_name_by_which_nothing_can_be_opened(store: Any) -> None:
    """In a group of v2 another program may have stored what no path of v2 leads to."""
    root = zardine.create_group(store, zarr_format=2)
    root["a/b"] = np.array([2])
    for key in [key for key in store.list() if key.startswith("a/b/")]:
        store.set("a\\b" + key[3:], store.get(key))
    zardine.create_array(store, name="n\\m", data=np.array([5]), zarr_format=3)
    assert list(root) == ["a"]
    assert root["a\\b"].path == "a/b"
    zardine.consolidate_metadata(store)
    group = zardine.open_consolidated(store)
    assert [(name, node.path) for name, node in group.items()] == [("a", "a")]
    assert all(path in group for path, _ in group.members(max_depth=None))


def test_v2_below_v3(store: Any) -> None:
    root = zardine.create_group(store)
    inner = root.create_group("g\\h")
    array = inner.create_array("x\\y", data=np.array([7]), zarr_format=2)
    assert array.path == "g\\h/x/y"
    assert zardine.open(array.store_path)[0] == 7
    assert zardine.open_array(array.store_path, zarr_format=2)[0] == 7
    assert zardine.open(inner.store_path, path="x/y")[0] == 7
    assert set(opened(store, "g\\h/x/y")) == {7}
    assert inner.create_group("k", zarr_format=2).create_array("p\\q", data=[8]).path == "g\\h/k/p/q"


def test_what_is_not_there(store: Any) -> None:
    root = zardine.create_group(store)
    root["a/b"] = np.array([2])
    assert "a\\b" not in root
    assert root.get("a\\b", 5) == 5
    with pytest.raises(NodeNotFoundError):
        root["a\\b"]
    with pytest.raises(NodeNotFoundError):
        zardine.open_array(store, path="a\\b", zarr_format=3)
    made = zardine.open_array(store, path="a\\b", shape=1, dtype="i4")
    assert made.path == "a\\b"
    assert zardine.open_array(store, path="k\\l", shape=1, dtype="i4", zarr_format=2).path == "k/l"
    with pytest.raises(ValueError, match="periods"):
        zardine.open_array(store, path="k\\..\\l", zarr_format=2)
