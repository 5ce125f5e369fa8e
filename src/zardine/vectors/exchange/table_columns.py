"""Columns of tables: which of them are coordinates, and what the others become as attributes of points."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.exchange.features import EXACT, column_of_series
from zardine.vectors.exchange.losses import tell_of_missing, tell_of_times
from zardine.vectors.outside import warn

TEXT, TIMES, LARGE, NONE, EMPTY, INTEGERS, FLAGS = "text", "times", "large", "none", "empty", "integers", "flags"
_KINDS: Final = (TEXT, TIMES, NONE, EMPTY)
ROLES: Final = ("x", "y", "z", "time")
"""The options that name columns of coordinates, in the order that coordinates have."""
_USUAL: Final = (
    ("x", "y", "z"),
    ("lon", "lat"),
    ("long", "lat"),
    ("lng", "lat"),
    ("longitude", "latitude"),
    ("decimallongitude", "decimallatitude"),
    ("location-long", "location-lat"),
    ("easting", "northing"),
    ("position_x", "position_y", "position_z"),
    ("pos_x", "pos_y", "pos_z"),
    ("axis-2", "axis-1", "axis-0"),
    ("axis-1", "axis-0"),
)
"""Names, in small letters and without a unit in brackets, that are known to be those of coordinates."""
_UNIT: Final = re.compile(r"\s*(\[[^\[\]]*\]|\([^()]*\))$")
_SHOWN: Final = 40
"""Names of columns that an error lists."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the values of a column."""

    kind: str
    """The type of numbers, ``text``, ``times``, ``empty`` (nothing is there), or ``none`` (it cannot be stored)."""
    missing: bool = False
    large: bool = False
    """Whether float64 does not hold some of its integers."""
    negative: bool = False

    @property
    def form(self) -> str:
        """What it becomes: its kind, or ``integers`` and ``flags`` (as float64), or ``large`` (integers as text)."""
        kind = None if self.kind in _KINDS else np.dtype(self.kind).kind
        if kind == "f":
            return LARGE if self.large else self.kind
        if kind is None or not self.missing:
            return self.kind
        return FLAGS if kind == "b" else LARGE if self.large else INTEGERS

    def joined(self, other: Facts) -> Facts:
        """Return what is known of a column of which these are two parts."""
        found = Facts(
            self.kind,
            self.missing or other.missing or EMPTY in (self.kind, other.kind),
            self.large or other.large,
            self.negative or other.negative,
        )
        kinds = {self.kind, other.kind} - {EMPTY}
        if len(kinds) < 2:
            return replace(found, kind=kinds.pop() if kinds else EMPTY)
        if kinds.intersection(_KINDS) or np.dtype(bool).str in kinds:
            return replace(found, kind=TEXT if NONE not in kinds and TIMES not in kinds else NONE)
        dtype = np.result_type(*kinds)
        if dtype.kind == "f" and all(np.dtype(each).kind in "iu" for each in kinds) and not found.negative:
            dtype = np.dtype(np.uint64)
        return replace(found, kind=dtype.str)

    def to_json(self) -> list[Any]:
        """Return it as JSON."""
        return [self.kind, self.missing, self.large, self.negative]

    @classmethod
    def from_json(cls, found: Any) -> Facts:
        """Return what :meth:`to_json` gave. Raises ``ValueError`` or ``TypeError`` for anything else."""
        kind, *flags = found
        if kind not in _KINDS and np.dtype(str(kind)).kind not in "biuf":
            raise ValueError(f"there are no columns of {kind!r}")
        if len(flags) != 3 or not all(isinstance(each, bool) for each in flags):
            raise ValueError("a column is described by a kind and three truth values")
        return cls(kind, *flags)


