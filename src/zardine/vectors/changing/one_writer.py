"""One writer at a time: who changes a store waits for others that do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from zardine.contexts import SureStack
from zardine.errors import ArrayChangedError, DataError, MetadataError, SelectionError, StoreError
from zardine.hierarchy.find import describe, document_key, find_node, parse_found
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.attempts import attempts
from zardine.stores.base import Reading, Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import complete
from zardine.vectors.changing.levels import HeldPlace, erase_levels, unfinished_levels
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.claims import (
    CLAIM,
    Claim,
    LostClaimError,
    OvertakenError,
    claim_of,
    forget_claim,
    letting_go,
    to_claim,
)
from zardine.vectors.storing.commits import telling_of_commits
from zardine.vectors.storing.consolidation import forget_consolidated
from zardine.vectors.storing.held_values import HeldValues, held_values
from zardine.vectors.storing.logs import erase_dead_logs, revision_of
from zardine.vectors.storing.store import NEXT, VectorStore
from zardine.vectors.storing.store_states import NOT_ON_PURPOSE

_MOST_LEVELS: Final = 32
"""Levels that are asked for ahead: of more, which nobody makes, each is looked at by itself."""

P = ParamSpec("P")
R = TypeVar("R")


class _Alone(Protocol):
    """What makes a function change a store alone."""

    def __call__(self, change: Callable[Concatenate[StoreLike, P], R], /) -> Callable[Concatenate[StoreLike, P], R]: ...


def repeated(change: Callable[P, R]) -> Callable[P, R]:
    """Let a function be called again where somebody else came first, who holds no lock.

    For those to whom it makes no difference what was changed: they name no rows of what was there.
    """

    @wraps(change)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = [_lasting(each) for each in args]
        named: Any = {name: _lasting(each) for name, each in kwargs.items()}
        for last in attempts():
            try:
                return change(*given, **named)
            except OvertakenError:
                if last:
                    raise
        raise AssertionError("unreachable")

    return run


def _lasting(value: Any) -> Any:
    """What can be gone through more than once."""
    return list(value) if isinstance(value, Iterator) else value


def alone(change: Callable[Concatenate[StoreLike, P], R]) -> Callable[Concatenate[StoreLike, P], R]:
    """Let a function that changes the store at its first argument hold the lock of level 0 meanwhile.

    As :func:`locked`; and consolidated metadata, which would no longer be true, goes first.
    """
    return _locked(change, forget_consolidated)


def alone_with_claim(change: Callable[Concatenate[StoreLike, P], R]) -> Callable[Concatenate[StoreLike, P], R]:
    """As :func:`alone`, for who stores arrays anew by steps of its own: see :mod:`zardine.vectors.storing.claims`.

    After an error the same call completes these steps, so that the error does not say which of them are committed.
    """
    return _locked(change, forget_consolidated, claims=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a change of a store is going to read below level 0, as far as that is known before it begins."""

    documents: Sequence[str]
    """Paths of nodes."""
    folders: Sequence[str]
    """Paths of groups of which the members are looked for."""


def alone_asking(asks: Callable[..., Asked], *, claims: bool = False) -> _Alone:
    """As :func:`alone` (``claims``: as :func:`alone_with_claim`); asks ahead.

    Far away what ``asks`` says is asked for at the beginning; of who ``claims`` below all levels, when that is done.

    ``asks`` gets the arguments of the function, but for the place.
    """

    def decorator(change: Callable[Concatenate[StoreLike, P], R]) -> Callable[Concatenate[StoreLike, P], R]:
        return _locked(change, forget_consolidated, asks=asks, claims=claims)

    return decorator


def locked(change: Callable[Concatenate[StoreLike, P], R]) -> Callable[Concatenate[StoreLike, P], R]:
    """Let a function hold the lock of level 0 of the store at its first argument, and the claim where that is needed.

    Other threads, and where the store can do that (local files) other processes, wait for their turn. What a writer was
    killed over that replaced the store is brought to an end first; levels that are unfinished go, and logs of changes
    that came to nothing, if no other log would take their place.
    """
    return _locked(change, lambda owner: None, claims=True)


