"""Closing files that have no name any more in other threads.

Closing frees such a file, and waits until the disk has written what was still on its way there: a millisecond or more
for a document or shard that was replaced shortly after it was made, as by one append after the other. Several threads,
since they only wait.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from threading import Condition, Lock, Thread
from typing import Final

_MOST: Final = 64
"""Files that wait to be closed; beyond that, closing is not put off."""

_THREADS: Final = 8
_IDLE: Final = 0.5
"""Seconds after which a thread ends that has nothing to close."""

_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}


class _Closer:
    """Threads, started when needed, that end when there is nothing left to close."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._work, self._done = Condition(self._lock), Condition(self._lock)
        self._files: deque[int] = deque()
        self._threads = self._idle = self._closing = self._closed = 0

    def close(self, file: int) -> None:
        with self._lock:
            if len(self._files) < _MOST and self._has_thread():
                self._files.append(file)
                self._work.notify()
                return
        os.close(file)

    def finish(self) -> bool:
        """Wait until all are closed; whether any were since this was asked last."""
        with self._lock:
            while self._files or self._closing:
                self._done.wait()
            some, self._closed = self._closed > 0, 0
            return some

    def waiting(self) -> list[int]:
        """The files that no thread has taken yet."""
        return list(self._files)

    def _has_thread(self) -> bool:
        """Whether one will close another file, started now if all are busy."""
        if self._idle <= len(self._files) and self._threads < _THREADS:
            try:
                Thread(target=self._run, name="zardine-close", daemon=True).start()
                self._threads += 1
            except RuntimeError:  # the interpreter is shutting down
                return False
        return True

    def _run(self) -> None:
        while (file := self._next()) is not None:
            with contextlib.suppress(OSError):
                os.close(file)
            with self._lock:
                self._closing -= 1
                self._closed += 1
                self._done.notify_all()

    def _next(self) -> int | None:
        with self._lock:
            self._idle += 1
            while not self._files:
                if not self._work.wait(_IDLE) and not self._files:
                    self._idle -= 1
                    self._threads -= 1
                    return None
            self._idle -= 1
            self._closing += 1
            return self._files.popleft()


_closer = _Closer()


def _begin_anew() -> None:
    """In a forked child, which has no threads, and whose copies of the files are closed here."""
    global _closer
    files, _closer = _closer.waiting(), _Closer()
    for file in files:
        os.close(file)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def close_late(file: int) -> None:
    """Close ``file``; in another thread if it has lost its name, so that closing frees it."""
    if os.fstat(file).st_nlink == 0:
        _closer.close(file)
    else:
        os.close(file)


def made_room(error: OSError) -> bool:
    """Whether a call that failed for want of room may succeed now, since files were closed late."""
    return error.errno in _NO_ROOM and _closer.finish()


__all__ = ["close_late", "made_room"]
