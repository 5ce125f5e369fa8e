"""``reshape``: the same elements in the same order under another shape.

Specification: zarr-extensions "codecs/reshape".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.configured import Check, Configured
from zardine.errors import EncodeError
from zardine.json_document import JSON, MOST_DIMENSIONS, Problems, is_integer, parse_integers
from zardine.public_names import public


def _parse_shape(value: JSON, place: str, problems: Problems) -> tuple[int | tuple[int, ...], ...] | None:
    """Sizes, -1 at most once, and arrays of input dimensions that increase over the whole shape."""
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "an array", value)
        return None
    before = len(problems.found)
    shape: list[int | tuple[int, ...]] = []
    dimensions: list[int] = []
    for index, item in enumerate(value):
        if isinstance(item, (list, tuple)):
            group = parse_integers(item, f"{place}[{index}]", problems, low=0) or ()
            dimensions += group
            shape.append(group)
        elif not is_integer(item) or not (item == -1 or 0 < item < 2**63):
            problems.expected(f"{place}[{index}]", "a positive integer, -1 or an array of dimensions", item)
        else:
            shape.append(int(item))
    if shape.count(-1) > 1:
        problems.add(place, "-1 may stand only once")
    if any(first >= second for first, second in pairwise(dimensions)):
        problems.add(place, "the input dimensions have to increase from left to right")
    return None if len(problems.found) > before else tuple(shape)


@public("zardine.codecs")
@dataclass(frozen=True, slots=True)
class ReshapeCodec(Configured, ArrayArrayCodec):
    """Each item of ``shape`` is a size, the input dimensions whose product is the size, or -1 for what remains."""

    shape: tuple[int | tuple[int, ...], ...]

    name: ClassVar[str] = "reshape"
    moves_only: ClassVar[bool] = True
    MEMBERS: ClassVar[Mapping[str, Check]] = {"shape": _parse_shape}
    REQUIRED = ("shape",)

    def check(self, spec: ChunkSpec) -> str | None:
        """The number of elements has to stay, and named dimensions have to keep their place in the order."""
        shape, reason = self._resolve(spec.shape)
        return reason if shape is None else None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The shape after reshaping; raises :class:`EncodeError` where there is none."""
        shape, reason = self._resolve(spec.shape)
        if shape is None:
            raise EncodeError(reason, codec=self.name)
        return replace(spec, shape=shape)

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``array`` reshaped in C order; a view where its memory allows that."""
        return array.reshape(self.encoded_spec(spec).shape)

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """``array`` in the shape of the chunk."""
        return array.reshape(spec.shape)

    def _resolve(self, source: tuple[int, ...]) -> tuple[tuple[int, ...] | None, str]:
        """The output shape for an input of shape ``source``, or ``None`` and why there is none."""
        sizes: list[int] = []
        for item in self.shape:
            if isinstance(item, int):
                sizes.append(item)
            elif item and item[-1] >= len(source):
                return None, f'"reshape" names dimension {item[-1]}, the chunk has {len(source)} dimensions'
            else:
                sizes.append(prod(source[dimension] for dimension in item))
        total = prod(source)
        if -1 in self.shape:
            known = prod(size for item, size in zip(self.shape, sizes, strict=True) if item != -1)
            if known == 0 or total % known:
                return None, f'"reshape" to {self.configuration()} does not fit a chunk of shape {source}'
            sizes[self.shape.index(-1)] = total // known
        if prod(sizes) != total:
            return None, f'"reshape" to shape {tuple(sizes)} does not fit a chunk of shape {source}'
        for index, item in enumerate(self.shape):
            if not isinstance(item, int) and item:
                before, after = prod(source[: item[0]]), prod(source[item[-1] + 1 :])
                if prod(sizes[:index]) != before or prod(sizes[index + 1 :]) != after:
                    return None, f'"reshape" would move dimensions {list(item)} of a chunk of shape {source}'
        if len(sizes) > MOST_DIMENSIONS:
            return None, f'"reshape" to {len(sizes)} dimensions is more than NumPy can hold, which is {MOST_DIMENSIONS}'
        return tuple(sizes), ""
