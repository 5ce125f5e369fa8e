"""Folders of very many files are listed a part at a time, in the order of any store."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.stores.local import file_tree
from zardine.stores.local.store import LocalStore
from zardine.stores.memory import MemoryStore

NAMES = st.text("ab.-é", min_size=1, max_size=4).filter(lambda name: name.strip("."))
KEYS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@settings(max_examples=examples(60), deadline=None)
@given(st.sets(KEYS, max_size=25), st.integers(1, 5))
def test_a_part_at_a_time_gives_the_same_keys(
    tmp_path_factory: pytest.TempPathFactory, keys: set[str], most: int
) -> None:
    local, model = LocalStore(tmp_path_factory.mktemp("store")), MemoryStore()
    for key in sorted(keys):
        if not any(other.startswith(f"{key}/") for other in keys):
            local.set(key, b"x")
            model.set(key, b"x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_tree, "MOST_NAMES", most)
        for prefix in ("", "a/", "b/a/", "none/"):
            assert list(local.list_prefix(prefix)) == list(model.list_prefix(prefix))
            assert local.list_dir(prefix) == model.list_dir(prefix)


def test_files_that_stay_are_listed_once_while_others_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tree, "MOST_NAMES", 4)
    store, stay = LocalStore(tmp_path), [f"{i:03}" for i in range(0, 100, 2)]
    for name in stay:
        store.set(name, b"x")
    found = []
    for number, key in enumerate(store.list_prefix("")):
        found.append(key)
        store.set(f"{(37 * number) % 100 | 1:03}", b"x")
        store.erase(f"{(53 * number) % 100 | 1:03}")
    assert found == sorted(set(found))
    assert [key for key in found if key in stay] == stay


def test_names_of_a_large_folder_are_not_all_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10_000):
        (tmp_path / f"c.{number}").touch()
    store, wanted = LocalStore(tmp_path), sorted(f"c.{number}" for number in range(10_000))
    assert list(store.list_prefix("")) == wanted
    monkeypatch.setattr(file_tree, "MOST_NAMES", 1000)
    tracemalloc.start()
    try:
        assert all(key == name for key, name in zip(store.list_prefix(""), wanted, strict=True))
        assert tracemalloc.get_traced_memory()[1] < 400_000
    finally:
        tracemalloc.stop()
