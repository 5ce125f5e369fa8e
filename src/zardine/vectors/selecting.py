"""A part of a store that is asked for, held before anything is read: what it is, and how to have it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeAlias, Unpack

from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.graph import read_graph
from zardine.vectors.mesh import read_mesh
from zardine.vectors.points import read_points
from zardine.vectors.polylines import read_polylines
from zardine.vectors.reading.query import Query, QueryOptions
from zardine.vectors.results import Graph, Mesh, Points, Polylines, Skeleton
from zardine.vectors.skeleton import read_skeleton

Geometry: TypeAlias = Points | Polylines | Graph | Skeleton | Mesh


@public("zardine.vectors")
class Selection:
    """A part of a store. Nothing is read before it is asked for, and each time anew."""

    def __init__(self, path: StoreLike, kind: str, **query: Unpack[QueryOptions]) -> None:
        self.path = path
        self.kind = kind
        self.query = Query(**query).checked()

    def read(self) -> Geometry:
        """Read all of it, as :meth:`Vectors.read` does."""
        query: Any = {each.name: getattr(self.query, each.name) for each in fields(self.query)}
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


__all__ = ["Geometry", "Selection"]
