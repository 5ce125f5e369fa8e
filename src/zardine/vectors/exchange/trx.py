"""TRX, files of streamlines, through trx-python."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.joined_files import JoinedFiles
from zardine.vectors.exchange.level_parts import OBJECT_ID, LevelParts, Plain, SeenLines
from zardine.vectors.exchange.losses import (
    LINES,
    bounds_of_nothing,
    check_rank,
    check_store,
    reading,
    storable,
    tell_of_metadata,
    warn_crs,
    warn_kind,
)
from zardine.vectors.exchange.part_files import FileWriter
from zardine.vectors.exchange.streamlines import as_space
from zardine.vectors.format.ragged import ranges, starts_of
from zardine.vectors.inspecting import read_groups
from zardine.vectors.outside import keeping, needing, numbers, tell_of_booleans, warn, warn_names
from zardine.vectors.polylines import write_spooled_lines
from zardine.vectors.results import Polylines
from zardine.vectors.storing.spools import Rows, forget
from zardine.vectors.storing.store import VectorStore

_PLACES = ("_offsets", "_lengths")

_FIXED = 64 * 2**20
"""Bytes that reading takes beside the lines, about."""

_OF_HEADER = ("VOXEL_TO_RASMM", "DIMENSIONS", "NB_VERTICES", "NB_STREAMLINES")
_NAME = "name"
"""The attribute of groups that says what they are called."""


FATES = fates(
    two_axes="-/refused",
    four_axes="-/refused",
    axis_names="-/told",
    units="-/told",
    crs="-/told",
    bounds="-/told",
    precision="kept/kept",
    integers="kept/kept",
    floats="kept/kept",
    booleans="-/told: as 0 and 1",
    text="-/told",
    several_values="kept/kept",
    missing_text="-/told",
    vertex_attributes="kept/kept",
    object_attributes="kept/kept",
    ids="-/kept: as the values 'object_id'",
    groups="kept/kept",
    colours="kept/kept",
    normals="kept/kept: as any attribute",
    metadata="kept/told: the space of the image as the table 'trk' of crs; other fields are told",
)


class TrxParts:
    """A TRX file as :class:`~zardine.vectors.exchange.file_parts.FileParts`: whole lines of about ``at_once`` vertices.

    Values of vertices and of streamlines become attributes, groups of streamlines groups with a ``name``, and the image
    ``crs``, as that of TRK files. Positions of 16 bits are stored as float32. What is compressed within the file is
    unpacked once in each process, to a temporary folder; anything else is mapped from the file. Raises
    :class:`DataError` for a file whose parts do not fit together, and for one without vertices unless ``options`` have
    ``bounds``.
    """

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source = source
        with reading(source):
            self._is_packed = not source.is_dir() and _is_packed(source)
        self._kept: Any = None
        try:
            with self._opened() as loaded:
                positions = loaded.streamlines._data
                starts, lengths = (np.array(getattr(loaded.streamlines, name), np.int64) for name in _PLACES)
                vertex = {name: each._data for name, each in loaded.data_per_vertex.items()}
                _check(source, positions, starts, lengths, vertex, dict(loaded.data_per_streamline))
                self._row = sum(int(each[:1].nbytes) for each in (positions, *vertex.values()))
            self._lines = len(starts)
            self._chosen = np.flatnonzero(lengths > 0)
        except BaseException:
            self.close()
            raise
        self._starts, self._lengths = starts[self._chosen], lengths[self._chosen]
        behind, cuts = np.cumsum(self._lengths), [0]
        self.vertices = int(behind[-1]) if len(behind) else 0
        while cuts[-1] < len(behind):
            before = int(behind[cuts[-1] - 1]) if cuts[-1] else 0
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(behind, before + at_once, side="right"))))
        self._cuts = cuts if len(cuts) > 1 else [0, 0]

    @property
    def outline(self) -> None:
        """Nothing: it is known at once where the parts are."""

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self._cuts) - 1

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one, and to know where the lines are."""
        most = max(int(self._lengths[a:b].sum()) for a, b in pairwise(self._cuts))
        return most * (4 * self._row + 64) + 64 * self._lines + _FIXED

    def read(self, number: int) -> Piece:
        """Return positions and attributes of the vertices of a part's lines."""
        first, last = self._cuts[number], self._cuts[number + 1]
        with self._opened() as loaded:
            positions = loaded.streamlines._data
            vertex = {name: each._data for name, each in loaded.data_per_vertex.items()}
            if not positions.size:
                return Piece(np.zeros((0, 3), np.float32), {})
            rows = ranges(self._starts[first:last], self._lengths[first:last])
            points = np.asarray(positions[rows])
            points = points if points.dtype in (np.float32, np.float64) else points.astype(np.float32)
            values = {name: _flat(np.asarray(each[rows])) for name, each in vertex.items()}
            for each in (positions, *vertex.values()):
                forget(each)
            return Piece(points, values)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all lines with their groups, and warn of what the store cannot hold."""
        _store((self,), path, whole, options, step, origin)

    def close(self) -> None:
        """Remove what was unpacked."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with needing(self._source):
            files: Any = import_module("trx.trx_file_memmap")
        with reading(self._source):
            loaded = self._kept if self._kept is not None else files.load(str(self._source))
            if self._is_packed:
                self._kept = loaded
            try:
                yield loaded
            finally:
                if self._kept is None:
                    loaded.close()


