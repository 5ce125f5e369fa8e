"""Read PLY files, of text or binary: elements, each with properties of one value, or of a list of values."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.parts import ENDS
from zardine.vectors.content.polygons import triangles
from zardine.vectors.exchange.file_parts import Piece
from zardine.vectors.exchange.losses import reading
from zardine.vectors.outside import warn, warn_names

_TYPES: Final = {
    **dict.fromkeys(("char", "int8"), "b"),
    **dict.fromkeys(("uchar", "uint8"), "B"),
    **dict.fromkeys(("short", "int16"), "h"),
    **dict.fromkeys(("ushort", "uint16"), "H"),
    **dict.fromkeys(("int", "int32"), "i"),
    **dict.fromkeys(("uint", "uint32"), "I"),
    **dict.fromkeys(("float", "float32"), "f"),
    **dict.fromkeys(("double", "float64"), "d"),
}
"""Letters of types, for ``struct`` and for NumPy."""
_ORDERS: Final = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_CORNERS: Final = ("vertex_indices", "vertex_index")
_MOST_CORNERS: Final = 12
"""Of faces in a store."""

Column = npt.NDArray[Any] | list[npt.NDArray[Any]]
"""A value for each row, or a row of values, ``(N, k)``; a list where rows have different numbers of them."""


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    kind: str
    count: str | None
    """The type of the number of values in front of a list; ``None`` for one value."""


@dataclass(frozen=True, slots=True)
class _Element:
    name: str
    count: int
    properties: list[_Property]


def read_ply(source: Path, comments: list[str]) -> Piece:
    """Return the mesh of a file, or its points where it has no faces. Warns of what is left out.

    Faces have up to 12 corners if all have as many, and are else cut into triangles. Comments are added to
    ``comments``.

    Raises :class:`~zardine.errors.DataError` for a file that is cut off, or no PLY file, for one without vertices, for
    edges without faces, and for faces between vertices that are not there.
    """
    data = source.read_bytes()
    order, elements, begin = _header(source, data, comments)
    with reading(source):
        found = _text_of(source, data[begin:], elements) if not order else _binary(source, data, begin, elements, order)
    declared = {each.name: each.count for each in elements}
    of_vertices = found.get("vertex", {})
    if not declared.get("vertex"):
        if "vertex" not in declared or declared.get("face"):
            raise DataError(f"{source} holds no vertices")
        return Piece(np.zeros((0, 3)), {}, {}, {ENDS: np.zeros((0, 3), np.int64)} if "face" in declared else {})
    axes = [of_vertices.pop(axis, None) for axis in "xyz"]
    if any(not isinstance(each, np.ndarray) or each.ndim > 1 for each in axes):
        raise DataError(f"{source} holds no vertices with coordinates x, y and z")
    positions = np.stack([np.asarray(each, np.float64) for each in axes], axis=1)
    columns = _with_a_value_for_each(of_vertices, source)
    others = [name for name in declared if name not in ("vertex", "face")]
    if others:
        if not declared.get("face") and declared.get("edge"):
            raise DataError(f"{source} holds edges, and no faces: write them with write_graph")
        warn(source, f"elements of the file are left out: {', '.join(others)}")
    if not declared.get("face"):
        return Piece(positions, columns)
    of_faces = found["face"]
    corners = next((of_faces.pop(name) for name in _CORNERS if name in of_faces), None)
    if corners is None or (isinstance(corners, np.ndarray) and corners.dtype.kind not in "iu"):
        raise DataError(f"{source}: its faces have no list {_CORNERS[0]!r} of whole numbers")
    values = _with_a_value_for_each(of_faces, source)
    if isinstance(corners, np.ndarray) and corners.ndim == 2 and 3 <= corners.shape[1] <= _MOST_CORNERS:
        faces = corners.astype(np.int64)
        check_faces(faces, len(positions), source)
    else:
        warn(source, "faces of different numbers of corners are stored as triangles")
        faces, origin = _as_triangles(corners, positions, source)
        values = {name: each[origin] for name, each in values.items()}
    return Piece(positions, columns, {}, {ENDS: faces, **values})


def _header(source: Path, data: bytes, comments: list[str]) -> tuple[str, list[_Element], int]:
    """The order of bytes (``""``: text), elements, and the byte at which they begin."""
    head, end, rest = data.partition(b"end_header")
    lines = [line.strip() for line in text_of(head).splitlines()]
    if lines[:1] != ["ply"] or not end:
        raise DataError(f"{source} is no PLY file, or cut off: it has no header from 'ply' to 'end_header'")
    form, elements = "", list[_Element]()
    for line in lines[1:]:
        match line.split():
            case ["comment" | "obj_info", *_]:
                comments.append(line.partition(" ")[2])
            case ["format", form, *_] if form in _ORDERS:
                pass
            case ["element", name, count] if count.isdecimal():
                elements.append(_Element(name, int(count), []))
            case ["property", "list", count, kind, name] if elements and count in _TYPES and kind in _TYPES:
                elements[-1].properties.append(_Property(name, _TYPES[kind], _TYPES[count]))
            case ["property", kind, name] if elements and kind in _TYPES:
                elements[-1].properties.append(_Property(name, _TYPES[kind], None))
            case []:
                pass
            case _:
                raise DataError(f"{source} cannot be read: a line of its header is {line[:80]!r}")
    if not form:
        raise DataError(f"{source} cannot be read: its header has no line 'format'")
    skipped = 2 if rest.startswith(b"\r\n") else 1
    return _ORDERS[form], elements, len(head) + len(end) + skipped


def text_of(data: bytes) -> str:
    """Return text of a file that does not say how it is encoded."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _text_of(source: Path, body: bytes, elements: Sequence[_Element]) -> dict[str, dict[str, Column]]:
    """The values of elements in text: a line for each row."""
    lines = [line.split() for line in body.decode("ascii", "replace").splitlines() if line.strip()]
    found = {}
    for element in elements:
        rows, lines = lines[: element.count], lines[element.count :]
        _check_count(source, element, len(rows))
        alike = _words_alike(rows, element)
        if alike is not None:
            found[element.name] = alike
            continue
        cells: list[list[Any]] = [[] for _ in element.properties]
        for number, words in enumerate(rows, 1):
            at = 0
            for each, values in zip(element.properties, cells, strict=True):
                size = 1 if each.count is None else int(words[at]) if at < len(words) else 0
                at += each.count is not None
                values.append(words[at : at + size])
                at += size
            if at > len(words) or size < 0:
                raise DataError(
                    f"{source} is cut off or damaged: its header declares {element.count} of {element.name!r}, and the "
                    f"values of number {number} are not all there: {' '.join(words)!r}"
                )
        found[element.name] = {
            each.name: _column([_numbers(words, each.kind) for words in values], each)
            for each, values in zip(element.properties, cells, strict=True)
        }
    return found


