"""The normal form of metadata documents: what zardine knows of an array or a group, whatever version stored it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.errors import Problem
from zardine.frozen import with_fields
from zardine.json_document import JSON, Extension, copy_json
from zardine.metadata.numcodecs_objects import shown_codec
from zardine.public_names import public


class NodeParser(Protocol):
    """Makes metadata of one JSON object, as ``to_dict`` of metadata gives it; errors begin with ``subject``."""

    def __call__(self, document: Mapping[str, JSON], subject: str) -> ArrayMetadata | GroupMetadata: ...


_parsers: list[NodeParser] = []
"""The parser of all versions, which the module that has it puts here: the versions themselves build on this module."""


def use_parser(parser: NodeParser) -> None:
    """Let ``from_dict`` of metadata, and consolidated metadata, parse documents by ``parser``."""
    _parsers[:] = [parser]


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderForm(ABC):
    """What the document of a Zarr v2 or v1 array says in its own words, and the normal form does not."""

    dtype: JSON
    order: str
    fill_value: JSON
    """``None``: what was never written is undefined; it reads as the default of the data type."""
    compressor: Mapping[str, JSON] | None
    filters: tuple[Mapping[str, JSON], ...] | None = None
    dimension_separator: str | None = None
    """``None``: the member is absent."""

    @abstractmethod
    def to_json(self, metadata: ArrayMetadata) -> dict[str, JSON]:
        """Return the first document of the array, whose normal form is ``metadata``, without its attributes."""


@public("zardine")
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArrayMetadata:
    """An array's metadata document (core 3.1, "Array metadata"). Two are equal if they would be written the same.

    Documents of Zarr v2 and v1 are told in the words of v3: codecs, a chunk grid, a chunk key encoding.
    """

    shape: tuple[int, ...]
    data_type: DataType
    fill: npt.NDArray[Any]
    """The fill value, 0-dimensional, of ``data_type.dtype``; every bit counts."""
    chunk_grid: Extension
    chunk_key_encoding: Extension
    codecs: tuple[Extension, ...]
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    axis_names: tuple[str | None, ...] | None = None
    """The member ``dimension_names`` of v3; ``None``: absent, as in v2 and v1 always."""
    storage_transformers: tuple[Extension, ...] = ()
    """Only such as may be ignored (``must_understand: false``); kept for writing."""
    unknown: Mapping[str, JSON] = field(default_factory=dict)
    """Members that zardine does not know and may ignore; kept for writing."""
    stored_data_type: tuple[DataType, JSON] | None = None
    """What the document has for a data type, where that has members which may be ignored; kept for writing."""
    zarr_format: int = 3
    older: OlderForm | None = None
    """Where ``zarr_format`` is 2 or 1."""
    document: bytes | None = field(default=None, init=False, repr=False)
    """The stored bytes that this was parsed from, if they are all that is stored. Copies with changes have none."""
    first_document: bytes | None = field(default=None, init=False, repr=False)
    """The same of the first document, beside which there may be others; equal bytes have the same layout."""
    form: bytes | None = field(default=None, init=False, repr=False)
    """What :mod:`zardine.metadata.forms` knows that by which was parsed here, besides shape and attributes."""

    @property
    def node_type(self) -> str:
        """``"array"``."""
        return "array"

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements in memory."""
        return self.data_type.dtype

    @property
    def fill_value(self) -> Any:
        """The fill value as a scalar; ``None`` where a document of Zarr v2 or v1 leaves it undefined (``null``).

        What was never written reads as :attr:`fill` then too, the default of the data type.
        """
        if not self.fill_is_defined:
            return None
        value = self.fill[()]
        return value.copy() if self.fill.dtype.kind == "V" else value  # a struct can be changed, and others share it

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the axes. Documents of v2 and v1 have none: ``AttributeError``."""
        if self.older is not None:
            raise _no_member(self, "dimension_names")
        return self.axis_names

    @property
    def order(self) -> str:
        """Order of elements in the chunks of v2 and v1; ``AttributeError`` for v3."""
        return self._older("order").order

    @property
    def dimension_separator(self) -> str:
        """What is between the indices in names of chunks of v2 and v1; ``AttributeError`` for v3."""
        return self._older("dimension_separator").dimension_separator or "."

    @property
    def compressor(self) -> Any:
        """The compressor of v2 and v1, an object of numcodecs, or ``None``; ``AttributeError`` for v3."""
        return _numcodec(self._older("compressor").compressor)

    @property
    def filters(self) -> tuple[Any, ...] | None:
        """The filters of v2, objects of numcodecs, or ``None``; ``AttributeError`` for v3."""
        filters = self._older("filters").filters
        return None if filters is None else tuple(map(_numcodec, filters))

    def _older(self, member: str) -> OlderForm:
        if self.older is None:
            raise _no_member(self, member)
        return self.older

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> ArrayMetadata:
        """Return the metadata of a document; the inverse of :meth:`to_dict`."""
        metadata = _parsers[0](data, "the given document is invalid")
        if not isinstance(metadata, ArrayMetadata):
            raise ValueError("the given document describes a group, not an array")
        return metadata

    @property
    def fill_is_defined(self) -> bool:
        """Whether every program reads what was never written as the fill value."""
        return self.older is None or self.older.fill_value is not None

    @property
    def extra_fields(self) -> dict[str, JSON]:
        """Members of the document that zardine does not know and may ignore."""
        return dict(copy_json(self.unknown))

    def to_dict(self) -> dict[str, JSON]:
        """Return the document as a JSON object; for Zarr v2 and v1 with the attributes in it.

        That of v3 has its members in the order of the specification, with all defaults spelled out.
        """
        if self.older is not None:
            return {**self.older.to_json(self), "attributes": dict(self.attributes)}
        data_type, stored = self.stored_data_type or (None, None)
        document: dict[str, JSON] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": copy_json(stored) if data_type is self.data_type else self.data_type.to_json(),
            "chunk_grid": self.chunk_grid.to_json(),
            "chunk_key_encoding": self.chunk_key_encoding.to_json(),
            "fill_value": self.data_type.fill_to_json(self.fill),
            "codecs": [codec.to_json() for codec in self.codecs],
            "attributes": dict(self.attributes),
        }
        if self.axis_names is not None:
            document["dimension_names"] = list(self.axis_names)
        if self.storage_transformers:
            document["storage_transformers"] = [each.to_json() for each in self.storage_transformers]
        return {**document, **copy_json(self.unknown)}

    def with_shape(self, shape: tuple[int, ...]) -> ArrayMetadata:
        """Return the same array with another shape."""
        return with_fields(self, shape=shape, document=None, first_document=None)

    def with_attributes(self, attributes: Mapping[str, JSON]) -> ArrayMetadata:
        """Return the same array with other attributes."""
        return with_fields(self, attributes=attributes, document=None, first_document=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayMetadata) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.shape, self.data_type, self.chunk_grid, self.codecs))


def _no_member(metadata: ArrayMetadata, member: str) -> AttributeError:
    return AttributeError(f"documents of Zarr v{metadata.zarr_format} have no {member}")


def _numcodec(configuration: Mapping[str, JSON] | None) -> Any:
    return None if configuration is None else shown_codec(configuration)


class ConsolidatedMetadata(dict[str, Mapping[str, JSON]]):
    """Documents of the nodes below a group, by path relative to it."""

    kind = "inline"
    must_understand = False

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> ConsolidatedMetadata:
        """Return what the member ``consolidated_metadata`` of a document holds; the inverse of :meth:`to_dict`."""
        return cls(data["metadata"])

    def to_dict(self) -> dict[str, JSON]:
        """Return the member ``consolidated_metadata`` of a document."""
        return {"kind": self.kind, "must_understand": self.must_understand, "metadata": dict(self)}

    @property
    def flattened_metadata(self) -> dict[str, ArrayMetadata | GroupMetadata]:
        """The metadata of all nodes below, by path; that of a group has what is below it."""
        below: dict[str, dict[str, Mapping[str, JSON]]] = {}
        for path, document in self.items():
            above = path
            while "/" in above:
                above = above.rpartition("/")[0]
                below.setdefault(above, {})[path[len(above) + 1 :]] = document
        found: dict[str, ArrayMetadata | GroupMetadata] = {}
        for path, document in self.items():
            metadata = _parsers[0](document, f"the consolidated document of {path!r} is invalid")
            if isinstance(metadata, GroupMetadata):
                metadata = metadata.with_consolidated(below.get(path, {}))
            found[path] = metadata
        return found

    @property
    def metadata(self) -> dict[str, ArrayMetadata | GroupMetadata]:
        """The metadata of the nodes directly below, by name."""
        found = self.flattened_metadata
        return {path: metadata for path, metadata in found.items() if "/" not in path}


@public("zardine")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A group's metadata document (core 3.1, "Group metadata")."""

    attributes: Mapping[str, JSON] = field(default_factory=dict)
    consolidated_metadata: ConsolidatedMetadata | Mapping[str, Mapping[str, JSON]] | None = None
    """Documents of the nodes below, by path relative to the group, as one document holds them; ``None``: absent."""
    unknown: Mapping[str, JSON] = field(default_factory=dict)
    zarr_format: int = 3
    consolidated_faults: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    """What is wrong with the stored consolidated metadata, which then count as absent."""

    def __post_init__(self) -> None:
        consolidated = self.consolidated_metadata
        if consolidated is not None and not isinstance(consolidated, ConsolidatedMetadata):
            object.__setattr__(self, "consolidated_metadata", ConsolidatedMetadata(consolidated))

    @property
    def node_type(self) -> str:
        """``"group"``."""
        return "group"

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> GroupMetadata:
        """Return the metadata of a document; the inverse of :meth:`to_dict`."""
        metadata = _parsers[0](data, "the given document is invalid")
        if not isinstance(metadata, GroupMetadata):
            raise ValueError("the given document describes an array, not a group")
        return metadata

    @property
    def extra_fields(self) -> dict[str, JSON]:
        """Members of the document that zardine does not know and may ignore."""
        return dict(self.unknown)

    def to_dict(self) -> dict[str, JSON]:
        """Return the document as a JSON object; for Zarr v2 with the attributes in it."""
        if self.zarr_format != 3:
            return {"zarr_format": self.zarr_format, **self.unknown, "attributes": dict(self.attributes)}
        document: dict[str, JSON] = {"zarr_format": 3, "node_type": "group", "attributes": dict(self.attributes)}
        if self.consolidated_metadata is not None:
            document["consolidated_metadata"] = {
                "kind": "inline",
                "must_understand": False,
                "metadata": {path: dict(node) for path, node in sorted(self.consolidated_metadata.items())},
            }
        return {**document, **self.unknown}

    def with_attributes(self, attributes: Mapping[str, JSON]) -> GroupMetadata:
        """Return the same group with other attributes."""
        return replace(self, attributes=attributes)

    def with_consolidated(self, consolidated: Mapping[str, Mapping[str, JSON]] | None) -> GroupMetadata:
        """Return the same group with other consolidated metadata, or none."""
        return replace(self, consolidated_metadata=consolidated, consolidated_faults=())

    def __hash__(self) -> int:
        return hash(("group", self.zarr_format))
