"""Values of a store as open files: to read one version from, to change in place, to copy parts of."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from zardine.buffers import BytesLike
from zardine.stores.byte_ranges import ByteRange, Version, resolve_range
from zardine.stores.file_version import version_of
from zardine.stores.late_closing import made_room

try:
    import fcntl
except ImportError:  # not POSIX: threads only
    fcntl = None  # type: ignore[assignment]

owners: dict[tuple[int, int], int] = {}
"""Device and inode of each file that is locked in this process: the thread that holds it."""

_MOST_PARTS: Final = 512


class OpenFile:
    """A value as an open file. A context manager.

    What is read is one version of the value, whatever others write meanwhile, unless they edit the file in place: see
    :meth:`is_settled`.
    """

    __slots__ = ("_kept", "fd", "size", "version")

    def __init__(self, fd: int, size: int, version: Version) -> None:
        self.fd = fd
        self.size = size
        self.version = version
        self._kept = False

    def read(self, byte_range: ByteRange) -> BytesLike:
        """A range of the bytes."""
        start, stop = resolve_range(byte_range, self.size)
        return os.pread(self.fd, stop - start, start)

    def is_settled(self) -> bool:
        """Whether no one has edited the file since it was opened, nor does so now."""
        if not self._share(wait=False):
            return False
        return version_of(os.fstat(self.fd)) == self.version

    def wait(self) -> None:
        """Wait until no one edits the file; no one does then until it is closed. It is seen as it is now."""
        self._share(wait=True)
        status = os.fstat(self.fd)
        self.size, self.version = status.st_size, version_of(status)

    def close(self) -> None:
        """Close the file."""
        if self._kept:  # in words: closing does not unlock if a forked process has a copy
            fcntl.flock(self.fd, fcntl.LOCK_UN)
        os.close(self.fd)

    def _share(self, *, wait: bool) -> bool:
        """Have a lock that keeps writers out; to ``wait`` for it is to keep it. Whether it could be had."""
        if fcntl is None:
            return True
        status = os.fstat(self.fd)
        if owners.get((status.st_dev, status.st_ino)) == threading.get_ident():
            return True  # we are the writer
        try:
            fcntl.flock(self.fd, fcntl.LOCK_SH | (0 if wait else fcntl.LOCK_NB))
            self._kept = wait
            if not wait:
                fcntl.flock(self.fd, fcntl.LOCK_UN)
        except OSError as error:
            return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN)  # others: there are no locks here
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FilePart:
    """A range of an open file, as a piece of a value that is to be written."""

    __slots__ = ("file", "length", "offset")

    def __init__(self, file: OpenFile, offset: int, length: int) -> None:
        self.file = file
        self.offset = offset
        self.length = length


class EditableFile(OpenFile):
    """A value as an open file that may be changed, which no other writer does meanwhile.

    Nothing of what is done here is atomic. Whoever edits sees to it that readers can tell at any moment what is whole.
    """

    __slots__ = ("_settle", "durable")

    def __init__(self, fd: int, size: int, version: Version, settle: Callable[[], Version], *, durable: bool) -> None:
        super().__init__(fd, size, version)
        self._settle = settle
        self.durable = durable

    def write_at(self, offset: int, parts: Sequence[BytesLike]) -> None:
        """Write ``parts`` one after the other from ``offset`` on. A failure leaves what was written so far."""
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        while views:
            try:
                done = os.pwritev(self.fd, views[:_MOST_PARTS], offset)
            except OSError as error:
                if made_room(error):
                    continue
                raise
            offset += done
            self.size = max(self.size, offset)
            while views and done >= len(views[0]):
                done -= len(views.pop(0))
            if done:
                views[0] = views[0][done:]

    def truncate(self, size: int) -> None:
        """Cut the file."""
        os.ftruncate(self.fd, size)
        self.size = size

    def order(self) -> None:
        """What was written so far reaches the disk before anything that follows, if the store promises durability."""
        if self.durable:
            os.fsync(self.fd)

    def settle(self) -> Version:
        """Say that the edit is done; gives the new version. What matters of it must be on the disk: see :meth:`order`.

        Raises :class:`~zardine.errors.ConditionFailedError` if another program replaced the file meanwhile.
        """
        self.version = self._settle()
        return self.version


def copy_part(part: FilePart, target: int) -> None:
    """Append a part of a file to the open file ``target``, within the kernel where that is possible."""
    offset, left = part.offset, part.length
    while left:
        done = _copy_range(part.file.fd, target, left, offset)
        if done == 0:
            data = os.pread(part.file.fd, min(left, 2**22), offset)
            if not data:
                raise OSError(errno.EIO, "the file ends too early")
            done = os.write(target, data)
        offset += done
        left -= done


def _copy_range(source: int, target: int, length: int, offset: int) -> int:
    """Bytes copied; 0 where the system cannot."""
    if not hasattr(os, "copy_file_range"):
        return 0
    try:
        return os.copy_file_range(source, target, length, offset)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM):
            return 0
        raise


__all__ = ["EditableFile", "FilePart", "OpenFile", "copy_part", "owners"]
