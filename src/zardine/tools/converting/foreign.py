"""What is lost of a source, above all one that is a file of another format: told before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from zardine.errors import Problem
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import join_path
from zardine.sources.arrays import NotUnicodeError
from zardine.stores.base import Store
from zardine.tools.checking.left_out import check_left_out
from zardine.tools.converting.plan import NodePlan


def lost_nodes(store: Store, path: str, nodes: Mapping[str, NodeMetadata]) -> list[Problem]:
    """Return what at and below ``path`` has no form in Zarr, or is behind links that are not followed."""
    if not store.is_foreign:
        known = {join_path(path, relative): [node] for relative, node in nodes.items()}
        faults = check_left_out(store, path, known)
        return [Problem(f"/{each.key}", each.message) for each in faults if each.kind == "store"]
    start = f"{path}/" if path else ""
    return [
        Problem(f"/{name[len(start) :]}", f"{what}; leave_out=True (--leave-out) converts the rest")
        for name, what in store.left_out(start)
    ]


def lost_text(store: Store, path: str, nodes: Mapping[str, NodeMetadata]) -> list[Problem]:
    """Return which arrays of a foreign file hold text that is none: all text in it is read."""
    found = []
    for relative, node in nodes.items():
        if not may_be_lost_text(store, node):
            continue
        name = join_path(path, relative)
        try:
            for key in store.list_prefix(f"{name}/" if name else ""):
                store.read(key)
        except NotUnicodeError as error:
            found.append(Problem(f"/{relative}", f"{error}; leave_out=True (--leave-out) converts the rest"))
    return found


def may_be_lost_text(store: Store, node: NodeMetadata) -> bool:
    """Return whether a node is an array of text of a foreign file, of which only reading tells whether it is text."""
    return store.is_foreign and isinstance(node, ArrayMetadata) and node.data_type.item_size is None


def remarks_of(store: Store, path: str) -> Iterator[tuple[str, str]]:
    """Yield paths relative to ``path`` of nodes that say less than the file they are made of, and what is not said."""
    start = f"{path}/" if path else ""
    for name, what in store.remarks(start):
        yield name[len(start) :], what


def with_remarks(plans: Sequence[NodePlan], remarks: Iterable[tuple[str, str]]) -> tuple[NodePlan, ...]:
    """Return the plans with remarks on their nodes; those on nodes that have no plan stand with the first."""
    paths = {plan.path for plan in plans}
    found: dict[str, list[str]] = {}
    for path, remark in remarks:
        known = path in paths
        text = remark if known else f"/{path} is left out: {remark.partition('; leave_out=True')[0]}"
        found.setdefault(path if known else plans[0].path, []).append(text)
    return tuple(replace(plan, remarks=(*plan.remarks, *found.get(plan.path, ()))) for plan in plans)


__all__ = ["lost_nodes", "lost_text", "may_be_lost_text", "remarks_of", "with_remarks"]
