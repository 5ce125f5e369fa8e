"""PLY, OBJ and STL, files of meshes, through trimesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.losses import (
    check_space,
    check_store,
    numbers,
    reading,
    storable,
    warn,
    warn_names,
    warn_objects,
    warn_rounded,
)
from zardine.vectors.graphs import read_mesh, write_mesh

Columns = dict[str, npt.NDArray[Any]]

_COLOURS = ("red", "green", "blue", "alpha")
_OBJ = {"vn": "normals", "l": "lines", "p": "points", "g": "names of groups", "o": "names of objects"}
_OBJ |= {"usemtl": "materials", "curv": "curves", "surf": "surfaces"}


def mesh_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Properties of vertices and faces, colours and texture coordinates become attributes."""
    import trimesh

    with reading(source):
        mesh = trimesh.load(str(source), process=False)
        if isinstance(mesh, trimesh.Scene):
            mesh = mesh.to_mesh()
    if not isinstance(mesh, trimesh.Trimesh):
        raise DataError(f"{source} holds no faces")
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    of_vertices: Columns = {name: np.asarray(each) for name, each in mesh.vertex_attributes.items()}
    of_faces: Columns = {name: np.asarray(each) for name, each in mesh.face_attributes.items()}
    raw = mesh.metadata.get("_ply_raw")
    if raw is not None:
        faces, found, found_faces = _properties(raw, vertices, faces, source)
        of_vertices, of_faces = {**found, **of_vertices}, {**found_faces, **of_faces}
    visual: Any = mesh.visual
    if visual.kind == "vertex" and "red" not in of_vertices:
        of_vertices |= dict(zip(_COLOURS, np.asarray(visual.vertex_colors).T, strict=False))
    elif visual.kind == "face" and "red" not in of_faces and len(visual.face_colors) == len(faces):
        of_faces |= dict(zip(_COLOURS, np.asarray(visual.face_colors).T, strict=False))
    elif visual.kind == "texture" and getattr(visual, "uv", None) is not None:
        of_vertices["uv"] = np.asarray(visual.uv)
    if source.suffix.lower() == ".obj":
        _warn_of_obj(source)
    if faces.size == 0:
        faces = np.zeros((0, 3), np.int64)
    given = {"vertex_attributes": storable(of_vertices, source), "face_attributes": storable(of_faces, source)}
    write_mesh(path, vertices, faces, **{**given, **options})


def mesh_out(path: StoreLike, target: Path, level: int) -> None:
    """PLY keeps attributes of numbers, OBJ the colours of vertices, STL none. Faces are cut into triangles."""
    import trimesh

    suffix = target.suffix.lower()
    kept = {".ply": ("vertex_attributes", "link_attributes"), ".obj": ("vertex_attributes",)}.get(suffix, ())
    check_store(path, target, level, ("mesh",), kept)
    found = read_mesh(path, level=level)
    check_space(found.positions, target)
    warn_objects(found.object_ids, target)
    if suffix != ".obj":
        warn_rounded(found.positions, target)
    faces, origin = _triangles(found.faces)
    if found.faces.shape[1] > 3 and len(faces):
        warn(target, f"faces of {found.faces.shape[1]} corners are written as triangles")
    options: dict[str, Any] = {}
    more: dict[str, Any] = {}
    if suffix == ".ply":
        options["vertex_attributes"] = _ply_columns(found.attributes, target)
        of_faces = _ply_columns(found.face_attributes, target)
        options["face_attributes"] = {name: values[origin] for name, values in of_faces.items()}
    elif suffix == ".obj":
        names = [name for name in _COLOURS if name in found.attributes]
        columns = [found.attributes[name] for name in names]
        if names[:3] == list(_COLOURS[:3]) and all(each.dtype == np.uint8 and each.ndim == 1 for each in columns):
            options["vertex_colors"] = np.stack(columns, axis=1)
            if len(columns) > 3 and (columns[3] != 255).any():
                warn_names(["alpha"], target, "colours are red, green and blue")
        else:
            names = []
        warn_names((name for name in found.attributes if name not in names), target, "the format holds colours")
        more["digits"] = 17 if found.positions.dtype == np.float64 else 9
    trimesh.Trimesh(found.positions, faces, process=False, **options).export(str(target), **more)


def _triangles(faces: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Fans of triangles, and the face that each is of."""
    corners = faces.shape[1]
    parts = [faces[:, [0, place, place + 1]] for place in range(1, corners - 1)]
    return np.stack(parts, axis=1).reshape(-1, 3), np.repeat(np.arange(len(faces)), corners - 2)


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
            if whole:
                faces = corners.astype(np.int64)
            elif len(corners):
                warn(source, "faces of different numbers of corners are stored as triangles")
            wrong = [name for name, each in columns.items() if each.dtype == object or len(each) != len(faces)]
        warn_names(wrong, source, "they do not have a value for each")
        for name in wrong:
            columns.pop(name, None)
    others = [name for name in raw if name not in ("vertex", "face")]
    if others:
        warn(source, f"elements of the file are left out: {', '.join(others)}")
    return faces, of_vertices, of_faces


def _rows(values: npt.NDArray[Any]) -> int:
    return len(values) if values.ndim else 0


def _ply_columns(columns: Mapping[str, Any], target: Path) -> Columns:
    """Attributes of types that PLY has."""
    found: Columns = {}
    for name, values in numbers(columns, target, channels=False).items():
        if any(each.isspace() for each in name) or not name.isascii() or name in ("x", "y", "z"):
            warn_names([name], target, "names are one word, and not those of coordinates")
        elif values.dtype.kind == "b":
            found[name] = values.astype(np.uint8)
        elif values.dtype.itemsize == 2 and values.dtype.kind == "f":
            found[name] = values.astype(np.float32)
        elif values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            small = values.astype(np.int32)
            if np.array_equal(small, values):
                found[name] = small
            else:
                warn_names([name], target, "integers have up to 32 bits")
        else:
            found[name] = values
    return found


def _warn_of_obj(source: Path) -> None:
    """Say what trimesh leaves out of an OBJ file."""
    text = source.read_text(encoding="utf-8", errors="replace")
    words = [line.split() for line in text.replace("\\\n", " ").splitlines()]
    counts = Counter(line[0] for line in words if line)
    least = {"g": 2, "o": 2}
    lost = [told for key, told in _OBJ.items() if counts[key] >= least.get(key, 1)]
    if lost:
        warn(source, f"left out: {', '.join(lost)}")
    if any(line[0] == "f" and len(line) > 4 for line in words if line):
        warn(source, "faces of more than three corners are stored as triangles")
