"""Levels of stores in local folders that were read lately: opened once, while their documents are what they were.

Who reads a store by its path, again and again, reads it as who holds it open (:mod:`~zardine.vectors.reading.kept`).
"""

from __future__ import annotations

import os
from typing import Final

from zardine.cache import Cache
from zardine.hierarchy.place import find_place
from zardine.stores.local.store import LocalStore
from zardine.stores.resolve import StoreLike
from zardine.vectors.reading.kept import KeptDocuments, KeptPlace

_MOST: Final = 64 * 2**20
"""Bytes that are kept, of all stores together."""

_Place = tuple[str, str]
_kept: Cache[_Place, KeptPlace] = Cache(_MOST)


def lasting(path: StoreLike, number: int) -> StoreLike:
    """The place of the store at ``path``, of which level 0 is kept; ``path`` itself where that cannot be.

    Raises as :func:`~zardine.hierarchy.place.find_place`.
    """
    if not isinstance(path, str | os.PathLike) or type(number) is not int or number != 0:
        return path  # stores that a user made are asked each time; other levels warn when they are opened
    store, inner = find_place(path)
    if type(store) is not LocalStore:
        return path
    place = str(store.root), inner
    known = _kept.get(place)
    if known is None:
        known = KeptPlace(store, inner, KeptDocuments(""))
        _kept.put(place, known, known.documents.nbytes)
    return known


def note_size(path: StoreLike) -> None:
    """Count what is kept of the store at ``path``, of which more was read."""
    if isinstance(path, KeptPlace):
        place = str(path.store.root) if isinstance(path.store, LocalStore) else "", path.path
        if _kept.get(place) is path:
            _kept.put(place, path, path.documents.nbytes)


__all__ = ["lasting", "note_size"]
