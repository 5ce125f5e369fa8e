"""Closing files in other threads.

To close a file that has no name any more frees it, and waits until the disk has written what was still on its way
there: a millisecond or more for a document or shard that was replaced shortly after it was made, as by one append after
the other. So other threads do that; several, since they only wait.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from functools import cache
from threading import Condition, Lock, Thread
from typing import Final

from zardine.stores.file_calls import close_file, spare_files

_MOST_WAITING: Final = 64
"""Files that wait to be closed; beyond that, closing is not put off."""

_TOGETHER: Final = 8
"""Small files that one thread closes at a time: to wake it for each takes longer than all else that is done for one."""

_SMALL: Final = 2**20
"""Bytes of a file whose room on the disk can wait."""

_THREADS: Final = 8
_IDLE: Final = 0.5
"""Seconds after which a thread closes what there is, however little, and ends if there is nothing."""

_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}


class _Closer:
    """Threads, started when needed, that end when there is nothing left to close."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._work, self._done = Condition(self._lock), Condition(self._lock)
        self._files: deque[int] = deque()
        self._threads = self._idle = self._closing = self._closed = 0
        self._is_due = False
        """Whether to close what waits without waiting for more."""

    def close(self, file: int, size: int) -> None:
        with self._lock:
            if len(self._files) < _MOST_WAITING and self._has_thread():
                self._files.append(file)
                if size > _SMALL or len(self._files) % _TOGETHER == 0:
                    self._is_due = True
                    self._work.notify()
                return
        close_file(file)

    def finish(self) -> bool:
        """Wait until all are closed; whether any were since this was asked last."""
        with self._lock:
            self._is_due = bool(self._files)
            self._work.notify_all()
            while self._files or self._closing:
                self._done.wait()
            some, self._closed = self._closed > 0, 0
            return some

    def waiting(self) -> list[int]:
        """The files that no thread has taken yet."""
        return list(self._files)

    def _has_thread(self) -> bool:
        """Whether one will close another file, started now if all are busy."""
        if self._idle * _TOGETHER <= len(self._files) and self._threads < _THREADS:
            try:
                Thread(target=self._run, name="zardine-close", daemon=True).start()
                self._threads += 1
            except RuntimeError:  # the interpreter is shutting down
                return False
        return True

    def _run(self) -> None:
        while files := self._next():
            for file in files:
                close_file(file)
            with self._lock:
                self._closing -= len(files)
                self._closed += len(files)
                self._done.notify_all()

    def _next(self) -> list[int]:
        """The files to close next; none: the thread ends."""
        with self._lock:
            self._idle += 1
            while not (self._files and self._is_due):
                if not self._work.wait(_IDLE):
                    break
            self._idle -= 1
            files = [self._files.popleft() for _ in range(min(_TOGETHER, len(self._files)))]
            self._closing += len(files)
            self._is_due = self._is_due and bool(self._files)
            if not files:
                self._threads -= 1
            return files


_closer = _Closer()


def _begin_anew() -> None:
    """In a forked child, which has no threads, and whose copies of the files are closed here."""
    global _closer
    files, _closer = _closer.waiting(), _Closer()
    for file in files:
        close_file(file)


spare_files.append(lambda: _closer.finish())

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@cache
def is_in_memory(device: int) -> bool:
    """Whether the file system of that number has no disk that closing a file could wait for."""
    number = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            mount, _, kind = line.partition(" - ")
            if mount.split(maxsplit=3)[2:3] == [number]:
                return kind.split(maxsplit=1)[:1] == ["tmpfs"]
    return False


def close_late(file: int) -> None:
    """Close ``file``; in another thread if it has lost its name, so that closing frees it on a disk."""
    try:
        status = os.fstat(file)
    except OSError:  # what cannot be told is closed now
        close_file(file)
        return
    if status.st_nlink == 0 and not is_in_memory(status.st_dev):
        _closer.close(file, status.st_size)
    else:
        close_file(file)


def made_room(error: OSError) -> bool:
    """Whether a call that failed for want of room may succeed now, since files were closed late."""
    return error.errno in _NO_ROOM and _closer.finish()


__all__ = ["close_late", "is_in_memory", "made_room"]
