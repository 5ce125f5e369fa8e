"""What an answer asks a store for is asked for at once, before it is known whether it is there, where that is far away.

The keys of a level's documents, and of the tables of its objects, are always the same: all of them are under way while
the first one is waited for. What came before the document of the level may be older than that; so who has answered out
of it looks at the end whether all that was used is still what is stored (:meth:`AheadStore.holds`). As nobody has
changed the level since either, all of it was there at one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, Final

from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import made, side_by_side
from zardine.engine.workers import in_background, most_requests
from zardine.errors import StoreError, UnsupportedError
from zardine.hierarchy.find import document_key
from zardine.limits import DOCUMENT, limit_of
from zardine.stores.base import WHOLE, ByteRange, Reading, Store, Version
from zardine.stores.wrappers.wrapper import WrapperStore
from zardine.vectors.reading.query import ALL, Names, Query
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import Level

_TABLES: Final = ("object_index/manifests", "object_index/object_ids")
_MOST: Final = 2**22
"""Bytes of a table's first chunk that are read unasked; a larger one is asked for again."""
_LEVELS: Final = 8
"""Levels below one that are looked at to tell whether that is older."""
_TOGETHER: Final = 2**26
"""Bytes of what is asked for ahead at most, all together: what is longer is left to who reads it."""
_LISTED: Final = 1000
"""Values of a folder that are looked at by a listing: a page of it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an answer will ask for, as a rule, below a level."""

    documents: tuple[str, ...] = ()
    """Of nodes at these paths ..."""
    names: tuple[str, ...] = ()
    """... names of what is below these ..."""
    values: tuple[str, ...] = ()
    """... and values under these keys."""


NOTHING: Final = Expected()


def expected_of(
    query: Query, *, objects: bool = False, of_objects: Names = None, links: bool = False, of_links: Names = None
) -> Expected:
    """Return what an answer to ``query`` asks for.

    ``objects``: whether vertices are parts of objects, as a rule; ``of_objects``: the attributes of these that are
    read; ``links`` and ``of_links``: the same of links.
    """
    documents, names = ["vertices", "object_index"], []
    chooses = (query.bbox, query.object_ids, query.group_ids, query.chunks, query.where)
    if objects or links or all(each is None for each in chooses):
        documents.append("vertex_fragments")
    if objects:
        documents += _TABLES
    if links:
        documents.append("links/0")
        names.append("links/0")
        names += ["link_attributes"] if of_links == ALL else []
    for family, wanted in (("vertex_attributes", query.names), ("object_attributes", of_objects)):
        if wanted == ALL:
            names.append(family)
        else:
            given = [wanted] if isinstance(wanted, str) else list(wanted or ())
            documents += [f"{family}/{name}" for name in given]
    values = [f"{table}/c/0" for table in _TABLES] if objects else []
    return Expected(tuple(documents), tuple(names), tuple(values))


@dataclass(slots=True, eq=False)
class _Asked:
    """Something that was asked for; the first who wants it gets it."""

    get: Callable[[], Any]
    may_be_older: bool = True
    """Whether it was asked for before anything was known of the level."""
    taken: bool = False
    found: Any = None
    lock: Lock = field(default_factory=Lock)


def _forgotten() -> None:
    """In the place of what has given its result."""


