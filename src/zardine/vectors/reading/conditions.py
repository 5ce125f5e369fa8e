"""Conditions on the values of attributes: what ``where`` of the readers says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import SelectionError
from zardine.vectors.content.arguments import is_masked

_ONE = (str, bytes, bytearray, memoryview)
"""What can be gone through, and is one value nevertheless."""


def holds(values: npt.NDArray[Any], condition: Any, name: str) -> npt.NDArray[np.bool_]:
    """Where an attribute is what a user's condition says.

    A function of the values that gives truth values; a ``slice(low, high)``, both ends included; one value; or
    values: a list, set, range, array, series or anything else that can be gone through, but text and mappings.
    ``None`` is a value that is missing: it is in no slice. Raises :class:`~zardine.errors.SelectionError`, also for
    text where there are numbers, and for numbers where there is text, which no value could be.
    """
    try:
        found = _compared(values, condition, name)
        if found.shape == (len(values),):
            return found.astype(np.bool_)
    except (TypeError, ValueError, OverflowError) as error:
        if callable(condition):
            raise
        raise SelectionError(f"where[{name!r}] cannot be compared with values of {values.dtype}: {error}") from None
    reason = f"where[{name!r}] gives truth values of shape {found.shape}; one for each of {len(values)} rows is needed"
    raise SelectionError(reason)


def _compared(values: npt.NDArray[Any], condition: Any, name: str) -> npt.NDArray[Any]:
    if callable(condition):
        return np.asarray(condition(values))
    if isinstance(condition, slice):
        if condition.step is not None:
            raise SelectionError(f"where[{name!r}]: a slice(low, high) of values has no step, not {condition.step!r}")
        _check_kinds(values, (condition.start, condition.stop), name)
        return _between(values, condition.start, condition.stop)
    if isinstance(condition, range):
        _check_kinds(values, (condition.start,), name)
        return _in_range(values, condition)
    if isinstance(condition, Mapping):
        raise SelectionError(f"where[{name!r}] is a {type(condition).__name__}, which is neither a value nor a list")
    if is_masked(condition):
        raise SelectionError(f"where[{name!r}]: some values are masked; leave them out")
    wanted = _scalar(condition)
    if not _has_parts(wanted):
        _check_kinds(values, (wanted,), name)
        return np.asarray(values == wanted)
    each = [_scalar(one) for one in wanted]
    wrong = next((one for one in each if _has_parts(one)), None)
    if wrong is not None:
        raise SelectionError(f"where[{name!r}] is a list of values; a {type(wrong).__name__} is none")
    _check_kinds(values, each, name)
    return _in_texts(values, each) if values.dtype.kind in "TO" else _in_numbers(values, each)


def _check_kinds(values: npt.NDArray[Any], wanted: Sequence[Any], name: str) -> None:
    """Raise :class:`SelectionError` where all that is asked for is text among numbers, or numbers among texts."""
    texts = values.dtype.kind in "TO"
    strange = (int, float, complex, bytes, np.number, np.bool_) if texts else (str, bytes)
    given = [each for each in wanted if each is not None]
    if given and all(isinstance(each, strange) for each in given):
        held, needed = ("text", "text") if texts else (str(values.dtype), "numbers")
        raise SelectionError(f"where[{name!r}] asks for {given[0]!r}, and the attribute holds {held}: give {needed}")


def _scalar(value: Any) -> Any:
    """An array without dimensions as the number that it holds, everything else as it is."""
    return np.asarray(value)[()] if getattr(value, "ndim", None) == 0 else value


def _has_parts(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, _ONE)


def _in_texts(values: npt.NDArray[Any], wanted: list[Any]) -> npt.NDArray[np.bool_]:
    texts = {each for each in wanted if each is None or isinstance(each, str)}
    found = np.fromiter((each in texts for each in values.reshape(-1).tolist()), np.bool_, values.size)
    return found.reshape(values.shape)


def _in_numbers(values: npt.NDArray[Any], wanted: list[Any]) -> npt.NDArray[np.bool_]:
    """Integers are compared exactly, and Python's fractions in the precision of ``values``, as one of them would be."""
    real = [each for each in wanted if isinstance(each, int | float | np.integer | np.floating | np.bool_)]
    found = _in_floats(values, real) if values.dtype.kind == "f" else _in_integers(values, real)
    others = [each for each in wanted if not isinstance(each, int | float | np.integer | np.floating | np.bool_ | str)]
    for each in others:
        found |= np.asarray(values == each, np.bool_)
    return found


