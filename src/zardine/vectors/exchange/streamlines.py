"""TRK and TCK, files of streamlines, through nibabel."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from io import BytesIO
from itertools import pairwise, tee
from operator import itemgetter
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import shown
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.exchange.file_parts import LENGTHS, Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.level_parts import LevelParts, SeenLines, columns_with_ids
from zardine.vectors.exchange.losses import (
    LINES,
    bounds_of_nothing,
    check_rank,
    check_store,
    is_rounded,
    reading,
    storable,
    warn_crs,
    warn_kind,
    warn_rounded,
)
from zardine.vectors.exchange.part_files import FileWriter
from zardine.vectors.outside import keeping, needing, numbers, tell_of_booleans, tell_of_comments, warn, warn_names
from zardine.vectors.polylines import write_spooled_lines
from zardine.vectors.results import Polylines
from zardine.vectors.storing.store import VectorStore

_HEADER: Final = 1000
"""Bytes of the header of a TRK file."""
_COUNT_AT: Final = 988
"""Where in it the number of lines is."""
_WINDOW: Final = 2**18
"""Bytes that are read at a time where only the lengths of lines are looked at; they may be far apart."""
_TCK_HEADER: Final = 2**20
"""Bytes at most of the header of a TCK file."""
_TCK: Final = "mrtrix tracks"
_VERTEX: Final = 12
"""Bytes of a vertex of a TCK file; a line ends with one that is no number, and the file with one that is infinite."""
_FIXED: Final = 64 * 2**20
"""Bytes that reading takes beside the lines, about."""
_OF_A_LINE: Final = 3000
"""Bytes of the objects that nibabel makes of a line, about."""
_OF_TCK = ("count", "datatype", "file", "timestamp", "total_count", "comments")
"""Fields of a TCK header that say nothing of the lines, or are told of elsewhere."""
_SPACE = ("voxel_to_rasmm", "dimensions", "voxel_sizes", "voxel_order")
_AXES = ("LR", "AP", "IS")


TRK = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    crs="-/told",
    bounds="-/told",
    precision="-/told: in float32",
    integers="-/told",
    floats="-/told: in float32",
    booleans="-/told: as 0 and 1",
    text="-/told",
    several_values="kept/kept",
    missing_text="-/told",
    vertex_attributes="kept/kept",
    object_attributes="kept/kept",
    ids="-/kept: as the property 'object_id'",
    groups="-/told",
    colours="kept/kept: as any attribute",
    normals="kept/kept: as any attribute",
    metadata="kept/told: the space of the image as the table 'trk' of crs; attributes of the store are told",
)
TCK = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    crs="-/told",
    bounds="-/told",
    precision="-/told: in float32",
    integers="-/told",
    floats="-/told",
    booleans="-/told",
    text="-/told",
    several_values="-/told",
    missing_text="-/told",
    vertex_attributes="-/told",
    object_attributes="-/told",
    ids="-/told",
    groups="-/told",
    colours="-/told",
    normals="-/told",
    metadata="told/told: fields of the header",
    comments="told/-: the field 'comments' of the header",
)


def _store_lines(
    path: StoreLike,
    source: Path,
    whole: Whole,
    there: int,
    header: Mapping[str, Any],
    options: Mapping[str, Any],
    step: Step,
    origin: str | None,
) -> None:
    """Write lines of which the file has ``there``, those without vertices among them."""
    of_lines = whole.of_lines
    lengths = of_lines.get(LENGTHS, np.zeros(0, np.int64))
    if not len(lengths):
        options = {**options, **bounds_of_nothing(source, options)}
    if there > len(lengths):
        warn(source, f"{there - len(lengths)} lines without vertices are left out")
    crs = {} if "crs" in options else {"crs": _space_in(header, source)}
    if not set(_SPACE) <= set(header):
        tell_of_comments(source, [header.get("comments", "")])
        fields = [name for name in header if name not in _OF_TCK]
        if fields:
            warn(source, f"fields of the header are left out: {', '.join(fields)}")
    whole.rename(storable({name: name for name in whole.columns}, source))
    columns = storable({name: each for name, each in of_lines.items() if name != LENGTHS}, source)
    more = {"object_attributes": columns, **crs, **options}
    write_spooled_lines(path, whole, lengths, more, step, origin)


class _Lines:
    """A file of streamlines as :class:`~zardine.vectors.exchange.file_parts.FileParts`: whole lines to a part.

    A file that is compressed (``.trk.gz``) is unpacked to a temporary one, once in each process.
    """

    outline: list[list[int]]
    """Of each part, and of the end: bytes, lines and vertices before it."""
    rows: int
    """How many lines there are, those without vertices among them."""
    _header: Mapping[str, Any]

    def __init__(self, source: Path) -> None:
        self._source = source
        with needing(source):
            openers: Any = import_module("nibabel.openers")
        self._unpacked: Any = None
        self._guard = Lock()
        if source.suffix.lower() in openers.Opener.compress_ext_map:
            self._unpacked = TemporaryFile()  # noqa: SIM115  # it goes with this object, or with this process
            with reading(source), openers.Opener(str(source)) as packed:
                copyfileobj(packed, self._unpacked, 2**20)
            self._unpacked.flush()

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self._unpacked is None:
            with self._source.open("rb") as file:
                yield file
        else:
            with self._guard:
                self._unpacked.seek(0)
                yield self._unpacked

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.outline) - 1

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return self.outline[-1][2]

    def _checked(self, outline: list[list[int]], file: BinaryIO) -> list[list[int]]:
        """An outline that a plan gives. Raises :class:`DataError` for places that are not in the file."""
        size = os.fstat(file.fileno()).st_size
        if any(now < before for a, b in pairwise(outline) for before, now in zip(a, b, strict=True)):
            raise DataError(f"{self._source}: the plan says that parts end before they begin: plan the import anew")
        if outline[-1][0] > size:
            raise DataError(f"{self._source} has {size} bytes; the plan is of {outline[-1][0]}: plan the import anew")
        return outline

    def _bytes_of(self, number: int) -> bytes:
        """The lines of a part as they are in the file."""
        start, end = self.outline[number][0], self.outline[number + 1][0]
        with reading(self._source), self._opened() as file:
            file.seek(start)
            data = file.read(end - start)
        if len(data) != end - start:
            raise self._changed(number)
        return data

    def _changed(self, number: int) -> DataError:
        count = self.outline[number + 1][2] - self.outline[number][2]
        return DataError(f"{self._source} has changed while it was read: {count} vertices were there")

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all lines, and warn of what the store cannot hold."""
        _store_lines(path, self._source, whole, self.rows, self._header, options, step, origin)

    def close(self) -> None:
        """Remove what was unpacked."""
        if self._unpacked is not None:
            self._unpacked.close()


