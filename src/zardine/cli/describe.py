"""The tables that ``zardine info`` prints, made of the facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from zardine.cli.output import Row, counted, cut, json_text, jsonable
from zardine.nodes.display import byte_text, named_shape
from zardine.shown_text import printable

if TYPE_CHECKING:
    from zardine.nodes.array import Array

_FEW: Final = 8
_SHORT: Final = 60
_SHOWN: Final = {
    *("Type", "Path", "Store", "Zarr format", "Data type", "Fill value", "Shape", "Bytes in memory", "Shard shape"),
    *("Inner chunk shape", "Shards", "Chunk shape", "Chunks", "Codecs", "Checksum", "Order", "Read-only"),
}
"""Lines of ``array.info`` that are here in other words, or (the last two) say how this process opened the array."""


def array_rows(facts: Mapping[str, Any], array: Array) -> list[Row]:
    """Return an array, line by line: its facts, and what else ``array.info`` may say."""
    rows: list[Row] = [
        ("Type", "array"),
        ("Path", printable(facts["path"])),
        ("Store", printable(facts["store"])),
        ("Zarr format", str(facts["zarr_format"])),
        ("Data type", extension_text(facts["data_type"])),
        ("NumPy dtype", printable(facts["dtype"])),
        ("Fill value", _fill_text(facts["fill_value"], array)),
        (
            "Shape",
            f"{printable(named_shape(facts['shape'], facts['dimension_names']))}, {counted(array.size, 'element')}",
        ),
        ("Bytes in memory", byte_text(facts["nbytes"])),
        *_grid_rows(facts, array),
        ("Chunk keys", codec_lines([facts["chunk_key_encoding"]])),
        ("Codecs", codec_lines(facts["codecs"])),
    ]
    if facts["order"] is not None:
        rows.append(("Order in chunks", facts["order"]))
    if facts["index_codecs"] is not None:
        rows.append(("Shard index", f"at the {facts['index_location']} of each shard"))
        rows.append(("Index codecs", codec_lines(facts["index_codecs"])))
    rows.append(("Checksum", "crc32c on every chunk" if facts["checksum"] else "none"))
    return rows + [(label, printable(value)) for label, value in array.info.items if label not in _SHOWN]


def group_rows(facts: Mapping[str, Any]) -> list[Row]:
    """Return a group, line by line."""
    rows: list[Row] = [
        ("Type", "group"),
        ("Path", printable(facts["path"])),
        ("Store", printable(facts["store"])),
        ("Zarr format", str(facts["zarr_format"])),
        ("Consolidated", "yes" if facts["consolidated"] else "no"),
        ("Arrays below", f"{facts['arrays_below']:,}"),
        ("Groups below", f"{facts['groups_below']:,}"),
    ]
    if facts["broken_below"]:
        rows.append(("Broken below", f"{facts['broken_below']:,} (see zardine tree)"))
    return rows


def foreign_rows(facts: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return what of a file of another format is not shown, or in other words."""
    names = {"left_out": "Left out", "in_other_words": "In other words"}
    return [
        (label, [f"{printable(path)}: {printable(what)}" for path, what in facts[name].items()])
        for name, label in names.items()
        if facts.get(name)
    ]


def stored_rows(stored: Mapping[str, Any], *, sharded: bool) -> list[Row]:
    """Return what is stored."""
    rows: list[Row] = [("Shards stored" if sharded else "Objects stored", _of(stored, "objects", "object_count"))]
    if stored["chunk_count"] != stored["object_count"]:
        rows.append(("Chunks stored", _of(stored, "chunks", "chunk_count")))
    rows.append(("Bytes stored", byte_text(stored["bytes"])))
    if stored["ratio"] is not None:
        rows.append(("Ratio", f"{stored['ratio']:.1f}"))
    return rows


def request_rows(requests: Mapping[str, Any]) -> list[Row]:
    """Return what this command asked of the store."""
    reads, lists = counted(requests["reads"], "read"), counted(requests["lists"], "listing")
    return [
        ("Requests", f"{requests['requests']:,} ({reads}, {lists})"),
        ("Bytes read", byte_text(requests["bytes_read"])),
    ]


