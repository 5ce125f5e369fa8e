"""What an array takes: how many objects are stored and how large they are, and what they become in another layout.

All from a few objects, at places that are spread over the array, and the same ones each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.chunk_grids.axis import Axis
from zardine.codecs.chain import equals_fill
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout
from zardine.errors import DataError, MetadataError
from zardine.indexing.boxes import box_of
from zardine.indexing.plan import plan_grid
from zardine.jobs.stages import Cells
from zardine.tools.copying.array_blocks import item_size_of
from zardine.tools.copying.move import encoded_chunks, read_elements

SAMPLE: Final = 16
"""Objects that are looked at: of the source, and of the target."""
_BYTES: Final = 2**26
"""Bytes of elements that are decoded, and encoded anew, at most, but for one chunk."""
_GROUPS: Final = 4
"""Places, at least, where chunks are taken that each lie in many objects of the source, if there are as many."""
_IN_A_SHARD: Final = 4
"""Chunks that are looked at to say that a shard is empty, at most."""
_BESIDE: Final = 1024
"""Chunks that are looked at where they are decoded in any case, at most."""
_LEAST_CUT: Final = 4
"""Length of a part of a chunk from which on half of it is encoded, too, to tell what more of it would take."""
_TRIES: Final = 64
"""How often places are chosen to find other ones."""

Segments: TypeAlias = list[tuple[int, int]]
"""Elements along an axis, from a first one (inclusive) to a last (exclusive), ascending."""
Change: TypeAlias = Callable[[npt.NDArray[Any], Sequence[tuple[int, int]]], npt.NDArray[Any]]
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
    counts = [axis.count for axis in axes]
    places = _spread(counts, SAMPLE)
    sizes = [handle.store.size(handle.key(place)) for place in places]
    known = [(size, _elements(axes, place)) for size, place in zip(sizes, places, strict=True) if size is not None]
    if not known:
        return 0, 0
    stored, elements = map(sum, zip(*known, strict=True))
    everything = prod(axis.start(axis.count - 1) + axis.extent(axis.count - 1) for axis in axes)
    return round(prod(counts) * len(known) / len(sizes)), everything * len(known) * stored // (len(sizes) * elements)


def carried_sample(source: ArrayHandle, target: ArrayHandle, stored: int, nbytes: int, more: int = 0) -> Written:
    """Return what is written where encoded chunks are carried over, of what is ``stored`` in the source.

    ``more`` are the bytes by which each chunk grows. Which objects are not empty is seen from a few of their chunks.
    """
    old, new = source.layout, target.layout
    before, after = _count(old.grids.storage), _count(new.grids.storage)
    if not stored or not after:
        return Written(0, 0, 0.0, "")
    share, made, text = 1.0, after, ""
    if stored < before or old.sharding is not None:
        looks: dict[tuple[int, ...], list[bool]] = {}
        for place, ranges in _carried_chunks(new):
            try:
                found = encoded_chunks(source, plan_grid(box_of(ranges), old.grids)).reshape(-1)[0]
            except DataError:  # what is damaged is said when it is carried over
                continue
            looks.setdefault(place, []).append(found is not None)
        every = [each for found in looks.values() for each in found]
        kept = sum(map(any, looks.values()))
        if kept and not all(every):
            share, made = sum(every) / len(every), round(after * kept / len(looks))
            text = f"{len(every)} chunks of {len(looks)} of {after:,} objects, of which {every.count(False)} are empty"
    data = max(0, nbytes - stored * _index_size(old))
    return Written(made, round(data + more * _count(new.grids.chunks) * share + made * _index_size(new)), share, text)


def _carried_chunks(layout: ArrayLayout) -> Iterator[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """Give the elements of some chunks, and the places of their objects."""
    for place in _spread([axis.count for axis in layout.grids.storage], SAMPLE):
        chunks = _chunks_of(layout, place)
        for within in _spread([len(each) for each in chunks], _IN_A_SHARD):
            numbers = [each[i] for each, i in zip(chunks, within, strict=True)]
            yield place, list(map(_range, layout.grids.chunks, numbers))


def encoded_sample(
    source: ArrayHandle, target: ArrayHandle, stored: int, nbytes: int, change: Change | None = None
) -> Written:
    """Return what is written where elements are encoded anew, of what is ``stored`` in the source.

    At most 16 objects of the source are read, or parts of them; chunks of the target that lie in more are encoded as
    far as they lie in some. If all that is looked at is empty, that is what is most: all objects, and ``nbytes``. Where
    chunks are as long in any case, and empty ones are stored, nothing is read.
    """
    layout, count = target.layout, _count(target.layout.grids.storage)
    if target.write_empty_chunks and _exact_size(layout) is not None:
        return Written(count, full_size(layout), 1.0, "")
    if not count or not (stored or target.write_empty_chunks):
        return Written(0, 0, 0.0, "")
    found = _Found(target)
    places = _spread([axis.count for axis in layout.grids.chunks], _groups(source.layout, layout))
    for turn, place in enumerate(places):
        found.add(_Group(source, target, place, len(places), turn, change))
        if found.nbytes >= _BYTES:
            break
    return found.result(count, nbytes)


def _groups(old: ArrayLayout, new: ArrayLayout) -> int:
    """Return at how many places chunks are taken, so that they lie in a few objects of the source together."""
    each, along = 1, 1
    for axis, chunks in zip(old.grids.storage, new.grids.chunks, strict=True):
        own, other = axis.longest, min(chunks.longest, max(1, chunks.length))
        even = axis.is_regular and chunks.is_regular and (own % other == 0 or other % own == 0)
        touched = min(max(1, axis.count), max(1, ceil(other / own)) if even else ceil((other - 1) / own + 1))
        each *= touched
        along *= chunks.count if touched > 1 else 1
    return max(1, SAMPLE // each, min(_GROUPS, along))


class _Group:
    """Chunks of the target that lie in the same few objects of the source: one at ``place``, and those beside it."""

    def __init__(
        self,
        source: ArrayHandle,
        target: ArrayHandle,
        place: Sequence[int],
        groups: int,
        turn: int,
        change: Change | None,
    ) -> None:
        self._source, self._target, self._turn, self._change = source, target, turn, change
        self.place = tuple(place)
        self._room = max(1, _BYTES // groups // item_size_of(source.layout))
        self.most = max(_IN_A_SHARD if target.layout.sharding is not None else 1, SAMPLE // groups)
        """How many chunks are encoded."""
        grids = source.layout.grids
        ranges = self.ranges(place)
        segments = self._thinned(grids.storage, [[each] for each in ranges], max(1, SAMPLE // groups))
        chunk = max(1, source.layout.chunk_nbytes // max(1, source.layout.metadata.dtype.itemsize))
        segments = self._thinned(grids.chunks, segments, max(1, self._room // chunk))
        self._segments = _shortened(segments, self._room)
        self._wide, self.places = self._beside(ranges)
        self._values = self._read(self._wide) if source.layout.sharding is None else None

    def ranges(self, place: Sequence[int]) -> list[tuple[int, int]]:
        """Return the elements of a chunk of the target that lie in the array."""
        return list(map(_range, self._target.layout.grids.chunks, place))

    def values(self, place: Sequence[int]) -> npt.NDArray[Any]:
        """Return the elements of a chunk, of each axis all or some."""
        pairs = zip(self._segments, self.ranges(place), self.ranges(self.place), strict=True)
        own = [each if range_ == first else [range_] for each, range_, first in pairs]
        return self._read(own) if self._values is None else self._values[_within(own, self._wide)]

    def whole(self) -> npt.NDArray[Any]:
        """Return all elements of the first chunk, however many objects they lie in."""
        return self._read([[each] for each in self.ranges(self.place)])

    def _beside(self, ranges: list[tuple[int, int]]) -> tuple[list[Segments], list[tuple[int, ...]]]:
        """Return what is decoded in any case along each axis, and the places of the chunks that lie in it."""
        layout = self._target.layout
        wide, free = list(self._segments), [range(i, i + 1) for i in self.place]
        for i, (axis, chunks) in enumerate(zip(self._source.layout.grids.storage, layout.grids.chunks, strict=True)):
            low, high = _range(axis, axis.find(ranges[i][0]))
            if ranges[i][1] > high or self._segments[i] != [ranges[i]]:
                continue
            lowest, highest = chunks.find(low), chunks.find(high - 1)
            lowest += chunks.start(lowest) < low
            highest -= _range(chunks, highest)[1] > high
            if None not in (layout.sharding, self._source.layout.sharding):  # of the same shard: is that empty?
                start, stop = _range(layout.grids.storage[i], layout.grids.storage[i].find(ranges[i][0]))
                lowest, highest = max(lowest, chunks.find(start)), min(highest, chunks.find(stop - 1))
            free[i], wide[i] = range(lowest, highest + 1), [(low, high)]
        if _volume(wide) > self._room:
            return self._segments, [self.place]
        most = _BESIDE if self._source.layout.sharding is None else self.most
        found = [
            tuple(each[k] for each, k in zip(free, numbers, strict=True))
            for numbers in _spread([len(each) for each in free], most, self._turn)
        ]
        return wide, [self.place, *(each for each in found if each != self.place)][:most]

    def _read(self, segments: list[Segments]) -> npt.NDArray[Any]:
        """Return the elements in all segments, one behind the other along each axis, as those of the target."""
        source = self._source
        out = np.empty([sum(b - a for a, b in each) for each in segments], self._target.layout.metadata.dtype)
        for box in product(*map(_placed, segments)):
            part = read_elements(source, box_of([each for each, _ in box]))
            if self._change is not None:
                part = self._change(part, [each for each, _ in box])
            where: tuple[Any, ...] = (*(each for _, each in box), ...)
            out[where] = part
        return out

    def _thinned(self, axes: Sequence[Axis], segments: list[Segments], most: int) -> list[Segments]:
        """Return what of some segments lies in ``most`` chunks of the source, or objects, together."""
        pairs = list(zip(axes, segments, strict=True))
        counts = [sum(axis.find(b - 1) - axis.find(a) + 1 for a, b in each) for axis, each in pairs]
        kept = list(counts)
        while prod(kept) > most:
            i = max(range(len(kept)), key=kept.__getitem__)
            others = prod(kept) // kept[i]
            kept[i] = max(1, min(kept[i] - 1, max(kept[i] // 2, most // others)))
        return [
            each if keep == count else _some(axis, each, keep, self._turn)
            for (axis, each), keep, count in zip(pairs, kept, counts, strict=True)
        ]


class _Found:
    """What the chunks of a sample have become."""

    def __init__(self, target: ArrayHandle) -> None:
        self._target = target
        self._fill = target.layout.metadata.fill
        self._exact = _exact_size(target.layout) is not None
        self._objects: dict[tuple[int, ...], bool] = {}
        self._per_element = 0.0
        self._looked = self._empty = self._encoded = 0
        self._cut = False
        self.nbytes = 0
        """Of the elements that were encoded."""

    def add(self, group: _Group) -> None:
        """Encode some chunks of a group. What is damaged is left out: it is said when it is converted."""
        try:
            looks = {place: self._is_empty(group.values(place)) for place in group.places}
            busy = [place for place, is_empty in looks.items() if not is_empty]
            chosen = [busy[i] for (i,) in _spread([len(busy)], 0 if self._exact else group.most)]
            sizes = [self._encode(group, place) for place in chosen]
        except DataError:
            return
        for place, is_empty in looks.items():
            ranges = group.ranges(place)
            stored = zip(self._target.layout.grids.storage, ranges, strict=True)
            where = tuple(axis.find(start) for axis, (start, _) in stored)
            self._objects[where] = self._objects.get(where, False) or not is_empty
        self._looked += len(looks)
        self._empty += len(looks) - len(busy)
        self._encoded += len(sizes)
        elements = sum(prod(b - a for a, b in group.ranges(place)) for place in chosen)
        self._per_element += len(busy) * sum(sizes) / max(1, elements)

    def _is_empty(self, values: npt.NDArray[Any]) -> bool:
        return not self._target.write_empty_chunks and equals_fill(values, self._fill)

    def _encode(self, group: _Group, place: Sequence[int]) -> float:
        """Return the bytes of a chunk, as far as they can be told from what of it was read."""
        values, ranges = group.values(place), group.ranges(place)
        lengths = tuple(b - a for a, b in ranges)
        if values.shape != lengths:
            axis = min(range(len(lengths)), key=lambda i: values.shape[i] / lengths[i])
            try:
                return self._extended(values, axis, prod(lengths) / values.size)
            except MetadataError:  # the codecs take chunks of their own shape only
                values = group.whole()
                ranges = group.ranges(group.place)
        chunks = zip(self._target.layout.grids.chunks, place, strict=True)
        return self._size(values, tuple(axis.extent(i) for axis, i in chunks))

    def _extended(self, values: npt.NDArray[Any], axis: int, times: float) -> float:
        """Return the bytes of a chunk, so many times as long along an axis as what there is of it."""
        self._cut = True
        size, length = self._size(values, values.shape), values.shape[axis]
        if length < _LEAST_CUT:
            return size * times
        half = self._size(np.take(values, range(length // 2), axis), None)
        each = max(0.0, (size - half) / (length - length // 2))  # what is the same for all lengths is there once
        return float(max(size, size + each * length * (times - 1)))

    def _size(self, values: npt.NDArray[Any], shape: tuple[int, ...] | None) -> int:
        """Return the bytes of a chunk of a shape, or of that of its values; behind these there is nothing."""
        chain = self._target.layout.chain(values.shape if shape is None else shape)
        chunk = values
        if chunk.shape != chain.spec.shape:
            chunk = np.empty(chain.spec.shape, chain.spec.dtype)
            chunk[...] = chain.spec.fill
            where: tuple[Any, ...] = (*map(slice, values.shape), ...)
            chunk[where] = values
        self.nbytes += chunk.nbytes
        return len(chain.encode(np.ascontiguousarray(chunk), write_empty=self._target.write_empty_chunks))

    def result(self, count: int, most: int) -> Written:
        """Return what all ``count`` objects take; with nothing to tell by, ``most`` bytes."""
        layout = self._target.layout
        seen = f"{self._looked:,} chunks of {len(self._objects):,} of {count:,} objects"
        if self._empty == self._looked:
            return Written(
                count, most, 1.0, f"{seen}, all of which are empty: so this is the most" if self._looked else ""
            )
        kept = sum(self._objects.values())
        objects = count if kept == len(self._objects) else round(count * kept / len(self._objects))
        share = 1 - self._empty / self._looked
        indexes = _index_size(layout)
        if self._exact:
            data = share * (full_size(layout) - count * indexes)
            text = f"{seen}, encoded in one length each"
        else:
            data = self._per_element / self._looked * prod(layout.metadata.shape)
            what = "parts of " if self._cut else ""
            text = f"{seen}, encoded {what}{self._encoded:,} of these"
        if self._empty:
            text += f", of which {self._empty:,} are empty"
        return Written(objects, round(data + objects * indexes), share, text)


def full_size(layout: ArrayLayout) -> int:
    """Return the bytes of all objects where nothing is compressed, and all chunks are stored."""
    axes, each = layout.grids.chunks, _exact_size(layout)
    shape = tuple(axis.longest for axis in axes)
    item_size = layout.metadata.dtype.itemsize
    around = 0 if each is None else each - prod(shape) * item_size  # as a checksum: the same for each
    elements = prod(axis.start(axis.count - 1) + axis.extent(axis.count - 1) for axis in axes)
    return elements * item_size + _count(axes) * around + _count(layout.grids.storage) * _index_size(layout)


def _exact_size(layout: ArrayLayout) -> int | None:
    """Return bytes of the longest encoded chunk; ``None`` where those of equal shape differ."""
    return layout.chain(tuple(axis.longest for axis in layout.grids.chunks)).encoded_size


def _count(axes: Sequence[Axis]) -> int:
    return prod(axis.count for axis in axes)


def _spread(counts: Sequence[int], most: int, turn: int = 0) -> list[tuple[int, ...]]:
    """Return ``most`` places of a grid, or all: spread evenly along each axis, and with no period.

    They follow the sequence that generalises the golden ratio (M. Roberts 2018, "R sequence").
    """
    cells = Cells(tuple(counts))
    if cells.count <= most:
        return list(map(cells.place, range(cells.count)))
    root = 2.0
    for _ in range(32):
        root = (1 + root) ** (1 / (len(counts) + 1))
    found: dict[tuple[int, ...], None] = {}
    number = turn * most
    while len(found) < most:
        number += 1
        found[tuple(int((0.5 + number / root ** (i + 1)) % 1 * count) for i, count in enumerate(counts))] = None
        if number > (turn + _TRIES) * most:
            break
    return list(found)


def _some(axis: Axis, segments: Segments, number: int, turn: int) -> Segments:
    """Return what of segments lies in some chunks of an axis, chosen by their elements."""
    elements = [(a, b) for a, b in segments]
    total = sum(b - a for a, b in elements)
    chosen = {axis.find(_nth(elements, place)) for (place,) in _spread([total], number, turn)}
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


def _chunks_of(layout: ArrayLayout, place: Sequence[int]) -> list[range]:
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


__all__ = ["SAMPLE", "Change", "Written", "carried_sample", "encoded_sample", "full_size", "stored_sample"]