def _words_alike(rows: list[list[str]], element: _Element) -> dict[str, Column] | None:
    """Rows of text that have as many words, and values in each list, as the first one; ``None`` for others."""
    if len(set(map(len, rows))) != 1:
        return None
    columns = list(zip(*rows, strict=True))
    found: dict[str, Column] = {}
    at = 0
    for each in element.properties:
        size = 1
        if each.count is not None:
            sizes = set(columns[at]) if at < len(columns) else set()
            if len(sizes) != 1:
                return None
            size, at = int(sizes.pop()), at + 1
        if size < 0 or at + size > len(columns):
            return None
        values = [np.array(_numbers(words, each.kind), each.kind) for words in columns[at : at + size]]
        found[each.name] = _squeezed(np.stack(values, axis=1) if size else np.zeros((len(rows), 0), each.kind), each)
        at += size
    return found


def _numbers(words: Sequence[str], kind: str) -> Sequence[float]:
    if kind in "fd":
        return list(map(float, words))
    try:
        return list(map(int, words))
    except ValueError:
        return list(map(_whole, words))


def _whole(word: str) -> int:
    """A whole number that is written as another one: ``5.0``."""
    number = float(word)
    if number != int(number):
        raise ValueError(f"{word!r} is no whole number")
    return int(number)


def _binary(
    source: Path, data: bytes, at: int, elements: Sequence[_Element], order: str
) -> dict[str, dict[str, Column]]:
    """The values of elements in binary, from a byte on."""
    found = {}
    for element in elements:
        alike = _rows_alike(data, at, element, order)
        if alike is not None:
            found[element.name], at = alike
            continue
        cells: list[list[Any]] = [[] for _ in element.properties]
        for number in range(element.count):
            try:
                for each, values in zip(element.properties, cells, strict=True):
                    size = 1
                    if each.count is not None:
                        (size,) = struct.unpack_from(order + each.count, data, at)
                        at += struct.calcsize(order + each.count)
                    form = f"{order}{size}{each.kind}"
                    values.append(struct.unpack_from(form, data, at))
                    at += struct.calcsize(form)
            except struct.error:
                _check_count(source, element, number)
        found[element.name] = {
            each.name: _column(values, each) for each, values in zip(element.properties, cells, strict=True)
        }
    if data[at:].strip():
        raise DataError(f"{source} is damaged: it has {len(data) - at} bytes more than its header declares")
    return found


