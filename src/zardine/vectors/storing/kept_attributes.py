"""What a node's document says that is not ours: it stays when the node is stored anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zardine.metadata.formats import NodeMetadata

_OURS = frozenset(
    (
        *("zv_array", "nonempty_chunks", "chunk_grid_origin", "dtype", "encoding", "name", "row_shape", "shape"),
        *("categories", "ordered", "_FillValue", "declared_categorical", "channel_names", "fill_sentinel_meaning"),
        *("level_delta", "link_width", "sid_ndim", "directed", "store", "num_links", "num_physical_records"),
        *("offsets", "has_perm", "num_objects", "num_present", "layout", "object_ids_sorted"),
        *("num_groups", "group_ranges", "max_row_length", "parametric_types", "zardine_pending"),
        *("zardine_shard_shape", "zardine_removed", "zardine_sole_owners"),
    )
)
"""Attributes that follow from what is stored: no old value of them says anything of new content."""


def with_kept(old: NodeMetadata | None, new: NodeMetadata) -> NodeMetadata:
    """``new`` with those attributes of ``old`` that it does not say and that are no matter of the layout."""
    if old is None or type(old) is not type(new):
        return new
    kept = {name: value for name, value in old.attributes.items() if name not in _OURS}
    if "channel_names" in old.attributes and _rows(old.attributes) == _rows(new.attributes):
        kept["channel_names"] = old.attributes["channel_names"]
    kept = {name: value for name, value in kept.items() if name not in new.attributes}
    return replace(new, attributes={**kept, **new.attributes}) if kept else new


def _rows(attributes: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of one row of an attribute of vertices, or of objects."""
    if "row_shape" in attributes:
        return tuple(attributes["row_shape"] or ())
    return tuple(attributes.get("shape") or ())[1:]
