"""Creating, erasing and moving nodes in a store (core 3.1, "Storage")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain, islice
from typing import Final

from zardine.buffers import BytesLike
from zardine.chunk_keys import ChunkKeyEncoding, parse_chunk_key_encoding
from zardine.contexts import SureStack, sure_context
from zardine.engine.erased import when_erased
from zardine.engine.freshness import (
    is_far,
    let_writers_end,
    moment,
    moment_since,
    note_change,
    note_removal,
    with_closing,
    with_generation,
)
from zardine.engine.stored import MOST_LISTED
from zardine.engine.workers import in_background
from zardine.errors import (
    ChunkTooLargeError,
    ConditionFailedError,
    ContainsArrayError,
    ContainsGroupError,
    MetadataError,
    StoreError,
    UnsupportedError,
)
from zardine.hierarchy.ancestors import Above, create_groups, missing_ancestors
from zardine.hierarchy.find import (
    MOST_REFUSALS,
    Seen,
    as_refusal,
    check_finished,
    describe,
    find_node,
    implied_group,
    looks_like_v1,
    names_of,
    nothing_is_at,
    refused,
    taken,
)
from zardine.json_document import Problems
from zardine.limits import CHUNK, limit_of, too_large
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import (
    FORMATS,
    NodeMetadata,
    document_names,
    main_names,
    parse_documents,
    to_documents,
)
from zardine.metadata.node_names import join_path, normalize_path
from zardine.metadata.v2 import GROUP
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.base import Condition, Reading, Store, Version

_TURN: Final = f"/0/{DOCUMENT_NAME}"
"""How the key of the document ends, from a slash before the tree on, at which writers of a tree take turns."""

_KEPT_OUT: Final = 64
"""Nodes, and trees with one writer, into which nobody writes while they are erased: each takes an open file or two.

