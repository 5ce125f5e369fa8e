"""Reading arrays while a conversion stores them anew: a look at the document again, before a word of loss.

A conversion stores an array beside what is stored of it, changes the document, and erases the old objects
(:mod:`~zardine.vectors.storing.transactions`). Whoever read the document before finds nothing, or something else, under
the keys that it names; the new document names others, and the cells, or the rows of a table, are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import ArrayChangedError, CorruptionError, DataError, NodeNotFoundError, ZardineError
from zardine.nodes.array import Array
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.file_seam import files_to_read
from zardine.vectors.format.change_log import Changed
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.cells_together import Cells, FoundCells, find_cells_together
from zardine.vectors.storing.table_rows import row_values

T = TypeVar("T")

Reopen = Callable[[], "CellArray | None"]


@dataclass(frozen=True, slots=True, eq=False)
class SteadyCells(CellArray):
    """An array of cells that is looked for anew, a few times, before what it lacks counts as lost."""

    reopen: Reopen
    """The array as its document is now."""
    changed: Changed | None = None
    """What counts in the place of what is stored."""

    def read(self, chunks: Ints) -> list[bytes]:
        """See :meth:`CellArray.read`; raises only for what is still wrong by the newest document."""
        if self.changed is None:
            return self._stored(chunks)
        place = find_rows(self.changed.places, chunks)
        stored = iter(self._stored(chunks[place < 0]))
        return [next(stored) if number < 0 else self.changed.values[number] for number in place.tolist()]

    def read_together(self, chunks: Ints) -> Cells:
        """See :meth:`CellArray.read_together`, and :meth:`read`."""
        if self.changed is not None:
            return Cells.of(self.read(chunks))

        def whole(array: CellArray, cells: Cells) -> bool:
            return _lacks_none(array, chunks, cells.lengths > 0)

        return steadily(self, self.reopen, lambda array: CellArray.read_together(array, chunks), whole)

    def found(self) -> Ints:
        """See :meth:`CellArray.found`."""
        stored = self._found()
        if self.changed is None:
            return stored
        filled = np.fromiter(map(bool, self.changed.values), np.bool_, len(self.changed.values))
        others = stored[find_rows(self.changed.places, stored) < 0]
        return unique_rows(np.concatenate([others, self.changed.places[filled]]))[0]

    def _stored(self, chunks: Ints) -> list[bytes]:
        def whole(array: CellArray, cells: list[bytes]) -> bool:
            return all(cells) or _lacks_none(array, chunks, np.fromiter(map(bool, cells), np.bool_, len(cells)))

        return steadily(self, self.reopen, lambda array: CellArray.read(array, chunks), whole)

    def _found(self) -> Ints:

        def unchanged(array: CellArray, _: Ints) -> bool:
            newer = _reopened(self.reopen)
            return newer is None or newer.array.metadata == array.array.metadata

        return steadily(self, self.reopen, CellArray.found, unchanged)


def _lacks_none(array: CellArray, chunks: Ints, filled: npt.NDArray[np.bool_]) -> bool:
    """Whether none of the chunks that have no cell is among those that are listed."""
    if filled.all():
        return True
    named = array.lists(chunks[~filled])
    return named is not None and not named.any()


def steadily(
    array: CellArray, reopen: Reopen, read: Callable[[CellArray], T], good: Callable[[CellArray, T], bool]
) -> T:
    """What ``read`` gives; again with the newest document while that changes and there are errors, or it is not good.

    The last answer counts, good or not; the last error is raised.
    """
    fault: Exception | None = None
    for attempt in attempts(CHANGES):
        if attempt.number > 1:
            newer = _reopened(reopen)
            if newer is None or (attempt.number > 2 and newer.array.metadata == array.array.metadata):
                break
            array = newer
        try:
            fault = None
            found = read(array)
            if good(array, found):
                return found
        except (DataError, ArrayChangedError, NodeNotFoundError) as error:
            fault = error
    if fault is not None:
        raise fault
    return found


def _reopened(reopen: Reopen) -> CellArray | None:
    try:
        return reopen()
    except ZardineError:
        return None


def read_alike(arrays: Sequence[CellArray], chunks: Ints) -> list[Cells] | None:
    """The cells of ``chunks`` of several arrays, by one look at their shards, where these are files.

    ``None`` where that cannot be, anything is wrong, or a cell is not stored: each array by itself says what it is.
    """
    found = find_alike(arrays, chunks)
    cells = None if found is None else found.read(*range(len(arrays)))
    return None if cells is None or any((each.lengths == 0).any() for each in cells) else cells


def find_alike(arrays: Sequence[CellArray], chunks: Ints) -> FoundCells | None:
    """Where the cells of ``chunks`` of several arrays are: see :func:`read_alike`."""
    if len(chunks) == 0 or files_to_read(arrays[0].array.store) is None:
        return None
    origin = arrays[0].origin
    for array in arrays:
        if array.origin != origin or (isinstance(array, SteadyCells) and array.changed is not None):
            return None
    if not arrays[0].inside(chunks).all():
        return None
    try:
        return find_cells_together([each.array for each in arrays], chunks - np.asarray(origin))
    except (ArrayChangedError, NodeNotFoundError):
        return None


Table = tuple[Array, npt.NDArray[Any]]


def read_table(open_table: Callable[[], Array | None], changed: Changed | None = None) -> Table | None:
    """The array that ``open_table`` gives, and its values; anew while values are missing and its document changes.

    ``changed`` is what counts in the place of what is stored.
    """
    found = _read_table(open_table)
    if found is None or changed is None:
        return found
    table, values = found
    rows = changed.places[:, 0]
    if changed.places.shape[1] != 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < len(values)):
        raise CorruptionError("the log of a change has rows that the table does not have", array=table.path)
    values = values.copy()
    values[rows] = row_values(table, changed.values)
    return table, values


def _read_table(open_table: Callable[[], Array | None]) -> Table | None:
    for last in attempts(CHANGES):
        table = open_table()  # after the wait, in which others change what was opened before
        if table is None:
            return None
        values = np.asarray(table[...])
        if last or not _lacks_some(values, table.fill_value):
            return table, values
        newer = open_table()
        if newer is not None and newer.metadata == table.metadata:
            return table, values
    raise AssertionError("unreachable")


def _lacks_some(values: npt.NDArray[Any], fill: Any) -> bool:
    """Whether there are values that may stand for chunks which are not stored."""
    if values.dtype.kind == "f" and np.isnan(fill):
        return bool(np.isnan(values).any())
    return bool(np.any(values == fill))
