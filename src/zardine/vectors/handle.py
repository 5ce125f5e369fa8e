"""One object to hold: a store of vectors, opened. A thin face of the functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, ReadOnlyError
from zardine.nodes.group import Group
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.tools.report import Repairs
from zardine.vectors.changing.creating import rank_of
from zardine.vectors.changing.editing import delete, move_vertices, set_attribute
from zardine.vectors.content.arguments import Attributes, Box, GroupsLike, checked_positions
from zardine.vectors.findings import Report
from zardine.vectors.graph import append_graph
from zardine.vectors.inspecting import describe_store
from zardine.vectors.members import Groups, Objects
from zardine.vectors.mesh import append_mesh
from zardine.vectors.points import append_points
from zardine.vectors.polylines import append_polylines
from zardine.vectors.pyramid import build_pyramid
from zardine.vectors.reading.kept import KeptDocuments, kind_of
from zardine.vectors.reading.kept_facts import KeptFacts
from zardine.vectors.reading.query import QueryOptions, Where
from zardine.vectors.repairing import repair
from zardine.vectors.results import Geometry, Graph, Mesh, Points, Polylines, Skeleton
from zardine.vectors.selecting import LINES, Selection
from zardine.vectors.skeleton import append_skeleton
from zardine.vectors.storing.store import VectorStore
from zardine.vectors.validation.validate import validate
from zardine.vectors.writing import Layout, Space, kind_named, with_hints_of_place, write

_VALUES = {"point_cloud": "Points", "graph": "a Graph", "skeleton": "a Skeleton", "mesh": "a Mesh"}


class Conditions(TypedDict, total=False):
    """What :meth:`Vectors.delete` takes; see :func:`zardine.vectors.delete`."""

    bbox: Box
    object_ids: Collection[int] | None
    group_ids: Collection[int] | None
    where: Where


class PyramidOptions(TypedDict, total=False):
    """What :meth:`Vectors.build_pyramid` takes; see :func:`zardine.vectors.build_pyramid`."""

    factors: Sequence[tuple[float, float]] | None
    chunk_scale_factors: Sequence[int] | None
    sparsity_seed: int | None
    cross_level_links: bool | None
    anew: bool
    progress: Progress | None


@public("zardine.vectors")
class Vectors:
    """A store of points, lines, a graph, skeletons or meshes.

    Its documents are kept for :meth:`read`, :meth:`select`, :attr:`objects` and :attr:`groups`: one look after reading
    tells whether somebody has changed the store, and then it is read anew. Facts are kept too, and one look at the
    document that tells them shows whether they still hold.
    """

    def __init__(self, path: StoreLike | Group, mode: Literal["r", "r+"] = "r") -> None:
        if mode not in ("r", "r+"):
            raise DataError(f"mode is 'r' or 'r+', not {mode!r}: write and create make a new store")
        self.path: StoreLike = path.store_path if isinstance(path, Group) else path
        self.mode = mode
        self._documents = KeptDocuments(self.kind)
        self._facts = KeptFacts()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Forget the documents that are kept. Every change counts from the call on that makes it, not from here."""
        self._documents = KeptDocuments(self._documents.kind)

    def info(self, *, sizes: bool = False) -> dict[str, Any]:
        """Return what :func:`zardine.vectors.describe_store` gives."""
        return describe_store(self.path, sizes=sizes)

    @property
    def kind(self) -> str:
        """The geometry, as the format calls it: ``"point_cloud"``, ``"streamline"``, …."""
        return kind_of(VectorStore.open(self.path).root)

    @property
    def bounds(self) -> list[list[float]]:
        """The lowest and the highest corner, both included."""
        found: list[list[float]] = [list(corner) for corner in self._told()["bounds"]]
        return found

    @property
    def axes(self) -> list[dict[str, Any]]:
        """A table for each axis, with its ``name``, and ``unit`` if that is known."""
        found: list[dict[str, Any]] = deepcopy(self._told()["axes"])
        return found

    @property
    def crs(self) -> Mapping[str, Any] | None:
        """What the coordinates are."""
        found: Mapping[str, Any] | None = deepcopy(self._told()["crs"])
        return found

    @property
    def levels(self) -> list[int]:
        """The numbers of the levels; 0 is full resolution."""
        return [each["level"] for each in self._told()["levels"]]

    @property
    def attributes(self) -> dict[str, list[str]]:
        """The names of the attributes of level 0, for ``"vertex"``, ``"link"``, ``"object"``, ``"group"``, ….

        Of kinds of things that have none there is no entry.
        """
        first = self._told("0")["levels"][0]
        kinds = ("vertex", "fragment", "link", "object", "group")
        return {kind: list(first[f"{kind}_attributes"]) for kind in kinds if first[f"{kind}_attributes"]}

    @property
    def objects(self) -> Objects:
        """The objects, by id: ``objects[7]``."""
        return Objects(self._documents.at(self.path), self._documents.kind)

    @property
    def groups(self) -> Groups:
        """The groups, by number and name: ``groups["left"]``."""
        return Groups(self._documents.at(self.path), self._documents.kind)

    def __len__(self) -> int:
        """How many vertices level 0 has, as its document tells: see :meth:`Selection.count`."""
        return int(self._told("0")["levels"][0]["vertex_count"])

    def __repr__(self) -> str:
        facts = self._told("", "0", "0/vertices")
        first = facts["levels"][0]
        low, high = facts["bounds"]
        kinds = facts["geometry_types"]
        parts = [str(kinds[0]) if kinds else "point_cloud", f"{first['vertex_count']} vertices"]
        parts += [f"{first['objects']} objects"] if first["objects"] is not None else []
        parts += [f"bounds {low} to {high}", f"levels {[each['level'] for each in facts['levels']]}"]
        older = [each["level"] for each in facts["levels"] if each["older"]]
        parts += [f"of which {older} are older"] if older else []
        parts += [f"shards {first['shard_shape']}"] if first["shard_shape"] is not None else []
        return f"<Vectors {', '.join(parts)}>"

    def select(self, **query: Unpack[QueryOptions]) -> Selection:
        """Return a part of the store, of which nothing is read yet: it can be counted, explained and read in batches.

        ``query`` as in :func:`zardine.vectors.read_points`. Raises :class:`~zardine.errors.SelectionError` for what can
        be no query; what the store does not have is told when it is read.
        """
        return Selection(self._documents.at(self.path), self._documents.kind, **query)

    def read(self, **query: Unpack[QueryOptions]) -> Geometry:
        """Read what the geometry is: :class:`Points`, :class:`Polylines`, a :class:`Graph`, :class:`Skeleton`, ….

        ``query`` as in :func:`zardine.vectors.read_points`; so are errors.
        """
        return self.select(**query).read()

    def append(
        self, geometry: Geometry | Any, *, object_attributes: Attributes = None, groups: GroupsLike = None
    ) -> None:
        """Add a value of the geometry that the store holds, as :func:`zardine.vectors.append_points` and its kin do.

        Points may also be an array ``(N, D)``, and lines a list of such arrays. Lines whose ids nobody chose get ids
        above those that there are; ids that are given and there already are an error.
        ``object_attributes`` have a row for each distinct new id, ascending; those of :class:`Polylines` are part of
        the value. ``groups={"left": [7, 9]}`` names objects of the value that groups gain, by name or by number, as
        :func:`write` does; ids that nobody chose are the numbers of lines from 0 on. Other groups are new ones.

        Raises :class:`~zardine.errors.ReadOnlyError` unless the mode is ``"r+"``, :class:`~zardine.errors.DataError`
        for what does not fit.
        """
        self._check_mode()
        if not isinstance(geometry, Geometry):
            self._append_arrays(geometry, object_attributes, groups)
            return
        value = geometry.checked()
        if object_attributes and isinstance(value, Polylines):
            raise DataError("object_attributes of lines are part of the Polylines")
        about: Any = {
            "vertex_attributes": value.attributes,
            "object_ids": value.object_ids,
            "object_attributes": object_attributes,
            "groups": groups,
        }
        match value:
            case Points():
                append_points(self.path, value.positions, **about)
            case Polylines():
                about |= {"object_attributes": value.object_attributes}
                if not value.ids_are_given and np.array_equal(value.object_ids, np.arange(len(value))):
                    about["object_ids"] = None
                append_polylines(self.path, value.lines, **about)
            case Skeleton():
                append_skeleton(self.path, value.positions, value.parents, **about)
            case Mesh():
                append_mesh(self.path, value.positions, value.faces, face_attributes=value.face_attributes, **about)
            case Graph():
                append_graph(self.path, value.positions, value.edges, edge_attributes=value.edge_attributes, **about)

    def delete(self, **conditions: Unpack[Conditions]) -> int:
        """Remove vertices, as :func:`zardine.vectors.delete`; gives how many."""
        self._check_mode()
        return delete(self.path, **conditions)

    def move(
        self,
        rows: npt.ArrayLike | None = None,
        positions: npt.ArrayLike | None = None,
        *,
        object_ids: Collection[int] | None = None,
    ) -> None:
        """Put vertices elsewhere, as :func:`zardine.vectors.move_vertices`: ``v.move(v.read().positions + 1)``.

        ``move(positions)`` is about all vertices, ``move(rows, positions)`` about some; ``object_ids``: of these
        objects alone. Both are in the order of :meth:`read`, so of lines along each.
        """
        self._check_mode()
        move_vertices(self.path, rows, positions, object_ids=object_ids)

    def set_attribute(
        self,
        name: str,
        values: Sequence[Any] | npt.ArrayLike | None,
        *,
        kind: str = "vertex",
        object_ids: Collection[int] | None = None,
        new: bool = False,
    ) -> None:
        """Give the things of one ``kind``, or of some objects, values, as :func:`zardine.vectors.set_attribute`.

        Those of vertices are in the order of :meth:`read`, with the same ``object_ids``: of lines along each.
        ``new``: it is a new attribute, although its name looks like that of another one.
        """
        self._check_mode()
        set_attribute(self.path, name, values, kind=kind, object_ids=object_ids, new=new)

    def build_pyramid(self, **options: Unpack[PyramidOptions]) -> list[int]:
        """Make coarser levels, as :func:`zardine.vectors.build_pyramid`; gives their numbers."""
        self._check_mode()
        return build_pyramid(self.path, **options)

    def validate(self, *, progress: Progress | None = None) -> Report:
        """Check the whole store, as :func:`zardine.vectors.validate`."""
        return validate(self.path, progress=progress)

    def repair(self, *, drop_lost: bool = False, dry_run: bool = False, progress: Progress | None = None) -> Repairs:
        """Put right what can be put right, as :func:`zardine.vectors.repair`; with ``dry_run`` in any mode."""
        if not dry_run:
            self._check_mode()
        return repair(self.path, drop_lost=drop_lost, dry_run=dry_run, progress=progress)

    def _append_arrays(self, arrays: Any, object_attributes: Attributes, groups: GroupsLike) -> None:
        kind = self.kind
        if kind == "point_cloud" and isinstance(arrays, np.ndarray | Sequence) and not isinstance(arrays, str):
            append_points(self.path, arrays, object_attributes=object_attributes, groups=groups)
        elif kind in LINES and isinstance(arrays, np.ndarray | Sequence) and not isinstance(arrays, str):
            lines: Any = arrays
            append_polylines(self.path, lines, object_attributes=object_attributes, groups=groups)
        else:
            wanted = _VALUES.get(kind, "Polylines, or a list of arrays,").replace("Points", "Points, or an array,")
            raise DataError(f"{wanted} can be added to a store of the geometry {kind}, not {type(arrays).__name__}")

    def _told(self, *documents: str) -> dict[str, Any]:
        """The facts of the store; ``documents``: of which nodes they are told (default: of the root group)."""
        return self._facts.get(self.path, documents or ("",), describe_store)

    def _check_mode(self) -> None:
        if self.mode != "r+":
            raise ReadOnlyError("the store was opened to be read: open it with mode='r+' to change it")


