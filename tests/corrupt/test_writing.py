"""Writing into damaged shards: what cannot be carried over stops the write, what can is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zardine
from corrupt.specimens import CHAINS, CHUNK, CRC, LITTLE, ZSTD, Specimen, make, sharding
from python_writes import write_by_python
from zardine.errors import ChecksumError, ConditionFailedError, CorruptionError, ShardIndexError
from zardine.stores.attempts import WRITES


def shard(name: str, location: str = "end", **more: Any) -> Specimen:
    return make([sharding(CHUNK, CHAINS[name], location)], **more)


def flip(data: bytes, *places: int) -> bytes:
    changed = bytearray(data)
    for at in places:
        changed[at] ^= 0x10
    return bytes(changed)


def entries(specimen: Specimen, data: bytes) -> np.ndarray[Any, Any]:
    """Offset and length of every inner chunk."""
    size = 16 * len(specimen.regions)
    location = specimen.document["codecs"][0]["configuration"]["index_location"]
    raw = data[:size] if location == "start" else data[-size - 4 : -4]
    return np.frombuffer(raw, "<u8").reshape(-1, 2)


def stored_chunk(specimen: Specimen, data: bytes, row: int) -> bytes:
    offset, length = (int(each) for each in entries(specimen, data)[row])
    return data[offset : offset + length]


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("damage", ["bit", "short", "empty", "front lost"])
@pytest.mark.parametrize("region", ["chunk", "part", "element", "all-but-one"])
def test_a_damaged_index_stops_the_write(location, damage, region):
    specimen = shard("raw", location)
    good = specimen.data
    at = 3 if location == "start" else len(good) - 10
    data = {"bit": flip(good, at), "short": good[:30], "empty": b"", "front lost": good[9:]}[damage]
    store = specimen.store(data)
    array = zardine.open_array(store, path="a", mode="r+")
    where = {
        "chunk": specimen.regions[0],
        "part": (slice(0, 1), slice(0, 6)),
        "element": (0, 0),
        "all-but-one": (slice(0, 3), slice(None)),
    }[region]
    with pytest.raises(CorruptionError) as caught:
        array[where] = 9
    assert caught.value.key == "a/c/0/0"
    assert bytes(store.get("a/c/0/0")) == data


def test_an_entry_that_points_outside_stops_the_write():
    specimen = shard("raw", "start")
    data = specimen.data[: len(specimen.data) - 5]
    store = specimen.store(data)
    array = zardine.open_array(store, path="a", mode="r+")
    with pytest.raises(ShardIndexError, match="nothing was written"):
        array[specimen.regions[0]] = 9
    assert bytes(store.get("a/c/0/0")) == data


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("location", ["start", "end"])
def test_damaged_chunks_that_are_not_touched_keep_their_bytes(name, location):
    specimen = shard(name, location)
    offset, length = (int(each) for each in entries(specimen, specimen.data)[0])
    data = flip(specimen.data, offset + 1, offset + length // 2)
    store = specimen.store(data)
    array = zardine.open_array(store, path="a", mode="r+")
    array[specimen.regions[-1]] = 9
    array[specimen.regions[-2]] = 8
    after = bytes(store.get("a/c/0/0"))
    assert stored_chunk(specimen, after, 0) == data[offset : offset + length]
    with pytest.raises(CorruptionError) as caught:
        array[specimen.regions[0]]
    assert caught.value.chunk == (0, 0)
    assert (array[specimen.regions[-1]] == 9).all()
    assert (array[specimen.regions[-2]] == 8).all()


def test_a_damaged_chunk_that_is_partly_written_stops_the_write():
    specimen = shard("zstd")
    data = flip(specimen.data, 5)
    store = specimen.store(data)
    array = zardine.open_array(store, path="a", mode="r+")
    with pytest.raises(ChecksumError) as caught:
        array[0, 0] = 9
    assert caught.value.chunk == (0, 0)
    assert bytes(store.get("a/c/0/0")) == data
    array[specimen.regions[0]] = 9  # written whole, it needs nothing of what is damaged
    np.testing.assert_array_equal(array[...][2:], specimen.values[2:])
    assert (array[specimen.regions[0]] == 9).all()


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_damaged_shard_can_be_replaced_whole(location):
    specimen = shard("raw", location)
    for data in (b"", b"x", specimen.data[:50], flip(specimen.data, 0, len(specimen.data) - 1)):
        store = specimen.store(data)
        array = zardine.open_array(store, path="a", mode="r+")
        array[...] = specimen.values
        assert bytes(store.get("a/c/0/0")) == specimen.data


def test_a_damaged_chunk_without_shards():
    specimen = make([LITTLE, ZSTD, CRC])
    data = flip(specimen.data, 6)
    store = specimen.store(data)
    array = zardine.open_array(store, path="a", mode="r+")
    with pytest.raises(CorruptionError):
        array[0, 0] = 1
    assert bytes(store.get("a/c/0/0")) == data
    array[...] = specimen.values
    assert bytes(store.get("a/c/0/0")) == specimen.data


def test_a_failed_write_in_the_middle_leaves_what_was_there(tmp_path, monkeypatch):
    specimen = shard("raw")
    store = zardine.storage.LocalStore(tmp_path)
    for key, value in (("a/zarr.json", specimen.store().get("a/zarr.json")), ("a/c/0/0", specimen.data)):
        store.set(key, value)

    def refuse(*args: object, **kwargs: object) -> None:
        raise ConditionFailedError("another writer was first, for ever")

    array = zardine.open_array(store, path="a", mode="r+")
    monkeypatch.setattr("zardine.stores.attempts.WRITES", replace(WRITES, seconds=0.0))
    monkeypatch.setattr("zardine.stores.open_files.EditableFile.replace", refuse)
    write_by_python(monkeypatch.setattr)
    with pytest.raises(ConditionFailedError):
        array[0, 0] = 1
    monkeypatch.undo()
    np.testing.assert_array_equal(array[...], specimen.values)
    assert bytes(store.get("a/c/0/0")) == specimen.data
