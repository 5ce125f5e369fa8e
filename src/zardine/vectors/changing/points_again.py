"""Adding points to a store that the last change has left as it is: all of it by one call of the kernel.

What that needs to know is worked out once, after a change whose end is kept (:mod:`.kept_changes`): which documents
have to be as they were, how the next ones read, and where cells are. The kernel takes the locks, looks whether all is
as it was known, puts the rows behind those of the cells and makes the documents count, in the order and with the log
that :mod:`~zardine.vectors.storing.transactions` has; see :mod:`.points_behind` for the same in several steps.

The usual case only, and nobody is waited for: all else is left to others, with the same outcome.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import floor, isfinite, prod
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.cache import Cache
from zardine.engine.array_config import ArrayConfig
from zardine.errors import DataError, ZardineError
from zardine.frozen import with_fields
from zardine.hierarchy.find import document_key
from zardine.hierarchy.place import find_place
from zardine.kernel import KERNEL
from zardine.metadata.v3 import serialize
from zardine.stores.base import Version
from zardine.stores.late_closing import close_late
from zardine.stores.local.beside import NAMES
from zardine.stores.local.store import LocalStore
from zardine.stores.path import StorePath
from zardine.vectors.changing.kept_changes import Kept, known_of
from zardine.vectors.changing.levels import attributes_with, kind_of
from zardine.vectors.changing.points_behind import Arrays, arrays_of
from zardine.vectors.content.arguments import checked_positions
from zardine.vectors.content.changes import plain_points
from zardine.vectors.content.columns import Column, columns_of, native
from zardine.vectors.format.change_log import head_text, with_length
from zardine.vectors.format.fragment_index import around_count
from zardine.vectors.format.grids import MOST_COORDINATE, bins_per_chunk
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading_objects import known_ids
from zardine.vectors.storing.commits import complete_or_warn, telling_of_commits
from zardine.vectors.storing.held_cells import AlikeShards
from zardine.vectors.storing.logs import REVISION, new_token, revision_of
from zardine.vectors.storing.touched import TOUCHED
from zardine.vectors.storing.transactions import agreed_and_settled, at_next_revision, carry_out

if TYPE_CHECKING:
    from zardine._kernel import GrowingCells

_COUNT: Final = 982_451_653_577_215_664
_REVISION: Final = 982_451_653_577_215_665
_TOKEN: Final = 982_451_653_577_215_666
"""Numbers that stand for others in a text, which has none of them."""

_MOST_CELLS: Final = 64
"""That are remembered where they lie, ..."""
_MOST_AT_ONCE: Final = 512
"""... and that are changed by one call."""

_places: Cache[str, tuple[LocalStore, str]] = Cache(64)
"""Stores and paths by absolute paths, which programs name again and again."""

_NAME: Final = "points_again"

State = tuple[int, int, Version]
"""Vertices and revision of a level, and the version of its document."""

Where = tuple[list[str], list[int], list[int], bytes, Ints | None]
"""Keys of the document, the log and shards; bounds and rows of cells in these; the chunks as a log has them; and their
order by shards, if it is another one."""


def add_again(path: Any, positions: Any, attributes: Any) -> bool:
    """Add points, and values of their attributes, to a store; false where nothing was done, which is left to others."""
    known = _known_at(path) if KERNEL is not None else None
    if known is None:
        return False
    if _NAME not in known.forms:
        known.forms[_NAME] = PointsAgain.of(known)
    again: PointsAgain | None = known.forms[_NAME]
    return again is not None and again.add(positions, attributes)


def _known_at(path: Any) -> Kept | None:
    if type(path) is StorePath:
        return known_of(path.store, path.path)
    if isinstance(path, PurePath):
        path = str(path)
    if type(path) is not str:
        return None
    place = _places.get(path)
    if place is None:
        if not os.path.isabs(path) or "::" in path or "\\" in path or path.lower().endswith(".zip"):
            return None  # what that means may change
        store, inner = find_place(path, mode="r+")
        if type(store) is not LocalStore:
            return None
        place = store, inner
        _places.put(path, place, 1)
    return known_of(*place)


@dataclass(slots=True, eq=False)
class PointsAgain:
    """How points are added to a level of which something is kept; it goes on with what it has added."""

    kept: Kept
    level: KeptLevel
    """As it was when this was made."""
    arrays: Arrays
    alike: AlikeShards
    state: State
    place: tuple[bytes, bytes]
    """Of the store, as the kernel takes it."""
    growing: GrowingCells
    chunk_shape: list[float]
    agreed: bytes
    settled: bytes
    """The documents that follow, with room for numbers."""
    cells: dict[tuple[int, ...], Where] = field(default_factory=dict)
    """Where chunks lie that were added to by themselves lately."""
    heads: dict[int, bytes] = field(default_factory=dict)
    """What logs of so many cells begin with, with room for the revision."""

    @classmethod
    def of(cls, kept: Kept) -> PointsAgain | None:
        """``None`` where points are not added so."""
        level = kept.latest()
        try:
            arrays = _usual_arrays(level)
        except ZardineError:  # who needs what cannot be read says so
            return None
        group, version, alike = level.group, level.version, None if arrays is None else arrays.alike
        if arrays is None or alike is None or group is None or version is None or KERNEL is None:
            return None
        state = level.document.vertex_count, revision_of(level.document.attributes), version
        attributes = _attributes(level, _COUNT, _REVISION)
        agreed, settled = agreed_and_settled(group, attributes, new_token(alike.store, _TOKEN))
        forms = _form(serialize(agreed), _COUNT, _REVISION, _TOKEN), _form(serialize(settled), _COUNT, _REVISION)
        place = alike.store.files.place_to_change(())
        if forms[0] is None or forms[1] is None or place is None:
            return None
        sizes = [size for _, _, size in arrays.rows]
        known = kept.documents, kept.folders, kept.names
        growing = KERNEL.GrowingCells(place, NAMES, *known, sizes, around_count(), alike.form, closes=alike.closes)
        chunk_shape = [float(each) for each in level.document.chunk_shape]
        return cls(kept, level, arrays, alike, state, place, growing, chunk_shape, forms[0], forms[1])

    def add(self, positions: Any, attributes: Any) -> bool:
        """Add points; false where nothing was done."""
        columns = self._columns(positions, attributes)
        if columns is None or self.kept.config is not ArrayConfig.from_settings():
            return False
        count = len(columns[0])
        chunk = self._one_chunk(columns[0])
        if chunk is None:
            return False
        if chunk:
            where, edges = self._where_is(chunk), [(0, count)]
        else:
            sorted_by_cells = self._by_cells(columns)
            if sorted_by_cells is None:
                return False
            columns, where, edges = sorted_by_cells
        if where is None:
            return False
        keys, bounds, rows, places, _ = where
        store, state = self.alike.store, self.state
        if store.files.place_to_change(keys) != self.place:
            return False
        vertices, revision, version = state[0] + count, state[1] + 1, state[2]
        head = self._head(len(rows), revision)
        if head is None:
            return False
        numbers = {b"count": vertices, b"revision": revision, b"token": revision}
        contents = head, self.agreed % numbers, self.settled % numbers
        number = int.from_bytes(os.urandom(8))
        with telling_of_commits(store, self.alike.path, state[1]):
            done = self.growing.add_rows(keys, (bounds, rows), edges, places, columns, contents, version, number)
            if done is None:
                return False
            new_version, is_settled, closed = done
            for file in closed:
                close_late(file.detach())
            if is_settled:
                self.state = vertices, revision, new_version
                self.kept.later = partial(_later, self.level, self.state)
            else:  # the cells that were not the usual case are changed by others
                path = self.alike.path
                with store.lock(document_key(path)):
                    complete_or_warn(store, path, partial(carry_out, store, path))
            return True

    def _columns(self, positions: Any, attributes: Any) -> list[npt.NDArray[Any]] | None:
        """The values of the arrays as they are stored; ``None`` where they are others."""
        names, rows = self.arrays.names, self.arrays.rows
        if type(positions) is not np.ndarray or positions.dtype != rows[0][0]:
            try:
                positions = checked_positions(positions, native(rows[0][0]))
            except DataError:  # which others raise anew
                return None
        count = positions.shape[0] if positions.ndim == 2 else 0
        if type(attributes) is not dict or any(type(values) is not np.ndarray for values in attributes.values()):
            try:
                found = columns_of(attributes, count, "points")
            except DataError:
                return None
            if any(column.categories is not None for column in found.values()):
                return None
            attributes = {name: column.values for name, column in found.items()}
        if not count or len(attributes) != len(names) or not all(name in attributes for name in names):
            return None
        columns = [positions, *(attributes[name] for name in names)]
        for number, (dtype, shape, _) in enumerate(rows):
            values = columns[number]
            if values.dtype != dtype or values.shape != (count, *shape):
                return None
            if not values.flags.c_contiguous:
                columns[number] = np.ascontiguousarray(values)
        return columns

    def _one_chunk(self, positions: npt.NDArray[Any]) -> tuple[int, ...] | None:
        """The chunk that all positions are in; ``()``: in several; ``None``: one is out of bounds, or in no chunk."""
        assert KERNEL is not None
        found = KERNEL.find_extent(positions.reshape(-1).view(np.uint8), positions.itemsize == 8, positions.shape[1], 1)
        if found is None:
            return None
        first, is_one = [], True
        for low, high, least, most, size in zip(*found, *self.level.owner.root.bounds, self.chunk_shape, strict=True):
            start, end = low / size, high / size
            if not (least <= low and high <= most and start >= -MOST_COORDINATE and end <= MOST_COORDINATE):
                return None
            number = floor(start)
            is_one = is_one and floor(end) == number
            first.append(number)
        return tuple(first) if is_one else ()

    def _where_is(self, chunk: tuple[int, ...]) -> Where | None:
        found = self.cells.get(chunk)
        if found is None:
            found = self._where_are(np.array([chunk], np.int64))
            if found is not None:
                if len(self.cells) >= _MOST_CELLS:
                    self.cells.clear()
                self.cells[chunk] = found
        return found

    def _where_are(self, chunks: Ints) -> Where | None:
        """Where chunks lie; ``None`` where one is not stored."""
        cells = self.arrays.cells_of(chunks)
        if cells is None:
            return None
        order, bounds, rows, shards = self.alike.in_shards(cells)
        placed = chunks if order is None else chunks[order]
        return self.alike.keys(shards), bounds, rows, placed.astype("<i8", copy=False).tobytes(), order

    def _by_cells(
        self, columns: Sequence[npt.NDArray[Any]]
    ) -> tuple[list[npt.NDArray[Any]], Where | None, list[tuple[int, int]]] | None:
        """Values in the order of cells, where these are, and the rows of each, in the order of shards."""
        given = {name: Column(values) for name, values in zip(self.arrays.names, columns[1:], strict=True)}
        content = plain_points(columns[0], given, None, self.chunk_shape, self.chunk_shape)
        if len(content.keys) > _MOST_AT_ONCE:
            return None
        where = self._where_are(content.keys)
        if where is None:
            return None
        starts, order = content.row_starts.tolist(), where[-1]
        edges = list(pairwise(starts))
        if order is not None:
            edges = [edges[cell] for cell in order.tolist()]
        placed = [content.positions, *(content.vertex_attributes[name].values for name in self.arrays.names)]
        return [np.ascontiguousarray(each) for each in placed], where, edges

    def _head(self, cells: int, revision: int) -> bytes | None:
        """What the log begins with; ``None`` where an attribute has a name that room for numbers is not made in."""
        form = self.heads.get(cells)
        if form is None:
            shapes = [[path, cells, self.level.rank] for path in self.arrays.paths]
            form = _form(head_text(new_token(self.alike.store, _TOKEN), {}, shapes, []), _TOKEN)
            if form is None:
                return None
            if len(self.heads) >= _MOST_CELLS:
                self.heads.clear()
            self.heads[cells] = form
        return with_length(form % {b"token": revision})


def _usual_arrays(level: KeptLevel) -> Arrays | None:
    """The arrays of a level whose points are part of nothing, and that tells of nothing else that would change."""
    root, names = level.owner.root, level.names("vertex_attributes")
    if kind_of(level) != "point_cloud" or TOUCHED in level.document.attributes:
        return None
    if known_ids(level) is not None or level.names("fragment_attributes") or level.attributes("links/0") is not None:
        return None
    if prod(bins_per_chunk(level.document.chunk_shape, root.bin_shape)) != 1:
        return None
    if not all(isfinite(each) for corner in root.bounds for each in corner):
        return None
    arrays = arrays_of(level, names)
    if arrays is None or arrays.rows[0][0] not in (np.dtype("<f4"), np.dtype("<f8")):
        return None
    return arrays if all(size for _, _, size in arrays.rows) else None


def _attributes(level: KeptLevel, vertex_count: int, revision: int) -> dict[str, Any]:
    """The attributes of a level that has so many vertices, at a revision."""
    attributes = attributes_with(level, vertex_count, tile=True)
    return {**at_next_revision(attributes, level.document.attributes), REVISION: revision}


def _later(level: KeptLevel, state: State) -> KeptLevel:
    """A level of which cells alone have changed since."""
    vertices, revision, version = state
    assert level.group is not None
    group = level.group.with_attributes(_attributes(level, vertices, revision))
    document = with_fields(level.document, vertex_count=vertices, attributes=group.attributes)
    return level.changed(document, version, group)


def _form(text: bytes, *numbers: int) -> bytes | None:
    """A text with room for numbers; ``None`` where it has one of these more than once."""
    form = text.replace(b"%", b"%%")
    for number, name in ((_COUNT, b"count"), (_REVISION, b"revision"), (_TOKEN, b"token")):
        if number in numbers:
            if form.count(b"%d" % number) != 1:
                return None
            form = form.replace(b"%d" % number, b"%%(%s)d" % name)
    return form


__all__ = ["PointsAgain", "add_again"]
