"""A part of a store as a store of its own."""

from __future__ import annotations

from zardine.public_names import public
from zardine.stores.base import Store, check_prefix
from zardine.stores.path import normalize_path
from zardine.stores.wrappers.wrapper import WrapperStore


@public("zardine.storage")
class PrefixStore(WrapperStore):
    """What lies below a path of another store; keys and prefixes are relative to that path."""

    def __init__(self, store: Store, prefix: str, *, read_only: bool = False) -> None:
        super().__init__(store, read_only=read_only)
        path = normalize_path(prefix)
        self._start = f"{path}/" if path else ""

    @property
    def prefix(self) -> str:
        """What the inner store's keys begin with: empty, or ending with a slash."""
        return self._start

    def _inward(self, name: str) -> str:
        return self._start + name

    def move_prefix(self, source: str, dest: str) -> bool:
        check_prefix(source)
        check_prefix(dest)
        self._check_writable()
        return self._store.move_prefix(self._inward(source), self._inward(dest))

    def _outward(self, name: str) -> str:
        return name[len(self._start) :]

    def __str__(self) -> str:
        return f"{str(self._store).rstrip('/')}/{self._start[:-1]}" if self._start else str(self._store)

    def __repr__(self) -> str:
        return f"PrefixStore({self._store!r}, {self._start!r})"

    def _parts(self) -> tuple[object, ...]:
        return *super()._parts(), self._start


__all__ = ["PrefixStore"]
