"""How arrays and groups show themselves: ``info``, the table and drawing in a notebook, and ``group.tree()``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from zardine.chunk_grids import Axis
from zardine.codecs.base import Codec
from zardine.engine.side_by_side import Descent, begun
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.nodes.array_base import StoredFacts
from zardine.shown_text import printable

if TYPE_CHECKING:
    from zardine.nodes.group import Group

_LONGEST = 180.0
"""Pixels of the longer side of the drawing."""

_LETTER = 7.0
"""Pixels that a letter of the caption takes at most, on average."""

_MOST_LINES = 60
"""Finer grids than this are not drawn: they would be a solid block."""


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
        return "\n".join(f"{label:<{width}} : {printable(value)}" for label, value in self.items)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(label)}</th>'
            f'<td style="text-align:left">{escape(printable(value))}</td></tr>'
            for label, value in self.items
        )
        return f"<table><tbody>{rows}</tbody></table>"


def describe_array(array: StoredFacts, *, complete: bool = False) -> ArrayInfo:
    """Return the facts of an array; ``complete`` adds what is stored, which looks at every stored object."""
    source = array._handle
    grids = source.layout.grids
    objects = prod(axis.count for axis in grids.storage)
    sharded = source.layout.sharding is not None
    rectilinear = not all(axis.is_regular for axis in grids.storage)
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
        looks = [array.nbytes_stored, lambda: array.nchunks_initialized]
        size, count, *others = begun(array.store, [*looks, *([lambda: array.nshards_initialized] if sharded else [])])
        stored = size()
        items.append(("Bytes stored", byte_text(stored)))
        if stored:
            items.append(("Ratio", f"{array.nbytes / stored:.1f}"))
        initialized = count()
        items.append(("Chunks stored", f"{initialized:,} of {array.nchunks:,}"))
        if sharded:
            items.append(("Shards stored", f"{others[0]():,} of {objects:,}"))
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
    """Return the facts of a group; ``complete`` adds how many nodes are below it."""
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
            if isinstance(node.metadata, GroupMetadata):
                groups += 1
            else:
                arrays += 1
        items += [("Arrays below", str(arrays)), ("Groups below", str(groups))]
        values |= {"count_arrays": arrays, "count_groups": groups, "count_members": arrays + groups}
    return ArrayInfo(tuple(items), values)


def named_shape(shape: tuple[int, ...], names: tuple[str | None, ...] | None) -> str:
    """Return ``(10, 20)``, or with the names of the axes ``(y: 10, x: 20)``."""
    if names is None or not any(names):
        return str(shape)
    return (
        "(" + ", ".join(str(n) if name is None else f"{name}: {n}" for n, name in zip(shape, names, strict=True)) + ")"
    )


def inner_count(array: StoredFacts) -> int:
    """Return how many inner chunks a shard has room for."""
    shards = array.shards or array.chunks
    return prod(outer // inner for outer, inner in zip(shards, array.chunks, strict=True))


def codec_text(codec: Codec) -> str:
    """Return a codec on one line: its name and what it is set to."""
    configuration = codec.configuration()
    if not configuration:
        return codec.name
    return f"{codec.name}({', '.join(f'{name}={value}' for name, value in configuration.items())})"


def has_checksum(array: StoredFacts) -> bool:
    """Return whether every chunk ends with a crc32c."""
    return any(codec.name == "crc32c" for codec in array._inner_codecs())


def byte_text(count: int) -> str:
    """Return a number of bytes for a person: ``1,234 (1.2 KiB)``."""
    size = float(count)
    for unit in ("", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            break
        size /= 1024
    return f"{count:,}" if not unit else f"{count:,} ({size:.1f} {unit})"


def array_html(array: StoredFacts) -> str:
    """Return a table beside a drawing of the array's last two axes."""
    table = describe_array(array)._repr_html_()
    drawing = grid_svg(array)
    return (
        '<div style="display:flex;gap:24px;align-items:center;flex-wrap:wrap">'
        f"<div>{table}</div><div>{drawing}</div></div>"
    )


