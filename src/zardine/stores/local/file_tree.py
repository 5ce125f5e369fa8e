"""Listing and removing directories of a store, without following links out of it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Final

from zardine.errors import InvalidKeyError
from zardine.stores.attempts import RACES
from zardine.stores.base import is_key
from zardine.stores.file_calls import close_file, copy_descriptor, open_descriptor, rename_file, scan_directory
from zardine.stores.local.base_directory import DIRECTORY, BaseDirectory
from zardine.stores.local.beside import edited_name, is_temporary, temporary_name
from zardine.stores.local.file_times import ask_clock, is_older
from zardine.stores.local.many_files import remove_files

_BELOW: Final = DIRECTORY | getattr(os, "O_NOFOLLOW", 0)

MOST_NAMES = 2**18
"""Names of a directory in memory at a time, where its files are listed one by one; for an instant twice as many.

With more the directory is read again for the next ones."""
_DEPTH = 64
"""Directories within each other that are open at a time while they are removed."""

EMPTY_DIRECTORY: Final = "an empty directory"


def list_directory(base: BaseDirectory, directory: int, prefix: str) -> tuple[list[str], list[str]]:
    """Keys and prefixes directly in an open directory, sorted, as full names."""
    names = sorted(_names_in(base, directory, prefix))
    return [each for each in names if each[-1] != "/"], [each for each in names if each[-1] == "/"]


def list_some(base: BaseDirectory, directory: int, prefix: str, after: str) -> tuple[list[str], bool]:
    """Keys and prefixes directly in an open directory that come after a name, the first of them; and whether all.

    However many there are, only some are in memory.
    """
    found: list[str] = []
    end = ""
    for each in _names_in(base, directory, prefix):
        if each > after and not (end and each >= end):
            found.append(each)
            if len(found) == 2 * MOST_NAMES:
                found.sort()
                end = found[MOST_NAMES]
                del found[MOST_NAMES:]
    found.sort()
    return found[:MOST_NAMES], not end and len(found) <= MOST_NAMES


def _names_in(base: BaseDirectory, directory: int, prefix: str) -> Iterator[str]:
    with scan_directory(directory) as entries:
        for entry in entries:
            name = entry.name
            if is_temporary(name) or not (name.isascii() or is_key(name)):
                continue
            if entry.is_symlink() and not _followed(base, prefix, name):
                continue
            if entry.is_dir():
                yield f"{prefix}{name}/"
            elif entry.is_file():
                yield prefix + name


def left_out(base: BaseDirectory, prefix: str) -> Iterator[tuple[str, str]]:
    """Names below ``prefix`` that :func:`list_directory` leaves out, and what is there; also empty directories."""
    waiting = [prefix]
    while waiting:
        here = waiting.pop()
        try:
            directory = base.open(here[:-1])
        except (OSError, InvalidKeyError):
            continue
        try:
            with scan_directory(directory) as scanned:
                entries = [(each.name, each.is_symlink(), _kind(each)) for each in scanned]
        finally:
            close_file(directory)
        if not entries and here:
            yield here[:-1], EMPTY_DIRECTORY
        for name, is_link, kind in sorted(entries):
            if is_temporary(name):
                continue
            if not is_key(name):
                yield here + name, "something whose name is not UTF-8, so that no key leads to it,"
            elif is_link and not _followed(base, here, name):
                yield here + name, "a link that leads nowhere, out of the store, or to a directory above it"
            elif kind == "directory":
                waiting.append(f"{here}{name}/")
            elif kind != "file":
                yield here + name, "something that is neither a file nor a directory"


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        return "directory" if entry.is_dir() else "file" if entry.is_file() else ""
    except OSError:  # links in a circle
        return ""


def _followed(base: BaseDirectory, prefix: str, name: str) -> bool:
    """Whether a link leads to something inside the base that is not a directory on the way to the link."""
    path = base.path_of(prefix + name)
    try:
        target = open_descriptor(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    try:
        base.check_inside(target, path)
        there = os.fstat(target)
        way = base.path
        for part in ("", *prefix.split("/")[:-1]):
            way = f"{way}/{part}" if part else way
            if os.path.samestat(os.stat(way), there):
                return False
        return True
    except (InvalidKeyError, FileNotFoundError):
        return False
    finally:
        close_file(target)


def remove(directory: int, name: str) -> None:
    """Remove a directory with everything in it: for readers in one instant, by moving it away first."""
    try:
        gone = temporary_name()
        below = open_descriptor(name, DIRECTORY, dir_fd=directory)  # not a file: that is no prefix
        try:
            rename_file(name, gone, below, directory)
        finally:
            close_file(below)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        gone = name  # a mount point stays where it is
    _remove_now(directory, [gone])


def _remove_now(directory: int, names: list[str]) -> None:
    """Remove directories, or what has taken their places, from an open one.

    What lies deep in them is moved there first, and is among ``names`` then: neither open files nor calls are as many
    as the tree is deep.
    """
    while names:
        _remove_one(directory, names.pop(), directory, names, _DEPTH)


def _remove_one(directory: int, name: str, top: int, waiting: list[str], depth: int) -> None:
    if not depth:
        moved = temporary_name()
        try:
            os.rename(name, moved, src_dir_fd=directory, dst_dir_fd=top)
        except FileNotFoundError:  # it is gone, or was moved: see file_calls
            waiting.append(moved)
            return
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EXDEV):
                raise
        else:
            waiting.append(moved)
            return
        depth = _DEPTH
    for _ in range(RACES):  # a writer may be at work in there
        try:
            below = open_descriptor(name, _BELOW, dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=directory)
                return
            if error.errno == errno.ENOENT:
                return
            raise
        try:
            for each in _remove_files(below):
                _remove_one(below, each, top, waiting, depth - 1)
        finally:
            close_file(below)
        try:
            os.rmdir(name, dir_fd=directory)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return


def remove_empty(directory: int, name: str) -> bool:
    """Whether a directory held nothing but empty directories, and is gone."""
    way: list[tuple[str, os.stat_result, list[str]]] = []
    """Of each directory that is being looked at: its name, the one in which it is, and names in it to look at still.

    Only the last one is open, however deep it is: the one above it is opened from there, and has to be the same."""
    here = copy_descriptor(directory)
    try:
        below: str | None = name
        while below is not None:
            status = os.fstat(here)
            opened = open_descriptor(below, _BELOW, dir_fd=here)
            above, here = here, opened  # first, so that Ctrl-C lets none be closed twice
            close_file(above)
            names = _only_directories(here)
            if names is None:
                return False
            way.append((below, status, names))
            while way and not way[-1][2]:
                gone, status, _ = way.pop()
                opened = open_descriptor("..", _BELOW, dir_fd=here)
                inside, here = here, opened
                close_file(inside)
                if not os.path.samestat(os.fstat(here), status):
                    return False
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(gone, dir_fd=here)
            below = way[-1][2].pop() if way else None
    except OSError:
        return False
    finally:
        close_file(here)
    return True


def _only_directories(directory: int) -> list[str] | None:
    """Return the names in an open directory; ``None`` where any is not that of a directory."""
    with scan_directory(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return [name for name, _ in found] if all(is_directory for _, is_directory in found) else None


def clear(directory: int) -> None:
    """Remove everything in an open directory; links are removed, not followed."""
    _remove_now(directory, _remove_files(directory))


def _remove_files(directory: int) -> list[str]:
    """Remove what is no directory from an open one, and return the names of those that are."""
    with scan_directory(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    remove_files([(directory, os.fsencode(name)) for name, is_directory in found if not is_directory])
    return [name for name, is_directory in found if is_directory]


def leftovers(path: str, older_than: float) -> Iterator[str]:
    """Paths below ``path`` with a temporary name and no change in the last ``older_than`` seconds."""
    waiting = [path]
    while waiting:
        above = waiting.pop()
        try:
            with scan_directory(above) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if is_temporary(entry.name):
                    if is_older(entry.stat(follow_symlinks=False), older_than):
                        yield entry.path
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def remove_leftovers(path: str, older_than: float, finish_edit: Callable[[int, str], bool]) -> int:
    """Remove the :func:`leftovers`; gives their number.

    ``finish_edit`` gets an open directory and the name of a file in it with the record of an edit, which it removes if
    it can.
    """
    count = 0
    ask_clock(path, temporary_name())
    for found in leftovers(path, older_than):
        above, name = os.path.split(found)
        with contextlib.suppress(FileNotFoundError):
            directory = open_descriptor(above, DIRECTORY)
            try:
                edited = edited_name(name)
                if edited is not None:
                    count += finish_edit(directory, edited)
                else:
                    _remove_now(directory, [name])
                    count += 1
            finally:
                close_file(directory)
    return count


__all__ = [
    "EMPTY_DIRECTORY",
    "clear",
    "left_out",
    "leftovers",
    "list_directory",
    "remove",
    "remove_empty",
    "remove_leftovers",
]
