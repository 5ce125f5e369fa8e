"""Making a new store: everything is worked out and checked first, and the root document is written last.

What a writer that was killed leaves has no root document, or far away one with the mark of a group that is being
written (:mod:`zardine.hierarchy.unfinished`), and is erased by the next one.

Another store in the place of one that is there, so that one of both can always be had: the new arrays are stored beside
the old ones, as in an edit (:mod:`zardine.vectors.storing.transactions`). One write of level 0's document agrees on the
change: it says that the level has no vertices, and under ``zardine_next`` all that is to become of the store. Then what
lies beside the level goes, the root document is replaced, and the level is filled. Who is killed in between leaves a
store that cannot be read until the next writer, or ``repair``, brings that to an end.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypedDict

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.freshness import is_far
from zardine.engine.workers import in_background
from zardine.errors import (
    ConditionFailedError,
    ContainsGroupError,
    DataError,
    NodeExistsError,
    StoreError,
    UnfinishedError,
    ZardineError,
)
from zardine.hierarchy.ancestors import create_groups, missing_ancestors
from zardine.hierarchy.create import create_ancestors, erase_node
from zardine.hierarchy.find import (
    HIDDEN,
    UNFINISHED_NODE,
    Seen,
    child_names,
    describe,
    document_key,
    find_node,
    location,
    nothing_is_at,
    taken,
)
from zardine.hierarchy.place import find_place
from zardine.hierarchy.unfinished import marked
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata, parse_node_json
from zardine.metadata.node_names import normalize_path
from zardine.stores.base import Condition, Store, Version
from zardine.stores.file_seam import files_to_read
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import (
    Attributes,
    Box,
    GroupsLike,
    Lengths,
    OutOfBounds,
    as_corners,
    checked_ids,
    checked_shapes,
    plain_array,
    shown,
)
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.content import Content, Groups, Objects
from zardine.vectors.content.parts import Blocks
from zardine.vectors.content.plan import Grid, Node, families_in, grid_of, group, level_attributes, plan_level
from zardine.vectors.content.point_content import groups_of
from zardine.vectors.format.documents import KINDS, LEVEL, new_level, new_root, plain_axes
from zardine.vectors.format.layouts import SHARDED_NOTE, CodecsLike, Layout, Shards, layout_from
from zardine.vectors.format.ragged import are_distinct, bounds_of
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.claims import claimed
from zardine.vectors.storing.commits import note_effect, telling_of_commits
from zardine.vectors.storing.level_nodes import nodes_below
from zardine.vectors.storing.node_writing import (
    OTHER,
    USUAL,
    document_of,
    erase_objects,
    separator_of,
    write_document,
    write_nodes,
    write_side_by_side,
)
from zardine.vectors.storing.store import NEXT, ORIGIN, PENDING, UNFINISHED, WRITER, VectorStore
from zardine.vectors.storing.transactions import carry_out, finish, replace_below, settle

_Corners = tuple[tuple[float, ...], tuple[float, ...]]


_BY: Final = "zardine.vectors"
"""Who writes a store whose root has the mark of a group that is being written."""

REPLACED = "overwrite=True replaces it"
"""What can be done where something is stored already."""


class StoreOptions(TypedDict, total=False):
    """Options of every writer; see :func:`zardine.vectors.write_points`."""

    chunk_shape: Lengths
    bin_shape: Lengths
    shard_shape: Shards
    codec_config: CodecsLike
    compressor: CodecsLike
    checksum: bool | None
    bounds: Box
    out_of_bounds: OutOfBounds
    axes: Sequence[str | Mapping[str, Any]] | None
    crs: Mapping[str, Any] | None
    overwrite: bool


@dataclass(frozen=True, slots=True)
class GivenObjects:
    """What a user says of the objects of a new store, or of new objects; see :func:`zardine.vectors.write_points`."""

    ids: npt.ArrayLike | None = None
    attributes: Attributes = None
    groups: GroupsLike = None
    group_attributes: Attributes = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Options, checked against the positions."""

    chunk_shape: tuple[float, ...]
    bin_shape: tuple[float, ...] | None
    bounds: _Corners
    kept: npt.NDArray[np.bool_] | None
    """Which positions are to be stored; ``None``: all."""
    layout: Layout
    axes: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStore:
    """What a new store is to be, beside its content."""

    kind: str
    chunk_shape: tuple[float, ...]
    bin_shape: tuple[float, ...] | None
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    grid: Grid
    axes: Sequence[Mapping[str, Any]]
    crs: Mapping[str, Any] | None = None
    origin: str | None = None
    """What the root document says under :data:`~zardine.vectors.storing.store.ORIGIN`."""


