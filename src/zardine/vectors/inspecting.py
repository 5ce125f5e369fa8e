"""Reading what levels say of objects, groups and fragments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.nodes.array import Array
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_objects import load_groups, load_manifests, load_tables
from zardine.vectors.reading.query import ALL
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Arrays
from zardine.vectors.storing.store import Level


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class ObjectTable:
    """The objects of a level."""

    ids: npt.NDArray[np.int64]
    """``(O,)``, in the order of the object index."""
    fragment_counts: npt.NDArray[np.int64]
    """``(O,)``: how many fragments each is made of; 0 for those that this level leaves out."""
    attributes: Arrays = field(default_factory=dict)
    """For each object attribute ``(O,)`` or ``(O, channels)``.

    Where an object has no value: NaN, the lowest integer of the type (without a sign the highest), ``""``.
    """
    present: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """For each object attribute ``(O,)``: which objects have a value."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class GroupTable:
    """The groups of a level, numbered from 0."""

    members: tuple[npt.NDArray[np.int64], ...]
    """Object ids."""
    attributes: Arrays = field(default_factory=dict)
    """For each group attribute a row for each group."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class FragmentTable:
    """The fragments of a level, chunk by chunk."""

    chunks: npt.NDArray[np.int64]
    """``(F, K)``: the chunk of each fragment."""
    vertex_counts: npt.NDArray[np.int64]
    """``(F,)``: how many rows it names."""
    attributes: Arrays = field(default_factory=dict)
    """For each fragment attribute ``(F,)`` or ``(F, channels)``."""


def read_objects(path: StoreLike, *, level: int = 0) -> ObjectTable:
    """The ids and attributes of all objects of a level; none where it has none."""
    return read_steadily(path, level, _objects)


def _objects(opened: Level) -> ObjectTable:
    manifests = load_manifests(opened)
    if manifests is None:
        none = np.zeros(0, np.int64)
        return ObjectTable(none, none)
    columns = load_tables(opened, "object_attributes", len(manifests.ids))
    values = {name: column.decoded() for name, column in columns.items()}
    present = {name: _present(opened.table(f"object_attributes/{name}"), values[name]) for name in values}
    return ObjectTable(manifests.ids, np.diff(manifests.starts), values, present)


def _present(table: Array | None, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows are not wholly the fill value, where the document says that this stands for nothing."""
    if table is None or table.metadata.attributes.get("fill_sentinel_meaning") != "absent":
        return np.ones(len(values), np.bool_)
    fill = table.fill_value
    absent: npt.NDArray[np.bool_] = np.asarray(values == fill, np.bool_)
    if values.dtype.kind == "f" and np.isnan(fill):
        absent = np.isnan(values)
    rows: npt.NDArray[np.bool_] = absent.reshape(len(values), int(np.prod(values.shape[1:])))
    return np.asarray((~rows).any(axis=1), np.bool_)


def read_groups(path: StoreLike, *, level: int = 0) -> GroupTable:
    """The members and attributes of all groups of a level; none where it has none."""
    groups = read_steadily(path, level, load_groups)
    if groups is None:
        return GroupTable(())
    return GroupTable(groups.members, {name: column.decoded() for name, column in groups.attributes.items()})


def read_fragments(path: StoreLike, *, level: int = 0) -> FragmentTable:
    """The chunks and attributes of all fragments of a level."""
    content = read_steadily(path, level, lambda opened: load_cells(opened, fragment_attributes=ALL))
    chunks = np.repeat(content.keys, np.diff(content.fragments.before), axis=0)
    values = {name: column.decoded() for name, column in content.fragment_attributes.items()}
    return FragmentTable(chunks, np.diff(content.fragments.starts), values)
