"""Rows of chunks that are a whole box are read as one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.vectors.format.ragged import bounds_of, find_rows, slices_of, stable_order, unique_rows

Rows = list[tuple[int, ...]]


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=9), st.booleans())
def test_a_box_is_what_its_slices_say(rows: Rows, in_order: bool) -> None:
    rows = sorted(set(rows)) if in_order else rows
    box = slices_of(np.array(rows, np.int64))
    whole = [
        each
        for shape in product(range(1, 6), repeat=2)
        for each in [list(product(*(range(a, a + n) for a, n in zip(rows[0], shape, strict=True))))]
        if each == rows
    ]
    if box is None:
        assert not whole
    else:
        assert list(product(*(range(each.start, each.stop) for each in box))) == rows


@pytest.mark.parametrize("rows", [[(2, 5, 7)], list(product((1, 2), (4, 5, 6), (9,)))])
def test_whole_boxes(rows: Rows) -> None:
    assert slices_of(np.array(rows, np.int64)) is not None


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=6, unique=True), st.data())
def test_rows_are_found_where_they_are(table: Rows, data: st.DataObject) -> None:
    rows = data.draw(st.one_of(st.just(table), st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=6)))
    as_array = [np.array(each, np.int64).reshape(-1, 2) for each in (table, rows)]
    assert find_rows(*as_array).tolist() == [table.index(row) if row in table else -1 for row in rows]
    distinct, numbers = unique_rows(as_array[1])
    assert distinct.tolist() == [list(each) for each in sorted(set(rows))]
    assert distinct[numbers].tolist() == as_array[1].tolist()


@pytest.mark.parametrize("count", [1, 3, 1023, 1024, 5003])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i8"])
def test_bounds_are_those_of_each_column(count: int, dtype: str) -> None:
    whole = np.random.default_rng(count).normal(0, 1e6, (2 * count, 4)).astype(dtype)
    for rows in (whole, whole[::2], whole[:count, 1:], np.asfortranarray(whole)):
        low, high = bounds_of(rows)
        assert low.tolist() == rows.min(axis=0).tolist()
        assert high.tolist() == rows.max(axis=0).tolist()
    if whole.dtype.kind == "f":
        whole[count // 2, 1] = np.nan
        assert np.isnan(bounds_of(whole)).tolist() == [[False, True, False, False]] * 2


@pytest.mark.parametrize(
    ("length", "count"), [(0, 0), (5, 3), (3000, 7), (3000, 3000), (3000, 100_000), (200_000, 70_000)]
)
def test_equal_numbers_stay_in_order(length: int, count: int) -> None:
    numbers = np.random.default_rng(0).integers(0, max(count, 1), length)
    order = stable_order(numbers, count)
    assert np.array_equal(order, np.argsort(numbers, kind="stable"))
