"""How often what came to nothing is tried again, and how long is waited before: decided here, for all of zardine.

Writes that others overtake are tried for a minute (:data:`WRITES`), requests that break off a few times
(:data:`REQUESTS`), and so is what others change while it is read (:data:`CHANGES`), with random waits that grow.
Readers wait some seconds for a writer that edits a file (:data:`EDITS`, :data:`TORN`). Values that change while they
are looked at, and paths that others make and remove, are tried a number of times without a wait (:data:`LOOKS`,
:data:`RACES`). What is raised in the end is what the last attempt raised.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Final


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long to go on: ``fewest`` attempts in any case, then up to ``most`` of them within ``seconds``."""

    fewest: int = 1
    most: float = inf
    seconds: float = inf
    first_wait: float = 0.0005
    """Seconds, at most, before the second attempt; before each one after that up to twice as many."""
    longest_wait: float = 0.05


WRITES: Final = Patience(fewest=10, seconds=60.0)
"""Of conditional writes: a writer whom others always overtake gives up after a minute, however slow the store is."""

REQUESTS: Final = Patience(most=7, seconds=180.0, first_wait=0.15, longest_wait=2.5)
"""Of requests to object stores and web servers that break off, or that a busy service refuses."""

CHANGES: Final = Patience(most=11, first_wait=0.01, longest_wait=0.7)
"""Of reads of several values that make sense together only, and that others change meanwhile; about 2 seconds."""

EDITS: Final = Patience(seconds=2.0, longest_wait=0.005)
"""Of readers that wait for a writer that edits a file: one that is stopped (Ctrl-Z, a frozen container) never ends."""

TORN: Final = Patience(seconds=5.0)
"""Of readers that find a torn chunk in a file that a writer has locked, before they call it damaged."""

LOOKS: Final = 5
"""How often a value is read that has changed when all of it was read."""

RACES: Final = 100
"""How often a file or a directory is opened that others make, replace and remove at the same time."""


class Attempt:
    """One of several attempts; true if it is the last one, should it come to nothing.

    Who asks while it is made gets the answer that counts, also if time runs out right after that: else what came to
    nothing would end without an error.
    """

    __slots__ = ("_end", "_is_last", "_patience", "number")

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._end = time.monotonic() + patience.seconds
        self._is_last: bool | None = None
        self.number = 1

    def __bool__(self) -> bool:
        if self._is_last is None:
            patience = self._patience
            tired = self.number >= patience.most or time.monotonic() >= self._end
            self._is_last = tired and self.number >= patience.fewest
        return self._is_last

    def again(self) -> None:
        """Begin the next one."""
        self.number, self._is_last = self.number + 1, None


def attempts(patience: Patience | None = None) -> Iterator[Attempt]:
    """Give one attempt after the other, with waits: as many as ``patience`` allows (without: :data:`WRITES`).

    ``for last in attempts():`` try; where another writer came first and it is not the ``last`` time, go on.
    """
    patience = WRITES if patience is None else patience
    attempt = Attempt(patience)
    while True:
        yield attempt
        if attempt:
            return
        most = patience.first_wait * 2 ** min(attempt.number - 1, 30)
        time.sleep(random.uniform(0, min(patience.longest_wait, most)))
        attempt.again()


__all__ = ["CHANGES", "EDITS", "LOOKS", "RACES", "REQUESTS", "TORN", "WRITES", "Attempt", "Patience", "attempts"]
