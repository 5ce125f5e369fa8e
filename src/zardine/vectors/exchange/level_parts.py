"""A level that is exported part by part: gone through to see what a format holds, and again to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import ArrayChangedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.losses import LINES, columns_in_order
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.outside import numbers, warn, with_ids
from zardine.vectors.reading.batches import in_batches, join_values
from zardine.vectors.reading.batches_of_lines import GatheredLines
from zardine.vectors.reading.kept import kind_of
from zardine.vectors.reading.query import ALL, Names, Query, QueryOptions
from zardine.vectors.results import Geometry, Graph, Mesh, Polylines, Skeleton
from zardine.vectors.selecting import Selection
from zardine.vectors.storing.store import Level, VectorStore

OBJECT_ID: Final = "object_id"
"""The column that ids of objects become."""

PartT = TypeVar("PartT", bound=Geometry)


class LevelParts(Generic[PartT]):
    """A level of a store, about :data:`AT_ONCE` vertices at a time; lines, and what fits into one part, are read once.

    Coordinates come as x, y and z where the axes are called so in another order: formats that do not name axes mean
    these. It is gone through ``ways`` times, and ``step`` is called with the share of all of them that is done.
    ``chosen``: some chunks or objects, of which there are ``count`` vertices, about. ``in_order``: they are written in
    this order.
    """

    def __init__(
        self,
        path: StoreLike,
        level: int,
        step: Step,
        ways: int = 2,
        chosen: QueryOptions | None = None,
        count: int | None = None,
        *,
        in_order: bool = True,
    ) -> None:
        self._path, self.number = path, level
        self._step, self._ways, self._done = step, ways, 0
        self.level = VectorStore.open(path).level(level)
        root = self.level.owner.root
        self._kind, self.rank = kind_of(root), root.ndim
        self._order = columns_in_order(root.axes)
        self.count = self.level.document.vertex_count if count is None else count
        """How many vertices there are, as the level says."""
        self.seen = 0
        """How many the last way has had."""
        self.is_whole, self.in_order = chosen is None, in_order
        self._corners: npt.NDArray[Any] | None = np.zeros((0, self.rank)) if self.is_whole and level == 0 else None
        self._query: QueryOptions = {**(chosen or {}), "level": level}
        self._at_once = self.is_whole and self.count <= AT_ONCE
        self._lines: GatheredLines | None = None
        self._are_gathered = self._kind in LINES and not self._at_once
        self._ways += self._are_gathered

    def __iter__(self) -> Iterator[PartT]:
        """Give the parts with all attributes; see :meth:`through`."""
        return self.through(ALL)

    def through(self, attributes: Names) -> Iterator[PartT]:
        """Give the parts with some attributes of vertices, of the state that the level was in at first.

        Raises :class:`~zardine.errors.ArrayChangedError` where somebody has changed it since.
        """
        self.check()
        self.seen = 0
        if self._at_once:
            self._see(self._whole)
            yield self._whole
            self.seen = len(self._whole.positions)
        else:
            for part in self._gathered(attributes) if self._are_gathered else self._select(attributes).batches(AT_ONCE):
                ordered = cast(PartT, in_columns(part, self._order))
                self._see(ordered)
                yield ordered
                self.seen += own(part)
                self._tell(self.seen)
        self.check()
        self._tell_of_bounds()
        self._done += 1
        self._step(self._done / self._ways)

    def _see(self, part: Geometry) -> None:
        """Look at the positions of a part, the first time that they are gone through."""
        if self._corners is not None and len(part.positions):
            self._corners = np.stack(
                bounds_of(np.concatenate([self._corners.astype(part.positions.dtype), part.positions]))
            )

    def _tell_of_bounds(self) -> None:
        """Warn, once, of bounds that positions do not reach: files have no others than those of positions."""
        corners, self._corners = self._corners, None
        if corners is None or not len(corners):
            return
        bounds = np.asarray(self.level.owner.root.block["bounds"], np.float64)
        wanted = bounds if self._order is None else bounds[:, self._order]
        if not np.array_equal(wanted.astype(corners.dtype), corners):
            low, high = bounds.tolist()
            warn(str(self._path), f"its bounds, from {low} to {high}, cannot be kept: files end where positions do")

    def _tell(self, seen: int) -> None:
        """Tell how many vertices of this way are done."""
        self._step((self._done + min(1.0, seen / max(1, self.count))) / self._ways)

    def _gathered(self, attributes: Names) -> Iterator[Geometry]:
        """Lines, which are read once for all ways: each part has some of most chunks."""

        def make(level: Level) -> Iterator[Polylines]:
            if self._lines is None:
                seen = 0

                def see(count: int) -> None:
                    nonlocal seen
                    seen += count
                    self._tell(seen)

                self._lines = GatheredLines(level, Query(**self._query).checked(), AT_ONCE, see)
                self._done += 1
            yield from self._lines.batches(AT_ONCE, attributes)

        return in_batches(self._path, self.number, make)

    @cached_property
    def _whole(self) -> PartT:
        return cast(PartT, in_columns(self._select(ALL).read(), self._order))

    def _select(self, attributes: Names) -> Selection:
        query: QueryOptions = {**self._query, "attributes": attributes}
        return Selection(self._path, self._kind, **query)

    def check(self) -> None:
        """Raise :class:`~zardine.errors.ArrayChangedError` where somebody has changed the level."""
        if not self.level.is_current():
            raise ArrayChangedError(f"{self._path} was changed while it was exported: export it again")


def in_columns(part: Geometry, order: Sequence[int] | None) -> Geometry:
    """Return what has coordinates in another order; ``None``: in the same. Faces keep their outside, by the numbers."""
    if order is None:
        return part
    moved = replace(part, positions=np.ascontiguousarray(part.positions[:, order]))
    return replace(moved, faces=faces_in_columns(moved.faces, order)) if isinstance(moved, Mesh) else moved


def faces_in_columns(faces: Ints, order: Sequence[int] | None) -> Ints:
    """Return the faces of vertices with coordinates in another order: turned around where that is a mirror."""
    swaps = sum(one > other for place, other in enumerate(order or ()) for one in (order or ())[:place])
    return np.concatenate((faces[:, :1], faces[:, :0:-1]), axis=1) if swaps % 2 else faces


def own(part: Geometry) -> int:
    """Return how many vertices of a part are its own; those after them are of other parts, too."""
    number = part.own if isinstance(part, Graph | Mesh | Skeleton) else None
    return len(part.positions) if number is None else number


def numbers_of(part: Graph | Mesh | Skeleton) -> Ints:
    """Return the number of each vertex of a part among all that are gone through."""
    return np.arange(len(part.positions)) if part.rows is None else part.rows


class Look(Protocol):
    """What is known of the values of a column that were looked at."""

    like: npt.NDArray[Any]
    """None of them, of their type."""

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""


class Plain:
    """What columns are like, and nothing more."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        self.like = like

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at nothing."""


LookT = TypeVar("LookT", bound=Look)


class SeenColumns(Generic[LookT]):
    """What is known of columns that were looked at part by part, and of ids of objects, which are one more of them.

    ``in_order``: rows are written in this order, so that ids which are numbers from 0 on say nothing.
    """

    def __init__(self, make: Callable[[str, npt.NDArray[Any]], LookT], *, in_order: bool = True) -> None:
        self._make = make
        self._looks: dict[str, LookT] = {}
        self._rows = 0
        self._is_taken, self._ids_say_more = False, not in_order

    def look(self, columns: Mapping[str, npt.NDArray[Any]], ids: Ints | None = None) -> None:
        """Look at the rows of a part."""
        for name, values in columns_with_ids(columns, ids).items():
            if name not in self._looks:
                self._looks[name] = self._make(name, values[:0])
            self._looks[name].look(values)
        self._is_taken = OBJECT_ID in columns
        if ids is not None:
            self._ids_say_more |= not np.array_equal(ids, np.arange(self._rows, self._rows + len(ids)))
            self._rows += len(ids)

    def found(self, target: Path | str) -> dict[str, LookT]:
        """Return what is known of each column; of ids only if they are more than numbers from 0 on.

        Warns where these cannot be kept, since an attribute is called as they would be.
        """
        if self._ids_say_more and self._is_taken:
            warn(target, f"the ids of objects cannot be kept: there is an attribute {OBJECT_ID!r}")
        left_out = () if self._is_taken or self._ids_say_more else (OBJECT_ID,)
        return {name: look for name, look in self._looks.items() if name not in left_out}


def columns_with_ids(columns: Mapping[str, npt.NDArray[Any]], ids: Ints | None) -> dict[str, npt.NDArray[Any]]:
    """Return columns with ids of objects as the last one, unless one is called so."""
    return dict(columns) if ids is None else {**columns, OBJECT_ID: columns.get(OBJECT_ID, ids)}


def numbers_among(looks: Mapping[str, LookT], target: Path | str, *, channels: bool = True) -> dict[str, LookT]:
    """What is known of the columns of numbers; warns as :func:`numbers`."""
    return {
        name: looks[name] for name in numbers({n: each.like for n, each in looks.items()}, target, channels=channels)
    }


class SeenLines(Generic[LookT]):
    """What is known of lines that were looked at; those without vertices are left out. See :class:`SeenColumns`."""

    def __init__(self, make: Callable[[str, npt.NDArray[Any]], LookT], *, in_order: bool = True) -> None:
        self.of_vertices, self._in_order = SeenColumns(make), in_order
        self._lengths: list[Ints] = []
        self._ids: list[Ints] = []
        self._columns: dict[str, list[npt.NDArray[Any]]] = {}

    def look(self, part: Polylines) -> None:
        """Look at the lines of a part."""
        lengths = np.diff(part.starts)
        there = lengths > 0
        self._lengths.append(lengths)
        self._ids.append(part.object_ids[there])
        for name, values in part.object_attributes.items():
            self._columns.setdefault(name, []).append(values[there])
        self.of_vertices.look(part.attributes)

    @cached_property
    def ids(self) -> Ints:
        """Of all lines that have vertices."""
        return np.concatenate([np.zeros(0, np.int64), *self._ids])

    @cached_property
    def lengths(self) -> Ints:
        """How many vertices each of these has."""
        lengths: Ints = np.concatenate([np.zeros(0, np.int64), *self._lengths])
        return lengths[lengths > 0]

    def of_lines(self, target: Path, *, attributes: bool = True) -> dict[str, npt.NDArray[Any]]:
        """Return the attributes of these, and ids that are more than numbers from 0 on; warn of lines left out."""
        count = sum(map(len, self._lengths))
        if count > len(self.ids):
            warn(target, f"{count - len(self.ids)} lines without vertices are left out")
        columns = {name: join_values(each) for name, each in self._columns.items()} if attributes else {}
        return with_ids(columns, self.ids, target, in_order=self._in_order)
