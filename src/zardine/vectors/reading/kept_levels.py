"""Levels of stores in local folders that were read lately: opened once, while their documents are what they were.

Who reads a store by its path, again and again, reads it as who holds it open (:mod:`~zardine.vectors.reading.kept`).
"""

from __future__ import annotations

import os
from typing import Final

from zardine.cache import Cache
from zardine.hierarchy.find import document_key
from zardine.hierarchy.place import find_place
from zardine.stores.base import Version
from zardine.stores.file_seam import local_folder
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.reading.kept import KeptDocuments, KeptPlace
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.cells_again import PARSED

_MOST: Final = 64 * 2**20
"""Bytes that are kept, of all stores together."""
_OF_A_PLACE: Final = 1024
"""Bytes that are counted for a store of which nothing is kept yet."""

_Place = tuple[str, str]
_kept: Cache[_Place, tuple[KeptPlace, Version]] = Cache(_MOST)
"""By folder and path of a store: the place, and the version of the folder of level 0 when it was first read."""


def kept_place(path: StoreLike, number: int) -> StoreLike:
    """The place of the store at ``path``, of which level 0 is kept; where that cannot be, one of which nothing is.

    A level that was changed just now, or is read for the first time since it was, is opened for one answer: to keep it
    takes longer. Raises as :func:`~zardine.hierarchy.place.find_place`.
    """
    if not isinstance(path, str | os.PathLike) or type(number) is not int or number != 0:
        return path  # stores that a user made are asked each time; other levels warn when they are opened
    store, inner = find_place(path)
    folder = local_folder(store)
    if folder is None:
        return StorePath(store, inner)  # that was found already
    place = folder, inner
    known = _kept.get(place)
    level = None if known is None else known[0].documents.get(0, known[0].store)
    if known is not None and level is not None and level.is_unchanged():
        return known[0]
    version = store.version_of_names(f"{child(inner, '0')}/")
    if known is not None and level is None and version and known[1] == version:
        return known[0]
    if version:
        kept = KeptPlace(store, inner, KeptDocuments(""))
        _kept.put(place, (kept, version), _OF_A_PLACE)
    else:
        _kept.drop(place)
    return StorePath(store, inner)


def note_size(path: StoreLike) -> None:
    """Count what is kept of the store at ``path``, of which more was read."""
    folder = local_folder(path.store) if isinstance(path, KeptPlace) else None
    if isinstance(path, KeptPlace) and folder is not None:
        place = folder, path.path
        known = _kept.get(place)
        if known is not None and known[0] is path:
            keys = document_key(path.path), document_key(child(path.path, "0"))
            size = PARSED * sum(path.store.size(key) or 0 for key in keys)
            _kept.put(place, known, _OF_A_PLACE + size + path.documents.nbytes)


__all__ = ["kept_place", "note_size"]
