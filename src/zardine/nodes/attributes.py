"""``node.attrs``: user attributes as a dictionary whose changes are stored at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from zardine.json_document import JSON
from zardine.metadata.attributes import attributes_to_json

AttributesChange: TypeAlias = Callable[[Mapping[str, JSON]], Mapping[str, JSON]]
"""Makes new attributes of those that are stored."""


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or group.

    Each change is written before the call returns; ``update`` and ``put`` write once for all names. Values must have a
    JSON form (NumPy scalars and arrays are converted): ``TypeError`` or ``ValueError`` otherwise, and nothing changes.
    """

    def __init__(self, read: Callable[[], Mapping[str, JSON]], change: Callable[[AttributesChange], None]) -> None:
        self._read = read
        self._change = change

    def asdict(self) -> dict[str, Any]:
        """Return a copy of all attributes."""
        return dict(self._read())

    def put(self, d: Mapping[str, Any]) -> None:
        """Replace all attributes by those in ``d``."""
        new = attributes_to_json(d)
        self._change(lambda old: new)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several attributes in one write."""
        try:
            given = dict(*args, **kwargs)
        except (TypeError, ValueError):
            raise TypeError(f"attributes must be a mapping of names to values, not {args[0]!r}") from None
        new = attributes_to_json(given)
        self._change(lambda old: {**old, **new})

    def refresh(self) -> None:
        """Do nothing: attributes are read when they are looked at. Kept for code written for Zarr v2."""

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        if name not in self._read():
            raise KeyError(name)
        self._change(lambda old: {key: value for key, value in old.items() if key != name})

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self._read())

    def __contains__(self, name: object) -> bool:
        return name in self._read()

    def __repr__(self) -> str:
        return repr(self.asdict())
