"""How far jobs are: told by workers, wherever they are, to the process that hands jobs out.

Nothing waits for it, and nothing depends on it: what does not arrive is not told.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Told: TypeAlias = Callable[[int, int, int], object]
"""Is told how many bytes a job has done: by the number of its stage, its own, and bytes."""

TELLS: Final = 0.5
"""Seconds between two things that a job tells another process."""
_MESSAGE: Final = struct.Struct("<3q")
_MOST: Final = 1000
"""Messages that are looked at in a row."""


class Channel(Protocol):
    """A way from workers to this process."""

    def opener(self) -> Callable[[], Told]:
        """Return what gives, where a job runs and in its thread, whom it tells.

        It pickles, where jobs run in other processes.
        """

    def listen(self, told: Told) -> None:
        """Pass on to this what comes."""

    def look(self) -> None:
        """Pass on what has come; where nobody else does that."""

    def close(self) -> None:
        """Listen no more."""


class InProcess:
    """For jobs in threads of this process."""

    def __init__(self) -> None:
        self._told: Told = _ignore

    def opener(self) -> Callable[[], Told]:
        return lambda: self._told

    def listen(self, told: Told) -> None:
        self._told = told

    def look(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self._told = _ignore


class Piped:
    """For processes that this one begins. They write without a lock, which one that is killed might hold for ever."""

    def __init__(self) -> None:
        from multiprocessing import Pipe

        self._reading, self.writing = Pipe(duplex=False)
        self._told: Told = _ignore

    def opener(self) -> Callable[[], Told]:
        return _to_the_pipe

    def listen(self, told: Told) -> None:
        self._told = told

    def look(self) -> None:
        for _ in range(_MOST):
            if not self._reading.poll(0):
                return
            self._told(*_MESSAGE.unpack(self._reading.recv_bytes()))

    def close(self) -> None:
        self._reading.close()
        self.writing.close()


class OnCluster:
    """For workers of Dask: what they tell are events of a topic of its own."""

    def __init__(self, client: Any) -> None:
        self._client, self._topic = client, f"zardine-{secrets.token_hex(8)}"
        self._told: Told = _ignore

    def opener(self) -> Callable[[], Told]:
        return partial(_event_of, self._topic)

    def listen(self, told: Told) -> None:
        self._told = told
        self._client.subscribe_topic(self._topic, lambda event: self._told(*event[1]))

    def look(self) -> None:
        """The client listens."""

    def close(self) -> None:
        self._told = _ignore
        with contextlib.suppress(Exception):  # a cluster that is gone tells nothing
            self._client.unsubscribe_topic(self._topic)


def _ignore(stage: int, job: int, nbytes: int) -> None:
    """Tell nobody."""


_writing: Connection | None = None
"""Of this process, if another has begun it."""


def begin_to_tell(writing: Connection) -> None:
    """Tell through this what jobs of this process have done."""
    global _writing
    _writing = writing
    if hasattr(os, "set_blocking") and os.name != "nt":
        os.set_blocking(writing.fileno(), False)  # where nobody reads, nothing waits


def _to_the_pipe() -> Told:
    return _say


def _say(stage: int, job: int, nbytes: int) -> None:
    if _writing is not None:
        with contextlib.suppress(OSError):
            _writing.send_bytes(_MESSAGE.pack(stage, job, nbytes))


def _event_of(topic: str) -> Told:
    try:
        from distributed import get_worker

        worker = get_worker()
    except (ImportError, ValueError):
        return _ignore

    def tell(stage: int, job: int, nbytes: int) -> None:
        with contextlib.suppress(Exception):
            worker.log_event(topic, (stage, job, nbytes))

    return tell


class Advance:
    """What a job calls with the bytes that it has done since; from any of its threads."""

    def __init__(self, told: Told, stage: int, job: int, interval: float = TELLS) -> None:
        self._told, self._stage, self._job = told, stage, job
        self._interval, self._last = interval, time.monotonic()
        self._bytes = 0
        self._guard = threading.Lock()

    def __call__(self, nbytes: int) -> None:
        with self._guard:
            self._bytes += nbytes
            now = time.monotonic()
            if now - self._last >= self._interval:
                self._last = now
                self._told(self._stage, self._job, self._bytes)


__all__ = ["TELLS", "Advance", "Channel", "InProcess", "OnCluster", "Piped", "Told", "begin_to_tell"]
