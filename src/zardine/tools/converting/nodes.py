"""The nodes of the hierarchy that is to be converted, from their own documents."""

from __future__ import annotations

from collections.abc import Iterator

from zardine.errors import ConversionError, MetadataError, NodeNotFoundError, Problem, UnsupportedError
from zardine.hierarchy.find import child_names, describe, find_node, implied_group, not_found, refuse_unfinished
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import NodeMetadata, main_names, parse_node_json
from zardine.metadata.node_names import explain_bad_name, join_path
from zardine.stores.base import Store


def read_nodes(store: Store, path: str, *, older_first: bool = False) -> dict[str, NodeMetadata]:
    """Return all nodes at and below ``path`` by their relative paths, parents before their children.

    A node that is stored in two versions counts as the newer; below a group the version of that group comes first.
    With ``older_first`` v2 counts for the root, and then for everything below.

    Raises :class:`~zardine.errors.NodeNotFoundError`, or :class:`~zardine.errors.ConversionError` that lists every
    document that cannot be read.
    """
    versions = (2, 1, 3) if older_first else (3, 2, 1)
    root: NodeMetadata | None = None
    for version in versions:
        root = root or find_node(store, path, version)
    root = root or implied_group(store, path)
    if root is None:
        raise not_found(store, path, None, NodeNotFoundError, "array or group")
    refuse_unfinished(root, store, path)
    nodes: dict[str, NodeMetadata] = {"": root}
    problems: list[Problem] = []
    if isinstance(root, GroupMetadata):
        try:
            first = 2 if older_first and root.zarr_format == 2 else None
            nodes |= _below(store, path, "", root, first, problems)
        except UnsupportedError:
            if root.consolidated_metadata is None:
                raise
            nodes |= _consolidated(store, path, root)
    if problems:
        raise ConversionError("nothing was converted: documents of the source cannot be read", problems)
    return dict(_sorted(nodes))


def _below(
    store: Store, root: str, relative: str, group: GroupMetadata, first: int | None, problems: list[Problem]
) -> dict[str, NodeMetadata]:
    nodes: dict[str, NodeMetadata] = {}

    def children(above: str) -> Iterator[str]:
        parent = join_path(root, above)
        _refuse_reserved_names(store, parent, above, problems)
        return iter([join_path(above, name) for name in child_names(store, parent)])

    within = [(group, children(relative))]
    while within:
        group, names = within[-1]
        child = next(names, None)
        if child is None:
            within.pop()
            continue
        try:
            node = find_node(store, join_path(root, child), first=first or group.zarr_format)
        except MetadataError as error:
            problems += [Problem(f"/{child}", str(each)) for each in error.problems] or [
                Problem(f"/{child}", str(error))
            ]
            continue
        node = node or implied_group(store, join_path(root, child))
        if node is not None:
            refuse_unfinished(node, store, join_path(root, child))
            nodes[child] = node
        if isinstance(node, GroupMetadata):
            within.append((node, children(child)))
    return nodes


def _refuse_reserved_names(store: Store, parent: str, relative: str, problems: list[Problem]) -> None:
    """Note members that v2 has by names that no node of v3 may have: they would be passed over."""
    start = f"{parent}/" if parent else ""
    for each in store.list_dir(start)[1]:
        name = each[len(start) : -1]
        reason = explain_bad_name(name, 3)
        if reason is not None and any(store.exists(f"{each}{document}") for document in main_names(2)):
            problems.append(Problem(f"/{join_path(relative, name)}", f"{reason}, so that no node of v3 can have it"))


def _consolidated(store: Store, path: str, root: GroupMetadata) -> dict[str, NodeMetadata]:
    """Return what the consolidated metadata of a group says, where its store cannot list what is in it."""
    documents = root.consolidated_metadata or {}
    place = "the consolidated document of {} is invalid"
    return {
        relative: parse_node_json(document, place.format(describe(store, join_path(path, relative))))
        for relative, document in documents.items()
    }


def _sorted(nodes: dict[str, NodeMetadata]) -> Iterator[tuple[str, NodeMetadata]]:
    for path in sorted(nodes, key=lambda path: path.split("/")):
        yield path, nodes[path]
