"""Read OBJ files: vertices as they are in the file, whatever corners of faces say beside them.

A corner of a face names a vertex, and perhaps texture coordinates and a normal. Programs that draw make a vertex of
each such combination, which opens a closed mesh at its seams and edges. Here the vertices stay those of the file:
texture coordinates and normals are attributes of vertices where each vertex has one value, and else of faces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.parts import ENDS
from zardine.vectors.content.polygons import cuts_of
from zardine.vectors.exchange.file_parts import Piece
from zardine.vectors.outside import warn

LEGEND: Final = "# vertices x y z, faces of three of them"
"""The first line of a file that an export has written."""
NO_FACES: Final = "# 0 vertices, 0 faces"
"""A line of an OBJ file that holds nothing, so that it is not taken for one that is cut off."""
_COLOURS: Final = ("red", "green", "blue")
_LEFT_OUT: Final = {
    "l": "lines",
    "p": "points",
    "g": "names of groups",
    "o": "names of objects",
    "s": "smoothing groups",
    "usemtl": "materials",
    "mtllib": "materials",
    "curv": "curves",
    "surf": "surfaces",
}
"""Names for kinds of lines that are not read, by their first word, which names all other kinds."""
_NOTHING: Final = (["s", "off"], ["s", "0"])
"""Lines that say that there is no such thing."""
_CORNER: Final = ("v", "vt", "vn")
"""What the three numbers of a corner count."""
_DIGITS: Final = 0.15
"""By how much a colour of 8 bits differs, at most, from what three decimals of a 255th say."""
_OF_CORNERS: Final = {"vt": ("uv", 2), "vn": ("normal", 3)}
"""The attribute that texture coordinates and normals become, and how many numbers each has."""

Words = tuple[int, list[str]]
"""The number of a line, and its words."""


def read_obj(source: Path, comments: list[str]) -> Piece:
    """Return the mesh of a file: triangles; faces of more corners are cut into them. Warns of what is left out.

    Comments are added to ``comments``.

    Raises :class:`~zardine.errors.DataError` for vertices of less than three numbers and faces of less than three
    corners, as a file has that is cut off, for faces between vertices that are not there, and for a file without
    vertices or faces that does not say so, as ours do.
    """
    lines = _lines(source, comments)
    if not lines:
        return Piece(np.zeros((0, 3)), {}, {}, {ENDS: np.zeros((0, 3), np.int64)})
    tables = {kind: _numbers(source, [each for each in lines if each[1][0] == kind]) for kind in _CORNER}
    positions, of_vertices = _vertices(source, tables["v"])
    faces = _faces(source, lines, {kind: len(table) for kind, table in tables.items()}, positions)
    of_faces = dict[str, npt.NDArray[Any]]()
    for kind, corners in ((each, faces[each]) for each in _OF_CORNERS if (faces[each] >= 0).any()):
        name, width = _OF_CORNERS[kind]
        values = np.array([(*row, 0.0, 0.0)[:width] for row in tables[kind]], np.float64)
        values = np.concatenate([values, np.full((1, width), np.nan)])[corners]  # the last row: of corners without one
        single = _of_vertices(faces["v"], values, len(positions))
        if single is None:
            of_faces[name] = values.reshape(len(corners), -1)
        else:
            of_vertices[name] = single
    _tell(source, lines)
    return Piece(positions, of_vertices, {}, {ENDS: faces["v"], **of_faces})


def _lines(source: Path, comments: list[str]) -> list[Words]:
    """The words of the lines of a file, and its comments; none for one that says that it holds nothing."""
    text = source.read_text(encoding="utf-8", errors="replace").replace("\\\n", " \f")
    found = list[Words]()
    number = 0
    for line in text.split("\n"):
        number += 1 + line.count("\f")
        text_of_line, _, comment = line.partition("#")
        words = text_of_line.split()
        if comment.strip() and f"#{comment}" not in (LEGEND, NO_FACES):
            comments.append(comment)
        if words:
            found.append((number, words))
        if words and words[0] in ("v", "f") and len(words) < 4:
            what = "a vertex has three coordinates" if words[0] == "v" else "a face has three corners or more"
            raise DataError(f"{source}, line {number}: {what}, not {line.strip()!r}; the file may be cut off")
    kinds = {words[0] for _, words in found}
    if not found and NO_FACES in text.splitlines():
        return []
    if not {"v", "f"} <= kinds:
        what = (
            "faces; the file may be cut off. Points are written with write_points"
            if "v" in kinds
            else "vertices: see vectors.create"
        )
        raise DataError(f"{source} holds no {what}")
    return found


def _numbers(source: Path, lines: Sequence[Words]) -> list[tuple[float, ...]]:
    """The numbers of lines. Raises :class:`DataError` for words that are no finite numbers."""
    found = []
    for number, words in lines:
        try:
            found.append(tuple(map(float, words[1:])))
        except ValueError:
            raise DataError(f"{source}, line {number}: numbers are needed, not {' '.join(words[1:])!r}") from None
    return found


def _faces(source: Path, lines: Sequence[Words], counts: Mapping[str, int], positions: Any) -> dict[str, Ints]:
    """The triangles, ``(F, 3)``: rows of vertices, of texture coordinates and of normals (-1: none).

    Raises :class:`DataError` for corners that name what is not there.
    """
    found: dict[str, list[list[int]]] = {kind: [] for kind in _CORNER}
    before = dict.fromkeys(_CORNER, 0)
    for number, words in lines:
        if words[0] in before:
            before[words[0]] += 1
        if words[0] != "f":
            continue
        corners = [each.split("/") for each in words[1:]]
        cuts = [[0, 1, 2]]
        for place, kind in enumerate(_CORNER):
            rows = list[int]()
            for corner in corners:
                text = corner[place] if place < len(corner) else ""
                row = _row(text, before[kind]) if text else -1
                if row is None or row >= counts[kind] or (row < 0 and (text or kind == "v")):
                    raise DataError(
                        f"{source}, line {number}: a corner {'/'.join(corner)!r} names a {kind!r} that is not there; "
                        f"there are {counts[kind]}"
                    )
                rows.append(row)
            if kind == "v" and len(rows) > 3:
                cuts = cuts_of(positions[[rows]])[0].tolist()
            found[kind] += [[rows[a], rows[b], rows[c]] for a, b, c in cuts]
    return {kind: np.array(rows, np.int64).reshape(-1, 3) for kind, rows in found.items()}


def _row(text: str, before: int) -> int | None:
    """The row that a number of a corner means: from 1 on, or backwards from the last one before it from -1 on."""
    try:
        number = int(text)
    except ValueError:
        return None
    row = number - 1 if number > 0 else before + number
    return row if number and row >= 0 else None


def _vertices(source: Path, rows: Sequence[tuple[float, ...]]) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """Positions of vertices, and their colours: three numbers behind the coordinates, from 0 to 1 or to 255."""
    positions = np.array([row[:3] for row in rows], np.float64)
    widths = {len(row) for row in rows}
    if any(width in (4, 5) for width in widths) and any(row[3] != 1 for row in rows if len(row) in (4, 5)):
        warn(source, "left out: weights of vertices")
    if max(widths) < 6:
        return positions, {}
    if min(widths) < 6:
        warn(source, "left out: colours of vertices, which not all of them have")
        return positions, {}
    shades = np.array([row[3:6] for row in rows], np.float64)
    if not (np.isfinite(shades).all() and shades.min() >= 0 and shades.max() <= 255):
        warn(source, "left out: colours of vertices, which are not numbers from 0 to 1, or to 255")
        return positions, {}
    shades = shades * 255 if shades.max() <= 1 else shades
    if (np.abs(shades - np.round(shades)) > _DIGITS).any():
        warn(source, "colours of vertices are rounded to 8 bits")
    return positions, dict(zip(_COLOURS, np.round(shades).astype(np.uint8).T, strict=True))


def _of_vertices(faces: Ints, values: npt.NDArray[Any], count: int) -> npt.NDArray[Any] | None:
    """Values of corners as such of ``count`` vertices (NaN: no corner has one); ``None`` where these have several."""
    found = np.full((count, values.shape[-1]), np.nan)
    found[faces.reshape(-1)] = values.reshape(-1, values.shape[-1])
    return found if np.array_equal(found[faces], values, equal_nan=True) else None


def _tell(source: Path, lines: Sequence[Words]) -> None:
    """Warn of what of a file is left out or changed."""
    others = dict.fromkeys(words[0] for _, words in lines if words[0] not in (*_CORNER, "f") and words not in _NOTHING)
    lost = dict.fromkeys(_LEFT_OUT.get(each, f"lines {each!r}") for each in others)
    if any(words[0] == "vt" and len(words) > 3 and float(words[3]) for _, words in lines):
        lost["third texture coordinates"] = None
    if lost:
        warn(source, f"left out: {', '.join(lost)}")
    if any(words[0] == "f" and len(words) > 4 for _, words in lines):
        warn(source, "faces of more than three corners are stored as triangles")


__all__ = ["NO_FACES", "read_obj"]
