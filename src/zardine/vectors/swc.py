"""SWC files: trees of neurons as lines of text: number, type, x, y, z, radius, parent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.run_content import depth_first, inverse
from zardine.vectors.format.ragged import find_rows
from zardine.vectors.outside import tell_of_comments, warn, warn_names

_LEGEND = "number type x y z radius parent"
"""The first remark in a file that an export has written."""
_NOTHING = "0 samples"
"""A remark in a file that holds nothing, so that it is not taken for one that is cut off."""


def read_swc(
    source: Path, comments: list[str] | None = None
) -> tuple[npt.NDArray[np.float64], Ints, dict[str, npt.NDArray[Any]]]:
    """Positions ``(N, 3)``, the row of each parent (-1: none), and the attributes ``type`` and ``radius``.

    Roots are samples with a negative parent, or with the parent 0 where no other sample has this number.

    Raises :class:`~zardine.errors.DataError` for lines without seven numbers, numbers that are there twice, parents
    that are not there, and files without a sample that do not say so (``# 0 samples``). Warns of further columns, of
    a ``SCALE`` in the header, and of other comments, or adds these to ``comments``.
    """
    rows: list[list[float]] = []
    lines: list[int] = []
    more = 0
    empty = False
    found = list[str]() if comments is None else comments
    for number, line in enumerate(source.read_text(encoding="utf-8-sig", errors="replace").splitlines(), 1):
        written, _, remark = line.partition("#")
        text = written.split()
        if not text:
            empty |= remark.strip() == _NOTHING
            if not _warn_of_scale(source, remark) and remark.strip() not in ("", _NOTHING, _LEGEND):
                found.append(remark)
            continue
        lines.append(number)
        more += len(text) > 7
        try:
            rows.append([float(each) for each in text[:7]])
        except ValueError:
            rows.append([])
        if len(rows[-1]) != 7:
            raise DataError(f"{source}, line {number}: number, type, x, y, z, radius and parent are needed: {line!r}")
    if comments is None:
        tell_of_comments(source, found)
    if not rows and not empty:
        raise DataError(
            f"{source} holds no samples: lines of number, type, x, y, z, radius and parent are needed "
            "(vectors.create makes an empty store)"
        )
    first = rows[0][0] if rows else 0
    if first not in (0, 1) or any(row[0] != number for number, row in enumerate(rows, int(first))):
        warn(source, "numbers of samples are left out: they are not 1, 2, … in the order of the lines")
    if more:
        warn(source, f"columns after the seventh are left out, in {more} lines")
    table = np.array(rows, np.float64).reshape(-1, 7)
    whole = table[:, [0, 1, 6]]
    if not (np.isfinite(whole).all() and (whole == np.rint(whole)).all() and (np.abs(whole) < 2**31).all()):
        raise DataError(f"{source}: numbers, types and parents are whole numbers of up to 32 bits")
    ids, above = table[:, :1].astype(np.int64), table[:, 6:].astype(np.int64)
    parents = find_rows(ids, above)
    parents[(above[:, 0] < 0) | ((above[:, 0] == 0) & (ids[:, 0] == 0))] = -1
    _check_numbers(source, ids[:, 0], lines)
    # a parent 0 that is no sample is that of a root: some programs write 0 in the place of -1
    lost = np.flatnonzero((parents < 0) & (above[:, 0] > 0))
    if len(lost):
        row = int(lost[0])
        raise DataError(
            f"{source}, line {lines[row]}: the parent of number {ids[row, 0]}, {above[row, 0]}, is not in the file"
        )
    return table[:, 2:5], parents, {"type": table[:, 1].astype(np.int32), "radius": table[:, 5]}


def _check_numbers(source: Path, ids: Ints, lines: list[int]) -> None:
    """Raise :class:`~zardine.errors.DataError` for a number of a sample that is there twice."""
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(same):
        place = int(same[np.argmin(order[same + 1])])
        first, second = int(order[place]), int(order[place + 1])
        raise DataError(f"{source}, line {lines[second]}: the number {ids[second]} is that of line {lines[first]} too")


def _warn_of_scale(source: Path, remark: str) -> bool:
    """Say that a scale in the header, other than 1, is not applied; return whether the remark is a scale."""
    words = remark.split()
    if not words or words[0].upper().rstrip(":=") != "SCALE":
        return False
    if any(each not in ("1", "1.0") for each in words[1:]):
        warn(source, f"positions are stored as they are in the file; its scale is not applied: {' '.join(words[1:])}")
    return True


KEPT: Final = ("type", "radius")
"""The attributes that the format holds."""
_USUAL: Final = {"type": 0, "radius": 1}
"""Their values in a file that is written from a store without them."""


def check_kept(attributes: Mapping[str, npt.NDArray[Any]], target: Path | str) -> None:
    """Raise :class:`~zardine.errors.DataError` for types and radii that are none."""
    for name, kinds in zip(KEPT, ("iub", "iuf"), strict=True):
        values = attributes.get(name)
        if values is not None and (values.ndim != 1 or values.dtype.kind not in kinds):
            told = "whole numbers" if name == "type" else "numbers"
            raise DataError(f"{target}: the attribute {name!r} is a column of {told} in this format")


def warn_left_out(names: Iterable[str], target: Path | str) -> None:
    """Warn of attributes that the format has no place for, and of those that it needs and that are not among them."""
    given = list(names)
    warn_names((name for name in given if name not in KEPT), target, "the format holds 'type' and 'radius'")
    for name in KEPT:
        if name not in given:
            warn(target, f"there is no attribute {name!r}: it is written as {_USUAL[name]}, and comes back so")


def write_swc(target: Path, positions: Any, parents: Any, attributes: Mapping[str, Any]) -> None:
    """Write a skeleton; without attributes ``type`` and ``radius`` these are 0 and 1. Parents come before children."""
    order = depth_first(np.asarray(parents), np.zeros(len(parents), np.int64))
    place = inverse(order)
    above = np.asarray(parents)[order]
    numbers = np.where(above >= 0, place[above] + 1, -1) if len(order) else above
    samples = samples_of(np.asarray(positions), attributes)[order]
    with target.open("w", encoding="utf-8") as file:
        file.write(swc_header(len(order)))
        file.write(swc_lines(samples, np.arange(1, len(order) + 1), numbers))


SAMPLE: Final = np.dtype([("type", np.int64), ("position", np.float64, 3), ("radius", np.float64)])
"""What a line says of a sample, beside its number and that of its parent."""


def samples_of(positions: npt.NDArray[Any], attributes: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return samples at some positions: of type 0 and radius 1 where these are no attributes.

    Raises :class:`~zardine.errors.DataError` for types that are no whole numbers of 32 bits.
    """
    kinds = np.asarray(attributes.get("type", _USUAL["type"]))
    if not (np.abs(kinds.astype(np.float64)) < 2**31).all():
        raise DataError("types of samples are whole numbers of up to 32 bits")
    found = np.empty(len(positions), SAMPLE)
    found["position"] = positions
    found["type"] = kinds
    found["radius"] = attributes.get("radius", _USUAL["radius"])
    return found


def swc_header(count: int) -> str:
    """Return the first lines of a file of so many samples."""
    return f"# {_LEGEND}\n" + ("" if count else f"# {_NOTHING}\n")


def swc_lines(samples: npt.NDArray[Any], numbers: Ints, parents: Ints) -> str:
    """Return a line for each sample, with its number and that of its parent."""
    columns = samples["type"], samples["position"], samples["radius"], numbers, parents
    return "".join(
        f"{number} {kind} {x!r} {y!r} {z!r} {radius!r} {above}\n"
        for kind, (x, y, z), radius, number, above in zip(*(each.tolist() for each in columns), strict=True)
    )
