"""Jobs that tell how far they are, in a module that other processes import."""

from __future__ import annotations

import os
from collections.abc import Callable

from zardine.jobs.telling import Advance, Told


def tell(opener: Callable[[], Told], job: int) -> int:
    """Tell something of a job."""
    advance = Advance(opener(), 1, job, 0.0)
    advance(5)
    advance(7)
    return os.getpid()


def tell_for_ever(opener: Callable[[], Told], job: int) -> None:
    """Tell until the process is killed."""
    advance = Advance(opener(), 1, job, 0.0)
    while True:
        advance(1)


__all__ = ["tell", "tell_for_ever"]
