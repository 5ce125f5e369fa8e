"""What xarray means by an array in a store, both ways: names of dimensions, attributes, fill values, encoding.

Zarr v3 has a member for the names of dimensions; in v2 and v1 xarray keeps them in an attribute. The attribute
``_FillValue`` says which values are missing: in v2 and v1 that is the array's own fill value, in v3 an attribute, of
which JSON holds floats as base64. This is what the page "Zarr encoding specification" of xarray's documentation says.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from zardine.errors import DimensionNamesError, MetadataError, Problem
from zardine.hierarchy.find import describe
from zardine.nodes.array import Array

DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
"""The attribute with the names of dimensions of arrays of Zarr v2 and v1."""
COORDINATES: Final = "coordinates"
"""The attribute of a group or a variable that names its coordinates, separated by blanks."""
FILL_VALUE: Final = "_FillValue"
"""The attribute that says which value stands for a missing one."""
NCZARR: Final = "_nc"
"""How attributes of NetCDF's own Zarr begin, in small or capital letters; they are of no use to others."""

ChunkBy: TypeAlias = Literal["shards", "chunks"]
Sizes: TypeAlias = int | tuple[int, ...]
"""The length of all chunks of an axis (the last may be cut), or the length of each."""


# reading


def dimensions_of(array: Array) -> tuple[str, ...]:
    """Return the names of the dimensions of ``array``: of the document (v3), the attribute, or NetCDF's own form.

    Raises :class:`~zardine.errors.DimensionNamesError` where some have no name, or where there are not as many names as
    dimensions.
    """
    if array.ndim == 0:
        return ()
    names: Any = array.dimension_names
    if names is None:
        names = array.attrs.get(DIMENSIONS)
    if names is None:
        names = _names_of_nczarr(array)
    place = f"array {describe(array.store, array.path)}"
    if names is None:
        member = "`dimension_names`" if array.metadata.older is None else f"the attribute `{DIMENSIONS}`"
        problem = (
            f"Zarr object is missing {member}, which is required for xarray to determine variable dimensions: give it "
            "that (array.attrs), or leave the array out (drop_variables)"
        )
        raise DimensionNamesError(f"{place}: {problem}")
    wrong = not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names)
    if wrong or len(names) != array.ndim:
        raise DimensionNamesError(
            f"{place} has {array.ndim} dimensions, and the names {names!r} for them: xarray needs one for each"
        )
    return tuple(names)


def _names_of_nczarr(array: Array) -> list[str] | None:
    """Return the last parts of what NetCDF calls the dimensions of an array by their whole path; ``None`` without."""
    for holder, member, references in (
        (array.metadata.unknown, "_NCZARR_ARRAY", "dimrefs"),
        (array.metadata.attributes, "_NCZARR_ARRAY", "dimrefs"),
        (array.metadata.attributes, "_nczarr_array", "dimension_references"),
    ):
        said = holder.get(member)
        found = said.get(references) if isinstance(said, Mapping) else None
        if isinstance(found, (list, tuple)) and all(isinstance(each, str) for each in found):
            return [str(each).rpartition("/")[2] for each in found]
    return None


