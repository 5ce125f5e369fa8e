"""Types narrower than a byte, one per byte in memory: what stands in the unused high bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def keep_low_bits(array: npt.NDArray[Any], bits: int, *, extend_sign: bool = False) -> npt.NDArray[Any]:
    """``array`` of 1-byte elements with only the low ``bits`` kept, or the sign copied upwards.

    Gives ``array`` itself where every element already has that form.
    """
    stored = array.view(np.uint8)
    if not extend_sign:
        if stored.max(initial=0) < 1 << bits:
            return array
        return np.asarray(stored & np.uint8((1 << bits) - 1)).view(array.dtype)
    sign = np.uint8(1 << (bits - 1))
    regular = np.asarray(((stored & np.uint8((1 << bits) - 1)) ^ sign) - sign)
    return array if np.array_equal(regular, stored) else regular.view(array.dtype)
