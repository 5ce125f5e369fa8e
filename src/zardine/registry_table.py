"""Tables of named extensions, filled by zardine, by a call, or by an installed package's entry points.

A package offers an extension by an entry point in one of the groups ``zardine.codecs``, ``zardine.data_types``,
``zardine.chunk_grids``, ``zardine.chunk_key_encodings``; the entry point's name is the extension's name. Entry points
are looked at only when a name is unknown, so that they cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Generic, TypeVar, cast

from zardine.json_document import show

T = TypeVar("T")


class ExtensionTable(Generic[T]):
    """Names of one kind of extension and what implements them.

    ``builtin`` maps names to ``"module:attribute"``, imported when first needed; ``refused`` says of known names why
    nothing implements them.
    """

    def __init__(
        self, kind: str, group: str, builtin: dict[str, str] | None = None, refused: dict[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._lazy = dict(builtin or {})
        self._ready: dict[str, T] = {}
        self._broken: dict[str, str] = dict(refused or {})

    def register(self, name: str, implementation: T) -> None:
        """Use ``implementation`` for ``name`` from now on, in this process."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a {self.kind} is a non-empty string, not {name!r}")
        self._ready[name] = implementation

    def get(self, name: str) -> T | None:
        """Return what implements ``name``, or ``None``."""
        found = self._ready.get(name)
        if found is None:
            target = self._lazy.get(name)
            if target is not None:
                module, _, attribute = target.partition(":")
                found = cast(T, getattr(import_module(module), attribute))
            else:
                found = self._from_entry_point(name)
            if found is not None:
                self._ready[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._lazy, *self._ready}))

    def explain_unknown(self, name: str, more: Iterable[str] = ()) -> str:
        """Return why ``name`` cannot be used, with the nearest of the names in the table and of ``more``."""
        from difflib import get_close_matches

        if name in self._broken:
            return f'{self.kind} "{name}": {self._broken[name]}'
        names = [*self, *more]
        last = name[:100].lower()
        close = [each for each in names if each.rpartition(".")[2] == last] or get_close_matches(name[:100], names, n=3)
        hint = "; did you mean " + " or ".join(f'"{match}"' for match in close) + "?" if close else ""
        return f"unknown {self.kind} {show(name)}{hint}"

    def _from_entry_point(self, name: str) -> T | None:
        from importlib.metadata import entry_points

        for entry in entry_points(group=self.group, name=name):
            try:
                return cast(T, entry.load())
            except Exception as error:  # code of another package: whatever fails in it, this name is not available
                self._broken[name] = f"{entry.value} cannot be loaded: {error}"
        return None
