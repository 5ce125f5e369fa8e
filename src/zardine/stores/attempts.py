"""Trying a conditional write again after another writer came first: bounded, with random waits that grow."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final

PATIENCE: Final = 60.0
"""Seconds after which a writer that others always overtake gives up."""

_FEWEST: Final = 10
"""Attempts made in any case, however slow the store is."""

_LONGEST_WAIT: Final = 0.05
"""Seconds."""


def attempts() -> Iterator[bool]:
    """``for last in attempts():`` try; where another writer came first and it is not the ``last`` time, go on."""
    end = time.monotonic() + PATIENCE
    done = 0
    while True:
        last = done + 1 >= _FEWEST and time.monotonic() >= end
        yield last
        if last:
            return
        time.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.0005 * 2 ** min(done, 10))))
        done += 1


__all__ = ["attempts"]
