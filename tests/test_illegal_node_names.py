"""Names and places that no node may have are refused by everything that makes nodes, and left out with a warning."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ContainsArrayError, ContainsGroupError, ZarrUserWarning
from zardine.storage import MemoryStore, StorePath
from zardine.vectors import write_points

BAD_NAMES = ("zarr.json", "...", "__a", "b/zarr.json", "__a/b")


def new_store() -> MemoryStore:
    store = MemoryStore()
    group = zardine.create_group(store)
    group.create_array("x", data=np.arange(4))
    group.create_group("g").create_array("y", data=[1])
    return store


def makers(store: MemoryStore, name: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each way to make a node called ``name`` in a store."""
    group, other, to = zardine.open_group(store), new_store(), StorePath(store, name)
    array = StorePath(other, "x")
    yield "create_array", lambda: group.create_array(name, data=[1])
    yield "create_group", lambda: group.create_group(name)
    yield "assignment", lambda: group.__setitem__(name, [1])
    yield "require_group", lambda: group.require_group(name)
    yield "create_hierarchy", lambda: dict(group.create_hierarchy({name: zardine.open_array(array).metadata}))
    yield "create_array(name=)", lambda: zardine.create_array(store, name=name, data=[1])
    yield "save_array", lambda: zardine.save_array(store, np.arange(3), path=name)
    yield "move", lambda: group.move("g", name)
    yield "copy", lambda: zardine.copy(zardine.open_array(array), group, name=name)
    yield "copy_store", lambda: zardine.copy_store(other, store, dest_path=name)
    yield "convert", lambda: zardine.convert(array, to)
    yield "plan_convert", lambda: zardine.plan_convert(array, to)
    yield "convert a group", lambda: zardine.convert(other, to)
    yield "rechunk", lambda: zardine.rechunk(array, to, chunks=(2,))
    yield "plan_rechunk", lambda: zardine.plan_rechunk(array, to, chunks=(2,))
    yield "write_points", lambda: write_points(to, np.zeros((3, 3), "f4"), chunk_shape=5)


WAYS = [way for way, _ in makers(new_store(), "n")]


def make(way: str, name: str) -> tuple[MemoryStore, Callable[[], Any]]:
    store = new_store()
    return store, dict(makers(store, name))[way]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names_are_refused_and_nothing_is_stored(way: str, name: str) -> None:
    store, call = make(way, name)
    before = sorted(store.list())
    with pytest.raises(ValueError, match="the name"):
        call()
    assert sorted(store.list()) == before


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_made_below_an_array(way: str) -> None:
    store, call = make(way, "x/below")
    before = sorted(store.list())
    with pytest.raises(ContainsArrayError):
        call()
    assert sorted(store.list()) == before


@pytest.mark.parametrize("way", WAYS)
def test_good_names_are_made(way: str) -> None:
    store, call = make(way, "n")
    call()
    assert way.startswith("plan") or "n" in zardine.open_group(store)


def test_an_array_is_not_copied_over_nodes_that_it_would_hide() -> None:
    store = new_store()
    store.erase("g/zarr.json")
    with pytest.raises(ContainsGroupError, match="hide"):
        zardine.copy_store(new_store(), store, source_path="x", dest_path="g")
    zardine.copy_store(new_store(), store, source_path="g", dest_path="g", if_exists="replace")


def test_a_copy_of_zarr_v2_has_groups_above() -> None:
    source = MemoryStore()
    zardine.create_array(source, name="a", data=[1], zarr_format=2)
    target = MemoryStore()
    zardine.copy_store(source, target, source_path="a", dest_path="b/c")
    assert target.exists("b/.zgroup")
    assert zardine.open_group(target)["b/c"][...].tolist() == [1]


def test_bad_names_are_refused_when_documents_are_converted_in_place() -> None:
    store = MemoryStore()
    zardine.create_group(store, zarr_format=2)
    zardine.create_array(StorePath(store, "__a"), data=[1], zarr_format=2)
    with pytest.raises(ValueError, match="'__a'"):
        zardine.convert(StorePath(store, "__a"), metadata_only=True)
    with pytest.raises(ValueError, match="__a"):
        zardine.convert(store, metadata_only=True)


def test_names_with_backslashes_are_not_converted_to_v2() -> None:
    store = MemoryStore()
    zardine.create_group(store).create_array("a\\b", data=[1])
    with pytest.raises(ValueError, match="backslash"):
        zardine.convert(store, MemoryStore(), zarr_format=2)


@pytest.mark.parametrize("name", ["zarr.json", "...", "__a"])
def test_stored_nodes_of_bad_names_are_left_out_and_told(name: str) -> None:
    store = new_store()
    store.set(f"{name}/zarr.json", store.get("x/zarr.json"))
    group = zardine.open_group(store)
    with pytest.warns(ZarrUserWarning, match="left out"):
        assert set(dict(group)) == {"x", "g"}
    with pytest.warns(ZarrUserWarning, match="left out"):
        zardine.consolidate_metadata(store)
    assert set(zardine.open_consolidated(store)) == {"x", "g"}
    (note,) = zardine.verify(store).notes
    assert note.key == f"{name}/zarr.json"
    assert repr(name) in note.message


@pytest.mark.parametrize("name", [".zarray", ".zgroup", ".zattrs", ".zmetadata"])
def test_stored_nodes_of_v2_of_bad_names_are_left_out_and_told(name: str) -> None:
    store = MemoryStore()
    zardine.create_group(store, zarr_format=2).create_array("x", shape=2, dtype="i2")
    store.set(f"{name}/.zarray", store.get("x/.zarray"))
    with pytest.warns(ZarrUserWarning, match="left out"):
        assert set(dict(zardine.open_group(store))) == {"x"}
    with pytest.warns(ZarrUserWarning, match="left out"):
        zardine.consolidate_metadata(store)
    report = zardine.verify(store)
    assert report.ok
    (note,) = report.notes
    assert note.key == f"{name}/.zarray"
    assert repr(name) in note.message


def test_a_name_of_periods_and_a_backslash_is_a_name_of_v3() -> None:
    store = new_store()
    zardine.open_group(store).create_array("..\\x", data=[7])
    assert zardine.open_group(store)["..\\x"][0] == 7
    assert zardine.open(store, path="..\\x")[0] == 7
