"""Ways of changing a shard: what they leave in the file, and when another one is taken instead."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import zardine
from crash.torn import killed_states, put_state
from zardine.engine.update_shard import plan_edit
from zardine.errors import ShardIndexError, TornShardWarning, UnsupportedError
from zardine.sharding.index import ShardIndex, encode_index
from zardine.sharding.order import chunk_ranks
from zardine.storage import LocalStore, MemoryStore

VALUES = np.arange(1, 257, dtype="u4").reshape(16, 16)
STRATEGIES = pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
LOCATIONS = pytest.mark.parametrize("location", ["end", "start"])


def made(path: Path, strategy: str = "rewrite", location: str = "end", **more: Any) -> zardine.Array:
    shards = {"shape": (16, 16), "index_location": location}
    how: dict[str, Any] = {"chunks": (4, 4), "shards": shards, "compressors": None, **more}
    config = {"write_strategy": strategy, **how.pop("config", {})}
    array = zardine.create_array(path, shape=(16, 16), dtype="u4", overwrite=True, config=config, **how)
    array[...] = VALUES
    return array


def shard(path: Path) -> Path:
    return path / "c/0/0"


def index(array: zardine.Array) -> Any:
    layout = array._handle.layout.uniform_shard
    assert layout is not None
    return layout.index_of(bytes(array.store.get("c/0/0") or b""))


@LOCATIONS
@STRATEGIES
def test_what_is_left_in_the_file(strategy: str, location: str, tmp_path: Path) -> None:
    array = made(tmp_path, strategy, location)
    before = shard(tmp_path).read_bytes()
    inode = shard(tmp_path).stat().st_ino
    array[4:8, 4:8] = 9
    after = shard(tmp_path).read_bytes()
    kept = shard(tmp_path).stat().st_ino == inode
    if strategy == "rewrite":
        assert not kept
        assert len(after) == len(before)
    elif strategy == "append":
        assert kept
        grown = 68 if location == "start" else 68 + 260
        assert len(after) == len(before) + grown
        if location == "end":  # but for the checksum of the old index, which does not count any more
            assert after.startswith(before[:-4])
            assert after[len(before) - 4 : len(before)] == bytes(byte ^ 255 for byte in before[-4:])
    else:
        assert kept
        assert len(after) == len(before)
        assert sum(a != b for a, b in zip(before, after, strict=True)) <= 68
    expected = VALUES.copy()
    expected[4:8, 4:8] = 9
    for read in (array, zardine.open_array(tmp_path), zarr.open_array(tmp_path, mode="r")):
        np.testing.assert_array_equal(read[...], expected)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path)}}
    np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), expected)


@LOCATIONS
def test_unused_space_is_bounded(location: str, tmp_path: Path) -> None:
    for strategy in ("append", "in_place"):
        array = made(tmp_path / strategy, strategy, location, compressors="auto")
        random = np.random.default_rng(1)
        smallest = shard(tmp_path / strategy).stat().st_size
        largest = 0
        for _ in range(200):
            row, column = random.integers(0, 4, 2) * 4
            array[row : row + 4, column : column + 4] = random.integers(0, 2**32, (4, 4), dtype="u4")
            size = shard(tmp_path / strategy).stat().st_size
            used = int(index(array).lengths.sum()) + 260
            assert size - used <= 0.5 * size
            largest = max(largest, size)
        assert largest > 1.5 * smallest or strategy == "in_place"


@LOCATIONS
@pytest.mark.parametrize("strategy", ["append", "in_place"])
def test_unused_space_is_bounded_where_chunks_become_empty(strategy: str, location: str, tmp_path: Path) -> None:
    array = made(tmp_path, strategy, location)
    for row in range(15):
        place = np.s_[row // 4 * 4 : row // 4 * 4 + 4, row % 4 * 4 : row % 4 * 4 + 4]
        array[place] = 0
        size = shard(tmp_path).stat().st_size
        stored = index(array).stored()
        used = int(index(array).lengths[stored].sum()) + 260
        assert size - used <= 0.5 * size
        assert int(stored.sum()) == 15 - row


@LOCATIONS
def test_bytes_that_chunks_share_are_not_written_over(location: str, tmp_path: Path) -> None:
    """Other programs store equal chunks once."""
    array = made(tmp_path, "in_place", location)
    layout = array._handle.layout.uniform_shard
    assert layout is not None
    data = bytearray(shard(tmp_path).read_bytes())
    found = index(array)
    found.offsets[1:3] = found.offsets[0]
    start, size = layout.index_bytes(len(data))
    data[start : start + size] = encode_index(found, layout.index_chain)
    shard(tmp_path).write_bytes(data)
    expected = zarr.open_array(tmp_path, mode="r")[...]
    assert (expected[:4, 4:8] == expected[:4, :4]).all()
    for column in (0, 2, 1, 3):
        place = np.s_[:4, 4 * column : 4 * column + 4]
        array[place] = expected[place] = 100 + column
        np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[...], expected)
        np.testing.assert_array_equal(zardine.open_array(tmp_path)[...], expected)


@pytest.mark.parametrize("row", range(4))
def test_bytes_of_a_chunk_that_reaches_beyond_the_next_ones(row: int) -> None:
    """Its bytes are those of all that begin before it ends; only the last one here has bytes of its own."""
    before = ShardIndex(np.array([0, 10, 50, 100], np.uint64), np.array([100, 5, 5, 5], np.uint64))
    edit = plan_edit(before, {row: b"new"}, 200, in_place=True)
    assert edit.placed == ([(100, b"new")] if row == 3 else [])
    assert edit.appended == ([] if row == 3 else [b"new"])
    assert edit.index.offsets[row] == (100 if row == 3 else 200)


@pytest.mark.parametrize("block", [np.s_[:3000,], np.s_[:1024], np.s_[:1024,], np.s_[256:768,]])
def test_a_chunk_without_checksum_that_is_just_being_written_over(block: Any, tmp_path: Path) -> None:
    """Who reads meanwhile, it alone or with others, reads again when it is whole; nothing else could tell."""
    array = zardine.create_array(
        tmp_path,
        shape=(4096,),
        chunks=(1024,),
        shards=(4096,),
        dtype="u2",
        compressors=None,
        checksum=False,
        config={"write_strategy": "in_place"},
    )
    array[...] = 1
    opened = zardine.open_array(tmp_path, mode="r")
    assert (opened[block] == 1).all()
    half, found = threading.Event(), []
    real = os.pwritev

    def pwritev(fd: int, parts: Any, offset: int) -> int:
        data = b"".join(map(bytes, parts))
        if len(data) == 2048 and not half.is_set():
            real(fd, [data[:1024]], offset)
            half.set()
            reader.join(0.5)
            return 1024 + real(fd, [data[1024:]], offset + 1024)
        return real(fd, parts, offset)

    def read() -> None:
        half.wait(10)
        found.append(opened[block])

    reader = threading.Thread(target=read)
    reader.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwritev", pwritev)
        array[:1024] = 2
    reader.join()
    assert half.is_set()
    before = np.ones(4096, "u2")
    after = np.where(np.arange(4096) < 1024, 2, 1)
    assert found[0].tolist() in (before[block].tolist(), after[block].tolist())


def test_the_share_can_be_chosen(tmp_path: Path) -> None:
    array = made(tmp_path, "append", config={"most_unused": 0})
    array[0:4, 0:4] = 9
    assert shard(tmp_path).stat().st_size == 16 * 68 + 260


@STRATEGIES
def test_empty_chunks_and_shards(strategy: str, tmp_path: Path) -> None:
    array = made(tmp_path, strategy)
    array[:8] = 0
    assert int(index(array).stored().sum()) == 8
    array[8:, :15] = 0
    assert int(index(array).stored().sum()) == 2
    array[:, 15] = 0
    assert not shard(tmp_path).exists()
    array[3, 3] = 5
    assert (array[...].sum(), array[3, 3]) == (5, 5)


def test_a_file_with_two_names_is_not_changed_in_place(tmp_path: Path) -> None:
    for strategy in ("append", "in_place"):
        array = made(tmp_path / strategy, strategy)
        backup = tmp_path / f"{strategy}-backup"
        os.link(shard(tmp_path / strategy), backup)
        before = backup.read_bytes()
        array[0, 0] = 7
        assert backup.read_bytes() == before
        assert zardine.open_array(tmp_path / strategy)[0, 0] == 7


def test_an_index_without_checksum_is_replaced_with_its_shard(tmp_path: Path) -> None:
    codec = zardine.codecs.ShardingCodec(chunk_shape=(4, 4), index_codecs=("bytes",))
    array = zardine.create(
        (16, 16), chunks=(16, 16), dtype="u4", codecs=[codec], store=tmp_path, config={"write_strategy": "append"}
    )
    array[...] = VALUES
    inode = shard(tmp_path).stat().st_ino
    array[0, 0] = 7
    assert shard(tmp_path).stat().st_ino != inode


def test_other_stores_refuse(tmp_path: Path) -> None:
    for strategy in ("append", "in_place"):
        array = zardine.create_array(MemoryStore(), shape=4, chunks=2, shards=4, dtype="u4")
        with pytest.raises(UnsupportedError, match=f"{strategy!r} needs a store of local files"):
            array.with_config({"write_strategy": strategy})[0] = 1
        assert array[0] == 0
    with pytest.raises(ValueError, match="write_strategy is one of"):
        zardine.open_array(array.store, config={"write_strategy": "overwrite"})


@LOCATIONS
def test_a_torn_shard_is_read_as_it_was_and_mended_by_the_next_write(location: str, tmp_path: Path) -> None:
    array = made(tmp_path, "append", location)
    array[0:4, 0:4] = 5
    expected = array[...]
    states = killed_states(tmp_path, lambda: array.__setitem__(slice(4, 8), 8))
    if location == "start":  # the index at the start was being written, its copy is at the end
        expected[4:8] = 8
        left = next(
            state
            for state in states
            if state["c/0/0"][:260] not in (states[0]["c/0/0"][:260], states[-1]["c/0/0"][:260])
        )
    else:
        left = next(state for state in states if len(state["c/0/0"]) == len(states[0]["c/0/0"]) + 150)
    put_state(left, tmp_path)
    with pytest.warns(TornShardWarning, match="was cut off"):
        np.testing.assert_array_equal(zardine.open_array(tmp_path)[...], expected)
    for strategy in ("append", "rewrite", "in_place"):
        put_state(left, tmp_path)
        again = zardine.open_array(tmp_path, config={"write_strategy": strategy})
        again[12:16, 12:16] = 6
        after = expected.copy()
        after[12:16, 12:16] = 6
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(zardine.open_array(tmp_path)[...], after)
        np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[...], after)


def test_a_shard_without_an_index_before_is_damaged(tmp_path: Path) -> None:
    made(tmp_path)
    whole = shard(tmp_path).read_bytes()
    shard(tmp_path).write_bytes(whole[:-1])
    for strategy in ("append", "rewrite", "in_place"):
        array = zardine.open_array(tmp_path, config={"write_strategy": strategy})
        with pytest.raises((ShardIndexError, zardine.errors.ChecksumError)):
            array[...]
        with pytest.raises((ShardIndexError, zardine.errors.ChecksumError), match="nothing was written"):
            array[0, 0] = 1
        assert shard(tmp_path).read_bytes() == whole[:-1]


@pytest.mark.parametrize("order", ["c", "f", "morton"])
def test_the_order_of_chunks(order: str, tmp_path: Path) -> None:
    for write_twice in (False, True):
        array = made(tmp_path, config={"chunk_order": order})
        if write_twice:
            array[5:9, 3:11] = 3
        places = np.argsort(index(array).offsets)
        coordinates = [(int(row) // 4, int(row) % 4) for row in places]
        if order == "morton":
            assert coordinates[:6] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0)]
        else:
            assert coordinates == sorted(coordinates, key=lambda at: at if order == "c" else at[::-1])
        assert (zarr.open_array(tmp_path, mode="r")[...] == array[...]).all()


def test_an_order_that_is_there_stays(tmp_path: Path) -> None:
    array = made(tmp_path, config={"chunk_order": "f"})
    before = np.argsort(index(array).offsets).tolist()
    array.with_config({"chunk_order": "as_written"})[5, 5] = 3
    assert np.argsort(index(array).offsets).tolist() == before


def test_ranks_of_any_grid() -> None:
    for grid in ((1,), (5,), (3, 4), (2, 3, 5), (4, 4, 4), (7, 1, 2, 3)):
        strides = tuple(int(np.prod(grid[i + 1 :])) for i in range(len(grid)))
        for order in ("c", "f", "morton"):
            ranks = chunk_ranks(grid, strides, order)
            assert sorted(ranks.tolist()) == list(range(int(np.prod(grid))))
        assert chunk_ranks(grid, strides, "c").tolist() == list(range(int(np.prod(grid))))


def test_a_foreign_writer_is_noticed(tmp_path: Path) -> None:
    array = made(tmp_path, "append")
    assert array[0, 0] == 1
    other = zarr.open_array(tmp_path, mode="r+")
    other[0:4, 0:4] = 50
    assert array[0, 0] == 50
    array[8, 8] = 51
    assert (array[0, 0], array[8, 8]) == (50, 51)
    assert (zarr.open_array(tmp_path, mode="r")[0, 0], zarr.open_array(tmp_path, mode="r")[8, 8]) == (50, 51)


def test_durable_writes_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    for strategy in ("rewrite", "append", "in_place"):
        array = zardine.open_array(LocalStore(tmp_path, durable=True), config={"write_strategy": strategy})
        synced: list[int] = []
        real = os.fsync
        monkeypatch.setattr(os, "fsync", lambda file, real=real, synced=synced: (synced.append(file), real(file))[1])
        array[0:4, 0:4] = 3
        assert len(synced) >= (2 if strategy == "rewrite" else 1)
        monkeypatch.undo()
