"""A conversion that can be cut off at any point: what marks its target, and how the target becomes visible.

First of all a key :data:`~zardine.nodes.UNFINISHED` is written at the target, with the fingerprint of the request; then
the chunks, each object whole; then the documents, children before their parents, so that the last one makes the node
that was asked for; then the key is removed. Whoever looks in between finds no node.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zardine.engine.documents import get_document
from zardine.errors import (
    ConditionFailedError,
    ContainsArrayError,
    MetadataError,
    NodeExistsError,
    UnsupportedError,
)
from zardine.json_document import JSON, parse_json, show
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, document_names, to_documents
from zardine.metadata.node_names import join_path
from zardine.nodes import UNFINISHED, create_ancestors, describe, erase_node, find_node, taken
from zardine.stores.base import Condition, Store
from zardine.tools.converting.plan import NodePlan, document_text


@dataclass(frozen=True, slots=True)
class Place:
    """Where the target is, and what is to be made there."""

    store: Store
    path: str
    source: str
    """What is converted, for error texts."""
    fingerprint: str

    @property
    def key(self) -> str:
        """The key that marks the target as unfinished."""
        return join_path(self.path, UNFINISHED)

    def __str__(self) -> str:
        return describe(self.store, self.path)

    def look(self, *, overwrite: bool, resume: bool) -> bool:
        """Whether an earlier run of the same request is to be continued. Raises where the place is taken."""
        found = self._marked()
        if found is None:
            check_ancestors(self.store, self.path)
            if not overwrite:
                _check_empty(self.store, self.path)
            return False
        if found.get("fingerprint") == self.fingerprint and resume:
            return True
        if overwrite:
            return False
        if found.get("fingerprint") == self.fingerprint:
            raise NodeExistsError(
                f"{self} is an unfinished conversion; resume=True continues it, overwrite=True begins anew"
            )
        raise NodeExistsError(
            f"{self} is an unfinished conversion of {found.get('source')}, and not this one (of {self.source}): the "
            "source, its documents or the options differ; the call as it was continues it, overwrite=True begins anew"
        )

    def begin(self, *, overwrite: bool) -> None:
        """Mark the place, which is erased first if ``overwrite``."""
        if overwrite:
            erase_node(self.store, self.path)
        document = {
            "about": "An unfinished conversion by zardine. The same call continues it; this key goes when it is done.",
            "source": self.source,
            "fingerprint": self.fingerprint,
        }
        try:
            self.store.set(self.key, json.dumps(document, indent=2).encode(), condition=Condition(None))
        except ConditionFailedError:
            raise NodeExistsError(f"another conversion to {self} has just begun") from None

    def publish(self, plans: Iterable[NodePlan]) -> None:
        """Write all documents, that of the target's root last, and remove the mark."""
        plans = list(plans)
        create_ancestors(self.store, self.path, plans[0].target.zarr_format)
        for plan in reversed(plans):
            write_documents(self.store, join_path(self.path, plan.path), plan.target)
        self.store.erase(self.key)

    def _marked(self) -> Mapping[str, JSON] | None:
        data = get_document(self.store, self.key)
        if data is None:
            return None
        try:
            found = parse_json(data)
        except (ValueError, RecursionError):
            found = None
        return found if isinstance(found, dict) else {}


def fingerprint(source: str, plans: Iterable[NodePlan]) -> str:
    """What two runs have equal if the second may continue the first."""
    request = {
        "source": source,
        "nodes": {plan.path: [document_text(plan.source), document_text(plan.target), plan.as_text] for plan in plans},
    }
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def write_documents(store: Store, path: str, metadata: NodeMetadata) -> None:
    """Store the documents of a node, the one that makes it last; those that are there already are left alone."""
    documents = to_documents(metadata)
    first, *rest = document_names(metadata.zarr_format, metadata.node_type)
    for name in (*rest, first):
        document, key = documents[name], join_path(path, name)
        if document is None:
            continue
        try:
            store.set(key, document, condition=Condition(None))
        except ConditionFailedError:
            old = get_document(store, key)
            if old is None or bytes(old) != document:
                raise NodeExistsError(
                    f"{key} of {store} was written by another program, and says {show(_text(old))}"
                ) from None


def _text(data: object) -> str:
    return bytes(data).decode("utf-8", "replace") if isinstance(data, (bytes, bytearray, memoryview)) else ""


def _check_empty(store: Store, path: str) -> None:
    try:
        node = find_node(store, path)
    except MetadataError:
        node = None
    if node is not None:
        raise taken(store, path, node)
    try:
        first = next(iter(store.list_prefix(f"{path}/" if path else "")), None)
    except UnsupportedError:
        return
    if first is None:
        return
    raise NodeExistsError(
        f"{describe(store, path)} is not empty: {first} is stored there; overwrite=True erases all of it"
    )


def check_ancestors(store: Store, path: str) -> None:
    """Raise where a node above ``path`` is an array, below which no other node can lie."""
    parts = path.split("/")[:-1]
    for depth in range(len(parts) + 1 if path else 0):
        ancestor = "/".join(parts[:depth])
        if isinstance(find_node(store, ancestor), ArrayMetadata):
            raise ContainsArrayError(
                f"cannot make an array or group at {describe(store, path)}: {describe(store, ancestor)} is an array"
            )
