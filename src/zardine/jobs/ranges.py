"""Sets of numbers of jobs, or of cells, as ranges: what is done is a few long ones, however many jobs there are.

They are arrays, so that millions of cells that lie alone take some tens of bytes each, also on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

_Pairs: TypeAlias = npt.NDArray[Any]
"""First numbers, and those after the last; of Python's integers where one is ``_LARGE`` or more, else int64."""

_LARGE: Final = 2**62
_TOGETHER = 2**14
"""Numbers, or ranges, that are Python's at a time."""
_LISTED = 2**10
"""Ranges, above which JSON is a text."""
_SHOWN: Final = 8
"""Ranges that a text for people names."""


class Ranges:
    """A set of whole numbers from 0 on, kept as sorted ranges that neither overlap nor touch; stops are exclusive."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._pairs = _gathered(_integers(some).reshape(-1, 2).T for some in batches(pairs))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ranges:
        """Return the set of ``numbers``."""
        starts = (np.unique(_integers(some)) for some in batches(numbers))
        return cls._kept(_gathered(_joined(np.stack((each, each + 1))) for each in starts))

    @classmethod
    def union(cls, parts: Iterable[Ranges], *, most: int | None = None) -> Ranges:
        """Return what is in any of some sets.

        With ``most`` of at most so many ranges: where they would be more, the smallest gaps between them are filled.
        """
        return cls._kept(_gathered((each._pairs for each in parts), most))

    @classmethod
    def _kept(cls, pairs: _Pairs) -> Ranges:
        made = cls.__new__(cls)
        made._pairs = pairs
        return made

    @classmethod
    def from_json(cls, document: Any) -> Ranges:
        """Return the set that :meth:`to_json` wrote. Raises ``ValueError`` for anything else."""
        if isinstance(document, str):
            return cls._kept(_of_text(document))
        if not isinstance(document, list):
            raise ValueError("ranges are a list, or a text")
        for pair in document:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(each) is int for each in pair)):
                raise ValueError(f"a range is a list of two integers, not {pair!r}")
            if not 0 <= pair[0] < pair[1]:
                raise ValueError(f"a range begins at 0 or later, and ends after that: not {pair!r}")
        return cls((start, stop) for start, stop in document)

    def to_json(self) -> list[list[int]] | str:
        """Return a list of pairs: first number, and the one after the last.

        Of many ranges a text: by turns how many numbers are left out, and how many are in, in decimal.
        """
        if self.pieces <= _LISTED or self._pairs.dtype == object:
            return [[start, stop] for start, stop in self.pairs()]
        edges = self._pairs.T.ravel()
        steps = np.diff(edges, prepend=0)
        return " ".join(" ".join(map(str, steps[i : i + _TOGETHER].tolist())) for i in range(0, len(steps), _TOGETHER))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Give the ranges in order."""
        for i in range(0, self._pairs.shape[1], _TOGETHER):
            starts, stops = self._pairs[:, i : i + _TOGETHER].tolist()
            yield from zip(map(int, starts), map(int, stops), strict=True)

    def within(self, length: int) -> Ranges:
        """Return the numbers below ``length``."""
        return self.between(0, length)

    def missing(self, length: int) -> Ranges:
        """Return the numbers below ``length`` that are not in the set."""
        starts, stops = self.within(length)._pairs
        ends = _integers([0, length])
        edges = np.stack((np.append(ends[:1], stops), np.append(starts, ends[1:])))
        return self._kept(edges[:, edges[0] < edges[1]])

    def part(self, start: int, stop: int) -> Ranges:
        """Return the numbers that have places ``start`` to ``stop`` (exclusive) in the order of the set."""
        starts, stops = self._pairs
        ends = np.cumsum(stops - starts)
        first, last = _place(ends, start, "right"), _place(ends, stop, "left") + 1
        found = self._pairs[:, first:last].copy()
        if found.shape[1]:
            ends = ends[first:last]
            found[0, 0] += max(0, start - int(ends[0] - (found[1, 0] - found[0, 0])))
            found[1, -1] -= max(0, int(ends[-1]) - stop)
        return self._kept(found[:, found[0] < found[1]])

    def between(self, start: int, stop: int) -> Ranges:
        """Return the numbers from ``start`` on that are below ``stop``."""
        first, last = _place(self._pairs[1], start, "right"), _place(self._pairs[0], stop, "left")
        found = self._pairs[:, first:last].copy()
        if found.shape[1]:
            found[0, 0], found[1, -1] = max(start, int(found[0, 0])), min(stop, int(found[1, -1]))
        return self._kept(found)

    def blocks(self, size: int, *, first: int = 0) -> Ranges:
        """Return the numbers of blocks of ``size`` numbers in which some are, counted from ``first``."""
        starts, stops = self._pairs
        return self._kept(_joined(np.stack((first + starts // size, first - -stops // size))))

    @property
    def count(self) -> int:
        """How many numbers; also where that is more than ``len`` can say."""
        return int((self._pairs[1] - self._pairs[0]).sum())

    @property
    def pieces(self) -> int:
        """How many ranges."""
        return int(self._pairs.shape[1])

    def __or__(self, other: Ranges) -> Ranges:
        return self.union((self, other))

    def __sub__(self, other: Ranges) -> Ranges:
        if not self:
            return self
        length = int(self._pairs[1, -1])
        return (self.missing(length) | other).missing(length)

    def __and__(self, other: Ranges) -> Ranges:
        return self - (self - other)

    def __contains__(self, number: int) -> bool:
        place = _place(self._pairs[0], number, "right")
        return place > 0 and bool(number < self._pairs[1, place - 1])

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.pieces > 0

    def __iter__(self) -> Iterator[int]:
        for start, stop in self.pairs():
            yield from range(start, stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and np.array_equal(self._pairs, other._pairs)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        pairs = islice(self.pairs(), _SHOWN)
        shown = [str(start) if stop == start + 1 else f"{start} to {stop - 1}" for start, stop in pairs]
        more = self.pieces - _SHOWN
        return ", ".join(shown if more <= 0 else [*shown, f"and {more} more ranges"])

    def __repr__(self) -> str:
        return f"Ranges({list(self.pairs())})"


_NOTHING: Final[_Pairs] = np.zeros((2, 0), np.int64)


def _integers(values: list[Any]) -> npt.NDArray[Any]:
    try:
        found = np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)
    return found if found.max() < _LARGE else np.array(values, object)


def batches(values: Iterable[T], most: int = _TOGETHER) -> Iterator[list[T]]:
    """Yield some thousands at a time, or ``most``."""
    waiting = iter(values)
    while some := list(islice(waiting, most)):
        yield some


def _gathered(parts: Iterable[_Pairs], most: int | None = None) -> _Pairs:
    """Return what is in any of many parts, which are put together once they are as many as what is gathered."""
    waiting, count, gathered = list[_Pairs](), 0, 0
    for each in parts:
        waiting.append(each)
        count += each.shape[1]
        if count - gathered > max(_TOGETHER, gathered):
            waiting = [_coarse(_joined(np.concatenate(waiting, axis=1)), most)]
            count = gathered = waiting[0].shape[1]
    if len(waiting) < 2:
        return _coarse(_joined(waiting[0]), most) if waiting else _NOTHING
    return _coarse(_joined(np.concatenate(waiting, axis=1)), most)


def _coarse(pairs: _Pairs, most: int | None) -> _Pairs:
    """Fill the smallest gaps, so that at most so many ranges are left."""
    if most is None or pairs.shape[1] <= most:
        return pairs
    gaps = pairs[0, 1:] - pairs[1, :-1]
    kept = np.sort(np.argsort(gaps, kind="stable")[len(gaps) - (most - 1) :])
    return np.stack((pairs[0, np.append(0, kept + 1)], pairs[1, np.append(kept, len(gaps))]))


def _place(numbers: npt.NDArray[Any], number: int, side: Any) -> int:
    if numbers.dtype != object and number >= _LARGE:
        return len(numbers)
    return int(np.searchsorted(numbers, number, side))


def _joined(pairs: _Pairs) -> _Pairs:
    """Return ranges in order, those that overlap or touch as one, without empty ones."""
    if pairs.shape[1] == 1:  # arrays of one chunk are many
        return pairs if pairs[0, 0] < pairs[1, 0] else _NOTHING
    pairs = pairs[:, pairs[0] < pairs[1]]
    if (pairs[0, 1:] < pairs[0, :-1]).any():
        pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
    if not pairs.shape[1]:
        return _NOTHING
    starts, stops = pairs[0], np.maximum.accumulate(pairs[1])
    ends = np.flatnonzero(starts[1:] > stops[:-1])
    return np.stack((starts[np.append(0, ends + 1)], stops[np.append(ends, len(stops) - 1)]))


def _of_text(text: str) -> _Pairs:
    if not re.fullmatch("[0-9 ]+", text) or re.search("[0-9]{19}", text):
        raise ValueError("ranges as a text are numbers of at most 18 digits, with a space between")
    steps = np.fromstring(text, np.int64, sep=" ")
    if len(steps) % 2 or len(steps) != text.count(" ") + 1 or (steps[1:] < 1).any() or steps.sum(dtype=float) >= _LARGE:
        raise ValueError("ranges as a text are by turns how many numbers are left out, and how many are in")
    return np.ascontiguousarray(np.cumsum(steps).reshape(-1, 2).T)


__all__ = ["Ranges", "batches"]
