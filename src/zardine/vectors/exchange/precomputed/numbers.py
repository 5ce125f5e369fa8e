"""Numbers out of documents, which may hold anything. Pure."""

from __future__ import annotations

from math import isfinite
from typing import Any


def finite_numbers(values: Any, count: int | None = None) -> list[float] | None:
    """Return a list of finite numbers, ``count`` of them if that is given; ``None`` for whatever is none."""
    if not isinstance(values, list) or (count is not None and len(values) != count):
        return None
    try:
        found = [float(each) for each in values if isinstance(each, int | float)]
    except OverflowError:
        return None
    return found if len(found) == len(values) and all(map(isfinite, found)) else None


def is_number(text: str) -> bool:
    """Return whether a text is a number of up to 64 bits, as it is written: without zeros before it."""
    return text.isascii() and text.isdecimal() and len(text) < 21 and str(int(text)) == text and int(text) < 2**64


__all__ = ["finite_numbers", "is_number"]
