"""A group of a store as xarray's engines see one: variables that are not yet decoded, and attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import xarray as xr
from xarray.backends import AbstractDataStore
from xarray.core import indexing

from zardine.hierarchy.find import location
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.xarray.arrays import StoredArray
from zardine.xarray.conventions import (
    ChunkBy,
    attributes_of,
    dimensions_of,
    encoding_of,
    group_attributes,
    masks_fill_value,
)


class GroupDataStore(AbstractDataStore):
    """The arrays directly below ``group``, read only.

    ``arrays``: these, if they are known. ``dropped``: names of those that nobody wants. ``chunk_by`` says what the
    chunks are that Dask gets, ``fill_is_mask`` whether fill values stand for missing values (``None``: in v2 and v1).
    ``closes``: whether the store is closed with the data set.
    """

    __slots__ = ("_arrays", "_chunk_by", "_closes", "_dropped", "_fill_is_mask", "group")

    def __init__(
        self,
        group: Group,
        arrays: Mapping[str, Array] | None = None,
        *,
        dropped: Collection[str] = (),
        chunk_by: ChunkBy = "shards",
        fill_is_mask: bool | None = None,
        closes: bool = False,
    ) -> None:
        self.group = group
        self._arrays = arrays
        self._dropped = frozenset(dropped)
        self._chunk_by = chunk_by
        self._fill_is_mask = fill_is_mask
        self._closes = closes

    def get_variables(self) -> dict[str, xr.Variable]:
        """Return a variable for each array, by name."""
        arrays = dict(self.group.arrays()) if self._arrays is None else self._arrays
        return {name: self.variable(array) for name, array in arrays.items() if name not in self._dropped}

    def variable(self, array: Array) -> xr.Variable:
        """Return the variable that ``array`` holds, not decoded. Nothing is read."""
        masks = masks_fill_value(array.metadata.zarr_format) if self._fill_is_mask is None else self._fill_is_mask
        dimensions = dimensions_of(array)
        attributes = attributes_of(array, fill_is_mask=masks)
        encoding = encoding_of(array, dimensions, chunk_by=self._chunk_by, fill_is_mask=masks)
        return xr.Variable(dimensions, indexing.LazilyIndexedArray(StoredArray(array)), attributes, encoding)

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group."""
        return group_attributes(self.group.attrs.asdict())

    def get_dimensions(self) -> dict[str, int]:
        """Return the lengths of all dimensions, by name."""
        arrays = dict(self.group.arrays()) if self._arrays is None else self._arrays
        return {
            name: length
            for array in arrays.values()
            for name, length in zip(dimensions_of(array), array.shape, strict=True)
        }

    def get_encoding(self) -> dict[str, Any]:
        """Return where the group is stored, if xarray was not given a path or URL, which it notes itself."""
        return {} if self._closes else {"source": location(self.group.store, self.group.path)}

    def close(self) -> None:
        """Let go of what the store holds, if it was opened for this."""
        if self._closes:
            self.group.store.close()
