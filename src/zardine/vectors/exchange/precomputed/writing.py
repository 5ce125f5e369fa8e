"""A level of a store written as a folder of neuroglancer, or looked at as one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from zardine.errors import DataError, NodeExistsError, UnsupportedError
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress, Steps
from zardine.vectors.exchange.losses import LINES, check_store, warn_kind
from zardine.vectors.exchange.precomputed.annotation_tables import annotation_contents
from zardine.vectors.exchange.precomputed.folder import Folder, shards_of, write_index
from zardine.vectors.exchange.precomputed.segment_tables import mesh_contents, skeleton_contents
from zardine.vectors.exchange.precomputed.sharding import sharding_for
from zardine.vectors.exchange.precomputed.tables import Contents, Table, Tell, silent
from zardine.vectors.outside import warn
from zardine.vectors.storing.store import VectorStore

_MOST_FILES: Final = 1000
"""Values of a table above which they are put into shards."""
_OURS: Final = re.compile(r"info|[0-9]+(:0(:0)?)?|[0-9a-f]*\.shard|[0-9]+(_[0-9]+)*", re.ASCII)
"""Names of files in such a folder."""
_KEPT: Final = {
    "point_cloud": ("vertex_attributes", "object_attributes", "group_attributes"),
    "line": ("object_attributes", "group_attributes"),
    "mesh": ("object_attributes",),
}


def contents_of(
    path: StoreLike, level: int = 0, *, annotation_type: str | None = None, tell: Tell = silent
) -> Contents:
    """Return a level as neuroglancer has it: points and straight lines as annotations, meshes of one resolution.

    Skeletons, graphs and lines of more vertices are skeletons. Raises :class:`DataError` for what the format does not
    have.
    """
    kind = kind_of(path)
    if kind in ("point_cloud", "line"):
        return annotation_contents(path, level, annotation_type, tell)
    if annotation_type is not None:
        raise DataError(f"the store holds a {kind}: annotations are points, or lines of two vertices")
    return (mesh_contents if kind == "mesh" else skeleton_contents)(path, level, tell)


def kind_of(path: StoreLike) -> str:
    """Return the geometry of a store."""
    return (VectorStore.open(path).root.geometry_types or ("point_cloud",))[0]


def precomputed_out(
    path: StoreLike,
    target: StoreLike,
    level: int = 0,
    *,
    annotation_type: str | None = None,
    sharded: bool | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a level into the folder ``target``, a path or URL; ``progress`` counts values. The document comes last.

    ``sharded``: whether values are packed into shards (``None``: where there are more than 1,000 of a kind); meshes
    never are. Raises :class:`NodeExistsError` where something lies in the folder, unless ``overwrite`` is true: then
    files of this format in it go first.
    """
    folder = Folder.at(target, writable=True)
    name = str(folder)
    kind = kind_of(path)
    kept = _KEPT.get(kind, ("vertex_attributes", "object_attributes"))
    kinds = ("point_cloud", *LINES, "graph", "skeleton", "mesh")
    check_store(path, name, level, kinds, kept, groups=kind in ("point_cloud", "line"))
    contents = contents_of(path, level, annotation_type=annotation_type, tell=lambda text: warn(name, text))
    if kind in ("graph", "streamline", "polyline"):
        warn_kind(kind, "skeleton", name)
    if sharded and not contents.may_shard:
        raise UnsupportedError(f"{name}: meshes of one resolution are files of their own: leave sharded out")
    _make_room(folder, overwrite)
    tables = [_stored(table, sharded if contents.may_shard else False) for table in contents.tables]
    steps = Steps(progress, sum(len(table.ids) for table in tables))
    for table in tables:
        for rows in shards_of(table.index, table.ids):
            values = zip(rows.tolist(), table.values(rows), strict=True)
            write_index(folder, table.index, ((int(table.ids[row]), table.name(row), each) for row, each in values))
            steps(len(rows))
    for other, document in contents.others.items():
        folder.write_document(other, document)
    folder.write_document("info", contents.info(tables))


def _stored(table: Table, sharded: bool | None) -> Table:
    chosen = len(table.ids) > _MOST_FILES if sharded is None else sharded
    return (
        replace(table, index=replace(table.index, sharding=sharding_for(len(table.ids), table.nbytes)))
        if chosen
        else table
    )


def _make_room(folder: Folder, overwrite: bool) -> None:
    """Raise where something lies in the folder, or remove what is of this format, the document first."""
    prefix = f"{folder.path}/" if folder.path else ""
    there = list(folder.store.list_prefix(prefix))
    if there and not overwrite:
        raise NodeExistsError(f"something is stored at {folder} already: overwrite=True replaces it")
    ours = [key for key in there if _OURS.fullmatch(key.rpartition("/")[2]) and key[len(prefix) :].count("/") < 2]
    folder.store.erase_values(sorted(ours, key=lambda key: key != f"{prefix}info"))


__all__ = ["contents_of", "kind_of", "precomputed_out"]
