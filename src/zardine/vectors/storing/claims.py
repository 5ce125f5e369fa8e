"""Who may store arrays anew, where locks do not keep the writers of other machines out.

New objects of all writers have the same keys, and are put and erased without conditions. So one of them *claims* the
store first: one conditional write of the document of level 0 notes the writer there (:data:`CLAIM`) beside all that the
document says. Changes of cells and rows alone need no claim. They are agreed on by a conditional write of the same
document, which fails if the claim came first; and who finds a claim waits.

The holder *beats*: it writes the document again, with a number that is counted up, so that it knows that the claim was
its own still. No put and no erasure begins later than a :data:`~zardine.engine.freshness.LEASE` after the beginning of
a beat that was stored, or where a beat takes longer than that, right after one. Who waits takes the claim over when the
document has told of the same beat for :data:`PATIENCE` on the own clock, by a write over the version that was seen: the
holder's next beat fails then, and it stops. No clocks of two machines are compared. What can go wrong is a request that
is under way for that long.

Each write of the holder to the document is made over the version that it wrote last, and the claim is put back into
it, so that those who change the level (:mod:`~zardine.vectors.storing.transactions`) need not know of it.

Who carries out the change of another, without a claim, does so beside that writer. What the slower of the two puts
late is what was there already, if it is there still. So such help is noted (:data:`HELPED`), and who claims the store
after that waits until all that was begun has ended.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from threading import RLock
from typing import Any, Final

from zardine.buffers import BytesLike
from zardine.contexts import sure_context
from zardine.engine.freshness import GRACE, LEASE
from zardine.errors import ConditionFailedError, DataError, MetadataError, StoreError
from zardine.hierarchy.find import describe, document_key, find_node, parse_found
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import to_documents
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.attempts import attempts
from zardine.stores.base import WHOLE, ByteRange, Condition, EditableFile, Reading, Store, Version, resolve_range
from zardine.stores.wrappers.wrapper import WrappedFiles, WrapperStore

CLAIM: Final = "zardine_claim"
"""Attribute of level 0: the token of the writer who alone may change the store, and the number of its last beat."""

HELPED: Final = "zardine_helped"
"""Attribute of level 0: a change was carried out by others than who made it, since the store was last claimed."""

CLAIMS: Final = "zardine_claims"
"""Attribute of level 0: how often the store was claimed since the level was made. Object stores may know a version by
what is in it alone; so a claim that has changed nothing else of the document, as of a conversion, is seen, too."""

PATIENCE: Final = 15 * LEASE
"""Seconds without a beat after which a claim is taken over."""

_COUNTS: Final = PATIENCE / 3
"""Seconds for which a beat counts that took longer than a lease itself, as where large values are on their way."""

_LATE: Final = 2 * GRACE
"""Seconds after which nothing is under way any more of what began before a log was carried out."""

_LOOK: Final = LEASE / 4
"""Seconds between two looks of who waits."""

_AT_ONCE: Final = 1000
"""Values that are erased between two beats at most."""


_UNSETTLED: Final = ("zardine_pending", "zardine_log")
"""Attributes of a level with a change that is agreed on and not carried out yet."""


class OvertakenError(StoreError):
    """Somebody else has changed a level since it was opened to be changed: nothing was stored."""


class LostClaimError(OvertakenError):
    """Another writer has taken over the claim, since this one did nothing for too long."""


class Claim:
    """The claim of one change to the store whose level 0 is at ``path``; held or not."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path, self.key = store, path, document_key(path)
        self._lock = RLock()
        self._token: str | None = None
        self._beat = 0
        self._began = 0.0
        """When the last beat that was stored began."""
        self._is_lost = False
        self.is_quiet = False
        """Whether nobody who came before was carrying out a change when the store was claimed."""
        self._group = GroupMetadata()
        """What the document says beside the claim."""
        self._version: Version | None = None

    @property
    def is_held(self) -> bool:
        """Whether this change holds the claim, or held it until others took it over."""
        return self._token is not None

    @property
    def seen(self) -> tuple[GroupMetadata, Version | None]:
        """The document of level 0, for who holds the claim."""
        return self._group, self._version

    def take(self) -> None:
        """Claim the store, when nobody else holds it or the holder has not beaten for long. Waits as long as it takes.

        Without an effect where the claim is held, where no level 0 can be read, and on stores that tell no versions.
        """
        other: Any = None
        since = 0.0
        while not self.is_held:
            reading = self._store.read(self.key)
            if reading is None:
                return
            try:
                group = self._parsed(reading)
            except (MetadataError, DataError):
                return  # it tells of no claim, and who changes the level is told of the damage
            found, now = group.attributes.get(CLAIM), _now()
            if found is not None and found != other:
                other, since = found, now
            if found is None and reading.version is None:
                return
            if found is not None and now - since < PATIENCE:
                time.sleep(_LOOK)
            elif reading.version is None:
                forget_claim(self._store, self._path)
            else:
                self._try(_without(group, CLAIM), reading.version)

    def take_as(self, group: GroupMetadata, version: Version | None) -> None:
        """Claim the store if the document of level 0 still is ``group``, of this version.

        Raises :class:`OvertakenError` if it is not. Without an effect as :meth:`take`.
        """
        if self.is_held or version is None:
            return
        if CLAIM in group.attributes or not self._try(group, version):
            raise OvertakenError(f"somebody else has changed {describe(self._store, self._path)} meanwhile: try again")

    def sure(self) -> None:
        """Look that the claim is held still, before a put or an erasure; needs nothing to be held.

        Raises :class:`LostClaimError`.
        """
        if not self.is_held:
            return
        with self._lock:
            for last in attempts():
                if self._is_lost:
                    raise self._lost()
                if _now() - self._began < (LEASE if last.number == 1 else _COUNTS):
                    return
                if last:
                    raise StoreError(f"{self._store} is too slow: a small put takes more than {_COUNTS:g} seconds")
                self._write(self._group, only_if_same=False)

    def put(self, value: BytesLike, condition: Condition | None) -> Version | None:
        """Let ``value`` be the document of level 0, and the claim in it; by who holds that.

        Raises :class:`~zardine.errors.ConditionFailedError` where it is of another version than ``condition`` says.
        """
        with self._lock:
            if self._is_lost:
                raise self._lost()
            if condition is not None and condition.version != self._version:
                if not self._adopt():  # who ended a change of its own has written it since
                    raise self._lost()
                if condition.version != self._version:
                    raise ConditionFailedError(f"{self.key} is of another version")
            self._write(self._parsed(Reading((value,), None, len(value))), only_if_same=True)
            return self._version

    def shown(self, reading: Reading | None) -> Reading | None:
        """What the document says beside the claim, to who holds that; ``reading`` is all that is stored.

        Raises :class:`LostClaimError` where it tells of another claim.
        """
        if not self.is_held:
            return reading
        group = None if reading is None else self._parsed(reading)
        if reading is None or group is None or not self._is_mine(group):
            self._is_lost = True
            raise self._lost()
        data = _document(_without(group, CLAIM))
        return Reading((data,), reading.version, len(data))

    def let_go(self) -> None:
        """Give the claim up, if it is held."""
        with self._lock:
            if self.is_held and not self._is_lost:
                for last in attempts():
                    data = _document(_counted(_without(self._group, HELPED)))
                    try:
                        self._store.set(self.key, data, condition=Condition(self._version))
                        break
                    except ConditionFailedError:
                        if last or not self._adopt():
                            break
            self._token, self._is_lost = None, False

    def _try(self, group: GroupMetadata, version: Version) -> bool:
        self._group, self._version, self._beat, self._is_lost = group, version, 0, False
        self._token = secrets.token_hex(8)
        self.is_quiet = not any(name in group.attributes for name in _UNSETTLED)
        try:
            self._write(group, only_if_same=True)
        except (ConditionFailedError, LostClaimError):
            self._token, self._is_lost = None, False
            return False
        except BaseException:
            self._token = None
            raise
        if HELPED in group.attributes:
            self.wait_for_the_late()
        return True

    def wait_for_the_late(self) -> None:
        """Wait, who holds the claim, until nothing is put any more by those who carried out a log at the same time."""
        if self.is_held:
            time.sleep(_LATE)

    def _write(self, group: GroupMetadata, *, only_if_same: bool) -> None:
        """Store the document and the claim, over what was written last; that is a beat.

        ``only_if_same``: it is not stored where another than the holder has changed the rest of it, who ends a change.
        """
        for last in attempts():
            began, beat = _now(), self._beat + 1
            claim = {"writer": self._token, "beat": beat}
            data = _document(group.with_attributes({**group.attributes, CLAIM: claim}))
            try:
                self._version = self._store.set(self.key, data, condition=Condition(self._version))
            except ConditionFailedError:
                if not self._adopt():
                    raise self._lost() from None
                if self._beat != beat:  # else it was stored, and the answer got lost
                    if only_if_same or last:
                        raise
                    group = self._group
                    continue
            self._group, self._beat, self._began = group, beat, began
            return

    def _adopt(self) -> bool:
        """Read the document anew; whether the claim is held still."""
        reading = self._store.read(self.key)
        group = None if reading is None else self._parsed(reading)
        if reading is None or group is None or not self._is_mine(group):
            self._is_lost = True
            return False
        self._group, self._version = _without(group, CLAIM), reading.version
        self._beat = group.attributes[CLAIM].get("beat", 0)
        return True

    def _is_mine(self, group: GroupMetadata) -> bool:
        found = group.attributes.get(CLAIM)
        return isinstance(found, dict) and found.get("writer") == self._token

    def _parsed(self, reading: Reading) -> GroupMetadata:
        node = parse_found(DOCUMENT_NAME, {DOCUMENT_NAME: reading.parts[0]}, self._store, self._path)
        if not isinstance(node, GroupMetadata):
            raise StoreError(f"there is no group at {describe(self._store, self._path)}")
        return node

    def _lost(self) -> LostClaimError:
        return LostClaimError(
            f"another writer has taken over {describe(self._store, self._path)}, since this one could do nothing for "
            f"{PATIENCE:g} seconds: try again"
        )


