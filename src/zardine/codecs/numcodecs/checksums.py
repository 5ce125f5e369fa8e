"""``bytes -> bytes`` codecs of numcodecs that add a checksum of four bytes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.base import SizeLimit
from zardine.codecs.numcodecs.compressors import NumcodecsBytes
from zardine.errors import ChecksumError, ChunkDecodeError
from zardine.public_names import public

_SIZE = 4


class NumcodecsChecksum(NumcodecsBytes):
    """The bytes with a checksum before or after them."""

    pads: ClassVar[bool] = False

    def encoded_size(self, nbytes: int) -> int | None:
        """Four bytes more."""
        return nbytes + _SIZE

    def encoded_limit(self, nbytes: int) -> int:
        """Four bytes more."""
        return nbytes + _SIZE

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """The bytes without the checksum, which has to match."""
        if len(data) < _SIZE:
            raise ChunkDecodeError(f"{len(data)} bytes are too few for a checksum", codec=self.name)
        limit.enforce(len(data) - _SIZE, self.name)
        try:
            decoded = self.codec.decode(np.frombuffer(data, np.uint8))
        except (RuntimeError, ValueError, LookupError, TypeError) as error:
            raise ChecksumError(f"the checksum does not match: {error}", codec=self.name) from None
        if isinstance(decoded, (bytes, bytearray)):
            return decoded
        return np.ascontiguousarray(decoded).view(np.uint8).data


@public("zardine.codecs")
class CRC32(NumcodecsChecksum):
    """CRC-32. Options: ``location``, "start" or "end"."""

    name: ClassVar[str] = "numcodecs.crc32"


@public("zardine.codecs")
class CRC32C(NumcodecsChecksum):
    """CRC-32C. Options: ``location``, "start" or "end"."""

    name: ClassVar[str] = "numcodecs.crc32c"


@public("zardine.codecs")
class Adler32(NumcodecsChecksum):
    """Adler-32. Options: ``location``, "start" or "end"."""

    name: ClassVar[str] = "numcodecs.adler32"


@public("zardine.codecs")
class Fletcher32(NumcodecsChecksum):
    """Fletcher-32, as in HDF5."""

    name: ClassVar[str] = "numcodecs.fletcher32"


@public("zardine.codecs")
class JenkinsLookup3(NumcodecsChecksum):
    """Bob Jenkins' lookup3. Options: ``initval``."""

    name: ClassVar[str] = "numcodecs.jenkins_lookup3"
