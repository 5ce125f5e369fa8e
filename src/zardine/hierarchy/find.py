"""Finding nodes in a store by their documents, and what to say where one is, or is not (core 3.1, "Storage")."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import EACCES
from functools import partial
from typing import Final

from zardine.buffers import BytesLike
from zardine.engine.documents import get_document, read_document, read_document_and_look
from zardine.engine.workers import for_each, most_requests
from zardine.errors import (
    ArrayNotFoundError,
    ChunkTooLargeError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    Problem,
    StoreError,
    UnfinishedError,
    UnsupportedError,
    ZarrUserWarning,
)
from zardine.json_document import parse_json
from zardine.limits import DOCUMENT, limit_of
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import (
    FORMATS,
    NodeMetadata,
    document_names,
    main_names,
    parse_documents,
)
from zardine.metadata.node_names import explain_bad_name, join_path
from zardine.metadata.v2 import CONSOLIDATED
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.shown_text import printable
from zardine.stores.base import Reading, Store, Version
from zardine.stores.file_seam import files_to_read
from zardine.user_warnings import warn_user

HIDDEN = "__zardine"
"""How the names of what is no node begin in every version of Zarr; v3 keeps all names with two underscores for that."""

UNFINISHED = "zardine-conversion.json"
"""Name of the key that says that a conversion to this place is under way, or was cut off: what is there is in part."""

WORKS: Final = {"convert": "conversion", "rechunk": "rechunking"}
"""What that key says is being made, by the function that makes it."""

MOST_REFUSALS: Final = 3
"""How often a store may say that a document exists where none does: others may have created and erased it."""

UNFINISHED_NODE = "zardine_unfinished"
"""Member of the document of a group, and of the nodes below it, that is there while the group is written as a whole, or
was cut off in that."""


def document_key(path: str, metadata: NodeMetadata | None = None) -> str:
    """Return the key of a node's (first) metadata document; of one of Zarr v3 without ``metadata``."""
    name = DOCUMENT_NAME if metadata is None else names_of(metadata)[0]
    return join_path(path, name)


def names_of(metadata: NodeMetadata) -> tuple[str, ...]:
    """Return the names of the documents that a node may have."""
    return document_names(metadata.zarr_format, metadata.node_type)


def location(store: Store, path: str) -> str:
    """Return the text of a store with the path of a node in it."""
    return f"{str(store).rstrip('/')}/{path}" if path else str(store)


def describe(store: Store, path: str) -> str:
    """Return a node's place for an error text, in one line."""
    return printable(location(store, path))


class Seen:
    """What :func:`find_node` notices of the (first) document of a node."""

    __slots__ = ("answers", "document", "is_alone", "names", "version")

    def __init__(self) -> None:
        self.version: Version | None = None
        self.document: BytesLike | None = None
        """Its bytes."""
        self.names: tuple[list[str], list[str]] | None = None
        """Keys and prefixes directly below the place, where they were listed."""
        self.is_alone = False
        """Whether no document of Zarr v2 seems to lie beside one of v3: looked at for files, if any version will do."""
        self.answers: dict[str, Reading | Exception | None] | None = None
        """What was read ahead of documents, by name, or the errors that came in their place; see :func:`ask_ahead`."""

    @property
    def is_free(self) -> bool:
        """Whether nothing at all is stored at the place, or below it: looked at in slow stores that list names."""
        return self.names == ([], [])

    @property
    def has_document(self) -> bool:
        """Whether one of the documents that were read ahead is there."""
        return any(isinstance(each, Reading) for each in (self.answers or {}).values())


