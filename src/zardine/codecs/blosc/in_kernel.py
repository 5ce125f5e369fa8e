"""Blosc by the native kernel: without numcodecs, which takes long to import, and with snappy, which that lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from zardine.buffers import BytesLike
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.kernel import KERNEL

MISSING = 'snappy inside blosc needs the native kernel (numcodecs has no "snappy"), which is not in use'

_COMPRESSOR_CODE = 2


def is_snappy(data: BytesLike) -> bool:
    """Whether a blosc buffer with a valid header holds blocks compressed by snappy."""
    return data[2] >> 5 == _COMPRESSOR_CODE


def compress(data: BytesLike, cname: str, clevel: int, shuffle: int, typesize: int, blocksize: int) -> BytesLike | None:
    """A blosc buffer of ``data``; ``None`` without the kernel. Raises :class:`~zardine.errors.EncodeError`."""
    if KERNEL is None:
        return None
    pipeline = _pipeline(("blosc", cname, clevel, shuffle, typesize, blocksize))
    values = np.frombuffer(data, "V1")
    encoded, _, _, failed = pipeline.encode(
        values, np.zeros((1, 1), np.int64), [_whole(len(data))], write_empty=True, head=0, tail=0, threads=1
    )
    if failed:
        raise EncodeError(failed[0][1], codec="blosc")
    result: bytearray = encoded
    return result


def decompress(data: BytesLike, nbytes: int, *, codec: str) -> BytesLike | None:
    """The ``nbytes`` bytes in a blosc buffer; ``None`` without the kernel.

    Raises :class:`~zardine.errors.ChunkDecodeError`.
    """
    if KERNEL is None:
        return None
    out = np.empty(nbytes, np.uint8)
    jobs = np.array([[0, 0, len(data), 0]], np.int64)
    failed = _pipeline(("blosc", "zstd", 5, 0, 1, 0)).decode([data], jobs, [_whole(nbytes)], out.view("V1"), 1)
    if failed:
        raise ChunkDecodeError(f"not valid blosc data: {failed[0][1]}", codec=codec)
    return out.data


def _pipeline(step: tuple[object, ...]) -> Any:
    assert KERNEL is not None
    return KERNEL.Pipeline(item_size=1, word_size=1, swap=False, is_bool=False, order=(0,), steps=[step], fill=b"\0")


def _whole(count: int) -> tuple[object, ...]:
    """One axis, one chunk, all of it."""
    length, zero = np.array([count], np.int64), np.zeros(1, np.int64)
    return ("s", length, zero, length, zero, 1)
