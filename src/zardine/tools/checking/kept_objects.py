"""Keeping objects as they were before a repair changes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zardine.stores.base import Reading, Store
from zardine.tools.hidden_keys import damaged_key
from zardine.tools.report import Fault

_MOST: Final = 100
"""Objects that are kept for one key."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Whether objects are kept, and whether anything is written at all."""

    keeps: bool
    dry_run: bool

    def keep(self, store: Store, path: str, key: str, old: Reading, *, always: bool = False) -> list[Fault]:
        """Store what is at ``key`` of the array at ``path`` under a key of its own, if it is not there already.

        It may be, if a repair was interrupted. ``always``: also where nothing is to be kept. Gives what was done.
        """
        if not (self.keeps or always):
            return []
        data = bytes(old.parts[0])
        for number in range(_MOST):
            name = damaged_key(path, key, number)
            kept = store.get(name)
            if kept is not None and bytes(kept) != data:
                continue
            if kept is None and not self.dry_run:
                store.set(name, data)
            return [Fault(f"/{path}", key, kind="kept", message=f"the object is kept as it was, as {name}")]
        return []
