"""A level, or a part of it, in memory: every row of every cell, and what refers to rows, by numbers that run through.

Rows, fragments and objects are numbered from 0 through all loaded cells; cells are in ascending order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.kernel import KERNEL
from zardine.vectors.content.columns import Column
from zardine.vectors.content.line_parts import LineRuns
from zardine.vectors.format.ragged import find_places, row_numbers, runs_at, starts_of, take_rows

Columns = Mapping[str, Column]

_FEW = 4
"""A share of all rows that are looked for one by one."""


def _no_ints() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Fragments:
    """Sets of rows of one cell each."""

    before: Ints
    """How many fragments are in the cells before each cell, and in all: ``(C + 1,)``."""
    starts: Ints
    """Where the rows of each fragment start in ``rows``: ``(F + 1,)``."""
    rows: Ints
    tile: bool
    """Whether all are ranges that cut every cell in pieces, in order."""

    @classmethod
    def tiling(cls, before: Ints, starts: Ints) -> Fragments:
        """Return those that cut cells in pieces, in order; their ``rows`` are counted when somebody asks for them."""
        made = object.__new__(cls)
        for name, value in (("before", before), ("starts", starts), ("tile", True)):
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> Any:
        """Return the ``rows`` that were left out."""
        if name != "rows":
            raise AttributeError(name)
        rows = np.arange(int(self.starts[-1]))
        object.__setattr__(self, name, rows)
        return rows

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    def of_rows(self) -> Ints:
        """For each entry of ``rows`` the fragment it belongs to."""
        return row_numbers(np.diff(self.starts))


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Links of one level difference. Endpoints are rows; -1 is a row that is not loaded."""

    endpoints: Ints
    """``(M, L)``; where ``delta`` is not 0, all columns but the first are rows of the other level."""
    attributes: Columns = field(default_factory=dict)
    directed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """Ordered lists of fragments, each with an id."""

    ids: Ints
    starts: Ints
    """Where the fragments of each object start in ``fragments``: ``(O + 1,)``."""
    fragments: Ints
    """Numbers of fragments; -1 for those that are not loaded."""
    attributes: Columns = field(default_factory=dict)

    def take(self, rows: Ints) -> Objects:
        """Some objects, by their rows."""
        starts, places = take_rows(self.starts, rows)
        columns = {name: column.take(rows) for name, column in self.attributes.items()}
        return Objects(self.ids[rows], starts, self.fragments[places], columns)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Lists of object ids."""

    members: tuple[Ints, ...]
    attributes: Columns = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
    """Rows of cells as they were given: each fragment is a run of them."""

    positions: npt.NDArray[Any]
    columns: Columns
    first: Ints
    """Where the run of each fragment begins."""
    lengths: Ints
    """How many rows it has."""


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What a level holds."""

    keys: Ints
    """Chunks with rows, ascending: ``(C, K)``."""
    row_starts: Ints
    """Where the rows of each cell start: ``(C + 1,)``."""
    positions: npt.NDArray[Any]
    fragments: Fragments
    vertex_attributes: Columns = field(default_factory=dict)
    fragment_attributes: Columns = field(default_factory=dict)
    links: Mapping[int, Links] = field(default_factory=dict)
    """By level difference."""
    objects: Objects | None = None
    groups: Groups | None = None
    given: GivenRows | None = field(init=False, default=None)
    """Where the rows come from that are not in their order yet: who stores them needs no other copy."""
    lines: LineRuns | None = field(init=False, default=None)
    """Where objects and links come from that are lines, whose vertices are as they were given."""
    _linked: Callable[[], tuple[Objects, Mapping[int, Links]]] = field(init=False, repr=False)
    """Works out objects and links that were left out."""

    @classmethod
    def of_runs(
        cls,
        keys: Ints,
        row_starts: Ints,
        given: GivenRows,
        fragments: Fragments,
        linked: Callable[[], tuple[Objects, Mapping[int, Links]]],
        groups: Groups | None = None,
        lines: LineRuns | None = None,
    ) -> Content:
        """Return what holds rows that are put in their order when somebody asks for them; so are objects and links."""
        made = object.__new__(cls)
        values = {"keys": keys, "row_starts": row_starts, "fragments": fragments, "fragment_attributes": {}}
        values |= {"groups": groups, "given": given, "_linked": linked, "lines": lines}
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> Any:
        """Return what was left out: objects and links, or rows that were not in their order yet."""
        if name in ("objects", "links"):
            objects, links = self._linked()
            object.__setattr__(self, "objects", objects)
            object.__setattr__(self, "links", links)
            return object.__getattribute__(self, name)
        if name not in ("positions", "vertex_attributes"):
            raise AttributeError(name)
        given = self.given
        if given is not None:  # else another thread has just done it
            runs = given.first, given.lengths
            columns = {each: replace(old, values=runs_at(old.values, *runs)) for each, old in given.columns.items()}
            object.__setattr__(self, "positions", runs_at(given.positions, *runs))
            object.__setattr__(self, "vertex_attributes", columns)
            object.__setattr__(self, "given", None)
        return object.__getattribute__(self, name)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.row_starts[-1])

    def cell_of_rows(self) -> Ints:
        """For each row the number of its cell."""
        return row_numbers(np.diff(self.row_starts))

    def cells_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the number of the cell of each of ``rows``, of any shape, and its number within that."""
        is_few = 0 < rows.size < self.count // _FEW
        if KERNEL is not None and is_few and rows.min() >= 0:
            return find_places(self.row_starts, rows)
        cells = self.cell_of_rows()[rows]
        return cells, rows - self.row_starts[cells]

    def visible(self) -> npt.NDArray[np.bool_]:
        """Which rows a fragment names; others are none of the level's vertices."""
        if self.fragments.tile:
            return np.ones(len(self.positions), np.bool_)
        seen = np.zeros(len(self.positions), np.bool_)
        seen[self.fragments.rows] = True
        return seen

    def row_object(self, among: Ints | None = None) -> Ints:
        """For each row the row number of the object that it is part of, or -1.

        Of several objects that share it, the first; ``among``: of these objects alone.
        """
        found = np.full(len(self.positions), -1, np.int64)
        if self.objects is not None:
            owner = row_numbers(np.diff(self.objects.starts))
            fragments = self.objects.fragments
            if among is not None:
                asked = np.isin(owner, among)
                owner, fragments = owner[asked], fragments[asked]
            found_fragment = np.full(self.fragments.count + 1, -1, np.int64)
            found_fragment[fragments[::-1]] = owner[::-1]  # what is written last counts
            found_fragment[-1] = -1
            of_rows = found_fragment[self.fragments.of_rows()]
            owned = np.flatnonzero(of_rows >= 0)
            order = owned[np.argsort(-of_rows[owned], kind="stable")]
            found[self.fragments.rows[order]] = of_rows[order]
        return found

    def rows_in(self, objects: Ints) -> npt.NDArray[np.bool_]:
        """Which rows are part of one of these objects (rows of the object index)."""
        inside = np.zeros(len(self.positions), np.bool_)
        if self.objects is not None:
            _, places = take_rows(self.objects.starts, objects)
            named = np.zeros(self.fragments.count + 1, np.bool_)
            named[self.objects.fragments[places]] = True
            if self.fragments.tile:
                return np.repeat(named[:-1], np.diff(self.fragments.starts))
            _, rows = take_rows(self.fragments.starts, np.flatnonzero(named[:-1]))
            inside[self.fragments.rows[rows]] = True
        return inside

    def objects_with(self, rows: Ints) -> Ints:
        """The objects, ascending, that one of these rows is part of."""
        if self.objects is None:
            return _no_ints()
        hit = np.zeros(len(self.positions), np.bool_)
        hit[rows] = True
        fragment = np.zeros(self.fragments.count + 1, np.bool_)
        fragment[self.fragments.of_rows()[hit[self.fragments.rows]]] = True
        fragment[-1] = False
        found = np.zeros(len(self.objects.ids), np.bool_)
        found[row_numbers(np.diff(self.objects.starts))[fragment[self.objects.fragments]]] = True
        return np.flatnonzero(found)

    def rows_of_objects(self) -> tuple[Ints, Ints]:
        """Starts and rows of the vertices of each object, in the order of its fragments."""
        assert self.objects is not None
        fragments = self.objects.fragments
        loaded = fragments >= 0
        counts = np.where(loaded, np.diff(self.fragments.starts)[fragments] if self.fragments.count else 0, 0)
        _, places = take_rows(self.fragments.starts, fragments[loaded])
        totals = starts_of(counts)
        return totals[self.objects.starts], self.fragments.rows[places]
