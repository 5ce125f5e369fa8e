"""Reading the objects and groups of a level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun
from zardine.errors import CorruptionError, DataError
from zardine.nodes.array import Array
from zardine.vectors.content.columns import Column, column_of
from zardine.vectors.content.content import Content, Groups, Objects
from zardine.vectors.format.manifests import decode_manifests
from zardine.vectors.format.ragged import find_rows
from zardine.vectors.format.removed_objects import RemovedIds, parse_removed
from zardine.vectors.reading.ahead import ask_on
from zardine.vectors.reading.kept_manifests import kept_manifests
from zardine.vectors.reading.manifests import Manifests, places_among
from zardine.vectors.reading.missing import missing_attribute
from zardine.vectors.reading.presence import check_objects
from zardine.vectors.reading.query import ALL, Names
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.steady import Table
from zardine.vectors.storing.store import Level

LAYOUTS = (None, "vlen_manifests_v1", "vlen_manifests_v2")


def load_manifests(level: Level, *, trust_count: bool = True) -> Manifests | None:
    """All of them; ``None`` where the level has no objects.

    Those of files are kept, and not read again while nobody writes these. Raises
    :class:`~zardine.errors.CorruptionError` for what is damaged, and where there are fewer than it says (unless
    ``trust_count`` is false).
    """
    return (
        kept_manifests(level, partial(_read_manifests, level))
        if trust_count
        else _read_manifests(level, trust_count=False)
    )


def _read_manifests(level: Level, *, trust_count: bool = True) -> Manifests | None:
    about = level.attributes("object_index")
    if about is None:
        return None
    place = child(level.path, "object_index/manifests")
    tables = [partial(level.values, f"object_index/{name}") for name in ("manifests", "object_ids")]
    of_manifests, of_ids = begun(level.owner.store, tables)
    found = of_manifests()
    if found is None:
        raise CorruptionError("the object index has no manifests", array=place)
    rank = about.get("sid_ndim", level.rank)
    if rank != level.rank:
        raise CorruptionError(f"sid_ndim is {rank!r}, the chunks have {level.rank} axes", array=place)
    if about.get("layout") not in LAYOUTS:
        raise CorruptionError(f"the object index has an unknown layout {about.get('layout')!r}", array=place)
    blobs = _blobs(*found)
    ids = _ids(level, about.get("layout") or "", len(blobs), of_ids)
    kept = _kept(level, about, ids)
    try:
        manifests = Manifests(ids, *decode_manifests(blobs, rank))
    except DataError as error:
        raise error.at(array=place) from None
    if kept is not None:
        manifests = manifests.take(kept)
    named, present = about.get("num_present"), int((np.diff(manifests.starts) > 0).sum())
    if trust_count and isinstance(named, int) and present < named:
        reason = f"{named} objects are made of something, and only {present} manifests are stored: the others are lost"
        raise CorruptionError(f"{reason}; repair(drop_lost=True) makes do with what is left", array=place)
    return manifests


_FEW = 64
"""Ids that are looked for in their rows before all are read."""


class KnownIds:
    """The ids of all objects of a level, of which no more are read than what is asked needs."""

    def __init__(self, level: Level, count: int, layout: str, ascending: bool, removed: RemovedIds) -> None:
        self._level, self._layout = level, layout
        self._all: Ints | None = None
        self._highest: int | None = None
        self.count = count
        """How many rows the tables have, those of removed objects among them."""
        self.ascending = ascending
        """Whether the level says that they ascend."""
        self.removed = removed

    def all(self) -> Ints:
        """Every id, by row, those of removed objects among them. Raises as :func:`load_manifests`."""
        if self._all is None:
            table = partial(self._level.values, "object_index/object_ids")
            self._all = _ids(self._level, self._layout, self.count, table)
        return self._all

    def highest(self) -> int:
        """The highest id; -1 where there is none."""
        if self._highest is None:
            table = self._table()
            if table is not None and self.count:
                last = int(table[self.count - 1])
                if last != table.fill_value:  # which may stand for one that is lost
                    self._highest = last
                    return last
            self._highest = int(self.all().max()) if self.count else -1
        return self._highest

    def rows_of(self, wanted: Ints) -> Ints:
        """The row of each of a few ids; -1 for those that are not there, or removed."""
        return np.where(self.removed.among(wanted), -1, self.places_of(wanted))

    def places_of(self, wanted: Ints) -> Ints:
        """The row of each of a few ids, also of removed objects; -1 for those that were never there."""
        if not self.count or not len(wanted) or (self.ascending and wanted.min() > self.highest()):
            return np.full(len(wanted), -1, np.int64)
        return wanted.copy() if self._are_numbers(wanted) else places_among(self.all(), wanted)

    def _are_numbers(self, wanted: Ints) -> bool:
        """Whether a few ids are the numbers of their rows, as those are that nobody has chosen; no others are read."""
        table = self._table() if len(wanted) <= _FEW and 0 <= wanted.min() <= wanted.max() < self.count else None
        if table is None:
            return False
        found = np.asarray(table.get_orthogonal_selection((wanted,)))
        return bool(((found == wanted) & (found != table.fill_value)).all())

    def _table(self) -> Array | None:
        """The table of ids, if not all of them are needed, or known."""
        table = self._level.table("object_index/object_ids") if self.ascending and self._all is None else None
        good = table is not None and table.ndim == 1 and table.dtype.kind in "iu" and len(table) == self.count
        return table if good else None


def known_ids(level: Level) -> KnownIds | None:
    """The ids of all objects; ``None`` where the level has no objects. Raises as :func:`load_manifests`."""
    about, table = level.attributes("object_index"), level.table("object_index/manifests")
    if about is None:
        return None
    if table is None or table.ndim != 1:
        raise CorruptionError("the object index has no manifests", array=child(level.path, "object_index/manifests"))
    layout = str(about.get("layout") or "")
    ascending = bool(about.get("object_ids_sorted")) and layout.endswith("v2")
    return KnownIds(level, len(table), layout, ascending, _removed(level, about))


def manifests_of(level: Level, ids: Ints, rows: Ints) -> Manifests | None:
    """Those of the objects with these ``ids``, at these ``rows``; ``None`` where one is not stored.

    Of that :func:`load_manifests` says what it is, and raises as this. For who changes a level, that has no log then.
    """
    assert level.is_settled
    table = level.table("object_index/manifests")
    if table is None or table.ndim != 1:
        return None
    blobs = _blobs(table, np.asarray(table.get_orthogonal_selection((rows,))))
    if not all(blobs):
        return None
    try:
        return Manifests(ids, *decode_manifests(blobs, level.rank))
    except DataError as error:
        raise error.at(array=table.path) from None


def _removed(level: Level, about: Mapping[str, Any]) -> RemovedIds:
    return parse_removed(about, child(level.path, "object_index"))


def _kept(level: Level, about: Mapping[str, Any], ids: Ints) -> Ints | None:
    """The rows of objects that are not removed; ``None``: all."""
    removed = _removed(level, about)
    return np.flatnonzero(~removed.among(ids)) if removed else None


def _ids(level: Level, layout: str, count: int, table_of_ids: Callable[[], Table | None]) -> Ints:
    """The id of each object; in the first layout ids are numbers of rows."""
    place = child(level.path, "object_index/object_ids")
    found = table_of_ids()
    if found is None:
        if layout.endswith("v2"):
            raise CorruptionError("the object index has no ids", array=place)
        return np.arange(count)
    table, values = found
    if table.dtype.kind not in "iu" or table.ndim != 1 or len(table) != count:
        reason = f"{table.dtype} of shape {table.shape}: {count} ids are needed, one for each manifest"
        raise CorruptionError(reason, array=place)
    ids = values.astype(np.int64)
    if table.fill_value and (ids == table.fill_value).any():
        raise CorruptionError("the ids of objects are lost", array=place)
    if not (np.diff(ids) > 0).all() and (np.diff(np.sort(ids)) == 0).any():
        raise CorruptionError("an object id is there more than once, or ids are lost", array=place)
    return ids


def _blobs(table: Array, values: npt.NDArray[Any]) -> list[bytes]:
    if table.ndim != 1 or table.metadata.data_type.name not in ("bytes", "variable_length_bytes"):
        reason = f"a row of bytes for each is needed, not {table.metadata.data_type.name} of shape {table.shape}"
        raise CorruptionError(reason, array=table.path)
    blobs: list[bytes] = values.tolist()
    return blobs


def with_objects(
    level: Level, content: Content, manifests: Manifests | None, *, attributes: Names = None, asked: Ints | None = None
) -> Content:
    """``content`` with its objects; ``asked``: the chunks that were to be loaded, if not all.

    Fragments of other chunks are -1. Raises :class:`~zardine.errors.CorruptionError` for fragments that are lost.
    """
    if manifests is None:
        return content
    place = child(level.path, "object_index/manifests")
    cell = find_rows(content.keys, manifests.chunks)
    known = cell >= 0
    check_objects(level, manifests.chunks[~known], asked)
    counts = np.diff(content.fragments.before)
    numbers = manifests.fragments
    if (numbers < 0).any() or (numbers[known] >= counts[cell[known]]).any():
        raise CorruptionError("an object refers to a fragment that its chunk does not have", array=place)
    fragments = np.where(known, content.fragments.before[cell] + numbers, -1)
    objects = Objects(manifests.ids, manifests.starts, fragments)
    columns = load_object_tables(level, manifests, attributes)
    return replace(content, objects=replace(objects, attributes=columns))


def load_tables(level: Level, family: str, count: int, wanted: Names = ALL) -> dict[str, Column]:
    """The attributes of objects or groups, row by row; ``count``: how many rows there are.

    Raises :class:`~zardine.errors.CorruptionError` for too many or few rows.
    """
    if wanted is None:
        return {}
    names = _names_in(level, family, wanted)
    tables = begun(level.owner.store, [partial(level.values, f"{family}/{name}") for name in names])
    columns = {}
    for name, table in zip(names, tables, strict=True):
        found = table()
        if found is None:
            raise missing_attribute(level, f"{family}/{name}")
        table, values = found
        if table.ndim == 0 or len(table) != count:
            reason = f"{table.shape} attribute values for {count} rows"
            raise CorruptionError(reason, array=table.path)
        columns[name] = _table_column(name, values)
    return columns


def expect_tables(level: Level, wanted: Names = ALL) -> None:
    """Ask for what :func:`load_object_tables` will want, where the level is read ahead."""
    if is_far(level.owner.store) and wanted is not None:
        paths = [f"object_attributes/{name}" for name in _names_in(level, "object_attributes", wanted)]
        ask_on(level, paths, [f"{path}/c/0" for path in paths])


def _names_in(level: Level, family: str, wanted: Names) -> list[str]:
    return level.names(family) if wanted == ALL else [wanted] if isinstance(wanted, str) else list(wanted or ())


def load_object_tables(level: Level, manifests: Manifests, wanted: Names = ALL) -> dict[str, Column]:
    """The attributes of the objects that these are the manifests of. Raises as :func:`load_tables`."""
    return rows_of_objects(load_tables(level, "object_attributes", manifests.row_count, wanted), manifests)


def rows_of_objects(columns: dict[str, Column], manifests: Manifests) -> dict[str, Column]:
    """The rows of tables of objects that belong to those which these are the manifests of."""
    return columns if manifests.rows is None else {name: each.take(manifests.rows) for name, each in columns.items()}


def _table_column(name: str, values: npt.NDArray[Any]) -> Column:
    if values.dtype.kind in "TOUS":
        return column_of(name, np.asarray(values, object), len(values), "rows")
    return Column(values)


def load_groups(level: Level, *, attributes: Names = ALL) -> Groups | None:
    """The groups of a level; ``None`` where it has none."""
    found = level.values("groups")
    if found is None:
        return None
    table = found[0]
    blobs = _blobs(*found)
    spans: Any = table.metadata.attributes.get("group_ranges") or {}
    if not isinstance(spans, Mapping):
        raise CorruptionError("group_ranges is no table of ranges", array=table.path)
    members = []
    for number, blob in enumerate(blobs):
        if blob and blob == table.fill_value:
            raise CorruptionError(f"the members of group {number} are lost", array=table.path)
        if len(blob) % 8:
            raise CorruptionError(f"group {number} has {len(blob)} bytes: ids have 8 each", array=table.path)
        span = spans.get(str(number))
        ids = np.frombuffer(blob, "<i8").astype(np.int64)
        members.append(ids if span is None else np.concatenate([ids, _span(span, number, table)]))
    return Groups(tuple(members), load_tables(level, "group_attributes", len(members), attributes))


def _span(span: Any, number: int, table: Array) -> Ints:
    """The ids that an entry of ``group_ranges`` stands for."""
    good = isinstance(span, list | tuple) and len(span) == 2
    if not good or not all(isinstance(each, int) and abs(each) < 2**63 for each in span) or span[1] - span[0] > 2**28:
        raise CorruptionError(f"group_ranges of group {number} is {span!r}: two numbers are needed", array=table.path)
    return np.arange(span[0], span[1], dtype=np.int64)
