"""Reading a level, or some of its cells, into :class:`~zardine.vectors.content.content.Content`.

What is stored is checked before it is used: a fragment that names rows which are not there, a manifest that names
fragments which are not there, attributes with too few rows raise :class:`~zardine.errors.CorruptionError`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun
from zardine.errors import CorruptionError, DataError, StoreError, UnsupportedError, ZardineError
from zardine.stores.file_seam import files_to_read
from zardine.vectors.content.columns import Column, native
from zardine.vectors.content.content import Content, Fragments
from zardine.vectors.format.fragment_index import FragmentIndex, decode_index, decode_ranges
from zardine.vectors.format.ragged import find_rows, ranges, starts_of, unique_rows
from zardine.vectors.reading.missing import missing_attribute
from zardine.vectors.reading.presence import (
    check_all,
    check_empty,
    check_rows_of_values,
    lost_cell,
    present_chunks,
    stored_chunks,
)
from zardine.vectors.reading.query import ALL, Names
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.cells_together import Cells
from zardine.vectors.storing.steady import read_alike
from zardine.vectors.storing.store import Level

Check: TypeAlias = Callable[[CellArray], None]

_BYTES_OF_A_FRAGMENT = 8
"""For each row, at most as a rule: where fragments have two rows and more."""
_WIDEST = 2**16
"""Bytes of a value: of text of a fixed length."""


def load_cells(
    level: Level,
    chunks: Ints | None = None,
    *,
    vertex_attributes: Names = None,
    fragment_attributes: Names = None,
    fragments: bool = True,
    trust_count: bool = True,
    vertices: CellArray | None = None,
) -> Content:
    """The rows of ``chunks`` (distinct; ``None``: of all), with the attributes that are named.

    ``vertices`` is their array, if it was opened before.
    ``fragments`` false leaves the fragment index out where it has nothing to say: where fragments cut cells in pieces.
    Raises :class:`~zardine.errors.CorruptionError` for what is damaged or lost: for chunks that anything names and that
    hold nothing, and, reading all, for fewer rows than the level counts (unless ``trust_count`` is false).
    """
    vertices = level.cells("vertices") if vertices is None else vertices
    if vertices is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    index = None
    if fragments or not level.document.tiles or chunks is None:
        index = level.cells("vertex_fragments")
    wanted = present_chunks(vertices, index) if chunks is None else unique_rows(chunks)[0]
    says_nothing = level.document.tiles and not fragments
    of_rows, of_parts = (
        {name: f"{family}/{name}" for name in names_in(level, family, names)}
        for family, names in (("vertex_attributes", vertex_attributes), ("fragment_attributes", fragment_attributes))
    )
    paths = *of_rows.values(), *of_parts.values()
    ahead = _ahead(level, vertices, None if says_nothing else index, paths, wanted)
    keys, cells = _read_present(vertices, wanted, ahead.get("vertices"))
    if len(keys) < len(wanted):
        present = find_rows(keys, wanted) >= 0
        ahead = {name: (array, read.take(present)) for name, (array, read) in ahead.items() if name != "vertices"}
    dtype = dtype_of(vertices, "float32")
    width = level.owner.root.ndim
    if chunks is not None:
        check_empty(level, vertices, index, chunks[find_rows(keys, chunks) < 0])
    elif int(cells.lengths.sum()) != level.document.vertex_count * width * dtype.itemsize:
        found = stored_chunks(vertices)
        if found is not None and len(found) != len(wanted):
            keys, cells = _read_present(vertices, unique_rows(found)[0])
            ahead = {}
    counts = _row_counts(cells, width * dtype.itemsize, keys, vertices)
    starts = starts_of(counts)
    if chunks is None and trust_count:
        check_all(level, vertices, index, keys, int(starts[-1]))
    stored = np.frombuffer(cells.data, dtype).reshape(-1, width)
    positions = stored.astype(native(dtype), copy=False)
    if says_nothing:
        index = None
    check = partial(check_rows_of_values, vertices, keys, chunks)
    columns = [partial(stored_column, level, each, keys, check, ahead.get(each)) for each in paths]
    of_indexes = partial(_indexes_of, index, keys, ahead.get("vertex_fragments"))
    indexes, *stored_columns = begun(level.owner.store, [of_indexes, *columns])
    found_fragments = _one_each(starts) if index is None else _fragments(index, indexes(), keys, counts, starts)
    content = Content(keys, starts, positions, found_fragments)
    in_turn = iter(stored_columns)
    per_row = {name: row_column(content, *next(in_turn)()) for name in of_rows}
    counts = np.diff(found_fragments.before)
    per_part = {}
    for name in of_parts:
        array, cells = next(in_turn)()
        per_part[name] = column_of_cells(array, cells, keys, counts, counts)
    if vertex_attributes is not None:
        per_row |= _chunk_attribute(level, keys, starts, vertex_attributes)
    return replace(content, vertex_attributes=per_row, fragment_attributes=per_part)


def dtype_of(array: CellArray, default: str | None = None, *, text: bool = False) -> np.dtype[Any]:
    """The data type of the values in its cells, little endian; ``default``: what they are where no document says.

    ``text``: that of text of a fixed length is one, too, as zarr-vectors stores it beside the usual dictionaries.
    Raises :class:`~zardine.errors.CorruptionError` for types that cells cannot have, and where there is no default;
    :class:`~zardine.errors.UnsupportedError` for dates and complex numbers.
    """
    name = array.attributes.get("dtype", default)
    if name is None:
        raise CorruptionError("dtype is missing: the values cannot be told", array=array.array.path)
    try:
        dtype: np.dtype[Any] = np.dtype(name).newbyteorder("<")
    except (TypeError, ValueError, SyntaxError):  # NumPy parses some names as Python does numbers
        dtype = np.dtype(object)
    if dtype.kind in "cmM":
        raise UnsupportedError(f"{array.array.path} has values of dtype {name!r}: name other attributes=")
    if dtype.kind not in ("iufbUS" if text else "iufb") or not 0 < dtype.itemsize <= _WIDEST:
        raise CorruptionError(f"dtype {name!r} is none that cells can have", array=array.array.path)
    return dtype


def _ahead(
    level: Level, vertices: CellArray, index: CellArray | None, paths: Sequence[str], keys: Ints
) -> dict[str, tuple[CellArray, Cells]]:
    """The cells of vertices, fragment index and attributes, read together; nothing where each is read by itself."""
    store = level.owner.store
    if vertices.attributes.get("encoding", "raw") != "raw":
        return {}
    opened = {"vertices": vertices, **({} if index is None else {"vertex_fragments": index})}
    if files_to_read(store):
        found = {path: level.cells(path) for path in paths}
        arrays = opened | {path: array for path, array in found.items() if array is not None}
        cells = read_alike(list(arrays.values()), keys)
        return {} if cells is None else dict(zip(arrays, zip(arrays.values(), cells, strict=True), strict=True))
    if not is_far(store):
        return {}
    names = [*opened, *paths]

    rows = _usual_rows(level, vertices)

    def read(name: str) -> tuple[CellArray, Cells] | None:
        array = opened.get(name) or level.cells(name)
        if array is None:
            return None
        nbytes = _BYTES_OF_A_FRAGMENT
        if name != "vertex_fragments":
            shape = (level.owner.root.ndim,) if array is vertices else row_shape_of(array)
            nbytes = dtype_of(array, "float32", text=True).itemsize * prod(shape)
        sized = array if rows is None else array.expecting(rows * nbytes)
        return array, sized.read_together(keys)

    together = {}
    for name, result in zip(names, begun(store, [partial(read, name) for name in names]), strict=True):
        try:
            together[name] = result()
        except StoreError:
            raise  # asked again it would take as long
        except ZardineError:
            continue  # who wants it reads it by itself, in its turn, and says what is wrong
    return {name: each for name, each in together.items() if each is not None}


def _usual_rows(level: Level, vertices: CellArray) -> float | None:
    """How many rows the cells have on average; ``None`` where it is not known which there are."""
    listed = vertices.listed()
    return min(level.document.vertex_count, 2**53) / len(listed) if listed is not None and len(listed) else None


def _read_present(vertices: CellArray, keys: Ints, ahead: tuple[CellArray, Cells] | None = None) -> tuple[Ints, Cells]:
    """Those of ``keys``, which ascend, that have cells, and these; ``ahead``: if they were read before."""
    if vertices.attributes.get("encoding", "raw") != "raw":
        encoding = vertices.attributes["encoding"]
        raise CorruptionError(f"vertices in the encoding {encoding!r} cannot be read", array=vertices.array.path)
    cells = vertices.read_together(keys) if ahead is None else ahead[1]
    filled = cells.lengths > 0
    if filled.all():
        return keys, cells
    named = vertices.lists(keys[~filled])
    if named is not None and named.any():
        raise lost_cell(vertices, keys[~filled][named][0])
    return keys[filled], cells.filled()


def _row_counts(cells: Cells, size: int, keys: Ints, array: CellArray) -> Ints:
    lengths = cells.lengths
    if (lengths % size).any():
        wrong = int(np.flatnonzero(lengths % size)[0])
        reason = f"a cell of {int(lengths[wrong])} bytes holds no whole rows of {size} bytes"
        raise CorruptionError(reason, array=array.array.path, chunk=tuple(keys[wrong].tolist()))
    return lengths // size


def _one_each(starts: Ints) -> Fragments:
    """One fragment for each cell."""
    return Fragments.tiling(np.arange(len(starts)), starts)


def _indexes_of(index: CellArray | None, keys: Ints, ahead: tuple[CellArray, Cells] | None) -> Cells:
    if ahead is not None:
        return ahead[1]
    return Cells.of([]) if index is None else index.read_together(keys)


def _fragments(index: CellArray, stored: Cells, keys: Ints, counts: Ints, starts: Ints) -> Fragments:
    plain = decode_ranges(stored.data, stored.lengths, counts)
    if plain is not None:
        first = plain.first + np.repeat(starts[:-1], plain.numbers)
        rows = np.arange(int(starts[-1])) if plain.tile else ranges(first, plain.counts)
        return Fragments(starts_of(plain.numbers), starts_of(plain.counts), rows, plain.tile)
    decoded: list[FragmentIndex] = []
    for chunk, blob, count in zip(keys, stored.apart(), counts.tolist(), strict=True):
        try:
            decoded.append(decode_index(blob, count))
        except DataError as error:
            raise error.at(array=index.array.path, chunk=tuple(chunk.tolist())) from None
    none = np.zeros(0, np.int64)
    lengths = np.concatenate([none, *(each.counts for each in decoded)])
    tile = all(each.tiles(count) for each, count in zip(decoded, counts.tolist(), strict=True))
    if tile:
        rows = np.arange(int(starts[-1]))
    else:
        rows = np.concatenate([none, *(each.rows for each in decoded)])
        rows += np.repeat(starts[:-1], [len(each.rows) for each in decoded])
    return Fragments(starts_of([len(each.counts) for each in decoded]), starts_of(lengths), rows, tile)


def names_in(level: Level, family: str, wanted: Names) -> list[str]:
    """The attributes of a family that have arrays of their own, of those that are ``wanted``."""
    if wanted is None:
        return []
    if wanted == ALL:
        return level.names(family)
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    chunk_attribute = level.document.block.get("chunk_attribute_name")
    return [name for name in names if name != chunk_attribute]


def row_column(content: Content, array: CellArray, cells: Cells) -> Column:
    """A vertex attribute of ``content`` out of its cells: rows that no fragment names may lack a value."""
    counts = np.diff(content.row_starts)
    needed = counts
    if not content.fragments.tile:
        seen = np.flatnonzero(content.visible())
        cell = np.searchsorted(content.row_starts, seen, side="right") - 1
        needed = np.zeros(len(counts), np.int64)
        np.maximum.at(needed, cell, seen - content.row_starts[cell] + 1)
    return column_of_cells(array, cells, content.keys, counts, needed)


def stored_column(
    level: Level, relative: str, keys: Ints, check: Check, ahead: tuple[CellArray, Cells] | None = None
) -> tuple[CellArray, Cells]:
    """The array of an attribute, checked by ``check``, and its cells. Raises :class:`SelectionError` where none is.

    ``ahead``: both, where they were read before.
    """
    if ahead is not None:
        check(ahead[0])
        return ahead
    array = level.cells(relative)
    if array is None:
        raise missing_attribute(level, relative)
    check(array)
    return array, array.read_together(keys)


def column_of_cells(array: CellArray, cells: Cells, keys: Ints, counts: Ints, needed: Ints) -> Column:
    """An attribute with ``counts[c]`` rows in the cell of ``keys[c]``, of which the first ``needed[c]`` must be there.

    Raises :class:`~zardine.errors.CorruptionError` where there are fewer, or more.
    """
    dtype = dtype_of(array, text=True)
    shape = row_shape_of(array)
    found = _row_counts(cells, dtype.itemsize * prod(shape), keys, array)
    if not shape and (found > counts).any():
        shape = _channels_found(found, counts)
        found = found // prod(shape)
    if ((found < needed) | (found > counts)).any():
        wrong = int(np.flatnonzero((found < needed) | (found > counts))[0])
        raise CorruptionError(
            f"{int(found[wrong])} attribute values for {int(counts[wrong])} rows: they no longer belong together",
            array=array.array.path,
            chunk=tuple(keys[wrong].tolist()),
        )
    values: npt.NDArray[Any] = np.frombuffer(cells.data, dtype).reshape(-1, *shape)
    if (found != counts).any():
        before = starts_of(found)[:-1]
        whole = np.zeros((int(counts.sum()), *shape), dtype)
        whole[ranges(starts_of(counts)[:-1], found)] = values[ranges(before, found)]
        values = whole
    return as_column(array, values)


def _channels_found(found: Ints, counts: Ints) -> tuple[int, ...]:
    """The shape of rows of several values: zarr-vectors says of them, except those of points, that they have one."""
    filled = counts > 0
    each = int(found[filled][0] // counts[filled][0]) if filled.any() else 1
    return (each,) if each > 1 and (found == each * counts).all() else ()


def read_column(array: CellArray, keys: Ints, counts: Ints, needed: Ints) -> Column:
    """An attribute, read; see :func:`column_of_cells`."""
    return column_of_cells(array, array.read_together(keys), keys, counts, needed)


def row_shape_of(array: CellArray) -> tuple[int, ...]:
    """The shape of the values of a row. Raises :class:`~zardine.errors.CorruptionError`."""
    if "row_shape" not in array.attributes:
        raise CorruptionError("row_shape is missing: the values cannot be told", array=array.array.path)
    shape = array.attributes["row_shape"] or ()
    good = isinstance(shape, list | tuple) and all(type(each) is int and 0 < each < 2**31 for each in shape)
    if not good or prod(shape) >= 2**31:
        raise CorruptionError(f"row_shape {shape!r} is none that rows can have", array=array.array.path)
    return tuple(shape)


def as_column(array: CellArray, values: npt.NDArray[Any]) -> Column:
    """Values that were read of an attribute, with what its document says of them. Raises :class:`CorruptionError`."""
    attributes = array.attributes
    if values.dtype.kind in "US":
        return _text_column(array, values)
    kept = ("ordered", "channel_names", "unit", "description", "declared_categorical")
    details = {name: attributes[name] for name in kept if name in attributes}
    if attributes.get("encoding") != "dictionary":
        return Column(values, details=details)
    categories, missing = attributes.get("categories") or (), attributes.get("_FillValue")
    good = isinstance(categories, list | tuple) and all(isinstance(each, str) for each in categories)
    if not good or (missing is not None and type(missing) is not int) or values.dtype.kind not in "iu":
        raise CorruptionError("the categories of an attribute are damaged", array=array.array.path)
    return Column(values, tuple(categories), missing, details)


def _text_column(array: CellArray, values: npt.NDArray[Any]) -> Column:
    try:
        if values.dtype.kind == "U" and values.size and int(values.reshape(-1).view("<u4").max()) > sys.maxunicode:
            raise ValueError("no character")
        distinct, codes = np.unique(values, return_inverse=True)
        texts = [each.decode() if isinstance(each, bytes) else each for each in distinct.tolist()]
    except (ValueError, UnicodeError):
        raise CorruptionError("the text of an attribute is damaged", array=array.array.path) from None
    return Column(codes.reshape(values.shape).astype(np.int32), tuple(texts))


def _chunk_attribute(level: Level, keys: Ints, starts: Ints, wanted: Names) -> dict[str, Column]:
    """The attribute that chunks are divided by, which has no array of its own."""
    name, values = (level.document.block.get(f"chunk_attribute_{each}") for each in ("name", "values"))
    if name is None or not isinstance(values, list) or (wanted != ALL and wanted is not None and name not in wanted):
        return {}
    codes = np.repeat(keys[:, 0], np.diff(starts))
    text = all(isinstance(each, str) for each in values)
    known = text or all(isinstance(each, bool | int | float) for each in values)
    inside = not len(codes) or 0 <= codes.min() <= codes.max() < len(values)
    if not isinstance(name, str) or not known or keys.shape[1] != level.owner.root.ndim + 1 or not inside:
        raise CorruptionError(f"chunk_attribute_values does not name all values of {name!r}", array=level.path)
    if text:
        return {name: Column(codes.astype("<i8"), tuple(values))}
    return {name: Column(np.asarray(values)[codes])}
