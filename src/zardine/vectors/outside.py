"""Other programs' packages and files: saying what is missing, and what they cannot hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import numpy as np

from zardine.errors import ZarrUserWarning
from zardine.shown_text import shown

STEPS: Final = "las"
"""The table in ``crs`` that says in which steps a LAS file had its coordinates: no other format loses by it."""

_kept: ContextVar[list[str] | None] = ContextVar("kept", default=None)


def warn(file: Path | str, text: str) -> None:
    """Give a warning about ``file``."""
    repeat(f"{file}: {text}")


def repeat(text: str) -> None:
    """Give a warning that :func:`keeping` has kept, or keep it again."""
    kept = _kept.get()
    if kept is None:
        warnings.warn(shown(text), ZarrUserWarning, stacklevel=3)
    else:
        kept.append(text)


@contextmanager
def keeping() -> Iterator[list[str]]:
    """Keep the warnings of the block for whoever is to give them: the list that this gives."""
    kept = list[str]()
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


@contextmanager
def needing(what: Path | str) -> Iterator[None]:
    """Let a library that is not there, and that ``what`` needs, be an ``ImportError`` that says how to install it."""
    try:
        yield
    except ImportError as error:
        missing = f"the package {error.name!r}" if error.name else "a package that cannot be imported"
        raise ImportError(
            f"{what}: this needs {missing}: pip install 'zardine[vectors]' ({error})",
            name=error.name,
            path=error.path,
        ) from error


def column_names(
    widths: Mapping[str, int | None],
    taken: Collection[str],
    target: Path | str,
    *,
    key: Callable[[str], str] = str,
) -> dict[str, tuple[str, int | None]]:
    """Return which attribute each column of a table is: one, or ``name_0``, ``name_1`` where there are several values.

    ``widths`` are numbers of values for each row, ``None`` for attributes of one. A column whose name is one of
    ``taken``, or that of another column, by ``key``, gets as many ``_`` behind it as it takes, with a warning. Names of
    attributes of one value go before.
    """
    used = {key(name) for name in taken}
    plain = {key(name) for name, width in widths.items() if width is None}
    found: dict[str, tuple[str, int | None]] = {}
    for name, width in widths.items():
        others = used if width is None else used | plain
        for channel in (None,) if width is None else range(width):
            wanted = told = name if channel is None else f"{name}_{channel}"
            while key(told) in others:
                told += "_"
            if told != wanted:
                warn(target, f"the attribute {wanted!r} is called {told!r}: another column has that name")
            used.add(key(told))
            others = others | {key(told)}
            found[told] = name, channel
    return found


def tell_of_channels(widths: Mapping[str, int | None], target: Path | str) -> None:
    """Warn of attributes of several values for each row that become a column for each; see :func:`column_names`."""
    for name, width in widths.items():
        if width is not None:
            warn(
                target, f"the attribute {name!r} of several values becomes columns: '{name}_0' to '{name}_{width - 1}'"
            )


def numbers(columns: Mapping[str, Any], target: Path | str, *, channels: bool = True) -> dict[str, Any]:
    """The columns of numbers; warns of text, and without ``channels`` of several values for each row."""
    found = {}
    for name, values in columns.items():
        if values.dtype.kind not in "iufb":
            warn(target, f"the attribute {name!r} cannot be kept: it is text, and the format holds numbers")
        elif values.ndim > 1 and not channels:
            warn(target, f"the attribute {name!r} cannot be kept: it has {values.shape[1]} values for each row")
        else:
            found[name] = values
    return found


def with_ids(columns: Mapping[str, Any], ids: Any, target: Path | str, *, in_order: bool = True) -> dict[str, Any]:
    """The columns, and the ids of objects as another one, where they are more than numbers from 0 on in their order."""
    if ids is None or (in_order and np.array_equal(ids, np.arange(len(ids)))):
        return dict(columns)
    if "object_id" in columns:
        warn(target, "the ids of objects cannot be kept: there is an attribute 'object_id'")
        return dict(columns)
    return {**columns, "object_id": ids}


def tell_of_comments(source: Path | str, comments: Sequence[str]) -> None:
    """Warn of comments in a file, which a store does not hold."""
    there = [each.strip() for each in comments if each.strip()]
    if there:
        more = f" and {len(there) - 1} more lines" if len(there) > 1 else ""
        warn(source, f"comments are left out: {there[0][:200]!r}{more}")


def tell_of_booleans(columns: Mapping[str, Any], target: Path | str) -> None:
    """Warn of truth values in ``columns``, which a format holds as numbers."""
    names = [name for name, each in columns.items() if each.dtype.kind == "b"]
    if names:
        warn(target, f"truth values are written as numbers, 0 and 1: {', '.join(map(repr, names))}")


def warn_objects(ids: Any, target: Path | str) -> None:
    """Warn where there is more than one object, or one whose id is not 0, which is that of a single object."""
    distinct = np.unique(ids) if ids is not None else np.zeros(0, np.int64)
    if len(distinct) > 1:
        warn(target, f"that vertices belong to {len(distinct)} objects cannot be kept")
    elif len(distinct) == 1 and distinct[0] != 0:
        warn(target, f"the id of the object, {distinct[0]}, cannot be kept")


def warn_names(names: Iterable[str], target: Path | str, why: str) -> None:
    """Warn of attributes that cannot be kept."""
    told = ", ".join(map(repr, names))
    if told:
        warn(target, f"attributes cannot be kept: {told}: {why}")


def without_steps(crs: Any) -> Any:
    """Return what a store says of its reference system, without :data:`STEPS`; ``None`` for nothing."""
    return ({name: each for name, each in crs.items() if name != STEPS} if isinstance(crs, Mapping) else crs) or None


def known_crs(given: Mapping[str, Any] | None, target: Path | str) -> Any:
    """Return the coordinate reference system of PROJ that a store names; warns of one that there is none for."""
    given = without_steps(given)
    if not given:
        return None
    with needing(target):
        import pyproj

    told = given.get("wkt") or given.get("epsg")
    if told is None:
        warn(target, f"crs cannot be kept: of {sorted(given)}, none is 'wkt' (text) or 'epsg' (a number)")
        return None
    try:
        return pyproj.CRS.from_user_input(told)
    except pyproj.exceptions.CRSError as error:
        warn(target, f"crs cannot be kept, PROJ does not know it: {error}")
        return None
