"""Which Dask chunks are joined, so that one task writes whole shards."""

from __future__ import annotations

from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.chunk_grids import Axis
from zardine.dask.alignment import merged_chunks


def ends(lengths: tuple[int, ...], start: int = 0) -> list[int]:
    found = []
    for length in lengths:
        start += length
        found.append(start)
    return found


def test_blocks_that_make_shards_are_joined() -> None:
    axes = (Axis.regular(1000, 300), Axis.regular(1000, 700))
    whole = (slice(0, 1000, 1),) * 2
    assert merged_chunks(((100,) * 10,) * 2, axes, whole, 8, 2**30) == ((300, 300, 300, 100), (700, 300))


def test_blocks_of_several_shards_stay() -> None:
    assert merged_chunks(((40, 40, 20),), (Axis.regular(100, 20),), (slice(0, 100, 1),), 1, 100) == ((40, 40, 20),)


def test_what_would_be_too_much_for_a_task_is_not_joined() -> None:
    axes = (Axis.regular(1000, 300), Axis.regular(1000, 700))
    whole = (slice(0, 1000, 1),) * 2
    chunks = ((100,) * 10,) * 2
    assert merged_chunks(chunks, axes, whole, 1, 300 * 100) == ((300, 300, 300, 100), (100,) * 10)
    assert merged_chunks(chunks, axes, whole, 1, 10) == chunks


def test_a_region_shifts_the_shards() -> None:
    region = (slice(50, 150, 1),)
    assert merged_chunks(((25, 25, 25, 25),), (Axis.regular(200, 100),), region, 1, 100) == ((50, 50),)
    assert merged_chunks(((25,) * 4,), (Axis.regular(200, 100),), (slice(0, 200, 2),), 1, 100) == ((25,) * 4,)


lengths = st.lists(st.integers(0, 9), min_size=1, max_size=9).map(tuple)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(lengths, st.integers(1, 12), st.integers(0, 5)), min_size=1, max_size=3), st.integers(1, 500))
def test_joined_chunks(axes: list[tuple[tuple[int, ...], int, int]], most: int) -> None:
    """Whatever is joined consists of whole blocks, ends where a shard ends, and is not more than is allowed."""
    chunks = tuple(blocks for blocks, _, _ in axes)
    grids = [Axis.regular(start + sum(blocks), shard) for blocks, shard, start in axes]
    region = [slice(start, start + sum(blocks), 1) for blocks, _, start in axes]
    joined = merged_chunks(chunks, grids, region, 1, most)
    for (old, shard, start), new in zip(axes, joined, strict=True):
        assert sum(new) == sum(old)
        assert set(ends(new)) <= set(ends(old))
        if new != old:
            assert all((start + end) % shard == 0 for end in ends(new)[:-1])
    largest = prod(max(axis) for axis in joined)
    assert largest <= max(most, prod(max(axis) for axis in chunks))
