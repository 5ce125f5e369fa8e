"""Indexes of shards are remembered by version, within a limit, and never where there are no versions."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine.buffers import BytesLike
from zardine.engine import file_index
from zardine.engine.index_cache import IndexCache, KnownIndex
from zardine.engine.joined_ranges import join_ranges
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.storage import LocalStore, MemoryStore
from zardine.stores.base import WHOLE, ByteRange, Condition, OpenFile, Reading, Version
from zardine.tools.checking.index import check_entries


class Versionless(MemoryStore):
    """A store that cannot tell whether a value is the one that it gave before."""

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        found = super().read(key, ranges)
        return None if found is None else Reading(found.parts, None, found.size)

    def set(self, key: str, value: bytes, *, condition: Condition | None = None) -> Version | None:
        super().set(key, value)
        return None


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_store_without_versions_and_a_second_writer(location: str) -> None:
    values: dict[str, bytes] = {}
    one, two = Versionless(values), Versionless(values)
    shards = {"shape": (8,), "index_location": location}
    array = zardine.create_array(one, shape=(8,), chunks=(2,), shards=shards, dtype="i4", compressors=None)
    array[...] = np.arange(1, 9)
    assert array[2:4].tolist() == [3, 4]
    second = zardine.open_array(two)
    second[:2] = 0  # all others lie elsewhere now
    second[6:] = [70, 80]
    assert array[2:4].tolist() == [3, 4]
    assert array[...].tolist() == [0, 0, 3, 4, 5, 6, 70, 80]
    array[4] = 50
    assert second[...].tolist() == [0, 0, 3, 4, 50, 6, 70, 80]


def entry(count: int) -> KnownIndex:
    return KnownIndex(ShardIndex(np.zeros(count, np.int64), np.zeros(count, np.int64)), "v")


def test_the_cache_stays_within_its_limit() -> None:
    cache = IndexCache()
    with zardine.config.set({"cache.shard_index_bytes": 100_000}):
        for number in range(100):
            cache.put(0, f"small {number}", entry(1))
            assert cache.nbytes <= 100_000
        for number in range(100):
            cache.put(0, f"large {number}", entry(5_000))
            assert cache.nbytes <= 100_000
        assert cache.get(0, "small 99") is None
        assert cache.get(0, "large 99") is not None
        cache.put(0, "too large", entry(100_000))
        assert cache.get(0, "too large") is None
        assert cache.nbytes > 0
        for number in range(100):
            cache.drop(0, f"large {number}")
        assert cache.nbytes == 0


@pytest.mark.parametrize("strategy", ["append", "in_place"])
def test_who_has_read_or_edited_a_shard_reads_its_index_again_only_if_others_wrote(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    index_in_file = file_index.index_in_file

    def counted(layout: ShardLayout, file: OpenFile) -> tuple[ShardIndex, BytesLike]:
        read.append(file.path)
        return index_in_file(layout, file)

    monkeypatch.setattr(file_index, "index_in_file", counted)
    config = {"write_strategy": strategy, "most_unused": 1.0}
    array = zardine.create_array(
        tmp_path, shape=(8,), chunks=(2,), shards=(8,), dtype="i4", compressors=None, config=config
    )
    array[...] = np.arange(1, 9)
    other = zardine.open_array(tmp_path, config=config)
    for number, (writer, values, reads) in enumerate(
        ((array, [10, 20], 1), (array, [0, 0], 1), (array, [30, 40], 1), (other, [50, 60], 1), (array, [70, 80], 2))
    ):
        row = 2 * (number % 4)
        writer[row : row + 2] = values
        assert len(read) == reads
        assert other.with_config({})[row : row + 2].tolist() == values
        read[reads:] = []
    assert zardine.open_array(tmp_path)[...].tolist() == [70, 80, 0, 0, 30, 40, 50, 60]
    assert not zardine.verify(tmp_path).faults


def test_a_file_that_was_changed_and_given_its_old_time(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    array = zardine.create_array(store, shape=(4,), chunks=(2,), shards=(4,), dtype="i4", compressors=None)
    array[...] = [1, 2, 3, 4]
    assert array[0] == 1
    file = tmp_path / "c/0"
    status, version = os.stat(file), store.version("c/0")
    assert version is not None
    other = zardine.create_array(None, shape=(4,), chunks=(2,), shards=(4,), dtype="i4", compressors=None)
    other[2:] = [3, 4]
    other[:2] = [5, 6]
    data = bytes(other.store.get("c/0"))
    assert len(data) == status.st_size
    with open(file, "r+b") as opened:
        opened.write(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(file).st_mtime_ns == status.st_mtime_ns
    assert store.version("c/0") != version
    assert array[...].tolist() == [5, 6, 3, 4]


@pytest.mark.parametrize("seed", range(20))
def test_joined_ranges_hold_what_was_asked_for(seed: int) -> None:
    """Also where one reaches beyond the next ones, as chunks that share bytes do."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, 400, np.uint8).tobytes()
    offsets = np.concatenate(([0, 10, 50], rng.integers(0, 200, 12)))
    lengths = np.concatenate(([100, 5, 5], rng.integers(0, 200, 12)))
    for gap in (0, 3, 50):
        joined = join_ranges(offsets, lengths, gap)
        parts = [data[start : start + length] for start, length in joined.fetched]
        for i, (offset, length) in enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True)):
            at = int(joined.offsets[i])
            assert parts[int(joined.within[i])][at : at + length] == data[offset : offset + length]


def test_a_chunk_that_overlaps_one_before_the_one_before() -> None:
    array = zardine.create_array(None, shape=(6,), chunks=(2,), shards=(6,), dtype="i4")
    layout = array._handle.layout.uniform_shard
    index = ShardIndex(np.array([0, 10, 50]), np.array([100, 5, 5]))
    size = 100 + layout.index_size
    found = [(each.kind, each.row) for each in check_entries(index, layout, size)]
    assert found == [("overlap", 1), ("overlap", 2)]  # and no byte is unused
