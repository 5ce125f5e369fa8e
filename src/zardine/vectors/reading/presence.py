"""Which chunks of a level hold anything, and what may not be missing.

These say that a chunk holds vertices: ``nonempty_chunks`` of the vertices, of the fragment index and of attributes, the
index itself, and manifests of objects; and the level's ``vertex_count`` says how many there are in all. What one of
them names and what is not stored is lost: an error, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError, UnsupportedError
from zardine.vectors.format.cell_documents import NONEMPTY
from zardine.vectors.format.fragment_index import decode_index
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.storing.cell_bytes import find_cells
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.store import Level

_ADVICE = "repair(drop_lost=True) makes do with what is left"


def present_chunks(vertices: CellArray, index: CellArray | None) -> Ints:
    """The chunks with rows, ascending: those listed, or those found where the lists are missing or contradict."""
    listed = vertices.listed()
    if listed is None or (index is not None and not same_list(vertices, index)):
        names = vertices.listed()
        listed = vertices.found()
        if names is not None:
            check_stored(vertices, names, listed)
        if index is not None:
            check_not_lost(vertices, index, listed)
    check_on_grid(vertices, listed)
    return unique_rows(listed)[0]


def check_on_grid(array: CellArray, listed: Ints) -> None:
    """Raise where a chunk that is listed is not on the grid."""
    inside = array.inside(listed)
    if not inside.all():
        off = tuple(listed[~inside][0].tolist())
        reason = f"{NONEMPTY} names {list(off)}, which is off the grid of {array.array.shape} cells; {_ADVICE}"
        raise CorruptionError(reason, array=array.array.path, chunk=off)


def check_whole(array: CellArray) -> Ints:
    """Return the chunks whose cells are stored: all that are listed, and all that are on the grid.

    Raise where a cell that is listed is not stored, or not on the grid; without a list, where one is off the grid.

    What is stored then is not what was, and no list may be made of it.
    """
    listed = array.listed()
    if listed is None:
        found: Ints = find_cells(array.array, off_grid=True) + np.asarray(array.origin)
        check_on_grid(array, found)
    else:
        check_on_grid(array, listed)
        found = array.found()
        check_stored(array, listed, found)
    return found


def stored_chunks(array: CellArray) -> Ints | None:
    """The chunks whose cells are stored; ``None`` where the store, a web server, does not tell."""
    try:
        return array.found()
    except UnsupportedError:
        return None


def same_list(a: CellArray, b: CellArray) -> bool:
    """Whether two arrays name the same chunks, in whatever order."""
    first, second = a.attributes.get(NONEMPTY), b.attributes.get(NONEMPTY)
    if first is second or first == second:
        return True
    if not isinstance(first, list | tuple) or not isinstance(second, list | tuple):
        return False
    return sorted(map(str, first)) == sorted(map(str, second))


def check_stored(array: CellArray, listed: Ints, found: Ints) -> None:
    """Raise where a chunk that is listed is not among those that are stored."""
    lost = listed[find_rows(unique_rows(found)[0], listed) < 0]
    if len(lost):
        raise lost_cell(array, lost[0])


def lost_cell(array: CellArray, chunk: Ints) -> CorruptionError:
    """The error for a chunk that ``nonempty_chunks`` names and that has no cell."""
    reason = f"{NONEMPTY} names this chunk, and nothing is stored for it: the cell is lost; {_ADVICE}"
    return CorruptionError(reason, array=array.array.path, chunk=tuple(chunk.tolist()))


def check_not_lost(vertices: CellArray, index: CellArray, present: Ints) -> None:
    """Raise where the index names rows of cells that are gone."""
    more = unique_rows(index.found())[0]
    _check_rows_of(vertices, index, more[find_rows(present, more) < 0])


def check_all(level: Level, vertices: CellArray, index: CellArray | None, keys: Ints, rows: int) -> None:
    """Raise where a whole level, of which the cells of ``keys`` were read, has fewer rows than it says."""
    if rows >= level.document.vertex_count:
        return
    if index is not None:
        check_not_lost(vertices, index, keys)
    reason = f"{rows} of the {level.document.vertex_count} vertices of the level are stored: the others are lost"
    raise CorruptionError(f"{reason}; {_ADVICE}", array=vertices.array.path)


def check_empty(level: Level, vertices: CellArray, index: CellArray | None, empty: Ints) -> None:
    """Raise where one of the chunks that were asked for, and have no vertices, is said to have some.

    Where the lists of vertices and of the fragment index agree, they are believed; that costs no request.
    """
    if len(empty) == 0:
        return
    listed = vertices.listed()
    if listed is None or len(listed) == 0:
        found = stored_chunks(vertices)
        if level.document.vertex_count and (found is None or len(found) == 0):
            reason = f"none of the {level.document.vertex_count} vertices of the level are stored: they are lost"
            raise CorruptionError(f"{reason}; {_ADVICE}", array=vertices.array.path)
    index = level.cells("vertex_fragments") if index is None else index
    if index is None or (listed is not None and same_list(vertices, index)):
        return
    _check_rows_of(vertices, index, empty[index.inside(empty)])


def check_rows_of_values(vertices: CellArray, keys: Ints, asked: Ints | None, values: CellArray) -> None:
    """Raise where an attribute lists one of the chunks that were ``asked`` for (``None``: all) and have no rows."""
    listed = None if same_list(values, vertices) else values.listed()
    if listed is None:
        return
    more = listed[find_rows(keys, listed) < 0]
    if asked is not None:
        more = more[find_rows(asked, more) >= 0]
    if len(more):
        reason = f"{NONEMPTY} of an attribute names this chunk, and it has no vertices: they are lost; {_ADVICE}"
        raise CorruptionError(reason, array=values.array.path, chunk=tuple(more[0].tolist()))


def check_objects(level: Level, chunks: Ints, asked: Ints | None) -> None:
    """Raise where an object refers to one of ``chunks``, which hold nothing; only of those ``asked`` for, if given."""
    if asked is not None:
        chunks = chunks[find_rows(unique_rows(asked)[0], chunks) >= 0]
    if len(chunks):
        place = child(level.path, "object_index/manifests")
        reason = f"an object refers to chunk {chunks[0].tolist()}, which holds nothing: that is lost; {_ADVICE}"
        raise CorruptionError(reason, array=place, chunk=tuple(chunks[0].tolist()))


def _check_rows_of(vertices: CellArray, index: CellArray, chunks: Ints) -> None:
    """Raise where the fragment index says that one of ``chunks`` has rows, or has lost what it says."""
    listed = index.lists(chunks)
    named = [False] * len(chunks) if listed is None else listed.tolist()
    for chunk, blob, is_named in zip(chunks, index.read(chunks), named, strict=True):
        try:
            lost: Ints | Sequence[int] = decode_index(blob, 2**31).rows if blob else ()
        except DataError as error:
            raise error.at(array=index.array.path, chunk=tuple(chunk.tolist())) from None
        if len(lost):
            reason = f"{len(lost)} rows that the fragment index names are lost; {_ADVICE}"
            raise CorruptionError(reason, array=vertices.array.path, chunk=tuple(chunk.tolist()))
        if is_named and not blob:
            raise lost_cell(index, chunk)
