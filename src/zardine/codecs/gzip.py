"""``gzip``: deflate compression in the gzip file format.

Specification: "Gzip codec", version 1.0; RFC 1951, RFC 1952.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec, SizeLimit
from zardine.codecs.bounds import compressed_limit
from zardine.codecs.configured import Check, Configured, integer
from zardine.codecs.streams import decompress_streams
from zardine.public_names import public

_GZIP = 31  # zlib's window bits: 15, plus 16 for the gzip container


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class GzipCodec(Configured, BytesBytesCodec):
    """Deflate with ``level`` from 0 (stored) to 9 (smallest). Equal data give equal bytes: no time is recorded."""

    level: int = 5

    name: ClassVar[str] = "gzip"
    MEMBERS: ClassVar[Mapping[str, Check]] = {"level": integer(0, 9)}
    REQUIRED = ("level",)

    def encoded_size(self, nbytes: int) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, nbytes: int) -> int:
        """See :func:`~zardine.codecs.bounds.compressed_limit`."""
        return compressed_limit(nbytes)

    def encode(self, data: BytesLike) -> BytesLike:
        """One gzip member."""
        return zlib.compress(data, level=self.level, wbits=_GZIP)

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """All members joined; length and CRC of each are verified, and nothing may follow the last."""
        return decompress_streams(data, limit, lambda: zlib.decompressobj(_GZIP), (zlib.error,), codec=self.name)
