"""A level of a store as neuroglancer has it: looked at as a whole, or a part at a time to be written."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.losses import LINES, check_store, warn_axes, warn_crs, warn_kind
from zardine.vectors.exchange.precomputed.annotation_tables import (
    CRS,
    AnnotationLayout,
    AnnotationValues,
    annotation_contents,
)
from zardine.vectors.exchange.precomputed.segment_tables import SegmentLayout, SegmentValues, segment_contents
from zardine.vectors.exchange.precomputed.tables import Contents, Tell, silent
from zardine.vectors.storing.store import VectorStore

Values: TypeAlias = AnnotationValues | SegmentValues
AnyLayout: TypeAlias = AnnotationLayout | SegmentLayout

_KEPT: Final = {
    "point_cloud": ("vertex_attributes", "object_attributes", "group_attributes"),
    "line": ("object_attributes", "group_attributes"),
    "mesh": ("object_attributes",),
}


def contents_of(path: StoreLike, level: int = 0, tell: Tell = silent) -> Contents:
    """Return a level as neuroglancer has it: points and straight lines as annotations, meshes of one resolution.

    Skeletons, graphs and lines of more vertices are skeletons. Raises :class:`DataError` for what the format does not
    have.
    """
    if are_annotations(path):
        return annotation_contents(path, level, None, tell)
    return segment_contents(path, level, tell)


def values_of(path: StoreLike, level: int, annotation_type: str | None) -> Values:
    """Return the values of a level, to be made a part at a time. Raises :class:`DataError` as :func:`contents_of`."""
    if are_annotations(path):
        return AnnotationValues(path, level, annotation_type)
    if annotation_type is not None:
        raise DataError(f"the store holds a {kind_of(path)}: annotations are points, or lines of two vertices")
    return SegmentValues(path, level)


def layout_of(values: Values, told: Any) -> AnyLayout:
    """Return a layout that was written as JSON."""
    return AnnotationLayout.from_json(told) if isinstance(values, AnnotationValues) else SegmentLayout.from_json(told)


def tell_of_kinds(path: StoreLike, level: int, name: str) -> None:
    """Warn of whole families that ``name`` does not hold. Raises :class:`DataError` for other geometries."""
    kind = kind_of(path)
    kept = _KEPT.get(kind, ("vertex_attributes", "object_attributes"))
    kinds = ("point_cloud", *LINES, "graph", "skeleton", "mesh")
    named = are_annotations(path)
    check_store(path, name, level, kinds, kept, groups=named, crs=True, axes=True)
    root = VectorStore.open(path).root
    if set(root.block.get("crs") or {}) - {CRS}:
        warn_crs(name, "the format has no place for it")
    if not named:
        warn_axes(root.axes, name, units=True)
    if kind in ("graph", "streamline", "polyline"):
        warn_kind(kind, "skeleton", name)


def are_annotations(path: StoreLike) -> bool:
    """Return whether a store holds points or straight lines."""
    return kind_of(path) in ("point_cloud", "line")


def kind_of(path: StoreLike) -> str:
    """Return the geometry of a store."""
    return (VectorStore.open(path).root.geometry_types or ("point_cloud",))[0]


__all__ = [
    "AnyLayout",
    "Values",
    "are_annotations",
    "contents_of",
    "kind_of",
    "layout_of",
    "tell_of_kinds",
    "values_of",
]
