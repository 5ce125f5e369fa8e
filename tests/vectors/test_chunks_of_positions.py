"""The chunks that positions are in, found in one pass, beside what each position by itself says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zardine.errors import DataError
from zardine.vectors.format.grids import chunks_of, distinct_chunks_of
from zardine.vectors.format.ragged import unique_rows

FAR = 2.0**53


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", ">f4"])
@pytest.mark.parametrize(("spread", "count"), [(3.0, 500), (1e5, 500), (1e5, 1), (1e7, 20), (3.0, 0)])
def test_they_are_those_of_each_position(rank: int, dtype: str, spread: float, count: int) -> None:
    random = np.random.default_rng(rank)
    positions = random.uniform(-spread, spread, (count, rank)).astype(dtype)
    shape = (0.7, 1.0, 2.5, 1e-3)[:rank]
    keys, numbers = distinct_chunks_of(positions, shape)
    expected = unique_rows(chunks_of(positions, shape))
    for found, wanted in zip((keys, numbers), expected, strict=True):
        assert found.dtype == np.int64
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("rows", [[[FAR, -FAR], [-FAR, FAR], [FAR - 1, 0]], [[FAR, 1], [FAR - 1, 0], [FAR, 0]]])
def test_those_far_away_are_told_apart(rows: list[list[float]]) -> None:
    keys, numbers = distinct_chunks_of(np.array(rows), (1.0, 1.0))
    assert keys.tolist() == sorted(keys.tolist())
    assert keys[numbers].tolist() == rows


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 2 * FAR])
@pytest.mark.parametrize("place", [(0, 0), (1, 1)])
def test_positions_that_are_none_or_too_far_are_refused(wrong: Any, place: tuple[int, int]) -> None:
    positions = np.ones((3, 2))
    positions[place] = wrong
    with pytest.raises(DataError, match="away from the origin"):
        distinct_chunks_of(positions, (1.0, 1.0))
