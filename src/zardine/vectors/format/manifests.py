"""Object manifests: for each object the chunks and fragments that it is made of, in order. Bytes to arrays and back.

::

    u32 blocks, then for each: K x i64 chunk, u8 mode, and
      mode 0: i64 fragment      mode 1: i64 first, i64 count      mode 2: u32 n, n x i64 fragment
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import ChunkDecodeError
from zardine.kernel import KERNEL
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.format.ragged import starts_of

_MOST_REFERENCES = 2**28

_MANY = 256
"""References that are worth a call of the kernel."""


def encode_manifests(starts: Ints, chunks: Ints, fragments: Ints) -> list[bytes]:
    """A blob for each object: object ``o`` is references ``starts[o]`` to ``starts[o + 1]``."""
    return list(manifest_pieces(starts, chunks, fragments))


def manifest_pieces(starts: Ints, chunks: Ints, fragments: Ints) -> Pieces:
    """:func:`encode_manifests`, one after the other."""
    size = block_size(chunks.shape[1])
    if KERNEL is not None and len(fragments) >= _MANY:
        arguments = (np.ascontiguousarray(each, np.int64) for each in (starts, chunks, fragments))
        return framed_manifests(KERNEL.encode_manifests(*arguments, chunks.shape[1]), starts, chunks.shape[1])
    blocks = np.zeros(len(fragments), _block(chunks.shape[1]))
    blocks["chunk"], blocks["fragment"] = chunks, fragments
    data, edges = blocks.tobytes(), starts.tolist()
    return Pieces.of([(b - a).to_bytes(4, "little") + data[a * size : b * size] for a, b in pairwise(edges)])


def framed_manifests(data: BytesLike, starts: Ints, rank: int) -> Pieces:
    """:func:`manifest_pieces`, which lie in ``data`` already, each behind its length."""
    lengths = np.diff(starts) * block_size(rank) + 4
    return Pieces(data, starts_of(lengths + 4)[:-1] + 4, lengths, framed=True)


def decode_manifests(blobs: Sequence[bytes], rank: int) -> tuple[Ints, Ints, Ints]:
    """Starts, chunks ``(B, rank)`` and fragments ``(B,)`` of all objects; an empty blob is an object without any.

    Raises :class:`~zardine.errors.ChunkDecodeError` for damaged bytes.
    """
    plain = _decode_plain(blobs, _block(rank))
    if plain is not None:
        return plain
    found: list[tuple[tuple[int, ...], int]] = []
    lengths = []
    for number, blob in enumerate(blobs):
        before = len(found)
        try:
            _decode_one(blob, rank, found)
        except struct.error:
            raise ChunkDecodeError(f"the manifest of object row {number} ends too early") from None
        except ChunkDecodeError as error:
            raise ChunkDecodeError(f"the manifest of object row {number}: {error.reason}") from None
        lengths.append(len(found) - before)
    chunks = np.array([chunk for chunk, _ in found], np.int64).reshape(len(found), rank)
    return starts_of(lengths), chunks, np.array([fragment for _, fragment in found], np.int64)


def _decode_plain(blobs: Sequence[bytes], block: np.dtype[np.void]) -> tuple[Ints, Ints, Ints] | None:
    """All objects at once, where every block is of mode 0; ``None`` where not."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    filled = lengths > 0
    if (lengths[filled] < 4).any():
        return None
    data = np.frombuffer(b"".join(blobs), np.uint8)
    heads = starts_of(lengths)[:-1][filled][:, None] + np.arange(4)
    counts = np.zeros(len(blobs), np.int64)
    counts[filled] = data[heads].view("<u4")[:, 0]
    if (lengths[filled] != 4 + counts[filled] * block.itemsize).any():
        return None
    in_blocks = np.ones(len(data), np.bool_)
    in_blocks[heads] = False
    table = np.frombuffer(data[in_blocks].tobytes(), block)
    if table["mode"].any():
        return None
    return starts_of(counts), table["chunk"].astype(np.int64), table["fragment"].astype(np.int64)


def block_size(rank: int) -> int:
    """Return how many bytes a block of one fragment has, as all have that are written."""
    return _block(rank).itemsize


def _block(rank: int) -> np.dtype[np.void]:
    return np.dtype([("chunk", "<i8", (rank,)), ("mode", "u1"), ("fragment", "<i8")])


def _decode_one(blob: bytes, rank: int, found: list[tuple[tuple[int, ...], int]]) -> None:
    if not blob:
        return
    head = struct.Struct(f"<{rank}qB")
    (count,) = struct.unpack_from("<I", blob)
    at = 4
    for _ in range(count):
        *chunk, mode = head.unpack_from(blob, at)
        at += head.size
        numbers: npt.ArrayLike
        if mode == 0:
            numbers = struct.unpack_from("<q", blob, at)
            at += 8
        elif mode == 1:
            first, length = struct.unpack_from("<qq", blob, at)
            at += 16
            if length < 0 or length > _MOST_REFERENCES:
                raise ChunkDecodeError(f"a range of {length} fragments")
            numbers = range(first, first + length)
        elif mode == 2:
            (length,) = struct.unpack_from("<I", blob, at)
            numbers = struct.unpack_from(f"<{length}q", blob, at + 4) if 8 * length <= len(blob) else ()
            if len(numbers) != length:
                raise ChunkDecodeError(f"a list of {length} fragments in {len(blob)} bytes")
            at += 4 + 8 * length
        else:
            raise ChunkDecodeError(f"unknown mode {mode}")
        found.extend((tuple(chunk), int(number)) for number in numbers)
        if len(found) > _MOST_REFERENCES:
            raise ChunkDecodeError(f"more than {_MOST_REFERENCES} references to fragments")
    if at != len(blob):
        raise ChunkDecodeError(f"{len(blob) - at} bytes follow the last block")
