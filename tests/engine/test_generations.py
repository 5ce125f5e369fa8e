"""What comes through a handle whose array was changed since it was opened: what is stored, or an error."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
import zarrista

import zardine
from engine.far_store import FarStore
from zardine.engine import erased, freshness
from zardine.engine.freshness import GENERATION
from zardine.errors import ArrayChangedError, StoreError
from zardine.storage import LocalStore, MemoryStore, Store, WrapperStore
from zardine.stores.base import FAR, ReadCost

VALUES = np.arange(4096, dtype="i4").reshape(64, 64)


@pytest.fixture(params=["local", "memory", "prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return LocalStore(tmp_path / "a.zarr")
    if request.param == "prefix":
        return zardine.storage.PrefixStore(LocalStore(tmp_path), "below/this")
    return MemoryStore()


def there_and_back(store: Any) -> None:
    zardine.reshard(store, shards=None, chunks=(16, 16), grace=0)
    zardine.reshard(store, shards=None, chunks=(32, 8), grace=0)


def other_shards(store: Any) -> None:
    zardine.reshard(store, shards=(64, 32), grace=0)
    zardine.reshard(store, shards=(64, 64), grace=0)


def back_to_the_same(store: Any) -> None:
    found = zardine.open_array(store)
    layout = {"shards": found.shards, "chunks": found.chunks}
    zardine.reshard(store, shards=None, chunks=(4, 4), grace=0)
    zardine.reshard(store, **layout, grace=0)


def replaced(store: Any) -> None:
    zardine.create_array(store, shape=(64, 64), chunks=(32, 8), dtype="i4", overwrite=True)[...] = VALUES


def replaced_by_the_same(store: Any) -> None:
    found = zardine.open_array(store)
    how = {"chunks": found.chunks, "shards": found.shards, "dtype": found.dtype}
    zardine.create_array(store, shape=(64, 64), overwrite=True, **how)[...] = VALUES


UNSHARDED = {"chunks": (8, 32)}
SHARDED = {"chunks": (8, 8), "shards": (32, 32)}


@pytest.mark.parametrize(
    ("how", "change"),
    [
        (UNSHARDED, there_and_back),
        (UNSHARDED, back_to_the_same),
        (UNSHARDED, replaced),
        (UNSHARDED, replaced_by_the_same),
        (SHARDED, other_shards),
        (SHARDED, back_to_the_same),
        (SHARDED, replaced),
        (SHARDED, replaced_by_the_same),
    ],
)
def test_nothing_comes_or_goes_through_a_stale_handle(
    how: dict[str, Any], change: Callable[[Any], None], store: Store
) -> None:
    zardine.create_array(store, shape=(64, 64), dtype="i4", **how)[...] = VALUES
    stale = zardine.open_array(store, mode="r+")
    cached = stale.with_config({"cache": "1 MiB"})
    asked = stale.with_config({"read_missing_chunks": False})
    waiting = zardine.open_array(store, mode="r+")
    assert stale[10, 10] == cached[10, 10] == asked[10, 10] == 650
    change(store)
    attempts: list[Callable[[], Any]] = [
        lambda: stale[10, 10],
        lambda: stale[...],
        lambda: stale[:0],
        lambda: stale[::7, 5],
        lambda: stale.vindex[[1, 60], [2, 61]],
        lambda: cached[10, 10],
        lambda: asked[10, 10],
        lambda: stale.nchunks_initialized,
        lambda: stale.nshards_initialized,
        lambda: stale.__setitem__((10, 10), -1),
        lambda: stale.__setitem__((slice(0, 32), slice(0, 32)), 9),
        lambda: stale.__setitem__(..., 9),
        lambda: stale.append(VALUES),
        lambda: stale.resize((32, 32)),
    ]
    before = {key: bytes(store.get(key) or b"") for key in store.list()}
    for number, attempt in enumerate(attempts):
        if number == 2:
            attempt()  # nothing of what is stored is asked for
            continue
        with pytest.raises(ArrayChangedError, match="resharded or replaced"):
            attempt()
    with waiting.buffered() as buffer:
        with pytest.raises(ArrayChangedError):
            waiting[0, 0] = 5
        buffer.discard()
    assert {key: bytes(store.get(key) or b"") for key in store.list()} == before
    np.testing.assert_array_equal(stale.refresh()[...], VALUES)
    stale[10, 10] = -1
    assert zardine.open_array(store)[10, 10] == -1


def test_what_other_writers_may_change(store: Store) -> None:
    """Attributes, names and shape make no other generation."""
    array = zardine.create_array(store, shape=(64, 64), dtype="i4", **SHARDED)
    array[...] = VALUES
    other = zardine.open_array(store)
    other.attrs["unit"] = "K"
    assert array[10, 10] == 650
    other.resize((80, 64))
    array[10, 10] = 1
    assert array[10, 10] == other[10, 10] == 1


@pytest.mark.parametrize("shards", [None, [[3, 4, 5], [4, 4]]])
def test_grids_of_several_lengths_that_grow(shards: Any, store: Store) -> None:
    chunks = (1, 2) if shards else [[3, 4, 5], [4, 4]]
    array = zardine.create_array(store, shape=(12, 8), dtype="i4", chunks=chunks, shards=shards)
    array[...] = 3
    stale = zardine.open_array(store)
    zardine.open_array(store).append(np.full((9, 8), 4, "i4"))
    assert (stale[...] == 3).all()
    stale[0, 0] = 8
    assert zardine.open_array(store)[0, 0] == 8
    zardine.reshard(store, shards=None, chunks=[[3, 4, 6, 8], [4, 4]] if shards is None else None, grace=0)
    with pytest.raises(ArrayChangedError):
        stale[0, 0]


def old(store: Any, zarr_format: int, **kwargs: Any) -> Any:
    how = {"shape": (64, 64), "chunks": (8, 32), "dtype": "i4", **kwargs}
    if zarr_format == 2:
        return zarr.create_array(store, zarr_format=2, overwrite=True, **how)
    return zardine.create_array(store, zarr_format=1, overwrite=True, **how)


@pytest.mark.parametrize("zarr_format", [2, 1])
@pytest.mark.parametrize(
    "other",
    [{"chunks": (32, 8)}, {"dtype": "<u4"}, {"dtype": ">i4"}, {"order": "F"}, {"compressors": None}, {"fill_value": 7}],
    ids=str,
)
def test_older_formats_that_other_programs_overwrite(zarr_format: int, other: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    old(path, zarr_format)[...] = VALUES
    stale = zardine.open_array(path, mode="r+")
    assert stale[10, 10] == 650
    old(path, zarr_format, **other)[...] = VALUES
    with pytest.raises(ArrayChangedError):
        stale[10, 10]
    with pytest.raises(ArrayChangedError):
        stale[10, 10] = 1
    np.testing.assert_array_equal(stale.refresh()[...], VALUES)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_equal_documents_in_other_words(zarr_format: int, tmp_path: Path) -> None:
    """Another program writes the same layout: attributes change, and members come in another order."""
    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(64, 64), dtype="i4", zarr_format=zarr_format, chunks=(8, 32))[...] = VALUES
    handle = zardine.open_array(path)
    assert handle[10, 10] == 650
    zarr.open_array(path).attrs["by"] = "zarr-python"
    document = path / (".zarray" if zarr_format == 2 else "zarr.json")
    said = json.loads(document.read_text())
    document.write_text(json.dumps(dict(reversed(said.items())), indent=3))
    assert handle[10, 10] == 650
    handle[10, 10] = 651
    assert zarr.open_array(path)[10, 10] == 651


def test_a_program_that_drops_the_id_makes_no_other_generation(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(64, 64), dtype="i4", **SHARDED)[...] = VALUES
    zardine.reshard(path, shards=(64, 64), grace=0)
    handle = zardine.open_array(path)
    document = json.loads((path / "zarr.json").read_text())
    assert document.pop(GENERATION)["must_understand"] is False
    (path / "zarr.json").write_text(json.dumps(document))
    assert handle[10, 10] == 650
    handle[10, 10] = 1
    assert handle[10, 10] == 1


def test_only_reshard_and_overwrite_write_an_id(tmp_path: Path) -> None:
    def has_id(path: Path) -> bool:
        return GENERATION in json.loads((path / "zarr.json").read_text())

    path = tmp_path / "a.zarr"
    array = zardine.create_array(path, shape=(64, 64), dtype="i4", overwrite=True, **SHARDED)
    array[...] = VALUES
    assert not has_id(path)
    array.attrs["a"] = 1
    array.append(VALUES)
    zardine.reshard(path, shards=(32, 32), grace=0)
    assert not has_id(path)  # it is so already
    zardine.reshard(path, shards=(64, 64), grace=0)
    assert has_id(path)
    zardine.copy(zardine.open_array(path), zardine.create_group(tmp_path / "copy.zarr"), name="a")
    zardine.reshard(path, shards=(32, 32), target=tmp_path / "elsewhere.zarr")
    zardine.convert(path, tmp_path / "converted.zarr")
    for name in ("copy.zarr/a", "elsewhere.zarr", "converted.zarr"):
        assert not has_id(tmp_path / name), name
    zardine.create_array(path, shape=(4,), dtype="i4", overwrite=True)
    first = json.loads((path / "zarr.json").read_text())[GENERATION]
    zardine.open_array(path, mode="w", shape=(4,), dtype="i4")
    assert json.loads((path / "zarr.json").read_text())[GENERATION] != first
    assert zardine.verify(path).faults == ()


def make_again(group: zardine.Group) -> None:
    del group["a"]
    group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")


def make_all_again(group: zardine.Group) -> None:
    group = zardine.create_group(group.store, overwrite=True, zarr_format=group.metadata.zarr_format)
    group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")


def move_another_there(group: zardine.Group) -> None:
    group.create_array("b", shape=(4,), chunks=(2,), dtype="i4")
    group.move("a", "elsewhere")
    group.move("b", "a")


def make_again_by_another_way(group: zardine.Group) -> None:
    del zardine.open_group(group.store, mode="a")["a"]
    zardine.create_array(
        group.store_path / "a", shape=(4,), chunks=(2,), dtype="i4", zarr_format=group.metadata.zarr_format
    )


CHANGES = [make_again, make_all_again, move_another_there, make_again_by_another_way]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("used", ["created", "opened", "read", "written", "pickled", "consolidated"])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_what_is_made_where_another_was_erased(
    zarr_format: int, used: str, change: Callable[[zardine.Group], None], store: Store
) -> None:
    group = zardine.create_group(store, zarr_format=zarr_format)
    handle = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    if used == "consolidated":
        group = zardine.consolidate_metadata(store)
    if used != "created":
        handle = group["a"]
    if used == "read":
        assert handle[0] == 0
    if used == "written":
        handle[...] = 1
    sent = pickle.dumps(handle)
    change(zardine.open_group(store, use_consolidated=False))
    if used == "pickled" and zarr_format == 3:
        handle = pickle.loads(sent)
    for _ in range(2):
        with pytest.raises(ArrayChangedError):
            handle[0]
        with pytest.raises(ArrayChangedError):
            handle[...] = 5
        with pytest.raises(ArrayChangedError):
            handle.append(np.zeros(2, "i4"))
    new = zardine.open_group(store, use_consolidated=False)["a"]
    np.testing.assert_array_equal(new[...], 0)
    for each in (new, pickle.loads(pickle.dumps(new)), handle.refresh()):
        each[...] = each[...] + 1
    np.testing.assert_array_equal(new[...], 3)
    assert handle[0] == 3


class Farther(FarStore):
    """A store so far away that nobody looks at a document twice within a lease."""

    @property
    def cost(self) -> ReadCost:
        return FAR


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_what_is_made_far_away_where_another_was_erased(
    zarr_format: int, above: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "GRACE", 0.01)
    store = Farther(MemoryStore())
    assert freshness.is_far(store)
    root = zardine.create_group(store, zarr_format=zarr_format)
    group = root.create_group("g")
    handle = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    if above:
        del root["g"]
        group = root.create_group("g")
        group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    else:
        make_again(group)
    with pytest.raises(ArrayChangedError):
        handle.append(np.ones(2, "i4"))
    with pytest.raises(ArrayChangedError):
        handle[0]
    with pytest.raises(ArrayChangedError):
        handle[...] = 5
    np.testing.assert_array_equal(group["a"][...], 0)


@pytest.mark.parametrize("far", [False, True])
def test_what_is_made_where_a_group_was_moved_away(far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "GRACE", 0.01)
    root = zardine.create_group(Farther(MemoryStore()) if far else MemoryStore(), zarr_format=2)
    handle = root.create_array("g/a", shape=(4,), chunks=(2,), dtype="i4")
    root.move("g", "h")
    new = root.create_array("g/a", shape=(4,), chunks=(2,), dtype="i4")
    with pytest.raises(ArrayChangedError):
        handle[...] = 5
    np.testing.assert_array_equal(new[...], 0)


def test_what_is_made_where_an_incomplete_one_was_erased() -> None:
    opened: list[zardine.Array] = []

    class Full(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key == "a/1" and not opened:
                opened.append(zardine.open_array(self, path="a", mode="r+"))
                raise StoreError("no room")
            return super().set(key, value, condition=condition)

    group = zardine.create_group(Full(MemoryStore()), zarr_format=2)
    with pytest.raises(StoreError, match="no room"):
        group.create_array("a", data=np.arange(4, dtype="i4"), chunks=(2,))
    new = group.create_array("a", data=np.arange(4, dtype="i4"), chunks=(2,))
    with pytest.raises(ArrayChangedError):
        opened[0][...] = 5
    np.testing.assert_array_equal(new[...], np.arange(4))


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_an_array_that_is_made_while_an_incomplete_one_is_erased_stays(
    zarr_format: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far away the document goes first, and those are given time who are writing."""
    monkeypatch.setattr(freshness, "GRACE", 1.0)
    store, gone = Farther(MemoryStore()), threading.Event()
    main, errors = threading.current_thread(), []

    class Full(Farther):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key.startswith(("a/c/", "a/0", "a/1")):  # no chunk is stored: over chunks no array is created
                raise StoreError("no room")
            return super().set(key, value, condition=condition)

        def erase_version(self, key: str, version: Any) -> None:
            super().erase_version(key, version)
            assert threading.current_thread() is not main
            gone.set()

    zardine.create_group(store, zarr_format=zarr_format)

    def fails() -> None:
        full = zardine.open_group(Full(store.store), mode="r+")
        with pytest.raises(StoreError, match="no room") as raised:
            full.create_array("a", data=np.arange(4, dtype="i4"), chunks=(2,))
        errors.append(raised.value)

    failing = threading.Thread(target=fails)
    failing.start()
    gone.wait(10)
    new = zardine.open_group(store, mode="r+").create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    new[...] = 2
    assert failing.is_alive()
    failing.join(10)
    assert "has been changed by others meanwhile" in errors[0].__notes__[-1]
    np.testing.assert_array_equal(new[...], 2)
    new[0] = 3
    np.testing.assert_array_equal(zardine.open_array(store, path="a")[...], [3, 2, 2, 2])


