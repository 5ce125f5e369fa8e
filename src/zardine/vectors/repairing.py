"""``repair``: what can be put right without guessing; and forgetting what is lost, so that the rest can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError, ZardineError
from zardine.hierarchy.find import load_array, load_group
from zardine.hierarchy.place import find_place
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.stores.wrappers.overlay import OverlayStore
from zardine.tools.progress import Progress
from zardine.tools.report import Fault, Repairs, action
from zardine.vectors.changing.levels import forget_lost_levels
from zardine.vectors.changing.one_writer import locked
from zardine.vectors.content.columns import Column, join_columns
from zardine.vectors.content.plan import Node, cut
from zardine.vectors.findings import Finding
from zardine.vectors.format.cell_documents import NONEMPTY, key_texts
from zardine.vectors.format.documents import LEVEL
from zardine.vectors.format.fragment_index import decode_index, encode_indexes
from zardine.vectors.format.links import segment_of, signed
from zardine.vectors.format.manifests import encode_manifests
from zardine.vectors.format.ragged import find_rows, row_numbers, starts_of, unique_rows
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import dtype_of, load_cells, row_shape_of
from zardine.vectors.reading.loading_links import deltas_of, rows_of_links, stored_links
from zardine.vectors.reading.loading_objects import known_ids, load_manifests
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.consolidation import differing_documents, forget_consolidated
from zardine.vectors.storing.level_nodes import cell_arrays
from zardine.vectors.storing.logs import erase_dead_logs
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.transactions import finish, is_unedited, rebuild, reopened, settle
from zardine.vectors.validation.objects import check_objects
from zardine.vectors.validation.rows import Outline, RowChecks, contents

T = TypeVar("T")


def trial(path: StoreLike) -> StorePath:
    """What stands for the store at ``path``, whose changes are kept in memory and never reach it."""
    store, inner = find_place(path, mode="r")
    return StorePath(OverlayStore(store), inner)


def repair(
    path: StoreLike, *, drop_lost: bool = False, dry_run: bool = False, progress: Progress | None = None
) -> Repairs:
    """Put right what :func:`validate` finds and what can be put right; gives what was done, and what was left.

    - changes and conversions that were interrupted are brought to an end, and levels that were not finished go, and the
      claim of a writer that was killed, on stores where locks do not keep others out;
    - ``nonempty_chunks`` gets what is stored and was not in it;
    - attributes that lack rows get fill values for them;
    - Consolidated metadata that is no longer true goes.
    - ``vertex_count`` becomes what is true where there are more vertices, and ``fragments_tile`` in any case.

    What says that data is lost stays, so that :func:`validate` and readers go on saying so. ``drop_lost``: forget what
    is lost (chunks of ``nonempty_chunks``, rows of the fragment index, fragments of objects, links, counts), so that
    the rest can be read. What is damaged and cannot be put right is left as it is, and among what is ``left``.

    ``dry_run``: change nothing, and tell what would be done. ``progress`` is called with the number of levels done, and
    of all.
    """
    place = trial(path) if dry_run else path
    before = VectorStore.open(place)
    was_claimed = _is_claimed(before)
    unfinished = [number for number in before.level_numbers() if number and before.is_unfinished(number)]
    done = _repair(place, drop_lost, progress)
    if was_claimed and not _is_claimed(VectorStore.open(place)):
        message = "no writer that was killed has claimed the store any more"
        done.insert(0, action("0", kind="repaired", message=message))
    gone = set(unfinished) - set(VectorStore.open(place).level_numbers()) if unfinished else ()
    done[:0] = [
        action(str(number), kind="repaired", message="removed the level, which was not finished")
        for number in unfinished
        if number in gone
    ]
    actions = tuple(each for each in done if each.severity == "action")
    return Repairs(actions, tuple(each for each in done if each.severity == "error"), dry_run)


def _is_claimed(owner: VectorStore) -> bool:
    try:
        return owner.level(0).is_claimed
    except ZardineError:  # it is damaged, which is told elsewhere
        return False


@locked
def _repair(path: StoreLike, drop_lost: bool, progress: Progress | None) -> list[Fault]:
    owner = VectorStore.open(path, writable=True)
    done: list[Fault] = []
    numbers = owner.level_numbers()
    for count, number in enumerate(numbers):
        if progress is not None:
            progress(count, len(numbers))
        level = _tried(done, str(number), partial(owner.level, number))
        if level is None:
            continue
        erase_dead_logs(owner.store, level.path, level.document.attributes)
        if not level.is_settled:
            finish(level)
            done.append(action(str(number), kind="repaired", message="carried out a change that was agreed on"))
        _note(done, str(number), forget_lost_levels(owner.level(number)))
        arrays = _tried(done, str(number), lambda: list(cell_arrays(owner.level(number))))  # noqa: B023
        for name, array in arrays or ():
            _note(done, f"{number}/{name}", _mend_array(array, drop_lost))
        level = owner.level(number)
        steps = [_mend_attributes(level, drop_lost), _mend_link_values(level, drop_lost), _mend_level(level, drop_lost)]
        for step in [*([forget_vertices(level), forget_links(level)] if drop_lost else []), *steps]:
            _note(done, str(number), step)
        _note(done, str(number), _mend_tables(level))
        _tried(done, str(number), lambda: done.extend(_left_as_it_is(owner.level(number))))  # noqa: B023
    if progress is not None:
        progress(len(numbers), len(numbers))
    if any(differing_documents(owner)):
        forget_consolidated(owner)
        message = "removed consolidated metadata that other documents contradict: consolidate_metadata makes it anew"
        done.append(action("", kind="repaired", message=message))
    return done


def _tried(done: list[Fault], place: str, step: Callable[[], T]) -> T | None:
    """What ``step`` gives; where it meets damage, that is noted and left as it is."""
    try:
        return step()
    except ZardineError as fault:
        done.append(Fault(place, kind="unreadable", message=str(fault)))
    return None


def _note(done: list[Fault], place: str, lines: Iterator[str]) -> None:
    """Carry out a step that gives a line for each thing done, and note these."""
    _tried(done, place, lambda: done.extend(action(place, kind="repaired", message=line) for line in lines))


def _mend_array(array: CellArray, drop_lost: bool) -> Iterator[str]:
    store, path, metadata = array.array.store, array.array.path, array.array.metadata
    if not is_unedited(store, path, metadata):
        settle(store, path, metadata)
        yield "brought a conversion to an end"
        array = _again(array)
    found, listed = unique_rows(array.found())[0], array.listed()
    lost = found[:0] if listed is None else unique_rows(listed[find_rows(found, listed) < 0])[0]
    chunks = found if drop_lost or not len(lost) else np.concatenate([found, lost])
    names = key_texts(chunks)
    if array.attributes.get(NONEMPTY) != names:
        update_node(
            store, path, array.array.metadata, lambda old: old.with_attributes({**old.attributes, NONEMPTY: names})
        )
        if len(chunks) > len(found):
            yield f"{NONEMPTY} names the {len(found)} chunks that are stored, and still {len(lost)} that are lost"
        else:
            yield f"{NONEMPTY} names the {len(names)} chunks that are stored"


def _again(array: CellArray) -> CellArray:
    store, path = array.array.store, array.array.path
    return reopened(store, path, load_array(store, path))


def _mend_attributes(level: Level, drop_lost: bool) -> Iterator[str]:
    try:
        content = load_cells(level, trust_count=not drop_lost)
    except ZardineError:
        return
    for family, counts in (
        ("vertex_attributes", np.diff(content.row_starts)),
        ("fragment_attributes", np.diff(content.fragments.before)),
    ):
        for name in level.names(family):
            array = level.cells(f"{family}/{name}")
            if array is not None and (missing := _fill_up(array, name, content.keys, counts, drop_lost)):
                yield f"{family}/{name}: filled up {missing} missing rows"


def _mend_link_values(level: Level, drop_lost: bool) -> Iterator[str]:
    for delta in deltas_of(level):
        for segment in level.names(f"links/{signed(delta)}"):
            keys, counts = rows_of_links(level, delta, segment)
            for name in level.names("link_attributes"):
                relative = f"link_attributes/{name}/{signed(delta)}/{segment}"
                array = level.cells(relative)
                if array is not None and (missing := _fill_up(array, name, keys, counts, drop_lost)):
                    yield f"{relative}: filled up {missing} missing rows"


def _fill_up(array: CellArray, name: str, keys: Ints, counts: Ints, drop_lost: bool) -> int:
    """Store fill values for rows that cells lack; gives how many."""
    dtype, shape = dtype_of(array, text=True), row_shape_of(array)
    cells = array.read(keys)
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    cut_short = [place for place, cell in enumerate(cells) if len(cell) % size]
    if cut_short and not drop_lost:
        reason = f"a cell of {len(cells[cut_short[0]])} bytes holds no whole rows of {size} bytes"
        raise CorruptionError(reason, array=array.array.path, chunk=tuple(keys[cut_short[0]].tolist()))
    missing = counts - np.array([len(cell) // size for cell in cells], np.int64)
    listed = array.listed()
    if listed is not None:  # what was there once, and is gone, is lost: not to be filled up unless it was forgotten
        missing[np.array([not cell for cell in cells], np.bool_) & (find_rows(unique_rows(listed)[0], keys) >= 0)] = 0
    short = np.flatnonzero(missing > 0)
    for place in short.tolist():
        column = Column(np.frombuffer(cells[place][: len(cells[place]) // size * size], dtype))
        values = column.values.reshape(-1, *shape)
        missing_code = array.attributes.get("_FillValue")
        if dtype.kind in "US":
            filled = np.concatenate([values, np.zeros((int(missing[place]), *shape), dtype)])
        else:
            filled = join_columns(name, Column(values), None, int(missing[place])).values
        if missing_code is not None:
            filled[len(values) :] = missing_code
        cells[place] = cut(filled, np.array([0, len(filled)]))[0]
    if len(short):
        kept = keys if listed is None else unique_rows(np.concatenate([keys, listed]))[0]
        more: Mapping[str, Any] = {**array.attributes, NONEMPTY: key_texts(kept)}
        metadata = array.array.metadata
        rebuild(array.array.store, array.array.path, metadata, filled_node(metadata.with_attributes(more), keys, cells))
    return int(missing[short].sum())


def _mend_tables(level: Level) -> Iterator[str]:
    """Programs that add an object may leave the attributes of objects as they are: it has none."""
    known = known_ids(level)
    for name in level.names("object_attributes") if known is not None else ():
        table = level.table(f"object_attributes/{name}")
        rows = 0 if known is None else known.count
        missing = 0 if table is None or table.ndim == 0 else rows - len(table)
        if table is not None and missing > 0:
            table.resize((len(table) + missing, *table.shape[1:]))
            yield f"object_attributes/{name}: filled up {missing} missing rows"


def _left_as_it_is(level: Level) -> Iterator[Finding]:
    """What is wrong with vertices and objects that can be read, and cannot be put right."""
    outline, checks = Outline(), RowChecks(level)
    try:
        for content in contents(KeptLevel.of(level)):
            outline.add(content)
            checks.add(content)
    except ZardineError:
        return
    findings: list[Finding] = []
    check_objects(level, outline.content(level.rank), findings)
    for each in (*checks.of_rows(), *findings):
        if each.severity == "error":
            yield each


def _mend_level(level: Level, drop_lost: bool) -> Iterator[str]:
    try:
        content = load_cells(level, trust_count=False)
    except ZardineError:
        return
    block = dict(level.document.block)
    count = len(content.positions)
    claimed = level.document.vertex_count
    if claimed not in (count, int(content.visible().sum())) and (claimed < count or drop_lost):
        block["vertex_count"] = count
        yield f"vertex_count is {count}"
    if level.document.tiles and not content.fragments.tile:
        del block["fragments_tile"]
        yield "fragments_tile is no longer claimed"
    if block != level.document.block:
        set_attributes(level, "", {LEVEL: block})


def forget_vertices(level: Level) -> Iterator[str]:
    """Forget chunks whose vertices or fragments are lost, and fragments of objects that are; a line for each thing."""
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    if vertices is None or index is None:
        return
    there = unique_rows(vertices.found())[0]
    lost = _forget_fragments(index, there)
    if lost:
        yield f"forgot the fragments of {lost} chunks whose vertices are lost"
    yield from _forget_values(level, there)
    yield from _without_fragments(level, vertices, there)
    try:
        manifests = load_manifests(level, trust_count=False)
    except ZardineError:
        return
    if manifests is None:
        return
    index = level.cells("vertex_fragments")
    assert index is not None
    keys = unique_rows(index.found())[0]
    try:
        counts = np.array([len(decode_index(blob, 2**31).counts) for blob in index.read(keys)], np.int64)
    except ZardineError:  # damaged, not lost
        return
    cell = find_rows(keys, manifests.chunks)
    good = (cell >= 0) & (manifests.fragments < np.append(counts, 0)[cell])
    if good.all():
        left = int((np.diff(manifests.starts) > 0).sum())
        named = (level.attributes("object_index") or {}).get("num_present")
        if isinstance(named, int) and named > left:
            set_attributes(level, "object_index", {"num_present": left})
            yield f"forgot {named - left} objects whose manifests are lost"
        return
    owner = row_numbers(np.diff(manifests.starts))[good]
    starts = starts_of(np.bincount(owner, minlength=len(manifests.ids)))
    table, known = level.table("object_index/manifests"), known_ids(level)
    assert table is not None
    assert known is not None
    blobs, left_over = np.empty(known.count, object), np.empty(len(manifests.ids), object)
    nothing = np.zeros(0, np.int64)
    blobs[:] = encode_manifests(np.zeros(known.count + 1, np.int64), nothing.reshape(0, level.rank), nothing)
    left_over[:] = encode_manifests(starts, manifests.chunks[good], manifests.fragments[good])
    blobs[known.places_of(manifests.ids)] = left_over
    table[...] = blobs
    present = int((np.diff(starts) > 0).sum())
    set_attributes(level, "object_index", {"num_present": present})
    yield f"forgot {int((~good).sum())} fragments of objects that are lost"


def _forget_values(level: Level, there: Ints) -> Iterator[str]:
    """Forget the attributes of chunks that are not ``there``: their vertices are lost."""
    for family in ("vertex_attributes", "fragment_attributes"):
        for name in level.names(family):
            array = level.cells(f"{family}/{name}")
            stored = None if array is None else unique_rows(array.found())[0]
            if array is None or stored is None or (find_rows(there, stored) >= 0).all():
                continue
            kept = stored[find_rows(there, stored) >= 0]
            _restore(array, kept, array.read(kept))
            yield f"{family}/{name}: forgot the values of {len(stored) - len(kept)} chunks whose vertices are lost"


def _without_fragments(level: Level, vertices: CellArray, there: Ints) -> Iterator[str]:
    """Give an index to chunks that have lost theirs: one fragment, or where fragments belong to objects, none."""
    index = level.cells("vertex_fragments")
    assert index is not None
    listed = unique_rows(index.found())[0]
    bare = there[find_rows(listed, there) < 0]
    if len(bare) == 0:
        return
    size = dtype_of(vertices, "float32").itemsize * level.owner.root.ndim
    has_objects = level.attributes("object_index") is not None
    fresh = []
    for cell in vertices.read(bare):
        counts = np.array([] if has_objects else [len(cell) // size], np.int64)
        fresh += encode_indexes(np.array([0, len(counts)]), counts, np.arange(counts.sum()))
    _restore(index, np.concatenate([listed, bare]), [*index.read(listed), *fresh])
    what = "the vertices" if has_objects else "how the vertices are ordered"
    yield f"forgot {what} of {len(bare)} chunks whose fragments are lost"


def _restore(array: CellArray, chunks: Ints, cells: list[bytes]) -> None:
    """Let these be all the cells of an array."""
    metadata = array.array.metadata.with_attributes({**array.attributes, NONEMPTY: key_texts(chunks)})
    rebuild(array.array.store, array.array.path, array.array.metadata, filled_node(metadata, chunks, cells))


def forget_links(level: Level) -> Iterator[str]:
    """Forget links whose cells are lost: counts of families become what is there."""
    try:
        content = load_cells(level, trust_count=False)
        deltas = deltas_of(level)
    except ZardineError:
        return
    for delta in deltas:
        relative = f"links/{signed(delta)}"
        about = level.attributes(relative) or {}
        try:
            count = stored_links(level, content, delta)
        except ZardineError:
            continue
        named = about.get("num_physical_records", about.get("num_links"))
        if isinstance(named, int) and named > count:
            fewer = {"num_physical_records": count}
            if about.get("store") != "duplicate":
                fewer["num_links"] = count
            set_attributes(level, relative, fewer)
            yield f"{relative}: forgot {named - count} links that are lost"
    plain = level.cells(f"links/0/{segment_of(((0,) * level.rank,) * (_width(level) - 1))}")
    index = level.cells("link_fragments")
    if plain is None or index is None:
        return
    lost = _forget_fragments(index, unique_rows(plain.found())[0])
    if lost:
        yield f"forgot the fragments of links of {lost} chunks whose links are lost"


def _forget_fragments(index: CellArray, there: Ints) -> int:
    """Keep the fragment indexes of the chunks that are ``there`` only; gives how many others there were."""
    listed = unique_rows(index.found())[0]
    lost = find_rows(there, listed) < 0
    if lost.any():
        kept = listed[~lost]
        _restore(index, kept, index.read(kept))
    return int(lost.sum())


def _width(level: Level) -> int:
    width = (level.attributes("links/0") or {}).get("link_width")
    return width if isinstance(width, int) and 1 <= width <= 12 else 2


def filled_node(metadata: ArrayMetadata, keys: Ints, cells: list[bytes]) -> Node:
    """The cells that hold anything, to be stored."""
    full = np.array([bool(cell) for cell in cells], np.bool_)
    return Node("", metadata, keys[full], [cell for cell in cells if cell])


def set_attributes(level: Level, relative: str, attributes: Mapping[str, Any]) -> None:
    """Change some attributes of a node of a level."""
    store, path = level.owner.store, child(level.path, relative) if relative else level.path

    def change(old: GroupMetadata) -> GroupMetadata:
        return old.with_attributes({**old.attributes, **attributes})

    update_node(store, path, load_group(store, path, 3), change)
