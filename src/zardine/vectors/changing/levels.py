"""Levels as a whole: loading and replacing level 0, making and removing the others with all that refers to them.

A level that is being made or removed says so (``zardine_unfinished``), and that it has no vertices: one write makes it
unreadable, and it is listed nowhere by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.freshness import is_far
from zardine.engine.workers import beside, most_requests
from zardine.errors import DataError, ZardineError
from zardine.hierarchy.find import child_names, document_key, load_group, nothing_is_at
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import GroupMetadata
from zardine.stores.base import Reading, Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.links_between import nesting_of, put_links_between
from zardine.vectors.changing.patching import Patch, UnfitError
from zardine.vectors.content.content import Content
from zardine.vectors.content.plan import FAMILIES, Grid, Node, grid_of, group, level_attributes, plan_level, with_room
from zardine.vectors.format.documents import KINDS, LEVEL, ROOT, LevelBlock, dataset, new_level, ome
from zardine.vectors.format.links import parse_delta
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_links import load_links
from zardine.vectors.reading.loading_objects import load_groups, load_manifests, with_objects
from zardine.vectors.reading.query import ALL
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.level_nodes import (
    links_between,
    nodes_below,
    replaced_nodes,
    with_empty_groups,
)
from zardine.vectors.storing.logs import erase_dead_logs
from zardine.vectors.storing.node_writing import document_of, write_document, write_side_by_side
from zardine.vectors.storing.store import PENDING, UNFINISHED, Level, VectorStore, datasets_of, named_levels
from zardine.vectors.storing.touched import MADE, NEWER, touched_in, with_touched, without_age, without_all_links
from zardine.vectors.storing.transactions import at_next_revision, replace_nodes, settled_level

Newer: TypeAlias = Literal["vertices", "values"] | None
"""What of a level a change makes newer than the levels above; see :data:`NEWER`."""


class HeldPlace(StorePath):
    """The place of a store whose lock is held, with what was read since, for the first who opens it."""

    __slots__ = ("_owner", "_reading")

    def __init__(
        self,
        store: Store,
        path: str,
        owner: VectorStore | None,
        reading: Reading | None,
    ) -> None:
        super().__init__(store, path)
        self._owner = owner
        self._reading = reading

    def take(self) -> tuple[VectorStore | None, Reading | None]:
        """Return the store and the document of level 0, once."""
        found = self._owner, self._reading
        self._owner = self._reading = None
        return found


def open_to_change(path: StoreLike) -> Level:
    """Level 0 of a store, without changes that are not carried out yet. Raises :class:`~zardine.errors.DataError`."""
    owner, reading = path.take() if isinstance(path, HeldPlace) else (None, None)
    if owner is None:
        owner = VectorStore.open(path, writable=True)
    level = settled_level(owner, 0, reading)
    if level.document.block.get("chunk_attribute_name") is not None:
        raise DataError(f"{owner.name} is divided by an attribute: such stores can be read, not changed")
    return KeptLevel.of(level, to_change=True)


def open_to_update(owner: VectorStore, number: int) -> Level:
    """Any level of a store, as :func:`open_to_change`, whose caller holds the lock."""
    level = settled_level(owner, number)
    if number and not owner.store.lock_is_exclusive:  # of level 0 that was done by who holds the lock
        erase_dead_logs(owner.store, level.path, level.document.attributes)
    return KeptLevel.of(level, to_change=True)


def kind_of(level: Level) -> str:
    """The geometry of a store."""
    kinds = level.owner.root.geometry_types
    return kinds[0] if kinds else "point_cloud"


def load_whole(level: Level) -> Content:
    """Everything that a level holds, but links to other levels."""
    content = load_cells(level, vertex_attributes=ALL, fragment_attributes=ALL)
    content = with_objects(level, content, load_manifests(level), attributes=ALL)
    links = load_links(level, content, attributes=ALL)
    return replace(content, links={} if links is None else {0: links}, groups=load_groups(level))


def plan_whole(level: Level, content: Content, bounds: Any = None) -> list[Node]:
    """Every node of the layout for ``content``, stored as the level is; the grid has room before its first chunk."""
    vertices = level.cells("vertices")
    assert vertices is not None
    kind = KINDS.get(kind_of(level))
    corners = level.owner.root.bounds if bounds is None else bounds
    old = Grid(vertices.origin, vertices.array.shape, vertices.layout)
    grid = with_room(grid_of(content.keys, corners, level.document.chunk_shape, vertices.layout), old, content.keys)
    grid = replace(grid, layout=vertices.layout_for(grid.shape))
    return list(plan_level(content, grid, always_links=kind is not None and kind.links))


def replace_level(level: Level, content: Content) -> None:
    """Store ``content`` in the place of what level 0 holds. Coarser levels are older then, as in :func:`change_cells`.

    An error while the new is stored leaves everything as it was. Any chunk counts as touched.
    """
    owner, root = level.owner, level.owner.root
    bounds = wider_bounds(owner, content)
    nodes = plan_whole(level, content, bounds)
    above = LevelsAbove.of(level, len(content.positions))

    def before() -> None:
        above.make_older(None)
        if bounds != root.bounds:
            _set_bounds(owner, bounds)

    removed = replaced_nodes(level, {node.path for node in nodes}, other_levels=True)
    agreed = above.noted_in(attributes_for(level, content, nodes), None)
    replace_nodes(level, nodes, removed, agreed, before=before, is_whole=True)


def change_cells(
    level: Level,
    patch: Patch,
    *,
    newer: Newer = "vertices",
    tables: bool = False,
    block: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Let what ``patch`` holds take its places. Coarser levels are older then, unless nothing of it is ``newer``.

    Those that would have more vertices than there are left go. Links between them and the cells that are touched go,
    unless all rows of these stay; where they cannot be told apart, all. An error while that is prepared leaves
    everything as it was, but perhaps without such links. ``tables``: whether values of objects or groups are newer,
    too. ``block`` and ``attributes``: what the level says then beside
    what it did. Raises :class:`UnfitError` where levels above one that is not 0 have to go.
    """
    owner = level.owner
    bounds = wider_bounds(owner, patch.content)
    count = level.document.vertex_count + patch.more
    above = LevelsAbove.of(level, count, newer)
    if above.gone and level.document.level:
        raise UnfitError("fewer vertices than the level above")
    removed: list[str] = []
    unlinked: Patch | None = None
    if above.linked and not above.gone and patch.keeps_rows:
        above = replace(above, linked=False)
    elif above.linked:
        unlinked = None if above.gone else _without_links(patch, above)
        if unlinked is None:
            deltas = [delta for delta in _deltas(level) if delta > 0]
            gone = [path for path in nodes_below(level) if any(links_between(path, delta) for delta in deltas)]
            removed = with_empty_groups(level, gone, {node.path for node in patch.nodes})

    def prepare() -> None:
        above.make_older(unlinked)
        if bounds != owner.root.bounds:
            _set_bounds(owner, bounds)

    changes_others = above.gone or above.linked or unlinked is not None
    is_prepared = not changes_others and bounds == owner.root.bounds
    agreed = {**attributes_with(level, count, block, tile=patch.content.fragments.tile), **(attributes or {})}
    agreed = above.noted_in(agreed, patch.touched if above.numbers else None, tables)
    replace_nodes(
        level,
        patch.nodes,
        removed,
        agreed,
        before=None if is_prepared else prepare,
        log=patch.log(),
        known=patch.known,
        claims=changes_others,
        is_whole=not level.document.level,  # an update of a level above is one of several steps
    )