class JoinedTrx(JoinedFiles[TrxParts]):
    """TRX files of a folder as one: groups of one name are one group."""

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write the lines of all files."""
        self._tell()
        _store(self._files, path, whole, options, step, origin)


def _store(
    files: Sequence[TrxParts],
    path: StoreLike,
    whole: Whole,
    options: Mapping[str, Any],
    step: Step,
    origin: str | None,
) -> None:
    """Write the lines of files, one behind the other; what is known of the image is that of the first."""
    source = files[0]._source
    told = dict[str, npt.NDArray[Any]]()
    of_lines, groups = dict[str, list[Any]](), dict[str, list[Ints]]()
    of_groups: dict[str, dict[str, Any]] = {}
    lines, chosen, left = 0, list[Ints](), dict[str, None]()
    for number, each in enumerate(files):
        with each._opened() as loaded:
            table = {name: np.array(values)[each._chosen] for name, values in loaded.data_per_streamline.items()}
            if number and table.keys() != of_lines.keys():
                raise DataError(f"{each._source}: its lines have other attributes than those of {source}")
            left |= dict.fromkeys(repr(name) for name in loaded.header if name not in _OF_HEADER)
            told = told or {name: np.array(loaded.header[name]) for name in ("VOXEL_TO_RASMM", "DIMENSIONS")}
            for name, values in table.items():
                of_lines.setdefault(name, []).append(values)
            for name, rows in loaded.groups.items():
                members = np.array(rows).reshape(-1).astype(np.int64)
                if len(members) and int(members.max()) >= each._lines:
                    told_of = f"the group {name!r} names streamline {int(members.max())}"
                    raise DataError(f"{each._source}: {told_of}; there are {each._lines}")
                groups.setdefault(name, []).append(members + lines)
            for name, values in loaded.data_per_group.items():
                of_groups.setdefault(name, {key: np.array(value).reshape(-1) for key, value in values.items()})
        chosen.append(each._chosen + lines)
        lines += each._lines
    there = np.concatenate(chosen)
    whole.rename(storable({name: name for name in whole.columns}, source))
    if len(there) < lines:
        warn(source, f"{lines - len(there)} lines without vertices are left out")
    tell_of_metadata(source, list(left))
    columns = {name: _flat(np.concatenate(values)) for name, values in of_lines.items()}
    given: dict[str, Any] = {"object_attributes": storable(columns, source), "object_ids": there}
    if groups:
        given |= _groups_in({name: np.concatenate(each) for name, each in groups.items()}, of_groups, there, source)
    if not whole.count:
        given |= bounds_of_nothing(source, options)
    if "crs" not in options:
        given["crs"] = _space_in(told)
    lengths = np.concatenate([each._lengths for each in files])
    write_spooled_lines(path, whole, lengths, {**given, **options}, step, origin)


def _is_packed(source: Path) -> bool:
    """Whether something within the file is compressed."""
    with zipfile.ZipFile(source) as archive:
        return any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist())


def _check(source: Path, positions: Any, starts: Ints, lengths: Ints, vertex: Any, whole: Any) -> None:
    """Raise :class:`DataError` for parts that do not fit together."""
    count = len(starts)
    fits = len(lengths) == count and (lengths >= 0).all() and (starts >= 0).all()
    if (
        not fits
        or (positions.ndim != 2 and positions.size)
        or (count and int((starts + lengths).max()) > len(positions))
    ):
        raise DataError(f"{source}: streamlines name vertices that are not there: {len(positions)} are")
    for table, rows, what in ((vertex, len(positions), "vertices"), (whole, count, "streamlines")):
        for name, values in table.items():
            if len(values) != rows:
                raise DataError(f"{source}: {len(values)} values of {name!r} do not fit {rows} {what}")


def _look(path: StoreLike, target: Path, level: int, parts: LevelParts[Polylines]) -> dict[str, Any]:
    """See which attributes and names of groups a file can have. Empty lines are left out."""
    with needing(target):
        import_module("trx.trx_file_memmap")
    kept = ("vertex_attributes", "object_attributes", "group_attributes")
    warn_kind(check_store(path, target, level, LINES, kept, groups=True, crs=True), "streamline", target)
    check_rank(parts.rank, target)
    seen = SeenLines(Plain, in_order=parts.in_order)
    for part in parts:
        seen.look(part)
    groups = read_groups(path, level=level)
    found = {
        "of_lines": _named(seen.of_lines(target), target),
        "of_vertices": _named({name: look.like for name, look in seen.of_vertices.found(target).items()}, target),
        "groups": _names_of_groups(groups.attributes, len(groups.members), target),
    }
    _space_out(path, target)
    return {name: list(each) for name, each in found.items()}


def _write(path: StoreLike, place: Path, parts: LevelParts[Polylines], layout: Mapping[str, Any]) -> None:
    files: Any = import_module("trx.trx_file_memmap")
    sequences: Any = import_module("nibabel.streamlines.array_sequence")
    seen = SeenLines(Plain)
    positions, columns = Rows(), {name: Rows() for name in layout["of_vertices"]}
    for part in parts:
        seen.look(part)
        positions.add(part.positions)
        for name, rows in columns.items():
            rows.add(_as_numbers(part.attributes[name]))
    with keeping():  # it was told before
        of_lines, space = seen.of_lines(place), _space_out(path, place)
    order = np.argsort(seen.ids)
    ids = seen.ids[order]
    members = {
        name: order[np.searchsorted(ids, each[np.isin(each, ids)])].astype(np.uint32)
        for name, each in zip(layout["groups"], read_groups(path, level=parts.number).members, strict=True)
    }
    starts, total = starts_of(seen.lengths), int(seen.lengths.sum())
    offsets = starts[:-1].astype(np.uint64)
    trx = files.TrxFile(nb_vertices=total, nb_streamlines=len(ids))
    try:
        trx.streamlines = _sequence(sequences, positions.mapped(), offsets, seen.lengths)
        trx.data_per_vertex = {
            name: _sequence(sequences, each.mapped(), offsets, seen.lengths) for name, each in columns.items()
        }
        chosen = {OBJECT_ID: seen.ids, **of_lines}
        trx.data_per_streamline = {name: _in_rows(_as_numbers(chosen[name])) for name in layout["of_lines"]}
        trx.groups = members
        if space is not None:
            trx.header["VOXEL_TO_RASMM"] = np.asarray(space["voxel_to_rasmm"], np.float32)
            trx.header["DIMENSIONS"] = np.asarray(space["dimensions"], np.uint16)
        files.save(trx, str(place))
    finally:
        trx.close()


trx_out = FileWriter(_look, _write, ways=3)  # the file is a way, too
"""Lines as TRX."""


def _sequence(sequences: Any, data: npt.NDArray[Any], offsets: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Any:
    found = sequences.ArraySequence()
    found._data = _in_rows(data)
    found._offsets, found._lengths = offsets, lengths.astype(np.uint32)
    return found


def _in_rows(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as rows of one and more, of none as well."""
    return values if values.ndim == 2 else values[:, np.newaxis]


