"""Skeletons and meshes of neuroglancer as bytes. Pure.

A skeleton: how many vertices and edges, positions in float32, edges in uint32, then each attribute. A mesh (the legacy
format of one resolution): how many vertices, positions, and triangles up to the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.errors import CorruptionError, DataError
from zardine.vectors.content.arguments import shown
from zardine.vectors.exchange.precomputed.numbers import finite_numbers
from zardine.vectors.exchange.precomputed.sharding import Sharding

TYPE: Final = "neuroglancer_skeletons"
MESH_TYPE: Final = "neuroglancer_legacy_mesh"
IDENTITY: Final = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
_KINDS: Final = ("float32", "int8", "uint8", "int16", "uint16", "int32", "uint32")

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class VertexAttribute:
    """A value, or several, of each vertex."""

    id: str
    data_type: str
    num_components: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SkeletonInfo:
    """The document of a folder of skeletons."""

    transform: tuple[float, ...] = IDENTITY
    """``(3, 4)``, row by row: from stored positions to nanometres."""
    vertex_attributes: tuple[VertexAttribute, ...] = ()
    sharding: Sharding | None = None
    segment_properties: str | None = None
    """The folder of what is known of whole skeletons."""

    def document(self) -> dict[str, Any]:
        """Return the document."""
        found: dict[str, Any] = {
            "@type": TYPE,
            "transform": list(self.transform),
            "vertex_attributes": [
                {"id": each.id, "data_type": each.data_type, "num_components": each.num_components}
                for each in self.vertex_attributes
            ],
        }
        if self.sharding is not None:
            found["sharding"] = self.sharding.document()
        return found if self.segment_properties is None else {**found, "segment_properties": self.segment_properties}

    @classmethod
    def parse(cls, document: Mapping[str, Any], where: str) -> SkeletonInfo:
        """Return what a document says. Raises :class:`DataError`."""
        transform = finite_numbers(document.get("transform", list(IDENTITY)), 12)
        if transform is None:
            raise DataError(f"{where}: transform is a list of 12 numbers, not {shown(document['transform'])}")
        listed = document.get("vertex_attributes") or []
        if not isinstance(listed, list):
            raise DataError(f"{where}: vertex_attributes are a list of tables, not {shown(listed)}")
        attributes = tuple(_attribute(each, where) for each in listed)
        names = [each.id for each in attributes]
        if len(set(names)) != len(names):
            raise DataError(f"{where}: vertex_attributes have one id twice: {shown(names)}")
        return cls(
            transform=tuple(transform),
            vertex_attributes=attributes,
            sharding=Sharding.parse(document.get("sharding"), f"{where}: sharding"),
            segment_properties=properties_folder(document, where),
        )


def properties_folder(document: Mapping[str, Any], where: str) -> str | None:
    """Return the folder of what is known of whole segments, if a document names one. Raises :class:`DataError`."""
    found = document.get("segment_properties")
    if found is not None and not isinstance(found, str):
        raise DataError(f"{where}: segment_properties is the name of a folder, not {shown(found)}")
    return found or None


def encode_skeleton(positions: Array, edges: Array, attributes: Mapping[str, Array], info: SkeletonInfo) -> bytes:
    """Return a skeleton: ``positions`` ``(N, 3)``, ``edges`` ``(E, 2)``, and the attributes of the document."""
    parts = [np.array([len(positions), len(edges)], "<u4").tobytes(), positions.astype("<f4").tobytes()]
    parts.append(edges.astype("<u4").tobytes())
    for each in info.vertex_attributes:
        parts.append(attributes[each.id].astype(np.dtype(each.data_type).newbyteorder("<")).tobytes())
    return b"".join(parts)


def decode_skeleton(stored: BytesLike, info: SkeletonInfo) -> tuple[Array, Array, dict[str, Array]]:
    """Return positions ``(N, 3)``, edges ``(E, 2)`` and attributes. Raises :class:`CorruptionError`."""
    view = memoryview(stored)
    vertices, edges = int.from_bytes(view[:4], "little"), int.from_bytes(view[4:8], "little")
    widths = [np.dtype(each.data_type).itemsize * each.num_components for each in info.vertex_attributes]
    size = 8 + vertices * (12 + sum(widths)) + 8 * edges
    if len(view) < 8 or len(view) != size:
        raise CorruptionError(
            f"a skeleton of {vertices} vertices and {edges} edges takes {size} bytes; there are {len(view)}"
        )
    place = 8 + 12 * vertices
    positions = np.frombuffer(view[8:place], "<f4").reshape(-1, 3)
    links = np.frombuffer(view[place : place + 8 * edges], "<u4").reshape(-1, 2).astype(np.int64)
    if len(links) and int(links.max()) >= vertices:
        raise CorruptionError(f"an edge names vertex {int(links.max())}; there are {vertices}")
    place += 8 * edges
    attributes = {}
    for each, width in zip(info.vertex_attributes, widths, strict=True):
        values = np.frombuffer(view[place : place + width * vertices], np.dtype(each.data_type).newbyteorder("<"))
        attributes[each.id] = values if each.num_components == 1 else values.reshape(-1, each.num_components)
        place += width * vertices
    return positions, links, attributes


def encode_mesh(positions: Array, triangles: Array) -> bytes:
    """Return a mesh: ``positions`` ``(N, 3)`` in nanometres and ``triangles`` ``(F, 3)``."""
    count = len(positions).to_bytes(4, "little")
    return count + positions.astype("<f4").tobytes() + triangles.astype("<u4").tobytes()


def decode_mesh(stored: BytesLike) -> tuple[Array, Array]:
    """Return positions ``(N, 3)`` and triangles ``(F, 3)``. Raises :class:`CorruptionError`."""
    view = memoryview(stored)
    count = int.from_bytes(view[:4], "little")
    place = 4 + 12 * count
    if len(view) < 4 or place > len(view) or (len(view) - place) % 12:
        raise CorruptionError(
            f"a mesh of {count} vertices takes {place} bytes and 12 for each triangle; there are {len(view)}"
        )
    triangles = np.frombuffer(view[place:], "<u4").reshape(-1, 3).astype(np.int64)
    if len(triangles) and int(triangles.max()) >= count:
        raise CorruptionError(f"a triangle names vertex {int(triangles.max())}; there are {count}")
    return np.frombuffer(view[4:place], "<f4").reshape(-1, 3), triangles


def data_type(values: Array) -> str | None:
    """Return the narrowest type of the format that holds all values, rounded if they are floats; ``None`` for none."""
    return narrowest(values, _KINDS)


def narrowest(values: Array, kinds: Sequence[str]) -> str | None:
    """Return the name of values' own type if it is among ``kinds``, or of the first that holds all of their values."""
    is_looked_at = values.dtype.kind in "iu" and values.size
    low, high = (int(values.min()), int(values.max())) if is_looked_at else (0, 0)
    return fitting(values.dtype, low, high, kinds)


