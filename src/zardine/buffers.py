"""The one spelling of contiguous bytes, and of arrays of integers, that every floor passes around."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""Contiguous bytes; a memoryview has format ``B`` and one dimension, so that ``len`` counts bytes."""

Ints: TypeAlias = npt.NDArray[np.int64]
"""An array of 64-bit integers: indices, offsets, lengths, rows."""
