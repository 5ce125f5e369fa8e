"""Documents of a store that are read once and kept: for one answer or change, or by who holds the store open.

What is kept is used without asking first. After an answer was read one looks whether the documents that were used, that
of the level and those of arrays, are the ones that are stored: if so, the answer is right, and else it is read anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from zardine.buffers import BytesLike
from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import leave_to_owner
from zardine.engine.side_by_side import side_by_side
from zardine.hierarchy.find import Seen, document_key
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.stores.base import Store, Version
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.format.cell_documents import NONEMPTY, ChunkList
from zardine.vectors.format.documents import RootDocument
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.cells_again import PARSED
from zardine.vectors.storing.steady import Table
from zardine.vectors.storing.store import Level, VectorStore

_OF_A_LEVEL: Final = 32 * 2**10
"""Bytes that are counted for a level, with what the root group says ..."""
_OF_A_NODE: Final = 1024
"""... and for each of its nodes, beside its document and its list of chunks."""
_AROUND_A_KEY: Final = 3
"""Two quotation marks and a comma."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptLevel(Level):
    """A level whose documents are read once: for as long as it is looked at whether it is still current."""

    nodes: dict[str, NodeMetadata | None] = field(default_factory=dict)
    listed: dict[str, list[str]] = field(default_factory=dict)
    arrays: dict[str, CellArray] = field(default_factory=dict)
    """That were opened to change the level, or are kept with it: they know what was read of their shards."""
    manifests: list[Manifests] = field(default_factory=list)
    """Those of its objects, once they were read: see :mod:`zardine.vectors.reading.kept_manifests`."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes in memory of each of ``nodes``, about; not for one answer."""
    versions: dict[str, Version | None] | None = None
    """Of documents that were read, by key, from before that; ``None`` for one answer: others look as they read."""
    folders: dict[str, Version] = field(default_factory=dict)
    """The same of what was listed, by prefix."""
    lists: list[ChunkList] = field(default_factory=list)
    """Lists of chunks that differ, of all documents."""
    to_change: bool = False
    """Whether it is to be changed, under a lock: then lists of chunks stay text, which goes on in new documents."""

    @classmethod
    def of(cls, level: Level, *, to_change: bool = False) -> KeptLevel:
        """Return the same level."""
        if isinstance(level, KeptLevel):
            return level
        facts = level.owner, level.path, level.document, level.pending, level.version, level.log, level.group
        return cls(*facts, to_change=to_change)

    def node(self, relative: str, seen: Seen | None = None) -> NodeMetadata | None:
        """See :meth:`Level.node`; lists of chunks are kept as numbers, and equal ones once."""
        if relative not in self.nodes:
            store, key = self.owner.store, document_key(child(self.path, relative))
            looks = self.versions is not None and store.has_cheap_looks
            version = store.version(key) if looks else None
            seen = Seen() if seen is None else seen
            found = Level.node(self, relative, seen)
            if self.versions is not None:
                version = version if looks else seen.version
                self.versions.setdefault(
                    key, version
                )  # other programs may add it without a change of the level's document
            kept = found if self.to_change else self._with_numbers(found)
            if self.versions is not None:
                self.sizes[relative] = _size_of(seen.document, found, kept)
            self.nodes[relative] = kept
        return self.nodes[relative]

    def names(self, relative: str) -> list[str]:
        """See :meth:`Level.names`."""
        if self.to_change and relative and relative.partition("/")[0] not in self.names(""):
            return []  # one look tells of every family that it is not there
        if relative not in self.listed:
            if self.versions is not None:
                store, prefix = self.owner.store, f"{child(self.path, relative) if relative else self.path}/"
                version = store.version_of_names(prefix)
                if version is not None:
                    self.folders.setdefault(prefix, version)
            self.listed[relative] = Level.names(self, relative)
        return list(self.listed[relative])

    def cells(self, relative: str) -> CellArray | None:
        """See :meth:`Level.cells`."""
        if not self.to_change and self.versions is None:
            return Level.cells(self, relative)
        known, config = self.arrays.get(relative), ArrayConfig.from_settings()
        if known is not None and (self.to_change or known.array._handle.config is config):
            if not (self.to_change or self.owner.store.has_cheap_looks):
                leave_to_owner(known.array._handle)  # at the end it is seen whether that was right
            return known
        found = Level.cells(self, relative)
        if found is not None and (self.to_change or not config.cache):  # chunks that an array keeps are to go with it
            self.arrays[relative] = found
        return found

    @property
    def _takes_as_stored(self) -> bool:
        return self.to_change  # under a lock

    def values(self, relative: str) -> Table | None:
        """See :meth:`Level.values`; who has used a document to change the table looks whether it is another one now."""
        if self.to_change and relative in self.nodes:
            return Level(self.owner, self.path, self.document, self.pending, self.version, self.log).values(relative)
        return Level.values(self, relative)

    def is_as_kept(self) -> bool:
        """Whether the documents that were used are those that are stored."""
        store, known = self.owner.store, list((self.versions or {}).items())
        listed = list(self.folders.items())
        if any(not version or store.version_of_names(prefix) != version for prefix, version in listed):
            return False
        if store.has_cheap_looks:
            looks = (
                store.version(key) == version if version is None else store.is_unchanged(key, version)
                for key, version in known
            )
            return self.is_unchanged() and all(looks)
        looks_far: list[Callable[[], bool]] = [self.is_unchanged]
        looks_far += [partial(self._has_version, key, version) for key, version in known]
        looks_far += [partial(self._has_names, relative, names) for relative, names in list(self.listed.items())]
        return all(side_by_side(store, looks_far))

    def _has_version(self, key: str, version: Version | None) -> bool:
        return self.owner.store.version(key) == version

    def _has_names(self, relative: str, names: list[str]) -> bool:
        """Whether what is below a node is what was listed: other programs may add to it."""
        return Level.names(self, relative) == names

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        lists = sum(each.chunks.nbytes for each in list(self.lists))
        return _OF_A_LEVEL + sum(list(self.sizes.values())) + 2 * lists  # other threads may read more of it

    def _with_numbers(self, node: NodeMetadata | None) -> NodeMetadata | None:
        keys = node.attributes.get(NONEMPTY) if isinstance(node, ArrayMetadata) else None
        made = None if keys is None else ChunkList.of(keys, self.rank)
        if made is None or not isinstance(node, ArrayMetadata):
            return node
        same = next((each for each in self.lists if each == made), None)
        if same is None:
            self.lists.append(made)
        return node.with_attributes({**node.attributes, NONEMPTY: made if same is None else same})