def find_node(
    store: Store,
    path: str,
    zarr_format: int | None = None,
    *,
    first: int = 3,
    expected: str | None = None,
    seen: Seen | None = None,
    consolidated: bool = True,
    is_new: bool = False,
) -> NodeMetadata | None:
    """Return the metadata of the node at ``path``; ``None`` where there is none.

    It is looked for in all versions of Zarr, beginning with ``first``, or only in ``zarr_format``. ``expected``, which
    is ``"array"`` or ``"group"``, says what a slow store is asked for first. ``seen`` gets what is noticed beside it.
    Without ``consolidated`` the document of that name in Zarr v2 is not looked at. ``is_new``: if there is none of the
    first version, there is hardly any, so that a slow store lists what is there before it is asked for more. Raises
    :class:`~zardine.errors.MetadataError` for a document that breaks the specification.

    Some servers answer "forbidden" for documents that are not there: it is raised if no other document is found.
    """
    versions = _ORDERS[first] if zarr_format is None else (zarr_format,)
    if store.cost.is_slow:
        return _find_in_rounds(store, path, versions, expected, seen or Seen(), consolidated, is_new)
    refusal: StoreError | None = None
    looks = seen is not None and zarr_format is None and files_to_read(store) is not None
    for version in versions:
        for name in main_names(version):
            try:
                key, is_alone = join_path(path, name), False
                if looks and version == 3:
                    reading, is_alone = read_document_and_look(store, key, *older_keys(path))
                else:
                    reading = read_document(store, key)
            except Exception as error:
                refusal = refusal or as_refusal(error)
                continue
            if reading is None or (version == 1 and not looks_like_v1(reading.parts[0])):
                continue
            data = reading.parts[0]
            if seen is not None:
                seen.version, seen.document, seen.is_alone = reading.version, data, is_alone
            documents: dict[str, BytesLike | None] = {name: data}
            for each in _beside(version, name, consolidated):
                documents[each] = get_document(store, join_path(path, each))
            return parse_found(name, documents, store, path)
    if refusal is not None:
        raise refusal
    return None


_ORDERS = {first: (first, *(each for each in FORMATS if each != first)) for first in FORMATS}
"""Versions of Zarr as a node is looked for, by the one that is first."""
_MOST_LISTED = 4096
_MOST_LISTED_SLOWLY = 64
"""Folders that are looked through for a node below a group without a document, here and where each is a request."""


_SMALL = 2**16
"""Bytes of a document up to which it may be read together with others."""


def find_nodes(store: Store, paths: Sequence[str], first: int) -> Iterator[NodeMetadata | None]:
    """Yield what :func:`find_node` gives for each of ``paths`` when it is its turn; see :meth:`Store.read_small`."""
    keys = [join_path(path, DOCUMENT_NAME) for path in paths] if first == 3 else []
    documents = store.read_small(keys, min(_SMALL, limit_of(DOCUMENT)))
    for path in paths:
        data = next(documents, None)
        if data is None:
            yield find_node(store, path, first=first)
        else:
            yield parse_found(DOCUMENT_NAME, {DOCUMENT_NAME: data}, store, path)


def _find_in_rounds(
    store: Store,
    path: str,
    versions: Sequence[int],
    expected: str | None,
    seen: Seen,
    consolidated: bool,
    is_new: bool,
) -> NodeMetadata | None:
    """Find a node in a store that answers slowly: the documents of a round are asked for at the same time.

    A failure matters only if the document is needed to tell what the node is. When what is expected is not there, it is
    looked whether anything is, before more is asked for; with ``is_new`` after the first round.
    """
    found: dict[str, Reading | Exception | None] = {} if seen.answers is None else seen.answers
    refusal: StoreError | None = None
    mains = [(version, name) for version in versions for name in main_names(version)]
    rounds = list(_rounds(versions, expected))
    usual = 1 if is_new else {"array": 1, "group": 2}.get(expected or "", len(rounds) - 1)
    for number, names in enumerate(rounds):
        if number > 0 and refusal is None and (number == max(1, usual) or seen.is_free):
            if seen.names is None:
                with suppress(StoreError, UnsupportedError):  # what cannot be listed is looked at name by name
                    seen.names = store.list_dir(f"{path}/" if path else "")
            if seen.is_free:
                return None
        wanted = [name for name in names if name not in found and (name in _MAINS or found.get(names[0], _UNKNOWN))]
        if is_new and seen.names is not None and not store.read_only:  # a server of pages may leave out names
            listed = frozenset(seen.names[0])
            found |= {name: None for name in wanted if join_path(path, name) not in listed}
            wanted = [name for name in wanted if name not in found]
        found |= zip(wanted, _answers(store, [join_path(path, name) for name in wanted]), strict=True)
        for version, name in mains:
            if name not in found:
                break
            main = found[name]
            if isinstance(main, Exception):
                refusal = refusal or as_refusal(main)
            elif main is not None and (version != 1 or looks_like_v1(main.parts[0])):
                seen.version, seen.document = main.version, main.parts[0]
                beside = _beside(version, name, consolidated)
                others = [each for each in beside if each not in found]
                found |= zip(others, _answers(store, [join_path(path, each) for each in others]), strict=True)
                documents = {each: _value(found[each]) for each in (name, *beside)}
                return parse_found(name, documents, store, path)
    if refusal is not None:
        raise refusal
    return None


