"""A small shard that is far away is read with its index, in one request: when, how much, and what may go wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.codecs import BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec
from zardine.engine.read_ahead import window
from zardine.errors import DataError
from zardine.sharding.index import MISSING, ShardIndex
from zardine.storage import CountingStore, MemoryStore
from zardine.stores.base import ReadCost

VALUES = np.arange(1, 65, dtype="i4").reshape(8, 8)
LOCATIONS = pytest.mark.parametrize("location", ["start", "end"])
BY_RANGES = {"speculative_read": False}


class Far(CountingStore):
    """A store far away, from which 50 kB flow in the time of a request."""

    flows: tuple[int, int] | None = None

    @property
    def cost(self) -> ReadCost:
        return ReadCost(latency=0.05, bandwidth=1e6, requests=64, flows=self.flows)

    @property
    def has_cheap_looks(self) -> bool:
        return False


def far(shape: tuple[int, ...] = (8, 8), shards: tuple[int, ...] = (8, 8), **more: Any) -> tuple[Far, zardine.Array]:
    inner = MemoryStore()
    how = {"chunks": (2, 2), "shards": {"shape": shards, **more}, "compressors": None}
    array = zardine.create_array(inner, shape=shape, dtype="i4", **how)
    array[...] = np.arange(1, 1 + array.size).reshape(shape)
    store = Far(inner)
    opened = zardine.open_array(store)
    store.reset()
    return store, opened


@LOCATIONS
def test_far_away_a_small_shard_comes_along_with_its_index(location: str) -> None:
    store, array = far(index_location=location)
    assert array[0, 0] == 1
    counts = store.reset()
    assert (counts.requests, counts.ranges, counts.bytes_read) == (1, 1, store.size("c/0/0"))
    store.reset()
    assert array[5, 5] == 46  # the index is known: no more is read than the chunk
    counts = store.reset()
    assert (counts.requests, counts.bytes_read) == (1, 16 + 4)
    store, array = far(index_location=location)
    assert array.vindex[[0, 3], [0, 3]].tolist() == [1, 28]
    assert store.reset().requests == 1


@LOCATIONS
def test_chunks_that_are_not_in_what_came_along_are_asked_for(location: str) -> None:
    """The shard is longer than its chunks: what was in it before is left in it, unused."""
    store, array = far(index_location=location)
    shard = store.get("c/0/0")
    layout = array._handle.layout.uniform_shard
    assert shard is not None
    assert layout is not None
    index = layout.index_of(shard)
    hole = bytes(1000)
    at_start = location == "start"
    data = bytes(shard)[layout.index_size :] if at_start else bytes(shard)[: -layout.index_size]
    moved = ShardIndex(np.where(index.stored(), index.offsets, MISSING), index.lengths)
    last = int(np.argmax(index.offsets))
    end = int(index.offsets[last])
    cut = end - (layout.index_size if at_start else 0)
    moved.offsets[last] += len(hole)  # it, or all before it, lie beyond what is read with the index
    body = data[:cut] + hole + data[cut:]
    encoded = bytes(layout.encode_index(moved))
    store.set("c/0/0", encoded + body if at_start else body + encoded)
    store.reset()
    assert array[6, 6] == VALUES[6, 6]
    assert array[0, 0] == 1
    assert (array[...] == VALUES).all()


def test_far_away_no_more_is_read_unasked_than_flows_in_the_time_of_a_request() -> None:
    store, array = far((256, 256), (256, 256))  # too large a shard
    assert array[0, 0] == 1
    counts = store.reset()
    assert (counts.requests, counts.bytes_read) == (2, 128 * 128 * 16 + 4 + 16 + 4)
    store, array = far((32, 32))  # 16 shards with 300 bytes in each that are not asked for
    assert array[::8, ::8].tolist() == (1 + np.arange(1024).reshape(32, 32)[::8, ::8]).tolist()
    assert store.reset().requests == 16
    store, array = far((256, 256), (16, 16))  # 256 with 1260: too many for those asked for at once
    assert array[::16, ::16].shape == (16, 16)
    assert store.reset().requests == 2 * 256


@pytest.mark.parametrize(("flows", "requests"), [((2000, 50_000), 1), ((1000, 50_000), 2), ((2000, 250), 2)])
def test_what_was_measured_says_how_much_that_is(flows: tuple[int, int], requests: int) -> None:
    store, array = far()
    store.flows = flows
    assert array[0, 0] == 1
    assert store.reset().requests == requests


def test_several_calls_at_a_time_read_no_more_unasked_than_one() -> None:
    store, array = far((32, 32))
    store.flows = 2000, 700  # room for two of the shards, not three
    meeting = Barrier(3)
    read = Far.read

    class Slow(Far):
        def read(self, key: str, *ranges: Any) -> Any:
            if not self.counts.keys[key]:
                meeting.wait(60)
            return read(self, key, *ranges)

    store.__class__ = Slow
    with ThreadPoolExecutor(3) as threads:
        values = list(threads.map(lambda n: int(array[0, 8 * n]), range(3)))
    assert values == [1, 9, 17]
    assert store.reset().requests == 4


def test_nothing_is_read_unasked_where_that_is_not_wanted() -> None:
    store, array = far()
    with zardine.config.set({"speculative_read": False}):
        assert array[0, 0] == 1
    assert store.reset().requests == 2


@LOCATIONS
def test_a_shard_that_is_not_stored_is_one_request(location: str) -> None:
    store, array = far((16, 8), index_location=location)
    store.erase("c/1/0")
    store.reset()
    assert (array[9:11, 0] == 0).all()
    assert store.reset().requests == 1


@LOCATIONS
def test_shorter_shards_than_are_asked_for_are_read(location: str) -> None:
    """Of which most is not stored; the first chunk, the last one, or none."""
    for kept in ((0, 0), (6, 6), None):
        store, array = far(index_location=location)
        values = np.zeros_like(VALUES)
        if kept is not None:
            values[kept] = 5
        zardine.open_array(store.store, config={"write_empty_chunks": True})[...] = 0
        zardine.open_array(store.store)[...] = values
        if kept is None:
            store.set("c/0/0", array._handle.layout.uniform_shard.assemble([None] * 16))
        for where in ((0, 0), (6, 6), (2, 5)):
            fresh = zardine.open_array(store)
            store.reset()
            assert fresh[where] == values[where]
            assert store.reset().requests == 1


@LOCATIONS
def test_a_shard_that_is_replaced_between_two_requests_is_read_anew(location: str) -> None:
    """Of one that is longer than what came with its index, a chunk is asked for; by then it is another one."""
    store, array = far(index_location=location)
    old = store.get("c/0/0")
    assert old is not None
    layout = array._handle.layout.uniform_shard
    index = layout.index_of(old)
    size, hole = layout.index_size, bytes(3000)
    if location == "start":  # all chunks but the first are far behind the index
        moved = ShardIndex(np.where(index.offsets > size, index.offsets + len(hole), index.offsets), index.lengths)
        long = bytes(layout.encode_index(moved)) + bytes(old)[size : size + 20] + hole + bytes(old)[size + 20 :]
        far_one, value = (6, 6), VALUES[6, 6]
    else:  # all but the last are far before it
        last = int(np.argmax(index.offsets))
        moved = ShardIndex(index.offsets.copy(), index.lengths)
        moved.offsets[last] += len(hole)
        data = bytes(old)[:-size]
        long = data[:-20] + hole + data[-20:] + bytes(layout.encode_index(moved))
        far_one, value = (0, 0), VALUES[0, 0]
    store.set("c/0/0", long)
    read = Far.read

    class Replaced(Far):
        def read(self, key: str, *ranges: Any) -> Any:
            found = read(self, key, *ranges)
            if self.counts.keys[key] == 1:
                with zardine.config.set({"array.order": "C"}):
                    zardine.open_array(self.store)[...] = 100 * VALUES
            return found

    store.__class__ = Replaced
    store.reset()
    assert array[far_one] == 100 * value
    assert store.reset().requests == 3


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_found_as_where_the_index_is_read_by_itself(seed: int) -> None:
    """Cuts and flipped bits: the same values, or an error of the same class, and never other values."""
    rng = np.random.default_rng(seed)
    location = ("start", "end")[seed % 2]
    store, _ = far(index_location=location)
    good = bytes(store.get("c/0/0") or b"")
    for _ in range(60):
        bad = bytearray(good)
        if rng.random() < 0.4:
            bad = bad[: rng.integers(len(bad))] if rng.random() < 0.5 else bad[rng.integers(len(bad)) :]
        for _ in range(int(rng.integers(3)) if bad else 0):
            bad[rng.integers(len(bad))] ^= 1 << int(rng.integers(8))
        store.store.set("c/0/0", bytes(bad))
        where = tuple(int(each) for each in rng.integers(8, size=2))
        seen = []
        for settings in ({}, BY_RANGES):
            with zardine.config.set(settings):
                try:
                    seen.append(int(zardine.open_array(store)[where]))
                except DataError as error:
                    seen.append(type(error))
        assert seen[0] == seen[1]
        assert seen[0] == VALUES[where] or isinstance(seen[0], type)


def test_shards_in_shards_come_along_whole() -> None:
    inner = MemoryStore()
    checked = [BytesCodec(), ZstdCodec(), Crc32cCodec()]
    index = [BytesCodec(), Crc32cCodec()]
    shards = ShardingCodec(chunk_shape=(32, 32), codecs=checked, index_codecs=index)
    outer = ShardingCodec(chunk_shape=(64, 64), codecs=[shards], index_codecs=index)
    values = np.random.default_rng(0).integers(1, 2**62, (256, 128))
    array = zardine.create_array(inner, data=values, chunks=(128, 128), serializer=outer, compressors=None)
    array = zardine.open_array(store := Far(inner))
    store.flows = 1_000_000, 1_000_000
    for where in np.ndindex(2, 2):
        store.reset()
        fresh = zardine.open_array(store)
        store.reset()
        at = tuple(64 * each + 3 for each in where)
        assert fresh[at] == values[at]
        assert store.reset().requests == 1
    assert (array[:, 5] == values[:, 5]).all()


def test_elements_of_any_length_say_nothing_of_how_much_to_read() -> None:
    inner = MemoryStore()
    words = np.array([f"word {n}" * (n % 7) for n in range(64)], dtype=object)
    zardine.create_array(inner, shape=64, chunks=4, shards=64, dtype="string")[...] = words
    store = Far(inner)
    array = zardine.open_array(store)
    store.reset()
    assert array[13] == words[13]
    counts = store.reset()
    assert counts.requests == 2
    assert counts.bytes_read < 16 * 16 + 4 + 400


def test_no_call_reads_more_unasked_than_a_part_of_its_memory() -> None:
    store, array = far((32, 32))
    store.flows = 10**6, 10**6
    unasked = 16 * 15 * 20  # of 16 shards, all but one chunk each
    for memory, requests in ((4 * unasked, 16), (4 * unasked - 4 * 16, 32)):
        with zardine.config.set({"window_bytes": memory}):
            fresh = zardine.open_array(store)
            store.reset()
            assert fresh[::8, ::8].shape == (4, 4)
        assert store.reset().requests == requests
    assert array[0, 0] == 1


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_asked_for_no_more_than_the_bound_is_read_besides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        chunk = rng.integers(1, 5, 2)
        shard = chunk * rng.integers(1, 6, 2)
        shape = tuple((shard * rng.integers(1, 5, 2)).tolist())
        inner = MemoryStore()
        location = ("start", "end")[int(rng.integers(2))]
        made = zardine.create_array(
            inner,
            shape=shape,
            dtype=("u1", "i8")[int(rng.integers(2))],
            chunks=tuple(chunk.tolist()),
            shards={"shape": tuple(shard.tolist()), "index_location": location},
            compressors=None if rng.random() < 0.5 else "zstd",
        )
        values = rng.integers(0, 200, shape).astype(made.dtype)
        made[...] = values
        one, most = (int(rng.integers(1, 4000)) for _ in range(2))
        steps = rng.integers(1, 9, 2)
        chosen = tuple(slice(int(rng.integers(n)), None, int(step)) for n, step in zip(shape, steps, strict=True))
        read, objects = [], 0
        for settings in ({}, BY_RANGES):
            store = Far(inner)
            store.flows = one, most
            array = zardine.open_array(store)
            store.reset()
            with zardine.config.set(settings):
                assert (array[chosen] == values[chosen]).all()
            objects = len(store.counts.keys)
            read.append(store.reset())
        assert read[0].requests <= read[1].requests
        assert read[0].bytes_read <= read[1].bytes_read + min(most, objects * (one // 4))


@pytest.mark.parametrize("word", ["False", "false", "0", "no", "OFF"])
def test_the_environment_switches_it_off(word: str) -> None:
    code = "import zardine; from zardine.settings import is_on; print(is_on('speculative_read'))"
    for value, says in ((word, "False"), ("True", "True"), ("on", "True")):
        environment = {**os.environ, "ZARDINE_SPECULATIVE_READ": value}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
        assert ran.stdout.strip() == says


def test_what_the_environment_says_that_is_neither_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    store, array = far()
    monkeypatch.setenv("ZARDINE_SPECULATIVE_READ", "sometimes")
    zardine.config.refresh()
    try:
        with pytest.raises(ValueError, match="speculative_read is True or False, not 'sometimes'"):
            array[0, 0]
    finally:
        monkeypatch.undo()
        zardine.config.refresh()
    assert array[0, 0] == 1
    assert store.counts.requests == 1


def test_works_that_state_their_memory_read_nothing_unasked() -> None:
    store, array = far((32, 32))
    with window(2**20):
        assert array[::8, ::8].shape == (4, 4)
        assert store.reset().requests == 32
        assert array[5, 5] == 5 * 32 + 6
    assert zardine.open_array(store)[::8, ::8].shape == (4, 4)
