"""How far a tool is: the function that its caller gives, and what counts for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], object]
"""Called with the number of things that are done, and of all: from any thread, never twice at once."""


class Steps:
    """Count what is done, and tell a :data:`Progress`. May be called from any thread; the count never goes back."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._guard = Lock()

    def __call__(self, n: int = 1) -> None:
        """Say that ``n`` more are done."""
        with self._guard:
            self._done += n
            if self._progress is not None:
                self._progress(self._done, self._total)


class Shares:
    """Tell a :data:`Progress` of a work in several parts, one after the other, in thousandths of all of it.

    It is told that none is done when this is made.
    """

    _OF_A_PART = 1000

    def __init__(self, progress: Progress | None, parts: int) -> None:
        self._steps = Steps(progress, parts * self._OF_A_PART)
        self._steps(0)
        self._done = self._begun = 0

    def part(self) -> Callable[[float], None]:
        """Begin the next part; gives a function that is called with the share of it that is done, from 0 to 1."""
        before, self._begun = self._begun, self._begun + self._OF_A_PART

        def step(share: float) -> None:
            now = before + int(self._OF_A_PART * min(1.0, share))
            if now > self._done:
                self._steps(now - self._done)
                self._done = now

        return step


__all__ = ["Progress", "Shares", "Steps"]
