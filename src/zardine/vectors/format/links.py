"""Links as they are stored: names of their arrays, orders of their endpoints, cells. Text, bytes and numbers; no I/O.

Names are chunk offsets such as ``0.0.0_+1.-1.0`` and level differences such as ``+1``.

The order of the endpoints of a link is one number, the Lehmer rank of ``sigma``: ``sigma[i]`` is the place, among the
endpoints as they were given, of the endpoint that is stored at place ``i``.

Cells are rows of endpoint numbers. Links within a chunk are plain rows. All others are in groups: ``i64 K``, ``K``
times ``i64`` the byte where a group starts, and then the rows; each write may add a group, and readers take them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import ChunkDecodeError
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.format.ragged import ranges

SELF = "self"


def signed(number: int) -> str:
    """``0``, ``+1``, ``-2``."""
    return f"+{number}" if number > 0 else str(number)


def segment_of(offsets: Sequence[Sequence[int]]) -> str:
    """The path segment for the offsets of all endpoints but the first."""
    return "_".join(".".join(map(signed, offset)) for offset in offsets) or SELF


def parse_delta(text: str) -> int:
    """The number that :func:`signed` wrote. Raises :class:`~zardine.errors.ChunkDecodeError`."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if signed(number) != text:
        raise ChunkDecodeError(f"{text!r} is no level difference such as '0', '+1' or '-1'")
    return number


def parse_segment(text: str, rank: int) -> tuple[tuple[int, ...], ...]:
    """The offsets that :func:`segment_of` wrote. Raises :class:`~zardine.errors.ChunkDecodeError`."""
    if text == SELF:
        return ()
    try:
        offsets = tuple(tuple(parse_delta(each) for each in part.split(".")) for part in text.split("_"))
    except ChunkDecodeError:
        offsets = ((),)
    if any(len(offset) != rank for offset in offsets):
        raise ChunkDecodeError(f"{text!r} does not name chunk offsets of {rank} axes")
    return offsets


_ONE_GROUP = np.array([1, 0], "<i8").tobytes()
WORDS_BEFORE = len(_ONE_GROUP) // 8
"""Integers in front of the rows of a cell that is one group."""


def encode_links(rows: npt.NDArray[Any], *, grouped: bool) -> bytes:
    """The cell that holds ``rows`` (of the stored integer type); ``grouped``: as one group."""
    return (_ONE_GROUP if grouped else b"") + rows.tobytes()


def encode_link_cells(rows: npt.NDArray[Any], starts: Ints, *, grouped: bool) -> Pieces:
    """:func:`encode_links` of the rows (``<i8``) of many cells: of each from its place in ``starts`` to the next."""
    width = rows.shape[1]
    if not grouped:
        return Pieces.between(rows.tobytes(), starts * 8 * width)
    heads = 2 * np.arange(len(starts))
    words = np.empty(rows.size + heads[-1], "<i8")
    edges = starts * width + heads
    words[edges[:-1]], words[edges[:-1] + 1] = 1, 0
    words[ranges(edges[:-1] + 2, np.diff(starts) * width)] = rows.reshape(-1)
    return Pieces.between(words.data.cast("B"), edges * 8)


def decode_links(blob: bytes, dtype: np.dtype[Any], width: int, *, grouped: bool) -> Ints:
    """The rows ``(M, width)`` of a cell, groups one after the other.

    Raises :class:`~zardine.errors.ChunkDecodeError` for bytes that are not whole rows.
    """
    data: bytes | memoryview = blob
    if grouped and blob:
        if len(blob) < 8:
            raise ChunkDecodeError(f"{len(blob)} bytes are too few for the number of link groups")
        count = int.from_bytes(blob[:8], "little", signed=True)
        start = 8 + 8 * count
        if count < 0 or start > len(blob):
            raise ChunkDecodeError(f"{count} groups of links in {len(blob)} bytes")
        edges = [*np.frombuffer(blob, "<i8", count, 8).tolist(), len(blob) - start]
        if edges[0] != 0 or any(a > b for a, b in pairwise(edges)):
            raise ChunkDecodeError("the groups of links do not follow each other")
        data = memoryview(blob)[start:]
    if len(data) % (dtype.itemsize * width):
        raise ChunkDecodeError(f"{len(data)} bytes are no rows of {width} numbers of {dtype.itemsize} bytes")
    return np.frombuffer(data, dtype).astype(np.int64).reshape(-1, width)


def join_links(blob: bytes, more: bytes, width: int, *, grouped: bool) -> bytes:
    """The cell that holds the rows (``<i8``) of both cells, as one group. Raises as :func:`decode_links`."""
    head = _ONE_GROUP if grouped else b""
    if blob.startswith(head) and more.startswith(head) and not (len(blob) - len(head)) % (8 * width):
        return blob + more[len(head) :]
    rows = [decode_links(each, np.dtype("<i8"), width, grouped=grouped) for each in (blob, more)]
    return encode_links(np.concatenate(rows).astype("<i8"), grouped=grouped)


def rank_of(sigma: Ints) -> Ints:
    """The rank of each row of ``sigma`` ``(M, L)``."""
    width = sigma.shape[1]
    rank = np.zeros(len(sigma), np.int64)
    for i in range(width):
        smaller = (sigma[:, i + 1 :] < sigma[:, i : i + 1]).sum(axis=1)
        rank += smaller * factorial(width - 1 - i)
    return rank


def sigma_of(ranks: Ints, width: int) -> Ints:
    """The permutation of each rank: ``(M, width)``. Raises :class:`~zardine.errors.ChunkDecodeError`."""
    if len(ranks) and (ranks.min() < 0 or ranks.max() >= factorial(width)):
        raise ChunkDecodeError(f"a link of {width} endpoints has no order number {int(ranks.max())}")
    distinct, numbers = np.unique(ranks, return_inverse=True)
    table = np.array([_permutation(int(rank), width) for rank in distinct], np.int64).reshape(-1, width)
    return table[numbers.reshape(-1)]


def _permutation(rank: int, width: int) -> list[int]:
    unused = list(range(width))
    found = []
    for i in range(width):
        index, rank = divmod(rank, factorial(width - 1 - i))
        found.append(unused.pop(index))
    return found