def fitting(dtype: np.dtype[Any], low: int, high: int, kinds: Sequence[str]) -> str | None:
    """Return the same for values of a type, of which integers lie between ``low`` and ``high``."""
    if dtype.kind == "f":
        return "float32" if "float32" in kinds else None
    if dtype.kind == "b":
        return "uint8"
    if dtype.kind not in "iu":
        return None
    if dtype.name in kinds:
        return dtype.name
    for name in ("int32", "uint32"):
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return name
    return None


def _attribute(table: Any, where: str) -> VertexAttribute:
    given = table if isinstance(table, Mapping) else {}
    name, kind, width = given.get("id"), given.get("data_type"), given.get("num_components", 1)
    counts = isinstance(width, int) and not isinstance(width, bool) and 1 <= width <= 2**16
    if not isinstance(name, str) or not name or kind not in _KINDS or not counts:
        raise DataError(
            f"{where}: a vertex attribute has an id, a data_type ({', '.join(_KINDS)}) and num_components, "
            f"not {shown(table)}"
        )
    return VertexAttribute(name, str(kind), width)


__all__ = [
    "IDENTITY",
    "MESH_TYPE",
    "TYPE",
    "SkeletonInfo",
    "VertexAttribute",
    "data_type",
    "decode_mesh",
    "decode_skeleton",
    "encode_mesh",
    "encode_skeleton",
    "fitting",
    "narrowest",
    "properties_folder",
]
