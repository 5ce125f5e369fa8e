"""Whole chunks of one shape, one below the other in an array, decoded and encoded in single calls of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.layout import ArrayLayout
from zardine.settings import thread_count


@dataclass(frozen=True, slots=True, eq=False)
class EncodedStack:
    """What encoding gave: see ``Pipeline.encode`` of the kernel."""

    data: bytearray
    offsets: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint64]
    failed: list[tuple[int, str]]


def decode_stack(layout: ArrayLayout, chunks: Sequence[BytesLike], shape: tuple[int, ...]) -> Any:
    """The decoded chunks as an array of shape ``(len(chunks) * shape[0], *shape[1:])``; ``None`` if one is damaged."""
    stack = np.empty((len(chunks) * shape[0], *shape[1:]), layout.metadata.dtype)
    jobs = np.zeros((len(chunks), 3 + len(shape)), np.int64)
    jobs[:, 0] = jobs[:, 3] = np.arange(len(chunks))
    jobs[:, 2] = [len(chunk) for chunk in chunks]
    raw = stack.view(f"V{stack.dtype.itemsize}")
    failed = layout.pipeline.decode(list(chunks), jobs, _axes(len(chunks), shape), raw, thread_count())
    return None if failed else stack


def encode_stack(
    layout: ArrayLayout,
    stack: npt.NDArray[Any],
    shape: tuple[int, ...],
    *,
    keep_fill: bool,
    head: int,
    tail: int,
    threads: int,
) -> EncodedStack:
    """Encode the chunks of ``stack``, between ``head`` and ``tail`` zero bytes."""
    count = len(stack) // shape[0]
    jobs = np.zeros((count, len(shape)), np.int64)
    jobs[:, 0] = np.arange(count)
    data, offsets, lengths, failed = layout.pipeline.encode(
        stack.view(f"V{stack.dtype.itemsize}"),
        jobs,
        _axes(count, shape),
        keep_fill=keep_fill,
        head=head,
        tail=tail,
        threads=threads,
    )
    return EncodedStack(data, np.frombuffer(offsets, np.uint64), np.frombuffer(lengths, np.uint64), failed)


def _axes(count: int, shape: tuple[int, ...]) -> list[tuple[object, ...]]:
    """The axes in the form of the kernel: chunk after chunk along the first, all of the others."""
    first, zeros = np.full(count, shape[0], np.int64), np.zeros(count, np.int64)
    rest = [("s", *(np.array([n], np.int64) for n in (length, 0, length, 0)), 1) for length in shape[1:]]
    return [("s", first, zeros, first, np.arange(count, dtype=np.int64) * shape[0], 1), *rest]
