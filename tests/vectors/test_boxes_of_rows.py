"""Rows of chunks that are a whole box are read as one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.vectors.format.ragged import find_rows, slices_of, unique_rows

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
