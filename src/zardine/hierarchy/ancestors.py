"""The groups above a node that is created: those that have no document get one.

Far away all of them are asked for at the same time, and those that are missing are stored at the same time, once the
outermost is there. A process that is killed in that may leave a group without a document between two that have one: who
creates a node below it later stores that, too, if that can be done. A process that has seen that none is missing asks
for the innermost alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from zardine.cache import Cache
from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun, side_by_side
from zardine.errors import ConditionFailedError, ContainsArrayError, ZardineError
from zardine.hierarchy.find import (
    MOST_REFUSALS,
    Seen,
    ask_ahead,
    check_finished,
    describe,
    document_key,
    find_node,
    look_whether_free,
    names_of,
    refused,
)
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, document_names, format_of_new, to_documents
from zardine.metadata.v2 import GROUP
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import Condition, Reading, Store


class Missing(NamedTuple):
    """Groups that have no document."""

    paths: list[str]
    """Those that are to be there before the node is, the inner ones first."""
    zarr_format: int
    left_out: Sequence[str] = ()
    """Those that another process has left out further up; the node is to be had without them, too."""


_DOCUMENTS: Final = {3: DOCUMENT_NAME, 2: GROUP}
"""Name of the document that makes a group."""

_ENTRY: Final = 200
"""Bytes that a name takes beside itself, about."""
_whole: Final[Cache[str, bool]] = Cache(2**20)
"""Groups far away that were seen to be there, with all groups above them that shall be."""


class Above:
    """The groups above the place of a node, the inner ones first, and what was noticed of each."""

    def __init__(self, store: Store, path: str) -> None:
        parts = path.split("/")[:-1]
        self.paths = ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)] if path else []
        self.seen = [Seen() for _ in self.paths]
        self.is_known = False
        """Whether their documents of Zarr v3, and where there may be none whether anything is there, were asked for."""
        self._store = store

    def documents(self, zarr_format: int | None, places: slice = slice(None)) -> list[Callable[[], None]]:
        """Return calls that ask for the documents of groups of a version, or of any, at some of the places."""
        names = list(_DOCUMENTS.values())[: 1 if zarr_format == 3 else None]
        asked = zip(self.paths[places], self.seen[places], strict=True)
        return [call for path, each in asked for call in ask_ahead(self._store, path, names, each)]

    def looks(self, numbers: Iterable[int], zarr_format: int | None) -> list[Callable[[], None]]:
        """Return calls that look whether anything is at some of the places, for who does not find a document there."""
        calls: list[Callable[[], None]] = []
        for number in numbers:
            path, seen = self.paths[number], self.seen[number]
            calls.append(partial(look_whether_free, self._store, path, seen))
            if not path and zarr_format == 3:
                calls += ask_ahead(self._store, path, [GROUP], seen)  # what is all of a store may be of any version
        return calls

    @property
    def are_whole(self) -> bool:
        """Whether this process has seen that none of the groups was missing."""
        return _whole.get(self._name()) is not None

    def note_whole(self) -> None:
        """None of the groups is missing: as long as the innermost is there, who creates something need not look."""
        name = self._name()
        _whole.put(name, True, len(name) + _ENTRY)

    def _name(self) -> str:
        store, place = self._store.beneath(self.paths[0])
        return f"{store.unique_name}/{place}"

    def nearest(self) -> int:
        """Return how many of the places there are up to the nearest that has a document."""
        return next((number + 1 for number, each in enumerate(self.seen) if each.has_document), len(self.seen))


def look_for_new_group(store: Store, path: str, seen: Seen, zarr_format: int | None) -> Above | None:
    """Ask for a group that is created if it is not there; if so for all that has to be known for that at the same time.

    ``zarr_format``: of the group, or ``None`` for any. ``seen`` gets what is noticed. Gives what is known of the groups
    above then; ``None`` where something is there, and where looking costs little.
    """
    version = format_of_new(zarr_format)
    if not is_far(store) or version == 1:
        return None
    older = document_names(2, "group")
    side_by_side(store, ask_ahead(store, path, older if zarr_format == 2 else [DOCUMENT_NAME], seen))
    if seen.has_document:
        return None
    above = Above(store, path)
    calls = ask_ahead(store, path, older, seen) if zarr_format is None else []
    calls += [partial(look_whether_free, store, path, seen)]
    side_by_side(store, calls + above.documents(version) + above.looks(range(len(above.paths)), version))
    above.is_known = True
    return above


def missing_ancestors(store: Store, path: str, zarr_format: int | None, above: Above | None = None) -> Missing:
    """Return the groups above ``path`` that have no document, up to the nearest that has one.

    ``zarr_format``: of the node at ``path``, and so of the groups; ``None``: that of the nearest group. Zarr v1 has no
    groups. ``above``: what is known of them already.

    Raises :class:`~zardine.errors.ContainsArrayError` where one of them is an array, and what
    :func:`~zardine.hierarchy.find.find_node` raises, for the innermost place first.
    """
    missing: list[str] = []
    left_out: list[str] = []
    if not path or zarr_format == 1:
        return Missing(missing, 3)
    above = Above(store, path) if above is None else above
    places = list(zip(above.paths, above.seen, strict=True))
    far = is_far(store)
    depth = _ask_for_all(store, above, zarr_format) if far else len(places)
    calls = [
        partial(_look, store, path, seen, is_new=far or (zarr_format == 3 and path != ""))
        for path, seen in places[:depth]
    ]
    for number, look in enumerate(begun(store, calls)):
        ancestor, node = above.paths[number], look()
        if isinstance(node, ArrayMetadata):
            raise ContainsArrayError(
                f"cannot create a node below {describe(store, ancestor)}: an array is stored there, not a group"
            )
        if node is not None:  # what is above an existing group exists too, or is not to be a group
            zarr_format = node.zarr_format if zarr_format is None else zarr_format
            if far and zarr_format == node.zarr_format:
                left_out = _left_out(store, places[number + 1 :], zarr_format)
            break
        missing.append(ancestor)
    if far and not missing and not left_out:
        above.note_whole()
    return Missing(missing, 3 if zarr_format is None else zarr_format, left_out)


def create_groups(store: Store, groups: Missing) -> None:
    """Store documents of groups, the outer ones first; far away all but the outermost at the same time.

    What another process has stored there meanwhile stays. Those that another process has left out may stay so.
    """
    if not groups.paths and not groups.left_out:
        return
    group = GroupMetadata(zarr_format=groups.zarr_format)
    document = to_documents(group)[names_of(group)[0]]
    assert document is not None

    def create(path: str) -> None:
        key = document_key(path, group)
        for number in range(1, MOST_REFUSALS + 1):
            try:
                store.set(key, document, condition=Condition(None))
                return
            except ConditionFailedError as error:
                if store.exists(key):  # another process has just created it
                    return
                if number == MOST_REFUSALS:
                    raise refused(store, path, error) from error

    def try_to_create(path: str) -> None:
        with suppress(ZardineError):  # who may write below a group need not have the right to write above it
            create(path)

    for outermost in groups.paths[-1:]:
        create(outermost)
    calls = [partial(create, path) for path in reversed(groups.paths[:-1])]
    side_by_side(store, [*calls, *(partial(try_to_create, path) for path in reversed(groups.left_out))])


def _look(store: Store, path: str, seen: Seen, *, is_new: bool) -> NodeMetadata | None:
    """Return the node at a place where a group may have to be created.

    Raises :class:`~zardine.errors.NodeExistsError` where a work is to make one.
    """
    node = find_node(store, path, expected="group", seen=seen, is_new=is_new)
    if node is None and not seen.is_free:
        check_finished(store, path, seen)
    return node


def _ask_for_all(store: Store, above: Above, zarr_format: int | None) -> int:
    """Ask for the documents of groups, and then, where there are none, whether anything is there: all at the same time.

    Gives how many of the places have to be looked at, the first ones, to find the nearest group.
    """
    if not above.is_known:
        known = 1 if above.are_whole else len(above.paths)
        side_by_side(store, above.documents(zarr_format, slice(known)))
        if not above.seen[0].has_document:
            side_by_side(store, above.documents(zarr_format, slice(known, None)))
    depth = above.nearest()
    looks: list[Callable[[], None]] = []
    if not above.is_known:
        looks += above.looks([number for number in range(depth) if not above.seen[number].has_document], zarr_format)
    for path, seen in zip(above.paths[:depth], above.seen, strict=False):
        if isinstance((seen.answers or {}).get(GROUP), Reading):
            looks += ask_ahead(store, path, [*document_names(2, "group")[1:], *document_names(2, "array")[:1]], seen)
    side_by_side(store, looks)
    return depth


def _left_out(store: Store, above: Sequence[tuple[str, Seen]], zarr_format: int) -> list[str]:
    """Return the groups that have no document between two that have one: who created them was killed.

    ``above``: the places above the inner one of the two, of that version. What cannot be looked at is left alone.
    """
    name = _DOCUMENTS[zarr_format]
    there = [number for number, (_, seen) in enumerate(above) if isinstance((seen.answers or {}).get(name), Reading)]
    outer = max(there, default=0)
    places = [each for each in above[:outer] if not each[1].has_document]
    if not places:
        return []
    looks = begun(store, [partial(_look, store, *each, is_new=True) for each in [*places, above[outer]]])
    found: list[str] = []
    with suppress(ZardineError):
        if isinstance(looks[-1](), GroupMetadata):
            for (path, _), look in zip(places, looks, strict=False):
                with suppress(ZardineError):
                    if look() is None:
                        found.append(path)
    return found


__all__ = ["Above", "Missing", "create_groups", "look_for_new_group", "missing_ancestors"]
