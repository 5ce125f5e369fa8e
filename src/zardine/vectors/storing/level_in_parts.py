"""Planning a new level of more vertices than fit in memory.

Vertices are gone through in the order in which they were given, twice: to find the chunks that they are in, and to put
them into buckets, blocks of chunks, which lie in a temporary file. Then each block is planned by itself, and its cells
wait in another temporary file, as they are to be stored (:mod:`zardine.vectors.storing.node_parts`). In memory are one
part, one block, and some numbers for each chunk and each object. What comes out is the same, to the byte, as where all
is planned at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.base import Store
from zardine.vectors.content.content import Columns, Content, Fragments, Links, Objects
from zardine.vectors.content.link_placement import place_in_cells
from zardine.vectors.content.parts import (
    ABOVE,
    AT_ONCE,
    ENDS,
    OWNER,
    Blocks,
    LinksInParts,
    Vertices,
    Without,
    as_records,
    from_records,
    record_type,
)
from zardine.vectors.content.plan import Grid, Node, group, plan_level, plan_links, plan_objects
from zardine.vectors.content.point_content import binned_points, by_object
from zardine.vectors.format.manifests import encode_manifests
from zardine.vectors.format.ragged import starts_of
from zardine.vectors.storing.node_parts import NodeParts
from zardine.vectors.storing.spools import Buckets, Spool, SpooledBlobs

Step = Callable[[float], object]
"""Called with the share of the vertices that are planned."""

_LINK = np.dtype([("cells", np.int64, (2,)), ("rows", np.int64, (2,))])


def points_in_parts(
    store: Store,
    path: str,
    vertices: Vertices,
    blocks: Blocks,
    bin_shape: tuple[float, ...] | None,
    grid: Grid,
    step: Step,
) -> list[Node]:
    """Plan a level of points that are part of no object."""
    buckets = Buckets(record_type(vertices), blocks.count)
    for positions, values in vertices.parts():
        buckets.add(as_records(record_type(vertices), positions, values), blocks.number[blocks.cells_of(positions)])
    nodes = NodeParts(store, path)
    for block in range(blocks.count):
        content = binned_points(*from_records(buckets.rows(block), vertices.columns), blocks.chunk_shape, bin_shape)
        nodes.add(plan_level(content, grid, always_links=False))
        step((block + 1) / blocks.count)
    return nodes.nodes()


def lines_in_parts(
    store: Store,
    path: str,
    vertices: Vertices,
    blocks: Blocks,
    lengths: Ints,
    ids: Ints,
    columns: Columns,
    grid: Grid,
    step: Step,
) -> list[Node]:
    """Plan a level of lines of ``lengths`` vertices, and the tables of these; ``columns``: their attributes."""
    dtype = record_type(vertices, ("begins", "?"))
    buckets, crossing = Buckets(dtype, blocks.count), Buckets(_LINK, blocks.count)
    walk = _Walk(blocks, starts_of(lengths), SpooledBlobs(Spool()))
    for positions, values in vertices.parts():
        records, cell = as_records(dtype, positions, values), blocks.cells_of(positions)
        records["begins"], links = walk.step(cell)
        buckets.add(records, blocks.number[cell])
        crossing.add(links, blocks.number[links["cells"].min(axis=1)])
    walk.end()
    nodes = NodeParts(store, path)
    for block in range(blocks.count):
        content = _runs_of_block(buckets.rows(block), vertices, blocks, block)
        nodes.add(_links_of_block(crossing.rows(block), blocks, grid))
        nodes.add(plan_level(content, grid, always_links=False))
        step((block + 1) / blocks.count)
    present = int((lengths > 0).sum())
    return [
        *nodes.nodes(),
        *plan_objects(
            ids, columns, walk.manifests, walk.manifests.nbytes, present, vertices.rank, grid.layout, sole=True
        ),
    ]


def trees_in_parts(
    store: Store,
    path: str,
    vertices: Vertices,
    blocks: Blocks,
    lengths: Ints,
    ids: Ints,
    columns: Columns,
    grid: Grid,
    step: Step,
    *,
    always_links: bool,
) -> list[Node]:
    """Plan a level of skeletons of ``lengths`` vertices, each of which comes after its parent, and their tables.

    One of the columns of the vertices is :data:`~zardine.vectors.content.parts.ABOVE`; branches are to be whole, as
    :func:`~zardine.vectors.content.run_content.depth_first` puts them.
    """
    plain = Without(vertices, ABOVE)
    dtype = record_type(plain, ("begins", "?"))
    buckets, crossing = Buckets(dtype, blocks.count), Buckets(_LINK, blocks.count)
    walk = _Walk(blocks, starts_of(lengths), SpooledBlobs(Spool()))
    for positions, values in vertices.parts():
        others = {name: each for name, each in values.items() if name != ABOVE}
        records, cell = as_records(dtype, positions, others), blocks.cells_of(positions)
        records["begins"], links = walk.step(cell, values[ABOVE])
        buckets.add(records, blocks.number[cell])
        crossing.add(links, blocks.number[links["cells"].min(axis=1)])
    walk.end()
    nodes = NodeParts(store, path)
    for block in range(blocks.count):
        content = _runs_of_block(buckets.rows(block), plain, blocks, block)
        links = crossing.rows(block)
        links = links[np.argsort(links["cells"][:, 0], kind="stable")]
        nodes.add(_links_of_block(links, blocks, grid, always=always_links))
        nodes.add(plan_level(content, grid, always_links=False))
        step((block + 1) / blocks.count)
    present = int((lengths > 0).sum())
    return [
        *nodes.nodes(),
        *plan_objects(ids, columns, walk.manifests, walk.manifests.nbytes, present, plain.rank, grid.layout, sole=True),
    ]


def linked_in_parts(
    store: Store,
    path: str,
    vertices: Vertices,
    links: LinksInParts,
    blocks: Blocks,
    ids: Ints,
    columns: Columns,
    grid: Grid,
    step: Step,
) -> list[Node]:
    """Plan a level of graphs or meshes, and the tables of their objects, which have the ``ids``, ascending.

    One of the columns of the vertices is :data:`~zardine.vectors.content.parts.OWNER`. Beside one part and one block,
    eight bytes for each vertex, and some numbers for each chunk and each object in it, are in memory.
    """
    plain = Without(vertices, OWNER)
    dtype = record_type(plain, ("owner", "<i8"), ("number", "<i8"))
    buckets, number = Buckets(dtype, blocks.count), 0
    for positions, values in vertices.parts():
        records = as_records(dtype, positions, {name: each for name, each in values.items() if name != OWNER})
        records["owner"] = values[OWNER]
        records["number"] = np.arange(number, number + len(positions))
        number += len(positions)
        buckets.add(records, blocks.number[blocks.cells_of(positions)])
    cells, rows = (np.zeros(vertices.count, np.int32) for _ in range(2))  # where each vertex is stored
    nodes, runs = NodeParts(store, path), [np.zeros((0, 3), np.int64)]
    for block in range(blocks.count):
        records, chosen = buckets.rows(block), blocks.of_block(block)
        points, taken = from_records(records, plain.columns)
        cell = blocks.cells_of(points) - chosen.start
        own, row = np.unique(records["owner"], return_inverse=True)
        objects = Objects(own, row, row)
        content, order = by_object(points, taken, blocks.keys[chosen], cell, row.reshape(-1), objects)
        nodes.add(plan_level(replace(content, objects=None), grid, always_links=False))
        owner = content.cell_of_rows()
        cells[records["number"][order]] = chosen.start + owner
        rows[records["number"][order]] = np.arange(len(order)) - content.row_starts[owner]
        runs.append(_fragments_of_block(content, np.searchsorted(ids, own), chosen.start))
        step((block + 1) / blocks.count / 2)
    nodes.add(_linked_nodes(links, cells, rows, blocks, grid, step))
    fragments = np.concatenate(runs)
    fragments = fragments[np.argsort(fragments[:, 0], kind="stable")]
    starts = starts_of(np.bincount(fragments[:, 0], minlength=len(ids)))
    manifests = SpooledBlobs(Spool())
    for first in range(0, len(ids), AT_ONCE):
        edges = starts[first : first + AT_ONCE + 1]
        some = fragments[edges[0] : edges[-1]]
        manifests.extend(encode_manifests(edges - edges[0], blocks.keys[some[:, 1]], some[:, 2]))
    present = int((np.diff(starts) > 0).sum())
    return [
        *nodes.nodes(),
        *plan_objects(ids, columns, manifests, manifests.nbytes, present, plain.rank, grid.layout, sole=True),
    ]


def _fragments_of_block(content: Content, objects: Ints, first_cell: int) -> Ints:
    """Object, chunk and number in the chunk of each fragment, object by object."""
    assert content.objects is not None
    own, before = content.objects, content.fragments.before
    cell = np.searchsorted(before, own.fragments, side="right") - 1
    row = np.repeat(objects, np.diff(own.starts))
    return np.stack([row, first_cell + cell, own.fragments - before[cell]], axis=1)


def _linked_nodes(
    links: LinksInParts, cells: npt.NDArray[Any], rows: npt.NDArray[Any], blocks: Blocks, grid: Grid, step: Step
) -> Iterator[Node]:
    """The nodes of all links, by what is known of where vertices are stored."""
    like = {name: column for name, column in links.link_columns.items() if name != ENDS}
    width = links.link_columns[ENDS].row_shape[0]
    fields: list[Any] = [("cells", np.int64, (width,)), ("rows", np.int64, (width,))]
    fields += [(f"value {number}", each.values.dtype, each.row_shape) for number, each in enumerate(like.values())]
    filed = Buckets(np.dtype(fields), blocks.count)
    for part in links.links():
        ends = part[ENDS].values
        for first in range(0, len(ends), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            records = np.empty(len(ends[some]), np.dtype(fields))
            records["cells"], records["rows"] = cells[ends[some]], rows[ends[some]]
            for number, name in enumerate(like):
                records[f"value {number}"] = part[name].values[some]
            filed.add(records, blocks.number[records["cells"].min(axis=1)])
    for block in range(blocks.count):
        records = filed.rows(block)
        columns = {
            name: replace(column, values=np.ascontiguousarray(records[f"value {number}"]))
            for number, (name, column) in enumerate(like.items())
        }
        yield from _links_of_block(records, blocks, grid, columns, always=True)
        step((block + 1) / blocks.count / 2 + 0.5)


@dataclass(slots=True, eq=False)
class _Walk:
    """A walk along all lines or trees, in their order: where the rows of their runs are to be, chunk by chunk."""

    blocks: Blocks
    starts: Ints
    """Where the vertices of each line start."""
    manifests: SpooledBlobs
    """Of the lines that are behind us."""
    rows: Ints = field(init=False)
    """How many rows each chunk has so far."""
    fragments: Ints = field(init=False)
    done: int = 0
    """Vertices that are behind us."""
    before: Ints = field(default_factory=lambda: np.full((1, 3), -1))
    """Line, chunk and row of the vertex before; of trees, of all vertices of the tree that is not at its end."""
    waiting: list[Ints] = field(default_factory=list)
    """Line, chunk and fragment of the runs of lines that are not at their end."""

    def __post_init__(self) -> None:
        self.rows, self.fragments = (np.zeros(len(self.blocks.keys), np.int64) for _ in range(2))

    def step(self, cell: Ints, above: Ints | None = None) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Go on along one or more vertices in the chunks ``cell``; gives which begin a run, and links between runs.

        ``above``: how many vertices before each its parent is, 0 for none; left out, each is that of the next one in
        its line. Links are from parent to child in lines, else from child to parent.
        """
        line, known = self._lines(len(cell)), len(self.before)
        both = np.concatenate([self.before, np.stack([line, cell, _places(cell, self.rows)], axis=1)])
        same_line = both[known:, 0] == both[known - 1 : -1, 0]
        parents = np.arange(known, len(both)) - (same_line if above is None else above.astype(np.int64))
        own = np.arange(known, len(both))
        if (parents < 0).any() or (parents > own).any() or (both[parents, 0] != line).any():
            raise DataError("the parent of a vertex of a skeleton is not before it")
        has_parent = parents < own
        follows = same_line & (parents == own - 1)
        begins = ~follows | (both[known:, 1] != both[known - 1 : -1, 1])
        child = known + np.flatnonzero(begins & has_parent)
        ends = (parents[child - known], child) if above is None else (child, parents[child - known])
        links = np.empty(len(child), _LINK)
        for end, rows in enumerate(ends):
            links["cells"][:, end], links["rows"][:, end] = both[rows, 1], both[rows, 2]
        first = np.flatnonzero(begins)
        self.waiting.append(np.stack([line[first], cell[first], _places(cell[first], self.fragments)], axis=1))
        last = int(both[-1, 0])
        self.before = both[-1:] if above is None else both[np.searchsorted(both[:, 0], last) :]
        self.done += len(cell)
        self._put_manifests(last)
        return begins, links

    def end(self) -> None:
        """Go past the last line."""
        self._put_manifests(len(self.starts) - 1)

    def _lines(self, count: int) -> Ints:
        """The lines of the next ``count`` vertices."""
        first = int(np.searchsorted(self.starts, self.done, side="right")) - 1
        last = int(np.searchsorted(self.starts, self.done + count, side="left"))
        edges = np.clip(self.starts[first : last + 1], self.done, self.done + count)
        return first + np.repeat(np.arange(len(edges) - 1), np.diff(edges))

    def _put_manifests(self, before: int) -> None:
        """Put the manifests of the lines before the one of this number, which come to an end."""
        runs = np.concatenate([np.zeros((0, 3), np.int64), *self.waiting])
        whole = int(np.searchsorted(runs[:, 0], before))
        ready, first = runs[:whole], len(self.manifests)
        self.waiting = [runs[whole:]]
        counts = np.bincount(ready[:, 0] - first, minlength=before - first)
        self.manifests.extend(encode_manifests(starts_of(counts), self.blocks.keys[ready[:, 1]], ready[:, 2]))


