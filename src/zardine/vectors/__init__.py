"""Zarr Vectors: points, lines, graphs, skeletons and meshes in chunks of space, read and written as sharded arrays.

The layout is that of Zarr Vectors 0.9.2. How a store is built:

- Space is cut into *chunks*, boxes of ``chunk_shape``. Each level of a store has arrays of bytes with one *cell* for
  each chunk: the positions of the vertices in it, each attribute of them, the links between them, and the *fragments*,
  sets of rows of the cell. An *object* is a list of fragments. Sharding packs many cells into one stored object.
- :class:`~zardine.vectors.format.documents.RootDocument` and
  :class:`~zardine.vectors.format.documents.LevelDocument` are what the groups say;
  :class:`~zardine.vectors.content.content.Content` is a level, or some cells of it, in memory, with rows, fragments and
  objects numbered through.
- Pure modules turn user data into content (:mod:`~zardine.vectors.content.point_content`,
  :mod:`~zardine.vectors.content.run_content`), content into documents and cells
  (:mod:`~zardine.vectors.content.plan`), and cells into arrays (:mod:`~zardine.vectors.format.fragment_index`,
  :mod:`~zardine.vectors.format.manifests`, …). They do no I/O.
- :class:`~zardine.vectors.storing.cells.CellArray` reads and writes many cells with one call of a zardine array.
- Nothing is changed in place. A new store counts once its root document is written; conversions and changes are stored
  beside what is there and take its place by one write (:mod:`~zardine.vectors.storing.rebuilding`,
  :mod:`~zardine.vectors.storing.transactions`).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zardine.vectors.changing.editing import (
        append_graph,
        append_mesh,
        append_points,
        append_polylines,
        append_skeleton,
        delete,
        move_vertices,
        set_attribute,
    )
    from zardine.vectors.cross_levels import read_cross_level_links
    from zardine.vectors.describing import describe_store
    from zardine.vectors.findings import Finding, Report
    from zardine.vectors.graphs import read_graph, read_mesh, read_skeleton, write_graph, write_mesh, write_skeleton
    from zardine.vectors.inspecting import (
        FragmentTable,
        GroupTable,
        ObjectTable,
        read_fragments,
        read_groups,
        read_objects,
    )
    from zardine.vectors.parametric import ParametricObject, read_parametric_objects, write_parametric_objects
    from zardine.vectors.points import read_points, write_points
    from zardine.vectors.polylines import read_lines, read_polylines, write_lines, write_polylines
    from zardine.vectors.pyramid import build_pyramid
    from zardine.vectors.repairing import repair
    from zardine.vectors.results import Graph, Mesh, Points, Polylines, Skeleton
    from zardine.vectors.sharding import get_shard_info, is_sharded, reshard, shard_store, unshard_store
    from zardine.vectors.validation.validate import validate

_HOMES = {
    "validation.validate": ("validate",),
    "sharding": ("get_shard_info", "is_sharded", "reshard", "shard_store", "unshard_store"),
    "cross_levels": ("read_cross_level_links",),
    "describing": ("describe_store",),
    "changing.editing": (
        *("append_graph", "append_mesh", "append_points", "append_polylines", "append_skeleton"),
        *("delete", "move_vertices", "set_attribute"),
    ),
    "findings": ("Finding", "Report"),
    "graphs": ("read_graph", "read_mesh", "read_skeleton", "write_graph", "write_mesh", "write_skeleton"),
    "parametric": ("ParametricObject", "read_parametric_objects", "write_parametric_objects"),
    "points": ("read_points", "write_points"),
    "polylines": ("read_lines", "read_polylines", "write_lines", "write_polylines"),
    "pyramid": ("build_pyramid",),
    "repairing": ("repair",),
    "results": ("Graph", "Mesh", "Points", "Polylines", "Skeleton"),
    "inspecting": ("FragmentTable", "GroupTable", "ObjectTable", "read_fragments", "read_groups", "read_objects"),
}
"""Which module has which public names."""

_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Finding",
    "FragmentTable",
    "Graph",
    "GroupTable",
    "Mesh",
    "ObjectTable",
    "ParametricObject",
    "Points",
    "Polylines",
    "Report",
    "Skeleton",
    "append_graph",
    "append_mesh",
    "append_points",
    "append_polylines",
    "append_skeleton",
    "build_pyramid",
    "delete",
    "describe_store",
    "get_shard_info",
    "is_sharded",
    "move_vertices",
    "read_cross_level_links",
    "read_fragments",
    "read_graph",
    "read_groups",
    "read_lines",
    "read_mesh",
    "read_objects",
    "read_parametric_objects",
    "read_points",
    "read_polylines",
    "read_skeleton",
    "repair",
    "reshard",
    "set_attribute",
    "shard_store",
    "unshard_store",
    "validate",
    "write_graph",
    "write_lines",
    "write_mesh",
    "write_parametric_objects",
    "write_points",
    "write_polylines",
    "write_skeleton",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'zardine.vectors' has no attribute {name!r}")
    found = getattr(import_module(f"zardine.vectors.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
