"""A set of rows of a level, a bit for each: which rows are in it, and the number of each among them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints

_WORD = 64


class RowSetMaker:
    """Takes flags of rows from 0 on, piece after piece, and keeps a bit of each."""

    def __init__(self) -> None:
        self._packed: list[npt.NDArray[np.uint8]] = []
        self._rest = np.zeros(0, np.bool_)

    def add(self, flags: npt.NDArray[np.bool_]) -> None:
        """Say for the next rows whether they are in the set."""
        whole = np.concatenate([self._rest, flags])
        end = len(whole) // 8 * 8
        self._packed.append(np.packbits(whole[:end], bitorder="little"))
        self._rest = whole[end:]

    def rows(self) -> RowSet:
        """Return the set."""
        packed = np.concatenate([*self._packed, np.packbits(self._rest, bitorder="little")])
        return RowSet(np.concatenate([packed, np.zeros(-len(packed) % 8, np.uint8)]).view("<u8"))


class RowSet:
    """A set of rows, as words of 64 bits, the lowest bit first."""

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self.words = words
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bitwise_count(words), dtype=np.int64)])

    def has(self, rows: Ints) -> npt.NDArray[np.bool_]:
        """Whether each of ``rows`` is in; -1 is not."""
        known = rows >= 0
        found = np.zeros(rows.shape, np.bool_)
        asked = rows[known]
        found[known] = (self.words[asked // _WORD] >> (asked % _WORD).astype(np.uint64)) & np.uint64(1)
        return found

    def numbers(self, rows: Ints) -> Ints:
        """The number of each of ``rows``, which are in, among all that are in, ascending."""
        word, bit = rows // _WORD, (rows % _WORD).astype(np.uint64)
        below = self.words[word] & ((np.uint64(1) << bit) - np.uint64(1))
        numbers: Ints = self._before[word] + np.bitwise_count(below)
        return numbers


__all__ = ["RowSet", "RowSetMaker"]
