"""Replacing several nodes below a group, such as those of a level, at one moment; and an array by itself.

A group:

1. New nodes are announced: the group's document names them under ``zardine_pending`` as nodes that are not there, and
   readers take that for granted, so that they do not see objects which no document describes yet.
2. What is new is stored beside what is there, as an array by itself.
3. One write of the group's document agrees on the change: under ``zardine_pending`` it holds the documents of all that
   is new, and readers take these.
4. The documents themselves are written, old objects erased, and the entry removed.

An error before the third step undoes the first two. After it the writer undoes nothing, since readers may have seen the
change, and says so (:mod:`.commits`). The next writer that finds the entry carries it out, as after a writer that was
killed: it removes what was announced, or completes what was agreed on.

A level, of which only some cells, rows of tables and documents change: these go into a log
(:mod:`~zardine.vectors.format.change_log`) in the second step, and the write that agrees on the change names it. From
then on readers take them from the log, and the fourth step stores them where they belong (:mod:`.applying`).

Where locks do not keep others out, new nodes need a claim (:mod:`.claims`), which a log does not.

An array, so that it reads whole at every moment: its objects have keys such as ``c/0/1``; those of its new form are
stored under ``c.0.1`` first. One write of the document then changes from one to the other. Then the old objects go, the
new ones get the usual keys too (as second names of files, where that can be), the document changes again, and the
others go. Whoever is killed in between leaves an array that every reader of Zarr reads, and that the next conversion
(:mod:`~zardine.vectors.storing.conversion`) or :func:`zardine.vectors.repair` brings to the usual form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from zardine.engine.freshness import is_far, note_change
from zardine.engine.side_by_side import side_by_side
from zardine.engine.workers import for_each, most_requests
from zardine.errors import CorruptionError, StoreError
from zardine.hierarchy.create import erase_node, is_document
from zardine.hierarchy.find import child_names, describe, find_node, nothing_is_at
from zardine.hierarchy.update import replace_node, update_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.nodes.array import Array
from zardine.stores.attempts import attempts
from zardine.stores.base import Reading, Store, Version
from zardine.stores.file_seam import files_to_make
from zardine.stores.path import StorePath
from zardine.vectors.content.plan import Node
from zardine.vectors.format.change_log import ChangeLog, encode_log
from zardine.vectors.storing.applying import Ahead, apply_log, can_look_ahead, look_ahead
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.claims import CLAIM, HELPED, LostClaimError, OvertakenError, claim_of
from zardine.vectors.storing.commits import complete_or_warn, note_effect
from zardine.vectors.storing.held_values import HeldValues
from zardine.vectors.storing.kept_attributes import with_kept
from zardine.vectors.storing.logs import (
    LOG,
    RECENT,
    REVISION,
    erase_dead_logs,
    erase_log,
    is_recent,
    log_in_document,
    read_log,
    recent_with,
    revision_of,
    token_in,
    write_log,
)
from zardine.vectors.storing.node_writing import (
    OTHER,
    USUAL,
    document_of,
    erase_objects,
    separator_of,
    stray_objects,
    with_separator,
    write_document,
    write_values,
    write_values_of,
)
from zardine.vectors.storing.store import PENDING, Level, VectorStore
from zardine.vectors.storing.touched import carried_on

Seen: TypeAlias = tuple[GroupMetadata, Version | None]
"""A group's document, and the version that the store has of it."""


def replace_nodes(
    level: Level,
    nodes: Sequence[Node],
    removed: Sequence[str],
    attributes: Mapping[str, Any],
    *,
    before: Callable[[], None] | None = None,
    log: ChangeLog | None = None,
    known: Mapping[str, Array] | None = None,
    claims: bool = False,
    is_whole: bool = False,
) -> None:
    """Store ``nodes`` in the place of those of the same paths, remove others, and change the level's attributes.

    All at one moment for readers of zardine. Other readers may see some of the nodes changed and others not yet, for
    the time that it takes to write the documents. Before the change is agreed on, nothing of it can be seen; an error
    leaves the level as it was. Attributes of replaced nodes that are no matter of the layout stay. ``before`` is called
    when all is stored, before the change is agreed on. ``log``: cells, rows and documents that change; ``known``:
    arrays in it as they were opened, to save looking at them again. ``claims``: whether ``before`` erases, or stores
    anew, what others use. ``is_whole``: this is all of the change that the user asked for, so that an error tells if it
    takes effect, and a later writer may complete it.

    Raises :class:`OvertakenError` if somebody else changes the level meanwhile.
    """
    expected = level.document.attributes
    attributes = at_next_revision(attributes, expected)
    seen = None if level.group is None else (level.group, level.version)
    store = level.owner.store
    if nodes or removed or claims or level.document.level:
        seen = _claimed(level, seen)
    if log is None and store.lock_is_exclusive:  # where there is one, it takes the place of what a killed writer left
        erase_dead_logs(store, level.path, expected)
    replace_below(
        store,
        level.path,
        nodes,
        removed,
        attributes,
        expected,
        before=before,
        log=log,
        known=known,
        seen=seen,
        is_whole=is_whole,
    )


