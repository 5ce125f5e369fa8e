"""Reading a level in one state: again where somebody has changed it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import numpy as np

from zardine.errors import ArrayChangedError, CorruptionError, ReadOnlyError, SelectionError, StoreError, ZardineError
from zardine.hierarchy.find import document_key
from zardine.hierarchy.place import find_place
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import NEXT, UNFINISHED, Level, VectorStore

T = TypeVar("T")


def open_level(path: StoreLike, number: int) -> Level:
    """A level of the store at ``path``, to be read.

    Raises :class:`~zardine.errors.SelectionError` where there is none of that number, or one that is not finished.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise SelectionError(f"a level is a number from 0 on, not {number!r}")
    store, inner = find_place(path)
    place = child(inner, str(number))
    before = store.read(document_key(place))  # first: who puts another store here changes this again when all is there
    owner = VectorStore.open(StorePath(store, inner))
    if number and before is None:
        raise SelectionError(f"{owner.name} has no level {number}; it has {owner.finished_levels()}")
    level = owner.level(int(number), before)
    if number and UNFINISHED in level.document.attributes:
        reason = f"level {number} of {owner.name} is being made or removed, or a writer was killed over that"
        raise SelectionError(f"{reason}: build_pyramid or repair removes it; there are {owner.finished_levels()}")
    return level


def read_steadily(path: StoreLike, number: int, read: Callable[[Level], T]) -> T:
    """What ``read`` makes of a level; anew, a few times, where that was changed before it was done; then others wait.

    Raises :class:`~zardine.errors.StoreError` where that happens again and again, and what :func:`open_level` and
    ``read`` raise.
    """
    level = open_level(path, number)
    for _ in attempts(CHANGES):
        try:
            found = read(level)
            if level.is_current() and NEXT not in level.document.attributes:
                return found
        except ArrayChangedError:
            pass
        except ZardineError:
            if level.is_unchanged() and NEXT not in level.document.attributes:
                raise
        level = open_level(path, number)
    with suppress(ReadOnlyError, OSError):
        store, inner = find_place(path)
        if store.lock_is_exclusive and NEXT not in level.document.attributes:
            with store.lock(document_key(child(inner, "0"))):  # writers that are faster than we read wait
                return read(open_level(path, number))
    if NEXT in level.document.attributes:
        reason = "another store was to take the place of this one, which did not end: repair does that"
        raise CorruptionError(reason, array=level.path)
    raise StoreError(f"level {number} of {level.owner.name} changes again and again while it is read: try later")
