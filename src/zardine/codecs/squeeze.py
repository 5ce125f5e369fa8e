"""``zarrs.squeeze``: the chunk without its axes of length 1.

As the program zarrs writes it; no registry describes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.configured import Configured


@dataclass(frozen=True, slots=True)
class SqueezeCodec(Configured, ArrayArrayCodec):
    """Leaves out axes of length 1. A chunk that has no other axis, or none at all, becomes a list of one element."""

    name: ClassVar[str] = "zarrs.squeeze"
    moves_only: ClassVar[bool] = True

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The lengths other than 1."""
        return replace(spec, shape=tuple(length for length in spec.shape if length != 1) or (1,))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``array`` in the shape that is left."""
        return array.reshape(self.encoded_spec(spec).shape)

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``array`` in the shape of the chunk."""
        return array.reshape(spec.shape)
