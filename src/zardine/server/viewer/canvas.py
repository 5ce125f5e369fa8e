"""A picture in the making: elements become pixels, chunk by chunk, whatever the order in which chunks come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Reduction: TypeAlias = Literal["nearest", "mean", "max", "min"]
"""What becomes of the elements of one pixel: the middle one is taken, or what all of them give."""

REDUCTIONS: Final = ("nearest", "mean", "max", "min")

_FEW: Final = 64
"""Elements of a pixel, along an axis, that are taken one after the other."""

_BAND: Final = 2**18
"""Pixels of some rows that are worked on together."""

VALUE: Final = 1
MISSING: Final = 2
"""Not stored: it reads as the fill value."""
DAMAGED: Final = 4
FILL: Final = 8
"""Stored, and equal to the fill value, where that marks what is absent."""
NAN: Final = 16
GUESSED: Final = 32
"""Not read yet: drawn as what is near it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Which elements a picture shows, along one axis: ``start`` to ``stop`` (exclusive), ``step`` of them a pixel."""

    start: int
    stop: int
    step: int

    @property
    def pixels(self) -> int:
        """How many pixels."""
        return -(-(self.stop - self.start) // self.step)

    def middles(self) -> npt.NDArray[np.int64]:
        """Return the element in the middle of each pixel."""
        firsts = np.arange(self.start, self.stop, self.step, dtype=np.int64)
        return np.minimum(firsts + self.step // 2, self.stop - 1)


class Canvas:
    """Pixels of ``rows`` and ``columns``, in ``dtype``, made of elements by a ``reduction``.

    ``states`` has for each pixel which of :data:`VALUE`, :data:`MISSING`, ... occur in it; 0 where nothing was read.
    """

    def __init__(self, rows: Frame, columns: Frame, reduction: Reduction, dtype: np.dtype[Any]) -> None:
        self.rows, self.columns, self.reduction = rows, columns, reduction
        shape = rows.pixels, columns.pixels
        self.states = np.zeros(shape, np.uint8)
        self._dtype = dtype
        if reduction == "mean":
            self._sums = np.zeros(shape, np.float64)
            self._counts = np.zeros(shape, np.int64)
        else:
            self._kept = np.full(shape, _neutral(reduction, dtype), dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of memory taken."""
        made = (self._sums, self._counts) if self.reduction == "mean" else (self._kept,)
        return self.states.nbytes + sum(each.nbytes for each in made)

    def add(
        self, row: int, column: int, numbers: npt.NDArray[Any], absent: npt.NDArray[np.bool_] | None = None
    ) -> None:
        """Draw ``numbers``, the elements from ``row`` and ``column`` on, all within the frames.

        ``absent`` says which of them equal a fill value that marks what is absent. Those, and NaN, count for no result.
        """
        if self.reduction == "nearest":
            self._add_middles(row, column, numbers, absent)
            return
        place = self._place(row, column, numbers.shape)
        cuts = _cuts(self.rows, row, numbers.shape[0]), _cuts(self.columns, column, numbers.shape[1])
        nan = np.isnan(numbers) if numbers.dtype.kind == "f" else None
        left_out = _either(nan, absent)
        self._mark(place, cuts, nan, absent, left_out)
        if self.reduction == "mean":
            kept = numbers if left_out is None else np.where(left_out, 0, numbers)
            self._sums[place] += _over(np.add, kept.astype(np.float64, copy=False), cuts)
            if left_out is None:
                lengths = [np.diff([*cut, n]) for cut, n in zip(cuts, numbers.shape, strict=True)]
                self._counts[place] += lengths[0][:, None] * lengths[1]
            else:
                self._counts[place] += _over(np.add, (~left_out).astype(np.int64), cuts)
            return
        function = np.maximum if self.reduction == "max" else np.minimum
        if left_out is not None:
            numbers = np.where(left_out, _neutral(self.reduction, numbers.dtype), numbers)
        self._kept[place] = function(self._kept[place], _over(function, numbers, cuts))

    def mark(self, row: int, column: int, shape: tuple[int, int], state: int) -> None:
        """Note that elements from ``row`` and ``column`` on are damaged, or not stored."""
        nearest = self.reduction == "nearest"
        place = self._middles(row, column, shape)[0] if nearest else self._place(row, column, shape)
        self.states[place] |= state

    def finished(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """Return the pixels and their states; what was not read yet is guessed from what is near it."""
        pixels, states = np.zeros(self.states.shape, self._dtype), self.states.copy()
        for some in self._bands():
            if self.reduction == "mean":
                pixels[some] = self._sums[some] / np.maximum(self._counts[some], 1)
            else:
                np.copyto(pixels[some], self._kept[some], where=(states[some] & VALUE).astype(np.bool_))
        known = states != 0
        if known.all() or not known.any():
            return pixels, states
        there: npt.NDArray[np.bool_] = np.logical_or.reduce(known, axis=1)
        rows = _nearest(there[None, :])[0]
        guessed, sure = np.empty_like(pixels), states.copy()
        for some in self._bands():
            source = rows[some, None], _nearest(known[rows[some]])
            guessed[some] = pixels[source]
            states[some] = np.where(known[some], sure[some], sure[source] | GUESSED)
        return guessed, states

    def _bands(self) -> Iterator[slice]:
        """Yield some rows at a time, so that what is worked out meanwhile takes little memory."""
        height = max(1, _BAND // max(1, self.states.shape[1]))
        for start in range(0, self.states.shape[0], height):
            yield slice(start, start + height)

    def _add_middles(
        self, row: int, column: int, numbers: npt.NDArray[Any], absent: npt.NDArray[np.bool_] | None
    ) -> None:
        place, inner = self._middles(row, column, numbers.shape)
        taken = np.ix_(*inner)
        chosen = numbers[taken]
        states = np.full(chosen.shape, VALUE, np.uint8)
        if chosen.dtype.kind == "f":
            states[np.isnan(chosen)] = NAN
        if absent is not None:
            states[absent[taken]] = FILL
        self._kept[place] = chosen
        self.states[place] |= states

    def _middles(
        self, row: int, column: int, shape: tuple[int, ...]
    ) -> tuple[tuple[slice, ...], list[npt.NDArray[np.int64]]]:
        """Return the pixels whose middle lies among so many elements, and where among them."""
        places, inner = [], []
        for frame, start, length in zip((self.rows, self.columns), (row, column), shape, strict=True):
            middles = frame.middles()
            low, high = np.searchsorted(middles, (start, start + length)).tolist()
            places.append(slice(low, high))
            inner.append(middles[low:high] - start)
        return tuple(places), inner

    def _place(self, row: int, column: int, shape: tuple[int, ...]) -> tuple[slice, slice]:
        first, second = (
            slice((start - frame.start) // frame.step, (start + length - 1 - frame.start) // frame.step + 1)
            for frame, start, length in zip((self.rows, self.columns), (row, column), shape, strict=True)
        )
        return first, second

    def _mark(
        self,
        place: tuple[slice, slice],
        cuts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
        nan: npt.NDArray[np.bool_] | None,
        absent: npt.NDArray[np.bool_] | None,
        left_out: npt.NDArray[np.bool_] | None,
    ) -> None:
        states = self.states[place]
        if left_out is None:
            states |= VALUE
            return
        for state, mask in ((NAN, nan), (FILL, absent), (VALUE, ~left_out)):
            if mask is not None:
                states |= np.where(_over(np.logical_or, mask, cuts), np.uint8(state), np.uint8(0))


def spread(rows: int, columns: int, start: int, count: int) -> npt.NDArray[np.int64]:
    """Return places of a grid, shape ``(n, 2)``, so that the first few lie all over it, and at last each came once.

    These are the places of numbers ``start`` to ``start + count`` (exclusive), of as many as a grid has whose sides are
    the next powers of two; some of these give no place.
    """
    bits = []
    for bit in range(max((rows - 1).bit_length(), (columns - 1).bit_length()) - 1, -1, -1):
        bits += [(axis, bit) for axis, length in ((0, rows), (1, columns)) if bit < (length - 1).bit_length()]
    numbers = np.arange(start, min(start + count, 1 << len(bits)), dtype=np.int64)
    places = np.zeros((2, len(numbers)), np.int64)
    for position, (axis, bit) in enumerate(bits):
        places[axis] |= ((numbers >> position) & 1) << bit
    inside = (places[0] < rows) & (places[1] < columns)
    found: npt.NDArray[np.int64] = places.T[inside]
    return found


def numbers_of(rows: int, columns: int) -> int:
    """Return how many numbers :func:`spread` takes for a grid."""
    return 1 << ((rows - 1).bit_length() + (columns - 1).bit_length())


def _neutral(reduction: Reduction, dtype: np.dtype[Any]) -> Any:
    """Return what changes no result."""
    if reduction not in ("max", "min"):
        return np.zeros((), dtype)
    if dtype.kind == "f":
        return -np.inf if reduction == "max" else np.inf
    return np.iinfo(dtype).min if reduction == "max" else np.iinfo(dtype).max


def _cuts(frame: Frame, start: int, length: int) -> npt.NDArray[np.int64]:
    """Return where pixels begin among elements from ``start`` on."""
    if frame.step == 1:
        return np.arange(length, dtype=np.int64)
    first = frame.step - (start - frame.start) % frame.step
    return np.concatenate(([0], np.arange(first, length, frame.step))).astype(np.int64)


def _over(
    function: np.ufunc, values: npt.NDArray[Any], cuts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
) -> npt.NDArray[Any]:
    """Return what ``function`` makes of the elements between cuts, along both axes."""
    for axis, cut in enumerate(cuts):
        if len(cut) != values.shape[axis]:
            values = _between(function, values, cut, axis)
    return values


def _between(function: np.ufunc, values: npt.NDArray[Any], cut: npt.NDArray[np.int64], axis: int) -> npt.NDArray[Any]:
    """Return what ``reduceat`` does. Where many pixels have few elements each, these are taken together by slices.

    All but the first and the last pixel have equally many. That takes a tenth of the time.
    """
    if len(cut) < 4 or (step := int(cut[2] - cut[1])) > _FEW:
        reduced: npt.NDArray[Any] = function.reduceat(values, cut, axis=axis)
        return reduced
    moved = np.moveaxis(values, axis, 0)
    result = np.empty((len(cut), *moved.shape[1:]), moved.dtype)
    function.reduce(moved[: cut[1]], out=result[0])
    function.reduce(moved[cut[-1] :], out=result[-1])
    inner, whole = result[1:-1], moved[cut[1] : cut[-1]]
    inner[...] = whole[::step]
    for i in range(1, step):
        function(inner, whole[i::step], out=inner)
    return np.moveaxis(result, 0, axis)


def _either(first: npt.NDArray[np.bool_] | None, second: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_] | None:
    first = first if first is not None and first.any() else None
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _nearest(known: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return for each place the nearest one along the last axis that is known; each row has some."""
    count = known.shape[1]
    places = np.arange(count, dtype=np.int32)
    before = np.maximum.accumulate(np.where(known, places, -count), axis=1)
    after = np.minimum.accumulate(np.where(known, places, 2 * count)[:, ::-1], axis=1)[:, ::-1]
    return np.where(places - before <= after - places, before, after)


__all__ = [
    "DAMAGED",
    "FILL",
    "GUESSED",
    "MISSING",
    "NAN",
    "REDUCTIONS",
    "VALUE",
    "Canvas",
    "Frame",
    "Reduction",
    "numbers_of",
    "spread",
]
