"""Another store in the place of one that is there, so that one of both can always be had.

The new arrays are stored beside the old ones, as in an edit (:mod:`zardine.vectors.storing.transactions`). One write of
level 0's document agrees on the change: it says that the level has no vertices, and under ``zardine_next`` all that is
to become of the store. Then what lies beside the level goes, the root document is replaced, and the level is filled.
Who is killed in between leaves a store that cannot be read until the next writer, or ``repair``, brings that to an end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zardine.errors import ZardineError
from zardine.hierarchy.find import child_names, erase_node, find_node
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import parse_node_json
from zardine.stores.base import Store
from zardine.stores.path import StorePath
from zardine.vectors.changing.levels import erase_levels
from zardine.vectors.content.plan import Node, group
from zardine.vectors.format.documents import LEVEL, new_level
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.level_nodes import nodes_below
from zardine.vectors.storing.node_writing import write_document
from zardine.vectors.storing.store import NEXT, PENDING, VectorStore
from zardine.vectors.storing.transactions import carry_out, finish, replace_below


def replace_store(
    store: Store, path: str, nodes: Sequence[Node], attributes: Mapping[str, Any], root: Mapping[str, Any]
) -> bool:
    """Put a store of one level in the place of the one at ``path``; ``False`` where none is that can be opened."""
    place = child(path, "0")
    with store.lock(child(place, "zarr.json")):
        try:
            complete(store, path)
            owner = VectorStore.open(StorePath(store, path), writable=True)
            finish(owner.level(0))
            level = owner.level(0)
        except ZardineError:
            return False
        erase_levels(owner, [number for number in owner.level_numbers() if number > 0])
        level = owner.level(0)
        there = {node.path for node in nodes}
        removed = [name for name in nodes_below(level) if name not in there]

        def agreed(pending: Mapping[str, Any]) -> dict[str, Any]:
            nothing = dict.fromkeys(["vertices", *pending])
            block = new_level(0, 0, [])[LEVEL]
            to_come = {"root": group(root).to_dict(), "attributes": dict(attributes), "pending": dict(pending)}
            return {LEVEL: block, PENDING: nothing, NEXT: to_come}

        replace_below(store, place, nodes, removed, agreed, level.document.attributes, afresh=True)
        complete(store, path)
    return True


def complete(store: Store, path: str) -> None:
    """Bring to an end what :func:`replace_store` agreed on."""
    place = child(path, "0")
    level = find_node(store, place, 3)
    if not isinstance(level, GroupMetadata) or NEXT not in level.attributes:
        return
    to_come: Mapping[str, Any] = level.attributes[NEXT]
    for name in list(child_names(store, path)):
        if name != "0":
            erase_node(store, child(path, name))
    write_document(store, path, parse_node_json(to_come["root"], "the next root document"))
    write_document(store, place, group({**to_come["attributes"], PENDING: to_come["pending"]}))
    carry_out(store, place)
