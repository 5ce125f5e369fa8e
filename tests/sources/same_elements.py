"""Comparing elements, of whatever kind, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from zardine.tools.copying.compare import differences


def equal(found: Any, expected: Any) -> bool:
    """Whether two arrays hold the same elements; byte order, and how text is held, does not count."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if found.size == 0:
        return found.dtype.kind == expected.dtype.kind
    if found.dtype.kind in "TO" or expected.dtype.kind in "TO":
        return bool((found.astype(object) == expected.astype(object)).all())
    if found.dtype.kind != expected.dtype.kind or found.dtype.itemsize > expected.dtype.itemsize:
        return False
    return not bool(differences(found, expected.astype(found.dtype)).any())
