"""Walking through a hierarchy as it is stored, sound or not: its documents, and what every key belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from zardine.chunk_keys import ChunkKeyEncoding, parse_chunk_key_encoding
from zardine.engine.array_config import ArrayConfig
from zardine.engine.documents import get_document
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, layout_notes, prepare_layout
from zardine.engine.side_by_side import Descent
from zardine.errors import (
    ArrayChangedError,
    ChunkTooLargeError,
    MetadataError,
    NodeNotFoundError,
    Problem,
    StoreError,
    UnknownExtensionError,
)
from zardine.hierarchy.find import HIDDEN, UNFINISHED, UNFINISHED_NODE, describe, unfinished_work
from zardine.json_document import Problems, parse_json
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import (
    ALL_NAMES,
    FORMATS,
    NodeMetadata,
    document_names,
    main_names,
    note_documents,
    parse_documents,
)
from zardine.metadata.node_names import explain_bad_name, join_path
from zardine.stores.attempts import LOOKS
from zardine.stores.base import Store
from zardine.tools import hidden_keys
from zardine.tools.checking.consolidated import broken_consolidated
from zardine.tools.checking.left_out import check_left_out
from zardine.tools.checking.stored_object import StoredObject
from zardine.tools.report import Fault, note
from zardine.tools.resharding.plan import KNOWN_ENCODINGS
from zardine.tools.resharding.state import Journal, key_encodings, load_journal

VECTORS: Final = "zarr_vectors"
"""Attribute of groups that are roots of stores of another layout, on a floor above, which arrays are made by."""


@dataclass(slots=True)
class Scan:
    """What is stored below a path. Keys of sound chunks are in ``objects``; what is not sound is in ``faults``."""

    nodes: dict[str, list[NodeMetadata]] = field(default_factory=dict)
    """By path; several where a node is stored in several versions of Zarr. Without documents: an empty list."""
    objects: list[StoredObject] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[Fault] = field(default_factory=list)


Collect: TypeAlias = Callable[[Sequence[ArrayHandle], Iterable[StoredObject]], object]
"""Takes the stored objects of an array, as its documents describe them. Called again where these were changed; of
several arrays at the same time where the store is far away."""


def scan(store: Store, path: str, *, collect: Collect | None = None) -> Scan:
    """Look at all keys at and below the node at ``path``, and at all documents; chunks are not read.

    With ``collect`` that is given the stored objects, which may be millions, and ``objects`` stays empty.
    """
    found = Scan()
    first = _Place(path, False)
    below = Descent(
        store,
        first,
        partial(_look, store, collect),
        lambda place, looked: looked[1],
        name=lambda place: place.path,
        size=lambda looked: len(looked[1]),
    )
    waiting = [first]
    while waiting:
        node, inner = below.of(waiting.pop())
        found.nodes |= node.nodes
        found.objects += node.objects
        found.faults += node.faults
        found.notes += node.notes
        waiting += reversed(inner)
    found.nodes = {path: nodes for path, nodes in sorted(found.nodes.items()) if nodes}
    found.faults += check_left_out(store, path, found.nodes)
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to look."""

    path: str
    is_unsure: bool
    """Whether it may lie in an array, since a document above tells nothing."""


def _look(store: Store, collect: Collect | None, place: _Place) -> tuple[Scan, list[_Place]]:
    """Look at the keys of one node, and at its documents; gives also where to look below it."""
    here, prefix = place.path, f"{place.path}/" if place.path else ""
    keys, prefixes = store.list_dir(prefix)
    names = {key[len(prefix) :] for key in keys}
    found = Scan()
    documents = _Documents(store, here, names, found)
    if documents.is_array:
        documents, found = _steady_array(store, here, prefix, documents, found, collect)
    if documents.is_array:
        return found, []
    if hidden_keys.JOURNAL in names and not documents.names:
        _sort_unfinished(store, here, prefix, found)
        return found, []
    if UNFINISHED in names:
        message = f"a {unfinished_work(store, here)} was interrupted: the same call again finishes it"
        found.notes.append(note(f"/{here}", prefix + UNFINISHED, kind="unfinished", message=message))
    is_unsure = documents.is_broken or (place.is_unsure and not documents.names)
    for name in sorted(names - documents.names - {UNFINISHED}) if not is_unsure else ():
        if name in _OF_NETCDF:
            found.notes.append(_of_netcdf(here, prefix + name))
        else:
            found.faults.append(_stray(here, prefix + name, "it is no document, and no array is stored here"))
    inner = []
    for each in prefixes:
        name = each[len(prefix) : -1]
        reason = explain_bad_name(name, 2 if _is_older_node(store, each, name) else 3)
        if reason is not None:
            for key in store.list_prefix(each):
                found.notes += _reserved(here, key, key[len(prefix) :], reason)
        else:
            inner.append(_Place(each[:-1], is_unsure))
    return found, inner


