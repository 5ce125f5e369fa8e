"""What was seen of a source when its import was planned: names and versions of values, and documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from zardine.stores.base import Store
from zardine.stores.byte_ranges import Version


class Seen:
    """A digest of what was looked at."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, *what: str | int | None) -> None:
        """Note what was seen next."""
        self._digest.update(json.dumps(what).encode())

    def __str__(self) -> str:
        return self._digest.hexdigest()


def listed(store: Store, prefix: str) -> Iterator[tuple[str, Version | None]]:
    """Yield all keys below a prefix, sorted, with their versions where these cost no request for each.

    Raises :class:`~zardine.errors.UnsupportedError` where nothing is listed.
    """
    found = store.list_versions(prefix)
    if found is not None:
        yield from found
        return
    near = not store.cost.is_slow
    for key in store.list_prefix(prefix):
        yield key, store.version(key) if near else None


__all__ = ["Seen", "listed"]