def check_options(options: StoreOptions) -> None:
    """Raise ``TypeError``, as for any argument that a function does not have, for names that are no options."""
    known = StoreOptions.__annotations__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}; there are {', '.join(known)}")


def rank_of(options: StoreOptions) -> int | None:
    """Return how many axes space has, where the options tell."""
    bounds = options.get("bounds")
    return None if bounds is None else np.atleast_2d(as_corners(plain_array(bounds, "bounds"))).shape[-1]


def prepare(
    positions: npt.NDArray[Any], options: StoreOptions, *, may_ignore: bool, count: int | None = None
) -> Prepared:
    """Check the options for ``positions``, or for the lowest and the highest corner of ``count`` positions.

    ``may_ignore``: whether single positions can be left out. Raises :class:`~zardine.errors.DataError`.
    """
    rank = positions.shape[1]
    outside = options.get("out_of_bounds", "raise")
    if outside == "ignore" and not may_ignore:
        raise DataError(
            "out_of_bounds='ignore' leaves out points: what has vertices outside of the bounds stays whole, so leave "
            "it out yourself, or let the bounds grow by 'expand'"
        )
    bounds, kept = checked_bounds(options.get("bounds"), positions, outside)
    many = len(positions) if count is None else count
    chunks, bins = checked_shapes(options.get("chunk_shape"), options.get("bin_shape"), bounds, many)
    codecs = options.get("compressor"), options.get("codec_config"), options.get("checksum")
    layout = layout_from(options.get("shard_shape"), *codecs, rank)
    return Prepared(chunks, bins, bounds, kept, layout, plain_axes(options.get("axes"), rank))


def checked_bounds(
    bounds: Any, positions: Any, out_of_bounds: str
) -> tuple[tuple[tuple[float, ...], tuple[float, ...]], Any]:
    """The bounds of a new store, and which positions are to be stored (``None``: all).

    ``out_of_bounds`` says what happens to positions outside of ``bounds``: ``"raise"``, ``"ignore"`` (they are left
    out) or ``"expand"`` (the bounds grow). Raises :class:`~zardine.errors.DataError`.
    """
    if out_of_bounds not in ("raise", "ignore", "expand"):
        raise DataError(f"out_of_bounds is 'raise', 'ignore' or 'expand', not {out_of_bounds!r}")
    rank = positions.shape[1]
    low = high = None
    if len(positions):
        low, high = (corner.astype(np.float64) for corner in bounds_of(positions))
    if bounds is None:
        if low is None or high is None:
            raise DataError("there are no positions: give bounds=(lowest, highest corner) for an empty store")
        return (tuple(low.tolist()), tuple(high.tolist())), None
    try:
        corners = as_corners(plain_array(bounds, "bounds").astype(np.float64))
    except (TypeError, ValueError, OverflowError):
        corners = np.zeros(0)
    if corners.shape != (2, rank) or not np.isfinite(corners).all() or (corners[0] > corners[1]).any():
        raise DataError(f"bounds {shown(bounds)} are no lowest and highest corner of {rank} coordinates each")
    kept = None
    if low is not None and high is not None and ((low < corners[0]).any() or (high > corners[1]).any()):
        if out_of_bounds == "raise":
            raise DataError(f"positions from {low} to {high} are outside of the bounds {corners.tolist()}")
        if out_of_bounds == "ignore":
            kept = ((positions >= corners[0]) & (positions <= corners[1])).all(axis=1)
        else:
            corners = np.array([np.minimum(low, corners[0]), np.maximum(high, corners[1])])
    return (tuple(corners[0].tolist()), tuple(corners[1].tolist())), kept


