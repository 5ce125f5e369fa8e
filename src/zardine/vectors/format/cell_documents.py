"""Which cells an array of a level has, as its document says it: to attributes and back. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError
from zardine.vectors.format.ragged import find_rows, unique_rows

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
