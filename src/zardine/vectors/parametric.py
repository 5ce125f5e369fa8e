"""Parametric objects: planes, lines, spheres and others, each a row of coefficients beside the levels of a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.arrays import Array
from zardine.engine.freshness import note_fresh
from zardine.errors import CorruptionError, DataError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import parse_node_json
from zardine.nodes import describe, find_node
from zardine.stores.resolve import StoreLike
from zardine.vectors.cell_arrays import child
from zardine.vectors.layouts import table_metadata
from zardine.vectors.level_access import PENDING, VectorStore
from zardine.vectors.level_plan import Node
from zardine.vectors.one_writer import alone
from zardine.vectors.point_content import groups_of
from zardine.vectors.transactions import carry_out, replace_below

PARAMETRIC_TYPES: Mapping[str, tuple[str, ...]] = {
    "plane": ("A", "B", "C", "D"),
    "line": ("x0", "y0", "z0", "dx", "dy", "dz"),
    "sphere": ("cx", "cy", "cz", "r"),
}

_PARTS = ("groups", "group_attributes", "object_attributes")
"""What says something of objects, beside ``objects`` and ``names``: it goes with the objects that it is about."""


@dataclass(frozen=True, slots=True, eq=False)
class ParametricObject:
    """A named geometry that numbers describe."""

    type: str
    coefficients: npt.NDArray[np.float64]
    name: str = ""


@alone
def write_parametric_objects(
    path: StoreLike,
    objects: Sequence[ParametricObject],
    *,
    types: Mapping[str, Sequence[str]] = PARAMETRIC_TYPES,
    groups: Sequence[Collection[int]] | None = None,
) -> None:
    """Store parametric objects in the store at ``path``, in the place of those that are there.

    ``types`` names the coefficients of each type. ``groups`` are lists of numbers of objects. The old ones are there
    until one write changes to the new ones.
    Raises :class:`~zardine.errors.DataError` for unknown types, and for other than finite coefficients, as many as the
    type has.
    """
    owner = VectorStore.open(path, writable=True)
    names = list(types)
    width = 1 + max((len(types[each.type]) for each in objects if each.type in types), default=0)
    table = np.full((len(objects), width), np.nan)
    for row, each in enumerate(objects):
        values = np.asarray(each.coefficients, np.float64)
        if each.type not in types:
            raise DataError(f"object {row} is a {each.type!r}; there are {', '.join(names)}")
        if values.shape != (len(types[each.type]),) or not np.isfinite(values).all():
            raise DataError(f"object {row}: a {each.type} has the finite coefficients {', '.join(types[each.type])}")
        table[row, 0] = names.index(each.type)
        table[row, 1 : 1 + len(values)] = values
    found = groups_of(groups, None, np.arange(len(objects)))
    labels = np.empty(len(objects), object)
    labels[:] = [each.name.encode() for each in objects]
    numbered = {str(n): {"name": name, "coefficients": list(types[name])} for n, name in enumerate(names)}
    about = {"zv_array": "parametric_objects", "num_objects": len(objects), "max_row_length": width, "dtype": "float64"}
    count = (len(objects),)
    nodes = [
        Node("objects", table_metadata(table.shape, "float64", table.shape, about), values=table),
        Node(
            "names",
            table_metadata(
                count, "variable_length_bytes", count, {"zv_array": "parametric_names", "num_objects": len(objects)}
            ),
            values=labels,
        ),
    ]
    if found is not None:
        members = np.empty(len(found.members), object)
        members[:] = [each.astype("<i8").tobytes() for each in found.members]
        shape = (len(members),)
        metadata = table_metadata(shape, "variable_length_bytes", shape, {"num_groups": len(members)})
        nodes.append(Node("groups", metadata, values=members))
    place = child(owner.path, "parametric")
    carry_out(owner.store, place)
    old = find_node(owner.store, place, 3)
    attributes: Mapping[str, Any] = {} if old is None else old.attributes
    planned = {node.path for node in nodes}
    removed = [name for name in _PARTS if name not in planned and find_node(owner.store, child(place, name), 3)]
    changed = {**attributes, "parametric_types": numbered}
    replace_below(owner.store, place, nodes, removed, changed, attributes)


def read_parametric_objects(path: StoreLike) -> list[ParametricObject]:
    """The parametric objects of a store, none where it has none. Raises :class:`~zardine.errors.CorruptionError`."""
    owner = VectorStore.open(path)
    place = child(owner.path, "parametric")
    node = find_node(owner.store, place, 3)
    if not isinstance(node, GroupMetadata):
        return []
    types: Mapping[str, Any] = node.attributes.get("parametric_types") or {}
    pending = node.attributes.get(PENDING) or {}
    table, names = (_table(owner, place, name, pending) for name in ("objects", "names"))
    if table is None:
        return []
    rows = np.asarray(table[...], np.float64)
    labels = [""] * len(rows) if names is None else [each.decode() for each in names[...].tolist()]
    found = []
    for row, label in zip(rows, labels, strict=True):
        kind = types.get(str(int(row[0]))) if np.isfinite(row[0]) else None
        if kind is None or 1 + len(kind["coefficients"]) > len(row):
            raise CorruptionError(f"a row of unknown type {row[0]}", array=describe(owner.store, f"{place}/objects"))
        found.append(ParametricObject(kind["name"], row[1 : 1 + len(kind["coefficients"])].copy(), label))
    return found


def _table(owner: VectorStore, place: str, name: str, pending: Mapping[str, Any]) -> Array | None:
    path = child(place, name)
    if name in pending:
        document = pending[name]
        node = None if document is None else parse_node_json(document, f"the pending document of {path}")
    else:
        node = find_node(owner.store, path, 3)
    if not isinstance(node, ArrayMetadata):
        return None
    array = Array(owner.store, path, node)
    note_fresh(array._source)  # the document that is stored may be the old one yet
    return array
