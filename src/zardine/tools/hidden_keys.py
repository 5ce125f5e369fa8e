"""Keys that the tools keep beside the chunks of an array: their names begin with ``__zardine``, as of no node or chunk.

Core 3.1, "Node names": names that begin with two underscores are reserved.
"""

from __future__ import annotations

from typing import Final

from zardine.metadata.node_names import join_path

FOLDER: Final = "__zardine"
JOURNAL: Final = "__zardine_reshard.json"
"""How far resharding of the array is. Not in the folder: one that comes and goes with its keys cannot be locked."""
_DAMAGED: Final = "damaged"


def damaged_key(path: str, key: str, number: int = 0) -> str:
    """Where the damaged object at ``key`` of the array at ``path`` is kept; ``number`` tells several apart."""
    name = key[len(path) + 1 :] if path else key
    return join_path(path, f"{FOLDER}/{_DAMAGED}/{name}" + (f"~{number}" if number else ""))


def explain(name: str) -> tuple[str, str] | None:
    """Kind and meaning of a key, relative to its array, if it is one of these."""
    if name.startswith(f"{FOLDER}/{_DAMAGED}/"):
        return "kept", "an object that zardine.repair has changed or removed, kept as it was; it may be erased"
    if name == JOURNAL:
        return "unfinished", "zardine.reshard was interrupted: call it again to finish, or with cancel=True"
    return None
