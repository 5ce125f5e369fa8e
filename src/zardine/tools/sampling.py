"""What an array takes: how many objects are stored and how large they are, and what they become in another layout.

All from a few objects, at places that are spread over the array, and the same ones each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil, prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.chunk_grids.axis import Axis
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout
from zardine.engine.read import read_plan
from zardine.errors import DataError, MetadataError
from zardine.indexing.boxes import box_of
from zardine.indexing.plan import plan_grid
from zardine.jobs.stages import Cells
from zardine.tools.rechunking.cells import item_size_of
from zardine.tools.resharding.move import encoded_chunks

SAMPLE: Final = 16
"""Objects that are looked at: of the source, and of the target."""
_BYTES: Final = 2**26
"""Bytes of elements that are decoded, and encoded anew, at most, but for one chunk."""
_GROUPS: Final = 4
"""Places, at least, where chunks are taken that each lie in many objects of the source, if there are as many."""
_IN_A_SHARD: Final = 4
"""Chunks that are looked at to say that a shard is empty, at most."""
_GOLDEN: Final = 0x9E3779B97F4A7C15
"""The golden ratio in 64 bits: its multiples are spread evenly, and go with no period of the data."""

Segments: TypeAlias = list[tuple[int, int]]
"""Elements along an axis, from a first one (inclusive) to a last (exclusive), ascending."""
Change: TypeAlias = Callable[[npt.NDArray[Any], tuple[slice, ...]], npt.NDArray[Any]]
"""Makes the elements of the target out of those of a region of the source, or of some of them."""


@dataclass(frozen=True)
class Written:
    """What writing an array takes, about."""

    objects: int
    """How many are stored: those that are not empty."""
    nbytes: int
    share: float
    """Of the chunks, that are not empty: 1.0 where none of the sample is empty."""
    text: str
    """What was looked at, in words."""


def stored_sample(handle: ArrayHandle) -> tuple[int, int]:
    """Return about how many objects of an array are stored, and their bytes. Asks for a few sizes.

    Objects that differ in length are taken to have as many bytes an element.
    """
    axes = handle.layout.grids.storage
    cells = Cells(tuple(axis.count for axis in axes))
    places = list(map(cells.place, _spread(cells.count, SAMPLE)))
    sizes = [handle.store.size(handle.key(place)) for place in places]
    known = [(size, _elements(axes, place)) for size, place in zip(sizes, places, strict=True) if size is not None]
    if not known:
        return 0, 0
    stored, elements = map(sum, zip(*known, strict=True))
    everything = _all_elements(axes)
    return round(cells.count * len(known) / len(sizes)), everything * len(known) * stored // (len(sizes) * elements)


def carried_sample(source: ArrayHandle, target: ArrayHandle, stored: int, nbytes: int, more: int = 0) -> Written:
    """Return what is written where encoded chunks are carried over, of what is ``stored`` in the source.

    ``more`` are the bytes by which each chunk grows. Which objects are not empty is seen from a few of their chunks.
    """
    old, new = source.layout, target.layout
    before, after = (prod(axis.count for axis in each.grids.storage) for each in (old, new))
    if not after or not stored:
        return Written(0, 0, 0.0, "nothing is stored in the sample" if after else "")
    chunks = prod(axis.count for axis in new.grids.chunks)
    share, made, text = 1.0, after, ""
    if stored < before or old.sharding is not None:
        looks: dict[int, list[bool]] = {}
        for number, ranges in _carried_chunks(new):
            plan = plan_grid(box_of(ranges), old.grids)
            try:
                looks.setdefault(number, []).append(encoded_chunks(source, plan).reshape(-1)[0] is not None)
            except DataError:  # what is damaged is said when it is carried over
                looks.setdefault(number, []).append(True)
        every = [each for found in looks.values() for each in found]
        share, kept = sum(every) / len(every), sum(map(any, looks.values()))
        made = round(after * kept / len(looks))
        text = "" if share == 1 else f"{len(looks) - kept} of {len(looks)} objects looked at are empty"
    data = max(0, nbytes - stored * _index_size(old))
    return Written(made, round(data + more * chunks * share + made * _index_size(new)), share, text)


def _carried_chunks(layout: ArrayLayout) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Give the elements of some chunks, and the numbers of their objects."""
    cells = Cells(tuple(axis.count for axis in layout.grids.storage))
    for turn, number in enumerate(_spread(cells.count, SAMPLE)):
        places = _chunk_ranges(layout, cells.place(number))
        within = Cells(tuple(map(len, places)))
        for which in _spread(within.count, _IN_A_SHARD, turn):
            chunk = zip(layout.grids.chunks, places, within.place(which), strict=True)
            yield number, [_range(axis, range_[i]) for axis, range_, i in chunk]


