"""What lies beside the files of a store and is none of its values: unfinished files, and the records of edits.

Each has a name that no key may have, so that what writers who die leave behind is found and put in order.

A writer leaves a record beside a file while it edits it, so that an edit that was cut off is known as one.

A file that is edited names what counts in it by a *table* of its own (for shards, the index), which the edit replaces.
The record says where the table before stands and which checksum it has, the same of the table after, and how long the
file is before and after. It is there before anything in the file changes and goes when the edit is done. A writer that
dies leaves the beginning of what it would have written, so the record and the file decide together which table counts;
nothing is guessed from what bytes look like. A file that was replaced or edited since does not fit to the record.

Once the file has its size after the edit, the edit is done: a table that is wrong then was damaged later, and the one
before never comes back. Where that one still lies in the file, it is made void, so that it does not count either in a
file that is cut short later.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from struct import Struct
from typing import TYPE_CHECKING, Final, Self

import google_crc32c

from zardine.buffers import BytesLike
from zardine.kernel import KERNEL
from zardine.stores.file_calls import close_file, flush_file, open_descriptor, read_part
from zardine.stores.local.directory_sync import sync_names

if TYPE_CHECKING:
    from zardine._kernel import NewFiles
    from zardine.stores.base import Condition

START: Final = ".zardine-"
_END: Final = ".tmp"
_EDIT: Final = f"{START}edit-"
NAMES: Final = START.encode(), _EDIT.encode(), _END.encode()
"""What names of unfinished files begin with, those of records, and what both end with, for the kernel."""


def temporary_name() -> str:
    """A new name for a file or directory that is not, or no longer, part of the store."""
    return f"{START}{os.urandom(8).hex()}{_END}"


_KEYS: Final = 2**20
"""More keys than the kernel puts files for in one call."""


def _new_numbers() -> Iterator[int]:
    return count(int.from_bytes(os.urandom(8)), _KEYS)


_numbers = _new_numbers()
"""Where the numbers of unfinished files of each call begin: no other call of this process has them, and hardly another
process; the second to make a file of one name is told, and takes another way."""


def _begin_anew() -> None:
    """In a forked child, which would count on as its parent does."""
    global _numbers
    _numbers = _new_numbers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def edit_record_name(name: str) -> str:
    """Return the name of the record beside the file ``name``."""
    return f"{_EDIT}{name}{_END}"


def open_new_files(
    base: int | tuple[bytes, bytes],
    keys: Sequence[str],
    conditions: Sequence[Condition | None],
) -> NewFiles | None:
    """Open, or make, where the kernel puts the files of ``keys`` below the directory ``base``.

    That is open, or named by its path and what its real path begins with. ``None`` where that fails, a key is none, or
    a link is on the way. ``conditions``: of each, if there are any.
    """
    assert KERNEL is not None
    number = next(_numbers) % 2**64
    try:
        versions = [None if each is None else each.version or "" for each in conditions] if conditions else ()
        files: NewFiles | None = KERNEL.open_new_files(base, keys, versions, NAMES, number)
    except (OSError, ValueError):  # the latter of a name that the system cannot have
        return None
    return files


def edited_name(name: str) -> str | None:
    """The name of the file whose record has this ``name``; ``None`` if it is no record."""
    return name[len(_EDIT) : -len(_END)] if name.startswith(_EDIT) and name.endswith(_END) else None


def is_temporary(name: str) -> bool:
    """Whether ``name`` (one part of a path) is one of ours: no key has such a part, and no listing shows it."""
    return name.startswith(START) and name.endswith(_END)


# records of edits

_MAGIC: Final = b"zardine edit 1\0\0"
_FORM: Final = Struct("<16sQQQQQQQ")
VOID_BYTES: Final = 4
"""Bytes that are changed of a table that does not count any more: for indexes, their checksum."""
_CHECKSUM: Final = Struct("<Q")
_SIZE: Final = _FORM.size + _CHECKSUM.size
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_OLD: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

Read = Callable[[tuple[int, int]], BytesLike]
"""Gives bytes of a file, by their offset and length."""


def checksum(data: BytesLike) -> int:
    """What tells one table from others: the CRC32C of all but the last four bytes, and these.

    They are a checksum themselves as a rule, and with its CRC32C behind it everything has the same CRC32C.
    """
    whole = bytes(data)
    return int(google_crc32c.value(whole[:-4])) << 32 | int.from_bytes(whole[-4:], "little")


def void(table: BytesLike) -> bytes:
    """The last bytes of a table as they are when it does not count any more; the same again gives it back."""
    return bytes(byte ^ 255 for byte in bytes(table)[-VOID_BYTES:])


@dataclass(frozen=True, slots=True)
class Table:
    """A table that names what counts in a file of ``size`` bytes: it begins at byte ``at``."""

    size: int
    at: int
    checksum: int
    """The :func:`checksum` of its bytes."""

    @property
    def void(self) -> bytes:
        """What :func:`void` gives."""
        return (~self.checksum & 0xFFFFFFFF).to_bytes(VOID_BYTES, "little")


@dataclass(frozen=True, slots=True)
class EditRecord:
    """An edit that replaces one table of ``length`` bytes by another.

    The table ``after`` may be written behind the file as it will be, to be copied to where the one ``before`` stands
    when it is whole; then the file is cut to its size.
    """

    length: int
    before: Table
    after: Table

    @property
    def is_copied(self) -> bool:
        """Whether the table after is written behind the file first."""
        return self.after.at >= self.after.size

    def counting(self, size: int, read: Read) -> Table | None:
        """Which table counts in a file of ``size`` bytes that nobody edits now: that of an edit that was cut off.

        ``None`` where the edit was done, or the file is not the one that was edited any more.
        """
        # one byte more: see zardine.engine.update_shard
        longest = self.after.at + self.length if self.is_copied else self.after.size + 1
        if size == self.after.size or not self.before.size <= size <= longest:
            return None
        if self._stands(self.before, read):
            return self.before
        # begun to be copied, so it was whole before, as were the bytes in front of it
        if self.is_copied and size == longest and self._stands(self.after, read):
            return self.after
        return None

    def superseded(self, size: int, read: Read) -> Table | None:
        """The table before, if it still stands in a file of ``size`` bytes in which the edit is done."""
        done = size == self.after.size and not self.is_copied and self._stands(self.after, read)
        return self.before if done and self._stands(self.before, read) else None

    def _stands(self, table: Table, read: Read) -> bool:
        data = read((table.at, self.length))
        return len(data) == self.length and checksum(data) == table.checksum

    def encode(self) -> bytes:
        """The bytes of the record."""
        sizes = (self.length, self.before.size, self.before.at, self.after.size, self.after.at)
        body = _FORM.pack(_MAGIC, *sizes, self.before.checksum, self.after.checksum)
        return body + _CHECKSUM.pack(checksum(body))

    @classmethod
    def decode(cls, data: bytes) -> Self | None:
        """The record, or ``None`` where it is not whole: then nothing had been changed yet."""
        body = data[: _FORM.size]
        if len(data) != _SIZE or data[_FORM.size :] != _CHECKSUM.pack(checksum(body)):
            return None
        magic, length, size, at, size_after, at_after, before, after = _FORM.unpack(body)
        if magic != _MAGIC:
            return None
        return cls(length, Table(size, at, before), Table(size_after, at_after, after))


class RecordFile:
    """The record of the file ``name`` in an open ``directory``, for who has the lock of that file."""

    __slots__ = ("_directory", "_durable", "_name")

    def __init__(self, directory: int, name: str, *, durable: bool) -> None:
        self._directory = directory
        self._name = edit_record_name(name)
        self._durable = durable

    def write(self, record: EditRecord) -> None:
        """Leave a record, where there is none. It is on the disk then, if that is promised."""
        file = open_descriptor(self._name, _NEW, 0o666, dir_fd=self._directory)
        try:
            try:
                data = record.encode()
                while data:
                    data = data[os.write(file, data) :]
                flush_file(file)
                if self._durable:
                    os.fsync(file)
            finally:
                close_file(file)
            self.sync_names()
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._directory)
            raise

    def sync_names(self) -> None:
        """Sync the names in the directory, if the store promises durability."""
        if self._durable:
            sync_names(self._directory)

    def exists(self) -> bool:
        """Whether there is one."""
        return os.access(self._name, os.F_OK, dir_fd=self._directory)

    def read(self) -> EditRecord | None:
        """The record that is there."""
        return _read(self._name, self._directory)

    def remove(self) -> None:
        """What the record is about is done, or undone."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._directory)


