"""What text in CSV files stands for: numbers, truth values, or text; and how values are written as such."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

from zardine.vectors.exchange.features import EXACT
from zardine.vectors.exchange.table_columns import EMPTY, TEXT, Facts, facts_of

ABSENT: Final = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "Null", "null", "None", "#N/A")
"""What stands for a missing value among numbers and truth values; in text only what is empty, without quotes."""
NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.ASCII | re.IGNORECASE)
_INTEGERS: Final = "^-?(0|[1-9][0-9]*)$"
_FLAGS: Final = "^(true|false|True|False|TRUE|FALSE)$"
_FIRST: Final = 64
"""So many values are tried before the others."""
_WHOLE: Final = re.compile("[+-]?[0-9]+")


def bare(values: Any) -> Any:
    """Return an array of text without spaces around it, and without what stands for a missing value."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    trimmed = compute.utf8_trim_whitespace(values)
    absent = compute.is_in(trimmed, value_set=arrow.array(ABSENT))
    return compute.if_else(absent, arrow.scalar(None, arrow.string()), trimmed)


def parsed(values: Any, dtype: Any) -> Any:
    """Return text that is :func:`bare` as values of a type of Arrow; ``None`` where some are none."""
    if len(values) > _FIRST and parsed(values.slice(0, _FIRST), dtype) is None:  # it takes long to fail in all of them
        return None
    arrow: Any = import_module("pyarrow")
    if arrow.types.is_boolean(dtype) and not _all(values, _FLAGS):
        return None
    try:
        found = values.cast(dtype)
    except arrow.ArrowInvalid:
        return None
    # 0x10 would be an integer, and zeros in front be lost
    return found if not arrow.types.is_integer(dtype) or _all(values, _INTEGERS) else None


def typed(values: Any, dtype: Any) -> Any:
    """Return text as values of a type of Arrow, null where one is missing; ``None`` where some are none."""
    found = parsed(values, dtype)
    return parsed(bare(values), dtype) if found is None else found


def times(values: Any) -> Any:
    """Return text that is :func:`bare` as times in UTC, if it is dates of ISO 8601; else ``None``."""
    arrow: Any = import_module("pyarrow")
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            found = parsed(values, arrow.timestamp(unit, zone))
            if found is not None:
                return found
    return None


def inferred(values: Any) -> Facts:
    """Return what is known of a column from some of its text."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    if values.null_count == len(values):
        return Facts(EMPTY, missing=len(values) > 0)
    found = _inferred(values)
    if found is not None:
        return found
    plain = bare(values)
    if plain.null_count == len(plain):
        words = compute.unique(compute.utf8_trim_whitespace(values.drop_null())).to_pylist()
        return Facts("<f8" if {"nan", "NaN"}.issuperset(words) else EMPTY, missing=True)
    found = _inferred(plain, also_nan=True)
    if found is not None:
        return found
    is_flag = parsed(plain, arrow.bool_())
    return Facts(TEXT, missing=values.null_count > 0) if is_flag is None else facts_of(is_flag)


def _inferred(plain: Any, *, also_nan: bool = False) -> Facts | None:
    """The facts of numbers; ``None`` where some are none, or, unless ``also_nan``, stand for a missing value."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    for dtype in (arrow.int64(), arrow.uint64()):
        found = parsed(plain, dtype)
        if found is not None:
            return facts_of(found)
    found = parsed(plain, arrow.float64())
    if found is None or (not also_nan and compute.any(compute.is_nan(found)).as_py()):
        return None
    return _facts_of_floats(plain, found)


def _facts_of_floats(plain: Any, found: Any) -> Facts:
    """The facts of floats; of text where all are integers that floats do not hold, or with zeros in front."""
    compute: Any = import_module("pyarrow.compute")
    if _WHOLE.fullmatch(plain.drop_null()[0].as_py()) and _all(plain, f"^{_WHOLE.pattern}$"):
        return Facts(TEXT, missing=plain.null_count > 0)
    long = plain.filter(compute.fill_null(compute.greater_equal(compute.abs(found), float(EXACT)), False)).to_pylist()
    large = any(_WHOLE.fullmatch(each) and int(float(each)) != int(each) for each in long)
    return Facts("<f8", plain.null_count > 0, large)


def _all(values: Any, pattern: str) -> bool:
    compute: Any = import_module("pyarrow.compute")
    return compute.all(compute.match_substring_regex(values, pattern)).as_py() in (True, None)


def written(values: Any, delimiter: str) -> Any:
    """Return an array of Arrow as text of CSV.

    Floats have all digits, text is in quotes where that is needed, and of a missing value there is nothing.
    """
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    if arrow.types.is_floating(values.type):
        text = values.cast(arrow.float64()).cast(arrow.string())
        is_whole = compute.match_substring_regex(text, "^-?[0-9]+$")  # as 1.0 is written: it is to stay a float
        text = compute.if_else(is_whole, compute.binary_join_element_wise(text, ".0", ""), text)
    elif arrow.types.is_string(values.type):
        doubled = compute.replace_substring(values, '"', '""')
        quoted = compute.binary_join_element_wise('"', doubled, '"', "")
        needed = compute.match_substring_regex(values, f'^$|^[\\s#]|\\s$|["\\r\\n{re.escape(delimiter)}]')
        text = compute.if_else(needed, quoted, values)
    else:
        text = values.cast(arrow.string())
    return compute.fill_null(text, "")


__all__ = ["NUMBER", "bare", "inferred", "times", "typed", "written"]
