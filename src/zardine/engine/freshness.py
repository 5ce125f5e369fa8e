"""Noticing that an opened array was resharded: its chunks then lie under other keys than its document said.

:func:`zardine.reshard` never changes what it finds: it writes the chunks anew under other keys, names these in the
document, erases the old ones, and may use their keys again only later. So an array that was opened before looks at its
document anew, at most every :data:`LEASE` seconds, after it has fetched chunks and before it writes any. Between two
steps of resharding more time than that goes by.
"""

from __future__ import annotations

import time
from typing import Final

from zardine.engine.source import ArraySource
from zardine.errors import ArrayChangedError, MetadataError
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.metadata.v3 import DOCUMENT_NAME, parse_node

LEASE: Final = 2.0
"""Seconds for which a look at the document counts."""

JOURNAL: Final = "__zardine/reshard.json"
"""Key, relative to the array, that is there while the array is resharded."""

CLOSING: Final = "zardine_resharding"
"""Member of the document that is there while nobody may write, since the array is about to change."""

_MOST: Final = 4096
_seen: dict[int, float] = {}
"""When the document of an opening was looked at, and nobody was about to change it."""


def is_closing(metadata: ArrayMetadata) -> bool:
    """Whether a document says that its array is about to change."""
    return CLOSING in metadata.unknown


def note_fresh(source: ArraySource) -> None:
    """The document of ``source`` has just been read; or the array is new."""
    if not is_closing(source.layout.metadata):
        _note(source, time.monotonic())


def check_fresh(source: ArraySource, *, writing: bool = False, written: bool = False) -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the chunks of an array are no longer where it says.

    With ``writing`` also where they are about to be. ``written``: something has just been stored, and it may be lost if
    that took so long that the array was resharded meanwhile. A document that is gone or broken is left to others.
    """
    now = time.monotonic()
    metadata = source.layout.metadata
    if now - _seen.get(source.cache_space, -LEASE) < LEASE or metadata.zarr_format != 3 or not source.watched:
        return
    current = _current(source)
    if current is not None:
        name = f"array {source.path!r} of {source.store}" if source.path else f"the array at {source.store}"
        lost = ", and what was written just now may be lost" if written else ""
        if current.chunk_key_encoding != metadata.chunk_key_encoding or current.codecs != metadata.codecs:
            raise ArrayChangedError(
                f"{name} was resharded since it was opened{lost}: open it again (and if it was opened through "
                "consolidated metadata, consolidate that again first)"
            )
        if is_closing(current):
            if writing:
                raise ArrayChangedError(
                    f"{name} is being resharded and about to change{lost or ': nothing was written'}; open it again in "
                    "a few seconds. If zardine.reshard was interrupted, call it again to finish, or with cancel=True"
                )
            return
    _note(source, now)


def _current(source: ArraySource) -> ArrayMetadata | None:
    data = source.store.get(join_path(source.path, DOCUMENT_NAME))
    try:
        current = None if data is None else parse_node(data)
    except MetadataError:
        return None
    return current if isinstance(current, ArrayMetadata) else None


def _note(source: ArraySource, now: float) -> None:
    if len(_seen) >= _MOST:
        _seen.clear()
    _seen[source.cache_space] = now
