"""Resharding to another place: the chunks go first and the document last, so that no array is there before all of it.

The place has to be empty when that begins, and nothing is ever erased there but what resharding has made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from zardine.chunk_keys import ChunkKeyEncoding, parse_chunk_key_encoding
from zardine.errors import ContainsArrayError, ContainsGroupError, NodeExistsError, UnsupportedError
from zardine.hierarchy.create import create_node
from zardine.hierarchy.find import HIDDEN, describe, find_node, load_array
from zardine.hierarchy.place import check_new_place
from zardine.jobs.job import OvertakenError
from zardine.json_document import Problems
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.tools.resharding.rest import Rest
from zardine.tools.resharding.run import Resharding, Run, without_copying
from zardine.tools.resharding.state import (
    BegunMeanwhileError,
    Journal,
    about,
    is_same_storage,
    journal_key,
    load_journal,
    members,
    with_members,
)
from zardine.tools.seen import Buckets


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
        make: Callable[[ArrayMetadata, ArrayMetadata], Resharding] | None = None,
    ) -> None:
        super().__init__(store, path, request, target, target_path, make)
        self.restart = restart

    def run(self) -> Resharding:
        """Reshard."""
        self.wanted(load_array(self.store, self.path))  # refuses what cannot be, before anything is locked
        check_new_place(self.target_store, self.target_path, 3)
        while True:
            with suppress(BegunMeanwhileError), self.lock():
                return self.locked()

    def cancel(self) -> Resharding:
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
            self.forget(journal, lambda: self.own_keys(journal, metadata))
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
            if journal is not None and _is_made(node, journal):
                self.take_up(journal, self.about(metadata), metadata.ndim)
                self.drop_traces()
                place.erase(journal_key(path))  # all was done but this
                return without_copying("finished")
            error, what = (
                (ContainsArrayError, "an array") if isinstance(node, ArrayMetadata) else (ContainsGroupError, "a group")
            )
            raise error(f"{what} is already stored at {describe(place, path)}: a new array needs a place of its own")
        if journal is not None:
            self.refuse_strangers(journal)
            if self.restart:
                begun = journal
                self.forget(begun, lambda: self.own_keys(begun, metadata))
                journal = None
        return self.make_all(journal, metadata)

    def about(self, metadata: ArrayMetadata) -> dict[str, Any]:
        return about(metadata, self.wanted(metadata), describe(self.store, self.path))

    def begin(self, journal: Journal | None, metadata: ArrayMetadata) -> Journal:
        place, path = self.target_store, self.target_path
        if journal is None:
            self.refuse_strangers(None)
            journal = Journal(self.about(metadata), phase="copying")
            journal.create(place, path)
            self.drop_traces()
        else:
            self.take_up(journal, self.about(metadata), metadata.ndim)
        return journal

    def close(self) -> bool:
        return False

    def reopen(self) -> None:
        """Nobody is kept away."""

    def finish(self, rest: Rest, known: Buckets) -> tuple[str, ...]:
        place, path = self.target_store, self.target_path
        with self.lock():
            if load_journal(place, path) is None:
                return ()
            if find_node(place, path) is None:
                metadata = load_array(self.store, self.path)
                if metadata.shape != rest.shape:
                    raise OvertakenError(f"{describe(self.store, self.path)} was resized meanwhile")
                self.drop_beyond(self.wanted(metadata))
                create_node(place, path, self.wanted(metadata), overwrite=False, is_free=True)  # but for own chunks
            self.drop_traces()
            place.erase(journal_key(path))
        return ()

    def refuse_strangers(self, journal: Journal | None) -> None:
        """Refuse a place that holds anything but what resharding has made, of which the journal tells."""
        place, path = self.target_store, self.target_path
        prefix = f"{path}/" if path else ""
        hidden = tuple(join_path(path, f"{HIDDEN}/{each}/") for each in ("jobs", "between"))
        encoding = None if journal is None else self.own_encoding(journal)
        ndim = len(load_array(self.store, self.path).shape)
        try:
            for key in place.list_prefix(prefix):
                if key == journal_key(path) or key.startswith(hidden):
                    continue
                if encoding is None or encoding.decode(key[len(prefix) :], ndim) is None:
                    raise NodeExistsError(
                        f"{describe(place, path)} is not empty: {key} is stored there. A new array needs a place of "
                        "its own; nothing was written or erased"
                    )
        except UnsupportedError:
            return

    def own_encoding(self, journal: Journal) -> ChunkKeyEncoding | None:
        """Return that of the new objects."""
        made = with_members(load_array(self.store, self.path), journal.about.get("new"))
        return None if made is None else parse_chunk_key_encoding(made.chunk_key_encoding, Problems())

    def own_keys(self, journal: Journal, metadata: ArrayMetadata) -> Iterator[str]:
        """Yield stored keys of chunks: an earlier run has made them, since it began with an empty place.

        Some may lie outside of the array, which was larger then.
        """
        place, path = self.target_store, self.target_path
        encoding, prefix = self.own_encoding(journal), f"{path}/" if path else ""
        for key in place.list_prefix(prefix):
            if encoding is not None and encoding.decode(key[len(prefix) :], len(metadata.shape)) is not None:
                yield key


def _is_made(node: NodeMetadata, journal: Journal) -> bool:
    """Whether a node at the target is what the journal says that it is to become."""
    return isinstance(node, ArrayMetadata) and is_same_storage(members(node), journal.about.get("new"), node.ndim)


__all__ = ["Elsewhere"]