def scan_existing(store: Store, path: str, *, collect: Collect | None = None) -> Scan:
    """Do the same as :func:`scan`. Raises :class:`~zardine.errors.NodeNotFoundError` where nothing at all is stored."""
    found = scan(store, path, collect=collect)
    if not found.nodes and not found.faults and not found.notes:
        raise NodeNotFoundError(f"nothing is stored at {describe(store, path)}")
    return found


class _Documents:
    """The documents of one node, and the arrays that they describe."""

    def __init__(self, store: Store, path: str, names: set[str], found: Scan) -> None:
        self.names: set[str] = set()
        self.sources: list[ArrayHandle] = []
        self.is_array = False
        self.is_broken = False
        nodes: list[NodeMetadata] = []
        for version in FORMATS:
            for name in main_names(version):
                if name in names and (version != 1 or not self.names):
                    node = self._load(store, path, name, version, names, found)
                    if node is not None:
                        nodes.append(node)
        found.nodes[path] = nodes

    @property
    def ndim(self) -> int:
        """Number of axes of the array; -1 where it is not known."""
        return self.sources[0].layout.metadata.ndim if self.sources else -1

    def _load(
        self, store: Store, path: str, name: str, version: int, names: set[str], found: Scan
    ) -> NodeMetadata | None:
        key = join_path(path, name)
        kind = _kind(store, key, name, version)
        if kind is None and version == 1:
            return None  # a key called "meta" makes no array
        mine = document_names(version, kind or "group")
        self.names |= names & {*mine}
        try:
            documents = {each: get_document(store, join_path(path, each)) if each in names else None for each in mine}
            if documents[name] is None:
                return None  # erased since it was listed
            self.is_array |= kind == "array"
            node = parse_documents(name, documents, "")
            if isinstance(node, ArrayMetadata):
                layout = prepare_layout(node, "")
                self.sources.append(ArrayHandle(store, path, layout, ArrayConfig.from_settings()))
                found.notes += _nonstandard(path, key, layout_notes(layout))
            elif VECTORS in node.attributes:
                message = "a store of Zarr Vectors: zardine.vectors.validate and repair know what is in its chunks"
                found.notes.append(note(f"/{path}", key, kind="vectors", message=message))
            elif UNFINISHED_NODE in node.unknown:
                message = "its writer was killed, or is at work: written anew, with mode='w', it is finished"
                found.notes.append(note(f"/{path}", key, kind="unfinished", message=message))
            if isinstance(node, GroupMetadata) and node.consolidated_faults:
                found.faults += broken_consolidated(path, node)
            found.notes += _nonstandard(path, key, [*note_documents(name, documents), *_note_path(path, version)])
            return node
        except MetadataError as error:
            self.is_broken = True
            kind = "unknown" if isinstance(error, UnknownExtensionError) else "document"
            texts = [str(problem) for problem in error.problems] or [str(error)]
            found.faults += [Fault(f"/{path}", key, kind=kind, message=text) for text in texts]
        except (StoreError, ChunkTooLargeError) as error:
            self.is_broken = True
            self.is_array |= kind == "array"
            kind = "store" if isinstance(error, StoreError) else "document"
            found.faults.append(Fault(f"/{path}", key, kind=kind, message=str(error)))
        return None


