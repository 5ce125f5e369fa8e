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

CLOSING: Final = b'"phase": "closing"'
"""What the journal begins with, after a brace, while nobody may write."""

_MOST: Final = 4096
_seen: dict[tuple[int, bool], float] = {}
"""When the document of an opening was looked at, and when, before writing, also the journal."""


def note_fresh(source: ArraySource, *, new: bool = False) -> None:
    """The document of ``source`` has just been read; or the array is ``new``."""
    _note(source, time.monotonic(), writing=new)


def check_fresh(source: ArraySource, *, writing: bool = False) -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the chunks of an array are no longer where it says.

    With ``writing`` also where they are about to be. A document that is gone or broken is left to others to find.
    """
    now = time.monotonic()
    metadata = source.layout.metadata
    space = source.cache_space
    if metadata.zarr_format != 3 or now - _seen.get((space, writing), -LEASE) < LEASE:
        return
    name = f"array {source.path!r} of {source.store}" if source.path else f"the array at {source.store}"
    if now - _seen.get((space, False), -LEASE) >= LEASE and _has_moved(source):
        raise ArrayChangedError(
            f"{name} was resharded since it was opened: open it again (and if it was opened through consolidated "
            "metadata, consolidate that again first)"
        )
    if writing:
        journal = source.store.get(join_path(source.path, JOURNAL))
        if journal is not None and bytes(journal[:64]).startswith(b"{" + CLOSING):
            raise ArrayChangedError(
                f"{name} is being resharded and about to change: nothing was written; open it again in a few seconds. "
                "If zardine.reshard was interrupted, call it again to finish"
            )
    _note(source, now, writing=writing)


def _has_moved(source: ArraySource) -> bool:
    data = source.store.get(join_path(source.path, DOCUMENT_NAME))
    if data is None:
        return False
    try:
        current = parse_node(data)
    except MetadataError:
        return False
    if not isinstance(current, ArrayMetadata):
        return False
    metadata = source.layout.metadata
    return current.chunk_key_encoding != metadata.chunk_key_encoding or current.codecs != metadata.codecs


def _note(source: ArraySource, now: float, *, writing: bool) -> None:
    if len(_seen) >= _MOST:
        _seen.clear()
    _seen[source.cache_space, False] = now
    if writing:
        _seen[source.cache_space, True] = now
