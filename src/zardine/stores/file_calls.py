"""Calls of the system for files: to open, read, flush, close and name them, whatever goes wrong on the way.

Network file systems (NFS, SMB) and FUSE report some failures late, or wrongly:

- A full disk or quota may be reported only when a file is closed. :func:`flush_file` asks for that error before a new
  file gets its name, and before an edit is declared done. After that, an error of :func:`close_file` means nothing.
- Where the answer of a server is lost, the client sends the call again, and reports that the second one has failed.
  :func:`rename_file` and :func:`link_file` look at what the name means.

Ctrl-C may come between a call that opens a file and the line that remembers its descriptor. The functions here close
the file then. Their callers enter ``try`` in the next line, without another call in between.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import starmap
from typing import Final

from zardine.buffers import BytesLike

TOO_MANY: Final = {errno.EMFILE, errno.ENFILE}
"""Errors that say that this process, or the system, has too many open files."""
_MOST: Final = 0x7FFFF000  # bytes that Linux moves in one call
_NO_ARGUMENTS: Final = ((),)

spare_files: Final[list[Callable[[], object]]] = []
"""Functions that close files that are open only to make later calls faster; each module with such files adds one."""


def open_descriptor(path: str | bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    """Open a file as :func:`os.open` does; the next line of the caller is a ``try`` that closes it."""
    return _new_descriptor(partial(os.open, path, flags, mode, dir_fd=dir_fd))


def copy_descriptor(file: int) -> int:
    """Return another descriptor of an open file, as :func:`open_descriptor` does."""
    return _new_descriptor(partial(os.dup, file))


def _new_descriptor(call: Callable[[], int], *, is_last: bool = False) -> int:
    opened: list[int] = []
    try:
        opened.extend(starmap(call, _NO_ARGUMENTS))  # in C up to the list: Ctrl-C is not noticed in between
        return opened[0]
    except OSError as error:
        if is_last or error.errno not in TOO_MANY:
            raise
    except BaseException:
        for file in opened:
            os.close(file)
        raise
    _close_spare_files()
    return _new_descriptor(call, is_last=True)


def _close_spare_files() -> None:
    for close in spare_files:
        close()


def scan_directory(path: int | str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """Return the entries of a directory, as :func:`os.scandir` does."""
    try:
        return os.scandir(path)
    except OSError as error:
        if error.errno not in TOO_MANY:
            raise
    _close_spare_files()
    return os.scandir(path)


def flush_file(file: int) -> None:
    """Raise ``OSError`` unless the file system has accepted all bytes that were written to ``file``, which stays open.

    The system flushes a file whenever one of its descriptors is closed, so this closes a second one. After an error the
    bytes are lost, even if a second call finds no error.
    """
    while True:
        copy = copy_descriptor(file)
        try:
            os.close(copy)
        except InterruptedError:
            continue
        return


def close_file(file: int) -> None:
    """Close a file that was only read, or that was flushed: see :func:`flush_file`."""
    with contextlib.suppress(OSError):
        os.close(file)


def read_part(file: int, offset: int, length: int) -> BytesLike:
    """Return ``length`` bytes of an open file from ``offset`` on; fewer only where the file ends."""
    part = os.pread(file, min(length, _MOST), offset)
    if len(part) == length or not part:
        return part
    whole = bytearray(part)
    while part and len(whole) < length:
        part = os.pread(file, min(length - len(whole), _MOST), offset + len(whole))
        whole += part
    return bytes(whole)


def _is_named(name: str, status: os.stat_result, directory: int | None = None) -> bool:
    """Return whether ``name``, in an open directory, means the file of this ``status``."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=directory, follow_symlinks=False), status)
    except OSError:
        return False


def rename_file(old: str, new: str, file: int, directory: int | None = None) -> None:
    """Give the open ``file`` the name ``new`` instead of ``old`` in an open directory, over what has that name."""
    try:
        os.replace(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        if not _is_named(new, os.fstat(file), directory):
            raise


def link_file(old: str, new: str, file: int, directory: int | None = None) -> None:
    """Give the open ``file``, which has the name ``old``, a second name that nothing has."""
    try:
        os.link(old, new, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError:
        if not _is_named(new, os.fstat(file), directory):
            raise


def move_directory(old: str, here: int, new: str, there: int) -> None:
    """Give the directory ``old`` in the open directory ``here`` the name ``new`` in ``there``.

    Only an empty directory may have that name. Raises ``OSError`` as :func:`os.rename` does.
    """
    status = os.stat(old, dir_fd=here, follow_symlinks=False)
    try:
        os.rename(old, new, src_dir_fd=here, dst_dir_fd=there)
    except OSError:
        if not _is_named(new, status, there):
            raise


def replace_file(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> None:
    """Move what lies at the path ``old`` to the path ``new``, over what lies there."""
    status = os.lstat(old)
    try:
        os.replace(old, new)
    except OSError:
        if not _is_named(os.fspath(new), status):
            raise


__all__ = [
    "TOO_MANY",
    "close_file",
    "copy_descriptor",
    "flush_file",
    "link_file",
    "move_directory",
    "open_descriptor",
    "read_part",
    "rename_file",
    "replace_file",
    "scan_directory",
    "spare_files",
]
