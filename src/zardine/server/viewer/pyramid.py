"""What OME-NGFF says of an image: its levels (``multiscales``), of which a coarse one is drawn, and its channels."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import numpy as np

from zardine.errors import ZardineError
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.server.served import Served
from zardine.server.viewer.canvas import Frame
from zardine.server.viewer.picture import View
from zardine.server.viewer.snapshot import Snapshot

_COLOUR: Final = re.compile("[0-9a-fA-F]{6}", re.ASCII)
_PRIMARY: Final = ("ff0000", "00ff00", "0000ff")
_OPACITY: Final = {"colour": "000000", "lo": 0, "hi": 255, "active": True, "opacity": True}


def levels(served: Served, path: str) -> list[dict[str, Any]]:
    """Return the levels of the pyramid that an array is part of, the finest first; none for other arrays."""
    parent, _, name = path.rpartition("/")
    for each in _image(served, path).get("multiscales", ()):
        sets = each.get("datasets") if isinstance(each, dict) else None
        listed = [one.get("path") for one in sets if isinstance(one, dict)] if isinstance(sets, list) else []
        names = [one for one in listed if isinstance(one, str)]
        if name not in names:
            continue
        found = []
        for other in names:
            node = _array(served, join_path(parent, other))
            if node is not None:
                found.append({"path": join_path(parent, other), "shape": list(node.shape)})
        return found
    return []


def finest(served: Served, path: str) -> str | None:
    """Return the path of the finest level of the image that a group is; ``None`` for other groups."""
    for each in _image(served, join_path(path, "level")).get("multiscales", ()):
        sets = each.get("datasets") if isinstance(each, dict) else None
        for one in sets if isinstance(sets, list) else ():
            name = one.get("path") if isinstance(one, dict) else None
            if isinstance(name, str) and name and _array(served, join_path(path, name)) is not None:
                return join_path(path, name)
    return None


def pixel_sizes(served: Served, path: str) -> list[tuple[float, str] | None]:
    """Return the size of a pixel of an image along each axis, and its unit; ``None`` for axes that are not in space."""
    name = path.rpartition("/")[2]
    for each in _image(served, path).get("multiscales", ()):
        sets, axes = (each.get("datasets"), each.get("axes")) if isinstance(each, dict) else (None, None)
        if not isinstance(sets, list) or not isinstance(axes, list):
            continue
        for one in sets:
            if not isinstance(one, dict) or one.get("path") != name:
                continue
            scales = [_scale(part.get("coordinateTransformations"), len(axes)) for part in (one, each)]
            sizes = np.prod([scale for scale in scales if scale] or [[0.0] * len(axes)], axis=0)
            return [_pixel_size(axis, float(size)) for axis, size in zip(axes, sizes, strict=True)]
    return []


def _scale(transformations: Any, rank: int) -> list[float] | None:
    for each in transformations if isinstance(transformations, list) else ():
        scale = each.get("scale") if isinstance(each, dict) else None
        if isinstance(scale, list) and len(scale) == rank and all(type(one) in (int, float) for one in scale):
            return [float(one) for one in scale]
    return None


def _pixel_size(axis: Any, size: float) -> tuple[float, str] | None:
    unit = axis.get("unit") if isinstance(axis, dict) and axis.get("type") == "space" else None
    return (size, unit) if isinstance(unit, str) and 0 < size < float("inf") else None


def channels(served: Served, array: Array, path: str) -> dict[str, Any] | None:
    """Return which axis has the channels of an image, and the colour and the contrast of each; else ``None``.

    Those of the document (``omero``), or red, green, blue and opacity for bytes whose last axis has three or four
    elements.
    """
    image = _image(served, path)
    omero = image.get("omero")
    listed = omero.get("channels") if isinstance(omero, dict) else None
    scales = image.get("multiscales")
    axes = scales[0].get("axes") if isinstance(scales, list) and scales and isinstance(scales[0], dict) else None
    if isinstance(listed, list) and isinstance(axes, list) and levels(served, path):
        kinds = [each.get("type") if isinstance(each, dict) else None for each in axes]
        if kinds.count("channel") == 1 and len(kinds) == array.ndim:
            axis = kinds.index("channel")
            found = [_channel(each, array.dtype) for each in listed[: array.shape[axis]]]
            return {"axis": axis, "channels": found} if found else None
    if array.dtype == np.uint8 and array.ndim > 2 and array.shape[-1] in (3, 4):
        shown = [{"colour": colour, "lo": 0, "hi": 255, "active": True} for colour in _PRIMARY]
        return {"axis": array.ndim - 1, "channels": shown if array.shape[-1] == 3 else [*shown, _OPACITY]}
    return None


def _channel(facts: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    facts = facts if isinstance(facts, dict) else {}
    window = facts.get("window") if isinstance(facts.get("window"), dict) else {}
    colour = str(facts.get("color", "ffffff"))
    ends = np.iinfo(dtype) if dtype.kind in "iu" else None
    lo, hi = window.get("start", 0), window.get("end", 1 if ends is None else ends.max)
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (lo, hi))
    return {
        "label": str(facts.get("label", "")),
        "colour": colour if _COLOUR.fullmatch(colour) else "ffffff",
        "lo": lo if numbers else 0,
        "hi": hi if numbers else 1,
        "active": facts.get("active", True) is not False,
    }


def coarser(served: Served, snapshot: Snapshot, path: str, view: View) -> tuple[Snapshot, View, dict[str, Any]]:
    """Return the coarsest level that is fine enough for a view, the view of that, and what it is.

    ``factors`` say how many elements of the array one of the level stands for, along the two axes. Under ``max`` and
    ``min`` the array itself is read, since levels hold means.
    """
    nothing = {"path": None, "factors": [1, 1]}
    if view.reduction in ("max", "min") or (view.rows.step == 1 and view.columns.step == 1):
        return snapshot, view, nothing
    shape = snapshot.array.shape
    chosen = None
    for each in snapshot.once("levels", lambda: levels(served, path)):
        factors = [_factor(fine, coarse) for fine, coarse in zip(shape, each["shape"], strict=False)]
        if each["path"] == path or len(each["shape"]) != len(shape) or None in factors:
            continue
        down, across = 1 if view.down is None else factors[view.down], factors[view.across]
        if down <= view.rows.step and across <= view.columns.step:  # type: ignore[operator]
            chosen = each["path"], factors, down, across
    if chosen is None:
        return snapshot, view, nothing
    inner, factors, down, across = chosen
    companion = snapshot.companions.get(inner)
    if companion is None:
        other = _array(served, inner)
        if other is None:
            return snapshot, view, nothing
        companion = snapshot.companions.setdefault(inner, Snapshot(other, snapshot.kept, decoded=snapshot.decoded))
    other = companion.array
    at = tuple(min(i // f, n - 1) for i, f, n in zip(view.at, factors, other.shape, strict=True))  # type: ignore[operator]
    rows = view.rows if view.down is None else _scaled(view.rows, down, other.shape[view.down])
    columns = _scaled(view.columns, across, other.shape[view.across])
    seen = replace(view, at=at, rows=rows, columns=columns)
    return companion, seen, {"path": inner, "factors": [down, across]}


def _scaled(frame: Frame, factor: Any, length: int) -> Frame:
    step = max(1, frame.step // factor)
    start = frame.start // factor
    stop = min(length, -(-frame.stop // factor))
    return Frame(min(start - start % step, length - 1), max(stop, min(start, length - 1) + 1), step)


def _factor(fine: int, coarse: int) -> int | None:
    """Return how many elements one of the coarser level stands for; ``None`` where that is no whole number."""
    factor = max(1, round(fine / coarse)) if coarse else 0
    return factor if factor and coarse in (fine // factor, -(-fine // factor)) else None


def _image(served: Served, path: str) -> dict[str, Any]:
    """Return what the group above an array says of it as an image."""
    parent, _, name = path.rpartition("/")
    try:
        group = served.node(parent) if name else None
    except ZardineError:
        return {}
    if not isinstance(group, GroupMetadata):
        return {}
    ome = group.attributes.get("ome")
    found: Any = ome if isinstance(ome, dict) else dict(group.attributes)
    return {**found, "multiscales": scales} if isinstance(scales := found.get("multiscales"), list) else {}


def _array(served: Served, path: str) -> Array | None:
    try:
        node = served.node(path)
    except ZardineError:
        return None
    return node if isinstance(node, Array) else None


__all__ = ["channels", "coarser", "finest", "levels", "pixel_sizes"]
