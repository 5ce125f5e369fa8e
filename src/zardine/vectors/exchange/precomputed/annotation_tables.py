"""Points and straight lines of a store as annotations: a part of them at a time, by a layout that was seen of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import CorruptionError, DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.distinct import Distinct
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.precomputed.annotations import CORNERS, AnnotationInfo, Annotations, Index, encode_one
from zardine.vectors.exchange.precomputed.columns import PropertyColumn, PropertyLooks
from zardine.vectors.exchange.precomputed.entries import Entries, Layout
from zardine.vectors.exchange.precomputed.space import scale_of
from zardine.vectors.exchange.precomputed.spatial import Sample, Space, cells_of, morton_codes, ranks_of, samples
from zardine.vectors.exchange.precomputed.tables import Contents, Ids, Table, Tell
from zardine.vectors.format.ragged import ranges, starts_of
from zardine.vectors.inspecting import GroupTable, ObjectTable, read_groups, read_objects
from zardine.vectors.points import read_points
from zardine.vectors.polylines import read_polylines
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.storing.spools import Rows, forget
from zardine.vectors.storing.store import VectorStore

CRS: Final = "neuroglancer"
"""What the table in the ``crs`` of a store is called that says of what kind its annotations are."""
OBJECT: Final = "object"
"""The relationship of points to the objects that they are part of."""
_PER_CELL: Final = 1000
_LONGEST_LINE: Final = 2
_AT_ONCE: Final = 2**17
"""Annotations of which cells are found together."""

Columns = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some annotations of a level."""

    geometry: npt.NDArray[np.float32]
    """``(N, corners, axes)``."""
    is_exact: bool
    owners: Ints | None
    columns: Columns
    of_objects: Columns
    """Attributes of the objects of points, which count where each of these is a point."""

    def __len__(self) -> int:
        return len(self.geometry)


@dataclass(frozen=True, slots=True)
class AnnotationLayout:
    """What is to be known of all annotations of a level to write some of them."""

    are_objects: bool
    """Whether each is an object of its own, whose id it has; else they are numbered."""
    with_objects: bool
    """Whether points have the attributes of their objects, too."""
    columns: tuple[PropertyColumn, ...]
    samples: tuple[Sample, ...]
    firsts: tuple[int, ...]
    """The number of the first annotation of each part, and how many there are in all."""
    tables: tuple[Layout, ...]
    """By ids; of each relationship; of each level of the spatial index."""
    info: AnnotationInfo
    """The document, without shards."""

    def document(self) -> dict[str, Any]:
        """Return the document for the tables as they are stored."""
        kept = [each.index for each in self.tables]
        count = 1 + len(self.info.relationships)
        levels = zip(self.info.spatial, kept[count:], strict=True)
        spatial = tuple(replace(each, index=index) for each, index in levels)
        return replace(self.info, by_id=kept[0], relationships=tuple(kept[1:count]), spatial=spatial).document()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "are_objects": self.are_objects,
            "with_objects": self.with_objects,
            "columns": [each.to_json() for each in self.columns],
            "samples": [[each.first, each.last] for each in self.samples],
            "firsts": list(self.firsts),
            "tables": [each.to_json() for each in self.tables],
            "info": self.info.document(),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> AnnotationLayout:
        """Return what :meth:`to_json` wrote."""
        info = AnnotationInfo.parse(told["info"], "info")
        ranks = zip(info.spatial, told["samples"], strict=True)
        return cls(
            told["are_objects"],
            told["with_objects"],
            tuple(map(PropertyColumn.from_json, told["columns"])),
            tuple(Sample(level, first, last) for level, (first, last) in ranks),
            tuple(told["firsts"]),
            tuple(map(Layout.from_json, told["tables"])),
            info,
        )


