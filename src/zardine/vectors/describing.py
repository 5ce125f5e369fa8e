"""What is in a store, as plain facts."""

from __future__ import annotations

from typing import Any

from zardine.stores.resolve import StoreLike
from zardine.vectors.sharding import cell_arrays
from zardine.vectors.storing.store import Level, VectorStore


def describe_store(path: StoreLike) -> dict[str, Any]:
    """The facts of a store and of each level, for people and programs; reads documents only.

    ``geometry_types``, ``crs``, ``axes``, ``bounds``, ``chunk_shape``, ``bin_shape``, ``format_version``, and
    ``levels``: of each ``level``, ``vertex_count``, ``chunk_shape``, ``grid_shape``, ``chunks`` (with vertices),
    ``dtype``, ``shard_shape``, ``compressors`` (of the vertices), ``shard_shapes`` (of each array of cells, by its
    path), ``objects``, ``links`` and names of attributes.
    """
    owner = VectorStore.open(path)
    root = owner.root
    return {
        "path": owner.name,
        "format_version": root.block.get("zv_version"),
        "geometry_types": list(root.geometry_types),
        "crs": root.block.get("crs"),
        "axes": [dict(axis) for axis in root.axes],
        "bounds": [list(corner) for corner in root.bounds],
        "chunk_shape": list(root.chunk_shape),
        "bin_shape": list(root.bin_shape),
        "links_convention": root.links_convention,
        "notes": root.attributes.get("notes"),
        "levels": [_level(owner.level(number)) for number in owner.finished_levels()],
    }


def _level(level: Level) -> dict[str, Any]:
    vertices = level.cells("vertices")
    objects, groups = level.attributes("object_index"), level.attributes("groups")
    about = level.attributes("links/0")
    return {
        "level": level.document.level,
        "vertex_count": level.document.vertex_count,
        "chunk_shape": list(level.document.chunk_shape),
        "grid_shape": None if vertices is None else list(vertices.array.shape),
        "chunks": None if vertices is None else vertices.count(),
        "dtype": None if vertices is None else vertices.attributes.get("dtype"),
        "shard_shape": None if vertices is None or vertices.array.shards is None else list(vertices.array.shards),
        "shard_shapes": {
            name: None if array.array.shards is None else list(array.array.shards) for name, array in cell_arrays(level)
        },
        "compressors": [] if vertices is None else [codec.name for codec in vertices.array.compressors],
        "objects": None if objects is None else objects.get("num_objects"),
        "groups": None if groups is None else groups.get("num_groups"),
        "links": None if about is None else about.get("num_links"),
        "vertex_attributes": level.names("vertex_attributes"),
        "object_attributes": level.names("object_attributes"),
        "link_attributes": level.names("link_attributes"),
        "fragment_attributes": level.names("fragment_attributes"),
    }
