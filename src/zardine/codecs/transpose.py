"""``transpose``: the dimensions of the chunk in another order.

Specification: "Transpose codec", version 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.configured import Check, Configured
from zardine.json_document import JSON, Problems, parse_choice, parse_integers, show
from zardine.public_names import public


def _order(value: JSON, place: str, problems: Problems) -> tuple[int, ...] | str | None:
    if isinstance(value, str):
        problems.note(place, f"{show(value)} is a word of drafts of the specification, which has a list of dimensions")
        return parse_choice(value, ("C", "F"), place, problems)
    return parse_integers(value, place, problems, low=0)


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class TransposeCodec(Configured, ArrayArrayCodec):
    """Dimension ``i`` of the encoded chunk is dimension ``order[i]`` of the chunk. Both directions give views.

    The words ``"C"`` (as it is) and ``"F"`` (reversed) of the specification's drafts are taken, too.
    """

    order: tuple[int, ...] | str

    name: ClassVar[str] = "transpose"
    moves_only: ClassVar[bool] = True
    MEMBERS: ClassVar[Mapping[str, Check]] = {"order": _order}
    REQUIRED = ("order",)

    @classmethod
    def check_together(cls, values: Mapping[str, Any], prefix: str, problems: Problems) -> None:
        """``order`` has to name each dimension once."""
        order = values["order"]
        if isinstance(order, str):
            return
        if sorted(order) != list(range(len(order))):
            expected = f"a permutation of 0 to {len(order) - 1}"
            problems.expected(f"{prefix}order", expected, list(order))

    def resolve(self, spec: ChunkSpec) -> Self:
        """``"C"`` and ``"F"`` as lists of dimensions."""
        if not isinstance(self.order, str):
            return self
        dimensions = range(len(spec.shape))
        return replace(self, order=tuple(dimensions if self.order == "C" else reversed(dimensions)))

    def check(self, spec: ChunkSpec) -> str | None:
        """``order`` has to have one element per dimension."""
        if len(self.order) != len(spec.shape):
            return f'"transpose" orders {len(self.order)} dimensions, the chunk has {len(spec.shape)}'
        return None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The chunk's shape in the new order."""
        return replace(spec, shape=tuple(spec.shape[axis] for axis in self.dimensions))

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """A view of ``array`` with its dimensions in the order of the codec."""
        return array.transpose(self.dimensions)

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """A view of ``array`` with its dimensions back in place."""
        return array.transpose(np.argsort(self.dimensions))

    @property
    def dimensions(self) -> tuple[int, ...]:
        """``order`` as a list of dimensions."""
        assert not isinstance(self.order, str)  # a chain resolves it first
        return self.order
