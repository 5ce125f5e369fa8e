"""Reading a level in one state: again where somebody has changed it meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import numpy as np

from zardine.engine.side_by_side import begun
from zardine.errors import (
    ArrayChangedError,
    CorruptionError,
    ReadOnlyError,
    SelectionError,
    StoreError,
    ZardineError,
    ZarrUserWarning,
)
from zardine.hierarchy.find import document_key
from zardine.hierarchy.place import find_place
from zardine.shown_text import shown
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.base import is_soon_unlocked
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.reading.ahead import NOTHING, AheadStore, Expected, reading_ahead, still_holds
from zardine.vectors.reading.kept import KeptLevel, KeptPlace
from zardine.vectors.reading.kept_levels import kept_place, note_size
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import NEXT, UNFINISHED, Level, VectorStore

T = TypeVar("T")


def open_level(path: StoreLike, number: int, expected: Expected = NOTHING) -> Level:
    """A level of the store at ``path``, to be read.

    What is ``expected`` to be asked for is asked for at once, where the store is far away: what is read of the level
    counts only if :func:`~zardine.vectors.reading.ahead.still_holds` says so of its store.

    Raises :class:`~zardine.errors.SelectionError` where there is none of that number, or one that is not finished.
    Warns of one that is older than level 0.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise SelectionError(f"a level is a number from 0 on, not {number!r}")
    store, inner = find_place(path)
    store = reading_ahead(store, inner, int(number), expected)
    place = child(inner, str(number))
    before = store.read(document_key(place))  # first: who puts another store here changes this again when all is there
    owner = VectorStore.open(StorePath(store, inner))
    if number and before is None:
        raise SelectionError(f"{owner.name} has no level {number}; it has {owner.finished_levels()}")
    level = owner.level(int(number), before)
    if number and UNFINISHED in level.document.attributes:
        reason = f"level {number} of {owner.name} is being made or removed, or a writer was killed over that"
        raise SelectionError(f"{reason}: build_pyramid or repair removes it; there are {owner.finished_levels()}")
    if owner.is_older(int(number)):
        told = f"level {number} of {shown(owner.name)} is older than level 0, which was changed since"
        warnings.warn(f"{told}: build_pyramid makes it anew", ZarrUserWarning, stacklevel=2)
    return KeptLevel.of(level) if isinstance(store, AheadStore) else level  # what was asked for ahead is given once


def _opened(path: StoreLike, number: int, expected: Expected = NOTHING) -> Level:
    """:func:`open_level`; the level is kept where ``path`` keeps documents.

    One of which something was read ahead is not, until it is seen that this holds.
    """
    if not isinstance(path, KeptPlace):
        return open_level(path, number, expected)
    before = path.versions()
    level = path.documents.to_keep(open_level(path, number, expected), before)
    if not isinstance(level.owner.store, AheadStore):
        path.documents.keep(number, level, path.store)
    return level


def open_to_go_through(path: StoreLike, number: int) -> KeptLevel:
    """:func:`open_level`; the level that is kept, where ``path`` keeps documents and they are still those stored."""
    kept = path.documents.get(number, path.store) if isinstance(path, KeptPlace) else None
    return kept if kept is not None and kept.is_as_kept() else KeptLevel.of(_opened(path, number))


def read_steadily(path: StoreLike, number: int, read: Callable[[Level], T], expected: Expected = NOTHING) -> T:
    """What ``read`` makes of a level; anew, a few times, where that was changed before it was done; then others wait.

    ``expected``: what it will ask for, as a rule.

    Raises :class:`~zardine.errors.StoreError` where that happens again and again, and what :func:`open_level` and
    ``read`` raise.
    """
    place = kept_place(path, number)
    if isinstance(place, KeptPlace):
        path = place
    kept = place.documents.get(number, place.store) if isinstance(place, KeptPlace) else None
    was_kept, before = kept is not None, 0 if kept is None else kept.nbytes
    level = _opened(place, number, expected) if kept is None else kept
    for attempt in attempts(CHANGES):
        if attempt.number > 1:  # after the wait, in which others change what was opened before
            level, was_kept = _opened(path, number), False
        try:
            found = read(level)
            if was_kept and isinstance(level, KeptLevel):
                good = level.is_as_kept()
            else:
                good = _is_current(level)
            if good and NEXT not in level.document.attributes:
                if isinstance(level.owner.store, AheadStore):
                    level.owner.store.forget()
                    if isinstance(place, KeptPlace):
                        place.documents.keep(number, level, place.store)
                if isinstance(level, KeptLevel) and level.nbytes != before:
                    note_size(path)
                return found
        except ArrayChangedError:
            pass
        except ZardineError:
            unchanged = not was_kept and level.is_unchanged() and NEXT not in level.document.attributes
            if unchanged and still_holds(level.owner.store, document_key(level.path)):
                raise
    level = _opened(path, number)
    with suppress(ReadOnlyError, OSError):
        store, inner = find_place(path)
        key = document_key(child(inner, "0"))
        if store.lock_is_exclusive and NEXT not in level.document.attributes and is_soon_unlocked(store, key):
            with store.lock(key):  # writers that are faster than we read wait
                return read(open_level(path, number))
    if NEXT in level.document.attributes:
        reason = "another store was to take the place of this one, which did not end: repair does that"
        raise CorruptionError(reason, array=level.path)
    raise StoreError(f"level {number} of {level.owner.name} changes again and again while it is read: try later")


def _is_current(level: Level) -> bool:
    """Whether what was read of a level is what it holds, and what was read ahead is what is stored."""
    store = level.owner.store
    current, holds = begun(store, (level.is_current, partial(still_holds, store, document_key(level.path))))
    return bool(current() and holds())