def open(path: StoreLike | Group, mode: Literal["r", "r+"] = "r") -> Vectors:
    """Open a store of vectors; ``mode="r+"`` to change it. ``path`` may be a :class:`zardine.Group`, the root of one.

    It may be used in a ``with`` statement; nothing stays open without one. Raises as
    :func:`zardine.vectors.describe_store`.
    """
    return Vectors(path, mode)


@with_hints_of_place
def create(
    path: StoreLike,
    kind: str,
    *,
    bounds: Box = None,
    layout: Layout,
    space: Space | None = None,
    dtype: npt.DTypeLike = "float32",
    objects: bool = False,
    corners: int = 3,
    overwrite: bool = False,
) -> Vectors:
    """Make a new, empty store, to be filled by :meth:`Vectors.append`; gives it opened with ``mode="r+"``.

    - ``kind``: ``"points"``, ``"lines"``, ``"polylines"``, ``"streamlines"``, ``"graphs"``, ``"skeletons"`` or
      ``"meshes"``, or the name that the format has (``"point_cloud"``, …).
    - ``bounds``: lowest and highest corner, both included, of what is expected; the same as those of ``space``. They
      grow where something is added outside.
    - ``layout``: its ``chunk_shape`` is needed, since nothing tells how densely the store will be filled.
    - ``dtype``: of positions, ``"float32"`` or ``"float64"``; what is added is rounded to it.
    - ``objects``: whether points will be part of objects; all other geometries are.
    - ``corners``: of the faces of meshes, from 3 to 12.

    Raises :class:`~zardine.errors.DataError` for unusable arguments before anything is written,
    :class:`~zardine.errors.NodeExistsError` where something is stored and ``overwrite`` is false.
    """
    named = kind_named(kind)
    if space is not None and not isinstance(space, Space):
        raise DataError(f"space is a Space, Space(...), not {type(space).__name__}")
    where = space or Space()
    if bounds is not None and where.bounds is not None:
        raise DataError("bounds are given twice: as an argument, and in space")
    corner_pair = where.bounds if bounds is None else bounds
    if corner_pair is None:
        raise DataError("give bounds=(lowest, highest corner): where things are to be cannot be told of an empty store")
    if not isinstance(layout, Layout) or layout.chunk_shape is None:
        raise DataError("give layout=Layout(chunk_shape=...): an empty store does not tell how large chunks should be")
    where = replace(where, bounds=corner_pair)
    rank = rank_of({"bounds": corner_pair})
    value = _nothing(named, np.zeros((0, rank or 0)), dtype, objects=objects, corners=corners)
    write(path, value, layout=layout, space=where, kind=named, overwrite=overwrite)
    return Vectors(path, "r+")


def _nothing(kind: str, places: npt.NDArray[Any], dtype: Any, *, objects: bool, corners: Any) -> Geometry:
    """An empty value of a geometry."""
    none = np.zeros(0, np.int64)
    positions = checked_positions(places, dtype)
    match kind:
        case "point_cloud":
            return Points(positions, {}, none if objects else None)
        case "graph":
            return Graph(positions, none.reshape(0, 2), object_ids=none)
        case "skeleton":
            return Skeleton(positions, none, object_ids=none)
        case "mesh":
            if isinstance(corners, bool) or not isinstance(corners, int) or not 3 <= corners <= 12:
                raise DataError(f"faces have from 3 to 12 corners, not {corners!r}")
            return Mesh(positions, none.reshape(0, corners), object_ids=none)
    return Polylines(positions, np.zeros(1, np.int64), none)


__all__ = ["Vectors", "create", "open"]
