"""Consolidated metadata: of an opened group, as all handles that came out of it see it and keep it true; and of the
groups above an array that changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from zardine.engine.side_by_side import begun
from zardine.engine.workers import for_each, most_requests
from zardine.errors import ZardineError, ZarrUserWarning
from zardine.hierarchy.find import (
    HIDDEN,
    describe,
    document_key,
    find_node,
    implied_group,
    load_array,
    warn_of_bad_name,
)
from zardine.hierarchy.place import is_within
from zardine.hierarchy.update import update_node
from zardine.json_document import JSON
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import explain_bad_name, join_path
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.shown_text import shown
from zardine.stores.base import Store
from zardine.stores.file_seam import local_folder
from zardine.stores.local.store import LocalStore

Documents = Mapping[str, Mapping[str, JSON]]
"""Documents of nodes by path, relative to the group that has them."""


class Consolidated:
    """What a group's document says of the nodes below. Changes go to the stored document and to what is in memory."""

    def __init__(self, store: Store, path: str, zarr_format: int, nodes: Documents) -> None:
        self.store = store
        self.path = path
        self.zarr_format = zarr_format
        self.nodes: dict[str, Mapping[str, JSON]] = dict(nodes)
        self.changes = 0
        self._names: tuple[int, dict[str, list[str]]] | None = None

    def below(self, path: str) -> dict[str, Mapping[str, JSON]]:
        """Return the documents of the nodes below one of them, by path relative to that."""
        if not path:
            return dict(self.nodes)
        prefix = f"{path}/"
        return {each[len(prefix) :]: node for each, node in list(self.nodes.items()) if each.startswith(prefix)}

    def names(self, path: str) -> list[str]:
        """Return the names of the nodes directly below one of them, sorted; without those that no path can have."""
        changes = self.changes
        if self._names is None or self._names[0] != changes:
            names: dict[str, list[str]] = {}
            for each in sorted(self.nodes):
                parent, _, name = each.rpartition("/")
                if name.startswith(HIDDEN):
                    continue
                reason = explain_bad_name(name, self.zarr_format)
                if reason is None:
                    names.setdefault(parent, []).append(name)
                else:
                    warn_of_bad_name(describe(self.store, join_path(self.path, parent)), name, reason)
            self._names = changes, names
        return self._names[1].get(path, [])

    def forget(self, path: str) -> None:
        """Take out a node, with all below it."""
        self._change((), (path,), ())

    def forget_gone(self, paths: Sequence[str]) -> bool:
        """Take out those of some nodes, with all below them, that are not stored any more; gives whether one was."""
        gone: list[str] = []

        def look(path: str) -> None:
            if self._stored(path) is None:
                gone.append(path)

        for_each(look, paths, len(paths), most_requests(self.store, 1))
        if gone:
            self._change((), tuple(gone), ())
        return bool(gone)

    def keep_true(self, paths: Iterable[str], *, emptied: Iterable[str] = ()) -> None:
        """Take over the stored documents of some nodes, and of groups above them that are new; first forget what was
        below those in ``emptied``.

        What these nodes are is stored already, so that an error gives a warning only.
        """
        wanted = dict.fromkeys(above for path in paths for above in self._unknown_above(path))
        try:
            self._change(tuple(wanted), (), tuple(emptied))
        except ZardineError as error:
            names = ", ".join(repr(path) for path in wanted)
            warnings.warn(
                shown(
                    f"{names} changed, but the consolidated metadata of {describe(self.store, self.path)} does not say "
                    f"so: {error}; zardine.consolidate_metadata makes it true again"
                ),
                ZarrUserWarning,
                stacklevel=3,
            )

    def _unknown_above(self, path: str) -> list[str]:
        parts = path.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        return [*(each for each in above if each not in self.nodes), path]

    def _change(self, taken: tuple[str, ...], gone: tuple[str, ...], emptied: tuple[str, ...]) -> None:
        """Change what is stored by one conditional write.

        The documents are read in it, so that of two writers none stores an older one.
        """
        found: dict[str, Mapping[str, JSON] | None] = {}

        def changed(nodes: Documents) -> dict[str, Mapping[str, JSON]]:
            kept = {
                path: node
                for path, node in nodes.items()
                if not any(is_within(path, each) for each in gone)
                and not any(is_within(path, each) and path != each for each in emptied)
            }
            for path, document in found.items():
                if document is None:
                    kept.pop(path, None)
                else:
                    kept[path] = document
            return kept

        def update(old: GroupMetadata) -> GroupMetadata:
            found.update((path, self._stored(path)) for path in taken)
            if old.consolidated_metadata is None:  # someone has removed it
                return old
            return old.with_consolidated(changed(old.consolidated_metadata))

        plain = GroupMetadata(zarr_format=self.zarr_format)
        if self.store.exists(document_key(self.path, plain)):
            update_node(self.store, self.path, plain, update)
        else:
            found.update((path, self._stored(path)) for path in taken)
        self.nodes = changed(self.nodes)
        self.changes += 1

    def _stored(self, path: str) -> Mapping[str, JSON] | None:
        place = join_path(self.path, path)
        node = find_node(self.store, place, first=self.zarr_format) or implied_group(self.store, place)
        return None if node is None else as_entry(node)


def as_entry(node: NodeMetadata) -> dict[str, Any]:
    """Return a node's document as consolidated metadata holds it: without what it says of nodes below."""
    if isinstance(node, ArrayMetadata):
        return node.to_dict()
    return node.with_consolidated({} if node.zarr_format == 3 else None).to_dict()


def outermost(store: Store, path: str) -> tuple[Store, str]:
    """Return the same place as seen from the outermost group a directory lies in, in whose store they all are."""
    folder = local_folder(store)
    if folder is None or not isinstance(store, LocalStore):
        return store, path
    root = top = Path(folder)
    while top.parent != top and (top.parent / DOCUMENT_NAME).is_file():
        top = top.parent
    if top == root:
        return store, path
    wider = LocalStore(top, read_only=store.read_only, durable=store.durable)
    return wider, join_path(root.relative_to(top).as_posix(), path)


def update_consolidated(store: Store, path: str) -> int:
    """Write the document of the array at ``path`` into the consolidated metadata of the groups above that have it.

    Gives how many groups were changed.
    """
    metadata = load_array(store, path, unfinished=True)
    changed = 0
    parts = path.split("/") if path else []
    groups = ["/".join(parts[:depth]) for depth in range(len(parts))]
    looks = begun(store, [partial(find_node, store, above, metadata.zarr_format) for above in groups])
    for depth, (above, look) in enumerate(zip(groups, looks, strict=True)):
        relative, group = "/".join(parts[depth:]), look()
        if isinstance(group, GroupMetadata) and relative in (group.consolidated_metadata or {}):
            update_node(store, above, group, partial(_with, relative=relative, metadata=metadata))
            changed += 1
    return changed


def _with(group: GroupMetadata, *, relative: str, metadata: ArrayMetadata) -> GroupMetadata:
    consolidated = dict(group.consolidated_metadata or {})
    if relative in consolidated:
        consolidated[relative] = as_entry(metadata)
    return group.with_consolidated(consolidated)
