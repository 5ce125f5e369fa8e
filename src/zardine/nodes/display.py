"""``array.info``: what a person asks of an array, as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zardine.codecs.base import Codec
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """Labelled facts, in order. Shows as an aligned table in a terminal and in a notebook."""

    items: tuple[tuple[str, str], ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    """What zarr-python's description has as fields; each is an attribute too: ``info.zarr_format``."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("items", "values") and name.removeprefix("_") in self.values:
            return self.values[name.removeprefix("_")]
        raise AttributeError(name)

    def __repr__(self) -> str:
        width = max(len(label) for label, _ in self.items)
        return "\n".join(f"{label:<{width}} : {value}" for label, value in self.items)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for label, value in self.items
        )
        return f"<table><tbody>{rows}</tbody></table>"


def describe_array(array: Array, *, complete: bool = False) -> ArrayInfo:
    """The facts of an array; ``complete`` adds what is stored, which looks at every stored object."""
    source = array._source
    grids = source.layout.grids
    objects = prod(axis.count for axis in grids.objects)
    sharded = source.layout.sharding is not None
    rectilinear = not all(axis.is_regular for axis in grids.objects)
    items = [
        ("Type", "Array"),
        ("Path", array.name),
        (
            "Zarr format",
            str(array.metadata.zarr_format) + (", sharding codec of the 2023 draft" if array.is_draft else ""),
        ),
        ("Data type", array.metadata.data_type.name),
        ("Fill value", str(array.fill_value)),
        ("Shape", named_shape(array.shape, array.dimension_names)),
    ]
    if sharded:
        items += [
            ("Shard shape", "rectilinear" if rectilinear else str(array.shards)),
            ("Inner chunk shape", str(array.chunks)),
            ("Shards", f"{objects:,}" if rectilinear else f"{objects:,} of {inner_count(array):,} inner chunks each"),
        ]
    else:
        items += [("Chunk shape", "rectilinear" if rectilinear else str(array.chunks)), ("Chunks", f"{objects:,}")]
    items += [
        ("Codecs", " → ".join(codec_text(codec) for codec in array._inner_codecs())),
        ("Checksum", "crc32c on every chunk" if has_checksum(array) else "none"),
        ("Order", array.order),
        ("Read-only", str(array.read_only)),
        ("Store", str(array.store)),
        ("Bytes in memory", byte_text(array.nbytes)),
    ]
    if complete:
        stored = array.nbytes_stored()
        items.append(("Bytes stored", byte_text(stored)))
        if stored:
            items.append(("Ratio", f"{array.nbytes / stored:.1f}"))
        initialized = array.nchunks_initialized
        items.append(("Chunks stored", f"{initialized:,} of {array.nchunks:,}"))
        if sharded:
            items.append(("Shards stored", f"{array.nshards_initialized:,} of {objects:,}"))
    values = {
        "type": "Array",
        "zarr_format": array.metadata.zarr_format,
        "data_type": array.metadata.data_type,
        "fill_value": array.fill_value,
        "shape": array.shape,
        "chunk_shape": None if rectilinear and not sharded else array.chunks,
        "shard_shape": None if rectilinear else array.shards,
        "order": array.order,
        "read_only": array.read_only,
        "store_type": type(array.store).__name__,
        "filters": array.filters,
        "serializer": array.serializer,
        "compressors": array.compressors,
        "count_bytes": array.nbytes,
    }
    if complete:
        values |= {"count_bytes_stored": stored, "count_chunks_initialized": initialized}
    return ArrayInfo(tuple(items), values)


def describe_group(group: Group, *, complete: bool = False) -> ArrayInfo:
    """The facts of a group; ``complete`` adds how many nodes are below it."""
    items = [
        ("Type", "Group"),
        ("Path", group.name),
        ("Zarr format", str(group.metadata.zarr_format)),
        ("Attributes", str(len(group.attrs))),
        ("Consolidated", str(group.metadata.consolidated_metadata is not None)),
        ("Read-only", str(group.read_only)),
        ("Store", str(group.store)),
    ]
    values = {
        "name": group.path,
        "type": "Group",
        "zarr_format": group.metadata.zarr_format,
        "read_only": group.read_only,
        "store_type": type(group.store).__name__,
    }
    if complete:
        arrays = groups = 0
        for _, node in group.members(max_depth=None):
            if type(node) is type(group):
                groups += 1
            else:
                arrays += 1
        items += [("Arrays below", str(arrays)), ("Groups below", str(groups))]
        values |= {"count_arrays": arrays, "count_groups": groups, "count_members": arrays + groups}
    return ArrayInfo(tuple(items), values)


def named_shape(shape: tuple[int, ...], names: tuple[str | None, ...] | None) -> str:
    """``(10, 20)``, or with the names of the axes ``(y: 10, x: 20)``."""
    if names is None or not any(names):
        return str(shape)
    return (
        "(" + ", ".join(str(n) if name is None else f"{name}: {n}" for n, name in zip(shape, names, strict=True)) + ")"
    )


def inner_count(array: Array) -> int:
    """How many inner chunks a shard has room for."""
    shards = array.shards or array.chunks
    return prod(outer // inner for outer, inner in zip(shards, array.chunks, strict=True))


def codec_text(codec: Codec) -> str:
    """A codec on one line: its name and what it is set to."""
    configuration = codec.configuration()
    if not configuration:
        return codec.name
    return f"{codec.name}({', '.join(f'{name}={value}' for name, value in configuration.items())})"


def has_checksum(array: Array) -> bool:
    """Whether every chunk ends with a crc32c."""
    return any(codec.name == "crc32c" for codec in array._inner_codecs())


def byte_text(count: int) -> str:
    """A number of bytes for a person: ``1,234 (1.2 KiB)``."""
    size = float(count)
    for unit in ("", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            break
        size /= 1024
    return f"{count:,}" if not unit else f"{count:,} ({size:.1f} {unit})"
