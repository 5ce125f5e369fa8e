"""Names of link arrays: chunk offsets such as ``0.0.0_+1.-1.0`` and level differences such as ``+1``."""

from __future__ import annotations

from collections.abc import Sequence

from zardine.errors import ChunkDecodeError

SELF = "self"


def signed(number: int) -> str:
    """``0``, ``+1``, ``-2``."""
    return f"+{number}" if number > 0 else str(number)


def segment_of(offsets: Sequence[Sequence[int]]) -> str:
    """The path segment for the offsets of all endpoints but the first."""
    return "_".join(".".join(map(signed, offset)) for offset in offsets) or SELF


def parse_delta(text: str) -> int:
    """The number that :func:`signed` wrote. Raises :class:`~zardine.errors.ChunkDecodeError`."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if signed(number) != text:
        raise ChunkDecodeError(f"{text!r} is no level difference such as '0', '+1' or '-1'")
    return number


def parse_segment(text: str, rank: int) -> tuple[tuple[int, ...], ...]:
    """The offsets that :func:`segment_of` wrote. Raises :class:`~zardine.errors.ChunkDecodeError`."""
    if text == SELF:
        return ()
    try:
        offsets = tuple(tuple(parse_delta(each) for each in part.split(".")) for part in text.split("_"))
    except ChunkDecodeError:
        offsets = ((),)
    if any(len(offset) != rank for offset in offsets):
        raise ChunkDecodeError(f"{text!r} does not name chunk offsets of {rank} axes")
    return offsets