def new_objects(given: GivenObjects, count: int) -> tuple[Objects, Groups | None]:
    """Make ``count`` objects without fragments (without ids: numbered from 0), and groups.

    Raises :class:`~zardine.errors.DataError`.
    """
    found = np.arange(count) if given.ids is None else checked_ids(given.ids, count, "object_ids")
    if not are_distinct(found):
        raise DataError("object_ids: each id can be there once")
    none = np.zeros(0, np.int64)
    objects = Objects(found, none, none, columns_of(given.attributes, count, "objects"))
    return objects, groups_of(given.groups, given.group_attributes, found)


def object_rows(given: GivenObjects, count: int) -> tuple[Objects, Ints, Groups | None]:
    """Make objects for ``count`` vertices with ids (without: all are object 0); gives the row of each vertex's object.

    Attributes have a row for each distinct id, ascending. Raises :class:`~zardine.errors.DataError`.
    """
    ids = np.zeros(count, np.int64) if given.ids is None else checked_ids(given.ids, count, "object_ids")
    distinct, row = np.unique(ids, return_inverse=True)
    if count == 0 and given.ids is None and not checked_mapping(given.attributes):
        distinct = np.zeros(1, np.int64)
    objects, found = new_objects(replace(given, ids=distinct), len(distinct))
    return objects, row.reshape(-1).astype(np.int64), found


def new_store(kind: str, keys: Ints, prepared: Prepared, options: StoreOptions, origin: str | None = None) -> NewStore:
    """Return what a new store is to be that has vertices in the chunks ``keys``."""
    return NewStore(
        kind=kind,
        chunk_shape=prepared.chunk_shape,
        bin_shape=prepared.bin_shape,
        bounds=prepared.bounds,
        grid=grid_of(keys, prepared.bounds, prepared.chunk_shape, prepared.layout),
        axes=prepared.axes,
        crs=options.get("crs"),
        origin=origin,
    )


def write_store(path: StoreLike, content: Content, new: NewStore, *, overwrite: bool = False) -> None:
    """Write a store of one level, which holds ``content``; others that write here wait. As :func:`write_planned`."""
    store, inner = find_place(path, mode="a")

    def attributes(nodes: Sequence[Node]) -> dict[str, Any]:
        return level_attributes(content, 0, nodes)

    nodes = plan_level(content, new.grid, always_links=KINDS[new.kind].links)
    write_planned(store, inner, nodes, attributes, new, overwrite=overwrite)


def level_in_parts(blocks: Blocks, nodes: Sequence[Node]) -> dict[str, Any]:
    """Return the attributes of level 0, whose vertices are in ``blocks`` and that consists of ``nodes``."""
    count = int(blocks.counts.sum())
    return new_level(0, count, families_in(nodes), fragments_tile=True if count else None)


def check_room(path: StoreLike, overwrite: bool) -> None:
    """Raise :class:`~zardine.errors.NodeExistsError` where no store can be written, before there is much to write."""
    store, inner = find_place(path, mode="a")
    normalize_path(inner, 3)
    node = None if overwrite else find_node(store, inner)
    if node is not None and _mark_of(node) is None:
        raise taken(store, inner, node, REPLACED)


def write_planned(
    store: Store,
    inner: str,
    nodes: Iterable[Node],
    attributes: Callable[[Sequence[Node]], Mapping[str, Any]],
    new: NewStore,
    *,
    overwrite: bool,
) -> None:
    """Write a store whose only level consists of ``nodes``, which say its ``attributes``; others that write here wait.

    While a node is stored the next one may be planned. With ``overwrite`` an old store is there until one write changes
    to the new one.

    Raises :class:`~zardine.errors.NodeExistsError` where something is stored at the place and ``overwrite`` is false.
    An error leaves nothing that can be opened; or the whole store, if the root document cannot be erased again, and
    then it is a :class:`~zardine.errors.CommittedError`.
    """
    normalize_path(inner, 3)
    root = group(root_attributes(store, inner, new))
    level = child(inner, "0")
    with telling_of_commits(store, inner):
        if overwrite:
            nodes = list(nodes)
            if replace_store(store, inner, nodes, attributes(nodes), root):
                return
        is_written = False
        try:
            with store.lock(child(level, "zarr.json")):  # who writes here now is no writer that was killed
                write = _write_marked if is_far(store) else _write_near
                write(store, inner, nodes, attributes, root, overwrite=overwrite)
                is_written = True
        except BaseException as error:
            if is_written:  # Ctrl-C came while the lock was let go
                note_effect(error, True)
            raise


