"""Where a chunk is stored: key, bytes, codecs, and whether it is sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import prod
from typing import Any, Final

from zardine.engine.read_index import read_index
from zardine.engine.workers import for_each, most_requests
from zardine.errors import DataError
from zardine.nodes.display import codec_text
from zardine.server.viewer.picture import View, objects_below
from zardine.server.viewer.snapshot import Snapshot

_FEW: Final = 16
"""Objects that are looked for one by one; of more there is a listing, if they are not too many for one."""
_MOST_OBJECTS: Final = 4096
"""Objects that are looked for at a time, and blocks that one answer has."""
_MOST_ASKED: Final = 256
"""The same where a look is a request."""


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


def objects_of(snapshot: Snapshot, view: View, gone: Callable[[], bool]) -> dict[str, Any]:
    """Return which objects below a picture are not stored: their blocks of elements, and how many are stored.

    If there are many, only the first ones are looked for.
    """
    array = snapshot.array
    grids = array._handle.layout.grids.storage
    ranges = objects_below(snapshot, view)
    total = looked = prod(map(len, ranges))
    listed = snapshot.listed() if total > _FEW else None
    if listed is not None:
        inside = {place for place in listed if all(i in each for i, each in zip(place, ranges, strict=True))}
        missing = list(islice((place for place in _places(ranges) if place not in inside), _MOST_OBJECTS))
        stored = len(inside)
    else:
        places = list(islice(_places(ranges), _MOST_OBJECTS))
        missing = [place for place in places if snapshot.is_absent(place)]
        known = set(missing)
        others = [place for place in places if place not in known]
        asked = others if array.store.has_cheap_looks else others[:_MOST_ASKED]
        looked = len(missing) + len(asked)

        def look(place: tuple[int, ...]) -> None:
            if gone() or not array.store.exists(array._handle.key(place)):
                missing.append(place)

        for_each(look, asked, len(asked), most_requests(array.store))
        stored = looked - len(missing)
    blocks = [
        {
            "start": [grid.start(i) for grid, i in zip(grids, place, strict=True)],
            "shape": [grid.extent(i) for grid, i in zip(grids, place, strict=True)],
        }
        for place in sorted(missing)
    ]
    return {"missing": blocks, "stored": stored, "looked": looked, "total": total}


def _places(ranges: list[range]) -> Iterator[tuple[int, ...]]:
    """Yield all combinations in C order, as ``itertools.product`` does, which makes tuples of the ranges first."""
    if not ranges:
        yield ()
        return
    for i in ranges[0]:
        for rest in _places(ranges[1:]):
            yield i, *rest


__all__ = ["chunk_at", "objects_of"]
