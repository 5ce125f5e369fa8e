"""Sets of job numbers as ranges, against Python's sets."""

from __future__ import annotations

import json
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
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))))
def test_they_neither_overlap_nor_touch(pairs: list[tuple[int, int]]) -> None:
    found = Ranges(pairs)
    assert set(found) == {each for start, stop in pairs for each in range(start, stop)}
    assert all(stop < start for (_, stop), (start, _) in zip(found.pairs(), list(found.pairs())[1:], strict=False))


@pytest.mark.parametrize("document", [None, {}, [1], [[1]], [[2, 1]], [[-1, 3]], [[0, "1"]], [[0.5, 1]], [[1, 1]]])
def test_what_is_no_ranges_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="range"):
        Ranges.from_json(document)


def test_a_text_names_a_few() -> None:
    assert str(Ranges([(0, 1), (3, 6)])) == "0, 3 to 5"
    assert str(Ranges.of(range(0, 100, 2))).endswith("14, and 42 more ranges")


BOTH = st.integers(0, 60) | st.integers(2**62 - 2, 2**62 + 2) | st.integers(2**64 - 2, 2**64)
"""Small numbers, those from which on they are Python's integers, and such as no array of 64 bits holds."""


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(BOTH), st.lists(BOTH), st.integers(1, 7), BOTH, BOTH, st.integers(1, 9))
def test_large_numbers_in_parts(a: list[int], b: list[int], together: int, start: int, stop: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_TOGETHER", together)
        patch.setattr(ranges, "_LISTED", 2)
        one, two = Ranges.of(a), Ranges.of(b)
        numbers = sorted(set(a))
        assert list(one) == numbers
        assert one == Ranges((each, each + 1) for each in a)
        assert one.count == len(numbers)
        assert list(one | two) == sorted({*a, *b})
        assert list(one - two) == sorted({*a} - {*b})
        assert list(one.between(start, stop)) == [each for each in numbers if start <= each < stop]
        first, last = sorted((start % 9, stop % 9))
        assert list(one.part(first, last)) == numbers[first:last]
        assert list(one.blocks(size, first=3)) == sorted({3 + each // size for each in a})
        assert [each in one for each in (*b, start)] == [each in numbers for each in (*b, start)]
        document = json.loads(json.dumps(one.to_json()))
        assert Ranges.from_json(document) == one
        assert isinstance(document, str) == (len(list(one.pairs())) > 2 and max(a) < 2**62 - 1)


@pytest.mark.parametrize(
    "text",
    ["", " ", "1", "1 2 3", "1 0", "1 1 0 1", "0 -1", "1  1", "1 1 ", "1,1", "1.5 2", "nan 1", "1 9999999999999999999"],
)
def test_a_text_that_is_no_ranges_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ranges as a text"):
        Ranges.from_json(text)


def test_more_than_can_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="ranges as a text"):
        Ranges.from_json(" ".join(["999999999999999999"] * 6))


def test_many_that_lie_alone_take_little_memory() -> None:
    tracemalloc.start()
    try:
        found = Ranges.of(range(0, 500_000, 2))
        assert len(found) == 250_000
        again = Ranges.from_json(json.loads(json.dumps(found.to_json())))
        assert again == found
        assert len(again.part(100_000, 125_000).blocks(3)) == 16_667
        assert len(again.missing(500_000)) == 250_000
        current, peak = tracemalloc.get_traced_memory()
        assert current < 9 * 2**20
        assert peak < 26 * 2**20
    finally:
        tracemalloc.stop()