def ask_ahead(store: Store, path: str, names: Sequence[str], seen: Seen) -> list[Callable[[], None]]:
    """Return calls that ask for documents of a node, each by a request, so that :func:`find_node` has them in ``seen``.

    What is raised in the place of a document is kept, too, for who needs that document.
    """
    answers = seen.answers = {} if seen.answers is None else seen.answers

    def ask(name: str) -> None:
        answers[name] = _answer(store, join_path(path, name))

    return [partial(ask, name) for name in names]


def look_whether_free(store: Store, path: str, seen: Seen) -> None:
    """Let ``seen`` have that nothing is stored at or below ``path``, if that is so; as :func:`nothing_is_at`."""
    if nothing_is_at(store, path):
        seen.names = [], []


def nothing_is_at(store: Store, path: str) -> bool:
    """Return whether a look at the names says that nothing is stored at or below ``path``: one request for all."""
    try:
        return store.is_empty(path)
    except (StoreError, UnsupportedError):  # what cannot be listed is looked at name by name
        return False


def as_refusal(error: Exception) -> StoreError:
    """Return the error of a document that may not be there, since the server says no more than "forbidden".

    Raises others.
    """
    if isinstance(error, StoreError) and error.errno == EACCES:
        return error
    raise error


def _value(answer: Reading | Exception | None) -> BytesLike | None:
    if isinstance(answer, Exception):
        raise answer
    return None if answer is None else answer.parts[0]


def _answer(store: Store, key: str) -> Reading | Exception | None:
    """Return what is read of a key, or the error that came in its place."""
    try:
        return read_document(store, key)
    except Exception as error:
        return error


def _rounds(versions: Sequence[int], expected: str | None) -> Iterator[list[str]]:
    """Yield the names of documents to ask for together.

    An array takes three requests at most, and one round if that is what is expected; a group of Zarr v3 takes one.
    """
    kinds = ("group", "array") if expected == "group" else ("array", "group")
    rounds = [list(document_names(version, kind)) for version in versions if version != 1 for kind in kinds]
    if expected == "array" and versions[:2] == (3, 2):
        rounds[0] += document_names(2, "array")
    if 1 in versions:
        rounds.append(list(document_names(1, "array")))
    asked: set[str] = set()
    for names in rounds:
        new = [name for name in names if name not in asked]
        asked.update(new)
        if new:
            yield new


def _answers(store: Store, keys: Sequence[str]) -> list[Reading | Exception | None]:
    """Return what is read of some keys, or the errors that came in their place, asked for at the same time."""
    answers: list[Reading | Exception | None] = [None] * len(keys)

    def fetch(number: int) -> None:
        answers[number] = _answer(store, keys[number])

    for_each(fetch, range(len(keys)), len(keys), most_requests(store, 1))
    return answers


def _beside(version: int, name: str, consolidated: bool) -> tuple[str, ...]:
    """Return the names of the documents that belong to the one called ``name``, if it is there."""
    names = document_names(version, "array" if (version, name) in _ARRAYS else "group")[1:]
    return names if consolidated else tuple(each for each in names if each != CONSOLIDATED)


_UNKNOWN: Final = True
_MAINS: Final = frozenset(name for version in FORMATS for name in main_names(version))
_ARRAYS = {(version, document_names(version, "array")[0]) for version in (2, 1)}


def looks_like_v1(data: BytesLike) -> bool:
    """Return whether a value called ``meta``, which anything may be called, looks like a document of Zarr v1."""
    return bytes(data[:1]).strip() in (b"", b"{") and b'"zarr_format"' in bytes(data)


def parse_found(name: str, documents: Mapping[str, BytesLike | None], store: Store, path: str) -> NodeMetadata:
    try:
        return parse_documents(name, documents, "the document is invalid")
    except ChunkTooLargeError as error:
        raise error.at(key=join_path(path, name)) from None
    except MetadataError as error:
        raise type(error)(
            f"the document {name} of {describe(store, path)} is invalid"
            if name != DOCUMENT_NAME
            else f"the document of {describe(store, path)} is invalid",
            error.problems,
        ) from None


def load_node(store: Store, path: str, zarr_format: int | None = None) -> NodeMetadata:
    """Return the metadata of the node at ``path``. Raises :class:`~zardine.errors.NodeNotFoundError` where none is."""
    node = find_node(store, path, zarr_format)
    if node is None:
        raise not_found(store, path, zarr_format, NodeNotFoundError, "array or group")
    return node


def load_array(store: Store, path: str, zarr_format: int | None = None, *, unfinished: bool = False) -> ArrayMetadata:
    """Return the metadata of the array at ``path``. Raises as :func:`as_array`."""
    node = find_node(store, path, zarr_format, expected="array")
    return as_array(node, store, path, zarr_format, unfinished=unfinished)


