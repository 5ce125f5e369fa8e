"""Vertices of whole objects that are asked for by id, out of cells in local folders: their rows alone leave the cells.

What is read and checked is the same as for all rows of these cells. The usual case only: fragments that are ranges, no
condition on vertices, values that are as many as vertices. All else, and whatever is wrong, is left to
:mod:`~zardine.vectors.reading.answer`, which says what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.content.columns import Column, native
from zardine.vectors.format.fragment_index import decode_ranges
from zardine.vectors.format.ragged import find_rows, starts_of
from zardine.vectors.reading.answer import Asked
from zardine.vectors.reading.loading import as_column, dtype_of, names_in, row_shape_of
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.cells_together import Cells, is_read_together
from zardine.vectors.storing.steady import find_alike

_MOST_TIMES: Final = 2
"""The rows that objects share with each other are at most so many times those of their cells."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeObjects:
    """Vertices of some objects, one after the other, and where those of each start."""

    manifests: Manifests
    positions: npt.NDArray[Any]
    starts: Ints
    vertex_attributes: dict[str, Column]


def read_whole(asked: Asked) -> WholeObjects | None:
    """Read the objects that were ``asked`` for by id or group; ``None`` where that is to be done in another way."""
    level, manifests, vertices, chunks = asked.level, asked.chosen, asked.vertices, asked.chunks
    if manifests is None or vertices is None or chunks is None or asked.chooses:
        return None
    if not is_read_together(vertices.array):  # before anything else is asked for, which may be far away
        return None
    if (
        level.document.block.get("chunk_attribute_name") is not None
        or vertices.attributes.get("encoding", "raw") != "raw"
    ):
        return None
    names = names_in(level, "vertex_attributes", asked.query.names)
    index, *columns = (
        level.cells(path) for path in ("vertex_fragments", *(f"vertex_attributes/{name}" for name in names))
    )
    values = [each for each in columns if each is not None]
    if index is None or len(values) < len(names):
        return None
    forms = [(dtype_of(vertices, "float32"), (level.owner.root.ndim,)), *map(_form_of, values)]
    if any(dtype.kind not in "iufb" for dtype, _ in forms):
        return None
    cells = find_alike([vertices, index, *values], chunks)
    if cells is None:
        return None
    sizes = [dtype.itemsize * prod(shape) for dtype, shape in forms]
    of_rows = [0, *range(2, 2 + len(values))]
    lengths = [cells.lengths(which) for which in of_rows]
    counts = lengths[0] // sizes[0]
    if not counts.all() or any((each != counts * size).any() for each, size in zip(lengths, sizes, strict=True)):
        return None
    spans = _spans_of(manifests, chunks, counts, cells.read(1))
    found = None if spans is None else cells.read_parts(of_rows, sizes, spans)
    if spans is None or found is None:
        return None
    arrays = [np.frombuffer(data, dtype).reshape(-1, *shape) for data, (dtype, shape) in zip(found, forms, strict=True)]
    per_row = {name: as_column(*each) for name, each in zip(names, zip(values, arrays[1:], strict=True), strict=True)}
    positions = arrays[0].astype(native(arrays[0].dtype), copy=False)
    return WholeObjects(manifests, positions, starts_of(spans[:, 2])[manifests.starts], per_row)


def _form_of(array: CellArray) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The data type of the values of an attribute, and the shape of those of a row."""
    return dtype_of(array, text=True), row_shape_of(array)


def _spans_of(manifests: Manifests, chunks: Ints, counts: Ints, indexes: list[Cells] | None) -> Ints | None:
    """Of each fragment of the objects the number of its cell, its first row, and how many rows: ``(F, 3)``.

    ``counts``: of the rows of each cell.
    """
    if indexes is None:
        return None
    fragments = decode_ranges(indexes[0].data, indexes[0].lengths, counts)
    if fragments is None:
        return None
    cell, number = find_rows(chunks, manifests.chunks), manifests.fragments
    if (cell < 0).any() or (number < 0).any() or (number >= fragments.numbers[cell]).any():
        return None
    place = starts_of(fragments.numbers)[cell] + number
    spans = np.stack([cell, fragments.first[place], fragments.counts[place]], axis=1)
    return None if spans[:, 2].sum() > _MOST_TIMES * counts.sum() else spans


__all__ = ["WholeObjects", "read_whole"]