def _write_near(
    store: Store,
    inner: str,
    nodes: Iterable[Node],
    attributes: Callable[[Sequence[Node]], Mapping[str, Any]],
    root: GroupMetadata,
    *,
    overwrite: bool,
) -> None:
    """Write a store where a request takes little time; the root document comes last."""
    level = child(inner, "0")
    make_room(store, inner, overwrite)
    has_root = False  # or may have, if storing it failed
    try:
        first = write_document(store, level, group({UNFINISHED: True}))
        written = attributes(write_nodes(store, level, nodes))
        condition = None if first is None else Condition(first)
        version = write_document(store, level, group(written), condition=condition)
        create_ancestors(store, inner)
        has_root = True
        write_document(store, inner, root)
        if store.has_cheap_looks and version is not None:
            _check_kept(store, level, version)
    except BaseException as error:
        is_lost = isinstance(error, ConditionFailedError)
        if has_root:  # else an equal document is that of another writer
            _erase_root(store, inner, root)  # first: nobody opens what is erased in part
        is_left = has_root and _is_stored(store, inner, root)
        if is_left is False:
            with suppress(Exception):
                if not is_lost or store.lock_is_exclusive or not store.exists(document_key(level)):
                    store.erase_prefix(f"{level}/")  # else somebody else has begun one there since
        if is_lost:
            raise _erased_by_others(store, inner) from error
        note_effect(error, is_left)
        raise


def _is_stored(store: Store, path: str, root: GroupMetadata) -> bool | None:
    """Whether the root document is ``root``; ``None`` where that cannot be read."""
    try:
        found = store.get(document_key(path))
    except Exception:
        return None
    return found is not None and bytes(found) == document_of(root)


def _erase_root(store: Store, path: str, root: GroupMetadata) -> None:
    """Erase the root document if it is ``root``, as far as the store lets it."""
    key = document_key(path)
    with suppress(Exception):
        reading = store.read(key)
        if reading is not None and bytes(reading.parts[0]) == document_of(root):
            store.erase_version(key, reading.version)


def _write_marked(
    store: Store,
    inner: str,
    nodes: Iterable[Node],
    attributes: Callable[[Sequence[Node]], Mapping[str, Any]],
    root: GroupMetadata,
    *,
    overwrite: bool,
) -> None:
    """Write a store far away, in as few rounds of requests as can be.

    The root document comes first, with the mark of a group that is being written, which nobody opens, and again at the
    end: over the version that was stored first, so that it is noticed if somebody else has begun here meanwhile.
    """
    level, token, mark, has_begun = child(inner, "0"), secrets.token_hex(16), None, False

    def begin() -> None:
        nonlocal mark, has_begun
        above = in_background(partial(missing_ancestors, store, zarr_format=3), inner)
        make_room(store, inner, overwrite)
        create_groups(store, above())
        has_begun = True
        try:
            mark = _put_mark(store, inner, token, Condition(None))
        except ConditionFailedError as error:
            has_begun = False
            raise _met_others(store, inner) from error

    def about(made: Sequence[Node]) -> GroupMetadata:
        return group(attributes(made))

    try:
        write_side_by_side(store, level, nodes, first=begin, about=about)
        write_document(store, inner, root, condition=None if mark is None else Condition(mark))
    except BaseException as error:
        if isinstance(error, ConditionFailedError):
            raise _erased_by_others(store, inner) from error
        is_stored = _is_stored(store, inner, root) if has_begun else False
        if is_stored and isinstance(error, StoreError):
            return  # only the answer to the last write was lost
        note_effect(error, is_stored)
        if has_begun and is_stored is False:
            with suppress(Exception):
                _erase_begun(store, inner, token)
        raise