def forget_edit(directory: int, name: str, *, durable: bool) -> None:
    """Remove the record of a file that has just been replaced or removed in an open ``directory``, if there is one."""
    record = edit_record_name(name)
    if not os.access(record, os.F_OK, dir_fd=directory):
        return
    with contextlib.suppress(OSError):
        if durable:  # not before that has reached the disk
            os.fsync(directory)
        os.unlink(record, dir_fd=directory)


def record_of(path: str, file: int) -> EditRecord | None:
    """The record of an open ``file``, that was found at ``path``, perhaps by way of links."""
    try:
        real = os.path.realpath(path)
        if not os.path.samestat(os.stat(real), os.fstat(file)):
            return None
        above, name = os.path.split(real)
        return _read(f"{above}/{edit_record_name(name)}", None)
    except OSError:
        return None


def _read(path: str, directory: int | None) -> EditRecord | None:
    try:
        file = open_descriptor(path, _OLD, dir_fd=directory)
    except OSError:
        return None
    try:
        return EditRecord.decode(bytes(read_part(file, 0, _SIZE + 1)))
    except OSError:
        return None
    finally:
        close_file(file)


__all__ = [
    "NAMES",
    "START",
    "VOID_BYTES",
    "EditRecord",
    "RecordFile",
    "Table",
    "checksum",
    "edit_record_name",
    "edited_name",
    "forget_edit",
    "is_temporary",
    "open_new_files",
    "record_of",
    "temporary_name",
    "void",
]
