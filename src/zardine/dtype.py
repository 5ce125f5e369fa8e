"""Data types under the names that zarr-python gives them: ``zardine.dtype.Int32()``, ``FixedLengthUTF32(length=3)``.

Calling one gives a data type, which ``dtype=`` takes wherever an array is created; ``isinstance`` tells whether a data
type is of that kind. The byte order is no part of a data type here, so ``endianness`` has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from zardine.data_types import DataType, data_type_for, register_data_type
from zardine.errors import MetadataError, Problem
from zardine.json_document import Problems
from zardine.metadata.v2_codecs import Storage, to_codecs
from zardine.metadata.v2_dtypes import parse_dtype as parse_name_in_v2

if TYPE_CHECKING:
    from zardine.creation.options import DTypeLike

ZDType = DataType
"""What all data types have in common."""


class _Kind(type):
    """A name for data types of one kind: ``isinstance`` looks at the data type's own name."""

    names: ClassVar[tuple[str, ...]] = ()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, DataType) and instance.name in cls.names

    def from_native_dtype(cls, dtype: np.dtype[Any]) -> DataType:
        """Return the data type of this kind for a NumPy dtype.

        Raises ``DataTypeValidationError`` (a ``ValueError``) if that is of another kind.
        """
        return cls._of_this_kind(data_type_for(dtype), dtype)

    def from_json(cls, data: Any, *, zarr_format: int) -> DataType:
        """Return the data type of this kind for what :meth:`ZDType.to_json` gives in that version of Zarr.

        Raises ``DataTypeValidationError`` (a ``ValueError``) if it is of another kind, or none at all.
        """
        try:
            found = parse_dtype(data, zarr_format=zarr_format)
        except TypeError as error:
            raise MetadataError(f"{data!r} is no {cls.__name__}", [Problem("data_type", str(error))]) from None
        return cls._of_this_kind(found, data)

    def _of_this_kind(cls, found: DataType, given: object) -> DataType:
        if isinstance(found, cls):
            return found
        raise MetadataError(f"{given!r} is no {cls.__name__}", [Problem("data_type", f"it is {found.name}")])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls


class _Plain(metaclass=_Kind):
    """A data type without parameters."""

    names: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *, endianness: str | None = None) -> DataType:  # type: ignore[misc]
        return data_type_for(cls.names[0])


class Bool(_Plain):
    """``bool``."""

    names = ("bool",)


class Int8(_Plain):
    """``int8``."""

    names = ("int8",)


class Int16(_Plain):
    """``int16``."""

    names = ("int16",)


class Int32(_Plain):
    """``int32``."""

    names = ("int32",)


class Int64(_Plain):
    """``int64``."""

    names = ("int64",)


class UInt8(_Plain):
    """``uint8``."""

    names = ("uint8",)


class UInt16(_Plain):
    """``uint16``."""

    names = ("uint16",)


class UInt32(_Plain):
    """``uint32``."""

    names = ("uint32",)


class UInt64(_Plain):
    """``uint64``."""

    names = ("uint64",)


class Float16(_Plain):
    """``float16``."""

    names = ("float16",)


class Float32(_Plain):
    """``float32``."""

    names = ("float32",)


class Float64(_Plain):
    """``float64``."""

    names = ("float64",)


class Complex64(_Plain):
    """``complex64``."""

    names = ("complex64", "complex_float32")


class Complex128(_Plain):
    """``complex128``."""

    names = ("complex128", "complex_float64")


class VariableLengthUTF8(_Plain):
    """``string``: text of any length."""

    names = ("string", "variable_length_utf8")


class VariableLengthBytes(_Plain):
    """``bytes``: bytes of any length."""

    names = ("bytes", "variable_length_bytes")


class FixedLengthUTF32(metaclass=_Kind):
    """``fixed_length_utf32``: text of at most ``length`` code points."""

    names = ("fixed_length_utf32",)

    def __new__(cls, *, length: int, endianness: str | None = None) -> DataType:  # type: ignore[misc]
        return data_type_for(f"<U{length}")


