"""Cutting one axis: every question answered as by looking at each element."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zardine.chunk_grids.axis import Axis

RUNS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=4)


@given(RUNS, st.booleans(), st.data())
def test_agrees_with_looking_at_every_element(runs: list, endless: bool, data: st.DataObject) -> None:
    total = sum(size * number for size, number in runs)
    length = data.draw(st.integers(0, total))
    axis = Axis(length, tuple((*runs[:-1], (runs[-1][0], None)) if endless else runs))
    extents = [size for size, number in runs for _ in range(number)]
    starts = np.concatenate(([0], np.cumsum(extents)))[:-1].tolist()
    chunk_of = [i for i, size in enumerate(extents) for _ in range(size)]
    elements = np.arange(total, dtype=np.int64)
    chunks, inner = axis.locate(elements)
    assert chunks.tolist() == chunk_of
    assert inner.tolist() == [e - starts[c] for e, c in enumerate(chunk_of)]
    every = np.arange(len(extents), dtype=np.int64)
    assert axis.starts(every).tolist() == starts
    assert axis.extents(every).tolist() == extents
    assert [axis.start(i) for i in range(len(extents))] == starts
    assert [axis.extent(i) for i in range(len(extents))] == extents
    assert axis.count == len(set(chunk_of[:length]))
    assert axis.lengths() == tuple(chunk_of[:length].count(i) for i in range(axis.count))
    assert axis.is_regular == (len(runs) == 1)


def test_huge_axes_cost_nothing() -> None:
    tracemalloc.start()
    axis = Axis.regular(2**62, 3)
    assert axis.count == -(-(2**62) // 3)
    assert axis.start(axis.count - 1) == (axis.count - 1) * 3
    many = Axis(2**62, ((1, 2**40), (2**20, 2**42), (7, None)))
    chunks, inner = many.locate(np.array([2**40 - 1, 2**40, 2**62 - 1], np.int64))
    assert chunks.tolist() == [2**40 - 1, 2**40, 2**40 + (2**62 - 1 - 2**40) // 2**20]
    assert (many.starts(chunks) + inner).tolist() == [2**40 - 1, 2**40, 2**62 - 1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
