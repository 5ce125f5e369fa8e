"""Resharding to another place: the chunks go first and the document last, so that no array is there before all of it.

The place has to be empty when that begins, and nothing is ever erased there but what resharding has made.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any

from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.engine.stored import stored_objects
from zardine.errors import ContainsArrayError, ContainsGroupError, NodeExistsError, UnsupportedError
from zardine.hierarchy.create import create_node
from zardine.hierarchy.find import HIDDEN, describe, find_node, load_array
from zardine.json_document import Problems, parse_extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.tools.converting.target import check_ancestors
from zardine.tools.resharding.run import MOST_PASSES, Resharding, Run, without_copying
from zardine.tools.resharding.state import BegunMeanwhileError, Journal, about, journal_key, load_journal, members


class Elsewhere(Run):
    """One call that leaves the array as it is, and makes another one."""

    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        target: Store,
        target_path: str,
        restart: bool = False,
    ) -> None:
        super().__init__(store, path, request, target, target_path)
        self.restart = restart

    def run(self) -> Resharding:
        """Reshard."""
        self.wanted(load_array(self.store, self.path))  # refuses what cannot be, before anything is locked
        check_ancestors(self.target_store, self.target_path)
        while True:
            with suppress(BegunMeanwhileError), self.lock():
                return self.locked()

    def cancel(self) -> Resharding:
        """Erase what an interrupted run has made."""
        place, path = self.target_store, self.target_path
        metadata = load_array(self.store, self.path)
        with self.lock():
            journal = load_journal(place, path)
            if journal is None:
                return without_copying("nothing")
            node = find_node(place, path)
            if node is not None:
                raise NodeExistsError(
                    f"the array at {describe(place, path)} is whole, so it is too late to cancel: erase all of it, or "
                    "let the same call as before finish"
                )
            self.forget(journal, self.own_keys(journal, metadata))
        return without_copying("cancelled")

    def lock(self) -> AbstractContextManager[object]:
        """Return the lock of the journal; a store that refuses writes refuses it later, in better words."""
        place = self.target_store
        return nullcontext() if place.read_only else place.lock(journal_key(self.target_path))

    def locked(self) -> Resharding:
        """Reshard, while nobody else does."""
        place, path = self.target_store, self.target_path
        journal = load_journal(place, path)
        metadata = load_array(self.store, self.path)
        node = find_node(place, path)
        if node is not None:
            if journal is not None and isinstance(node, ArrayMetadata) and members(node) == journal.about.get("new"):
                self.take_up(journal, self.about(metadata))
                self.drop_records()
                place.erase(journal_key(path))  # all was done but this
                return without_copying("finished")
            error, what = (
                (ContainsArrayError, "an array") if isinstance(node, ArrayMetadata) else (ContainsGroupError, "a group")
            )
            raise error(f"{what} is already stored at {describe(place, path)}: a new array needs a place of its own")
        if journal is not None:
            self.refuse_strangers({journal_key(path), *self.own_keys(journal, metadata)})
            if self.restart:
                self.forget(journal, self.own_keys(journal, metadata))
                journal = None
        journal = self.begin(journal, metadata)
        try:
            self.make_first(journal, metadata, self.wanted(metadata))
            for _ in range(MOST_PASSES):
                metadata = load_array(self.store, self.path)
                if not self.copy(journal, metadata, self.wanted(metadata)):
                    break
        except BaseException:
            if not (self.has_begun or self.resumes):
                self.drop_records()
                place.erase(journal_key(path))
            raise
        self.drop_beyond(journal, self.wanted(metadata))
        create_node(place, path, self.wanted(metadata), overwrite=False)
        self.drop_records()
        place.erase(journal_key(path))
        return self.report()

    def about(self, metadata: ArrayMetadata) -> dict[str, Any]:
        """Return what the journal has to say for this call to go on with it."""
        return about(metadata, self.wanted(metadata), describe(self.store, self.path))

    def begin(self, journal: Journal | None, metadata: ArrayMetadata) -> Journal:
        """Return the journal to go on with; a new one is stored before anything else is."""
        place, path = self.target_store, self.target_path
        if journal is None:
            self.refuse_strangers({journal_key(path)})
            journal = Journal(self.about(metadata), phase="copying")
            journal.create(place, path)
        else:
            self.take_up(journal, self.about(metadata))
        return journal

    def refuse_strangers(self, own: set[str]) -> None:
        """Refuse a place that holds anything but ``own`` keys."""
        place, path = self.target_store, self.target_path
        try:
            keys = place.list_prefix(f"{path}/" if path else "")
            records = join_path(path, f"{HIDDEN}/jobs/")
            stranger = next((key for key in keys if key not in own and not key.startswith(records)), None)
        except UnsupportedError:
            return
        if stranger is not None:
            raise NodeExistsError(
                f"{describe(place, path)} is not empty: {stranger} is stored there. A new array needs a place of its "
                "own; nothing was written or erased"
            )

    def own_keys(self, journal: Journal, metadata: ArrayMetadata) -> list[str]:
        """Return stored keys of chunks: an earlier run has made them, since it began with an empty place.

        Some may lie outside of the array, which was larger then.
        """
        place, path = self.target_store, self.target_path
        made = _with_members(metadata, journal.about.get("new"))
        if made is None:
            return []
        target = ArrayHandle(place, path, prepare_layout(made), ArrayConfig())
        return [key for key, _ in stored_objects(target)]


def _with_members(metadata: ArrayMetadata, document: Any) -> ArrayMetadata | None:
    """Return the metadata with what the journal says about chunks; ``None`` where it says nothing of use."""
    if not isinstance(document, dict):
        return None
    problems = Problems()
    grid = parse_extension(document.get("chunk_grid"), "chunk_grid", problems, ignorable=False)
    keys = parse_extension(document.get("chunk_key_encoding"), "chunk_key_encoding", problems, ignorable=False)
    codecs = [parse_extension(each, "codecs", problems, ignorable=False) for each in document.get("codecs", [])]
    if grid is None or keys is None or problems.found:
        return None
    known = tuple(each for each in codecs if each is not None)
    return replace(metadata, chunk_grid=grid, chunk_key_encoding=keys, codecs=known)


__all__ = ["Elsewhere"]
