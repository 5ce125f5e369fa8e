"""Content joined, thinned out, moved, and made anew where connections follow from the order of vertices. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import UnsupportedError
from zardine.vectors.content.columns import Column, join_columns
from zardine.vectors.content.content import Columns, Content, Fragments, Links, Objects
from zardine.vectors.content.point_content import binned_points
from zardine.vectors.content.run_content import inverse, parents_of, polyline_content, skeleton_content
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import find_rows, ranges, row_numbers, starts_of, take_rows, unique_rows

LINES = ("line", "polyline", "streamline")


def merge(a: Content, b: Content) -> Content:
    """Both together: in each cell the rows and fragments of ``b`` follow those of ``a``.

    Objects of ``b`` whose ids ``a`` has go on there. Attributes that one of them lacks get fill values. Groups are
    those of ``a``.
    """
    keys, _ = unique_rows(np.concatenate([a.keys, b.keys]))
    rows, row_starts = _interleave(keys, a.keys, b.keys, np.diff(a.row_starts), np.diff(b.row_starts))
    parts, before = _interleave(keys, a.keys, b.keys, np.diff(a.fragments.before), np.diff(b.fragments.before))
    row_order, part_order = inverse(rows), inverse(parts)
    old_rows, new_rows = rows[: len(a.positions)], rows[len(a.positions) :]
    lengths = np.concatenate([np.diff(a.fragments.starts), np.diff(b.fragments.starts)])
    named = np.concatenate([old_rows[a.fragments.rows], new_rows[b.fragments.rows]])
    starts, places = take_rows(starts_of(lengths), part_order)
    joined = Fragments(before, starts, named[places], False)
    joined = replace(joined, tile=_tiles(joined, len(rows)) and a.fragments.tile and b.fragments.tile)
    positions = np.concatenate([a.positions, b.positions.astype(a.positions.dtype)])[row_order]
    links = {0: _join_links(a.links.get(0), b.links.get(0), old_rows, new_rows)} if 0 in a.links or 0 in b.links else {}
    return Content(
        keys,
        row_starts,
        positions,
        joined,
        _join(a.vertex_attributes, b.vertex_attributes, len(a.positions), len(b.positions), row_order),
        _join(a.fragment_attributes, b.fragment_attributes, a.fragments.count, b.fragments.count, part_order),
        links,
        _join_objects(a.objects, b.objects, parts[: a.fragments.count], parts[a.fragments.count :]),
        a.groups,
    )


def keep_rows(content: Content, kept: npt.NDArray[np.bool_]) -> Content:
    """Only some rows: links to others go, fragments lose them, and fragments and objects left with nothing go too."""
    number = np.cumsum(kept) - 1
    cell = content.cell_of_rows()
    counts = np.bincount(cell[kept], minlength=len(content.keys))
    alive = counts > 0
    fragments = content.fragments
    entry = kept[fragments.rows]
    part = fragments.of_rows()
    lengths = np.bincount(part[entry], minlength=fragments.count)
    part_cell = row_numbers(np.diff(fragments.before))
    part_kept = (lengths > 0) | ((np.diff(fragments.starts) == 0) & alive[part_cell])
    if content.objects is None:
        part_kept = alive[part_cell]  # bins stay, also without points
    part_number = np.cumsum(part_kept) - 1
    thinned = Fragments(
        starts_of(np.bincount(part_cell[part_kept], minlength=len(content.keys))[alive]),
        starts_of(lengths[part_kept]),
        number[fragments.rows[entry]],
        fragments.tile,
    )
    links = {delta: _kept_links(each, kept, number) for delta, each in content.links.items() if delta == 0}
    return Content(
        content.keys[alive],
        starts_of(counts[alive]),
        content.positions[kept],
        thinned,
        {name: column.take(kept) for name, column in content.vertex_attributes.items()},
        {name: column.take(part_kept) for name, column in content.fragment_attributes.items()},
        links,
        None if content.objects is None else _kept_objects(content.objects, part_kept, part_number),
        content.groups,
    )


def take_cells(content: Content, cells: Ints) -> Content:
    """Some cells, by their ascending numbers, without links, objects and groups."""
    row_starts, rows = take_rows(content.row_starts, cells)
    before, parts = take_rows(content.fragments.before, cells)
    starts, places = take_rows(content.fragments.starts, parts)
    shift = content.row_starts[cells] - row_starts[:-1]
    per_part = np.repeat(shift, np.diff(before))
    named = content.fragments.rows[places] - np.repeat(per_part, np.diff(starts))
    return Content(
        content.keys[cells],
        row_starts,
        content.positions[rows],
        Fragments(before, starts, named, content.fragments.tile),
        {name: column.take(rows) for name, column in content.vertex_attributes.items()},
        {name: column.take(parts) for name, column in content.fragment_attributes.items()},
    )


def thin_out(content: Content, kept: npt.NDArray[np.bool_]) -> Content:
    """Only some rows, without links, objects and groups; fragments keep their numbers, also those left with nothing.

    Cells without rows go.
    """
    number = np.cumsum(kept) - 1
    counts = np.bincount(content.cell_of_rows()[kept], minlength=len(content.keys))
    alive = np.flatnonzero(counts > 0)
    fragments = content.fragments
    entry = kept[fragments.rows]
    lengths = np.bincount(fragments.of_rows()[entry], minlength=fragments.count)
    before, parts = take_rows(fragments.before, alive)
    return Content(
        content.keys[alive],
        starts_of(counts[alive]),
        content.positions[kept],
        Fragments(before, starts_of(lengths[parts]), number[fragments.rows[entry]], fragments.tile),
        {name: column.take(kept) for name, column in content.vertex_attributes.items()},
        {name: column.take(parts) for name, column in content.fragment_attributes.items()},
    )


def move_rows(content: Content, positions: npt.NDArray[Any], chunk_shape: Sequence[float]) -> Content:
    """The same vertices at other ``positions`` (of every row), in the chunks that these belong to.

    Fragments are cut where neighbours are in different chunks now.
    """
    lead = content.keys.shape[1] - positions.shape[1]
    space = chunks_of(positions, chunk_shape)
    chunks = np.concatenate([content.keys[content.cell_of_rows()][:, :lead], space], axis=1)
    keys, cell = unique_rows(chunks)
    order = np.argsort(cell, kind="stable")
    place = inverse(order)
    fragments = content.fragments
    entry_cell, part = cell[fragments.rows], fragments.of_rows()
    new = np.ones(len(part), np.bool_)
    new[1:] = (part[1:] != part[:-1]) | (entry_cell[1:] != entry_cell[:-1])
    first = np.flatnonzero(new)
    lengths = np.diff(np.concatenate([first, [len(part)]]))
    by_cell = np.argsort(entry_cell[first], kind="stable")
    number = inverse(by_cell)
    joined = Fragments(
        starts_of(np.bincount(entry_cell[first], minlength=len(keys))),
        starts_of(lengths[by_cell]),
        place[fragments.rows[ranges(first[by_cell], lengths[by_cell])]],
        False,
    )
    joined = replace(joined, tile=_tiles(joined, len(positions)))
    source = part[first]
    columns = {name: column.take(source[by_cell]) for name, column in content.fragment_attributes.items()}
    links: dict[int, Links] = {}
    if 0 in content.links:
        links[0] = replace(content.links[0], endpoints=place[content.links[0].endpoints])
    objects = content.objects
    if objects is not None:
        pieces = np.bincount(source, minlength=fragments.count)
        piece_starts = starts_of(pieces)
        runs = ranges(piece_starts[objects.fragments], pieces[objects.fragments])
        per_object = np.add.reduceat(np.append(pieces[objects.fragments], 0), objects.starts[:-1])
        per_object[np.diff(objects.starts) == 0] = 0
        objects = replace(objects, starts=starts_of(per_object), fragments=number[runs])
    return Content(
        keys,
        starts_of(np.bincount(cell, minlength=len(keys))),
        positions[order],
        joined,
        {name: column.take(order) for name, column in content.vertex_attributes.items()},
        columns,
        links,
        objects,
        content.groups,
    )


def changed_vertices(
    content: Content,
    kind: str,
    positions: npt.NDArray[Any],
    kept: npt.NDArray[np.bool_],
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float],
) -> Content:
    """``content`` with vertices at other ``positions`` (of every row), and without those that are not ``kept``.

    Neighbours of a vertex that goes become neighbours in lines; in skeletons its children become roots. Raises
    :class:`~zardine.errors.UnsupportedError` where fragments of lines or skeletons have attributes: these are cut anew.
    """
    plain = not content.links and not content.fragment_attributes
    if content.objects is None and plain:
        kept = kept & content.visible()
        made = plain_points(positions, content.vertex_attributes, kept, chunk_shape, bin_shape)
        return replace(made, groups=content.groups)
    if kind not in (*LINES, "skeleton") or content.objects is None:
        return move_rows(keep_rows(content, kept), positions[kept], chunk_shape)
    if content.fragment_attributes:
        raise UnsupportedError(f"the fragments of this {kind} have attributes, which would no longer fit")
    if kind == "skeleton":
        return _skeleton(content, positions, kept, chunk_shape)
    return _lines(content, positions, kept, chunk_shape)


def plain_points(
    positions: npt.NDArray[Any],
    columns: Columns,
    kept: npt.NDArray[np.bool_] | None,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float],
) -> Content:
    """Points without objects in the order of chunks and bins, without those that are not ``kept``."""
    if kept is not None and not kept.all():
        positions, columns = positions[kept], {name: column.take(kept) for name, column in columns.items()}
    return binned_points(positions, columns, chunk_shape, bin_shape)


def _lines(content: Content, positions: Any, kept: npt.NDArray[np.bool_], chunk_shape: Sequence[float]) -> Content:
    assert content.objects is not None
    starts, rows = content.rows_of_objects()
    owner = row_numbers(np.diff(starts))[kept[rows]]
    rows = rows[kept[rows]]
    before = np.diff(starts)
    lengths = np.bincount(owner, minlength=len(before))
    alive = np.flatnonzero((lengths > 0) | (before == 0))
    columns = {name: column.take(rows) for name, column in content.vertex_attributes.items()}
    objects = content.objects.take(alive)
    made = polyline_content(positions[rows], columns, lengths[alive], chunk_shape, objects)
    return replace(made, groups=content.groups)


def _skeleton(content: Content, positions: Any, kept: npt.NDArray[np.bool_], chunk_shape: Sequence[float]) -> Content:
    assert content.objects is not None
    parents = parents_of(content, content.links.get(0))
    owner = content.row_object()
    rows = np.flatnonzero(kept & content.visible() & (owner >= 0))
    number = np.full(len(positions) + 1, -1, np.int64)
    number[rows] = np.arange(len(rows))
    held = np.bincount(owner[rows], minlength=len(content.objects.ids))
    alive = np.flatnonzero((held > 0) | (np.diff(content.objects.starts) == 0))
    place = np.full(len(content.objects.ids), -1, np.int64)
    place[alive] = np.arange(len(alive))
    columns = {name: column.take(rows) for name, column in content.vertex_attributes.items()}
    objects = content.objects.take(alive)
    row: Ints = place[owner[rows]]
    made = skeleton_content(positions[rows], columns, number[parents[rows]], row, chunk_shape, objects)
    return replace(made, groups=content.groups)


def _interleave(keys: Ints, a: Ints, b: Ints, of_a: Ints, of_b: Ints) -> tuple[Ints, Ints]:
    """New numbers of all items of ``a`` and then of ``b``, and where each cell starts."""
    cell_a, cell_b = find_rows(keys, a), find_rows(keys, b)
    counts = np.zeros((2, len(keys)), np.int64)
    counts[0, cell_a], counts[1, cell_b] = of_a, of_b
    starts = starts_of(counts.sum(axis=0))
    numbers_a = ranges(starts[cell_a], of_a)
    numbers_b = ranges(starts[cell_b] + counts[0, cell_b], of_b)
    return np.concatenate([numbers_a, numbers_b]), starts


def _join(
    a: Columns, b: Columns, rows_a: int, rows_b: int, order: Ints, *, of_objects: bool = False
) -> dict[str, Column]:
    found = {}
    for name in dict.fromkeys([*a, *b]):
        if name in a:
            whole = join_columns(name, a[name], b[name].decoded() if name in b else None, rows_b, of_objects=of_objects)
        else:
            none = b[name].take(np.zeros(0, np.int64))
            before = join_columns(name, none, None, rows_a, of_objects=of_objects)
            whole = join_columns(name, before, b[name].decoded(), rows_b)
        found[name] = whole.take(order)
    return found


def _join_links(a: Links | None, b: Links | None, rows_a: Ints, rows_b: Ints) -> Links:
    if a is None or b is None:
        links, rows = (a, rows_a) if a is not None else (b, rows_b)
        assert links is not None
        return replace(links, endpoints=rows[links.endpoints])
    endpoints = np.concatenate([rows_a[a.endpoints], rows_b[b.endpoints]])
    order = np.arange(len(endpoints))
    columns = _join(a.attributes, b.attributes, len(a.endpoints), len(b.endpoints), order)
    return Links(endpoints, columns, a.directed)


def _join_objects(a: Objects | None, b: Objects | None, parts_a: Ints, parts_b: Ints) -> Objects | None:
    if a is None or b is None:
        return None
    known = find_rows(a.ids.reshape(-1, 1), b.ids.reshape(-1, 1))
    fresh = np.flatnonzero(known < 0)
    row = known.copy()
    row[fresh] = len(a.ids) + np.arange(len(fresh))
    owner = np.concatenate([row_numbers(np.diff(a.starts)), row[row_numbers(np.diff(b.starts))]])
    fragments = np.concatenate([parts_a[a.fragments], parts_b[b.fragments]])
    order = np.argsort(owner, kind="stable")
    count = len(a.ids) + len(fresh)
    columns = _join(
        a.attributes,
        {name: column.take(fresh) for name, column in b.attributes.items()},
        len(a.ids),
        len(fresh),
        np.arange(count),
        of_objects=True,
    )
    return Objects(
        np.concatenate([a.ids, b.ids[fresh]]), starts_of(np.bincount(owner, minlength=count)), fragments[order], columns
    )


def _kept_links(links: Links, kept: npt.NDArray[np.bool_], number: Ints) -> Links:
    whole = np.flatnonzero(kept[links.endpoints].all(axis=1)) if len(links.endpoints) else np.zeros(0, np.int64)
    columns: Mapping[str, Column] = {name: column.take(whole) for name, column in links.attributes.items()}
    return Links(number[links.endpoints[whole]], columns, links.directed)


def _kept_objects(objects: Objects, part_kept: npt.NDArray[np.bool_], number: Ints) -> Objects:
    owner = row_numbers(np.diff(objects.starts))
    entry = part_kept[objects.fragments]
    lengths = np.bincount(owner[entry], minlength=len(objects.ids))
    thinned = replace(objects, starts=starts_of(lengths), fragments=number[objects.fragments[entry]])
    return thinned.take(np.flatnonzero((lengths > 0) | (np.diff(objects.starts) == 0)))


def _tiles(fragments: Fragments, rows: int) -> bool:
    return len(fragments.rows) == rows and bool((fragments.rows == np.arange(rows)).all())
