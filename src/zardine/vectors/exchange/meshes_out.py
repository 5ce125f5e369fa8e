"""Meshes, and points, as PLY, OBJ and STL files: vertices as they come, then faces, which wait for them in a spool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.polygons import triangles
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.level_parts import (
    LevelParts,
    SeenColumns,
    columns_with_ids,
    numbers_among,
    numbers_of,
    own,
)
from zardine.vectors.exchange.losses import check_rank, check_store, is_rounded, warn_rounded
from zardine.vectors.exchange.meshes import COLOURS
from zardine.vectors.exchange.obj import LEGEND, NO_FACES
from zardine.vectors.exchange.targets import writing
from zardine.vectors.outside import needing, tell_of_booleans, warn, warn_names, warn_objects
from zardine.vectors.reading.kept import kind_of
from zardine.vectors.results import Mesh, Points
from zardine.vectors.storing.spools import Spool
from zardine.vectors.storing.store import VectorStore

_PLY_TYPES: Final = {
    "i1": "char",
    "u1": "uchar",
    "i2": "short",
    "u2": "ushort",
    "i4": "int",
    "u4": "uint",
    "f4": "float",
    "f8": "double",
}
_TAKEN: Final = {
    "vertex": {"x", "y", "z", "vertex"},
    "face": {"x", "y", "z", "vertex", "vertex_indices", "vertex_index", "count", "index", "texcoord"},
}
"""Names of properties that PLY files, or those that trimesh reads, have for something else."""

KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    ".ply": ("vertex_attributes", "link_attributes"),
    ".obj": ("vertex_attributes",),
    ".stl": (),
}
"""Of which attributes there is a place in files that end so."""

Kinds = dict[str, np.dtype[Any]]


class _Look:
    """What is known of the values of a column: whether 32 bits hold integers, and whether all are 255."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        self.like = like
        self.fits = self.is_opaque = True

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            self.fits = self.fits and np.array_equal(values.astype(np.int32), values)
        elif values.dtype == np.uint8:
            self.is_opaque = self.is_opaque and bool((values == 255).all())


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Vertices of a mesh, and triangles that are filed with them."""

    positions: npt.NDArray[Any]
    columns: Mapping[str, npt.NDArray[Any]]
    faces: Ints
    """Numbers of vertices of the whole mesh."""
    of_faces: Mapping[str, npt.NDArray[Any]]


def mesh_out(path: StoreLike, target: Path, level: int, step: Step) -> None:
    """PLY keeps attributes of numbers, OBJ the colours of vertices, STL none. Faces are cut into triangles.

    Points go to PLY files, which have no faces then.
    """
    suffix = target.suffix.lower()
    if suffix == ".ply" and kind_of(VectorStore.open(path).root) == "point_cloud":
        _points_out(path, target, level, step)
        return
    check_store(path, target, level, ("mesh", "point_cloud")[: 1 + (suffix == ".ply")], KEPT[suffix])
    parts = LevelParts[Mesh](path, level, step)
    check_rank(parts.rank, target)
    writer = MeshWriter.seen(parts, target, suffix)
    with writing(target) as place:
        writer.write(place, parts, writer.vertices, writer.faces)


class MeshWriter:
    """Writes meshes that are like one that was gone through."""

    def __init__(
        self,
        suffix: str,
        colours: Sequence[str] = (),
        of_vertices: Kinds | None = None,
        of_faces: Kinds | None = None,
    ) -> None:
        self._suffix, self._colours = suffix, list(colours)
        self._of_vertices, self._of_faces = of_vertices or {}, of_faces or {}
        self.vertices = self.faces = 0
        """How many vertices and triangles were gone through."""

    @classmethod
    def seen(cls, parts: Iterable[Mesh], target: Path, suffix: str, *, of_objects: bool = False) -> MeshWriter:
        """Go through a mesh; warns of what the format does not hold of it, ``of_objects``: but for its objects."""
        of_vertices, of_faces = SeenColumns(_Look), SeenColumns(_Look)
        ids, rounded, corners = np.zeros(0, np.int64), False, 3
        vertices = faces = 0
        for part in parts:
            mine = slice(0, own(part))
            of_vertices.look({name: each[mine] for name, each in part.attributes.items()})
            of_faces.look(part.face_attributes)
            vertices, faces = vertices + mine.stop, faces + _triangles_in(part)
            corners = part.faces.shape[1]
            if part.object_ids is not None:
                ids = np.union1d(ids, part.object_ids[mine])
            rounded = rounded or (suffix != ".obj" and is_rounded(part.positions[mine]))
        if not of_objects:
            warn_objects(ids, target)
        warn_rounded(rounded, target)
        if corners > 3 and faces:
            warn(target, f"faces of {corners} corners are written as triangles")
        found = cls(suffix)
        if suffix == ".obj":
            found = cls(suffix, _colours(of_vertices.found(target), target))
        elif suffix == ".ply":
            kinds = _ply_kinds(of_vertices.found(target), target, "vertex")
            found = cls(suffix, (), kinds, _ply_kinds(of_faces.found(target), target, "face"))
        found.vertices, found.faces = vertices, faces
        return found

    def to_json(self) -> list[Any]:
        """Return as JSON what the format holds."""
        kinds = ({name: each.str for name, each in table.items()} for table in (self._of_vertices, self._of_faces))
        return [self._suffix, self._colours, *kinds]

    @classmethod
    def from_json(cls, told: Sequence[Any]) -> MeshWriter:
        """Return what :meth:`to_json` wrote."""
        suffix, colours, *kinds = told
        return cls(suffix, colours, *({name: np.dtype(each) for name, each in table.items()} for table in kinds))

    def write_one(self, place: Path, mesh: Mesh) -> None:
        """Write a whole mesh to a file."""
        self.write(place, [mesh], len(mesh), _triangles_in(mesh))

    def write(self, place: Path, parts: Iterable[Mesh], vertices: int, faces: int) -> None:
        """Write a mesh, of so many vertices and triangles, to a file."""
        with place.open("wb") as file:
            if self._suffix == ".obj":
                _write_obj(file, parts, vertices, self._colours)
            elif self._suffix == ".ply":
                _write_ply(file, parts, vertices, faces, self._of_vertices, self._of_faces)
            else:
                _write_stl(file, parts, faces)


def _triangles_in(mesh: Mesh) -> int:
    return len(mesh.faces) * (int(mesh.faces.shape[1]) - 2)


def _pieces(parts: Iterable[Mesh]) -> Iterator[_Piece]:
    for part in parts:
        mine = slice(0, own(part))
        faces, origin = triangles(part.faces, part.positions)
        columns = {name: each[mine] for name, each in part.attributes.items()}
        yield _Piece(
            part.positions[mine],
            columns,
            numbers_of(part)[faces],
            {name: each[origin] for name, each in part.face_attributes.items()},
        )


def _points_out(path: StoreLike, target: Path, level: int, step: Step) -> None:
    """Positions keep their type; attributes of numbers are properties, ids of objects ``object_id``."""
    check_store(path, target, level, ("point_cloud",), ("vertex_attributes",))
    parts = LevelParts[Points](path, level, step)
    check_rank(parts.rank, target)
    seen, count, dtype = SeenColumns(_Look), 0, np.dtype(np.float32)
    for part in parts:
        seen.look(part.attributes, part.object_ids)
        count, dtype = count + len(part), part.positions.dtype
    kinds = _ply_kinds(seen.found(target), target, "vertex")
    row = _row(dtype, kinds)
    with writing(target) as place, place.open("wb") as file:
        file.write(_ply_header(_ply_element("vertex", count, row)))
        for part in parts:
            columns = columns_with_ids(part.attributes, part.object_ids)
            file.write(_packed(row, part.positions, {name: columns[name] for name in kinds}))


_COUNT: Final = "how many corners"
"""Of a face: a name that no attribute in a PLY file has, which are one word."""


def _write_ply(file: BinaryIO, parts: Iterable[Mesh], vertices: int, count: int, kinds: Kinds, of_faces: Kinds) -> None:
    """Positions are float32. Triangles come after all vertices."""
    row = _row(np.dtype(np.float32), kinds)
    corners = np.dtype([(_COUNT, "u1"), ("vertex_indices", "<i4", 3), *of_faces.items()])
    words = ["property list uchar int vertex_indices", *_properties(of_faces)]
    faces = Spool()
    file.write(_ply_header(_ply_element("vertex", vertices, row), [f"element face {count}", *words]))
    for piece in _pieces(parts):
        file.write(_packed(row, piece.positions, {name: piece.columns[name] for name in kinds}))
        rows = np.empty(len(piece.faces), corners)
        rows[_COUNT] = 3
        rows["vertex_indices"] = piece.faces
        for name in of_faces:
            rows[name] = piece.of_faces[name]
        faces.put(rows.tobytes())
    faces.copy_to(file)


def _ply_header(*elements: list[str]) -> bytes:
    words = ["ply", "format binary_little_endian 1.0", *(word for each in elements for word in each)]
    return "\n".join([*words, "end_header", ""]).encode("ascii")


def _ply_element(name: str, count: int, row: np.dtype[Any]) -> list[str]:
    return [f"element {name} {count}", *_properties({name: row[name] for name in row.names or ()})]


def _properties(kinds: Mapping[str, np.dtype[Any]]) -> list[str]:
    return [f"property {_PLY_TYPES[kind.str[1:]]} {name}" for name, kind in kinds.items()]


def _row(positions: np.dtype[Any], kinds: Kinds) -> np.dtype[Any]:
    return np.dtype([*((axis, positions.newbyteorder("<")) for axis in "xyz"), *kinds.items()])


def _packed(row: np.dtype[Any], positions: npt.NDArray[Any], columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    rows = np.empty(len(positions), row)
    for name, values in (*zip("xyz", positions.T, strict=True), *columns.items()):
        rows[name] = values
    return rows.tobytes()


def _ply_kinds(looks: Mapping[str, _Look], target: Path, element: str) -> Kinds:
    """The types that attributes have in PLY files, of vertices or of faces as ``element`` says; warns of others."""
    found: Kinds = {}
    for name, look in numbers_among(looks, target, channels=False).items():
        kind = look.like.dtype
        if any(each.isspace() for each in name) or not name.isascii() or name in _TAKEN[element]:
            warn_names([name], target, "names are one word of ASCII, and not those of coordinates and corners")
        elif not look.fits:
            warn_names([name], target, "integers have up to 32 bits")
        elif kind.kind == "b":
            found[name] = np.dtype("u1")
        elif kind.kind == "f" and kind.itemsize == 2:
            found[name] = np.dtype("<f4")
        elif kind.kind in "iu" and kind.itemsize == 8:
            found[name] = np.dtype("<i4")
        else:
            found[name] = kind.newbyteorder("<")
    tell_of_booleans({name: looks[name].like for name in found}, target)
    return found


def _colours(looks: Mapping[str, _Look], target: Path) -> list[str]:
    """The names of red, green and blue of vertices, if attributes are these; warns of all others."""
    names = [name for name in COLOURS if name in looks]
    likes = [looks[name].like for name in names]
    there = names[:3] == list(COLOURS[:3]) and all(each.dtype == np.uint8 and each.ndim == 1 for each in likes)
    if not there:
        names = []
    elif len(names) > 3 and not looks[names[3]].is_opaque:
        warn_names(["alpha"], target, "colours are red, green and blue")
    warn_names((name for name in looks if name not in names), target, "the format holds colours")
    return names[:3]


def _write_obj(file: BinaryIO, parts: Iterable[Mesh], vertices: int, colours: list[str]) -> None:
    """Write positions with all digits that they need, so that they come back equal, and colours from 0 to 1."""
    form = "v %.17g %.17g %.17g" + (" %.8f %.8f %.8f" if colours else "")
    file.write(f"{LEGEND}\n{'' if vertices else NO_FACES + chr(10)}".encode())
    faces = Spool()
    for piece in _pieces(parts):
        table = np.asarray(piece.positions, np.float64)
        if colours:
            shades = np.stack([piece.columns[name] for name in colours], axis=1)
            table = np.concatenate([table, shades / 255], axis=1)
        np.savetxt(file, table, fmt=form)
        text = BytesIO()
        np.savetxt(text, piece.faces + 1, fmt="f %d %d %d")
        faces.put(text.getvalue())
    faces.copy_to(file)


def _write_stl(file: BinaryIO, parts: Iterable[Mesh], count: int) -> None:
    """Each triangle has its corners, so that it is written with the vertices of its part."""
    with needing(file.name):
        trimesh: Any = import_module("trimesh")
    row = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    file.write(bytes(80) + count.to_bytes(4, "little"))
    for part in parts:
        corners = part.positions.astype(np.float64)[triangles(part.faces, part.positions)[0]]
        rows = np.zeros(len(corners), row)
        if len(rows):
            normals, valid = trimesh.triangles.normals(corners)
            rows["normal"][valid], rows["corners"] = normals, corners
        file.write(rows.tobytes())


__all__ = ["KEPT", "MeshWriter", "mesh_out"]
