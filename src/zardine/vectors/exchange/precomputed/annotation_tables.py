"""Points and straight lines of a store as annotations: all in memory, since the levels of their index are of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.precomputed import spatial
from zardine.vectors.exchange.precomputed.annotations import (
    CORNERS,
    AnnotationInfo,
    Annotations,
    Index,
    encode_list,
    encode_one,
)
from zardine.vectors.exchange.precomputed.columns import as_properties
from zardine.vectors.exchange.precomputed.space import scale_of
from zardine.vectors.exchange.precomputed.tables import Contents, Ids, Table, Tell
from zardine.vectors.format.ragged import ranges
from zardine.vectors.inspecting import read_groups, read_objects
from zardine.vectors.points import read_points
from zardine.vectors.polylines import read_polylines
from zardine.vectors.storing.store import VectorStore

CRS: Final = "neuroglancer"
"""What the table in the ``crs`` of a store is called that says of what kind its annotations are."""
OBJECT: Final = "object"
"""The relationship of points to the objects that they are part of."""
_PER_CELL: Final = 1000
_LONGEST_LINE: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Related:
    """For one relationship: pairs of a row of an annotation and the id of a segment, by rows."""

    id: str
    rows: Ints
    segments: Ids


def annotation_contents(path: StoreLike, level: int, kind: str | None, tell: Tell) -> Contents:
    """Return the points or lines of a level as annotations.

    ``kind``: ``"axis_aligned_bounding_box"`` if lines are boxes from one corner to the other; ``None``: what the store
    says. Raises :class:`DataError` for lines of other than two vertices, and for ids below 0.
    """
    root = VectorStore.open(path).root
    about = (root.block.get("crs") or {}).get(CRS)
    about = about if isinstance(about, Mapping) else {}
    points_here = root.geometry_types[:1] in (("point_cloud",), ())
    if kind is None:
        stored = about.get("annotation_type")
        kind = "point" if points_here else stored if stored in CORNERS and stored != "point" else "line"
    if kind not in CORNERS or (CORNERS[kind] == 1) != points_here:
        raise DataError(
            f"{'points' if points_here else 'lines'} of two vertices cannot be annotations of the kind {kind!r}"
        )
    objects = read_objects(path, level=level)
    columns: dict[str, npt.NDArray[Any]]
    if points_here:
        points = read_points(path, level=level)
        positions, owners, columns = points.positions[:, None, :], points.object_ids, dict(points.attributes)
        if owners is not None and len(np.unique(owners)) == len(owners) == len(objects.ids):
            order = np.argsort(objects.ids)[np.argsort(np.argsort(owners))]
            columns |= {name: values[order] for name, values in objects.attributes.items()}
        elif objects.attributes:
            tell(f"attributes of objects of several points cannot be kept: {', '.join(objects.attributes)}")
    else:
        lines = read_polylines(path, level=level, attributes=None)
        if (np.diff(lines.starts) != _LONGEST_LINE).any():
            raise DataError("lines of other than two vertices are skeletons, not annotations")
        positions = lines.positions.reshape(-1, 2, lines.positions.shape[1])
        owners, columns = lines.object_ids, dict(lines.object_attributes)
    with np.errstate(over="ignore"):
        geometry = positions.astype(np.float32)
    if not np.isfinite(geometry).all():
        raise DataError("positions beyond float32 (3.4e38) cannot be annotations; use other units")
    if not np.array_equal(geometry.astype(np.float64), positions):
        tell("positions are rounded to float32, which is all that this format has")
    ids, related = _ids_and_relations(path, level, owners, len(geometry), tell)
    properties, values = as_properties(columns, tell)
    lower, upper, cells = spatial.build(kind, geometry, _PER_CELL)
    info = AnnotationInfo(
        dimensions=_dimensions(root.axes, about),
        lower_bound=tuple(lower.tolist()),
        upper_bound=tuple(upper.tolist()),
        annotation_type=kind,
        properties=properties,
        relationships=tuple(Index(f"rel_{number}", None, each.id) for number, each in enumerate(related)),
        spatial=tuple(each.level for each in cells),
    )
    records = Annotations(ids, geometry, values).records(info)
    tables = [_by_id(ids, records, related)]
    tables += [_by_segment(each, index, ids, records) for each, index in zip(related, info.relationships, strict=True)]
    tables += [_by_cell(each, ids, records) for each in cells]
    count = len(related)

    def document(stored: Sequence[Table]) -> Mapping[str, Any]:
        kept = [each.index for each in stored]
        levels = zip(info.spatial, kept[1 + count :], strict=True)
        return replace(
            info,
            by_id=kept[0],
            relationships=tuple(kept[1 : 1 + count]),
            spatial=tuple(replace(each, index=index) for each, index in levels),
        ).document()

    return Contents(document, tuple(tables))


def _ids_and_relations(
    path: StoreLike, level: int, owners: Ints | None, count: int, tell: Tell
) -> tuple[Ids, list[_Related]]:
    """The id of each annotation: that of its object, if no other is part of that; and what is related."""
    groups = read_groups(path, level=level)
    if owners is None:
        return np.arange(count, dtype=np.uint64), []
    if (count and int(owners.min()) < -1) or (len(owners) == len(np.unique(owners)) and (owners == -1).any()):
        raise DataError(f"ids are numbers from 0 on; there is an object {int(owners.min())}")
    order = np.argsort(owners, kind="stable")
    related: list[_Related] = []
    if len(np.unique(owners)) == count:
        ids = owners.astype(np.uint64)
    else:
        ids = np.arange(count, dtype=np.uint64)
        there = np.flatnonzero(owners >= 0)
        related.append(_Related(OBJECT, there, owners[there].astype(np.uint64)))
    names, segments = _names_of_groups(groups.attributes, len(groups.members), tell)
    for name in dict.fromkeys(names):
        chosen = [number for number, each in enumerate(names) if each == name]
        members = [groups.members[number] for number in chosen]
        flat = np.concatenate(members) if members else np.zeros(0, np.int64)
        whose = np.repeat(segments[chosen], [len(each) for each in members])
        first = np.searchsorted(owners[order], flat, "left")
        times = np.searchsorted(owners[order], flat, "right") - first
        rows = order[ranges(first, times)]
        whose = np.repeat(whose, times)
        by_row = np.argsort(rows, kind="stable")
        related.append(_Related(name, rows[by_row], whose[by_row]))
    return ids, related


def _names_of_groups(attributes: Mapping[str, Any], count: int, tell: Tell) -> tuple[list[str], Ids]:
    """The relationship of each group, and the segment that it stands for: what import gave, or its number."""
    names: Any = attributes.get("relationship")
    segments: Any = attributes.get("segment")
    told = names is not None and segments is not None and names.ndim == segments.ndim == 1
    if told and segments.dtype.kind in "iu" and (segments >= 0).all():
        return [str(each) for each in names.tolist()], segments.astype(np.uint64)
    if attributes:
        tell(f"attributes of groups cannot be kept: {', '.join(attributes)}")
    return ["group"] * count, np.arange(count, dtype=np.uint64)


def _by_id(ids: Ids, records: npt.NDArray[Any], related: Sequence[_Related]) -> Table:
    order = np.argsort(ids)
    bounds = [np.searchsorted(each.rows, np.arange(len(ids) + 1)) for each in related]

    def values(rows: Ints) -> Iterator[BytesLike]:
        for row in order[rows].tolist():
            of_it = [each.segments[at[row] : at[row + 1]] for each, at in zip(related, bounds, strict=True)]
            yield encode_one(records[row : row + 1].tobytes(), of_it)

    nbytes = records.nbytes + sum(4 * len(ids) + 8 * len(each.rows) for each in related)
    return Table(Index("by_id"), ids[order], values, nbytes)


def _by_segment(related: _Related, index: Index, ids: Ids, records: npt.NDArray[Any]) -> Table:
    order = np.argsort(related.segments, kind="stable")
    segments, first = np.unique(related.segments[order], return_index=True)
    ends = np.append(first[1:], len(order)) if len(first) else first
    rows_of = related.rows[order]

    def values(rows: Ints) -> Iterator[BytesLike]:
        for row in rows.tolist():
            chosen = rows_of[first[row] : ends[row]]
            yield encode_list(records[chosen], ids[chosen])

    return Table(index, segments, values, len(order) * (records.itemsize + 8))


def _by_cell(found: spatial.Cells, ids: Ids, records: npt.NDArray[Any]) -> Table:
    codes = spatial.morton_codes(found.cells, found.level.grid_shape)
    order = np.argsort(codes)

    def values(rows: Ints) -> Iterator[BytesLike]:
        for cell in order[rows].tolist():
            chosen = found.rows[found.starts[cell] : found.starts[cell + 1]]
            yield encode_list(records[chosen], ids[chosen])

    nbytes = len(found.rows) * (records.itemsize + 8)
    return Table(found.level.index, codes[order], values, nbytes, cells=found.cells[order])


def _dimensions(axes: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """The scale of each axis: as it was when it was imported, or by its unit."""
    found = {str(each.get("name")): scale_of(each) for each in axes}
    for name, given in (about.get("dimensions") or {}).items():
        usable = isinstance(given, list | tuple) and len(given) == 2 and isinstance(given[1], str)
        if name in found and usable and isinstance(given[0], int | float) and 0 < given[0] < float("inf"):
            found[name] = float(given[0]), given[1]
    return found


__all__ = ["CRS", "OBJECT", "annotation_contents"]