def _claimed(level: Level, seen: Seen | None) -> Seen | None:
    """Claim the store, as far as it was not changed since ``level`` was read; gives what its document is then."""
    claim = claim_of(level.owner.store)
    if claim is None:
        return seen
    if level.document.level:
        if not claim.is_held:
            claim.take()
            _forget_held(level.owner.store)
        return seen
    if seen is not None:
        claim.take_as(*seen)
    return claim.seen if claim.is_held else seen


def at_next_revision(attributes: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """``attributes`` of a level, which are to follow those ``before``."""
    revision = revision_of(before) + 1
    return {**carried_on(attributes, revision), REVISION: revision}


def agreed_and_settled(
    group: GroupMetadata, attributes: Mapping[str, Any], token: str
) -> tuple[GroupMetadata, GroupMetadata]:
    """Return the document of a level that agrees on what is in a log, and the one when that is where it belongs."""
    return group.with_attributes({**attributes, PENDING: {}, LOG: token}), group.with_attributes(attributes)


def replace_below(
    store: Store,
    path: str,
    nodes: Sequence[Node],
    removed: Sequence[str],
    attributes: Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]],
    expected: Mapping[str, Any],
    *,
    afresh: bool = False,
    before: Callable[[], None] | None = None,
    log: ChangeLog | None = None,
    known: Mapping[str, Array] | None = None,
    seen: Seen | None = None,
    is_whole: bool = False,
) -> None:
    """:func:`replace_nodes` below any group, whose attributes are ``expected`` now.

    ``attributes`` may be a function of the pending documents that gives the attributes that agree on the change, which
    the caller carries out then. ``afresh``: nothing of the old attributes of nodes stays. ``seen``: the group's
    document, as it was read; it is not read again then.
    """
    places = [child(path, node.path) for node in nodes]
    looks = side_by_side(store, [partial(_look_at, store, place) for place in places])
    found = {node.path: old for node, (old, _) in zip(nodes, looks, strict=True)}
    free = {node.path for node, (_, is_free) in zip(nodes, looks, strict=True) if is_free}
    absent = [each for each, old in found.items() if old is None]
    announced: dict[str, Any] = dict.fromkeys(
        each for each in absent if each in free or not _has_children(store, child(path, each))
    )
    ahead: Ahead | None = None
    named: Any = None
    agreed: dict[str, Any] = {}
    is_met = False
    committed: bool | None = False
    try:
        if announced:
            seen = _change(store, path, expected, {**expected, PENDING: announced}, seen)
            expected = {**expected, PENDING: announced}
        pending: dict[str, Any] = dict.fromkeys(removed)
        for node, new in zip(nodes, _stored(store, path, nodes, found, free, afresh=afresh), strict=True):
            pending[node.path] = new.to_dict()
        if log is not None:
            named, ahead = _logged(store, path, log, known or {})
        if before is not None:
            before()
        is_all = not pending and log is None and not callable(attributes)  # then nothing is to be carried out
        if callable(attributes):
            agreed = dict(attributes(pending))
        else:
            agreed = {**attributes, **({} if is_all else {PENDING: pending})}
        agreed = {**agreed, **({} if log is None else {LOG: named})}
        if log is not None and can_look_ahead(store):
            agreed |= {RECENT: recent_with(expected, log.token)}
        note = None if ahead is None else ahead.agreeing()
        committed = None
        try:
            seen = _change(store, path, expected, agreed, seen)
        except OvertakenError:
            committed = False
            if log is None or not _was_agreed(store, path, log.token):
                raise
            seen = ahead = note = None  # others have gone on since
            is_met = True
        committed = True
        if note is not None:
            note()
        if isinstance(store, HeldValues):
            store.has_agreed = True
        complete: Callable[[], None] | None = None
        if is_met:
            complete = partial(carry_out, store, path)
        elif not callable(attributes) and not is_all:
            complete = partial(_carry_out, store, path, pending, log, known or {}, seen, ahead, free)
        if complete is not None and is_whole:
            complete_or_warn(store, path, complete)
        elif complete is not None:
            with suppress(LostClaimError):  # the writer that took the claim over completes the change
                complete()
    except BaseException as error:
        if committed is None:
            committed = _is_committed(store, path, agreed, log)
        if is_whole:
            note_effect(error, committed)
        if committed is False:
            with suppress(Exception):
                _undo(store, path, found, announced, log)
        raise


