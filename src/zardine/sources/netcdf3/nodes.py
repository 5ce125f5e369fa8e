"""The variables of a NetCDF 3 file as arrays of one group."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.codecs import BytesCodec
from zardine.creation.attribute_conventions import MISSING
from zardine.data_types import DataType, data_type_for
from zardine.metadata.documents import GroupMetadata
from zardine.sources.arrays import array_metadata, element_bytes, explain_name
from zardine.sources.blocks import Blocks, block_shape
from zardine.sources.cf_attributes import attributes_to_json, unique, unsaid_mark
from zardine.sources.foreign_store import ForeignFile, ForeignNode
from zardine.sources.netcdf3.header import Header, Variable, read_header
from zardine.sources.stored_file import StoredFile

_FILLS = {"i1": -127, "S1": b"\0", "i2": -32767, "i4": -2147483647, "f4": 9.969209968386869e36}
_FILLS |= {"f8": 9.969209968386869e36, "u1": 255, "u2": 65535, "u4": 4294967295}
_FILLS |= {"i8": -9223372036854775806, "u8": 18446744073709551614}
"""What NetCDF takes for elements that were never written."""


def read_netcdf3(file: StoredFile) -> ForeignFile:
    """Return the variables of a file. Raises :class:`~zardine.errors.CorruptionError` where it is damaged."""
    header = read_header(file)
    attributes, remarks = attributes_to_json(header.attributes, None)
    nodes = {"": ForeignNode(GroupMetadata(attributes=attributes), None, unique(remarks))}
    left_out = []
    for variable in header.variables:
        reason = explain_name(variable.name)
        if reason is None:
            nodes[variable.name] = _array(file, header, variable)
        else:
            left_out.append((variable.name, reason))
    return ForeignFile("NetCDF 3", nodes, tuple(left_out))


def _array(file: StoredFile, header: Header, variable: Variable) -> ForeignNode:
    data_type = data_type_for(variable.dtype)
    attributes, remarks = attributes_to_json(variable.attributes, data_type)
    fill = _fill(variable, data_type)
    blocks = block_shape(variable.shape, variable.dtype.itemsize)
    element = element_bytes(fill, variable.dtype)
    stride = header.record if variable.in_records else None
    chunks = Blocks(file, variable.shape, blocks, element, variable.begin, stride)
    endian = "big" if data_type.needs_endian else None
    metadata = array_metadata(
        variable.shape,
        blocks,
        data_type,
        fill,
        [BytesCodec(endian=endian)],
        attributes,
        [each.name for each in variable.dimensions],
        {
            "unlimited_dimensions": [each.name for each in variable.dimensions if each.unlimited],
            MISSING: unsaid_mark(variable.attributes, data_type),
        },
    )
    return ForeignNode(metadata, chunks, unique(remarks))


def _fill(variable: Variable, data_type: DataType) -> npt.NDArray[Any]:
    value = variable.attributes.get(MISSING)
    if isinstance(value, np.ndarray) and value.shape == (1,):
        return data_type.cast_fill(value.astype(data_type.dtype)[0])
    name = variable.dtype.str.lstrip("<>|=")
    return data_type.cast_fill(_FILLS[name])


__all__ = ["read_netcdf3"]
