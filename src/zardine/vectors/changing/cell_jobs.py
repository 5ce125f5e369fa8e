"""A new store of points or lines, written by many jobs: each makes the cells of a box of chunks, in shards of its own.

The level says from the beginning whose it is (:data:`~zardine.vectors.storing.store.WRITER`), and that it is not
finished. A job stores its cells where they belong, which no document names yet, and writes down what they are: a record
in the form of a log of changes (:mod:`zardine.vectors.format.change_log`), with the documents that its cells alone
would have, and the rows of its objects. ``finish`` makes the documents and tables of all records, the root last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import product
from math import prod
from typing import Any, ClassVar, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.errors import CorruptionError, DataError, MetadataError, PlanError, ZardineError
from zardine.hierarchy.create import create_ancestors
from zardine.hierarchy.find import HIDDEN, find_node
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done, Records
from zardine.jobs.stages import BlockGrid, Stage
from zardine.jobs.work import Forecast, Work, holds_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import parse_node_json
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.vectors.changing.creating import (
    Prepared,
    StoreOptions,
    make_room,
    new_store,
    prepare,
    root_attributes,
)
from zardine.vectors.changing.values import checked_kind
from zardine.vectors.content.arguments import checked_positions
from zardine.vectors.content.changes import LINES
from zardine.vectors.content.column_types import empty_columns, typed_columns, types_from_json
from zardine.vectors.content.columns import Column, column_of
from zardine.vectors.content.content import Columns, Content, Objects
from zardine.vectors.content.plan import Node, families_in, group, plan_level, plan_objects, table_values
from zardine.vectors.content.point_content import binned_points, object_points
from zardine.vectors.content.run_content import polyline_content
from zardine.vectors.format.cell_documents import NONEMPTY, parse_keys
from zardine.vectors.format.change_log import Changed, ChangeLog, decode_log, encode_log
from zardine.vectors.format.documents import new_level
from zardine.vectors.format.grids import chunks_of, in_box
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.results import Points, Polylines
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.node_parts import NodeParts
from zardine.vectors.storing.node_writing import write_document, write_nodes, write_values
from zardine.vectors.storing.spools import Spool, SpooledBlobs
from zardine.vectors.storing.store import UNFINISHED, WRITER
from zardine.vectors.storing.table_rows import row_bytes, row_values

CellBox: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""The lowest and the highest corner of what a job makes."""
CellSource: TypeAlias = Callable[..., Points | Polylines | None]
"""Gives what lies in a :data:`CellBox`; ``None`` for nothing."""

_FIXED: Final = 16 * 2**20
_COPIES: Final = 4
"""How often a job has its vertices in memory: as given, in the order of cells, as cells, and encoded."""
_BESIDE: Final = {"points": 112, "objects": 240, "lines": 1024}
"""Bytes for each vertex beside its values, at most, as measured: where it is stored; and of lines fragments, manifests
and links, as where each vertex is in another chunk than the one before."""
_NO_THICKNESS: Final = 1e-9
"""Of the size of a chunk: what is thinner is a face of it, but for rounding."""
_NOTHING: Final[dict[str, Any]] = {"vertices": 0, "record": None}
"""What a job has found that has written nothing."""
_IDS, _MANIFESTS = "object_index/object_ids", "object_index/manifests"