def attributes_of(array: Array, *, fill_is_mask: bool) -> dict[str, Any]:
    """Return the attributes of ``array`` for a variable of xarray that is not yet decoded.

    With ``fill_is_mask`` the array's fill value is what stands for missing values; else only what the attribute
    ``_FillValue`` says, in the form of v3.
    """
    hidden = array.dimension_names is None
    attributes = {
        name: value
        for name, value in array.attrs.asdict().items()
        if not (hidden and (name == DIMENSIONS or name.lower().startswith(NCZARR)))
    }
    if fill_is_mask:
        if array.fill_value is not None and array.dtype.kind not in "mM":  # in which NaT is missing as it is
            attributes[FILL_VALUE] = array.fill_value
    elif FILL_VALUE in attributes:
        try:
            attributes[FILL_VALUE] = decode_fill_value(attributes[FILL_VALUE], array.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            place = f"the attributes of array {describe(array.store, array.path)} are invalid"
            raise MetadataError(place, [Problem(FILL_VALUE, str(error))]) from None
    return attributes


def masks_fill_value(zarr_format: int) -> bool:
    """Return whether the fill value of arrays stands for missing values, where nobody says: in v2 and v1."""
    return zarr_format < 3


def group_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a group that are for a data set: without those of NetCDF's own Zarr."""
    return {name: value for name, value in attributes.items() if not name.lower().startswith(NCZARR)}


def added_attributes(stored: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a group after some are ``added``: coordinates stay ones, the others are replaced."""
    names = [word for each in (stored, added) for word in str(each.get(COORDINATES, "")).split()]
    told = {COORDINATES: " ".join(dict.fromkeys(names))} if names else {}
    return {**stored, **{name: value for name, value in added.items() if name != COORDINATES}, **told}


def encoding_of(
    array: Array, dimensions: Iterable[str], *, chunk_by: ChunkBy = "shards", fill_is_mask: bool = False
) -> dict[str, Any]:
    """Return how ``array`` is stored, in the words of xarray's ``encoding``.

    ``fill_is_mask`` as in :func:`attributes_of`: what is told there is not told here. ``preferred_chunks`` are what
    ``chunks={}`` makes tasks of: shards, or inner chunks. Codecs of v3 are JSON objects, which zardine and zarr-python
    take for new arrays; those of v2 are objects of numcodecs.
    """
    chunks, shards = chunk_sizes(array), shard_sizes(array)
    preferred = chunks if shards is None or chunk_by == "chunks" else shards
    encoding: dict[str, Any] = {
        "chunks": chunks,
        "preferred_chunks": dict(zip(dimensions, preferred, strict=True)),
        "shards": shards,
    }
    if array.dtype.kind == "T":
        encoding["dtype"] = array.dtype
    if array.metadata.older is not None:
        return {**encoding, "compressors": array.compressors, "filters": array.filters}
    if not fill_is_mask:
        encoding["fill_value"] = array.fill_value
    serializer = array.serializer
    return {
        **encoding,
        "compressors": tuple(codec.to_dict() for codec in array.compressors),
        "filters": tuple(codec.to_dict() for codec in array.filters),
        "serializer": None if serializer is None else serializer.to_dict(),
    }


def chunk_sizes(array: Array) -> tuple[Sizes, ...]:
    """Return the lengths of what is decoded at once (inner chunks of shards) along each axis."""
    try:
        return array.chunks
    except NotImplementedError:
        return tuple(map(_shortened, array.read_chunk_sizes))


def shard_sizes(array: Array) -> tuple[Sizes, ...] | None:
    """Return the lengths of shards along each axis; ``None`` for an array without shards, and for one of one element.

    zarr-python 3.1 cannot write a shard without axes, which packs nothing.
    """
    if array.ndim == 0:
        return None
    try:
        return array.shards
    except NotImplementedError:
        return tuple(map(_shortened, array.write_chunk_sizes))


def _shortened(lengths: tuple[int, ...]) -> Sizes:
    if not lengths:
        return (0,)
    regular = len({*lengths[:-1]}) <= 1 and lengths[-1] <= lengths[0]
    return lengths[0] if regular else lengths


# writing


@dataclass(frozen=True, slots=True)
class StoredForm:
    """What a new array is given so that xarray reads it back as the variable that it is made of."""

    attributes: dict[str, Any]
    """All attributes, and what xarray keeps among them."""
    fill_value: Any
    """Of the array; ``None`` where the variable does not say."""
    dimension_names: tuple[str, ...] | None
    """The member of v3; ``None`` in v2."""


def stored_form(
    dimensions: Iterable[Any],
    attributes: Mapping[str, Any],
    dtype: np.dtype[Any],
    *,
    zarr_format: int,
    fill_value: Any = None,
    fill_is_mask: bool | None = None,
) -> StoredForm:
    """Return how a variable, encoded as CF asks for, is told to the store; what :func:`attributes_of` undoes.

    ``fill_value`` is that of the variable's encoding, for arrays of v3; without one, floats are filled with NaN there.
    ``fill_is_mask`` as in reading, by default what the version of the format says.
    """
    stored = {name: value for name, value in attributes.items() if name != FILL_VALUE}
    missing = attributes.get(FILL_VALUE)
    names = tuple(str(name) for name in dimensions)
    if masks_fill_value(zarr_format) if fill_is_mask is None else fill_is_mask:
        fill_value = missing
    else:
        if fill_value is None and dtype.kind == "f":
            fill_value = np.nan
        if missing is not None:
            stored[FILL_VALUE] = encode_fill_value(missing, dtype)
    if zarr_format >= 3:
        return StoredForm(stored, fill_value, names)
    return StoredForm({**stored, DIMENSIONS: list(names)}, fill_value, None)


# the attribute _FillValue of v3, both ways


def encode_fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``_FillValue`` of an array of ``dtype`` as JSON holds it in v3; :func:`decode_fill_value` undoes it.

    Floats are the base64 of their eight bytes (little endian), complex numbers two of these, bytes their base64. Raises
    ``TypeError`` for a value that is not of the kind of ``dtype``.
    """
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if kind in "iu" and isinstance(value, (int, float, np.integer, np.floating)):
        return int(value)
    if kind == "f" and isinstance(value, (int, float, np.integer, np.floating)):
        return _float_text(value)
    if kind == "c" and isinstance(value, (complex, np.complexfloating)):
        return [_float_text(value.real), _float_text(value.imag)]
    if kind == "S" and isinstance(value, bytes):
        return base64.standard_b64encode(value).decode()
    if kind in "UTO" and isinstance(value, (str, np.str_)):
        return str(value)
    raise TypeError(f"{value!r} ({type(value).__name__}) is no {FILL_VALUE} of an array of {dtype}")


def decode_fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return what the attribute ``_FillValue`` of an array of ``dtype`` of v3 says.

    Programs that write a plain number for a float are understood too. Raises ``TypeError`` or ``ValueError`` for what
    is no value of ``dtype``.
    """
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if kind in "iu" and isinstance(value, (int, float)):
        return int(value)
    if kind == "f":
        return _float_of(value)
    if kind == "c" and isinstance(value, (list, tuple)) and len(value) == 2:
        return complex(_float_of(value[0]), _float_of(value[1]))
    if kind == "S" and isinstance(value, str):
        return _bytes_of(value)
    if kind in "UTO" and isinstance(value, str):
        return value
    if kind in "mMV":
        return value
    raise TypeError(f"{value!r} ({type(value).__name__}) is no value of an array of {dtype}")


def _float_text(value: Any) -> str:
    return base64.standard_b64encode(struct.pack("<d", float(value))).decode()


def _float_of(value: Any) -> float:
    if isinstance(value, str):
        try:
            data = base64.b64decode(value, validate=True)
        except binascii.Error:
            data = b""
        if len(data) == 8:
            number: float = struct.unpack("<d", data)[0]
            return number
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} ({type(value).__name__}) is no number")
    return float(value)


def _bytes_of(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{value!r} is not in base64: {error}") from None