class TckParts(_Lines):
    """A TCK file, in parts of about ``at_once`` vertices. Where lines end is found by going through the file once."""

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: Any = None) -> None:
        super().__init__(source)
        with reading(source), self._opened() as file:
            self._header, self._start, self._dtype = _tck_header(file.read(_TCK_HEADER), source)
            self.outline = self._cuts(file, at_once) if outline is None else self._checked(outline, file)
            self.rows = self.outline[-1][1]

    def _cuts(self, file: BinaryIO, at_once: int) -> list[list[int]]:
        """Where parts begin, and the last one ends: bytes, lines and vertices before that."""
        start, size = self._start, os.fstat(file.fileno()).st_size
        count, over = divmod(size - start, _VERTEX)
        if not 0 < start <= size:
            raise DataError(f"{self._source}: its header says that lines begin at byte {start}; it has {size} bytes")
        file.seek(max(start, size - _VERTEX))
        if over or not count or not np.isinf(np.frombuffer(file.read(_VERTEX), self._dtype)).all():
            raise DataError(
                f"{self._source} is cut short: it ends at byte {size} without the mark that is behind the last line "
                "(inf inf inf); get the whole file"
            )
        lines, vertices, line, cuts = 0, 0, 0, [[start, 0, 0]]  # line: the vertex that the next one begins with
        file.seek(start)
        for first in range(0, count - 1, AT_ONCE):
            some = np.frombuffer(file.read(_VERTEX * min(AT_ONCE, count - 1 - first)), self._dtype)
            ends = first + _ends(some)
            lengths = np.diff(ends, prepend=line - 1) - 1
            behind = vertices + np.cumsum(lengths)
            while True:
                last = int(np.searchsorted(behind, cuts[-1][2] + at_once, side="right"))
                if last == len(ends):
                    break
                if (int(behind[last - 1]) if last else vertices) > cuts[-1][2]:
                    last -= 1  # the line that is too much begins the next part
                if last < 0:
                    cuts.append([start + _VERTEX * line, lines, vertices])
                else:
                    after = start + _VERTEX * (int(ends[last]) + 1)
                    cuts.append([after, lines + last + 1, int(behind[last])])
            if len(ends):
                lines, vertices, line = lines + len(ends), int(behind[-1]), int(ends[-1]) + 1
        if line != count - 1:
            raise DataError(
                f"{self._source}: the vertices from byte {start + _VERTEX * line} on are of a line that does not end"
            )
        if len(cuts) > 1 and cuts[-1][2] == vertices:
            del cuts[-1]
        return [*cuts, [start + _VERTEX * line, lines, vertices]]

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one: as they are in the file, the vertices three times, and lengths."""
        return max(b[0] - a[0] for a, b in pairwise(self.outline)) * 5 + _FIXED

    def read(self, number: int) -> Piece:
        """Return the lines of a part that have vertices."""
        values = np.frombuffer(self._bytes_of(number), self._dtype)
        ends = _ends(values)
        lengths = np.diff(ends, prepend=-1) - 1
        positions = np.delete(values.reshape(-1, 3), ends, axis=0).astype(np.float32)
        if len(positions) != self.outline[number + 1][2] - self.outline[number][2] or lengths.sum() != len(positions):
            raise self._changed(number)
        return Piece(positions, {}, {LENGTHS: lengths[lengths > 0]})


def _tck_header(data: bytes, source: Path) -> tuple[dict[str, str], int, np.dtype[Any]]:
    """The fields of a TCK file that begins with ``data``, the byte at which lines begin, and the type of coordinates.

    Raises :class:`DataError` for anything else.
    """
    head, end, _ = data.partition(b"\nEND\n")
    lines = head.decode("utf-8", "replace").splitlines()
    if lines[:1] != [_TCK]:
        told = f"with {data[:16]!r}" if data else "with nothing: it is empty"
        raise DataError(f"{source} is no TCK file: it does not begin with {_TCK!r}, but {told}")
    if not end:
        raise DataError(f"{source} is cut short, or damaged: its header has no line END in the first {len(data)} bytes")
    fields = {
        name.strip(): value.strip() for name, found, value in (line.partition(":") for line in lines[1:]) if found
    }
    dtype = {"Float32LE": "<f4", "Float32BE": ">f4"}.get(fields.get("datatype", "Float32LE"))
    if dtype is None:
        raise DataError(
            f"{source} cannot be read: its vertices are of {shown(fields['datatype'])}, not of Float32LE or BE"
        )
    usual = f". {len(head) + len(end)}"
    place, _, start = fields.get("file", usual).partition(" ")
    if place != "." or not re.fullmatch("-?[0-9]{1,18}", start.strip()):
        told = shown(fields["file"])
        raise DataError(f"{source} cannot be read: where lines begin, {told} in its header, is no place in this file")
    return fields, int(start), np.dtype(dtype)


def _ends(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Which vertices of a TCK file are the ends of lines: all three coordinates are no numbers."""
    return np.flatnonzero(np.isnan(values.reshape(-1, 3)).all(axis=1))


