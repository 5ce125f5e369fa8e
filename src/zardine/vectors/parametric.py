"""Parametric objects: planes, lines, spheres and others, each a row of coefficients beside the levels of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, StoreError, ZardineError
from zardine.hierarchy.find import find_node
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import config
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.one_writer import alone_with_claim
from zardine.vectors.content.arguments import plain_array
from zardine.vectors.content.columns import is_unicode
from zardine.vectors.content.plan import Node
from zardine.vectors.content.point_content import groups_of
from zardine.vectors.format.layouts import table_metadata
from zardine.vectors.reading.loading_parametric import load_parametric
from zardine.vectors.results import ParametricObject
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.commits import telling_of_commits
from zardine.vectors.storing.store import VectorStore
from zardine.vectors.storing.transactions import carry_out, replace_below

PARAMETRIC_TYPES: Mapping[str, tuple[str, ...]] = {
    "plane": ("A", "B", "C", "D"),
    "line": ("x0", "y0", "z0", "dx", "dy", "dz"),
    "sphere": ("cx", "cy", "cz", "r"),
}

_PARTS = ("groups", "group_attributes", "object_attributes")
"""What says something of objects, beside ``objects`` and ``names``: it goes with the objects that it is about."""


@alone_with_claim
def write_parametric_objects(
    path: StoreLike,
    objects: Iterable[ParametricObject],
    *,
    types: Mapping[str, Sequence[str]] = PARAMETRIC_TYPES,
    groups: Sequence[Collection[int]] | None = None,
) -> None:
    """Store parametric objects in the store at ``path``, in the place of those that are there.

    ``types`` names the coefficients of each type. ``groups`` are lists of numbers of objects. The old ones are there
    until one write changes to the new ones.
    Raises :class:`~zardine.errors.DataError` for unknown types, names that are no text, and for other than finite
    coefficients, as many as the type has.
    """
    owner = VectorStore.open(path, writable=True)
    _check_types(types)
    objects = _checked_objects(objects, types)
    names = list(types)
    width = 1 + max((len(types[each.type]) for each in objects), default=0)
    table = np.full((len(objects), width), np.nan)
    for row, each in enumerate(objects):
        values = _coefficients(each, types[each.type], row)
        table[row, 0] = names.index(each.type)
        table[row, 1 : 1 + len(values)] = values
    found = groups_of(groups, None, np.arange(len(objects)))
    labels = np.empty(len(objects), object)
    labels[:] = [each.name.encode() for each in objects]
    numbered = {str(n): {"name": name, "coefficients": list(types[name])} for n, name in enumerate(names)}
    about = {"zv_array": "parametric_objects", "num_objects": len(objects), "max_row_length": width, "dtype": "float64"}
    named = {"zv_array": "parametric_names", "num_objects": len(objects)}
    nodes = [
        Node("objects", _metadata(table.shape, "float64", about, np.nan), values=table),
        Node("names", _metadata((len(objects),), "variable_length_bytes", named), values=labels),
    ]
    if found is not None:
        members = np.empty(len(found.members), object)
        members[:] = [each.astype("<i8").tobytes() for each in found.members]
        metadata = _metadata((len(members),), "variable_length_bytes", {"num_groups": len(members)})
        nodes.append(Node("groups", metadata, values=members))
    place = child(owner.path, "parametric")
    carry_out(owner.store, place)
    old = find_node(owner.store, place, 3)
    attributes: Mapping[str, Any] = {} if old is None else old.attributes
    planned = {node.path for node in nodes}
    removed = [name for name in _PARTS if name not in planned and find_node(owner.store, child(place, name), 3)]
    changed = {**attributes, "parametric_types": numbered}
    with telling_of_commits(owner.store, place):
        replace_below(owner.store, place, nodes, removed, changed, attributes, is_whole=True)


def _check_types(types: Any) -> None:
    good = isinstance(types, Mapping) and all(
        _is_text(name) and isinstance(each, Sequence) and not isinstance(each, str | bytes) and all(map(_is_text, each))
        for name, each in types.items()
    )
    if not good:
        raise DataError("types is a mapping of names of types to lists of the names of their coefficients")


def _checked_objects(objects: Any, types: Mapping[str, Sequence[str]]) -> list[ParametricObject]:
    try:
        found = list(objects)
    except TypeError:
        raise DataError(f"objects is a list of ParametricObject, not {type(objects).__name__}") from None
    for row, each in enumerate(found):
        if not isinstance(each, ParametricObject):
            raise DataError(f"object {row} is a {type(each).__name__}, not a ParametricObject")
        if not isinstance(each.type, str) or each.type not in types:
            raise DataError(f"object {row} is a {each.type!r}; there are {', '.join(types)}")
        if not _is_text(each.name):
            raise DataError(f"object {row} has the name {each.name!r}, which is no text that UTF-8 can hold")
    return found


def _coefficients(one: ParametricObject, names: Sequence[str], row: int) -> npt.NDArray[np.float64]:
    given = plain_array(one.coefficients, f"object {row}")
    if given.shape == (len(names),) and all(isinstance(each, int | float) for each in given.tolist()):
        with suppress(OverflowError):
            values = given.astype(np.float64)
            if np.isfinite(values).all():
                return values
    raise DataError(f"object {row}: a {one.type} has the finite coefficients {', '.join(names)}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_unicode(value)


def _metadata(shape: Sequence[int], dtype: Any, about: Mapping[str, Any], fill_value: Any = None) -> ArrayMetadata:
    return table_metadata(shape, dtype, shape, about, fill_value, checksum=config["array.checksum"])


def read_parametric_objects(path: StoreLike) -> list[ParametricObject]:
    """Read the parametric objects of a store: none where it has none.

    Raises :class:`~zardine.errors.CorruptionError` for damaged ones.
    """
    owner = VectorStore.open(path)
    place = child(owner.path, "parametric")
    for last in attempts(CHANGES):
        group = find_node(owner.store, place, 3)
        try:
            found = load_parametric(owner, place, group)
            if find_node(owner.store, place, 3) == group:
                return found
        except ZardineError:
            if last or find_node(owner.store, place, 3) == group:
                raise
    raise StoreError(f"the parametric objects of {owner.name} change again and again while they are read: try later")
