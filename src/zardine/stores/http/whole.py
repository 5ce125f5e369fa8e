"""Values of a server that gives only whole ones."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from zardine.stores.base import Reading

_KEPT: Final = 256 * 2**20
"""Bytes that are kept."""


@dataclass(frozen=True, slots=True)
class WholeValue:
    """A value as it was read, and when that was."""

    reading: Reading
    since: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds."""
        return time.monotonic() - self.since


class WholeValues:
    """Values by their keys; those read longest ago go first."""

    def __init__(self) -> None:
        self.needed = False
        self._lock = Lock()
        self._values: OrderedDict[str, WholeValue] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> WholeValue | None:
        """The value of ``key`` if it is kept."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: str, reading: Reading) -> None:
        """Keep a value that was read just now."""
        with self._lock:
            self._drop(key)
            if reading.size <= _KEPT:
                self._values[key] = WholeValue(reading)
                self._size += reading.size
            while self._size > _KEPT:
                self._drop(next(iter(self._values)))

    def _drop(self, key: str) -> None:
        old = self._values.pop(key, None)
        self._size -= 0 if old is None else old.reading.size


__all__ = ["WholeValue", "WholeValues"]
