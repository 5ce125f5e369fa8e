"""Which cells an array of a level has, as its document says it: to attributes and back. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError
from zardine.kernel import KERNEL
from zardine.vectors.format.ragged import find_rows, starts_of, unique_rows

NONEMPTY, ORIGIN = "nonempty_chunks", "chunk_grid_origin"

_FEW = 2**12
"""Chunks whose text is kept for the next array that has the same."""

_AT_ONCE = 2**16
"""Keys whose text is in memory together."""
_DOT, _COMMA, _MINUS, _ZERO = b".,-0"
_POWERS = 10 ** np.arange(18)


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
    plain = np.ascontiguousarray(chunks, np.int64)
    found = _kept_texts if len(plain) <= _FEW else _texts
    return list(found(plain.tobytes(), plain.shape[1]))


def _texts(chunks: bytes, rank: int) -> list[str]:
    if KERNEL is not None and rank:
        texts: list[str] = KERNEL.cell_texts(np.frombuffer(chunks, np.int64), rank)
        return texts
    columns = (map(str, column.tolist()) for column in np.frombuffer(chunks, np.int64).reshape(-1, rank).T)
    return sorted(map(".".join, zip(*columns, strict=True)))


_kept_texts = lru_cache(8)(_texts)  # many arrays of a level have the same cells


@dataclass(frozen=True, slots=True, eq=False)
class ChunkList(Sequence[str]):
    """What ``nonempty_chunks`` says, kept as numbers: a tenth of the memory of the text, and nothing to parse."""

    chunks: Ints
    """Distinct chunks in ascending order: ``(C, K)``."""

    @classmethod
    def of(cls, keys: Any, rank: int) -> ChunkList | None:
        """Return the list that a document holds; ``None`` for what is no list of distinct keys of ``rank`` numbers."""
        found = parse_keys(keys, rank)
        chunks = None if found is None else unique_rows(found)[0]
        if found is None or chunks is None or len(chunks) != len(found):
            return None
        chunks = np.ascontiguousarray(chunks)
        chunks.flags.writeable = False
        return cls(chunks)

    def has(self, chunks: Ints) -> npt.NDArray[np.bool_]:
        """Tell which of ``chunks`` ``(N, K)`` are in the list. Few are looked for without going through all of it."""
        if len(chunks) > 64:
            return np.asarray(find_rows(self.chunks, chunks) >= 0, np.bool_)
        return np.fromiter((self._has(chunk) for chunk in chunks), np.bool_, len(chunks))

    def _has(self, chunk: Ints) -> bool:
        low, high = 0, len(self.chunks)
        for axis, wanted in enumerate(chunk.tolist()):
            column = self.chunks[low:high, axis]
            low, high = (low + int(np.searchsorted(column, wanted, side)) for side in ("left", "right"))
        return high > low

    def __len__(self) -> int:
        return len(self.chunks)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [".".join(map(str, chunk)) for chunk in self.chunks[index].tolist()]
        return ".".join(map(str, self.chunks[index].tolist()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChunkList):
            return isinstance(other, list | tuple) and self == ChunkList.of(other, self.chunks.shape[1])
        return self is other or np.array_equal(self.chunks, other.chunks)

    __hash__ = None  # type: ignore[assignment]


def parse_keys(keys: Any, rank: int) -> Ints | None:
    """The chunks that ``nonempty_chunks`` names; ``None`` for what is no list of keys of ``rank`` numbers."""
    if isinstance(keys, ChunkList):
        return keys.chunks if keys.chunks.shape[1] == rank else None
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        return None
    if not keys:
        return np.zeros((0, rank), np.int64)
    parts = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        found = _plain_numbers(some, rank)
        found = _numbers(some, rank) if found is None else found
        if found is None:
            return None
        parts.append(found)
    return np.concatenate(parts)


def _plain_numbers(keys: Sequence[Any], rank: int) -> Ints | None:
    """Numbers of at most 18 digits, all at once; ``None`` where there is anything else."""
    try:
        text = np.frombuffer(",".join(keys).encode("ascii"), np.uint8)
    except (TypeError, UnicodeEncodeError):
        return None
    ends = np.append(np.flatnonzero((text == _DOT) | (text == _COMMA)), len(text))
    if len(ends) != rank * len(keys):
        return None
    separators = np.append(text[ends[:-1]], _COMMA).reshape(-1, rank)
    if (separators[:, :-1] != _DOT).any() or (separators[:, -1] != _COMMA).any():
        return None
    starts = np.append(0, ends[:-1] + 1)
    if (starts == ends).any():
        return None
    is_negative = text[starts] == _MINUS
    lengths = ends - starts - is_negative
    digits = text - _ZERO
    places = np.flatnonzero(digits < 10)
    if lengths.min() < 1 or lengths.max() > 18 or len(places) != lengths.sum():
        return None
    values = digits[places] * _POWERS[np.repeat(ends, lengths) - 1 - places]
    numbers = np.add.reduceat(values, starts_of(lengths)[:-1])
    return np.where(is_negative, -numbers, numbers).reshape(-1, rank)


def _numbers(keys: Sequence[Any], rank: int) -> Ints | None:
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
