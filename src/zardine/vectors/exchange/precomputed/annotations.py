"""Annotations of neuroglancer: the document, and lists of annotations as bytes. Pure.

An annotation is a point, or two of them (the ends of a line, the corners of a box), in float32, with an id, values of
properties, and for each *relationship* the ids of the segments that it has to do with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import CorruptionError, DataError, UnsupportedError
from zardine.vectors.content.arguments import shown
from zardine.vectors.exchange.precomputed.numbers import finite_numbers
from zardine.vectors.exchange.precomputed.sharding import Sharding

TYPE: Final = "neuroglancer_annotations_v1"
CORNERS: Final = {"point": 1, "line": 2, "axis_aligned_bounding_box": 2}
"""How many positions an annotation of each kind has."""
_OTHERS: Final = ("ellipsoid", "polyline")
PROPERTIES: Final[Mapping[str, tuple[str, int]]] = {
    "float32": ("<f4", 1),
    "int32": ("<i4", 1),
    "uint32": ("<u4", 1),
    "int16": ("<i2", 1),
    "uint16": ("<u2", 1),
    "int8": ("|i1", 1),
    "uint8": ("|u1", 1),
    "rgb": ("|u1", 3),
    "rgba": ("|u1", 4),
}
"""The type of NumPy of a property, and how many of them it has."""
PROPERTY_ID: Final = re.compile(r"[a-z][a-zA-Z0-9_]*", re.ASCII)
_MOST_AXES: Final = 4


@dataclass(frozen=True, slots=True)
class Property:
    """A value that each annotation has; where ``labels`` are given, a name for each of the numbers ``numbers``."""

    id: str
    type: str
    description: str = ""
    numbers: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the table that says so."""
        found: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.description:
            found["description"] = self.description
        if self.labels:
            found |= {"enum_values": list(self.numbers), "enum_labels": list(self.labels)}
        return found


@dataclass(frozen=True, slots=True)
class Index:
    """Where values of ids lie: in the folder ``key``, in shards or each as a file of its own."""

    key: str
    sharding: Sharding | None = None
    id: str = ""
    """Of a relationship: its name."""

    def document(self) -> dict[str, Any]:
        """Return the table that says so."""
        found = {"id": self.id, "key": self.key} if self.id else {"key": self.key}
        return found if self.sharding is None else {**found, "sharding": self.sharding.document()}


@dataclass(frozen=True, slots=True)
class SpatialLevel:
    """A grid of cells, and where for each of them a list of annotations lies."""

    index: Index
    grid_shape: tuple[int, ...]
    chunk_size: tuple[float, ...]
    limit: int
    """Annotations in a cell at most, about."""

    def document(self) -> dict[str, Any]:
        """Return the table that says so."""
        about = {"grid_shape": list(self.grid_shape), "chunk_size": list(self.chunk_size), "limit": self.limit}
        return {**self.index.document(), **about}


_MEMBERS: Final = (
    *("@type", "dimensions", "lower_bound", "upper_bound", "annotation_type"),
    *("properties", "relationships", "by_id", "spatial"),
)


