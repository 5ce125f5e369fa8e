"""Annotations that were read in parts, each once, in the order of their ids: as vertices with attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.vectors.content.columns import recoded
from zardine.vectors.content.content import Columns
from zardine.vectors.content.parts import AT_ONCE, Values
from zardine.vectors.exchange.file_parts import Whole, as_columns
from zardine.vectors.exchange.losses import storable
from zardine.vectors.exchange.precomputed.annotations import CORNERS, AnnotationInfo, Annotations, Property
from zardine.vectors.exchange.reordered import Reordered
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.outside import warn

Array = npt.NDArray[Any]


class AnnotationsInOrder:
    """Annotations as :class:`~zardine.vectors.content.parts.Vertices`: the corners of each, one after the other.

    Points have their properties as attributes; those with labels as text, if each number has one. Of others
    :meth:`attributes` gives them. ``name`` is what warnings call the folder.
    """

    def __init__(self, whole: Whole, info: AnnotationInfo, name: str) -> None:
        ids = np.concatenate([np.zeros(0, np.uint64), *(values["id"] for _, values in whole.parts())])
        self.ids, counts = np.unique(ids, return_counts=True)
        self.corners_of_each = CORNERS[info.annotation_type]
        self.dtype, self.rank, self.count = whole.dtype, info.rank, len(self.ids) * self.corners_of_each
        self._info, self._kept_ids = info, ""
        self._order = Reordered(whole, lambda _, values: np.searchsorted(self.ids, values["id"]), counts)
        self._used, self._corners = self._looked(name)
        self._names = storable({each.id: each for each in info.properties}, name)

    def keep_ids(self, name: str) -> str:
        """Let ids be an attribute, too; gives how it is called, ``name`` or the like."""
        while name in self._names:
            name += "_"
        self._kept_ids = name
        return name

    def _looked(self, name: str) -> tuple[dict[str, set[float]], Array]:
        """Which numbers occur of properties with labels, and the corners of all; warns of labels that are left out."""
        used: dict[str, set[float]] = {}
        for each in self._info.properties:
            if each.labels and len(self._none().properties[each.id].shape) > 1:
                warn(name, f"labels of {each.id!r} are left out: it is a colour")
            elif each.labels:
                used[each.id] = set()
        corners = np.zeros((0, self.rank), self.dtype)
        for found in self._blocks():
            bounds = bounds_of(found.geometry.astype(self.dtype).reshape(-1, self.rank))
            corners = np.stack(bounds_of(np.concatenate([corners, np.stack(bounds)])))
            for each in self._info.properties:
                if each.id in used:
                    used[each.id].update(np.unique(found.properties[each.id]).tolist())
                    if not used[each.id] <= set(each.numbers):
                        del used[each.id]
                        warn(name, f"labels of {each.id!r} are left out: some of its numbers have none")
        return used, corners

    def _none(self) -> Annotations:
        return Annotations.from_records(np.zeros(0, self._info.record), np.zeros(0, np.uint64), self._info)

    def _blocks(self) -> Iterator[Annotations]:
        """Give annotations, each once, by their ids, some at a time."""
        for _, columns, ranks in self._order.blocks():
            distinct, rows = np.unique(ranks, return_index=True)
            record = np.ascontiguousarray(columns["record"].values[rows]).tobytes()
            yield Annotations.from_records(np.frombuffer(record, self._info.record), self.ids[distinct], self._info)

    def _values(self, found: Annotations) -> dict[str, Array]:
        """Attributes of some annotations."""
        values = {name: self._of_property(found.properties[each.id], each) for name, each in self._names.items()}
        return {**values, self._kept_ids: found.ids} if self._kept_ids else values

    def _of_property(self, values: Array, about: Property) -> Array:
        if about.id not in self._used:
            return values
        labels = dict(zip(about.numbers, about.labels, strict=True))
        distinct, place = np.unique(values, return_inverse=True)
        return np.array([labels[each] for each in distinct.tolist()], object)[place]

    def _columns(self, found: Annotations) -> Columns:
        """The same as they are stored, with the codes that text has in all of them."""
        columns = dict(as_columns(self._values(found), len(found)))
        for name, about in self._names.items():
            if about.id in self._used:
                labels = dict(zip(about.numbers, about.labels, strict=True))
                texts = sorted({labels[each] for each in self._used[about.id]})
                columns[name] = recoded(columns[name], texts, False)
        return columns

    def attributes(self) -> dict[str, Array]:
        """Return the attributes of all annotations."""
        parts = [self._values(self._none()), *map(self._values, self._blocks())]
        return {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}

    @property
    def columns(self) -> Columns:
        """The attributes of points, without values."""
        return self._columns(self._none()) if self.corners_of_each == 1 else {}

    def corners(self) -> Array:
        """The lowest and the highest corner."""
        return self._corners

    def parts(self) -> Iterator[tuple[Array, Values]]:
        """Give positions, and of points values, some at a time."""
        for found in self._blocks():
            positions = found.geometry.astype(self.dtype).reshape(-1, self.rank)
            columns = self._columns(found) if self.corners_of_each == 1 else {}
            values = {name: each.values for name, each in columns.items()}
            for start in range(0, len(positions), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                yield positions[some], {name: each[some] for name, each in values.items()}


__all__ = ["AnnotationsInOrder"]
