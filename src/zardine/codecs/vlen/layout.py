"""The layout that ``vlen-utf8`` and ``vlen-bytes`` share: a count, then the length and the bytes of each element.

All numbers are unsigned 32-bit little endian. Specification: zarr-extensions "codecs/vlen-utf8", "codecs/vlen-bytes".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.base import ChunkSpec
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.kernel import KERNEL

AT_ONCE = 65536
"""Elements that are Python objects at a time."""

_WORD = 4
_MOST = 2**32 - 1
_unpack = struct.Struct("<I").unpack_from


def join_elements(batches: Iterable[list[bytes]], count: int, *, codec: str) -> bytes:
    """The stored form of ``count`` elements; raises :class:`EncodeError` where a number does not fit in 32 bits.

    They come some at a time (:data:`AT_ONCE`), since small Python objects take many times their bytes.
    """
    if count > _MOST:
        raise EncodeError(f"more than {_MOST} elements", codec=codec)
    pieces = [count.to_bytes(_WORD, "little")]
    for batch in batches:
        joined = None if KERNEL is None else KERNEL.join_elements(batch)
        if joined is not None:
            pieces.append(joined)
            continue
        lengths = np.fromiter(map(len, batch), np.int64, len(batch))
        if lengths.max(initial=0) > _MOST:
            raise EncodeError(f"more than {_MOST} bytes in one element", codec=codec)
        headers = lengths.astype("<u4").tobytes()
        filled = int(np.max(np.flatnonzero(lengths), initial=-1)) + 1
        prefixes = (headers[at : at + _WORD] for at in range(0, _WORD * filled, _WORD))
        pieces.append(b"".join(chain.from_iterable(zip(prefixes, batch[:filled], strict=True))))
        pieces.append(bytes(_WORD * (len(batch) - filled)))
    return b"".join(pieces)


def split_elements(data: BytesLike, spec: ChunkSpec, *, codec: str) -> Iterator[bytes]:
    """The elements of a chunk that ``data`` hold, one after the other.

    The number of them is compared with that of ``spec`` at once, and the memory that they need with what the settings
    allow. Raises :class:`ChunkDecodeError` unless they fill ``data`` exactly, which is known after the last.
    """
    count, size = spec.size, len(data)
    if size < _WORD:
        raise ChunkDecodeError(f"{size} bytes are too few for the number of elements", codec=codec)
    if (found := _unpack(data)[0]) != count:
        raise ChunkDecodeError(f"{found} elements, expected {count}", codec=codec)
    if size < _WORD * (1 + count):
        raise ChunkDecodeError(f"{size} bytes are too few for {count} elements", codec=codec)
    spec.check_memory()
    return _elements(bytes(data), count, codec)


def split_at_once(data: BytesLike, spec: ChunkSpec) -> list[bytes] | None:
    """The same by one call of the kernel; ``None`` where they are too many for that, or anything is wrong."""
    count = spec.size
    if KERNEL is None or count > AT_ONCE or len(data) < _WORD or _unpack(data)[0] != count:
        return None
    if len(data) < _WORD * (1 + count):
        return None
    spec.check_memory()
    found = KERNEL.split_elements(bytes(data), _WORD, count)
    return found[0] if found is not None and found[1] == len(data) else None


def replace_elements(data: BytesLike, count: int, start: int, elements: list[bytes]) -> bytes | None:
    """The stored form of ``count`` elements, with these in the place of those from number ``start`` on.

    Elements that stay are not looked at for more than their lengths. ``None`` where there is no kernel, or ``data``
    hold anything else, of which :func:`split_elements` says what it is.
    """
    if KERNEL is None or len(data) < _WORD or _unpack(data)[0] != count or not elements:
        return None
    replaced: bytes | None = KERNEL.replace_elements(bytes(data), _WORD, count, start, elements)
    return replaced


def _elements(stored: bytes, count: int, codec: str) -> Iterator[bytes]:
    size = len(stored)
    position = _WORD
    done = 0
    while KERNEL is not None and done < count:
        batch = KERNEL.split_elements(stored, position, min(AT_ONCE, count - done))
        if batch is None:
            break  # what is wrong is told below
        yield from batch[0]
        position = batch[1]
        done += len(batch[0])
    zeros = max(len(stored.rstrip(b"\0")), _WORD) if done < count else 0
    for index in range(done, count):
        if position >= zeros and size - position == _WORD * (count - index):
            yield from repeat(b"", count - index)  # a table that grows has room for many
            return
        start = position + _WORD
        if start > size:
            raise ChunkDecodeError(f"the data end before the length of element {index}", codec=codec)
        position = start + _unpack(stored, position)[0]
        if position > size:
            raise ChunkDecodeError(f"element {index} goes {position - size} bytes past the end", codec=codec)
        yield stored[start:position]
    if position != size:
        raise ChunkDecodeError(f"{size - position} bytes follow the last element", codec=codec)
