"""Parametric objects, beside the levels of a store: what is stored of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.freshness import leave_to_owner
from zardine.errors import CorruptionError
from zardine.hierarchy.find import find_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.nodes.array import Array
from zardine.vectors.results import ParametricObject
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.steady import read_table
from zardine.vectors.storing.store import PENDING, VectorStore


def load_parametric(owner: VectorStore, place: str, group: NodeMetadata | None) -> list[ParametricObject]:
    """Read the objects that ``group``, the document at ``place``, describes; none where it is ``None``.

    Raises :class:`~zardine.errors.CorruptionError`.
    """
    if group is None:
        return []
    types, pending = group.attributes.get("parametric_types") or {}, group.attributes.get(PENDING) or {}
    if not isinstance(group, GroupMetadata) or not isinstance(types, Mapping) or not isinstance(pending, Mapping):
        raise CorruptionError("the document of parametric objects is damaged", array=place)
    found, named = (read_table(partial(parametric_table, owner, place, name, pending)) for name in ("objects", "names"))
    if found is None:
        if types and "objects" not in pending:
            raise CorruptionError("there are types, and no parametric objects", array=f"{place}/objects")
        return []
    table, rows = found
    names, labels = (None, np.full(len(rows), b"", object)) if named is None else named
    if table.ndim != 2 or table.dtype.kind != "f" or (names is not None and names.shape != table.shape[:1]):
        shapes = f"{table.dtype} of shape {table.shape}, names of {None if names is None else names.shape}"
        raise CorruptionError(f"rows of float64 and a name for each are needed, not {shapes}", array=table.path)
    both = zip(rows.astype(np.float64), labels.tolist(), strict=True)
    return [_object(row, label, types, table.path) for row, label in both]


def _object(row: npt.NDArray[np.float64], label: Any, types: Mapping[str, Any], place: str) -> ParametricObject:
    kind = types.get(str(int(row[0]))) if len(row) and np.isfinite(row[0]) else None
    name = kind.get("name") if isinstance(kind, Mapping) else None
    coefficients = kind.get("coefficients") if isinstance(kind, Mapping) else None
    if not isinstance(name, str) or not isinstance(coefficients, list | tuple):
        raise CorruptionError(f"a row of unknown type {row[:1].tolist()}", array=place)
    values, beyond = row[1 : 1 + len(coefficients)].copy(), row[1 + len(coefficients) :]
    if len(values) < len(coefficients) or not np.isfinite(values).all() or not np.isnan(beyond).all():
        raise CorruptionError(f"a {name} has {len(coefficients)} coefficients, not {row[1:].tolist()}", array=place)
    try:
        return ParametricObject(name, values, label.decode())
    except (AttributeError, UnicodeDecodeError):
        raise CorruptionError(f"the name {label!r} is no text", array=place) from None


def parametric_table(owner: VectorStore, place: str, name: str, pending: Mapping[str, Any]) -> Array | None:
    """Open the table ``name``, by its ``pending`` document if it has one; ``None`` where there is no table."""
    path = child(place, name)
    if name in pending:
        document = pending[name]
        node = None if document is None else parse_node_json(document, f"the pending document of {path}")
    else:
        node = find_node(owner.store, path, 3)
    if not isinstance(node, ArrayMetadata):
        return None
    array = Array(owner.store, path, node)
    leave_to_owner(array._handle)  # the document that is stored may be the old one yet
    return array
