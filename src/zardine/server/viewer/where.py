"""Where a chunk is stored: key, bytes, codecs, and whether it is sound."""

from __future__ import annotations

from itertools import islice, product
from typing import Any, Final

from zardine.engine.locate import read_index
from zardine.errors import DataError
from zardine.metadata.node_names import join_path
from zardine.nodes.display import codec_text
from zardine.server.viewer.picture import View
from zardine.server.viewer.snapshot import Snapshot

_MOST_OBJECTS: Final = 2048
"""Objects that are looked for at a time."""


def chunk_at(snapshot: Snapshot, at: tuple[int, ...]) -> dict[str, Any]:
    """Return what is known of the chunk that has the element ``at``; it is read, and decoded."""
    array = snapshot.array
    layout = array._handle.layout
    part = next(snapshot.parts(at, tuple(i + 1 for i in at)))
    seen = next(snapshot.read(part))
    chain = layout.chain_of(part.object)
    facts: dict[str, Any] = {
        "key": seen.key,
        "chunk": list(seen.place),
        "shard": list(part.object) if layout.sharding is not None else None,
        "start": [axis.start(i) for axis, i in zip(layout.grids.chunks, seen.place, strict=True)],
        "shape": [axis.extent(i) for axis, i in zip(layout.grids.chunks, seen.place, strict=True)],
        "nbytes": chain.memory,
        "codecs": [codec_text(codec) for codec in array._inner_codecs()],
        "state": "damaged" if seen.error is not None else "missing" if seen.byte_range is None else "stored",
        "object": seen.object_is_stored,
        "offset": None if seen.byte_range is None else seen.byte_range[0],
        "length": None if seen.byte_range is None else seen.byte_range[1],
        "error": None if seen.error is None else f"{type(seen.error).__name__}: {seen.error}",
    }
    if seen.object_is_stored:
        facts["object_nbytes"] = array.store.size(seen.key)
        facts.update(_shard_facts(snapshot, part.object, seen.key))
    return facts


def _shard_facts(snapshot: Snapshot, coordinates: tuple[int, ...], key: str) -> dict[str, Any]:
    """Return how many inner chunks a shard has, and how many of its bytes nothing uses."""
    handle = snapshot.array._handle
    layout = handle.layout.shard(coordinates)
    if layout is None:
        return {}
    try:
        found = read_index(handle.store, key, layout)
    except DataError:
        return {}
    if found is None:
        return {}
    there = found.index.stored()
    ends = {
        (o, n) for o, n in zip(found.index.offsets[there].tolist(), found.index.lengths[there].tolist(), strict=True)
    }
    used = sum(length for _, length in ends) + layout.index_size
    return {"inner": int(there.sum()), "inner_total": layout.count, "unused": max(0, found.size - used)}


def objects_of(snapshot: Snapshot, view: View) -> dict[str, Any]:
    """Return which of the stored objects below a picture are there, by their places along its two axes."""
    array = snapshot.array
    grids = array._handle.layout.grids.storage
    ranges = []
    for axis, frame in ((view.down, view.rows), (view.across, view.columns)):
        if axis is None:
            ranges.append(range(1))
            continue
        low, high = (_chunk(grids[axis], i) for i in (frame.start, frame.stop - 1))
        ranges.append(range(low, high + 1))
    others = [_chunk(grid, i) for grid, i in zip(grids, view.at, strict=True)]
    found = []
    for row, column in islice(product(*ranges), _MOST_OBJECTS):
        place = list(others)
        place[view.across] = column
        if view.down is not None:
            place[view.down] = row
        key = array._handle.key(place)
        found.append([row, column, int(array.store.exists(key))])
    total = len(ranges[0]) * len(ranges[1])
    return {"objects": found, "total": total, "prefix": join_path(array.path, "")}


def _chunk(axis: Any, element: int) -> int:
    import numpy as np

    return int(axis.locate(np.array([element], np.int64))[0][0])


__all__ = ["chunk_at", "objects_of"]
