"""``struct``: records of named fields, packed; and its legacy spelling ``structured``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.base64_text import MAX_ITEM_SIZE, parse_exact_bytes, to_base64
from zardine.data_types.fields import join_words, repair_fields
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.json_document import JSON, MISSING, Problems, check_members, show

ParseField: TypeAlias = Callable[[JSON, str, Problems], DataType | None]


class Struct(DataType):
    """Fields one after the other without padding. Registry: ``struct``; ``legacy``: ``structured``.

    The legacy spelling is kept only for documents that have it, and never chosen for new arrays: fields as pairs, and
    the fill value as base64 text of the packed little-endian bytes. Both forms are read under both names.
    """

    def __init__(self, fields: tuple[tuple[str, DataType], ...], *, legacy: bool = False) -> None:
        self.name = "structured" if legacy else "struct"
        self.fields = fields
        self.legacy = legacy
        self.dtype = np.dtype([(name, data_type.dtype) for name, data_type in fields])
        self.words = join_words(data_type for _, data_type in fields)
        self._repairable = tuple((name, data_type) for name, data_type in fields if _can_repair(data_type))

    def _to_json(self) -> JSON:
        if self.legacy:
            fields: list[JSON] = [[name, data_type.to_json()] for name, data_type in self.fields]
        else:
            fields = [{"name": name, "data_type": data_type.to_json()} for name, data_type in self.fields]
        return {"name": self.name, "configuration": {"fields": fields}}

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if isinstance(value, str):
            data = parse_exact_bytes(value, self.dtype.itemsize, place, problems)
            return None if data is None else self._hold(swap_words(data, self.words))
        if not isinstance(value, Mapping):
            problems.expected(place, "an object with a value for each field", value)
            return None
        count = len(problems.found)
        check_members(value, (name for name, _ in self.fields), place, problems)
        parts = []
        for name, data_type in self.fields:
            if name not in value:
                problems.add(f"{place}.{name}", "missing: every field needs a fill value")
                continue
            parts.append(data_type.parse_fill(value[name], f"{place}.{name}", problems))
        if len(problems.found) > count:
            return None
        return self._hold(b"".join(part.tobytes() for part in parts if part is not None))

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        if self.legacy:
            return to_base64(swap_words(fill.tobytes(), self.words))
        return {name: data_type.fill_to_json(fill[name]) for name, data_type in self.fields}

    def default_fill(self) -> npt.NDArray[Any]:
        return self._hold(b"".join(data_type.default_fill().tobytes() for _, data_type in self.fields))

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        """Takes a value for each field, by position or name; packed bytes; or one number for all fields."""
        value = unwrap(value)
        if isinstance(value, np.void) and value.dtype == self.dtype:
            return self._hold(value.tobytes())
        if isinstance(value, (bytes, bytearray, memoryview)):
            if len(bytes(value)) != self.dtype.itemsize:
                raise ValueError(refusal(value, self.name, f"expected {self.dtype.itemsize} bytes"))
            return self._hold(bytes(value))
        parts = [
            data_type.cast_fill(part).tobytes()
            for (_, data_type), part in zip(self.fields, self._parts(value), strict=True)
        ]
        return self._hold(b"".join(parts))

    def repair_bits(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return repair_fields(array, self._repairable)

    def _parts(self, value: Any) -> list[Any]:
        names = [name for name, _ in self.fields]
        if isinstance(value, np.void) and value.dtype.names is not None:
            value = {name: value[name] for name in value.dtype.names}
        if isinstance(value, Mapping):
            if set(value) != set(names):
                raise ValueError(refusal(value, self.name, f"the fields are {', '.join(names)}"))
            return [value[name] for name in names]
        if isinstance(value, (tuple, list)):
            if len(value) != len(names):
                raise ValueError(refusal(value, self.name, f"expected {len(names)} values, found {len(value)}"))
            return list(value)
        if real_number(value) is not None:
            return [value] * len(names)
        raise TypeError(refusal(value, self.name, f"expected values for the fields {', '.join(names)}"))

    def _hold(self, data: bytes) -> npt.NDArray[Any]:
        return np.frombuffer(data, self.dtype).reshape(()).copy()


def swap_words(data: bytes, words: tuple[tuple[int, int], ...]) -> bytes:
    """Bytes of one element between little-endian and native byte order, which are the same on most machines."""
    if np.little_endian:
        return data
    parts, start = [], 0
    for size, count in words:
        parts.append(
            np.frombuffer(data, f"V{size}", count, start).view(np.uint8).reshape(count, size)[:, ::-1].tobytes()
        )
        start += size * count
    return b"".join(parts)


def parse_struct(
    configuration: Mapping[str, JSON] | None, place: str, problems: Problems, parse_field: ParseField, *, legacy: bool
) -> Struct | None:
    """``struct`` or ``structured``; ``parse_field`` reads the data type of a field."""
    place = f"{place}.configuration"
    members = check_members(configuration, ("fields",), place, problems)
    fields = members.get("fields", MISSING)
    place = f"{place}.fields"
    if not isinstance(fields, (list, tuple)) or not fields:
        problems.expected(place, "an array of one field or more", fields)
        return None
    count = len(problems.found)
    parsed: dict[str, DataType] = {}
    for index, field in enumerate(fields):
        name, data_type = _parse_field(field, f"{place}[{index}]", problems, parse_field)
        if name is not None and name in parsed:
            problems.add(f"{place}[{index}]", f"a second field with the name {show(name)}")
        elif name is not None and data_type is not None:
            parsed[name] = data_type
    if len(problems.found) > count:
        return None
    size = sum(data_type.dtype.itemsize for data_type in parsed.values())
    if size > MAX_ITEM_SIZE:
        problems.add(place, f"the fields take {size} bytes together; at most {MAX_ITEM_SIZE} are possible")
        return None
    return Struct(tuple(parsed.items()), legacy=legacy)


def _parse_field(
    field: JSON, place: str, problems: Problems, parse_field: ParseField
) -> tuple[str | None, DataType | None]:
    if isinstance(field, Mapping):
        check_members(field, ("name", "data_type"), place, problems)
        name, value = field.get("name", MISSING), field.get("data_type", MISSING)
        name_place, type_place = f"{place}.name", f"{place}.data_type"
    elif isinstance(field, (list, tuple)) and len(field) == 2:
        name, value = field
        name_place, type_place = f"{place}[0]", f"{place}[1]"
    else:
        problems.expected(place, 'an object with "name" and "data_type"', field)
        return None, None
    if not isinstance(name, str) or not name:
        problems.expected(name_place, "a non-empty string", name)
        name = None
    data_type = parse_field(value, type_place, problems)
    if data_type is not None and data_type.item_size is None:
        problems.add(type_place, f"{data_type.name} varies in length; the fields of a struct have fixed sizes")
        data_type = None
    return name, data_type


def _can_repair(data_type: DataType) -> bool:
    if isinstance(data_type, Struct):
        return bool(data_type._repairable)
    return type(data_type).repair_bits is not DataType.repair_bits
