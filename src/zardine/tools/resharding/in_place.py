"""Resharding in place: the new objects are written under keys of another encoding, which no document names yet.

When all are there, and no old one has changed since, one replacement of the document names the new ones. Then the old
ones are erased. Whoever holds the lock of the journal does this alone (where locks keep processes apart), and whatever
was read before the lock was held counts for nothing: another process may have resharded the array meanwhile.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

from zardine.engine.freshness import (
    CLOSING,
    GRACE,
    generation_of,
    is_closing,
    note_change,
    with_generation,
)
from zardine.engine.layout import prepare_layout
from zardine.errors import NodeExistsError, StoreError
from zardine.hierarchy.consolidated import update_consolidated
from zardine.hierarchy.find import describe, load_array, older_document
from zardine.hierarchy.update import update_node
from zardine.limits import CHUNK, limit_of
from zardine.metadata.documents import ArrayMetadata
from zardine.stores.base import Store
from zardine.tools.hidden_keys import Keeper
from zardine.tools.resharding.plan import is_same, other_keys
from zardine.tools.resharding.run import MOST_PASSES, Resharding, Run, keys_elsewhere, without_copying
from zardine.tools.resharding.state import (
    BegunMeanwhileError,
    Journal,
    about,
    is_switched,
    journal_key,
    load_journal,
    members,
)


class InPlace(Run):
    """One call that changes the array where it is."""

    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        grace: float | None,
        restart: bool = False,
    ) -> None:
        super().__init__(store, path, request, store, path)
        self.grace, self.restart = grace, restart

    def run(self) -> Resharding:
        """Reshard."""
        self.wanted(load_array(self.store, self.path))  # refuses what cannot be, before anything is locked
        self.refuse_older_documents()
        while True:
            with suppress(BegunMeanwhileError), self.lock():
                return self.locked()

    def lock(self) -> AbstractContextManager[object]:
        """Return the lock of the journal."""
        return self.store.lock(journal_key(self.path))

    def about(self, metadata: ArrayMetadata) -> dict[str, Any]:
        """Return what the journal has to say for this call to go on with it."""
        return about(metadata, self.target(metadata))

    def cancel(self) -> Resharding:
        """Put back the state before, if the document names the old objects still."""
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
            self.forget(journal, keys_elsewhere(store, path, journal, metadata))
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
            metadata = self.mark(metadata, closing=False)
            self.forget(journal, keys_elsewhere(store, path, journal, metadata))
            journal = None
        if is_same(metadata, self.wanted(metadata)):
            if journal is not None:
                self.take_up(journal, {})  # refuses
            return without_copying("finished" if ended else "unchanged")
        journal = self.begin(journal, metadata)
        try:
            self.make_first(journal, metadata, self.target(metadata))
            while not self.switch(journal):
                pass
        except BaseException:
            self.step_back(journal)
            raise
        late = self.clean(journal)
        return replace(self.report(), late=late)

    def begin(self, journal: Journal | None, metadata: ArrayMetadata) -> Journal:
        """Return the journal to go on with; a new one is stored before anything else is."""
        store, path = self.store, self.path
        wanted = self.about(metadata)
        if journal is None:
            self.drop_records()
            journal = Journal(wanted)
            journal.create(store, path)
        else:
            self.take_up(journal, wanted)
        if journal.phase == "beginning":
            try:
                self.refuse_strangers(keys_elsewhere(store, path, journal, metadata))
            except BaseException:
                store.erase(journal_key(path))
                raise
        journal.phase = "copying"
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

    def refuse_strangers(self, keys: list[str]) -> None:
        """Refuse to begin where keys of the new encoding are stored, which nobody can have meant as chunks."""
        if keys:
            raise NodeExistsError(
                f"{describe(self.store, self.path)} has keys that no document names, such as {keys[0]!r}, where the "
                "new chunks are to go: zardine.repair moves them out of the way"
            )

    def target(self, old: ArrayMetadata) -> ArrayMetadata:
        """Return what the document is to say: under other keys, so that no new object takes the place of an old one."""
        keys = other_keys(prepare_layout(old).keys)
        return replace(self.wanted(old), chunk_key_encoding=keys.to_extension())

    def switch(self, journal: Journal) -> bool:
        """Copy until nothing is left to copy, then replace the document. False if it has changed meanwhile."""
        for _ in range(MOST_PASSES):
            old = self.current(journal)
            if not self.copy(journal, old, self.target(old)) and journal.phase == "closing":
                break
            if journal.phase != "closing":
                self.mark(old, closing=True)
                journal.phase = "closing"
                journal.save(self.store, self.path)
                self.let_others_notice()
        else:
            raise StoreError(
                f"{describe(self.store, self.path)} is written again and again by programs that do not notice that it "
                "is being resharded: stop them, and call zardine.reshard again"
            )
        self.drop_beyond(journal, self.target(old))
        journal.save(self.store, self.path)
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
                unmarked(now),
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
            note = {CLOSING: {"must_understand": False}} if closing else {}
            return replace(now, unknown={**unmarked(now).unknown, **note})

        return metadata if is_closing(metadata) == closing else update_node(self.store, self.path, metadata, change)

    def step_back(self, journal: Journal) -> None:
        """Let others write again, after an error or Ctrl-C; leave nothing behind where nothing was made."""
        store, path = self.store, self.path
        metadata = load_array(store, path)
        if is_switched(journal, metadata):
            return
        journal.phase = "copying"
        try:
            self.mark(metadata, closing=False)
            if self.has_begun or self.resumes:
                journal.save(store, path)
            else:
                self.drop_records()
                store.erase(journal_key(path))
        except StoreError:  # as where no space is left; to erase takes none
            store.erase_values(keys_elsewhere(store, path, journal, metadata))
            self.drop_records()
            self.mark(load_array(store, path), closing=False)
            store.erase(journal_key(path))

    def current(self, journal: Journal) -> ArrayMetadata:
        """Return the metadata now, which may have another shape than before, but the same chunks."""
        metadata = load_array(self.store, self.path, 3)
        if (
            generation_of(metadata) != journal.about.get("generation")
            or members(metadata)["chunk_key_encoding"] != journal.about["old"]["chunk_key_encoding"]
            or (metadata.codecs and members(metadata)["codecs"] != journal.about["old"]["codecs"])
        ):
            raise NodeExistsError(
                f"{describe(self.store, self.path)} was replaced meanwhile; restart=True forgets what was begun"
            )
        return metadata

    def clean(self, journal: Journal) -> tuple[str, ...]:
        """Erase what the document no longer names, after the switch. Gives old keys that were written too late."""
        store, path = self.store, self.path
        journal.phase = "switched"
        journal.save(store, path)
        update_consolidated(store, path)
        self.let_others_notice()
        every = (*journal.done.values(), journal.outside)
        known = {(key, version) for sources in every for key, version in sources.items()}
        old, late = keys_elsewhere(store, path, journal, load_array(store, path, 3)), []
        prefix = f"{path}/" if path else ""
        for key in old:
            version = store.version(key)
            name = key[len(prefix) :]
            if version is not None and (name, version) not in known and (name, None) not in known:
                late.append(key)
        store.erase_values([key for key in old if key not in set(late)])
        self.drop_records()
        if not late:
            store.erase(journal_key(path))
        return tuple(late)


def unmarked(metadata: ArrayMetadata) -> ArrayMetadata:
    """Return the same without the note that the array is about to change."""
    return replace(metadata, unknown={name: each for name, each in metadata.unknown.items() if name != CLOSING})


__all__ = ["InPlace"]