def _put_mark(store: Store, path: str, token: str, condition: Condition | None) -> Version | None:
    return write_document(store, path, marked(group({}), _BY, token), condition=condition)


def _erase_begun(store: Store, path: str, token: str | None = None) -> bool:
    """Remove what was written of a store whose root has the mark of one that is being written; whether it has that.

    With ``token`` only if it is that one's. The mark is put anew first, so that its writer, who may live, notices that
    it is taken over. Raises :class:`~zardine.errors.ConditionFailedError` if it was before.
    """
    seen = Seen()
    mark = _mark_of(find_node(store, path, 3, seen=seen))
    if mark is None or (token is not None and mark.get("id") != token):
        return False
    condition = None if seen.version is None else Condition(seen.version)
    own = _put_mark(store, path, secrets.token_hex(16), condition)
    store.erase_prefix(f"{child(path, '0')}/")
    store.erase_version(document_key(path), own)
    return True


def _mark_of(node: NodeMetadata | None) -> Mapping[str, Any] | None:
    """The mark of a root whose store is being written, or whose writer was killed over that; ``None`` for others."""
    mark = node.unknown.get(UNFINISHED_NODE) if isinstance(node, GroupMetadata) else None
    return mark if isinstance(mark, Mapping) and mark.get("by") == _BY else None


def _met_others(store: Store, path: str) -> StoreError:
    return StoreError(f"somebody else writes {describe(store, path)} just now: try again later")


def _erased_by_others(store: Store, path: str) -> StoreError:
    return StoreError(f"somebody else has erased {describe(store, path)} while it was written")


def _check_kept(store: Store, level: str, version: Version) -> None:
    """Raise :class:`~zardine.errors.ConditionFailedError` if what was written was erased before it was found."""
    key = document_key(level)
    if not store.is_unchanged(key, version):
        raise ConditionFailedError(f"key {key!r} of {store} was changed since it was made")


def root_attributes(store: Store, path: str, new: NewStore) -> dict[str, Any]:
    """Return the attributes of the root group of a new store."""
    place = location(store, path).rstrip("/")
    name = place.rpartition("/")[2] if path or files_to_read(store) else "vectors"
    root = new_root(
        name=name.removesuffix(".zv").removesuffix(".zarrvectors"),
        chunk_shape=new.chunk_shape,
        bin_shape=new.bin_shape,
        bounds=new.bounds,
        kind=new.kind,
        convention=KINDS[new.kind].conventions[0],
        axes=new.axes,
        crs=new.crs,
        notes=SHARDED_NOTE if new.grid.layout.shard_shape else None,
    )
    return root if new.origin is None else {**root, ORIGIN: new.origin}


def make_room(store: Store, path: str, overwrite: bool) -> None:
    """Remove what a killed writer left, and with ``overwrite`` what is stored.

    Raises :class:`~zardine.errors.NodeExistsError` where something is that stays, or is being written by jobs.
    """
    if store.cost.is_slow and nothing_is_at(store, path):  # one look instead of one at each document that may be
        return
    node = find_node(store, path)
    if _mark_of(node) is not None:
        try:
            _erase_begun(store, path)
        except ConditionFailedError as error:
            raise _met_others(store, path) from error
        return
    prefix = f"{path}/" if path else ""
    if node is not None:
        if not overwrite:
            raise taken(store, path, node, REPLACED)
        store.erase(child(path, "zarr.json"))
        keys, folders = store.list_dir(prefix)
        store.erase_values(keys)
        for each in folders:
            if not each[len(prefix) :].startswith(HIDDEN):  # an import that is under way reads what it keeps there
                store.erase_prefix(each)
        return
    leftover = find_node(store, child(path, "0"), 3)
    if leftover is None:
        below = f"{child(path, '0')}/"
        if overwrite and any(store.list_dir(below)):
            store.erase_prefix(below)  # chunks of a store whose removal was cut off when its documents were gone
        return
    if WRITER in leftover.attributes:
        raise NodeExistsError(
            f"the jobs of a plan are writing {describe(store, path)}: finish it, or cancel() it, before something else "
            "is written there"
        )
    if not erase_leftover(store, path):
        raise ContainsGroupError(f"something that is no Zarr Vectors store is at {describe(store, child(path, '0'))}")


