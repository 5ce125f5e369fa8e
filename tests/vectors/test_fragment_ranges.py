"""Fragment indexes of many cells at a time: the same as one by one, and never more trusting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from effort import some
from zardine.errors import DataError
from zardine.kernel import KERNEL
from zardine.vectors.format import fragment_index
from zardine.vectors.format.fragment_index import (
    FragmentIndex,
    FragmentRanges,
    decode_index,
    decode_ranges,
    encode_indexes,
    encode_tiles,
)
from zardine.vectors.format.ragged import ranges, starts_of


def indexes(rng: np.random.Generator, row_counts: list[int]) -> list[bytes]:
    """An index for each cell: ranges of its rows, some of them empty, seldom a list."""
    before, rows = [0], [np.zeros(0, np.int64)]
    for count in row_counts:
        fragments = int(rng.integers(0, 140))
        for _ in range(fragments):
            first = int(rng.integers(0, count + 1))
            found = np.arange(first, first + int(rng.integers(0, count - first + 1)))
            rows.append(found[::-1] if rng.random() < 0.002 else found)
        before.append(before[-1] + fragments)
    counts = np.array([len(each) for each in rows[1:]], np.int64)
    return encode_indexes(np.array(before), counts, np.concatenate(rows).astype(np.int64))


def ranges_of(blobs: list[bytes], row_counts: list[int]) -> FragmentRanges | None:
    lengths = np.array([len(blob) for blob in blobs], np.int64)
    return decode_ranges(bytearray().join(blobs), lengths, np.array(row_counts))


def one_by_one(blobs: list[bytes], row_counts: list[int]) -> list[FragmentIndex] | None:
    try:
        found = [decode_index(blob, count) for blob, count in zip(blobs, row_counts, strict=True)]
    except DataError:
        return None
    return found if all(each.all_ranges for each in found) else None


@pytest.mark.parametrize("kernel", [KERNEL, None], ids=["kernel", "numpy"])
@pytest.mark.parametrize("seed", list(some(range(40), 10)))
def test_ranges_are_those_of_each_cell(seed: int, kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_index, "KERNEL", kernel)
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(40):
        row_counts = rng.integers(0, 200, int(rng.integers(1, 5))).tolist()
        blobs = indexes(rng, row_counts)
        if rng.random() < 0.5:
            which = int(rng.integers(0, len(blobs)))
            bad = bytearray(blobs[which])
            bad[int(rng.integers(0, len(bad) if rng.random() < 0.5 else min(len(bad), 40)))] ^= 1 << rng.integers(0, 8)
            blobs[which] = bytes(bad) if rng.random() < 0.8 else bytes(bad[: int(rng.integers(0, len(bad)))])
        found, wanted = ranges_of(blobs, row_counts), one_by_one(blobs, row_counts)
        assert (found is None) == (wanted is None)
        seen.add(found is None)
        if found is not None and wanted is not None:
            assert found.numbers.tolist() == [len(each.counts) for each in wanted]
            assert np.array_equal(found.counts, np.concatenate([each.counts for each in wanted]))
            assert np.array_equal(ranges(found.first, found.counts), np.concatenate([each.rows for each in wanted]))
            tiles = [each.tiles(count) for each, count in zip(wanted, row_counts, strict=True)]
            assert found.tile == all(tiles)
    assert seen == {True, False}


def test_cells_cut_in_pieces_tile() -> None:
    counts = np.array([3, 0, 2, 70, 1], np.int64)
    rows = np.concatenate([np.arange(5), np.arange(71)])
    blobs = encode_indexes(np.array([0, 3, 5]), counts, rows)
    assert encode_tiles(np.array([0, 3, 5]), counts) == blobs
    found = ranges_of(blobs, [5, 71])
    assert found is not None
    assert found.tile
    assert found.numbers.tolist() == [3, 2]
    bigger = ranges_of(blobs, [5, 72])
    assert bigger is not None
    assert not bigger.tile
    assert ranges_of(blobs, [4, 71]) is None


def test_tiles_are_encoded_as_other_fragments() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        numbers = rng.integers(0, 80, int(rng.integers(0, 6)))
        counts = rng.integers(0, 5, int(numbers.sum()))
        before = starts_of(numbers)
        local = ranges(np.zeros(len(numbers), np.int64), np.diff(starts_of(counts)[before]))
        assert encode_tiles(before, counts) == encode_indexes(before, counts, local)
