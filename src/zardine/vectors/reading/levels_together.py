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
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.store_states import State, state_of

T = TypeVar("T")

_SAME: Final = 4
"""How often a store is found in the same state before what is wrong there is told: a level that is being removed, or
was begun, may have no document for as long as its writer does not come to go on."""


def tell_of_levels(path: StoreLike, tell: Callable[[VectorStore, Sequence[Level], Sequence[int]], T]) -> T:
    """Return what ``tell`` makes of a store, its levels that readers know, and the numbers of those that are older.

    Where levels are made or removed meanwhile it is asked again, a few times: a level may be gone after it was listed,
    and what lies below it before its document is. Raises what ``tell`` and opening raise, of what stays the same, and
    :class:`~zardine.errors.StoreError` where levels change again and again.
    """
    state: State | None = None
    same = 0
    for last in attempts(CHANGES):
        try:
            owner = VectorStore.open(path)
            levels, older = owner.look_at_levels()
            found = tell(owner, levels, older)
            above = [each.is_unchanged for each in levels if each.document.level]
            if not above or all(side_by_side(owner.store, [owner.is_unchanged, *above])):
                return found
        except ZardineError:
            before, state = state, state_of(path)
            same = same + 1 if state == before else 1
            if last or same == _SAME:
                raise
    raise StoreError(f"the levels of {describe(*find_place(path))} change again and again: try later")


__all__ = ["tell_of_levels"]
