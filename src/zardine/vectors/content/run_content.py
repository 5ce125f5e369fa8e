"""Polylines and skeletons as they are stored: each run of vertices within a chunk is a fragment. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.arguments import plain_array
from zardine.vectors.content.columns import array_of, checked_mapping, joined_arrays
from zardine.vectors.content.content import Columns, Content, Fragments, GivenRows, Groups, Links, Objects
from zardine.vectors.content.line_parts import LineRuns
from zardine.vectors.format.grids import Corners, chunk_runs
from zardine.vectors.format.ragged import ranges, rows_at, stable_order, starts_of


def run_content(
    positions: npt.NDArray[Any],
    columns: Columns,
    edges: Ints,
    starts: Ints,
    chunk_shape: Sequence[float],
    objects: Objects,
    link: Callable[[GivenRows, Fragments, Objects], Ints],
    corners: Corners | None = None,
    groups: Groups | None = None,
    *,
    are_lines: bool = False,
) -> Content:
    """Runs of rows, cut at the rows ``edges`` (ascending) and where the chunk changes.

    The rows of each object are those from its place in ``starts`` to the next. Of ``objects`` the ids and attributes
    count. ``link`` says what is linked besides, and is called when somebody asks for links, or for objects.
    ``corners``: of a box that holds all positions, if one is known. ``are_lines``: whether that is from each run of an
    object to the next, and nothing else. Rows are as ``given`` until somebody asks for them.
    """
    first, cells_of, keys, in_cells = chunk_runs(positions, chunk_shape, edges, corners)
    lines = LineRuns(first, cells_of, keys, starts, objects.ids, objects.attributes) if are_lines else None
    lengths = np.diff(first, append=len(positions))
    by_cell = stable_order(cells_of, len(keys))
    given = GivenRows(positions, columns, first.take(by_cell), lengths.take(by_cell))
    fragments = Fragments.tiling(starts_of(np.bincount(cells_of, minlength=len(keys))), starts_of(given.lengths))

    def linked() -> tuple[Objects, Mapping[int, Links]]:
        manifests = np.searchsorted(first, starts).astype(np.int64, copy=False)
        parts = Objects(objects.ids, manifests, inverse(by_cell), objects.attributes)
        return parts, {0: Links(link(given, fragments, parts))}

    return Content.of_runs(keys, starts_of(in_cells), given, fragments, linked, groups, lines)


def polyline_content(
    positions: npt.NDArray[Any],
    columns: Columns,
    lengths: Ints,
    chunk_shape: Sequence[float],
    objects: Objects,
    corners: Corners | None = None,
    groups: Groups | None = None,
) -> Content:
    """Lines of ``lengths`` vertices; where a line goes on in another chunk, a link says so.

    ``corners``: of a box that holds all positions, if one is known.
    """
    edges = starts_of(lengths)
    cuts = edges[:-1][lengths > 0]
    about = columns, cuts, edges, chunk_shape, objects, _links_of_lines, corners, groups
    return run_content(positions, *about, are_lines=True)


def _links_of_lines(given: GivenRows, fragments: Fragments, objects: Objects) -> Ints:
    """Endpoints of the links from each fragment of a line to its next one."""
    order, starts = objects.fragments, fragments.starts
    goes_on = np.ones(len(order), np.bool_)
    goes_on[objects.starts[:-1][np.diff(objects.starts) > 0]] = False
    later = np.flatnonzero(goes_on)
    last = starts.take(order.take(later - 1) + 1) - 1
    return np.stack([last, starts.take(order.take(later))], axis=1)


def skeleton_content(
    positions: npt.NDArray[Any],
    columns: Columns,
    parents: Ints,
    row: Ints,
    chunk_shape: Sequence[float],
    objects: Objects,
) -> Content:
    """Trees: a fragment is a path from parent to child; links say what else is connected, child first."""
    order = depth_first(parents, row)
    ordered = inverse(order)
    new_parents = np.where(parents[order] >= 0, ordered[parents[order]], -1)
    begins, own = new_parents != np.arange(len(order)) - 1, row[order]
    begins[1:] |= own[1:] != own[:-1]
    taken = {name: column.take(order) for name, column in columns.items()}
    edges, trees = np.flatnonzero(begins), starts_of(np.bincount(own, minlength=len(objects.ids)))

    def link(given: GivenRows, fragments: Fragments, objects: Objects) -> Ints:
        again = ranges(given.first, given.lengths)
        stored = inverse(again)
        starts = again[fragments.starts[:-1]]
        child = starts[new_parents[starts] >= 0]
        return np.stack([stored[child], stored[new_parents[child]]], axis=1)

    return run_content(rows_at(positions, order), taken, edges, trees, chunk_shape, objects, link)


def depth_first(parents: Ints, row: Ints) -> Ints:
    """The vertices object by object, each tree from its root, each branch to its end. Raises :class:`DataError`."""
    count = len(parents)
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(count + 1)).tolist()
    children = by_parent.tolist()
    roots = np.flatnonzero(parents < 0)
    stack = roots[np.argsort(row[roots], kind="stable")][::-1].tolist()
    found: list[int] = []
    while stack:
        vertex = stack.pop()
        found.append(vertex)
        stack.extend(children[starts[vertex] : starts[vertex + 1]][::-1])
    if len(found) < count:
        raise DataError("the parents of a skeleton go round in a circle: no root is above some of its vertices")
    return np.array(found, np.int64)


def parents_of(content: Content, links: Links | None) -> Ints:
    """Return for each row its parent, -1 for none: the row before it in its fragment, unless a link says another."""
    parents = np.full(len(content.positions), -1, np.int64)
    rows, starts = content.fragments.rows, content.fragments.starts
    if len(rows):
        parents[rows[1:]] = rows[:-1]
        parents[rows[starts[:-1][np.diff(starts) > 0]]] = -1
    if links is None:
        return parents
    if links.directed:  # programs that write skeletons piece by piece link across chunks in either direction
        for child, other in links.endpoints[(links.endpoints >= 0).all(axis=1)].tolist():
            if parents[child] < 0 or parents[other] >= 0:
                parents[child] = other
            else:
                parents[other] = child
        return parents
    children = links.endpoints[:, 0]
    known = children >= 0
    parents[children[known]] = links.endpoints[known, 1]
    return parents


def inverse(order: Ints) -> Ints:
    """Where each number is in ``order``."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def joined_lines(lines: Sequence[Any], rank: int | None = None) -> tuple[npt.NDArray[Any], Ints]:
    """All vertices of a user's lines, and how many each has. Raises :class:`DataError`."""
    try:
        each = list(lines)
    except TypeError:
        raise DataError(f"polylines are arrays of shape (vertices, D), not {type(lines).__name__}") from None
    arrays = [plain_array(line, f"line {number}") for number, line in enumerate(each)]
    ranks = {array.shape[1] for array in arrays if array.ndim == 2 and len(array)}
    if isinstance(lines, np.ndarray) and lines.ndim == 2 and lines.dtype != object:
        raise DataError("polylines are a list of arrays of shape (vertices, D): one line is given as [line]")
    if any(array.ndim != 2 and array.size for array in arrays) or len(ranks) > 1:
        raise DataError("polylines are arrays of shape (vertices, D), with the same D")
    width = ranks.pop() if ranks else rank
    if width is None:
        raise DataError("there are no vertices: nothing says how many axes space has")
    lengths = np.array([len(array) for array in arrays], np.int64)
    full = [array for array in arrays if len(array)]
    if any(array.dtype.kind not in "iufO" for array in full):
        raise DataError("polylines are arrays of numbers of shape (vertices, D)")
    return (np.concatenate(full) if full else np.zeros((0, width))), lengths


def joined_columns(given: Mapping[str, Any] | None, lengths: Ints) -> Mapping[str, Any] | None:
    """Attributes with a list for each line as one list for all; such that are one list already stay as they are."""
    if checked_mapping(given) is None:
        return None
    found = {}
    total = int(lengths.sum())
    for name, values in (given or {}).items():
        if (
            isinstance(values, (list, tuple))
            and len(values) == len(lengths)
            and (len(lengths) != total or any(map(_has_rows, values)))
        ):
            parts = [array_of(name, each) for each in values]
            for number, (part, length) in enumerate(zip(parts, lengths.tolist(), strict=True)):
                if part.ndim == 0 or len(part) != length:
                    raise DataError(f"attribute {name!r} does not have one row for each vertex of line {number}")
            values = joined_arrays(name, parts)
        found[name] = values
    return found


def _has_rows(values: Any) -> bool:
    return isinstance(values, (list, tuple)) or np.ndim(values) > 0