class NullTerminatedBytes(metaclass=_Kind):
    """``null_terminated_bytes``: at most ``length`` bytes."""

    names = ("null_terminated_bytes",)

    def __new__(cls, *, length: int) -> DataType:  # type: ignore[misc]
        return data_type_for(f"|S{length}")


class RawBytes(metaclass=_Kind):
    """``raw_bytes``: exactly ``length`` bytes."""

    names = ("raw_bytes",)

    def __new__(cls, *, length: int) -> DataType:  # type: ignore[misc]
        return data_type_for(f"|V{length}")


class DateTime64(metaclass=_Kind):
    """``numpy.datetime64``: counts of ``scale_factor`` times ``unit`` since 1970."""

    names = ("numpy.datetime64",)

    def __new__(  # type: ignore[misc]
        cls, *, unit: str = "generic", scale_factor: int = 1, endianness: str | None = None
    ) -> DataType:
        return _time(cls.names[0], unit, scale_factor)


class TimeDelta64(metaclass=_Kind):
    """``numpy.timedelta64``: counts of ``scale_factor`` times ``unit``."""

    names = ("numpy.timedelta64",)

    def __new__(  # type: ignore[misc]
        cls, *, unit: str = "generic", scale_factor: int = 1, endianness: str | None = None
    ) -> DataType:
        return _time(cls.names[0], unit, scale_factor)


class Struct(metaclass=_Kind):
    """``struct``: named fields, each ``(name, data type)``."""

    names = ("struct", "structured")

    def __new__(cls, *, fields: Sequence[tuple[str, Any]]) -> DataType:  # type: ignore[misc]
        members = [{"name": name, "data_type": data_type_for(kind).to_json()} for name, kind in fields]
        return data_type_for({"name": cls.names[0], "configuration": {"fields": members}})


Structured = Struct


def parse_dtype(dtype_spec: DTypeLike, *, zarr_format: int = 3) -> DataType:
    """Return the data type for whatever ``dtype=`` takes, or for the JSON of one in that version of Zarr.

    The JSON of v2 is that of :meth:`ZDType.to_json`: ``{"name": "|O", "object_codec_id": "vlen-utf8"}``. Raises
    ``TypeError`` and ``MetadataError`` as where an array is created.
    """
    if zarr_format not in (2, 3):
        raise ValueError(f"zarr_format must be 2 or 3, not {zarr_format!r}")
    if zarr_format == 2 and isinstance(dtype_spec, Mapping) and "object_codec_id" in dtype_spec:
        spec: Mapping[str, Any] = dtype_spec
        return _of_v2(spec.get("name"), spec["object_codec_id"])
    return data_type_for(dtype_spec)


def _of_v2(name: Any, object_codec: Any) -> DataType:
    filters = () if object_codec is None else ({"id": object_codec},)
    problems = Problems()
    dtype = parse_name_in_v2(name, "name", problems)
    if dtype is not None and dtype.kind == "O" and object_codec is None:
        problems.add("object_codec_id", 'objects ("|O") need one, such as "vlen-utf8"')
    if dtype is not None and dtype.kind != "O" and object_codec is not None:
        problems.add("object_codec_id", f'only objects ("|O") have one, not {name!r}')
    problems.raise_if_any(f"{name!r} is not a data type of Zarr v2")
    assert dtype is not None
    return to_codecs(Storage(dtype, "C", filters, None))[0]


def _time(name: str, unit: str, scale_factor: int) -> DataType:
    configuration: Mapping[str, Any] = {"unit": unit, "scale_factor": scale_factor}
    return data_type_for({"name": name, "configuration": configuration})


__all__ = [
    "Bool",
    "Complex64",
    "Complex128",
    "DateTime64",
    "FixedLengthUTF32",
    "Float16",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "NullTerminatedBytes",
    "RawBytes",
    "Struct",
    "Structured",
    "TimeDelta64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "VariableLengthBytes",
    "VariableLengthUTF8",
    "ZDType",
    "parse_dtype",
    "register_data_type",
]


def __dir__() -> list[str]:
    return sorted(__all__)
