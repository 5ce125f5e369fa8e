"""Values of a store as open files: their versions; to read one from, to change in place, to copy parts of."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, Self

from zardine.buffers import BytesLike
from zardine.cache import Cache
from zardine.contexts import SureExit
from zardine.errors import ConditionFailedError
from zardine.kernel import KERNEL
from zardine.stores.attempts import EDITS, attempts
from zardine.stores.byte_ranges import ByteRange, Version, resolve_range
from zardine.stores.file_calls import close_file, flush_file, read_part, spare_files
from zardine.stores.late_closing import made_room
from zardine.stores.local.beside import VOID_BYTES, EditRecord, RecordFile, Table, record_of
from zardine.stores.system_locks import HAS_LOCKS, lock_file, unlock_file

if TYPE_CHECKING:
    from zardine._kernel import KnownFile

owners: dict[tuple[int, int], int] = {}
"""Device and inode of each file that is locked in this process: the thread that holds it."""

_MOST_PARTS: Final = 512
"""Pieces that one call of the system writes."""

_SMALL_PIECE: Final = 2**14
"""Bytes of a piece that is copied to those beside it, to be written with them."""


def version_of(status: os.stat_result) -> Version:
    """The token of a file in this state: its identity, size and times."""
    return version_from(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def version_from(inode: int, size: int, modified: int, changed: int) -> Version:
    """The same of what the kernel says: times in nanoseconds."""
    return f"{inode:x}-{size:x}-{modified:x}-{changed:x}"


def stamp(file: int) -> None:
    """Give an open file that was just written the present time to the nanosecond.

    The times that the kernel sets move in steps of milliseconds, and inode numbers come back at once: without this,
    two values written in one step could have the same token.
    """
    now = time.time_ns()
    os.utime(file, ns=(now, now))


class OpenFile(SureExit):
    """A value as an open file. A context manager.

    What is read is one version of the value, whatever others write meanwhile, unless they edit the file in place: see
    :meth:`is_unedited`.
    """

    __slots__ = ("_kept", "fd", "is_stalled", "path", "size", "version")

    def __init__(self, fd: int, size: int, version: Version, path: str) -> None:
        self.fd = fd
        self.size = size
        self.version = version
        self.path = path
        self._kept = False
        self.is_stalled = False
        """Whether a writer still had the file locked when :meth:`wait` gave up: it may be stopped within an edit."""

    def read(self, byte_range: ByteRange) -> BytesLike:
        """A range of the bytes."""
        start, stop = resolve_range(byte_range, self.size)
        return read_part(self.fd, start, stop - start)

    def fd_to_read(self) -> int:
        """The descriptor, for who reads ranges by it."""
        return self.fd

    def is_unedited(self) -> bool:
        """Return whether the file is as it was when it was opened, or waited for, and no writer edits it now.

        A writer that :meth:`wait` gave up on may still have the file locked: then only what it changes counts.
        """
        if self._kept:
            return True
        return (self.is_stalled or self._share(keep=False)) and version_of(os.fstat(self.fd)) == self.version

    def wait(self) -> None:
        """Wait until no writer edits the file, and keep writers out until it is closed. See its present state then.

        A writer that is stopped would be waited for without end. So the wait ends after :data:`EDITS`: the file
        :attr:`is_stalled` then, and the record of the edit says what counts in it (:meth:`cut_off`).
        """
        self.is_stalled = not any(self._share(keep=True) for _ in attempts(EDITS))
        status = os.fstat(self.fd)
        self.size, self.version = status.st_size, version_of(status)

    @property
    def keeps_writers_out(self) -> bool:
        """Whether no writer can edit the file before it is closed."""
        return self._kept

    def may_be_torn(self) -> bool:
        """Return whether a writer that was waited for in vain may be in the middle of writing over a chunk.

        Every finished write stamps the file (:func:`stamp`), so that its two times differ; writing makes them equal.
        """
        status = os.fstat(self.fd)
        return self.is_stalled and status.st_mtime_ns == status.st_ctime_ns

    def lock_holder(self) -> str:
        """Name the process that has the file locked for writing, as far as the system tells."""
        status = os.fstat(self.fd)
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        with contextlib.suppress(OSError, ValueError), open("/proc/locks", encoding="ascii") as locks:
            for line in locks:
                _, kind, _, access, process, where, *_ = line.split()
                if (kind, access, where) == ("FLOCK", "WRITE", place) and int(process) > 0:
                    return f"process {process}"
        return "another process"

    def cut_off(self) -> Table | None:
        """Return the table that counts in a file whose last edit is not finished, by the record that its writer left.

        For a reader that has called :meth:`wait`, where what stands at the table's place is none. ``None``: no edit is
        unfinished.
        """
        record = record_of(self.path, self.fd)
        return None if record is None else record.counting(self.size, self.read)

    def is_replaced(self) -> bool:
        """Whether the value has got another file since this one was opened, or is gone."""
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self.fd))
        except OSError:
            return True

    def close(self) -> None:
        """Close the file."""
        if self._kept and self.fd >= 0:  # in words: closing does not unlock if a forked process has a copy
            unlock_file(self.fd)
        file, self.fd = self.fd, -1
        if file >= 0:  # not closed already
            close_file(file)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if getattr(self, "fd", -1) >= 0:  # Ctrl-C came before anything could close it
            with contextlib.suppress(OSError):
                close(self.fd)

    def _share(self, *, keep: bool) -> bool:
        """Take a lock that keeps writers out, and ``keep`` it if wanted. Return whether no writer has the file locked.

        Where the file system has no locks, only the writers of this process are known.
        """
        if not HAS_LOCKS:
            return True
        owner = None
        if owners:
            status = os.fstat(self.fd)
            owner = owners.get((status.st_dev, status.st_ino))
            if owner == threading.get_ident():
                return True  # we are the writer
        try:
            lock_file(self.fd, alone=False, wait=False)
            self._kept = keep
            if not keep:
                unlock_file(self.fd)
        except OSError as error:
            return owner is None and error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN)
        return True

    def __enter__(self) -> Self:
        return self

    def _exit(self, error: BaseException | None) -> None:
        self.close()


class KeptFile(OpenFile):
    """A value as an open file that is kept for reads to come; closed when nobody refers to it any more."""

    __slots__ = ("identity", "known")

    def __init__(self, file: OpenFile) -> None:
        self.fd, file.fd = file.fd, -1  # first: from now on it is this one's to close
        status = os.fstat(self.fd)
        super().__init__(self.fd, status.st_size, version_of(status), file.path)
        self.identity = _identity_of(status)
        self.known = known_file(file.path, status, self.fd)

    def is_unedited(self) -> bool:
        """Whether no one has edited the file since it was opened, nor does so now."""
        return self._share(keep=False) and _identity_of(os.fstat(self.fd)) == self.identity

    def close(self) -> None:
        """Leave it open: others may be reading it."""


_KNOWN: Final = attrgetter("known")


def known_file(path: str, status: os.stat_result, file: int | None = None) -> KnownFile | None:
    """Return a file in this state, which is open as ``file``, or not, as the kernel takes it; ``None`` without it."""
    return None if KERNEL is None else KERNEL.KnownFile(os.fsencode(path), _identity_of(status), file)


def are_current(files: Sequence[KeptFile]) -> bool:
    """Whether the path of each means this file still, and nobody has changed that since it was opened."""
    if KERNEL is not None:
        return bool(KERNEL.are_current(list(map(_KNOWN, files))))
    try:
        return all(_identity_of(os.stat(file.path)) == file.identity for file in files)
    except OSError:
        return False


def _identity_of(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What differs between two files, and two versions of one; :func:`version_of` without the making of a text."""
    return status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns, status.st_ctime_ns


