"""The blocks that rechunking reads and writes: they fit into memory, and nothing is read twice."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.chunk_grids.axis import Axis
from zardine.tools.copying.blocks import choose_blocks, pieces_between, volume


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 20), st.integers(1, 4)), min_size=0, max_size=4
    ),
    st.sampled_from([4, 2**16]),
    st.booleans(),
    st.data(),
)
def test_any_blocks(
    axes: list[tuple[int, int, int, int]], item_size: int, may_append: bool, data: st.DataObject
) -> None:
    shape = tuple(length for length, *_ in axes)
    unit, inner = tuple(unit for _, unit, _, _ in axes), tuple(inner for _, _, inner, _ in axes)
    target = tuple(size * number for _, _, size, number in axes)
    source = [Axis.regular(length, size) for length, size in zip(shape, unit, strict=True)]
    least = max(1, volume(unit, shape), volume(inner if may_append else target, shape))
    most = data.draw(st.integers(least, 4 * least))
    blocks = choose_blocks(source, unit, target, most, item_size, inner=inner if may_append else None)
    assert volume(blocks.write, shape) <= most
    whole = inner if blocks.appends else target
    assert may_append or not blocks.appends
    assert all(a % b == 0 or a >= length for a, b, length in zip(blocks.write, whole, shape, strict=True))
    if not blocks.between:
        assert blocks.times_read <= 2
        return
    assert blocks.times_read == 1
    first = blocks.between[0].block
    assert all(a % b == 0 or a >= length for a, b, length in zip(first, unit, shape, strict=True))
    for each, following in pairwise([*blocks.between, None]):
        read = blocks.write if following is None else following.block
        assert volume(each.block, shape) <= most
        assert all(a % b == 0 for a, b in zip(each.block, each.inner, strict=True))
        for length, c, w in zip(shape, each.inner, read, strict=True):
            assert w % c == 0 or w >= length


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 12))
def test_pieces(length: int, a: int, b: int) -> None:
    cuts = {each for each in range(length) if each % a == 0 or each % b == 0}
    assert pieces_between(length, a, b) == len(cuts)


def test_the_worst_case_of_rechunking() -> None:
    """4 GiB in planes become columns: blocks of half of 256 MiB, with few objects between and large pieces."""
    shape = (1024, 1024, 1024)
    source = [Axis.regular(length, size) for length, size in zip(shape, (1, 1024, 1024), strict=True)]
    blocks = choose_blocks(source, (1, 1024, 1024), (1024, 32, 32), 2**25, 4)
    (between,) = blocks.between
    assert between.block == (32, 1024, 1024)
    assert prod(between.inner) * 4 >= 2**20
    shards = prod(-(-length // size) for length, size in zip(shape, between.block, strict=True))
    assert shards <= 2.2 * 4096 / 256 + 2


def test_small_pieces_are_avoided_by_one_more_stage() -> None:
    """1 TiB in planes of 4 MiB, with 64 MiB: by one array between, pieces would have 4 KiB."""
    shape = (2**18, 1024, 1024)
    source = [Axis.regular(length, size) for length, size in zip(shape, (1, 1024, 1024), strict=True)]
    blocks = choose_blocks(source, (1, 1024, 1024), (2**18, 8, 8), 2**24, 4)
    assert len(blocks.between) >= 2
    for each in blocks.between:
        assert prod(each.inner) * 4 >= 2**18


def test_whole_inner_chunks_are_appended_where_that_is_cheapest() -> None:
    """Slabs of 64 planes hold whole inner chunks; shards are larger than memory."""
    shape = (1024, 1024, 1024)
    source = [Axis.regular(length, size) for length, size in zip(shape, (64, 1024, 1024), strict=True)]
    blocks = choose_blocks(source, (64, 1024, 1024), (1024, 512, 512), 2**26, 4, inner=(64, 64, 64))
    assert blocks.appends
    assert blocks.between == ()
    assert blocks.times_read == 1


def test_lengths_without_end_take_no_memory() -> None:
    shape = (2**62, 3)
    source = [Axis.regular(length, 1) for length in shape]
    blocks = choose_blocks(source, (1, 1), (2, 2), 100, 8)
    assert volume(blocks.write, shape) <= 100


@pytest.mark.parametrize("block", [3, 5, 8, 50])
def test_chunks_of_differing_lengths(block: int) -> None:
    axis = Axis(20, ((3, 2), (7, 2)))
    blocks = choose_blocks([axis], (7,), (block,), 60, 4)
    assert blocks.times_read <= 2
