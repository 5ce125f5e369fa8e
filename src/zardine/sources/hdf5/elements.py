"""Types of HDF5 as data types of Zarr, and elements that h5py has read as elements of those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types import DataType, data_type_for
from zardine.errors import MetadataError
from zardine.json_document import JSON
from zardine.sources.arrays import NotUnicodeError
from zardine.sources.hdf5.library import h5py


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """How the elements of a data set are read."""

    data_type: DataType
    dtype: np.dtype[Any]
    """As h5py gives them."""
    text: bool
    """Whether they are text of any length."""
    in_file: np.dtype[Any] | None
    """The NumPy type of the bytes in the file, if they are what NumPy has: ``None`` if only the library reads them."""
    enumeration: dict[str, JSON]
    """Numbers by their names, of an enumeration."""


def elements_of(tid: Any) -> Elements | str:
    """Return how elements of a type (``h5py.h5t.TypeID``) are read, or why Zarr has no form for them."""
    library = h5py()
    try:
        dtype = tid.dtype
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"elements of a type that NumPy has not: {error}"
    text = library.check_string_dtype(dtype)
    if text is not None and text.length is None:
        return Elements(data_type_for("string"), dtype, True, None, {})
    reason = _unfit(dtype)
    if reason is not None:
        return reason
    try:
        plain = _plain(dtype)
        data_type = data_type_for(plain)
    except (TypeError, ValueError, MetadataError) as error:
        return f"elements of {dtype}: {error}"
    enumeration = library.check_enum_dtype(dtype) or {}
    return Elements(data_type, dtype, False, plain if _is_plain(tid, dtype) else None, dict(enumeration))


def as_elements(values: Any, elements: Elements, place: str) -> npt.NDArray[Any]:
    """Return what h5py read as elements of the data type. Raises ``NotUnicodeError`` where text is none."""
    if not elements.text:
        return np.asarray(values).astype(elements.data_type.dtype, copy=False)
    source = np.asarray(values, object)
    found = np.empty(source.shape, elements.data_type.dtype)
    flat, out = source.reshape(-1), found.reshape(-1)
    for number, each in enumerate(flat):
        try:
            out[number] = each.decode("utf-8") if isinstance(each, bytes) else str(each or "")
        except UnicodeDecodeError as error:
            raise NotUnicodeError(f"{place} holds text that is not UTF-8: {each[:40]!r} ({error.reason})") from None
    return out.reshape(source.shape)


def _unfit(dtype: np.dtype[Any]) -> str | None:
    library = h5py()
    if library.check_ref_dtype(dtype) is not None:
        return "its elements are references to other objects of the file"
    vlen = library.check_vlen_dtype(dtype)
    if vlen is not None and not library.check_string_dtype(dtype):
        return f"its elements are sequences of any length (of {vlen})"
    if dtype.kind in "fc" and dtype.itemsize > (16 if dtype.kind == "c" else 8):
        return f"its elements have more digits than Zarr has numbers for ({dtype})"
    if dtype.fields is not None:
        for name, (part, *_) in dtype.fields.items():
            reason = _unfit(part)
            if reason is None and library.check_string_dtype(part) and part.kind == "O":
                reason = "text of any length"
            if reason is None and part.subdtype is not None:
                reason = "an array"
            if reason is not None:
                return f"its field {name!r}: {reason}"
    if dtype.subdtype is not None:
        return "its elements are arrays"
    return None


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type without what h5py tells in its metadata."""
    if dtype.names is not None and dtype.fields is not None:
        return np.dtype(
            {
                "names": list(dtype.names),
                "formats": [_plain(dtype.fields[name][0]) for name in dtype.names],
                "offsets": [dtype.fields[name][1] for name in dtype.names],
                "itemsize": dtype.itemsize,
            }
        )
    return np.dtype(dtype.str)


def _is_plain(tid: Any, dtype: np.dtype[Any]) -> bool:
    """Whether the bytes of elements in the file are those of NumPy, packed, in one byte order."""
    library = h5py()
    if isinstance(tid, library.h5t.TypeStringID) and tid.get_strpad() != library.h5t.STR_NULLPAD:
        return False
    if dtype.names is not None:
        packed = _plain(dtype)
        offset = 0
        for name in dtype.names:
            part, at = packed.fields[name][:2]  # type: ignore[index]
            if at != offset or part.names is not None or part.byteorder == ">" or part.kind == "S":
                return False
            offset += part.itemsize
        if offset != packed.itemsize:
            return False
    if dtype.kind == "V" and dtype.names is None:
        return isinstance(tid, library.h5t.TypeOpaqueID)
    if dtype.kind == "M":
        return False
    try:
        return bool(tid.equal(library.h5t.py_create(dtype, logical=True)))
    except (TypeError, ValueError):
        return False


__all__ = ["Elements", "as_elements", "elements_of"]
