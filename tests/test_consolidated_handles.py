"""Handles that came out of a consolidated group keep that group's metadata true; others leave it as it is."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from zardine.api import consolidate as consolidate_module
from zardine.errors import (
    ArrayChangedError,
    ArrayNotFoundError,
    GroupNotFoundError,
    NodeNotFoundError,
    StoreError,
    ZarrUserWarning,
)
from zardine.hierarchy.update import update_node
from zardine.nodes import group as group_module
from zardine.storage import CountingStore, LocalStore, MemoryStore

DATA = np.arange(12, dtype="i4").reshape(3, 4)


@pytest.fixture(params=[(kind, version) for kind in ("memory", "local") for version in (3, 2)], ids=str)
def store(request: Any, tmp_path: Path) -> Any:
    kind, version = request.param
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path / "store")
    root = zardine.create_group(store, zarr_format=version)
    root.create_array("t", data=DATA, chunks=(2, 2), fill_value=7)
    root.create_array("sub/x", data=DATA, chunks=(2, 2), fill_value=7)
    root.create_array("sub/deep/y", data=DATA)
    zardine.consolidate_metadata(store)
    return store


def version_of(store: Any) -> int:
    return zardine.open_group(store).metadata.zarr_format


def paths(group: zardine.Group) -> list[str]:
    return [path for path, _ in group.members(max_depth=None)]


def check(store: Any, group: zardine.Group) -> None:
    """What handles and other programs are told is what is stored."""
    truth = zardine.open_group(store, use_consolidated=False)
    for each in (group, zardine.open_consolidated(store)):
        assert paths(each) == paths(truth)
        for path, node in each.members(max_depth=None):
            assert plain(node) == plain(truth[path])
    assert [fault for fault in zardine.verify(store).faults if fault.kind == "consolidated"] == []
    theirs = zarr.open_consolidated(
        {key: zarr.core.buffer.cpu.Buffer.from_bytes(bytes(store.get(key))) for key in store.list()},
        zarr_format=truth.metadata.zarr_format,
    )
    assert sorted(path for path, _ in theirs.members(max_depth=None)) == sorted(paths(truth))


def plain(node: Any) -> Any:
    return {name: value for name, value in node.metadata.to_dict().items() if name != "consolidated_metadata"}


def test_removing(store: Any) -> None:
    group = zardine.open_consolidated(store)
    held = group["t"]
    sub = group["sub"]
    del group["t"]
    assert "t" not in group
    assert "t" not in zardine.open_consolidated(store)
    with pytest.raises(KeyError):
        group["t"]
    with pytest.raises(NodeNotFoundError):
        held[:]
    del sub["deep"]
    assert paths(sub) == ["x"]
    assert "sub/deep/y" not in group
    assert "deep" not in group["sub"]
    check(store, group)
    with pytest.raises(KeyError):
        del group["t"]


def test_attributes(store: Any) -> None:
    group = zardine.open_consolidated(store)
    group["sub"].attrs["k"] = 1
    group["sub/x"].attrs["k"] = 2
    group["sub"]["deep"]["y"].update_attributes({"k": 3})
    group.attrs["k"] = 4
    for each in (group, zardine.open_consolidated(store)):
        assert [each["sub"].attrs["k"], each["sub/x"].attrs["k"], each["sub/deep"]["y"].attrs["k"]] == [1, 2, 3]
        assert each.attrs["k"] == 4
    del group["sub"].attrs["k"]
    assert "k" not in zardine.open_consolidated(store)["sub"].attrs
    check(store, group)


def test_shapes(store: Any) -> None:
    group = zardine.open_consolidated(store)
    array = group["sub"]["x"]
    array.append(DATA)
    assert group["sub/x"].shape == (6, 4)
    group["t"].resize((2, 2))
    np.testing.assert_array_equal(zardine.open_consolidated(store)["sub/x"][...], np.concatenate((DATA, DATA)))
    np.testing.assert_array_equal(zardine.open_consolidated(store)["t"][...], DATA[:2, :2])
    array.with_config({"order": "F"}).append(DATA)
    pickled = array
    if isinstance(store, LocalStore):
        pickled = pickle.loads(pickle.dumps(array))
    pickled.append(DATA)
    assert zardine.open_consolidated(store)["sub/x"].shape == (12, 4)
    check(store, zardine.open_consolidated(store))


def test_making(store: Any) -> None:
    version = version_of(store)
    group = zardine.open_consolidated(store)
    group.create_array("new/a", data=DATA).append(DATA)
    group.create_group("new/g", attributes={"k": 1}).create_array("b", data=DATA)
    group["assigned"] = DATA
    group["t"] = DATA[0]
    group.zeros_like(name="z", data=DATA)
    group.require_array("sub/required", shape=3, dtype="i4")
    group["sub"].require_group("r/s")
    list(group.create_hierarchy({"h/i": zardine.zeros(3, store=None, zarr_format=version).metadata}))
    zardine.copy(group["sub"], group, name="copied")
    group.create_array("sub/deep", shape=3, dtype="i4", overwrite=True)  # what was below it is gone
    assert group["new/a"].shape == (6, 4)
    assert group["new/g"].attrs["k"] == 1
    assert group["t"].shape == (4,)
    assert "sub/deep/y" not in group
    assert "copied/deep/y" in group
    check(store, group)
    group["new"].create_group("g", overwrite=True)
    assert "new/g/b" not in group
    check(store, group)


def test_moving(store: Any) -> None:
    group = zardine.open_consolidated(store)
    group.move("sub", "other/place")
    group.move("t", "u")
    assert paths(group) == ["other", "other/place", "other/place/deep", "other/place/deep/y", "other/place/x", "u"]
    np.testing.assert_array_equal(group["other/place/x"][...], DATA)
    check(store, group)


def test_in_an_event_loop(store: Any) -> None:
    async def change() -> None:
        group = zardine.AsyncGroup(zardine.open_consolidated(store))
        await group.delitem("t")
        assert not await group.contains("t")
        array = await group.getitem("sub/x")
        await array.append(DATA)
        await array.update_attributes({"k": 1})
        await (await group.getitem("sub")).update_attributes({"k": 2})
        await group.create_array("new", shape=(2,), dtype="i4")

    asyncio.run(change())
    group = zardine.open_consolidated(store)
    assert (group["sub/x"].shape, group["sub/x"].attrs["k"], group["sub"].attrs["k"]) == ((6, 4), 1, 2)
    check(store, group)


class Recording(MemoryStore):
    """Notes every write of a group's document."""

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.written: list[tuple[str, bool]] = []

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if key in ("zarr.json", ".zmetadata"):
            self.written.append((key, condition is not None))
        return super().set(key, value, condition=condition)


