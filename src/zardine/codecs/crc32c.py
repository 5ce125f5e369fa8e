"""``crc32c``: the bytes, then their CRC32C checksum in four bytes, little endian.

Specification: "CRC32C checksum codec", version 1.0; RFC 3720, appendix B.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec, SizeLimit
from zardine.codecs.configured import Configured
from zardine.errors import ChecksumError, ChunkDecodeError
from zardine.public_names import public

_SIZE = 4


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class Crc32cCodec(Configured, BytesBytesCodec):
    """Appends a checksum when encoding; verifies and removes it when decoding."""

    name: ClassVar[str] = "crc32c"
    pads: ClassVar[bool] = False

    def encoded_size(self, nbytes: int) -> int | None:
        """Four bytes more."""
        return nbytes + _SIZE

    def encoded_limit(self, nbytes: int) -> int:
        """Four bytes more."""
        return nbytes + _SIZE

    def encode(self, data: BytesLike) -> BytesLike:
        """``data`` and its checksum, in new memory."""
        return b"".join((data, crc32c(data).to_bytes(_SIZE, "little")))

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """A view of ``data`` without the checksum; raises :class:`ChecksumError` where it does not match."""
        if len(data) < _SIZE:
            raise ChunkDecodeError(f"{len(data)} bytes are too few for a checksum", codec=self.name)
        body = memoryview(data)[:-_SIZE]
        limit.enforce(len(body), self.name)
        stored = int.from_bytes(data[-_SIZE:], "little")
        computed = crc32c(body)
        if stored != computed:
            raise ChecksumError(f"stored checksum {stored:08x}, computed {computed:08x}", codec=self.name)
        return body


def crc32c(data: BytesLike, before: int = 0) -> int:
    """The CRC32C checksum of ``data`` behind what has the checksum ``before``, without copying it."""
    import google_crc32c

    # the library wants objects that need no release: bytes, or an array (which borrows memory of any kind)
    if not isinstance(data, bytes):
        return int(google_crc32c.extend(before, np.frombuffer(data, np.uint8))) if len(data) else before
    return int(google_crc32c.extend(before, data))
