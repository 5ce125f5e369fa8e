"""Where inner chunks are in a shard whose index is sound, and whose data is shorter or longer than it says. Pure.

A checksum tells whether the bytes at a place are a chunk, not whose. So every place where bytes may be missing is
weighed: chunks that end before it are where the index says, those that begin behind it have moved, and those in it are
lost. What contradicts least what is found is what happened. Where several places contradict equally little, a chunk is
taken only if it lies at the same place by all of them: where chunks of the same length follow each other, and just such
a length is missing, nobody can know which one it was. Nor can they in a shard with unused space, as edits leave it,
where several chunks have one length: how many bytes are missing is not known then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout

Bools = npt.NDArray[np.bool_]
IsSound = Callable[[int, int], bool]
"""Says of an offset and a length whether a chunk with a right checksum is there."""

_HIGHEST = 2**62
LOST = "its bytes are missing, in whole or in part"
UNCLEAR = "bytes of the shard are missing, and chunks of the same length follow each other: it may be one or another"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the stored inner chunks are, by row of the index."""

    found: dict[int, int]
    """Offsets, of sound chunks and of damaged ones."""
    reasons: dict[int, str]
    """Why the place of a chunk is not known."""
    shift: int
    """How many bytes are missing; negative if there are too many. 0 where chunks are where the index says."""
    at_end: bool = False
    """Whether the missing bytes are those at the end."""


def missing_bytes(index: ShardIndex, layout: ShardLayout, size: int) -> int:
    """Return by how many bytes the data is shorter than the index says; negative if it is longer."""
    stored = index.stored()
    offsets, lengths = index.offsets[stored], index.lengths[stored]
    entries = np.concatenate((offsets, lengths))
    if not stored.any() or (entries < 0).any() or (entries >= _HIGHEST).any():
        return 0
    return int((offsets + lengths).max()) - layout.data_bounds(size)[1]


def find_places(index: ShardIndex, layout: ShardLayout, size: int, is_sound: IsSound) -> Places:
    """Return where the stored chunks of a shard of ``size`` bytes are."""
    rows = np.flatnonzero(index.stored())
    shift = missing_bytes(index, layout, size)
    if shift == 0:
        return Places({row: int(index.offsets[row]) for row in rows.tolist()}, {}, 0)
    starts = index.offsets[rows]
    ends = starts + index.lengths[rows]
    low, high = layout.data_bounds(size)

    def sound(moved_by: int) -> Bools:
        places = zip((starts - moved_by).tolist(), (ends - moved_by).tolist(), strict=True)
        return np.array([low <= start and end <= high and is_sound(start, end - start) for start, end in places])

    named = sound(0)
    if shift < 0:
        return _longer(rows, starts, ends, named, sound, shift, layout.index_at_start)
    places = _shorter(rows, starts, ends, named, sound(shift), shift, (low, high), layout.index_at_start)
    is_packed = int((ends - starts).sum()) == int(ends.max()) - low
    return places if is_packed or layout.index_at_start else _without_repeated(places, index)


def _shorter(
    rows: Ints, starts: Ints, ends: Ints, named: Bools, moved: Bools, shift: int, bounds: tuple[int, int], end: bool
) -> Places:
    """Return where chunks are if ``shift`` bytes are missing; with ``end`` those at the end, if that may be."""
    holes = _candidates(np.concatenate((ends, starts - shift, bounds)), *bounds)
    behind = holes + shift
    # of chunks that are whole by this, those that are not sound
    wrong = _count(ends, ~named, holes) + (~moved).sum() - _below(starts, ~moved, behind)
    # those that are sound where they cannot be by this, and where no other chunk of their length can be either
    room = bounds[0], bounds[1] + shift
    after, before = named & _may_hold(starts, ends, shift, room), moved & _may_hold(starts, ends, -shift, room)
    wrong += named.sum() - _count(ends, named, holes) - (after.sum() - _below(starts, after, holes))
    wrong += _below(starts, moved, behind) - _count(ends, before, behind)
    best = holes[wrong == wrong.min()]
    at_end = end and wrong[-1] == wrong.min()  # a file that is too short has been cut off, as a rule
    if at_end:
        best = holes[-1:]
    first, last = int(best[0]), int(best[-1])
    found, reasons = {}, {}
    for i, row in enumerate(rows.tolist()):
        if ends[i] <= first:
            found[row] = int(starts[i])
        elif starts[i] >= last + shift:
            found[row] = int(starts[i]) - shift
        else:
            reasons[row] = UNCLEAR if first < last and (named[i] or moved[i]) else LOST
    return Places(found, reasons, shift, bool(at_end))


