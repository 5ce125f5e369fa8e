"""What lies in a store of files where nobody lists it: links that cannot be followed, and what is no file."""

from __future__ import annotations

from collections.abc import Sequence

from zardine.engine.layout import prepare_layout
from zardine.errors import StoreError
from zardine.hierarchy.place import is_within
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import ALL_NAMES, NodeMetadata
from zardine.stores.base import Store
from zardine.stores.local.file_tree import EMPTY_DIRECTORY
from zardine.tools.report import Fault


def check_left_out(store: Store, path: str, nodes: dict[str, list[NodeMetadata]]) -> list[Fault]:
    """Return a fault for each such thing at and below ``path``; of empty directories for those in place of a chunk.

    It is of the kind ``"store"`` where an array, or a document, is lost: chunks are behind a link that is not followed.
    """
    faults = []
    for name, what in store.left_out(f"{path}/" if path else ""):
        here = max((each for each in nodes if is_within(name, each)), key=len, default=path)
        inner = name[len(here) + 1 :] if here else name
        if inner.startswith("__"):
            continue
        at_chunk = _is_chunk(nodes.get(here, ()), inner)
        if what == EMPTY_DIRECTORY and not at_chunk:
            continue
        in_array = any(isinstance(node, ArrayMetadata) for node in nodes.get(here, ()))
        error = _read_error(store, name) if in_array or inner.rpartition("/")[2] in ALL_NAMES else None
        if error is not None:
            faults.append(Fault(f"/{here}", name, kind="store", message=error))
        else:
            where = ", in the place of a chunk, which reads as fill value" if at_chunk else ""
            message = f"the key belongs to nothing: {what} lies there{where}"
            faults.append(Fault(f"/{here}", name, kind="stray", message=message))
    return faults


def _is_chunk(nodes: Sequence[NodeMetadata], name: str) -> bool:
    """Whether a name relative to its array is the key of a chunk."""
    arrays = [node for node in nodes if isinstance(node, ArrayMetadata)]
    return any(prepare_layout(each, "").keys.decode(name, each.ndim) is not None for each in arrays)


def _read_error(store: Store, key: str) -> str | None:
    try:
        store.read(key)
    except StoreError as error:
        return str(error)
    return None


__all__ = ["check_left_out"]
