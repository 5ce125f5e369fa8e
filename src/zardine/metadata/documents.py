"""The normal form of metadata documents: what zardine knows of an array or a group, whatever version stored it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.json_document import JSON, Extension


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderForm:
    """What the document of a Zarr v2 or v1 array says in its own words, and the normal form does not."""

    dtype: JSON
    order: str
    fill_value: JSON
    """``None``: what was never written is undefined; it reads as the default of the data type."""
    compressor: Mapping[str, JSON] | None
    filters: tuple[Mapping[str, JSON], ...] | None = None
    dimension_separator: str | None = None
    """``None``: the member is absent."""


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
    dimension_names: tuple[str | None, ...] | None = None
    storage_transformers: tuple[Extension, ...] = ()
    """Only such as may be ignored (``must_understand: false``); kept for writing."""
    unknown: Mapping[str, JSON] = field(default_factory=dict)
    """Members that zardine does not know and may ignore; kept for writing."""
    stored_data_type: tuple[DataType, JSON] | None = None
    """What the document has for a data type, where that has members which may be ignored; kept for writing."""
    zarr_format: int = 3
    older: OlderForm | None = None
    """Where ``zarr_format`` is 2 or 1."""
    document: bytes | None = field(default=None, init=False)
    """The stored bytes that this was parsed from; equal bytes have the same layout. Copies with changes have none."""

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
        return self.fill[()] if self.fill_is_defined else None

    @property
    def fill_is_defined(self) -> bool:
        """Whether every program reads what was never written as the fill value."""
        return self.older is None or self.older.fill_value is not None

    def to_dict(self) -> dict[str, JSON]:
        """The document as a JSON object; for Zarr v2 and v1 with the attributes in it."""
        from zardine.metadata.formats import node_to_json

        return node_to_json(self)

    def with_shape(self, shape: tuple[int, ...]) -> ArrayMetadata:
        """The same array with another shape."""
        return replace(self, shape=shape)

    def with_attributes(self, attributes: Mapping[str, JSON]) -> ArrayMetadata:
        """The same array with other attributes."""
        return replace(self, attributes=attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayMetadata) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.shape, self.data_type, self.chunk_grid, self.codecs))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A group's metadata document (core 3.1, "Group metadata")."""

    attributes: Mapping[str, JSON] = field(default_factory=dict)
    consolidated_metadata: Mapping[str, Mapping[str, JSON]] | None = None
    """Documents of the nodes below, by path relative to the group, as one document holds them; ``None``: absent."""
    unknown: Mapping[str, JSON] = field(default_factory=dict)
    zarr_format: int = 3

    @property
    def node_type(self) -> str:
        """``"group"``."""
        return "group"

    def to_dict(self) -> dict[str, JSON]:
        """The document as a JSON object; for Zarr v2 with the attributes in it."""
        from zardine.metadata.formats import node_to_json

        return node_to_json(self)

    def with_attributes(self, attributes: Mapping[str, JSON]) -> GroupMetadata:
        """The same group with other attributes."""
        return replace(self, attributes=attributes)

    def with_consolidated(self, consolidated: Mapping[str, Mapping[str, JSON]] | None) -> GroupMetadata:
        """The same group with other consolidated metadata, or none."""
        return replace(self, consolidated_metadata=consolidated)

    def __hash__(self) -> int:
        return hash(("group", self.zarr_format))
