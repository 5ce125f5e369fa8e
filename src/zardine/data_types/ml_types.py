"""Data types that NumPy has only with the package ``ml_dtypes``, which is imported when first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from zardine.data_types.base import DataType
from zardine.data_types.complex_numbers import Complex
from zardine.data_types.floats import Float
from zardine.data_types.integers import Integer

# The number is what the packbits codec stores.
FLOAT_BITS: dict[str, int] = {
    "bfloat16": 16,
    "float4_e2m1fn": 4,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8,  # not registered, but tensorstore writes it
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
}
INTEGER_BITS = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4}
COMPLEX_COMPONENTS = {f"complex_{name}": name for name in FLOAT_BITS}
NAMES = frozenset((*FLOAT_BITS, *INTEGER_BITS, *COMPLEX_COMPONENTS))


class MissingPackageError(Exception):
    """``ml_dtypes`` is not installed, or too old for this type."""


@cache
def ml_data_type(name: str) -> DataType:
    """The data type with one of :data:`NAMES`. Raises :class:`MissingPackageError`."""
    if name in COMPLEX_COMPONENTS:
        component = ml_data_type(COMPLEX_COMPONENTS[name])
        assert isinstance(component, Float)
        return Complex(name, component)
    try:
        scalar: Any = getattr(import_module("ml_dtypes"), name)
    except (ImportError, AttributeError):
        raise MissingPackageError(f'{name} needs the package ml_dtypes: pip install "zardine[ml]"') from None
    dtype = np.dtype(scalar)
    if name in INTEGER_BITS:
        return Integer(name, dtype, INTEGER_BITS[name], signed=name.startswith("int"))
    return Float(name, dtype, FLOAT_BITS[name])
