"""Many small files at a time, by few calls of the kernel: made where nothing is, read whole, removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import InvalidKeyError
from zardine.kernel import KERNEL
from zardine.settings import thread_count
from zardine.stores.file_calls import close_file, flush_file, open_descriptor
from zardine.stores.local.base_directory import BaseDirectory
from zardine.stores.local.beside import NAMES

if TYPE_CHECKING:
    from zardine._kernel import Crew

Place: TypeAlias = tuple[int, bytes]
"""The descriptor of an open directory, and a name in it."""

_DIRECTORIES: Final = 128
"""Directories that are open at a time."""
_FILES: Final = 4096
_BYTES: Final = 32 * 2**20
"""Files, and bytes of them, that are handed to the kernel at a time; one file at least."""
_FEW: Final = 16
"""Files that are removed one by one sooner than a thread is started."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def make_files(base: BaseDirectory, values: Iterable[tuple[str, BytesLike]]) -> None:
    """Store values under keys that nothing is stored under; their files are made in place, and not synced.

    ``values`` are asked for as they are needed. Raises ``OSError``: then some files are there, and one in part.
    """
    waiting = iter(values)
    while True:
        batch, size = [], 0
        for key, value in islice(waiting, _FILES):
            batch.append((key, value))
            size += len(value)
            if size > _BYTES:
                break
        if not batch:
            return
        for start, places in _opened(base, [key for key, _ in batch], create=True):
            _make(places, [value for _, value in batch[start : start + len(places)]])


def make_file(base: BaseDirectory, key: str, parts: Iterable[BytesLike]) -> None:
    """Store a value that comes in parts, as :func:`make_files` does. Raises ``OSError``: then some of it is there."""
    for _, ((directory, name),) in _opened(base, [key], create=True):
        file = open_descriptor(name, _NEW, 0o666, dir_fd=directory)
        try:
            for part in parts:
                _write(file, part)
            flush_file(file)
        finally:
            close_file(file)


def make_cell_files(
    directory: int, arrays: Sequence[tuple[object, ...]], threads: int, crew: Crew
) -> list[tuple[str, int]]:
    """Make files of ``arrays``, as the kernel takes them, in an open directory; who helps ``crew`` takes part in it.

    Gives the keys below that, and error numbers, of those that could not be made: then some files are there, and some
    in part. Other threads run at once, and until all is done.
    """
    assert KERNEL is not None
    failed = KERNEL.make_cell_files(directory, arrays, NAMES, 0, threads, crew)  # nothing gets an unfinished name here
    return [(os.fsdecode(key), code) for key, code in failed]


def name_files(base: str, names: Iterable[tuple[str, str]], copy: Callable[[str, str], None]) -> None:
    """Give files below ``base`` a second key each, under which nothing is stored.

    ``copy`` gets both keys where files cannot have two names. Raises ``OSError``.
    """
    made = set[str]()
    for old, new in names:
        path = f"{base}/{new}"
        _make_folder(path, made)
        try:
            os.link(f"{base}/{old}", path, follow_symlinks=False)
        except OSError as error:
            if _is_one_file(f"{base}/{old}", path):  # the answer was lost: see zardine.stores.file_calls
                continue
            if isinstance(error, FileExistsError):
                raise
            copy(old, new)


def _is_one_file(path: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
    except OSError:
        return False


def _make_folder(path: str, made: set[str]) -> None:
    """Make the folder of a file, unless that is among those ``made``."""
    folder = path.rpartition("/")[0]
    if folder not in made:
        os.makedirs(folder, exist_ok=True)
        made.add(folder)


def read_files(base: BaseDirectory, keys: Sequence[str], most: int) -> list[bytes | None]:
    """Return the values of ``keys``, which are files of ``most`` bytes each at most.

    ``None`` where there is no such file, or to read it is more than that: a link, or something that fails.
    """
    if KERNEL is None:
        return [None] * len(keys)
    found: list[bytes | None] = []
    try:
        for _, places in _opened(base, keys):
            found += KERNEL.read_files(places, min(most, 2**63 - 1), thread_count())
    except (OSError, InvalidKeyError):
        return [None] * len(keys)
    return found


def remove_files(places: Sequence[Place]) -> None:
    """Remove files; what is not there is no error. Raises ``OSError``."""
    if KERNEL is None or len(places) < _FEW:
        for directory, name in places:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
        return
    for number, code in KERNEL.remove_files(places, thread_count()):
        error = OSError(code, os.strerror(code), os.fsdecode(places[number][1]))
        if not isinstance(error, FileNotFoundError):
            raise error


def _make(places: Sequence[Place], values: Sequence[BytesLike]) -> None:
    if KERNEL is not None:
        for number, code in KERNEL.make_files(places, values, thread_count()):
            raise OSError(code, os.strerror(code), os.fsdecode(places[number][1]))
        return
    for (directory, name), value in zip(places, values, strict=True):
        file = open_descriptor(name, _NEW, 0o666, dir_fd=directory)
        try:
            _write(file, value)
            flush_file(file)
        finally:
            close_file(file)


def _write(file: int, value: BytesLike) -> None:
    rest = memoryview(value)
    while len(rest):
        rest = rest[os.write(file, rest) :]


def _opened(base: BaseDirectory, keys: Sequence[str], *, create: bool = False) -> Iterator[tuple[int, list[Place]]]:
    """Yield runs of ``keys`` as places, each with the number of its first; their directories are open until the next.

    Raises ``OSError`` for directories that cannot be opened, and :class:`~zardine.errors.InvalidKeyError` for such as
    lie elsewhere.
    """
    at = 0
    while at < len(keys):
        opened: dict[str, int] = {}
        places: list[Place] = []
        try:
            for key in keys[at : at + _FILES]:
                prefix, _, name = key.rpartition("/")
                directory = opened.get(prefix)
                if directory is None:
                    if len(opened) == _DIRECTORIES:
                        break
                    directory = opened[prefix] = base.open(prefix, create=create)
                places.append((directory, os.fsencode(name)))
            yield at, places
            at += len(places)
        finally:
            for directory in opened.values():
                close_file(directory)


__all__ = ["make_cell_files", "make_file", "make_files", "name_files", "read_files", "remove_files"]