@dataclass(frozen=True, kw_only=True)
class AnnotationInfo:
    """The document of a folder of annotations."""

    dimensions: Mapping[str, tuple[float, str]]
    """For each axis how long a unit of it is: a number and a unit, such as ``(4e-9, "m")``."""
    lower_bound: tuple[float, ...]
    upper_bound: tuple[float, ...]
    annotation_type: str
    properties: tuple[Property, ...] = ()
    relationships: tuple[Index, ...] = ()
    by_id: Index = Index("by_id")
    spatial: tuple[SpatialLevel, ...] = ()
    others: tuple[str, ...] = ()
    """Members that a document has beside these."""

    def document(self) -> dict[str, Any]:
        """Return the document."""
        return {
            "@type": TYPE,
            "dimensions": {name: list(scale) for name, scale in self.dimensions.items()},
            "lower_bound": list(self.lower_bound),
            "upper_bound": list(self.upper_bound),
            "annotation_type": self.annotation_type,
            "properties": [each.document() for each in self.properties],
            "relationships": [each.document() for each in self.relationships],
            "by_id": self.by_id.document(),
            "spatial": [each.document() for each in self.spatial],
        }

    @classmethod
    def parse(cls, document: Mapping[str, Any], where: str) -> AnnotationInfo:
        """Return what a document says. Raises :class:`DataError`, :class:`UnsupportedError` for other kinds."""
        dimensions = document.get("dimensions")
        if not isinstance(dimensions, Mapping) or not 0 < len(dimensions) <= _MOST_AXES:
            raise DataError(f"{where}: dimensions are a table of 1 to {_MOST_AXES} axes, not {shown(dimensions)}")
        rank = len(dimensions)
        kind = document.get("annotation_type")
        kind = kind.lower() if isinstance(kind, str) else kind  # neuroglancer takes capitals, cloud-volume writes them
        if kind in _OTHERS:
            raise UnsupportedError(
                f"{where}: annotations that are {kind}s are not read; there are {', '.join(CORNERS)}"
            )
        if not isinstance(kind, str) or kind not in CORNERS:
            raise DataError(f"{where}: annotation_type is {', '.join(CORNERS)}, not {shown(kind)}")
        low = tuple(_numbers(document.get("lower_bound"), rank, f"{where}: lower_bound"))
        high = tuple(_numbers(document.get("upper_bound"), rank, f"{where}: upper_bound"))
        return cls(
            dimensions={str(name): _scale(each, f"{where}: {name!r}") for name, each in dimensions.items()},
            lower_bound=low,
            upper_bound=high,
            annotation_type=kind,
            properties=tuple(_property(each, where) for each in _tables(document, "properties", where)),
            relationships=tuple(_index(each, where, named=True) for each in _tables(document, "relationships", where)),
            by_id=_index(document.get("by_id", {"key": "by_id"}), where),
            spatial=tuple(_level(each, rank, where) for each in _tables(document, "spatial", where)),
            others=tuple(each for each in document if each not in _MEMBERS and not each.startswith("zardine_")),
        )

    @property
    def rank(self) -> int:
        """How many axes there are."""
        return len(self.dimensions)

    @cached_property
    def stored_properties(self) -> tuple[Property, ...]:
        """The properties in the order of their bytes: those of wide numbers first."""
        return tuple(sorted(self.properties, key=lambda each: -np.dtype(PROPERTIES[each.type][0]).itemsize))

    @cached_property
    def record(self) -> np.dtype[Any]:
        """How an annotation is stored, without its id: geometry, properties, and bytes up to a multiple of 4."""
        fields: list[Any] = [("geometry", "<f4", (CORNERS[self.annotation_type], self.rank))]
        for number, each in enumerate(self.stored_properties):
            kind, width = PROPERTIES[each.type]
            fields.append((f"property{number}", kind) if width == 1 else (f"property{number}", kind, (width,)))
        rest = -np.dtype(fields).itemsize % 4
        return np.dtype([*fields, ("padding", "V", rest)] if rest else fields)


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    """Annotations, all of one kind."""

    ids: npt.NDArray[np.uint64]
    geometry: npt.NDArray[np.float32]
    """``(N, corners, axes)``."""
    properties: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """For each id of a property ``(N,)``; of colours ``(N, 3)`` and ``(N, 4)``."""
    related: Sequence[tuple[Ints, npt.NDArray[np.uint64]]] = ()
    """For each relationship starts ``(N + 1,)`` and ids: of annotation ``i`` those from ``starts[i]`` on."""

    def __len__(self) -> int:
        return len(self.ids)

    def records(self, info: AnnotationInfo) -> npt.NDArray[Any]:
        """Return the annotations as they are stored, without ids."""
        found = np.zeros(len(self), info.record)
        found["geometry"] = self.geometry
        for number, each in enumerate(info.stored_properties):
            found[f"property{number}"] = self.properties[each.id]
        return found

    @classmethod
    def from_records(
        cls, records: npt.NDArray[Any], ids: npt.NDArray[np.uint64], info: AnnotationInfo, related: Any = ()
    ) -> Annotations:
        """Return annotations of what is stored."""
        properties = {each.id: records[f"property{number}"] for number, each in enumerate(info.stored_properties)}
        return cls(ids, records["geometry"], {each.id: properties[each.id] for each in info.properties}, related)


def decode_list(stored: BytesLike, info: AnnotationInfo) -> Annotations:
    """Return the annotations of a list. Raises :class:`CorruptionError` for bytes that are none."""
    view = memoryview(stored)
    record = info.record
    count = int.from_bytes(view[:8], "little")
    if len(view) < 8 or count > len(view) or len(view) != 8 + count * (record.itemsize + 8):
        raise CorruptionError(
            f"a list of {count} annotations takes {8 + count * (record.itemsize + 8)} bytes; there are {len(view)}"
        )
    middle = 8 + count * record.itemsize
    records = np.frombuffer(view[8:middle], record)
    return Annotations.from_records(records, np.frombuffer(view[middle:], "<u8").astype(np.uint64), info)