def test_an_array_that_is_made_just_when_another_was_erased_is_not_taken_for_that() -> None:
    class Between(Farther):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key == "a/.zarray":
                freshness.note_removal(self, "a/", ["a/"])  # another thread has just erased what was there
            return super().set(key, value, condition=condition)

    group = zardine.create_group(Between(MemoryStore()), zarr_format=2)
    array = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    array[...] = 1
    np.testing.assert_array_equal(array[...], 1)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_an_erasure_that_is_interrupted_is_noted(zarr_format: int, far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(WrapperStore):
        stops = False

        def without_writers(self, prefix: str) -> Any:
            if self.stops:
                raise KeyboardInterrupt
            return super().without_writers(prefix)

        def wait_for_writers(self, prefix: str) -> bool:
            if self.stops:
                raise KeyboardInterrupt
            return super().wait_for_writers(prefix)

    monkeypatch.setattr(freshness, "GRACE", 0.01)
    store = Interrupted(Farther(MemoryStore()) if far else MemoryStore())
    root = zardine.create_group(store, zarr_format=zarr_format)
    handle = root.create_array("g/a", shape=(4,), chunks=(2,), dtype="i4")
    handle[...] = 1
    store.stops = True
    with pytest.raises(KeyboardInterrupt) as raised:
        del root["g"]
    if not far:
        assert "/g is gone already; what else was there may be stored still" in raised.value.__notes__[0]
    store.stops = False
    new = root.create_array("g/a", shape=(4,), chunks=(2,), dtype="i4", overwrite=True)
    with pytest.raises(ArrayChangedError):
        handle[...] = 5
    np.testing.assert_array_equal(new[...], 0)


@pytest.mark.parametrize("many", [False, True])
def test_what_an_erasure_that_failed_has_left_is_not_taken_for_gone(
    many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(WrapperStore):
        def erase(self, key: str) -> None:
            if key == "g/b/.zarray":
                raise StoreError("refused")
            super().erase(key)

    monkeypatch.setattr("zardine.hierarchy.create._KEPT_OUT", 0 if many else 64)
    root = zardine.create_group(Refusing(MemoryStore()), zarr_format=2)
    a, b = (root.create_array(f"g/{name}", shape=(4,), chunks=(2,), dtype="i4") for name in "ab")
    with pytest.raises(StoreError, match="refused"):
        del root["g"]
    b._handle.watch.forget()
    b[...] = 1
    root.create_array("g/a", shape=(4,), chunks=(2,), dtype="i4")
    with pytest.raises(ArrayChangedError):
        a[...] = 1


def test_a_handle_that_has_seen_nothing_is_of_what_is_made_then() -> None:
    group = zardine.create_group(MemoryStore(), zarr_format=2)
    first = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    unseen = zardine.Array(group.store, "a", replace(first.metadata))
    make_again(group)
    assert unseen[0] == 0
    unseen[...] = 1
    np.testing.assert_array_equal(group["a"][...], 1)


def test_who_refreshes_a_handle_does_not_look_again() -> None:
    store = zardine.storage.CountingStore(Farther(MemoryStore()))
    array = zardine.create_array(store, shape=(4,), chunks=(2,), dtype="i4")
    array.refresh()
    seen = array._handle.watch.seen
    assert seen > 0
    assert array.refresh()._handle.watch.seen == seen


def test_each_change_has_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread makes the next change just when this one was counted."""
    lock = freshness._counting

    class Between:
        is_first = True

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            if self.is_first:
                self.is_first = False
                freshness.note_change()

    monkeypatch.setattr(freshness, "_counting", Between())
    store, before = MemoryStore(), freshness.moment()[1]
    freshness.note_removal(store, "a/", ["a/"])
    assert erased.when_erased(store, "a") == before + 1
    assert freshness.moment()[1] == before + 2


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_attributes_are_not_changed_through_a_stale_handle(zarr_format: int, store: Store) -> None:
    group = zardine.create_group(store, zarr_format=zarr_format)
    handle = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    make_again(group)
    layout = handle._handle.layout
    for change in (lambda: handle.attrs.update(x=1), lambda: handle.update_attributes({"x": 1})):
        with pytest.raises(ArrayChangedError):
            change()
    assert handle._handle.layout is layout
    assert dict(group["a"].attrs) == {}
    handle.refresh().attrs["x"] = 1
    assert dict(group["a"].attrs) == {"x": 1}


def test_a_stale_handle_of_another_process_is_told(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path)
    group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")
    code = (
        "import sys, zardine\n"
        "array = zardine.open_array(sys.argv[1], mode='r+')\n"
        "print(array[0], flush=True)\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    array[...] = 5\n"
        "except zardine.errors.ArrayChangedError:\n"
        "    print('told')\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a")], text=True, **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "0\n"
        make_again(group)
        assert other.communicate("go on\n", timeout=60)[0] == "told\n"
    np.testing.assert_array_equal(group["a"][...], 0)


def test_an_id_is_for_the_places_of_arrays_that_were_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def has_id(name: str) -> bool:
        return GENERATION in json.loads((tmp_path / name / "zarr.json").read_text())

    def make(*names: str) -> None:
        for name in names:
            zardine.create_array(tmp_path / name, shape=(4,), dtype="i4")

    group = zardine.create_group(tmp_path)
    make("g/a", "g/h/a", "other")
    del group["g"]
    make("g/a", "g/h/a", "g/b", "g/h/b", "g2", "other/../new")
    assert [name for name in ("g/a", "g/h/a", "g/b", "g/h/b", "g2", "new", "other") if has_id(name)] == ["g/a", "g/h/a"]
    monkeypatch.setattr(erased, "_MOST_IN_TREE", 2)  # then all of it counts as erased
    del group["g"]
    make("g/never", "g3")
    assert has_id("g/never")
    assert not has_id("g3")
    monkeypatch.setattr(erased, "_MOST", 3)
    for number in range(4):
        make(f"n{number}")
        del group[f"n{number}"]
    make(*(f"n{number}" for number in range(4)))
    assert [has_id(f"n{number}") for number in range(4)] == [False, True, True, True]
    for number in (4, 5, 4, 6, 7):
        make(f"n{number}")
        del group[f"n{number}"]
    make("n4", "n5")
    assert has_id("n4")  # which was erased again after n5
    assert not has_id("n5")


def test_threads_that_erase_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erased, "_erased", {})
    monkeypatch.setattr(erased, "_MOST", 2)
    store = MemoryStore()

    def erases(thread: int) -> None:
        for number in range(500):
            erased.note_erased(store, "", [f"{thread}/{number}"], 1)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(erases, range(8)))
    finally:
        sys.setswitchinterval(before)
    assert len(erased._erased) == 2


def test_a_store_in_memory_is_not_taken_for_one_that_is_gone() -> None:
    for _ in range(50):
        group = zardine.create_group(MemoryStore({}))
        group.create_array("a", shape=(4,), dtype="i4")
        assert GENERATION.encode() not in bytes(group.store.get("a/zarr.json") or b"")
        del group["a"]


def test_other_programs_pass_over_the_id(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(64, 64), dtype="i4", **SHARDED)[...] = VALUES
    zardine.reshard(path, shards=(64, 32), grace=0)
    assert GENERATION in json.loads((path / "zarr.json").read_text())
    theirs = zarr.open_array(path, mode="r+")
    np.testing.assert_array_equal(theirs[...], VALUES)
    theirs[0, 0] = 77
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    opened = tensorstore.open(spec).result()
    assert opened[0, 0].read().result() == 77
    opened[0, 0].write(78).result()
    assert zardine.open_array(path)[0, 0] == 78


def test_zarrs_passes_over_the_id(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(64, 64), dtype="i4", compressors=None, **SHARDED)[...] = VALUES
    zardine.reshard(path, shards=(64, 32), grace=0)
    array = zarrista.Array.open(zarrista.store.FilesystemStore(str(path)))
    np.testing.assert_array_equal(np.asarray(array[0:64, 0:64]), VALUES)


def test_what_is_erased_or_moved_is_no_longer_there(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path / "g.zarr")
    for name in ("erased", "moved", "by hand", "a group"):
        array = group.create_array(name, shape=(4,), chunks=(2,), dtype="i4")
        array[...] = 5
    handles = {name: group[name] for name in ("erased", "moved", "by hand", "a group")}
    for handle in handles.values():
        assert handle[0] == 5
    del group["erased"]
    group.move("moved", "elsewhere")
    shutil.rmtree(tmp_path / "g.zarr/by hand")
    group.create_group("a group", overwrite=True)
    for handle in handles.values():
        with pytest.raises(ArrayChangedError, match=r"no longer stored|replaced by a group"):
            handle[0]
        with pytest.raises(ArrayChangedError):
            handle[0] = 1
    assert sorted(group) == ["a group", "elsewhere"]
    assert list(LocalStore(tmp_path / "g.zarr/by hand").list()) == []


def test_where_a_look_is_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read may be late by a lease after another program's change; a write looks before, and after."""
    inner = MemoryStore()
    array = zardine.create_array(inner, shape=(64, 64), dtype="i4", **UNSHARDED)
    array[...] = VALUES
    counted = zardine.storage.CountingStore(FarStore(inner))
    handle = zardine.open_array(counted, mode="r+")
    monkeypatch.setattr(freshness, "note_change", lambda: 0)
    monkeypatch.setattr("zardine.hierarchy.create.note_change", lambda: 0)  # as if another process had done it
    monkeypatch.setattr("zardine.tools.resharding.in_place.note_change", lambda: 0)
    there_and_back(inner)
    with pytest.raises(ArrayChangedError):
        handle[10, 10] = -1
    monkeypatch.setattr(freshness, "LEASE", 0.0)
    with pytest.raises(ArrayChangedError):
        handle[10, 10]
    np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)


def test_changes_of_this_process_are_noticed_at_once() -> None:
    inner = MemoryStore()
    zardine.create_array(inner, shape=(64, 64), dtype="i4", **UNSHARDED)[...] = VALUES
    handle = zardine.open_array(FarStore(inner), mode="r+")
    assert handle[10, 10] == 650
    replaced(inner)
    with pytest.raises(ArrayChangedError):
        handle[10, 10]


def test_a_write_looks_after_it_too() -> None:
    """Where nobody waits for writers, one that came too late says so."""
    inner = MemoryStore()
    zardine.create_array(inner, shape=(64, 64), dtype="i4", **UNSHARDED)[...] = VALUES

    class Slow(FarStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            there_and_back(inner)
            return super().set(key, value, condition=condition)

    handle = zardine.open_array(Slow(inner), mode="r+")
    with pytest.raises(ArrayChangedError, match="may be lost"):
        handle[:8, :32] = 1


def test_damage_is_not_told_of_another_layout() -> None:
    inner = MemoryStore()
    zardine.create_array(inner, shape=(64, 64), dtype="i4", **SHARDED)[...] = VALUES
    handle = zardine.open_array(FarStore(inner), mode="r+")
    assert handle[0, 0] == 0
    other_shards(inner)
    handle._handle.watch.note(None)  # as if it had just been looked at
    with pytest.raises(ArrayChangedError):
        handle[...]


@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("change", ["overwrite", "erase", "reshard"])
def test_who_changes_the_layout_waits_for_writers(kind: str, change: str, tmp_path: Path) -> None:
    """A writer that was held up between its look and its write ends first."""
    store: Any = LocalStore(tmp_path) if kind == "local" else MemoryStore()
    zardine.create_array(store, shape=(64, 64), dtype="i4", name="a", **UNSHARDED)[...] = VALUES
    looked, goes_on, done = threading.Event(), threading.Event(), threading.Event()

    class Held(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            looked.set()
            assert goes_on.wait(30)
            return super().set(key, value, condition=condition)

    handle = zardine.open_array(Held(store), path="a", mode="r+")

    def write() -> None:
        handle[:8, :32] = -1

    def work() -> None:
        if change == "overwrite":
            zardine.create_array(store, shape=(64, 64), dtype="i4", name="a", overwrite=True, chunks=(32, 8))
        elif change == "erase":
            del zardine.open_group(store)["a"]
        else:
            zardine.reshard(store, path="a", shards=None, chunks=(32, 8))
        done.set()

    writer, changer = threading.Thread(target=write), threading.Thread(target=work)
    writer.start()
    assert looked.wait(30)
    changer.start()
    assert not done.wait(0.3)
    goes_on.set()
    writer.join()
    changer.join()
    assert done.is_set()
    if change == "erase":
        assert [key for key in store.list() if key.startswith("a/")] == []
        return
    found = zardine.open_array(store, path="a")[...]
    assert (found[:8, :32] == (-1 if change == "reshard" else 0)).all()
    assert zardine.verify(store).faults == ()


def test_a_killed_writer_makes_nobody_wait(tmp_path: Path) -> None:
    import subprocess
    import sys

    zardine.create_array(tmp_path, shape=(4,), chunks=(2,), dtype="i4")[...] = 1
    code = (
        "import sys, time; from zardine.storage import LocalStore\n"
        f"with LocalStore({str(tmp_path)!r}).writer('') as known: print(known, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    process.kill()
    process.wait()
    start = time.monotonic()
    assert LocalStore(tmp_path).wait_for_writers("")
    assert time.monotonic() - start < 5
    process.stdout.close()


def test_writers_meanwhile_are_refused(store: Store) -> None:
    """A document that says that the array is about to change is looked at by every write, and read by every reader."""
    array = zardine.create_array(store, shape=(64, 64), dtype="i4", **UNSHARDED)
    array[...] = VALUES
    document = bytes(store.get("zarr.json") or b"")
    store.set(
        "zarr.json", document.replace(b"{", f'{{"{freshness.CLOSING}": {{"must_understand": false}},'.encode(), 1)
    )
    for handle in (array, zardine.open_array(store)):
        assert handle[10, 10] == 650
        with pytest.raises(ArrayChangedError, match="about to change"):
            handle[10, 10] = 1
        with pytest.raises(ArrayChangedError, match="about to change"):
            handle.append(VALUES)
        with pytest.raises(ArrayChangedError, match="about to change"):
            handle.resize((32, 64))
    store.set("zarr.json", document)
    array[10, 10] = 1
    assert array[10, 10] == 1


def test_a_pickled_handle_is_of_its_generation(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(64, 64), dtype="i4", **UNSHARDED)[...] = VALUES
    zardine.reshard(path, shards=None, chunks=(16, 16), grace=0)
    data = pickle.dumps(zardine.open_array(path))
    assert pickle.loads(data)[10, 10] == 650
    back_to_the_same(path)
    for act in (lambda array: array[10, 10], lambda array: array.__setitem__((10, 10), 1)):
        with pytest.raises(ArrayChangedError):
            act(pickle.loads(data))
    shutil.rmtree(path)
    with pytest.raises(ArrayChangedError, match="no longer stored"):
        pickle.loads(data)[10, 10] = 1
    assert not path.exists()


def test_keys_of_another_layout_are_moved_out_of_the_way(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(64, 64), dtype="i4", **UNSHARDED)[...] = VALUES
    (path / "0").mkdir()
    (path / "0/1").write_bytes(b"of a writer that came too late")
    [fault] = zardine.verify(path).faults
    assert (fault.kind, fault.key) == ("unnamed", "0/1")
    assert "zardine.repair" in fault.message
    with pytest.raises(zardine.errors.NodeExistsError, match=r"zardine\.repair"):
        zardine.reshard(path, shards=(64, 64), grace=0)
    assert zardine.repair(path, dry_run=True).actions
    assert (path / "0/1").exists()
    assert zardine.repair(path)
    assert zardine.verify(path).faults == ()
    assert (path / "__zardine/damaged/0/1").read_bytes() == b"of a writer that came too late"
    zardine.reshard(path, shards=(64, 64), grace=0)
    np.testing.assert_array_equal(zardine.open_array(path)[...], VALUES)


def test_what_came_too_late_is_cleaned_by_the_next_resharding() -> None:
    inner = MemoryStore()
    zardine.create_array(inner, shape=(64, 64), dtype="i4", **UNSHARDED)[...] = VALUES

    class Late(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key == "zarr.json" and b'"v2"' in bytes(value):
                inner.set("c/0/0", b"by a program that knows nothing of this")
            return super().set(key, value, condition=condition)

    assert zardine.reshard(Late(inner), shards=None, chunks=(16, 16), grace=0).late == ("c/0/0",)
    assert zardine.reshard(inner, shards=None, chunks=(32, 8), grace=0)
    assert bytes(inner.get("__zardine/damaged/c/0/0") or b"").startswith(b"by a program")
    np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)
    assert zardine.verify(inner).faults == ()


def test_a_resize_between_the_last_pass_and_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document that names the new objects is not of a shape whose chunks were not copied."""
    from zardine.tools.resharding.in_place import InPlace

    inner = MemoryStore()
    array = zardine.create_array(inner, shape=(64, 64), dtype="i4", **UNSHARDED)
    array[...] = VALUES
    drop_beyond = InPlace.drop_beyond

    def grown(self: Any, new: Any) -> None:
        monkeypatch.setattr(InPlace, "drop_beyond", drop_beyond)
        drop_beyond(self, new)
        document = json.loads(bytes(inner.get("zarr.json") or b""))
        document["shape"] = [72, 64]
        inner.set("c/8/0", inner.get("c/0/0") or b"")
        inner.set("zarr.json", json.dumps(document).encode())

    monkeypatch.setattr(InPlace, "drop_beyond", grown)
    zardine.reshard(inner, shards=None, chunks=(16, 16), grace=0)
    found = zardine.open_array(inner)
    assert found.shape == (72, 64)
    np.testing.assert_array_equal(found[64:, :32], VALUES[:8, :32])
