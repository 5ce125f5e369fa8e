"""An array whose data cannot be stored when it is made is not left as one that looks whole."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zardine
import zardine.xarray
from crash.space import Space, full_disk, small_files
from engine.far_store import Far, FarStore
from zardine.errors import ContainsArrayError, StoreError
from zardine.storage import Condition, CountingStore, LocalStore, MemoryStore, WrapperStore, ZipStore

VALUES = np.random.default_rng(6).integers(0, 2**60, (8, 1000))
OTHER = np.arange(12)


class Failing(WrapperStore):
    """A store that takes ``at`` puts of chunks, and fails at all others."""

    at: int | None = None
    error: type[BaseException] = StoreError
    refuses_to_erase = False
    meanwhile: Callable[[], object] | None = None

    @property
    def files(self) -> None:
        return None

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        if self.at is not None and not key.endswith(("zarr.json", ".zarray", ".zattrs", ".zgroup", "meta", "attrs")):
            self.at -= 1
            if self.at < 0:
                if self.meanwhile is not None:
                    self.meanwhile()
                raise self.error("no room")
        return super().set(key, value, condition=condition)

    def erase_version(self, key: str, version: Any) -> None:
        if self.refuses_to_erase:
            raise StoreError("cannot be erased")
        super().erase_version(key, version)


def make(store: Any, way: str, **options: Any) -> Any:
    chunks = {"chunks": (2, 1000)}
    if way == "create_array":
        return zardine.create_array(store, name="a/b", data=VALUES, **chunks, **options)
    if way == "from_array":
        source = zardine.create_array(MemoryStore(), data=VALUES, chunks=(2, 1000))
        return zardine.from_array(store, data=source, name="a/b", **options)
    if way == "create":
        return zardine.create(data=VALUES, dtype=VALUES.dtype, store=store, path="a/b", chunks=(2, 1000), **options)
    if way == "save":
        return zardine.save_array(store, VALUES, path="a/b", **chunks, **options)
    group = zardine.open_group(store, path="a", mode="a", zarr_format=options.pop("zarr_format", None))
    if way == "Group.create_array":
        return group.create_array("b", data=VALUES, **chunks, **options)
    assert way == "copy"
    zardine.copy(zardine.create_array(MemoryStore(), data=VALUES, chunks=(2, 1000)), group, "b", if_exists="replace")
    return None


WAYS = ["create_array", "from_array", "create", "save", "Group.create_array"]


@pytest.mark.parametrize("error", [StoreError, KeyboardInterrupt], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("way", [*WAYS, "copy"])
def test_a_new_array_is_gone(way: str, far: bool, error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zardine.engine.freshness.GRACE", 0.01)
    store = Failing(FarStore(MemoryStore()) if far else MemoryStore())
    store.at, store.error = 2, error
    with pytest.raises(error) as raised:
        make(store, way)
    assert "/a/b was erased again, since not all of its data was stored" in raised.value.__notes__[-1]
    assert list(store.list_prefix("a/b/")) == []
    store.at = None
    make(store, way)
    assert (zardine.open_array(store, path="a/b")[...] == VALUES).all()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("attributes", [None, {"unit": "m"}])
def test_of_all_versions(version: int, attributes: Any) -> None:
    store = Failing(MemoryStore())
    store.at = 3
    with pytest.raises(StoreError, match="no room"):
        zardine.create_array(store, name="x", data=VALUES, chunks=(2, 1000), zarr_format=version, attributes=attributes)
    assert list(store.list_prefix("x/")) == []


@pytest.mark.parametrize("version", [2, 3])
def test_beside_foreign_keys(version: int) -> None:
    """At the root of a store there may be all sorts of things, which are none of the array's."""
    store = Failing(MemoryStore())
    foreign = {"README": b"read me", "c/notes": b"1", "c/0/0/more": b"2", {2: "c/9/9", 3: "9.9"}[version]: b"3"}
    for key, value in foreign.items():
        store.set(key, value)
    store.at = 3
    with pytest.raises(StoreError, match="no room"):
        zardine.create_array(store, data=VALUES, chunks=(2, 1000), zarr_format=version)
    assert {key: bytes(store.get(key) or b"") for key in store.list()} == foreign


