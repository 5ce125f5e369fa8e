"""Writers that come in between, each at the worst moment: nothing that returned is lost without an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine import freshness
from zardine.errors import ArrayChangedError, CorruptionError, UnsupportedError
from zardine.storage import Condition, LocalStore, MemoryStore, WrapperStore
from zardine.stores.open_files import EditableFile


class Meeting(WrapperStore):
    """Calls ``between`` once, after the next read or before the next write of a key that ends in ``name``.

    Like an object store, it has conditional writes and no locks between processes.
    """

    def __init__(self, inner: Any, *, exclusive: bool = False) -> None:
        super().__init__(inner)
        self.exclusive = exclusive
        self.between: Callable[[], object] | None = None
        self.when, self.name = "read", "c/0"

    def plan(self, when: str, name: str, between: Callable[[], object]) -> None:
        self.when, self.name, self.between = when, name, between

    def meet(self, when: str, key: str) -> None:
        if when == self.when and key.endswith(self.name) and self.between is not None:
            between, self.between = self.between, None
            between()

    def read(self, key: str, *ranges: Any) -> Any:
        reading = super().read(key, *ranges)
        self.meet("read", key)
        return reading

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        self.meet("set", key)
        version = super().set(key, value, condition=condition)
        self.meet("after set", key)
        return version

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        if not self.exclusive:
            yield
            return
        with super().lock(key):
            yield

    @property
    def has_cheap_looks(self) -> bool:
        return self.exclusive

    def writer(self, prefix: str) -> Any:
        return super().writer(prefix) if self.exclusive else nullcontext(False)

    @property
    def lock_is_exclusive(self) -> bool:
        return self.exclusive


@pytest.mark.parametrize("shards", [None, (4,)], ids=["chunks", "shards"])
@pytest.mark.parametrize("kernel", [True, False])
def test_emptying_a_chunk_keeps_what_another_writer_put_there(shards: Any, kernel: bool) -> None:
    inner = MemoryStore()
    store = Meeting(inner)
    kind: Any = "i4" if kernel else "str"
    old, new = (1, 7) if kernel else ("one", "seven")
    array = zardine.create_array(store, shape=(4,), chunks=(2,) if shards else (4,), shards=shards, dtype=kind)
    array[:2] = old
    other = zardine.open_array(inner)
    store.plan("read", "c/0", lambda: other.__setitem__(slice(2, 4), new))
    array[:2] = array.fill_value
    assert store.between is None
    assert other[...].tolist() == [array.fill_value, array.fill_value, new, new]
    array[...] = array.fill_value  # nothing of it is to stay, so the object goes
    assert "c/0" not in inner.list_prefix("")


@pytest.mark.parametrize("strategy", ["append", "in_place"])
@pytest.mark.parametrize("location", ["start", "end"])
def test_a_file_that_another_program_replaces_during_an_edit(
    strategy: Any, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = {"shape": (8, 8), "index_location": location}
    array = zardine.create_array(tmp_path / "a", shape=(8, 8), chunks=(2, 2), shards=shards, dtype="u2")
    array[...] = 1
    other = zardine.create_array(tmp_path / "b", shape=(8, 8), chunks=(2, 2), shards=shards, dtype="u2")
    other[...] = 1
    other[0:2, 0:2] = 50
    edited = array.with_config({"write_strategy": strategy})
    write_at = EditableFile.write_at

    def foreign(file: EditableFile, offset: int, parts: Any) -> None:
        monkeypatch.setattr(EditableFile, "write_at", write_at)
        os.replace(tmp_path / "b/c/0/0", tmp_path / "a/c/0/0")
        write_at(file, offset, parts)

    monkeypatch.setattr(EditableFile, "write_at", foreign)
    edited[4:6, 4:6] = 9
    found = zardine.open_array(tmp_path / "a")[...]
    assert (found[4:6, 4:6] == 9).all()
    assert (found[0:2, 0:2] == 50).all()


def test_a_block_that_is_appended_while_the_array_shrinks() -> None:
    inner = MemoryStore()
    store = Meeting(inner, exclusive=True)
    array = zardine.create_array(store, shape=(16,), chunks=(4,), shards=(8,), dtype="i4")
    array[...] = 1
    blocks: list[tuple[int, ...]] = []
    store.plan("after set", "zarr.json", lambda: blocks.append(zardine.open_array(inner).append(np.full(6, 9, "i4"))))
    thread_free = array.store.lock("zarr.json")
    with thread_free:
        pass  # a lock of this store is one that a thread may take again
    array.resize((10,))
    found = zardine.open_array(inner)
    assert blocks == [(16,)]
    assert found.shape == (16,)


def test_resize_takes_what_others_appended_into_account(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, shape=(4,), chunks=(2,), dtype="i4")
    array[...] = 1
    zardine.open_array(tmp_path).append(np.full(9, 2, "i4"))
    array.resize((3,))
    array.resize((13,))
    assert array[...].tolist() == [1] * 3 + [0] * 10


@pytest.mark.parametrize("strategy", ["append", "in_place"])
def test_a_strategy_that_the_store_lacks_is_refused_before_anything_changes(strategy: Any) -> None:
    array = zardine.create_array(MemoryStore(), shape=(16,), chunks=(2,), shards=(8,), dtype="i4")
    array[...] = 5
    odd = array.with_config({"write_strategy": strategy})
    for change in (lambda: odd.resize((5,)), lambda: odd.append([1]), lambda: odd.__setitem__(0, 1)):
        with pytest.raises(UnsupportedError, match="needs a store of local files"):
            change()
        assert zardine.open_array(array.store).shape == (16,)
        assert (array[...] == 5).all()


@pytest.mark.parametrize(("when", "said"), [("read", "or replaced since"), ("after set", "just now may be lost")])
def test_a_write_that_takes_longer_than_resharding_waits(when: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LEASE", 0.0)
    inner = MemoryStore()
    store = Meeting(inner)
    array = zardine.create_array(store, shape=(16,), chunks=(4,), shards=(8,), dtype="i4")
    array[...] = 1
    slow = zardine.open_array(store)
    store.plan(when, "c/0", lambda: zardine.reshard(inner, shards=(16,), grace=0))
    with pytest.raises(ArrayChangedError, match=said):
        slow[1:3] = 7
    assert store.between is None


def test_each_shard_of_a_long_write_looks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LEASE", 0.0)
    inner = MemoryStore()
    store = Meeting(inner)
    array = zardine.create_array(store, shape=(64,), chunks=(4,), shards=(8,), dtype="i4")
    array[...] = 1
    slow = zardine.open_array(store)
    store.plan("set", "c/2", lambda: zardine.reshard(inner, shards=(16,), grace=0))
    with zardine.config.set({"threads": 1}), pytest.raises(ArrayChangedError):
        slow[...] = 7
    found = zardine.open_array(inner)
    assert found.shards == (16,)
    assert set(found[32:].tolist()) == {1}  # later shards were not written to where nobody looks


def test_a_store_of_files_finds_its_file_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = zardine.create_array(
        LocalStore(tmp_path), shape=(8,), chunks=(2,), shards=(8,), dtype="i4", config={"write_strategy": "append"}
    )
    array[...] = 1
    write_at = EditableFile.write_at

    def erase(file: EditableFile, offset: int, parts: Any) -> None:
        monkeypatch.setattr(EditableFile, "write_at", write_at)
        os.unlink(tmp_path / "c/0")
        write_at(file, offset, parts)

    monkeypatch.setattr(EditableFile, "write_at", erase)
    array[0] = 4
    assert array[...].tolist() == [4, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("shards", [None, (6,), (12,)], ids=["chunks", "shards", "one shard"])
@pytest.mark.parametrize("chosen", [slice(3, 5), slice(None), [3, 4], [0, 1, 2, 3, 4]], ids=str)
def test_a_stale_handle_keeps_what_others_appended(shards: Any, chosen: Any, tmp_path: Path) -> None:
    stale = zardine.create_array(tmp_path, shape=(5,), chunks=(3,), shards=shards, dtype="i4")
    stale[...] = 1
    zardine.open_array(tmp_path).append(np.full(8, 9, "i4"))
    stale.oindex[chosen] = 2
    found = zardine.open_array(tmp_path)[...].tolist()
    assert found[5:] == [9] * 8
    assert found[3:5] == [2, 2]
    stale.oindex[chosen] = 0
    assert zardine.open_array(tmp_path)[5:].tolist() == [9] * 8


@pytest.mark.parametrize("shards", [None, (6,), (12,)], ids=["chunks", "shards", "one shard"])
@pytest.mark.parametrize("kernel", [True, False])
def test_damage_does_not_keep_new_values_from_taking_its_place(shards: Any, kernel: bool, tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, shape=(5,), chunks=(3,), shards=shards, dtype="i4" if kernel else "str")
    array[...] = 7 if kernel else "seven"
    for path in tmp_path.glob("c/*"):
        data = bytearray(path.read_bytes())
        for at in (4, len(data) - 7):
            data[at] ^= 0xFF
        path.write_bytes(data)
    with pytest.raises(CorruptionError):
        array[4] = array.fill_value
    array[...] = 8 if kernel else "eight"
    assert array[...].tolist() == [8 if kernel else "eight"] * 5
