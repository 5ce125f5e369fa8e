"""The fragment index of a cell: which rows of the cell make up each fragment. Bytes to arrays and back.

A fragment is a range of rows or a list of them; a list may name rows twice, and rows of other fragments.

::

    u32 magic  u16 version  u16 flags  u32 fragments F  u32 ranges R
    bitmap, a bit for each fragment (1: a range), padded to 8 bytes
    R times: i64 first row, i64 number of rows
    u32 offsets of the F - R lists, and the end of the last; there if F > 0
    i64 row numbers of the lists
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import ChunkDecodeError
from zardine.kernel import KERNEL
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.format.ragged import ranges, starts_of

_HEADER = struct.Struct("<IHHII")
_ONE_RANGE = struct.Struct("<IHHIIQqqI")
_MAGIC, _VERSION = 0x5A564647, 1
_MOST_ROWS = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class FragmentIndex:
    """The fragments of one cell: ``counts[f]`` rows of fragment ``f`` follow those of the one before in ``rows``."""

    counts: Ints
    rows: Ints
    all_ranges: bool
    """Whether every fragment is stored as a range."""

    def tiles(self, row_count: int) -> bool:
        """Whether the fragments are ranges that cut all rows in pieces, in order."""
        return self.all_ranges and len(self.rows) == row_count and bool((self.rows == np.arange(len(self.rows))).all())


def encode_indexes(fragments_before: Ints, counts: Ints, rows: Ints) -> list[bytes]:
    """The index of each cell: cell ``c`` has fragments ``fragments_before[c]`` to ``fragments_before[c + 1]``.

    ``rows`` are local to their cell. Consecutive rows become a range, and so does a fragment without rows.
    """
    at = starts_of(counts)
    first = rows[np.minimum(at[:-1], max(len(rows) - 1, 0))] if len(rows) else np.zeros(len(counts), np.int64)
    breaks = np.zeros(len(rows) + 1, np.int64)
    if len(rows) > 1:
        np.cumsum(rows[1:] != rows[:-1] + 1, out=breaks[1:-1])
        breaks[-1] = breaks[-2]
    is_range = (counts == 0) | (breaks[np.maximum(at[1:] - 1, 0)] == breaks[np.minimum(at[:-1], len(rows))])
    table = np.stack([first, counts], axis=1).astype("<i8")
    _place_empty(table, counts, is_range, fragments_before)
    edges = pairwise(fragments_before.tolist())
    return [_encode(table[start:stop], is_range[start:stop], rows, at[start : stop + 1]) for start, stop in edges]


def encode_tile(count: int) -> bytes:
    """The index of a cell whose rows, ``count`` of them, are one fragment."""
    return _ONE_RANGE.pack(_MAGIC, _VERSION, 0, 1, 1, 1, 0, count, 0)


def around_count() -> tuple[bytes, bytes]:
    """What stands in :func:`encode_tile` before the count, which is eight bytes, little endian, and behind it."""
    return _ONE_RANGE.pack(_MAGIC, _VERSION, 0, 1, 1, 1, 0, 0, 0)[:-12], bytes(4)


def encode_tiles(fragments_before: Ints, counts: Ints) -> Pieces:
    """:func:`encode_indexes` where the fragments of each cell are its rows from the first on, ``counts[f]`` of them."""
    numbers = np.diff(fragments_before)
    bitmaps = (numbers + 63) // 64 * 2
    at = starts_of(4 + bitmaps + np.where(numbers > 0, 4 * numbers + 1, 0))
    if KERNEL is not None:
        plain = (np.ascontiguousarray(each, np.int64) for each in (fragments_before, counts))
        return Pieces.between(KERNEL.encode_tiles(*plain), 4 * at)
    starts = starts_of(counts)
    first = starts[:-1] - np.repeat(starts[fragments_before[:-1]], numbers)
    words = np.zeros(int(at[-1]), "<u4")
    words[at[:-1]], words[at[:-1] + 1] = _MAGIC, _VERSION
    words[at[:-1] + 2] = words[at[:-1] + 3] = numbers
    tables = at[:-1] + 4 + bitmaps
    words[ranges(at[:-1] + 4, bitmaps)] = 2**32 - 1
    for number in range(2):  # of the last two words of a bitmap, some bits may be of no fragment
        unused = np.clip(-numbers % 64 - 32 * number, 0, 32)[numbers > 0]
        words[tables[numbers > 0] - 1 - number] = 2**32 - 1 >> unused
    places = np.repeat(tables - 4 * fragments_before[:-1], numbers) + 4 * np.arange(len(counts))
    for number, values in enumerate((first, first >> 32, counts, counts >> 32)):
        words[places + number] = values & (2**32 - 1)
    return Pieces.between(words.data.cast("B"), 4 * at)


def decode_index(blob: bytes, row_count: int) -> FragmentIndex:
    """The fragments of a cell of ``row_count`` rows.

    Raises :class:`~zardine.errors.ChunkDecodeError` for bytes that are no index, or that name other rows.
    """
    counts, first, is_range, listed = _decode_tables(blob, row_count)
    if is_range.all():
        return FragmentIndex(counts, ranges(first, counts), True)
    rows = np.empty(int(counts.sum()), np.int64)
    place = np.repeat(is_range, counts)
    rows[place] = ranges(first, counts[is_range])
    rows[~place] = listed
    return FragmentIndex(counts, rows, False)


def decode_sizes(blob: bytes, row_count: int) -> Ints:
    """Return how many rows each fragment has, without the rows themselves. Raises as :func:`decode_index`."""
    return _decode_tables(blob, row_count)[0]


def _decode_tables(blob: bytes, row_count: int) -> tuple[Ints, Ints, npt.NDArray[np.bool_], Ints]:
    """Return the rows of each fragment, the first row of ranges, which fragments are ranges, and the rows of others."""
    if len(blob) < _HEADER.size:
        raise ChunkDecodeError(f"a fragment index has 16 bytes at least, not {len(blob)}")
    magic, version, flags, fragments, range_count = _HEADER.unpack_from(blob)
    if (magic, version, flags) != (_MAGIC, _VERSION, 0):
        raise ChunkDecodeError(f"no fragment index: magic {magic:#x}, version {version}, flags {flags}")
    if fragments == 0 and range_count == 0 and len(blob) == _HEADER.size:
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0, np.bool_), none
    bitmap_end = _HEADER.size + (fragments + 63) // 64 * 8
    table_end = bitmap_end + 16 * range_count
    offsets_end = table_end + 4 * (fragments - range_count + 1)
    if range_count > fragments or len(blob) < offsets_end:
        raise ChunkDecodeError(f"{len(blob)} bytes are too few for {fragments} fragments, {range_count} of them ranges")
    bits = np.unpackbits(np.frombuffer(blob, np.uint8, bitmap_end - 16, 16), bitorder="little")
    is_range = bits[:fragments].astype(np.bool_)
    if int(is_range.sum()) != range_count or bits[fragments:].any():
        raise ChunkDecodeError(f"the bitmap marks {int(bits.sum())} fragments as ranges, the header says {range_count}")
    table = np.frombuffer(blob, "<i8", 2 * range_count, bitmap_end).reshape(-1, 2)
    offsets = np.frombuffer(blob, "<u4", fragments - range_count + 1, table_end).astype(np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or len(blob) != offsets_end + 8 * int(offsets[-1]):
        raise ChunkDecodeError("the offsets of the listed rows do not ascend from 0 to the end of the index")
    listed = np.frombuffer(blob, "<i8", int(offsets[-1]), offsets_end)
    first, counts_of_ranges = table[:, 0], table[:, 1]
    if (
        (len(table) and (table.min() < 0 or (first > row_count).any() or (counts_of_ranges > row_count - first).any()))
        or (len(listed) and (listed.min() < 0 or listed.max() >= row_count))
        or int(counts_of_ranges.sum()) + len(listed) > _MOST_ROWS
    ):
        raise ChunkDecodeError(f"the fragment index names rows that the cell, of {row_count} rows, does not have")
    counts = np.empty(fragments, np.int64)
    counts[is_range] = counts_of_ranges
    counts[~is_range] = np.diff(offsets)
    return counts, first, is_range, listed


@dataclass(frozen=True, slots=True, eq=False)
class FragmentRanges:
    """The fragments of some cells, all of them ranges, cell by cell."""

    numbers: Ints
    """How many fragments each cell has."""
    first: Ints
    """The first row of each fragment, local to its cell."""
    counts: Ints
    """How many rows each fragment has."""
    tile: bool
    """Whether they cut the rows of every cell in pieces, in order."""


def decode_ranges(data: BytesLike, lengths: Ints, row_counts: Ints) -> FragmentRanges | None:
    """The fragments of many cells at a time, where all are ranges: cell ``c`` has ``row_counts[c]`` rows.

    ``data`` is the indexes one after the other, each of ``lengths[c]`` bytes. ``None`` where some are lists, or
    anything is damaged; :func:`decode_index` tells of each cell.
    """
    if len(lengths) == 0 or lengths.min() < _HEADER.size or (lengths % 4).any():
        return None
    if KERNEL is not None:
        found = KERNEL.decode_ranges(data, np.ascontiguousarray(lengths), np.ascontiguousarray(row_counts))
        if found is None:
            return None
        numbers, first, counts = (np.frombuffer(each, np.int64) for each in found[:3])
        return FragmentRanges(numbers, first, counts, found[3])
    words = np.frombuffer(data, "<u4")
    starts = starts_of(lengths // 4)[:-1]
    heads = words[starts[:, None] + np.arange(4)]
    numbers = heads[:, 2].astype(np.int64)
    bitmap = (numbers + 63) // 64 * 2
    size = _HEADER.size + 4 * bitmap + np.where(numbers > 0, 16 * numbers + 4, 0)
    if (heads[:, :2] != (_MAGIC, _VERSION)).any() or (heads[:, 2] != heads[:, 3]).any() or (lengths != size).any():
        return None
    filled = np.flatnonzero(numbers)
    bits = words[ranges(starts[filled] + 4, bitmap[filled])].view("<u8")
    wanted = np.full(len(bits), 2**64 - 1, np.uint64)
    unused = (-numbers[filled] % 64).astype(np.uint64)
    wanted[np.cumsum(bitmap[filled] // 2) - 1] >>= unused
    tables = starts[filled] + 4 + bitmap[filled]
    if (bits != wanted).any() or words[tables + 4 * numbers[filled]].any():
        return None
    four_words: npt.NDArray[Any] = np.ndarray(len(words) - 3, "V16", words, strides=(4,))  # from each word on
    within = 4 * np.arange(int(numbers.sum())) - np.repeat(4 * starts_of(numbers)[:-1], numbers)
    chosen = four_words[np.repeat(tables, numbers[filled]) + within]
    table = chosen.view("<i8").astype(np.int64, copy=False).reshape(-1, 2)
    first, counts = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
    rows = np.repeat(row_counts, numbers)
    if ((first < 0) | (counts < 0) | (first > rows) | (counts > rows - first)).any():
        return None
    before = starts_of(counts)
    edges = before[starts_of(numbers)]
    if (np.diff(edges) > _MOST_ROWS).any():
        return None
    in_order = (first == before[:-1] - np.repeat(edges[:-1], numbers)) | (counts == 0)
    return FragmentRanges(numbers, first, counts, bool(in_order.all() and (np.diff(edges) == row_counts).all()))


def _place_empty(table: Ints, counts: Ints, is_range: npt.NDArray[np.bool_], fragments_before: Ints) -> None:
    """Let fragments without rows start where the range before them ends, in their cell."""
    empty = np.flatnonzero(counts == 0)
    if len(empty) == 0:
        return
    number = np.arange(len(counts))
    last = np.maximum.accumulate(np.where((counts > 0) & is_range, number, -1))[empty]
    cell_start = fragments_before[np.searchsorted(fragments_before, empty, side="right") - 1]
    before = table[np.maximum(last, 0)].sum(axis=1)
    table[empty, 0] = np.where(last >= cell_start, before, 0)


def _encode(table: Ints, is_range: npt.NDArray[np.bool_], rows: Ints, at: Ints) -> bytes:
    fragments = len(table)
    if fragments == 0:
        return _HEADER.pack(_MAGIC, _VERSION, 0, 0, 0)
    size = (fragments + 63) // 64 * 8
    if is_range.all():
        bitmap = ((1 << fragments) - 1).to_bytes(size, "little")
        return _HEADER.pack(_MAGIC, _VERSION, 0, fragments, fragments) + bitmap + table.tobytes() + bytes(4)
    lists = [rows[at[f] : at[f + 1]] for f in np.flatnonzero(~is_range).tolist()]
    return b"".join(
        (
            _HEADER.pack(_MAGIC, _VERSION, 0, fragments, int(is_range.sum())),
            np.packbits(is_range, bitorder="little").tobytes().ljust(size, b"\0"),
            table[is_range].tobytes(),
            starts_of([len(each) for each in lists]).astype("<u4").tobytes(),
            np.concatenate(lists).astype("<i8").tobytes(),
        )
    )
