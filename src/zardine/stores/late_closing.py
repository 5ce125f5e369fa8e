"""Closing files that have no name any more in another thread.

Closing frees such a file, and waits until the disk has written what was still on its way there: a millisecond or more
for a document that was replaced shortly after it was made, as by one append after the other.
"""

from __future__ import annotations

import os
from queue import Empty, SimpleQueue
from threading import Lock, Thread

_MOST = 8
"""Files that wait to be closed; beyond that, closing is not put off."""


class _Closer:
    """One thread, started when first needed, that ends when there is nothing left to close."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._files: SimpleQueue[int] = SimpleQueue()
        self._running = False

    def close(self, file: int) -> None:
        with self._lock:
            if self._files.qsize() < _MOST:
                self._files.put(file)
                if not self._running:
                    try:
                        Thread(target=self._run, name="zardine-close", daemon=True).start()
                        self._running = True
                    except RuntimeError:  # the interpreter is shutting down
                        self._files.get()
                        os.close(file)
                return
        os.close(file)

    def _run(self) -> None:
        while True:
            try:
                os.close(self._files.get(timeout=0.5))
            except Empty:
                with self._lock:
                    if self._files.empty():
                        self._running = False
                        return

    def forget(self) -> None:
        """In a forked child, whose copies are closed here."""
        files, self._lock, self._files, self._running = self._files, Lock(), SimpleQueue(), False
        while not files.empty():
            os.close(files.get())


_closer = _Closer()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_closer.forget)


def close_late(file: int) -> None:
    """Close ``file``; in another thread if it has lost its name, so that closing frees it."""
    if os.fstat(file).st_nlink == 0:
        _closer.close(file)
    else:
        os.close(file)


__all__ = ["close_late"]
