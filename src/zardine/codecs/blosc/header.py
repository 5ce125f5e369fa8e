"""The header of a blosc buffer, and what has to hold before c-blosc may see the buffer."""

from __future__ import annotations

import struct

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit

OVERHEAD = 16
"""Bytes of the header."""

MAX_INPUT = 2**31 - 1 - OVERHEAD
"""The most bytes that one buffer can hold."""

_FORMAT = 2
_MEMCPYED = 0x02
_LARGEST_RATIO = 2**16
"""More than any compressor of blosc can save: zstd needs 4 bytes for 128 KiB."""


def blosc_fault(data: BytesLike, limit: SizeLimit) -> str | None:
    """Why ``data`` cannot be one blosc buffer that gives the bytes of ``limit``, or ``None``."""
    if len(data) < OVERHEAD:
        return f"{len(data)} bytes are too few for a blosc header"
    version, _, flags, typesize, nbytes, blocksize, cbytes = struct.unpack_from("<BBBBIII", data)
    if version != _FORMAT:
        return f"blosc format version {version}, expected {_FORMAT}"
    if cbytes != len(data):
        return f"the blosc header says {cbytes} bytes, {len(data)} are stored"
    if reason := limit.check(nbytes):
        return reason
    if nbytes > MAX_INPUT:
        return f"{nbytes} bytes are more than blosc can hold"
    if nbytes == 0:
        return None
    if nbytes > _LARGEST_RATIO * cbytes:
        return f"the blosc header says {nbytes} bytes, which cannot come out of {cbytes}"
    if typesize == 0:
        return "the blosc header says elements of 0 bytes"
    if not 0 < blocksize <= nbytes:
        return f"the blosc header says blocks of {blocksize} bytes in {nbytes}"
    if flags & _MEMCPYED:
        if cbytes != nbytes + OVERHEAD:
            return f"the blosc header says {nbytes} stored bytes, {cbytes - OVERHEAD} follow"
        return None
    blocks = -(-nbytes // blocksize)
    table = OVERHEAD + 4 * blocks
    if table > len(data):
        return f"the blosc buffer is too short for the table of its {blocks} blocks"
    return None


def blosc_nbytes(data: BytesLike) -> int:
    """How many bytes the header says that ``data`` hold when decompressed."""
    return int.from_bytes(data[4:8], "little")
