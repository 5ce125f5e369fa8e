"""Chunks that hold one byte string each: those of an object are decoded together.

To plan the way of such a chunk, as for arrays of numbers, would take far longer than to decode it. The kernel verifies
checksums of many; what is compressed, and whatever is unusual or wrong, is left to the codec chain.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.vlen.elements import BYTES_TYPES, VLenElements
from zardine.engine.layout import ArrayLayout
from zardine.engine.locate import FoundChunks
from zardine.errors import DataError
from zardine.indexing.axis_plan import StridedAxis
from zardine.indexing.plan import GridPart, ObjectPart, PointPart
from zardine.kernel import KERNEL
from zardine.settings import thread_count
from zardine.sharding.index import MISSING
from zardine.stores.base import OpenFile

_FRAME = struct.Struct("<II")
"""The number of elements, which is one, and the bytes of it."""
_SUM = 4
_AT_ONCE = 32 * 2**20
"""Bytes that are held twice: as they are decoded, and as byte strings."""
_FEW = 8
"""Chunks that take no longer one by one."""


def element_chain(layout: ArrayLayout) -> CodecChain | None:
    """Return what encodes chunks that hold one byte string each; ``None`` for chunks of other kinds."""
    chain = None if layout.blocks is None else layout.blocks.chain
    if chain is None or chain.spec.size != 1 or chain.filters or not chain.spec.shape:
        return None
    framed = isinstance(chain.serializer, VLenElements) and chain.spec.data_type.name in BYTES_TYPES
    return chain if framed else None


def element_places(part: ObjectPart) -> tuple[Any, ...] | None:
    """Return where the elements of the chunks go, as an index of the output; ``None`` where that is not simple."""
    if isinstance(part, PointPart):
        first, last = (int(part.plan.point_bounds[row]) for row in (part.low, part.high))
        return (part.plan.places[first:last],) if last - first == part.count else None
    if not isinstance(part, GridPart) or not all(isinstance(axis, StridedAxis) for axis in part.plan.axes):
        return None
    axes = zip(part.plan.axes, part.low, part.high, strict=True)
    return np.ix_(*(axis.out_first[low:high] for axis, low, high in axes if isinstance(axis, StridedAxis)))


def decode_elements(chain: CodecChain, found: Sequence[FoundChunks]) -> list[bytes | None]:
    """Return the byte string of each chunk of some objects, one object after the other.

    ``None`` for those that are not stored, or that are unusual or wrong.
    """
    lengths = np.concatenate([each.lengths for each in found])
    values: list[bytes | None] = [None] * len(lengths)
    stored = np.flatnonzero(lengths != MISSING)
    sums = sums_of(chain)
    if sums is None or len(stored) <= _FEW:
        number = 0
        for each in found:
            for i in np.flatnonzero(each.lengths != MISSING).tolist():
                data = each.chunk(i)
                values[number + i] = None if data is None else _element(chain, data)
            number += len(each.lengths)
        return values
    stored = stored[lengths[stored] >= _FRAME.size + sums * _SUM]
    sources = [item.fd if isinstance(item, OpenFile) else item for each in found for item in each.buffers]
    first = np.cumsum([0, *(len(each.buffers) for each in found)])[:-1]
    within = np.concatenate([each.within + before for each, before in zip(found, first.tolist(), strict=True)])
    jobs = np.stack([within, np.concatenate([each.offsets for each in found]), lengths], axis=1).astype(np.int64)
    for rows in _portions(jobs, stored):
        content, starts, ends, whole = _decode_by_kernel(sources, jobs[rows], sums)
        places = zip(rows[whole].tolist(), starts[whole].tolist(), ends[whole].tolist(), strict=True)
        for i, start, end in places:
            values[i] = bytes(content[start:end])
    return values


def decode_element(chain: CodecChain, data: BytesLike) -> bytes:
    """Return the byte string of one chunk. Raises :class:`~zardine.errors.CorruptionError` for damaged ones."""
    value = _element(chain, data)
    if value is None:
        value = bytes(chain.decode(data).item())
    return value


def _element(chain: CodecChain, data: BytesLike) -> bytes | None:
    """The byte string of one chunk, without making an array of it; ``None`` where it is unusual or wrong."""
    try:
        for codec, limit in zip(reversed(chain.compressors), reversed(chain.limits), strict=True):
            data = codec.decode(data, limit.now())
    except DataError:
        return None
    if len(data) < _FRAME.size or _FRAME.unpack_from(data) != (1, len(data) - _FRAME.size):
        return None
    return bytes(data[_FRAME.size :])


def sums_of(chain: CodecChain) -> int | None:
    """Return how many checksums follow each chunk; ``None`` where there is another codec, or no kernel."""
    good = KERNEL is not None and all(type(codec) is Crc32cCodec for codec in chain.compressors)
    return len(chain.compressors) if good else None


def join_elements(
    sources: Sequence[BytesLike | int], jobs: Ints, sums: int, ends: Sequence[int]
) -> list[tuple[bytearray, Ints]] | None:
    """Return the byte strings of chunks one after the other, and the length of each: 0 where nothing is stored.

    ``jobs``: int64, of each chunk the source, and where it starts there, and how long it is; they are given apart up to
    each of ``ends`` (exclusive). ``sums``: of :func:`sums_of`. ``None`` where anything is unusual or wrong.
    """
    assert KERNEL is not None
    data = KERNEL.read_elements(sources, jobs, ends, sums, thread_count())
    if data is None:
        return None
    return list(zip(data, np.split(element_lengths(jobs, sums), ends[:-1]), strict=True))


def element_lengths(jobs: Ints, sums: int) -> Ints:
    """Return how long the byte string of each chunk is, by what it takes: 0 where nothing is stored."""
    return np.where(jobs[:, 2] == MISSING, 0, jobs[:, 2] - (_FRAME.size + sums * _SUM))


def read_element_parts(
    sources: Sequence[BytesLike | int], jobs: Ints, sizes: Sequence[int], spans: Ints, sums: int
) -> list[bytearray] | None:
    """Return rows of byte strings, of whole chunks that are verified: for each of ``sizes``, bytes of a row, an output.

    ``jobs`` and ``sums`` as for :func:`join_elements`: as many for each of ``sizes``, in turn. ``spans``: int64
    ``(S, 3)``, the number of a chunk among these, its first row, and how many. ``None`` where anything is unusual or
    wrong.
    """
    assert KERNEL is not None
    found: list[bytearray] | None = KERNEL.read_element_parts(sources, jobs, sizes, spans, sums, thread_count())
    return found


def _portions(jobs: Ints, rows: Ints) -> list[Ints]:
    """Cut rows so that no more is decoded at a time than may be held twice."""
    before = np.cumsum(jobs[rows, 2]) // _AT_ONCE
    return [each for each in np.split(rows, np.flatnonzero(np.diff(before)) + 1) if len(each)]


def _decode_by_kernel(
    sources: Sequence[BytesLike | int], jobs: Ints, sums: int
) -> tuple[memoryview, Ints, Ints, npt.NDArray[np.bool_]]:
    """Verify the checksums of chunks, and return what they hold, and where that of each starts and ends.

    The last item is which are neither unusual nor wrong.
    """
    sizes = jobs[:, 2] - sums * _SUM
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    numbered = np.concatenate([jobs, np.arange(len(jobs))[:, None]], axis=1)
    axis = ("s", sizes, np.zeros_like(sizes), sizes, starts, 1)
    failed = _pipeline(sums).decode(sources, numbered, [axis], out.view("V1"), thread_count())
    frames = out[starts[:, None] + np.arange(_FRAME.size)].view("<u4")
    whole = (frames[:, 0] == 1) & (frames[:, 1] == sizes - _FRAME.size)
    whole[[number for number, _ in failed]] = False
    return out.data, starts + _FRAME.size, ends, whole


_pipelines: dict[int, Any] = {}


def _pipeline(sums: int) -> Any:
    """What takes bytes out of so many checksums."""
    found = _pipelines.get(sums)
    if found is None:
        assert KERNEL is not None
        steps = [("crc32c",)] * sums
        found = KERNEL.Pipeline(
            item_size=1, word_size=1, swap=False, is_bool=False, order=(0,), steps=steps, fill=b"\0"
        )
        _pipelines[sums] = found
    return found
