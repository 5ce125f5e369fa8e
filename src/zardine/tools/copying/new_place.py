"""Commit at a new place: nothing is found there before all of it is.

First of all a key :data:`~zardine.hierarchy.find.UNFINISHED` is written at the target, with the fingerprint of the
request; then the chunks, each object whole; then the documents, children before their parents, so that the last one
makes the node that was asked for; then the key is removed. Whoever looks in between finds no node. A run that is cut
off at any point is continued by the same request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from zardine.engine.documents import get_document
from zardine.errors import (
    ConditionFailedError,
    MetadataError,
    NodeExistsError,
    UnsupportedError,
)
from zardine.hierarchy.create import create_ancestors, erase_node
from zardine.hierarchy.find import UNFINISHED, WORKS, describe, find_node, taken, unfinished_work
from zardine.hierarchy.place import check_new_place
from zardine.json_document import JSON, parse_json, show
from zardine.metadata.formats import NodeMetadata, document_names, to_documents
from zardine.metadata.node_names import join_path
from zardine.stores.base import Condition, Store


class OtherConversionError(NodeExistsError):
    """Another conversion to this place is not finished; says what differs."""

    def __init__(
        self, target: str, work: str, before: JSON, now: str, differences: Mapping[str, tuple[JSON, JSON]]
    ) -> None:
        self.target, self.work, self.before, self.now, self.differences = target, work, before, now, differences
        super().__init__(self.in_words(lambda name, value: f"{name}={value}"))

    def in_words(
        self, named: Callable[[str, JSON], str], *, again: str = "the call as it was", anew: str = "overwrite=True"
    ) -> str:
        """Return the text, with each option and its value as ``named`` writes them."""
        if self.before != self.now:
            why = "the source is another one"
        elif self.differences:
            changed = (
                f"it had {named(name, old)}, now it is {named(name, new)}"
                for name, (old, new) in self.differences.items()
            )
            why = "; ".join(changed)
        else:
            why = "the documents of the source have changed"
        return (
            f"{self.target} is an unfinished {self.work} of {self.before}, and not this one (of {self.now}): {why}; "
            f"{again} continues it, {anew} begins anew"
        )


@dataclass(frozen=True, slots=True)
class Target:
    """Where the target is, and what is to be made there."""

    store: Store
    path: str
    source: str
    """What is converted, for error texts."""
    fingerprint: str
    options: Mapping[str, JSON] = field(default_factory=dict)
    """What was asked for, by the names of :func:`zardine.convert`; kept to say what differs."""
    function: str = "convert"
    """The function that makes it."""
    zarr_format: int = 3

    @property
    def key(self) -> str:
        """The key that marks the target as unfinished."""
        return join_path(self.path, UNFINISHED)

    def __str__(self) -> str:
        return describe(self.store, self.path)

    def look(self, *, overwrite: bool, resume: bool, way: str = "overwrite=True erases all of it") -> bool:
        """Whether an earlier run of the same request is to be continued. Raises where the place is taken.

        ``way`` says in the error what can be done about it.
        """
        found = self._marked()
        if found is None:
            check_new_place(self.store, self.path, self.zarr_format)
            if overwrite:
                return False
            try:
                _check_empty(self.store, self.path, way)
                return False
            except NodeExistsError:
                found = self._marked()
                if found is None:
                    raise  # else another worker has just begun the same, perhaps
        if found.get("fingerprint") == self.fingerprint and resume:
            return True
        if overwrite:
            return False
        if found.get("fingerprint") == self.fingerprint:
            raise NodeExistsError(
                f"{self} is an unfinished {WORKS[self.function]}; resume=True continues it, overwrite=True begins anew"
            )
        work = unfinished_work(self.store, self.path) or WORKS[self.function]
        differences = self._differences(found.get("options"))
        raise OtherConversionError(str(self), work, found.get("source"), self.source, differences)

    def is_begun(self) -> bool:
        """Whether the place is marked by this request."""
        found = self._marked()
        return found is not None and found.get("fingerprint") == self.fingerprint

    def _differences(self, before: JSON) -> dict[str, tuple[JSON, JSON]]:
        """Return the options that an earlier run had otherwise: by name what they were, and what they are."""
        before = before if isinstance(before, dict) else {}
        return {
            name: (before[name], value)
            for name, value in self.options.items()
            if name in before and before[name] != value
        }

    def begin(self, *, overwrite: bool) -> None:
        """Mark the place, which is erased first if ``overwrite``."""
        if overwrite:
            erase_node(self.store, self.path)
        document = {
            "about": f"An unfinished {WORKS[self.function]} by zardine. The same call continues it; this key goes when "
            "it is done.",
            "function": self.function,
            "source": self.source,
            "fingerprint": self.fingerprint,
            "options": dict(self.options),
        }
        try:
            self.store.set(self.key, json.dumps(document, indent=2).encode(), condition=Condition(None))
        except ConditionFailedError:
            raise NodeExistsError(f"another {WORKS[self.function]} to {self} has just begun") from None

    def take(self, way: str) -> None:
        """Mark the place, unless this request has done so. Raises where it is taken; ``way`` is as in :meth:`look`."""
        if self.look(overwrite=False, resume=True, way=way):
            return
        try:
            self.begin(overwrite=False)
        except NodeExistsError:  # another worker was faster: one of this request, or of another
            if not self.look(overwrite=False, resume=True, way=way):
                raise

    def publish(self, nodes: Mapping[str, NodeMetadata]) -> None:
        """Write the documents of nodes, which are given by their relative paths, parents first.

        They are written in the reverse order, so that the document of the target itself comes last.
        """
        create_ancestors(self.store, self.path, self.zarr_format)
        for path in reversed(list(nodes)):
            _write_documents(self.store, join_path(self.path, path), nodes[path])

    def unmark(self) -> None:
        """Remove the mark: nothing is left to do."""
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


def _write_documents(store: Store, path: str, metadata: NodeMetadata) -> None:
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


def _check_empty(store: Store, path: str, way: str) -> None:
    try:
        node = find_node(store, path)
    except MetadataError:
        node = None
    if node is not None:
        raise taken(store, path, node, way)
    try:
        first = next(iter(store.list_prefix(f"{path}/" if path else "")), None)
    except UnsupportedError:
        return
    if first is None:
        return
    raise NodeExistsError(f"{describe(store, path)} is not empty: {first} is stored there; {way}")


__all__ = ["OtherConversionError", "Target"]