class TrkParts(_Lines):
    """A TRK file, in parts of about ``at_once`` vertices.

    Where lines begin is found by going through the file once; what they are is for nibabel to read, which is given the
    header and some lines as a file of its own.
    """

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: Any = None) -> None:
        super().__init__(source)
        with needing(source):
            self._nibabel: Any = import_module("nibabel.streamlines")
        with reading(source), self._opened() as file:
            self._head = file.read(_HEADER)
            self._header = self._nibabel.TrkFile.load(BytesIO(self._head), lazy_load=True).header
            self._of_point = 4 * (3 + int(self._header["nb_scalars_per_point"]))
            self._of_line = 4 + 4 * int(self._header["nb_properties_per_streamline"])
            if self._of_point < 12 or self._of_line < 4:
                raise DataError(f"{source}: its header tells of a negative number of values")
            self.outline = self._cuts(file, at_once) if outline is None else self._checked(outline, file)
            self.rows = self.outline[-1][1]

    def _cuts(self, file: BinaryIO, at_once: int) -> list[list[int]]:
        """Where parts begin, and the last one ends: bytes, lines and vertices before that."""
        length = struct.Struct(f"{self._header['endianness']}i")
        told = length.unpack_from(self._head, _COUNT_AT)[0]
        size = os.fstat(file.fileno()).st_size
        at, lines, vertices, cuts = _HEADER, 0, 0, [[_HEADER, 0, 0]]
        window, first, behind = bytearray(_WINDOW), 0, 0  # which holds the bytes from first to behind
        while at + 4 <= size and (lines < told or not told):
            if at + 4 > behind:
                file.seek(at)
                first, behind = at, at + file.readinto(window)  # type: ignore[attr-defined]  # of files in bytes
                if at + 4 > behind:
                    break  # it has become shorter
            count = length.unpack_from(window, at - first)[0]
            end = at + self._of_line + count * self._of_point
            if count < 0:
                raise DataError(f"{self._source} cannot be read: line {lines} has {count} vertices")
            if end > size:
                break
            if vertices > cuts[-1][2] and vertices - cuts[-1][2] + count > at_once:
                cuts.append([at, lines, vertices])
            at, lines, vertices = end, lines + 1, vertices + count
        if (told and lines < told) or (not told and at != size):
            raise DataError(
                f"{self._source} is cut short: its header tells of {told or 'more'} streamlines, and {lines} are "
                "there; get the whole file"
            )
        return [*cuts, [at, lines, vertices]]

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one: what nibabel makes of each line, and of its vertices."""
        most = max(
            (b[1] - a[1]) * (_OF_A_LINE + 4 * self._of_line) + (b[2] - a[2]) * 6 * self._of_point
            for a, b in pairwise(self.outline)
        )
        return most + _FIXED

    def read(self, number: int) -> Piece:
        """Return the lines of a part that have vertices."""
        (_, first, before), (_, last, behind) = self.outline[number : number + 2]
        lines = self._bytes_of(number)
        with reading(self._source):
            count = struct.pack(f"{self._header['endianness']}i", last - first)
            part = BytesIO(self._head[:_COUNT_AT] + count + self._head[_COUNT_AT + 4 :] + lines)
            loaded = self._nibabel.TrkFile.load(part, lazy_load=True)
            items = list(loaded.tractogram.data) if last > first else []
            piece = _piece_of(items, _to_world(loaded))
        if len(piece.positions) != behind - before:
            raise self._changed(number)
        return piece


def _piece_of(items: Sequence[Any], affine: Any) -> Piece:
    """Lines, without those that have no vertices; ``affine``: from their positions to those in space."""
    kept = [item for item in items if len(item.streamline)]
    if not kept:  # what they would be like
        kept = list(items[:1])
    if not kept:
        return Piece(np.zeros((0, 3), np.float32), {}, {LENGTHS: np.zeros(0, np.int64)})
    lengths = np.array([len(item.streamline) for item in kept], np.int64)
    positions = np.concatenate([np.asarray(item.streamline, np.float32) for item in kept])
    if affine is not None:
        affines: Any = import_module("nibabel.affines")
        positions = np.asarray(affines.apply_affine(affine, positions, inplace=True), np.float32)
    values = {
        name: _flat(np.concatenate([item.data_for_points[name] for item in kept])) for name in kept[0].data_for_points
    }
    of_lines = {
        name: _flat(np.stack([np.atleast_1d(item.data_for_streamline[name]) for item in kept]))
        for name in kept[0].data_for_streamline
    }
    there = lengths > 0
    return Piece(positions, values, {LENGTHS: lengths[there], **{name: each[there] for name, each in of_lines.items()}})


def _to_world(loaded: Any) -> Any:
    """The map from positions as they are in the file to those in space; ``None``: they are the same."""
    if not set(_SPACE) <= set(loaded.header):
        return None
    trk: Any = import_module("nibabel.streamlines.trk")
    affine = np.asarray(trk.get_affine_trackvis_to_rasmm(loaded.header))
    return None if np.array_equal(affine, np.eye(4)) else affine


def _look(path: StoreLike, target: Path, level: int, parts: LevelParts[Polylines]) -> dict[str, Any]:
    """See which attributes a file can have: of TRK numbers, of TCK none. Lines without vertices are left out.

    Both formats hold float32. Raises :class:`DataError` for positions beyond it.
    """
    with needing(target):
        import_module("nibabel.streamlines")
    plain = target.suffix.lower() == ".tck"
    kept = () if plain else ("vertex_attributes", "object_attributes")
    kind = check_store(path, target, level, LINES, kept, crs=True)
    warn_kind(kind, "streamline", target)
    header = _space_out(path, target, plain)
    seen, rounded = SeenLines(_Column, in_order=parts.in_order), False
    check_rank(parts.rank, target)
    for part in parts:
        _check_range(part.positions, header, target)
        rounded = rounded or is_rounded(part.positions)
        seen.look(part)
    warn_rounded(rounded, target)
    of_lines, of_vertices = _columns(seen, target, plain)
    return {"of_lines": of_lines, "of_vertices": of_vertices}


def _write(path: StoreLike, place: Path, parts: LevelParts[Polylines], layout: Mapping[str, Any]) -> None:
    nibabel: Any = import_module("nibabel.streamlines")
    of_lines, of_vertices = layout["of_lines"], layout["of_vertices"]

    def items() -> Iterator[tuple[Any, ...]]:
        """Give the positions of each line, its attributes and those of its vertices."""
        for part in parts:
            table = columns_with_ids(part.object_attributes, part.object_ids)
            own = [_rows_of(table[name]) for name in of_lines]
            values = [_rows_of(part.attributes[name]) for name in of_vertices]
            for line, (start, end) in enumerate(pairwise(part.starts.tolist())):
                if end > start:
                    yield (
                        part.positions[start:end],
                        *(each[line] for each in own),
                        *(each[start:end] for each in values),
                    )

    # nibabel takes a generator for each of them, and goes through all of these together
    places, *others = (
        partial(map, itemgetter(number), each)
        for number, each in enumerate(tee(items(), 1 + len(of_lines) + len(of_vertices)))
    )
    along = dict(zip(of_vertices, others[len(of_lines) :], strict=True))
    tracts = nibabel.LazyTractogram(places, dict(zip(of_lines, others, strict=False)), along, np.eye(4))
    with keeping():  # it was told before
        header = _space_out(path, place, place.suffix.lower() == ".tck")
    nibabel.save(tracts, str(place), header=header)


streamlines_out = FileWriter(_look, _write)
"""Lines as TRK or TCK."""


def _columns(seen: SeenLines[_Column], target: Path, plain: bool) -> tuple[list[str], list[str]]:
    """The attributes of lines that the format has, and which of vertices; warns of others."""
    objects = seen.of_lines(target, attributes=not plain)
    if plain:
        warn_names(objects, target, "the format has no place for them")
        return [], []
    looked = {name: _Column(name, values[:0]) for name, values in objects.items()}
    for name, column in looked.items():
        column.look(objects[name])
    return _short(looked, target), _short(seen.of_vertices.found(target), target)


class _Column:
    """Whether float32 holds values, and exactly."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        self.like = like
        self.fits = self.exact = True

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        if values.dtype.kind in "iufb":
            with np.errstate(over="ignore"):
                self.fits = self.fits and _fits(values)
                nans = values.dtype.kind == "f"
                self.exact = self.exact and np.array_equal(values.astype(np.float32), values, equal_nan=nans)


