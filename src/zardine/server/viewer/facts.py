"""What a page says of groups and arrays before it reads a chunk: members, shapes, codecs, attributes, levels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from zardine.chunk_grids import Axis
from zardine.errors import ZardineError
from zardine.hierarchy.find import child_names
from zardine.json_document import JSON
from zardine.metadata.axis_names import dimension_names
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.nodes.display import codec_text, describe_array, has_checksum
from zardine.server.served import Served
from zardine.server.viewer.axes import axes_facts, coordinate_path, curvilinear, title_of
from zardine.server.viewer.pyramid import channels, finest, levels
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import exact, kind_of

WATCH: Final = 3
"""Seconds between two looks of a page whether something was changed."""
WATCH_FAR: Final = 20
"""The same where a look is a request."""
_MOST_EDGES: Final = 10_000
"""Chunks of an axis of a rectilinear grid that a page is told the borders of."""


def members(served: Served, path: str, contains: str, start: int, count: int) -> dict[str, JSON] | None:
    """Return ``count`` of the members below a group from number ``start`` on, and how many there are.

    Those whose names have ``contains`` in them; with consolidated metadata on all levels, else directly below.
    An array has none, and is described itself. ``None`` where no node is.
    """
    group = served.node(path)
    if isinstance(group, Array):
        return {"total": 0, "members": [], "array": _described(group)}
    if not isinstance(group, GroupMetadata):
        return None
    names = sorted(name for name in _names(served, path, group, bool(contains)) if contains.lower() in name.lower())
    shown = [_member(served, path, name) for name in names[start : start + count]]
    return {"total": len(names), "members": [each for each in shown if each is not None]}


def _names(served: Served, path: str, group: GroupMetadata, deep: bool) -> Iterator[str]:
    if group.consolidated_metadata is None:
        yield from child_names(served.store, served.key(path), group.zarr_format)
        return
    for name in group.consolidated_metadata:
        if deep or "/" not in name:
            yield name


def _member(served: Served, path: str, name: str) -> JSON:
    inner = join_path(path, name)
    try:
        node = served.node(inner)
    except ZardineError as error:
        return {"name": name, "path": inner, "kind": "broken", "error": str(error)}
    if node is None:
        return None  # a folder of something else
    if isinstance(node, GroupMetadata):
        return {"name": name, "path": inner, "kind": "group"}
    title, units = title_of(node.metadata.attributes, name)
    return {"name": name, "path": inner, "kind": "array", "title": title, "units": units, **_described(node)}


def _described(array: Array) -> dict[str, JSON]:
    return {
        "dimensions": list(dimension_names(array.metadata)),
        "shape": list(array.shape),
        "dtype": array.metadata.data_type.name,
        "nbytes": array.nbytes,
        "chunk_nbytes": array._handle.layout.chunk_nbytes,
    }


def group_facts(served: Served, group: GroupMetadata, path: str) -> dict[str, Any]:
    """Return what the document of a group says; ``image`` is the path of the finest level of an image of OME-NGFF."""
    return {
        "kind": "group",
        "path": path,
        "format": group.zarr_format,
        "consolidated": group.consolidated_metadata is not None,
        "image": finest(served, path),
        "attributes": dict(group.attributes),
    }


def array_facts(served: Served, snapshot: Snapshot, path: str) -> dict[str, Any]:
    """Return what the document of an array says, in words and for programs."""
    array = snapshot.array
    layout = array._handle.layout
    names = dimension_names(array.metadata)
    axes = []
    described = axes_facts(served, snapshot, path)
    for number, (length, chunks, objects) in enumerate(
        zip(array.shape, layout.grids.chunks, layout.grids.storage, strict=True)
    ):
        coordinate = coordinate_path(served, path, names[number], length)
        axes.append(
            {
                "name": names[number] or f"axis {number}",
                "length": length,
                "chunks": _borders(chunks),
                "shards": _borders(objects) if layout.sharding is not None else None,
                "coordinate": coordinate,
                **described[number],
            }
        )
    all_levels = levels(served, path)
    above, _, name = path.rpartition("/")
    title, units = title_of(array.metadata.attributes, above.rpartition("/")[2] or name if all_levels else name)
    return {
        "kind": "array",
        "title": title,
        "units": units,
        "path": path,
        "store": str(array.store),
        "node": array.path,
        "snapshot": snapshot.number,
        "shape": list(array.shape),
        "dtype": array.metadata.data_type.name,
        "values": kind_of(array.dtype),
        "fields": {name: kind_of(array.dtype[name]) for name in array.dtype.names or ()},
        "axes": axes,
        "curvilinear": curvilinear(served, array, path),
        "facts": [list(item) for item in describe_array(array).items],
        "codecs": [codec_text(codec) for codec in array._inner_codecs()],
        "checksum": has_checksum(array),
        "fill": exact(array.metadata.fill[()]),
        "marks": bool(snapshot.marks),
        "attributes": dict(array.metadata.attributes),
        "levels": all_levels,
        "channels": channels(served, array, path),
        "meanings": meanings(array.metadata),
    }


def _borders(axis: Axis) -> JSON:
    """Return the length of all chunks of an axis, or where each begins if they differ; ``None`` if those are many."""
    if axis.is_regular:
        return axis.runs[0][0]
    if axis.count > _MOST_EDGES:
        return None
    return axis.starts(np.arange(axis.count, dtype=np.int64)).tolist()


def meanings(metadata: ArrayMetadata) -> dict[str, str]:
    """Return what values mean that are names (CF, 3.5: ``flag_values`` and ``flag_meanings``), by their text."""
    values, words = (metadata.attributes.get(f"flag_{what}") for what in ("values", "meanings"))
    if not isinstance(values, list) or not isinstance(words, str) or len(values) != len(words.split()):
        return {}
    return {str(value): word for value, word in zip(values, words.split(), strict=True)}


def as_json(value: Any) -> bytes:
    """Return JSON that every browser takes: NaN and infinities as text."""
    return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    return value


__all__ = ["WATCH", "WATCH_FAR", "array_facts", "as_json", "group_facts", "members"]
