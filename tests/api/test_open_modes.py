"""Every way to open × every mode × what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    NodeNotFoundError,
    ReadOnlyError,
)

MODES = (None, "r", "r+", "a", "w", "w-")
SHAPE = {"shape": (7,), "dtype": "i2"}

# What opening gives: "array" or "group" for what was there (a member and values remain), "new array", "new group", or
# the error. Columns are the modes in the order of MODES.
TABLE: dict[tuple[str, str], tuple[Any, ...]] = {
    # open, without a shape
    ("open", "nothing"): (
        NodeNotFoundError,
        NodeNotFoundError,
        NodeNotFoundError,
        "new group",
        "new group",
        "new group",
    ),
    ("open", "array"): ("array", "array", "array", "array", "new group", ContainsArrayError),
    ("open", "group"): ("group", "group", "group", "group", "new group", ContainsGroupError),
    # open with a shape
    ("open shape", "nothing"): (
        "new array",
        ArrayNotFoundError,
        ArrayNotFoundError,
        "new array",
        "new array",
        "new array",
    ),
    ("open shape", "array"): ("array", "array", "array", "array", "new array", ContainsArrayError),
    ("open shape", "group"): (
        ContainsGroupError,
        ContainsGroupError,
        ContainsGroupError,
        ContainsGroupError,
        "new array",
        ContainsGroupError,
    ),
    # open_array
    ("open_array", "nothing"): (
        ArrayNotFoundError,
        ArrayNotFoundError,
        ArrayNotFoundError,
        ArrayNotFoundError,
        TypeError,
        TypeError,
    ),
    ("open_array", "array"): ("array", "array", "array", "array", TypeError, TypeError),
    ("open_array", "group"): (
        ContainsGroupError,
        ContainsGroupError,
        ContainsGroupError,
        ContainsGroupError,
        TypeError,
        TypeError,
    ),
    # open_group
    ("open_group", "nothing"): (
        "new group",
        GroupNotFoundError,
        GroupNotFoundError,
        "new group",
        "new group",
        "new group",
    ),
    ("open_group", "array"): (
        ContainsArrayError,
        ContainsArrayError,
        ContainsArrayError,
        ContainsArrayError,
        "new group",
        ContainsArrayError,
    ),
    ("open_group", "group"): ("group", "group", "group", "group", "new group", ContainsGroupError),
}
TABLE |= {("open_array shape", there): TABLE["open shape", there] for there in ("nothing", "array", "group")}
CASES = [
    (way, there, mode, expected)
    for (way, there), row in TABLE.items()
    for mode, expected in zip(MODES, row, strict=True)
]


def prepare(there: str, path: Path) -> None:
    if there == "array":
        zardine.create_array(path, data=np.arange(5))
    elif there == "group":
        zardine.create_group(path, attributes={"old": True})["member"] = np.arange(5)


def look(node: zardine.Array | zardine.Group) -> str:
    if isinstance(node, zardine.Array):
        if node.shape == (5,):
            np.testing.assert_array_equal(node[:], np.arange(5))
            return "array"
        assert (node.shape, node.dtype) == ((7,), np.dtype("i2"))
        return "new array"
    if "old" in node.attrs:
        np.testing.assert_array_equal(node["member"][:], np.arange(5))
        return "group"
    assert len(node) == 0
    return "new group"


@pytest.mark.parametrize(("way", "there", "mode", "expected"), CASES)
def test_modes(way: str, there: str, mode: Any, expected: Any, tmp_path: Path) -> None:
    path = tmp_path / "node"
    prepare(there, path)
    function, _, shape = way.partition(" ")
    arguments: dict[str, Any] = {"mode": mode, **(SHAPE if shape else {})}
    if isinstance(expected, type):
        with pytest.raises(expected):
            getattr(zardine, function)(path, **arguments)
        if there != "nothing":
            assert look(zardine.open(path)) == there
        return
    node = getattr(zardine, function)(path, **arguments)
    assert look(node) == expected
    assert look(zardine.open(path, mode="r")) == expected
    assert node.read_only is (mode == "r")


@pytest.mark.parametrize("function", ["open", "open_group", "open_array"])
def test_read_only_store(function: str) -> None:
    store = zardine.storage.MemoryStore()
    kept = zardine.create_array(store, data=np.arange(5)) if function == "open_array" else zardine.create_group(store)
    locked = store.with_read_only(True)
    for mode in (None, "r", "a"):
        node = getattr(zardine, function)(locked, mode=mode)
        assert node.read_only
        assert node == kept
    for mode in ("r+", "w", "w-"):
        with pytest.raises(ReadOnlyError, match="use mode='r'"):
            getattr(zardine, function)(locked, mode=mode, **(SHAPE if function == "open_array" else {}))


def test_read_only_store_without_node() -> None:
    locked = zardine.storage.MemoryStore().with_read_only(True)
    with pytest.raises(NodeNotFoundError, match="no array or group"):
        zardine.open(locked)
    with pytest.raises(GroupNotFoundError):
        zardine.open_group(locked)
    with pytest.raises(ReadOnlyError):
        zardine.open(locked, shape=3, dtype="i4")


def test_path_leads_further_down(tmp_path: Path) -> None:
    zardine.open_group(tmp_path, path="a/b")["c"] = np.arange(3)
    assert zardine.open(tmp_path, path="/a/b/c/").path == "a/b/c"
    assert zardine.open_array(tmp_path / "a", path="b/c").shape == (3,)
    assert zardine.open_group(tmp_path, path="a").name == "/a"


def test_attributes_are_for_new_groups() -> None:
    store = zardine.storage.MemoryStore()
    assert dict(zardine.open_group(store, attributes={"a": 1}).attrs) == {"a": 1}
    assert dict(zardine.open_group(store, attributes={"b": 1}).attrs) == {"a": 1}
    assert dict(zardine.open_group(store, mode="w", attributes={"c": 1}).attrs) == {"c": 1}
    assert dict(zardine.group(store, attributes={"d": 1}).attrs) == {"c": 1}
    assert dict(zardine.group(store, overwrite=True, attributes={"d": 1}).attrs) == {"d": 1}


def test_open_consolidated(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path)
    group["x"] = np.arange(3)
    with pytest.raises(ValueError, match="not consolidated"):
        zardine.open_consolidated(tmp_path)
    zardine.consolidate_metadata(tmp_path)
    assert list(zardine.open_consolidated(store=tmp_path, mode="r")) == ["x"]
    with pytest.raises(zardine.errors.ArrayNotFoundError, match="use_consolidated=False"):
        zardine.open_consolidated(tmp_path).get_array("y")


@pytest.mark.parametrize("there", ["array", "group", "implied group"])
@pytest.mark.parametrize(
    "create",
    [
        lambda store, **how: zardine.create(3, store=store, path="p", **how),
        lambda store, **how: zardine.zeros(3, store=store, path="p", **how),
        lambda store, **how: zardine.full(3, 1, store=store, path="p", **how),
        lambda store, **how: zardine.array([1, 2], store=store, path="p", **how),
        lambda store, **how: zardine.open_array(store, path="p", shape=3, **how),
        lambda store, **how: zardine.open(store, path="p", shape=3, **how),
        lambda store, **how: zardine.open_like(np.arange(3), "p", store=store, **how),
        lambda store, **how: zardine.save_array(store, np.arange(3), path="p", **how),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_w_minus_erases_nothing_whatever_overwrite_says(create: Any, kind: str, there: str, tmp_path: Path) -> None:
    store = zardine.storage.MemoryStore() if kind == "memory" else zardine.storage.LocalStore(tmp_path)
    if there == "array":
        zardine.create_array(store, name="p", data=np.arange(5))
    else:
        zardine.create_array(store, name="p/x", data=np.arange(5))
    if there == "implied group":
        store.erase("p/zarr.json")
    before = {key: bytes(store.get(key)) for key in store.list()}
    for overwrite in (True, False):
        with pytest.raises(FileExistsError):
            create(store, mode="w-", overwrite=overwrite)
    assert {key: bytes(store.get(key)) for key in store.list()} == before
