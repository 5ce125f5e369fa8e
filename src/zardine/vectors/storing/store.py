"""Opening the nodes of a level: the only place that knows of changes that were agreed on but not carried out yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from zardine.engine.freshness import leave_to_owner
from zardine.engine.side_by_side import begun
from zardine.errors import CorruptionError, MetadataError, UnsupportedError, ZardineError
from zardine.hierarchy.find import Seen, as_group, child_names, describe, document_key, find_node, parse_found
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.nodes.array import Array
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.base import Reading, Store, Version
from zardine.stores.resolve import StoreLike
from zardine.vectors.format.change_log import ChangeLog
from zardine.vectors.format.documents import LevelDocument, RootDocument, parse_level, parse_root
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.cells_again import open_again
from zardine.vectors.storing.claims import CLAIM, own_attributes
from zardine.vectors.storing.logs import LOG, read_log
from zardine.vectors.storing.steady import SteadyCells, Table, read_table
from zardine.vectors.storing.touched import NEWER

P = ParamSpec("P")
T = TypeVar("T")

PENDING = "zardine_pending"
"""Attribute of a level's group: documents by path below the level (``None``: the node goes) that count already, though
those that are stored are still the old ones. See :mod:`zardine.vectors.storing.transactions`."""


UNFINISHED = "zardine_unfinished"
"""Attribute of a level that is being made or removed, or was when the writer was killed: readers do not know it."""


WRITER = "zardine_writer"
"""Attribute of level 0 that the jobs of a plan write, or wrote: the id of the plan. It counts once there is a root."""

ORIGIN = "zardine_import"
"""Member of the attributes of the root: the plan of the import that has made the store."""

NEXT = "zardine_next"
"""Attribute of level 0 while another store takes the place of one: the root document, the level's attributes and its
pending documents, which are to come. See :mod:`zardine.vectors.changing.creating`."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorStore:
    """A store, opened: where it is, and what its root group says."""

    store: Store
    path: str
    root: RootDocument
    consolidated: Mapping[str, Any] | None = None
    """Documents by path, as the root group repeats them: asked only for names, and only where nothing can be listed."""
    listed: Sequence[int] | None = None
    """The levels that are stored, where they were listed by who holds the lock, and changes none of them."""
    version: Version | None = None
    """Of the document of the root group, where the store told."""

    @classmethod
    def open(cls, path: StoreLike, *, writable: bool = False) -> VectorStore:
        """The store at ``path``.

        Raises :class:`~zardine.errors.NodeNotFoundError` where nothing is, :class:`~zardine.errors.MetadataError` for
        what is no Zarr Vectors store or has a damaged root document.
        """
        store, inner = find_place(path, mode="r+" if writable else None)
        seen = Seen()
        group = as_group(find_node(store, inner, 3, expected="group", seen=seen), store, inner, 3)
        root = _parsed(parse_root, group.attributes, describe(store, inner))
        return cls(store, inner, root, group.consolidated_metadata, version=seen.version)

    @property
    def name(self) -> str:
        """For error texts."""
        return describe(self.store, self.path)

    def is_as_opened(self) -> bool:
        """Whether the document of the root group is what it was opened with; false where that costs a request."""
        key = document_key(self.path)
        return self.store.has_cheap_looks and self.store.is_unchanged(key, self.version)

    def is_unchanged(self) -> bool:
        """Whether the document of the root group is what it was opened with; true where the store tells no version."""
        return self.version is None or self.store.is_unchanged(document_key(self.path), self.version)

    def level_numbers(self) -> list[int]:
        """The levels that are stored, finished or not, ascending; those of the root document where none are listed."""
        if self.listed is not None:
            return list(self.listed)
        try:
            names = self.names("")
        except UnsupportedError:
            names = named_levels(self.root)
        return sorted(int(name) for name in names if name.isdecimal() and name.isascii())

    def finished_levels(self) -> list[int]:
        """The levels that readers know, ascending: not those that are being made or removed, or were left so."""
        numbers = self.level_numbers()
        looks = begun(self.store, [partial(self.is_unfinished, number) for number in numbers if number])
        unfinished = {number for number, look in zip(filter(None, numbers), looks, strict=True) if look()}
        return [number for number in numbers if number not in unfinished]

    def older_levels(self) -> list[int]:
        """The levels that readers know and that were made before one below them was changed, ascending."""
        finished = self.finished_levels()
        looks = begun(self.store, [partial(self.is_newer, number) for number in finished])
        return _above_the_newer(finished, (look() for look in looks))

    def levels(self, numbers: Sequence[int]) -> list[Level]:
        """Levels, each as :meth:`level` gives it; those of a store far away are opened at the same time."""
        return [opened() for opened in begun(self.store, [partial(self.level, number) for number in numbers])]

    def look_at_levels(self) -> tuple[list[Level], list[int]]:
        """The levels of :meth:`finished_levels`, opened, and those of :meth:`older_levels`: each document is read once.

        Raises as these.
        """
        numbers = self.level_numbers()
        looks = begun(self.store, [partial(self._group_at, number) for number in numbers])
        groups = {number: look() for number, look in zip(numbers, looks, strict=True)}
        finished = [number for number, (node, _) in groups.items() if not number or not _has(node, UNFINISHED)]
        older = _above_the_newer(finished, (_has(groups[number][0], NEWER) for number in finished))
        levels = [self.level(number, groups[number][1]) for number in finished]
        # one that had no document before may have one by now, of a writer who is at work
        return [each for each in levels if not each.document.level or not _has(each.group, UNFINISHED)], older

    def _group_at(self, number: int) -> tuple[NodeMetadata | None, Reading | None]:
        """What is stored as the document of a level."""
        seen = Seen()
        node = find_node(self.store, child(self.path, str(number)), 3, seen=seen)
        data = seen.document
        return node, None if data is None else Reading((data,), seen.version, len(bytes(data)))

    def is_older(self, number: int) -> bool:
        """Whether a level below was changed since a level was made."""
        return any(map(self.is_newer, range(number)))

    def is_newer(self, number: int) -> bool:
        """Whether a level was changed since the levels above it were made, if there are any."""
        return _has(find_node(self.store, child(self.path, str(number)), 3), NEWER)

    def is_unfinished(self, number: int) -> bool:
        """Whether a level is being made or removed, or was when the writer was killed."""
        return _has(find_node(self.store, child(self.path, str(number)), 3), UNFINISHED)

    def names(self, relative: str) -> list[str]:
        """Names of what is below a node: listed, or where that is not possible, from consolidated metadata."""
        try:
            return list(child_names(self.store, child(self.path, relative) if relative else self.path))
        except UnsupportedError:
            if self.consolidated is None:
                raise
        prefix = f"{relative}/" if relative else ""
        return sorted({key[len(prefix) :].split("/")[0] for key in self.consolidated if key.startswith(prefix)})

    def level(self, number: int, reading: Reading | None = None) -> Level:
        """A level; ``reading``: its document, if that was read. Raises :class:`MetadataError` for none, or damage."""
        path = child(self.path, str(number))
        node, reading = self._level_node(number, reading)
        log = read_log(self.store, path, node.attributes[LOG]) if LOG in node.attributes else None
        for last in attempts(CHANGES):
            if log is not None or LOG not in node.attributes:
                break
            before, (node, reading) = node, self._level_node(number, None)
            if last or node == before:
                reason = "the log of a change that was agreed on is lost: what it changed is neither old nor new"
                raise CorruptionError(reason, array=path)
            log = read_log(self.store, path, node.attributes[LOG]) if LOG in node.attributes else None
        own = {name: value for name, value in node.attributes.items() if name != CLAIM}
        document = _parsed(parse_level, own, number, self.root, self.name)
        pending = node.attributes.get(PENDING) or {}
        if not isinstance(pending, Mapping):
            raise MetadataError(f"{PENDING} of level {number} of {self.name} is no table of documents")
        return Level(self, path, document, pending, reading.version, log, node)

    def _level_node(self, number: int, reading: Reading | None) -> tuple[GroupMetadata, Reading]:
        path = child(self.path, str(number))
        reading = self.store.read(document_key(path)) if reading is None else reading
        data = None if reading is None else {DOCUMENT_NAME: reading.parts[0]}
        node = None if data is None else parse_found(DOCUMENT_NAME, data, self.store, path)
        if reading is None or not isinstance(node, GroupMetadata):
            raise MetadataError(f"{self.name} has no level {number}; it has {self.level_numbers()}")
        return node, reading


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A level, opened."""

    owner: VectorStore
    path: str
    document: LevelDocument
    pending: Mapping[str, Any]
    version: Version | None = None
    """Of its document, as the store counts; ``None`` where it does not."""
    log: ChangeLog | None = None
    """What counts already, though it is not stored where it belongs yet: see :attr:`pending`."""
    group: GroupMetadata | None = None
    """The document of its group."""

    @property
    def is_settled(self) -> bool:
        """Whether no change is agreed on that is not carried out."""
        return not self.pending and self.log is None

    @property
    def is_claimed(self) -> bool:
        """Whether a writer has claimed the store: see :mod:`zardine.vectors.storing.claims`."""
        return self.group is not None and CLAIM in self.group.attributes

    def is_current(self) -> bool:
        """Whether what was read of the level is what it holds: nobody has changed it since it was opened.

        Conversions of its arrays are no such change, and neither is that a log is carried out: cells that were taken
        from it are the same where they belong. Arrays that are stored anew were perhaps gone when they were read.
        """
        if self.is_unchanged():
            return True
        try:
            newer = self.owner.level(self.document.level)
        except ZardineError:
            return False
        if own_attributes(newer.document.attributes) == own_attributes(self.document.attributes):
            return True  # it was claimed, or is claimed no longer
        return not self.pending and self.log is not None and self._settled_as(newer)

    def is_unchanged(self) -> bool:
        """Whether its document is the one that it was opened with."""
        try:
            if self.version is not None:
                return self.owner.store.is_unchanged(document_key(self.path), self.version)
            return self.owner.level(self.document.level).document.attributes == self.document.attributes
        except ZardineError:
            return False  # who opens it again is told

    @property
    def _takes_as_stored(self) -> bool:
        """Whether documents are used as they are now."""
        return True

    @property
    def _seen(self) -> dict[str, Version]:
        """What versions are noted in of documents that are read."""
        return {}

    @property
    def rank(self) -> int:
        """Axes of its chunk grid."""
        return len(self.document.chunk_dims)

    def node(self, relative: str, seen: Seen | None = None) -> NodeMetadata | None:
        """The document of the node below the level, or ``None``; ``seen``: as for ``find_node``, where it is stored."""
        if relative in self.pending:
            document = self.pending[relative]
            return None if document is None else parse_node_json(document, f"the pending document of {relative}")
        if self.log is not None and relative in self.log.documents:
            return parse_node_json(dict(self.log.documents[relative]), f"the logged document of {relative}")
        return find_node(self.owner.store, child(self.path, relative), 3, seen=seen)

    def names(self, relative: str) -> list[str]:
        """Names of what is below a node (``""``: the level), sorted."""
        own = str(self.document.level)
        try:
            found = set(self.owner.names(f"{own}/{relative}" if relative else own))
        except UnsupportedError:
            if relative and self.node(relative) is None:
                return []
            raise
        prefix = f"{relative}/" if relative else ""
        for path, document in self.pending.items():
            if path.startswith(prefix) and "/" not in path[len(prefix) :]:
                (found.discard if document is None else found.add)(path[len(prefix) :])
        return sorted(found)

    def cells(self, relative: str) -> CellArray | None:
        """An array with one cell for each chunk, or ``None``."""
        as_stored = self._takes_as_stored and self.is_settled
        array = open_again(self.owner.store, child(self.path, relative), self._seen) if as_stored else None
        if array is None:
            node = self.node(relative)
            if node is None:
                return None
            if not isinstance(node, ArrayMetadata):
                reason = "a group is stored where an array of cells belongs"
                raise CorruptionError(reason, array=child(self.path, relative))
            array = CellArray.open(self.owner.store, child(self.path, relative), node)
        if array is None:
            return None
        if array.rank != self.rank:
            reason = f"an array of {array.rank} axes, where the level's chunks have {self.rank}"
            raise CorruptionError(reason, array=child(self.path, relative))
        changed = None if self.log is None else self.log.cells.get(relative)
        if changed is not None and changed.places.shape[1] != array.rank:
            raise CorruptionError(
                "the log of a change has other chunks than the level", array=child(self.path, relative)
            )
        return SteadyCells(array.array, array.origin, lambda: self._again(relative), changed)

    def _again(self, relative: str) -> CellArray | None:
        """An array of cells by the newest documents; ``None`` where there is none, or only in another state of all."""
        newer = self.owner.level(self.document.level)
        own, others = (own_attributes(each.document.attributes) for each in (self, newer))
        if own != others and not self._settled_as(newer):
            return None
        return newer.cells(relative)

    def _settled_as(self, newer: Level) -> bool:
        """Whether ``newer`` is this level, with the change carried out that was agreed on."""
        own = own_attributes(self.document.attributes, PENDING, LOG)
        return newer.is_settled and own == own_attributes(newer.document.attributes)

    def table(self, relative: str) -> Array | None:
        """An array with one row for each object or group, or ``None``."""
        node = self.node(relative)
        if not isinstance(node, ArrayMetadata):
            return None
        array = Array(self.owner.store, child(self.path, relative), node)
        leave_to_owner(array._handle)
        return array

    def values(self, relative: str) -> Table | None:
        """What an array with one row for each object or group holds, and the array; ``None`` where there is none."""
        return read_table(lambda: self.table(relative), None if self.log is None else self.log.rows.get(relative))

    def attributes(self, relative: str) -> Mapping[str, Any] | None:
        """The attributes of a node, or ``None`` where there is none."""
        node = self.node(relative)
        return None if node is None else node.attributes


def _parsed(parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What ``parse`` makes of attributes; numbers that no machine type holds are damage like any other."""
    try:
        return parse(*args, **kwargs)
    except (TypeError, ArithmeticError) as fault:
        raise MetadataError(f"a document of the store is invalid: {fault}") from None


def _has(node: NodeMetadata | None, attribute: str) -> bool:
    return isinstance(node, GroupMetadata) and attribute in node.attributes


def _above_the_newer(finished: Sequence[int], newer: Iterable[bool]) -> list[int]:
    """The levels above the first one that was changed since those above it were made."""
    first = next((number for number, each in zip(finished, newer, strict=False) if each), None)
    return [number for number in finished if first is not None and number > first]


def named_levels(root: RootDocument) -> list[str]:
    """The paths of the levels that the root document names, as they stand there."""
    return [str(each.get("path")) for each in datasets_of(root.attributes)]


def datasets_of(attributes: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the ``attributes`` of a root group say of each level; entries that make no sense are left out."""
    entries = attributes["multiscales"][0].get("datasets")
    return [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list | tuple) else []
