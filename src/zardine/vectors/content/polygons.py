"""Polygons cut into triangles: as a fan where they are convex, by their ears where they are not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints

_MOST: Final = 4096
"""Corners of a polygon that is looked at; one of more is cut as a fan."""


def triangles(faces: Ints, positions: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Cut ``faces``, ``(F, corners)`` rows of ``positions``, into triangles.

    Return these, ``(F * (corners - 2), 3)``, those of a face behind one another, and the face that each is of.
    """
    corners = faces.shape[1]
    if corners == 3:
        return faces, np.arange(len(faces))
    cut = cuts_of(positions[faces]).reshape(len(faces), -1)
    face = np.repeat(np.arange(len(faces)), corners - 2)
    return np.take_along_axis(faces, cut, axis=1).reshape(-1, 3), face


def cuts_of(polygons: npt.NDArray[Any]) -> Ints:
    """Return the triangles, ``(n, corners - 2, 3)``, of each of ``n`` polygons, as numbers of its corners.

    ``polygons`` are their corners in order, ``(n, corners, axes)``. Each triangle goes round as the polygon does. One
    whose sides cross, or of no area, is cut as far as it has ears, and then as a fan.
    """
    count = polygons.shape[1]
    found = np.empty((len(polygons), count - 2, 3), np.int64)
    found[:] = _fan(list(range(count)))
    if not 3 < count <= _MOST:
        return found
    with np.errstate(all="ignore"):  # corners at infinity have no ears
        flat = _flattened(polygons.astype(np.float64))
        for polygon in np.flatnonzero(~_are_convex(flat)):
            found[polygon] = _by_ears(flat[polygon])
    return found


def _fan(corners: list[int]) -> list[tuple[int, int, int]]:
    return [(corners[0], corners[at], corners[at + 1]) for at in range(1, len(corners) - 1)]


def _by_ears(flat: npt.NDArray[np.float64]) -> list[tuple[int, int, int]]:
    left = list(range(len(flat)))
    found: list[tuple[int, int, int]] = []
    while len(left) > 3 and not _are_convex(flat[left]):
        ear = _ear(flat[left])
        if ear is None:
            break
        found.append((left[ear - 1], left[ear], left[(ear + 1) % len(left)]))
        del left[ear]
    return found + _fan(left)


def _flattened(polygons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return corners in the plane of two axes in which each polygon is largest, and goes round against the clock."""
    sides = polygons - polygons[:, :1]
    areas = np.swapaxes(sides, 1, 2) @ np.roll(sides, -1, axis=1)
    areas = areas - np.swapaxes(areas, 1, 2)
    plane = np.stack(np.divmod(areas.reshape(len(areas), -1).argmax(axis=1), polygons.shape[2]), axis=1)
    return np.take_along_axis(polygons, plane[:, None], axis=2)


def _turns(before: Any, at: Any, after: Any) -> Any:
    """Return twice the area of triangles: positive where they go round against the clock."""
    return (at[..., 0] - before[..., 0]) * (after[..., 1] - before[..., 1]) - (at[..., 1] - before[..., 1]) * (
        after[..., 0] - before[..., 0]
    )


def _are_convex(flat: npt.NDArray[np.float64]) -> Any:
    """Return whether no corner of a polygon, or of each of several, points inwards."""
    return (_turns(np.roll(flat, 1, axis=-2), flat, np.roll(flat, -1, axis=-2)) >= 0).all(axis=-1)


def _ear(flat: npt.NDArray[np.float64]) -> int | None:
    """Return a corner that can be cut off: it points outwards, and no other corner lies in its triangle."""
    before, after = np.roll(flat, 1, axis=0), np.roll(flat, -1, axis=0)
    for corner in np.flatnonzero(_turns(before, flat, after) > 0):
        a, b, c = before[corner], flat[corner], after[corner]
        others = flat[((flat != a).any(axis=1)) & ((flat != b).any(axis=1)) & ((flat != c).any(axis=1))]
        inside = (_turns(a, b, others) >= 0) & (_turns(b, c, others) >= 0) & (_turns(c, a, others) >= 0)
        if not inside.any():
            return int(corner)
    return None


__all__ = ["cuts_of", "triangles"]
