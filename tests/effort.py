"""How hard the campaigns try: a short part that is the same every time, or all of it.

``ZARDINE_SOAK=1``, which ``make soak`` sets, is the one switch: every case, more of each, and new seeds. Without it a
campaign runs the part that these functions choose; nothing else in the tests looks at the environment for that.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

SOAK = os.environ.get("ZARDINE_SOAK", "") not in ("", "0")


def some(cases: Iterable[T], one_in: int) -> Iterator[T]:
    """Yield the first case and one of every ``one_in`` that follow, always the same ones; all of them in a soak run."""
    rng = random.Random(one_in)
    chosen = 0
    for number, case in enumerate(cases):
        place = (number - 1) % one_in
        if place == 0:
            chosen = rng.randrange(one_in)
        if SOAK or number == 0 or place == chosen:
            yield case


def new_seed(fixed: int) -> int:
    """Return ``fixed``, or in a soak run a new number."""
    return secrets.randbits(32) if SOAK else fixed


def examples(count: int) -> int:
    """Return how many examples hypothesis tries where ``count`` are enough for every day."""
    return 20 * count if SOAK else count
