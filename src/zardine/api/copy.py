"""Copying arrays, hierarchies and raw keys: ``copy``, ``copy_all``, ``copy_store``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Condition, Lock
from types import MappingProxyType
from typing import Any, Final, TypeAlias, Unpack

from zardine.buffers import BytesLike
from zardine.engine.read_ahead import window_bytes
from zardine.engine.workers import for_each, most_between
from zardine.errors import ConditionFailedError, ContainsArrayError, ContainsGroupError, MetadataError
from zardine.hierarchy.create import create_ancestors, erase_documents, is_document, read_value
from zardine.hierarchy.find import describe, find_node, implied_group, names_of
from zardine.hierarchy.place import check_new_place, find_place, is_within, same_place
from zardine.limits import CHUNK, limit_of
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, format_of_new, main_names
from zardine.metadata.node_names import join_path, normalize_path
from zardine.nodes.array import Array
from zardine.nodes.create_array import check_source_stays, copy_values, from_array
from zardine.nodes.group import Group, create_group
from zardine.nodes.incomplete import erase_new_array, erased_if_incomplete
from zardine.nodes.options import CopyOptions
from zardine.stores.base import Store, Version
from zardine.stores.resolve import StoreLike

Log = Callable[[str], object] | None


def copy(
    source: object,
    dest: Group,
    name: str | None = None,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: str = "raise",
    dry_run: bool = False,
    **create_kwargs: Unpack[CopyOptions],
) -> tuple[int, int, int]:
    """Copy an array, or a group and all below it, into the group ``dest``.

    ``source`` is a zardine node, or one of h5py or zarr-python. Values are decoded and encoded again, so that
    ``create_kwargs`` may choose other chunks, shards and codecs. ``shallow`` copies only the direct members of a
    group. Copies are of the version of Zarr of ``dest``, unless ``zarr_format`` says another. ``if_exists`` is
    ``"raise"``, ``"replace"``, ``"skip"`` or ``"skip_initialized"``; ``log`` gets a line for each node. Gives the
    numbers of nodes copied, nodes skipped, and bytes (in memory) copied. Groups of zardine far away, or copied to such
    a store, are copied depth by depth, with several nodes at a time: then lines of a depth come in any order. After an
    error nothing is left of the copy with ``if_exists="raise"``; else the nodes that are complete stay.
    """
    _check_group(dest, "dest")
    copying = _copying(dest, shallow, without_attrs, log, if_exists, dry_run, create_kwargs)
    if not hasattr(source, "attrs"):
        raise TypeError(f"source is an array or a group, not {type(source).__name__}: open it first")
    node: Any = source
    name = name if name is not None else normalize_path(getattr(node, "basename", node.name.rpartition("/")[2]))
    if not name:
        raise ValueError("the root of a store has no name: give one for the copy")
    copying.copy_nodes([(partial(_same, node), name)], dest)
    return copying.copied, copying.skipped, copying.nbytes


def _copying(
    dest: Group,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: str = "raise",
    dry_run: bool = False,
    create_kwargs: Mapping[str, Any] = MappingProxyType({}),
) -> _Copying:
    """Check the arguments of :func:`copy`."""
    if if_exists not in ("raise", "replace", "skip", "skip_initialized"):
        raise ValueError(f"if_exists is 'raise', 'replace', 'skip' or 'skip_initialized', not {if_exists!r}")
    if "overwrite" in create_kwargs:
        raise TypeError("unexpected argument 'overwrite': if_exists='replace' replaces what is there")
    options: dict[str, Any] = {"zarr_format": dest.metadata.zarr_format, **create_kwargs}
    return _Copying(shallow, without_attrs, log or (lambda line: None), if_exists, dry_run, options)


class CopyAllOptions(CopyOptions, total=False):
    """What :func:`copy_all` passes to :func:`copy`."""

    without_attrs: bool
    log: Log
    if_exists: str
    dry_run: bool


def copy_all(
    source: object, dest: Group, shallow: bool = False, **kwargs: Unpack[CopyAllOptions]
) -> tuple[int, int, int]:
    """Copy all members of the group ``source`` into the group ``dest``; takes what :func:`copy` takes."""
    _check_group(source, "source")
    _check_group(dest, "dest")
    group: Any = source
    chosen: dict[str, Any] = dict(kwargs)
    options = {name: chosen.pop(name) for name in _COPY_ALL if name in chosen}
    copying = _copying(dest, shallow, create_kwargs=chosen, **options)
    copying.copy_nodes([(partial(group.__getitem__, name), name) for name in group], dest)
    if not copying.dry_run and not copying.without_attrs:
        dest.attrs.update(dict(group.attrs))
    return copying.copied, copying.skipped, copying.nbytes


_COPY_ALL: Final = ("without_attrs", "log", "if_exists", "dry_run")
"""Options of :func:`copy_all` that are not arguments of the creation of arrays."""


def copy_store(
    source: StoreLike,
    dest: StoreLike,
    source_path: str = "",
    dest_path: str = "",
    excludes: Iterable[str] | str | None = None,
    includes: Iterable[str] | str | None = None,
    flags: int = 0,
    if_exists: str = "raise",
    dry_run: bool = False,
    log: Log = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> tuple[int, int, int]:
    """Copy keys and their bytes from one store to another, without decoding anything.

    Keys that match one of the regular expressions ``excludes`` are left out, unless they match one of ``includes``.
    ``if_exists`` is ``"raise"``, ``"replace"`` or ``"skip"``; with ``"raise"`` nothing is copied if any key is there.
    ``storage_options`` are for ``source``, ``target_options`` for ``dest``. Gives the numbers of keys copied, keys
    skipped, and bytes copied. A link out of ``source``, or to nowhere, is a :class:`~zardine.errors.StoreError`.
    After an error the keys that were copied are erased again with ``"raise"``; else they stay.
    """
    import re

    if if_exists not in ("raise", "replace", "skip"):
        raise ValueError(f"if_exists is 'raise', 'replace' or 'skip', not {if_exists!r}")
    excluded = [re.compile(each, flags) for each in _patterns(excludes)]
    included = [re.compile(each, flags) for each in _patterns(includes)]
    origin, prefix = find_place(source, source_path, storage_options=storage_options)
    target, outer = find_place(dest, dest_path, storage_options=target_options)
    say = log or (lambda line: None)
    source_root, prefix = prefix, f"{prefix}/" if prefix else ""

    def is_wanted(key: str) -> bool:
        relative = key[len(prefix) :]
        return not any(each.search(relative) for each in excluded) or any(each.search(relative) for each in included)

    keys = [(key, join_path(outer, key[len(prefix) :])) for key in origin.list_prefix(prefix) if is_wanted(key)]
    for key, _ in origin.left_out(prefix):
        if is_wanted(key):
            origin.version(key)  # an error where it is a link that is not followed
    is_there = target.exists if if_exists == "replace" or not target.cost.is_slow else _listed(target, outer)
    if if_exists == "raise":
        there = next((new for _, new in keys if is_there(new)), None)
        if there is not None:
            raise ContainsArrayError(f"key {there!r} is already stored in {target}; nothing was copied")
    version = _check_nodes(target, outer, {new for _, new in keys}, partial(_node_at, origin, source_root))
    if version == 2 and not dry_run:  # in v3 they are implied
        create_ancestors(target, outer, version)
    room, lock = _Room(window_bytes()), Lock()
    copied = skipped = nbytes = 0

    def copy_key(names: tuple[str, str]) -> None:
        nonlocal copied, skipped, nbytes
        old, new = names
        with _held(origin, old, room) as value:
            passes = value is None or (if_exists == "skip" and is_there(new))
            with lock:
                say(f"skip {old}" if passes else f"copy {old}")
                skipped, copied = skipped + passes, copied + (not passes)
            if value is not None and not passes and not dry_run:
                made[new] = None
                made[new] = target.set(new, value)
                with lock:
                    nbytes += len(value)

    made: dict[str, Version | None] = {}
    try:
        for documents in (False, True):  # documents come last, so that nobody finds half of a node
            some = [names for names in keys if is_document(names[0]) is documents]
            for_each(copy_key, some, len(some), most_between(origin, target, threads=1))
    except BaseException as error:
        left = len(made)
        if if_exists == "raise":  # there was none of these keys before
            for new in sorted(made, key=is_document, reverse=True):
                with suppress(Exception):
                    target.erase_version(new, made[new])
                    left -= 1
        if left:
            error.add_note(f"{left} keys that had been copied stay; if_exists='replace' copies all of them again")
        elif made:
            error.add_note("what had been copied was erased again")
        raise
    return copied, skipped, nbytes


def _node_at(store: Store, path: str) -> NodeMetadata | None:
    """Return the node at ``path``; ``None`` also where its document is damaged, which is copied as it is."""
    try:
        return find_node(store, path)
    except MetadataError:
        return None


def _check_nodes(store: Store, path: str, keys: Collection[str], root: Callable[[], NodeMetadata | None]) -> int | None:
    """Check that the nodes whose documents are among ``keys`` may be at and below ``path``; return their version.

    ``root`` returns the node that is copied to ``path``. ``None``: no document is among the keys. Raises as creating
    does.
    """
    versions = [version for version in (3, 2) for name in main_names(version) if join_path(path, name) in keys]
    for key in keys:
        place, _, name = key.rpartition("/")
        for version in (3, 2):
            if name in main_names(version):
                normalize_path(place, version)
                versions.append(version)
    if not versions:
        return None
    check_new_place(store, path, versions[0])
    if isinstance(root(), ArrayMetadata) and implied_group(store, path) is not None:
        raise ContainsGroupError(
            f"nodes are stored below {describe(store, path)}, which an array there would hide: copy to another place"
        )
    return versions[0]


def _listed(store: Store, path: str) -> Callable[[str], bool]:
    """Return what tells whether a key below ``path`` is there, by one look at the names."""
    return frozenset(store.list_prefix(f"{path}/" if path else "")).__contains__


_SMALL: Final = 2**20
"""Bytes for which there is room for each of several values, though nobody knows how long they are."""


class _Room:
    """Bytes of values that several threads hold at the same time: ``most``, or one value."""

    def __init__(self, most: int) -> None:
        self._most, self._taken, self._changed = most, 0, Condition()
        self.longest = _SMALL
        """The most bytes of a value that was seen, or that are expected of one."""

    @contextmanager
    def take(self, nbytes: int) -> Iterator[None]:
        """Wait until there is room for so many bytes, which are held within the context."""
        with self._changed:
            while self._taken and self._taken + nbytes > self._most:
                self._changed.wait()
            self._taken += nbytes
        try:
            yield
        finally:
            with self._changed:
                self._taken -= nbytes
                self._changed.notify_all()


@contextmanager
def _held(store: Store, key: str, room: _Room) -> Iterator[BytesLike | None]:
    """Read a value to copy as :func:`~zardine.hierarchy.create.read_value` does, when there is room for it."""
    expected = room.longest
    with room.take(expected):
        reading = store.read_up_to(key, expected)
        if reading is None or reading.parts:
            yield None if reading is None else reading.parts[0]
            return
    room.longest = max(room.longest, min(reading.size, limit_of(CHUNK)))
    with room.take(min(reading.size, limit_of(CHUNK))):
        yield read_value(store, key)


_TWICE: Final = 2
"""Values of an array are in memory decoded and encoded."""

_Member: TypeAlias = tuple[Callable[[], Any], Group, str]
"""What opens a node, the group that it is to be copied into, and its name there."""


@dataclass
class _Copying:
    """What :func:`copy` was asked for, and what it did so far."""

    shallow: bool
    without_attrs: bool
    say: Callable[[str], object]
    if_exists: str
    dry_run: bool
    create_kwargs: Mapping[str, Any]
    copied: int = 0
    skipped: int = 0
    nbytes: int = 0

    room: _Room = field(default_factory=lambda: _Room(window_bytes()))
    """For arrays that are copied at the same time."""
    lock: Lock = field(default_factory=Lock)
    """Held to count, and to say something."""

    made: list[Array | Group] = field(default_factory=list)
    """New nodes that are complete but for nodes below them, where nothing was before."""
    old_groups: list[tuple[Group, Mapping[str, Any]]] = field(default_factory=list)
    """Groups that were there before, and the attributes that they get when all is copied."""

    def copy_nodes(self, members: Iterable[tuple[Callable[[], Any], str]], dest: Group) -> None:
        """Copy nodes, and all below them, as members of ``dest``; ``members`` has what opens each, and its new name.

        After an error nothing new is left with ``if_exists="raise"``, so that the same call works then. Else the nodes
        that are complete stay, which the same call replaces or skips.
        """
        try:
            for opened, name in members:
                self._copy_node(opened, dest._past_consolidated(), name)
            for group, attributes in self.old_groups:
                group.attrs.update(attributes)
        except BaseException as error:
            self._end(error)
            raise
        if not self.dry_run and self.copied:
            for _, name in members:
                dest._take_over(normalize_path(name, dest.metadata.zarr_format))

    def _end(self, error: BaseException) -> None:
        """Erase what was made, or say in ``error`` that it stays."""
        left = len(self.made)
        if self.if_exists == "raise":
            for node in reversed(self.made):  # groups after what is in them
                with suppress(Exception):
                    _erase_new(node)
                    left -= 1
            if self.made and not left:
                error.add_note("what had been copied was erased again")
        if left:
            error.add_note(f"{left} arrays and groups that had been copied stay; if_exists='skip' goes on after them")

    def _copy_node(self, opened: Callable[[], Any], dest: Group, name: str) -> None:
        """Copy a node, and all below it, as the member ``name`` of ``dest``.

        One after the other; from or to a store far away those of a depth at the same time, as far as they are small.
        """
        source = opened()
        waiting: list[_Member] = [(partial(_same, source), dest, name)]
        threads = most_between(source.store, dest.store, threads=1) if isinstance(source, Array | Group) else 1
        if threads == 1:
            while waiting:
                waiting += self._copy_one(*waiting.pop())[::-1]
            return
        while waiting:
            below: dict[int, list[_Member]] = {}

            def copy_member(number: int, members: list[_Member] = waiting, below: Any = below) -> None:
                below[number] = self._copy_one(*members[number])

            for_each(copy_member, range(len(waiting)), len(waiting), threads)
            waiting = [each for number in range(len(waiting)) for each in below[number]]

    def _copy_one(self, opened: Callable[[], Any], dest: Group, name: str) -> list[_Member]:
        """Copy a node; gives the members that are to be copied: what opens each, the new group, and their names."""
        source = opened()
        attributes = {} if self.without_attrs else dict(source.attrs)
        old = dest.get(name)
        place = join_path(dest.path, name)
        if hasattr(source, "shape"):
            if old is not None:
                skip = self.if_exists == "skip" or (
                    self.if_exists == "skip_initialized"
                    and isinstance(old, Array)
                    and old.nchunks == old.nchunks_initialized
                )
                if skip:
                    self._say(f"skip /{place}")
                    self._count(skipped=1)
                    return []
                if self.if_exists == "raise":
                    kind = ContainsArrayError if isinstance(old, Array) else ContainsGroupError
                    raise kind(f"{describe(dest.store, place)} is there already; see if_exists")
            self._say(f"copy /{place} {source.shape} {source.dtype}")
            check_source_stays(source, dest.store, place)
            if not self.dry_run:
                array = from_array(
                    dest.store_path,
                    data=source,
                    name=name,
                    attributes=None if isinstance(source, Array) and not self.without_attrs else attributes,
                    overwrite=True,
                    write_data=False,
                    **self.create_kwargs,
                )
                with erased_if_incomplete(array, replaced=old is not None), self.room.take(self._room_for(array)):
                    copy_values(source if isinstance(source, Array) else source[...], array)
                self._note(array, old)
            self._count(copied=1, nbytes=0 if self.dry_run else array.nbytes)
            return []
        if isinstance(source, Group) and same_place(source.store, dest.store) and is_within(place, source.path):
            raise ValueError(f"cannot copy the group {source.name!r} into itself, to '/{place}'")
        if isinstance(old, Array):
            if self.if_exists == "raise":
                raise ContainsArrayError(f"{describe(dest.store, place)} is an array already; see if_exists")
            if self.if_exists != "replace":
                self._count(skipped=1)
                return []
            old = None
        self._say(f"copy /{place}/")
        self._count(copied=1)
        if self.dry_run:
            group = dest
        elif isinstance(old, Group):
            group = old
            self.old_groups += [(old, attributes)] * bool(attributes)
        else:
            group = create_group(
                dest.store_path,
                path=name,
                overwrite=old is None and name in dest,
                zarr_format=max(2, format_of_new(self.create_kwargs["zarr_format"])),
                attributes=attributes,
            )
            self._note(group, old)
        if isinstance(source, Group) and source.store.cost.is_slow:  # whose members were read with their names
            nodes = [(child, node) for child, node in source.items() if not self.shallow or isinstance(node, Array)]
            return [(partial(_same, node), group, child) for child, node in nodes]
        names = [child for child in source if not self.shallow or hasattr(source[child], "shape")]
        return [(partial(source.__getitem__, child), group, child) for child in names]

    def _note(self, node: Array | Group, old: object) -> None:
        if old is None:
            self.made.append(node)

    def _room_for(self, array: Array) -> int:
        """Bytes of memory, about, that it takes to copy an array."""
        return min(_TWICE * array.nbytes, window_bytes())

    def _say(self, line: str) -> None:
        with self.lock:
            self.say(line)

    def _count(self, *, copied: int = 0, skipped: int = 0, nbytes: int = 0) -> None:
        with self.lock:
            self.copied, self.skipped, self.nbytes = self.copied + copied, self.skipped + skipped, self.nbytes + nbytes


def _erase_new(node: Array | Group) -> None:
    """Erase a node that was just created; raise ``ConditionFailedError`` if others have changed it."""
    if isinstance(node, Array):
        erase_new_array(node)
        return
    store, prefix, own = node.store, f"{node.path}/" if node.path else "", names_of(node.metadata)
    if any(key[len(prefix) :] not in own for key in store.list_prefix(prefix)):
        raise ConditionFailedError(f"the group at {describe(store, node.path)} is not empty")
    erase_documents(store, node.path, node.metadata, None)


def _same(node: Any) -> Any:
    return node


def _check_group(value: Any, what: str) -> None:
    if hasattr(value, "shape") or not hasattr(value, "attrs"):
        raise TypeError(f"{what} is a group, not {type(value).__name__}: open it first, with open_group")


def _patterns(value: Iterable[str] | str | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
