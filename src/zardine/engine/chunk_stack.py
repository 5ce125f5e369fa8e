"""Whole chunks of one shape that the kernel decodes in one call: as a stack, one below the other in an array."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.engine.layout import ArrayLayout
from zardine.limits import CHUNK, limit_of
from zardine.settings import thread_count

_STACK_BYTES = 2**22
"""Decoded bytes that are looked at together."""
_SMALL = 2**14
"""Bytes of a chunk below which decoding it takes no longer than looking at its checksum from Python."""


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
        failed = pipeline.decode(list(sources), batch, stack_axes(len(batch), shape), out, 1)
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
    failed = layout.pipeline.decode(list(chunks), jobs, stack_axes(len(chunks), shape), raw, thread_count())
    return None if failed else stack


def stack_axes(count: int, shape: tuple[int, ...]) -> list[tuple[object, ...]]:
    """The axes in the form of the kernel: chunk after chunk along the first, all of the others."""
    first, zeros = np.full(count, shape[0], np.int64), np.zeros(count, np.int64)
    rest = [("s", *(np.array([n], np.int64) for n in (length, 0, length, 0)), 1) for length in shape[1:]]
    return [("s", first, zeros, first, np.arange(count, dtype=np.int64) * shape[0], 1), *rest]
