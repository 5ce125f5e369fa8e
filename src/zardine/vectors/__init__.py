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
  beside what is there and take its place by one write (:mod:`~zardine.vectors.storing.transactions`).
- Modules import only from their own floor and from those below it. From the ground up: ``format``, ``content``,
  ``storing``, ``reading``, ``changing``; then ``validation``, ``sharding`` and ``repairing``; then the public functions
  of each geometry, of pyramids and of what is in a store; on top ``exchange``.
"""

from typing import TYPE_CHECKING

from zardine.public_names import Exports

if TYPE_CHECKING:
    from zardine.vectors.changing.editing import delete as delete
    from zardine.vectors.changing.editing import move_vertices as move_vertices
    from zardine.vectors.changing.editing import set_attribute as set_attribute
    from zardine.vectors.exchange.formats import export_vectors as export_vectors
    from zardine.vectors.exchange.formats import import_vectors as import_vectors
    from zardine.vectors.exchange.formats import plan_export as plan_export
    from zardine.vectors.exchange.formats import plan_import as plan_import
    from zardine.vectors.findings import Finding as Finding
    from zardine.vectors.findings import Report as Report
    from zardine.vectors.graph import append_graph as append_graph
    from zardine.vectors.graph import read_graph as read_graph
    from zardine.vectors.graph import write_graph as write_graph
    from zardine.vectors.handle import Vectors as Vectors
    from zardine.vectors.handle import create as create
    from zardine.vectors.handle import open as open
    from zardine.vectors.inspecting import FragmentTable as FragmentTable
    from zardine.vectors.inspecting import GroupTable as GroupTable
    from zardine.vectors.inspecting import ObjectTable as ObjectTable
    from zardine.vectors.inspecting import chunk_exists as chunk_exists
    from zardine.vectors.inspecting import describe_store as describe_store
    from zardine.vectors.inspecting import list_chunks as list_chunks
    from zardine.vectors.inspecting import read_cross_level_links as read_cross_level_links
    from zardine.vectors.inspecting import read_fragments as read_fragments
    from zardine.vectors.inspecting import read_groups as read_groups
    from zardine.vectors.inspecting import read_objects as read_objects
    from zardine.vectors.members import Groups as Groups
    from zardine.vectors.members import Objects as Objects
    from zardine.vectors.mesh import append_mesh as append_mesh
    from zardine.vectors.mesh import read_mesh as read_mesh
    from zardine.vectors.mesh import write_mesh as write_mesh
    from zardine.vectors.parametric import read_parametric_objects as read_parametric_objects
    from zardine.vectors.parametric import write_parametric_objects as write_parametric_objects
    from zardine.vectors.points import append_points as append_points
    from zardine.vectors.points import read_points as read_points
    from zardine.vectors.points import write_points as write_points
    from zardine.vectors.polylines import append_polylines as append_polylines
    from zardine.vectors.polylines import read_lines as read_lines
    from zardine.vectors.polylines import read_polylines as read_polylines
    from zardine.vectors.polylines import write_lines as write_lines
    from zardine.vectors.polylines import write_polylines as write_polylines
    from zardine.vectors.pyramid import build_pyramid as build_pyramid
    from zardine.vectors.reading.explaining import Explanation as Explanation
    from zardine.vectors.reading.explaining import ReadCosts as ReadCosts
    from zardine.vectors.repairing import repair as repair
    from zardine.vectors.results import Graph as Graph
    from zardine.vectors.results import Mesh as Mesh
    from zardine.vectors.results import ParametricObject as ParametricObject
    from zardine.vectors.results import Points as Points
    from zardine.vectors.results import Polylines as Polylines
    from zardine.vectors.results import Skeleton as Skeleton
    from zardine.vectors.selecting import Selection as Selection
    from zardine.vectors.sharding import get_shard_info as get_shard_info
    from zardine.vectors.sharding import is_sharded as is_sharded
    from zardine.vectors.sharding import reshard as reshard
    from zardine.vectors.sharding import shard_store as shard_store
    from zardine.vectors.sharding import unshard_store as unshard_store
    from zardine.vectors.skeleton import append_skeleton as append_skeleton
    from zardine.vectors.skeleton import read_skeleton as read_skeleton
    from zardine.vectors.skeleton import write_skeleton as write_skeleton
    from zardine.vectors.validation.validate import validate as validate
    from zardine.vectors.writing import Layout as Layout
    from zardine.vectors.writing import Space as Space
    from zardine.vectors.writing import write as write
    from zardine.vectors.writing_cells import plan_write_cells as plan_write_cells
    from zardine.vectors.writing_cells import write_cells as write_cells

_exports = Exports(
    __name__,
    {
        "validation.validate": ("validate",),
        "handle": ("Vectors", "create", "open"),
        "members": ("Groups", "Objects"),
        "selecting": ("Selection",),
        "writing": ("Layout", "Space", "write"),
        "writing_cells": ("plan_write_cells", "write_cells"),
        "sharding": ("get_shard_info", "is_sharded", "reshard", "shard_store", "unshard_store"),
        "changing.editing": ("delete", "move_vertices", "set_attribute"),
        "exchange.formats": ("export_vectors", "import_vectors", "plan_export", "plan_import"),
        "findings": ("Finding", "Report"),
        "graph": ("append_graph", "read_graph", "write_graph"),
        "skeleton": ("append_skeleton", "read_skeleton", "write_skeleton"),
        "mesh": ("append_mesh", "read_mesh", "write_mesh"),
        "parametric": ("read_parametric_objects", "write_parametric_objects"),
        "points": ("append_points", "read_points", "write_points"),
        "polylines": ("append_polylines", "read_lines", "read_polylines", "write_lines", "write_polylines"),
        "pyramid": ("build_pyramid",),
        "reading.explaining": ("Explanation", "ReadCosts"),
        "repairing": ("repair",),
        "results": ("Graph", "Mesh", "ParametricObject", "Points", "Polylines", "Skeleton"),
        "inspecting": (
            *("FragmentTable", "GroupTable", "ObjectTable", "chunk_exists", "describe_store", "list_chunks"),
            *("read_cross_level_links", "read_fragments", "read_groups", "read_objects"),
        ),
    },
)

__all__ = [name for name in _exports.names if name != "open"]  # "import *" leaves the built-in one alone
__dir__ = _exports.listed
__getattr__ = _exports.load