def _locked(
    change: Callable[Concatenate[StoreLike, P], R],
    first: Callable[[VectorStore], object],
    *,
    claims: bool = False,
    asks: Callable[..., Asked] | None = None,
) -> Callable[Concatenate[StoreLike, P], R]:
    @wraps(change)
    def run(path: StoreLike, /, *args: P.args, **kwargs: P.kwargs) -> R:
        store, inner = find_place(path, mode="r+")
        level = child(inner, "0")
        is_alone = store.lock_is_exclusive
        before = None if not is_alone else VectorStore.open(StorePath(store, inner))
        with SureStack() as stack:
            # after that look: a lock would make a folder where no store is
            stack.enter(store.lock(document_key(level)))
            # where others are not kept out, they agree by this document: what it has to go with is read after it
            early = None if is_alone else store.read(document_key(level))
            store = to_claim(store, level)
            claim = claim_of(store)
            if claim is not None and not claim.is_held:
                stack.enter(letting_go(claim))
            store = held_values(store)
            asked = partial(asks or _nothing, *args, **kwargs)
            will_claim = claim is not None and claims
            if early is not None:
                _ask(store, inner, _nothing if will_claim else asked)
            before = VectorStore.open(StorePath(store, inner)) if before is None else before
            owner = replace(before, store=store)
            if store.lock_is_exclusive and not before.is_as_opened():
                owner = VectorStore.open(StorePath(store, inner), writable=True)
            reading = store.read(document_key(level)) if early is None else early
            data = {} if reading is None else {DOCUMENT_NAME: reading.parts[0]}
            node = parse_found(DOCUMENT_NAME, data, store, level) if data else None
            is_replaced = node is not None and NEXT in node.attributes
            numbers = [] if is_replaced else owner.level_numbers()
            left = [] if is_replaced or will_claim else unfinished_levels(owner, numbers)
            is_claimed = node is not None and CLAIM in node.attributes
            if is_claimed or (claim is not None and (claims or is_replaced or left)):
                if claim is None:
                    forget_claim(store, level)
                else:
                    _take(claim, node, reading)
                    if isinstance(store, HeldValues):
                        store.forget()  # it may have taken long
                    if claim.is_held and claim.is_quiet:
                        _ask(store, inner, asked, numbers if will_claim else ())
                reading = store.read(document_key(level))
                node = None if reading is None else find_node(store, level, 3)
                is_replaced = node is not None and NEXT in node.attributes
            if is_replaced:
                complete(store, inner)
            if is_replaced or is_claimed or will_claim or (claim is not None and claim.is_held):
                owner = VectorStore.open(StorePath(store, inner), writable=True)
                numbers = owner.level_numbers()
                left = unfinished_levels(owner, numbers)
            if left:
                erase_levels(owner, left)
            is_whole = not left and owner.consolidated is None and not is_replaced
            first(owner)
            if node is not None and not store.lock_is_exclusive:  # elsewhere the next log takes their place
                erase_dead_logs(store, level, node.attributes)
            if not is_whole:
                if isinstance(store, HeldValues):
                    store.forget()  # the document of the level is read anew, and all that goes with it after that
                found = find_node(store, level, 3)
                revision = None if found is None else revision_of(found.attributes)
                with nullcontext() if claims else telling_of_commits(store, level, revision):
                    return change(StorePath(store, inner), *args, **kwargs)
            owner = replace(owner, listed=numbers)
            revision = None if node is None else revision_of(node.attributes)
            try:
                with nullcontext() if claims else telling_of_commits(store, level, revision):
                    return change(HeldPlace(store, inner, owner, reading), *args, **kwargs)
            except LostClaimError as error:
                _tell_of_parts(store, error)
                raise
            except (DataError, SelectionError, ArrayChangedError, MetadataError, *NOT_ON_PURPOSE) as error:
                if claim is not None and claim.is_held:
                    try:
                        claim.sure()  # what was found beside what is held may be of who took the claim over
                    except LostClaimError as lost:
                        _tell_of_parts(store, lost)
                        raise lost from error
                    except StoreError:
                        raise error from None
                elif _is_overtaken(store, level, reading):
                    what = f"somebody else has changed {describe(store, level)} meanwhile: try again"
                    raise OvertakenError(what) from error
                raise

    return run


def _nothing(*_: Any, **__: Any) -> Asked:
    return Asked((), ())


def _take(claim: Claim, node: NodeMetadata | None, reading: Reading | None) -> None:
    """Claim a store of which level 0 was read: at once, where that is as it was, and nobody else holds the claim."""
    if isinstance(node, GroupMetadata) and CLAIM not in node.attributes and reading is not None:
        with suppress(OvertakenError):
            claim.take_as(node, reading.version)
    claim.take()


def _ask(store: Store, path: str, more: Callable[[], Asked], numbers: Sequence[int] = ()) -> None:
    """Ask, far away, for the root document, names of levels and of logs, and what a change needs beside these.

    ``numbers``: of the levels, as far as they are known to who has claimed the store; their documents go along.
    """
    if not isinstance(store, HeldValues) or not store.asks_ahead:
        return
    asked = more()
    levels = [child(path, str(number)) for number in (0, *filter(None, numbers[:_MOST_LEVELS]))]
    documents = [document_key(path), *(document_key(each) for each in levels if store.holds_documents)]
    documents += [document_key(child(level, each)) for level in levels for each in asked.documents]
    folders = [f"{path}/" if path else "", *(f"{child(level, 'vertices')}/" for level in levels)]
    folders += [f"{child(level, each) if each else level}/" for level in levels for each in asked.folders]
    store.ask(documents, folders)


def _tell_of_parts(store: Store, error: LostClaimError) -> None:
    """Raise :class:`~zardine.errors.StoreError` where a change has lost its claim and counts in part."""
    if isinstance(store, HeldValues) and store.has_agreed:
        raise StoreError(f"{error}, and look what is there: parts of the change were stored") from error


def _is_overtaken(store: Store, level: str, reading: Reading | None) -> bool:
    """Whether what a change has read may be of two states, which nobody keeps out, and nothing of it counts yet."""
    if not isinstance(store, HeldValues) or store.lock_is_exclusive or store.has_agreed or reading is None:
        return False
    now = store.read(document_key(level))
    return now is None or bytes(now.parts[0]) != bytes(reading.parts[0])
