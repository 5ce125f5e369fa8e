"""What stores are asked by the names of zarr-python, beside their own: programs written for that use them.

All are plain methods, made of those of a store; zardine itself calls none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol, Self

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError
from zardine.stores.byte_ranges import Version
from zardine.stores.condition import Condition


class _Values(Protocol):
    """What these names need of a store."""

    @property
    def read_only(self) -> bool: ...

    def size(self, key: str) -> int | None: ...

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None: ...

    def erase(self, key: str) -> None: ...

    def erase_prefix(self, prefix: str) -> None: ...

    def list_prefix(self, prefix: str) -> Iterator[str]: ...


class ZarrPythonNames:
    """Methods of a store by the names that zarr-python has."""

    @classmethod
    def open(cls, *args: Any, **kwargs: Any) -> Self:
        """Make a store; the same as calling the class."""
        return cls(*args, **kwargs)

    def delete(self: _Values, key: str) -> None:
        """Remove ``key`` if it is there; see :meth:`erase`."""
        self.erase(key)

    def delete_dir(self: _Values, prefix: str) -> None:
        """Remove every key below the path ``prefix`` (empty: all)."""
        path = prefix.strip("/")
        self.erase_prefix(f"{path}/" if path else "")

    def clear(self: _Values) -> None:
        """Remove every key."""
        self.erase_prefix("")

    def getsize(self: _Values, key: str) -> int:
        """Return the bytes of the value of ``key``. Raises ``FileNotFoundError`` where there is none."""
        size = self.size(key)
        if size is None:
            raise FileNotFoundError(f"{self} has no key {key!r}")
        return size

    def getsize_prefix(self: _Values, prefix: str) -> int:
        """Return the bytes of all values below the path ``prefix`` (empty: all)."""
        path = prefix.strip("/")
        return sum(self.size(key) or 0 for key in self.list_prefix(f"{path}/" if path else ""))

    def set_if_not_exists(self: _Values, key: str, value: BytesLike) -> None:
        """Store ``value`` where ``key`` has none yet."""
        with suppress(ConditionFailedError):
            self.set(key, value, condition=Condition(None))

    @property
    def supports_writes(self: _Values) -> bool:
        """Whether values can be stored."""
        return not self.read_only

    @property
    def supports_deletes(self: _Values) -> bool:
        """Whether keys can be removed."""
        return not self.read_only

    @property
    def supports_partial_writes(self) -> bool:
        """Whether parts of a value can be written where they lie; shards are changed by way of :attr:`files` then."""
        return False

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether consolidated metadata is of use."""
        return True


__all__ = ["ZarrPythonNames"]
