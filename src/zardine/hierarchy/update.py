"""Changing metadata documents: conditional writes, so that two processes changing one document both succeed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from zardine.buffers import BytesLike
from zardine.engine.documents import read_document
from zardine.errors import ArrayNotFoundError, ConditionFailedError
from zardine.hierarchy.find import document_key, names_of, not_found, parse_found, taken
from zardine.json_document import parse_json, replace_non_numbers
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import to_documents
from zardine.metadata.node_names import join_path
from zardine.metadata.seen_documents import remember
from zardine.metadata.v2 import CONSOLIDATED
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.attempts import attempts
from zardine.stores.base import Condition, Reading, Store, Version

M = TypeVar("M", ArrayMetadata, GroupMetadata)


Known = tuple[Version | None, bytes | None]
"""A version of the only document of a node, with its bytes."""


def update_node(store: Store, path: str, metadata: M, change: Callable[[M], M]) -> M:
    """Change the document of a node; ``change`` gets what is stored now, which may be newer than ``metadata``."""
    return updated_node(store, path, metadata, change)[0]


def updated_node(
    store: Store, path: str, metadata: M, change: Callable[[M], M], known: Known = (None, None)
) -> tuple[M, Version | None]:
    """As :func:`update_node`, with the version of the first document, where it was stored and the store says it.

    ``known``: as for :func:`stored_node`.
    """
    for last in attempts():
        with store.lock(document_key(path, metadata)):
            stored = stored_node(store, path, metadata, known, surely=last.number > 1)
            changed = change(stored.metadata)
            if changed == stored.metadata and known[1] is not None:  # no write would tell that it is not so any more
                stored = stored_node(store, path, metadata)
                changed = change(stored.metadata)
            try:
                return stored.replaced_by(changed)
            except ConditionFailedError:
                if last:
                    raise
    raise AssertionError("unreachable")


def replace_node(
    store: Store, path: str, metadata: M, version: Version | None, changed: M
) -> tuple[M, Version | None] | None:
    """Let ``changed`` be the document of a node of Zarr v3 if it still is ``metadata``, of this version; reads nothing.

    Gives the node with its version then; ``None`` where somebody else has changed it, or the store tells no versions.
    """
    if version is None:
        return None
    with store.lock(document_key(path, metadata)):
        unread = {DOCUMENT_NAME: Reading((b"",), version, 0)}
        try:
            return StoredNode(store, path, metadata, unread).replaced_by(changed)
        except ConditionFailedError:
            return None


@dataclass(frozen=True, slots=True)
class StoredNode(Generic[M]):
    """What the documents of a node said when they were read."""

    store: Store
    path: str
    metadata: M
    readings: Mapping[str, Reading | None]

    def replace_by(self, changed: M) -> M:
        """Store other documents, if these are still there; otherwise raise ``ConditionFailedError``."""
        return self.replaced_by(changed)[0]

    @property
    def version(self) -> Version | None:
        """The version of its only document; ``None`` where there are several, or the store says none."""
        (reading, *others) = self.readings.values()
        return None if others or reading is None else reading.version

    def replaced_by(self, changed: M) -> tuple[M, Version | None]:
        """As :meth:`replace_by`, with the version of the first document, where it was stored and the store says it."""
        attributes = replace_non_numbers(changed.attributes)
        if attributes is not changed.attributes:  # the handle shows what is stored
            changed = changed.with_attributes(attributes)
        written = to_documents(changed)
        if isinstance(changed, GroupMetadata) and changed.consolidated_faults:
            written.pop(CONSOLIDATED, None)  # a broken one stays until it is made anew
        versions = _store_changes(self.store, self.path, written, self.readings)
        document = written.get(DOCUMENT_NAME)
        node = changed if document is None else remember(changed, document)
        return node, versions.get(next(iter(self.readings)))


def stored_node(
    store: Store, path: str, metadata: M, known: Known = (None, None), *, surely: bool = True
) -> StoredNode[M]:
    """Return the node at ``path`` as it is stored now; for a group without a document, ``metadata``.

    ``known``: a version of its only document with its bytes, which are not read again where that is cheap to see; nor,
    unless it must be ``surely`` so, where a look takes long: then a change that it is not so any more comes to nothing.
    """
    names = names_of(metadata)
    version, document = known
    readings: dict[str, Reading | None]
    if version is None or document is None:
        is_known = False
    elif store.has_cheap_looks:
        is_known = store.is_unchanged(join_path(path, names[0]), version)
    else:
        is_known = not surely and store.cost.is_slow
    if is_known and document is not None:
        readings = {names[0]: Reading((document,), version, len(document))}
    else:
        readings = {name: read_document(store, join_path(path, name)) for name in names}
    current: Any = metadata
    if readings[names[0]] is not None:
        documents = {name: None if each is None else each.parts[0] for name, each in readings.items()}
        current = parse_found(names[0], documents, store, path)
        if type(current) is not type(metadata):
            raise taken(store, path, current)
    elif isinstance(metadata, ArrayMetadata):
        raise not_found(store, path, metadata.zarr_format, ArrayNotFoundError, "array")
    return StoredNode(store, path, current, readings)


def _store_changes(
    store: Store, path: str, documents: Mapping[str, bytes | None], readings: Mapping[str, Reading | None]
) -> dict[str, Version | None]:
    """Write each document that is to be other than what was read, if it still is what was read; versions of those."""
    versions: dict[str, Version | None] = {}
    for name, document in documents.items():
        reading = readings[name]
        if reading is None:
            if document is not None:
                versions[name] = store.set(join_path(path, name), document, condition=Condition(None))
        elif document is None and name == CONSOLIDATED:
            store.erase(join_path(path, name))
        elif not (_same_json if len(documents) > 1 else _same)(reading.parts[0], document or b"{}"):
            key = join_path(path, name)
            versions[name] = store.set(key, document or b"{}", condition=store.condition_on(key, reading))
    return versions


def _same(a: BytesLike, b: BytesLike) -> bool:
    return bytes(a) == bytes(b)


def _same_json(a: BytesLike, b: BytesLike) -> bool:
    if _same(a, b):
        return True
    try:
        return bool(parse_json(a) == parse_json(b))
    except (ValueError, RecursionError):  # a broken document of consolidated metadata
        return False