def attributes_with(
    level: Level, vertex_count: int, block: Mapping[str, Any] | None = None, *, tile: bool
) -> dict[str, Any]:
    """The attributes of a level that has so many vertices, of which the fragments that change ``tile`` their cells."""
    told = {**level.document.block, "vertex_count": vertex_count, **(block or {})}
    if not tile:
        told.pop("fragments_tile", None)
    return {**level.document.attributes, LEVEL: told}


def store_patch(patch: Patch, attributes: Mapping[str, Any]) -> None:
    """Let what ``patch`` holds take its places, of a level that those above stay as old as, with these attributes."""
    replace_nodes(patch.level, patch.nodes, [], attributes, log=patch.log(), known=patch.known)


def _without_links(patch: Patch, above: LevelsAbove) -> Patch | None:
    """Let ``patch`` do without links from what it touches to the level above; gives what that comes to there.

    ``None`` where links between the two cannot be told apart, or there are some between other levels.
    """
    coarse = open_to_update(above.owner, patch.level.document.level + 1)
    deltas = {*_deltas(patch.level), *_deltas(coarse)}
    nesting = nesting_of(patch.level, coarse)
    if not deltas <= {-1, 0, 1} or nesting.step is None:
        return None
    own, other = (Patch(each, patch.content, 0) for each in (patch.level, coarse))
    try:
        put_links_between(own, nesting, 1, patch.touched)
        put_links_between(other, nesting, -1, patch.touched)
    except UnfitError:
        return None
    patch.cells |= own.cells
    patch.documents |= own.documents
    patch.known |= own.known
    return other


