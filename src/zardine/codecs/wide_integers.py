"""64-bit integers as ``float64``, which has 53 bits for them: rounded, or prepared for further rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def round_to_double(flat: npt.NDArray[Any], rounding: str) -> npt.NDArray[Any]:
    """The integers as ``float64``; ``rounding`` is one of :class:`~zardine.codecs.cast.casting.Rounding`."""
    near = flat.astype(np.float64)
    if flat.dtype.itemsize < 8 or rounding == "nearest-even":
        return near
    error = _error(flat, near)
    above, below = np.nextafter(near, np.inf), np.nextafter(near, -np.inf)
    if rounding == "towards-positive":
        return np.where(error > 0, above, near)
    if rounding == "towards-negative":
        return np.where(error < 0, below, near)
    if rounding == "towards-zero":
        return np.where((error < 0) & (near > 0), below, np.where((error > 0) & (near < 0), above, near))
    outer = np.where(near > 0, above, below)  # nearest-away: a tie that went to the even inner neighbour goes out
    tie = error * 2 == outer - near
    return np.where(tie & (error != 0), outer, near)


def sticky_double(flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The integers rounded "to odd": an inexact one gets an odd last digit.

    Rounding the result to a format of 51 bits or fewer, in any mode, gives what rounding the integer itself gives.
    """
    near = flat.astype(np.float64)
    if flat.dtype.itemsize < 8:
        return near
    error = _error(flat, near)
    inner = np.where(np.sign(error) * np.sign(near) < 0, np.nextafter(near, 0.0), near)
    odd = (inner.view(np.uint64) | np.uint64(1)).view(np.float64)
    return np.where(error != 0, odd, near)


def _error(flat: npt.NDArray[Any], near: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The integers minus ``near``, exactly: small numbers, so that arithmetic modulo 2**64 gives them."""
    whole = np.abs(near)
    bits = np.where(whole >= 2.0**64, 0.0, whole).astype(np.uint64)
    bits = np.where(near < 0, np.uint64(0) - bits, bits)
    return (flat.view(np.uint64) - bits).view(np.int64).astype(np.float64)
