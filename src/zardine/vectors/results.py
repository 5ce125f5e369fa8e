"""What reading gives and writing takes: NumPy arrays that belong together, and other programs' forms of them.

A value is made without a look at its arrays; ``checked()`` looks, as writing does. Packages of other programs are
imported when a conversion needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.public_names import public
from zardine.vectors.content.arguments import (
    checked_ids,
    checked_links,
    checked_parents,
    checked_positions,
    checked_rows,
    plain_array,
)
from zardine.vectors.content.columns import columns_of
from zardine.vectors.content.polygons import triangles
from zardine.vectors.content.run_content import joined_columns, joined_lines
from zardine.vectors.format.ragged import are_distinct, row_numbers, starts_of
from zardine.vectors.outside import column_names, known_crs, needing, numbers, warn, warn_objects, with_ids
from zardine.vectors.swc import check_kept, read_swc, warn_left_out, write_swc

Array = npt.NDArray[Any]
Arrays = Mapping[str, npt.NDArray[Any]]

_AXES = ("x", "y", "z", "w")


def _in_words(self: Any) -> str:
    """Return which arrays there are, their shapes and data types, and no values."""
    parts = []
    for each in fields(self):
        value = getattr(self, each.name) if each.repr else None
        if isinstance(value, Mapping):
            value = ", ".join(f"{name}: {_form(column)}" for name, column in value.items())
            parts += [f"{each.name} {{{value}}}"] if value else []
        elif value is not None:
            parts.append(f"{each.name} {_form(value)}")
    return f"<{type(self).__name__}: {', '.join(parts)}>"


def _lists_to_arrays(self: Any) -> None:
    """Let what was given as lists be arrays, as all methods expect; what can be none ``checked`` tells of."""
    for each in fields(self):
        given = getattr(self, each.name)
        if isinstance(given, list | tuple):
            object.__setattr__(self, each.name, _unless_refused(given, lambda values: plain_array(values, "")))
        elif each.name.endswith("attributes") and isinstance(given, Mapping):
            columns = {name: _unless_refused(values, _column_of) for name, values in given.items()}
            object.__setattr__(self, each.name, columns)


def _column_of(values: Any) -> Array:
    return columns_of({"values": values}, len(values), "rows")["values"].decoded()


def _unless_refused(given: Any, made: Callable[[Any], Array]) -> Any:
    try:
        return made(given) if isinstance(given, list | tuple) else given
    except DataError:
        return given


def _form(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.shape} {value.dtype}"
    return f"{value}" if isinstance(value, int) else type(value).__name__


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Points, in the order that they are stored in."""

    positions: Array
    """``(N, D)``, float32 or float64 as stored."""
    attributes: Arrays = field(default_factory=dict)
    """For each vertex attribute ``(N,)`` or ``(N, channels)``."""
    object_ids: npt.NDArray[np.int64] | None = None
    """``(N,)``: the object of each point, -1 for none; ``None`` where the store has no objects."""
    crs: Mapping[str, Any] | None = None
    """What the coordinates are, as ``Space.crs``; reading gives it, and :func:`write` keeps it."""

    __repr__ = _in_words

    def __post_init__(self) -> None:
        _lists_to_arrays(self)

    def __len__(self) -> int:
        return len(self.positions)

    def checked(self) -> Points:
        """Return the same with arrays of one length, as they can be stored. Raises :class:`DataError`."""
        positions, ids = checked_positions(self.positions), _checked_owners(self.object_ids, len(self.positions))
        return Points(positions, _checked(self.attributes, len(positions), "points"), ids, self.crs)

    @classmethod
    def from_pandas(cls, table: Any, axes: Sequence[str] = ("x", "y", "z")) -> Points:
        """Return the points of a data frame: columns ``axes`` are coordinates, ``object_id`` ids, others attributes.

        Raises :class:`~zardine.errors.DataError` for columns that are not there, for ids that are no integers of 64
        bits, and for what is no data frame.
        """
        if not hasattr(table, "columns"):
            raise DataError(f"a data frame is needed, not {type(table).__name__}: Points(positions) takes an array")
        lost = [name for name in axes if name not in table.columns]
        if lost:
            raise DataError(f"the table has no column {lost[0]!r}; axes= names those with the coordinates")
        positions = np.stack([table[name].to_numpy() for name in axes], axis=1)
        ids = _ids_in(table["object_id"]) if "object_id" in table.columns else None
        taken = {*axes, "object_id"}
        attributes = {str(name): _plain_column(table[name]) for name in table.columns if name not in taken}
        return cls(positions, attributes, ids)

    def to_pandas(self, axes: Sequence[str] | None = None) -> Any:
        """Return a data frame with a row for each point: coordinates (``x``, ``y``, …), ``object_id``, attributes.

        An attribute of several values has a column for each: ``rgb_0``, ``rgb_1``, …. One that is called as another
        column gets a ``_`` behind its name, with a :class:`~zardine.errors.ZarrUserWarning`: ``x_``.
        """
        pandas = _package("pandas", "Points.to_pandas")
        columns = _coordinates(self.positions, axes, ("object_id",))
        if self.object_ids is not None:
            columns["object_id"] = self.object_ids
        return pandas.DataFrame(_with_columns(columns, self.attributes, "Points.to_pandas"))

    def to_geopandas(self, crs: Any = None) -> Any:
        """Return a ``GeoDataFrame`` with a point for each row; ``crs``: what geopandas takes for one (default: own).

        Names of attributes as in :meth:`to_pandas`.
        """
        geopandas = _package("geopandas", "Points.to_geopandas")
        _check_rank(self.positions, (2, 3), "geopandas")
        columns = {} if self.object_ids is None else {"object_id": self.object_ids}
        shapes = geopandas.points_from_xy(*self.positions.T)
        table = _with_columns(columns, self.attributes, "Points.to_geopandas", ("geometry",))
        return geopandas.GeoDataFrame(table, geometry=shapes, crs=_crs(self, crs))

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the points into ``axes`` of Matplotlib (default: new ones), which are returned."""
        drawing = _axes_for(axes, self.positions)
        drawing.scatter(*self.positions.T[:3], **{"s": 1, **options})
        return drawing


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Polylines:
    """Lines, each a run of vertices: line ``i`` is ``positions[starts[i]:starts[i + 1]]``."""

    positions: Array
    """``(N, D)``, in the order of the lines."""
    starts: npt.NDArray[np.int64]
    """``(lines + 1,)``."""
    object_ids: npt.NDArray[np.int64]
    """``(lines,)``."""
    attributes: Arrays = field(default_factory=dict)
    """Of vertices."""
    object_attributes: Arrays = field(default_factory=dict)
    """Of lines."""
    crs: Mapping[str, Any] | None = None
    """What the coordinates are, as ``Space.crs``; reading gives it, and :func:`write` keeps it."""
    ids_are_given: bool = field(default=True, repr=False)
    """Whether somebody chose the ids; else they are numbers from 0 on, and :meth:`Vectors.append` gives new ones."""

    __repr__ = _in_words

    def __post_init__(self) -> None:
        _lists_to_arrays(self)

    def __len__(self) -> int:
        return len(self.object_ids)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Array: ...
    @overload
    def __getitem__(self, number: slice) -> list[Array]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> Array | list[Array]:
        """The vertices of a line, or a list of those of some lines. Raises ``IndexError`` and ``TypeError``."""
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        try:
            number = index(number)
        except TypeError:
            raise TypeError(f"lines have a number, or are a slice of numbers; not {type(number).__name__}") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} lines, so none with the number {number}")
        number %= len(self)
        return self.positions[self.starts[number] : self.starts[number + 1]]

    @property
    def lines(self) -> list[Array]:
        """All lines."""
        return [self[number] for number in range(len(self))]

    @classmethod
    def from_lines(
        cls,
        lines: Sequence[npt.ArrayLike],
        *,
        object_ids: npt.ArrayLike | None = None,
        attributes: Mapping[str, Any] | None = None,
        object_attributes: Mapping[str, Any] | None = None,
    ) -> Polylines:
        """Return lines made of arrays ``(vertices, D)``; everything as in :func:`zardine.vectors.write_polylines`.

        Without ``object_ids`` lines are numbered from 0, and appended to a store they get ids above those that it has.

        Raises :class:`~zardine.errors.DataError`.
        """
        whole, lengths = joined_lines(lines)
        ids = np.arange(len(lengths)) if object_ids is None else checked_ids(object_ids, len(lengths), "object_ids")
        columns = {name: plain_array(each, name) for name, each in (joined_columns(attributes, lengths) or {}).items()}
        of_lines = {name: plain_array(each, name) for name, each in (object_attributes or {}).items()}
        made = cls(whole, starts_of(lengths), ids, columns, of_lines, None, object_ids is not None)
        return made.checked()

    def checked(self) -> Polylines:
        """Return the same with arrays of fitting lengths, as they can be stored. Raises :class:`DataError`."""
        positions = checked_positions(self.positions, what="vertices of polylines")
        return replace(self, positions=positions)._fitting()

    def _fitting(self) -> Polylines:
        """Return the same with arrays of fitting lengths. Positions are still to be checked; raises as ``checked``."""
        positions = plain_array(self.positions, "vertices of polylines")
        if positions.ndim != 2:
            positions = checked_positions(positions, what="vertices of polylines")  # which says what is wrong
        starts, ids = checked_ids(self.starts, None, "starts"), checked_ids(self.object_ids, None, "object_ids")
        ends = len(starts) == len(ids) + 1 and starts[0] == 0 and starts[-1] == len(positions)
        if not ends or (np.diff(starts) < 0).any():
            raise DataError(
                f"starts of {len(ids)} lines are {len(ids) + 1} numbers that ascend from 0 to {len(positions)}, "
                "the number of vertices"
            )
        if not are_distinct(ids):
            raise DataError("object_ids: each id can be there once")
        attributes = _checked(self.attributes, len(positions), "vertices")
        of_lines = _checked(self.object_attributes, len(ids), "lines")
        return Polylines(positions, starts, ids, attributes, of_lines, self.crs, self.ids_are_given)

    @classmethod
    def from_tractogram(cls, tractogram: Any) -> Polylines:
        """Return the streamlines of a ``nibabel.streamlines.Tractogram``, in its space of RAS millimetres.

        Values of points and of streamlines become attributes of vertices and of lines. A tractogram without an affine
        is taken as it is. What nibabel gives for a file (``TrkFile``, ``TckFile``) will do, too, and so will what it
        loads lazily: the file is gone through once for positions and once for each attribute. Raises
        :class:`~zardine.errors.DataError` for anything else.
        """
        given, tractogram = tractogram, getattr(tractogram, "tractogram", tractogram)
        if not hasattr(tractogram, "streamlines"):
            reason = "a tractogram of nibabel is needed"
            raise DataError(
                f"{reason}, not {type(given).__name__}: import_vectors, or nibabel.streamlines.load, reads files"
            )
        lines = [np.asarray(line) for line in tractogram.streamlines]
        lengths = np.array([len(line) for line in lines], np.int64)
        whole = np.concatenate(lines) if lines else np.zeros((0, 3), np.float32)
        affine = tractogram.affine_to_rasmm
        if affine is not None and not np.array_equal(affine, np.eye(4)):
            moved = whole.astype(np.float64) @ np.asarray(affine)[:3, :3].T + np.asarray(affine)[:3, 3]
            whole = moved.astype(whole.dtype if whole.dtype.kind == "f" else np.float64)
        of_points = {
            name: _flat(np.concatenate(list(each))) for name, each in tractogram.data_per_point.items() if lines
        }
        of_lines = {
            name: _flat(each if isinstance(each, np.ndarray) else np.array(list(each)))  # lazy ones are iterators
            for name, each in tractogram.data_per_streamline.items()
        }
        return cls(whole, starts_of(lengths), np.arange(len(lines)), of_points, of_lines, None, False)

    def to_tractogram(self, affine: npt.ArrayLike | None = None) -> Any:
        """Return a ``nibabel.streamlines.Tractogram`` of the lines, whose positions are RAS millimetres.

        ``affine`` ``(4, 4)`` maps the coordinates that the tractogram is to have (voxels, say) to these; left out, they
        are the same. Attributes of numbers are kept, and ids that are more than numbers from 0 on, as ``object_id`` of
        streamlines; a :class:`~zardine.errors.ZarrUserWarning` names others, and tells of lines without vertices, which
        are left out. Raises :class:`DataError` for other than three axes, and for an
        affine that has no inverse.
        """
        what = "Polylines.to_tractogram"
        nibabel = _package("nibabel.streamlines", what)
        _check_rank(self.positions, (3,), "a tractogram")
        matrix = np.eye(4) if affine is None else np.asarray(affine, np.float64)
        if matrix.shape != (4, 4):
            raise DataError(f"an affine is a matrix of shape (4, 4), not {matrix.shape}")
        positions = self.positions
        if affine is not None:
            try:
                back = np.linalg.inv(matrix)
            except np.linalg.LinAlgError as error:
                raise DataError(f"the affine has no inverse: {error}") from None
            moved = positions.astype(np.float64) @ back[:3, :3].T + back[:3, 3]
            positions = moved.astype(positions.dtype if positions.dtype.kind == "f" else np.float64)
        there = np.diff(self.starts) > 0
        if not there.all():
            warn(what, f"{np.count_nonzero(~there)} lines without vertices are left out")
        cuts = self.starts[:-1][there][1:]
        given = with_ids(
            {name: each[there] for name, each in self.object_attributes.items()}, self.object_ids[there], what
        )
        of_lines = {name: _in_rows(each) for name, each in numbers(given, what).items()}
        of_points = {name: _in_rows(each) for name, each in numbers(self.attributes, what).items() if there.any()}
        return nibabel.Tractogram(
            np.split(positions, cuts) if there.any() else [],
            data_per_streamline=of_lines,
            data_per_point={name: np.split(each, cuts) for name, each in of_points.items()},
            affine_to_rasmm=matrix,
        )

    def to_pandas(self, axes: Sequence[str] | None = None) -> Any:
        """Return a data frame with a row for each vertex: ``object_id`` of its line, coordinates, attributes.

        Names of attributes as in :meth:`Points.to_pandas`.
        """
        pandas = _package("pandas", "Polylines.to_pandas")
        owner = {"object_id": self.object_ids[row_numbers(np.diff(self.starts))]}
        columns = {**owner, **_coordinates(self.positions, axes, tuple(owner))}
        return pandas.DataFrame(_with_columns(columns, self.attributes, "Polylines.to_pandas"))

    def to_geopandas(self, crs: Any = None) -> Any:
        """Return a ``GeoDataFrame`` with a ``LineString`` and the attributes of each line; ``crs`` (default: own).

        Names of attributes as in :meth:`Points.to_pandas`. Raises :class:`~zardine.errors.DataError` for lines of one
        vertex, which are none there.
        """
        geopandas = _package("geopandas", "Polylines.to_geopandas")
        shapely = _package("shapely.geometry", "Polylines.to_geopandas")
        _check_rank(self.positions, (2, 3), "geopandas")
        short = np.flatnonzero(np.diff(self.starts) == 1)
        if len(short):
            raise DataError(
                f"line {int(self.object_ids[short[0]])} has one vertex: lines of geopandas have two or more"
            )
        shapes = [shapely.LineString(line) for line in self.lines]
        owner = {"object_id": self.object_ids}
        columns = _with_columns(owner, self.object_attributes, "Polylines.to_geopandas", ("geometry",))
        return geopandas.GeoDataFrame(columns, geometry=shapes, crs=_crs(self, crs))

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the lines into ``axes`` of Matplotlib (default: new ones), which are returned."""
        drawing = _axes_for(axes, self.positions)
        for line in self.lines:
            drawing.plot(*line.T[:3], **{"linewidth": 0.5, **options})
        return drawing


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Vertices and edges between them."""

    positions: Array
    """``(N, D)``, in the order that they are stored in."""
    edges: npt.NDArray[np.int64]
    """``(E, 2)``: rows of ``positions``."""
    attributes: Arrays = field(default_factory=dict)
    edge_attributes: Arrays = field(default_factory=dict)
    object_ids: npt.NDArray[np.int64] | None = None
    """``(N,)``: the object of each vertex, -1 for none."""
    rows: npt.NDArray[np.int64] | None = None
    """``(N,)``, in a batch: the number of each vertex in what is read at once."""
    own: int | None = None
    """In a batch: how many of the vertices are its own. Those after them are of other batches, too."""

    __repr__ = _in_words

    def __post_init__(self) -> None:
        _lists_to_arrays(self)

    def __len__(self) -> int:
        return len(self.positions)

    def checked(self) -> Graph:
        """Return the same with arrays of fitting lengths, as they can be stored. Raises :class:`DataError`."""
        positions = checked_positions(self.positions)
        edges = checked_rows(checked_links(self.edges, "edges", 2), len(positions), "edges")
        attributes = _checked(self.attributes, len(positions), "vertices")
        of_edges = _checked(self.edge_attributes, len(edges), "edges")
        return Graph(positions, edges, attributes, of_edges, _checked_owners(self.object_ids, len(positions)))

    def to_pandas(self, axes: Sequence[str] | None = None) -> tuple[Any, Any]:
        """Return two data frames: vertices, as :meth:`Points.to_pandas`, and edges (``source``, ``target``, …).

        Names of attributes as there.
        """
        pandas = _package("pandas", "Graph.to_pandas")
        ends = {"source": self.edges[:, 0], "target": self.edges[:, 1]}
        vertices = Points(self.positions, self.attributes, self.object_ids).to_pandas(axes)
        return vertices, pandas.DataFrame(_with_columns(ends, self.edge_attributes, "Graph.to_pandas"))

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the edges into ``axes`` of Matplotlib (default: new ones), which are returned."""
        return _plot_links(axes, self.positions, self.edges, options)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """Trees: each vertex but the roots has a parent."""

    positions: Array
    """``(N, D)``."""
    parents: npt.NDArray[np.int64]
    """``(N,)``: the row of each vertex's parent; -1 for roots, and where the parent was not read."""
    attributes: Arrays = field(default_factory=dict)
    object_ids: npt.NDArray[np.int64] | None = None
    rows: npt.NDArray[np.int64] | None = None
    """``(N,)``, in a batch: the number of each vertex in what is read at once."""
    own: int | None = None
    """In a batch: how many of the vertices are its own. Those after them are of other batches, too."""

    __repr__ = _in_words

    def __post_init__(self) -> None:
        _lists_to_arrays(self)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """``(E, 2)``: child and parent."""
        child = np.flatnonzero(self.parents >= 0)
        return np.stack([child, self.parents[child]], axis=1)

    def checked(self) -> Skeleton:
        """Return the same with arrays of fitting lengths, as they can be stored. Raises :class:`DataError`."""
        positions = checked_positions(self.positions)
        parents = checked_parents(self.parents, len(positions))
        attributes = _checked(self.attributes, len(positions), "vertices")
        return Skeleton(positions, parents, attributes, _checked_owners(self.object_ids, len(positions)))

    @classmethod
    def from_swc(cls, source: str | Path) -> Skeleton:
        """Return the trees of an SWC file; ``type`` and ``radius`` become attributes.

        Raises :class:`~zardine.errors.DataError` for a file that is none; warns of what is left out.
        """
        return cls(*read_swc(Path(source)))

    def to_swc(self, target: str | Path) -> None:
        """Write an SWC file; of attributes ``type`` and ``radius`` are kept (default: 0 and 1).

        Others, and ids of objects, are named by a :class:`~zardine.errors.ZarrUserWarning`. Raises
        :class:`~zardine.errors.DataError` for other than three axes, and for types and radii that are no numbers.
        """
        _check_rank(self.positions, (3,), "SWC files")
        checked = self.checked()
        check_kept(checked.attributes, target)
        warn_left_out(checked.attributes, target)
        warn_objects(checked.object_ids, target)
        write_swc(Path(target), checked.positions, checked.parents, checked.attributes)

    def to_pandas(self) -> Any:
        """Return a data frame as an SWC file has it: ``node_id`` (from 1), ``parent_id`` (-1: none), ….

        Attributes are further columns; ``radius`` is 1 and ``type`` 0 where there are none. Names of attributes as in
        :meth:`Points.to_pandas`.
        """
        return self._table("Skeleton.to_pandas")

    def _table(self, what: str, taken: tuple[str, ...] = ()) -> Any:
        pandas = _package("pandas", what)
        count = len(self)
        above = np.where(self.parents >= 0, self.parents + 1, -1)
        columns: dict[str, Any] = {"node_id": np.arange(1, count + 1), "parent_id": above}
        columns |= {"radius": np.ones(count), "type": np.zeros(count, np.int32)}
        if self.object_ids is not None:
            columns["object_id"] = self.object_ids
        columns |= _coordinates(self.positions, None)
        own = {name: self.attributes[name] for name in ("radius", "type") if _is_single(self.attributes.get(name))}
        others = {name: each for name, each in self.attributes.items() if name not in own}
        return pandas.DataFrame(_with_columns({**columns, **own}, others, what, taken))

    def to_navis(self, **options: Any) -> Any:
        """Return a ``navis.TreeNeuron``, or where there are several objects a ``navis.NeuronList``, with their ids.

        ``options`` such as ``units`` go to the neurons. The package navis is not among those that zardine installs.
        """
        try:
            navis: Any = import_module("navis")
        except ImportError as error:
            raise ImportError(f"Skeleton.to_navis needs the package navis: pip install navis ({error})") from error
        _check_rank(self.positions, (3,), "navis")
        table = self._table("Skeleton.to_navis", ("label",)).rename(columns={"type": "label"})
        if self.object_ids is None:
            return navis.TreeNeuron(table, **options)
        parts = [(int(id_), part.drop(columns="object_id")) for id_, part in table.groupby("object_id", sort=True)]
        found = [navis.TreeNeuron(part, id=id_, **options) for id_, part in parts]
        return found[0] if len(found) == 1 else navis.NeuronList(found)

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the trees into ``axes`` of Matplotlib (default: new ones), which are returned."""
        return _plot_links(axes, self.positions, self.edges, options)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Vertices and faces."""

    positions: Array
    """``(N, D)``."""
    faces: npt.NDArray[np.int64]
    """``(F, corners)``: rows of ``positions``, in the order that tells the outside."""
    attributes: Arrays = field(default_factory=dict)
    face_attributes: Arrays = field(default_factory=dict)
    object_ids: npt.NDArray[np.int64] | None = None
    rows: npt.NDArray[np.int64] | None = None
    """``(N,)``, in a batch: the number of each vertex in what is read at once."""
    own: int | None = None
    """In a batch: how many of the vertices are its own. Those after them are of other batches, too."""

    __repr__ = _in_words

    def __post_init__(self) -> None:
        _lists_to_arrays(self)

    def __len__(self) -> int:
        return len(self.positions)

    def checked(self) -> Mesh:
        """Return the same with arrays of fitting lengths, as they can be stored. Raises :class:`DataError`."""
        positions = checked_positions(self.positions)
        faces = checked_rows(checked_links(self.faces, "faces", 3), len(positions), "faces")
        attributes = _checked(self.attributes, len(positions), "vertices")
        of_faces = _checked(self.face_attributes, len(faces), "faces")
        return Mesh(positions, faces, attributes, of_faces, _checked_owners(self.object_ids, len(positions)))

    @classmethod
    def from_trimesh(cls, mesh: Any) -> Mesh:
        """Return the vertices, faces and attributes of a ``trimesh.Trimesh``; of a ``Scene``, those of all its meshes.

        Raises :class:`~zardine.errors.DataError` for anything else.
        """
        given, mesh = mesh, mesh.to_mesh() if hasattr(mesh, "to_mesh") else mesh
        if not (hasattr(mesh, "vertex_attributes") and hasattr(mesh, "faces")):
            raise DataError(f"a mesh of trimesh is needed, not {type(given).__name__}")
        attributes = {name: np.asarray(each) for name, each in mesh.vertex_attributes.items()}
        of_faces = {name: np.asarray(each) for name, each in mesh.face_attributes.items()}
        return cls(np.asarray(mesh.vertices), np.asarray(mesh.faces, np.int64), attributes, of_faces)

    def to_trimesh(self) -> Any:
        """Return a ``trimesh.Trimesh`` with the same vertices, in the same order, and attributes.

        Faces of more corners are cut into triangles. A :class:`~zardine.errors.ZarrUserWarning` tells of objects,
        which it has none of. Raises :class:`DataError` for other than three axes.
        """
        trimesh = _package("trimesh", "Mesh.to_trimesh")
        _check_rank(self.positions, (3,), "trimesh")
        warn_objects(self.object_ids, "Mesh.to_trimesh")
        faces, face = triangles(self.faces, self.positions)
        of_faces = {name: np.asarray(each)[face] for name, each in self.face_attributes.items()}
        attributes = {name: np.asarray(each) for name, each in self.attributes.items()}
        return trimesh.Trimesh(
            self.positions, faces, process=False, vertex_attributes=attributes, face_attributes=of_faces
        )

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the outlines of the faces into ``axes`` of Matplotlib (default: new ones), which are returned."""
        corners = self.faces.shape[1]
        sides = [self.faces[:, [place, (place + 1) % corners]] for place in range(corners)]
        return _plot_links(axes, self.positions, np.unique(np.sort(np.concatenate(sides), axis=1), axis=0), options)


Geometry: TypeAlias = Points | Polylines | Graph | Skeleton | Mesh
"""What a store can hold, read or to be written."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class ParametricObject:
    """A named geometry that numbers describe."""

    type: str
    coefficients: npt.NDArray[np.float64]
    name: str = ""


