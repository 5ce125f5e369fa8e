"""Counting the requests that an object store sends."""

from __future__ import annotations

from threading import Lock
from typing import Any


class RequestMeter:
    """A number that many threads add to."""

    __slots__ = ("_lock", "sent")

    def __init__(self) -> None:
        self._lock = Lock()
        self.sent = 0

    def add(self, number: int = 1) -> None:
        """Count ``number`` requests."""
        with self._lock:
            self.sent += number

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestMeter, ()  # a copy in another process counts its own


__all__ = ["RequestMeter"]
