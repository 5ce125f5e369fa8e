"""Stores of vectors that are removed, or make room for a group, while others write them: whole, or nothing is left."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from meddling import Stage, let_play
from zardine import vectors
from zardine.errors import StoreError, ZardineError
from zardine.hierarchy import create
from zardine.storage import LocalStore, MemoryStore, StorePath, WrapperStore
from zardine.vectors.changing import creating

FOUND = [14, 22, 41, 65, 68, 112, 136]
"""Seeds that have found something: some change or other, and removal, that left half a store."""


def _points(count: int) -> Any:
    return np.random.default_rng(count).uniform(0, 100, (count, 2))


def _write(store: Any, *, overwrite: bool = False) -> None:
    vectors.write_points(store, _points(20), bounds=([0, 0], [100, 100]), chunk_shape=20, overwrite=overwrite)


REMOVALS: dict[str, Callable[[Any], object]] = {
    "overwritten": lambda store: zardine.create_group(store, path="g/v", overwrite=True),
    "overwritten above": lambda store: zardine.create_group(store, path="g", overwrite=True),
    "erased": lambda store: zardine.open_group(store, mode="r+").__delitem__("g/v"),
    "erased above": lambda store: zardine.open_group(store, mode="r+").__delitem__("g"),
}

CHANGES: dict[str, Callable[[Any], object]] = {
    "append": lambda place: vectors.append_points(place, _points(5)),
    "shard": lambda place: vectors.shard_store(place, 2),
    "pyramid": lambda place: vectors.build_pyramid(place, factors=[(2, 1)]),
    "replace": lambda place: _write(place, overwrite=True),
    "write": _write,
}


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("seed", range(1000) if SOAK else FOUND)
def test_a_store_that_is_removed_while_it_is_changed(
    monkeypatch: pytest.MonkeyPatch, removal: str, change: str, seed: int
) -> None:
    inner = MemoryStore()
    zardine.create_group(inner)
    zardine.create_group(inner, path="g")
    if change != "write":
        _write(StorePath(inner, "g/v"))
    chosen = random.Random(f"{seed} {removal} {change}")
    stage = Stage(chosen.randrange(10**6), inner)
    let_play(monkeypatch, stage)

    def changes() -> None:
        stage.sleep(chosen.choice([0, 0.001, 0.01]))
        with suppress(ZardineError):
            for _ in range(2):
                CHANGES[change](StorePath(stage.store(), "g/v"))

    def removes() -> None:
        with suppress(KeyError):  # there is nothing yet
            REMOVALS[removal](stage.store())

    stage.run(changes, removes)
    left = sorted(inner.list_prefix("g/v/"))
    if removal == "overwritten":
        assert "g/v/zarr.json" in left
        left = left[1:] if left == ["g/v/zarr.json"] else left
    if left:
        assert not vectors.validate(StorePath(inner, "g/v")).findings, left
        assert len(vectors.read_points(StorePath(inner, "g/v")).positions) >= 20


MOVES = {**REMOVALS, "moved": lambda store: zardine.open_group(store, mode="r+").move("g", "h")}


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("removal", MOVES)
def test_a_removal_waits_for_a_writer_of_local_files(tmp_path: Path, removal: str) -> None:
    store = LocalStore(tmp_path)
    zardine.create_group(store)
    zardine.create_group(store, path="g")
    _write(StorePath(store, "g/v"))
    with store.lock("g/v/0/zarr.json"):
        waiting = threading.Thread(target=MOVES[removal], args=(LocalStore(tmp_path),))
        waiting.start()
        waiting.join(0.2)
        vectors.append_points(StorePath(store, "g/v"), _points(5))
        assert waiting.is_alive()
    waiting.join()
    left = [key for key in store.list() if not key.startswith("h/")]
    assert left == ["g/v/zarr.json", "g/zarr.json", "zarr.json"][3 - len(left) :]
    if removal == "moved":
        assert len(vectors.read_points(StorePath(store, "h/v")).positions) == 25


@pytest.mark.parametrize("removal", ["overwritten above", "erased above"])
@pytest.mark.parametrize("chosen", ["v0", "v4", "v5"])
def test_of_more_stores_than_can_be_locked_none_is_begun_while_it_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, removal: str, chosen: str
) -> None:
    """The writer comes when all were waited for: it is waited for again, before anything of its store is gone."""
    monkeypatch.setattr(create, "_KEPT_OUT", 2)
    store = LocalStore(tmp_path)
    zardine.create_group(store)
    zardine.create_group(store, path="g")
    for number in range(6):
        _write(StorePath(store, f"g/v{number}"))
    array = zardine.create_array(store, name="g/v5/more", shape=(4,), dtype="i4")
    begins, is_written, erase, failed = threading.Event(), threading.Event(), LocalStore.erase, []

    def erases(self: LocalStore, key: str) -> None:
        if not begins.is_set() and threading.current_thread() is removing:
            begins.set()
            is_written.wait(0.5)
        erase(self, key)

    def writes() -> None:
        begins.wait(10)
        key = f"g/{chosen}/0/zarr.json"
        with suppress(ZardineError), store.lock(key):
            is_written.set()
            if store.exists(key):  # then it stays until we are done
                removing.join(0.3)
                try:
                    vectors.append_points(StorePath(store, f"g/{chosen}"), _points(5))
                except ZardineError as error:
                    failed.append(error)

    monkeypatch.setattr(LocalStore, "erase", erases)
    removing = threading.Thread(target=REMOVALS[removal], args=(LocalStore(tmp_path),))
    writing = threading.Thread(target=writes)
    writing.start()
    removing.start()
    removing.join(30)
    writing.join(30)
    assert not removing.is_alive()
    assert not failed
    assert list(store.list()) in (["zarr.json"], ["g/zarr.json", "zarr.json"])
    with pytest.raises(ZardineError):
        array[...] = 1
    again = zardine.create_array(store, name="g/v5/more", shape=(4,), dtype="i4")
    with pytest.raises(ZardineError):
        array[...] = 1
    np.testing.assert_array_equal(again[...], 0)


class _FarStore(WrapperStore):
    """Locks keep nobody out, as on object stores."""

    @property
    def lock_is_exclusive(self) -> bool:
        return False

    def lock(self, key: str) -> Any:
        return nullcontext()


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_a_store_that_others_begin_where_one_is_written_is_theirs(
    monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    inner = MemoryStore()
    zardine.create_group(inner)
    zardine.create_group(inner, path="g")
    write_nodes = creating.write_nodes

    def overtaken(*args: Any) -> Any:
        found = write_nodes(*args)
        monkeypatch.setattr(creating, "write_nodes", write_nodes)
        zardine.create_group(inner, path="g", overwrite=True)
        if is_made_anew:
            _write(StorePath(inner, "g/v"))
        return found

    monkeypatch.setattr(creating, "write_nodes", overtaken)
    with pytest.raises(StoreError, match="somebody else has erased"):
        _write(StorePath(_FarStore(inner), "g/v"))
    if is_made_anew:
        assert not vectors.validate(StorePath(inner, "g/v")).findings
        assert len(vectors.read_points(StorePath(inner, "g/v")).positions) == 20
    else:
        assert not list(inner.list_prefix("g/v/"))


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_store_takes_the_place_of_one_whose_removal_was_cut_off(tmp_path: Path, kind: str) -> None:
    """Its documents are gone, and its chunks are there."""
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    zardine.create_group(store)
    _write(StorePath(store, "v"))
    store.erase_values([key for key in store.list_prefix("v/") if key.endswith("zarr.json")])
    vectors.write_points(
        StorePath(store, "v"), _points(2) / 10, bounds=([0, 0], [100, 100]), chunk_shape=20, overwrite=True
    )
    assert not vectors.validate(StorePath(store, "v")).findings
    assert len(vectors.read_points(StorePath(store, "v")).positions) == 2


@pytest.mark.parametrize("most", [2, 5, 64])
@pytest.mark.parametrize(
    ("places", "erased"),
    [
        ([f"g/t{number}/0" for number in range(8)], "g"),
        ([f"g/A/{number}/0/points/0" for number in range(8)], "g"),
        ([f"g/0/t{number}/0" for number in range(8)], "g/0"),
        (["g/0/0/0/0/0/0", "g/0/a/0/0", "g/0/b/0"], "g/0/0"),
    ],
)
def test_no_document_of_turns_goes_without_its_lock(
    places: list[str], erased: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of more trees than can be locked at a time, of which some lie in others."""
    monkeypatch.setattr(create, "_KEPT_OUT", most)
    held: list[str] = []
    wrong: list[str] = []

    class Locked(WrapperStore):
        @contextmanager
        def lock(self, key: str) -> Iterator[object]:
            with super().lock(key) as lock:
                held.append(key)
                try:
                    yield lock
                finally:
                    held.remove(key)

        def erase(self, key: str) -> None:
            if f"/{key}".endswith("/0/zarr.json") and self.exists(key):
                # and nobody may be writing into a tree around it, for which the document of that has to be there
                around = [f"{key[: end.start()]}/zarr.json" for end in re.finditer("(?<=/0)/", key)]
                wrong.extend(
                    each for each in around if each.startswith(erased) and self.exists(each) and each not in held
                )
            super().erase(key)

    root = zardine.create_group(Locked(MemoryStore()))
    for place in places:
        root.create_group(place)
    del root[erased]
    assert not wrong
    assert erased not in root
    assert not held