def encode_one(record: BytesLike, related: Sequence[npt.NDArray[np.uint64]]) -> bytes:
    """Return an annotation as it stands under its id: ``record``, and the ids of each relationship."""
    parts = [bytes(record)]
    for ids in related:
        parts += [len(ids).to_bytes(4, "little"), ids.astype("<u8").tobytes()]
    return b"".join(parts)


def decode_one(stored: BytesLike, info: AnnotationInfo) -> tuple[BytesLike, list[npt.NDArray[np.uint64]]]:
    """Return what is stored of an annotation, and the ids of each relationship. Raises :class:`CorruptionError`."""
    view = memoryview(stored)
    place = info.record.itemsize
    related = []
    for _ in info.relationships:
        count = int.from_bytes(view[place : place + 4], "little")
        end = place + 4 + 8 * count
        if end > len(view):
            break
        related.append(np.frombuffer(view[place + 4 : end], "<u8").astype(np.uint64))
        place = end
    if len(related) != len(info.relationships) or place != len(view):
        raise CorruptionError(
            f"an annotation of {info.record.itemsize} bytes and {len(info.relationships)} relationships does not take "
            f"the {len(view)} bytes that there are"
        )
    return view[: info.record.itemsize], related


def _tables(document: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    found = document.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise DataError(f"{where}: {name} are a list of tables, not {shown(found)}")
    for key in ("id", "key"):  # an index that is there many times would be read as often
        named = [each[key] for each in found if isinstance(each.get(key), str)]
        if len(set(named)) != len(named):
            raise DataError(f"{where}: {name} have one {key} twice: {shown(named)}")
    return found


def _property(table: Mapping[str, Any], where: str) -> Property:
    name, kind = table.get("id"), table.get("type")
    if not isinstance(name, str) or not name or not isinstance(kind, str) or kind not in PROPERTIES:
        raise DataError(f"{where}: a property has an id and a type ({', '.join(PROPERTIES)}), not {shown(dict(table))}")
    numbers, labels = table.get("enum_values") or [], table.get("enum_labels") or []
    usable = isinstance(numbers, list) and isinstance(labels, list) and len(numbers) == len(labels)
    if not usable or not all(isinstance(each, int | float) for each in numbers) or not all(map(_is_text, labels)):
        raise DataError(f"{where}: enum_values and enum_labels of {name!r} are numbers and texts, as many of each")
    return Property(name, kind, str(table.get("description") or ""), tuple(numbers), tuple(labels))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _index(table: Any, where: str, *, named: bool = False) -> Index:
    key = table.get("key") if isinstance(table, Mapping) else None
    name = table.get("id") if isinstance(table, Mapping) and named else ""
    if not isinstance(key, str) or not key or not isinstance(name, str) or (named and not name):
        raise DataError(f"{where}: an index has a key{' and an id' if named else ''}, not {shown(table)}")
    return Index(key, Sharding.parse(table.get("sharding"), f"{where}: the sharding of {key!r}"), name)


def _level(table: Mapping[str, Any], rank: int, where: str) -> SpatialLevel:
    grid = _numbers(table.get("grid_shape"), rank, f"{where}: grid_shape")
    if any(each != int(each) or not 1 <= each < 2**63 for each in grid):
        raise DataError(
            f"{where}: grid_shape is {rank} whole numbers of at least 1, not {shown(table.get('grid_shape'))}"
        )
    size = _numbers(table.get("chunk_size"), rank, f"{where}: chunk_size")
    limit = table.get("limit")
    most = int(limit) if isinstance(limit, int | float) and 1 <= limit < 2**63 else 1
    return SpatialLevel(_index(table, where), tuple(map(int, grid)), tuple(size), most)


def _numbers(values: Any, count: int, what: str) -> list[float]:
    found = finite_numbers(values, count)
    if found is None:
        raise DataError(f"{what}: {count} numbers are wanted, not {shown(values)}")
    return found


def _scale(given: Any, what: str) -> tuple[float, str]:
    if isinstance(given, list) and len(given) == 2 and _is_text(given[1]):
        scale = finite_numbers(given[:1])
        if scale is not None and scale[0] > 0:
            return scale[0], given[1]
    raise DataError(
        f"{what}: the scale of an axis is a number above 0 and a unit, such as [4e-9, 'm'], not {shown(given)}"
    )


__all__ = [
    "CORNERS",
    "PROPERTIES",
    "PROPERTY_ID",
    "TYPE",
    "AnnotationInfo",
    "Annotations",
    "Index",
    "Property",
    "SpatialLevel",
    "decode_list",
    "decode_one",
    "encode_one",
]
