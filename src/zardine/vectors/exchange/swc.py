"""SWC: skeletons of neurons as lines of text: number, type, x, y, z, radius, parent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.encoding.ragged import Ints, find_rows


def read_swc(source: Path) -> tuple[npt.NDArray[np.float64], Ints, dict[str, npt.NDArray[Any]]]:
    """Positions ``(N, 3)``, the row of each parent (-1: none), and the attributes ``type`` and ``radius``.

    Raises :class:`~zardine.errors.DataError` for lines without seven numbers, and parents that are not there.
    """
    rows = []
    for number, line in enumerate(source.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = line.partition("#")[0].split()
        if not text:
            continue
        try:
            rows.append([float(each) for each in text[:7]])
        except ValueError:
            rows.append([])
        if len(rows[-1]) != 7:
            raise DataError(f"{source}, line {number}: number, type, x, y, z, radius and parent are needed: {line!r}")
    table = np.array(rows, np.float64).reshape(-1, 7)
    whole = table[:, [0, 1, 6]]
    if not (np.isfinite(whole).all() and (whole == np.rint(whole)).all() and (np.abs(whole) < 2**31).all()):
        raise DataError(f"{source}: numbers, types and parents are whole numbers of up to 32 bits")
    ids, above = table[:, :1].astype(np.int64), table[:, 6:].astype(np.int64)
    parents = find_rows(ids, above)
    parents[above[:, 0] < 0] = -1
    if len(np.unique(ids)) != len(ids) or ((parents < 0) & (above[:, 0] >= 0)).any():
        raise DataError(f"{source}: a number is there twice, or a parent is not there")
    return table[:, 2:5], parents, {"type": table[:, 1].astype(np.int32), "radius": table[:, 5]}


def write_swc(target: Path, positions: Any, parents: Any, attributes: Mapping[str, Any]) -> None:
    """Write a skeleton; without attributes ``type`` and ``radius`` these are 0 and 1. Parents come before children."""
    from zardine.vectors.content.run_content import depth_first, inverse

    order = depth_first(np.asarray(parents), np.zeros(len(parents), np.int64))
    place = inverse(order)
    kinds = np.asarray(attributes.get("type", np.zeros(len(order))))
    radii = np.asarray(attributes.get("radius", np.ones(len(order))))
    lines = ["# number type x y z radius parent"]
    for number, row in enumerate(order.tolist(), 1):
        above = int(place[parents[row]]) + 1 if parents[row] >= 0 else -1
        x, y, z = (repr(float(each)) for each in positions[row])
        lines.append(f"{number} {int(kinds[row])} {x} {y} {z} {float(radii[row])!r} {above}")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
