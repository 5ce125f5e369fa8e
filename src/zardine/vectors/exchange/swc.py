"""SWC: skeletons of neurons, into stores and out of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.losses import check_space, check_store, warn_names, warn_objects
from zardine.vectors.skeleton import read_skeleton, write_skeleton
from zardine.vectors.swc import read_swc, write_swc


def swc_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Types and radii become attributes of vertices."""
    positions, parents, attributes = read_swc(source)
    write_skeleton(path, positions, parents, **{"vertex_attributes": attributes, **options})


def swc_out(path: StoreLike, target: Path, level: int) -> None:
    """Of attributes the format keeps ``type`` and ``radius``."""
    check_store(path, target, level, ("skeleton",), ("vertex_attributes",))
    found = read_skeleton(path, level=level)
    check_space(found.positions, target)
    warn_objects(found.object_ids, target)
    for name, kinds in (("type", "iub"), ("radius", "iuf")):
        values = found.attributes.get(name)
        if values is not None and (values.ndim != 1 or values.dtype.kind not in kinds):
            told = "whole numbers" if name == "type" else "numbers"
            raise DataError(f"{target}: the attribute {name!r} is a column of {told} in this format")
    others = [name for name in found.attributes if name not in ("type", "radius")]
    warn_names(others, target, "the format holds 'type' and 'radius'")
    write_swc(target, found.positions, found.parents, found.attributes)