@dataclass(frozen=True, slots=True)
class LevelsAbove:
    """The coarser levels, while one below is changed."""

    level: Level
    numbers: Sequence[int]
    newer: Newer
    gone: bool
    """Whether they have to go: zarr-vectors takes levels with more vertices than those below for faults."""
    linked: bool
    """Whether there are links between them and the level that no longer hold."""

    @classmethod
    def of(cls, level: Level, count: int, newer: Newer = "vertices") -> LevelsAbove:
        """Those above a level, which is to have ``count`` vertices."""
        owner, own = level.owner, level.document.level
        numbers = [number for number in owner.level_numbers() if number > own] if newer else []
        try:
            gone = any(owner.level(number).document.vertex_count > count for number in numbers[:1])
        except ZardineError:  # nobody can read it
            gone = newer == "vertices"
        linked = newer == "vertices" and bool(numbers) and any(delta > 0 for delta in _deltas(level))
        return cls(level, numbers, newer, gone, linked)

    @property
    def owner(self) -> VectorStore:
        """The store."""
        return self.level.owner

    def make_older(self, unlinked: Patch | None) -> None:
        """Remove their links to the level, of which these would no longer be true; or the levels.

        ``unlinked``: what that comes to, if it is not all links.
        """
        if self.gone:
            erase_levels(self.owner, self.numbers, links=False)
        elif unlinked is not None:
            if unlinked.cells:
                store_patch(unlinked, without_all_links(unlinked.level.document.attributes))
        elif self.linked:
            for number in self.numbers:
                forget_levels(self.owner.level(number), [self.level.document.level])

    def noted_in(self, attributes: Mapping[str, Any], touched: Ints | None, tables: bool = False) -> dict[str, Any]:
        """The ``attributes`` of the level, which tell that they are older, and which chunks are ``touched``.

        ``None``: any may be. ``tables``: whether values of objects or groups are newer, too.
        """
        if self.gone:
            return without_age(attributes)
        if not self.numbers:
            return dict(attributes)
        old, rank = self.level.document, self.level.rank
        before = touched_in(old.attributes, rank, old.vertex_count)
        count, tables = attributes[LEVEL]["vertex_count"], tables or self.newer == "values"
        kept = with_touched(attributes, before, touched, count, tables=tables)
        if kept.get(NEWER) != "vertices":
            kept[NEWER] = self.newer
        return kept


