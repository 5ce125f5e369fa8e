"""What users pass as one value: numbers of Python, NumPy and ml_dtypes, 0-dimensional arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def unwrap(value: Any) -> Any:
    """The scalar inside a 0-dimensional array; other values as they are. Raises ``TypeError`` for larger arrays."""
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise TypeError(f"a fill value is one scalar, found an array of shape {value.shape}")
        return value[()]
    return value


def real_number(value: Any) -> int | float | None:
    """``value`` as a Python number, exact except for ``longdouble``; ``None`` where it is not a real number."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    kind = type(value)
    if kind.__module__.partition(".")[0] == "ml_dtypes":
        return int(value) if "int" in kind.__name__ else float(value)
    try:
        return operator.index(value)
    except TypeError:
        return None


def refusal(value: Any, name: str, reason: str) -> str:
    """The text of the error for a fill value given by a user."""
    shown = repr(value)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return f"{shown} cannot be a fill value of data type {name}: {reason}"