@pytest.mark.parametrize("way", [*WAYS, "copy"])
def test_what_was_replaced_is_said(way: str) -> None:
    store = Failing(MemoryStore())
    zardine.create_array(store, name="a/b", data=OTHER)
    store.at = 1
    options = {} if way == "copy" else {"overwrite": True}
    with pytest.raises(StoreError, match="no room") as raised:
        make(store, way, **options)
    assert "overwrite=True had erased what was there before" in raised.value.__notes__[-1]
    assert list(store.list_prefix("a/b/")) == []


def test_where_it_cannot_be_erased_that_is_said() -> None:
    store = Failing(MemoryStore())
    store.at, store.refuses_to_erase = 1, True
    with pytest.raises(StoreError, match="no room") as raised:
        make(store, "create_array")
    assert "holds a part of the data: it could not be erased again (cannot be erased)" in raised.value.__notes__[-1]


def test_what_others_have_changed_meanwhile_stays() -> None:
    store = Failing(MemoryStore())
    store.at = 1

    def change() -> None:
        store.meanwhile = None
        zardine.open_array(store, path="a/b", mode="r+").attrs["mine"] = 1

    store.meanwhile = change
    with pytest.raises(StoreError, match="no room") as raised:
        make(store, "create_array")
    assert "has been changed by others meanwhile" in raised.value.__notes__[-1]
    assert zardine.open_array(store, path="a/b").attrs["mine"] == 1


def test_consolidated_metadata_does_not_tell_of_it() -> None:
    store = Failing(MemoryStore())
    zardine.create_array(store, name="a/b", data=OTHER)
    zardine.create_array(store, name="a/kept", data=OTHER)
    group = zardine.consolidate_metadata(store, path="a")
    for replace in (
        lambda: group.create_array("b", data=VALUES, chunks=(2, 1000), overwrite=True),
        lambda: group.__setitem__("kept", VALUES),
    ):
        store.at = 0
        with pytest.raises(StoreError, match="no room"):
            replace()
    assert sorted(group) == sorted(zardine.open_group(store, path="a", use_consolidated=True)) == []
    store.at = None
    zardine.create_array(store, name="x", data=OTHER)
    root = zardine.consolidate_metadata(store)
    with pytest.raises(zardine.errors.ContainsArrayError):
        root.create_array("x", data=OTHER)
    assert "x" in zardine.open_group(store, use_consolidated=True)


@pytest.fixture(params=["disk", "file size"])
def space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Space]:
    with ExitStack() as stack:
        found = stack.enter_context(full_disk(tmp_path)) if request.param == "disk" else None
        yield stack.enter_context(small_files(tmp_path)) if found is None else found


@pytest.mark.parametrize("shards", [None, (4, 1000)])
def test_on_a_full_disk(space: Space, shards: Any) -> None:
    store = space.folder / "s.zarr"
    zardine.create_group(store)
    space.leave(10_000)
    with pytest.raises(StoreError) as raised:
        zardine.create_array(store, name="a", data=VALUES, chunks=(2, 1000), shards=shards)
    assert raised.value.errno == space.errno
    space.free()
    assert [path.name for path in store.rglob("*")] == ["zarr.json"]


def test_in_an_archive(tmp_path: Path) -> None:
    class Full(ZipStore):
        at = 2

        def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
            self.at -= key.startswith("a/c/")
            if self.at < 0:
                raise StoreError("no room")
            return super().set(key, value, condition=condition)

    with Full(tmp_path / "s.zip", mode="w") as store:
        with pytest.raises(StoreError, match="no room"):
            zardine.create_array(store, name="a", data=VALUES, chunks=(2, 1000))
        assert list(store.list_prefix("a/")) == []


ENCODINGS = [
    *((3, {"name": name, "separator": separator}) for name in ("default", "v2") for separator in "./"),
    *((2, {"name": "v2", "separator": separator}) for separator in "./"),
]


