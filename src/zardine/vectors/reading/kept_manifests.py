"""Manifests of levels in local folders, and of kept levels: not read again while nobody writes what they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from zardine.cache import Cache
from zardine.hierarchy.find import document_key
from zardine.stores.base import Store, Version
from zardine.stores.file_seam import local_folder
from zardine.vectors.reading.ahead import AheadStore
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import Level

_MOST: Final = 128 * 2**20
"""Bytes that are kept, of all stores together."""
_PARTS: Final = ("object_index", "object_index/manifests", "object_index/object_ids")

_MANIFESTS: Final = "object_index/manifests/*"
"""What their size is noted by, among those of documents."""

_Versions = Mapping[str, Version | None]
_kept: Cache[tuple[str, str], tuple[_Versions, Manifests]] = Cache(_MOST)


def kept_manifests(level: Level, read: Callable[[], Manifests | None]) -> Manifests | None:
    """What ``read`` gives of ``level``, or gave when all that it reads was as it is now."""
    store = level.owner.store
    if isinstance(level, KeptLevel) and level.versions is not None and not store.has_cheap_looks:
        return _kept_with(level, read)
    folder = local_folder(store)
    if folder is None or not level.is_settled:
        return read()
    place = folder, level.path
    known = _kept.get(place)
    if known is not None and _are_unchanged(store, known[0]):
        return known[1]
    documents = {key: store.version(key) for key in (document_key(child(level.path, part)) for part in _PARTS)}
    if not _knows_no_others(level, documents):
        return read()
    before = {**documents, **_versions_of_objects(level)}  # documents are read after their versions were taken
    found = read()
    if found is not None and _are_unchanged(store, before):
        found.freeze()
        _kept.put(place, (before, found), found.nbytes)
    return found


def _kept_with(level: KeptLevel, read: Callable[[], Manifests | None]) -> Manifests | None:
    """The same of a level far away, with which they are kept: what they were read from is looked at as documents are.

    That is known where it was read ahead.
    """
    if level.manifests or level.versions is None:
        return level.manifests[0] if level.manifests else read()
    found, store = read(), level.owner.store
    if found is None or not isinstance(store, AheadStore) or found.nbytes > _MOST:
        return found
    versions = {key: store.version_given(key) for key in _objects_of(level)}
    if None not in versions.values():
        found.freeze()
        level.versions.update(versions)
        level.sizes[_MANIFESTS] = found.nbytes
        level.manifests.append(found)
    return found


def _knows_no_others(level: Level, documents: _Versions) -> bool:
    """Whether the documents that the level knows of its objects are none, or those of these versions."""
    if not isinstance(level, KeptLevel):
        return True
    known = level.versions or {}
    seen = [document_key(child(level.path, part)) for part in _PARTS if part in level.nodes]
    return all(key in known and known[key] == documents[key] for key in seen)


def _versions_of_objects(level: Level) -> _Versions:
    """Of every object that manifests and ids are read from; ``None`` of what is not there."""
    return {key: level.owner.store.version(key) for key in _objects_of(level)}


def _objects_of(level: Level) -> list[str]:
    """The keys of what manifests and ids are read from."""
    keys: list[str] = []
    for part in _PARTS[1:]:
        table = level.table(part)
        if table is not None and table.ndim == 1:
            handle = table._handle
            keys += [handle.key((number,)) for number in range(-(-len(table) // table.chunks[0]))]
    return keys


def _are_unchanged(store: Store, versions: _Versions) -> bool:
    return all(
        store.is_unchanged(key, version) if version is not None else store.version(key) is None
        for key, version in versions.items()
    )


__all__ = ["kept_manifests"]
