"""Bounded decompression with the decompressor objects of the standard library (``zlib``, ``bz2``, ``lzma``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit
from zardine.errors import ChecksumError, ChunkDecodeError

_STEP = 4096
"""Bytes that later streams are fed with at a time."""
_PIECE = 2**24
"""Bytes at a time where the limit is a setting, as a rule far above what there is: an end is reached step by step."""


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
                for piece in _pieces(stream, block, limit, total):
                    pieces.append(piece)
                    total += len(piece)
                    if total > limit.nbytes:
                        limit.enforce(total, codec, at_least=True)
            except errors as error:
                kind = ChecksumError if "data check" in str(error) else ChunkDecodeError
                raise kind(f"not valid compressed data: {error}", codec=codec) from None
            position += len(block) - len(stream.unused_data)
            step *= 2
    limit.enforce(total, codec)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _pieces(stream: Any, block: BytesLike, limit: SizeLimit, total: int) -> Iterator[bytes]:
    """What a decompressor makes of ``block``, up to a byte more than ``limit`` allows after ``total`` bytes."""
    if limit.exact:
        yield stream.decompress(block, limit.nbytes - total + 1)
        return
    while True:
        most = min(_PIECE, limit.nbytes - total + 1)
        piece: bytes = stream.decompress(block, most)
        yield piece
        total += len(piece)
        if stream.eof:
            return
        tail = getattr(stream, "unconsumed_tail", None)  # zlib; the others keep what they did not use themselves
        if stream.needs_input if tail is None else not tail and len(piece) < most:
            return
        block = tail or b""
