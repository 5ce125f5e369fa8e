"""How far resharding is: a journal beside the chunks, so that a run that was killed goes on where it was.

Its phases: ``copying`` (the document says what it said; new objects are being written under other keys), ``closing``
(the same, and nobody else may write), ``switched`` (the document says the new; old objects are being erased).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from zardine.engine.freshness import JOURNAL
from zardine.json_document import Extension, Problems, parse_extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store, Version

Sources = dict[str, Version | None]
"""Versions of the old objects that went into a new one, by key relative to the array."""

_PAUSE = 2.0
_SHARE = 20
"""The journal is written at most every so many seconds, and takes one part in so many of the time."""


@dataclass(slots=True)
class Journal:
    """What is done, and what it is about. ``about`` has the members of both documents that resharding changes."""

    about: dict[str, Any]
    phase: str = "copying"
    done: dict[str, Sources] = field(default_factory=dict)
    """By the grid coordinates of the new object, joined by dots."""
    _saved: float = 0.0
    _cost: float = 0.0

    def save(self, store: Store, path: str) -> None:
        """Write it."""
        start = time.monotonic()
        document = {"phase": self.phase, "about": self.about, "done": self.done}
        store.set(journal_key(path), json.dumps(document).encode())
        self._saved = time.monotonic()
        self._cost = self._saved - start

    def save_sometimes(self, store: Store, path: str) -> None:
        """Write it if that was not done lately."""
        if time.monotonic() - self._saved > max(_PAUSE, _SHARE * self._cost):
            self.save(store, path)


def journal_key(path: str) -> str:
    """Where the journal of the array at ``path`` is."""
    return join_path(path, JOURNAL)


def load_journal(store: Store, path: str) -> Journal | None:
    """The journal that is stored, if one is; one that cannot be read has no ``about``."""
    data = store.get(journal_key(path))
    if data is None:
        return None
    try:
        document = json.loads(bytes(data))
        return Journal(document["about"], document["phase"], document["done"])
    except (ValueError, KeyError, TypeError):
        return Journal({})


def about(old: ArrayMetadata, new: ArrayMetadata) -> dict[str, Any]:
    """The members of both documents that say where chunks are, and how they are encoded."""
    return {"old": members(old), "new": members(new)}


def members(metadata: ArrayMetadata) -> dict[str, Any]:
    """The members of a document that say where chunks are, and how they are encoded."""
    found: dict[str, Any] = json.loads(
        json.dumps(
            {
                "chunk_grid": metadata.chunk_grid.to_json(),
                "chunk_key_encoding": metadata.chunk_key_encoding.to_json(),
                "codecs": [each.to_json() for each in metadata.codecs],
            }
        )
    )
    return found


def key_encodings(journal: Journal) -> list[Extension]:
    """The chunk key encodings that the journal names."""
    found = [
        parse_extension(each["chunk_key_encoding"], "chunk_key_encoding", Problems(), ignorable=False)
        for each in journal.about.values()
        if isinstance(each, dict) and "chunk_key_encoding" in each
    ]
    return [each for each in found if each is not None]
