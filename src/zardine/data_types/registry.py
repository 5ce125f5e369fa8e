"""Every data type by its name: the built-in ones, and those that other packages add."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from zardine.data_types.base import DataType
from zardine.data_types.booleans import Bool
from zardine.data_types.complex_numbers import core_complexes
from zardine.data_types.floats import core_floats
from zardine.data_types.integers import core_integers
from zardine.data_types.ml_types import NAMES as ML_NAMES
from zardine.data_types.ml_types import MissingPackageError, ml_data_type
from zardine.data_types.raw_bytes import parse_null_terminated_bytes, parse_raw_bits, parse_raw_bytes
from zardine.data_types.strings import String, parse_fixed_length_utf32
from zardine.data_types.structs import parse_struct
from zardine.data_types.times import parse_time
from zardine.data_types.variable_bytes import VariableBytes
from zardine.json_document import JSON, Extension, Problems, check_members, parse_extension
from zardine.public_names import public
from zardine.registry_table import ExtensionTable

Factory: TypeAlias = Callable[[Mapping[str, JSON] | None, str, Problems], DataType | None]
"""Makes a data type from the ``configuration`` (``None`` where absent) of the extension object at a place."""

MAX_NESTING = 32
MAX_JSON_NESTING = 5 * MAX_NESTING  # a struct in a struct is four objects and arrays further down
_TOO_DEEP = f"structs are nested more than {MAX_NESTING} deep"

_floats = core_floats()

READY: dict[str, DataType] = {
    data_type.name: data_type
    for data_type in (
        Bool(),
        *core_integers(),
        *_floats,
        *core_complexes(_floats),
        String(),
        String("variable_length_utf8"),
        VariableBytes(),
        VariableBytes("variable_length_bytes"),
        VariableBytes("binary"),  # zarrs before 0.19
    )
}
"""Data types without parameters, ready for use."""

_CONFIGURED: dict[str, Factory] = {
    "raw_bytes": parse_raw_bytes,
    "null_terminated_bytes": parse_null_terminated_bytes,
    "fixed_length_utf32": parse_fixed_length_utf32,
    "numpy.datetime64": partial(parse_time, "datetime64"),
    "numpy.timedelta64": partial(parse_time, "timedelta64"),
}
_STRUCTS = {"struct": False, "structured": True}
_RAW_BITS = re.compile(r"r[0-9]+", re.ASCII)
_OTHERS: ExtensionTable[Factory] = ExtensionTable(
    "data type",
    "zardine.data_types",
    refused=dict.fromkeys(
        ("optional", "zarrs.optional"), "zardine does not read it: NumPy has no type for elements that may be missing"
    ),
)
"""Data types of other packages."""


def parse_data_type(value: JSON, place: str, problems: Problems) -> DataType | None:
    """The data type that a document names: a short-hand name or an extension object, which has to be understood."""
    if type(value) is str and (ready := READY.get(value)) is not None:
        return ready
    if _is_deeper(value, MAX_JSON_NESTING):
        problems.add(place, _TOO_DEEP)
        return None
    return _parse(value, place, problems, 0)


@public("zardine.registry")
def register_data_type(name: str, factory: Factory) -> None:
    """Make ``factory`` read the data type ``name``; a second call for one name replaces the first.

    Packages can name a factory in the entry point group ``zardine.data_types`` instead; it is loaded when needed.
    Raises ``ValueError`` for the name of a built-in data type.
    """
    if not name or is_built_in(name):
        raise ValueError(f"{name!r} cannot be registered: it is empty, or the name of a built-in data type")
    _OTHERS.register(name, factory)


def is_built_in(name: str) -> bool:
    """Whether zardine itself has a data type with this name."""
    known = name in READY or name in _CONFIGURED or name in _STRUCTS or name in ML_NAMES
    return known or _RAW_BITS.fullmatch(name) is not None


def is_known(name: str) -> bool:
    """Whether a data type with this name is built in or registered; entry points are not looked at."""
    return is_built_in(name) or name in tuple(_OTHERS)


def _parse(value: JSON, place: str, problems: Problems, depth: int) -> DataType | None:
    count = len(problems.found)
    extension = parse_extension(value, place, problems, ignorable=False)
    data_type = None if extension is None else _make(extension, place, problems, depth)
    return data_type if len(problems.found) == count else None


def _make(extension: Extension, place: str, problems: Problems, depth: int) -> DataType | None:
    name, configuration = extension.name, extension.configuration
    if name in _STRUCTS:
        if depth >= MAX_NESTING:
            problems.add(place, _TOO_DEEP)
            return None
        return parse_struct(
            configuration, place, problems, partial(_parse_field, depth=depth + 1), legacy=_STRUCTS[name]
        )
    factory = _CONFIGURED.get(name)
    if factory is None and not is_built_in(name):
        factory = _OTHERS.get(name)
        if factory is None:
            built_in = (*READY, *_CONFIGURED, *_STRUCTS, *ML_NAMES)
            problems.unknown(place, _OTHERS.explain_unknown(name, built_in))
            return None
    if factory is not None:
        return factory(configuration, place, problems)
    check_members(configuration, (), f"{place}.configuration", problems)
    return _without_parameters(name, place, problems)


def _parse_field(value: JSON, place: str, problems: Problems, *, depth: int) -> DataType | None:
    return _parse(value, place, problems, depth)


def _without_parameters(name: str, place: str, problems: Problems) -> DataType | None:
    ready = READY.get(name)
    if ready is not None:
        return ready
    if name not in ML_NAMES:
        return parse_raw_bits(name, place, problems)
    try:
        return ml_data_type(name)
    except MissingPackageError as error:
        problems.unknown(place, str(error))
        return None


def _is_deeper(value: JSON, limit: int) -> bool:
    """Whether objects and arrays are nested more than ``limit`` deep; found without recursion."""
    level = [value]
    for _ in range(limit):
        inner: list[JSON] = []
        for item in level:
            if isinstance(item, Mapping):
                inner.extend(item.values())
            elif isinstance(item, (list, tuple)):
                inner.extend(item)
        if not inner:
            return False
        level = inner
    return True