class AheadStore(WrapperStore):
    """A store of which things have been asked for ahead; each is given once, to who asks for it first.

    It serves one answer, at the end of which it is to :meth:`forget`. All else, and whatever is asked for again, is
    passed on.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._asked: dict[str, _Asked] = {}
        self._folders: Sequence[str] = ()
        self._passed: dict[str, Version | None] = {}
        """Versions of values in these folders that were passed on, as they were read first."""

    def ask(
        self,
        keys: Iterable[str],
        prefixes: Iterable[str] = (),
        values: Iterable[str] = (),
        folders: Sequence[str] = (),
    ) -> None:
        """Ask for documents under ``keys``, names below ``prefixes``, and ``values``, all at the same time.

        ``folders`` are prefixes below which there are few values as a rule, all of which one listing tells of.
        """
        self._folders = folders
        self._ask(keys, prefixes, values, may_be_older=True)

    def ask_on(self, keys: Iterable[str], values: Iterable[str] = ()) -> None:
        """Ask for more, now that the document of the level is here: it is no older than that."""
        self._ask(keys, (), values, may_be_older=False)

    def _ask(self, keys: Iterable[str], prefixes: Iterable[str], values: Iterable[str], *, may_be_older: bool) -> None:
        store, keys, values = self._store, list(keys), list(values)
        threads = most_requests(store)
        share = _TOGETHER // max(1, len(keys) + len(values))
        most = min(limit_of(DOCUMENT), share)
        calls: dict[str, Callable[[str], Any]] = {}
        calls |= dict.fromkeys(keys, lambda key: store.read_up_to(key, most))
        calls |= dict.fromkeys(values, lambda key: store.read_up_to(key, min(_MOST, share)))
        calls |= dict.fromkeys(prefixes, store.list_dir)
        for name, call in calls.items() if threads > 1 else reversed(calls.items()):
            if name not in self._asked:
                get = in_background(call, name, threads) if threads > 1 else made(partial(call, name))
                self._asked[name] = _Asked(get, may_be_older)

    def version_given(self, key: str) -> Version | None:
        """The version of a value that was given, in one of the folders that were named; ``None`` for others."""
        asked = self._asked.get(key)
        if key in self._passed:
            return self._passed[key]
        return asked.found.version if asked is not None and asked.taken and isinstance(asked.found, Reading) else None

    def forget(self) -> None:
        """Give nothing more of what was asked for: it gets older."""
        self._asked, self._passed = {}, {}

    def holds(self, *others: str) -> bool:
        """Whether all that was given out of what was asked for ahead is what is stored now. One round of requests.

        ``others`` are keys that are looked at elsewhere.
        """
        asked = {name: each for name, each in self._asked.items() if each.taken and each.may_be_older}
        given = {name: each.found for name, each in asked.items() if name not in others}
        looks: list[Callable[[], bool]] = []
        for folder in self._folders:
            below = {name: found for name, found in given.items() if name.startswith(folder) and name != folder}
            if len(below) > 1:
                looks.append(partial(self._hold_below, folder, below))
                given = {name: found for name, found in given.items() if name not in below}
        looks += [partial(self._is_same, name, found) for name, found in given.items()]
        with suppress(StoreError, UnsupportedError):
            return all(side_by_side(self._store, looks))
        return False

    def _is_same(self, name: str, found: Any) -> bool:
        store = self._store
        if found is None:
            return not store.exists(name)
        if not isinstance(found, Reading):
            return bool(store.list_dir(name) == found)
        if found.version is not None:
            return store.is_unchanged(name, found.version)
        reading = store.read(name)
        return reading is not None and [*map(bytes, reading.parts)] == [*map(bytes, found.parts)]

    def _hold_below(self, folder: str, below: dict[str, Reading | None]) -> bool:
        """Whether values below a folder are the same, by one listing of it, if that tells."""
        listed: dict[str, Version | None] = {}
        is_whole = False
        with suppress(StoreError, UnsupportedError):  # who may not list may look at each
            listing = self._store.list_versions(folder)
            listed = dict(islice(listing, _LISTED)) if listing is not None else {}
            is_whole = listing is not None and len(listed) < _LISTED
        for name, found in below.items():
            if found is not None and found.version is not None and name in listed:
                if listed[name] != found.version:
                    return False
            elif found is None and is_whole and name not in listed:
                continue
            elif not self._is_same(name, found):
                return False
        return True

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        if tuple(ranges) == (WHOLE,):
            given, found = self._take(key)
            if given and (found is None or found.parts):
                known: Reading | None = found
                return known
        return super().read(key, ranges)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        given, found = self._take(key)
        if not given or (found is not None and not found.parts and found.size <= most):
            reading = self._store.read_up_to(key, most)
            if reading is not None and any(key.startswith(each) for each in self._folders):
                self._passed.setdefault(key, reading.version)
            return reading
        known: Reading | None = found
        return known if known is None or known.size <= most else Reading((), known.version, known.size)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        given, found = self._take(prefix)
        return found if given else super().list_dir(prefix)

    def _take(self, name: str) -> tuple[bool, Any]:
        """Whether something was asked for, and nobody has had it; and what came of it. Raises what that raised."""
        asked = self._asked.get(name)
        if asked is None:
            return False, None
        with asked.lock:
            if asked.taken:
                return False, None
            asked.taken = True
            try:
                found = asked.get()
            except BaseException:
                del self._asked[name]  # nothing was given
                raise
            is_known = isinstance(found, Reading) and found.version is not None
            asked.found = Reading((), found.version, found.size) if is_known else found
            asked.get = _forgotten
            return True, found


def reading_ahead(store: Store, path: str, number: int, expected: Expected) -> Store:
    """Return ``store``, or where it is far away one that was asked for what an answer out of a level needs."""
    if not is_far(store) or expected is NOTHING:
        return store
    ahead, level = AheadStore(store), child(path, str(number))
    below = [child(path, str(each)) for each in (*range(min(number, _LEVELS)), number)]
    documents = [
        document_key(each) for each in (*reversed(below), path, *(child(level, name) for name in expected.documents))
    ]
    names = [f"{child(level, name)}/" for name in expected.names]
    values = [child(level, name) for name in expected.values]
    ahead.ask(documents, names, values, [f"{child(level, 'object_index')}/"])
    return ahead


def ask_on(level: Level, documents: Iterable[str], values: Iterable[str] = ()) -> None:
    """Ask for what will be wanted of nodes below a level that is read ahead, now that their names are known."""
    store = level.owner.store
    if isinstance(store, AheadStore):
        keys = [document_key(child(level.path, name)) for name in documents]
        store.ask_on(keys, [child(level.path, name) for name in values])


def still_holds(store: Store, *others: str) -> bool:
    """Whether what was read ahead, if anything, is what is stored now: see :meth:`AheadStore.holds`."""
    return not isinstance(store, AheadStore) or store.holds(*others)


__all__ = ["NOTHING", "AheadStore", "Expected", "ask_on", "expected_of", "reading_ahead", "still_holds"]
