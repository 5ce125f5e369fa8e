"""Names of attributes that are those of others, misspelled: nothing new is made by accident."""

from __future__ import annotations

from collections.abc import Collection

from zardine.errors import DataError
from zardine.vectors.content.columns import meant_name
from zardine.vectors.storing.store import Level


def check_spelling(level: Level, kind: str, given: Collection[str], otherwise: str) -> None:
    """Raise :class:`DataError` for a name that looks like that of an attribute which is not given too.

    ``kind``: of what they are attributes. ``otherwise`` says what to do if it is a new one.
    """
    there = level.names(f"{kind}_attributes") if given else []
    left = [name for name in there if name not in given]
    for name in given:
        meant = None if name in there else meant_name(name, left)
        if meant is not None:
            reason = f"{level.owner.name} has no {kind} attribute {name!r}; did you mean {meant!r}?"
            raise DataError(f"{reason} {otherwise}")