def _groups_in(groups: Mapping[str, Ints], of_groups: Mapping[str, Any], chosen: Ints, source: Path) -> Any:
    """Groups and their attributes, as far as all groups have them."""
    members = [np.intersect1d(rows, chosen) for rows in groups.values()]
    attributes: dict[str, Any] = {_NAME: list(groups)}
    for key in dict.fromkeys(key for table in of_groups.values() for key in table):
        values = [of_groups.get(name, {}).get(key) for name in groups]
        if key == _NAME or any(each is None or len(each) != len(values[0]) for each in values):
            warn(source, f"the values {key!r} of groups are left out: not all groups have them")
        else:
            attributes[key] = _flat(np.stack(values))
    return {"groups": members, "group_attributes": attributes}


def _names_of_groups(attributes: Mapping[str, Any], count: int, target: Path) -> list[str]:
    given = attributes.get(_NAME)
    others = [name for name in attributes if name != _NAME]
    warn_names(others, target, "of groups the names are kept")
    names = [] if given is None or given.ndim != 1 else [str(each) for each in given.tolist()]
    usable = len(set(names)) == count and all(each and not set("./\\\0") & set(each) for each in names)
    if count and not usable:
        warn(target, "groups are called group_0, group_1, ...: they have no attribute 'name', each another plain name")
    return names if usable else [f"group_{number}" for number in range(count)]


