"""How far resharding is: a journal beside the chunks, so that a run that was killed goes on where it was.

Its phases: ``beginning`` (nothing is written yet), ``copying`` (the document says what it said; new objects are being
written under other keys), ``closing`` (the same, and nobody else may write), ``switched`` (the document says the new;
old objects are being erased).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from zardine.chunk_grids import ChunkGrid, parse_chunk_grid
from zardine.engine.documents import read_document
from zardine.engine.freshness import generation_of
from zardine.errors import ConditionFailedError, NodeExistsError
from zardine.hierarchy.find import describe
from zardine.json_document import Extension, Problems, parse_extension, parse_json
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Condition, Store, Version
from zardine.tools.hidden_keys import JOURNAL
from zardine.tools.seen import Buckets


class BegunMeanwhileError(Exception):
    """Another process has stored a journal just before this one would have."""


@dataclass(slots=True)
class Journal:
    """What is being done. ``about`` has the members of both documents that resharding changes."""

    about: dict[str, Any]
    phase: str = "beginning"
    known: Buckets = field(default_factory=Buckets)
    """The versions of the old objects that went into the new ones, once nobody may write."""
    shape: tuple[int, ...] | None = None
    """That of the array then."""
    moved: list[bool] | None = None
    """The axes of :class:`~zardine.tools.resharding.rest.Rest` that some process has met."""
    version: Version | None = None
    """Of the journal as this process has read or written it last, where the store has versions."""

    def create(self, store: Store, path: str) -> None:
        """Write it where none is. Raises :class:`BegunMeanwhileError` where one is."""
        try:
            self._write(store, path, Condition(None))
        except ConditionFailedError:
            raise BegunMeanwhileError from None

    def save(self, store: Store, path: str) -> None:
        """Write it, if nobody else has since."""
        try:
            self._write(store, path, None if self.version is None else Condition(self.version))
        except ConditionFailedError:
            raise NodeExistsError(
                f"{describe(store, path)} is being resharded by another process, too: that one goes on"
            ) from None

    def _write(self, store: Store, path: str, condition: Condition | None) -> None:
        document: dict[str, Any] = {"phase": self.phase, "about": self.about}
        if any(self.known.sums):
            document["known"] = self.known.to_json()
        if self.shape is not None:
            document["shape"] = list(self.shape)
        if self.moved is not None:
            document["moved"] = self.moved
        self.version = store.set(journal_key(path), json.dumps(document).encode(), condition=condition)


def journal_key(path: str) -> str:
    """Return where the journal of the array at ``path`` is."""
    return join_path(path, JOURNAL)


def load_journal(store: Store, path: str) -> Journal | None:
    """Return the journal that is stored, if one is; one that cannot be read has no ``about``."""
    reading = read_document(store, journal_key(path))
    if reading is None:
        return None
    try:
        document = parse_json(reading.parts[0])
        about, phase = document["about"], document["phase"]
        shape = document.get("shape")
        known = Buckets.from_json(document.get("known"))
        moved = document.get("moved")
        moved = None if moved is None else list(map(bool, moved))
        return Journal(about, phase, known, None if shape is None else tuple(map(int, shape)), moved, reading.version)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Journal({}, version=reading.version)


def about(old: ArrayMetadata, new: ArrayMetadata, source: str | None = None) -> dict[str, Any]:
    """Return the members of both documents that say where chunks are, and how encoded; and which array is copied."""
    generation = generation_of(old)
    return {
        "old": members(old),
        "new": members(new),
        **({} if source is None else {"source": source}),
        **({} if generation is None else {"generation": generation}),
    }


def members(metadata: ArrayMetadata) -> dict[str, Any]:
    """Return the members of a document that say where chunks are, and how they are encoded."""
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


def is_same_storage(one: Any, other: Any, ndim: int) -> bool:
    """Whether two documents' :func:`members` say the same, but for chunks that a grid gained when its array grew."""
    if one == other:
        return True
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    if {**one, "chunk_grid": None} != {**other, "chunk_grid": None}:
        return False
    grids = [_grid_of(each.get("chunk_grid"), ndim) for each in (one, other)]
    return grids[0] is not None and grids[1] is not None and grids[0].continues(grids[1])


def is_same_about(one: Any, other: Any, ndim: int) -> bool:
    """Whether two journals are about the same, but for the lengths of the array: see :func:`is_same_storage`."""
    if not isinstance(one, dict) or not isinstance(other, dict) or one.keys() != other.keys():
        return False
    return all(
        is_same_storage(one[name], other[name], ndim) if name in ("old", "new") else one[name] == other[name]
        for name in one
    )


def _grid_of(document: Any, ndim: int) -> ChunkGrid | None:
    """Return a grid as it is told, for whatever lengths of the array."""
    problems = Problems()
    extension = parse_extension(document, "chunk_grid", problems, ignorable=False)
    grid = None if extension is None else parse_chunk_grid(extension, (0,) * ndim, problems)
    return None if problems.found else grid


def with_members(metadata: ArrayMetadata, document: Any) -> ArrayMetadata | None:
    """Return the metadata with what a journal says about chunks; ``None`` where it says nothing of use."""
    if not isinstance(document, dict):
        return None
    problems = Problems()
    grid = _grid_of(document.get("chunk_grid"), metadata.ndim)
    keys = parse_extension(document.get("chunk_key_encoding"), "chunk_key_encoding", problems, ignorable=False)
    codecs = [parse_extension(each, "codecs", problems, ignorable=False) for each in document.get("codecs", [])]
    if grid is None or keys is None or problems.found:
        return None
    known = tuple(each for each in codecs if each is not None)
    grid = grid.resized(metadata.shape)
    return replace(metadata, chunk_grid=grid.to_extension(), chunk_key_encoding=keys, codecs=known)


def is_switched(journal: Journal, metadata: ArrayMetadata) -> bool:
    """Whether the document names the new objects already; it may have been resized since."""
    new = journal.about.get("new")
    return isinstance(new, dict) and new.get("chunk_key_encoding") == members(metadata)["chunk_key_encoding"]


def key_encodings(journal: Journal) -> list[Extension]:
    """Return the chunk key encodings that the journal names."""
    found = [
        parse_extension(each["chunk_key_encoding"], "chunk_key_encoding", Problems(), ignorable=False)
        for each in journal.about.values()
        if isinstance(each, dict) and "chunk_key_encoding" in each
    ]
    return [each for each in found if each is not None]
