"""``from zardine.vectors.types.points import write_points``, as the pages of Zarr Vectors have it."""

from zardine.vectors.points import read_points, write_points

__all__ = ["read_points", "write_points"]
