"""Arrays of cells in local folders that were opened lately: not made anew while their documents are the same."""

from __future__ import annotations

from typing import Final

from zardine.cache import Cache
from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import leave_to_owner
from zardine.frozen import with_fields
from zardine.hierarchy.find import document_key, parse_found
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import Store, Version
from zardine.stores.file_seam import local_folder
from zardine.vectors.storing.cells import CellArray

_MOST: Final = 32 * 2**20
"""Bytes that are kept, about."""
PARSED: Final = 8
"""Bytes that what a document says takes in memory, for each of its own, about."""

_opened: Cache[tuple[str, str], tuple[bytes, ArrayConfig, CellArray]] = Cache(_MOST)
"""By folder and path: the document that was read, the settings, and what was opened by them. Nobody changes it."""


def open_again(store: Store, path: str, seen: dict[str, Version] | None = None) -> CellArray | None:
    """Return the array of cells at ``path``; ``None`` where it is to be opened in the usual way.

    ``seen`` gets the version of its document, by its key. Raises as :meth:`CellArray.open`.
    """
    config = ArrayConfig.from_settings()
    folder = local_folder(store)
    if folder is None or config.cache:  # chunks that an array keeps are to go with it
        return None
    reading = store.read(document_key(path))
    if reading is None:
        return None
    if seen is not None and reading.version is not None:
        seen[document_key(path)] = reading.version
    data, place = bytes(reading.parts[0]), (folder, path)
    known = _opened.get(place)
    if known is not None and known[0] == data and known[1] is config:
        array = known[2].array._with_handle(with_fields(known[2].array._handle, store=store))
        leave_to_owner(array._handle)
        return CellArray(array, known[2].origin)
    node = parse_found(DOCUMENT_NAME, {DOCUMENT_NAME: data}, store, path)
    if not isinstance(node, ArrayMetadata):
        return None
    found = CellArray.open(store, path, node)
    if found is not None:
        _opened.put(place, (data, config, found), 1024 + PARSED * len(data))
    return found


__all__ = ["PARSED", "open_again"]
