"""Writing to the file of a zip archive: entries and directories are added at its end, nothing is ever overwritten."""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
import zlib
from collections.abc import Sequence
from typing import Final

from zardine.buffers import BytesLike
from zardine.stores.file_calls import close_file, flush_file
from zardine.stores.local.directory_sync import DIRECTORY, sync_names
from zardine.stores.zip.directory import ZipDirectory
from zardine.stores.zip.file import identity_of
from zardine.stores.zip.lock import open_locked, release
from zardine.stores.zip.records import directory_bytes, entry

_NO_SYNC: Final = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EROFS, errno.EACCES, errno.EPERM}
"""What a file system answers that syncs no directories, or not this one for this user."""


class ZipWriter:
    """A locked archive file. What fails (``OSError``) has changed nothing: what was half written is cut off again.

    The directory that was written last stays where it is until a new one is whole, so that of a writer that is killed
    what it had finished remains.
    """

    def __init__(self, path: str, file: int | None = None) -> None:
        self.path = path
        self.file = open_locked(path) if file is None else file
        self.inode = -1, -1
        """Device and inode of the file."""
        try:
            status = os.fstat(self.file)
            self.inode = status.st_dev, status.st_ino
        except BaseException:  # Ctrl-C, too: nobody could write to the archive as long as this process lives
            with contextlib.suppress(OSError):
                status = os.fstat(self.file)
                self.inode = status.st_dev, status.st_ino
            self.close()
            raise
        self.end = status.st_size
        """Where the next thing is written: behind what a writer that was killed has left."""
        self.changed = False
        """Whether a directory must be written."""
        self.has_lost = False
        """Whether the file system has refused bytes after it took them: no directory may tell of them."""

    def is_current(self) -> bool:
        """Whether the path still means this file; other programs remove and replace files without asking."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.inode

    def append(self, key: str, data: BytesLike) -> zipfile.ZipInfo:
        """Write an entry. Nobody sees it before a directory tells of it."""
        info = entry(key, len(data), zlib.crc32(data), self.end)
        self._write((info.FileHeader(), data))
        self.changed = True
        return info

    def write_directory(self, directory: ZipDirectory) -> None:
        """Write the directory, behind the entries on the disk as in the file: the archive is whole then."""
        self._sync()
        self._write((directory_bytes(directory.written(), self.end, directory.comment),))
        self._sync()
        self.sync_name()
        self.changed = False
        directory.stop = self.end

    def sync_name(self) -> None:
        """Sync the name of the file, where the file system can."""
        try:
            directory = os.open(os.path.dirname(self.path), DIRECTORY)
            try:
                sync_names(directory)
            finally:
                os.close(directory)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise

    @property
    def identity(self) -> tuple[int, ...]:
        """Of the file as it is now."""
        return identity_of(os.fstat(self.file))

    def _sync(self) -> None:
        try:
            flush_file(self.file)
            os.fsync(self.file)
        except OSError:
            self.has_lost = True
            raise

    def close(self) -> None:
        """Let others write. A file that nothing was ever written to is removed: it would not be an archive."""
        if self.file >= 0:
            with contextlib.suppress(OSError):
                if not os.fstat(self.file).st_size and self.is_current():
                    os.unlink(self.path)
            release(self.file)
            file, self.file = self.file, -1
            close_file(file)

    def __del__(self) -> None:
        if hasattr(self, "inode"):
            self.close()

    def forget(self) -> None:
        """In a forked process: close its copy, which leaves the lock to the process that has it."""
        file, self.file = self.file, -1
        if file >= 0:
            close_file(file)

    def _write(self, parts: Sequence[BytesLike]) -> None:
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        at = self.end
        try:
            while views:
                done = os.pwritev(self.file, views, at)
                at += done
                while views and done >= len(views[0]):
                    done -= len(views.pop(0))
                if done:
                    views[0] = views[0][done:]
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self.file, self.end)
            raise
        self.end = at


__all__ = ["ZipWriter"]
