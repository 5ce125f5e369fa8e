"""Attributes of a store as properties and vertex attributes of neuroglancer, and what of them cannot be kept. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.vectors.exchange.precomputed.annotations import PROPERTIES, PROPERTY_ID, Property
from zardine.vectors.exchange.precomputed.skeletons import VertexAttribute, narrowest
from zardine.vectors.exchange.precomputed.tables import Tell

Columns = Mapping[str, npt.NDArray[Any]]
Found = dict[str, npt.NDArray[Any]]

_NUMBERS: Final = tuple(name for name, (_, width) in PROPERTIES.items() if width == 1)
_MOST_LABELS: Final = 2**16
_COLOURS: Final = {3: "rgb", 4: "rgba"}


def as_properties(columns: Columns, tell: Tell) -> tuple[tuple[Property, ...], Found]:
    """Return columns ``(N,)`` and ``(N, channels)`` as properties, wide ones first, and their values.

    Text becomes a number with labels, three or four bytes a colour, other values in a row a property each.
    """
    found: list[tuple[Property, npt.NDArray[Any]]] = []
    for name, values in columns.items():
        given = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if given.dtype.kind not in "iufb":
            found += _labelled(name, given, tell)
        elif given.ndim == 2 and given.dtype == np.uint8 and given.shape[1] in _COLOURS:
            found.append((Property(name, _COLOURS[given.shape[1]]), given))
        else:
            for part, each in _single(name, given).items():
                cast = narrowed(part, each, tell)
                if cast is not None:
                    found.append((Property(part, cast.dtype.name), cast))
    found.sort(key=lambda pair: -np.dtype(PROPERTIES[pair[0].type][0]).itemsize)
    names = property_ids([each.id for each, _ in found], tell)
    properties = tuple(
        Property(name, each.type, "", each.numbers, each.labels) for name, (each, _) in zip(names, found, strict=True)
    )
    return properties, {name: values for name, (_, values) in zip(names, found, strict=True)}


def property_ids(names: Collection[str], tell: Tell) -> list[str]:
    """Return names that properties can have; tells of those that are changed."""
    found: list[str] = []
    for name in names:
        plain = name
        if not PROPERTY_ID.fullmatch(name):
            plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in name)
            plain = plain[:1].lower() + plain[1:] if plain[:1].isalpha() else f"p_{plain}".rstrip("_")
        while plain in found:
            plain += "_"
        if plain != name:
            tell(f"the attribute {name!r} is called {plain!r} there")
        found.append(plain)
    return found


def as_vertex_attributes(columns: Columns, tell: Tell) -> tuple[VertexAttribute, ...]:
    """Return the attributes that skeletons keep of ``columns``, which may be parts of the true ones."""
    attributes = []
    for name, values in columns.items():
        kind = None if values.dtype.kind not in "iufb" else narrowest(values, _NUMBERS)
        if kind is None:
            tell(f"the attribute {name!r} cannot be kept: the format holds numbers of up to 32 bits")
            continue
        if values.dtype.kind == "f" and values.dtype.itemsize > 4:
            tell(f"the attribute {name!r} is rounded to float32")
        attributes.append(VertexAttribute(name, kind, 1 if values.ndim == 1 else values.shape[1]))
    return tuple(attributes)


def of_segments(columns: Columns, tell: Tell) -> Found:
    """Return columns of one value for each segment."""
    found: Found = {}
    for name, values in columns.items():
        for part, each in _single(name, values).items():
            if each.dtype.kind in "iufb" and narrowest(each, _NUMBERS) is None:
                tell(f"the attribute {part!r} is written as text: the format holds integers of up to 32 bits")
            elif each.dtype.kind == "f" and not _is_finite(each):
                tell(f"the attribute {part!r} cannot be kept: some values are no finite numbers of 32 bits")
                continue
            elif each.dtype.kind == "f" and not _is_exact(each):
                tell(f"the attribute {part!r} is rounded to float32")
            found[part] = each
    return found


def narrowed(name: str, values: npt.NDArray[Any], tell: Tell) -> npt.NDArray[Any] | None:
    """Return numbers as the format has them; ``None``, and that is told, for those that it does not hold."""
    kind = narrowest(values, _NUMBERS)
    if kind is None:
        tell(f"the attribute {name!r} cannot be kept: the format holds integers of up to 32 bits")
        return None
    if values.dtype.kind == "b":
        tell(f"the attribute {name!r} is written as numbers, 0 and 1")
    if values.dtype.kind == "f" and not _is_exact(values):
        tell(f"the attribute {name!r} is rounded to float32")
    with np.errstate(over="ignore"):
        return values.astype(kind)


def _is_exact(values: npt.NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.array_equal(values.astype(np.float32).astype(np.float64), values, equal_nan=True))


def _is_finite(values: npt.NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(values.astype(np.float32)).all())


def _labelled(name: str, values: npt.NDArray[Any], tell: Tell) -> list[tuple[Property, npt.NDArray[Any]]]:
    """Text as numbers with labels."""
    if values.ndim > 1:
        tell(f"the attribute {name!r} cannot be kept: it has several texts for each row")
        return []
    texts = ["" if each is None else str(each) for each in values.tolist()]
    if None in values.tolist():
        tell(f"missing text of the attribute {name!r} is written as empty text")
    labels = sorted(set(texts))
    if len(labels) > _MOST_LABELS:
        tell(f"the attribute {name!r} cannot be kept: it has {len(labels)} texts, and {_MOST_LABELS} fit")
        return []
    numbers = {label: number for number, label in enumerate(labels)}
    kind = "uint8" if len(labels) <= 256 else "uint16"
    codes = np.array([numbers[each] for each in texts], kind)
    return [(Property(name, kind, "", tuple(range(len(labels))), tuple(labels)), codes)]


def _single(name: str, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Columns of several values as one for each: ``name_0``, ``name_1``."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{number}": values[:, number] for number in range(values.shape[1])}


__all__ = ["as_properties", "as_vertex_attributes", "narrowed", "of_segments", "property_ids"]