@dataclass(frozen=True)
class CellsWork(Work):
    """A new store at ``target``, cut into boxes of chunks; a function gives what is in each."""

    kind: ClassVar[str] = "cells"

    target: Place
    name: str
    """Of the function that gives what is in a box: ``module:function``, as :func:`name_of` says."""
    source: CellSource | None
    """The function; ``None``: it is imported, by the first job."""
    arguments: Mapping[str, Any]
    """What the function is given beside the box; JSON."""
    request: Mapping[str, Any]
    """What the store is to be, as JSON; see :func:`zardine.vectors.plan_write_cells`."""
    may_import: bool = True
    """Whether the user has named the function; the file of a plan alone cannot."""

    # what is to be made

    @cached_property
    def _prepared(self) -> Prepared:
        return prepare(np.zeros((0, self._rank), self._dtype), self._options, may_ignore=True)

    @cached_property
    def _options(self) -> StoreOptions:
        asked = self.request
        return {
            **{name: asked[name] for name in ("chunk_shape", "bin_shape", "shard_shape", "bounds", "axes", "crs")},  # type: ignore[typeddict-item]
            "codec_config": asked["codecs"],
            "checksum": False,  # it is among the codecs
        }

    @property
    def _rank(self) -> int:
        return len(self.request["bounds"][0])

    @property
    def _dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = np.dtype(self.request["dtype"])
        return found

    @property
    def _is_of_lines(self) -> bool:
        return self.request["kind"] in LINES

    @cached_property
    def _new(self) -> Any:
        none = np.zeros((0, self._rank), np.int64)
        return new_store(self.request["kind"], none, self._prepared, self._options)

    @cached_property
    def _empty(self) -> list[Node]:
        """The nodes of the level where nothing is in it."""
        positions, ids = np.zeros((0, self._rank), self._dtype), np.zeros(0, np.int64)
        value = Polylines(positions, np.zeros(1, np.int64), ids)
        points = Points(positions, {}, ids if self.request["objects"] else None)
        return self._nodes(self._content(value if self._is_of_lines else points, None))

    @cached_property
    def _block(self) -> tuple[int, ...]:
        """Chunks of a job along each axis."""
        return tuple(self.request["job_shape"])

    @cached_property
    def _level(self) -> str:
        return child(self.target.path, "0")

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        columns = empty_columns(self.request["attributes"]).values()
        each = self._rank * self._dtype.itemsize + sum(
            column.values.dtype.itemsize * prod(column.row_shape) for column in columns
        )
        what = "lines" if self._is_of_lines else "objects" if self.request["objects"] else "points"
        memory = self.request["max_vertices"] * (_COPIES * each + _BESIDE[what]) + _FIXED
        return (Stage("write", (self._boxes,), memory),)

    @cached_property
    def _boxes(self) -> BlockGrid:
        """The boxes of all jobs.

        Where the bounds end at a face of chunks, positions on that face are in chunks of their own. Of these alone no
        box would have any thickness: they are of the last one before.
        """
        shape, high = self._prepared.chunk_shape, self._prepared.bounds[1]
        axes = []
        for axis, (length, block) in enumerate(zip(self._new.grid.shape, self._block, strict=True)):
            before = -(-length // block) - 1  # boxes before the last one
            first = self._new.grid.origin[axis] + before * block
            if before > 0 and high[axis] - first * shape[axis] <= shape[axis] * _NO_THICKNESS:
                runs = ((block, before - 1), (length - (before - 1) * block, 1))
                axes.append(Axis(length, runs[before == 1 :]))
            else:
                axes.append(Axis.regular(length, block))
        return BlockGrid(tuple(axes))

    @property
    def home(self) -> Place:
        return self.target

    def places(self) -> tuple[Place, ...]:
        return (self.target,)

    def describe(self) -> str:
        return f"write {self.request['kind']} to {self.target}"

    def job_bytes(self, stage: int, job: int) -> int:
        """Chunks, since nobody knows how many bytes there will be."""
        return prod(stop - start for start, stop in self.stages[0].grids[0].box(job))

    # the jobs

    def run(self, job: Job) -> JobDone:
        low, high = (corner + np.asarray(self._new.grid.origin) for corner in self._local(job.number))
        content = self._asked(low, high)
        nodes = [] if content is None else self._nodes(content)
        cells = [node for node in nodes if node.chunks is not None]
        record = None if content is None else self._record(content, nodes)
        own = [] if record is None else [self._record_key(job.number, record.token)]
        there = self._keys(self._empty, low, high) if job.looks else []
        new = self._keys(cells, low, high)
        store = job.guarded(self.target.store, [*{*there, *new}, *own])
        for node in cells:
            write_values(store, child(self._level, node.path), node, node.metadata)
        for key in {*there} - {*new}:  # of an earlier run, which found more
            if self.target.store.exists(key):
                store.erase(key)
        if content is None or record is None:
            return JobDone(found=_NOTHING)
        store.set(own[0], encode_log(record))
        return JobDone(found={"vertices": len(content.positions), "record": record.token})

    @cached_property
    def _function(self) -> CellSource:
        if self.source is not None:
            return self.source
        if not self.may_import:
            raise PlanError(
                f"the plan names the function {self.name}, which would be run: if it is yours, name it as well, by "
                f"Plan.load(path, functions=[{self.name!r}]) or --function {self.name}"
            )
        return imported(self.name)

    def _local(self, job: int) -> tuple[Ints, Ints]:
        """Return the first cell of a job, and the one behind its last, along each axis."""
        box = np.array(self.stages[0].grids[0].box(job), np.int64).reshape(-1, 2)
        return box[:, 0], box[:, 1]

    def _asked(self, low: Ints, high: Ints) -> Content | None:
        """Return what the source gives for the chunks from ``low`` up to, and without, ``high``."""
        first, last = (tuple(corner.tolist()) for corner in self._box(low, high))
        given = self._function((first, last), **self.arguments)
        if given is None:
            return None
        wanted = Polylines if self._is_of_lines else Points
        if not isinstance(given, wanted):
            raise DataError(
                f"{self.name} gives {type(given).__name__}; {self.request['kind']} come as {wanted.__name__}"
            )
        content = self._content(given, (low, high))
        return content if len(content.positions) or content.objects is not None else None

    def _box(self, low: Ints, high: Ints) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the corners of the chunks from ``low`` up to, and without, ``high``, within the bounds."""
        shape, bounds = np.asarray(self._prepared.chunk_shape), np.asarray(self._prepared.bounds)
        return np.maximum(low * shape, bounds[0]), np.minimum(high * shape, bounds[1])

    def _content(self, value: Points | Polylines, chunks: tuple[Ints, Ints] | None) -> Content:
        """Return a value as cells, all of which are from the first of ``chunks`` up to, and without, the second."""
        value = value.checked()
        points = checked_positions(value.positions, self._dtype)
        if points.shape[1] != self._rank:
            raise DataError(f"positions have {points.shape[1]} coordinates, the store has {self._rank} axes")
        columns = typed_columns(value.attributes, self.request["attributes"], len(points), "vertices")
        ids = value.object_ids
        if isinstance(value, Polylines):
            if chunks is not None:
                self._inside(points, chunks, np.repeat(value.object_ids, np.diff(value.starts)))
            checked_kind(self.request["kind"], np.diff(value.starts))
            none = np.zeros(0, np.int64)
            own = typed_columns(value.object_attributes, self.request["object_attributes"], len(value), "objects")
            objects = Objects(value.object_ids, none, none, own)
            content = polyline_content(points, columns, np.diff(value.starts), self._prepared.chunk_shape, objects)
            return self._not_too_many(content)
        if (ids is not None) != self.request["objects"]:
            raise DataError("points have object_ids where, and only where, that was planned (objects=True)")
        if chunks is not None:
            kept = self._inside(points, chunks, None)
            points, columns = points[kept], {name: column.take(kept) for name, column in columns.items()}
            ids = None if ids is None else ids[kept]
        shapes = self._prepared.chunk_shape, self._prepared.bin_shape
        if ids is None:
            return self._not_too_many(binned_points(points, columns, *shapes))
        distinct = np.unique(ids)
        return self._not_too_many(
            object_points(points, columns, ids, shapes[0], object_columns={}, object_ids=distinct)
        )

    def _not_too_many(self, content: Content) -> Content:
        if len(content.positions) > self.request["max_vertices"]:
            raise DataError(
                f"{self.name} gives {len(content.positions):,} vertices for one job; with max_vertices="
                f"{self.request['max_vertices']:,} jobs have to be of fewer chunks (job_shape=)"
            )
        return content

    def _inside(self, points: npt.NDArray[Any], chunks: tuple[Ints, Ints], owners: Ints | None) -> Any:
        """Return which points lie in the bounds and in ``chunks``; those on upper faces of the box are of the next one.

        Raises :class:`~zardine.errors.DataError` where others may not be left out.
        """
        keys = chunks_of(points, self._prepared.chunk_shape)
        within = (keys >= chunks[0]) & (keys < chunks[1])
        in_bounds = in_box(points, *self._prepared.bounds)
        inside = in_bounds & within.all(axis=1)
        if inside.all() or (self.request["outside"] == "ignore" and owners is None):
            return inside
        on_face = (keys == chunks[1]) & (points == self._box(*chunks)[1])
        wrong = ~inside if owners is not None else ~(in_bounds & (within | on_face).all(axis=1))
        if not wrong.any():
            return inside
        row = int(np.flatnonzero(wrong)[0])
        where = f"the position {points[row].tolist()} in the chunk {tuple(keys[row].tolist())}"
        whose = "" if owners is None else f" of line {owners[row]}"
        advice = (
            "; out_of_bounds='ignore' leaves out what is of other jobs"
            if owners is None
            else ": lines have to lie in the box of one job, whose chunks job_shape= says"
        )
        first, end = (tuple(corner.tolist()) for corner in chunks)
        raise DataError(
            f"{self.name} gives {where}{whose}; this job has those from {first} up to, and without, {end}, within the "
            f"bounds{advice}"
        )

    def _nodes(self, content: Content) -> list[Node]:
        return list(plan_level(content, self._new.grid, always_links=False))

    def _keys(self, nodes: Sequence[Node], low: Ints, high: Ints) -> list[str]:
        """Return the keys of all objects that arrays of cells have for the chunks of a job."""
        origin, found = np.asarray(self._new.grid.origin), []
        for node in nodes:
            if node.chunks is not None:
                assert isinstance(node.metadata, ArrayMetadata)
                array = Array(self.target.store, child(self._level, node.path), node.metadata)
                size = np.asarray(array.shards or array.chunks)
                if len(node.chunks):
                    wheres = unique_rows((node.chunks - origin) // size)[0].tolist()
                else:
                    ends = zip((low - origin) // size, -((origin - high) // size), strict=True)
                    wheres = list(product(*(range(int(a), int(b)) for a, b in ends)))
                found += [array._handle.key(tuple(where)) for where in wheres]
        return found

    # records

    def _record(self, content: Content, nodes: Sequence[Node]) -> ChangeLog:
        documents = {node.path: node.metadata.to_dict() for node in nodes if not _is_of_tables(node.path)}
        rows = {}
        if content.objects is not None:
            tables = {node.path: node for node in nodes}
            values: dict[str, Sequence[bytes]] = {
                _IDS: row_bytes(content.objects.ids),
                _MANIFESTS: list(tables[_MANIFESTS].rows or ()),
            }
            for name, column in content.objects.attributes.items():
                values[f"object_attributes/{name}"] = row_bytes(table_values(column)[0])
            places = np.arange(len(content.objects.ids)).reshape(-1, 1)
            rows = {path: Changed(places, each) for path, each in values.items()}
        unnamed = encode_log(ChangeLog("", documents, {}, rows))
        return ChangeLog(hashlib.sha256(unnamed).hexdigest()[:32], documents, {}, rows)

    @property
    def _records(self) -> str:
        """What the keys of the records of this work begin with."""
        return join_path(self.target.path, f"{HIDDEN}/cells/")

    def _record_key(self, job: int, token: str) -> str:
        return f"{self._records}{job}.{token}"

    def _read_record(self, job: int, found: Any) -> _Part:
        """Return what a job has written down. Raises :class:`~zardine.errors.CorruptionError` for what cannot be."""
        count, token = (found.get(name) if isinstance(found, Mapping) else None for name in ("vertices", "record"))
        if type(count) is not int or not 0 <= count <= 2**53 or not isinstance(token, str) or not token.isalnum():
            raise CorruptionError(f"{found!r} is nothing that a job can have found")
        key = self._record_key(job, token)
        data = self.target.store.get(key)
        if data is None:
            raise CorruptionError("the record of the job is not stored", key=key)
        log = decode_log(data, token)
        nodes = [self._noted(path, document, job) for path, document in log.documents.items()]
        paths = [_IDS, _MANIFESTS, *(f"object_attributes/{name}" for name in self.request["object_attributes"])]
        tables = {node.path: node for node in self._empty}
        if _IDS not in tables:
            return _Part(job, count, nodes, np.zeros(0, np.int64), (), {})
        if [*log.rows] != paths or len({len(each.values) for each in log.rows.values()}) != 1:
            raise CorruptionError(f"the record has the tables {[*log.rows]}, and not {paths}", key=key)
        ids = self._rows_of(tables[_IDS], log.rows[_IDS])
        columns = {path: self._rows_of(tables[path], log.rows[path]) for path in paths[2:]}
        return _Part(job, count, nodes, ids, log.rows[_MANIFESTS].values, columns)

    def _rows_of(self, table: Node, rows: Changed) -> npt.NDArray[Any]:
        assert isinstance(table.metadata, ArrayMetadata)
        return row_values(Array(self.target.store, child(self._level, table.path), table.metadata), rows.values)

    def _noted(self, path: str, document: Mapping[str, Any], job: int) -> Node:
        """Return a node of which a job has some cells, without these."""
        metadata = parse_node_json(document, f"the document of {path}")
        if not isinstance(metadata, ArrayMetadata):
            return Node(path, metadata)
        chunks = parse_keys(metadata.attributes.get(NONEMPTY), self._rank)
        first = next((node.metadata for node in self._empty if node.path == "vertices"), None)
        assert isinstance(first, ArrayMetadata)
        if chunks is None or replace(metadata, attributes={}) != replace(first, attributes={}):
            raise CorruptionError(f"the record of the job describes {path} as another array than was planned")
        low, high = (corner + np.asarray(self._new.grid.origin) for corner in self._local(job))
        if ((chunks < low) | (chunks >= high)).any() or len(unique_rows(chunks)[0]) != len(chunks):
            raise CorruptionError(f"the record of the job names cells of {path} that are not its own")
        return Node(path, metadata, chunks)

    # before and after

    def check(self) -> None:
        """Nothing can be stale: what the source gives counts when a job asks."""

    def begin(self, plan: str) -> None:
        store, inner = self.target.store, self.target.path
        with store.lock(child(self._level, "zarr.json")):
            if self._writer() == plan and find_node(store, inner, 3) is None:
                return
            make_room(store, inner, overwrite=False)
            write_document(store, self._level, group({UNFINISHED: True, WRITER: plan}))

    def _writer(self) -> Any:
        """Return the id of the plan whose jobs write the level, or wrote it."""
        try:
            node = find_node(self.target.store, self._level, 3)
        except MetadataError:
            return None
        return node.attributes.get(WRITER) if isinstance(node, GroupMetadata) else None

    def is_finished(self, plan: str) -> bool:
        try:
            root = find_node(self.target.store, self.target.path, 3)
        except MetadataError:
            return False
        return isinstance(root, GroupMetadata) and self._writer() == plan

    def may_be_finished(self, plan: str) -> bool:
        return holds_node(self.target)  # which held none when the plan was begun

    def finish(self, plan: str, done: Done) -> dict[str, int] | None:
        store, result = self.target.store, None
        if not self.is_finished(plan):
            with store.lock(child(self._level, "zarr.json")):
                if self._writer() != plan or find_node(store, self.target.path) is not None:
                    raise PlanError(f"somebody else has written to {self.target} meanwhile: erase it, and begin again")
                result = self._merge(plan, done)
        store.erase_values(list(store.list_prefix(self._records)))
        return result

    def _merge(self, plan: str, done: Done) -> dict[str, int]:
        """Write the documents and tables of what all jobs have written, that of the root last."""
        store, inner = self.target.store, self.target.path
        cells, objects, count = NodeParts(store, self._level), _ObjectParts(), 0
        cells.add(node for node in self._empty if not _is_of_tables(node.path))
        damaged: dict[int, ZardineError] = {}
        notes = done.found.get(0, {})
        for job in range(len(self.stages[0])):
            found = notes.get(job)
            if found == _NOTHING:
                continue
            try:
                part = self._read_record(job, found)
            except (CorruptionError, MetadataError) as fault:
                damaged[job] = fault
                continue
            cells.add(part.nodes)
            objects.add(part)
            count += part.count
        if damaged:
            Records(self.home, plan).void(done, {0: Ranges.of(damaged)})
            first, error = next(iter(damaged.items()))
            raise CorruptionError(
                f"what {len(damaged)} jobs wrote down for {self.target} is lost or damaged, so that they have to do "
                f"it again: run the plan once more. Job {first}: {error}"
            )
        nodes = [replace(node, encoded=True) for node in cells.nodes()]
        tables: list[Node] = []
        if any(node.path == _IDS for node in self._empty):
            tables = self._tables(objects)
        for node in nodes:
            write_document(store, child(self._level, node.path), node.metadata)
        write_nodes(store, self._level, tables)
        attributes = new_level(0, count, families_in([*nodes, *tables]), fragments_tile=True if count else None)
        write_document(store, self._level, group({**attributes, WRITER: plan}))
        create_ancestors(store, inner)
        write_document(store, inner, group(root_attributes(store, inner, self._new)))
        return {"vertices": count, "objects": objects.count}

    def _tables(self, objects: _ObjectParts) -> list[Node]:
        ids, manifests, rows = objects.joined(joins=not self._is_of_lines, renumber=self.request["renumber"])
        columns = {}
        for name in self.request["object_attributes"]:
            path = f"object_attributes/{name}"
            values = [part[path] for part in objects.columns] or [table_values(self._object_columns[name])[0]]
            joined = np.concatenate(values)[rows]
            is_text = joined.dtype.kind in "TO"
            columns[name] = column_of(name, joined, len(joined), "objects") if is_text else Column(joined)
        layout = self._new.grid.layout
        return list(
            plan_objects(ids, columns, manifests, manifests.nbytes, manifests.present, self._rank, layout, sole=True)
        )

    @cached_property
    def _object_columns(self) -> Columns:
        return empty_columns(self.request["object_attributes"])

    def cancel(self, plan: str) -> None:
        store = self.target.store
        if self._writer() == plan:
            store.erase_prefix(f"{self._level}/")
        store.erase_values(list(store.list_prefix(self._records)))

    def forecast(self) -> Forecast:
        grid = self._new.grid.shape
        objects = 0
        for node in self._empty:
            if node.chunks is not None:
                assert isinstance(node.metadata, ArrayMetadata)
                array = Array(self.target.store, child(self._level, node.path), node.metadata)
                sizes = array.shards or array.chunks
                objects += prod(-(-length // size) for length, size in zip(grid, sizes, strict=True))
        return Forecast(objects, objects + 2 * len(self.stages[0]), 0, 0)

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {
            "places": {"target": self.target.to_json()},
            "source": self.name,
            "arguments": dict(self.arguments),
            "request": dict(self.request),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> CellsWork:
        source, arguments, request = (document[name] for name in ("source", "arguments", "request"))
        if not isinstance(source, str) or not isinstance(arguments, dict) or not isinstance(request, dict):
            raise PlanError("a plan of cells has the name of a function, its arguments, and what the store is to be")
        try:
            for name, any_text in (("attributes", False), ("object_attributes", True)):
                request = {**request, name: types_from_json(request[name], any_text=any_text)}
            work = cls(places.target(), name_of(source), None, arguments, request, source in places.functions)
            work.checked()
        except (DataError, MetadataError) as error:
            raise PlanError(f"a plan of cells whose store cannot be: {error}") from None
        return work

    def checked(self) -> CellsWork:
        """Return the same, if all of it can be. Raises :class:`~zardine.errors.DataError`."""
        asked = self.request
        most = asked["max_vertices"]
        if type(most) is not int or not 1 <= most <= 2**40:
            raise DataError(f"max_vertices is a number from 1 on, not {most!r}")
        flags = all(isinstance(asked[name], bool) for name in ("objects", "renumber"))
        if not flags or asked["outside"] not in ("raise", "ignore") or asked["kind"] not in ("point_cloud", *LINES):
            raise DataError("a plan of cells is of points or lines; objects and renumber are true or false")
        vertices = next(node.metadata for node in self._empty if node.path == "vertices")
        assert isinstance(vertices, ArrayMetadata)
        array = Array(self.target.store, self._level, vertices)
        shape, shards = array.shape, array.shards or array.chunks
        block = asked["job_shape"]
        good = isinstance(block, list) and len(block) == len(shape) and all(type(each) is int for each in block)
        if not good or not all(
            each >= 1 and (each % shard == 0 or each >= length)
            for each, shard, length in zip(block, shards, shape, strict=True)
        ):
            raise DataError(
                f"job_shape {block!r}: the chunks of a job along each axis are whole shards, of {shards} chunks"
            )
        return self


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What one job has written."""

    job: int
    count: int
    """Vertices."""
    nodes: Sequence[Node]
    ids: Ints
    manifests: Sequence[bytes]
    columns: Mapping[str, npt.NDArray[Any]]
    """Of objects, by the paths of their tables."""


class _ObjectParts:
    """The objects of all jobs. Their manifests are in a file; ids and attributes in memory."""

    def __init__(self) -> None:
        self._ids: list[Ints] = []
        self._jobs: list[int] = []
        self._manifests = SpooledBlobs(Spool())
        self._filled: list[npt.NDArray[np.bool_]] = []
        """Which manifests are not empty."""
        self.columns: list[Mapping[str, npt.NDArray[Any]]] = []
        self.count = 0

    def add(self, part: _Part) -> None:
        """Add those of a job."""
        self._ids.append(part.ids)
        self._jobs.append(part.job)
        self._manifests.extend(part.manifests)
        self._filled.append(np.fromiter((any(each[:4]) for each in part.manifests), np.bool_, len(part.manifests)))
        self.columns.append(part.columns)

    def joined(self, *, joins: bool, renumber: bool) -> tuple[Ints, _Manifests, Ints]:
        """Return ids, ascending, their manifests, and the row of each among all that were added.

        ``joins``: whether an object may be of several jobs; else that is a :class:`~zardine.errors.DataError`.
        """
        ids = np.concatenate([np.zeros(0, np.int64), *self._ids])
        if renumber:
            ids = np.arange(len(ids))
        order = np.argsort(ids, kind="stable")
        first = np.flatnonzero(np.diff(ids[order], prepend=ids[order][:1] - 1)) if len(ids) else order
        if not joins and len(first) < len(ids):
            twice = int(ids[order][np.setdiff1d(np.arange(len(ids)), first)[0]])
            ends = np.cumsum([len(each) for each in self._ids])
            two = np.searchsorted(ends, np.flatnonzero(ids == twice)[:2], side="right")
            jobs = " and ".join(str(self._jobs[each]) for each in two.tolist())
            raise DataError(
                f"object {twice} was given by the jobs {jobs}: each line is of one job, with an id of its own "
                "(renumber=True gives new ones)"
            )
        self.count = len(first)
        filled = np.concatenate([np.zeros(0, np.bool_), *self._filled])[order]
        present = int(np.logical_or.reduceat(filled, first).sum()) if len(first) else 0
        manifests = _Manifests(self._manifests, order, np.append(first, len(ids)), present)
        return ids[order][first], manifests, order[first]


class _Manifests(Sequence[bytes]):
    """Manifests of objects, each joined of those that jobs gave it."""

    def __init__(self, blobs: SpooledBlobs, order: Ints, starts: Ints, present: int) -> None:
        self._blobs, self._order, self._starts = blobs, order, starts
        self.present = present
        """How many are not empty."""
        self.nbytes = blobs.nbytes
        """Bytes of all, at most."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            chosen = range(*index.indices(len(self)))
            wanted = self._order[self._starts[chosen.start] : self._starts[chosen.stop]] if chosen else self._order[:0]
            if len(chosen) == len(wanted) and (np.diff(wanted) == 1).all() and len(wanted):
                return self._blobs[int(wanted[0]) : int(wanted[-1]) + 1]
            return [self[each] for each in chosen]
        parts = [self._blobs[each] for each in self._order[self._starts[index] : self._starts[index + 1]].tolist()]
        if len(parts) == 1:
            return bytes(parts[0])
        blocks = sum(int.from_bytes(part[:4], "little") for part in parts)
        return blocks.to_bytes(4, "little") + b"".join(part[4:] for part in parts)


def name_of(source: CellSource | str) -> str:
    """Return a function as ``module:name``. Raises :class:`~zardine.errors.DataError` for one that no process finds."""
    name = source if isinstance(source, str) else f"{getattr(source, '__module__', '')}:{_qualified(source)}"
    module, _, function = name.partition(":")
    if not module or not all(each.isidentifier() for each in (*module.split("."), *function.split("."))):
        raise DataError(
            f"{source!r} is no function that other processes can import: give one at the top of a module, or its "
            "name as 'module:function'"
        )
    return name


def _qualified(source: Any) -> str:
    return str(getattr(source, "__qualname__", ""))


def imported(name: str) -> CellSource:
    """Return the function of a name. Raises :class:`~zardine.errors.PlanError` where it cannot be imported."""
    module, _, function = name.partition(":")
    try:
        found: Any = import_module(module)
        for each in function.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError) as error:
        raise PlanError(f"the function {name} of the plan cannot be imported here: {error}") from error
    if not callable(found):
        raise PlanError(f"{name}, which the plan names, is no function")
    return found  # type: ignore[no-any-return]


def _is_of_tables(path: str) -> bool:
    return path.split("/")[0] in ("object_index", "object_attributes")


__all__ = ["CellSource", "CellsWork", "name_of"]