def test_each_change_is_one_conditional_write(store: Any) -> None:
    recording = Recording({key: bytes(store.get(key)) for key in store.list()})
    group = zardine.open_consolidated(recording)
    key = "zarr.json" if version_of(store) == 3 else ".zmetadata"
    array = group["sub/x"]
    for change in (
        lambda: array.append(DATA),
        lambda: array.resize((5, 4)),
        lambda: array.attrs.update(a=1, b=2),
        lambda: group["sub"].attrs.update(a=1),
        lambda: group.__delitem__("t"),
        lambda: group.create_array("p/q/r", data=DATA),
        lambda: group.move("sub", "m/n"),
    ):
        recording.written.clear()
        change()
        assert recording.written == [(key, True)]
    recording.written.clear()
    group["m/n/x"][...] = 1
    assert recording.written == []


def test_what_was_opened_by_its_path_leaves_it_alone(store: Any) -> None:
    before = zardine.open_consolidated(store).metadata
    zardine.open_array(store, path="sub/x").append(DATA)
    zardine.open_group(store, path="sub").attrs["k"] = 1
    zardine.open_group(store, use_consolidated=False)["t"].attrs["k"] = 1
    zardine.create_array(store, name="new", shape=3, dtype="i4", zarr_format=version_of(store))
    assert zardine.open_consolidated(store).metadata == before
    group = zardine.consolidate_metadata(store)
    assert group["sub/x"].shape == (6, 4)
    check(store, group)


