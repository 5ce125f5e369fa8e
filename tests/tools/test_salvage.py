"""What ``zardine.repair`` gets out of shards that are too short or too long, and out of such as were edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from zardine.errors import CorruptionError

ROW = 16
"""Elements of a chunk: 64 bytes, and 4 of its checksum."""


def sixteen(store: Any, location: str, compressors: Any = None, **more: Any) -> np.ndarray[Any, Any]:
    """A shard of 16 chunks; compressed ones differ in length."""
    rng = np.random.default_rng(4)
    values = np.arange(16 * ROW, dtype="i4").reshape(16, ROW) * 1000
    if compressors is not None:
        values[:, : ROW // 2] = rng.integers(0, 2 ** rng.integers(1, 20, (16, 1)), (16, ROW // 2))
    shards = {"shape": (16, ROW), "index_location": location}
    array = zardine.create_array(
        store, shape=values.shape, chunks=(1, ROW), shards=shards, dtype="i4", compressors=compressors, **more
    )
    array[...] = values
    return values


def right_rows(store: Any, values: np.ndarray[Any, Any]) -> list[int]:
    """Numbers of the chunks that read; what reads must be right."""
    array = zardine.open_array(store, mode="r")
    right = []
    for row in range(len(values)):
        try:
            found = array[row]
        except CorruptionError:
            continue
        np.testing.assert_array_equal(found, values[row], str(row))
        right.append(row)
    return right


@pytest.mark.parametrize("chunks", [1, 2, 15])
@pytest.mark.parametrize("kept", [True, False])
def test_a_shard_that_was_cut_off_by_just_some_chunks(tmp_path: Path, chunks: int, kept: bool) -> None:
    values = sixteen(tmp_path, "start")
    file = tmp_path / "c/0/0"
    whole = file.read_bytes()
    assert len(whole) == 260 + 16 * 68
    file.write_bytes(whole[: -68 * chunks])
    done = zardine.repair(tmp_path, keep_damaged=kept)
    assert [left.chunk for left in done.left] == [(row, 0) for row in range(16 - chunks, 16)]
    assert f"{68 * chunks} bytes at the end of the shard were lost; {16 - chunks} of 16" in done.actions[-1].message
    assert right_rows(tmp_path, values) == list(range(16 - chunks))
    assert (tmp_path / "__zardine").exists() == kept
    assert zardine.repair(tmp_path, drop_unreadable=True)
    values[16 - chunks :] = 0
    from tools.test_repair import read_by_others

    for found in (zardine.open_array(tmp_path)[...], *read_by_others(tmp_path)):
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("compressors", [None, "zstd"])
def test_a_shard_that_was_cut_off_anywhere(compressors: Any) -> None:
    """Also by as many bytes as lie between chunks of the same length."""
    store: dict[str, Any] = {}
    values = sixteen(store, "start", compressors)
    shard = bytes(store["c/0/0"])
    layout = zardine.open_array(store, mode="r")._handle.layout.shard((0, 0))
    assert layout is not None
    index = layout.index_of(shard)
    ends = (index.offsets + index.lengths).tolist()
    for cut in {1, 7, 67, 69, 100, 500, *index.lengths.tolist()}:
        store["c/0/0"] = shard[:-cut]
        zardine.repair(store, keep_damaged=False)
        assert right_rows(store, values) == [row for row, end in enumerate(ends) if end <= max(ends) - cut]


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("compressors", [None, "zstd"])
def test_bytes_missing_in_the_middle(location: str, compressors: Any) -> None:
    """Only the chunks that they were in are lost."""
    for at in range(0, 16, 3):
        store: dict[str, Any] = {}
        values = sixteen(store, location, compressors)
        layout = zardine.open_array(store, mode="r")._handle.layout.shard((0, 0))
        assert layout is not None
        index = layout.index_of(store["c/0/0"])
        start = int(index.offsets[at]) + 3
        store["c/0/0"] = store["c/0/0"][:start] + store["c/0/0"][start + 11 :]
        done = zardine.repair(store)
        assert [left.chunk for left in done.left] == [(at, 0)]
        assert right_rows(store, values) == [row for row in range(16) if row != at]


def test_where_nobody_can_know_nothing_is_written_away() -> None:
    """Of sixteen chunks of one length fifteen are left, and the index is behind them: which is missing?"""
    store: dict[str, Any] = {}
    values = sixteen(store, "end")
    shard = store["c/0/0"]
    store["c/0/0"] = cut = shard[: 5 * 68] + shard[6 * 68 :]
    done = zardine.repair(store, keep_damaged=False)
    assert not done
    assert len(done.left) == 16
    assert "one or another" in done.left[0].message
    assert store["c/0/0"] == cut
    assert right_rows(store, values) == []


def test_where_a_part_cannot_be_known_the_object_is_kept_in_any_case() -> None:
    store: dict[str, Any] = {}
    values = sixteen(store, "end", "zstd")
    values[8] = values[7][::-1]
    values[8:10, : ROW // 2] = values[7, : ROW // 2]
    zardine.open_array(store)[...] = values
    layout = zardine.open_array(store, mode="r")._handle.layout.shard((0, 0))
    assert layout is not None
    index = layout.index_of(store["c/0/0"])
    same = [row for row in range(15) if index.lengths[row] == index.lengths[row + 1]]
    assert same
    start, length = int(index.offsets[same[0]]), int(index.lengths[same[0]])
    cut = store["c/0/0"][:start] + store["c/0/0"][start + length :]
    store["c/0/0"] = cut
    done = zardine.repair(store, keep_damaged=False)
    assert [action.kind for action in done.actions] == ["kept", "repaired"]
    assert bytes(store["__zardine/damaged/c/0/0"]) == cut
    right = right_rows(store, values)
    assert {same[0], same[0] + 1}.isdisjoint(right)
    assert len(right) >= 13
    assert zardine.repair(store, keep_damaged=False, drop_unreadable=True)


def appended(path: Path, location: str = "end", strategy: str = "append") -> zardine.Array:
    """A shard of eight chunks, the first of which was appended twice: 5, then 6; the fourth is empty."""
    shards = {"shape": (8,), "index_location": location}
    array = zardine.create_array(
        path,
        shape=(8,),
        chunks=(1,),
        shards=shards,
        dtype="i8",
        compressors=None,
        config={"write_strategy": strategy, "most_unused": 1.0},
    )
    array[...] = [100, 101, 102, 0, 104, 105, 106, 107]
    array[0] = 5
    array[0] = 6
    return array


NEWEST = np.array([[6], [101], [102], [0], [104], [105], [106], [107]])


def test_a_flipped_bit_of_the_last_index_brings_back_no_older_value(tmp_path: Path) -> None:
    appended(tmp_path)
    file = tmp_path / "c/0"
    shard = file.read_bytes()
    for bit in range(0, 8 * 132, 1 if SOAK else 13):
        damaged = bytearray(shard)
        damaged[len(shard) - 132 + bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        assert [fault.kind for fault in zardine.verify(tmp_path).faults] == ["index"]
        assert zardine.repair(tmp_path, keep_damaged=False)
        assert right_rows(tmp_path, NEWEST) == list(range(8))
        assert file.stat().st_size < len(shard)


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("emptied", [False, True])
def test_several_damaged_bytes_of_the_last_index(tmp_path: Path, location: str, emptied: bool) -> None:
    """All comes back at the end, where the index before helps; what comes back is never older."""
    array = appended(tmp_path, location)
    newest = NEWEST.copy()
    if emptied:
        array[5] = newest[5] = 0
    file = tmp_path / "c/0"
    shard = file.read_bytes()
    start = 0 if location == "start" else len(shard) - 132
    for first in range(0, 125, 7):
        file.write_bytes(shard[: start + first] + b"\x5a" * 3 + shard[start + first + 3 :])
        done = zardine.repair(tmp_path, keep_damaged=False)
        right = right_rows(tmp_path, newest)
        if location == "end":
            assert done
            assert right == list(range(8))
        else:
            assert right == []
            assert "its index is lost" in done.left[0].message


def test_an_index_whose_checksum_is_damaged_too(tmp_path: Path) -> None:
    """Entries that say the same in the index before are sound; of others it is not known where they are."""
    appended(tmp_path)
    file = tmp_path / "c/0"
    shard = file.read_bytes()
    file.write_bytes(shard[:-132] + bytes(24) + shard[-108:-4] + b"oops")
    done = zardine.repair(tmp_path, keep_damaged=False)
    assert [left.chunk for left in done.left] == [(0,), (1,)]
    assert [action.kind for action in done.actions] == ["kept", "repaired"]
    assert right_rows(tmp_path, NEWEST) == list(range(2, 8))


def test_old_chunks_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    """A shard that was edited in place: a chunk is empty now, and its old bytes lie where the order expects it."""
    array = appended(tmp_path, "start", "in_place")
    newest = NEWEST.copy()
    newest[3] = 103
    array[...] = newest[:, 0]
    array[4] = newest[4] = 0
    file = tmp_path / "c/0"
    shard = file.read_bytes()
    for first in range(0, 128, 16):
        file.write_bytes(shard[:first] + bytes(16) + shard[first + 16 :])
        zardine.repair(tmp_path, keep_damaged=False)
        right_rows(tmp_path, newest)


@pytest.mark.parametrize("length", [3, 68, 136, 700])
def test_bytes_put_in(length: int) -> None:
    """What reads is right, or was right for readers before."""
    for at in (1, 68, 500, 1088):
        store: dict[str, Any] = {}
        values = sixteen(store, "end")
        shard = store["c/0/0"]
        store["c/0/0"] = shard[:at] + b"\x01" * length + shard[at:]
        zardine.repair(store, keep_damaged=False)
        if length % 68:
            assert len(right_rows(store, values)) >= 15


def test_unused_space_is_not_taken_for_bytes_that_were_put_in(tmp_path: Path) -> None:
    """The last chunk became empty, and lies where the damaged one before it would lie if bytes had been put in."""
    values = sixteen(tmp_path, "start", config={"write_strategy": "append", "most_unused": 1.0})
    array = zardine.open_array(tmp_path, config={"write_strategy": "append", "most_unused": 1.0})
    array[13] = values[13] = 0
    array[15] = values[15] = 0
    file = tmp_path / "c/0/0"
    shard = bytearray(file.read_bytes())
    shard[260 + 14 * 68] ^= 1
    file.write_bytes(shard)
    done = zardine.repair(tmp_path)
    assert [left.chunk for left in done.left] == [(14, 0)]
    assert right_rows(tmp_path, values) == [row for row in range(16) if row != 14]
