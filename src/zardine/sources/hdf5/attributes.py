"""Attributes of HDF5 as plain values: what h5py reads, without what only HDF5 and NetCDF need themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from zardine.sources.hdf5.library import FAILURES, h5py

_INTERNAL = {"_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"}
_INTERNAL |= {"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"}
_OF_SCALES = {"CLASS", "NAME"}
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
"""How the name of a dimension scale begins that holds no values."""


def read_attributes(found: Any, remarks: list[str]) -> dict[str, Any]:
    """Return the attributes of a group or data set of h5py; notes each that cannot be read."""
    names = list(found.attrs)
    hidden = _INTERNAL | (_OF_SCALES if attribute(found, "CLASS") == b"DIMENSION_SCALE" else set())
    values = {}
    for name in names:
        if name in hidden:
            remarks += _names_in(found, name)
            continue
        if isinstance(name, bytes):
            remarks.append(f"attribute {shown(name)}: its name is not UTF-8; it is left out")
            continue
        try:
            values[name] = _plain(found.attrs[name], found, name, remarks)
            words = h5py().check_enum_dtype(found.attrs.get_id(name).dtype)
            if words is not None:
                remarks.append(
                    f"attribute {name}: an enumeration became integers, without the names {', '.join(words)}"
                )
        except FAILURES as error:
            remarks.append(f"attribute {name}: it cannot be read ({error}); it is left out")
    return values


def _names_in(found: Any, name: str) -> list[str]:
    """Return remarks on names that an attribute of HDF5's own gives, and that are not those of dimensions."""
    if name not in ("NAME", "DIMENSION_LABELS"):
        return []
    own = found.name.rpartition("/")[2].encode()
    given = [each.encode() if isinstance(each, str) else each for each in np.ravel(attribute(found, name)).tolist()]
    names = [each for each in given if each and each.rpartition(b"/")[2] != own and not each.startswith(NO_VARIABLE)]
    what = "name of the dimension scale" if name == "NAME" else "labels of dimensions"
    return [f"left out: the {what}, {', '.join(map(shown, names))}"] if names else []


def shown(name: str | bytes) -> str:
    """Return a name for people. For one that is not UTF-8 h5py gives bytes, or text with marks in place of bytes."""
    data = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "backslashreplace")


def attribute(found: Any, name: str) -> Any:
    """Return one attribute, text as bytes; ``None`` where it is missing, or of a type that NumPy has not."""
    try:
        value = found.attrs.get(name)
    except (TypeError, NotImplementedError):
        return None
    return value.encode() if isinstance(value, str) else value


def _plain(value: Any, found: Any, name: str, remarks: list[str]) -> Any:
    library = h5py()
    if isinstance(value, library.Empty):
        remarks.append(f"attribute {name}: it has no value (null), and became an empty one")
        return "" if value.dtype.kind in "SOU" else []
    if isinstance(value, library.RegionReference):
        raise TypeError("it refers to a region of a data set")
    if isinstance(value, library.Reference):
        text = f"attribute {name}: references to objects became their paths"
        if text not in remarks:
            remarks.append(text)
        target = library.h5r.get_name(value, found.id) if value else None
        return None if target is None else target.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return [_plain(each, found, name, remarks) for each in value]
    if isinstance(value, np.void) and value.dtype.names is not None:
        return {field: _plain(value[field], found, name, remarks) for field in value.dtype.names}
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        return [_plain(each, found, name, remarks) for each in value]
    return value


__all__ = ["NO_VARIABLE", "attribute", "read_attributes", "shown"]
