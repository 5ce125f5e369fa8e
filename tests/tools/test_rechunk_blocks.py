"""The blocks that rechunking reads and writes: they fit into memory, and nothing is read twice."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.chunk_grids.axis import Axis
from zardine.tools.rechunking.blocks import choose_blocks, pieces_between


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 20)), min_size=0, max_size=4), st.data()
)
def test_any_blocks(axes: list[tuple[int, int, int]], data: st.DataObject) -> None:
    shape = tuple(length for length, _, _ in axes)
    unit, target = tuple(unit for _, unit, _ in axes), tuple(target for _, _, target in axes)
    source = [Axis.regular(length, size) for length, size in zip(shape, unit, strict=True)]

    def size(block: tuple[int, ...]) -> int:
        return prod(min(a, b) for a, b in zip(block, shape, strict=True))

    least = max(1, size(unit), size(target))
    most = data.draw(st.integers(least, 4 * least))
    blocks = choose_blocks(source, unit, target, most, 4)
    assert size(blocks.write) <= most
    assert all(a % b == 0 or a >= length for a, b, length in zip(blocks.write, target, shape, strict=True))
    if blocks.read is None:
        assert blocks.times_read <= 2
        return
    assert blocks.inner is not None
    assert size(blocks.read) <= most
    assert blocks.times_read == 1
    assert all(a % b == 0 for a, b in zip(blocks.read, blocks.inner, strict=True))
    for length, c, w in zip(shape, blocks.inner, blocks.write, strict=True):
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
    assert blocks.read == (32, 1024, 1024)
    assert blocks.inner is not None
    assert prod(blocks.inner) * 4 >= 2**20
    shards = prod(-(-length // size) for length, size in zip(shape, blocks.read, strict=True))
    assert shards <= 2.2 * 4096 / 256 + 2


def test_lengths_without_end_take_no_memory() -> None:
    shape = (2**62, 3)
    source = [Axis.regular(length, 1) for length in shape]
    blocks = choose_blocks(source, (1, 1), (2, 2), 100, 8)
    assert blocks.write[0] * 3 <= 100


@pytest.mark.parametrize("block", [3, 5, 8, 50])
def test_chunks_of_differing_lengths(block: int) -> None:
    axis = Axis(20, ((3, 2), (7, 2)))
    blocks = choose_blocks([axis], (7,), (block,), 60, 4)
    assert blocks.times_read <= 2
