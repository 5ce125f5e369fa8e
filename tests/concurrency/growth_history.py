"""The one order in which blocks were appended and the array was resized, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from crew import Report

ROWS = 250
"""Of a block. So many resizings later the rests of the lengths come again; times then tell which is meant."""
HEAD = 1490
"""Rows in front that are never cut off, and the length at the start."""

Values = np.ndarray[Any, Any]


class Appended(NamedTuple):
    """A call of ``append``: who, its count, the length that was returned, and the times before and after (ns)."""

    name: int
    count: int
    length: int
    start: int
    end: int


class Resized(NamedTuple):
    """A call of ``resize`` with the times before and after."""

    length: int
    start: int
    end: int


@dataclass(frozen=True)
class Read:
    """What a reader saw: runs of rows that are the same, as first row, row behind, name and count."""

    length: int
    runs: list[tuple[int, int, int, int]]
    start: int
    end: int

    @classmethod
    def of(cls, rows: Values, start: int, end: int) -> Self:
        """``rows`` begin behind the head."""
        if not len(rows):
            return cls(HEAD, [], start, end)
        first = np.flatnonzero(np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1))))
        behind = np.append(first[1:], len(rows))
        runs = [
            (int(a) + HEAD, int(b) + HEAD, *map(int, rows[a]))
            for a, b in zip(first.tolist(), behind.tolist(), strict=True)
        ]
        return cls(HEAD + len(rows), runs, start, end)


@dataclass
class Block:
    """A block and where it came to be."""

    call: Appended
    epoch: int
    """How many resizings came before it."""

    @property
    def first(self) -> int:
        """Its first row."""
        return self.call.length - ROWS


class History:
    """All calls, in their order. Epoch 0 is what happened before the first resizing."""

    def __init__(self, appended: list[Appended], resized: list[Resized]) -> None:
        self.resized = [Resized(HEAD, 0, 0), *resized]
        self.lengths = np.array([each.length for each in self.resized])
        self.blocks: list[Block] = []
        self.unexplained: list[Appended] = []
        for call in appended:
            epoch = self._epoch(call.length, call.start, call.end)
            if epoch is None:
                self.unexplained.append(call)
            else:
                self.blocks.append(Block(call, epoch))
        self.blocks.sort(key=lambda block: (block.epoch, block.call.length))
        self.named = {(block.call.name, block.call.count): block for block in self.blocks}
        self._firsts = np.array([block.first for block in self.blocks], np.int64)
        self._epochs = np.array([block.epoch for block in self.blocks], np.int64)
        self._ends = np.array([block.call.end for block in self.blocks], np.int64)
        gone = [self._cut(block, block.first) for block in self.blocks]
        self._gone = np.array([np.iinfo(np.int64).max if each is None else each.start for each in gone], np.int64)

    def _epoch(self, length: int, start: int, end: int) -> int | None:
        """The epoch in which an array had a length at some moment between two times."""
        rest = (length - HEAD) % ROWS
        for epoch in range(rest, len(self.resized), ROWS):
            after = self.resized[epoch + 1].end if epoch + 1 < len(self.resized) else end
            if self.resized[epoch].start <= end and start <= after and self.resized[epoch].length <= length:
                return epoch
        return None

    def _cut(self, block: Block, row: int) -> Resized | None:
        """The call that removed a row of a block, if one did."""
        later = np.flatnonzero(self.lengths[block.epoch + 1 :] <= row)
        return self.resized[block.epoch + 1 + int(later[0])] if len(later) else None

    def check_order(self, report: Report) -> None:
        """That the blocks of every epoch lie one behind the other, from the length on that the resizing made."""
        for call in self.unexplained:
            report.fault("lost", f"{call} returned a length that the array cannot have had")
        expected, epoch = HEAD, 0
        for block in self.blocks:
            if block.epoch != epoch:
                epoch = block.epoch
                expected = self.resized[epoch].length
            if block.first != expected:
                report.fault("lost", f"{block} should begin at row {expected}")
            expected = block.call.length

    def check_end(self, rows: Values, report: Report) -> None:
        """That what is stored behind the head in the end is what the order says."""
        longest = max(int(self.lengths.max()), max((block.call.length for block in self.blocks), default=HEAD))
        after, length, at = np.zeros((longest, 2), "u4"), HEAD, 0
        for epoch, resized in enumerate(self.resized):
            after[min(length, resized.length) :] = 0
            length = resized.length
            while at < len(self.blocks) and self.blocks[at].epoch == epoch:
                block = self.blocks[at]
                after[block.first : block.call.length] = block.call.name, block.call.count
                length, at = block.call.length, at + 1
        expected = after[HEAD:length]
        if rows.shape != expected.shape:
            report.fault("lost", f"there are {HEAD + len(rows)} rows in the end, not {length}")
            return
        wrong = np.flatnonzero((rows != expected).any(axis=1))
        if len(wrong):
            row = int(wrong[0])
            kind = "lost" if not rows[wrong].any() else "mixed"
            text = (
                f"{len(wrong)} rows in the end, first {row + HEAD}: {rows[row].tolist()}, not {expected[row].tolist()}"
            )
            report.fault(kind, text)

    def check_read(self, read: Read, report: Report) -> None:
        """That every row that was seen was there at some moment of the reading."""
        epoch = self._epoch(read.length, read.start, read.end)
        if epoch is None:
            report.fault("mixed", f"a reader saw {read.length} rows, which the array never had then")
            return
        for first, behind, name, count in read.runs:
            if name:
                self._check_block(read, first, behind, name, count, report)
            else:
                self._check_zeros(read, epoch, first, behind, report)

    def _check_block(self, read: Read, first: int, behind: int, name: int, count: int, report: Report) -> None:
        block = self.named.get((name, count))
        seen = f"a reader saw rows {first} to {behind} of block {name, count}"
        if block is None:
            report.fault("mixed", f"{seen}, which nobody appended")
        elif not block.first <= first < behind <= block.call.length:
            report.fault("mixed", f"{seen}, which has rows {block.first} to {block.call.length}")
        elif block.call.start > read.end:
            report.fault("mixed", f"{seen} before it was appended")
        else:
            cut = self._cut(block, behind - 1)
            if cut is not None and cut.end < read.start:
                report.fault("mixed", f"{seen} after the array was cut to {cut.length} rows")

    def _check_zeros(self, read: Read, epoch: int, first: int, behind: int, report: Report) -> None:
        """No block may be there that was acknowledged before, or that counts in the length that was seen."""
        known = (self._ends < read.start) | ((self._epochs == epoch) & (self._firsts + ROWS <= read.length))
        overlap = (self._firsts < behind) & (self._firsts + ROWS > first)
        for number in np.flatnonzero(known & overlap & (self._gone > read.end)).tolist():
            block = self.blocks[number]
            cut = self._cut(block, max(first, block.first))
            if cut is None or cut.start > read.end:
                report.fault("lost", f"a reader saw zeros at rows {first} to {behind}, where {block} is")
