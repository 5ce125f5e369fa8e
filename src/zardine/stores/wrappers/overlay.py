"""What a store would hold after changes that are kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError
from zardine.stores.base import (
    WHOLE,
    ByteRange,
    Condition,
    ReadCost,
    Reading,
    Store,
    Version,
    check_key,
    check_prefix,
)
from zardine.stores.memory import MemoryStore


class OverlayStore(Store):
    """Another store with changes that never reach it, to see what they would come to. For one thread that changes."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._below = store
        self._changed = MemoryStore()
        self._erased: set[str] = set()

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        found = self._changed.read(key, ranges)
        if found is not None:
            return Reading(found.parts, f"changed-{found.version}", found.size)
        return None if key in self._erased else self._below.read(key, ranges)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        if condition is not None and self.version(key) != condition.version:
            raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")
        return f"changed-{self._changed.set(key, value)}"

    def erase(self, key: str) -> None:
        self._erased.add(check_key(key))
        self._changed.erase(key)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        check_prefix(prefix)
        keys, prefixes = self._changed.list_dir(prefix)
        more, below = self._below.list_dir(prefix)
        gone = sorted(each for each in self._erased if each.startswith(prefix))
        for each in below:
            if each not in prefixes and (
                not any(key.startswith(each) for key in gone)
                or any(key not in self._erased for key in self._below.list_prefix(each))
            ):
                prefixes.append(each)
        return sorted({*keys, *(key for key in more if key not in self._erased)}), sorted(prefixes)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        below = (key for key in self._below.list_prefix(prefix) if key not in self._erased)
        return iter(sorted({*self._changed.list_prefix(prefix), *below}))

    def lock(self, key: str) -> AbstractContextManager[object]:
        return self._changed.lock(key)

    @property
    def lock_is_exclusive(self) -> bool:
        return True

    def is_locked(self, key: str) -> bool:
        return self._changed.is_locked(key)

    @property
    def origin(self) -> tuple[str, str, str] | None:
        return self._below.origin

    def faults(self) -> Iterator[str]:
        return self._below.faults()

    def left_out(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        return self._below.left_out(prefix)

    @property
    def cost(self) -> ReadCost:
        return self._below.cost

    @property
    def unique_name(self) -> str:
        return f"{self._below.unique_name}, changed in {self._changed.unique_name}"

    def __str__(self) -> str:
        return str(self._below)


__all__ = ["OverlayStore"]
