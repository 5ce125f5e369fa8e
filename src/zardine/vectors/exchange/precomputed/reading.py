"""A store made of a folder of neuroglancer: annotations, skeletons, meshes of one resolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError, UnsupportedError, ZardineError
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.vectors.content.arguments import shown
from zardine.vectors.exchange.losses import bounds_of_nothing, storable
from zardine.vectors.exchange.precomputed import annotations as notes
from zardine.vectors.exchange.precomputed import segments, skeletons
from zardine.vectors.exchange.precomputed.annotation_tables import CRS, OBJECT
from zardine.vectors.exchange.precomputed.annotations import AnnotationInfo, Annotations, Index, SpatialLevel
from zardine.vectors.exchange.precomputed.folder import Folder
from zardine.vectors.exchange.precomputed.forests import parents_of_edges
from zardine.vectors.exchange.precomputed.skeletons import SkeletonInfo
from zardine.vectors.exchange.precomputed.space import unit_of
from zardine.vectors.exchange.precomputed.spatial import morton_codes
from zardine.vectors.format.ragged import starts_of
from zardine.vectors.graph import write_graph
from zardine.vectors.mesh import write_mesh
from zardine.vectors.outside import warn
from zardine.vectors.points import write_points
from zardine.vectors.polylines import write_polylines
from zardine.vectors.skeleton import write_skeleton

Ids = npt.NDArray[np.uint64]
Options = Mapping[str, Any]
Properties = tuple[Ids, dict[str, npt.NDArray[Any]]] | None
"""Ids of segments, and for each property a value for each."""

_LARGEST: Final = np.uint64(2**63 - 1)
"""Of the ids that a store can have."""
_MOST_CELLS: Final = 2**20
"""Of a grid that is asked for one by one, where nothing can be listed."""
_VOLUME: Final = "neuroglancer_multiscale_volume"


def precomputed_in(source: StoreLike, path: StoreLike, options: Options, progress: Progress | None = None) -> None:
    """Write what is in the folder ``source``, a path or URL, to a new store.

    ``progress`` counts files. Raises :class:`DataError` where no document is, :class:`UnsupportedError` for kinds that
    are not read, :class:`CorruptionError` for values that are none.
    """
    folder = Folder.at(source)
    info = folder.document()
    if info is None:
        raise DataError(f"{folder} holds no document called info: it is no folder of neuroglancer")
    kind, where = info.get("@type"), folder.where("info")
    if kind == notes.TYPE:
        _annotations_in(folder, AnnotationInfo.parse(info, where), path, options, progress)
    elif kind == skeletons.TYPE:
        _skeletons_in(folder, SkeletonInfo.parse(info, where), path, options, progress)
    elif kind == skeletons.MESH_TYPE:
        _meshes_in(folder, skeletons.properties_folder(info, where), path, options, progress)
    elif kind == _VOLUME or "scales" in info:
        inside = [str(folder.below(str(info[name]))) for name in ("skeletons", "mesh") if info.get(name)]
        advice = f": give {' or '.join(inside)}" if inside else ""
        raise UnsupportedError(f"{folder} is a volume, not annotations, skeletons or meshes{advice}")
    else:
        raise UnsupportedError(
            f"{where}: {kind!r} is not read; there are {notes.TYPE}, {skeletons.TYPE}, {skeletons.MESH_TYPE}"
        )


def _annotations_in(
    folder: Folder, info: AnnotationInfo, path: StoreLike, options: Options, progress: Progress | None
) -> None:
    found = (
        _by_id(folder, info, progress) if info.relationships or not info.spatial else _by_cell(folder, info, progress)
    )
    name = str(folder)
    columns = storable(_columns(found, info, name), name)
    given: dict[str, Any] = {"axes": _axes(info), "crs": _crs(info)}
    if not len(found):
        given["bounds"] = (info.lower_bound, info.upper_bound)
    ids: Any = found.ids
    if len(ids) and ids.max() > _LARGEST:
        warn(name, "ids of 64 bits are kept as the attribute 'annotation_id'; those of objects are numbers from 0 on")
        columns = {**columns, "annotation_id": ids}
        ids = np.arange(len(ids))
    ids = ids.astype(np.int64)
    numbered = np.array_equal(ids, np.arange(len(ids)))
    single = _single_owner(found, info)
    if info.annotation_type == "point":
        if single is not None and numbered:
            given["object_ids"] = single
        elif not numbered or info.relationships:
            given |= {"object_ids": ids, **_groups(found, info, ids)}
        write_points(path, found.geometry[:, 0], **{"vertex_attributes": columns, **given, **options})
        return
    given |= {"object_ids": ids, "object_attributes": columns, **_groups(found, info, ids)}
    write_polylines(path, list(found.geometry), **{"geometry_type": "line", **given, **options})


def _by_id(folder: Folder, info: AnnotationInfo, progress: Progress | None) -> Annotations:
    """All annotations of the index of ids, by their ids, with what they are related to."""
    ids: list[int] = []
    records: list[Any] = []
    related: list[list[Any]] = [[] for _ in info.relationships]
    for number, value in _values(folder, info, progress):
        try:
            record, own = notes.decode_one(value, info)
        except CorruptionError as error:
            raise error.at(key=f"{folder.where(info.by_id.key)}: annotation {number}") from None
        ids.append(number)
        records.append(record)
        for each, of_it in zip(related, own, strict=True):
            each.append(of_it)
    order = np.argsort(np.array(ids, np.uint64), kind="stable")
    all_records = np.frombuffer(b"".join(records), info.record)[order]
    pairs = []
    for lists in related:
        listed = [lists[row] for row in order.tolist()]
        starts = starts_of(np.array([len(each) for each in listed], np.int64))
        pairs.append((starts, np.concatenate(listed) if listed else np.zeros(0, np.uint64)))
    return _checked(Annotations.from_records(all_records, np.array(ids, np.uint64)[order], info, pairs), folder)


def _values(folder: Folder, info: AnnotationInfo, progress: Progress | None) -> Iterator[tuple[int, Any]]:
    """The values of the index of ids; where nothing can be listed, of the ids that the spatial index tells of."""
    try:
        yield from folder.values(info.by_id, progress)
    except UnsupportedError:
        if not info.spatial:
            raise
        for number in _by_cell(folder, info, progress).ids.tolist():
            value = folder.value(info.by_id, number, str(number))
            if value is None:
                raise CorruptionError(f"annotation {number} of {folder} is missing in {info.by_id.key}") from None
            yield number, value


def _by_cell(folder: Folder, info: AnnotationInfo, progress: Progress | None) -> Annotations:
    """All annotations of the spatial index, each once, by their ids, without what they are related to."""
    parts = []
    for level in info.spatial:
        for where, value in _cells(folder, level, progress):
            try:
                parts.append(notes.decode_list(value, info))
            except CorruptionError as error:
                raise error.at(key=f"{folder.where(level.index.key)}: cell {where}") from None
    ids = np.concatenate([each.ids for each in parts]) if parts else np.zeros(0, np.uint64)
    distinct, rows = np.unique(ids, return_index=True)
    records = np.concatenate([each.records(info) for each in parts]) if parts else np.zeros(0, info.record)
    return _checked(Annotations.from_records(records[rows], distinct, info), folder)


def _cells(folder: Folder, level: SpatialLevel, progress: Progress | None) -> Iterator[tuple[str, Any]]:
    """The lists of the cells of a level: all that are stored, or, where nothing can be listed, all that may be."""
    inner = folder.below(level.index.key)
    try:
        names = inner.names()
    except UnsupportedError:
        count = int(np.array(level.grid_shape, object).prod())
        if count > _MOST_CELLS:
            raise
        cells = np.array(list(product(*map(range, level.grid_shape))), np.int64)
        codes = morton_codes(cells, level.grid_shape).tolist()
        for cell, code in zip(cells.tolist(), codes, strict=True):
            name = "_".join(map(str, cell))
            value = folder.value(level.index, code, name)
            if value is not None:
                yield name, value
        return
    if level.index.sharding is not None:
        for number, value in folder.values(level.index, progress):
            yield str(number), value
        return
    for name in names:
        numbers = name.split("_")
        if len(numbers) == len(level.grid_shape) and all(each.isdecimal() for each in numbers):
            value = inner.read(name)
            if value is not None:
                yield name, value


def _checked(found: Annotations, folder: Folder) -> Annotations:
    if not np.isfinite(found.geometry).all():
        raise CorruptionError(f"{folder}: annotations have coordinates that are no finite numbers")
    return found


def _columns(found: Annotations, info: AnnotationInfo, name: str) -> dict[str, npt.NDArray[Any]]:
    """Properties as attributes; those with labels as text, if each number has one."""
    columns: dict[str, npt.NDArray[Any]] = {}
    for each in info.properties:
        values = found.properties[each.id]
        if each.labels:
            labels = dict(zip(each.numbers, each.labels, strict=True))
            distinct = np.unique(values).tolist()
            if all(number in labels for number in distinct):
                table = np.array([labels[number] for number in distinct], object)
                values = table[np.searchsorted(distinct, values)] if distinct else np.zeros(0, object)
            else:
                warn(name, f"labels of {each.id!r} are left out: some of its numbers have none")
        columns[each.id] = values
    return columns


def _single_owner(found: Annotations, info: AnnotationInfo) -> Ints | None:
    """The object of each point, where that is what their only relationship tells."""
    if [each.id for each in info.relationships] != [OBJECT]:
        return None
    starts, ids = found.related[0]
    if (np.diff(starts) != 1).any() or (len(ids) and ids.max() > _LARGEST):
        return None
    return ids.astype(np.int64)


def _groups(found: Annotations, info: AnnotationInfo, ids: Ints) -> dict[str, Any]:
    """A group for each segment of each relationship, with the annotations that have to do with it."""
    members: list[Ints] = []
    names: list[str] = []
    numbers: list[int] = []
    for each, (starts, related) in zip(info.relationships, found.related, strict=True):
        rows = np.repeat(ids, np.diff(starts))
        order = np.argsort(related, kind="stable")
        distinct, first = np.unique(related[order], return_index=True)
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


def _skeletons_in(
    folder: Folder, info: SkeletonInfo, path: StoreLike, options: Options, progress: Progress | None
) -> None:
    ids: list[int] = []
    parts: list[Any] = []
    properties = _segments(folder, info.segment_properties)
    index = Index(".", info.sharding)
    for number, value in _of_segments(folder, index, properties, progress):
        try:
            parts.append(skeletons.decode_skeleton(value, info))
        except CorruptionError as error:
            raise error.at(key=folder.where(str(number))) from None
        ids.append(number)
    owners, distinct = _owners(ids, [len(each[0]) for each in parts], folder, properties)
    starts = np.cumsum([0, *(len(each[0]) for each in parts)])
    edges = _joined([each[1] + start for each, start in zip(parts, starts.tolist(), strict=False)], (0, 2), np.int64)
    positions, axes = _placed(_joined([each[0] for each in parts], (0, 3), np.float32), info, str(folder))
    columns = {
        each.id: np.concatenate([part[2][each.id] for part in parts]) for each in info.vertex_attributes if parts
    }
    given: dict[str, Any] = {"vertex_attributes": storable(columns, str(folder)), "axes": axes, "object_ids": owners}
    given["object_attributes"] = storable(_of_objects(distinct, properties), str(folder))
    given |= {} if parts else bounds_of_nothing(str(folder), options)
    parents = parents_of_edges(edges, len(positions))
    if parents is None:
        warn(str(folder), "some skeletons are no trees: all are stored as a graph")
        write_graph(path, positions, edges, **{**given, **options})
    else:
        write_skeleton(path, positions, parents, **{**given, **options})


def _meshes_in(
    folder: Folder, properties_folder: str | None, path: StoreLike, options: Options, progress: Progress | None
) -> None:
    properties = _segments(folder, properties_folder)
    try:
        names = folder.names()
        numbers = sorted({int(each[:-2]) for each in names if each.endswith(":0") and each[:-2].isdecimal()})
    except UnsupportedError:
        if properties is None:
            raise
        numbers = properties[0].tolist()
    ids: list[int] = []
    parts: list[tuple[Any, Any]] = []
    for done, number in enumerate(numbers):
        manifest = folder.document(f"{number}:0")
        fragments = None if manifest is None else manifest.get("fragments")
        if manifest is not None and not (
            isinstance(fragments, list) and all(isinstance(each, str) for each in fragments)
        ):
            raise DataError(f"{folder.where(f'{number}:0')}: fragments are a list of names, not {shown(fragments)}")
        if len(set(fragments or ())) != len(fragments or ()):
            raise CorruptionError(f"{folder.where(f'{number}:0')} names one part of the mesh twice")
        for name in fragments or ():
            value = folder.below("/".join(name.split("/")[:-1])).read(name.split("/")[-1])
            if value is None:
                raise CorruptionError(f"{folder.where(name)}, a part of segment {number}, is missing")
            try:
                parts.append(skeletons.decode_mesh(value))
            except CorruptionError as error:
                raise error.at(key=folder.where(name)) from None
            ids.append(number)
        if progress is not None:
            progress(done + 1, len(numbers))
    owners, distinct = _owners(ids, [len(each[0]) for each in parts], folder, properties)
    starts = np.cumsum([0, *(len(each[0]) for each in parts)])
    faces = _joined([each[1] + start for each, start in zip(parts, starts.tolist(), strict=False)], (0, 3), np.int64)
    positions = _joined([each[0] for each in parts], (0, 3), np.float32)
    given: dict[str, Any] = {"axes": [{"name": name, "unit": "nanometer"} for name in "xyz"], "object_ids": owners}
    given["object_attributes"] = storable(_of_objects(distinct, properties), str(folder))
    given |= {} if parts else bounds_of_nothing(str(folder), options)
    write_mesh(path, positions, faces, **{**given, **options})


def _joined(parts: Sequence[npt.NDArray[Any]], shape: tuple[int, ...], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(shape, kind)


def _segments(folder: Folder, name: str | None) -> Properties:
    if name is None:
        return None
    inner = folder.below(name)
    found = inner.document()
    if found is None:
        warn(str(folder), f"the properties of segments in {name!r} are missing")
        return None
    return segments.parse(found, inner.where("info"))


def _of_segments(
    folder: Folder, index: Index, properties: tuple[Ids, Any] | None, progress: Progress | None
) -> Iterator[tuple[int, Any]]:
    """The values of segments; where nothing can be listed, of those that have properties."""
    try:
        yield from sorted(folder.values(index, progress), key=lambda pair: pair[0])
    except UnsupportedError:
        if properties is None:
            raise
        for number in properties[0].tolist():
            value = folder.value(index, number, str(number))
            if value is not None:
                yield number, value


def _owners(ids: Sequence[int], counts: Sequence[int], folder: Folder, properties: Properties) -> tuple[Ints, Ids]:
    """The object of each vertex, and the ids of objects; none where no segments are named.

    Raises :class:`DataError` for segments without a vertex.
    """
    named = 0 if properties is None else len(properties[0])
    if not sum(counts) and (counts or named):
        raise DataError(f"{folder} holds no vertices, and names {len(counts) or named} segments")
    if max(ids, default=0) > int(_LARGEST):
        raise DataError(f"{folder}: the id {max(ids)} is above 2**63 - 1, the largest that a store can have")
    empty = [number for number, count in zip(ids, counts, strict=True) if not count]
    if empty:
        warn(str(folder), f"{len(empty)} segments without vertices are left out, the first of them {empty[0]}")
    owners = np.repeat(np.array(ids, np.int64), counts)
    return owners, np.unique(owners).astype(np.uint64)


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


def _placed(
    positions: npt.NDArray[Any], info: SkeletonInfo, name: str
) -> tuple[npt.NDArray[Any], list[dict[str, Any]]]:
    """Positions as they are stored, with the unit that they are in; where there is none, in nanometres."""
    matrix = np.array(info.transform).reshape(3, 4)
    scales = np.diag(matrix[:, :3])
    units = [unit_of(float(scale) * 1e-9, "m") for scale in scales]
    if np.array_equal(matrix, np.hstack((np.diag(scales), np.zeros((3, 1))))) and None not in units:
        return positions, [{"name": axis, "unit": unit} for axis, unit in zip("xyz", units, strict=True)]
    warn(name, "positions are stored in nanometres, as the transform of the document says")
    moved = positions.astype(np.float64) @ matrix[:, :3].T + matrix[:, 3]
    return moved.astype(np.float32), [{"name": axis, "unit": "nanometer"} for axis in "xyz"]


def is_precomputed(source: StoreLike) -> bool:
    """Return whether a folder has a document of neuroglancer."""
    try:
        found = Folder.at(source).document()
    except (ZardineError, OSError, TypeError, ValueError):
        return False
    return found is not None and ("scales" in found or str(found.get("@type")).startswith("neuroglancer_"))


__all__ = ["is_precomputed", "precomputed_in"]
