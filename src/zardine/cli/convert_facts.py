"""What a conversion makes of every node, as a dictionary and as lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zardine.cli.output import Row, clean, counted

if TYPE_CHECKING:
    from zardine.metadata.formats import NodeMetadata
    from zardine.tools.convert import Conversion
    from zardine.tools.converting.in_place import InPlace
    from zardine.tools.converting.plan import NodePlan


def conversion_facts(conversion: Conversion | InPlace) -> dict[str, Any]:
    """Where from, where to, and every node before and after."""
    from zardine.hierarchy.find import describe
    from zardine.tools.convert import Conversion

    if isinstance(conversion, Conversion):
        source, target = describe(conversion.source, conversion.source_path), str(conversion.target)
    else:
        source = target = describe(conversion.store, conversion.path)
    return {
        "source": source,
        "target": target,
        "metadata_only": not isinstance(conversion, Conversion),
        "nodes": [_plan_facts(plan) for plan in conversion.plans],
    }


def plan_rows(facts: Mapping[str, Any]) -> list[Row]:
    """Every array before and after, and everything else to remark."""
    rows: list[Row] = [("From", clean(facts["source"])), ("To", clean(facts["target"]))]
    for node in facts["nodes"]:
        remarks = [f"  {clean(remark)}" for remark in node["remarks"]]
        if node["kind"] == "array":
            before, after = (_line(node[side]) for side in ("from", "to"))
            lines = [f"{_shape(node)}: {before}", "  stays as it is" if node["from"] == node["to"] else f"  → {after}"]
            rows.append((clean(node["path"]), lines + remarks))
        elif remarks:
            rows.append((clean(node["path"]), ["group", *remarks]))
    return rows


def summary(facts: Mapping[str, Any]) -> str:
    """What was done, in a line."""
    arrays = sum(node["kind"] == "array" for node in facts["nodes"])
    what = f"{counted(arrays, 'array')} and {counted(len(facts['nodes']) - arrays, 'group')}"
    if facts["metadata_only"]:
        text = f"{what}: {counted(facts['documents'], 'document')} written"
        text += f", {counted(facts['removed'], 'old one')} removed" if facts["removed"] else ""
    else:
        text = f"{what}, {counted(facts['objects'], 'object')}{', continued' if facts['resumed'] else ''}"
    return f"{text}{', compared' if facts['compared'] else ''}: {clean(facts['target'])}"


def _plan_facts(plan: NodePlan) -> dict[str, Any]:
    return {
        "path": f"/{plan.path}",
        "kind": plan.source.node_type,
        "shape": getattr(plan.source, "shape", None),
        "from": _side(plan.source),
        "to": _side(plan.target),
        "remarks": plan.remarks,
    }


def _side(metadata: NodeMetadata) -> dict[str, Any]:
    from zardine.cli.facts import regular, sharding_of
    from zardine.metadata.documents import ArrayMetadata
    from zardine.nodes.array import Array
    from zardine.storage import MemoryStore

    if not isinstance(metadata, ArrayMetadata):
        return {"zarr_format": metadata.zarr_format, "consolidated": metadata.consolidated_metadata is not None}
    array = Array(MemoryStore(), "", metadata)
    inner = array.codecs if sharding_of(array) is None else array._inner_codecs()
    return {
        "zarr_format": metadata.zarr_format,
        "data_type": metadata.data_type.to_json(),
        "dimension_names": metadata.axis_names,
        "fill_value": metadata.data_type.fill_to_json(metadata.fill)
        if metadata.zarr_format == 3
        else _stored(metadata),
        "chunks": regular(array, "chunks"),
        "shards": regular(array, "shards"),
        "codecs": [codec.to_json() for codec in inner],
        "chunk_key_encoding": metadata.chunk_key_encoding.to_json(),
    }


def _stored(metadata: Any) -> Any:
    return metadata.older.fill_value


def _line(side: Mapping[str, Any]) -> str:
    chunks = "chunks of differing lengths" if side["chunks"] is None else f"chunks {side['chunks']}"
    if side["shards"] is not None:
        chunks = f"shards {side['shards']} of {side['chunks']}"
    names = [codec["name"] for codec in side["codecs"] if codec["name"] != "bytes"]
    return clean(f"v{side['zarr_format']} {chunks}, {', '.join(names) or 'no codecs'}")


def _shape(node: Mapping[str, Any]) -> str:
    from zardine.cli.describe import extension_text
    from zardine.nodes.display import named_shape

    after = node["to"]
    return f"{clean(named_shape(node['shape'], after['dimension_names']))} {extension_text(after['data_type'])}"
