"""Complex numbers: two floating point components, real first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.fields import repair_fields
from zardine.data_types.floats import Float
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.json_document import JSON, Problems


class Complex(DataType):
    """A pair of numbers of one floating point type. Specification: core 3.1; registry: ``complex_*``.

    In memory ``complex64`` or ``complex128``; where NumPy has no such type, a struct with fields ``real`` and ``imag``.
    """

    components = 2

    def __init__(self, name: str, component: Float) -> None:
        self.name = name
        self.component = component
        size = component.dtype.itemsize
        if component.name in ("float32", "float64"):
            self.dtype = np.dtype(f"c{2 * size}")
        else:
            self.dtype = np.dtype([("real", component.dtype), ("imag", component.dtype)])
        self.words = ((size, 2),)
        self.bits = component.bits

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            problems.expected(place, f"an array of two numbers, real and imaginary part, for {self.name}", value)
            return None
        real = self.component.parse_fill(value[0], f"{place}[0]", problems)
        imaginary = self.component.parse_fill(value[1], f"{place}[1]", problems)
        return None if real is None or imaginary is None else self._join(real, imaginary)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        parts = fill.reshape(1).view(self.component.dtype)
        return [self.component.fill_to_json(parts[i : i + 1].reshape(())) for i in (0, 1)]

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if isinstance(value, np.generic) and value.dtype == self.dtype:
            return np.array(value, self.dtype)
        if isinstance(value, (complex, np.complexfloating)):
            parts: tuple[Any, ...] = (value.real, value.imag)
        elif isinstance(value, (list, tuple)) and len(value) == 2:
            parts = tuple(value)
        elif real_number(value) is not None:
            parts = (value, 0)
        else:
            raise TypeError(refusal(value, self.name, "expected a number, or real and imaginary part"))
        return self._join(self.component.cast_fill(parts[0]), self.component.cast_fill(parts[1]))

    def repair_bits(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.dtype.names is None:
            return array
        return repair_fields(array, (("real", self.component), ("imag", self.component)))

    def _check_v2(self, zarr_format: int) -> None:
        super()._check_v2(zarr_format)
        if self.dtype.names is not None:  # there it would be a struct
            raise TypeError(f"Zarr v2 has no data type {self.name}: it has NumPy's own")

    def _join(self, real: npt.NDArray[Any], imaginary: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.frombuffer(real.tobytes() + imaginary.tobytes(), self.dtype).reshape(()).copy()


def core_complexes(floats: list[Float]) -> list[Complex]:
    """``complex64`` and ``complex128``, and their registered second names with the one of ``float16``."""
    by_name = {component.name: component for component in floats}
    return [
        Complex("complex64", by_name["float32"]),
        Complex("complex128", by_name["float64"]),
        *(Complex(f"complex_{name}", component) for name, component in by_name.items()),
    ]