def _rows_of(values: Any) -> Any:
    """Values as float32, in rows."""
    return values.astype(np.float32).reshape(len(values), values.shape[1] if values.ndim > 1 else 1)


def _check_range(positions: Any, header: Mapping[str, Any] | None, target: Path) -> None:
    """Raise :class:`DataError` for positions that float32 does not hold, there or in the space of the file."""
    moved = positions.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if header is not None:
            affine = _to_trackvis(header)
            moved = moved @ affine[:3, :3].T + affine[:3, 3]
        beyond = ~(np.isfinite(positions.astype(np.float32)) & np.isfinite(moved.astype(np.float32))).all(axis=1)
    if beyond.any():
        raise DataError(
            f"{target}: {int(beyond.sum())} positions are beyond float32 (3.4e38), which is all that this format has; "
            "use other units"
        )


def _to_trackvis(header: Mapping[str, Any]) -> Any:
    """The map of positions to the space that TRK files have them in. Raises what NumPy and nibabel raise."""
    trk: Any = import_module("nibabel.streamlines.trk")
    return np.asarray(trk.get_affine_rasmm_to_trackvis(header), np.float64)


def _space_in(header: Mapping[str, Any], source: Path) -> dict[str, Any] | None:
    """What a TRK header says of the image, as the store has it; ``None`` for TCK, and where it says nothing."""
    if not set(_SPACE) <= set(header):
        return None
    told = {name: np.asarray(header[name]).tolist() for name in _SPACE[:3]}
    order = header["voxel_order"]
    told["voxel_order"] = bytes(order).decode("latin-1").upper() if not isinstance(order, str) else order
    space = as_space(told)
    if space is None:
        warn(source, "the space of the image (voxel_to_rasmm, dimensions, voxel sizes, order) is left out: it is none")
        return None
    trk: Any = import_module("nibabel.streamlines.trk")
    empty = trk.TrkFile.create_empty_header()
    usual = all(np.array_equal(space[name], empty[name]) for name in _SPACE)
    return None if usual else {"trk": told}