class AnnotationValues:
    """The points or straight lines of a level as annotations."""

    def __init__(self, path: StoreLike, level: int, kind: str | None) -> None:
        """``kind``: ``"axis_aligned_bounding_box"`` if lines are boxes from one corner to the other; ``None``: what the
        store says. Raises :class:`DataError` for others.
        """
        self._path, self._level = path, level
        self._root = VectorStore.open(path).root
        about = (self._root.block.get("crs") or {}).get(CRS)
        self._about = about if isinstance(about, Mapping) else {}
        self._are_points = self._root.geometry_types[:1] in (("point_cloud",), ())
        if kind is None:
            stored = self._about.get("annotation_type")
            of_lines = stored if stored in CORNERS and stored != "point" else "line"
            kind = "point" if self._are_points else str(of_lines)
        if kind not in CORNERS or (CORNERS[kind] == 1) != self._are_points:
            what = "points" if self._are_points else "lines"
            raise DataError(f"{what} of two vertices cannot be annotations of the kind {kind!r}")
        self._kind = kind

    @cached_property
    def _objects(self) -> ObjectTable:
        return read_objects(self._path, level=self._level)

    @cached_property
    def _groups(self) -> GroupTable:
        return read_groups(self._path, level=self._level)

    def part(self, chosen: QueryOptions) -> Part:
        """Read some. Raises :class:`DataError` for lines of other than two vertices, and beyond float32."""
        asked: Any = {"level": self._level, **chosen}
        of_objects: Columns = {}
        if self._are_points:
            points = read_points(self._path, **asked)
            positions, owners, columns = points.positions[:, None, :], points.object_ids, points.attributes
            if owners is not None and self._objects.attributes:
                order = np.argsort(self._objects.ids, kind="stable")
                place = np.searchsorted(self._objects.ids[order], owners).clip(max=max(0, len(order) - 1))
                rows = order[place] if len(order) else place[:0]
                of_objects = {name: values[rows] for name, values in self._objects.attributes.items()}
        else:
            lines = read_polylines(self._path, **{**asked, "attributes": None})
            if (np.diff(lines.starts) != _LONGEST_LINE).any():
                raise DataError("lines of other than two vertices are skeletons, not annotations")
            positions = lines.positions.reshape(-1, 2, lines.positions.shape[1])
            owners, columns = lines.object_ids, lines.object_attributes
        with np.errstate(over="ignore"):
            geometry = positions.astype(np.float32)
        if not np.isfinite(geometry).all():
            raise DataError("positions beyond float32 (3.4e38) cannot be annotations; use other units")
        is_exact = np.array_equal(geometry.astype(np.float64), positions)
        return Part(geometry, is_exact, owners, columns, of_objects)

    def look(self, pieces: Sequence[QueryOptions], step: Step, tell: Tell) -> AnnotationLayout:
        """Go through all pieces. Raises :class:`DataError` for ids below 0; tells of what cannot be kept."""
        own, joined, distinct = PropertyLooks(), PropertyLooks(), Distinct(self._count)
        owners, geometry, counts = Rows(), Rows(), list[int]()
        lowest, some_have_none, is_exact = 0, False, True
        pairs = np.zeros(len(self._relationships), np.int64)
        for number, piece in enumerate(pieces):
            part = self.part(piece)
            own.look(part.columns)
            joined.look(part.of_objects)
            is_exact = is_exact and part.is_exact
            counts.append(len(part))
            geometry.add(part.geometry)
            if part.owners is not None:
                owners.add(part.owners)
                distinct.add(part.owners)
                lowest = min(lowest, int(part.owners.min(initial=0)))
                some_have_none = some_have_none or bool((part.owners == -1).any())
                pairs += [len(rows) for rows, _ in self._related(part.owners)]
            step((number + 1) / len(pieces) / 2)
        firsts = starts_of(counts)
        have_owners = len(owners) > 0
        are_objects = have_owners and distinct.are()
        if lowest < -1 or (are_objects and some_have_none):
            raise DataError(f"ids are numbers from 0 on; there is an object {lowest}")
        with_objects = self._are_points and are_objects and len(owners) == len(self._objects.ids)
        if with_objects:
            own = own.with_(joined)
        elif self._are_points and self._objects.attributes:
            tell(f"attributes of objects of several points cannot be kept: {', '.join(self._objects.attributes)}")
        if not is_exact:
            tell("positions are rounded to float32, which is all that this format has")
        columns = own.columns(tell)
        names, numbers = self._relationships, self._segment_counts
        kept = slice(int(are_objects), None if have_owners else 0)
        names, numbers, pairs = names[kept], numbers[kept], pairs[kept]
        self._tell_of_groups(tell)
        positions, ids = geometry.mapped(), owners.mapped() if are_objects else None

        def blocks() -> Iterator[tuple[Ids, npt.NDArray[np.float32]]]:
            for start in range(0, len(positions), _AT_ONCE):
                some = slice(start, min(len(positions), start + _AT_ONCE))
                own_ids = np.arange(some.start, some.stop) if ids is None else ids[some]
                yield own_ids.astype(np.uint64), positions[some]
                forget(positions)

        space = Space.of(self._kind, blocks, self._root.ndim)
        bounds = np.asarray(self._root.block["bounds"], np.float64).astype(np.float32)
        if len(positions) and self._level == 0 and not np.array_equal(bounds, np.stack([space.lower, space.upper])):
            tell(f"the bounds of the store, {bounds.tolist()}, cannot be kept: they end where positions do")
        found = samples(space, blocks, _PER_CELL)
        step(1)
        info = AnnotationInfo(
            dimensions=_dimensions(self._root.axes, self._about),
            lower_bound=tuple(space.lower.tolist()),
            upper_bound=tuple(space.upper.tolist()),
            annotation_type=self._kind,
            properties=tuple(each.property for each in columns),
            relationships=tuple(Index(f"rel_{number}", None, name) for number, name in enumerate(names)),
            spatial=tuple(each.level for each in found),
        )
        count, size = int(firsts[-1]), info.record.itemsize
        tables = [Layout(info.by_id, count, count * (size + 4 * len(names)) + 8 * int(pairs.sum()))]
        for index, many, of_it in zip(info.relationships, numbers, pairs.tolist(), strict=True):
            tables.append(Layout(index, min(many, of_it), of_it * (size + 8), listed=True))
        for each in found:
            shape = each.level.grid_shape
            tables.append(
                Layout(each.level.index, each.cells, each.entries * (size + 8), listed=True, grid_shape=shape)
            )
        numbered = tuple(firsts.tolist())
        return AnnotationLayout(are_objects, with_objects, columns, tuple(found), numbered, tuple(tables), info)

    def entries(self, part: Part, number: int, layout: AnnotationLayout) -> Iterator[tuple[int, Entries]]:
        """Yield what tables get of the part of a number. Raises :class:`CorruptionError` where it is another one."""
        first, end = layout.firsts[number : number + 2]
        if len(part) != end - first:
            raise CorruptionError(f"part {number} has {len(part)} annotations; it had {end - first}")
        if layout.are_objects:
            assert part.owners is not None
            ids = part.owners.astype(np.uint64)
        else:
            ids = np.arange(first, end, dtype=np.uint64)
        columns = {**part.columns, **part.of_objects} if layout.with_objects else part.columns
        values = {each.property.id: each.values(columns) for each in layout.columns}
        info = layout.info
        records = Annotations(ids, part.geometry, values).records(info)
        plain = np.ascontiguousarray(records).view(f"V{info.record.itemsize}")
        listed = np.empty(len(ids), [("record", plain.dtype), ("id", "<u8")])
        listed["record"], listed["id"] = plain, ids
        listed = listed.view(f"V{listed.itemsize}")
        related = [] if part.owners is None else self._related(part.owners)[layout.are_objects :]
        yield 0, Entries(ids, ids, self._by_id(plain, related) if related else plain)
        for at, (rows, segments) in enumerate(related, 1):
            yield at, Entries(segments, ids[rows], listed[rows])
        space = Space(self._kind, np.array(info.lower_bound), np.array(info.upper_bound))
        ranks = ranks_of(ids)
        for at, each in enumerate(layout.samples, 1 + len(info.relationships)):
            chosen = each.among(ranks)
            shape = np.array(each.level.grid_shape)
            for start in range(0, len(chosen), _AT_ONCE):
                some = chosen[start : start + _AT_ONCE]
                rows, cells = space.touched(part.geometry[some], shape)
                codes = morton_codes(cells, each.level.grid_shape)
                yield at, Entries(codes, ranks[some[rows]], listed[some[rows]])

    def documents(self, layout: AnnotationLayout) -> dict[str, dict[str, Any]]:
        """Return all documents by their names."""
        return {"info": layout.document()}

    def _by_id(self, records: npt.NDArray[Any], related: Sequence[tuple[Ints, Ids]]) -> list[bytes]:
        bounds = [np.searchsorted(rows, np.arange(len(records) + 1)).tolist() for rows, _ in related]
        whole = [segments for _, segments in related]
        return [
            encode_one(record.tobytes(), [ids[at[row] : at[row + 1]] for ids, at in zip(whole, bounds, strict=True)])
            for row, record in enumerate(records)
        ]

    @property
    def _count(self) -> int:
        return VectorStore.open(self._path).level(self._level).document.vertex_count

    # what annotations have to do with

    @cached_property
    def _of_groups(self) -> tuple[list[str], Ids, bool]:
        """The relationship of each group, the segment that it stands for, and whether its attributes say these."""
        attributes, count = self._groups.attributes, len(self._groups.members)
        names: Any = attributes.get("relationship")
        segments: Any = attributes.get("segment")
        told = names is not None and segments is not None and names.ndim == segments.ndim == 1
        if told and segments.dtype.kind in "iu" and (segments >= 0).all():
            return [str(each) for each in names.tolist()], segments.astype(np.uint64), True
        return ["group"] * count, np.arange(count, dtype=np.uint64), not attributes

    def _tell_of_groups(self, tell: Tell) -> None:
        if not self._of_groups[2]:
            tell(f"attributes of groups cannot be kept: {', '.join(self._groups.attributes)}")

    @cached_property
    def _relationships(self) -> list[str]:
        """Their names; the first is that to objects, which counts where these have several points."""
        return [OBJECT, *dict.fromkeys(self._of_groups[0])]

    @property
    def _segment_counts(self) -> list[int]:
        """How many segments each has at most."""
        names, segments, _ = self._of_groups
        of_names = [
            len(np.unique(segments[[at for at, each in enumerate(names) if each == name]]))
            for name in self._relationships[1:]
        ]
        return [len(self._objects.ids), *of_names]

    def _related(self, owners: Ints) -> list[tuple[Ints, Ids]]:
        """For each relationship rows of ``owners``, ascending, and the segments that these have to do with."""
        there = np.flatnonzero(owners >= 0)
        found = [(there, owners[there].astype(np.uint64))]
        names, segments, _ = self._of_groups
        order = np.argsort(owners, kind="stable")
        ordered = owners[order]
        for name in self._relationships[1:]:
            chosen = [number for number, each in enumerate(names) if each == name]
            members = [self._groups.members[number] for number in chosen]
            flat = np.concatenate([np.zeros(0, np.int64), *members])
            whose = np.repeat(segments[chosen], [len(each) for each in members])
            first = np.searchsorted(ordered, flat, "left")
            times = np.searchsorted(ordered, flat, "right") - first
            rows, whose = order[ranges(first, times)], np.repeat(whose, times)
            by_row = np.argsort(rows, kind="stable")
            found.append((rows[by_row], whose[by_row]))
        return found


