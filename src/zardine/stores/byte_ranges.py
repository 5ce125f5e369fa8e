"""Byte ranges of values, and version tokens."""

from __future__ import annotations

from typing import Final, TypeAlias

ByteRange: TypeAlias = tuple[int, int | None]
"""``(start, length)``; a length of ``None`` reaches to the end; ``(-n, None)`` is the last ``n`` bytes.

A range that reaches past the end of the value gives the bytes that are there; ``(-n, None)`` of a shorter value gives
all of it.
"""

WHOLE: Final[ByteRange] = (0, None)

Version: TypeAlias = str
"""A token that changes whenever the value of a key changes (an ETag, or a file's identity and times)."""


def resolve_range(byte_range: ByteRange, size: int) -> tuple[int, int]:
    """``byte_range`` of a value of ``size`` bytes as ``(start, stop)``, stop exclusive, both within the value."""
    start, length = byte_range
    if start < 0:
        start = max(0, size + start)
        return start, size
    start = min(start, size)
    return start, size if length is None else min(size, start + max(0, length))
