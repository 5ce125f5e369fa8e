"""Nodes of a level that are planned part by part: cells are kept in a temporary file, as they are to be stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.nodes.array import Array
from zardine.stores.base import Store
from zardine.vectors.content.plan import Node
from zardine.vectors.format.cell_documents import NONEMPTY, key_texts
from zardine.vectors.storing.cell_bytes import encode_cells
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.spools import Spool, SpooledBlobs

_COUNTS = ("num_links", "num_physical_records")
"""What documents of groups count, of all parts together."""


@dataclass(slots=True)
class _Cells:
    """The cells of one array."""

    array: Array
    metadata: ArrayMetadata
    encoded: SpooledBlobs
    chunks: list[Ints] = field(default_factory=list)

    def add(self, chunks: Ints, cells: Sequence[BytesLike]) -> None:
        self.chunks.append(chunks)
        self.encoded.extend(encode_cells(self.array, [bytes(cell) for cell in cells]))

    def node(self, path: str) -> Node:
        chunks = np.concatenate(self.chunks)
        metadata = self.metadata.with_attributes({**self.metadata.attributes, NONEMPTY: key_texts(chunks)})
        return Node(path, metadata, chunks, self.encoded, encoded=True)


class NodeParts:
    """The nodes of the level at ``path``, of which each part has other cells."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._made: dict[str, _Cells | Node] = {}
        self._spool = Spool()

    def add(self, nodes: Iterable[Node]) -> None:
        """Add the nodes of a part: no cell of an array is in two of them."""
        for node in nodes:
            before = self._made.get(node.path)
            if node.chunks is not None:
                assert isinstance(node.metadata, ArrayMetadata)
                if not isinstance(before, _Cells):
                    made = Array(self._store, child(self._path, node.path), node.metadata)
                    before = self._made[node.path] = _Cells(made, node.metadata, SpooledBlobs(self._spool))
                before.add(node.chunks, node.cells)
            else:
                self._made[node.path] = node if not isinstance(before, Node) else _counted(before, node)

    def nodes(self) -> list[Node]:
        """Return the nodes of all parts together, in the order in which they were planned."""
        return [each if isinstance(each, Node) else each.node(path) for path, each in self._made.items()]


def _counted(before: Node, node: Node) -> Node:
    assert isinstance(node.metadata, GroupMetadata)
    old, new = before.metadata.attributes, node.metadata.attributes
    sums = {name: old[name] + new[name] for name in _COUNTS if name in new}
    return replace(node, metadata=node.metadata.with_attributes({**new, **sums}))


__all__ = ["NodeParts"]
