"""What a change has found out of a level in a local folder, kept for the next one.

For changes of cells alone, which leave all documents but that of the level as they are. Whoever uses what is kept has
the lock of the level, and looks first: whether documents that were read are the ones that are stored, and whether
folders that were listed hold the same names. So what others have done meanwhile is seen, as when all is opened anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from zardine.cache import Cache
from zardine.engine.array_config import ArrayConfig
from zardine.frozen import with_fields
from zardine.hierarchy.find import document_key
from zardine.kernel import KERNEL
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore
from zardine.vectors.format.cell_documents import NONEMPTY
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import Seen

if TYPE_CHECKING:
    from zardine._kernel import KnownFile

_MOST: Final = 32 * 2**20
"""Bytes that are kept, about ..."""
_OF_A_LEVEL: Final = 32 * 2**10
"""... of which a level has so many ..."""
_OF_A_KEY: Final = 256
"""... and each key in a list of chunks, in documents and as a set."""


@dataclass(slots=True, eq=False)
class Kept:
    """What is known of a store after a change of it."""

    level: KeptLevel
    """Level 0: see :meth:`latest`."""
    config: ArrayConfig
    documents: list[KnownFile]
    """Of the root, and of arrays."""
    folders: list[str]
    names: bytes
    """In the folders: see ``names_in`` of the kernel."""
    size: int
    forms: dict[str, Any] = field(default_factory=dict)
    """What those who change cells of the level have worked out of it as it is, by their names for it."""
    later: Callable[[], KeptLevel] | None = None
    """Gives the level where it has gone on since, but for cells that they have changed."""

    def latest(self) -> KeptLevel:
        """Level 0 after the last change."""
        later = self.later
        if later is not None:
            self.level, self.later = later(), None
        return self.level

    def is_current(self) -> bool:
        """Whether all is as it was left, for who has the lock."""
        assert KERNEL is not None
        if not KERNEL.are_current(self.documents) or not self.latest().is_unchanged():
            return False
        try:
            return bool(KERNEL.names_in(self.folders) == self.names)
        except OSError:
            return False


_kept: Cache[tuple[LocalStore, str], Kept] = Cache(_MOST)


def known_of(store: Store, path: str) -> Kept | None:
    """Return what the last change of the store at ``path`` has left; it is not looked at whether that is so still."""
    return _kept.get((store, path)) if type(store) is LocalStore else None


def is_known(store: Store, path: str) -> bool:
    """Whether a change of the store at ``path`` has left anything here, and that is the same store still."""
    found = known_of(store, path)
    return found is not None and found.level.owner.is_as_opened()


def level_again(store: Store, path: str) -> KeptLevel | None:
    """Level 0 of the store at ``path`` as the last change has left it, if it is; for who has the lock."""
    if type(store) is not LocalStore:
        return None
    found = _kept.get((store, path))
    if found is None:
        return None
    if found.config is ArrayConfig.from_settings() and found.is_current():
        return found.latest()
    _kept.drop((store, path))
    return None


def keep(level: Level, settled: Seen, vertex_count: int) -> None:
    """Keep level 0, whose document has become ``settled`` by a change of cells alone; for who has the lock still."""
    owner, (group, version) = level.owner, settled
    store = owner.store
    if type(store) is not LocalStore or KERNEL is None or version is None or not isinstance(level, KeptLevel):
        return
    place = store, owner.path
    before = _kept.get(place)
    document = with_fields(level.document, vertex_count=vertex_count, attributes=group.attributes)
    new = level.changed(document, version, group)
    if before is not None and before.level is level:
        _kept.put(place, with_fields(before, level=new, forms={}, later=None), before.size)
        return
    _kept.drop(place)
    found = _look(store, level)
    if found is not None:
        keys = sum(len(array.attributes.get(NONEMPTY) or ()) for array in level.arrays.values())
        size = _OF_A_LEVEL + _OF_A_KEY * keys
        _kept.put(place, Kept(new, ArrayConfig.from_settings(), *found, size), size)


def _look(store: LocalStore, level: KeptLevel) -> tuple[list[KnownFile], list[str], bytes] | None:
    """The documents that were read and the folders that were listed, if they are the same now and no more was used."""
    assert KERNEL is not None
    owner, families = level.owner, level.listed.get("", [])
    if level.document.level or owner.version is None or owner.listed != [0]:
        return None
    if any(node is not None or name.partition("/")[0] in families for name, node in level.nodes.items()):
        return None
    versions = {document_key(owner.path): owner.version}
    for name in level.arrays:
        key = document_key(child(level.path, name))
        if key not in level.seen:
            return None
        versions[key] = level.seen[key]
    documents = [store.files.identify(key, version) for key, version in versions.items()]
    paths = [owner.path, *(child(level.path, name) if name else level.path for name in level.listed)]
    folders = [f"{store.root}/{path}" for path in paths]
    try:
        names = KERNEL.names_in(folders)
    except OSError:
        return None
    same = all(Level.names(level, name) == found for name, found in level.listed.items())
    if not same or owner.names("") != ["0"] or None in documents:
        return None
    return [each for each in documents if each is not None], folders, names


__all__ = ["Kept", "is_known", "keep", "known_of", "level_again"]