def _logged(store: Store, path: str, log: ChangeLog, known: Mapping[str, Array]) -> tuple[Any, Ahead | None]:
    """Store a log, unless the document is to have it; gives what that says, and what was read of what is replaced.

    The latter far away, where locks do not keep others out.
    """
    data = encode_log(log)
    if not can_look_ahead(store):
        write_log(store, path, log.token, data)
        return log.token, None
    in_document = log_in_document(log.token, data)
    calls: list[Callable[[], Any]] = [partial(look_ahead, store, path, log, known)]
    if in_document is None:
        calls.append(partial(write_log, store, path, log.token, data))
    ahead: Ahead = side_by_side(store, calls)[0]
    return (log.token, ahead) if in_document is None else (in_document, replace(ahead, is_in_document=True))


def finish(level: Level) -> None:
    """Carry out what was agreed on, bring every array to the usual form, and remove what was only announced."""
    if not level.is_settled:
        carry_out(level.owner.store, level.path)


def settled_level(owner: VectorStore, number: int, reading: Reading | None = None) -> Level:
    """Return a level without changes that are not carried out yet; ``reading``: its document, if it was read.

    Where locks are not exclusive others may agree on the next change while one is carried out. Raises
    :class:`OvertakenError` if they do so again and again.
    """
    level, claim = owner.level(number, reading), claim_of(owner.store)

    def is_free() -> bool:
        """Whether nobody else may be at work who has claimed the store."""
        return claim is None or claim.is_held or not level.is_claimed

    if level.is_settled and is_free():
        return level
    for _ in attempts():
        if claim is not None and (number or level.pending or not is_free()):
            claim.take()
        finish(level)
        _forget_held(owner.store)  # also what was read before others carried it out
        if claim is not None:  # others may have made or removed levels since it was opened
            owner = VectorStore.open(StorePath(owner.store, owner.path), writable=True)
        level = owner.level(number)
        if level.is_settled and is_free():
            return level
    raise OvertakenError(f"others change {describe(owner.store, level.path)} again and again: try later")


def carry_out(store: Store, path: str) -> None:
    """:func:`finish` below any group."""
    group = find_node(store, path, 3)
    if group is None or PENDING not in group.attributes:
        return
    log = None
    if LOG in group.attributes:
        log = read_log(store, path, group.attributes[LOG])
        if log is None:
            if find_node(store, path, 3) == group:
                raise CorruptionError("the log of a change that was agreed on is lost", array=path)
            _forget_held(store)
            return  # another writer has just carried it out
        if not _may_help(store, path, log.token):
            return
    _carry_out(store, path, group.attributes[PENDING], log, {})
    _forget_held(store)
    claim = claim_of(store)
    if log is not None and claim is not None:
        claim.wait_for_the_late()


def _forget_held(store: Store) -> None:
    """Forget what others may have changed since it was read, who carried out a log, too, and went on."""
    if isinstance(store, HeldValues) and not store.lock_is_exclusive:
        store.forget()


def _may_help(store: Store, path: str, token: str) -> bool:
    """Note that others than who made it carry out what is in a log; not where the store is claimed."""
    claim = claim_of(store)
    if claim is None or claim.is_held:
        return True

    def noted(old: GroupMetadata) -> GroupMetadata:
        if token_in(old.attributes) != token or CLAIM in old.attributes:
            return old
        return old.with_attributes({**old.attributes, HELPED: True})

    now = update_node(store, path, GroupMetadata(), noted).attributes
    return token_in(now) == token and CLAIM not in now


