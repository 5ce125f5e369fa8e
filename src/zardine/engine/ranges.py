"""Joining near byte ranges, so that one request fetches several inner chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.stores.base import ByteRange

GAP = 64 * 2**10
"""Bytes of no interest that are worth reading to save a request."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRanges:
    """Wanted ranges, each inside one of the ``fetched`` ranges."""

    fetched: tuple[ByteRange, ...]
    within: npt.NDArray[np.int64]
    """For each wanted range, the number of the fetched range that holds it."""
    offsets: npt.NDArray[np.int64]
    """Where it starts in that range."""
    lengths: npt.NDArray[np.int64]

    def cut(self, parts: tuple[BytesLike, ...], i: int) -> BytesLike:
        """Wanted range ``i``, out of the answers to ``fetched``."""
        offset, length = int(self.offsets[i]), int(self.lengths[i])
        return memoryview(parts[int(self.within[i])])[offset : offset + length]


def join_ranges(offsets: npt.NDArray[Any], lengths: npt.NDArray[Any], gap: int = GAP) -> JoinedRanges:
    """Join ranges that overlap or lie at most ``gap`` bytes apart. Ranges may come in any order and be shared."""
    starts, sizes = offsets.astype(np.int64), lengths.astype(np.int64)
    if len(starts) == 0:
        none = np.empty(0, np.int64)
        return JoinedRanges((), none, none, none)
    order = np.argsort(starts, kind="stable")
    sorted_starts = starts[order]
    reach = np.maximum.accumulate(sorted_starts + sizes[order])
    new = np.concatenate(([True], sorted_starts[1:] > reach[:-1] + gap))
    firsts = np.flatnonzero(new)
    begins = sorted_starts[firsts]
    ends = reach[np.append(firsts[1:], len(order)) - 1]
    within = np.empty(len(order), np.int64)
    within[order] = np.cumsum(new) - 1
    fetched = tuple(zip(begins.tolist(), (ends - begins).tolist(), strict=True))
    return JoinedRanges(fetched, within, starts - begins[within], sizes)
