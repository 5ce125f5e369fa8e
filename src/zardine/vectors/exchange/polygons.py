"""Polygons cut into triangles: as a fan where they are convex, by their ears where they are not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_MOST: Final = 4096
"""Corners of a polygon that is looked at; one of more is cut as a fan."""


def triangles_of(corners: npt.NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """Return the triangles of a polygon in space, as numbers of its ``corners``, ``(n, 3)`` in their order.

    Each triangle goes round as the polygon does. One whose sides cross, or of no area, is cut as far as it has ears,
    and then as a fan.
    """
    left = list(range(len(corners)))
    found: list[tuple[int, int, int]] = []
    if 3 < len(corners) <= _MOST:
        with np.errstate(all="ignore"):  # corners at infinity have no ears
            flat = _flattened(corners)
            while len(left) > 3 and not _is_convex(flat[left]):
                ear = _ear(flat[left])
                if ear is None:
                    break
                found.append((left[ear - 1], left[ear], left[(ear + 1) % len(left)]))
                del left[ear]
    return found + [(left[0], left[at], left[at + 1]) for at in range(1, len(left) - 1)]


def _flattened(corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return corners in the plane in which the polygon is largest, so that it goes round against the clock."""
    following = np.roll(corners, -1, axis=0)
    normal = np.cross(corners - corners[0], following - corners[0]).sum(axis=0)
    axis = int(np.argmax(np.abs(normal)))
    flat = np.delete(corners, axis, axis=1)
    return flat[:, ::-1] if (normal[axis] < 0) != (axis == 1) else flat


def _turns(before: Any, at: Any, after: Any) -> Any:
    """Return twice the area of triangles: positive where they go round against the clock."""
    return (at[..., 0] - before[..., 0]) * (after[..., 1] - before[..., 1]) - (at[..., 1] - before[..., 1]) * (
        after[..., 0] - before[..., 0]
    )


def _is_convex(flat: npt.NDArray[np.float64]) -> bool:
    return bool((_turns(np.roll(flat, 1, axis=0), flat, np.roll(flat, -1, axis=0)) >= 0).all())


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


__all__ = ["triangles_of"]
