"""Array documents parsed lately: an array is often opened again, and many arrays of a group have equal documents."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from zardine.json_document import JSON
from zardine.metadata.documents import ArrayMetadata, GroupMetadata

N = TypeVar("N", bound=ArrayMetadata | GroupMetadata)

_MOST = 256
_LONGEST = 16 * 2**10
"""Bytes of a document that is worth remembering."""

_NO_ATTRIBUTES: Mapping[str, JSON] = MappingProxyType({})
"""Shared, so it must not be changed."""

_seen: dict[bytes, ArrayMetadata] = {}


def recall(document: bytes) -> ArrayMetadata | None:
    """What these bytes were parsed to before, with attributes of its own."""
    known = _seen.get(document)
    if known is None or not known.attributes:
        return known
    return _mark(replace(known, attributes=_copy(known.attributes)), known.document)


def remember(node: N, document: bytes) -> N:
    """Keep what ``document`` was parsed to, if it is an array; gives ``node``."""
    if isinstance(node, ArrayMetadata) and len(document) <= _LONGEST:
        if len(_seen) >= _MOST:
            _seen.clear()
        _mark(node, document)
        _seen[document] = _mark(replace(node, attributes=_copy(node.attributes) or _NO_ATTRIBUTES), document)
    return node


def _mark(metadata: ArrayMetadata, document: bytes | None) -> ArrayMetadata:
    object.__setattr__(metadata, "document", document)
    return metadata


def _copy(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    try:
        copied: dict[str, JSON] = marshal.loads(marshal.dumps(dict(attributes)))  # much faster than a copy by hand
    except ValueError:  # numbers and strings of the user's own classes
        return deepcopy(dict(attributes))
    return copied
