"""What tests of vectors share: comparing without order, stores whose writer is killed, documents."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from zardine.storage import MemoryStore, Store, WrapperStore


def rows(*columns: Any) -> list[tuple[Any, ...]]:
    """Rows of several arrays side by side, sorted."""
    lists = [np.asarray(each).tolist() for each in columns]
    return sorted(tuple(_flat(parts)) for parts in zip(*lists, strict=True))


def links(positions: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], *columns: Any) -> list[tuple[Any, ...]]:
    """Links as the coordinates of their ends, with their attributes, sorted."""
    return rows(positions[ends].reshape(len(ends), ends.shape[1] * positions.shape[1]), *columns)


def _flat(parts: Iterable[Any]) -> Iterable[Any]:
    for part in parts:
        yield from part if isinstance(part, list) else [part]


class Killed(BaseException):
    """The process is gone."""


def killed_by(script: str, *words: str) -> None:
    """Run a script that kills its process, in a fork of this one: a new interpreter would import all anew."""
    child = os.fork()
    if not child:
        try:
            sys.argv[1:] = words
            exec(script, {"__name__": "script"})
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


class MortalStore(WrapperStore):
    """Does so many changes, and then nothing ever again."""

    def __init__(self, store: Store, changes: int) -> None:
        super().__init__(store)
        self.left = changes
        self.dead = False

    def _live(self) -> None:
        if self.dead or self.left <= 0:
            self.dead = True
            raise Killed
        self.left -= 1

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self._live()
        return super().set(key, value, condition=condition)

    def erase(self, key: str) -> None:
        self._live()
        super().erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        self.erase_values(list(self.list_prefix(prefix)))

    def read(self, key: str, *more: Any) -> Any:
        if self.dead:
            raise Killed
        return super().read(key, *more)


class Unlocked(MemoryStore):
    """A store whose locks keep nobody out; calls :attr:`other` before one of its changes."""

    other: Callable[[], object] | None = None
    waits = 0

    @property
    def lock_is_exclusive(self) -> bool:
        return False

    def lock(self, key: str) -> AbstractContextManager[object]:
        return nullcontext()

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if self.other is not None:
            self.waits -= 1
            if self.waits < 0:
                other, self.other = self.other, None
                other()
        return super().set(key, value, condition=condition)


def copy_of(store: Store) -> MemoryStore:
    """Another store with the same values."""
    other = MemoryStore()
    for key in store.list():
        other.set(key, bytes(store.get(key) or b""))
    return other


def values(store: Store) -> dict[str, bytes]:
    """Everything in a store."""
    return {key: bytes(store.get(key) or b"") for key in store.list()}


def document(path: str, node: str = "") -> dict[str, Any]:
    """The document of a node in a directory."""
    found: dict[str, Any] = json.loads((Path(path) / node / "zarr.json").read_text())
    return found


def set_document(path: str, node: str, changed: dict[str, Any]) -> None:
    """Replace the document of a node in a directory."""
    (Path(path) / node / "zarr.json").write_text(json.dumps(changed))
