"""``cast_value``: the same numbers in another data type.

Specification: zarr-extensions "codecs/cast_value".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.codecs.base import ArrayArrayCodec, ChunkSpec
from zardine.codecs.cast.casting import CastError, OutOfRange, Rounding, cast_numbers, is_real, plain_numbers
from zardine.codecs.configured import Check, Configured, choice
from zardine.data_types import DataType, parse_data_type
from zardine.data_types.integers import Integer
from zardine.errors import ChunkDecodeError, EncodeError
from zardine.json_document import JSON, Problems, check_members
from zardine.public_names import public

Pairs: TypeAlias = tuple[tuple[JSON, JSON], ...]


def _parse_data_type(value: JSON, place: str, problems: Problems) -> DataType | None:
    data_type = value if isinstance(value, DataType) else parse_data_type(value, place, problems)
    if data_type is not None and not is_real(data_type):
        problems.expected(place, "a data type of integers or floats", data_type.to_json())
        return None
    return data_type


def _parse_scalar_map(value: JSON, place: str, problems: Problems) -> ScalarMap | None:
    if isinstance(value, ScalarMap):
        return value
    if not isinstance(value, Mapping):
        problems.expected(place, "an object", value)
        return None
    check_members(value, ("encode", "decode"), place, problems)
    return ScalarMap(
        _parse_pairs(value.get("encode", ()), f"{place}.encode", problems),
        _parse_pairs(value.get("decode", ()), f"{place}.decode", problems),
    )


def _parse_pairs(value: JSON, place: str, problems: Problems) -> Pairs:
    if isinstance(value, Mapping):
        value = list(value.items())
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "an array", value)
        return ()
    pairs = []
    for index, pair in enumerate(value):
        scalars = isinstance(pair, (list, tuple)) and all(isinstance(part, (int, float, str)) for part in pair)
        if not scalars or len(pair) != 2:
            problems.expected(f"{place}[{index}]", "an array of two scalars", pair)
        else:
            pairs.append((pair[0], pair[1]))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class ScalarMap:
    """Pairs of an input and an output scalar, as fill values in JSON, for encoding and for decoding."""

    encode: Pairs = ()
    decode: Pairs = ()

    def to_json(self) -> JSON:
        """The ``scalar_map`` member."""
        directions = {"encode": self.encode, "decode": self.decode}
        return {name: [list(pair) for pair in pairs] for name, pairs in directions.items() if pairs}


@public("zardine.codecs")
@dataclass(frozen=True, slots=True, kw_only=True)
class CastValue(Configured, ArrayArrayCodec):
    """Stores the elements as ``data_type``.

    See :mod:`zardine.codecs.cast.casting` for ``rounding`` and ``out_of_range``.

    ``scalar_map`` overrides both for single values: ``{"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}``. A value
    that has no counterpart is an error when encoding, and a sign of damaged data when decoding.
    """

    data_type: DataType
    rounding: str = "nearest-even"
    out_of_range: str | None = None
    scalar_map: ScalarMap | None = None

    elementwise: ClassVar[bool] = True
    name: ClassVar[str] = "cast_value"
    MEMBERS: ClassVar[Mapping[str, Check]] = {
        "data_type": _parse_data_type,
        "rounding": choice(Rounding),
        "out_of_range": choice(OutOfRange),
        "scalar_map": _parse_scalar_map,
    }
    REQUIRED = ("data_type",)
    AUTOMATIC = ("out_of_range", "scalar_map")

    @classmethod
    def check_together(cls, values: Mapping[str, Any], prefix: str, problems: Problems) -> None:
        """Values wrap around in integers only."""
        if values.get("out_of_range") == OutOfRange.wrap and not isinstance(values["data_type"], Integer):
            problems.add(f"{prefix}out_of_range", f'"wrap" is for integers, not for {values["data_type"].name}')

    def configuration(self) -> dict[str, JSON] | None:
        """Every member that is set."""
        document = {"data_type": self.data_type.to_json(), "rounding": self.rounding}
        if self.out_of_range is not None:
            document["out_of_range"] = self.out_of_range
        if self.scalar_map is not None:
            document["scalar_map"] = self.scalar_map.to_json()
        return document

    def check(self, spec: ChunkSpec) -> str | None:
        """Both types have to be real, scalars of the map have to exist in them, and the fill value has to come back."""
        if not is_real(spec.data_type):
            return f'"cast_value" cannot cast from data type {spec.data_type.name}'
        problems = Problems()
        for direction, source, target in self._directions(spec):
            self._parse_map(direction, source, target, problems)
        if problems:
            return f'"cast_value" cannot use its scalar_map: {problems.found[0]}'
        try:
            encoded = self._cast(spec.fill, "encode", spec.data_type, self.data_type)
            decoded = self._cast(encoded, "decode", self.data_type, spec.data_type)
        except CastError as error:
            return f'"cast_value" cannot cast the fill value: {error}'
        before, after = (plain_numbers(fill.reshape(-1), spec.data_type) for fill in (spec.fill, decoded))
        if not np.array_equal(before, after, equal_nan=before.dtype.kind == "f"):
            return f'"cast_value" turns the fill value {before[0]} into {after[0]}'
        return None

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """The chunk with the stored type; the fill value is cast like every element."""
        try:
            fill = self._cast(spec.fill, "encode", spec.data_type, self.data_type)
        except CastError as error:
            raise EncodeError(f"the fill value cannot be cast: {error}", codec=self.name) from None
        return replace(spec, data_type=self.data_type, fill=fill)

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """The elements as ``data_type``; raises :class:`EncodeError` for one that has no counterpart."""
        try:
            return self._cast(array, "encode", spec.data_type, self.data_type)
        except CastError as error:
            raise EncodeError(str(error), codec=self.name) from None

    def decode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> npt.NDArray[Any]:
        """The elements as the type of the array; raises :class:`ChunkDecodeError` for one that has no counterpart."""
        try:
            return self._cast(array, "decode", self.data_type, spec.data_type)
        except CastError as error:
            raise ChunkDecodeError(str(error), codec=self.name) from None

    def _directions(self, spec: ChunkSpec) -> tuple[tuple[str, DataType, DataType], ...]:
        return ("encode", spec.data_type, self.data_type), ("decode", self.data_type, spec.data_type)

    def _parse_map(
        self, direction: str, source: DataType, target: DataType, problems: Problems
    ) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        pairs = getattr(self.scalar_map, direction, ())
        parsed = []
        for index, (key, value) in enumerate(pairs):
            place = f"scalar_map.{direction}[{index}]"
            found = source.parse_fill(key, f"{place}[0]", problems), target.parse_fill(value, f"{place}[1]", problems)
            if found[0] is not None and found[1] is not None:
                parsed.append((found[0], found[1]))
        return parsed

    def _cast(self, array: npt.NDArray[Any], direction: str, source: DataType, target: DataType) -> npt.NDArray[Any]:
        out_of_range = self.out_of_range  # "wrap" is a rule for integers: decoding to floats has none
        if out_of_range == OutOfRange.wrap and not isinstance(target, Integer):
            out_of_range = None
        pairs = self._parse_map(direction, source, target, Problems()) if self.scalar_map else []
        if not pairs:
            return cast_numbers(array, source, target, self.rounding, out_of_range)
        flat = array.reshape(-1)
        numbers = plain_numbers(flat, source)
        result = np.empty(flat.shape, target.dtype)
        rest = np.ones(flat.shape, bool)
        for key, value in pairs:
            number = plain_numbers(key.reshape(1), source)[0]
            matches = rest & (np.isnan(numbers) if number != number else numbers == number)
            result[matches] = value
            rest &= ~matches
        result[rest] = cast_numbers(flat[rest], source, target, self.rounding, out_of_range)
        return result.reshape(array.shape)
