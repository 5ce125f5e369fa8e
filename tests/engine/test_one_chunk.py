"""A block within one chunk is read the short way out of every store, and what is unusual is still noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ArrayChangedError, ChunkNotFoundError, CorruptionError
from zardine.storage import CachedStore, CountingStore, LocalStore, MemoryStore
from zardine.stores.base import Store

VALUES = np.arange(1, 65, dtype="i4").reshape(8, 8)
BLOCKS = [np.s_[2:4, 4:6], np.s_[3, 4:6], np.s_[3:4, 5], (3, 5), (-1, -1), np.s_[0:1, 0:2]]
STORES: dict[str, Callable[[Path], Store]] = {
    "local": LocalStore,
    "memory": lambda _: MemoryStore(),
    "counted": lambda path: CountingStore(LocalStore(path)),
    "cached": lambda _: CachedStore(MemoryStore()),
    "cached for good": lambda _: CachedStore(MemoryStore(), immutable=True),
}

pytestmark = pytest.mark.skipif(not zardine.__kernel__, reason="without the kernel there is one way only")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path / "base")


def made(store: Store, **arguments: Any) -> zardine.Array:
    """One shard of 4 by 4 inner chunks, or these as objects, opened anew."""
    options: dict[str, Any] = {"chunks": (2, 2), "shards": (8, 8), **arguments}
    array = zardine.create_array(store, name="100%d", shape=(8, 8), dtype="i4", **options)
    array[...] = VALUES
    return zardine.open_array(store, path="100%d", mode="r+")


@pytest.fixture
def no_plans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, the long way is closed."""

    def refuse(*_: object) -> None:
        raise AssertionError("the long way was taken")

    return lambda: monkeypatch.setattr("zardine.nodes.buffered.read_plan", refuse)


@pytest.mark.parametrize("shards", [(8, 8), None])
@pytest.mark.parametrize("cache", [0, 2**20])
def test_the_short_way_gives_the_same(store: Store, shards: Any, cache: int, no_plans: Callable[[], None]) -> None:
    array = made(store, shards=shards).with_config({"cache": cache})
    assert all(np.array_equal(array[block], VALUES[block]) for block in BLOCKS)
    if not cache or store.has_cheap_looks:
        no_plans()
    for block in BLOCKS:
        found = array[block]
        assert np.array_equal(found, VALUES[block])
        assert found.shape == VALUES[block].shape
        assert found.dtype == VALUES.dtype
        if found.shape:
            found[...] = 0  # nobody else sees that
            assert np.array_equal(array[block], VALUES[block])


BOXES = [np.s_[1:7, 3:6], np.s_[3, :], np.s_[:, 5], np.s_[:, :], np.s_[2:5, -1]]


@pytest.mark.parametrize("shards", [(8, 8), (4, 4), None])
def test_several_chunks_of_files_are_read_without_a_plan(
    tmp_path: Path, shards: Any, no_plans: Callable[[], None]
) -> None:
    other = made(LocalStore(tmp_path), shards=shards)
    array = zardine.open_array(LocalStore(tmp_path), path="100%d", mode="r")
    no_plans()
    for value in (None, 77):
        expected = VALUES.copy()
        if value is not None:
            other[4, 4] = expected[4, 4] = value
        for order in "CF":
            for box in BOXES:
                found = array.with_config({"order": order})[box]
                assert np.array_equal(found, expected[box])
                assert found.flags[f"{order}_CONTIGUOUS"]


def test_several_chunks_some_of_which_are_not_stored_or_damaged(tmp_path: Path) -> None:
    array = made(LocalStore(tmp_path), shards=(4, 4))
    expected = VALUES.copy()
    array[:4, :4] = expected[:4, :4] = 0  # a shard that is gone
    array[4:6, 4:6] = expected[4:6, 4:6] = 0  # a chunk
    array = zardine.open_array(array.store, path="100%d", mode="r+")
    for box in BOXES:
        assert np.array_equal(array[box], expected[box])
    strict = array.with_config({"read_missing_chunks": False})
    assert np.array_equal(strict[6:8, 0:8], expected[6:8, 0:8])
    with pytest.raises(ChunkNotFoundError):
        strict[4:8, 0:8]
    shard = tmp_path / "100%d" / "c" / "1" / "1"
    data = bytearray(shard.read_bytes())
    data[2] ^= 1
    shard.write_bytes(data)
    with pytest.raises(CorruptionError, match="chunk"):
        array[4:8, 0:8]


@pytest.mark.parametrize("shards", [(8, 8), None])
def test_what_others_write_is_seen(store: Store, shards: Any) -> None:
    array, other = made(store, shards=shards), zardine.open_array(store, path="100%d", mode="r+")
    if isinstance(store, CachedStore):
        other = zardine.open_array(store.store, path="100%d", mode="r+")
        if store._immutable:
            assert array[3, 5] == VALUES[3, 5]
            return
    for value in 100, 200, 300:
        assert array[3, 5] == (VALUES[3, 5] if value == 100 else value - 100)
        other[3, 5] = value
        assert array[3, 5] == value
        other[3:5, 4:6] = value
        assert array[2:4, 4:6].tolist() == [[*VALUES[2, 4:6].tolist()], [value, value]]


def test_a_chunk_that_is_not_stored(store: Store) -> None:
    array = made(store)
    array[2:4, 4:6] = 0
    array = zardine.open_array(store, path="100%d", mode="r+")
    assert array[2:4, 4:6].tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ChunkNotFoundError, match=r"chunk \(1, 2\)"):
        array.with_config({"read_missing_chunks": False})[2:4, 4:6]
    store.erase("100%d/c/0/0")
    if not getattr(store, "_immutable", False):
        assert array[3, 5] == 0


@pytest.mark.parametrize("warm", [False, True])
def test_damage_is_named(store: Store, warm: bool) -> None:
    array = made(store)
    inner = store.store if isinstance(store, CachedStore) else store
    if warm:
        assert array[3, 5] == VALUES[3, 5]
    reading = inner.read("100%d/c/0/0")
    assert reading is not None
    data = bytearray(reading.parts[0])
    data[: len(data) // 2] = bytes(len(data) // 2)
    inner.set("100%d/c/0/0", bytes(data))
    if warm and getattr(store, "_immutable", False):
        return
    errors = {}
    for row, column in np.ndindex(4, 4):
        try:
            assert array[2 * row, 2 * column] == VALUES[2 * row, 2 * column]
        except CorruptionError as error:
            errors[row, column] = error
    assert len(errors) >= 4
    assert all((error.chunk, error.key) == (chunk, "100%d/c/0/0") for chunk, error in errors.items())


def test_another_array_in_its_place_is_noticed(store: Store) -> None:
    array = made(store)
    assert array[3, 5] == VALUES[3, 5]
    zardine.create_array(store, name="100%d", shape=(8, 8), chunks=(4, 4), dtype="i2", overwrite=True)
    with pytest.raises(ArrayChangedError):
        array[3, 5]