def _checked(attributes: Arrays, rows: int, what: str) -> dict[str, Array]:
    return {name: column.decoded() for name, column in columns_of(attributes, rows, what).items()}


def _checked_owners(ids: Any, rows: int) -> npt.NDArray[np.int64] | None:
    """The object of each vertex; ``None`` where all are of none."""
    if ids is None:
        return None
    found = checked_ids(ids, rows, "object_ids")
    none = found == -1
    if not none.any():
        return found
    if not none.all():
        row = int(np.flatnonzero(none)[0])
        raise DataError(f"object_ids: row {row} is part of no object (-1), and others are: give all vertices one")
    return None


def _check_rank(positions: Array, ranks: tuple[int, ...], what: str) -> None:
    if positions.shape[1] not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise DataError(f"there are {positions.shape[1]} axes; positions of {what} have {wanted}")


def _coordinates(positions: Array, axes: Sequence[str] | None, taken: Sequence[str] = ()) -> dict[str, Any]:
    """The columns of coordinates. Raises :class:`DataError` for names that are not one for each, or are ``taken``."""
    names = list(_AXES[: positions.shape[1]] if axes is None else axes)
    if len(names) != positions.shape[1] or len({*names, *taken}) != len(names) + len(taken):
        raise DataError(f"axes= are names of {positions.shape[1]} axes, each another one, not {names}")
    return dict(zip(names, positions.T, strict=True))


