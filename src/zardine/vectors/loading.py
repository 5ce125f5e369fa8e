"""Reading a level, or some of its cells, into :class:`~zardine.vectors.content.Content`.

What is stored is checked before it is used: a fragment that names rows which are not there, a manifest that names
fragments which are not there, attributes with too few rows raise :class:`~zardine.errors.CorruptionError`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import CorruptionError, DataError, SelectionError
from zardine.vectors.cell_arrays import CellArray, child
from zardine.vectors.columns import Column, native
from zardine.vectors.content import Content, Fragments
from zardine.vectors.fragment_index import FragmentIndex, decode_index
from zardine.vectors.level_access import Level
from zardine.vectors.ragged import Ints, find_rows, ranges, starts_of, unique_rows

ALL = "all"
Names = Collection[str] | str | None
"""Names of attributes, ``"all"``, or ``None`` for none."""


def load_cells(
    level: Level,
    chunks: Ints | None = None,
    *,
    vertex_attributes: Names = None,
    fragment_attributes: Names = None,
    fragments: bool = True,
) -> Content:
    """The rows of ``chunks`` (distinct; ``None``: of all), with the attributes that are named.

    ``fragments`` false leaves the fragment index out where it has nothing to say: where fragments cut cells in pieces.
    """
    vertices = level.cells("vertices")
    if vertices is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    index = None
    if fragments or not level.document.tiles or chunks is None:
        index = level.cells("vertex_fragments")
    known = chunks is not None
    wanted = present_chunks(vertices, index) if chunks is None else chunks
    keys, cells = _read_present(vertices, wanted)
    dtype = dtype_of(vertices)
    width = level.owner.root.ndim
    if not known and sum(map(len, cells)) != level.document.vertex_count * width * dtype.itemsize:
        found = vertices.found()
        if len(found) != len(wanted):
            keys, cells = _read_present(vertices, found)
    counts = _row_counts(cells, width * dtype.itemsize, keys, vertices)
    starts = starts_of(counts)
    stored = np.frombuffer(b"".join(cells), dtype).reshape(-1, width)
    positions = stored.astype(native(dtype), copy=False)
    tile = level.document.tiles and not fragments
    found_fragments = _one_each(starts) if tile or index is None else _fragments(index, keys, counts, starts)
    content = Content(keys, starts, positions, found_fragments)
    per_row = {
        name: _row_column(level, f"vertex_attributes/{name}", content)
        for name in _names(level, "vertex_attributes", vertex_attributes)
    }
    per_part = {
        name: _column(level, f"fragment_attributes/{name}", keys, np.diff(found_fragments.before))
        for name in _names(level, "fragment_attributes", fragment_attributes)
    }
    if vertex_attributes is not None:
        per_row |= _chunk_attribute(level, keys, starts, vertex_attributes)
    return content.changed(vertex_attributes=per_row, fragment_attributes=per_part)


def present_chunks(vertices: CellArray, index: CellArray | None) -> Ints:
    """The chunks with rows, ascending: those listed, or those found where the lists are missing or contradict."""
    listed = vertices.listed()
    names = vertices.attributes.get("nonempty_chunks")
    if listed is None or (index is not None and index.attributes.get("nonempty_chunks") != names):
        listed = vertices.found()
        if index is not None:
            _check_not_lost(vertices, index, listed)
    if not vertices.inside(listed).all():
        off = listed[~vertices.inside(listed)][0].tolist()
        raise CorruptionError(f"nonempty_chunks names {off}, which is off the grid", array=vertices.array.path)
    return unique_rows(listed)[0]


def dtype_of(array: CellArray) -> np.dtype[Any]:
    """The data type of the values in its cells, little endian. Raises :class:`~zardine.errors.CorruptionError`."""
    name = array.attributes.get("dtype", "float32")
    try:
        dtype: np.dtype[Any] = np.dtype(name)
        dtype = np.dtype(f"<{dtype.kind}{dtype.itemsize}")
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "iufb":
        raise CorruptionError(f"dtype {name!r} is none that cells can have", array=array.array.path)
    return dtype


def _check_not_lost(vertices: CellArray, index: CellArray, present: Ints) -> None:
    """Raise where the index names rows of cells that are gone."""
    more = unique_rows(index.found())[0]
    more = more[find_rows(present, more) < 0]
    for chunk, blob in zip(more, index.read(more), strict=True):
        try:
            lost = decode_index(blob, 2**31).rows if blob else ()
        except DataError as error:
            raise error.at(array=index.array.path, chunk=tuple(chunk.tolist())) from None
        if len(lost):
            reason = f"{len(lost)} rows that the fragment index names are lost; repair makes do with what is left"
            raise CorruptionError(reason, array=vertices.array.path, chunk=tuple(chunk.tolist()))


def _read_present(vertices: CellArray, wanted: Ints) -> tuple[Ints, list[bytes]]:
    if vertices.attributes.get("encoding", "raw") != "raw":
        encoding = vertices.attributes["encoding"]
        raise CorruptionError(f"vertices in the encoding {encoding!r} cannot be read", array=vertices.array.path)
    keys = unique_rows(wanted)[0] if len(wanted) else wanted
    cells = vertices.read(keys)
    if all(cells):
        return keys, cells
    filled = np.fromiter(map(bool, cells), np.bool_, len(cells))
    listed = vertices.listed()
    if listed is not None:
        lost = keys[~filled][find_rows(listed, keys[~filled]) >= 0]
        if len(lost):
            reason = "nonempty_chunks names this chunk, and nothing is stored for it"
            raise CorruptionError(reason, array=vertices.array.path, chunk=tuple(lost[0].tolist()))
    return keys[filled], [cell for cell in cells if cell]


def _row_counts(cells: list[bytes], size: int, keys: Ints, array: CellArray) -> Ints:
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    if (lengths % size).any():
        wrong = int(np.flatnonzero(lengths % size)[0])
        reason = f"a cell of {int(lengths[wrong])} bytes holds no whole rows of {size} bytes"
        raise CorruptionError(reason, array=array.array.path, chunk=tuple(keys[wrong].tolist()))
    return lengths // size


def _one_each(starts: Ints) -> Fragments:
    """One fragment for each cell."""
    return Fragments(np.arange(len(starts)), starts, np.arange(int(starts[-1])), True)


def _fragments(index: CellArray, keys: Ints, counts: Ints, starts: Ints) -> Fragments:
    decoded: list[FragmentIndex] = []
    for chunk, blob, count in zip(keys, index.read(keys), counts.tolist(), strict=True):
        try:
            decoded.append(decode_index(blob, count))
        except DataError as error:
            raise error.at(array=index.array.path, chunk=tuple(chunk.tolist())) from None
    none = np.zeros(0, np.int64)
    lengths = np.concatenate([none, *(each.counts for each in decoded)])
    rows = np.concatenate([none, *(each.rows for each in decoded)])
    rows = rows + np.repeat(starts[:-1], [len(each.rows) for each in decoded])
    tile = all(each.all_ranges for each in decoded) and bool(
        len(rows) == starts[-1] and (rows == np.arange(len(rows))).all()
    )
    return Fragments(starts_of([len(each.counts) for each in decoded]), starts_of(lengths), rows, tile)


def _names(level: Level, family: str, wanted: Names) -> list[str]:
    if wanted is None:
        return []
    if wanted == ALL:
        return level.names(family)
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    chunk_attribute = level.document.block.get("chunk_attribute_name")
    return [name for name in names if name != chunk_attribute]


def _row_column(level: Level, relative: str, content: Content) -> Column:
    """A vertex attribute: rows that no fragment names may lack a value."""
    counts = np.diff(content.row_starts)
    needed = counts
    if not content.fragments.tile:
        seen = np.flatnonzero(content.visible())
        cell = np.searchsorted(content.row_starts, seen, side="right") - 1
        needed = np.zeros(len(counts), np.int64)
        np.maximum.at(needed, cell, seen - content.row_starts[cell] + 1)
    return _column(level, relative, content.keys, counts, needed)


def _column(level: Level, relative: str, keys: Ints, counts: Ints, needed: Ints | None = None) -> Column:
    array = level.cells(relative)
    if array is None:
        raise SelectionError(f"{level.owner.name} has no attribute {relative!r} at level {level.document.level}")
    return read_column(array, keys, counts, counts if needed is None else needed)


def read_column(array: CellArray, keys: Ints, counts: Ints, needed: Ints) -> Column:
    """An attribute with ``counts[c]`` rows in the cell of ``keys[c]``, of which the first ``needed[c]`` must be there.

    Raises :class:`~zardine.errors.CorruptionError` where there are fewer.
    """
    dtype = dtype_of(array)
    shape = tuple(array.attributes.get("row_shape") or ())
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if size <= 0:
        raise CorruptionError(f"row_shape {shape} is none that rows can have", array=array.array.path)
    cells = array.read(keys)
    found = _row_counts(cells, size, keys, array)
    if (found < needed).any():
        wrong = int(np.flatnonzero(found < needed)[0])
        raise CorruptionError(
            f"{int(found[wrong])} attribute values for {int(counts[wrong])} rows: they no longer belong together",
            array=array.array.path,
            chunk=tuple(keys[wrong].tolist()),
        )
    values: npt.NDArray[Any] = np.frombuffer(b"".join(cells), dtype).reshape(-1, *shape)
    if (found != counts).any():
        before = starts_of(found)[:-1]
        whole = np.zeros((int(counts.sum()), *shape), dtype)
        kept = np.minimum(found, counts)
        whole[ranges(starts_of(counts)[:-1], kept)] = values[ranges(before, kept)]
        values = whole
    return _as_column(values, array.attributes)


def _as_column(values: npt.NDArray[Any], attributes: Mapping[str, Any]) -> Column:
    kept = ("ordered", "channel_names", "unit", "description", "declared_categorical")
    details = {name: attributes[name] for name in kept if name in attributes}
    if attributes.get("encoding") != "dictionary":
        return Column(values, details=details)
    return Column(values, tuple(attributes.get("categories") or ()), attributes.get("_FillValue"), details)


def _chunk_attribute(level: Level, keys: Ints, starts: Ints, wanted: Names) -> dict[str, Column]:
    """The attribute that chunks are divided by, which has no array of its own."""
    name, values = (level.document.block.get(f"chunk_attribute_{each}") for each in ("name", "values"))
    if name is None or not isinstance(values, list) or (wanted != ALL and wanted is not None and name not in wanted):
        return {}
    codes = np.repeat(keys[:, 0], np.diff(starts))
    if all(isinstance(each, str) for each in values):
        return {name: Column(codes.astype("<i8"), tuple(values))}
    return {name: Column(np.asarray(values)[codes])}
