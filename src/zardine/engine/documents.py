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
    return _checked(store.read_up_to(key, most), key, most)


def read_document_and_look(store: Store, key: str, *others: str) -> tuple[Reading | None, bool]:
    """As :func:`read_document`; where there is one, also whether others seem to be missing then, if that costs little.

    For ``others``, see :meth:`~zardine.stores.base.Store.seems_missing`.
    """
    most = limit_of(DOCUMENT)
    reading, is_alone = store.read_and_look(key, most, *others)
    return _checked(reading, key, most), is_alone


def _checked(reading: Reading | None, key: str, most: int) -> Reading | None:
    if reading is not None and not reading.parts:
        raise too_large("the document", reading.size, DOCUMENT, most).at(key=key)
    return reading


def get_document(store: Store, key: str) -> BytesLike | None:
    """The bytes of a metadata document; as :func:`read_document`."""
    reading = read_document(store, key)
    return None if reading is None else reading.parts[0]


__all__ = ["get_document", "read_document", "read_document_and_look"]
