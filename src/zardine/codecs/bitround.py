"""``bitround``: fewer significant bits, so that the data compress better.

Specification: zarr-extensions "codecs/bitround"; also read as ``numcodecs.bitround``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.configured import Check, Configured, integer
from zardine.public_names import public

_MANTISSA_BITS = {
    "float16": 10,
    "float32": 23,
    "float64": 52,
    "bfloat16": 7,
    "complex64": 23,
    "complex128": 52,
    "complex_float16": 10,
    "complex_float32": 23,
    "complex_float64": 52,
    "complex_bfloat16": 7,
}
_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_TIMES = {"numpy.datetime64", "numpy.timedelta64"}


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class BitRoundCodec(Configured, ArrayArrayCodec):
    """Rounds to ``keepbits`` bits when encoding: of the mantissa, or of an integer from its highest set bit.

    Ties go to the even neighbour. NaN stays as it is; a float may round up to infinity, as in numcodecs. Integers of
    both signs are rounded by magnitude; what would leave the range of the type is rounded towards zero.
    """

    keepbits: int

    elementwise: ClassVar[bool] = True
    name: ClassVar[str] = "bitround"
    MEMBERS: ClassVar[Mapping[str, Check]] = {"keepbits": integer(1, 64)}
    REQUIRED = ("keepbits",)

    def check(self, spec: ChunkSpec) -> str | None:
        """Floats, complex numbers, integers of 8 bits or more, and times can be rounded."""
        name = spec.data_type.name
        if name in _INTEGERS or name in _TIMES:
            return None if self.keepbits else '"bitround" has to keep at least 1 bit of integers'
        if name not in _MANTISSA_BITS:
            return f'"bitround" cannot round data type {name}'
        return None

    def remark(self, spec: ChunkSpec) -> str | None:
        """There may be fewer bits than are to be kept; then nothing is rounded, as in zarrs."""
        bits = _MANTISSA_BITS.get(spec.data_type.name, self.keepbits)
        if self.keepbits > bits:
            return f'"bitround" cannot keep {self.keepbits} bits of {spec.data_type.name}, whose mantissa has {bits}'
        return None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The same type; the fill value is rounded like every element."""
        return replace(spec, fill=self.encode(spec.fill, spec))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """The rounded elements, in new memory unless nothing has to be rounded."""
        name = spec.data_type.name
        array = np.ascontiguousarray(array, dtype=spec.dtype).reshape(array.shape)
        flat = array.reshape(-1)
        if name in _TIMES:
            return _round_integers(flat.view(np.int64), self.keepbits).view(spec.dtype).reshape(array.shape)
        if name in _INTEGERS:
            return _round_integers(flat, self.keepbits).reshape(array.shape)
        drop = _MANTISSA_BITS[name] - self.keepbits
        if drop <= 0:
            return array
        size = spec.dtype.itemsize // spec.data_type.components
        return _round_floats(flat.view(f"u{size}"), _MANTISSA_BITS[name], drop).view(spec.dtype).reshape(array.shape)

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``array`` itself: what was rounded away is gone."""
        return array


def _round_floats(bits: npt.NDArray[Any], mantissa: int, drop: int) -> npt.NDArray[Any]:
    """Round the lowest ``drop`` bits of IEEE numbers, given as unsigned integers, to nearest, ties to even."""
    word = bits.dtype.type
    half = word((1 << (drop - 1)) - 1)
    keep = word(~((1 << drop) - 1) & ((1 << 8 * bits.itemsize) - 1))
    rounded = (bits + half + (bits >> word(drop) & word(1))) & keep
    infinity = word((1 << (8 * bits.itemsize - 1)) - (1 << mantissa))  # exponent all ones, mantissa zero
    magnitude = bits & word((1 << (8 * bits.itemsize - 1)) - 1)
    return np.where(magnitude > infinity, bits, rounded)


def _round_integers(array: npt.NDArray[Any], keep: int) -> npt.NDArray[Any]:
    """Round to ``keep`` bits counted from the highest set bit of the magnitude, ties to even."""
    size = array.dtype.itemsize
    word = np.dtype(f"u{size}").type
    stored = array.view(word)
    negative = array < 0 if array.dtype.kind == "i" else np.zeros(array.shape, bool)
    magnitude = np.where(negative, word(0) - stored, stored)  # the lowest number is its own magnitude, modulo 2**bits
    drop = np.maximum(_bit_length(magnitude).astype(np.int64) - keep, 0).astype(word)
    one = word(1)
    step = np.left_shift(one, np.minimum(drop, word(8 * size - 1)))
    low = np.where(drop > 0, magnitude & (step - one), word(0))
    down = magnitude - low
    half = step >> one
    odd = (magnitude & step) != 0
    round_up = (drop > 0) & ((low > half) | ((low == half) & odd))
    most = np.where(negative, word(1 << (8 * size - 1)), word(np.iinfo(array.dtype).max))
    fits = step <= most - down
    rounded = np.where(round_up & fits, down + step, down)
    result: npt.NDArray[Any] = np.where(negative, word(0) - rounded, rounded).view(array.dtype)
    return result


def _bit_length(magnitude: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Number of the highest set bit, counted from 1; 0 for 0."""
    filled = magnitude.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < 8 * magnitude.dtype.itemsize:
            filled |= filled >> magnitude.dtype.type(shift)
    return np.asarray(np.bitwise_count(filled))
