"""Keys that the tools keep beside the chunks of an array, and damaged objects kept there before a repair changes them.

Their names begin with ``__zardine``, as of no node or chunk. Core 3.1, "Node names": names that begin with two
underscores are reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zardine.metadata.node_names import join_path
from zardine.stores.base import Reading, Store
from zardine.tools.report import Fault, action

FOLDER: Final = "__zardine"
JOURNAL: Final = "__zardine_reshard.json"
"""How far resharding of the array is. Not in the folder: one that comes and goes with its keys cannot be locked."""
OF_JOBS: Final = (f"{FOLDER}/jobs/", f"{FOLDER}/between/")
"""What the records of plans of jobs begin with, and what these write for one another."""
_DAMAGED: Final = "damaged"
_MOST: Final = 100
"""Objects that are kept for one key."""


def damaged_key(path: str, key: str, number: int = 0) -> str:
    """Return where the damaged object at ``key`` of the array at ``path`` is kept; ``number`` tells several apart."""
    name = key[len(path) + 1 :] if path else key
    return join_path(path, f"{FOLDER}/{_DAMAGED}/{name}" + (f"~{number}" if number else ""))


def explain(name: str) -> tuple[str, str] | None:
    """Return kind and meaning of a key, relative to its array, if it is one of these."""
    if name.startswith(f"{FOLDER}/{_DAMAGED}/"):
        return "kept", "an object that zardine.repair has changed or removed, kept as it was; it may be erased"
    if name == JOURNAL:
        return "unfinished", "zardine.reshard was interrupted: call it again to finish, or with cancel=True"
    return None


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
            return [action(f"/{path}", key, kind="kept", message=f"the object is kept as it was, as {name}")]
        return []
