"""What is served as one page looks at it: what it asks of the store is counted for it alone, and it sees one state."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any, Final

from zardine.cache import Cache
from zardine.metadata.formats import document_names
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.server.served import Served
from zardine.server.viewer.kept import Kept
from zardine.server.viewer.snapshot import ChangedError, Snapshot, Tally
from zardine.server.viewer.steady import SteadyStore
from zardine.storage import CountingStore
from zardine.stores.base import Store
from zardine.stores.path import StorePath

_serial = count(1)

_MOST_PAGES: Final = 64
"""Pages that a server knows; of one more it forgets the one that has asked nothing for the longest time."""
_MOST_STEADY: Final = 16
"""Stores of vectors that one page has a state of."""


class Pages:
    """The nodes of a server, for each page that looks at them; what all pages show is kept within one bound."""

    def __init__(self, served: Mapping[str, Served]) -> None:
        self._served = served
        self._kept = Kept()
        self._known: Cache[tuple[str, str], Viewed] = Cache(_MOST_PAGES)
        self._guard = Lock()

    def viewed(self, name: str, page: str) -> Viewed:
        """Return the node ``name`` as a ``page`` looks at it, which is known by any text that it made up."""
        with self._guard:
            known = self._known.get((name, page))
            if known is None:
                known = Viewed.of(self._served[name], self._kept)
                self._known.put((name, page), known, 1)
            return known


@dataclass(slots=True, eq=False)
class Viewed:
    """A node that a page looks at: what is asked of its store is counted, and each array has a snapshot."""

    served: Served
    store: CountingStore
    kept: Kept
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_serial))
    """Tells counts that begin at zero from earlier ones of the same page, which the server has forgotten."""
    decoded: Tally = field(default_factory=Tally)
    guard: Any = field(default_factory=Lock)
    _steady: Cache[str, SteadyStore] = field(default_factory=lambda: Cache(_MOST_STEADY))

    @classmethod
    def of(cls, served: Served, kept: Kept) -> Viewed:
        """Return a twin of a served node, with a store of its own that counts."""
        store = CountingStore(_own(served.store), read_only=True)
        return cls(Served(served.name, store, served.path), store, kept)

    def snapshot(self, path: str, number: int | None = None) -> Snapshot | None:
        """Return the snapshot ``number`` of an array; without a number the newest, a new one if that is old.

        ``None`` where there is no array. Raises :class:`ChangedError` for one that is not the newest any more.
        """
        if number is None:
            known = self.snapshots.get(path)
            if known is not None:
                try:
                    known.check()
                except ChangedError:
                    self.served.forget_all()
            array = self.served.node(path)
            if not isinstance(array, Array):
                return None
            with self.guard:
                known = self.snapshots.get(path)
                if known is None or known.is_old or known.array is not array:
                    known = self.snapshots[path] = Snapshot(array, self.kept, decoded=self.decoded)
                return known
        known = self.snapshots.get(path)
        if known is None or known.number != number:
            raise ChangedError("the server has another state of it by now")
        return known

    def steady(self, path: str, number: int | None = None) -> SteadyStore:
        """Return the store as a state of the vectors at ``path`` sees it: ``number``, or without one a new state.

        Raises :class:`ChangedError` for a state that is not the newest any more.
        """
        with self.guard:
            known = self._steady.get(path)
            if number is None:
                known = SteadyStore(self.store)
                self._steady.put(path, known, 1)
            elif known is None or known.number != number:
                raise ChangedError("the server has another state of it by now")
            return known

    def place(self, path: str, store: Store | None = None) -> StorePath:
        """Return the place of the node at ``path`` in its store, or in another ``store`` that stands for it."""
        return StorePath(self.store if store is None else store, self.served.key(path))

    def group_state(self, path: str, zarr_format: int) -> str:
        """Return a text that is another one when the document of a group, or a name below it, has changed."""
        prefix = self.served.key(path)
        found: list[object] = [
            self.store.version(join_path(prefix, name)) for name in document_names(zarr_format, "group")
        ]
        if self.store.supports_listing:
            found += sorted(self.store.list_dir(f"{prefix}/" if prefix else "")[1])
        return hashlib.sha256(repr(found).encode()).hexdigest()[:16]

    def meter(self) -> dict[str, int]:
        """Return what the page has asked of this store so far, and what was decoded for it; no count ever falls."""
        counts = self.store.counts
        return {
            "number": self.number,
            "requests": counts.requests,
            "bytes": counts.bytes_read,
            "decoded": self.decoded.number,
        }


def _own(store: Store) -> Store:
    """Return a copy of a store that counts the requests it sends for itself; of others the store."""
    if store.meter is None:
        return store
    try:
        return copy.deepcopy(store)
    except (TypeError, AttributeError):  # of credentials that cannot be copied: all pages count together
        return store


__all__ = ["Pages", "Viewed"]