def _named(columns: Mapping[str, Any], target: Path) -> dict[str, Any]:
    """Columns of numbers whose names can be those of files."""
    found = numbers(columns, target)
    wrong = [name for name in found if set("./\\") & set(name)]
    warn_names(wrong, target, "names have no dots, which separate them from their types")
    found = {name: each for name, each in found.items() if name not in wrong}
    tell_of_booleans(found, target)
    return found


def _as_numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Truth values as 0 and 1, others as they are."""
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def _space_in(told: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any] | None:
    """What a file says of its image, as a table ``trk``; ``None`` where it says nothing."""
    affine, dimensions = told["VOXEL_TO_RASMM"].astype(np.float64), told["DIMENSIONS"]
    if affine.shape != (4, 4) or (np.array_equal(affine, np.eye(4)) and (dimensions == 1).all()):
        return None
    nibabel: Any = import_module("nibabel")
    order = [each or "?" for each in nibabel.aff2axcodes(affine)]
    table = {
        "voxel_to_rasmm": affine.tolist(),
        "dimensions": dimensions.tolist(),
        "voxel_sizes": nibabel.affines.voxel_sizes(affine).tolist(),
        "voxel_order": "".join(order),
    }
    return {"trk": table} if as_space(table) is not None else None


def _space_out(path: StoreLike, target: Path) -> dict[str, Any] | None:
    stored = VectorStore.open(path).root.block.get("crs")
    if not stored:
        return None
    space = as_space(stored.get("trk")) if isinstance(stored, Mapping) else None
    if space is None:
        warn_crs(target, "it has no usable 'trk' table")
    return space


def _flat(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


__all__ = ["JoinedTrx", "TrxParts", "trx_out"]