def _places(cell: Ints, counts: Ints) -> Ints:
    """For each entry how many of the same chunk were before it; ``counts``, of each chunk, go on."""
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(cell) else order
    sizes = np.diff(np.append(starts, len(cell)))
    places = np.empty(len(cell), np.int64)
    places[order] = np.arange(len(cell)) - np.repeat(starts, sizes) + counts[ordered]
    counts[ordered[starts]] += sizes
    return places


def _runs_of_block(records: npt.NDArray[Any], vertices: Vertices, blocks: Blocks, block: int) -> Content:
    keys = blocks.keys[blocks.of_block(block)]
    cell = blocks.cells_of(np.ascontiguousarray(records["positions"])) - blocks.of_block(block).start
    order = np.argsort(cell, kind="stable")
    positions, columns = from_records(records[order], vertices.columns)
    first = np.flatnonzero(records["begins"][order])
    return Content(
        keys,
        starts_of(blocks.counts[blocks.of_block(block)]),
        positions,
        Fragments(
            starts_of(np.bincount(cell[order][first], minlength=len(keys))),
            np.append(first, len(records)),
            np.arange(len(records)),
            True,
        ),
        columns,
    )


def _links_of_block(
    links: npt.NDArray[Any], blocks: Blocks, grid: Grid, columns: Columns | None = None, *, always: bool = False
) -> Iterator[Node]:
    """The links that are filed in a block; ``columns``: of them, ``always``: also where there are none."""
    if len(links) or always:
        yield Node("links", group())
        placed = list(place_in_cells(blocks.keys, links["cells"], links["rows"], canonical=True))
        made = Links(links["rows"], columns or {})
        yield from plan_links(0, made, None, grid, placed=placed, always_intra=always)


__all__ = ["Step", "lines_in_parts", "linked_in_parts", "points_in_parts", "trees_in_parts"]
