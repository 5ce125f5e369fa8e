"""A model of a disk that may lose power: only what was synced is sure to be there afterwards.

Bytes and size of a file are sure once the file is synced, names once their directory is. What came later is *pending*:
any of it may be there and any may not, block by block. A name is given, or goes from one file to another, at once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash.killing import watch_calls
from zardine.stores.local.beside import edited_name, is_temporary

BLOCK = 512
"""Bytes that are written as a whole, if at all; they begin at multiples of that."""
HARMLESS = {"utime", "chmod", "fchmod"}
Tree = dict[str, bytes]
"""Files by their path; directories, with a slash at the end, have no bytes."""


@dataclass(frozen=True, eq=False)
class Resized:
    """A file has another size; what is new is zero."""

    where: int
    size: int


@dataclass(frozen=True, eq=False)
class Written:
    """Bytes within one block of a file; those beyond its size are nowhere."""

    where: int
    offset: int
    data: bytes


@dataclass(frozen=True, eq=False)
class Named:
    """Names of a directory and what they mean from now on, ``None`` for nothing."""

    where: int
    names: dict[str, int | None]


Change = Resized | Written | Named


@dataclass
class Disk:
    """The files below ``root``, all of them synced at first."""

    root: Path
    subsets: int = 1
    """How many random choices of what came to the disk are made for each pending change."""
    pending: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sure: dict[int, bytes | dict[str, int]] = {}
        self._numbers: dict[int, int] = {}
        self._dice = random.Random(0)
        self._top = self._learn(self.root)

    def _learn(self, path: Path) -> int:
        number = self.new(path.stat(), {} if path.is_dir() else path.read_bytes())
        if path.is_dir():
            self._sure[number] = {below.name: self._learn(below) for below in path.iterdir()}
        return number

    def new(self, status: os.stat_result, sure: bytes | dict[str, int]) -> int:
        """The number of a new file or directory; the inode may have been that of another one before."""
        number = self._numbers[status.st_ino] = len(self._sure)
        self._sure[number] = sure
        return number

    def number(self, status: os.stat_result) -> int:
        """What the changes say for this file or directory."""
        return self._numbers[status.st_ino]

    def has(self, status: os.stat_result) -> bool:
        """Whether a file or directory lies on the disk."""
        return status.st_ino in self._numbers

    def sync(self, where: int) -> None:
        """What is pending of a file, or of the names in a directory, is sure from now on."""
        self._sure[where] = self._after(where, self.pending)
        self.pending = [change for change in self.pending if change.where != where]

    def resize(self, where: int, size: int) -> None:
        self.pending.append(Resized(where, size))

    def write(self, where: int, offset: int, data: bytes) -> None:
        """First the size, then the bytes, block by block."""
        found = self._after(where, self.pending)
        if offset + len(data) > len(found):
            self.resize(where, offset + len(data))
        while data:
            length = BLOCK - offset % BLOCK
            self.pending.append(Written(where, offset, data[:length]))
            offset, data = offset + length, data[length:]

    def after_loss(self) -> Iterator[Tree]:
        """What may be there when the power is lost now: of what is pending the first, one alone, all but one, or some.

        "The first" are none of it, one, two and so on, up to all.
        """
        pending = self.pending
        yield self.tree([])
        for i, change in enumerate(pending):
            yield self.tree(pending[: i + 1])
            yield self.tree([change])
            yield self.tree(pending[:i] + pending[i + 1 :])
            for _ in range(self.subsets):
                yield self.tree(other for other in pending if self._dice.random() < 0.5)

    def tree(self, applied: Iterable[Change]) -> Tree:
        """What there is if these of the pending changes came to the disk, without unfinished files."""
        changes = list(applied)
        found: Tree = {}
        waiting = [("", self._top)]
        while waiting:
            path, number = waiting.pop()
            content = self._after(number, changes)
            if isinstance(content, bytes):
                found[path] = content
                continue
            if path:
                found[f"{path}/"] = b""
            for name, below in content.items():
                if is_kept(name):
                    waiting.append((f"{path}/{name}" if path else name, below))
        return found

    def _after(self, where: int, changes: Iterable[Change]) -> Any:
        sure = self._sure[where]
        if isinstance(sure, dict):
            names: dict[str, int | None] = {**sure}
            for change in changes:
                if change.where == where and isinstance(change, Named):
                    names |= change.names
            return {name: number for name, number in names.items() if number is not None}
        data = bytearray(sure)
        for change in changes:
            if change.where != where:
                continue
            if isinstance(change, Resized):
                data = data[: change.size] + bytes(max(0, change.size - len(data)))
            elif isinstance(change, Written):
                end = min(len(data), change.offset + len(change.data))
                data[change.offset : end] = change.data[: max(0, end - change.offset)]
        return bytes(data)


class Recorder:
    """Does on a model of a disk whatever this process does to its files; tells ``before`` of each call first."""

    def __init__(self, disk: Disk, before: Callable[[str], None], put: Callable[[Any, str, Any], None]) -> None:
        self._disk, self._before = disk, before
        watch_calls(self._instead, put)

    def _instead(self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._before(name)
        if name in HARMLESS:
            return call(*args, **kwargs)
        return getattr(self, f"_{name}")(call, *args, **kwargs)

    def _open_file(self, fd: int) -> int:
        return self._disk.number(os.fstat(fd))

    def _named(self, path: str, fd: int | None) -> int:
        return self._disk.number(os.stat(path, dir_fd=fd, follow_symlinks=False))

    def _name(self, path: str, fd: int | None, means: int | None, **others: int | None) -> None:
        above, name = os.path.split(path)
        where = self._open_file(fd) if fd is not None and not above else self._named(above, fd)
        self._disk.pending.append(Named(where, {name: means, **others}))

    def _open(self, call: Any, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        assert flags & os.O_EXCL, "not known whether it makes a file"
        fd = call(path, flags, mode, dir_fd=dir_fd)
        self._name(path, dir_fd, self._disk.new(os.fstat(fd), b""))
        return int(fd)

    def _write(self, call: Any, fd: int, data: Any) -> int:
        offset = os.lseek(fd, 0, os.SEEK_CUR)
        done = call(fd, data)
        self._disk.write(self._open_file(fd), offset, bytes(data)[:done])
        return int(done)

    def _pwritev(self, call: Any, fd: int, parts: list[Any], offset: int) -> int:
        done = call(fd, parts, offset)
        self._disk.write(self._open_file(fd), offset, b"".join(map(bytes, parts))[:done])
        return int(done)

    def _copy_file_range(self, call: Any, source: int, target: int, length: int, offset: int) -> int:
        place = os.lseek(target, 0, os.SEEK_CUR)
        done = call(source, target, length, offset)
        self._disk.write(self._open_file(target), place, os.pread(source, done, offset))
        return int(done)

    def _ftruncate(self, call: Any, fd: int, size: int) -> None:
        call(fd, size)
        self._disk.resize(self._open_file(fd), size)

    def _fsync(self, call: Any, fd: int) -> None:
        call(fd)
        if self._disk.has(os.fstat(fd)):  # not a directory above
            self._disk.sync(self._open_file(fd))

    def _mkdir(self, call: Any, path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        call(path, mode, dir_fd=dir_fd)
        self._name(path, dir_fd, self._disk.new(os.stat(path, dir_fd=dir_fd), {}))

    def _link(
        self,
        call: Any,
        old: str,
        new: str,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        means = self._named(old, src_dir_fd)
        call(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)
        self._name(new, dst_dir_fd, means)

    def _replace(self, call: Any, old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        assert self._open_file(src_dir_fd) == self._open_file(dst_dir_fd)
        means = self._named(old, src_dir_fd)
        call(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._name(new, dst_dir_fd, means, **{old: None})

    _rename = _replace

    def _unlink(self, call: Any, path: str, *, dir_fd: int | None = None) -> None:
        call(path, dir_fd=dir_fd)
        self._name(path, dir_fd, None)

    _rmdir = _unlink


def is_kept(name: str) -> bool:
    """Whether a file says something to who finds it: if it is not one that had not got its name yet."""
    return not is_temporary(name) or edited_name(name) is not None


def tree_of(root: Path) -> Tree:
    """The files that are there, as in :meth:`Disk.tree`."""
    paths = [path for path in root.rglob("*") if is_kept(path.name)]
    return {
        str(path.relative_to(root)) + "/" * path.is_dir(): b"" if path.is_dir() else path.read_bytes() for path in paths
    }


def store_tree(tree: Tree, root: Path) -> None:
    """Make these files."""
    root.mkdir()
    for path in sorted(tree):
        if path.endswith("/"):
            (root / path).mkdir(parents=True, exist_ok=True)
        else:
            (root / path).write_bytes(tree[path])