def attribute_row(attributes: Mapping[str, Any], *, whole: bool) -> Row:
    """Return all attributes, or the first few, cut."""
    if not attributes:
        return "Attributes", "none"
    if whole:
        return "Attributes", [line for name, value in attributes.items() for line in _whole(name, value)]
    lines = attribute_lines(attributes, _FEW)
    if len(attributes) > _FEW:
        lines.append(Text(f"… and {len(attributes) - _FEW:,} more: --attributes shows all", "dim"))
    return "Attributes", lines


def attribute_lines(attributes: Mapping[str, Any], most: int | None = None) -> list[Text]:
    """Return the first attributes, a short line each."""
    pairs = list(attributes.items())[:most]
    return [Text(cut(f"{printable(name)} = {json_text(value)}", _SHORT)) for name, value in pairs]


def codec_lines(codecs: Sequence[Any], indent: str = "") -> list[Text]:
    """Return extensions as documents hold them, a line each; codecs within codecs follow, indented."""
    lines = []
    for codec in codecs:
        settings, nested = [], []
        for name, value in (codec.get("configuration") or {}).items():
            if isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value):
                nested.append((name, value))
            else:
                settings.append(f"{name}={_setting(value)}")
        lines.append(Text.assemble(indent, (printable(codec["name"]), "bold"), f" {', '.join(settings)}".rstrip()))
        for name, value in nested:
            lines.append(Text(f"{indent}  {name}:"))
            lines += codec_lines(value, f"{indent}    ")
    return lines


def extension_text(value: Any) -> str:
    """Return a data type as a document holds it: its name, and what it is set to or made of."""
    if not isinstance(value, Mapping):
        return printable(str(value))
    parts = []
    for key, each in (value.get("configuration") or {}).items():
        if isinstance(each, list) and all(isinstance(field, Mapping) and "data_type" in field for field in each):
            parts += [f"{printable(str(field.get('name')))}: {extension_text(field['data_type'])}" for field in each]
        else:
            parts.append(f"{printable(key)}={_setting(each)}")
    return f"{printable(value['name'])}({', '.join(parts)})" if parts else printable(value["name"])


def _fill_text(fill: Any, array: Array) -> str:
    """Return numbers as documents hold them, also those that are none; texts in quotes; byte strings as in Python."""
    value = array.metadata.fill[()]
    if fill is None:
        return f"none stored, reads as {printable(str(value))}"
    if isinstance(value, bytes):
        return repr(bytes(value))
    return printable(fill) if isinstance(fill, str) and array.dtype.kind not in "TUO" else json_text(fill)


def _grid_rows(facts: Mapping[str, Any], array: Array) -> list[Row]:
    objects = f"{_grid(facts['object_grid_shape'])}{counted(facts['object_count'], 'object')}"
    if facts["index_codecs"] is None:
        return [("Chunks", f"{_sizes(facts['chunks'], array)}, {objects}")]
    room = "" if facts["chunks_per_shard"] is None else f", {facts['chunks_per_shard']:,} in each shard"
    inner = f"{_grid(facts['chunk_grid_shape'])}{facts['chunk_count']:,}"
    return [
        ("Shards", f"{_sizes(facts['shards'], array)}, {objects}"),
        ("Inner chunks", f"{_sizes(facts['chunks'], array)}{room}, {inner}"),
    ]


def _sizes(shape: Sequence[int] | None, array: Array) -> str:
    if shape is not None:
        return str(tuple(shape))
    axes = (cut(", ".join(map(str, sizes)), 40) for sizes in array.write_chunk_sizes)
    return "rectilinear (" + "; ".join(axes) + ")"


def _grid(counts: Sequence[int]) -> str:
    return f"a grid of {' × '.join(f'{count:,}' for count in counts)} = " if len(counts) > 1 else "in all "


def _setting(value: Any) -> str:
    if isinstance(value, str):
        return printable(value) or '""'
    if isinstance(value, list) and all(isinstance(each, int) for each in value):
        return str(tuple(value))
    return json_text(value)


def _whole(name: str, value: Any) -> list[str]:
    short = json_text(value)
    if len(short) <= _SHORT:
        return [f"{printable(name)} = {short}"]
    lines = json.dumps(jsonable(value), indent=2, ensure_ascii=False).split("\n")
    return [printable(line) for line in (f"{name} = {lines[0]}", *lines[1:])]


def _of(facts: Mapping[str, Any], part: str, whole: str) -> str:
    return f"{facts[part]:,} of {facts[whole]:,}"
