"""The groups above a node that is created: those that have no document get one.

Far away all of them are asked for at the same time, and those that are missing are stored at the same time, once the
outermost is there. A process that is killed in that may leave a group without a document between two that have one: who
creates a node below it later stores that, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun, side_by_side
from zardine.errors import ConditionFailedError, ContainsArrayError, ZardineError
from zardine.hierarchy.find import (
    Seen,
    ask_ahead,
    check_finished,
    describe,
    document_key,
    find_node,
    look_whether_free,
    names_of,
)
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, document_names, to_documents
from zardine.metadata.v2 import GROUP
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import Condition, Reading, Store

Missing = tuple[list[str], int]
"""Paths of groups that have no document, the inner ones first, and the version of Zarr that they shall be of."""

_DOCUMENTS: Final = {3: DOCUMENT_NAME, 2: GROUP}
"""Name of the document that makes a group."""


def missing_ancestors(store: Store, path: str, zarr_format: int | None) -> Missing:
    """Return the groups above ``path`` that have no document, up to the nearest that has one.

    ``zarr_format``: of the node at ``path``, and so of the groups; ``None``: that of the nearest group. Zarr v1 has no
    groups. Raises :class:`~zardine.errors.ContainsArrayError` where one of them is an array, and what
    :func:`~zardine.hierarchy.find.find_node` raises, for the innermost place first.
    """
    missing: list[str] = []
    if not path or zarr_format == 1:
        return missing, 3
    parts = path.split("/")[:-1]
    above = ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]
    seen = [Seen() for _ in above]
    far = is_far(store)
    depth = _ask_for_all(store, above, seen, zarr_format) if far else len(above)
    calls = [
        partial(_look, store, path, each, is_new=far or (zarr_format == 3 and path != ""))
        for path, each in zip(above[:depth], seen, strict=False)
    ]
    for number, look in enumerate(begun(store, calls)):
        ancestor, node = above[number], look()
        if isinstance(node, ArrayMetadata):
            raise ContainsArrayError(
                f"cannot create a node below {describe(store, ancestor)}: an array is stored there, not a group"
            )
        if node is not None:  # what is above an existing group exists too, or is not to be a group
            zarr_format = node.zarr_format if zarr_format is None else zarr_format
            if far and zarr_format == node.zarr_format:
                missing += _left_out(store, above[number + 1 :], seen[number + 1 :], zarr_format)
            break
        missing.append(ancestor)
    return missing, 3 if zarr_format is None else zarr_format


def create_groups(store: Store, groups: Missing) -> None:
    """Store documents of groups, the outer ones first; far away all but the outermost at the same time.

    What another process has stored there meanwhile stays.
    """
    missing, zarr_format = groups
    if not missing:
        return
    group = GroupMetadata(zarr_format=zarr_format)
    document = to_documents(group)[names_of(group)[0]]
    assert document is not None

    def create(path: str) -> None:
        with suppress(ConditionFailedError):  # another process has just created it
            store.set(document_key(path, group), document, condition=Condition(None))

    *others, outermost = missing
    create(outermost)
    side_by_side(store, [partial(create, path) for path in reversed(others)])


def _look(store: Store, path: str, seen: Seen, *, is_new: bool) -> NodeMetadata | None:
    """Return the node at a place where a group may have to be created.

    Raises :class:`~zardine.errors.NodeExistsError` where a work is to make one.
    """
    node = find_node(store, path, expected="group", seen=seen, is_new=is_new)
    if node is None and not seen.is_free:
        check_finished(store, path, seen)
    return node


def _ask_for_all(store: Store, above: Sequence[str], seen: Sequence[Seen], zarr_format: int | None) -> int:
    """Ask for the documents of groups, and then, where there are none, whether anything is there: all at the same time.

    Gives how many of the places have to be looked at, the first ones, to find the nearest group.
    """
    names = list(_DOCUMENTS.values())[: 1 if zarr_format == 3 else None]
    places = list(zip(above, seen, strict=True))
    side_by_side(store, [call for path, each in places for call in ask_ahead(store, path, names, each)])
    depth = next((number + 1 for number, each in enumerate(seen) if each.has_document), len(seen))
    looks: list[Callable[[], None]] = []
    for path, each in places[:depth]:
        if isinstance((each.answers or {}).get(GROUP), Reading):
            looks += ask_ahead(store, path, [*document_names(2, "group")[1:], *document_names(2, "array")[:1]], each)
        if not each.has_document:
            looks.append(partial(look_whether_free, store, path, each))
            if not path and zarr_format == 3:
                looks += ask_ahead(store, path, [GROUP], each)  # what is all of a store may be of any version
    side_by_side(store, looks)
    return depth


def _left_out(store: Store, above: Sequence[str], seen: Sequence[Seen], zarr_format: int) -> list[str]:
    """Return the groups that have no document between two that have one: who created them was killed.

    ``above``: the places above the inner one of the two, of that version. What cannot be looked at is left alone.
    """
    name = _DOCUMENTS[zarr_format]
    there = [number for number, each in enumerate(seen) if isinstance((each.answers or {}).get(name), Reading)]
    between = [number for number in range(max(there, default=0)) if not seen[number].has_document]
    if not between:
        return []
    numbers = [*between, max(there)]
    looks = begun(store, [partial(_look, store, above[number], seen[number], is_new=True) for number in numbers])
    found: list[str] = []
    with suppress(ZardineError):
        if isinstance(looks[-1](), GroupMetadata):
            for number, look in zip(between, looks, strict=False):
                with suppress(ZardineError):
                    if look() is None:
                        found.append(above[number])
    return found


__all__ = ["Missing", "create_groups", "missing_ancestors"]