def _carry_out(
    store: Store,
    path: str,
    pending: Mapping[str, Any],
    log: ChangeLog | None,
    known: Mapping[str, Array],
    seen: Seen | None = None,
    ahead: Ahead | None = None,
    free: Collection[str] = (),
) -> None:
    """:func:`carry_out` what is agreed on; ``free``: paths where nothing at all was, nor is to be removed."""
    if log is not None:
        apply_log(store, path, log, known, ahead)
    documents: list[tuple[str, NodeMetadata]] = []
    arrays: list[tuple[str, ArrayMetadata]] = []
    _erase(store, [child(path, relative) for relative, document in dict(pending).items() if document is None])
    for relative, document in dict(pending).items():
        where = child(path, relative)
        if document is not None:
            metadata = parse_node_json(document, f"the pending document of {where}")
            documents.append((where, metadata))
            if isinstance(metadata, ArrayMetadata) and relative not in free:
                arrays.append((where, metadata))
    side_by_side(store, [partial(write_document, store, *each) for each in documents])
    token = None if log is None else log.token

    def settled(old: GroupMetadata) -> GroupMetadata:
        if token_in(old.attributes) != token:
            return old  # another writer has carried it out, and may have gone on
        return old.with_attributes({name: each for name, each in old.attributes.items() if name not in (PENDING, LOG)})

    if seen is None or replace_node(store, path, *seen, settled(seen[0])) is None:
        update_node(store, path, GroupMetadata(), settled)
    if token is not None and not (ahead is not None and ahead.is_in_document):
        erase_log(store, path, token)
    side_by_side(store, [partial(settle, store, *each) for each in arrays])


def _erase(store: Store, places: Sequence[str]) -> None:
    """Remove nodes that no longer count, and all below them, documents first; far away all together."""
    if not is_far(store):
        for where in places:
            erase_node(store, where, is_owned=True)
        return
    outer: list[str] = []
    for prefix in sorted(f"{each}/" for each in places):  # what is below one of them follows it
        if not outer or not prefix.startswith(outer[-1]):
            outer.append(prefix)
    if not outer:
        return
    lists = side_by_side(store, [partial(_keys_below, store, prefix) for prefix in outer])
    keys = [key for some in lists for key in some]
    for are_documents in (True, False):
        gone = [key for key in keys if is_document(key) == are_documents]
        if gone:
            store.erase_values(gone)
    note_change()


def _keys_below(store: Store, prefix: str) -> list[str]:
    return list(store.list_prefix(prefix))


def _look_at(store: Store, path: str) -> tuple[NodeMetadata | None, bool]:
    """The node at a place, and whether nothing at all is there, or below it, as far as that is looked at: far away."""
    if not is_far(store):
        return find_node(store, path, 3), False
    calls: list[Callable[[], Any]] = [partial(find_node, store, path, 3), partial(nothing_is_at, store, path)]
    node, is_free = side_by_side(store, calls)
    return node, node is None and is_free


def _has_children(store: Store, path: str) -> bool:
    """Whether nodes may be stored below a place without a document: somebody's, not to be announced as absent."""
    return any(find_node(store, child(path, name), 3) is not None for name in child_names(store, path))


def _stored(
    store: Store,
    path: str,
    nodes: Sequence[Node],
    found: Mapping[str, NodeMetadata | None],
    free: Collection[str],
    *,
    afresh: bool,
) -> list[NodeMetadata]:
    """Store what ``nodes`` hold, beside what is there; gives the documents that will make it count.

    ``free``: paths where nothing at all is.
    """
    documents: list[NodeMetadata] = []
    for node in nodes:
        old = found[node.path]
        new = node.metadata if afresh else with_kept(old, node.metadata)
        if isinstance(new, ArrayMetadata):
            new = with_separator(new, _other_separator(old if isinstance(old, ArrayMetadata) else None))
        documents.append(new)
    arrays = [
        (child(path, node.path), node, new)
        for node, new in zip(nodes, documents, strict=True)
        if isinstance(new, ArrayMetadata)
    ]
    if is_far(store):
        taken = [(where, separator_of(new)) for where, node, new in arrays if node.path not in free]
        side_by_side(store, [partial(erase_objects, store, *each) for each in taken])
        write_values_of(store, arrays)
    else:
        for where, node, new in arrays:
            erase_objects(store, where, separator_of(new))
            write_values(store, where, node, new)
    return documents


def _other_separator(old: ArrayMetadata | None) -> str:
    """The separator in the keys of objects that are stored beside those of ``old``, if there is one."""
    return OTHER if old is not None and separator_of(old) == USUAL else USUAL


def _change(
    store: Store, path: str, expected: Mapping[str, Any], attributes: Mapping[str, Any], seen: Seen | None
) -> Seen | None:
    """Change the attributes of a group; gives what it is then, where the store tells its version."""
    if seen is not None and dict(seen[0].attributes) == dict(expected):
        written = replace_node(store, path, *seen, seen[0].with_attributes(attributes))
        if written is not None:
            return written

    def change(old: GroupMetadata) -> GroupMetadata:
        if dict(old.attributes) != dict(expected):
            raise OvertakenError(f"somebody else has changed {describe(store, path)} meanwhile: try again")
        return old.with_attributes(attributes)

    update_node(store, path, GroupMetadata(), change)
    return None


