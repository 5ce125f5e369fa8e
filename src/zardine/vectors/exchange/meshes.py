"""PLY, OBJ and STL, files of meshes or of points: STL through trimesh."""

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
from zardine.vectors.exchange.ply import check_faces, read_ply, text_of
from zardine.vectors.mesh import write_spooled_mesh
from zardine.vectors.outside import needing, tell_of_comments, warn
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
    if suffix != ".stl":
        return (read_obj if suffix == ".obj" else read_ply)(source, comments)
    count = _check_stl(source)
    comments += _comments(source)
    if not count:
        return Piece(np.zeros((0, 3)), {}, {}, {ENDS: np.zeros((0, 3), np.int64)})
    mesh: Any = _loaded(source)
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    of_faces: Columns = {name: np.asarray(each) for name, each in mesh.face_attributes.items()}
    if not of_faces.get("stl", np.zeros(0)).any():
        of_faces.pop("stl", None)  # bytes beside each face that other programs keep colours in
    check_faces(faces, len(vertices), source)
    vertices, faces = _joined(vertices, faces)
    return Piece(vertices, {}, {}, {ENDS: faces.astype(np.int64), **of_faces})


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


def _loaded(source: Path) -> Any:
    """Read all solids of a file with trimesh, as one mesh."""
    with needing(source):
        import trimesh
    with reading(source):
        mesh: Any = trimesh.load(str(source), process=False)
        return mesh.to_mesh() if isinstance(mesh, trimesh.Scene) else mesh


def _comments(source: Path) -> list[str]:
    """The text of the header of an STL file, or the names of its solids."""
    data = source.read_bytes()
    if data.lstrip()[:5].lower() == b"solid" and b"\0" not in data[:512]:
        heads = [line.strip()[5:] for line in data.splitlines() if line.lstrip()[:5].lower() == b"solid"]
    else:
        heads = [data[:80].removeprefix(b"solid")]
    return [text_of(head).strip("\0 \r\n") for head in heads]


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
