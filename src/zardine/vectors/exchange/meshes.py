"""PLY, OBJ and STL, files of meshes or of points: PLY and STL through trimesh."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.parts import ENDS, OWNER
from zardine.vectors.content.polygons import triangles
from zardine.vectors.exchange.export_folder import PARTS_DOCUMENT, check_complete
from zardine.vectors.exchange.file_lists import FileList, together
from zardine.vectors.exchange.file_parts import LENGTHS, Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.losses import bounds_of_nothing, reading, storable
from zardine.vectors.exchange.obj import read_obj
from zardine.vectors.mesh import write_spooled_mesh
from zardine.vectors.outside import needing, tell_of_comments, warn, warn_names
from zardine.vectors.points import write_spooled_points

Columns = dict[str, npt.NDArray[Any]]

_VERTEX = 32
"""Bytes of a vertex, with its part of the faces, in a file, about."""
_COPIES = 60
"""Bytes of words and arrays for each byte of a file, at most, about."""
_FIXED = 64 * 2**20
"""Bytes that trimesh takes, about."""


COLOURS = ("red", "green", "blue", "alpha")


PLY = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    object_attributes="-/told",
    ids="-/told: of a folder of files kept as their names",
    groups="-/told",
    crs="-/told",
    bounds="-/told",
    metadata="told/told: other elements",
    precision="kept/told: in float32",
    integers="-/told",
    floats="kept/kept",
    booleans="-/told: as 0 and 1",
    text="-/told",
    several_values="-/told",
    missing_text="-/told",
    vertex_attributes="kept/kept",
    link_attributes="kept/kept: of faces",
    normals="kept/told: as nx, ny, nz; an attribute of three values is told",
    uv="kept/told: as the file has them; an attribute of two values is told",
    colours="kept/kept",
    comments="told/-",
)
OBJ = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    object_attributes="-/told",
    ids="-/told: of a folder of files kept as their names",
    groups="-/told",
    crs="-/told",
    bounds="-/told",
    metadata="told/told: lines, points, groups, materials",
    precision="kept/kept",
    integers="-/told",
    floats="-/told",
    booleans="-/told",
    text="-/told",
    several_values="-/told",
    missing_text="-/told",
    vertex_attributes="-/told",
    link_attributes="-/told",
    normals="kept/told: as the attribute 'normal' of vertices, or of faces where corners differ",
    uv="kept/told: as the attribute 'uv' of vertices, or of faces where corners differ",
    colours="kept/kept",
    comments="told/-",
)
STL = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    object_attributes="-/told",
    ids="-/told: of a folder of files kept as their names",
    groups="-/told",
    crs="-/told",
    bounds="-/told",
    metadata="-/told",
    precision="-/told: in float32",
    integers="-/told",
    floats="-/told",
    booleans="-/told",
    text="-/told",
    several_values="-/told",
    missing_text="-/told",
    vertex_attributes="-/told",
    link_attributes="kept/told: of faces, as 'stl' (two bytes beside each)",
    normals="-/told: they follow from the corners",
    uv="-/told",
    colours="-/told",
    comments="told/-: the text of the header",
)


class MeshParts:
    """A file of a mesh, or a folder of them, as :class:`~zardine.vectors.exchange.file_parts.FileParts`: whole files.

    Properties of vertices and faces, colours and texture coordinates become attributes. A PLY file of vertices without
    faces becomes points. Each file of a folder is an object with the attribute ``name``, and the id that it is called
    by where all are called by numbers. Raises :class:`DataError` for a file that is cut off, or has no vertices.
    """

    outline: None = None

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source = source
        check_complete(source)
        self._list = FileList.of(source, self.endings, at_once * _VERTEX)
        self.count = self._list.count

    endings: tuple[str, ...] = (".ply", ".obj", ".stl")
    """Of files of a folder."""

    @property
    def vertices(self) -> int:
        """How many there are, about."""
        return self._list.nbytes // _VERTEX

    @property
    def memory(self) -> int:
        """Bytes that it takes to read a part, about: words of text, and what trimesh makes of them."""
        return self._list.largest * _COPIES + _FIXED

    def read(self, number: int) -> Piece:
        """Return the meshes of the files of a part."""
        files = self._list.part(number)
        comments = list[str]()
        found = [_mesh(file, comments) for file in files]
        tell_of_comments(self._source, comments)
        gc.collect(1)  # what trimesh makes refers to itself; who has many other objects would keep it for long
        if self._list.names is not None:
            found = [_of_folder(piece, file) for piece, file in zip(found, files, strict=True)]
        piece, first = together(found, files), self._list.cuts[number]
        if not piece.links:
            return piece
        owners = np.repeat(self._list.ids[first : first + len(files)], piece.of_lines[LENGTHS])
        return replace(piece, values={OWNER: owners, **piece.values})

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all meshes, or points."""
        source = self._source
        self._list.warn_of_others(source, (PARTS_DOCUMENT,))
        names = {name: name for name in whole.columns if name != OWNER}
        if not whole.count:
            options = {**options, **bounds_of_nothing(source, options)}
        if not whole.link_columns:
            whole.rename(storable(names, source))
            write_spooled_points(path, whole, options, step, origin)
            return
        whole.rename({OWNER: OWNER, **storable(names, source)})
        whole.rename_links(storable({name: name for name in whole.link_columns if name != ENDS}, source))
        given = {} if self._list.names is None else {"object_attributes": {"name": list(self._list.names)}}
        write_spooled_mesh(path, whole, whole, {**given, **options}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


class PlyParts(MeshParts):
    """PLY files."""

    endings = (".ply",)


class ObjParts(MeshParts):
    """OBJ files."""

    endings = (".obj",)


class StlParts(MeshParts):
    """STL files."""

    endings = (".stl",)


def _of_folder(piece: Piece, file: Path) -> Piece:
    """A mesh whose faces are triangles, as those of other files are."""
    if not piece.links:
        raise DataError(f"{file} holds points, no faces: a folder is read as meshes; import such files by themselves")
    faces, origin = triangles(piece.links[ENDS], piece.positions)
    if faces.shape != piece.links[ENDS].shape:
        warn(file, f"faces of {piece.links[ENDS].shape[1]} corners are stored as triangles, as those of a folder are")
    return replace(piece, links={ENDS: faces, **{n: v[origin] for n, v in piece.links.items() if n != ENDS}})


def _mesh(source: Path, comments: list[str]) -> Piece:
    """What is in a file, but for its comments, which are added to ``comments``."""
    suffix = source.suffix.lower()
    if suffix == ".obj":
        return read_obj(source, comments)
    declared = _check_ply(source) if suffix == ".ply" else {}
    comments += _comments(source, suffix)
    if declared.get("vertex") == 0 or (suffix == ".stl" and _check_stl(source) == 0):
        links = {ENDS: np.zeros((0, 3), np.int64)} if suffix == ".stl" or "face" in declared else {}
        return Piece(np.zeros((0, 3)), {}, {}, links)
    mesh: Any = _loaded(source)
    vertices, faces = np.asarray(mesh.vertices), np.asarray(getattr(mesh, "faces", ()))
    of_vertices: Columns = {name: np.asarray(each) for name, each in getattr(mesh, "vertex_attributes", {}).items()}
    of_faces: Columns = {name: np.asarray(each) for name, each in getattr(mesh, "face_attributes", {}).items()}
    raw = mesh.metadata.get("_ply_raw")
    if len(vertices) == 0:
        raise DataError(f"{source} holds no vertices")
    if suffix == ".stl" and not of_faces.get("stl", np.zeros(0)).any():
        of_faces.pop("stl", None)  # bytes beside each face that other programs keep colours in
    if raw is not None:
        _check_counts(raw, declared, source)
        vertices = _positions(raw, vertices)
        faces, found, found_faces = _properties(raw, vertices, faces, source)
        of_vertices, of_faces = {**found, **of_vertices}, {**found_faces, **of_faces}
    visual: Any = mesh.visual
    if visual.kind == "vertex" and "red" not in of_vertices:
        of_vertices |= dict(zip(COLOURS, np.asarray(visual.vertex_colors).T, strict=False))
    elif visual.kind == "face" and "red" not in of_faces and len(visual.face_colors) == len(faces):
        of_faces |= dict(zip(COLOURS, np.asarray(visual.face_colors).T, strict=False))
    if not hasattr(mesh, "faces"):
        return Piece(vertices, of_vertices)
    if faces.size == 0:
        faces = np.zeros((0, 3), np.int64)
    _check_faces(faces, len(vertices), source)
    if suffix == ".stl" and not of_vertices:
        vertices, faces = _joined(vertices, faces)
    return Piece(vertices, of_vertices, {}, {ENDS: faces.astype(np.int64), **of_faces})


def _joined(vertices: npt.NDArray[Any], faces: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Vertices without those that are equal to an earlier one, and faces of these: triangles of STL share none."""
    order = np.lexsort(vertices.T)
    ascending = vertices[order]
    is_other = np.ones(len(order), np.bool_)
    is_other[1:] = (ascending[1:] != ascending[:-1]).any(axis=1)
    first = np.empty(len(order), np.int64)
    first[order] = order[is_other][np.cumsum(is_other) - 1]  # the sort is stable: the first of those that are equal
    kept, numbers = np.unique(first, return_inverse=True)
    return vertices[kept], numbers[faces]


def _check_faces(faces: npt.NDArray[Any], count: int, source: Path, numbers: npt.NDArray[Any] | None = None) -> None:
    """Raise :class:`DataError` for faces between vertices that are not there; ``numbers`` are those of the faces."""
    wrong = np.flatnonzero(((faces < 0) | (faces >= count)).any(axis=1)) if len(faces) else faces
    if len(wrong):
        row = int(wrong[0])
        face = row if numbers is None else numbers[row]
        raise DataError(f"{source}: face {face} names vertices {faces[row].tolist()}; there are {count}")


def _loaded(source: Path) -> Any:
    """What trimesh reads: a mesh, or points.

    Raises :class:`DataError` for a file that is neither, and for one without vertices.
    """
    with needing(source):
        import trimesh
    with reading(source):
        mesh: Any = trimesh.load(str(source), process=False)
        if isinstance(mesh, trimesh.Scene):
            if not mesh.geometry:
                raise DataError(f"{source} holds no vertices")
            mesh = mesh.to_mesh()
    if not isinstance(mesh, (trimesh.Trimesh, trimesh.PointCloud)):
        raise DataError(
            f"{source} holds neither faces nor points alone, but {type(mesh).__name__}: write lines with write_graph"
        )
    return mesh


def _properties(raw: Any, vertices: Any, faces: Any, source: Path) -> tuple[Any, Columns, Columns]:
    """The faces of a PLY file with all their corners, and its properties of vertices and of faces."""
    of_vertices: Columns = {}
    of_faces: Columns = {}
    for element, columns, rows in (("vertex", of_vertices, len(vertices)), ("face", of_faces, None)):
        data = raw.get(element, {}).get("data")
        names = data.dtype.names or () if isinstance(data, np.ndarray) else list(data or ())
        for name in names:
            values = np.asarray(data[name])
            if values.dtype.names:  # a list: how many, and what
                values = values[values.dtype.names[-1]]
            values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
            if element == "face" and name in ("vertex_indices", "vertex_index"):
                columns[""] = values
            elif name not in ("x", "y", "z") or element == "face":
                columns[name] = values
        wrong = [name for name, each in columns.items() if name and (each.dtype == object or _rows(each) != rows)]
        if element == "face":
            corners = columns.pop("", np.zeros(0))
            whole = corners.ndim == 2 and corners.dtype.kind in "iu" and 3 <= corners.shape[1] <= 12
            wrong = [name for name, each in columns.items() if each.dtype == object or len(each) != len(corners)]
            if whole:
                faces = corners.astype(np.int64)
            elif len(corners):
                warn(source, "faces of different numbers of corners are stored as triangles")
                faces, origin = _as_triangles(corners, _positions(raw, vertices), source)
                columns.update({name: each[origin] for name, each in columns.items() if name not in wrong})
        warn_names(wrong, source, "they do not have a value for each")
        for name in wrong:
            columns.pop(name, None)
    others = [name for name in raw if name not in ("vertex", "face")]
    if others:
        warn(source, f"elements of the file are left out: {', '.join(others)}")
    return faces, of_vertices, of_faces


def _as_triangles(corners: Any, vertices: npt.NDArray[Any], source: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Faces of different numbers of corners cut into triangles, and which face each is of."""
    counts = np.array([len(each) for each in corners])
    if counts.min() < 3:
        face = int(counts.argmin())
        raise DataError(f"{source}: face {face} has {counts[face]} corners: a face has three corners or more")
    found, origins = [], []
    for count in np.unique(counts):
        numbers = np.flatnonzero(counts == count)
        faces = np.stack([corners[number] for number in numbers]).astype(np.int64)
        _check_faces(faces, len(vertices), source, numbers)
        cut, row = triangles(faces, vertices)
        found.append(cut)
        origins.append(numbers[row])
    origin = np.concatenate(origins)
    order = np.argsort(origin, kind="stable")
    return np.concatenate(found)[order], origin[order]


def _positions(raw: Any, vertices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The vertices as they are in a PLY file: where faces have texture coordinates, trimesh makes more of them."""
    data = raw.get("vertex", {}).get("data")
    names = data.dtype.names or () if isinstance(data, np.ndarray) else tuple(data or ())
    if not {"x", "y", "z"} <= set(names):
        return vertices
    return np.stack([np.asarray(data[axis], np.float64).reshape(-1) for axis in "xyz"], axis=1)


def _rows(values: npt.NDArray[Any]) -> int:
    return len(values) if values.ndim else 0


def _check_ply(source: Path) -> dict[str, int]:
    """How many of each element the header of a PLY file declares.

    Raises :class:`DataError` where a file of text has not all the lines, and values, that its header declares. (Of a
    binary file trimesh compares the length.)
    """
    head, found, body = source.read_bytes().partition(b"end_header")
    words = [line.split() for line in head.decode("utf-8", "replace").splitlines()]
    declared: dict[str, int] = {}
    lists: dict[str, list[bool]] = {}
    for line in words:
        if line[:1] == ["element"] and len(line) == 3 and line[2].isdigit():
            declared[line[1]], lists[line[1]] = int(line[2]), []
        elif line[:1] == ["property"] and declared:
            lists[list(lists)[-1]].append(line[1:2] == ["list"])
    if not found or not any(line[:2] == ["format", "ascii"] for line in words):
        return declared
    lines = [line.split() for line in body.decode("utf-8", "replace").partition("\n")[2].splitlines() if line.strip()]
    for name, count in declared.items():
        rows, lines = lines[:count], lines[count:]
        if len(rows) < count:
            raise DataError(f"{source} is cut off: its header declares {count} of {name!r}, {len(rows)} are there")
        short = next((row for row, values in enumerate(rows) if not _is_whole(values, lists[name])), None)
        if short is not None:
            raise DataError(
                f"{source} is cut off or damaged: its header declares {count} of {name!r}, and the values of "
                f"number {short + 1} are not all there: {' '.join(rows[short])!r}"
            )
    return declared


def _comments(source: Path, suffix: str) -> list[str]:
    """The comments in the header of a PLY file, or the text of that of an STL file."""
    with source.open("rb") as file:
        data = file.read(2**16)
    if suffix == ".ply":
        lines = data.partition(b"end_header")[0].decode("utf-8", "replace").splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(("comment ", "obj_info "))]
    if data.lstrip()[:5].lower() == b"solid" and b"\0" not in data[:512]:
        heads = [line.strip()[5:] for line in source.read_bytes().splitlines() if line.lstrip()[:5].lower() == b"solid"]
    else:
        heads = [data[:80].removeprefix(b"solid")]
    return [_text(head).strip("\0 \r\n") for head in heads]


def _text(data: bytes) -> str:
    """Text of a file that does not say how it is encoded."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _is_whole(values: list[str], lists: list[bool]) -> bool:
    """Whether a line of a PLY file has a value for each property, and as many as they say for those that are lists."""
    needed = len(lists)
    if not any(lists):
        return len(values) >= needed
    place = 0
    for is_list in lists:
        if place >= len(values):
            return False
        if is_list and not values[place].isdigit():
            return True  # not a number of values: trimesh says what is wrong
        place += 1 + (int(values[place]) if is_list else 0)
    return place <= len(values)


def _check_counts(raw: Any, declared: Mapping[str, int], source: Path) -> None:
    """Raise :class:`DataError` where trimesh has read less of a PLY file than the header of it declares."""
    for name, count in declared.items():
        data = raw.get(name, {}).get("data")
        if isinstance(data, dict):
            data = next(iter(data.values()), None)
        found = 0 if data is None else _rows(np.asarray(data))
        if found < count:
            raise DataError(f"{source} is cut off: its header declares {count} of {name!r}, {found} are there")


def _check_stl(source: Path) -> int:
    """How many faces an STL file has.

    Raise :class:`DataError` for a file that is cut off: of another length than it says, or without its end.
    """
    data = source.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else 0
    if len(data) >= 84 and len(data) == 84 + 50 * count:
        return count
    if data.lstrip()[:5].lower() != b"solid" or b"\0" in data[:512]:
        wanted = f"{84 + 50 * count} for the {count} faces of its header" if len(data) >= 84 else "84 or more"
        raise DataError(f"{source} is cut off, or no STL file: it has {len(data)} bytes, not {wanted}")
    counts = Counter(line.split(None, 1)[0].lower() for line in data.splitlines() if line.strip())
    ended, begun = counts[b"endsolid"], counts[b"solid"]
    if ended < max(1, begun) or counts[b"vertex"] != 3 * counts[b"facet"]:
        raise DataError(
            f"{source} is cut off: it has {begun} 'solid' and {ended} 'endsolid', {counts[b'facet']} facets and "
            f"{counts[b'vertex']} of their {3 * counts[b'facet']} vertices"
        )
    return counts[b"facet"]
