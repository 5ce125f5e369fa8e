"""Documents parsed lately: a node is often opened again, and many arrays of a group have equal documents."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TypeAlias, TypeVar

from zardine.cache import Cache
from zardine.frozen import with_fields
from zardine.json_document import JSON, load_object
from zardine.metadata.documents import ArrayMetadata, GroupMetadata

N = TypeVar("N", bound=ArrayMetadata | GroupMetadata)

_MOST = 4 * 2**20
"""Bytes of all that is remembered, about."""
_PARSED = 8 * 2**10
"""Bytes that a document takes when it is parsed, about, beside its text."""
_LONGEST = 16 * 2**10
"""Bytes of a document that is worth remembering."""


class _NoAttributes(Mapping[str, JSON]):
    """Shared by many nodes, so it cannot be changed; pickled, which a ``MappingProxyType`` cannot be, as a ``dict``."""

    def __getitem__(self, name: str) -> JSON:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"

    def __reduce__(self) -> tuple[type[dict[str, JSON]], tuple[()]]:
        return dict, ()


NO_ATTRIBUTES = _NoAttributes()

Packed: TypeAlias = bytes | Mapping[str, JSON]
"""Attributes as :func:`_pack` leaves them."""

_seen: Cache[bytes, tuple[ArrayMetadata | GroupMetadata, Packed | None]] = Cache(_MOST)
"""What documents were parsed to, without attributes, and these."""
_attributes: Cache[bytes, Packed] = Cache(_MOST // 4)
"""Documents that hold attributes alone."""
_NOTED = 256
"""Bytes that such a one takes, about, beside its text and what that says."""


def recall(document: bytes) -> ArrayMetadata | GroupMetadata | None:
    """Return what these bytes were parsed to before, with attributes of its own."""
    known, packed = _seen.get(document) or (None, None)
    if known is None or packed is None:
        return known
    return with_fields(known, attributes=_unpack(packed))


def remember(node: N, document: bytes) -> N:
    """Keep what ``document`` was parsed to, unless it is long, or a group that repeats the documents below it.

    Gives ``node``, or what :func:`recall` gives from now on if that is always the same.
    """
    if len(document) > _LONGEST or (isinstance(node, GroupMetadata) and node.consolidated_metadata is not None):
        return node
    packed = _pack(node.attributes) if node.attributes or isinstance(node, GroupMetadata) else None
    kept = node if node.attributes is NO_ATTRIBUTES else with_fields(node, attributes=NO_ATTRIBUTES)
    _mark(kept, document)
    _seen.put(document, (kept, packed), len(document) + _PARSED)
    return kept if packed is None else _mark(node, document)


def recall_older(name: str, document: bytes) -> ArrayMetadata | None:
    """Return the array that these bytes, called ``name``, were parsed to before, without attributes."""
    known, _ = _seen.get(_key_of_older(name, document)) or (None, None)
    return known if isinstance(known, ArrayMetadata) else None


def remember_older(node: ArrayMetadata, name: str, document: bytes) -> ArrayMetadata:
    """Keep what ``document``, called ``name``, was parsed to, unless it is long. Attributes lie in another document.

    Gives ``node``, or what :func:`recall_older` gives from now on if it has no attributes.
    """
    object.__setattr__(node, "first_document", document)
    if len(document) > _LONGEST:
        return node
    kept = node if node.attributes is NO_ATTRIBUTES else with_fields(node, attributes=NO_ATTRIBUTES)
    _seen.put(_key_of_older(name, document), (kept, None), len(document) + _PARSED)
    return node if node.attributes else kept


def load_attributes(document: bytes, subject: str) -> Mapping[str, JSON]:
    """Return the attributes that a document has which holds nothing else; each call gives others.

    Raises as :func:`~zardine.json_document.load_object`.
    """
    packed = _attributes.get(document)
    if packed is not None:
        return _unpack(packed)
    attributes = load_object(document, subject, only_attributes=True)
    if len(document) <= _LONGEST:
        _attributes.put(document, _pack(attributes), 2 * len(document) + _NOTED)
    return attributes


def _key_of_older(name: str, document: bytes) -> bytes:
    return b"%b\0%b" % (name.encode(), document)  # which is no JSON


def _mark(node: N, document: bytes) -> N:
    if isinstance(node, ArrayMetadata):
        object.__setattr__(node, "document", document)
        object.__setattr__(node, "first_document", document)
    return node


def _pack(attributes: Mapping[str, JSON]) -> Packed:
    """Return attributes in a form that nobody changes: as bytes, of which a copy is made much faster than by hand."""
    try:
        return marshal.dumps(dict(attributes))
    except ValueError:  # numbers and strings of the user's own classes
        return deepcopy(dict(attributes))


def _unpack(packed: Packed) -> dict[str, JSON]:
    if isinstance(packed, bytes):
        copied: dict[str, JSON] = marshal.loads(packed)
        return copied
    return deepcopy(dict(packed))