class _ClaimedFiles(WrappedFiles):
    """Files that are edited while the claim is held."""

    __slots__ = ()

    _store: ClaimedStore

    def edit(self, key: str) -> AbstractContextManager[EditableFile | None]:
        self._store.claim.sure()
        return super().edit(key)


class ClaimedStore(WrapperStore):
    """A store as it is for one change: once that has claimed it, each request looks whether that holds still."""

    files_class = _ClaimedFiles

    def __init__(self, store: Store, claim: Claim) -> None:
        super().__init__(store)
        self.claim = claim

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        self.claim.sure()  # so that who reads for long keeps it
        if key != self.claim.key or not self.claim.is_held:
            return super().read(key, ranges)
        reading = self.claim.shown(super().read(key))
        if reading is None:
            return None
        data = memoryview(reading.parts[0])
        spans = [resolve_range(each, len(data)) for each in ranges]
        return Reading(tuple(bytes(data[start:stop]) for start, stop in spans), reading.version, len(data))

    def read_up_to(self, key: str, most: int) -> Reading | None:
        if key == self.claim.key and self.claim.is_held:
            return self.read(key)
        self.claim.sure()
        return self._store.read_up_to(self._key(key), most)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        if key == self.claim.key and self.claim.is_held:
            return self.claim.put(value, condition)
        self.claim.sure()
        return super().set(key, value, condition=condition)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        self.claim.sure()
        super().set_partial_values(key_start_values)

    def erase(self, key: str) -> None:
        self.claim.sure()
        super().erase(key)

    def erase_version(self, key: str, version: Version | None) -> None:
        self.claim.sure()
        super().erase_version(key, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        names = list(keys)
        for start in range(0, len(names), _AT_ONCE):
            self.claim.sure()
            super().erase_values(names[start : start + _AT_ONCE])

    def erase_prefix(self, prefix: str) -> None:
        if self.claim.is_held and self._store.cost.is_slow:  # it has no folders, and so nothing is left of them
            self.erase_values(list(self.list_prefix(prefix)))
        else:
            self.claim.sure()
            super().erase_prefix(prefix)


def to_claim(store: Store, level: str) -> Store:
    """Return ``store`` for one change, of which the document of level 0 is at ``level``; as it is where locks do."""
    if store.lock_is_exclusive or claim_of(store) is not None:
        return store
    return ClaimedStore(store, Claim(store, level))


def claim_of(store: Store) -> Claim | None:
    """The claim of who changes a store; ``None`` where it needs none."""
    while isinstance(store, WrapperStore):
        if isinstance(store, ClaimedStore):
            return store.claim
        store = store.store
    return None


def forget_claim(store: Store, level: str) -> None:
    """Remove what a writer has left who was killed, or has written a store that was copied here; where locks do."""
    try:
        group = find_node(store, level, 3)
    except (MetadataError, DataError):
        return
    if isinstance(group, GroupMetadata) and CLAIM in group.attributes:
        update_node(store, level, group, lambda old: _without(old, CLAIM))


@sure_context
def claimed(store: Store, level: str) -> Generator[Store, None, None]:
    """The store while it is claimed, where that is needed; ``level``: as for :func:`to_claim`."""
    store = to_claim(store, level)
    claim = claim_of(store)
    if claim is None:
        forget_claim(store, level)
    if claim is None or claim.is_held:
        yield store
        return
    with letting_go(claim):
        claim.take()
        yield store


@sure_context
def letting_go(claim: Claim) -> Generator[None, None, None]:
    """Give up what is claimed within the context; where that fails it is taken over, as that of a killed writer."""
    try:
        yield
    finally:
        with suppress(Exception):
            claim.let_go()


def _now() -> float:
    """Seconds of a clock that goes on while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _without(group: GroupMetadata, name: str) -> GroupMetadata:
    if name not in group.attributes:
        return group
    return group.with_attributes({each: value for each, value in group.attributes.items() if each != name})


def _counted(group: GroupMetadata) -> GroupMetadata:
    found = group.attributes.get(CLAIMS)
    count = found + 1 if type(found) is int and 0 < found < 2**53 else 1
    return group.with_attributes({**group.attributes, CLAIMS: count})


def own_attributes(attributes: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return what the attributes of level 0 say of the level itself, without ``others``."""
    return {name: value for name, value in attributes.items() if name not in (CLAIM, CLAIMS, HELPED, *others)}


def _document(group: GroupMetadata) -> bytes:
    document = to_documents(group)[DOCUMENT_NAME]
    assert document is not None
    return document


__all__ = [
    *("CLAIM", "CLAIMS", "HELPED", "PATIENCE"),
    *("Claim", "ClaimedStore", "LostClaimError", "OvertakenError"),
    *("claim_of", "claimed", "forget_claim", "letting_go", "own_attributes", "to_claim"),
]
