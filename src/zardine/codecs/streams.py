"""Bounded decompression with the decompressor objects of the standard library (``zlib``, ``bz2``, ``lzma``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit
from zardine.errors import ChecksumError, ChunkDecodeError

_STEP = 4096


def decompress_streams(
    data: BytesLike,
    limit: SizeLimit,
    start: Callable[[], Any],
    errors: tuple[type[Exception], ...],
    *,
    codec: str,
    several: bool = True,
) -> bytes:
    """Decompress the streams that fill ``data`` (one, unless ``several``), giving no more than ``limit`` allows.

    ``start`` makes the decompressor of a stream, ``errors`` are what that raises for bad data. Later streams are fed
    in small steps, since a decompressor hands back a copy of all that it did not use: many empty streams would
    otherwise take quadratic time.
    """
    view = memoryview(data)
    pieces: list[bytes] = []
    total = position = 0
    while position < len(view) or not pieces:
        if pieces and not several:
            raise ChunkDecodeError(f"{len(view) - position} bytes follow the compressed data", codec=codec)
        stream = start()
        step = len(view) if position == 0 else _STEP
        while not stream.eof:
            block = view[position : position + step]
            if not block:
                raise ChunkDecodeError("the compressed data end too early", codec=codec)
            try:
                piece = stream.decompress(block, limit.nbytes - total + 1)
            except errors as error:
                kind = ChecksumError if "data check" in str(error) else ChunkDecodeError
                raise kind(f"not valid compressed data: {error}", codec=codec) from None
            pieces.append(piece)
            total += len(piece)
            if total > limit.nbytes:
                raise ChunkDecodeError(f"more than {limit.nbytes} bytes when decompressed", codec=codec)
            position += len(block) - len(stream.unused_data)
            step *= 2
    if reason := limit.check(total):
        raise ChunkDecodeError(reason, codec=codec)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
