"""A value that is written into a file of its own, piece by piece, before that takes the place of the key."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from zardine.buffers import BytesLike
from zardine.stores.attempts import RACES
from zardine.stores.base import Condition, NewValue, Version
from zardine.stores.file_calls import close_file, open_descriptor
from zardine.stores.late_closing import made_room
from zardine.stores.local.beside import temporary_name
from zardine.stores.open_files import write_parts

NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
"""How unfinished files are opened."""


class NewFile(NewValue):
    """A file in the directory that ``open_directory`` opens, or makes, which ``put`` gives its name.

    Both are made when the first bytes are written. Whoever has it closes it, which removes what was not put. ``finish``
    has the file system accept all bytes of the open file. ``fail`` raises what is to be said of an error of the file;
    errors of those who make the bytes are theirs.
    """

    __slots__ = ("_fail", "_finish", "_open_directory", "_put", "directory", "fd", "is_put", "temporary")

    def __init__(
        self,
        open_directory: Callable[[], int],
        finish: Callable[[int], None],
        put: Callable[[NewFile, Condition | None], Version],
        fail: Callable[[OSError], NoReturn],
    ) -> None:
        self._open_directory, self._finish, self._put, self._fail = open_directory, finish, put, fail
        self.directory = self.fd = -1
        self.temporary = temporary_name()
        self.size = 0
        self.is_put = False

    def write(self, parts: Sequence[BytesLike]) -> None:
        try:
            if self.fd < 0:
                self._open()
            write_parts(self, self.size, parts)
        except OSError as error:
            self._fail(error)

    def write_at(self, offset: int, parts: Sequence[BytesLike]) -> None:
        try:
            write_parts(self, offset, parts)
        except OSError as error:
            self._fail(error)

    def _open(self) -> None:
        for last in (*[False] * (RACES - 1), True):
            try:
                self.directory = self._open_directory()
                self.fd = open_descriptor(self.temporary, NEW, 0o666, dir_fd=self.directory)
                return
            except OSError as error:  # of which the first may be: the directory was erased since it was opened
                self._close_directory()
                if last or not (isinstance(error, FileNotFoundError) or made_room(error)):
                    raise

    def put(self, condition: Condition | None = None) -> Version:
        try:
            if self.fd < 0:
                self._open()
            self._finish(self.fd)  # once: bytes that are not accepted are lost
        except OSError as error:
            self._fail(error)
        while True:
            try:
                version = self._put(self, condition)
            except OSError as error:
                if not made_room(error):
                    self._fail(error)
            else:
                self.is_put = True
                return version

    def close(self) -> None:
        """Close the file and its directory, and remove the file if it was not put."""
        if self.fd >= 0:
            if not self.is_put:
                with contextlib.suppress(OSError):
                    os.unlink(self.temporary, dir_fd=self.directory)
            file, self.fd = self.fd, -1
            close_file(file)
        self._close_directory()

    def _close_directory(self) -> None:
        if self.directory >= 0:
            directory, self.directory = self.directory, -1
            close_file(directory)


__all__ = ["NEW", "NewFile"]
