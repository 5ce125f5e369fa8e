"""Opening the nodes of a level: the only place that knows of changes that were agreed on but not carried out yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zardine.arrays import Array
from zardine.engine.freshness import note_fresh
from zardine.errors import CorruptionError, MetadataError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.nodes import child_names, describe, find_node
from zardine.places import find_place
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.vectors.cell_arrays import CellArray, child
from zardine.vectors.documents import LevelDocument, RootDocument, parse_level, parse_root

PENDING = "zardine_pending"
"""Attribute of a level's group: documents by path below the level (``None``: the node goes) that count already, though
those that are stored are still the old ones. See :mod:`zardine.vectors.transactions`."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorStore:
    """A store, opened: where it is, and what its root group says."""

    store: Store
    path: str
    root: RootDocument

    @classmethod
    def open(cls, path: StoreLike, *, writable: bool = False) -> VectorStore:
        """The store at ``path``.

        Raises :class:`~zardine.errors.NodeNotFoundError` where nothing is, :class:`~zardine.errors.MetadataError` for
        what is no Zarr Vectors store or has a damaged root document.
        """
        from zardine.nodes import load_group

        store, inner = find_place(path, mode="r+" if writable else None)
        group = load_group(store, inner, 3)
        return cls(store, inner, parse_root(group.attributes, describe(store, inner)))

    @property
    def name(self) -> str:
        """For error texts."""
        return describe(self.store, self.path)

    def level_numbers(self) -> list[int]:
        """The levels that are stored, ascending."""
        return sorted(int(name) for name in child_names(self.store, self.path) if name.isdecimal() and name.isascii())

    def level(self, number: int) -> Level:
        """A level. Raises :class:`~zardine.errors.MetadataError` where it is missing or damaged."""
        path = child(self.path, str(number))
        node = find_node(self.store, path, 3)
        if not isinstance(node, GroupMetadata):
            raise MetadataError(f"{self.name} has no level {number}; it has {self.level_numbers()}")
        document = parse_level(node.attributes, number, self.root, self.name)
        return Level(self, path, document, node.attributes.get(PENDING) or {})


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A level, opened."""

    owner: VectorStore
    path: str
    document: LevelDocument
    pending: Mapping[str, Any]

    @property
    def rank(self) -> int:
        """Axes of its chunk grid."""
        return len(self.document.chunk_dims)

    def node(self, relative: str) -> NodeMetadata | None:
        """The document of the node below the level, or ``None``."""
        if relative in self.pending:
            document = self.pending[relative]
            return None if document is None else parse_node_json(document, f"the pending document of {relative}")
        return find_node(self.owner.store, child(self.path, relative), 3)

    def names(self, relative: str) -> list[str]:
        """Names of what is below a node (``""``: the level), sorted."""
        found = set(child_names(self.owner.store, child(self.path, relative) if relative else self.path))
        prefix = f"{relative}/" if relative else ""
        for path, document in self.pending.items():
            if path.startswith(prefix) and "/" not in path[len(prefix) :]:
                (found.discard if document is None else found.add)(path[len(prefix) :])
        return sorted(found)

    def cells(self, relative: str) -> CellArray | None:
        """An array with one cell for each chunk, or ``None``."""
        node = self.node(relative)
        if node is None:
            return None
        if not isinstance(node, ArrayMetadata):
            raise CorruptionError("a group is stored where an array of cells belongs", array=child(self.path, relative))
        array = CellArray.open(self.owner.store, child(self.path, relative), node)
        if array is not None and array.rank != self.rank:
            reason = f"an array of {array.rank} axes, where the level's chunks have {self.rank}"
            raise CorruptionError(reason, array=child(self.path, relative))
        return array

    def table(self, relative: str) -> Array | None:
        """An array with one row for each object or group, or ``None``."""
        node = self.node(relative)
        if not isinstance(node, ArrayMetadata):
            return None
        array = Array(self.owner.store, child(self.path, relative), node)
        note_fresh(array._source)
        return array

    def attributes(self, relative: str) -> Mapping[str, Any] | None:
        """The attributes of a node, or ``None`` where there is none."""
        node = self.node(relative)
        return None if node is None else node.attributes