kept_files: Final[Cache[tuple[str, str], KeptFile]] = Cache(64)
"""Files read lately, each counted as one, by the base of their store and their key.

Whoever replaces or removes one in this process lets go of it, so that its room is free at once.
"""


_missed: Final[Cache[tuple[str, str], bool]] = Cache(kept_files.limit)
"""Files that were asked for lately, while there was no room for them; each counted as one."""


def may_keep(files: Sequence[tuple[str, str]]) -> bool:
    """Whether there is room for some files, or each that is not kept was asked for lately, too.

    So those that are asked for again and again stay open, whatever else is read once.
    """
    if kept_files.nbytes + len(files) <= kept_files.limit:
        return True
    missed = [file for file in files if kept_files.get(file) is None]
    lately = [_missed.get(file) is not None for file in missed]
    for file in missed:
        _missed.put(file, True, 1)
    return all(lately)


def let_go_below(path: str) -> None:
    """Keep no file below a directory."""
    for base, key in kept_files:
        if f"{base}/{key}".startswith(f"{path}/"):
            kept_files.drop((base, key))


spare_files.append(kept_files.clear)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=kept_files.clear)


class FilePart:
    """A range of an open file, as a piece of a value that is to be written."""

    __slots__ = ("file", "length", "offset")

    def __init__(self, file: OpenFile, offset: int, length: int) -> None:
        self.file = file
        self.offset = offset
        self.length = length