@pytest.mark.parametrize("shards", [None, (4, 4)])
@pytest.mark.parametrize("version", [3, 2])
@pytest.mark.parametrize("kind", ["memory", "local", "counting"])
def test_an_array_that_is_not_stored_is_never_read_as_fill_values(
    kind: str, version: int, shards: Any, tmp_path: Path
) -> None:
    inner: Any = LocalStore(tmp_path) if kind == "local" else MemoryStore()
    store = CountingStore(inner) if kind == "counting" else inner
    shards = shards if version == 3 else None
    root = zardine.create_group(store, zarr_format=version)
    root.create_array("sub/x", data=np.ones((4, 4), "i4"), chunks=(2, 2), shards=shards, fill_value=7)
    root.create_array("sub/empty", shape=(4, 4), dtype="i4", chunks=(2, 2), shards=shards, fill_value=7)
    zardine.consolidate_metadata(store)
    group = zardine.open_consolidated(store)
    assert (group["sub/empty"][...] == 7).all()
    cached = zardine.open_consolidated(store)
    for name in ("x", "empty"):
        store.erase_prefix(f"sub/{name}/")
    for opened in (group, cached, zardine.open_consolidated(store)):
        for name in ("x", "empty"):
            array = opened["sub"][name]
            for read in (
                lambda array: array[...],
                lambda array: array[0, 0],
                lambda array: array[1:2, 1:2],
                lambda array: array.oindex[[0, 3], [1]],
                lambda array: array.vindex[[0, 3], [1, 2]],
                lambda array: array.with_config({"cache": "1 MiB"})[...],
                lambda array: array.get_block_selection((0, 0)),
                lambda array: asyncio.run(array.async_array.getitem(...)),
                lambda array: np.asarray(array),
                lambda array: array.__setitem__((0, 0), 1),
                lambda array: array.__setitem__(..., 1),
                lambda array: array.resize((8, 8)),
                lambda array: array.append(np.ones((4, 4), "i4")),
                lambda array: array.attrs.update(a=1),
            ):
                with pytest.raises(ArrayNotFoundError, match="sub/"):
                    read(opened["sub"][name])
            with pytest.raises(ArrayNotFoundError, match="consolidate"):
                array[...]
    assert not [key for key in store.list() if key.startswith(("sub/x", "sub/empty"))]
    if kind == "memory":
        zardine.create_group(store, path="sub/x", zarr_format=version)
        with pytest.raises((ArrayNotFoundError, ArrayChangedError)):
            group["sub/x"][...]