def _rows_alike(data: bytes, at: int, element: _Element, order: str) -> tuple[dict[str, Column], int] | None:
    """Rows whose lists have as many values as those of the first one, and where they end; ``None`` for others."""
    fields: list[tuple[str, Any]] = []
    sizes: list[tuple[str, Any]] = []
    place = at
    for number, each in enumerate(element.properties):
        size = 1
        if each.count is not None:
            count = np.dtype(order + each.count)
            if place + count.itemsize > len(data) or not element.count:
                return None
            size = int(np.frombuffer(data, count, 1, place)[0])
            if size < 0:
                return None
            fields.append((f"size {number}", count))
            sizes.append((f"size {number}", size))
            place += count.itemsize
        fields.append((f"{number}", np.dtype((np.dtype(order + each.kind), (size,)))))
        place += fields[-1][1].itemsize
    dtype = np.dtype(fields)
    end = at + dtype.itemsize * element.count
    if end > len(data):
        return None
    rows = np.frombuffer(data, dtype, element.count, at) if dtype.itemsize else np.zeros(element.count, dtype)
    if any((rows[name] != size).any() for name, size in sizes):
        return None
    columns = ((each, rows[f"{number}"]) for number, each in enumerate(element.properties))
    return {each.name: _squeezed(np.ascontiguousarray(v, v.dtype.newbyteorder("=")), each) for each, v in columns}, end


def _check_count(source: Path, element: _Element, there: int) -> None:
    if there < element.count:
        told = f"its header declares {element.count} of {element.name!r}, {there} are there"
        raise DataError(f"{source} is cut off: {told}")


def _column(rows: Sequence[Sequence[float]], about: _Property) -> Column:
    sizes = {len(each) for each in rows}
    if len(sizes) > 1:
        return [np.array(each, about.kind) for each in rows]
    width = sizes.pop() if sizes else 1
    return _squeezed(np.array(rows, about.kind).reshape(len(rows), width), about)


def _squeezed(values: npt.NDArray[Any], about: _Property) -> npt.NDArray[Any]:
    """One value for each row, also where these are lists of one; but faces."""
    return values[:, 0] if values.shape[1] == 1 and about.name not in _CORNERS else values


def _with_a_value_for_each(columns: Mapping[str, Column], source: Path) -> dict[str, npt.NDArray[Any]]:
    """Columns as attributes; warns of those with lists of different lengths."""
    found = {name: each for name, each in columns.items() if isinstance(each, np.ndarray) and each.size}
    warn_names([name for name in columns if name not in found], source, "they do not have a value for each")
    return found


def _as_triangles(corners: Column, vertices: npt.NDArray[Any], source: Path) -> tuple[Ints, Ints]:
    """Faces of different numbers of corners cut into triangles, and which face each is of."""
    counts = np.array([len(each) for each in corners])
    if counts.min() < 3:
        face = int(counts.argmin())
        raise DataError(f"{source}: face {face} has {counts[face]} corners: a face has three corners or more")
    found, origins = [], []
    for count in np.unique(counts):
        numbers = np.flatnonzero(counts == count)
        faces = np.stack([corners[number] for number in numbers]).astype(np.int64)
        check_faces(faces, len(vertices), source, numbers)
        cut, row = triangles(faces, vertices)
        found.append(cut)
        origins.append(numbers[row])
    origin = np.concatenate(origins)
    order = np.argsort(origin, kind="stable")
    return np.concatenate(found)[order], origin[order]


def check_faces(faces: npt.NDArray[Any], count: int, source: Path, numbers: Ints | None = None) -> None:
    """Raise :class:`DataError` for faces between vertices that are not there; ``numbers`` are those of the faces."""
    wrong = np.flatnonzero(((faces < 0) | (faces >= count)).any(axis=1)) if len(faces) else faces
    if len(wrong):
        row = int(wrong[0])
        face = row if numbers is None else numbers[row]
        raise DataError(f"{source}: face {face} names vertices {faces[row].tolist()}; there are {count}")


__all__ = ["check_faces", "read_ply", "text_of"]
