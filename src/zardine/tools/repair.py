"""``zardine.repair``: putting damaged shards in order, as far as what is stored allows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from zardine.codecs.sharding_indexed import PreparedSharding
from zardine.engine.file_index import recorded_index_of
from zardine.engine.freshness import Writing
from zardine.engine.update_shard import condition_of
from zardine.engine.whole_shard import most_of_shard
from zardine.errors import ChunkTooLargeError, ConditionFailedError, DataError, StoreError
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.attempts import attempts
from zardine.stores.base import Reading, Store
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.checking.beyond_shape import NOTE
from zardine.tools.checking.scan import Scan, scan, scan_existing
from zardine.tools.checking.stored_object import StoredObject, check_objects
from zardine.tools.hidden_keys import Keeper
from zardine.tools.progress import Progress
from zardine.tools.repair_shape import clear_beyond, remove_outside
from zardine.tools.report import Fault, Flaw, Repairs, action, sort_faults
from zardine.tools.salvage.save import SavedChunk, SavedShard, save_chunk, save_shard

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

_LOST = (
    "its index is lost, and no older one is in it: where its inner chunks begin, and which is which, cannot be known, "
    "so nothing of it can be saved"
)


def repair(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    drop_unreadable: bool = False,
    keep_damaged: bool = True,
    dry_run: bool = False,
    older_than: float = 3600.0,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Repairs:
    """Put in order what is damaged at and below a node: every inner chunk that is still readable can be read again.

    A shard whose index is damaged gets back the last valid index that is in it. Inner chunks that cannot be read stay
    unreadable, or with ``drop_unreadable`` become empty (fill value) and are listed. ``keep_damaged`` keeps every
    object that is changed as it was, below ``__zardine/damaged/`` of its array; where nobody knows which sound chunk is
    which, that is done in any case. Objects outside of the shape of their array are removed, and values beyond it in
    its last chunks give way to the fill value: an append that was cut off leaves them. So are chunks under keys of
    another layout, which no document names. Unfinished files that writers
    left more than ``older_than`` seconds ago are removed. With ``dry_run`` nothing is written.

    A shard at a time is in memory, and locked while it is put in order. Documents and foreign keys are not touched.
    Raises as :func:`zardine.verify` does.
    """
    if not older_than >= 0:
        raise ValueError(f"older_than is a number of seconds, 0 or more, not {older_than}")
    found, inner = place_of(store, path, writing=not dry_run, storage_options=storage_options)
    leftovers = _leftovers(found, older_than)
    scanned = scan(found, inner) if leftovers else scan_existing(found, inner)
    checked = check_objects(found, scanned.objects, deep=True, progress=progress)
    keeper = Keeper(keep_damaged, dry_run)
    actions, left = _repair_shapes(found, scanned, keeper)
    for stored, result in zip(scanned.objects, checked, strict=True):
        mine: list[Fault] = []
        if result.faults:
            job = _Repair(stored, drop_unreadable, keeper)
            job.run(result.faults)
            actions += job.actions
            mine += job.left
        if found.lock_is_exclusive and (result.faults or any(note.kind == NOTE.kind for note in result.notes)):
            try:
                actions += clear_beyond(stored, keeper)
            except StoreError as error:
                if not any(each.kind == "store" for each in mine):
                    mine.append(stored.fault(Flaw("store", str(error))))
        left += mine
    if leftovers and not dry_run:
        found.remove_leftovers(older_than)
    actions += leftovers
    return Repairs(sort_faults(actions), sort_faults(left), dry_run)


def _repair_shapes(store: Store, scanned: Scan, keeper: Keeper) -> tuple[list[Fault], list[Fault]]:
    """Remove what lies outside of arrays; gives what was done, and the faults of the scan that are left."""
    left = [each for each in scanned.faults if each.kind not in ("outside", "unnamed")]
    actions: list[Fault] = []
    for place in {each.place for each in scanned.faults if each.kind in ("outside", "unnamed")}:
        try:
            remove_outside(store, place[1:], keeper, actions)
        except (StoreError, ChunkTooLargeError) as error:
            gone = {each.key for each in actions if each.kind == "removed"}
            mine = [each for each in scanned.faults if each.kind in ("outside", "unnamed") and each.place == place]
            left += [each for each in mine if each.key not in gone]
            left.append(Fault(place, kind="store", message=str(error)))
    return actions, left


class _Repair:
    """The repair of one object."""

    def __init__(self, stored: StoredObject, drop: bool, keeper: Keeper) -> None:
        self.stored = stored
        self.drop, self.keeper, self.dry_run = drop, keeper, keeper.dry_run
        self.actions: list[Fault] = []
        self.left: list[Fault] = []

    def run(self, faults: list[Fault]) -> None:
        """Do it; ``faults`` is what was found before."""
        if self.stored.handle.layout.is_draft:
            message = "shards of the draft are only read: zardine.convert writes them anew"
            self.left = [*faults, self.stored.fault(Flaw("draft", message))]
            return
        if any(fault.kind == "memory" for fault in faults):
            self.left = faults  # it may be sound: who allows more memory can tell
            return
        for last in attempts():
            self.actions, self.left = [], []
            try:
                with nullcontext() if self.dry_run else Writing(self.stored.handle), self.lock():
                    old = self._read(faults)
                    if old is not None:
                        self._repair(old, faults)
                return
            except ConditionFailedError:
                if last:
                    raise
            except StoreError as error:
                self.actions = [each for each in self.actions if each.kind == "kept"]  # the object is as it was
                others = [each for each in faults if each.kind != "store"]  # what was told of it before is told anew
                self.left = [*others, self.stored.fault(Flaw("store", str(error)))]
                return

    def lock(self) -> AbstractContextManager[object]:
        """Return the lock of the object, where something may be written."""
        return nullcontext() if self.dry_run else self.stored.handle.store.lock(self.stored.key)

    def _read(self, faults: list[Fault]) -> Reading | None:
        """Return the object, if there is one that is not too large to be looked at; what is left otherwise is noted."""
        stored = self.stored
        layout = stored.handle.layout.shard(stored.coordinates)
        chain = stored.handle.layout.chain(stored.chunk_shape())
        most = chain.most_stored() if layout is None else most_of_shard(layout, chain)
        old = stored.handle.store.read_up_to(stored.key, most)
        if old is None or old.parts:
            return old
        reason = f"it has {old.size} bytes, more than the {most} that are looked at"
        if layout is None and self.drop and not self.keeper.keeps and not chain.encoded.now().settings:
            self._lost(Reading((b"",), old.version, old.size), reason)
        else:
            self.left = [*faults, stored.fault(Flaw("memory", f"{reason}: it is left as it is"))]
        return None

    def _repair(self, old: Reading, faults: list[Fault]) -> None:
        stored = self.stored
        layout = stored.handle.layout.shard(stored.coordinates)
        chain = stored.handle.layout.chain(stored.chunk_shape())
        data = old.parts[0]
        if layout is None:
            self._chunk(old, save_chunk(data, chain, drop=self.drop))
            return
        recorded = self._recorded(old, layout)
        saved = save_shard(data, PreparedSharding(layout, chain), recorded, drop=self.drop)
        if saved is None:
            self._lost(old, _LOST)
            return
        self._note_chunks(saved)
        if saved.must_be_written(drop=self.drop):
            total, lost = len(saved.chunks), len(saved.unreadable)
            message = saved.how or "inner chunks that cannot be read were dropped"
            message = f"{message}; {total - lost} of {total} inner chunks saved"
            always_kept = saved.unplaced and not self.drop
            self._replace(old, saved.assemble(drop=self.drop), message, always_kept=always_kept)
        elif not saved.unreadable:
            self.left += [each for each in faults if each.kind == "overlap"]

    def _recorded(self, old: Reading, layout: ShardLayout) -> ShardIndex | None:
        """Return the index that counts, if the last write was cut off."""
        try:
            layout.checked_index_of(old.parts[0])
        except DataError:
            return recorded_index_of(self.stored.handle.store, layout, self.stored.key, old.version)
        return None

    def _chunk(self, old: Reading, saved: SavedChunk) -> None:
        if saved.reason is not None:
            self._lost(old, saved.reason)
        elif saved.changes:
            self._replace(old, saved.data, "; ".join(saved.changes))

    def _lost(self, old: Reading, reason: str) -> None:
        """Note that nothing of the object can be read; with ``drop``, erase it."""
        if self.drop:
            self._act("dropped", reason)
            self._replace(old, None, "nothing of it can be read; it was erased")
        else:
            self.left.append(self.stored.fault(Flaw("unreadable", reason)))

    def _note_chunks(self, saved: SavedShard) -> None:
        for row, reason in saved.unreadable.items():
            if self.drop:
                self._act("dropped", f"it is empty now: {reason}", row)
            else:
                self.left.append(self.stored.fault(Flaw("unreadable", reason, row)))
        for row, chunk in saved.chunks.items():
            for change in chunk.changes:
                self._act("repaired", change, row)

    def _act(self, kind: str, message: str, row: int | None = None) -> None:
        self.actions.append(self.stored.fault(Flaw(kind, message, row, severity="action")))

    def _replace(self, old: Reading, data: Any, message: str, *, always_kept: bool = False) -> None:
        """Put ``data`` in the place of the object, or erase it."""
        store, key = self.stored.handle.store, self.stored.key
        self.actions += self.keeper.keep(store, self.stored.handle.path, key, old, always=always_kept)
        if not self.dry_run and data is not None:
            store.set(key, data, condition=condition_of(store, key, old, keeps_others=True))
        elif not self.dry_run:
            layout = self.stored.handle.layout.shard(self.stored.coordinates)
            if layout is not None and old.version is not None and not store.lock_is_exclusive:
                condition = condition_of(store, key, old, keeps_others=True)
                store.set(key, layout.assemble([None] * layout.count), condition=condition)
                self._act("repaired", message)
                return
            store.erase_version(key, old.version)
        self._act("repaired", message)


def _leftovers(store: Store, older_than: float) -> list[Fault]:
    message = "an unfinished file of a writer that died was removed"
    return [action("/", each, kind="leftover", message=message) for each in store.leftovers(older_than)]


__all__ = ["repair"]
