"""Opening directories below a base directory, and nothing outside of it.

Keys have no ``..`` parts, so only symbolic links can lead out. Instead of looking at every part of a path, a file or
directory is opened first and the kernel is asked afterwards where it lies (``/proc/self/fd``, or ``F_GETPATH``): one
cheap call, and nobody can exchange a part of the path between check and use. Links that stay inside are followed.
Where the kernel cannot be asked, the path is resolved a second time; then the check can be raced by someone who
exchanges directories for links at that moment. Nobody can see through hard links or mounts.

Which keys can be names of files in it is told here, too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Final

from zardine.errors import InvalidKeyError, StoreError
from zardine.stores.attempts import RACES
from zardine.stores.base import check_key
from zardine.stores.file_calls import close_file, open_descriptor
from zardine.stores.local.beside import START, is_temporary
from zardine.stores.local.directory_sync import DIRECTORY, forget_directory

_FILES_TELL: Final = sys.platform != "darwin" and os.path.exists("/proc/self/fd")
"""Whether links there say where open files lie."""
_NO_LINK: Final = DIRECTORY | getattr(os, "O_NOFOLLOW", 0)

if sys.platform == "darwin":
    import fcntl

    def _where(file: int, path: str) -> str:
        return os.fsdecode(fcntl.fcntl(file, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))

elif _FILES_TELL:

    def _where(file: int, path: str) -> str:
        return os.readlink(f"/proc/self/fd/{file}")

else:

    def _where(file: int, path: str) -> str:
        real = os.path.realpath(path)
        if not os.path.samestat(os.stat(real), os.fstat(file)):
            raise FileNotFoundError(errno.ENOENT, "exchanged while it was opened", path)
        return real


class BaseDirectory:
    """The directory that holds a store; it need not exist yet."""

    __slots__ = ("_below", "_named", "_real", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._real = self._below = "\0"  # not known yet: no path has it
        self._named: tuple[str, tuple[bytes, bytes]] | None = None

    def path_of(self, name: str) -> str:
        """The path of a key, or of a prefix without its last slash."""
        return f"{self.path}/{name}" if name else self.path

    def check_inside(self, file: int, path: str) -> None:
        """Raise :class:`InvalidKeyError` if the open ``file`` lies elsewhere, ``FileNotFoundError`` if it is gone."""
        where = _where(file, path)
        if where.startswith(self._below) or where == self._real:
            return
        if where.startswith(self.path) and where[len(self.path) : len(self.path) + 1] in ("/", ""):
            self._real, self._below = self.path, self.path.rstrip("/") + "/"  # as it is: no link leads here
            return
        self._find_real()  # the base may itself be a link, and may have moved
        if where.startswith(self._below) or where == self._real:
            return
        if where.endswith(" (deleted)") or not _leads_to(path, file):  # or was moved away since it was opened
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        raise InvalidKeyError(f"{path!r} leads to {where!r}, out of the store's base {self._real!r}")

    def _find_real(self) -> None:
        self._real = os.path.realpath(self.path)
        self._below = self._real.rstrip("/") + "/"

    def below(self) -> str | None:
        """Return what the real paths of all files in it begin with; ``None`` where files cannot be asked for theirs.

        That is worked out when it is first needed: :meth:`check_inside` does it again where the directory has moved.
        """
        if not _FILES_TELL:
            return None
        if self._below == "\0":
            self._find_real()
        return self._below

    def named(self) -> tuple[bytes, bytes] | None:
        """Return its path and what :meth:`below` gives, as the kernel takes them."""
        below, known = self.below(), self._named
        if below is None:
            return None
        if known is None or known[0] is not below:
            known = self._named = below, (os.fsencode(self.path), os.fsencode(below))
        return known[1]

    def open(self, name: str, *, create: bool = False) -> int:
        """A descriptor of the directory of a prefix (without its last slash), for the caller to close.

        ``FileNotFoundError`` if it is missing and not to be created, ``NotADirectoryError`` if a part of the path is a
        file.
        """
        path = self.path_of(name)
        for _ in range(RACES):
            try:
                return self._open_checked(path)
            except FileNotFoundError:
                if not create:
                    raise
            with contextlib.suppress(FileNotFoundError):  # someone removes what we make: again
                self._make(name)
        link = self.link_to_nowhere(path)
        why = "it goes away as often as it is made" if link is None else f"{link!r} is a link that leads nowhere"
        raise StoreError(f"cannot make the directory {path!r}: {why}")

    def link_to_nowhere(self, path: str) -> str | None:
        """Return the link that leads to nothing on a path to what is missing: its end, or a directory above it."""
        above = path[: path.rfind("/")]
        while above and not os.access(above, os.F_OK):
            path, above = above, above[: above.rfind("/")]
        return path if os.path.islink(path) and not os.path.exists(path) else None

    def _open_checked(self, path: str) -> int:
        directory = open_descriptor(path, DIRECTORY)
        try:
            self.check_inside(directory, path)
        except BaseException:
            close_file(directory)
            raise
        return directory

    def _make(self, name: str) -> None:
        """Make a directory and those above it, each inside of one that was checked."""
        if not os.path.isdir(self.path):
            _make_base(self.path)
        parts = name.split("/") if name else []
        depth = len(parts)
        while True:  # the deepest one that exists
            depth = max(0, depth - 1)
            try:
                directory = self._open_checked(self.path_of("/".join(parts[:depth])))
                break
            except FileNotFoundError:
                if depth == 0:
                    raise
        try:
            for part in parts[depth:]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=directory)
                    forget_directory(os.stat(part, dir_fd=directory))
                try:
                    below = open_descriptor(part, _NO_LINK, dir_fd=directory)
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        return  # a link, or a file, made meanwhile: the caller's next attempt judges it
                    raise
                above, directory = directory, below  # first, so that Ctrl-C lets none be closed twice
                close_file(above)
        finally:
            close_file(directory)


def _leads_to(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _make_base(path: str) -> None:
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    for path in reversed(missing):
        try:
            os.mkdir(path)
            forget_directory(os.stat(path))
        except FileExistsError:
            if os.path.islink(path) and not os.path.exists(path):
                raise StoreError(f"cannot make the directory {path!r}: it is a link that leads nowhere") from None
            if not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None


_WINDOWS: Final = os.name == "nt"


def check_file_key(key: str) -> str:
    """``key`` if it is well formed and can name a file below the base directory, else ``InvalidKeyError``."""
    check_key(key)
    if START in key and any(map(is_temporary, key.split("/"))):
        raise InvalidKeyError(f"invalid store key {key!r}: names {START}*.tmp are kept for unfinished writes")
    if _WINDOWS and any(character in key for character in '\\:*?"<>|'):
        raise InvalidKeyError(f"invalid store key {key!r}: not a file name on Windows")
    return key


__all__ = ["DIRECTORY", "BaseDirectory", "check_file_key"]