class _Written(Protocol):
    """An open file that has ``size`` bytes so far."""

    fd: int
    size: int


def write_parts(file: _Written, offset: int, parts: Sequence[BytesLike]) -> None:
    """Write ``parts`` one after the other from ``offset`` on. A failure leaves what was written so far."""
    views = [memoryview(part).cast("B") for part in parts if len(part)]
    while views:
        try:
            done = os.pwritev(file.fd, views[:_MOST_PARTS], offset)
        except OSError as error:
            if made_room(error):
                continue
            raise
        offset += done
        file.size = max(file.size, offset)
        while views and done >= len(views[0]):
            done -= len(views.pop(0))
        if done:
            views[0] = views[0][done:]


class EditableFile(OpenFile):
    """A value as an open file that may be changed, which no other writer does meanwhile.

    Nothing of what is done here is atomic. Whoever edits sees to it that readers can tell at any moment what is whole.
    """

    __slots__ = ("_is_lent", "_look_again", "_put", "_record", "durable")

    def __init__(
        self,
        fd: int,
        size: int,
        version: Version,
        path: str,
        look_again: Callable[[], Version],
        put: Callable[[Sequence[BytesLike | FilePart], Version], Version],
        record: RecordFile,
        *,
        durable: bool,
        lent: bool = False,
    ) -> None:
        self._is_lent = lent
        super().__init__(fd, size, version, path)
        self._look_again = look_again
        self._put = put
        self._record = record
        self.durable = durable

    def is_unedited(self) -> bool:
        """Whether no other program, one that takes no locks, has edited the file since it was opened."""
        return version_of(os.fstat(self.fd)) == self.version

    def close(self) -> None:
        """Close the file, unless its descriptor belongs to the lock that keeps other writers out."""
        if not self._is_lent:
            super().close()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if not getattr(self, "_is_lent", True):
            super().__del__(close)

    def begin(self, record: EditRecord) -> None:
        """Say what is about to change: should we die before :meth:`end`, others know from it what counts.

        As :meth:`check_whole`.
        """
        while True:
            try:
                return self._record.write(record)
            except FileExistsError:
                self._mend_first()
            except OSError as error:
                if not made_room(error):
                    raise

    def check_whole(self) -> None:
        """Raise :class:`~zardine.errors.ConditionFailedError` where another writer died, after putting it in order.

        If the store promises durability, the name of the file is on the disk then, whoever made it.
        """
        if self._record.exists():
            self._mend_first()
        self._record.sync_names()

    def _mend_first(self) -> NoReturn:
        self.mend()
        raise ConditionFailedError("what a writer left that died was put in order first: again")

    def end(self, record: EditRecord) -> None:
        """The edit is done: clean up.

        A failure is no error, since the edit takes effect. The record stays then, and the next writer cleans up.
        """
        with contextlib.suppress(OSError):
            if record.is_copied:
                self.truncate(record.after.size)
            else:
                self._void(record)
            self._record.remove()

    def undone(self) -> None:
        """The file is as it was before :meth:`begin`."""
        self._record.remove()

    def mend(self) -> bool:
        """Undo an edit that was cut off, or finish it; whether there was one. No record is there then."""
        record = self._record.read()
        table = None if record is None else record.counting(self.size, self.read)
        if record is not None and table is not None:
            if table is record.after:
                self.write_at(record.before.at, [self.read((table.at, record.length))])
                self.order()
            self.truncate(table.size)
            self.order()
            self.finished()
        elif record is not None and record.superseded(self.size, self.read):
            self._void(record)
            self.finished()
        self._record.remove()
        return table is not None

    def _void(self, record: EditRecord) -> None:
        self.write_at(record.before.at + record.length - VOID_BYTES, [record.before.void])
        flush_file(self.fd)

    def write_at(self, offset: int, parts: Sequence[BytesLike]) -> None:
        """Write ``parts`` one after the other from ``offset`` on. A failure leaves what was written so far."""
        write_parts(self, offset, parts)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        os.ftruncate(self.fd, size)
        self.size = size

    def order(self) -> None:
        """Have the file system accept what was written so far, before anything that follows.

        If the store promises durability, it is on the disk then.
        """
        flush_file(self.fd)
        if self.durable:
            os.fsync(self.fd)

    def finished(self) -> Version:
        """Say that the edit is done; gives the new version. What matters of it must be on the disk: see :meth:`order`.

        Raises :class:`~zardine.errors.ConditionFailedError` if another program replaced the file meanwhile.
        """
        with contextlib.suppress(OSError):  # the file belongs to another user, perhaps, and has new times anyway
            stamp(self.fd)
        self.version = self._look_again()
        return self.version

    def replace(self, pieces: Sequence[BytesLike | FilePart]) -> Version:
        """Put a new file that consists of ``pieces`` in the place of this one, at one moment; gives its version.

        Parts of files are copied within the kernel. Raises :class:`~zardine.errors.ConditionFailedError` if another
        program has changed or replaced the file since it was opened.
        """
        while True:
            try:
                return self._put(pieces, self.version)
            except OSError as error:
                if not made_room(error):
                    raise


