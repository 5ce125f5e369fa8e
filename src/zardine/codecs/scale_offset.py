"""``scale_offset``: ``(value - offset) * scale``, in the arithmetic of the data type and without any overflow.

Specification: zarr-extensions "codecs/scale_offset".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.cast.casting import CastError, Rounding, cast_numbers, is_real, plain_numbers
from zardine.codecs.configured import Check, Configured
from zardine.data_types.base import DataType
from zardine.data_types.integers import Integer
from zardine.data_types.registry import READY
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.json_document import JSON, Problems
from zardine.public_names import public


def _scalar(value: JSON, place: str, problems: Problems) -> JSON:
    """A fill value in JSON of some real type; which one is known when the codec meets an array."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        problems.expected(place, "a number, or a string that stands for one", value)
        return None
    return value


@public("zardine.codecs")
@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOffset(Configured, ArrayArrayCodec):
    """Subtracts ``offset``, then multiplies by ``scale``; both are given as fill values of the array's type in JSON.

    Integers are decoded exactly: a stored number that ``scale`` does not divide is an error, as is every value outside
    the range of the type on the way. Floats are rounded after each operation.
    """

    offset: int | float | str = 0
    scale: int | float | str = 1

    elementwise: ClassVar[bool] = True
    name: ClassVar[str] = "scale_offset"
    MEMBERS: ClassVar[Mapping[str, Check]] = {"offset": _scalar, "scale": _scalar}

    def __post_init__(self) -> None:
        for name in self.MEMBERS:
            if not isinstance(value := getattr(self, name), (int, float, str, np.generic)):
                raise TypeError(f"{name} is a number, or a string that stands for one, not {value!r}")
        super(ScaleOffset, self).__post_init__()

    def configuration(self) -> dict[str, JSON] | None:
        """What differs from 0 and 1, which not every data type can spell."""
        document: dict[str, JSON] = {}
        if self.offset != 0:
            document["offset"] = self.offset
        if self.scale != 1:
            document["scale"] = self.scale
        return document or None

    def check(self, spec: ChunkSpec) -> str | None:
        """The type has to be real, both scalars have to exist in it, and the fill value has to be encodable."""
        if not is_real(spec.data_type):
            return f'"scale_offset" cannot compute with data type {spec.data_type.name}'
        problems = Problems()
        self._parse(spec.data_type, problems)
        if problems:
            return f'"scale_offset" does not fit data type {spec.data_type.name}: {problems.found[0]}'
        try:
            self._encode(spec.fill, spec.data_type)
        except CastError as error:
            return f'"scale_offset" cannot encode the fill value: {error}'
        return None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The same type; the fill value is encoded like every element."""
        return replace(spec, fill=self.encode(spec.fill, spec))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``(array - offset) * scale``; raises :class:`EncodeError` where a value leaves the range of the type."""
        try:
            return self._encode(array, spec.data_type)
        except CastError as error:
            raise EncodeError(str(error), codec=self.name) from None

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``array / scale + offset``; raises :class:`ChunkDecodeError` where that is no value of the type."""
        offset, scale = self._parse(spec.data_type, Problems())
        flat = array.reshape(-1)
        try:
            if isinstance(spec.data_type, Integer):
                if scale is not None:
                    flat = _divide(flat, spec.data_type, int(scale[()]))
                if offset is not None:
                    flat = _calculate(flat, spec.data_type, np.add, int(offset[()]))
            else:
                flat = flat if scale is None else _compute(flat, spec.data_type, np.divide, scale)
                flat = flat if offset is None else _compute(flat, spec.data_type, np.add, offset)
        except CastError as error:
            raise ChunkDecodeError(str(error), codec=self.name) from None
        return flat.reshape(array.shape)

    def _encode(self, array: npt.NDArray[Any], data_type: DataType) -> npt.NDArray[Any]:
        offset, scale = self._parse(data_type, Problems())
        flat = array.reshape(-1)
        if isinstance(data_type, Integer):
            flat = flat if offset is None else _calculate(flat, data_type, np.subtract, int(offset[()]))
            flat = flat if scale is None else _calculate(flat, data_type, np.multiply, int(scale[()]))
        else:
            flat = flat if offset is None else _compute(flat, data_type, np.subtract, offset)
            flat = flat if scale is None else _compute(flat, data_type, np.multiply, scale)
        return flat.reshape(array.shape)

    def _parse(
        self, data_type: DataType, problems: Problems
    ) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
        """Offset and scale as numbers of ``data_type``; ``None`` for 0 and 1, which change nothing."""
        offset = None if self.offset == 0 else data_type.parse_fill(self.offset, "offset", problems)
        scale = None if self.scale == 1 else data_type.parse_fill(self.scale, "scale", problems)
        if scale is not None and float(scale[()]) == 0:
            problems.add("scale", "0 cannot be undone")
        return offset, scale


def _calculate(flat: npt.NDArray[Any], data_type: Integer, operation: np.ufunc, operand: int) -> npt.NDArray[Any]:
    """Integers plus, minus or times ``operand``. Since that is monotonic, the extremes tell whether all results fit."""
    numbers = plain_numbers(flat, data_type)
    if numbers.size:
        for extreme in (int(numbers.min()), int(numbers.max())):
            result = operation(np.array(extreme, object), operand)
            if not data_type.low <= result <= data_type.high:
                raise CastError(f"{extreme} {_SIGNS[operation]} {operand} is out of the range of {data_type.name}")
    with np.errstate(over="ignore"):
        # modulo 2**bits, which is exact for results that fit, even where the operand itself would not
        operand %= 1 << 8 * numbers.itemsize
        word = np.dtype(f"u{numbers.itemsize}")
        result = operation(numbers.view(word), word.type(operand)).view(numbers.dtype)
    return np.asarray(result).astype(data_type.dtype, copy=False)


def _divide(flat: npt.NDArray[Any], data_type: Integer, scale: int) -> npt.NDArray[Any]:
    numbers = plain_numbers(flat, data_type)
    if scale == -1:  # the lowest number has no opposite
        if numbers.size and int(numbers.min()) == data_type.low < 0:
            raise CastError(f"{data_type.low} / -1 is out of the range of {data_type.name}")
        return np.asarray(np.negative(numbers)).astype(data_type.dtype, copy=False)
    quotient, rest = np.divmod(numbers, numbers.dtype.type(scale))
    if rest.any():
        raise CastError(f"{numbers[rest != 0][0]} / {scale} is not a whole number")
    return np.asarray(quotient).astype(data_type.dtype, copy=False)


def _compute(
    flat: npt.NDArray[Any], data_type: DataType, operation: np.ufunc, operand: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Floats, rounded once. Formats below ``float32`` go through ``float64``, whose own rounding does no harm there."""
    with np.errstate(all="ignore"):
        if data_type.name in ("float32", "float64"):
            result: npt.NDArray[Any] = operation(flat, operand[()])
            overflow = ~np.isfinite(result) & np.isfinite(flat)
            if overflow.any():
                raise CastError(f"{flat[overflow][0]} {_SIGNS[operation]} {operand[()]} is out of range")
            return result
        wide = operation(plain_numbers(flat, data_type), operand.astype(np.float64)[()])
    return cast_numbers(wide, READY["float64"], data_type, Rounding.nearest_even, None)


_SIGNS: dict[np.ufunc, str] = {np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/"}
