"""Resharding in place: the new objects are written under keys of another encoding, which no document names yet.

When all are there, and no old one has changed since, one replacement of the document names the new ones. Then the old
ones are erased. Whoever holds the lock of the journal does this alone (where locks keep processes apart), and whatever
was read before the lock was held counts for nothing: another process may have resharded the array meanwhile.

============  ==============================================  ====================================================
phase         stored beside the array as it was               after a kill, the same call
============  ==============================================  ====================================================
no journal    nothing                                         begins
beginning     the journal                                     looks whether the new keys are free, and copies
copying       some new objects, records of finished jobs      copies the rest
closing       all new objects; the document says that         lets others write again, copies what they wrote, and
              nobody may write                                closes once more
switched      old objects; the document names the new ones    erases them, and the journal
============  ==============================================  ====================================================

:func:`zardine.reshard` makes one ``InPlace``, which holds the lock and calls ``make``; that runs a plan, and the work
of the plan makes another one for the steps, within the same lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

from zardine.engine.freshness import (
    GRACE,
    generation_of,
    is_closing,
    note_change,
    with_closing,
    with_generation,
)
from zardine.engine.layout import prepare_layout
from zardine.errors import NodeExistsError, StoreError
from zardine.hierarchy.consolidated import update_consolidated
from zardine.hierarchy.find import describe, load_array, older_document
from zardine.hierarchy.update import update_node
from zardine.jobs.job import OvertakenError
from zardine.limits import CHUNK, limit_of
from zardine.metadata.documents import ArrayMetadata
from zardine.stores.base import Store
from zardine.tools.hidden_keys import Keeper
from zardine.tools.resharding.late import late_objects
from zardine.tools.resharding.plan import is_same, other_keys
from zardine.tools.resharding.rest import Rest
from zardine.tools.resharding.run import Resharding, Run, erase_some, keys_elsewhere, without_copying
from zardine.tools.resharding.state import (
    BegunMeanwhileError,
    Journal,
    about,
    is_switched,
    journal_key,
    load_journal,
    members,
    with_members,
)
from zardine.tools.seen import Buckets


class InPlace(Run):
    """One call that changes the array where it is."""

    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        grace: float | None,
        restart: bool = False,
        make: Callable[[ArrayMetadata, ArrayMetadata], Resharding] | None = None,
    ) -> None:
        super().__init__(store, path, request, store, path, make)
        self.grace, self.restart = grace, restart

    def run(self) -> Resharding:
        """Reshard."""
        self.wanted(load_array(self.store, self.path))  # refuses what cannot be, before anything is locked
        self.refuse_older_documents()
        while True:
            with suppress(BegunMeanwhileError), self.lock():
                return self.locked()

    def lock(self) -> AbstractContextManager[object]:
        return self.store.lock(journal_key(self.path))

    def about(self, metadata: ArrayMetadata) -> dict[str, Any]:
        return about(metadata, self.target(metadata))

    def cancel(self) -> Resharding:
        store, path = self.store, self.path
        load_array(store, path)
        with self.lock():
            journal = load_journal(store, path)
            metadata = load_array(store, path)
            if journal is None:
                return without_copying("nothing" if self.mark(metadata, closing=False) is metadata else "cancelled")
            if is_switched(journal, metadata):
                raise NodeExistsError(
                    f"{describe(store, path)} has its new objects already, so it is too late to cancel: the same call "
                    "as before erases the old ones; to go back, reshard it to what it was"
                )
            self.mark(metadata, closing=False)
            self.forget(journal, lambda: keys_elsewhere(store, path, journal, metadata))
        return without_copying("cancelled")

    def locked(self) -> Resharding:
        """Reshard, while nobody else does."""
        store, path = self.store, self.path
        journal = load_journal(store, path)
        metadata = load_array(store, path)
        if journal is None:
            metadata = self.mark(metadata, closing=False)
        ended = False
        if journal is not None and is_switched(journal, metadata):
            for key in self.clean(journal):  # an earlier run had switched already, and has told of these
                reading = store.read_up_to(key, limit_of(CHUNK))
                if reading is not None and reading.parts:  # one that is too large to be kept stays where it is
                    Keeper(keeps=True, dry_run=False).keep(store, path, key, reading, always=True)
                    store.erase_version(key, reading.version)
            store.erase(journal_key(path))
            journal, ended = None, True
            metadata = load_array(store, path, 3)
        if journal is not None and self.restart:
            begun = journal
            metadata = self.mark(metadata, closing=False)
            self.forget(begun, lambda: keys_elsewhere(store, path, begun, metadata))
            journal = None
        if is_same(metadata, self.wanted(metadata)):
            if journal is not None:
                self.take_up(journal, {}, metadata.ndim)  # raises: another request was begun
            return without_copying("finished" if ended else "unchanged")
        return self.make_all(journal, metadata)

    def begin(self, journal: Journal | None, metadata: ArrayMetadata) -> Journal:
        store, path = self.store, self.path
        wanted = self.about(metadata)
        if journal is None:
            journal = Journal(wanted)
            journal.create(store, path)
            self.drop_traces()
        else:
            self.take_up(journal, wanted, metadata.ndim)
        if journal.phase == "beginning":
            try:
                self.refuse_strangers(next(keys_elsewhere(store, path, journal, metadata), None))
            except BaseException:
                store.erase(journal_key(path))
                raise
        if journal.phase != "copying":
            journal.phase = "copying"
            self.mark(metadata, closing=False)
            journal.save(store, path)
        return journal

    def refuse_older_documents(self) -> None:
        """Refuse an array whose chunks documents of Zarr v2 name as well, which would name nothing afterwards."""
        name = older_document(self.store, self.path)
        if name is not None:
            raise NodeExistsError(
                f"{describe(self.store, self.path)} has a document of an older version of Zarr, too ({name}), which "
                "names the chunks that are to move: zardine.convert(..., metadata_only=True, remove_old=True) removes "
                "it, or give a target"
            )

    def refuse_strangers(self, key: str | None) -> None:
        """Refuse to begin where a key of the new encoding is stored, which nobody can have meant as a chunk."""
        if key is not None:
            raise NodeExistsError(
                f"{describe(self.store, self.path)} has keys that no document names, such as {key!r}, where the "
                "new chunks are to go: zardine.repair moves them out of the way"
            )

    def target(self, old: ArrayMetadata) -> ArrayMetadata:
        """Return what the document is to say: under other keys, so that no new object takes the place of an old one."""
        keys = other_keys(prepare_layout(old).keys)
        return replace(self.wanted(old), chunk_key_encoding=keys.to_extension())

    def close(self) -> bool:
        store, path = self.store, self.path
        with self.lock():
            journal, old = load_journal(store, path), load_array(store, path, 3)
            if journal is None or is_switched(journal, old) or (journal.phase == "closing" and is_closing(old)):
                return False
            self.mark(old, closing=True)
            journal.phase = "closing"
            journal.save(store, path)
            self.let_others_notice()
        return True

    def reopen(self) -> None:
        store, path = self.store, self.path
        with self.lock():
            journal, metadata = load_journal(store, path), load_array(store, path)
            if journal is None or is_switched(journal, metadata):
                return
            journal.phase = "copying"
            try:
                self.mark(metadata, closing=False)
                journal.save(store, path)
            except StoreError:  # as where no space is left; to erase takes none
                self.drop_traces()
                erase_some(store, lambda: keys_elsewhere(store, path, journal, metadata))
                self.mark(load_array(store, path), closing=False)
                store.erase(journal_key(path))

    def finish(self, rest: Rest, known: Buckets) -> tuple[str, ...]:
        store, path = self.store, self.path
        with self.lock():
            journal, old = load_journal(store, path), load_array(store, path, 3)
            if journal is None:
                return ()
            if not is_switched(journal, old):
                if journal.phase != "closing" or old.shape != rest.shape:
                    raise OvertakenError(f"{describe(store, path)} was changed meanwhile")
                self.drop_beyond(self.target(old))
                journal.known, journal.shape = known, old.shape
                journal.save(store, path)
                if not self.switch(old):
                    raise OvertakenError(f"{describe(store, path)} was changed meanwhile")
            return self.clean(journal)

    def switch(self, old: ArrayMetadata) -> bool:
        """Replace the document. False if it has changed meanwhile."""
        switched = False

        def change(now: ArrayMetadata) -> ArrayMetadata:
            nonlocal switched
            switched = (
                members(now) == members(old)
                and generation_of(now) == generation_of(old)
                and now.shape == old.shape  # else there are chunks that were not copied
            )
            new = self.target(old)
            if not switched:
                return now
            changed = replace(
                with_closing(now, closing=False),
                chunk_grid=new.chunk_grid,
                chunk_key_encoding=new.chunk_key_encoding,
                codecs=new.codecs,
            )
            return with_generation(changed, new=True)

        update_node(self.store, self.path, old, change)
        note_change()
        return switched

    def let_others_notice(self) -> None:
        """Wait for those who write, and where they cannot be known as long as it takes them to look at the document."""
        known = self.store.wait_for_writers(f"{self.path}/" if self.path else "")
        if self.grace is not None:
            time.sleep(self.grace)
        elif not known:
            time.sleep(GRACE)

    def mark(self, metadata: ArrayMetadata, *, closing: bool) -> ArrayMetadata:
        """Say in the document that nobody may write, or that one may again."""

        def change(now: ArrayMetadata) -> ArrayMetadata:
            return with_closing(now, closing=closing)

        return metadata if is_closing(metadata) == closing else update_node(self.store, self.path, metadata, change)

    def clean(self, journal: Journal) -> tuple[str, ...]:
        """Erase what the document no longer names, after the switch. Gives old keys that were written too late."""
        store, path = self.store, self.path
        journal.phase = "switched"
        journal.save(store, path)
        update_consolidated(store, path)
        self.let_others_notice()
        now = load_array(store, path, 3)
        was = with_members(replace(now, shape=journal.shape or now.shape), journal.about.get("old"))
        late: set[str] = set()
        if was is not None:
            late = set(late_objects(self.handle(store, path, was), self.handle(store, path, now), journal.known))

        def old() -> Iterator[str]:
            return (key for key in keys_elsewhere(store, path, journal, now) if key not in late)

        erase_some(store, old)
        self.drop_traces()
        if not late:
            store.erase(journal_key(path))
        return tuple(sorted(late))


__all__ = ["InPlace"]
