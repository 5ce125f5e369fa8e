"""Checking arrays of cells one by one, and the rows of vertices."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from zardine.errors import DataError, ZardineError
from zardine.vectors.cell_arrays import NONEMPTY, CellArray, key_texts
from zardine.vectors.content import Content
from zardine.vectors.converting import cell_arrays
from zardine.vectors.findings import Finding, error, warning
from zardine.vectors.grids import bins_of, bins_per_chunk, chunks_of
from zardine.vectors.level_access import Level
from zardine.vectors.ragged import find_rows
from zardine.vectors.rebuilding import is_settled


def check_arrays(level: Level) -> Iterator[Finding]:
    """Lists of chunks, the grid, shards, and what a conversion that was killed left."""
    number = level.document.level
    kinds: dict[tuple[str, ...], str] = {}
    for name, array in cell_arrays(level):
        place = f"{number}/{name}"
        yield from _check_array(place, array, level.rank)
        if array.attributes.get(NONEMPTY):
            kinds.setdefault(tuple(codec.name for codec in array.array.compressors), place)
    if len(kinds) > 1:
        told = "; ".join(f"{', '.join(codecs) or 'none'} ({place})" for codecs, place in kinds.items())
        yield warning("compression-differs", str(number), f"the arrays are compressed in different ways: {told}")


def _check_array(place: str, array: CellArray, rank: int) -> Iterator[Finding]:
    if array.rank != rank:
        yield error("grid-rank", place, f"an array of {array.rank} axes; the chunks of the level have {rank}")
        return
    if not is_settled(array.array.store, array.array.path, array.array.metadata):
        yield warning("conversion-unfinished", place, "a conversion was interrupted; repair brings it to an end")
    try:
        found = array.found()
    except ZardineError as fault:
        yield error("shard-index", place, str(fault))
        return
    raw, listed = array.attributes.get(NONEMPTY), array.listed()
    if raw is None:
        if len(found):
            yield error("manifest-missing", place, f"there is no {NONEMPTY}; {len(found)} chunks are stored")
        return
    if listed is None:
        yield error("manifest-damaged", place, f"{NONEMPTY} is no list of keys of {rank} numbers")
        return
    inside = array.inside(listed)
    if not inside.all():
        key = listed[~inside][0].tolist()
        yield error("manifest-off-grid", place, f"{NONEMPTY} names {key}, which is off the grid")
    unlisted = found[find_rows(listed, found) < 0]
    if len(unlisted):
        first = unlisted[0].tolist()
        yield error(
            "manifest-incomplete", place, f"{len(unlisted)} stored chunks are not in {NONEMPTY}, such as {first}"
        )
    lost = listed[inside][find_rows(found, listed[inside]) < 0]
    if len(lost):
        yield error("chunk-lost", place, f"{len(lost)} chunks of {NONEMPTY} are not stored, such as {lost[0].tolist()}")
    if len(np.unique(listed, axis=0)) != len(listed) or list(raw) != key_texts(listed):
        yield warning("manifest-order", place, f"{NONEMPTY} is not sorted as text, without repetitions")


def check_rows(level: Level, content: Content) -> Iterator[Finding]:
    """Positions, chunks, bins and counts."""
    place, root = str(level.document.level), level.owner.root
    positions, keys = content.positions, content.keys
    visible = int(content.visible().sum())
    if level.document.vertex_count != visible and level.document.vertex_count != len(positions):
        kind = error if level.document.vertex_count > visible else warning  # programs forget to count what they add
        yield kind("vertex-count", place, f"vertex_count is {level.document.vertex_count}; there are {visible}")
    if not np.isfinite(positions).all():
        yield error("not-finite", f"{place}/vertices", f"{int((~np.isfinite(positions)).any(axis=1).sum())} vertices")
        return
    if len(positions) == 0:
        return
    low, high = np.asarray(root.bounds)
    outside = ((positions < low - _slack(low)) | (positions > high + _slack(high))).any(axis=1)
    if outside.any():
        yield error(
            "bounds", f"{place}/vertices", f"{int(outside.sum())} vertices are outside of the bounds of the store"
        )
    shape = level.document.chunk_shape
    own = keys[content.cell_of_rows()][:, -positions.shape[1] :]
    stray = (chunks_of(positions, shape) != own).any(axis=1)
    if stray.any():
        row = int(np.flatnonzero(stray)[0])
        yield error(
            "outside-chunk",
            f"{place}/vertices",
            f"{int(stray.sum())} vertices are not in the chunk that holds them, such as {positions[row].tolist()} in "
            f"{own[row].tolist()}: boxes may miss them",
        )
    yield from _check_bins(level, content)


def check_fragments(level: Level, content: Content) -> Iterator[Finding]:
    """Claims about fragments."""
    place = str(level.document.level)
    if level.document.tiles and not content.fragments.tile:
        yield error(
            "tile-claim", place, "fragments_tile is claimed, but fragments do not cut each cell in pieces in order"
        )
    hidden = int((~content.visible()).sum())
    if hidden:
        yield warning("rows-hidden", f"{place}/vertex_fragments", f"{hidden} rows are part of no fragment")


def _check_bins(level: Level, content: Content) -> Iterator[Finding]:
    root = level.owner.root
    if root.geometry_types != ("point_cloud",) or content.objects is not None or level.document.level:
        return
    try:
        per_chunk = bins_per_chunk(root.chunk_shape, root.bin_shape)
    except DataError:
        return
    place, counts = f"{level.document.level}/vertex_fragments", np.diff(content.fragments.before)
    if (counts > prod(per_chunk)).any():
        yield error("too-many-bins", place, f"a chunk has {int(counts.max())} fragments, and {prod(per_chunk)} bins")
    elif (counts == prod(per_chunk)).all() and prod(per_chunk) > 1 and content.fragments.tile:
        own = content.keys[content.cell_of_rows()][:, -content.positions.shape[1] :]
        bins = bins_of(content.positions, own, root.chunk_shape, per_chunk)
        stored = content.fragments.of_rows() - content.fragments.before[content.cell_of_rows()]
        wrong = int((bins != stored).sum())
        if wrong:
            yield warning("outside-bin", place, f"{wrong} points are in another bin than their fragment says")


def _slack(corner: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.abs(corner) * 1e-6