def _size_of(document: BytesLike | None, node: NodeMetadata | None, kept: NodeMetadata | None) -> int:
    """Bytes in memory of a node, about, of which the ``document`` was read, and all is kept but the text of a list."""
    if document is None or node is None:
        return _OF_A_NODE
    size = len(bytes(document).translate(None, b" \n"))
    if kept is not node:
        keys = node.attributes[NONEMPTY]
        size -= sum(map(len, keys)) + _AROUND_A_KEY * len(keys)
    return _OF_A_NODE + PARSED * max(0, size)


class KeptDocuments:
    """Levels of a store, as they were when they were last opened to be read."""

    def __init__(self, kind: str) -> None:
        self._levels: dict[int, KeptLevel] = {}
        self.kind = kind
        """The geometry, as it was told last."""

    def at(self, path: StoreLike) -> KeptPlace:
        """Return the place of the store, for functions that read it: they use what is kept."""
        store, inner = find_place(path)
        return KeptPlace(store, inner, self)

    def get(self, number: int, store: Store) -> KeptLevel | None:
        """Return a level that is kept, to be read from ``store``; ``None`` for none."""
        level = self._levels.get(number) if type(number) is int else None
        if level is None or "" in list(level.folders.values()):
            # who comes next may see other names in the same version
            return None
        if level.owner.store is store:
            return level
        return replace(level, owner=replace(level.owner, store=store))

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return sum(level.nbytes for level in list(self._levels.values()))

    def to_keep(self, level: Level, before: dict[str, Version | None]) -> Level:
        """Return a level that was opened just now as one that can be kept; ``before`` are versions from before that.

        As it is where its change is not carried out, or it cannot be told from the one that will be there then.
        """
        if level.version is None or not level.is_settled:
            return level
        return replace(KeptLevel.of(level), versions=before)

    def keep(self, number: int, level: Level, store: Store) -> None:
        """Keep a level, if it can be kept (:meth:`to_keep`), to be read from ``store``."""
        self.kind = kind_of(level.owner.root)
        kinds = level.owner.root.geometry_types
        if any(each.owner.root.geometry_types != kinds for each in list(self._levels.values())):
            self._levels.clear()  # another store has taken the place
        self._levels.pop(number, None)
        if isinstance(level, KeptLevel) and level.versions is not None:
            same = level.owner.store is store
            self._levels[int(number)] = level if same else replace(level, owner=replace(level.owner, store=store))


class KeptPlace(StorePath):
    """The place of a store of which documents are kept."""

    __slots__ = ("documents",)

    def __init__(self, store: Store, path: str, documents: KeptDocuments) -> None:
        super().__init__(store, path)
        self.documents = documents

    def look_at_kind(self) -> None:
        """Ask for the geometry, which is another one where another store has taken the place."""
        self.documents.kind = kind_of(VectorStore.open(self).root)

    def versions(self) -> dict[str, Version | None]:
        """Return the versions of documents that opening a level reads; nothing where that costs requests."""
        key = document_key(self.path)
        return {key: self.store.version(key)} if self.store.has_cheap_looks else {}


def kind_of(root: RootDocument) -> str:
    """The geometry of a store, as the format calls it: ``"point_cloud"``, ``"streamline"``, …."""
    return str(root.geometry_types[0]) if root.geometry_types else "point_cloud"


__all__ = ["KeptDocuments", "KeptLevel", "KeptPlace", "kind_of"]
