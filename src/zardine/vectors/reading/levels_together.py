"""Telling of all levels of a store in one state: again where levels come and go meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from zardine.engine.side_by_side import side_by_side
from zardine.errors import StoreError, ZardineError
from zardine.hierarchy.find import describe
from zardine.hierarchy.place import find_place
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.resolve import StoreLike
from zardine.vectors.storing.logs import revision_of
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.store_states import State, state_of

T = TypeVar("T")

_SAME: Final = 4
"""How often a store is found in the same state before what is wrong there is told: a level that is being removed, or
was begun, may have no document for as long as its writer does not come to go on. And how often it is told of levels
that were changed meanwhile before it is looked whether they are the same ones."""


def tell_of_levels(path: StoreLike, tell: Callable[[VectorStore, Sequence[Level], Sequence[int]], T]) -> T:
    """Return what ``tell`` makes of a store, its levels that readers know, and the numbers of those that are older.

    Where levels are made or removed meanwhile it is asked again, a few times: a level may be gone after it was listed,
    and what lies below it before its document is. Levels that others change again and again, but never replace, are
    told of as they are. Raises what ``tell`` and opening raise, of what stays the same, and
    :class:`~zardine.errors.StoreError` where levels come and go again and again.
    """
    state: State | None = None
    same = 0
    for last in attempts(CHANGES):
        try:
            owner = VectorStore.open(path)
            levels, older = owner.look_at_levels()
            found = tell(owner, levels, older)
            above = [each for each in levels if each.document.level]
            looks = [owner.is_unchanged, *(each.is_unchanged for each in above)]
            if not above or all(side_by_side(owner.store, looks)):
                return found
            if last.number >= _SAME and _are_changed_in_place(above, VectorStore.open(path).look_at_levels()[0]):
                return found
        except ZardineError:
            before, state = state, state_of(path)
            same = same + 1 if state == before else 1
            if last or same == _SAME:
                raise
    raise StoreError(f"the levels of {describe(*find_place(path))} change again and again: try later")


def _are_changed_in_place(before: Sequence[Level], now: Sequence[Level]) -> bool:
    """Whether the levels above 0 are those of ``before`` still, though changed: one made anew counts from the start."""
    new = {each.document.level: each.document.attributes for each in now if each.document.level}
    old = {each.document.level: each.document.attributes for each in before}
    return new.keys() == old.keys() and all(
        new[number] == old[number] or revision_of(new[number]) > revision_of(old[number]) for number in old
    )


__all__ = ["tell_of_levels"]
