"""``transpose``: the dimensions of the chunk in another order.

Specification: "Transpose codec", version 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.configured import Check, Configured, integers
from zardine.json_document import Problems


@dataclass(frozen=True, slots=True)
class TransposeCodec(Configured, ArrayArrayCodec):
    """Dimension ``i`` of the encoded chunk is dimension ``order[i]`` of the chunk. Both directions give views."""

    order: tuple[int, ...]

    name: ClassVar[str] = "transpose"
    MEMBERS: ClassVar[Mapping[str, Check]] = {"order": integers(low=0)}
    REQUIRED = ("order",)

    @classmethod
    def check_together(cls, values: Mapping[str, Any], prefix: str, problems: Problems) -> None:
        """``order`` has to name each dimension once."""
        order = values["order"]
        if sorted(order) != list(range(len(order))):
            expected = f"a permutation of 0 to {len(order) - 1}"
            problems.expected(f"{prefix}order", expected, list(order))

    def check(self, spec: ChunkSpec) -> str | None:
        """``order`` has to have one element per dimension."""
        if len(self.order) != len(spec.shape):
            return f'"transpose" orders {len(self.order)} dimensions, the chunk has {len(spec.shape)}'
        return None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The chunk's shape in the new order."""
        return replace(spec, shape=tuple(spec.shape[axis] for axis in self.order))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """A view of ``array`` with its dimensions in the order of the codec."""
        return array.transpose(self.order)

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """A view of ``array`` with its dimensions back in place."""
        return array.transpose(np.argsort(self.order))
