"""Join byte ranges that lie near each other, so that fewer requests fetch them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zardine.buffers import Ints
from zardine.stores.base import ByteRange


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRanges:
    """Wanted ranges, each inside one of the ``fetched`` ranges."""

    fetched: tuple[ByteRange, ...]
    within: Ints
    """For each wanted range, the number of the fetched range that holds it."""
    offsets: Ints
    """Where it starts in that range."""


def join_ranges(starts: Ints, sizes: Ints, gap: int) -> JoinedRanges:
    """Join ranges that overlap or lie at most ``gap`` bytes apart. Ranges may come in any order and be shared."""
    if len(starts) <= 1:
        fetched = tuple(zip(starts.tolist(), sizes.tolist(), strict=True))
        return JoinedRanges(fetched, np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64))
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
    return JoinedRanges(fetched, within, starts - begins[within])


__all__ = ["JoinedRanges", "join_ranges"]
