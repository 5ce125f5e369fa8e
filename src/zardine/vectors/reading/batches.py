"""Answers in batches: points of any number, whole lines, and runs of vertices with their links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from zardine.errors import ArrayChangedError, CorruptionError, ZardineError
from zardine.stores.resolve import StoreLike
from zardine.vectors.format.ragged import rows_at
from zardine.vectors.reading.answer import Found, crs_of, ids_of_rows, resolve, values_of
from zardine.vectors.reading.query import Query
from zardine.vectors.reading.rereading import open_to_go_through
from zardine.vectors.reading.walk import Walk
from zardine.vectors.results import Points
from zardine.vectors.storing.store import NEXT, Level

T = TypeVar("T")


def in_batches(path: StoreLike, number: int, make: Callable[[Level], Iterator[T]]) -> Iterator[T]:
    """Go through what ``make`` gives for a level, all of one state.

    Raises :class:`~zardine.errors.ArrayChangedError` as soon as somebody has changed the level.
    """
    level = open_to_go_through(path, number)
    changed = ArrayChangedError(
        f"level {number} of {level.owner.name} was changed while it was read in batches: begin again"
    )
    if NEXT in level.document.attributes:
        reason = "another store was to take the place of this one, which did not end: repair does that"
        raise CorruptionError(reason, array=level.path)
    parts = make(level)
    while True:
        try:
            part = next(parts, None)
        except ArrayChangedError:
            raise changed from None
        except ZardineError:
            if level.is_unchanged():
                raise
            raise changed from None
        if not level.is_current():
            raise changed
        if part is None:
            return
        yield part


def batches_of_points(level: Level, query: Query, most: int) -> Iterator[Points]:
    """Points in the order that they are stored in, ``most`` at a time; fewer in the last batch."""
    waiting: list[Points] = []
    count = 0
    for found in Walk(resolve(level, query), most).found(query.attributes, fragments=False):
        waiting.append(_points_of(found, query))
        count += len(waiting[-1])
        while count >= most:
            whole = _joined(waiting)
            yield _cut(whole, slice(0, most))
            waiting, count = [_cut(whole, slice(most, None))], count - most
    if count:
        yield _joined(waiting)


def count_vertices(level: Level, query: Query, most: int) -> int:
    """How many vertices match, without their attributes."""
    asked = resolve(level, query)
    if asked.chunks is None and not asked.chooses and asked.wanted is None and level.document.tiles:
        return level.document.vertex_count
    walk = Walk(asked, most)
    return sum(len(found.rows) for found in walk.found(None, fragments=False))


def _points_of(found: Found, query: Query) -> Points:
    values = values_of(found.content.vertex_attributes, found.rows, query.attributes)
    return Points(rows_at(found.content.positions, found.rows), values, ids_of_rows(found), crs_of(found.level))


def _joined(parts: Sequence[Points]) -> Points:
    ids = [each.object_ids for each in parts if each.object_ids is not None]
    return Points(
        np.concatenate([each.positions for each in parts]),
        {name: join_values([each.attributes[name] for each in parts]) for name in parts[0].attributes},
        np.concatenate(ids) if ids else None,
        parts[0].crs,
    )


def _cut(points: Points, rows: slice) -> Points:
    attributes = {name: values[rows] for name, values in points.attributes.items()}
    ids = None if points.object_ids is None else points.object_ids[rows]
    return replace(
        points, positions=points.positions[rows], attributes=attributes, object_ids=ids, crs=deepcopy(points.crs)
    )


def join_values(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Values of one attribute one behind the other: text of which some is missing is an array of objects."""
    if any(each.dtype == object for each in parts):
        parts = [each.astype(object) for each in parts]
    return np.concatenate(parts)


__all__ = ["batches_of_points", "count_vertices", "in_batches", "join_values"]