def _steady_array(
    store: Store, path: str, prefix: str, documents: _Documents, node: Scan, collect: Collect | None
) -> tuple[_Documents, Scan]:
    """Return what each key at and below an array is, by documents that were the same before and after the look."""
    for _ in range(LOOKS):
        _sort_keys(store, path, prefix, documents, node, collect)
        if not any(_has_changed(handle) for handle in documents.sources):
            return documents, node
        names = {key[len(prefix) :] for key in store.list_dir(prefix)[0]}
        node = Scan()
        documents = _Documents(store, path, names, node)
        if not documents.is_array:
            return documents, node
    message = "it was resharded or replaced again and again meanwhile: its chunks were not looked at"
    if collect is not None:
        collect(documents.sources, ())
    return documents, Scan(nodes=node.nodes, notes=[note(f"/{path}", kind="busy", message=message)])


def _has_changed(handle: ArrayHandle) -> bool:
    try:
        check_fresh(handle, surely=True)
    except ArrayChangedError:
        return True
    return False


def _nonstandard(path: str, key: str, notes: list[Problem]) -> list[Fault]:
    return [
        note(f"/{path}", key, kind="nonstandard", message=f"{each}; other programs may refuse it") for each in notes
    ]


def _note_path(path: str, version: int) -> list[Problem]:
    name = path.rpartition("/")[2]
    return [] if version == 3 or name.isascii() else [Problem("path", f"the name {name!r} is not ASCII")]


def _is_older_node(store: Store, prefix: str, name: str) -> bool:
    """Return whether a folder whose name no node of v3, or none of v2, may have is a node of Zarr v2."""
    if explain_bad_name(name, 3) is None and explain_bad_name(name, 2) is None:
        return False
    return not name.startswith(HIDDEN) and any(store.exists(prefix + document) for document in main_names(2))