def joined(pieces: Sequence[BytesLike | FilePart]) -> Sequence[BytesLike | FilePart]:
    """Return the same pieces, small ones that follow each other as one: a call of the system costs more than a copy."""
    if len(pieces) < 2:
        return pieces
    found: list[BytesLike | FilePart] = []
    small: list[BytesLike] = []
    for piece in pieces:
        if not isinstance(piece, FilePart) and len(piece) <= _SMALL_PIECE and len(small) < _MOST_PARTS:
            small.append(piece)
            continue
        if small:
            found.append(b"".join(small))
            small = []
        found.append(piece)
    if small:
        found.append(b"".join(small))
    return found


def copy_part(part: FilePart, target: int) -> None:
    """Append a part of a file to the open file ``target``, within the kernel where that is possible."""
    offset, left = part.offset, part.length
    while left:
        done = _copy_range(part.file.fd, target, left, offset)
        if done == 0:
            data = read_part(part.file.fd, offset, min(left, 2**22))
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


__all__ = [
    "EditableFile",
    "FilePart",
    "KeptFile",
    "OpenFile",
    "copy_part",
    "joined",
    "kept_files",
    "known_file",
    "let_go_below",
    "may_keep",
    "owners",
    "stamp",
    "version_from",
    "version_of",
    "write_parts",
]
