"""``repair``: what can be put right without guessing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from zardine.errors import CorruptionError, ZardineError
from zardine.hierarchy.find import load_array
from zardine.hierarchy.place import find_place
from zardine.hierarchy.update import update_node
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.stores.wrappers.overlay import OverlayStore
from zardine.vectors.changing.levels import forget_lost_levels
from zardine.vectors.changing.one_writer import locked
from zardine.vectors.content.columns import Column, join_columns
from zardine.vectors.content.plan import cut
from zardine.vectors.findings import Finding
from zardine.vectors.forgetting import filled_node, forget_links, forget_vertices, set_attributes
from zardine.vectors.format.documents import LEVEL
from zardine.vectors.format.offsets import signed
from zardine.vectors.format.ragged import Ints, find_rows, unique_rows
from zardine.vectors.reading.loading import dtype_of, load_cells, row_shape_of
from zardine.vectors.reading.loading_links import deltas_of, rows_of_links
from zardine.vectors.reading.loading_objects import load_manifests
from zardine.vectors.sharding import cell_arrays
from zardine.vectors.storing.cells import NONEMPTY, CellArray, key_texts
from zardine.vectors.storing.consolidation import differing_documents, forget_consolidated
from zardine.vectors.storing.rebuilding import is_settled, rebuild, reopened, settle
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.transactions import finish
from zardine.vectors.validation.objects import check_objects
from zardine.vectors.validation.rows import check_rows

T = TypeVar("T")

Progress = Callable[[int, int], object] | None


def trial(path: StoreLike) -> StorePath:
    """What stands for the store at ``path``, whose changes are kept in memory and never reach it."""
    store, inner = find_place(path, mode="r")
    return StorePath(OverlayStore(store), inner)


def repair(path: StoreLike, *, drop_lost: bool = False, dry_run: bool = False, progress: Progress = None) -> list[str]:
    """Put right what :func:`validate` finds and what can be put right; gives a line for each thing done.

    - changes and conversions that were interrupted are brought to an end;
    - ``nonempty_chunks`` gets what is stored and was not in it;
    - attributes that lack rows get fill values for them;
    - Consolidated metadata that is no longer true goes.
    - ``vertex_count`` becomes what is true where there are more vertices, and ``fragments_tile`` in any case.

    What says that data is lost stays, so that :func:`validate` and readers go on saying so. ``drop_lost``: forget what
    is lost (chunks of ``nonempty_chunks``, rows of the fragment index, fragments of objects, links, counts), so that
    the rest can be read. What is damaged and cannot be put right is left as it is, which a line says.

    ``dry_run``: change nothing, and tell what would be done. ``progress`` is called with the number of levels done, and
    of all.
    """
    return _repair(trial(path) if dry_run else path, drop_lost, progress)


@locked
def _repair(path: StoreLike, drop_lost: bool, progress: Progress) -> list[str]:
    owner = VectorStore.open(path, writable=True)
    done: list[str] = []
    numbers = owner.level_numbers()
    for count, number in enumerate(numbers):
        if progress is not None:
            progress(count, len(numbers))
        level = _tried(done, str(number), partial(owner.level, number))
        if level is None:
            continue
        if level.pending:
            finish(level)
            done.append(f"{number}: carried out a change that was agreed on")
        _note(done, str(number), forget_lost_levels(owner.level(number)))
        arrays = _tried(done, str(number), lambda: list(cell_arrays(owner.level(number))))  # noqa: B023
        for name, array in arrays or ():
            _note(done, f"{number}/{name}", _mend_array(array, drop_lost))
        level = owner.level(number)
        steps = [_mend_attributes(level, drop_lost), _mend_link_values(level, drop_lost), _mend_level(level, drop_lost)]
        for step in [*([forget_vertices(level), forget_links(level)] if drop_lost else []), *steps]:
            _note(done, str(number), step)
        _note(done, str(number), _mend_tables(level))
        _note(done, str(number), _left_as_it_is(owner.level(number)))
    if progress is not None:
        progress(len(numbers), len(numbers))
    if any(differing_documents(owner)):
        forget_consolidated(owner)
        done.append("removed consolidated metadata that other documents contradict: consolidate_metadata makes it anew")
    return done


def _tried(done: list[str], place: str, step: Callable[[], T]) -> T | None:
    """What ``step`` gives; where it meets damage, that is noted and left as it is."""
    try:
        return step()
    except ZardineError as fault:
        done.append(f"{place}: left as it is: {fault}")
    return None


def _note(done: list[str], place: str, lines: Iterator[str]) -> None:
    """Carry out a step that gives a line for each thing done, and note these."""
    _tried(done, place, lambda: done.extend(f"{place}: {line}" for line in lines))


def _mend_array(array: CellArray, drop_lost: bool) -> Iterator[str]:
    store, path, metadata = array.array.store, array.array.path, array.array.metadata
    if not is_settled(store, path, metadata):
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
    manifests = load_manifests(level, trust_count=False)
    for name in level.names("object_attributes") if manifests is not None else ():
        table = level.table(f"object_attributes/{name}")
        missing = 0 if manifests is None or table is None or table.ndim == 0 else len(manifests.ids) - len(table)
        if table is not None and missing > 0:
            table.resize((len(table) + missing, *table.shape[1:]))
            yield f"object_attributes/{name}: filled up {missing} missing rows"


def _left_as_it_is(level: Level) -> Iterator[str]:
    """What is wrong with vertices and objects that can be read, and cannot be put right."""
    try:
        content = load_cells(level, trust_count=False)
    except ZardineError:
        return
    findings: list[Finding] = []
    content = check_objects(level, content, findings)
    for each in (*check_rows(level, content), *findings):
        if each.severity == "error":
            yield f"left as it is: {each.message}"


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
