"""One object to hold: a store of vectors, opened. A thin face of the functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from zardine.errors import DataError, ReadOnlyError
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.editing import delete
from zardine.vectors.content.arguments import Attributes
from zardine.vectors.findings import Report
from zardine.vectors.graph import append_graph, read_graph
from zardine.vectors.inspecting import describe_store
from zardine.vectors.mesh import read_mesh
from zardine.vectors.points import append_points, read_points
from zardine.vectors.polylines import append_polylines, read_polylines
from zardine.vectors.pyramid import build_pyramid
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.results import Mesh, Points, Polylines, Skeleton
from zardine.vectors.skeleton import append_skeleton, read_skeleton
from zardine.vectors.validation.validate import validate
from zardine.vectors.writing import Geometry


@public("zardine.vectors")
class Vectors:
    """A store of points, lines, a graph, skeletons or meshes. Facts are looked up in its documents each time."""

    def __init__(self, path: StoreLike, mode: Literal["r", "r+"] = "r") -> None:
        if mode not in ("r", "r+"):
            raise DataError(f"mode is 'r' or 'r+', not {mode!r}: write makes a new store")
        self.path = path
        self.mode = mode
        self.info()

    def info(self) -> dict[str, Any]:
        """Return what :func:`zardine.vectors.describe_store` gives."""
        return describe_store(self.path)

    @property
    def kind(self) -> str:
        """The geometry, as the format calls it: ``"point_cloud"``, ``"streamline"``, …."""
        kinds = self.info()["geometry_types"]
        return str(kinds[0]) if kinds else "point_cloud"

    @property
    def bounds(self) -> list[list[float]]:
        """The lowest and the highest corner, both included."""
        found: list[list[float]] = self.info()["bounds"]
        return found

    @property
    def axes(self) -> list[dict[str, Any]]:
        """A table for each axis, with its ``name``, and ``unit`` if that is known."""
        found: list[dict[str, Any]] = self.info()["axes"]
        return found

    @property
    def crs(self) -> Mapping[str, Any] | None:
        """What the coordinates are."""
        found: Mapping[str, Any] | None = self.info()["crs"]
        return found

    @property
    def levels(self) -> list[int]:
        """The numbers of the levels; 0 is full resolution."""
        return [each["level"] for each in self.info()["levels"]]

    def __len__(self) -> int:
        """How many vertices level 0 has."""
        return int(self.info()["levels"][0]["vertex_count"])

    def __repr__(self) -> str:
        facts = self.info()
        first = facts["levels"][0]
        low, high = facts["bounds"]
        parts = [self.kind, f"{first['vertex_count']} vertices"]
        parts += [f"{first['objects']} objects"] if first["objects"] is not None else []
        parts += [f"bounds {low} to {high}", f"levels {[each['level'] for each in facts['levels']]}"]
        parts += [f"shards {first['shard_shape']}"] if first["shard_shape"] is not None else []
        return f"<Vectors {', '.join(parts)}>"

    def read(self, **query: Unpack[QueryOptions]) -> Geometry:
        """Read what the geometry is: :class:`Points`, :class:`Polylines`, a :class:`Graph`, :class:`Skeleton`, ….

        ``query`` as in :func:`zardine.vectors.read_points`; so are errors.
        """
        match self.kind:
            case "graph":
                return read_graph(self.path, **query)
            case "skeleton":
                return read_skeleton(self.path, **query)
            case "mesh":
                return read_mesh(self.path, **query)
            case "line" | "polyline" | "streamline":
                return read_polylines(self.path, **query)
        return read_points(self.path, **query)

    def append(self, geometry: Geometry) -> None:
        """Add a value of the geometry that the store holds, as :func:`zardine.vectors.append_points` and its kin do.

        Raises :class:`~zardine.errors.ReadOnlyError` unless the mode is ``"r+"``.
        """
        self._check_mode()
        if not isinstance(geometry, Geometry):
            raise DataError(f"Points, Polylines, a Graph, Skeleton or Mesh can be added, not {type(geometry).__name__}")
        value = geometry.checked()
        if isinstance(value, Points):
            append_points(self.path, value.positions, vertex_attributes=value.attributes, object_ids=value.object_ids)
        elif isinstance(value, Polylines):
            of_lines: Attributes = value.object_attributes
            append_polylines(
                self.path,
                value.lines,
                vertex_attributes=value.attributes,
                object_ids=value.object_ids,
                object_attributes=of_lines,
            )
        elif isinstance(value, Skeleton):
            append_skeleton(
                self.path,
                value.positions,
                value.parents,
                vertex_attributes=value.attributes,
                object_ids=value.object_ids,
            )
        else:
            links = value.faces if isinstance(value, Mesh) else value.edges
            columns = value.face_attributes if isinstance(value, Mesh) else value.edge_attributes
            append_graph(
                self.path,
                value.positions,
                links,
                vertex_attributes=value.attributes,
                link_attributes=columns,
                object_ids=value.object_ids,
            )

    def delete(self, **conditions: Any) -> int:
        """Remove vertices, as :func:`zardine.vectors.delete`; gives how many."""
        self._check_mode()
        return delete(self.path, **conditions)

    def build_pyramid(self, **options: Any) -> list[int]:
        """Make coarser levels, as :func:`zardine.vectors.build_pyramid`; gives their numbers."""
        self._check_mode()
        return build_pyramid(self.path, **options)

    def validate(self) -> Report:
        """Check the whole store, as :func:`zardine.vectors.validate`."""
        return validate(self.path)

    def _check_mode(self) -> None:
        if self.mode != "r+":
            raise ReadOnlyError("the store was opened to be read: open it with mode='r+' to change it")


def open(path: StoreLike, mode: Literal["r", "r+"] = "r") -> Vectors:
    """Open a store of vectors; ``mode="r+"`` to change it. Raises as :func:`zardine.vectors.describe_store`."""
    return Vectors(path, mode)


__all__ = ["Vectors", "open"]