def _in_floats(values: npt.NDArray[Any], real: list[Any]) -> npt.NDArray[np.bool_]:
    asked = np.array([_as_float(each, values.dtype) for each in real], np.float64)
    return np.isin(values.astype(np.float64), asked)


def _in_integers(values: npt.NDArray[Any], real: list[Any]) -> npt.NDArray[np.bool_]:
    held = _integers(values)
    limits = np.iinfo(held.dtype)
    whole = {int(each) for each in real if not isinstance(each, float | np.floating) or float(each).is_integer()}
    within = [each for each in whole if limits.min <= each <= limits.max]
    return np.isin(held, np.array(within, held.dtype))


def _as_float(number: Any, dtype: np.dtype[Any]) -> float:
    """What a value of ``dtype`` is, in float64, if it is ``number``; NaN for an integer that it cannot be."""
    if isinstance(number, np.floating) or (isinstance(number, float) and not np.isfinite(number)):
        return float(number)
    if isinstance(number, float):
        with np.errstate(over="ignore"):
            return float(np.asarray(number, dtype))
    found = float(number)
    return found if int(found) == int(number) else float("nan")


def _integers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)


def _in_range(values: npt.NDArray[Any], wanted: range) -> npt.NDArray[np.bool_]:
    """In the time of few comparisons of each value, however long the range is: its ends may be any integers."""
    found = np.zeros(values.shape, np.bool_)
    if not wanted or values.dtype.kind not in "iufb":
        return found
    if values.dtype.kind != "f":
        return _is_stepped(_integers(values), wanted)
    values = values.astype(np.float64)
    whole = np.isfinite(values) & (np.floor(values) == values)
    exact = whole & (np.abs(values) < 2.0**62)
    found[exact] = _is_stepped(values[exact].astype(np.int64), wanted)
    large = whole & ~exact
    found[large] = _one_by_one(values[large], wanted)
    return found


def _is_stepped(numbers: npt.NDArray[Any], wanted: range) -> npt.NDArray[np.bool_]:
    limits = np.iinfo(numbers.dtype)
    step = abs(wanted.step)
    if step > limits.max:
        return _one_by_one(numbers, wanted)
    low, high = sorted((wanted[0], wanted[-1]))
    low, high = max(low, int(limits.min)), min(high, int(limits.max))
    if low > high:
        return np.zeros(numbers.shape, np.bool_)
    kind = numbers.dtype.type
    near = np.asarray((numbers >= kind(low)) & (numbers <= kind(high)))
    if step > 1:
        near[near] = numbers[near] % kind(step) == kind(wanted[0] % step)
    return near


def _one_by_one(numbers: npt.NDArray[Any], wanted: range) -> npt.NDArray[np.bool_]:
    distinct, place = np.unique(numbers, return_inverse=True)
    inside = np.array([int(each) in wanted for each in distinct.tolist()], np.bool_)
    return inside[place].reshape(numbers.shape)


def _between(values: npt.NDArray[Any], low: Any, high: Any) -> npt.NDArray[np.bool_]:
    """Both ends included; values that are missing (``None``) are not in between."""
    found = np.ones(values.shape, np.bool_)
    if values.dtype == object:
        found = np.array([each is not None for each in values.reshape(-1)], np.bool_).reshape(values.shape)
    if low is not None:
        found[found] = np.asarray(values[found] >= low)
    if high is not None:
        found[found] = np.asarray(values[found] <= high)
    return found