def as_array(
    node: NodeMetadata | None,
    store: Store,
    path: str,
    zarr_format: int | None = None,
    *,
    unfinished: bool = False,
    seen: Seen | None = None,
) -> ArrayMetadata:
    """Return ``node``, which was found at ``path``, if it is an array; ``seen`` is what :func:`find_node` noticed.

    Raises :class:`~zardine.errors.ContainsGroupError` for a group, :class:`~zardine.errors.ArrayNotFoundError` for
    ``None``, :class:`~zardine.errors.UnfinishedError` for one of a group that is not written to its end, unless
    ``unfinished`` ones are wanted, too.
    """
    if isinstance(node, ArrayMetadata):
        if not unfinished:
            refuse_unfinished(node, store, path)
        return node
    if node is not None:
        raise ContainsGroupError(f"a group, not an array, is stored at {describe(store, path)}: see open_group")
    raise not_found(store, path, zarr_format, ArrayNotFoundError, "array", seen)


def load_group(store: Store, path: str, zarr_format: int | None = None, *, unfinished: bool = False) -> GroupMetadata:
    """Return the metadata of the group at ``path``. Raises as :func:`as_group`.

    A path above stored nodes is an (implied) group without a document.
    """
    node = find_node(store, path, zarr_format, expected="group")
    return as_group(node, store, path, zarr_format, unfinished=unfinished)


def as_group(
    node: NodeMetadata | None,
    store: Store,
    path: str,
    zarr_format: int | None = None,
    *,
    unfinished: bool = False,
    seen: Seen | None = None,
) -> GroupMetadata:
    """Return ``node``, which was found at ``path``, if it is a group; for ``None`` the implied group there, if any.

    ``seen`` is what :func:`find_node` noticed.

    Raises :class:`~zardine.errors.ContainsArrayError` for an array, :class:`~zardine.errors.GroupNotFoundError` where
    there is nothing, :class:`~zardine.errors.UnfinishedError` for a group that is not written to its end, unless
    ``unfinished`` ones are wanted, too.
    """
    if isinstance(node, GroupMetadata):
        if not unfinished:
            refuse_unfinished(node, store, path)
        return node
    if node is not None:
        raise ContainsArrayError(f"an array, not a group, is stored at {describe(store, path)}: see open_array")
    implied = implied_group(store, path, zarr_format, seen)
    if implied is not None:
        return implied
    raise not_found(store, path, zarr_format, GroupNotFoundError, "group", seen)


def refuse_unfinished(node: NodeMetadata, store: Store, path: str) -> None:
    """Raise :class:`~zardine.errors.UnfinishedError` for a node at ``path`` that is not written to its end."""
    mark = node.unknown.get(UNFINISHED_NODE)
    if mark is None:
        return
    known = mark if isinstance(mark, Mapping) else {}
    raise UnfinishedError(
        f"the {node.node_type} at {describe(store, path)} is being written by {known.get('by', 'another program')} "
        f"since {known.get('since', 'an unknown time')}, or that was cut off: what is there is in part. If nobody is "
        "writing it any more, write it again with mode='w', or erase it"
    )


def implied_group(
    store: Store, path: str, zarr_format: int | None = None, seen: Seen | None = None
) -> GroupMetadata | None:
    """Return a group without a document: one below which nodes are stored (core 3.1, "Discover children of a group").

    The nearest nodes are found first, and the search ends after some thousand folders, so that a wrong path above very
    many files is found to be wrong in time.
    """
    wanted = {name: version for version in (3, 2) if zarr_format in (None, version) for name in main_names(version)}
    first = f"{path}/" if path else ""
    folders = deque([first])
    try:
        for _ in range(_MOST_LISTED_SLOWLY if store.cost.is_slow else _MOST_LISTED):
            if not folders:
                break
            folder = folders.popleft()
            known = seen.names if seen is not None and folder == first else None
            keys, below = store.list_dir(folder) if known is None else known
            names = {key.rpartition("/")[2] for key in keys}
            if folder == first and UNFINISHED in names:
                return None
            for name in sorted(wanted.keys() & names):  # as long as documents of v2 are there, too, they count
                return GroupMetadata(zarr_format=wanted[name])
            folders.extend(below)
    except UnsupportedError:
        pass
    return None


def older_keys(path: str) -> tuple[str, ...]:
    """Return the keys of the documents of Zarr v2 one of which a node of that version has at ``path``."""
    names = main_names(2)
    return tuple(join_path(path, name) for name in names) if path else names


