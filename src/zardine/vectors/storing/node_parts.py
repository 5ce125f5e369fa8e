"""Nodes of a level that are planned part by part: cells are kept in a temporary file, as they are to be stored."""

from __future__ import annotations

import tempfile
import threading
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.nodes.array import Array
from zardine.vectors.content.plan import Node
from zardine.vectors.format.cell_documents import NONEMPTY, key_texts
from zardine.vectors.storing.cell_bytes import encode_cells
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import Level

_COUNTS = ("num_links", "num_physical_records")
"""What documents of groups count, of all parts together."""


class _Spool:
    """A temporary file that bytes are put into, and taken out of by several threads."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # it goes with this object
        self._lock = threading.Lock()

    def put(self, data: BytesLike) -> int:
        """Put bytes at the end; gives where they are."""
        with self._lock:
            at = self._file.seek(0, 2)
            self._file.write(data)
            return at

    def take(self, at: int, length: int) -> bytes:
        """Return what was put at a place."""
        with self._lock:
            self._file.seek(at)
            return self._file.read(length)


class _Spooled(Sequence[bytes]):
    """Encoded cells that are in a file."""

    def __init__(self, spool: _Spool) -> None:
        self._spool = spool
        self._places, self._lengths = array("q"), array("q")

    def extend(self, cells: Sequence[BytesLike]) -> None:
        at = self._spool.put(b"".join(cells))
        for cell in cells:
            self._places.append(at)
            self._lengths.append(len(cell))
            at += len(cell)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        return self._spool.take(self._places[index], self._lengths[index])


@dataclass(slots=True)
class _Cells:
    """The cells of one array."""

    array: Array
    metadata: ArrayMetadata
    encoded: _Spooled
    chunks: list[Ints] = field(default_factory=list)

    def add(self, chunks: Ints, cells: Sequence[BytesLike]) -> None:
        self.chunks.append(chunks)
        self.encoded.extend(encode_cells(self.array, [bytes(cell) for cell in cells]))

    def node(self, path: str) -> Node:
        chunks = np.concatenate(self.chunks)
        metadata = self.metadata.with_attributes({**self.metadata.attributes, NONEMPTY: key_texts(chunks)})
        return Node(path, metadata, chunks, self.encoded, encoded=True)


class NodeParts:
    """The nodes of a level, of which each part has other cells."""

    def __init__(self, level: Level) -> None:
        self._store, self._path = level.owner.store, level.path
        self._made: dict[str, _Cells | Node] = {}
        self._spool = _Spool()

    def add(self, nodes: Iterable[Node]) -> None:
        """Add the nodes of a part: no cell of an array is in two of them."""
        for node in nodes:
            before = self._made.get(node.path)
            if node.chunks is not None:
                assert isinstance(node.metadata, ArrayMetadata)
                if not isinstance(before, _Cells):
                    made = Array(self._store, child(self._path, node.path), node.metadata)
                    before = self._made[node.path] = _Cells(made, node.metadata, _Spooled(self._spool))
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