def _space_out(path: StoreLike, target: Path, plain: bool) -> dict[str, Any] | None:
    """The fields of a TRK header from the store's ``crs``; ``None``, with a warning, where something else is there."""
    stored = VectorStore.open(path).root.block.get("crs")
    if not stored:
        return None
    space = None if plain or not isinstance(stored, Mapping) else as_space(stored.get("trk"))
    if space is None:
        why = "the format has no place for it" if plain else f"it has no usable 'trk' table of {', '.join(_SPACE)}"
        warn_crs(target, why)
    return space


def as_space(told: Any) -> dict[str, Any] | None:
    """Stored values as fields of a TRK header, if they are such."""
    if not isinstance(told, Mapping) or not isinstance(told.get("voxel_order"), str):
        return None
    try:
        affine, sizes = (np.array(told[name], np.float64) for name in ("voxel_to_rasmm", "voxel_sizes"))
        counts = np.array(told["dimensions"], np.float64)
        if (affine.shape, sizes.shape, counts.shape) != ((4, 4), (3,), (3,)):
            return None
        order = told["voxel_order"].upper()
        axes = {pair for letter in order for pair in _AXES if letter in pair}
        whole = np.array_equal(counts, np.round(counts)) and counts.min() >= 0 and counts.max() < 2**15
        if len(order) != 3 or axes != set(_AXES) or not whole or not (sizes > 0).all():
            return None
        if not np.array_equal(affine[3], (0, 0, 0, 1)):
            return None
        with np.errstate(all="ignore"):
            header = {
                "voxel_to_rasmm": affine.astype(np.float32),
                "dimensions": counts.astype(np.int16),
                "voxel_sizes": sizes.astype(np.float32),
                "voxel_order": order.encode("ascii"),
            }
            fit = np.isfinite(_to_trackvis(header)).all() and np.isfinite(np.linalg.inv(_to_trackvis(header))).all()
    except (KeyError, TypeError, ValueError, OverflowError, np.linalg.LinAlgError):
        return None
    return header if fit else None


