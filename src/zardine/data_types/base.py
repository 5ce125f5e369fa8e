"""What a data type is to the rest of zardine: a name in JSON, a NumPy dtype, a fill value in both forms.

Specification: core 3.1, "Data types" and "Permitted fill values"; registered extensions: zarr-extensions "data-types".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import GenericAlias
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.v2_fill_values import fill_to_json as fill_to_json_of_v2
from zardine.data_types.v2_fill_values import parse_fill as parse_fill_of_v2
from zardine.data_types.v2_names import dtype_to_json, has_name
from zardine.json_document import JSON, Problems


class DataType(ABC):
    """One data type with its parameters. Values are immutable, hashable, and equal when their JSON is equal.

    ``dtype`` is the NumPy dtype of arrays in memory: always in native byte order and packed, since byte order belongs
    to the ``bytes`` codec. Fill values are 0-dimensional arrays of ``dtype``, so that the payload of a NaN survives.
    """

    name: str
    """The identifier, as the specification or the registry spells it."""

    dtype: np.dtype[Any]
    """NumPy dtype in memory; ``StringDType`` or ``object`` for variable-length types."""

    words: tuple[tuple[int, int], ...] = ()
    """Runs of words that one element is made of, in order, as ``(size, count)``: ``count`` words of ``size`` bytes.

    Each word is stored in the byte order of the ``bytes`` codec: ``((4, 1),)`` for ``float32``, ``((8, 2),)`` for
    ``complex128``, ``((4, 1), (1, 1), (8, 1))`` for a struct of ``int32``, ``uint8``, ``float64``, ``((1, 100),)`` for
    100 raw bytes. Neighbouring runs differ in size, so there is one run exactly where swapping whole words suffices.
    Empty for variable-length types.
    """

    bits: int | None = None
    """Bits of each component as the ``packbits`` codec counts them: 1 for ``bool``, 4 for ``int4``.

    ``None`` for types that are no numbers, which this codec does not take.
    """

    components: int = 1
    """2 for complex types, else 1: how many numbers of ``bits`` bits make one element."""

    @property
    def item_size(self) -> int | None:
        """Bytes of one element under the ``bytes`` codec, or ``None`` where elements vary in length."""
        return sum(size * count for size, count in self.words) if self.words else None

    @property
    def needs_endian(self) -> bool:
        """Whether the ``bytes`` codec has to be told a byte order for this type."""
        return any(size > 1 for size, _ in self.words)

    object_codec: str | None = None
    """The codec that makes bytes of elements in Zarr v2, which stores them as objects; ``None`` for all others."""

    of_v2_only: bool = False
    """Whether no document of Zarr v3 can name the type."""

    def to_json(self, zarr_format: int = 3) -> JSON:
        """Return the ``data_type`` member of Zarr v3: a plain name where there are no parameters, else an object.

        ``zarr_format=2``: as zarr-python's data types, an object with the member ``dtype`` of Zarr v2 as ``name``, in
        little-endian byte order, and ``object_codec_id``. Raises ``TypeError`` for a type that this version lacks.
        """
        if zarr_format == 3:
            return self._to_json()
        self._check_v2(zarr_format)
        return {"name": dtype_to_json(self._stored_in_v2()), "object_codec_id": self.object_codec}

    def _to_json(self) -> JSON:
        """The form of v3."""
        return self.name

    def _check_v2(self, zarr_format: int) -> None:
        if zarr_format != 2:
            raise ValueError(f"zarr_format must be 2 or 3, not {zarr_format!r}")
        if not has_name(self.dtype):
            raise TypeError(f"Zarr v2 has no data type {self.name}: it has NumPy's own")

    @abstractmethod
    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        """The fill value that a document holds, 0-dimensional; notes a problem and gives ``None`` if it is wrong."""

    @abstractmethod
    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        """The JSON form of a fill value; :meth:`parse_fill` gives the same bits back."""

    def default_fill(self) -> npt.NDArray[Any]:
        """What is recorded when the creator of an array names no fill value: zero, false, the empty string."""
        return np.zeros((), self.dtype)

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        """A Python or NumPy scalar given by a user as a fill value, as a 0-dimensional array of ``dtype``.

        Raises ``ValueError`` or ``TypeError`` where the value does not fit: out of range, fractional, not a number.
        """
        return np.asarray(value).astype(self.dtype, casting="same_kind").reshape(())

    def repair_bits(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``array`` just read from stored bytes, with bits that the specification says to ignore made regular.

        A boolean byte other than 0 counts as true; the unused high bits of types narrower than a byte become what
        ``ml_dtypes`` itself keeps there. Gives ``array`` itself, not a copy, where nothing has to change.
        """
        return array

    # the names that zarr-python has for what is above

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """Return the class with parameters, for annotations."""
        return GenericAlias(cls, item)

    def to_native_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype in memory."""
        return self.dtype

    def default_scalar(self) -> Any:
        """Return the default fill value as a scalar."""
        return self.default_fill()[()]

    def cast_scalar(self, data: object) -> Any:
        """Return ``data`` as a scalar of this type; raises as :meth:`cast_fill`."""
        return self.cast_fill(data)[()]

    def to_json_scalar(self, data: object, *, zarr_format: int) -> JSON:
        """Return ``data`` as a fill value in a document of Zarr v2 or v3; raises as :meth:`cast_fill`."""
        if zarr_format == 3:
            return self.fill_to_json(self.cast_fill(data))
        self._check_v2(zarr_format)
        return fill_to_json_of_v2(self.cast_fill(data), self, self._stored_in_v2())

    def from_json_scalar(self, data: JSON, *, zarr_format: int) -> Any:
        """Return the fill value that a document of Zarr v2 or v3 holds as a scalar; ``MetadataError`` if it is none."""
        problems = Problems()
        if zarr_format == 3:
            fill = self.parse_fill(data, "fill_value", problems)
        else:
            self._check_v2(zarr_format)
            fill = parse_fill_of_v2(data, self, self._stored_in_v2(), "fill_value", problems)
        problems.raise_if_any(f"{data!r} is no fill value of {self.name}")
        assert fill is not None
        return fill[()]

    def _stored_in_v2(self) -> np.dtype[Any]:
        return np.dtype(object) if self.object_codec else self.dtype.newbyteorder("<")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DataType):
            return NotImplemented
        return (self.to_json(), self.dtype) == (other.to_json(), other.dtype)

    def __hash__(self) -> int:
        return hash((self.name, self.dtype))

    def __repr__(self) -> str:
        return f"<data type {self.name}>"
