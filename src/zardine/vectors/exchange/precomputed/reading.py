"""A store made of a folder of neuroglancer: annotations, skeletons, meshes of one resolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import CorruptionError, DataError, UnsupportedError, ZardineError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import GivenObjects, StoreOptions
from zardine.vectors.changing.values import write_value
from zardine.vectors.content.arguments import plain_ids, shown
from zardine.vectors.content.columns import checked_mapping
from zardine.vectors.content.parts import ABOVE, ENDS, OWNER, Values, loaded
from zardine.vectors.content.run_content import depth_first, inverse
from zardine.vectors.exchange.file_parts import LENGTHS, FolderParts, Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.listing import Seen
from zardine.vectors.exchange.losses import bounds_of_nothing, storable, tell_of_metadata
from zardine.vectors.exchange.precomputed import annotations as notes
from zardine.vectors.exchange.precomputed import segments, skeletons
from zardine.vectors.exchange.precomputed.annotation_order import AnnotationsInOrder
from zardine.vectors.exchange.precomputed.annotation_tables import CRS, OBJECT
from zardine.vectors.exchange.precomputed.annotations import AnnotationInfo, Index
from zardine.vectors.exchange.precomputed.folder import Folder
from zardine.vectors.exchange.precomputed.forests import parents_of_edges
from zardine.vectors.exchange.precomputed.numbers import is_number
from zardine.vectors.exchange.precomputed.portions import (
    Asked,
    Cells,
    Files,
    Portion,
    portions_of,
    portions_of_cells,
    portions_of_ids,
    together,
)
from zardine.vectors.exchange.precomputed.skeletons import SkeletonInfo
from zardine.vectors.exchange.precomputed.space import unit_of
from zardine.vectors.exchange.reordered import Reordered
from zardine.vectors.format.ragged import starts_of
from zardine.vectors.graph import write_spooled_graph
from zardine.vectors.mesh import write_spooled_mesh
from zardine.vectors.outside import warn
from zardine.vectors.points import write_spooled_points
from zardine.vectors.polylines import write_spooled_lines
from zardine.vectors.results import Points
from zardine.vectors.skeleton import write_spooled_trees

Ids = npt.NDArray[np.uint64]
Array = npt.NDArray[Any]
Options = Mapping[str, Any]
Properties = tuple[Ids, dict[str, npt.NDArray[Any]]] | None
"""Ids of segments, and for each property a value for each."""

_LARGEST: Final = np.uint64(2**63 - 1)
"""Of the ids that a store can have."""
_COPIES: Final = 10
"""Bytes of arrays, of bytes and of what compresses them, for each byte of a value, about."""
_FIXED: Final = 16 * 2**20
_LONGEST: Final = 2**26
"""Bytes of a part, where no value of it is longer."""
_OF_OBJECTS: Final = ("object_attributes", "groups", "group_attributes")
_VOLUME: Final = "neuroglancer_multiscale_volume"


FATES: Final = fates(
    two_axes="kept/kept: of annotations; other geometries have three",
    four_axes="kept/kept: of annotations",
    axis_names="kept/kept: of annotations",
    units="kept/kept",
    precision="-/told: in float32",
    integers="-/told: up to 32 bits",
    floats="-/told: in float32",
    booleans="-/told: as 0 and 1",
    text="kept/kept: as a number with labels",
    several_values="-/kept: as properties name_0, name_1",
    missing_text="-/told: empty text",
    vertex_attributes="kept/kept",
    object_attributes="kept/kept: of lines; of points as properties of each",
    ids="kept/kept",
    groups="kept/kept: as relationships",
    colours="kept/kept: as a property",
    crs="-/told",
    bounds="-/told",
    metadata="told/told: members of the document",
    comments="told/-: descriptions of properties",
)
"""Of annotations; of skeletons and meshes see the page."""


def precomputed_parts(source: StoreLike, options: Options, at_once: int, outline: None = None) -> FolderParts:
    """Return a folder, a path or URL, as :class:`~zardine.vectors.exchange.file_parts.FolderParts`: some values each.

    Raises :class:`DataError` where no document is, :class:`UnsupportedError` for kinds that are not read; what is read
    raises :class:`CorruptionError` for values that are none.
    """
    folder, seen = Folder.at(source), Seen()
    info = folder.document(tell=seen.add)
    if info is None:
        raise DataError(f"{folder} holds no document called info: it is no folder of neuroglancer")
    kind, where = info.get("@type"), folder.where("info")
    if kind == notes.TYPE:
        return AnnotationParts(folder, AnnotationInfo.parse(info, where), at_once, seen)
    if kind == skeletons.TYPE:
        return SkeletonParts(folder, SkeletonInfo.parse(info, where), at_once, seen)
    if kind == skeletons.MESH_TYPE:
        return MeshParts(folder, skeletons.properties_folder(info, where), at_once, seen)
    if kind == _VOLUME or "scales" in info:
        inside = [str(folder.below(str(info[name]))) for name in ("skeletons", "mesh") if info.get(name)]
        advice = f": give {' or '.join(inside)}" if inside else ""
        raise UnsupportedError(f"{folder} is a volume, not annotations, skeletons or meshes{advice}")
    raise UnsupportedError(
        f"{where}: {kind!r} is not read; there are {notes.TYPE}, {skeletons.TYPE}, {skeletons.MESH_TYPE}"
    )


class _Parts:
    """What all kinds of folders have in common."""

    outline: None = None
    _of_a_vertex: int
    """Bytes of a vertex, about."""

    def __init__(self, folder: Folder, portions: Sequence[Portion], seen: Seen) -> None:
        self._folder, self._portions, self.seen = folder, portions or [Files(".", (), 0)], str(seen)
        self.nbytes = sum(each.nbytes for each in self._portions)

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self._portions)

    def _bytes(self, at_once: int) -> int:
        """Bytes of so many vertices, which are fewer where each has very many."""
        return min(at_once * self._of_a_vertex, _LONGEST)

    @property
    def vertices(self) -> int:
        """How many there are, about."""
        return self.nbytes // self._of_a_vertex

    @property
    def memory(self) -> int:
        """Bytes that it takes to read a part, about: values, unpacked, as arrays, and as bytes to be kept."""
        return _COPIES * max(each.nbytes for each in self._portions) + _FIXED

    def close(self) -> None:
        """Nothing is kept open."""


class AnnotationParts(_Parts):
    """Annotations: of the index of ids where they are related to something, else of the spatial index.

    What is read is kept as it is stored: a vertex for each annotation, its first corner, with the attributes ``id`` and
    ``record``; and a link for each segment that it has to do with.
    """

    def __init__(self, folder: Folder, info: AnnotationInfo, at_once: int, seen: Seen) -> None:
        self._info, self._of_a_vertex = info, info.record.itemsize + 8
        self._by_id = bool(info.relationships) or not info.spatial
        at_once, portions = self._bytes(at_once), list[Portion]()
        indexes = [info.by_id] if self._by_id else [level.index for level in info.spatial]
        places = {folder.below(each.key).path for each in indexes}
        if len(places) < len(indexes):  # what is there many times would be read as often
            raise DataError(f"{folder.where('info')}: levels of the spatial index are in one folder")
        try:
            for each in indexes:
                portions += portions_of(folder, each, at_once, seen, cells=not self._by_id)
        except UnsupportedError:  # nothing can be listed
            if not info.spatial:
                raise
            portions = portions_of_cells(info.spatial, at_once, str(folder))
        super().__init__(folder, portions, seen)

    def read(self, number: int) -> Piece:
        """Return some annotations."""
        info, portion = self._info, self._portions[number]
        values = portion.values(self._folder)
        if self._by_id and isinstance(portion, Cells):
            ids, _, _ = self._lists(values, portion)
            values = Asked(info.by_id, tuple(map(str, ids.tolist())), 0).all_values(self._folder)
        ids, records, links = self._ones(values) if self._by_id else self._lists(values, portion)
        geometry = records["geometry"]
        if not np.isfinite(geometry).all():
            raise CorruptionError(f"{self._folder}: annotations have coordinates that are no finite numbers")
        as_bytes = np.frombuffer(records.tobytes(), np.uint8).reshape(len(records), info.record.itemsize)
        return Piece(geometry[:, 0].copy(), {"id": ids, "record": as_bytes}, {}, links)

    def _ones(self, values: Iterable[tuple[str, BytesLike]]) -> tuple[Ids, Array, dict[str, Array]]:
        """Ids and records of an index of ids, and the segments that they have to do with."""
        info, ids, records, counts, segments_of = self._info, list[int](), list[bytes](), list[int](), list[bytes]()
        for name, value in values:
            try:
                record, related = notes.decode_one(value, info)
            except CorruptionError as error:
                raise error.at(key=f"{self._folder.where(info.by_id.key)}: annotation {name}") from None
            counts += map(len, related)
            segments_of += [each.tobytes() for each in related if len(each)]
            ids.append(int(name))
            records.append(bytes(record))
        kinds = len(info.relationships)
        row, kind = np.divmod(np.repeat(np.arange(len(counts)), counts), max(1, kinds))
        links = _links(row, kind, np.frombuffer(b"".join(segments_of), np.uint64))
        return np.array(ids, np.uint64), np.frombuffer(b"".join(records), info.record), links

    def _lists(self, values: Iterable[tuple[str, BytesLike]], portion: Portion) -> tuple[Ids, Array, dict[str, Array]]:
        """Ids and records of cells, each once, and no segments."""
        ids, records = [np.zeros(0, np.uint64)], [np.zeros(0, self._info.record)]
        for name, value in values:
            try:
                found = notes.decode_list(value, self._info)
            except CorruptionError as error:
                raise error.at(key=f"{self._folder.where(portion.where)}: cell {name}") from None
            ids.append(found.ids)
            records.append(found.records(self._info))
        distinct, rows = np.unique(np.concatenate(ids), return_index=True)
        none = np.zeros(0, np.int64)
        return distinct, np.concatenate(records)[rows], _links(none, none, none)

    def store(self, path: StoreLike, whole: Whole, options: Options, step: Step, origin: str | None) -> None:
        """Write all annotations, in the order of their ids. In memory are ids, and what is related; if they are
        objects their attributes, too, and of points that are objects all.
        """
        info, name = self._info, str(self._folder)
        found = AnnotationsInOrder(whole, info, name)
        ids: Any = found.ids
        given: dict[str, Any] = {"axes": _axes(info), "crs": _crs(info)}
        told = [f"the description {each.description!r} of {each.id!r}" for each in info.properties if each.description]
        tell_of_metadata(name, [*map(repr, info.others), *told])
        if not len(ids):
            given["bounds"] = (info.lower_bound, info.upper_bound)
        if len(ids) and ids.max() > _LARGEST:
            kept = found.keep_ids("annotation_id")
            warn(name, f"ids of 64 bits are kept as the attribute {kept!r}; those of objects are numbers from 0 on")
            ids = np.arange(len(ids))
        ids = ids.astype(np.int64)
        related = _related(whole, found.ids, len(info.relationships))
        groups = _groups(related, info, ids)
        if info.annotation_type != "point":
            lengths = np.full(len(ids), found.corners_of_each, np.int64)
            given |= {"object_ids": ids, "object_attributes": found.attributes(), **groups}
            write_spooled_lines(path, found, lengths, {"geometry_type": "line", **given, **options}, step, origin)
            return
        single, numbered = _single_owner(related, info), np.array_equal(ids, np.arange(len(ids)))
        if numbered and single is None and not info.relationships:
            write_spooled_points(path, found, {**given, **options}, step, origin)
            return
        given |= {"object_ids": single} if single is not None and numbered else {"object_ids": ids, **groups}
        positions, columns = loaded(found)
        given["vertex_attributes"] = {name: each.decoded() for name, each in columns.items()}
        _write_points(path, positions, {**given, **options}, origin)
        step(1)


def _related(whole: Whole, ids: Ids, kinds: int) -> list[tuple[Ints, Ids]]:
    """For each relationship where the segments of each of the annotations ``ids`` start, and these segments."""
    if not kinds:
        return []
    given = np.concatenate([np.zeros(0, np.uint64), *(values["id"] for _, values in whole.parts())])
    _, rows = np.unique(given, return_index=True)
    first = np.zeros(len(given), np.bool_)
    first[rows] = True  # an annotation of several cells may be there as often
    row, kind, segment = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for table in whole.links():
        ends = table[ENDS].values[:, 0]
        kept = first[ends]
        row.append(np.searchsorted(ids, given[ends[kept]]))
        kind.append(table["relationship"].values[kept])
        segment.append(table["segment"].values[kept])
    rows, relationship, segments_of = np.concatenate(row), np.concatenate(kind), np.concatenate(segment)
    found = []
    for number in range(kinds):
        own = np.flatnonzero(relationship == number)
        own = own[np.argsort(rows[own], kind="stable")]
        found.append((starts_of(np.bincount(rows[own], minlength=len(ids))), segments_of[own]))
    return found


def _links(rows: Ints, relationships: Ints, related: Array) -> dict[str, Array]:
    """The segments that annotations have to do with, as links: each is one of a row with itself."""
    kinds, ids = relationships.astype(np.uint64), related.astype(np.uint64)
    return {ENDS: np.stack([rows, rows], axis=1).astype(np.int64), "relationship": kinds, "segment": ids}


def _write_points(path: StoreLike, positions: Array, given: dict[str, Any], origin: str | None) -> None:
    """Write points with the options of ``write_points``, and where they come from."""
    ids, columns = plain_ids(given.pop("object_ids", None)), checked_mapping(given.pop("vertex_attributes")) or {}
    objects = GivenObjects(None, *(given.pop(name, None) for name in _OF_OBJECTS))
    options = cast(StoreOptions, given)
    write_value(path, Points(positions, columns, ids), "point_cloud", objects, options, origin=origin)


def _single_owner(related: Sequence[tuple[Ints, Ids]], info: AnnotationInfo) -> Ints | None:
    """The object of each point, where that is what their only relationship tells."""
    if [each.id for each in info.relationships] != [OBJECT]:
        return None
    starts, ids = related[0]
    if (np.diff(starts) != 1).any() or (len(ids) and ids.max() > _LARGEST):
        return None
    return ids.astype(np.int64)


def _groups(related: Sequence[tuple[Ints, Ids]], info: AnnotationInfo, ids: Ints) -> dict[str, Any]:
    """A group for each segment of each relationship, with the annotations that have to do with it."""
    members: list[Ints] = []
    names: list[str] = []
    numbers: list[int] = []
    for each, (starts, segments_of) in zip(info.relationships, related, strict=True):
        rows = np.repeat(ids, np.diff(starts))
        order = np.argsort(segments_of, kind="stable")
        distinct, first = np.unique(segments_of[order], return_index=True)
        members += [np.unique(part) for part in np.split(rows[order], first[1:])] if len(distinct) else []
        names += [each.id] * len(distinct)
        numbers += distinct.tolist()
    if not members:
        return {}
    kind = np.uint64 if max(numbers) > int(_LARGEST) else np.int64
    return {"groups": members, "group_attributes": {"relationship": names, "segment": np.array(numbers, kind)}}


def _axes(info: AnnotationInfo) -> list[dict[str, Any]]:
    axes: list[dict[str, Any]] = []
    for name, (scale, unit) in info.dimensions.items():
        known = unit_of(scale, unit)
        axes.append({"name": name} if known is None else {"name": name, "unit": known})
    return axes


def _crs(info: AnnotationInfo) -> dict[str, Any] | None:
    """What the axes and the geometry do not say: units of other lengths, and that lines are boxes."""
    about: dict[str, Any] = {}
    if info.annotation_type not in ("point", "line"):
        about["annotation_type"] = info.annotation_type
    others = {
        name: list(each) for name, each in info.dimensions.items() if unit_of(*each) is None and each != (1.0, "")
    }
    if others:
        about["dimensions"] = others
    return {CRS: about} if about else None


class _SegmentParts(_Parts):
    """What skeletons and meshes have in common."""

    _properties: Properties
    _named: str | None
    """The folder of properties that the document names."""

    def _there(self, ids: Ints, lengths: Ints) -> Ints:
        """Which segments have vertices; warns of what is missing.

        Raises :class:`DataError` where none has, and some are named.
        """
        name, known = str(self._folder), 0 if self._properties is None else len(self._properties[0])
        if self._named is not None and self._properties is None:
            warn(name, f"the properties of segments in {self._named!r} are missing")
        if not lengths.sum() and (len(ids) or known):
            raise DataError(f"{name} holds no vertices, and names {len(ids) or known} segments")
        empty = ids[lengths == 0]
        if len(empty):
            warn(name, f"{len(empty)} segments without vertices are left out, the first of them {empty[0]}")
        return np.flatnonzero(lengths > 0)


class SkeletonParts(_SegmentParts):
    """Skeletons, in the order of their ids, or of shards; where nothing can be listed, of segments with properties.

    Of each vertex the attribute ``above`` says how many before it its parent is, where the skeleton is a tree (of
    ``trees``), and ``owner`` its object.
    """

    def __init__(self, folder: Folder, info: SkeletonInfo, at_once: int, seen: Seen) -> None:
        self._info = info
        self._of_a_vertex = 20 + sum(
            np.dtype(each.data_type).itemsize * each.num_components for each in info.vertex_attributes
        )
        self._named = info.segment_properties
        self._properties = _segments(folder, self._named, seen)
        index, at_once = Index(".", info.sharding), self._bytes(at_once)
        try:
            portions = portions_of(folder, index, at_once, seen)
        except UnsupportedError:  # nothing can be listed
            if self._properties is None:
                raise
            portions = portions_of_ids(index, np.unique(self._properties[0]).tolist(), at_once)
        super().__init__(folder, portions, seen)

    def read(self, number: int) -> Piece:
        """Return some skeletons, each tree from its root on, each branch whole."""
        folder, info = self._folder, self._info
        values = self._portions[number].values(folder)
        pieces: list[Piece] = []
        ids: list[int] = []
        for name, value in values:
            try:
                pieces.append(_tree(*skeletons.decode_skeleton(value, info), _checked_id(name, folder)))
            except CorruptionError as error:
                raise error.at(key=folder.where(name)) from None
            ids.append(int(name))
        attributes = {
            f"@{each.id}": np.zeros((0, each.num_components)[: 1 + (each.num_components > 1)], each.data_type)
            for each in info.vertex_attributes
        }
        none = Piece(
            np.zeros((0, 3), np.float32),
            {**dict.fromkeys(("above", "owner"), np.zeros(0, np.int64)), **attributes},
            {"tree": np.zeros(0, np.bool_)},
            {ENDS: np.zeros((0, 2), np.int64)},
        )
        found = _together([none, *pieces])
        lengths = np.array([len(each.positions) for each in pieces], np.int64)
        of_lines = {LENGTHS: lengths, "id": np.array(ids, np.int64), **found.of_lines}
        matrix = np.array(info.transform).reshape(3, 4)
        positions = found.positions
        if _units(matrix) is None:
            positions = (positions.astype(np.float64) @ matrix[:, :3].T + matrix[:, 3]).astype(np.float32)
        return Piece(positions, found.values, of_lines, found.links)

    def store(self, path: StoreLike, whole: Whole, options: Options, step: Step, origin: str | None) -> None:
        """Write all skeletons: as trees, or as a graph where some are none."""
        name, tables = str(self._folder), whole.of_lines
        units = _units(np.array(self._info.transform).reshape(3, 4))
        if units is None:
            warn(name, "positions are stored in nanometres, as the transform of the document says")
        ids, lengths = tables["id"], tables[LENGTHS]
        there = self._there(ids, lengths)
        given: dict[str, Any] = {
            "axes": [{"name": axis, "unit": unit} for axis, unit in zip("xyz", units or ["nanometer"] * 3, strict=True)]
        }
        distinct = np.unique(ids[there])
        given["object_attributes"] = storable(_of_objects(distinct.astype(np.uint64), self._properties), name)
        given |= bounds_of_nothing(name, options) if not len(ids) else {}
        columns = storable({each.id: f"@{each.id}" for each in self._info.vertex_attributes}, name)
        if not tables["tree"].all():
            warn(name, "some skeletons are no trees: all are stored as a graph")
            whole.rename({OWNER: "owner", **columns})
            write_spooled_graph(path, whole, whole, {**given, **options}, step, origin)
        elif (np.diff(ids[there]) > 0).all():
            whole.rename({ABOVE: "above", **columns})
            write_spooled_trees(path, whole, lengths[there], ids[there], {**given, **options}, step, origin)
        else:
            whole.rename({ABOVE: "above", **columns})
            order = np.argsort(ids[there], kind="stable")
            of_ids = lengths[there][order], ids[there][order]
            ends, place = np.cumsum(lengths[there]), inverse(order)

            def ranks(row: int, values: Values) -> Ints:
                return place[np.searchsorted(ends, np.arange(row, row + len(values[ABOVE])), "right")]

            in_order = Reordered(whole, ranks, of_ids[0])
            write_spooled_trees(path, in_order, *of_ids, {**given, **options}, step, origin)


def _tree(positions: Array, edges: Array, attributes: Mapping[str, Array], number: int) -> Piece:
    """A skeleton; a tree in an order in which parents come before children, and branches are whole."""
    count = len(positions)
    parents = parents_of_edges(edges, count)
    order = above = np.arange(count)
    if parents is not None:
        order = depth_first(parents, np.zeros(count, np.int64))
        place = inverse(order)
        above = np.where(parents[order] >= 0, place[parents[order]], above)
        edges = place[edges]
    values = {
        "above": np.arange(count) - above,
        "owner": np.full(count, number, np.int64),
        **{f"@{name}": each[order].astype(each.dtype.newbyteorder("=")) for name, each in attributes.items()},
    }
    tree = {"tree": np.array([parents is not None])}
    return Piece(positions[order].astype(np.float32), values, tree, {ENDS: edges})


def _together(pieces: Sequence[Piece]) -> Piece:
    """Pieces with the same attributes as one."""
    starts = starts_of(np.array([len(each.positions) for each in pieces], np.int64))[:-1].tolist()
    first = pieces[0]
    return Piece(
        np.concatenate([each.positions for each in pieces]),
        {name: np.concatenate([each.values[name] for each in pieces]) for name in first.values},
        {name: np.concatenate([each.of_lines[name] for each in pieces]) for name in first.of_lines},
        {ENDS: np.concatenate([each.links[ENDS] + start for each, start in zip(pieces, starts, strict=True)])},
    )


class MeshParts(_SegmentParts):
    """Meshes of one resolution; where nothing can be listed, of the segments that have properties."""

    _of_a_vertex = 36

    def __init__(self, folder: Folder, properties_folder: str | None, at_once: int, seen: Seen) -> None:
        self._named = properties_folder
        self._properties = _segments(folder, self._named, seen)
        at_once = self._bytes(at_once)
        try:
            versions = folder.versions()
        except UnsupportedError:  # nothing can be listed
            if self._properties is None:
                raise
            ids = np.unique(self._properties[0]).tolist()
            runs = together(folder, list(map(str, ids)), at_once, lambda name: ())
        else:
            for name, version in versions.items():
                seen.add(name, version)
            parts = _parts_by_name(versions)
            others = [name for name in versions if name not in _BESIDES and name[0] != "."] if not parts else []
            if others:
                raise DataError(
                    f"{folder} holds no mesh: of each segment a file such as '{others[0]}:0' has to say of which parts "
                    f"it is, and none of the {len(others)} files is such"
                )
            runs = together(folder, list(parts), at_once, lambda name: parts[name])
        super().__init__(folder, [Files(".", names, size) for names, size in runs], seen)

    def read(self, number: int) -> Piece:
        """Return some meshes, of all their fragments."""
        folder, pieces, ids = self._folder, list[Piece](), list[int]()
        portion = self._portions[number]
        names = portion.names if isinstance(portion, Files) else ()
        there = set[str]()
        for name, found in zip(names, folder.each(lambda name: _fragments(folder, int(name)), names), strict=True):
            if not there.isdisjoint(found):
                again = there.intersection(found).pop()
                raise CorruptionError(f"{folder.where(again)} is a part of segment {name} and of another one")
            there.update(found)
            for positions, faces in found.values():
                owner = np.full(len(positions), _checked_id(name, folder), np.int64)
                pieces.append(Piece(positions.astype(np.float32), {OWNER: owner}, {}, {ENDS: faces}))
                ids.append(int(name))
        none = Piece(
            np.zeros((0, 3), np.float32), {OWNER: np.zeros(0, np.int64)}, {}, {ENDS: np.zeros((0, 3), np.int64)}
        )
        mesh = _together([none, *pieces])
        lengths = np.array([len(each.positions) for each in pieces], np.int64)
        return Piece(mesh.positions, mesh.values, {LENGTHS: lengths, "id": np.array(ids, np.int64)}, mesh.links)

    def store(self, path: StoreLike, whole: Whole, options: Options, step: Step, origin: str | None) -> None:
        """Write all meshes."""
        name, tables = str(self._folder), whole.of_lines
        there = self._there(tables["id"], tables[LENGTHS])
        distinct = np.unique(tables["id"][there]).astype(np.uint64)
        given: dict[str, Any] = {"axes": [{"name": axis, "unit": "nanometer"} for axis in "xyz"]}
        given["object_attributes"] = storable(_of_objects(distinct, self._properties), name)
        given |= {} if len(there) else bounds_of_nothing(name, options)
        write_spooled_mesh(path, whole, whole, {**given, **options}, step, origin)


_BESIDES: Final = ("info", "provenance")
"""Files in a folder of meshes that are none of a mesh."""


def _parts_by_name(names: Iterable[str]) -> dict[str, list[str]]:
    """The files of each segment, in the order of their ids, as their names tell; those that do not are shared out."""
    numbers = sorted(int(each[:-2]) for each in names if each.endswith(":0") and is_number(each[:-2]))
    found: dict[str, list[str]] = {str(number): [] for number in numbers}
    others = list[str]()
    for name in names:
        found.get(name.split(":")[0], others).append(name)
    share = -(-len(others) // max(1, len(found)))
    for number, each in enumerate(found.values()):
        each += others[number * share : (number + 1) * share]
    return found


def _fragments(folder: Folder, number: int) -> dict[str, tuple[Array, Array]]:
    """Positions and triangles of the parts of a mesh, by the paths of their files."""
    manifest = folder.document(f"{number}:0")
    fragments = None if manifest is None else manifest.get("fragments")
    if manifest is not None and not (isinstance(fragments, list) and all(isinstance(each, str) for each in fragments)):
        raise DataError(f"{folder.where(f'{number}:0')}: fragments are a list of names, not {shown(fragments)}")
    found = dict[str, tuple[Array, Array]]()
    for name in fragments or ():
        place = folder.below(name)
        if place.path in found:
            raise CorruptionError(f"{folder.where(f'{number}:0')} names one part of the mesh twice: {name!r}")
        value = Folder(folder.store, "").read(place.path)
        if value is None:
            raise CorruptionError(f"{folder.where(name)}, a part of segment {number}, is missing")
        try:
            found[place.path] = skeletons.decode_mesh(value)
        except CorruptionError as error:
            raise error.at(key=folder.where(name)) from None
    return found


def _checked_id(name: str, folder: Folder) -> int:
    if int(name) > int(_LARGEST):
        raise DataError(f"{folder}: the id {name} is above 2**63 - 1, the largest that a store can have")
    return int(name)


def _units(matrix: Array) -> list[str] | None:
    """The units that positions are stored in; ``None`` where a transform is more than units."""
    scales = np.diag(matrix[:, :3])
    units = [unit_of(float(scale) * 1e-9, "m") for scale in scales]
    plain = np.array_equal(matrix, np.hstack((np.diag(scales), np.zeros((3, 1)))))
    return [each for each in units if each is not None] if plain and None not in units else None


def _segments(folder: Folder, name: str | None, seen: Seen) -> Properties:
    if name is None:
        return None
    inner = folder.below(name)
    found = inner.document(tell=seen.add)
    return None if found is None else segments.parse(found, inner.where("info"))


def _of_objects(ids: Ids, properties: Properties) -> dict[str, npt.NDArray[Any]]:
    """Properties of the segments ``ids``; NaN and empty text for those that have none."""
    if properties is None or not len(properties[0]):
        return {}
    known, columns = properties
    order = np.argsort(known, kind="stable")
    row = np.minimum(np.searchsorted(known[order], ids), len(known) - 1)
    there = known[order][row] == ids
    found: dict[str, npt.NDArray[Any]] = {}
    for name, values in columns.items():
        taken = values[order][row]
        if not there.all():
            taken = (
                np.where(there, taken, "")
                if taken.dtype.kind == "O"
                else np.where(there, taken.astype(np.float64), np.nan)
            )
        found[name] = taken
    return found


def is_precomputed(source: StoreLike) -> bool:
    """Return whether a folder has a document of neuroglancer."""
    try:
        found = Folder.at(source).document()
    except (ZardineError, OSError, TypeError, ValueError):
        return False
    return found is not None and ("scales" in found or str(found.get("@type")).startswith("neuroglancer_"))


__all__ = ["is_precomputed", "precomputed_parts"]
