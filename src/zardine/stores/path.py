"""Paths of nodes within a store."""

from __future__ import annotations

from zardine.errors import InvalidKeyError
from zardine.public_names import public
from zardine.stores.base import Store, check_key


def normalize_path(path: str) -> str:
    """``path`` without slashes at its ends and without doubled ones; empty for the root of the store.

    :class:`InvalidKeyError` for parts ``.`` and ``..`` and the NUL character.
    """
    if not isinstance(path, str):
        raise InvalidKeyError(f"a path in a store is a string, not {path!r}")
    parts = [part for part in path.split("/") if part]
    return check_key("/".join(parts)) if parts else ""


@public("zardine.storage")
class StorePath:
    """A node's place: a ``store`` and a ``path`` in it, without slashes at its ends. ``place / "name"`` goes down."""

    __slots__ = ("path", "store")

    def __init__(self, store: Store, path: str = "") -> None:
        self.store = store
        self.path = normalize_path(path)

    @property
    def read_only(self) -> bool:
        """Whether the store refuses writing."""
        return self.store.read_only

    def __truediv__(self, other: str) -> StorePath:
        return StorePath(self.store, f"{self.path}/{other}")

    def __str__(self) -> str:
        return f"{str(self.store).rstrip('/')}/{self.path}" if self.path else str(self.store)

    def __repr__(self) -> str:
        return f"StorePath({self.store!r}, {self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and self.path == other.path and self.store == other.store

    def __hash__(self) -> int:
        return hash((self.store, self.path))


__all__ = ["StorePath", "normalize_path"]
