"""To erase the name of a directory, as if it were a key, removes nothing: stores of files say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from zardine.errors import StoreError
from zardine.storage import (
    CachedStore,
    CountingStore,
    FsspecStore,
    LocalStore,
    MemoryStore,
    PrefixStore,
    Store,
    WrapperStore,
    ZipStore,
)

OF_FILES: dict[str, Callable[[Path], Store]] = {
    "local": LocalStore,
    "durable": lambda path: LocalStore(path, durable=True),
    "prefix": lambda path: PrefixStore(LocalStore(path), "below"),
    "wrapper": lambda path: WrapperStore(LocalStore(path)),
    "counting": lambda path: CountingStore(LocalStore(path)),
    "cached": lambda path: CachedStore(LocalStore(path)),
    "fsspec": lambda path: FsspecStore(fsspec.filesystem("file"), path=str(path)),
    "fsspec within a directory": lambda path: FsspecStore(
        fsspec.filesystem("dir", path=str(path), target_protocol="file", auto_mkdir=True), path="x"
    ),
    "fsspec in memory": lambda path: FsspecStore(fsspec.filesystem("memory"), path=str(path)),
}
OF_KEYS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: MemoryStore(),
    "prefix of memory": lambda path: PrefixStore(MemoryStore(), "below"),
    "zip": lambda path: ZipStore(path / "a.zip", mode="w"),
}
ERASE: dict[str, Callable[[Store, str], object]] = {
    "erase": lambda store, key: store.erase(key),
    "delete": lambda store, key: store.delete(key),
    "erase_values": lambda store, key: store.erase_values([key]),
    "erase_version": lambda store, key: store.erase_version(key, None),
}


@pytest.mark.parametrize("erase", ERASE.values(), ids=ERASE)
@pytest.mark.parametrize("key", ["folder", "a/folder"])
@pytest.mark.parametrize("make", OF_FILES.values(), ids=OF_FILES)
def test_stores_of_files_say_that_it_is_a_directory(
    make: Callable[[Path], Store], key: str, erase: Callable[[Store, str], object], tmp_path: Path
) -> None:
    store = make(tmp_path)
    for name in (f"{key}/x", f"{key}/y/z"):
        store.set(name, b"value")
    with pytest.raises(StoreError, match=rf"erase key '(below/)?{key}' of .*a prefix of other keys"):
        erase(store, key)
    assert list(store.list()) == [f"{key}/x", f"{key}/y/z"]
    assert store.get(f"{key}/x") == b"value"
    store.erase_prefix(f"{key}/")
    erase(store, key)
    assert list(store.list()) == []


@pytest.mark.parametrize("erase", ERASE.values(), ids=ERASE)
@pytest.mark.parametrize("make", OF_KEYS.values(), ids=OF_KEYS)
def test_elsewhere_it_is_a_key_that_is_missing(
    make: Callable[[Path], Store], erase: Callable[[Store, str], object], tmp_path: Path
) -> None:
    store = make(tmp_path)
    store.set("folder/x", b"value")
    erase(store, "folder")
    assert list(store.list()) == ["folder/x"]
    store.set("folder", b"a value, too")
    erase(store, "folder")
    assert list(store.list()) == ["folder/x"]


def test_an_empty_directory_is_no_prefix_of_keys(tmp_path: Path) -> None:
    (tmp_path / "empty" / "within").mkdir(parents=True)
    store = LocalStore(tmp_path)
    store.erase("empty")
    store.erase("empty/within")
    assert (tmp_path / "empty" / "within").is_dir()
    assert list(store.list()) == []
