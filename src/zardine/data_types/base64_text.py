"""Bytes in JSON: base64 text, or an array of integers."""

from __future__ import annotations

import base64
import binascii

from zardine.json_document import JSON, Problems, is_integer, show

MAX_ITEM_SIZE = 2**24
"""Bytes of one element: far more than any real one, and little enough for a fill value to be made in memory."""


def parse_bytes(value: JSON, place: str, problems: Problems) -> bytes | None:
    """Bytes given as base64 text or as an array of integers from 0 to 255."""
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            problems.expected(place, "base64 text", value)
            return None
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "base64 text or an array of integers from 0 to 255", value)
        return None
    good = True
    for index, item in enumerate(value):
        if not is_integer(item) or not 0 <= item <= 255:
            problems.expected(f"{place}[{index}]", "an integer from 0 to 255", item)
            good = False
    return bytes(value) if good else None


def parse_exact_bytes(value: JSON, length: int, place: str, problems: Problems) -> bytes | None:
    """Like :func:`parse_bytes`, for exactly ``length`` bytes."""
    data = parse_bytes(value, place, problems)
    if data is not None and len(data) != length:
        problems.add(place, f"expected {length} bytes, found {len(data)}: {show(value)}")
        return None
    return data


def to_base64(data: bytes) -> str:
    """Standard base64 text with padding."""
    return base64.b64encode(data).decode("ascii")
