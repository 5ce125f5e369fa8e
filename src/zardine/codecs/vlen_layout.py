"""The layout that ``vlen-utf8`` and ``vlen-bytes`` share: a count, then the length and the bytes of each element.

All numbers are unsigned 32-bit little endian. Specification: zarr-extensions "codecs/vlen-utf8", "codecs/vlen-bytes".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain

import numpy as np

from zardine.buffers import BytesLike
from zardine.errors import ChunkDecodeError, EncodeError

_WORD = 4
_MOST = 2**32 - 1
_unpack = struct.Struct("<I").unpack_from


def join_elements(elements: Sequence[bytes], *, codec: str) -> bytes:
    """The stored form of ``elements``; raises :class:`EncodeError` where a number does not fit in 32 bits."""
    lengths = np.fromiter(map(len, elements), np.int64, len(elements))
    if len(elements) > _MOST or lengths.max(initial=0) > _MOST:
        raise EncodeError(f"more than {_MOST} elements, or bytes in one element", codec=codec)
    headers = lengths.astype("<u4").tobytes()
    prefixes = (headers[at : at + _WORD] for at in range(0, len(headers), _WORD))
    return len(elements).to_bytes(_WORD, "little") + b"".join(chain.from_iterable(zip(prefixes, elements, strict=True)))


def split_elements(data: BytesLike, count: int, *, codec: str) -> list[bytes]:
    """The ``count`` elements that ``data`` hold; raises :class:`ChunkDecodeError` unless they fill it exactly."""
    stored = bytes(data)
    size = len(stored)
    if size < _WORD:
        raise ChunkDecodeError(f"{size} bytes are too few for the number of elements", codec=codec)
    if (found := _unpack(stored)[0]) != count:
        raise ChunkDecodeError(f"{found} elements, expected {count}", codec=codec)
    if size < _WORD * (1 + count):
        raise ChunkDecodeError(f"{size} bytes are too few for {count} elements", codec=codec)
    elements = []
    position = _WORD
    for index in range(count):
        start = position + _WORD
        if start > size:
            raise ChunkDecodeError(f"the data end before the length of element {index}", codec=codec)
        position = start + _unpack(stored, position)[0]
        if position > size:
            raise ChunkDecodeError(f"element {index} goes {position - size} bytes past the end", codec=codec)
        elements.append(stored[start:position])
    if position != size:
        raise ChunkDecodeError(f"{size - position} bytes follow the last element", codec=codec)
    return elements