def _without_repeated(places: Places, index: ShardIndex) -> Places:
    """Return the same, but for chunks of a length that several have.

    There is unused space between chunks, as edits leave it. Then there may have been some before the index, too, so
    that more is missing than the index tells, and each chunk of that length may be another one.
    """
    rows = np.array(list(places.found), np.int64)
    lengths, counts = np.unique(index.lengths[index.stored()], return_counts=True)
    repeated = set(rows[np.isin(index.lengths[rows], lengths[counts > 1])].tolist())
    found = {row: offset for row, offset in places.found.items() if row not in repeated}
    return replace(places, found=found, reasons={**places.reasons, **dict.fromkeys(repeated, UNCLEAR)})


def _longer(
    rows: Ints, starts: Ints, ends: Ints, named: Bools, sound: Callable[[int], Bools], shift: int, start: bool
) -> Places:
    """Return where chunks are if there are ``-shift`` bytes too many: put in, or of chunks that are empty now.

    Chunks that are sound where the index says are there: readers find them there, too. ``start``: the index is there.
    """
    as_named = Places(dict(zip(rows.tolist(), starts.tolist(), strict=True)), {}, 0)
    if named.all():
        return as_named
    moved = sound(shift)
    gaps = _candidates(np.concatenate((ends, starts)), int(starts.min()), int(ends.max()))
    wrong = _count(ends, ~named, gaps) + (~moved).sum() - _below(starts, ~moved, gaps)
    least = int(wrong.min())
    behind = starts >= gaps[wrong == least][-1]
    taken = behind & moved & ~named
    # bytes behind the last chunk may be those of old ones: what lies over a chunk that is broken is none, and what
    # touches an index at the end is none, since a write leaves there a chunk that is stored, or the index before
    broken = np.flatnonzero(~named)
    proof = (not start and bool(taken[ends.argmax()])) or any(
        bool(((starts[i] - shift < ends[broken]) & (ends[i] - shift > starts[broken])).any())
        for i in np.flatnonzero(taken).tolist()
    )
    if least >= int((~named).sum()) or not proof:
        return as_named
    found = {**as_named.found, **dict(zip(rows[taken].tolist(), (starts[taken] - shift).tolist(), strict=True))}
    return Places(found, {}, shift)


def _may_hold(starts: Ints, ends: Ints, distance: int, room: tuple[int, int]) -> Bools:
    """Return for each chunk, whether another of its length begins so far behind it, or there is unused ``room``."""
    ranges = set(zip(starts.tolist(), ends.tolist(), strict=True))
    there, until = starts + distance, ends + distance
    same = np.array([pair in ranges for pair in zip(there.tolist(), until.tolist(), strict=True)], np.bool_)
    everything = np.ones(len(starts), np.bool_)
    unused = _below(starts, everything, until) == _count(ends, everything, there)
    unused &= (there >= room[0]) & (until <= room[1])
    found: Bools = same | unused
    return found


def _candidates(borders: Ints, low: int, high: int) -> Ints:
    """Return every place from ``low`` to ``high`` that differs from others in what lies before and behind, sorted."""
    borders = np.unique(np.clip(borders, low, high))
    between = (borders[1:] + borders[:-1]) // 2
    return np.unique(np.concatenate((borders, between)))


def _count(borders: Ints, which: Bools, places: Ints) -> Ints:
    """Return for each place, how many of ``which`` have a border that is not above it."""
    return np.searchsorted(np.sort(borders[which]), places, side="right")


def _below(borders: Ints, which: Bools, places: Ints) -> Ints:
    """Return for each place, how many of ``which`` have a border below it."""
    return np.searchsorted(np.sort(borders[which]), places, side="left")