def _kind(store: Store, key: str, name: str, version: int) -> str | None:
    """Return ``array`` or ``group``, as far as a document that may be broken tells."""
    if name in (".zarray", ".zgroup"):
        return "array" if name == ".zarray" else "group"
    try:
        document: Any = parse_json(get_document(store, key) or b"")
    except (ValueError, StoreError, MemoryError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    if version == 1:
        return "array" if "shape" in document and "chunks" in document else None
    return "array" if document.get("node_type") == "array" else "group"


def _sort_keys(
    store: Store, path: str, prefix: str, documents: _Documents, found: Scan, collect: Collect | None
) -> None:
    """Note in ``found`` what each key at and below an array is."""
    unfinished = _encodings(store, path)
    others: list[tuple[str, list[tuple[ArrayHandle, tuple[int, ...], bool]]]] = []

    def inside() -> Iterator[StoredObject]:
        for key in store.list_prefix(prefix):
            name = key[len(prefix) :]
            if name in documents.names:
                continue
            if name.startswith("__"):
                found.notes += _reserved(path, key, name)
                continue
            places = list(_places(documents.sources, name))
            if any(inside for _, _, inside in places):
                handle, coordinates = next((handle, where) for handle, where, inside in places if inside)
                yield StoredObject(handle, key, coordinates)
            else:
                others.append((key, places))

    if collect is None:
        found.objects += inside()
    else:
        collect(documents.sources, inside())
    unfinished += _encodings(store, path)  # a resharding may have begun meanwhile
    unnamed = [keys for handle in documents.sources for keys in _other_encodings(handle)]
    suspects: list[Fault] = []
    for key, places in others:
        name = key[len(prefix) :]
        if places:
            message = (
                f"a chunk at {places[0][1]} of the grid, which is outside of the array: left by an append or resize "
                "that was cut off, or by resize(erase=False); zardine.repair removes it"
            )
            found.faults.append(Fault(f"/{path}", key, kind="outside", message=message))
        elif any(each.decode(name, documents.ndim) is not None for each in unfinished):
            continue  # the note about the journal says it
        elif any(each.decode(name, documents.ndim) is not None for each in unnamed):
            message = (
                "a chunk by its key, but of another layout, which no document names: left by a resharding, or by a "
                "write that came too late; zardine.repair moves it out of the way"
            )
            suspects.append(Fault(f"/{path}", key, kind="unnamed", message=message))
        elif name in _OF_NETCDF:
            found.notes.append(_of_netcdf(path, key))
        elif not documents.is_broken:
            what = "a node cannot lie below an array" if name.rpartition("/")[2] in ALL_NAMES else "it is no chunk key"
            suspects.append(_stray(path, key, what))
    for each in suspects:
        try:
            if each.key is not None and store.exists(each.key):
                found.faults.append(each)
        except StoreError as error:  # what it is cannot be told
            found.faults.append(Fault(each.place, each.key, kind="store", message=str(error)))


def _encodings(store: Store, path: str) -> list[ChunkKeyEncoding]:
    """Return the chunk key encodings of a resharding that is under way."""
    journal = load_journal(store, path)
    known = [] if journal is None else [parse_chunk_key_encoding(each, Problems()) for each in key_encodings(journal)]
    return [each for each in known if each is not None]


def _other_encodings(handle: ArrayHandle) -> list[ChunkKeyEncoding]:
    """Return the encodings that the array has not, and may have had before a resharding."""
    if handle.layout.metadata.zarr_format != 3:
        return []
    return [each for each in KNOWN_ENCODINGS if each != handle.layout.keys]


def _places(sources: list[ArrayHandle], name: str) -> Iterator[tuple[ArrayHandle, tuple[int, ...], bool]]:
    for handle in sources:
        for coordinates, inside in chunk_places(handle.layout, name):
            yield handle, coordinates, inside


def chunk_places(layout: ArrayLayout, name: str) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Yield the grid coordinates that a key, relative to its array, stands for, and whether the grid has them."""
    coordinates = layout.keys.decode(name, layout.metadata.ndim)
    if coordinates is not None:
        counts = [axis.count for axis in layout.grids.storage]
        yield coordinates, all(i < count for i, count in zip(coordinates, counts, strict=True))


def _sort_unfinished(store: Store, path: str, prefix: str, found: Scan) -> None:
    """Note in ``found`` what each key is where resharding from another place was interrupted, without a document."""
    journal = load_journal(store, path)
    new = None if journal is None else journal.about.get("new")
    names = [] if not isinstance(new, dict) else key_encodings(Journal({"new": new}))
    encodings = [parse_chunk_key_encoding(each, Problems()) for each in names]
    ndim = _ndim_of(new)
    for key in store.list_prefix(prefix):
        name = key[len(prefix) :]
        if name.startswith("__"):
            found.notes += _reserved(path, key, name)
        elif not any(keys is not None and keys.decode(name, ndim) is not None for keys in encodings):
            found.faults.append(_stray(path, key, "it is none of the chunks that zardine.reshard writes there"))


def _ndim_of(document: Any) -> int:
    """Return how many axes the chunk grid of a document has that may be broken; -1 where it does not tell."""
    try:
        grid = document["chunk_grid"]["configuration"]
        return len(grid["chunk_shape"] if "chunk_shape" in grid else grid["chunk_shapes"])
    except (KeyError, TypeError):
        return -1


def _stray(path: str, key: str, message: str) -> Fault:
    return Fault(f"/{path}", key, kind="stray", message=f"the key belongs to nothing: {message}")


_OF_NETCDF = (".nczarray", ".nczattr", ".nczgroup", ".nczvar")
"""Keys of netCDF-C before 4.9.3, which wrote facts of its own beside documents of Zarr v2."""


def _of_netcdf(path: str, key: str) -> Fault:
    return note(f"/{path}", key, kind="nonstandard", message="a document of netCDF-C, which nothing else reads")


def _reserved(path: str, key: str, name: str, reason: str = "the name starts with two underscores") -> list[Fault]:
    if name.startswith(hidden_keys.OF_JOBS):
        return []  # of a plan that is under way: another key says so
    kind, message = hidden_keys.explain(name) or (
        "reserved",
        f"{reason}: no node or chunk may have it, so that this is not read",
    )
    return [note(f"/{path}", key, kind=kind, message=message)]


__all__ = ["Scan", "chunk_places", "scan", "scan_existing"]