def encoded_sample(source: ArrayHandle, target: ArrayHandle, change: Change | None = None) -> Written:
    """Return what is written where elements are encoded anew.

    At most 16 objects of the source are read, or parts of them; chunks of the target that lie in more are encoded as
    far as they lie in some. Where chunks are as long in any case, and empty ones are stored, nothing is read.
    """
    layout = target.layout
    cells = Cells(tuple(axis.count for axis in layout.grids.storage))
    if not cells.count:
        return Written(0, 0, 1.0, "")
    if target.write_empty_chunks and layout.chain_of(cells.place(0)).encoded_size is not None:
        return Written(cells.count, full_size(layout), 1.0, "")
    found = _Found(target)
    numbers = _spread(cells.count, _places(source.layout, layout))
    for turn, number in enumerate(numbers):
        group = _Group(source, layout, cells.place(number), len(numbers), turn)
        found.add(group, change)
        if found.nbytes >= _BYTES:
            break
    return found.result(cells.count)


def _places(old: ArrayLayout, new: ArrayLayout) -> int:
    """Return at how many places chunks are taken, so that they lie in a few objects of the source together."""
    each, along = 1, 1
    for axis, chunks in zip(old.grids.storage, new.grids.chunks, strict=True):
        own, other = axis.longest, min(chunks.longest, max(1, chunks.length))
        even = axis.is_regular and chunks.is_regular and (own % other == 0 or other % own == 0)
        touched = max(1, ceil(other / own)) if even else ceil((other - 1) / own + 1)
        touched = min(touched, max(1, axis.count))
        each *= touched
        along *= chunks.count if touched > 1 else 1
    return max(1, SAMPLE // each, min(_GROUPS, along)) if each > 1 else SAMPLE


@dataclass(frozen=True)
class _Piece:
    """A chunk of the target, as far as it is looked at."""

    object: tuple[int, ...]
    shape: tuple[int, ...]
    """Of the whole chunk."""
    ranges: list[tuple[int, int]]
    """What of it lies in the array."""
    values: npt.NDArray[Any]
    """Elements; of each axis all of :attr:`ranges`, or some."""


class _Group:
    """Chunks of the target that lie in the same few objects of the source."""

    def __init__(self, source: ArrayHandle, layout: ArrayLayout, place: Sequence[int], groups: int, turn: int) -> None:
        self._source, self._layout, self._turn = source, layout, turn
        places = _chunk_ranges(layout, place)
        self._chunk = [each[_jitter(turn * len(places) + i, len(each))] for i, each in enumerate(places)]
        self._within = places if layout.sharding is not None else [range(axis.count) for axis in layout.grids.chunks]
        self._objects = max(1, SAMPLE // groups)
        self._room = max(1, _BYTES // groups // item_size_of(source.layout))
        self._most = max(_IN_A_SHARD if layout.sharding is not None else 1, SAMPLE // groups)

    def pieces(self, *, whole: bool = False) -> Iterator[_Piece]:
        """Give the chunks; one, as it is, with ``whole``."""
        grids = self._source.layout.grids
        ranges = self._ranges(self._chunk)
        segments = [[each] for each in ranges]
        if not whole:
            segments = self._thinned(grids.storage, segments, self._objects)
            chunk = max(1, self._source.layout.chunk_nbytes // max(1, self._source.layout.metadata.dtype.itemsize))
            segments = self._thinned(grids.chunks, segments, max(1, self._room // chunk))
            segments = _shortened(segments, self._room)
        wide, others = segments, [self._chunk]
        if not whole:
            wide, others = self._beside(ranges, segments)
        together = self._read(wide) if self._source.layout.sharding is None else None
        for place in others:
            own = [
                each if range_ == first else [range_]
                for each, range_, first in zip(segments, self._ranges(place), ranges, strict=True)
            ]
            yield self._piece(place, self._read(own) if together is None else together[_within(own, wide)])

    def _beside(
        self, ranges: list[tuple[int, int]], segments: list[Segments]
    ) -> tuple[list[Segments], list[list[int]]]:
        """Return what is decoded in any case along each axis, and the places of other chunks that lie in it."""
        wide, free = list(segments), [range(i, i + 1) for i in self._chunk]
        axes = zip(self._source.layout.grids.storage, self._layout.grids.chunks, self._within, strict=True)
        for i, (axis, chunks, within) in enumerate(axes):
            start, stop = ranges[i]
            first = axis.find(start)
            low, high = axis.start(first), min(axis.start(first) + axis.extent(first), axis.length)
            if stop > high or segments[i] != [ranges[i]]:
                continue
            lowest = chunks.find(low)
            lowest += chunks.start(lowest) < low
            highest = chunks.find(high - 1)
            highest -= _range(chunks, highest)[1] > high
            lowest, highest = max(lowest, within[0]), min(highest, within[-1])
            if lowest <= self._chunk[i] <= highest and highest > lowest:
                free[i], wide[i] = range(lowest, highest + 1), [(low, high)]
        if _volume(wide) > self._room or self._most == 1:
            return segments, [self._chunk]
        cells = Cells(tuple(map(len, free)))
        own = cells.number([chosen - each[0] for chosen, each in zip(self._chunk, free, strict=True)])
        size = max(1, _volume(segments))
        most = max(1, min(self._most, self._room // size))
        numbers = [own, *(each for each in _spread(cells.count, most, self._turn) if each != own)][:most]
        return wide, [[each[k] for each, k in zip(free, cells.place(number), strict=True)] for number in numbers]

    def _ranges(self, chunk: Sequence[int]) -> list[tuple[int, int]]:
        return [_range(axis, i) for axis, i in zip(self._layout.grids.chunks, chunk, strict=True)]

    def _piece(self, chunk: Sequence[int], values: npt.NDArray[Any]) -> _Piece:
        axes = list(zip(self._layout.grids.chunks, self._layout.grids.storage, chunk, strict=True))
        shape = tuple(axis.extent(i) for axis, _, i in axes)
        place = tuple(storage.find(axis.start(i)) for axis, storage, i in axes)
        return _Piece(place, shape, self._ranges(chunk), values)

    def _read(self, segments: list[Segments]) -> npt.NDArray[Any]:
        """Return the elements of the source in all segments, one behind the other along each axis."""
        source = self._source
        out = np.empty([sum(b - a for a, b in each) for each in segments], source.layout.metadata.dtype)
        places = [_placed(each) for each in segments]
        for box in product(*places):
            region = box_of([each for each, _ in box])
            part = np.empty(region.full_shape, out.dtype)
            read_plan(source, plan_grid(region, source.layout.grids), part)
            where: tuple[Any, ...] = (*(each for _, each in box), ...)
            out[where] = part
        return out

    def _thinned(self, axes: Sequence[Axis], segments: list[Segments], most: int) -> list[Segments]:
        """Return what of some segments lies in ``most`` chunks of the source, or objects, together."""
        counts = [
            sum(axis.find(b - 1) - axis.find(a) + 1 for a, b in each) for axis, each in zip(axes, segments, strict=True)
        ]
        kept = list(counts)
        while prod(kept) > most:
            i = max(range(len(kept)), key=kept.__getitem__)
            others = prod(kept) // kept[i]
            kept[i] = max(1, min(kept[i] - 1, max(kept[i] // 2, most // others)))
        return [
            each if keep == count else _some(axis, each, keep, self._turn)
            for axis, each, keep, count in zip(axes, segments, kept, counts, strict=True)
        ]


def full_size(layout: ArrayLayout) -> int:
    """Return the bytes of all objects where nothing is compressed, and all chunks are stored."""
    axes, objects = layout.grids.chunks, layout.grids.storage
    shape = tuple(axis.longest for axis in axes) if layout.sharding is None else layout.sharding.chunk_shape
    item_size, nbytes = layout.metadata.dtype.itemsize, layout.chain(shape).encoded_size
    around = 0 if nbytes is None else nbytes - prod(shape) * item_size  # as a checksum: the same for each
    indexes = prod(axis.count for axis in objects) * _index_size(layout)
    return _all_elements(axes) * item_size + prod(axis.count for axis in axes) * around + indexes


class _Found:
    """What the pieces of a sample have become."""

    def __init__(self, target: ArrayHandle) -> None:
        self._target = target
        self._objects: dict[tuple[int, ...], bool] = {}
        self._encoded = 0.0
        self._elements = 0
        self._looked = self._empty = 0
        self.nbytes = 0
        self._cut = False

    def add(self, group: _Group, change: Change | None) -> None:
        """Encode the chunks of a group. What is damaged is left out: it is said when it is converted."""
        try:
            for piece in group.pieces():
                if not self._add(piece, change):  # the codecs take chunks of their own shape only
                    for each in group.pieces(whole=True):
                        self._add(each, change)
        except DataError:
            return

    def _add(self, piece: _Piece, change: Change | None) -> bool:
        values = piece.values if change is None else change(piece.values, tuple(slice(*each) for each in piece.ranges))
        lengths = tuple(b - a for a, b in piece.ranges)
        is_cut = values.shape != lengths
        try:
            chain = self._target.layout.chain(values.shape if is_cut else piece.shape)
        except MetadataError:
            return not is_cut
        chunk = np.empty(chain.spec.shape, chain.spec.dtype)
        chunk[...] = chain.spec.fill
        where: tuple[Any, ...] = (*map(slice, values.shape), ...)
        chunk[where] = values
        inside = max(1, prod(lengths))
        part = values.size / inside
        is_empty = not self._target.write_empty_chunks and chain.is_fill(chunk)
        if not is_empty:
            size = chain.encoded_size
            if size is None or is_cut:
                size = len(chain.encode(chunk, write_empty=self._target.write_empty_chunks))
            self._encoded += size / part
        self._elements += prod(piece.shape)
        self._looked += 1
        self._empty += is_empty
        self._cut = self._cut or is_cut
        self.nbytes += chunk.nbytes
        self._objects[piece.object] = self._objects.get(piece.object, False) or not is_empty
        return True

    def result(self, count: int) -> Written:
        """Return what all ``count`` objects take."""
        layout = self._target.layout
        if not self._looked:
            return Written(count, 0, 1.0, "nothing of the sample can be read")
        kept = sum(self._objects.values())
        objects = count if kept == len(self._objects) else round(count * kept / len(self._objects))
        everything = _all_elements(layout.grids.chunks)
        nbytes = self._encoded / max(1, self._elements) * everything + objects * _index_size(layout)
        what = "parts of chunks" if self._cut else "chunks"
        text = f"{self._looked} {what} of {len(self._objects)} of {count:,} objects, encoded"
        if self._empty:
            text += f" ({self._empty} are empty)"
        return Written(objects, round(nbytes), 1 - self._empty / self._looked, text)


def _spread(count: int, most: int, turn: int = 0) -> list[int]:
    """Return ``most`` of ``count`` numbers, or all: one at some place of each of as many equal parts."""
    number = min(count, most)
    bounds = [i * count // max(1, number) for i in range(number + 1)]
    return [start + _jitter(i + turn, stop - start) for i, (start, stop) in enumerate(pairwise(bounds))]


def _jitter(turn: int, count: int) -> int:
    """Return one of ``count`` numbers, another one at each turn."""
    return (turn + 1) * _GOLDEN % 2**64 * count >> 64


def _some(axis: Axis, segments: Segments, number: int, turn: int) -> Segments:
    """Return what of segments lies in some chunks of an axis, chosen by their elements."""
    elements = [(a, b) for a, b in segments]
    total = sum(b - a for a, b in elements)
    chosen = {axis.find(_nth(elements, place)) for place in _spread(total, number, turn)}
    found = []
    for each in sorted(chosen):
        start, stop = axis.start(each), axis.start(each) + axis.extent(each)
        found += [(max(a, start), min(b, stop)) for a, b in elements if a < stop and start < b]
    merged: Segments = []
    for a, b in found:
        if merged and merged[-1][1] == a:
            merged[-1] = merged[-1][0], b
        else:
            merged.append((a, b))
    return merged


def _nth(segments: Segments, place: int) -> int:
    for a, b in segments:
        if place < b - a:
            return a + place
        place -= b - a
    raise IndexError(place)


def _shortened(segments: list[Segments], most: int) -> list[Segments]:
    """Return the first elements of all segments, so that there are not more than ``most``."""
    found = [list(each) for each in segments]
    while _volume(found) > most:
        i = max(range(len(found)), key=lambda axis: max(b - a for a, b in found[axis]))
        if all(b - a == 1 for a, b in found[i]):
            break
        found[i] = [(a, a + (b - a + 1) // 2) for a, b in found[i]]
    return found


def _volume(segments: Sequence[Segments]) -> int:
    return prod(sum(b - a for a, b in each) for each in segments)


def _placed(segments: Segments) -> list[tuple[tuple[int, int], slice]]:
    """Return each segment, and where it lies if they are one behind the other."""
    placed, at = [], 0
    for a, b in segments:
        placed.append(((a, b), slice(at, at + b - a)))
        at += b - a
    return placed


def _within(segments: list[Segments], wide: list[Segments]) -> tuple[Any, ...]:
    """Return where segments lie in others, which are the same along an axis or one around them."""
    index = []
    for own, each in zip(segments, wide, strict=True):
        start = own[0][0] - each[0][0]
        index.append(slice(None) if own == each else slice(start, start + own[0][1] - own[0][0]))
    return (*index, ...)


def _chunk_ranges(layout: ArrayLayout, place: Sequence[int]) -> list[range]:
    """Return along each axis the numbers of the chunks, in the array, of the object at a place."""
    found = []
    for axis, chunks, i in zip(layout.grids.storage, layout.grids.chunks, place, strict=True):
        start, stop = _range(axis, i)
        found.append(range(chunks.find(start), chunks.find(stop - 1) + 1))
    return found


def _range(axis: Axis, chunk: int) -> tuple[int, int]:
    """Return the elements of a chunk that lie in the array."""
    start = axis.start(chunk)
    return start, min(start + axis.extent(chunk), axis.length)


def _index_size(layout: ArrayLayout) -> int:
    """Return bytes of the index of a shard; 0 without shards."""
    shard = layout.shard((0,) * layout.metadata.ndim)
    return 0 if shard is None else shard.index_size


def _elements(axes: Sequence[Axis], place: Sequence[int]) -> int:
    return prod(axis.extent(i) for axis, i in zip(axes, place, strict=True))


def _all_elements(axes: Sequence[Axis]) -> int:
    """Return the elements of all chunks, with those that lie beyond the array."""
    return prod(axis.start(axis.count - 1) + axis.extent(axis.count - 1) for axis in axes)


__all__ = ["SAMPLE", "Change", "Written", "carried_sample", "encoded_sample", "full_size", "stored_sample"]