class Asked(MemoryStore):
    """Notes what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    def read(self, key: str, *ranges: Any) -> Any:
        self.keys.append(key)
        return super().read(key, *ranges)


@pytest.mark.parametrize(("version", "opening"), [(3, 1), (2, 5)])
def test_opening_costs_no_request_for_arrays_and_using_one_costs_a_single_look(version: int, opening: int) -> None:
    store = Asked()
    root = zardine.create_group(store, zarr_format=version)
    for number in range(300):
        root.create_array(f"a{number}", data=DATA, chunks=(3, 4))
    root.create_array("empty", shape=(3, 4), dtype="i4")
    zardine.consolidate_metadata(store)
    store.keys.clear()
    group = zardine.open_consolidated(store, mode="r")
    assert len(list(group.arrays())) == 301
    assert len(store.keys) == opening
    document = "zarr.json" if version == 3 else ".zarray"
    with_data, empty = group["a7"], group["empty"]
    store.keys.clear()
    for array in (with_data, empty):
        for _ in range(3):
            array[...]
    assert [store.keys.count(f"{name}/{document}") for name in ("a7", "empty")] == [1, 1]


def test_two_appenders_leave_the_newest_shape(store: Any) -> None:
    group = zardine.open_consolidated(store)
    arrays = [group["t"] for _ in range(4)]
    errors: list[BaseException] = []

    def work(array: zardine.Array) -> None:
        try:
            for _ in range(5):
                array.append(DATA)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert zardine.open_consolidated(store)["t"].shape == (63, 4)
    check(store, zardine.open_consolidated(store))


class Meeting(MemoryStore):
    """Lets another writer come in between, the next time that the consolidated metadata is written."""

    between: Any = None

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if self.between is not None and key in ("zarr.json", ".zmetadata"):
            between, self.between = self.between, None
            between()
        return super().set(key, value, condition=condition)


def test_of_two_writers_that_meet_none_stores_an_older_document(store: Any) -> None:
    meeting = Meeting({key: bytes(store.get(key)) for key in store.list()})
    group, other = zardine.open_consolidated(meeting), zardine.open_consolidated(meeting)
    meeting.between = lambda: other["t"].append(DATA)
    group["t"].attrs["k"] = 1
    meeting.between = lambda: other["sub"].attrs.update(k=2)
    group["sub/x"].append(DATA)
    found = zardine.open_consolidated(meeting)
    assert (found["t"].shape, found["t"].attrs["k"]) == ((6, 4), 1)
    assert (found["sub/x"].shape, found["sub"].attrs["k"]) == ((6, 4), 2)
    check(meeting, found)


def then(monkeypatch: pytest.MonkeyPatch, change: Any, moment: str) -> None:
    """Have this happen when ``consolidate_metadata`` has gone through the nodes, or has just stored what it found."""
    calls = [change]

    def update(*args: Any, **kwargs: Any) -> Any:
        for each in calls if moment == "before" else ():
            each()
        made = update_node(*args, **kwargs)
        for each in calls if moment == "after" else ():
            each()
        return made

    monkeypatch.setattr(consolidate_module, "update_node", update)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("way", ["consolidated", "plain", "new", "first"])
def test_what_is_deleted_while_it_is_consolidated_is_not_told_of(
    store: Any, way: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = zardine.open_group(store, use_consolidated=False)
    group = plain if way != "consolidated" else zardine.open_consolidated(store)
    if way == "first":
        update_node(store, "", plain.metadata, lambda old: old.with_consolidated(None))
    elif way == "new":
        plain.create_array("late", data=DATA)

    def delete() -> None:
        for name in ["late"] if way == "new" else ["t", "sub"]:
            del group[name]

    then(monkeypatch, delete, moment)
    made = zardine.consolidate_metadata(store)
    check(store, made)
    check(store, zardine.open_consolidated(store))
    assert ("t" in made) == (way == "new")
    assert "late" not in made


def test_what_consolidated_handles_change_while_it_is_consolidated_is_kept(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = zardine.open_consolidated(store)

    def change() -> None:
        group["t"].append(DATA)
        group.create_array("late", data=DATA)

    then(monkeypatch, change, "before")
    made = zardine.consolidate_metadata(store)
    assert made["t"].shape == (6, 4)
    check(store, made)
    check(store, zardine.open_consolidated(store))
    assert "late" in made


def test_what_is_consolidated_while_it_is_erased_is_taken_out_again(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = zardine.open_consolidated(store)
    erase = group_module.erase_node

    def erased(*args: Any, **kwargs: Any) -> None:
        zardine.consolidate_metadata(store)
        erase(*args, **kwargs)

    monkeypatch.setattr(group_module, "erase_node", erased)
    del group["sub"]
    check(store, zardine.open_consolidated(store))
    assert "sub" not in group


class Refusing(MemoryStore):
    """Refuses to write the consolidated metadata, once told to."""

    refuses = False

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if self.refuses and key in ("zarr.json", ".zmetadata"):
            raise StoreError("the disk is full")
        return super().set(key, value, condition=condition)


def test_a_change_is_made_even_if_the_consolidated_metadata_cannot_say_so(store: Any) -> None:
    refusing = Refusing({key: bytes(store.get(key)) for key in store.list()})
    group = zardine.open_consolidated(refusing)
    refusing.refuses = True
    with pytest.warns(ZarrUserWarning, match=r"'sub/x' changed, but .* the disk is full"):
        assert group["sub/x"].append(DATA) == (6, 4)
    assert zardine.open_array(refusing, path="sub/x").shape == (6, 4)
    with pytest.raises(StoreError, match="disk is full"):  # rather than a node that is gone but told of
        del group["t"]
    np.testing.assert_array_equal(zardine.open_array(refusing, path="t")[...], DATA)


def test_metadata_that_someone_removed_is_not_made_anew(store: Any) -> None:
    group = zardine.open_consolidated(store)
    if version_of(store) == 2:
        store.erase(".zmetadata")
    else:
        document = json.loads(bytes(store.get("zarr.json")))
        del document["consolidated_metadata"]
        store.set("zarr.json", json.dumps(document).encode())
    group["sub/x"].append(DATA)
    assert zardine.open_group(store).metadata.consolidated_metadata is None
    assert group["sub/x"].shape == (6, 4)
    store.erase_prefix("")
    with pytest.raises((GroupNotFoundError, ArrayNotFoundError)):
        group["sub/x"].attrs["k"] = 1
    assert list(store.list()) == []


def test_a_group_within(store: Any) -> None:
    """Consolidated metadata of a group that is not the root."""
    zardine.consolidate_metadata(store, path="sub")
    sub = zardine.open_consolidated(store, path="sub")
    del sub["deep/y"]
    sub["x"].append(DATA)
    again = zardine.open_consolidated(store, path="sub")
    assert paths(again) == ["deep", "x"]
    assert again["x"].shape == (6, 4)