def _with_columns(
    columns: Mapping[str, Any], attributes: Arrays, what: str, taken: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The columns of a table, then attributes as columns of one value for each row, text as objects.

    Attributes that are called as columns, or as one that is ``taken``, get other names; warns of that.
    """
    widths = {name: None if each.ndim == 1 else int(each.shape[1]) for name, each in attributes.items()}
    found = dict(columns)
    for told, (name, channel) in column_names(widths, (*columns, *taken), what).items():
        values = attributes[name]
        plain = values.astype(object) if values.dtype.kind == "T" else values
        found[told] = plain if channel is None else plain[:, channel]
    return found


def _is_single(values: Array | None) -> bool:
    return values is not None and values.ndim == 1


def _plain_column(values: Any) -> Array:
    """A column of a data frame as an array; what is missing in text as ``None``."""
    array = values.to_numpy()
    if array.dtype.kind in "OUT" or str(values.dtype) in ("string", "str"):
        return np.array([None if each is None or each != each else each for each in values.tolist()], object)
    return np.asarray(array)


def _ids_in(column: Any) -> npt.NDArray[np.int64]:
    """A column of ids. Raises :class:`DataError` for what are no integers of 64 bits."""
    values = column.to_numpy()
    try:
        with np.errstate(invalid="ignore"):
            ids: npt.NDArray[np.int64] = values.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        ids = np.zeros(0, np.int64)
    if not np.array_equal(ids, values):
        raise DataError("the column 'object_id' holds ids, which are integers: give it another name if it is none")
    return ids


def _flat(values: Array) -> Array:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _in_rows(values: Array) -> Array:
    """Values as rows of one and more, of none as well."""
    return values if values.ndim > 1 else values[:, np.newaxis]


def _package(name: str, what: str) -> Any:
    with needing(what):
        return import_module(name)


def _crs(value: Points | Polylines, crs: Any) -> Any:
    """What geopandas takes for the reference system of a value, or for one that a user names, perhaps as stores do."""
    given = value.crs if crs is None else crs
    return known_crs(given, f"{type(value).__name__}.to_geopandas") if isinstance(given, Mapping) else given


def _axes_for(axes: Any, positions: Array) -> Any:
    if positions.shape[1] == 1:
        raise DataError("there is 1 axis, and plots have 2 or 3: give positions another column, say of zeros")
    if axes is not None:
        return axes
    return (
        _package("matplotlib.pyplot", "plot").figure().add_subplot(projection="3d" if positions.shape[1] >= 3 else None)
    )


def _plot_links(axes: Any, positions: Array, links: npt.NDArray[np.int64], options: Mapping[str, Any]) -> Any:
    drawing = _axes_for(axes, positions)
    gaps = np.full((len(links), 1, positions.shape[1]), np.nan)  # one line with gaps is drawn at once
    line = np.concatenate([positions[links], gaps], axis=1).reshape(-1, positions.shape[1])
    drawing.plot(*line.T[:3], **{"linewidth": 0.5, "color": "C0", **options})
    return drawing