def wider_bounds(owner: VectorStore, content: Content) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The bounds of a store that hold ``content`` too."""
    low, high = owner.root.bounds
    if not len(content.positions):
        return low, high
    lowest, highest = (corner.tolist() for corner in bounds_of(content.positions))
    return tuple(map(min, low, lowest)), tuple(map(max, high, highest))


def attributes_for(level: Level, content: Content, nodes: Sequence[Node]) -> dict[str, Any]:
    """The attributes of a level that ``nodes`` are all of; what they do not say stays."""
    fresh = level_attributes(content, level.document.level, nodes)[LEVEL]
    theirs = [name for name in level.document.block.get("arrays_present", ()) if name not in FAMILIES]
    block = {**level.document.block, **fresh, "arrays_present": [*fresh["arrays_present"], *theirs]}
    if "fragments_tile" not in fresh:
        block.pop("fragments_tile", None)
    return {**level.document.attributes, LEVEL: block}


def _set_bounds(owner: VectorStore, bounds: tuple[Sequence[float], Sequence[float]]) -> None:
    def change(old: GroupMetadata) -> GroupMetadata:
        low, high = old.attributes[ROOT]["bounds"]  # perhaps of others, since the store was opened
        both = [list(map(min, low, bounds[0])), list(map(max, high, bounds[1]))]
        block: Mapping[str, Any] = {**old.attributes[ROOT], "bounds": both}
        return old.with_attributes({**old.attributes, ROOT: block})

    update_node(owner.store, owner.path, load_group(owner.store, owner.path, 3), change)


def begin_level(owner: VectorStore, number: int, **more: Unpack[LevelBlock]) -> Level:
    """A level that is not finished, with nothing in it."""
    path = child(owner.path, str(number))
    if not (is_far(owner.store) and nothing_is_at(owner.store, path)):
        owner.store.erase_prefix(f"{path}/")
    return owner.level(number, _hollow(owner, number, more))


def fill_level(
    level: Level,
    nodes: Sequence[Node],
    attributes: Mapping[str, Any],
    others: Callable[[], None],
    *,
    is_little: bool,
) -> None:
    """Store all that a level is to hold that was begun: nobody looks at it before it says that it is finished.

    Then make the ``others``, such as links to it: far away at the same time, if what there is to store is little.
    """
    store = level.owner.store
    if not is_far(store) or level.group is None:
        replace_nodes(level, nodes, [], attributes)
        others()
        return
    document = level.group.with_attributes(at_next_revision(attributes, level.document.attributes))

    def fill() -> None:
        write_side_by_side(store, level.path, nodes, about=lambda _: document)

    if is_little:
        beside(fill, others, most_requests(store))  # the others in the thread that holds the lock of level 0
    else:
        fill()
        others()


def end_level(level: Level) -> None:
    """The level is finished."""

    def change(old: GroupMetadata) -> GroupMetadata:
        return old.with_attributes({name: value for name, value in old.attributes.items() if name != UNFINISHED})

    update_node(level.owner.store, level.path, load_group(level.owner.store, level.path, 3), change)


def erase_levels(owner: VectorStore, numbers: Collection[int], *, links: bool = True) -> None:
    """Remove levels, ``links`` of the others to them, and what the root document says of them.

    Who is killed meanwhile leaves levels that are unfinished, or others complete.
    """
    if not numbers:
        return
    there = owner.level_numbers()
    for number in there:
        if links and number not in numbers and not owner.is_unfinished(number):
            forget_levels(owner.level(number), numbers)
    for number in sorted(set(numbers) & set(there), reverse=True):
        _hollow(owner, number, {})
        path = child(owner.path, str(number))
        if is_far(owner.store):
            _erase_hollow(owner.store, path)
            continue
        for name in list(child_names(owner.store, path)):
            owner.store.erase_prefix(f"{path}/{name}/")
        owner.store.erase_prefix(f"{path}/")
    describe_levels(owner, [number for number in there if number not in numbers])


def _erase_hollow(store: Store, path: str) -> None:
    """Remove a level that says that nothing is in it, far away: its document last."""
    document = document_key(path)
    store.erase_values(key for key in store.list_prefix(f"{path}/") if key != document)
    store.erase(document)


def unfinished_levels(owner: VectorStore, numbers: Sequence[int]) -> list[int]:
    """The levels above 0 that a killed writer left, of those with these ``numbers``, and those named and not there."""
    unfinished = [number for number in numbers if number > 0 and owner.is_unfinished(number)]
    named = named_levels(owner.root)
    gone = [int(name) for name in named if name.isdecimal() and name != "0" and int(name) not in numbers]
    return [*unfinished, *gone]


def forget_lost_levels(level: Level) -> Iterator[str]:
    """Remove the links of a level to others that are not there; gives a line for each of these."""
    there = level.owner.level_numbers()
    lost = sorted({level.document.level + delta for delta in _deltas(level)} - set(there))
    if lost:
        forget_levels(level, lost)
    yield from (f"removed links to level {number}, which is not there" for number in lost)


def forget_levels(level: Level, numbers: Collection[int]) -> None:
    """Remove the links of a level to others."""
    level = settled_level(level.owner, level.document.level)
    wanted = [delta for delta in _deltas(level) if delta and level.document.level + delta in numbers]
    if not wanted:
        return
    gone = [path for path in nodes_below(level) if any(links_between(path, delta) for delta in wanted)]
    if gone:
        replace_nodes(level, [], with_empty_groups(level, gone), level.document.attributes)


def forget_age(owner: VectorStore, number: int, made: Mapping[str, Any] | None) -> None:
    """Let a level no longer tell that the levels above, which are no more, are older.

    Level 0 tells how levels are to be ``made``, so that this is known without them.
    """
    for each in {0, number}:
        level = owner.level(each)
        attributes = without_age(level.document.attributes) if each == number else dict(level.document.attributes)
        if not each:
            attributes.pop(MADE, None)
            attributes |= {} if made is None else {MADE: made}
        if attributes != dict(level.document.attributes):
            replace_nodes(level, [], [], attributes)


def _deltas(level: Level) -> list[int]:
    """The level differences of its links; names that are none are left out."""
    deltas = []
    for name in level.names("links"):
        with suppress(ZardineError):
            deltas.append(parse_delta(name))
    return deltas


def describe_levels(
    owner: VectorStore,
    numbers: Sequence[int],
    bins: Mapping[int, npt.NDArray[np.float64]] | None = None,
    block: Mapping[str, Any] | None = None,
) -> None:
    """Say in the root document which levels there are; ``bins``: the size of the bins of levels that are new."""

    def change(old: GroupMetadata) -> GroupMetadata:
        attributes: dict[str, Any] = dict(old.attributes)
        scales = dict(attributes["multiscales"][0])
        base = list(owner.root.bin_shape)
        entries = {str(each.get("path")): each for each in datasets_of(attributes)}
        entries |= {str(number): dataset(number, each.tolist(), base) for number, each in (bins or {}).items()}
        entries.setdefault("0", dataset(0, base, base))
        scales["datasets"] = [entries[str(number)] for number in numbers if str(number) in entries]
        attributes["multiscales"] = [scales, *attributes["multiscales"][1:]]
        name = (attributes.get("ome") or {}).get("name", "")
        attributes["ome"] = {**(attributes.get("ome") or {}), **ome(name, scales["axes"], numbers)}
        if block:
            attributes[ROOT] = {**attributes[ROOT], **block}
        return old.with_attributes(attributes)

    update_node(owner.store, owner.path, load_group(owner.store, owner.path, 3), change)


def _hollow(owner: VectorStore, number: int, more: LevelBlock) -> Reading | None:
    """Let a level say that it is not finished, and that nothing is in it; gives that, far away."""
    path = child(owner.path, str(number))
    nothing = dict.fromkeys(["vertices", *child_names(owner.store, path)])
    block = new_level(number, 0, [], **more)[LEVEL]
    document = group({LEVEL: block, UNFINISHED: True, PENDING: nothing})
    version, data = write_document(owner.store, path, document), document_of(document)
    return Reading((data,), version, len(data)) if version is not None and is_far(owner.store) else None
