"""Objects that the end of the array cuts: when what they hold beyond it may give way to the fill value.

The specification recommends the fill value there (core 3.1, "Regular grids"). But another writer may have stored what
it appends already: before the document grows where locks are exclusive, and after it elsewhere, unseen by an older
handle. So a write that covers all of such an object that lies in the array

1. notes which version of the object is stored,
2. sees that nobody holds the lock of the document, as who appends does meanwhile (where locks are exclusive),
3. sees that the document has the shape of the handle,
4. replaces the object if it is of that version still.

What is stored in step 1 then holds nothing beyond the shape that counts, and who appends later reads what step 4 wrote
or makes it fail. Where any of that is not so, what lies beyond is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zardine.engine.change import Change, PendingChange, SeenVersion
from zardine.engine.freshness import has_shape
from zardine.engine.handle import ArrayHandle
from zardine.engine.workers import for_each, most_requests
from zardine.stores.base import Store


def versions_at_border(handle: ArrayHandle, changes: Iterable[Change | PendingChange]) -> dict[str, SeenVersion]:
    """Return which version is stored of the objects that may lose what they hold beyond the array, by key.

    These are objects of ``changes``. Where the result is not empty, the document has been looked at.
    Raises :class:`~zardine.errors.ArrayChangedError` as that does.
    """
    store = handle.store
    if not handle.is_shared or handle.watch.is_owned:
        return {}
    fitting = [change for change in changes if _may_give_way(change)]
    if not fitting:
        return {}
    if store.seems_missing(*(change.key for change in fitting)):
        seen = {change.key: SeenVersion(None) for change in fitting}
    elif store.has_cheap_looks and not has_shape(handle):  # in vain, then, to look at each
        return {}
    else:
        seen = _stored(store, fitting)
    if not seen or (store.lock_is_exclusive and store.is_locked(handle.watch.key)) or not has_shape(handle):
        return {}
    return seen


def _stored(store: Store, changes: Sequence[Change | PendingChange]) -> dict[str, SeenVersion]:
    """Which version of each object is stored, by key."""
    seen = {}

    def note(change: Change | PendingChange) -> None:
        reading = None if store.seems_missing(change.key) else store.read(change.key, ((0, 0),))
        if reading is None or reading.version is not None:
            seen[change.key] = SeenVersion(None if reading is None else reading.version)

    for_each(note, changes, len(changes), 1 if store.has_cheap_looks else most_requests(store))
    return seen


def _may_give_way(change: Change | PendingChange) -> bool:
    """Whether it would be of use: no stored chunk had to be read, or (where a look is cheap) not all of them."""
    layout = change.handle.layout
    axes = zip(layout.grids.storage, change.part.object, strict=True)
    if not any(axis.is_cut(coordinate) for axis, coordinate in axes):
        return False
    if change.covers_all() and change.part.count == layout.chunks_in_array(change.part.object):
        return True
    some = change.handle.store.has_cheap_looks
    return some and bool((change.replaces_all_valid() & ~change.needs_no_read()).any())


__all__ = ["versions_at_border"]