def annotation_contents(path: StoreLike, level: int, kind: str | None, tell: Tell) -> Contents:
    """Return the points or lines of a level as annotations, all of which are held in memory.

    Raises as :class:`AnnotationValues`.
    """
    values = AnnotationValues(path, level, kind)
    layout = values.look([{}], lambda share: None, tell)
    found: dict[int, list[Entries]] = {number: [] for number in range(len(layout.tables))}
    for number, entries in values.entries(values.part({}), 0, layout):
        found[number].append(entries)
    tables = [_held(layout.tables[number], Entries.joined(parts).in_order()) for number, parts in found.items()]
    return Contents(lambda tables: layout.document(), tuple(tables))


def _held(layout: Layout, entries: Entries) -> Table:
    """A table of entries that are in order."""
    keys, firsts = np.unique(entries.keys, return_index=True)
    ends = [*firsts[1:].tolist(), len(entries)]

    def values(rows: Ints) -> Iterator[BytesLike]:
        for row in rows.tolist():
            own = entries.take(np.arange(firsts[row], ends[row]))
            yield from (value for _, _, value in layout.values(own))

    cells = cells_of(keys, layout.grid_shape) if layout.grid_shape else None
    return Table(layout.index, keys, values, layout.nbytes, cells=cells)


def _dimensions(axes: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """The scale of each axis: as it was when it was imported, or by its unit."""
    found = {str(each.get("name")): scale_of(each) for each in axes}
    for name, given in (about.get("dimensions") or {}).items():
        usable = isinstance(given, list | tuple) and len(given) == 2 and isinstance(given[1], str)
        if name in found and usable and isinstance(given[0], int | float) and 0 < given[0] < float("inf"):
            found[name] = float(given[0]), given[1]
    return found


__all__ = ["CRS", "OBJECT", "AnnotationLayout", "AnnotationValues", "annotation_contents"]
