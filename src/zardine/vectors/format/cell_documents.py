"""Which cells an array of a level has, as its document says it: to attributes and back. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError

NONEMPTY, ORIGIN = "nonempty_chunks", "chunk_grid_origin"


def origin_of(attributes: Mapping[str, Any], rank: int, path: str = "") -> tuple[int, ...]:
    """The chunk of an array's first cell. Raises :class:`CorruptionError` for what is no such thing."""
    origin = attributes.get(ORIGIN)
    if origin is None:
        return (0,) * rank
    good = isinstance(origin, Sequence) and len(origin) == rank
    if not good or not all(type(each) is int and abs(each) <= 2**53 for each in origin):
        raise CorruptionError(f"{ORIGIN} is {origin!r}: {rank} integers are needed", array=path)
    return tuple(origin)


def key_texts(chunks: Ints) -> list[str]:
    """``nonempty_chunks`` for ``chunks``: sorted as text."""
    return sorted(".".join(map(str, chunk)) for chunk in chunks.tolist())


def parse_keys(keys: Any, rank: int) -> Ints | None:
    """The chunks that ``nonempty_chunks`` names; ``None`` for what is no list of keys of ``rank`` numbers."""
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        return None
    if not keys:
        return np.zeros((0, rank), np.int64)
    try:
        numbers = np.array([int(each) for each in ".".join(keys).split(".")], np.int64)
    except (TypeError, ValueError, OverflowError):
        return None
    if len(numbers) != rank * len(keys) or any(key.count(".") != rank - 1 for key in keys):
        return None
    return numbers.reshape(-1, rank)


def cell_attributes(chunks: Ints, origin: Sequence[int], more: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an array with cells for ``chunks``."""
    attributes: dict[str, Any] = {NONEMPTY: key_texts(chunks)}
    if any(origin):
        attributes[ORIGIN] = [int(each) for each in origin]
    return {**attributes, **more}
