"""Sets of job numbers as ranges: what is done is a few long ranges, however many jobs there are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt


class Ranges:
    """A set of whole numbers from 0 on, kept as sorted ranges that neither overlap nor touch; stops are exclusive."""

    __slots__ = ("_starts", "_stops")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for start, stop in sorted(pairs):
            if self._stops and start <= self._stops[-1]:
                self._stops[-1] = max(self._stops[-1], stop)
            elif start < stop:
                self._starts.append(start)
                self._stops.append(stop)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ranges:
        """Return the set of ``numbers``."""
        return cls((number, number + 1) for number in numbers)

    @classmethod
    def of_many(cls, numbers: Iterable[int]) -> Ranges:
        """Return the same as :meth:`of`, of millions of numbers in little memory."""
        waiting, large, pairs = iter(numbers), cls(), np.zeros((2, 0), np.int64)
        while some := list(islice(waiting, _TOGETHER)):
            if max(some) < 2**62:
                starts = np.unique(np.array(some, np.int64))
                pairs = _joined(np.concatenate((pairs, [starts, starts + 1]), axis=1))
            else:
                large |= cls.of(some)
        found = cls()
        found._starts, found._stops = pairs.tolist()
        return found | large if large else found

    @classmethod
    def from_json(cls, document: Any) -> Ranges:
        """Return the set that :meth:`to_json` wrote. Raises ``ValueError`` for anything else."""
        if not isinstance(document, list):
            raise ValueError("ranges are a list")
        for pair in document:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(each) is int for each in pair)):
                raise ValueError(f"a range is a list of two integers, not {pair!r}")
            if not 0 <= pair[0] < pair[1]:
                raise ValueError(f"a range begins at 0 or later, and ends after that: not {pair!r}")
        return cls((start, stop) for start, stop in document)

    def to_json(self) -> list[list[int]]:
        """Return a list of pairs: first number, and the one after the last."""
        return [[start, stop] for start, stop in self.pairs()]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Give the ranges in order."""
        return zip(self._starts, self._stops, strict=True)

    def add(self, number: int) -> None:
        """Put one number in."""
        place = bisect_right(self._starts, number)
        if place and number < self._stops[place - 1]:
            return
        joins_before = place > 0 and self._stops[place - 1] == number
        joins_after = place < len(self._starts) and self._starts[place] == number + 1
        if joins_before and joins_after:
            self._stops[place - 1] = self._stops[place]
            del self._starts[place], self._stops[place]
        elif joins_before:
            self._stops[place - 1] = number + 1
        elif joins_after:
            self._starts[place] = number
        else:
            self._starts.insert(place, number)
            self._stops.insert(place, number + 1)

    def within(self, length: int) -> Ranges:
        """Return the numbers below ``length``."""
        return Ranges((start, min(stop, length)) for start, stop in self.pairs() if start < length)

    def missing(self, length: int) -> Ranges:
        """Return the numbers below ``length`` that are not in the set."""
        starts = [0, *self._stops]
        stops = [*self._starts, length]
        pairs = zip(starts, stops, strict=True)
        return Ranges((start, min(stop, length)) for start, stop in pairs if start < min(stop, length))

    def part(self, start: int, stop: int) -> Ranges:
        """Return the numbers that have places ``start`` to ``stop`` (exclusive) in the order of the set."""
        found, place = [], 0
        for low, high in self.pairs():
            first, last = max(start - place, 0), min(stop - place, high - low)
            if first < last:
                found.append((low + first, low + last))
            place += high - low
        return Ranges(found)

    def between(self, start: int, stop: int) -> Ranges:
        """Return the numbers from ``start`` on that are below ``stop``."""
        first, last = bisect_right(self._stops, start), bisect_left(self._starts, stop)
        pairs = zip(self._starts[first:last], self._stops[first:last], strict=True)
        return Ranges((max(low, start), min(high, stop)) for low, high in pairs)

    @property
    def count(self) -> int:
        """How many numbers; also where that is more than ``len`` can say."""
        return sum(self._stops) - sum(self._starts)

    def __or__(self, other: Ranges) -> Ranges:
        return Ranges([*self.pairs(), *other.pairs()])

    def __sub__(self, other: Ranges) -> Ranges:
        if not self._stops:
            return self
        length = self._stops[-1]
        return (self.missing(length) | other).missing(length)

    def __and__(self, other: Ranges) -> Ranges:
        return self - (self - other)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._starts, number)
        return place > 0 and number < self._stops[place - 1]

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __iter__(self) -> Iterator[int]:
        for start, stop in self.pairs():
            yield from range(start, stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and (self._starts, self._stops) == (other._starts, other._stops)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        shown = [str(start) if stop == start + 1 else f"{start} to {stop - 1}" for start, stop in self.pairs()]
        more = len(shown) - _SHOWN
        return ", ".join(shown if more <= 0 else [*shown[:_SHOWN], f"and {more} more ranges"])

    def __repr__(self) -> str:
        return f"Ranges({list(self.pairs())})"


def _joined(pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ranges (first numbers, and those after the last) in order, those that overlap or touch as one."""
    starts, stops = pairs[:, np.argsort(pairs[0], kind="stable")]
    stops = np.maximum.accumulate(stops)
    ends = np.flatnonzero(starts[1:] > stops[:-1])
    return np.stack((starts[np.append(0, ends + 1)], stops[np.append(ends, len(stops) - 1)]))


_TOGETHER = 2**18
"""Numbers that are sorted together."""
_SHOWN = 8
"""Ranges that a text names."""

__all__ = ["Ranges"]
