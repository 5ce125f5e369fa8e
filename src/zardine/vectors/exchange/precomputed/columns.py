"""Attributes of a store as properties and vertex attributes of neuroglancer, and what of them cannot be kept. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.vectors.exchange.precomputed.annotations import PROPERTIES, PROPERTY_ID, Property
from zardine.vectors.exchange.precomputed.skeletons import VertexAttribute, fitting, narrowest
from zardine.vectors.exchange.precomputed.tables import Tell

Columns = Mapping[str, npt.NDArray[Any]]
Found = dict[str, npt.NDArray[Any]]

_NUMBERS: Final = tuple(name for name, (_, width) in PROPERTIES.items() if width == 1)
_MOST_LABELS: Final = 2**16
_COLOURS: Final = {3: "rgb", 4: "rgba"}


class ValuesLook:
    """What is known of the values of a column that were looked at: how large they are, whether 32 bits hold them."""

    def __init__(self, like: npt.NDArray[Any]) -> None:
        self.like = like[:0]
        self.low = self.high = 0
        self.is_exact = True
        self.texts: set[str] = set()
        self.some_are_missing = False

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        if values.dtype.kind in "iu" and values.size:
            self.low, self.high = min(self.low, int(values.min())), max(self.high, int(values.max()))
        elif values.dtype.kind == "f":
            self.is_exact = self.is_exact and _is_exact(values)
        elif values.dtype.kind not in "iufb" and values.ndim == 1 and len(self.texts) <= _MOST_LABELS:
            found = values.tolist()
            self.some_are_missing = self.some_are_missing or None in found
            self.texts.update(map(_text, found))

    def kind(self, kinds: Sequence[str]) -> str | None:
        """Return the narrowest type of numbers among ``kinds`` that holds all; ``None`` for none."""
        return fitting(self.like.dtype, self.low, self.high, kinds)


@dataclass(frozen=True, slots=True)
class PropertyColumn:
    """A property, and of which attribute it has the values: of all of it, or of one of its channels."""

    property: Property
    attribute: str
    channel: int | None = None

    def values(self, columns: Columns) -> npt.NDArray[Any]:
        """Return the values of some rows."""
        values = columns[self.attribute]
        if self.channel is not None:
            values = values[:, self.channel]
        if self.property.labels:
            number = {label: at for at, label in enumerate(self.property.labels)}
            return np.array([number[_text(each)] for each in values.tolist()], self.property.type)
        if self.property.type in _COLOURS.values():
            return values
        with np.errstate(over="ignore"):
            return values.astype(self.property.type)

    def to_json(self) -> list[Any]:
        """Return it as JSON."""
        about = self.property
        return [about.id, about.type, list(about.labels), self.attribute, self.channel]

    @classmethod
    def from_json(cls, told: Sequence[Any]) -> PropertyColumn:
        """Return what :meth:`to_json` wrote."""
        name, kind, labels, attribute, channel = told
        return cls(Property(name, kind, "", tuple(range(len(labels))), tuple(labels)), attribute, channel)


class PropertyLooks:
    """Columns ``(N,)`` and ``(N, channels)`` that are to be properties, as far as they were looked at."""

    def __init__(self) -> None:
        self._looks: dict[tuple[str, int | None], ValuesLook] = {}

    def look(self, columns: Columns) -> None:
        """Look at some rows more."""
        for name, values in columns.items():
            for channel, each in _channels(values).items():
                if (name, channel) not in self._looks:
                    self._looks[name, channel] = ValuesLook(each)
                self._looks[name, channel].look(each)

    def with_(self, others: PropertyLooks) -> PropertyLooks:
        """Return the same with other columns, which take the place of those of their names."""
        found = PropertyLooks()
        names = {name for name, _ in others._looks}
        found._looks = {key: each for key, each in self._looks.items() if key[0] not in names} | others._looks
        return found

    def columns(self, tell: Tell) -> tuple[PropertyColumn, ...]:
        """Return the properties, wide ones first; tells of what is changed, or cannot be kept.

        Text becomes a number with labels, three or four bytes a colour, other values in a row a property each.
        """
        found: list[PropertyColumn] = []
        for (name, channel), look in self._looks.items():
            part = name if channel is None or look.like.ndim > 1 else f"{name}_{channel}"
            if channel == 0 and (name, 1) not in self._looks:
                part = name
            about = _property(part, look, tell)
            if about is not None:
                found.append(PropertyColumn(about, name, channel))
        found.sort(key=lambda each: -np.dtype(PROPERTIES[each.property.type][0]).itemsize)
        names = property_ids([each.property.id for each in found], tell)
        return tuple(
            replace(each, property=replace(each.property, id=name)) for name, each in zip(names, found, strict=True)
        )


def _channels(values: npt.NDArray[Any]) -> dict[int | None, npt.NDArray[Any]]:
    """A column as what each property has of it; ``None``: all of it."""
    is_colour = values.ndim == 2 and values.dtype == np.uint8 and values.shape[1] in _COLOURS
    if values.ndim == 1 or is_colour or (values.dtype.kind not in "iufb" and values.shape[1] != 1):
        return {None: values}
    return {channel: values[:, channel] for channel in range(values.shape[1])}


def _property(name: str, look: ValuesLook, tell: Tell) -> Property | None:
    """What numbers, colours or text of a column become; ``None``, and that is told, for what cannot be kept."""
    if look.like.dtype.kind not in "iufb":
        return _labelled(name, look, tell)
    if look.like.ndim == 2:
        return Property(name, _COLOURS[look.like.shape[1]])
    kind = look.kind(_NUMBERS)
    if kind is None:
        tell(f"the attribute {name!r} cannot be kept: the format holds integers of up to 32 bits")
        return None
    if look.like.dtype.kind == "b":
        tell(f"the attribute {name!r} is written as numbers, 0 and 1")
    if not look.is_exact:
        tell(f"the attribute {name!r} is rounded to float32")
    return Property(name, kind)


def _labelled(name: str, look: ValuesLook, tell: Tell) -> Property | None:
    """Text as numbers with labels."""
    if look.like.ndim > 1:
        tell(f"the attribute {name!r} cannot be kept: it has several texts for each row")
        return None
    if look.some_are_missing:
        tell(f"missing text of the attribute {name!r} is written as empty text")
    labels = tuple(sorted(look.texts))
    if len(labels) > _MOST_LABELS:
        tell(f"the attribute {name!r} cannot be kept: it has more than {_MOST_LABELS} texts")
        return None
    return Property(name, "uint8" if len(labels) <= 256 else "uint16", "", tuple(range(len(labels))), labels)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


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


def as_vertex_attributes(looks: Mapping[str, ValuesLook], tell: Tell) -> tuple[VertexAttribute, ...]:
    """Return the attributes that skeletons keep, of columns that were looked at."""
    attributes = []
    for name, look in looks.items():
        kind = None if look.like.dtype.kind not in "iufb" else look.kind(_NUMBERS)
        if kind is None:
            tell(f"the attribute {name!r} cannot be kept: the format holds numbers of up to 32 bits")
            continue
        if look.like.dtype.kind == "f" and look.like.dtype.itemsize > 4:
            tell(f"the attribute {name!r} is rounded to float32")
        attributes.append(VertexAttribute(name, kind, 1 if look.like.ndim == 1 else look.like.shape[1]))
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


def _is_exact(values: npt.NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.array_equal(values.astype(np.float32).astype(np.float64), values, equal_nan=True))


def _is_finite(values: npt.NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(values.astype(np.float32)).all())


def _single(name: str, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Columns of several values as one for each: ``name_0``, ``name_1``."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{number}": values[:, number] for number in range(values.shape[1])}


__all__ = ["PropertyColumn", "PropertyLooks", "ValuesLook", "as_vertex_attributes", "of_segments", "property_ids"]