def older_document(store: Store, path: str) -> str | None:
    """Return the name of a document of Zarr v2 that is stored at ``path``, if there is one."""
    keys = older_keys(path)
    if store.seems_missing(*keys):
        return None
    return next((name for name, key in zip(main_names(2), keys, strict=True) if store.exists(key)), None)


def taken(store: Store, path: str, node: NodeMetadata | None, way: str = "") -> ContainsArrayError | ContainsGroupError:
    """Return the error for a place that holds ``node`` already; ``way`` says what else than overwriting can be done."""
    place = describe(store, path)
    if isinstance(node, ArrayMetadata):
        way = way or "overwrite=True or mode='w' replaces it"
        return ContainsArrayError(f"an array is already stored at {place}; {way}")
    way = way or "overwrite=True or mode='w' erases it and all below it"
    return ContainsGroupError(f"a group is already stored at {place}; {way}")


def refused(store: Store, path: str, error: StoreError) -> StoreError:
    """Return the error for a place where the store creates no node, though none is there; ``error`` has its answer."""
    return StoreError(f"nothing is stored at {describe(store, path)}, and the store refuses to create it: {error}")


def child_names(store: Store, path: str, zarr_format: int = 3) -> Iterator[str]:
    """Yield the names of what may be nodes directly below the group of that version at ``path``, sorted."""
    prefix = f"{path}/" if path else ""
    _, prefixes = store.list_dir(prefix)
    for each in prefixes:
        name = each[len(prefix) : -1]
        reason = explain_bad_name(name, zarr_format)
        if reason is None and not name.startswith(HIDDEN):
            yield name
        elif reason is not None and not name.startswith(HIDDEN) and _has_document(store, each, zarr_format):
            warn_of_bad_name(describe(store, path), name, reason)


def _has_document(store: Store, prefix: str, zarr_format: int) -> bool:
    return any(store.exists(prefix + name) for name in main_names(zarr_format))


def warn_of_bad_name(place: str, name: str, reason: str) -> None:
    """Warn that a node is left out, since no node may have its name."""
    warn_user(
        f"{place} has a node called {name!r}, which is left out: {reason}. "
        "Rename its folder to read it, and consolidate the metadata again",
        ZarrUserWarning,
        through=("zardine", "xarray"),
    )


def warn_of_broken_consolidated(place: str, problem: Problem) -> None:
    """Warn that the documents of the nodes below a group are read instead of its consolidated metadata."""
    warn_user(
        f"the consolidated metadata of {place} are broken, and the documents of its nodes are read instead: "
        f"{problem}. zardine.consolidate_metadata makes them anew",
        ZarrUserWarning,
        through=("zardine", "xarray"),
    )


def unfinished_work(store: Store, path: str, seen: Seen | None = None) -> str | None:
    """Return what is being made at a place, or was cut off: ``conversion`` or ``rechunking``; ``None`` for nothing.

    ``seen`` is what :func:`find_node` noticed there.
    """
    key = join_path(path, UNFINISHED)
    if seen is not None and seen.names is not None and key not in seen.names[0]:
        return None
    data = get_document(store, key)
    if data is None:
        return None
    try:
        function = parse_json(data)["function"]
    except (ValueError, KeyError, TypeError, RecursionError):
        function = None
    return WORKS.get(function, "conversion") if isinstance(function, str) else "conversion"


def check_finished(store: Store, path: str, seen: Seen | None = None) -> None:
    """Raise :class:`~zardine.errors.NodeExistsError` where a work is not finished; as :func:`unfinished_work`."""
    work = unfinished_work(store, path, seen)
    if work is not None:
        raise NodeExistsError(
            f"a {work} to {describe(store, path)} is not finished ({UNFINISHED}), and may be running: the same {work} "
            "again continues it, cancelling its plan takes it back; overwrite=True erases all that it has made until "
            "now, so end its jobs before"
        )


def not_found(
    store: Store,
    path: str,
    zarr_format: int | None,
    kind: type[NodeNotFoundError],
    what: str,
    seen: Seen | None = None,
) -> NodeNotFoundError:
    """Return the error for a place where no node is; it lists what was looked for."""
    versions = FORMATS if zarr_format is None else (zarr_format,)
    keys = [join_path(path, name) for version in versions for name in main_names(version)]
    text = f"no {what} is stored at {describe(store, path)}: looked for {', '.join(map(printable, keys))}"
    work = unfinished_work(store, path, seen)
    if work is not None:
        text += f"; a {work} to this place is not finished ({UNFINISHED}): the same {work} again continues it"
    return kind(text)
