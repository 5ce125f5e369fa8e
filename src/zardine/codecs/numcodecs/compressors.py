"""``bytes -> bytes`` codecs of numcodecs that compress, or prepare for that.

numcodecs encodes. What comes back from storage is decoded by bounded decoders: many of those of numcodecs allocate
whatever a header claims.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from abc import abstractmethod
from typing import Any, ClassVar, Final, Self

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec, ChunkSpec, SizeLimit
from zardine.codecs.blosc.codec import decompress_blosc, use_one_thread
from zardine.codecs.bounds import compressed_limit
from zardine.codecs.numcodecs.adapter import NumcodecsCodec
from zardine.codecs.streams import decompress_streams
from zardine.codecs.zstd import decompress_zstd
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.public_names import public

_REFUSED: Final = (TypeError, ValueError, OverflowError, AttributeError, KeyError, lzma.LZMAError, MemoryError)
_CONTAINERS: Final = (lzma.FORMAT_AUTO, lzma.FORMAT_XZ, lzma.FORMAT_ALONE, lzma.FORMAT_RAW)
_LZMA_MEMORY = 256 * 2**20  # the strongest preset needs 65 MiB; a header may ask for 4 GiB


class NumcodecsBytes(NumcodecsCodec, BytesBytesCodec):
    """A codec of numcodecs from bytes to bytes."""

    def encoded_size(self, nbytes: int) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, nbytes: int) -> int:
        """See :func:`~zardine.codecs.bounds.compressed_limit`."""
        return compressed_limit(nbytes)

    def encode(self, data: BytesLike) -> BytesLike:
        """What numcodecs makes of ``data``."""
        try:
            encoded = self.codec.encode(data)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise EncodeError(f"numcodecs failed: {error}", codec=self.name) from None
        return encoded if isinstance(encoded, bytes) else np.ascontiguousarray(encoded).view(np.uint8).tobytes()

    @abstractmethod
    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """Decode within ``limit``."""


@public("zardine.codecs")
class BZ2(NumcodecsBytes):
    """bzip2. Options: ``level``."""

    name: ClassVar[str] = "numcodecs.bz2"

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """All streams joined."""
        return decompress_streams(data, limit, bz2.BZ2Decompressor, (OSError, ValueError), codec=self.name)


@public("zardine.codecs")
class LZMA(NumcodecsBytes):
    """LZMA. Options: ``format``, ``check``, ``preset``, ``filters``, as in the standard library."""

    name: ClassVar[str] = "numcodecs.lzma"

    def __init__(self, **options: Any) -> None:
        container = options.get("format")
        if container is not None and (isinstance(container, bool) or container not in _CONTAINERS):
            raise ValueError(f"{self.name}: format is one of {_CONTAINERS}, not {container!r}")
        super().__init__(**options)

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """All streams joined."""
        container = self.codec.format
        raw = container == lzma.FORMAT_RAW

        def start() -> lzma.LZMADecompressor:
            filters = self.codec.filters if raw else None
            try:
                for each in filters or ():  # no limit of memory is taken for these
                    if each.get("dict_size", 0) > _LZMA_MEMORY:
                        raise ChunkDecodeError(f"a dictionary of {each['dict_size']} bytes", codec=self.name)
                return lzma.LZMADecompressor(container, memlimit=None if raw else _LZMA_MEMORY, filters=filters)
            except _REFUSED as error:
                raise ChunkDecodeError(f"its options cannot be used: {error}", codec=self.name) from None

        return decompress_streams(data, limit, start, (lzma.LZMAError, ValueError), codec=self.name)


@public("zardine.codecs")
class Zlib(NumcodecsBytes):
    """Deflate with the zlib container. Options: ``level``."""

    name: ClassVar[str] = "numcodecs.zlib"

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """One stream."""
        return decompress_streams(data, limit, zlib.decompressobj, (zlib.error,), codec=self.name, several=False)


@public("zardine.codecs")
class GZip(NumcodecsBytes):
    """Deflate with the gzip container. Options: ``level``."""

    name: ClassVar[str] = "numcodecs.gzip"

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """As codec ``gzip`` does."""
        return decompress_streams(data, limit, lambda: zlib.decompressobj(31), (zlib.error,), codec=self.name)


@public("zardine.codecs")
class Zstd(NumcodecsBytes):
    """Zstandard. Options: ``level``, ``checksum``."""

    name: ClassVar[str] = "numcodecs.zstd"

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """As codec ``zstd`` does."""
        return decompress_zstd(data, limit, codec=self.name)


@public("zardine.codecs")
class Blosc(NumcodecsBytes):
    """Blosc. Options: ``cname``, ``clevel``, ``shuffle`` as a number, ``blocksize``, ``typesize``."""

    name: ClassVar[str] = "numcodecs.blosc"
    pads: ClassVar[bool] = False

    def encode(self, data: BytesLike) -> BytesLike:
        """One blosc buffer."""
        use_one_thread()
        return super().encode(data)

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """As codec ``blosc`` does."""
        return decompress_blosc(data, limit, codec=self.name)


@public("zardine.codecs")
class LZ4(NumcodecsBytes):
    """An LZ4 block after its decompressed size in four bytes. Options: ``acceleration``."""

    name: ClassVar[str] = "numcodecs.lz4"

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """The block; the size is checked before memory is allocated."""
        if len(data) < 5:
            raise ChunkDecodeError(f"{len(data)} bytes are too few for an LZ4 block", codec=self.name)
        claimed = int.from_bytes(data[:4], "little")
        limit.enforce(claimed, self.name)
        if claimed == 0:
            if bytes(data[4:]) != b"\0":
                raise ChunkDecodeError("an LZ4 block of 0 bytes is not empty", codec=self.name)
            return b""
        if claimed >= 2**31:
            raise ChunkDecodeError(f"{claimed} bytes are more than an LZ4 block can hold", codec=self.name)
        try:
            decoded: bytes = self.codec.decode(data)
        except (RuntimeError, ValueError) as error:
            raise ChunkDecodeError(f"not valid LZ4 data: {error}", codec=self.name) from None
        return decoded


@public("zardine.codecs")
class Shuffle(NumcodecsBytes):
    """Byte ``i`` of all elements, for each ``i``. Options: ``elementsize``, by default that of the data type."""

    name: ClassVar[str] = "numcodecs.shuffle"
    pads: ClassVar[bool] = False

    def resolve(self, spec: ChunkSpec) -> Self:
        """Record the size of an element."""
        if self.options.get("elementsize") is not None:
            return self
        return self.with_options(elementsize=spec.data_type.item_size or 1)

    def is_complete(self) -> bool:
        """Whether the size of an element is known."""
        return self.options.get("elementsize") is not None

    def encoded_size(self, nbytes: int) -> int | None:
        """Stays."""
        return nbytes

    def encoded_limit(self, nbytes: int) -> int:
        """Stays."""
        return nbytes

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """The elements put together again."""
        limit.enforce(len(data), self.name)
        try:
            return np.ascontiguousarray(self.codec.decode(data)).view(np.uint8).data
        except (RuntimeError, ValueError, TypeError) as error:
            raise ChunkDecodeError(f"cannot be unshuffled: {error}", codec=self.name) from None