def facts_of(values: Any) -> Facts:
    """Return what is known of an array of Arrow."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    types, dtype, missing = arrow.types, values.type, values.null_count > 0
    if types.is_null(dtype) or (values.null_count == len(values) > 0 and not types.is_floating(dtype)):
        return Facts(EMPTY, missing=len(values) > 0)
    if types.is_boolean(dtype):
        return Facts(np.dtype(bool).str, missing)
    if types.is_floating(dtype):
        return Facts(np.dtype(dtype.to_pandas_dtype()).str, missing)
    if types.is_integer(dtype):
        ends = compute.min_max(values)
        low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
        return Facts(np.dtype(dtype.to_pandas_dtype()).str, missing, max(-low, high) >= EXACT, low < 0)
    if types.is_temporal(dtype) and not types.is_interval(dtype):
        return Facts(TIMES, missing)
    if any(check(dtype) for check in (types.is_string, types.is_large_string, types.is_string_view)):
        return Facts(TEXT, missing)
    return Facts(NONE, missing)


def plain(values: Any) -> Any:
    """Return a column of a table of Arrow as one array: categories as values, decimals as numbers, or else as text."""
    arrow: Any = import_module("pyarrow")
    array = values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values
    if arrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if arrow.types.is_decimal(array.type):
        array = array.cast(arrow.float64() if array.type.precision <= 15 else arrow.string())
    return array


def values_of(values: Any, form: str) -> npt.NDArray[Any]:
    """Return the values of an array of Arrow as an attribute of this form."""
    arrow: Any = import_module("pyarrow")
    if form == TIMES:
        return np.asarray(column_of_series(values.to_pandas()))
    if form in (TEXT, LARGE, EMPTY):
        return np.asarray(values.cast(arrow.string()).to_pandas(), object)
    if form in (INTEGERS, FLAGS):
        numbers = values.cast(arrow.int8()) if arrow.types.is_boolean(values.type) else values
        return np.asarray(numbers.cast(arrow.float64()).to_numpy(zero_copy_only=False))
    dtype = np.dtype(form)
    if dtype.kind in "fb" or values.null_count == 0:
        found = values.cast(arrow.float64()) if arrow.types.is_null(values.type) else values
        return np.asarray(found.to_numpy(zero_copy_only=False)).astype(dtype)
    raise DataError("a column lacks values of which it had all before: the file has changed")


def tell_of_columns(source: Path, columns: Mapping[str, str]) -> None:
    """Warn of columns, each of a form, that are stored otherwise than the file has them, or are left out."""
    tell_of_missing(source, *([name for name, each in columns.items() if each == form] for form in (INTEGERS, FLAGS)))
    tell_of_times(source, [name for name, form in columns.items() if form == TIMES])
    for name, form in columns.items():
        if form == LARGE:
            why = "numbers are missing, or of other kinds, and some are above 2**53"
            warn(source, f"the attribute {name!r} is stored as text: {why}")
        elif form == NONE:
            warn(source, f"the attribute {name!r} is left out: its values are neither numbers, text nor dates")


def coordinate_columns(names: Sequence[str], options: Mapping[str, Any], source: Path) -> list[int]:
    """Return which columns are coordinates: those that options name, or else those that are usually called so.

    Raises :class:`~zardine.errors.DataError`, with the columns that there are, where that is not clear.
    """
    given = {role: str(options[role]) for role in ROLES if options.get(role) is not None}
    missing = [role for role in ROLES[:2] if role not in given]
    if len(missing) == 1:
        raise DataError(f"{source}: {missing[0]}= (--{missing[0]}) is needed, too: {_listed(names)}")
    found = [_named(names, name, source) for name in given.values()]
    if missing:
        usual = _guessed(names, source)
        found = [*(usual[:2] if "z" in given else usual), *found]
    if len(set(found)) < len(found):
        told = ", ".join(repr(names[at]) for at in found)
        raise DataError(f"{source}: two coordinates are to be one column: {told}")
    return found


def _named(names: Sequence[str], name: Any, source: Path) -> int:
    """The place of the column called so: exactly, or else in other case."""
    for key in (str, str.casefold):
        there = [at for at, each in enumerate(names) if key(each) == key(str(name))]
        if len(there) == 1:
            return there[0]
        if there:
            raise DataError(f"{source}: {len(there)} columns are called {name!r}: give each another name")
    raise DataError(f"{source} has no column {name!r}: {_listed(names)}")


def _guessed(names: Sequence[str], source: Path) -> list[int]:
    bare = [_UNIT.sub("", each.strip()).casefold() for each in names]
    found: list[list[int]] = []
    for family in _USUAL:
        there = [each for each in family if each in bare]
        if there[:2] == list(family[:2]):
            places = [bare.index(each) for each in there]
            if any(bare.count(each) > 1 for each in there):
                raise DataError(f"{source}: several columns may be coordinates; {_to_say(names)}")
            if not any(set(places) <= set(each) for each in found):
                found.append(places)
    if len(found) != 1:
        what = "several columns may be coordinates" if found else "no columns are called as coordinates usually are"
        raise DataError(f"{source}: {what}; {_to_say(names)}")
    return found[0]


def _to_say(names: Sequence[str]) -> str:
    return f"x= and y= (--x NAME --y NAME) say which they are: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    more = f", … ({len(names)} in all)" if len(names) > _SHOWN else ""
    return f"there are the columns {', '.join(map(repr, names[:_SHOWN]))}{more}" if names else "there are no columns"


__all__ = [
    "EMPTY",
    "LARGE",
    "NONE",
    "ROLES",
    "TEXT",
    "TIMES",
    "Facts",
    "coordinate_columns",
    "facts_of",
    "plain",
    "tell_of_columns",
    "values_of",
]
