"""``zstd``: Zstandard compression.

Specification: zarr-extensions "codecs/zstd"; RFC 8878.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import local
from typing import Any, ClassVar

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec, SizeLimit
from zardine.codecs.bounds import compressed_limit
from zardine.codecs.configured import Check, Configured, flag, integer
from zardine.codecs.zstd_frames import FrameError, zstd_frames
from zardine.errors import ChecksumError, ChunkDecodeError, EncodeError
from zardine.public_names import public

_of_thread = local()
_LARGEST_KEPT = 9
"""The highest level whose compressor is kept: those of higher ones take much memory."""


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class ZstdCodec(Configured, BytesBytesCodec):
    """One frame with its content size; ``level`` from -131072 (fastest) to 22, where 0 stands for 3."""

    level: int = 0
    checksum: bool = False

    name: ClassVar[str] = "zstd"
    MEMBERS: ClassVar[Mapping[str, Check]] = {"level": integer(-131072, 22), "checksum": flag()}
    REQUIRED = ("level",)

    def encoded_size(self, nbytes: int) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, nbytes: int) -> int:
        """See :func:`~zardine.codecs.bounds.compressed_limit`."""
        return compressed_limit(nbytes)

    def encode(self, data: BytesLike) -> BytesLike:
        """One frame."""
        import zstandard

        try:
            return _compressor(self.level, self.checksum).compress(data)  # type: ignore[no-any-return]
        except zstandard.ZstdError as error:
            raise EncodeError(f"Zstandard failed: {error}", codec=self.name) from None

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """All frames joined. Sizes are checked before memory is allocated, checksums are verified where stored."""
        return decompress_zstd(data, limit, codec=self.name)


def decompress_zstd(data: BytesLike, limit: SizeLimit, *, codec: str) -> bytes:
    """Decompress the Zstandard frames that fill ``data``, giving no more than ``limit.nbytes`` bytes."""
    import zstandard

    view = memoryview(data)
    pieces: list[bytes] = []
    total = 0
    try:
        for frame in zstd_frames(view):
            room = limit.nbytes - total
            if frame.nbytes is not None and frame.nbytes > room:
                if limit.settings:
                    limit.enforce(total + frame.nbytes, codec)
                raise ChunkDecodeError(
                    f"more than {limit.nbytes} bytes when decompressed: a frame claims {frame.nbytes}", codec=codec
                )
            piece = _decompress(
                _decompressor(), view[frame.start : frame.stop], frame.nbytes, min(room + 1, frame.most)
            )
            if frame.nbytes is not None and len(piece) != frame.nbytes:
                raise ChunkDecodeError(f"a frame claims {frame.nbytes} bytes and gives {len(piece)}", codec=codec)
            total += len(piece)
            if total > limit.nbytes:
                limit.enforce(total, codec, at_least=True)
            pieces.append(piece)
    except FrameError as error:
        raise ChunkDecodeError(f"not valid Zstandard data: {error}", codec=codec) from None
    except zstandard.ZstdError as error:
        kind = ChecksumError if "checksum" in str(error) else ChunkDecodeError
        raise kind(f"not valid Zstandard data: {error}", codec=codec) from None
    limit.enforce(total, codec)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compressor(level: int, checksum: bool) -> Any:
    """A compressor for this thread alone. The last one is kept, unless its level makes it large."""
    kept = getattr(_of_thread, "compressor", None)
    if kept is not None and kept[:2] == (level, checksum):
        return kept[2]
    import zstandard

    compressor = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=True)
    if level <= _LARGEST_KEPT:
        _of_thread.compressor = (level, checksum, compressor)
    return compressor


def _decompressor() -> Any:
    """This thread's decompressor: its memory is small and the same for all data, and making it takes a while."""
    try:
        return _of_thread.decompressor
    except AttributeError:
        import zstandard

        _of_thread.decompressor = zstandard.ZstdDecompressor()
        return _of_thread.decompressor


def _decompress(decompressor: Any, frame: memoryview, nbytes: int | None, most: int) -> bytes:
    if nbytes is not None and nbytes > 0:
        piece: bytes = decompressor.decompress(frame)
        return piece
    # zstandard takes a size of 0 for "nothing to do", for content and for output: go through the stream
    with decompressor.stream_reader(frame) as reader:
        return reader.read(most + 1)  # type: ignore[no-any-return]
