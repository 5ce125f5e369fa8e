"""Temporary files for what is too large for memory: bytes, rows of a table, and rows in numbered buckets.

They have no names: whoever is killed leaves none behind. They lie where ``TMPDIR`` says. Where there is no room for
them a :class:`~zardine.errors.StoreError` says so.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import copyfileobj
from typing import Any, BinaryIO, overload

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import StoreError
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.format.ragged import rows_at, starts_of


class Spool:
    """A temporary file that bytes are put into, and taken out of by several threads."""

    def __init__(self) -> None:
        with _telling():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # it goes with this object
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()

    def put(self, data: BytesLike) -> int:
        """Put bytes at the end; gives where they are."""
        with self._lock, _telling():
            at = self._file.seek(0, 2)
            self._file.write(data)
            return at

    def take(self, at: int, length: int) -> bytes:
        """Return what was put at a place."""
        with self._lock, _telling():
            self._file.seek(at)
            return self._file.read(length)

    def mapped(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return what was put as an array that is in the file, to be read."""
        with self._lock, _telling():
            self._file.flush()
            return np.memmap(self._file, dtype, "r", shape=shape)

    def copy_to(self, file: BinaryIO) -> None:
        """Write all that was put, in its order, to another file."""
        with self._lock:
            with _telling():
                self._file.seek(0)
            copyfileobj(self._file, file)


class SpooledBlobs(Sequence[bytes]):
    """Pieces of bytes that are in a file."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._places, self._lengths = array("q"), array("q")

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return sum(self._lengths)

    @property
    def extents(self) -> tuple[Ints, Ints]:
        """Where each is in the file, and how many bytes it has."""
        return np.array(self._places, np.int64), np.array(self._lengths, np.int64)

    def take_bytes(self, at: int, length: int) -> bytes:
        """Return what is at a place of the file."""
        return self._spool.take(at, length)

    def pieces(self, start: int, stop: int) -> Pieces:
        """Return some of them, all in memory."""
        lengths = np.array(self._lengths[start:stop], np.int64)
        data = b"".join(self._runs(start, stop))
        return Pieces(data, starts_of(lengths)[:-1], lengths)

    def _runs(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield what lies together of some of them."""
        at = end = 0
        for place, length in zip(self._places[start:stop], self._lengths[start:stop], strict=True):
            if place != end:
                yield self._spool.take(at, end - at)
                at = place
            end = place + length
        yield self._spool.take(at, end - at)

    def extend(self, blobs: Sequence[BytesLike]) -> None:
        """Put more behind those that are there."""
        at = self._spool.put(b"".join(blobs))
        for blob in blobs:
            self._places.append(at)
            self._lengths.append(len(blob))
            at += len(blob)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            chosen = range(*index.indices(len(self)))
            places = [self._places[each] for each in chosen]
            ends = [self._places[each] + self._lengths[each] for each in chosen]
            if places[1:] != ends[:-1] or not places:
                return [self[each] for each in chosen]
            data, first = self._spool.take(places[0], ends[-1] - places[0]), places[0]
            return [data[a - first : b - first] for a, b in zip(places, ends, strict=True)]
        return self._spool.take(self._places[index], self._lengths[index])


class Runs:
    """Rows of one type that are in a file, in runs as they were added."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._spool = Spool()
        self._places, self._counts = array("q"), array("q")

    def add(self, rows: npt.NDArray[Any]) -> None:
        """Add a run of rows."""
        if len(rows):
            self._places.append(self._spool.put(np.ascontiguousarray(rows, self.dtype).data.cast("B")))
            self._counts.append(len(rows))

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._places)

    def __getitem__(self, number: int) -> npt.NDArray[Any]:
        """The rows of a run."""
        data = self._spool.take(self._places[number], self._counts[number] * self.dtype.itemsize)
        return np.frombuffer(data, self.dtype)


class Rows:
    """Rows of an array in a file, one behind the other as they are added; the first ones say of what type they are."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._like: npt.NDArray[Any] = np.zeros(0)
        self._count = -1

    def add(self, rows: npt.NDArray[Any]) -> None:
        """Add some."""
        if self._count < 0:
            self._like, self._count = rows[:0].copy(), 0
        if rows.size:
            self._spool.put(np.ascontiguousarray(rows).data.cast("B"))
        self._count += len(rows)

    def __len__(self) -> int:
        """How many there are."""
        return max(0, self._count)

    def mapped(self) -> npt.NDArray[Any]:
        """Return all of them as an array that is in the file."""
        shape = max(0, self._count), *self._like.shape[1:]
        if 0 in shape:
            return np.zeros(shape, self._like.dtype)
        return self._spool.mapped(shape, self._like.dtype)


def mapped(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros that is in a file, to be filled piece by piece."""
    kind = np.dtype(dtype)
    if 0 in shape:
        return np.zeros(shape, kind)
    with _telling(), tempfile.TemporaryFile() as file:
        _reserve(file.fileno(), math.prod(shape) * kind.itemsize)
        return np.memmap(file, kind, "w+", shape=shape)


def _reserve(file: int, size: int) -> None:
    """Make room for a file: who writes into one that is mapped when the disk is full is killed by the system."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a file system that cannot
                raise


@contextmanager
def _telling() -> Iterator[None]:
    """Say of what the system cannot do that it is about temporary files, and where these lie."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        reason = error.strerror or error
        failure = StoreError(f"a temporary file in {folder} failed: {reason}; TMPDIR names another directory for them")
        failure.errno, failure.filename = error.errno, folder
        raise failure from error


def forget(values: Any) -> None:
    """Let the memory go that an array which is mapped from a file has taken, so far."""
    while values is not None and not isinstance(values, mmap.mmap):
        values = getattr(values, "base", None)
    if values is not None and hasattr(mmap, "MADV_DONTNEED"):
        values.madvise(mmap.MADV_DONTNEED)


class Buckets:
    """Rows of one type that are in a file, by the number of the bucket that each was put into."""

    def __init__(self, dtype: np.dtype[Any], count: int) -> None:
        self._dtype, self._count = dtype, count
        self._spool = Spool()
        self._runs: list[tuple[int, Ints, Ints]] = []
        """Of each part: where its rows are, which buckets they are in, ascending, and where those of each start."""

    def add(self, rows: npt.NDArray[Any], buckets: Ints) -> None:
        """Put ``rows`` into ``buckets``, a number for each row."""
        if len(rows) == 0:
            return
        small = buckets.astype(np.uint16) if self._count <= 2**16 else buckets  # is sorted by counting
        order = np.argsort(small, kind="stable")
        sorted_numbers = buckets[order]
        starts = np.flatnonzero(np.concatenate([[True], sorted_numbers[1:] != sorted_numbers[:-1]]))
        at = self._spool.put(rows_at(rows, order).data.cast("B"))
        self._runs.append((at, sorted_numbers[starts].astype(np.int32), np.append(starts, len(rows)).astype(np.int32)))

    def rows(self, bucket: int) -> npt.NDArray[Any]:
        """The rows of a bucket, in the order in which they were put there."""
        found = []
        for at, numbers, starts in self._runs:
            place = int(np.searchsorted(numbers, bucket))
            if place < len(numbers) and numbers[place] == bucket:
                first, last = int(starts[place]), int(starts[place + 1])
                size = self._dtype.itemsize
                found.append(self._spool.take(at + first * size, (last - first) * size))
        return np.frombuffer(b"".join(found), self._dtype)


__all__ = ["Buckets", "Rows", "Runs", "Spool", "SpooledBlobs", "forget", "mapped"]