def erase_leftover(store: Store, path: str) -> bool:
    """Remove what a writer has left who was killed before there was a store; whether there was something.

    What the jobs of a plan write stays.
    """
    level, root = child(path, "0"), find_node(store, path)
    if _mark_of(root) is not None:
        return _erase_begun(store, path)
    found = find_node(store, level, 3) if root is None else None
    named = set(found.attributes) if isinstance(found, GroupMetadata) else set()
    is_ours = bool(named & {UNFINISHED, LEVEL}) and WRITER not in named
    if is_ours:
        store.erase_prefix(f"{level}/")
    return is_ours


def complete_all(store: Store, path: str) -> None:
    """Bring to an end what is left to do on the store at ``path`` since it took the place of another."""
    place = child(path, "0")
    with store.lock(child(place, "zarr.json")), claimed(store, place) as store:
        complete(store, path)
        owner = VectorStore.open(StorePath(store, path), writable=True)
        finish(owner.level(0))
        level = owner.level(0)
        for each in nodes_below(level):
            node = level.node(each)
            if isinstance(node, ArrayMetadata):
                settle(store, child(level.path, each), node)


def replace_store(
    store: Store, path: str, nodes: Sequence[Node], attributes: Mapping[str, Any], root: GroupMetadata
) -> bool:
    """Put a store of one level in the place of the one at ``path``; ``False`` where none is that can be opened."""
    place = child(path, "0")
    with store.lock(child(place, "zarr.json")), claimed(store, place) as store:
        try:
            complete(store, path)
            owner = VectorStore.open(StorePath(store, path), writable=True)
            finish(owner.level(0))
            level = owner.level(0)
        except ZardineError as error:
            if isinstance(error, StoreError) and not isinstance(error, UnfinishedError):
                raise  # what cannot be read at present is not damaged, and would be erased before the new one is there
            return False
        there = {node.path for node in nodes}
        removed = [name for name in nodes_below(level) if name not in there]

        def agreed(pending: Mapping[str, Any]) -> dict[str, Any]:
            nothing = dict.fromkeys(["vertices", *pending])
            block = new_level(0, 0, [])[LEVEL]
            to_come = {"root": root.to_dict(), "attributes": dict(attributes), "pending": dict(pending)}
            return {LEVEL: block, PENDING: nothing, NEXT: to_come}

        is_committed = False
        try:
            old = level.document.attributes
            replace_below(store, place, nodes, removed, agreed, old, afresh=True, is_whole=True)
            is_committed = True
            complete(store, path)
        except BaseException as error:
            if is_committed:
                note_effect(error, True)
            with suppress(Exception):
                complete(store, path)  # if the change is committed: nobody can read the store before that
            raise
    return True


def complete(store: Store, path: str) -> None:
    """Bring to an end what :func:`replace_store` agreed on."""
    place = child(path, "0")
    level = find_node(store, place, 3)
    if not isinstance(level, GroupMetadata) or NEXT not in level.attributes:
        return
    to_come: Mapping[str, Any] = level.attributes[NEXT]
    for name in list(child_names(store, path)):
        if name != "0":
            erase_node(store, child(path, name), is_owned=True)
    if not is_far(store):  # the disk may be full: old objects make room for the documents
        _erase_old_objects(store, place, to_come["pending"])
    write_document(store, path, parse_node_json(to_come["root"], "the next root document"))
    write_document(store, place, group({**to_come["attributes"], PENDING: to_come["pending"]}))
    carry_out(store, place)


def _erase_old_objects(store: Store, place: str, pending: Mapping[str, Any]) -> None:
    """Erase the objects of arrays that ``pending`` documents, by path below ``place``, do not use."""
    for relative, document in pending.items():
        metadata = None if document is None else parse_node_json(document, f"the pending document of {relative}")
        if isinstance(metadata, ArrayMetadata):
            erase_objects(store, child(place, relative), USUAL if separator_of(metadata) == OTHER else OTHER)
