"""``zardine.reshard``: another shard shape, in place or to a new place, so that the array can be read at any moment.

In place: the new objects are written under keys of another encoding, which no document names yet. When all are there,
and no old one has changed since, one replacement of the document names the new ones. Then the old ones are erased.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from zardine.chunk_keys import parse_chunk_key_encoding
from zardine.engine.array_config import ArrayConfig
from zardine.engine.freshness import LEASE
from zardine.engine.layout import prepare_layout
from zardine.engine.read_ahead import window_bytes
from zardine.engine.source import ArraySource
from zardine.engine.stored import stored_objects
from zardine.engine.workers import for_each
from zardine.errors import NodeExistsError, StoreError
from zardine.json_document import Problems
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes import create_node, describe, find_node, load_array, taken, update_node
from zardine.places import find_place, same_place
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.tools.consolidated_update import outermost, update_consolidated
from zardine.tools.reshard_move import count, move, object_bytes, region_of, sources_of
from zardine.tools.reshard_plan import SAME, is_same, moves_encoded, new_metadata, other_keys
from zardine.tools.reshard_state import Journal, Sources, about, journal_key, key_encodings, load_journal, members
from zardine.tools.verify import Progress, place_of

if TYPE_CHECKING:
    from zardine.arrays import Array
    from zardine.groups import Group

_PASSES = 20
GRACE = LEASE + 0.5
"""Seconds that other programs get to notice what is about to happen."""


@dataclass(frozen=True, slots=True)
class Resharding:
    """What :func:`zardine.reshard` did. False where others wrote to old objects when it was too late."""

    objects: int
    """New objects made, those of an earlier run not among them."""
    encoded: bool
    """Whether chunks were moved as they were encoded."""
    passes: int
    """How often old objects were looked at; more than two if others wrote meanwhile."""
    late: tuple[str, ...] = ()
    """Old objects that programs wrote after the switch, which had opened the array before. They are kept."""

    def __bool__(self) -> bool:
        return not self.late

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return asdict(self)


def reshard(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    shards: Any,
    chunks: Any = None,
    codecs: Any = None,
    compressors: Any = SAME,
    target: StoreLike | None = None,
    target_path: str | None = None,
    grace: float = GRACE,
    restart: bool = False,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Resharding:
    """Give an array (of Zarr v3) other shards: a shape, ``"auto"``, or ``None`` for none; also other chunks or codecs.

    ``chunks`` is the shape of (inner) chunks, ``codecs`` their whole chain, ``compressors`` its last part; what is not
    given stays. Chunks that keep shape and codecs are moved as the encoded bytes they are. In memory are as many new
    objects as the setting ``window_bytes`` has room for, one at least.

    Without ``target`` the array changes in place. Whenever this is interrupted, the array reads as before or as after;
    the same call goes on where it was, and ``restart`` forgets what was begun. Chunks get other keys, by the other of
    the encodings ``default`` and ``v2``. zardine arrays opened before raise
    :class:`~zardine.errors.ArrayChangedError` once it matters, for which this waits ``grace`` seconds twice; 0 is right
    where nobody else has the array open. Other programs must stop writing before, and open the array again after.

    Raises :class:`~zardine.errors.CorruptionError` for a shard that has no valid index: see :func:`zardine.repair`.
    """
    found, inner = place_of(store, path, writing=target is None, storage_options=storage_options)
    request = {"shards": shards, "chunks": chunks, "codecs": codecs, "compressors": compressors}
    if target is not None:
        place, place_path = find_place(target, target_path, mode="a")
        if same_place(found, place) and inner == place_path:
            raise ValueError("the target is the array itself: leave target out to change it in place")
        return _Elsewhere(found, inner, request, place, place_path, restart, progress).run()
    found, inner = outermost(found, inner)
    return _InPlace(found, inner, request, grace, restart, progress).run()


class _Run:
    """What both ways have in common: new objects made out of old ones, until no old one has changed."""

    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        target: Store,
        target_path: str,
        progress: Progress | None,
    ) -> None:
        self.store, self.path, self.request = store, path, request
        self.target_store, self.target_path = target, target_path
        self.progress = progress
        self.made = self.passes = 0
        self.encoded = False

    def wanted(self, old: ArrayMetadata) -> ArrayMetadata:
        """The metadata that the array is to have."""
        return new_metadata(prepare_layout(old), **self.request)

    def copy(self, journal: Journal, old: ArrayMetadata, new: ArrayMetadata) -> int:
        """Make every new object that is not made yet of the old ones as they are now; gives how many."""
        settings = replace(ArrayConfig(), cache=0)
        source = ArraySource(self.store, self.path, prepare_layout(old), settings)
        target = ArraySource(self.target_store, self.target_path, prepare_layout(new), settings)
        self.encoded = moves_encoded(source.layout, target.layout)
        stored = versions(source)
        total, done, changed = count(target), 0, 0
        at_once = max(1, min(thread_count(), window_bytes() // (2 * object_bytes(target))))

        def work(unit: tuple[int, ...]) -> None:
            move(source, target, unit, encoded=self.encoded)

        units: Iterator[tuple[int, ...]] = product(*(range(axis.count) for axis in target.layout.grids.objects))
        while batch := list(islice(units, 4 * at_once)):
            todo: dict[tuple[int, ...], Sources] = {}
            for unit in batch:
                sources = {key: stored[key] for key in sources_of(source, target, unit) if key in stored}
                if sources:
                    sources[""] = str(region_of(target, unit).full_shape)
                if journal.done.get(_name(unit), {}) != sources:
                    todo[unit] = sources
            for_each(work, list(todo), len(todo), at_once)
            for unit, sources in todo.items():
                journal.done[_name(unit)] = sources
            changed += len(todo)
            self.made += len(todo)
            done += len(batch)
            if todo:
                journal.save_sometimes(self.target_store, self.target_path)
            if self.progress is not None:
                self.progress(done, total)
        self.passes += 1
        return changed

    def begin(self, journal: Journal | None, wanted: dict[str, Any], restart: bool) -> Journal:
        """The journal to go on with; a new one is stored before anything else is."""
        if journal is not None and not restart:
            if journal.about != wanted:
                raise NodeExistsError(
                    f"{describe(self.target_store, self.target_path)} is being resharded in another way, or that was "
                    "interrupted: call zardine.reshard as before to finish it, or with restart=True to forget it"
                )
            journal.phase = "copying"
            journal.save(self.target_store, self.target_path)
            return journal
        fresh = Journal(wanted)
        fresh.save(self.target_store, self.target_path)
        return fresh


class _InPlace(_Run):
    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        grace: float,
        restart: bool,
        progress: Progress | None,
    ) -> None:
        super().__init__(store, path, request, store, path, progress)
        self.grace, self.restart = grace, restart

    def run(self) -> Resharding:
        store, path = self.store, self.path
        metadata = load_array(store, path)
        self.wanted(metadata)  # refuses what cannot be
        with store.lock(journal_key(path)):
            journal = load_journal(store, path)
            if journal is not None and journal.about.get("new") == members(metadata):
                late = self.clean(journal)  # an earlier run had switched already
                metadata = load_array(store, path, 3)
                if is_same(metadata, self.wanted(metadata)) or late:
                    return Resharding(0, True, 0, late)
                journal = None
            if journal is not None and self.restart:
                self.forget(journal, metadata)
                journal = None
            if is_same(metadata, self.wanted(metadata)):
                if journal is not None:
                    self.begin(journal, {}, restart=False)
                return Resharding(0, True, 0)
            self.forget_strangers(metadata, journal)
            journal = self.begin(journal, about(metadata, self.target(metadata)), restart=False)
            try:
                while not self.switch(journal):
                    pass
            except Exception:
                if journal.phase == "closing":  # let others write again
                    journal.phase = "copying"
                    journal.save(store, path)
                raise
            late = self.clean(journal)
        return Resharding(self.made, self.encoded, self.passes, late)

    def target(self, old: ArrayMetadata) -> ArrayMetadata:
        """What the document is to say: under other keys, so that no new object takes the place of an old one."""
        keys = other_keys(prepare_layout(old).keys)
        return replace(self.wanted(old), chunk_key_encoding=keys.to_extension())

    def switch(self, journal: Journal) -> bool:
        """Copy until nothing is left to copy, then replace the document. False if it has changed meanwhile."""
        for _ in range(_PASSES):
            old = self.current(journal)
            if not self.copy(journal, old, self.target(old)) and journal.phase == "closing":
                break
            if journal.phase != "closing":
                journal.phase = "closing"
                journal.save(self.store, self.path)
                time.sleep(self.grace)
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
            switched = members(now) == members(old) and now.shape == old.shape
            new = self.target(old)
            if not switched:
                return now
            return replace(now, chunk_grid=new.chunk_grid, chunk_key_encoding=new.chunk_key_encoding, codecs=new.codecs)

        update_node(self.store, self.path, old, change)
        return switched

    def drop_beyond(self, journal: Journal, new: ArrayMetadata) -> None:
        """Erase new objects that a smaller array no longer has."""
        target = ArraySource(self.store, self.path, prepare_layout(new), ArrayConfig())
        counts = [axis.count for axis in target.layout.grids.objects]
        for name in list(journal.done):
            unit = tuple(map(int, name.split("."))) if name else ()
            if any(i >= n for i, n in zip(unit, counts, strict=True)):
                self.store.erase(target.key(unit))
                del journal.done[name]

    def current(self, journal: Journal) -> ArrayMetadata:
        """The metadata now, which may have another shape than before, but the same chunks."""
        metadata = load_array(self.store, self.path, 3)
        if members(metadata)["chunk_key_encoding"] != journal.about["old"]["chunk_key_encoding"] or (
            metadata.codecs and members(metadata)["codecs"] != journal.about["old"]["codecs"]
        ):
            raise NodeExistsError(
                f"{describe(self.store, self.path)} was replaced meanwhile; restart=True forgets what was begun"
            )
        return metadata

    def clean(self, journal: Journal) -> tuple[str, ...]:
        """After the switch: erase what the document no longer names. Gives old keys that were written too late."""
        store, path = self.store, self.path
        journal.phase = "switched"
        journal.save(store, path)
        update_consolidated(store, path)
        time.sleep(self.grace)
        known = {(key, version) for sources in journal.done.values() for key, version in sources.items()}
        metadata = load_array(store, path, 3)
        old, late = self.old_keys(journal, metadata), []
        prefix = f"{path}/" if path else ""
        for key in old:
            version = store.version(key)
            name = key[len(prefix) :]
            if version is not None and (name, version) not in known and (name, None) not in known:
                late.append(key)
        store.erase_values([key for key in old if key not in set(late)])
        if not late:
            store.erase(journal_key(path))
        return tuple(late)

    def old_keys(self, journal: Journal, metadata: ArrayMetadata) -> list[str]:
        """Keys of chunks by the encodings of the journal, but not of the document."""
        found: list[str] = []
        for extension in key_encodings(journal):
            if extension != metadata.chunk_key_encoding:
                keys = parse_chunk_key_encoding(extension, Problems())
                layout = prepare_layout(metadata)
                if keys is not None:
                    source = ArraySource(self.store, self.path, replace(layout, keys=keys), ArrayConfig())
                    found += [key for key, _ in stored_objects(source)]
        return found

    def forget(self, journal: Journal, metadata: ArrayMetadata) -> None:
        """Erase what an earlier run has begun."""
        self.store.erase_values(self.old_keys(journal, metadata))
        self.store.erase(journal_key(self.path))

    def forget_strangers(self, metadata: ArrayMetadata, journal: Journal | None) -> None:
        """Refuse to begin where keys of the new encoding are stored, which nobody can have meant as chunks."""
        if journal is None:
            strangers = self.old_keys(Journal({"new": members(self.target(metadata))}), metadata)
            if strangers:
                raise NodeExistsError(
                    f"{describe(self.store, self.path)} has keys that belong to nothing, such as {strangers[0]!r}, "
                    "where the new chunks are to go: see zardine.verify, and erase them"
                )


class _Elsewhere(_Run):
    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        target: Store,
        target_path: str,
        restart: bool,
        progress: Progress | None,
    ) -> None:
        super().__init__(store, path, request, target, target_path, progress)
        self.restart = restart

    def run(self) -> Resharding:
        place, path = self.target_store, self.target_path
        metadata = load_array(self.store, self.path)
        new = self.wanted(metadata)
        with place.lock(journal_key(path)) if not place.read_only else nullcontext():
            journal = load_journal(place, path)
            node = find_node(place, path)
            if node is not None:
                if journal is not None and isinstance(node, ArrayMetadata) and is_same(node, new):
                    place.erase(journal_key(path))  # all was done but this
                    return Resharding(0, True, 0)
                raise taken(place, path, node)
            if journal is not None and self.restart:
                place.erase_prefix(f"{path}/" if path else "")
                journal = None
            journal = self.begin(journal, about(metadata, new), restart=False)
            for _ in range(_PASSES):
                metadata = load_array(self.store, self.path)
                if not self.copy(journal, metadata, self.wanted(metadata)):
                    break
            create_node(place, path, self.wanted(metadata), overwrite=False)
            place.erase(journal_key(path))
        return Resharding(self.made, self.encoded, self.passes)


def versions(source: ArraySource) -> Sources:
    """The versions of all stored objects of an array, by key relative to it."""
    prefix = f"{source.path}/" if source.path else ""
    found = {}
    for key, _ in stored_objects(source):
        found[key[len(prefix) :]] = source.store.version(key)
    return found


def _name(unit: tuple[int, ...]) -> str:
    return ".".join(map(str, unit))


__all__ = ["Resharding", "reshard"]
