"""Zarr Vectors for a page: what a store says of itself, and the vertices, edges and faces of a level or a box of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine import vectors
from zardine.errors import ZardineError
from zardine.metadata.documents import GroupMetadata
from zardine.stores.path import StorePath

_MARK: Final = "zarr_vectors"
MOST_AT_ONCE: Final = 150_000
"""Vertices that are drawn at once, about."""
MOST_VERTICES: Final = 2_000_000
MOST_OBJECTS: Final = 2_000
"""Objects of which a page is told ids and attributes, or different texts of an attribute that it is told."""

_LINES: Final = ("streamline", "polyline", "line")


def is_vectors(group: GroupMetadata) -> bool:
    """Return whether a group is the root of a store of Zarr Vectors."""
    return isinstance(group.attributes.get(_MARK), dict)


def describe(place: StorePath) -> dict[str, Any]:
    """Return the facts of a store, and how many vertices at ``most`` are drawn at once."""
    try:
        facts = vectors.describe_store(place)
    except ZardineError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {**facts, "most": MOST_AT_ONCE, "most_objects": MOST_OBJECTS}


def share_of(box: Sequence[Sequence[float]] | None, bounds: Sequence[Sequence[float]]) -> float:
    """Return how much of the space of a store a box takes, 0 to 1; without a box all of it."""
    share = 1.0
    for low, high, least, most in zip(*(box or bounds), *bounds, strict=True):
        if most > least:
            share *= min(1.0, max(0.0, min(high, most) - max(low, least)) / (most - least))
    return share


def geometry(
    place: StorePath, level: int, box: Sequence[Sequence[float]] | None, attribute: str | None
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return counts, and ``positions`` ``(N, 3)``, ``lines`` ``(E, 2)``, ``triangles`` ``(F, 3)``, ``values`` ``(N,)``.

    ``box`` has the lowest and the highest corner of what is wanted. ``values`` are those of ``attribute``, of text
    places in the list ``labels`` (NaN: missing). ``objects`` ``(N,)`` are rows of the ``table`` of objects; of more
    than :data:`MOST_OBJECTS`, numbers of their own.
    """
    store = vectors.describe_store(place)
    kinds = store["geometry_types"]
    names: Any = [attribute] if attribute else None
    options: dict[str, Any] = {"level": level, "attributes": names, "bbox": box}
    edges = np.zeros((0, 2), np.uint32)
    faces = np.zeros((0, 3), np.uint32)
    found: Any
    if any(kind in _LINES for kind in kinds):
        found = vectors.read_polylines(place, object_attributes=None, **options)
        inner = np.ones(len(found.positions), np.bool_)
        inner[found.starts[1:-1]] = False
        ends = np.flatnonzero(inner)[1:]
        edges = np.stack((ends - 1, ends), axis=1).astype(np.uint32)
    elif "mesh" in kinds:
        found = vectors.read_mesh(place, **options)
        corners = found.faces
        fans = [corners[:, [0, i, i + 1]] for i in range(1, corners.shape[1] - 1)] if len(corners) else []
        faces = np.concatenate(fans).astype(np.uint32) if fans else faces
    elif any(kind in ("graph", "skeleton") for kind in kinds):
        found = vectors.read_graph(place, **options)
        edges = found.edges.astype(np.uint32)
    else:
        found = vectors.read_points(place, **options)
    positions = np.zeros((len(found.positions), 3), np.float32)
    shown = found.positions[:, :3]
    positions[:, : shown.shape[1]] = shown
    values = np.asarray(found.attributes[attribute]) if attribute else np.zeros(0, np.float32)
    if values.ndim > 1:
        values = np.linalg.norm(values.astype(np.float64), axis=1)
    facts: dict[str, Any] = {"vertices": len(positions), "edges": len(edges), "faces": len(faces), "level": level}
    if values.dtype.kind not in "biuf":
        texts = values.tolist()
        labels = sorted({each for each in texts if each is not None})
        codes: dict[str | None, float] = {text: at for at, text in enumerate(labels)}
        is_told = len(labels) <= MOST_OBJECTS
        facts |= {"labels": labels} if is_told else {}
        values = np.array([codes.get(each, np.nan) for each in texts] if is_told else [])
    values = values.astype(np.float32)
    owners = getattr(found, "object_ids", None)
    if owners is not None and hasattr(found, "starts"):
        owners = np.repeat(owners, np.diff(found.starts))
    objects = np.zeros(0, np.uint32) if owners is None else (owners % 2**32).astype(np.uint32)
    count = next(each["objects"] for each in store["levels"] if each["level"] == level)
    if owners is not None and count is not None and count <= MOST_OBJECTS:
        table = vectors.read_objects(place, level=level)
        order = np.argsort(table.ids)
        objects = order[np.searchsorted(table.ids, owners, sorter=order)].astype(np.uint32)
        columns = {name: _plain(each) for name, each in table.attributes.items() if each.ndim == 1}
        facts["table"] = {"ids": [str(each) for each in table.ids.tolist()], "attributes": columns}
    return facts, {"positions": positions, "lines": edges, "triangles": faces, "values": values, "objects": objects}


def _plain(values: npt.NDArray[Any]) -> list[Any]:
    """Return values as JSON has them; numbers that are none are ``None``."""
    is_number = values.dtype.kind in "biuf"
    return [float(each) if np.isfinite(each) else None for each in values] if is_number else values.tolist()


__all__ = ["MOST_VERTICES", "describe", "geometry", "is_vectors", "share_of"]
