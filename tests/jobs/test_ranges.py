"""Sets of job numbers as ranges, against Python's sets."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.jobs import ranges
from zardine.jobs.ranges import Ranges

NUMBERS = st.sets(st.integers(0, 40), max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(NUMBERS, NUMBERS, st.integers(0, 50))
def test_they_are_sets(a: set[int], b: set[int], length: int) -> None:
    one, two = Ranges.of(a), Ranges.of(b)
    assert set(one | two) == a | b
    assert set(one - two) == a - b
    assert set(one & two) == a & b
    assert set(one.missing(length)) == set(range(length)) - a
    assert set(one.within(length)) == {each for each in a if each < length}
    assert len(one) == len(a)
    assert [each in one for each in range(50)] == [each in a for each in range(50)]
    assert Ranges.from_json(one.to_json()) == one


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(0, 30)))
def test_one_by_one_gives_the_same_ranges(numbers: list[int]) -> None:
    found = Ranges()
    for number in numbers:
        found.add(number)
    assert found == Ranges.of(numbers)
    assert all(stop < start for (_, stop), (start, _) in zip(found.pairs(), list(found.pairs())[1:], strict=False))


@pytest.mark.parametrize("document", [None, {}, [1], [[1]], [[2, 1]], [[-1, 3]], [[0, "1"]], [[0.5, 1]], [[1, 1]]])
def test_what_is_no_ranges_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="range"):
        Ranges.from_json(document)


def test_a_text_names_a_few() -> None:
    assert str(Ranges([(0, 1), (3, 6)])) == "0, 3 to 5"
    assert str(Ranges.of(range(0, 100, 2))).endswith("14, and 42 more ranges")


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(0, 60) | st.integers(2**62 - 2, 2**62 + 2)), st.integers(1, 7))
def test_of_many(numbers: list[int], together: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_TOGETHER", together)
        assert Ranges.of_many(numbers) == Ranges.of(numbers)
        assert list(Ranges.of_many(numbers)) == sorted(set(numbers))


def test_a_million_that_lie_alone_take_little_memory() -> None:
    tracemalloc.start()
    try:
        found = Ranges.of_many(range(0, 2_000_000, 2))
        assert len(found) == 1_000_000
        assert tracemalloc.get_traced_memory()[1] < 140 * 2**20
    finally:
        tracemalloc.stop()
