"""Rows of integers: the distinct ones, and where they are, the same with the kernel and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zardine.kernel import KERNEL
from zardine.vectors.format import ragged
from zardine.vectors.format.ragged import find_rows, unique_rows


@pytest.mark.parametrize("kernel", [KERNEL, None], ids=["kernel", "numpy"])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("far", [1, 1000, 2**40, 2**62])
def test_distinct_rows_and_their_places(kernel: Any, width: int, far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "KERNEL", kernel)
    rng = np.random.default_rng(width)
    for count in (0, 1, 2, 50, 3000):
        rows = rng.integers(-3, 4, (count, width)) * far // (1 if far < 2**62 else 4)
        distinct, numbers = unique_rows(rows)
        wanted, places = np.unique(rows, axis=0, return_inverse=True)
        assert distinct.tolist() == wanted.tolist()
        assert numbers.tolist() == places.reshape(-1).tolist()
        assert distinct.dtype == numbers.dtype == np.int64
        table = rng.permutation(distinct)[: len(distinct) // 2 + 1]
        known = {tuple(row): place for place, row in enumerate(table.tolist())}
        more = np.concatenate([rows, rows + 1, np.full((1, width), 2**63 - 1), np.full((1, width), -(2**63))])
        assert find_rows(table, more).tolist() == [known.get(tuple(row), -1) for row in more.tolist()]
        assert find_rows(table, more[:0]).tolist() == []


def test_rows_in_other_orders_of_memory_count_too() -> None:
    rows = np.asfortranarray(np.array([[3, 1], [0, 2], [3, 1]]))
    assert unique_rows(rows)[0].tolist() == [[0, 2], [3, 1]]
    assert unique_rows(rows.astype(np.int32))[1].tolist() == [1, 0, 1]
    assert find_rows(rows[:2], rows[::-1]).tolist() == [0, 1, 0]


def test_what_is_given_may_be_changed() -> None:
    distinct, numbers = unique_rows(np.array([[2, 2], [1, 1], [2, 2]]))
    distinct += 1
    numbers += 1
    assert (distinct.tolist(), numbers.tolist()) == ([[2, 2], [3, 3]], [2, 1, 2])
