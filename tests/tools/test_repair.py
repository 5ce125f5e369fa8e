"""``zardine.repair``: what is readable can be read again, by others too, and nothing is made up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from engine.test_writers_that_meet import Meeting
from zardine.errors import CorruptionError, StoreError
from zardine.sharding.index import encode_index
from zardine.storage import MemoryStore, WrapperStore

VALUES = np.arange(400, dtype="i4").reshape(20, 20)


def make(store: Any, location: str = "end", **more: Any) -> zardine.Array:
    settings = {"shape": (20, 20), "chunks": (2, 5), "dtype": "i4", "fill_value": -1, **more}
    array = zardine.create_array(store, shards={"shape": (10, 10), "index_location": location}, **settings)
    array[...] = VALUES
    return array


def read_by_others(path: Path) -> list[np.ndarray[Any, Any]]:
    import tensorstore
    import zarr

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
    return [zarr.open_array(str(path), mode="r")[...], np.asarray(tensorstore.open(spec).result().read().result())]


@pytest.mark.parametrize("location", ["end", "start"])
def test_a_torn_append_reads_as_before(tmp_path: Path, location: str) -> None:
    path = tmp_path / "a.zarr"
    array = make(str(path), location)
    layout = array._handle.layout.shard((0, 0))
    assert layout is not None
    file = path / "c/0/0"
    shard = file.read_bytes()
    if location == "end":
        file.write_bytes(shard + os.urandom(500))  # an append that was cut off
    else:
        index = bytes(encode_index(layout.index_of(shard), layout.index_chain))
        file.write_bytes(os.urandom(layout.index_size) + shard[layout.index_size :] + index)
    assert not zardine.verify(str(path))
    planned = zardine.repair(str(path), dry_run=True)
    assert planned
    assert [action.kind for action in planned.actions] == ["kept", "repaired"]
    assert not zardine.verify(str(path))
    damaged = file.read_bytes()
    done = zardine.repair(str(path))
    assert done.actions == planned.actions
    assert done.dry_run is False
    assert (path / "__zardine/damaged/c/0/0").read_bytes() == damaged
    for found in (zardine.open_array(str(path))[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, VALUES)
    assert zardine.verify(str(path))
    assert zardine.repair(str(path)).actions == ()


def test_one_damaged_byte_of_the_index(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    array = make(str(path))
    layout = array._handle.layout.shard((0, 0))
    assert layout is not None
    file = path / "c/0/0"
    shard = file.read_bytes()
    for place in range(len(shard) - layout.index_size, len(shard)):
        file.write_bytes(shard[:place] + bytes([shard[place] ^ 0x5A]) + shard[place + 1 :])
        assert zardine.repair(str(path), keep_damaged=False)
        assert file.read_bytes() == shard
    for found in read_by_others(path):
        np.testing.assert_array_equal(found, VALUES)


def test_unreadable_chunks_stay_errors_until_they_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    file = path / "c/0/0"
    shard = bytearray(file.read_bytes())
    shard[2] ^= 1
    file.write_bytes(shard + b"torn")
    done = zardine.repair(str(path))
    assert not done
    assert [(left.kind, left.chunk) for left in done.left] == [("unreadable", (0, 0))]
    array = zardine.open_array(str(path))
    with pytest.raises(CorruptionError):
        array[0, 0]
    np.testing.assert_array_equal(array[2:], VALUES[2:])
    dropped = zardine.repair(str(path), drop_unreadable=True)
    assert dropped
    assert [(each.kind, each.chunk) for each in dropped.actions] == [
        ("kept", None),
        ("repaired", None),
        ("dropped", (0, 0)),
    ]
    assert dropped.actions[0].message.endswith("__zardine/damaged/c/0/0~1")
    expected = VALUES.copy()
    expected[:2, :5] = -1
    for found in (array[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, expected)


def test_bytes_lost_in_the_middle(tmp_path: Path) -> None:
    """Chunks behind the gap are found where they are now; the one in the gap is lost."""
    path = tmp_path / "a.zarr"
    make(str(path))
    file = path / "c/0/0"
    shard = file.read_bytes()
    file.write_bytes(shard[:200] + shard[210:])
    done = zardine.repair(str(path))
    assert len(done.left) == 1
    expected = VALUES[:10, :10]
    array = zardine.open_array(str(path))
    good = 0
    for chunk in range(10):
        region = np.s_[chunk // 2 * 2 : chunk // 2 * 2 + 2, chunk % 2 * 5 : chunk % 2 * 5 + 5]
        try:
            np.testing.assert_array_equal(array[region], expected[region])
            good += 1
        except CorruptionError:
            pass
    assert good == 9


def test_a_lost_index_is_said_to_be_lost() -> None:
    store: dict[str, Any] = {}
    make(store)
    shard = bytes(store["c/0/0"])
    store["c/0/0"] = shard[:-100]
    done = zardine.repair(store)
    assert [left.kind for left in done.left] == ["unreadable"]
    assert "cannot be known" in done.left[0].message
    assert store["c/0/0"] == shard[:-100]
    done = zardine.repair(store, drop_unreadable=True)
    assert done
    assert bytes(store["__zardine/damaged/c/0/0"]) == shard[:-100]
    assert (zardine.open_array(store)[:10, :10] == -1).all()


def test_shards_in_shards_and_plain_chunks() -> None:
    inner = zardine.codecs.ShardingCodec(chunk_shape=(2, 5), codecs=("bytes", "crc32c"))
    outer = zardine.codecs.ShardingCodec(chunk_shape=(10, 10), codecs=(inner,))
    store: dict[str, Any] = {}
    array = zardine.create_array(store, shape=(20, 20), chunks=(20, 20), dtype="i4", fill_value=-1, serializer=outer)
    array[...] = VALUES
    data = bytearray(store["c/0/0"])
    data[50] ^= 1
    store["c/0/0"] = bytes(data)
    assert not zardine.repair(store)
    assert zardine.repair(store, drop_unreadable=True)
    expected = VALUES.copy()
    expected[:2, 5:10] = -1
    np.testing.assert_array_equal(array[...], expected)
    plain: dict[str, Any] = {}
    zardine.create_array(plain, shape=20, chunks=5, dtype="i4", zarr_format=2, compressors="auto")[...] = 1
    plain["2"] = b"nonsense"
    assert not zardine.repair(plain)
    done = zardine.repair(plain, drop_unreadable=True)
    assert [each.chunk for each in done.actions if each.kind == "dropped"] == [(2,)]
    assert zardine.open_array(plain)[...].tolist() == [1] * 10 + [0] * 5 + [1] * 5


def test_leftovers_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    (path / "c/.zardine-1.tmp").write_bytes(b"half")
    assert zardine.repair(str(path)).actions == ()
    done = zardine.repair(str(path), older_than=0)
    assert [action.kind for action in done.actions] == ["leftover"]
    assert not (path / "c/.zardine-1.tmp").exists()


@pytest.mark.parametrize("exclusive", [True, False], ids=["locks", "conditions"])
@pytest.mark.parametrize("damage", ["a chunk", "a shard", "two chunks of a shard"])
def test_what_others_write_meanwhile_stays(damage: str, exclusive: bool) -> None:
    """A program that takes no locks puts sound values there after the damaged object was read."""
    inner = MemoryStore()
    how: dict[str, Any] = {"chunks": 8} if damage == "a chunk" else {"chunks": 2, "shards": 8}
    array = zardine.create_array(inner, shape=8, dtype="i4", **how)
    array[...] = np.arange(1, 9)
    data = bytearray(inner.get("c/0") or b"")
    if damage == "two chunks of a shard":
        layout = array._handle.layout.uniform_shard
        assert layout is not None
        for offset in layout.index_of(data).offsets[1:3].tolist():
            data[offset + 2] ^= 255
    else:
        data = bytearray(b"nothing that can be read " * 8)
    inner.set("c/0", bytes(data))
    store = Meeting(inner, exclusive=exclusive)
    store.plan("after set", "damaged/c/0", lambda: zardine.open_array(inner).__setitem__(..., 9))
    done = zardine.repair(store, drop_unreadable=True)
    assert store.between is None
    assert [action.kind for action in done.actions if action.kind != "kept"] == []
    assert done.left == ()
    assert zardine.open_array(inner)[...].tolist() == [9] * 8
    inner.set("c/0", bytes(data))
    assert "dropped" in {action.kind for action in zardine.repair(store, drop_unreadable=True).actions}
    kept = [1, 2, 0, 0, 0, 0, 7, 8] if damage == "two chunks of a shard" else [0] * 8
    assert zardine.open_array(inner)[...].tolist() == kept


def test_command(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    file = path / "c/0/0"
    file.write_bytes(file.read_bytes() + b"torn")
    assert "2 actions to do, 0 faults left" in run("repair", path, "--dry-run").stdout
    result = run("repair", path, "--json")
    assert result.exit_code == 0
    assert [each["kind"] for each in json.loads(result.stdout)["actions"]] == ["kept", "repaired"]
    file.write_bytes(b"")
    result = run("repair", path)
    assert result.exit_code == 1
    assert "fault c/0/0: unreadable: its index is lost" in result.stdout
    assert run("repair", path, "--drop-unreadable", "-q").stdout == ""


class Full(zardine.storage.LocalStore):
    """Nothing more fits but what is kept of damaged objects."""

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if "damaged" in key:
            return super().set(key, value, condition=condition)
        raise StoreError("no space left")

    def erase_version(self, key: str, version: Any) -> None:
        raise StoreError("no space left")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_only_what_was_done_is_listed(tmp_path: Path, keep: bool, whole: bool) -> None:
    make(str(tmp_path))
    shard = tmp_path / "c/0/0"
    damaged = b"nothing" if whole else b"?" + shard.read_bytes()[1:]
    shard.write_bytes(damaged)
    done = zardine.repair(Full(tmp_path), drop_unreadable=True, keep_damaged=keep)
    assert [action.kind for action in done.actions] == ["kept"] * keep
    assert [left.kind for left in done.left if left.kind != "store"] == ["index" if whole else "checksum"]
    assert not done
    assert shard.read_bytes() == damaged


def test_objects_outside_that_were_removed_before_an_error_are_listed(tmp_path: Path) -> None:
    make(str(tmp_path)).resize((10, 20), erase=False)

    class Failing(zardine.storage.LocalStore):
        def erase_version(self, key: str, version: Any) -> None:
            if key == "c/1/1":
                raise StoreError("cannot")
            super().erase_version(key, version)

    done = zardine.repair(Failing(tmp_path), keep_damaged=False)
    assert [(action.key, action.kind) for action in done.actions] == [("c/1/0", "removed")]
    assert sorted((left.key, left.kind) for left in done.left if left.key) == [("c/1/1", "outside")]


class Refusing(WrapperStore):
    """A store that refuses to say anything of one key."""

    refused = "c/1"

    def _key(self, key: str) -> str:
        if key == self.refused:
            raise StoreError(f"{key} is forbidden")
        return super()._key(key)


@pytest.mark.parametrize("size", [16, 15])
@pytest.mark.parametrize("shards", [None, (8,)])
def test_an_object_that_the_store_refuses_is_listed_once(shards: tuple[int, ...] | None, size: int) -> None:
    store = MemoryStore()
    zardine.create_array(store, data=np.arange(size), chunks=(4,) if shards else (8,), shards=shards)
    for options in ({}, {"dry_run": True}, {"drop_unreadable": True}):
        done = zardine.repair(Refusing(store), **options)
        assert [(left.key, left.kind, left.message) for left in done.left] == [("c/1", "store", "c/1 is forbidden")]
        assert done.actions == ()


def test_the_command_lists_it_once(run: Any, tmp_path: Path) -> None:
    make(str(tmp_path))
    shard = tmp_path / "c/0/0"
    shard.unlink()
    shard.symlink_to("0")  # to itself, which nobody can open, whatever they may
    result = run("repair", tmp_path)
    assert result.exit_code == 1
    assert result.stdout.count("fault c/0/0: store:") == 1
    assert "0 actions done, 1 fault left" in result.stdout