def _was_agreed(store: Store, path: str, token: str) -> bool:
    """Whether a change was agreed on though another has come since: the answer to the write was lost."""
    _forget_held(store)
    group = find_node(store, path, 3)
    return group is not None and is_recent(group.attributes, token)


def _is_committed(store: Store, path: str, agreed: Mapping[str, Any], log: ChangeLog | None) -> bool | None:
    """Whether the write that agrees on a change was done, though it failed; ``None`` where that cannot be read."""
    try:
        _forget_held(store)
        group = find_node(store, path, 3)
    except Exception:
        return None
    attributes: Mapping[str, Any] = {} if group is None else group.attributes
    if log is not None and (token_in(attributes) == log.token or is_recent(attributes, log.token)):
        return True
    return document_of(GroupMetadata(attributes=attributes)) == document_of(GroupMetadata(attributes=agreed))


def _undo(
    store: Store,
    path: str,
    found: Mapping[str, NodeMetadata | None],
    announced: Mapping[str, Any],
    log: ChangeLog | None,
) -> None:
    """Remove what was stored for a change, unless it was agreed on at the last moment."""
    group = find_node(store, path, 3)
    attributes = {} if group is None else dict(group.attributes)
    if log is not None and token_in(attributes) != log.token:
        erase_log(store, path, log.token)
    if attributes.get(PENDING, {}) != announced or LOG in attributes:
        return
    for relative, old in found.items():
        if isinstance(old, ArrayMetadata):
            erase_objects(store, child(path, relative), OTHER if separator_of(old) == USUAL else USUAL)
    if announced:
        carry_out(store, path)


def rebuild(store: Store, path: str, old: ArrayMetadata, node: Node) -> None:
    """Store the array at ``path`` anew, as ``node`` says; ``old`` is its document now.

    Raises :class:`~zardine.errors.StoreError` if somebody else changes the document meanwhile.
    """
    assert isinstance(node.metadata, ArrayMetadata)
    new = prepare(store, path, old, node)
    switch(store, path, old, new)
    settle(store, path, new)


def prepare(store: Store, path: str, old: ArrayMetadata | None, node: Node) -> ArrayMetadata:
    """Store what ``node`` holds beside what ``old`` describes; gives the document that will make it count."""
    assert isinstance(node.metadata, ArrayMetadata)
    new = with_separator(node.metadata, _other_separator(old))
    erase_objects(store, path, separator_of(new))
    write_values(store, path, node, new)
    return new


def switch(store: Store, path: str, old: ArrayMetadata, new: ArrayMetadata) -> None:
    """Let ``new`` be the document, if ``old`` still is it."""

    def change(current: ArrayMetadata) -> ArrayMetadata:
        if current != old:
            raise StoreError(f"somebody else has changed {describe(store, path)} meanwhile: try again")
        return new

    update_node(store, path, old, change)


def settle(store: Store, path: str, metadata: ArrayMetadata) -> None:
    """Bring the objects of an array to the usual keys, and remove those that no longer count."""
    if separator_of(metadata) == OTHER:
        erase_objects(store, path, USUAL)
        keys = stray_objects(store, path)

        def usual(key: str) -> str:
            return f"{path}/c/" + key[len(path) + 3 :].replace(OTHER, "/")

        add_keys(store, [(key, usual(key)) for key in keys])
        switch(store, path, metadata, with_separator(metadata, USUAL))
    stray = stray_objects(store, path)
    if stray:
        store.erase_values(stray)


def add_keys(store: Store, pairs: Sequence[tuple[str, str]]) -> None:
    """Let the value of the first key of each pair be stored under the second one too, under which nothing is."""
    files = files_to_make(store)
    if files is not None:
        files.name_again(pairs)
    else:
        for_each(lambda pair: store.set(pair[1], store.get(pair[0]) or b""), pairs, len(pairs), most_requests(store))


def is_unedited(store: Store, path: str, metadata: ArrayMetadata) -> bool:
    """Whether an array is in the usual form, and nothing else lies beside it."""
    return separator_of(metadata) == USUAL and not stray_objects(store, path)


def reopened(store: Store, path: str, metadata: ArrayMetadata) -> CellArray:
    """An array of cells by its document."""
    array = CellArray.open(store, path, metadata)
    assert array is not None
    assert isinstance(array.array, Array)
    return array
