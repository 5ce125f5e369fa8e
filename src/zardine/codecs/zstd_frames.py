"""Where the frames of Zstandard data lie and how much each may give, before anything is decompressed (RFC 8878, 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zardine.buffers import BytesLike

_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK = 128 * 1024  # no block holds more than this when decompressed
_RAW, _RLE, _RESERVED = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes ``start`` to ``stop`` (exclusive) are one frame; ``nbytes`` as its header says, ``None``: it does not say.

    ``most`` is how many bytes its blocks can give.
    """

    start: int
    stop: int
    nbytes: int | None
    most: int


class FrameError(ValueError):
    """The data are not a sequence of complete Zstandard frames."""


def zstd_frames(data: BytesLike) -> Iterator[Frame]:
    """The frames that make up ``data`` in order, without the skippable ones. Raises :class:`FrameError`."""
    view = memoryview(data)
    position = 0
    if not view:
        raise FrameError("no data")
    while position < len(view):
        magic = bytes(view[position : position + 4])
        if magic == _MAGIC:
            frame = _frame(view, position)
            position = frame.stop
            yield frame
        elif len(magic) == 4 and magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:
            position += 8 + _integer(view, position + 4, 4)
            if position > len(view):
                raise FrameError("a skippable frame ends too early")
        else:
            raise FrameError(f"no Zstandard frame at byte {position}")


def _frame(view: memoryview, start: int) -> Frame:
    descriptor = _integer(view, start + 4, 1)
    if descriptor & 8:
        raise FrameError("a reserved bit is set in a frame header")
    single_segment = bool(descriptor & 0x20)
    position = start + 5 + (not single_segment)
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    if dictionary_bytes and _integer(view, position, dictionary_bytes):
        raise FrameError("a frame needs a dictionary")
    position += dictionary_bytes
    size_bytes = (int(single_segment), 2, 4, 8)[descriptor >> 6]
    nbytes = None
    if size_bytes:
        nbytes = _integer(view, position, size_bytes) + (256 if size_bytes == 2 else 0)
    position += size_bytes
    most = 0
    last = False
    while not last:
        header = _integer(view, position, 3)
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == _RESERVED:
            raise FrameError("a block of a reserved kind")
        position += 3 + (1 if kind == _RLE else size)
        most += size if kind in (_RAW, _RLE) else _BLOCK
    stop = position + (4 if descriptor & 4 else 0)
    if stop > len(view):
        raise FrameError("a frame ends too early")
    if nbytes is not None and nbytes > most:
        raise FrameError(f"a frame claims {nbytes} bytes, its blocks cannot give more than {most}")
    return Frame(start, stop, nbytes, most)


def _integer(view: memoryview, position: int, nbytes: int) -> int:
    field = view[position : position + nbytes]
    if len(field) < nbytes:
        raise FrameError("a frame ends too early")
    return int.from_bytes(field, "little")