Of more trees, the documents of the others go while these are locked; of more nodes, who is writing is waited for."""

_REST: Final = "what else was there may be stored still, and overwrite=True for what is made there erases it"

_MAIN_NAMES: Final = tuple(name for version in FORMATS for name in main_names(version))


def create_node(
    store: Store,
    path: str,
    metadata: NodeMetadata,
    *,
    overwrite: bool,
    is_free: bool = False,
    above: Above | None = None,
    begun: list[NodeMetadata] | None = None,
) -> tuple[NodeMetadata, Version | None, tuple[float, int]]:
    """Store the document of a new node, and documents of groups above it that have none.

    Gives what was stored, its version, and the moment before it was. A caller that has just looked says whether the
    place ``is_free``: nothing is at or below it but chunks that the caller has stored for this node; and what is known
    of the groups ``above``. ``begun`` gets what may be stored if this call is interrupted.

    An array that takes the place of something is of a generation of its own, see :mod:`zardine.engine.freshness`; so is
    one where this process has erased a node before.

    Raises :class:`~zardine.errors.ContainsArrayError` or :class:`~zardine.errors.ContainsGroupError` where the place is
    taken, or chunks without a document are there, and ``overwrite`` is false; with ``overwrite`` everything stored at
    and below ``path`` is erased first.
    """
    normalize_path(path, metadata.zarr_format)
    missing = None
    if store.cost.is_slow:
        look = None if is_free else in_background(partial(nothing_is_at, store), path)
        missing = missing_ancestors(store, path, metadata.zarr_format, above)
        is_free = look is None or look()
    if not (overwrite or is_free):
        _check_free(store, path, metadata)
    create_groups(store, missing or missing_ancestors(store, path, metadata.zarr_format))
    first, *rest = names_of(metadata)
    if isinstance(metadata, ArrayMetadata):
        metadata = with_generation(metadata, new=False)
    for last in attempts():
        if overwrite and not is_free:
            _clear(store, path)
        if isinstance(metadata, ArrayMetadata) and when_erased(store, path):
            metadata = with_generation(metadata, new=True)
        documents = to_documents(metadata)
        for name in rest:  # the first document makes the node, so it comes last
            document = documents[name]
            if document is not None:
                store.set(join_path(path, name), document)
        document = documents[first]
        assert document is not None
        begun = [] if begun is None else begun
        when = moment()
        try:
            begun.append(metadata)
            version = store.set(join_path(path, first), document, condition=Condition(None))
        except ConditionFailedError as error:
            begun.clear()
            found = find_node(store, path)
            if found is None and last.number >= MOST_REFUSALS:
                raise refused(store, path, error) from error
            if found is not None and (last or not overwrite):
                raise taken(store, path, found) from None
            is_free = False  # another process has just created it, and may be writing chunks that are not ours
        else:
            return metadata, version, moment_since(store, path, join_path(path, first), version, when)
    raise AssertionError("unreachable")


def create_ancestors(store: Store, path: str, zarr_format: int | None = 3) -> None:
    """Store documents of the groups above ``path`` that have none. Zarr v1 has no groups.

    ``None``: they are of the version of the nearest group that has one.

    Raises :class:`~zardine.errors.ContainsArrayError` where one of them is an array.
    """
    create_groups(store, missing_ancestors(store, path, zarr_format))


def _check_free(store: Store, path: str, metadata: NodeMetadata) -> None:
    """Raise where a node of another kind or version is stored, or nodes that an array would hide, or chunks.

    One of the same kind and version is found when it is written.
    """
    check_finished(store, path)
    for version in (3, 2):
        for name in main_names(version):
            if name != names_of(metadata)[0] and _is_seen(store, join_path(path, name)):
                kind = ContainsGroupError if name == GROUP else ContainsArrayError
                raise kind(
                    f"a Zarr v{version} node is stored at {describe(store, path)} ({name}); "
                    "overwrite=True erases it and all below"
                )
    name = document_names(1, "array")[0]
    key = join_path(path, name)
    if metadata.zarr_format != 1 and _is_seen(store, key) and looks_like_v1(store.get(key) or b""):
        raise ContainsArrayError(
            f"a Zarr v1 array is stored at {describe(store, path)} ({name}); overwrite=True erases it"
        )
    if not isinstance(metadata, ArrayMetadata):
        return
    hidden, chunk, seen = None, None, Seen()
    with suppress(StoreError, UnsupportedError):  # what cannot be listed cannot be looked for
        seen.names = store.list_dir(f"{path}/" if path else "")
        if not seen.is_free:
            hidden = implied_group(store, path, seen=seen)
            chunk = _chunk_without_document(store, path, metadata, seen.names)
    if hidden is None and chunk is None:
        return
    node = find_node(store, path)
    if node is not None:
        raise taken(store, path, node)
    if hidden is not None:
        raise ContainsGroupError(
            f"nodes are stored below {describe(store, path)}, which an array there would hide; "
            "overwrite=True erases them"
        )
    raise ContainsArrayError(
        f"chunks without a document are stored at {describe(store, path)} (key {chunk!r}), and an array created there "
        "would read them as its own: a writer that was stopped has left them, or is at work; overwrite=True or "
        "mode='w' erases them"
    )


def _chunk_without_document(
    store: Store, path: str, metadata: ArrayMetadata, names: tuple[Sequence[str], Sequence[str]]
) -> str | None:
    """Return a stored key that an array at ``path`` would read as a chunk, within its shape or if it grows.

    ``names`` are the keys and prefixes directly below ``path``. Only folders that may hold chunks are listed.
    """
    prefix, keys, ndim = f"{path}/" if path else "", _chunk_keys(metadata), len(metadata.shape)
    _, slash, rest = keys.encode((0,) * ndim).partition("/")

    def is_chunk(key: str) -> bool:
        return keys.decode(key[len(prefix) :], ndim) is not None

    folders = (each for each in names[1] if slash and is_chunk(each + rest))
    below = chain.from_iterable(map(store.list_prefix, folders))
    return next(filter(is_chunk, chain(names[0], islice(below, MOST_LISTED))), None)


def _chunk_keys(metadata: ArrayMetadata) -> ChunkKeyEncoding:
    keys = parse_chunk_key_encoding(metadata.chunk_key_encoding, Problems())
    assert keys is not None  # the document has been checked
    return keys


def _is_seen(store: Store, key: str) -> bool:
    """Return whether a key is there; not if the server says no more than "forbidden"."""
    try:
        return store.exists(key)
    except StoreError as error:
        as_refusal(error)
        return False


def _clear(store: Store, path: str) -> None:
    """Erase everything at and below ``path``, as :func:`erase_node` does."""
    prefix = f"{path}/" if path else ""
    if next(iter(store.list_prefix(prefix)), None) is None:
        with store.without_writers(prefix):
            store.erase_prefix(prefix)  # what is no key may be in the way, as a file that is no archive
    else:
        erase_nodes(store, [path])


def erase_node(store: Store, path: str, *, is_owned: bool = False) -> None:
    """Remove a node and everything below it, as :func:`erase_nodes` does."""
    erase_nodes(store, [path], is_owned=is_owned)


def erase_nodes(store: Store, paths: Sequence[str], *, is_owned: bool = False) -> None:
    """Remove nodes and everything below them; documents go first, so that no half-erased node is found.

    Those who are just writing into them are waited for: where the store knows them until they are done, and far away
    until they have to look at the documents again. With ``is_owned``, a document above these nodes tells who writes of
    the change, and only those are waited for that the store knows. Else what others create there meanwhile is erased
    as well, with all that they write into it. For trees that have one writer at a time see :func:`_turns`.
    """
    prefixes = [f"{path}/" if path else "" for path in paths]
    for last in attempts(CHANGES):
        with SureStack() as kept:
            if is_owned:
                _take_documents_away(store, prefixes, set(), is_owned=True, kept=kept)
            else:
                with _noted(store, prefixes, _REST) as places:
                    kept.enter(_turns(store, prefixes, places))
                    _take_documents_away(store, prefixes, places, kept=kept)
            for prefix in prefixes:
                store.erase_prefix(prefix)
        if is_owned or last or all(_stays_empty(store, prefix) for prefix in prefixes):
            break
    note_change()


@sure_context
def _noted(store: Store, prefixes: Sequence[str], advice: str = "") -> Generator[set[str], None, None]:
    """Note, at the end, that the documents at places below ``prefixes`` are gone: those that come into the set.

    Where the context ends with an error: those of the places at which no document is found then; the error says so, if
    there is an ``advice`` for that.
    """
    places: set[str] = set()
    try:
        yield places
    except BaseException as error:
        with suppress(Exception):  # the error is that which is told
            gone = {each for each in places if each.startswith(tuple(prefixes))}
            if len(gone) <= _KEPT_OUT:
                gone = {each for each in gone if not any(store.exists(each + name) for name in _MAIN_NAMES)}
            else:
                keys = (key for prefix in prefixes for key in store.list_prefix(prefix))
                gone.difference_update([_place_of(key) for key in keys if is_document(key)])
            _note(store, prefixes, gone)
            if gone and advice:
                error.add_note(f"the document of {describe(store, min(gone)[:-1])} is gone already; {advice}")
        raise
    _note(store, prefixes, {*places, *prefixes})


def _note(store: Store, prefixes: Sequence[str], places: Collection[str]) -> None:
    for prefix in prefixes:
        below = {each for each in places if each.startswith(prefix)}
        if below:
            note_removal(store, prefix, below)


@sure_context
def _turns(store: Store, prefixes: Sequence[str], places: set[str] | None = None) -> Generator[None, None, None]:
    """A context in which trees below ``prefixes`` that have one writer at a time have none.

    Who writes into such a tree, as a store of vectors is, holds the lock of the document of the group ``0`` in it. Far
    away nothing is waited for: a lock keeps nobody out there. Of more trees than can be locked at a time, those are
    waited for who are writing; with ``places``, to which the prefixes of nodes come whose documents are erased, the
    documents go while they are locked, so that nobody begins in them later.
    """
    if is_far(store):
        yield
        return
    keys = _turns_below(store, prefixes)
    while keys:
        with SureStack() as held:
            for key in keys[:_KEPT_OUT]:
                held.enter(store.lock(key))
            for key in keys[_KEPT_OUT:]:
                with store.lock(key):
                    pass
            before, keys = keys, _turns_below(store, prefixes, frozenset(keys))
            if keys == before and (places is None or len(keys) <= _KEPT_OUT):
                yield
                return
        if keys == before and places is not None:
            for prefix in prefixes:
                if not {prefix + DOCUMENT_NAME, prefix + _TURN[1:]} & set(keys):
                    places.add(prefix)
                    for name in _MAIN_NAMES:
                        store.erase(prefix + name)
            # outer trees first: once the document of its turns is gone, nobody writes into one while those in it go
            for start in range(0, len(keys) - _KEPT_OUT, _KEPT_OUT):
                _take_trees_away(store, prefixes, keys[start : start + _KEPT_OUT], places)
            keys = _turns_below(store, prefixes, frozenset(keys))
    yield


def _take_trees_away(store: Store, prefixes: Sequence[str], keys: Sequence[str], places: set[str]) -> None:
    """Erase the documents in trees of one writer each, by their ``keys`` of turns, while nobody writes into them.

    Those of trees in them stay that are not among these: somebody may be writing there.
    """
    with SureStack() as held:
        for key in keys:
            held.enter(store.lock(key))
        for key in keys:
            tree = key.removesuffix(_TURN[1:])
            if not tree.startswith(tuple(prefixes)):
                tree = _place_of(key)  # of which nothing but this is to be erased
            own = (tree + name for name in _MAIN_NAMES)
            found = [*(each for each in own if store.exists(each)), *_documents_below(store, tree)]
            others = tuple(
                each.removesuffix(_TURN[1:]) for each in found if f"/{each}".endswith(_TURN) and each not in keys
            )
            gone = [each for each in found if each in keys or not others or not each.startswith(others)]
            places.update(map(_place_of, gone))
            for each in gone:
                store.erase(each)


def _turns_below(store: Store, prefixes: Sequence[str], known: frozenset[str] = frozenset()) -> list[str]:
    """Return the keys of the documents of groups that are called ``0``, sorted, so that nobody waits in a circle.

    Those above come first: who holds the lock of one may erase what is below the group in which it is. Those that are
    ``known`` are not read again.
    """
    found = set()
    for prefix in prefixes:
        if _is_array(store, prefix[:-1]):
            continue
        own = [prefix + DOCUMENT_NAME] * (f"/{prefix}".endswith(_TURN.removesuffix(DOCUMENT_NAME)))
        for key in (*own, *_documents_below(store, prefix)):
            if f"/{key}".endswith(_TURN) and (key in known or _is_group(store, key.rpartition("/")[0])):
                found.add(key)
    return sorted(found, key=lambda key: (key.count("/"), key))


def _is_group(store: Store, path: str) -> bool:
    """Whether a group is stored; not where that cannot be read."""
    with suppress(MetadataError, ChunkTooLargeError):
        return isinstance(find_node(store, path, 3), GroupMetadata)
    return False


def _take_documents_away(
    store: Store, prefixes: Sequence[str], places: set[str], *, is_owned: bool = False, kept: SureStack | None = None
) -> None:
    """Erase the documents of nodes, and of all below them, and wait for those who are writing into them.

    To ``places``, at which documents may have been erased before, the prefixes of these nodes come before that is done.
    Near by, no new writers come in until ``kept`` is left, as far as the nodes are not too many.
    """
    while is_far(store) and not is_owned:
        documents = [key for prefix in prefixes for key in store.list_prefix(prefix) if is_document(key)]
        if not documents:
            return
        with _noted(store, prefixes) as gone:  # before the wait, in which others may make what is not gone
            gone.update(map(_place_of, documents))
            store.erase_values(documents)
        places |= gone
        let_writers_end(store, prefixes)
    for prefix in prefixes:
        below = [] if is_owned or _is_array(store, prefix[:-1]) else _documents_below(store, prefix)
        places.update((prefix, *map(_place_of, below)))
        for key in (*(prefix + name for name in _MAIN_NAMES), *below):
            store.erase(key)
    for number, each in enumerate(sorted(places)):  # sorted, so that nobody waits in a circle
        if kept is not None and number < _KEPT_OUT:
            kept.enter(store.without_writers(each))
        else:
            store.wait_for_writers(each)


def _place_of(document: str) -> str:
    """Return what the keys of a node begin with, by the key of its document."""
    return document[: document.rfind("/") + 1]


def _is_array(store: Store, path: str) -> bool:
    """Whether an array is stored, so that no nodes are below it; not where that cannot be read."""
    with suppress(MetadataError, ChunkTooLargeError):
        return isinstance(find_node(store, path), ArrayMetadata)
    return False


def _documents_below(store: Store, prefix: str) -> list[str]:
    """Return the keys of the documents of nodes below a prefix, but those of the node there."""
    return [key for key in store.list_prefix(prefix) if "/" in key[len(prefix) :] and is_document(key)]


def is_document(key: str) -> bool:
    """Whether a key is that of a document which makes a node."""
    return key.rpartition("/")[2] in _MAIN_NAMES


def _stays_empty(store: Store, prefix: str) -> bool:
    """Whether nothing is stored below ``prefix`` once nobody writes there any more who began before that was erased."""
    if not is_far(store):
        store.wait_for_writers(prefix)
    return next(iter(store.list_prefix(prefix)), None) is None


def erase_documents(
    store: Store,
    path: str,
    metadata: NodeMetadata,
    version: Version | None,
    others: Callable[[], Sequence[str]] = lambda: (),
) -> None:
    """Remove the documents of a node that was just made, wait for those who are writing into it, and remove ``others``.

    ``version``: that of its first document; where the store told none, its bytes are compared. ``others`` tells then
    which keys of it are left.

    Raises :class:`~zardine.errors.ConditionFailedError` where it is not there any more as it was made, and where
    another one was made since its documents are gone, to which the ``others`` may belong.
    """
    first, *rest = names_of(metadata)
    documents = to_documents(metadata)
    key = join_path(path, first)
    if version is None:
        stored = store.get(key)
        if stored is None or bytes(stored) != documents[first]:
            raise ConditionFailedError(f"key {key!r} of {store} changed since it was made; it was not erased")
    prefix = f"{path}/" if path else ""
    with _noted(store, [prefix]) as places:  # before the wait, in which others may make what is not gone
        places.add(prefix)
        with store.lock(key):
            store.erase_version(key, version)
    store.erase_values([join_path(path, name) for name in rest if documents[name] is not None])
    far = is_far(store)
    if far:
        let_writers_end(store, [prefix])
    with nullcontext() if far else store.without_writers(prefix):
        if any(store.exists(prefix + name) for name in _MAIN_NAMES):
            raise ConditionFailedError(f"{describe(store, path)} was made again by others; nothing in it was erased")
        store.erase_values(others())


def move_keys(store: Store, source: str, dest: str) -> None:
    """Rename every key below ``source``: copies first, the documents last, then the old keys are erased.

    What others write meanwhile is copied again once they cannot any more: the old documents are gone, and whoever was
    just writing was waited for. Groups above ``dest`` that are missing become such as the nearest that is there.
    """
    if dest == source or dest.startswith(source + "/"):
        raise ValueError(f"cannot move {source!r} to {dest!r}, which is the same place or below it")
    node = find_node(store, dest) or implied_group(store, dest)
    if node is not None:
        raise taken(store, dest, node)
    create_ancestors(store, dest, None)
    with _turns(store, [f"{source}/"]):
        if not _move_at_once(store, source, dest):
            _move_keys(store, source, dest)


def _move_at_once(store: Store, source: str, dest: str) -> bool:
    """Rename every key below ``source`` in one instant while nobody writes there; False if that is not possible."""
    prefix = f"{source}/"

    def nodes() -> list[str]:
        below = [] if _is_array(store, source) else _documents_below(store, prefix)
        return sorted({prefix, *map(_place_of, below)})

    places = nodes()
    if len(places) > _KEPT_OUT or any(when_erased(store, dest + place[len(source) : -1]) for place in places):
        return False  # an array needs another id where this process has erased one
    with SureStack() as kept:
        for place in places:
            kept.enter(store.without_writers(place))
        if nodes() != places or not store.move_prefix(prefix, f"{dest}/"):
            return False
        _note(store, [prefix], {*places})
    note_change()
    return True


def _move_keys(store: Store, source: str, dest: str) -> None:
    prefix = f"{source}/"
    copies: dict[str, tuple[Version | None, Version | None]] = {}
    """Of each key the version that was copied, and that of the copy."""

    closed: dict[str, BytesLike] = {}
    """Documents of arrays, of which the copies say that nobody may write yet."""
    begun: dict[str, BytesLike] = {}
    """The copy that is just being stored: it may be there if that is interrupted."""

    def copy(key: str) -> None:
        reading = _read_whole(store, key)
        new, (_, made) = dest + key[len(source) :], copies.get(key, (None, None))
        if reading is not None:
            is_new = key not in copies
            condition = Condition(made) if is_new or made is not None else None
            data = _closed(key, reading.parts[0])
            begun[new] = data
            try:
                made = store.set(new, data, condition=condition)
            except ConditionFailedError:
                if not is_new or is_document(key):
                    raise
                # no node is there: a move that was killed has left this copy
                made = store.set(new, data, condition=Condition(store.version(new)))
            copies[key] = reading.version, made
            begun.clear()
            if data is not reading.parts[0]:
                closed[key] = reading.parts[0]
        elif key in copies:
            store.erase_version(new, made)
            del copies[key]
            closed.pop(key, None)

    documents = []
    try:
        for key in store.list_prefix(prefix):
            documents += [key] * is_document(key)
            if not is_document(key):
                copy(key)
        documents.sort(key=lambda key: (-key.count("/"), key))  # who finds a group finds what is in it
        _erase_foreign_chunks(store, source, dest, copies)
        for key in documents:
            copy(key)
    except BaseException:
        for new, data in begun.items():
            if store.get(new) == data:
                store.erase(new)
        for key in sorted(copies, key=is_document, reverse=True):  # documents first: nobody finds half a node
            with suppress(Exception):
                store.erase_version(dest + key[len(source) :], copies[key][1])
        raise
    try:
        with _noted(store, [prefix]) as places:
            for key in reversed(documents):
                for last in attempts():
                    try:
                        places.add(_place_of(key))
                        if key in copies:
                            store.erase_version(key, copies[key][0])
                        break
                    except ConditionFailedError:
                        if last:
                            raise
                        copy(key)
            _take_documents_away(store, [prefix], places)
        if is_far(store) and documents:
            let_writers_end(store, [prefix])
        for key in dict.fromkeys((*copies, *store.list_prefix(prefix))):
            version = copies.get(key, (None, None))[0]
            if not is_document(key) and (version is None or store.version(key) != version):
                copy(key)
        erase_node(store, source)  # before the documents are stored again: the disk may be full
        for key, data in closed.items():
            new, made = dest + key[len(source) :], copies[key][1]
            condition = None if made is None else Condition(made)
            store.set(new, _of_its_own(store, new, data), condition=condition)
    except BaseException as error:
        error.add_note(
            f"the move takes effect: all is at {describe(store, dest)}, and a part may still be at "
            f"{describe(store, source)} too; erase that before anything is written"
        )
        raise


def _erase_foreign_chunks(store: Store, source: str, dest: str, copies: Collection[str]) -> None:
    """Erase the keys below ``dest`` that moved arrays would read as their chunks: a stopped move has left them.

    ``copies`` are the keys below ``source`` that have been copied. Other keys stay.
    """
    strays = [key for key in store.list_prefix(f"{dest}/") if source + key[len(dest) :] not in copies]
    if not strays:
        return
    for place in {_place_of(key) for key in store.list_prefix(f"{source}/") if is_document(key)}:
        node, new = find_node(store, place[:-1]), dest + place[len(source) :]
        if isinstance(node, ArrayMetadata) and find_node(store, new[:-1]) is None:
            keys, ndim = _chunk_keys(node), len(node.shape)
            below = (key for key in strays if key.startswith(new))
            store.erase_values([key for key in below if keys.decode(key[len(new) :], ndim) is not None])


def _closed(key: str, data: BytesLike) -> BytesLike:
    """Return the document of an array of Zarr v3 with the note that nobody may write; anything else as it is."""
    node = _array_of_v3(key, data)
    return data if node is None else _document_of(with_closing(node, closing=True))


def _of_its_own(store: Store, key: str, data: BytesLike) -> BytesLike:
    """Return the document of an array of Zarr v3 with a new id where this process has erased another at its place."""
    node = _array_of_v3(key, data) if when_erased(store, _place_of(key)[:-1]) else None
    return data if node is None else _document_of(with_generation(node, new=True))


def _array_of_v3(key: str, data: BytesLike) -> ArrayMetadata | None:
    if key.rpartition("/")[2] == DOCUMENT_NAME:
        with suppress(MetadataError):
            node = parse_documents(DOCUMENT_NAME, {DOCUMENT_NAME: data}, key)
            return node if isinstance(node, ArrayMetadata) else None
    return None


def _document_of(node: ArrayMetadata) -> BytesLike:
    document = to_documents(node)[DOCUMENT_NAME]
    assert document is not None
    return document


def read_value(store: Store, key: str) -> BytesLike | None:
    """Return a value to copy; ``None`` if there is none.

    Raises :class:`~zardine.errors.ChunkTooLargeError` for one that is too long to be held in memory.
    """
    reading = _read_whole(store, key)
    return None if reading is None else reading.parts[0]


def _read_whole(store: Store, key: str) -> Reading | None:
    """Read a value with its version; raises as :func:`read_value`."""
    most = limit_of(CHUNK)
    reading = store.read_up_to(key, most)
    if reading is not None and not reading.parts:
        raise too_large("the value", reading.size, CHUNK, most).at(key=key)
    return reading


def parents_first(nodes: Mapping[str, NodeMetadata]) -> Iterator[tuple[str, NodeMetadata, bool]]:
    """Yield the path and metadata of each of ``nodes``, and of the groups above that are not among them (``False``).

    Parents come before their children. Raises ``TypeError`` for what is no metadata, ``ValueError`` for a node below an
    array and for nodes of several versions of Zarr (groups above arrays of v1 are of v2), before anything is given.
    """
    for path, node in nodes.items():
        if not isinstance(node, (ArrayMetadata, GroupMetadata)):
            raise TypeError(f"{path!r}: a node is made from ArrayMetadata or GroupMetadata, not {type(node).__name__}")
    versions = {_version_of_group(node): path for path, node in nodes.items()}
    if len(versions) > 1:
        raise ValueError(
            f"a hierarchy is of one version of Zarr: {versions[2]!r} is to be of v2, and {versions[3]!r} of v3"
        )
    wanted = {normalize_path(path, node.zarr_format): node for path, node in nodes.items()}
    given = frozenset(wanted)
    for path in tuple(wanted):
        parts = path.split("/") if path else []
        for depth in range(len(parts)):
            parent = "/".join(parts[:depth])
            group = GroupMetadata(zarr_format=_version_of_group(wanted[path]))
            if isinstance(wanted.setdefault(parent, group), ArrayMetadata):
                raise ValueError(f"{path!r} cannot be below {parent!r}, which is to be an array")
    for path in sorted(wanted):
        yield path, wanted[path], path in given


def _version_of_group(node: NodeMetadata) -> int:
    """The version of Zarr of a group that ``node`` may be in: v1 has none."""
    return max(2, node.zarr_format)
