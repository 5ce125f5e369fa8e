"""Reading again what somebody has changed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from zardine.errors import ArrayChangedError
from zardine.vectors.level_access import Level
from zardine.vectors.steady_cells import WAITS

P = ParamSpec("P")
R = TypeVar("R")


def check_current(level: Level) -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where a level was changed since it was opened."""
    if not level.is_current():
        name = f"level {level.document.level} of {level.owner.name}"
        raise ArrayChangedError(f"{name} was changed while it was read: read it again")


def reread(read: Callable[P, R]) -> Callable[P, R]:
    """Let a function that reads a store begin anew, a few times, where that is changed meanwhile."""

    @wraps(read)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for wait in WAITS:
            try:
                return read(*args, **kwargs)
            except ArrayChangedError:
                time.sleep(wait)
        return read(*args, **kwargs)

    return run
