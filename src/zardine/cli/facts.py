"""What is known of an array or a group, as dictionaries: what ``--json`` prints, and what tables are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from zardine.cli.walk import nodes_below

if TYPE_CHECKING:
    from zardine.cli.progress import Advance
    from zardine.codecs import ShardingCodec
    from zardine.codecs.base import Codec
    from zardine.errors import ZardineError
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group
    from zardine.storage import Counts


def short_facts(node: Array | Group) -> dict[str, Any]:
    """Return what is enough to know a node: name, path, kind; of an array also how its elements look and lie."""
    from zardine.nodes.array import Array

    facts: dict[str, Any] = {"name": node.basename, "path": node.name}
    if not isinstance(node, Array):
        return {**facts, "kind": "group", **_vectors_facts(node)}
    return {
        **facts,
        "kind": "array",
        "shape": node.shape,
        "dimension_names": node.dimension_names,
        "data_type": node.metadata.data_type.to_json(),
        "dtype": str(node.dtype),
        "chunks": regular(node, "chunks"),
        "shards": regular(node, "shards"),
    }


def _vectors_facts(group: Group) -> dict[str, Any]:
    """Return what a group says of itself as the root, or a level, of a store of Zarr Vectors."""
    from zardine.vectors.format.documents import LEVEL, ROOT

    attributes = group.metadata.attributes
    root, level = (attributes[name] if isinstance(attributes.get(name), Mapping) else None for name in (ROOT, LEVEL))
    if root is not None:
        kinds = root.get("geometry_types")
        return {"holds": f"Zarr Vectors: {', '.join(map(str, kinds)) if isinstance(kinds, list | tuple) else '?'}"}
    count = None if level is None else level.get("vertex_count")
    return {"holds": f"{count:,} {'vertex' if count == 1 else 'vertices'}"} if type(count) is int else {}


def broken_facts(path: str, error: ZardineError) -> dict[str, Any]:
    """Return the same of a node that cannot be opened."""
    return {"name": path.rpartition("/")[2], "path": path, "kind": "broken", "error": str(error)}


def array_facts(array: Array) -> dict[str, Any]:
    """Return everything that the document of an array says, without looking at chunks."""
    metadata = array.metadata
    sharding = sharding_of(array)
    objects = object_grid(array)
    inner = array.codecs if sharding is None else array._inner_codecs()
    return {
        **short_facts(array),
        "store": store_name(array),
        "zarr_format": metadata.zarr_format,
        "fill_value": metadata.data_type.fill_to_json(metadata.fill) if metadata.fill_is_defined else None,
        "size": array.size,
        "nbytes": array.nbytes,
        "chunk_grid": metadata.chunk_grid.to_json(),
        "chunk_grid_shape": array.cdata_shape,
        "chunk_count": array.nchunks,
        "chunks_per_shard": chunks_per_shard(array),
        "object_grid_shape": objects,
        "object_count": prod(objects),
        "chunk_key_encoding": metadata.chunk_key_encoding.to_json(),
        "codecs": [codec.to_json() for codec in inner],
        "index_codecs": None if sharding is None else [codec.to_json() for codec in sharding.index_codecs],
        "index_location": None if sharding is None else sharding.index_location,
        "checksum": has_checksum(inner),
        "order": array.order if metadata.zarr_format < 3 else None,
        "attributes": array.attrs.asdict(),
    }


def group_facts(group: Group, advance: Advance) -> dict[str, Any]:
    """Return what a group says, and how many nodes are below it, on all levels."""
    consolidated = group.metadata.consolidated_metadata
    numbers = {"array": 0, "group": 0, "broken": 0}
    for _, node in nodes_below(group):
        numbers[kind_of(node)] += 1
        advance()
    return {
        **short_facts(group),
        "store": store_name(group),
        "zarr_format": group.metadata.zarr_format,
        "consolidated": consolidated is not None,
        "arrays_below": numbers["array"],
        "groups_below": numbers["group"],
        "broken_below": numbers["broken"],
        "attributes": group.attrs.asdict(),
    }


def foreign_facts(node: Array | Group) -> dict[str, Any]:
    """Return what of a file of another format is not shown, or in other words; nothing of a store of Zarr."""
    store, start = node.store, f"{node.path}/" if node.path else ""
    if not store.is_foreign:
        return {}
    found = {"left_out": store.left_out(start), "in_other_words": store.remarks(start)}
    return {name: {f"/{path[len(start) :]}": what for path, what in each} for name, each in found.items()}


def stored_facts(node: Array | Group, advance: Advance) -> dict[str, Any]:
    """Return what is stored of an array, or of all arrays below a group; looks at every stored object."""
    from zardine.engine.side_by_side import begun, each_begun
    from zardine.nodes.array import Array

    def look(array: Array) -> tuple[int, int, int]:
        looks = [lambda: array.nshards_initialized, lambda: array.nchunks_initialized, array.nbytes_stored]
        objects, chunks, size = begun(array.store, looks)
        return objects(), chunks(), size()

    arrays = [node] if isinstance(node, Array) else [each for _, each in nodes_below(node) if isinstance(each, Array)]
    total = {"objects": 0, "object_count": 0, "chunks": 0, "chunk_count": 0, "bytes": 0, "nbytes": 0}
    for array, looked in each_begun(node.store, look, arrays):
        objects, chunks, size = looked()
        total["objects"] += objects
        total["object_count"] += array.nshards
        total["chunks"] += chunks
        total["chunk_count"] += array.nchunks
        total["bytes"] += size
        total["nbytes"] += array.nbytes
        advance(total=len(arrays))
    fixed = all(array.metadata.data_type.item_size is not None for array in arrays)
    return {**total, "ratio": total["nbytes"] / total["bytes"] if fixed and total["bytes"] else None}


def request_facts(counts: Counts) -> dict[str, Any]:
    """Return what was asked of a store."""
    return {
        "requests": counts.requests,
        "reads": counts.reads,
        "lists": counts.lists,
        "bytes_read": counts.bytes_read,
        "keys": dict(counts.keys),
    }


def kind_of(node: Array | Group | ZardineError) -> str:
    """Return ``array``, ``group`` or ``broken``."""
    return "broken" if isinstance(node, Exception) else node.metadata.node_type


def regular(array: Array, what: str) -> tuple[int, ...] | None:
    """Return ``array.chunks`` or ``array.shards``; ``None`` where their shapes differ, or where there are none."""
    try:
        shape: tuple[int, ...] | None = getattr(array, what)
    except NotImplementedError:
        return None
    return shape


def is_rectilinear(array: Array) -> bool:
    """Whether stored objects differ in shape."""
    try:
        return array.shards is None and array.chunks is None
    except NotImplementedError:
        return True


def object_grid(array: Array) -> tuple[int, ...]:
    """Return how many stored objects there are along each axis."""
    if is_rectilinear(array):
        return tuple(map(len, array.write_chunk_sizes))
    sizes = array.shards or array.chunks
    return tuple(-(-length // size) for length, size in zip(array.shape, sizes, strict=True))


def chunks_per_shard(array: Array) -> int | None:
    """Return how many inner chunks a shard has room for; ``None`` where that differs, or without shards."""
    shards = regular(array, "shards")
    if shards is None:
        return None
    return prod(outer // inner for outer, inner in zip(shards, array.chunks, strict=True))


def sharding_of(array: Array) -> ShardingCodec | None:
    """Return the codec that makes the array's shards, where inner chunks can be read one by one."""
    from zardine.codecs import ShardingCodec

    if not is_rectilinear(array) and array.shards is None:
        return None
    return next((codec for codec in array.codecs if isinstance(codec, ShardingCodec)), None)


def has_checksum(codecs: Iterable[Codec]) -> bool:
    """Whether every chunk that goes through ``codecs`` has a crc32c, as inner chunks of inner shards may have."""
    from zardine.codecs import ShardingCodec

    return any(
        has_checksum(codec.codecs) if isinstance(codec, ShardingCodec) else codec.name == "crc32c" for codec in codecs
    )


def store_name(node: Array | Group) -> str:
    """Return the URL of the store."""
    from zardine.storage import CountingStore

    store = node.store
    return str(store.store if isinstance(store, CountingStore) else store)