def _flat(values: Any) -> Any:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _short(columns: Mapping[str, _Column], target: Path) -> list[str]:
    """Those that TRK holds: float32, names of up to 20 bytes (18 for several values), ten of them."""
    found = numbers({name: each.like for name, each in columns.items()}, target)
    named = {name for name, like in found.items() if len(name.encode("latin-1", "replace")) > 20 - 2 * (like.ndim > 1)}
    named |= {name for name in found if not name.isascii()}
    warn_names(sorted(named), target, "names have up to 20 letters without accents, 18 where there are several values")
    wide = {name for name in set(found) - named if not columns[name].fits}
    warn_names(sorted(wide), target, "float32, which is all that the format has, does not hold the values")
    left = [name for name in found if name not in named and name not in wide]
    warn_names(left[10:], target, "the format has ten at most")
    tell_of_booleans({name: found[name] for name in left[:10]}, target)
    for name in left[:10]:
        if not columns[name].exact:
            warn(target, f"the attribute {name!r} is rounded to float32, which is all that this format has")
    return left[:10]


def _fits(values: Any) -> bool:
    """Whether float32 holds integers exactly, and other numbers at all."""
    cast = values.astype(np.float32)
    if values.dtype.kind == "f":
        return not bool((np.isinf(cast) & ~np.isinf(values)).any())
    return bool(
        np.array_equal(cast.astype(np.float64), values.astype(np.float64)) and np.abs(cast).max(initial=0) < 2**53
    )