def grid_svg(array: StoredFacts) -> str:
    """Return the last two axes as a picture: thick lines around shards (or chunks), thin ones around inner chunks."""
    grids = array._handle.layout.grids
    if array.ndim == 0 or array.size == 0:
        return ""
    objects, chunks = grids.storage[-2:], grids.chunks[-2:]
    rows = array.shape[-2] if array.ndim > 1 else max(1, array.shape[-1] // 8)
    columns = array.shape[-1]
    scale = _LONGEST / max(rows, columns)
    height, width = max(rows * scale, 12.0), max(columns * scale, 12.0)
    lines = []
    for axes, style in ((chunks, 'stroke="#9ab" stroke-width="0.6"'), (objects, 'stroke="#234" stroke-width="1.4"')):
        for y in _borders(axes[-2], height) if array.ndim > 1 else ():
            lines.append(f'<line x1="0" y1="{y:.1f}" x2="{width:.1f}" y2="{y:.1f}" {style}/>')
        for x in _borders(axes[-1], width):
            lines.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height:.1f}" {style}/>')
    note = "shards, inner chunks" if array._handle.layout.sharding is not None else "chunks"
    axes_text = " × ".join(map(str, array.shape))
    caption = f"{axes_text}: {note}"
    whole = max(width, len(caption) * _LETTER) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{height + 22:.0f}" '
        f'viewBox="-2 -2 {whole:.0f} {height + 22:.0f}" role="img" aria-label="{axes_text}, {note}">'
        f'<rect x="0" y="0" width="{width:.1f}" height="{height:.1f}" fill="#e8f0f4" stroke="#234" stroke-width="1.4"/>'
        f"{''.join(lines)}"
        f'<text x="0" y="{height + 15:.1f}" font-family="sans-serif" font-size="11" fill="#567">'
        f"{caption}</text>"
        "</svg>"
    )


def _borders(axis: Axis, pixels: float) -> list[float]:
    if axis.count > _MOST_LINES:
        return []
    return [axis.start(i) / axis.length * pixels for i in range(1, axis.count)]


_Place: TypeAlias = "tuple[int, Group]"
"""A depth, from 1 on, and a group of which what is below it is at that depth."""

_Members: TypeAlias = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class TreeView:
    """Shows as text in a terminal and in a notebook; ``level`` limits the depth, ``max_nodes`` the number of lines."""

    group: Group
    level: int | None = None
    max_nodes: int = 500
    text: str | None = None
    """The drawing, where it was made already."""
    storage: bool = False
    """Whether to say of arrays how they are stored, and their sizes."""

    def drawn(self) -> TreeView:
        """Return a drawing that looks at the store no more."""
        return replace(self, text=repr(self))

    def __repr__(self) -> str:
        if self.text is not None:
            return self.text
        lines = [printable(self.group.name)]
        below = Descent(
            self.group.store,
            (1, self.group),
            self._members,
            lambda place, found: [(place[0] + 1, node) for _, node in found if _is_group(node)],
            name=lambda place: place[1].path,
            size=len,
            most=self.max_nodes,
        )
        self._draw((1, self.group), "", below, lines)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.3">{escape(repr(self))}</pre>'

    def _members(self, place: _Place) -> _Members:
        """What is directly below a group, if that is to be shown at this depth."""
        depth, group = place
        return [] if self.level is not None and depth > self.level else list(group.items())

    def _draw(self, place: _Place, indent: str, below: Descent[_Place, _Members], lines: list[str]) -> None:
        members = below.of(place)
        for number, (name, node) in enumerate(members):
            if len(lines) > self.max_nodes:
                lines.append(f"{indent}... (more than {self.max_nodes} nodes)")
                return
            last = number == len(members) - 1
            lines.append(f"{indent}{'└── ' if last else '├── '}{printable(name)}{_facts(node.metadata)}")
            if self.storage and not isinstance(node.metadata, GroupMetadata):
                lines[-1] += _storage(node)
            if _is_group(node):
                self._draw((place[0] + 1, node), indent + ("    " if last else "│   "), below, lines)


def _is_group(node: Any) -> bool:
    return isinstance(node.metadata, GroupMetadata)


def _facts(metadata: NodeMetadata) -> str:
    if isinstance(metadata, GroupMetadata):
        return ""
    return f" {metadata.shape} {metadata.dtype if metadata.dtype.names is None else 'struct'}"


def _storage(array: StoredFacts) -> str:
    """Return chunks, shards and size of an array on one line."""
    grids = array._handle.layout.grids

    def shape(axes: tuple[Axis, ...]) -> str:
        return " × ".join(str(axis.runs[0][0]) if axis.is_regular else "…" for axis in axes) or "1"

    parts = [f"chunks {shape(grids.chunks)}"]
    if array._handle.layout.sharding is not None:
        parts.append(f"shards {shape(grids.storage)}")
    return f", {', '.join(parts)}, bytes {byte_text(array.nbytes)}"


def tree(grp: Group, expand: bool | None = None, level: int | None = None) -> TreeView:
    """Return the hierarchy below a group as a drawing; ``level`` limits its depth."""
    if not hasattr(grp, "tree"):
        raise TypeError(f"tree takes a group, not {type(grp).__name__}: open it first, with open_group")
    return grp.tree(expand, level)