@pytest.mark.parametrize(("version", "encoding"), ENCODINGS)
@pytest.mark.parametrize("shape", [(), (8,), (8, 8)], ids=len)
@pytest.mark.parametrize("path", ["", "a", "g/a"])
@pytest.mark.parametrize("kind", [MemoryStore, FarStore, LocalStore, ZipStore])
def test_chunks_without_a_document_are_refused(
    kind: Any, path: str, shape: tuple[int, ...], version: int, encoding: Any, tmp_path: Path
) -> None:
    options: Any = {
        "shape": shape,
        "chunks": (2,) * len(shape),
        "dtype": "i4",
        "zarr_format": version,
        "chunk_key_encoding": encoding,
    }
    where: Any = {LocalStore: tmp_path, ZipStore: tmp_path / "a.zip", FarStore: MemoryStore()}.get(kind)
    store = kind(where, mode="w") if kind is ZipStore else kind(*[where] * (where is not None))
    with store:
        array = zardine.create_array(store, name=path, **options)
        array[...] = 7
        prefix = f"{path}/" if path else ""
        for key in [*store.list_prefix(prefix)]:
            if key.endswith(("zarr.json", ".zarray", ".zattrs", ".zgroup")):
                store.erase(key)
        left = next(store.list_prefix(prefix))
        with pytest.raises(ContainsArrayError, match=rf"chunks without a document.*{re.escape(repr(left))}.*overwrite"):
            zardine.create_array(store, name=path, **options)
        assert next(store.list_prefix(prefix)) == left
        array = zardine.create_array(store, name=path, overwrite=True, **options)
        assert not array[...].any()


DOORS: dict[str, Callable[[Any], Any]] = {
    "create": lambda store: zardine.create(8, chunks=2, dtype="i4", store=store, path="a"),
    "zeros": lambda store: zardine.zeros(8, chunks=2, dtype="i4", store=store, path="a"),
    "full_like": lambda store: zardine.full_like(np.zeros(8), fill_value=0, chunks=2, store=store, path="a"),
    "save": lambda store: zardine.save_array(store, np.zeros(8), chunks=(2,), path="a"),
    "open_array": lambda store: zardine.open_array(store, path="a", mode="a", shape=8, chunks=2, dtype="i4"),
    "group": lambda store: zardine.open_group(store).create_array("a", shape=8, chunks=2, dtype="i4"),
    "require_array": lambda store: zardine.open_group(store).require_array("a", shape=8, chunks=2, dtype="i4"),
    "hierarchy": lambda store: [
        *zardine.create_hierarchy(
            store=store, nodes={"a": zardine.create_array({}, shape=8, chunks=2, dtype="i4").metadata}
        )
    ],
    "asynchronous": lambda store: asyncio.run(
        zardine.AsyncGroup(zardine.open_group(store)).create_array("a", shape=8, chunks=2, dtype="i4")
    ),
    "xarray": lambda store: zardine.xarray.to_zarr(xr.Dataset({"a": ("x", np.zeros(8))}), store, mode="a"),
}


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_chunks_without_a_document(door: str, beyond: bool) -> None:
    store = MemoryStore()
    zardine.create_group(store)
    left = "a/c/1000" if beyond else "a/c/1"
    store.set(left, bytes(8))
    with pytest.raises(ContainsArrayError, match=f"chunks without a document.*{left}"):
        DOORS[door](store)
    assert [*store.list_prefix("a/")] == [left]


@pytest.mark.parametrize(("left", "lists"), [([], 1), (["a/README"], 2), (["a/c/notes"], 4)])
def test_looking_for_chunks_costs_a_request_only_in_a_folder_of_chunks(left: list[str], lists: int) -> None:
    store = CountingStore(MemoryStore())
    zardine.create_group(store)
    for key in left:
        store.set(key, b"1")
    store.reset()
    zardine.create_array(Far(store), name="a", shape=8, chunks=2, dtype="i4")
    assert store.counts.lists == lists
    assert store.counts.reads == (5 if left else 1)
