"""Conditions on the values of attributes: what ``where`` of the readers says. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import SelectionError


def holds(values: npt.NDArray[Any], condition: Any, name: str) -> npt.NDArray[np.bool_]:
    """Where an attribute is what a user's condition says.

    A function of the values that gives truth values; a ``slice(low, high)``, both ends included; a list, set or range
    of values; or one value. ``None`` is a value that is missing: it is in no slice. Raises
    :class:`~zardine.errors.SelectionError`.
    """
    try:
        found = _compared(values, condition, name)
    except (TypeError, ValueError) as error:
        if callable(condition):
            raise
        raise SelectionError(f"where[{name!r}] cannot be compared with values of {values.dtype}: {error}") from None
    if found.shape != (len(values),):
        reason = (
            f"where[{name!r}] gives truth values of shape {found.shape}; one for each of {len(values)} rows is needed"
        )
        raise SelectionError(reason)
    return found.astype(np.bool_)


def _compared(values: npt.NDArray[Any], condition: Any, name: str) -> npt.NDArray[Any]:
    if callable(condition):
        return np.asarray(condition(values))
    if isinstance(condition, slice):
        if condition.step is not None:
            raise SelectionError(f"where[{name!r}]: a slice(low, high) of values has no step, not {condition.step!r}")
        return _between(values, condition.start, condition.stop)
    if isinstance(condition, range):
        return _in_range(values, condition)
    if isinstance(condition, list | tuple | set | frozenset | np.ndarray):
        found = np.zeros(values.shape, np.bool_)
        for each in condition:
            found |= np.asarray(values == each, np.bool_)
        return found
    return np.asarray(values == condition)


def _in_range(values: npt.NDArray[Any], wanted: range) -> npt.NDArray[np.bool_]:
    if not len(wanted) or values.dtype.kind not in "iufb":
        return np.zeros(values.shape, np.bool_)
    numbers = values.astype(np.int64) if values.dtype.kind == "b" else values
    near = np.asarray((numbers >= min(wanted)) & (numbers <= max(wanted)))
    steps = numbers[near] - np.asarray(wanted.start, numbers.dtype if wanted.start >= 0 else None)
    near[near] = np.asarray(steps % abs(wanted.step) == 0)
    return near


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
