"""Checking the rows of vertices, and what is claimed of fragments."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from zardine.errors import DataError
from zardine.vectors.content.content import Content
from zardine.vectors.findings import Finding, error, warning
from zardine.vectors.format.grids import bins_of, bins_per_chunk, chunks_of
from zardine.vectors.storing.store import Level


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
