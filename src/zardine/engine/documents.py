"""Reading metadata documents, and no more of them than the setting ``limits.document_bytes`` allows."""

from __future__ import annotations

from zardine.buffers import BytesLike
from zardine.limits import DOCUMENT, limit_of, too_large
from zardine.stores.base import Reading, Store


def read_document(store: Store, key: str) -> Reading | None:
    """A metadata document with its version; ``None`` if it is not there.

    Raises :class:`~zardine.errors.ChunkTooLargeError` for one that is too long to be looked at.
    """
    most = limit_of(DOCUMENT)
    reading = store.read_up_to(key, most)
    if reading is not None and not reading.parts:
        raise too_large("the document", reading.size, DOCUMENT, most).at(key=key)
    return reading


def get_document(store: Store, key: str) -> BytesLike | None:
    """The bytes of a metadata document; as :func:`read_document`."""
    reading = read_document(store, key)
    return None if reading is None else reading.parts[0]


__all__ = ["get_document", "read_document"]
