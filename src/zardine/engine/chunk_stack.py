"""Many chunks in single calls of the kernel; whole chunks of one shape as a stack, one below the other in an array."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.engine.layout import ArrayLayout
from zardine.errors import EncodeError
from zardine.limits import CHUNK, limit_of
from zardine.settings import thread_count
from zardine.sharding.index import MISSING

_STACK_BYTES = 2**22
"""Decoded bytes that are looked at together."""
_SMALL = 2**14
"""Bytes of a chunk below which decoding it takes no longer than looking at its checksum from Python."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """Where chunks are in ``buffer``, an open file or bytes. ``table`` holds rows of 0, offset and length in bytes.

    The length is :data:`~zardine.sharding.index.MISSING` of chunks that are not stored, or not needed.
    """

    buffer: int | BytesLike
    table: npt.NDArray[np.int64]

    def chunk(self, i: int) -> BytesLike | None:
        """The stored bytes of chunk ``i``; ``None`` if there are none."""
        _, offset, length = self.table[i].tolist()
        if length == MISSING:
            return None
        if isinstance(self.buffer, int):
            return os.pread(self.buffer, length, offset)
        return memoryview(self.buffer)[offset : offset + length]


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """How the kernel is to encode chunks."""

    write_empty: bool
    threads: int
    head: int = 0
    tail: int = 0
    """Bytes to leave in front of the chunks and behind them."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Encoded chunks one after the other in ``data``; offset and length are :data:`MISSING` for those left out."""

    data: bytearray
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    failed: list[tuple[int, str]]
    """Numbers of the chunks that could not be encoded, each with the reason."""

    def chunks(self) -> list[BytesLike | None]:
        """Return the bytes of each chunk."""
        view = memoryview(self.data)
        found: list[BytesLike | None] = []
        for offset, length in zip(self.offsets.tolist(), self.lengths.tolist(), strict=True):
            found.append(None if length == MISSING else view[offset : offset + length])
        return found

    def raise_first(self, name: Callable[[int], tuple[int, ...]]) -> NoReturn:
        """Raise :class:`~zardine.errors.EncodeError` for the first that failed; ``name`` gives its grid coordinates."""
        job, reason = self.failed[0]
        raise EncodeError(reason, chunk=name(job))


def encode(
    pipeline: Any,
    values: npt.NDArray[Any],
    jobs: npt.NDArray[np.int64],
    axes: list[tuple[object, ...]],
    how: Encoding,
    old: StoredRows | None = None,
) -> Encoded:
    """What the kernel makes of the chunks that ``jobs`` name, by their rows in ``axes``, of ``values``.

    Where these leave gaps, the chunk has what is stored of it by ``old``, or the fill value.
    """
    data, offsets, lengths, failed = pipeline.encode(
        values.view(f"V{values.dtype.itemsize}"),
        np.ascontiguousarray(jobs) if old is None else np.concatenate((old.table, jobs), axis=1),
        axes,
        write_empty=how.write_empty,
        head=how.head,
        tail=how.tail,
        threads=how.threads,
        sources=None if old is None else [old.buffer],
    )
    return Encoded(data, np.frombuffer(offsets, np.int64), np.frombuffer(lengths, np.int64), failed)


def sound_chunks(
    pipeline: Any,
    chain: CodecChain,
    sources: Sequence[BytesLike],
    places: npt.NDArray[np.int64],
    *,
    deep: bool,
) -> npt.NDArray[np.bool_]:
    """Which chunks of ``chain`` its ``pipeline`` decodes: rows of ``places`` say in which buffer, where and how long.

    Of the others nothing is known. Those that are large are left out unless ``deep``: to decode them takes longer than
    to look at their checksums. At most :data:`_STACK_BYTES` are decoded at a time, or one chunk.
    """
    sound = np.zeros(len(places), np.bool_)
    shape, dtype = chain.spec.shape, chain.spec.dtype
    nbytes = prod(shape) * dtype.itemsize
    if pipeline is None or not len(places) or nbytes > (limit_of(CHUNK) if deep else _SMALL):
        return sound
    jobs = np.zeros((len(places), 3 + len(shape)), np.int64)
    jobs[:, :3] = places
    most = max(1, _STACK_BYTES // max(1, nbytes))
    raw = np.empty((min(most, len(jobs)) * shape[0], *shape[1:]), f"V{dtype.itemsize}")
    for start in range(0, len(jobs), most):
        batch = jobs[start : start + most]
        batch[:, 3] = np.arange(len(batch))
        out = raw[: len(batch) * shape[0]]
        failed = pipeline.decode(list(sources), batch, _axes(len(batch), shape), out, 1)
        sound[start : start + most] = True
        sound[[start + job for job, _ in failed]] = False
    return sound


def decode_stack(layout: ArrayLayout, chunks: Sequence[BytesLike], shape: tuple[int, ...]) -> Any:
    """The decoded chunks as an array of shape ``(len(chunks) * shape[0], *shape[1:])``; ``None`` if one is damaged."""
    stack = np.empty((len(chunks) * shape[0], *shape[1:]), layout.metadata.dtype)
    jobs = np.zeros((len(chunks), 3 + len(shape)), np.int64)
    jobs[:, 0] = jobs[:, 3] = np.arange(len(chunks))
    jobs[:, 2] = [len(chunk) for chunk in chunks]
    raw = stack.view(f"V{stack.dtype.itemsize}")
    failed = layout.pipeline.decode(list(chunks), jobs, _axes(len(chunks), shape), raw, thread_count())
    return None if failed else stack


def encode_stack(layout: ArrayLayout, stack: npt.NDArray[Any], shape: tuple[int, ...], how: Encoding) -> Encoded:
    """Encode the chunks of ``stack``."""
    count = len(stack) // shape[0]
    jobs = np.zeros((count, len(shape)), np.int64)
    jobs[:, 0] = np.arange(count)
    return encode(layout.pipeline, stack, jobs, _axes(count, shape), how)


def _axes(count: int, shape: tuple[int, ...]) -> list[tuple[object, ...]]:
    """The axes in the form of the kernel: chunk after chunk along the first, all of the others."""
    first, zeros = np.full(count, shape[0], np.int64), np.zeros(count, np.int64)
    rest = [("s", *(np.array([n], np.int64) for n in (length, 0, length, 0)), 1) for length in shape[1:]]
    return [("s", first, zeros, first, np.arange(count, dtype=np.int64) * shape[0], 1), *rest]
