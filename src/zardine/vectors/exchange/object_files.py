"""A level of skeletons or meshes as a folder: a file for each object, called by its attribute ``name`` or its id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from zardine.buffers import Ints
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.level_parts import in_columns
from zardine.vectors.exchange.losses import check_rank, check_store, columns_in_order
from zardine.vectors.exchange.meshes_out import KEPT, MeshWriter
from zardine.vectors.exchange.swc import check_swc
from zardine.vectors.inspecting import ObjectTable, read_objects
from zardine.vectors.outside import keeping, warn, warn_names
from zardine.vectors.results import Mesh, Skeleton
from zardine.vectors.selecting import Selection
from zardine.vectors.storing.store import VectorStore
from zardine.vectors.swc import write_swc

_NAME: Final = "name"
"""The attribute of objects that files are called by."""
_FRAGMENTS: Final = 4096
"""Of objects that are read together, about."""
_LONGEST: Final = 200
"""Bytes of the name of a file."""


class ObjectFiles:
    """The objects of a level that have vertices, and what their files are called."""

    def __init__(self, path: StoreLike, level: int, folder: Path, ending: str) -> None:
        self._path, self._level, self._folder, self._ending = path, level, folder, ending
        self._kind = "skeleton" if ending == ".swc" else "mesh"
        self._objects = read_objects(path, level=level)
        self._there = np.flatnonzero(self._objects.fragment_counts > 0)

    def look(self, parts: Any) -> dict[str, Any]:
        """Go through the level, and warn of what the format does not hold of it; gives what it does, as JSON."""
        kept = KEPT.get(self._ending, ("vertex_attributes",))
        check_store(self._path, self._folder, self._level, (self._kind,), (*kept, "object_attributes"))
        check_rank(parts.rank, self._folder)
        left_out = len(self._objects.ids) - len(self._there)
        if left_out:
            warn(self._folder, f"{left_out} objects without vertices are left out")
        _names(self._objects, self._there, self._folder)
        crossing = 0

        def looked() -> Iterator[Any]:
            nonlocal crossing
            for part in parts:
                links: Ints = part.edges if isinstance(part, Skeleton) else part.faces
                if part.object_ids is not None and len(links):
                    owners = part.object_ids[links]
                    crossing += int((owners != owners[:, :1]).any(axis=1).sum())
                yield part

        writer = MeshWriter(self._ending)
        if self._kind == "skeleton":
            check_swc(looked(), self._folder)
        else:
            writer = MeshWriter.seen(looked(), self._folder, self._ending, of_objects=True)
        if crossing:
            warn(self._folder, f"what leads from one object to another, {crossing} times, cannot be kept")
        return {"writer": writer.to_json(), "files": len(self._there)}

    @cached_property
    def _named(self) -> dict[int, str]:
        """The names of files by the ids of objects."""
        with keeping():  # it was told before
            names = _names(self._objects, self._there, self._folder)
        return dict(zip(self._objects.ids[self._there].tolist(), names, strict=True))

    def names(self, ids: Iterable[int]) -> list[str]:
        """Return what the files of objects are called; of those without vertices there are none."""
        return [f"{self._named[each]}{self._ending}" for each in ids if each in self._named]

    def write(self, place: Path, ids: Collection[int], layout: Mapping[str, Any], step: Step) -> int:
        """Write the files of some objects into a folder; gives how many there are.

        In memory are the objects of some thousand fragments.
        """
        writer, done = MeshWriter.from_json(layout["writer"]), 0
        order = columns_in_order(VectorStore.open(self._path).root.axes)
        chosen = np.isin(self._objects.ids[self._there], np.array(list(ids), np.int64))
        there = self._there[chosen]
        for some in _together(self._objects, there):
            own = self._objects.ids[there[some]]
            read = in_columns(
                Selection(self._path, self._kind, level=self._level, object_ids=own.tolist()).read(), order
            )
            assert isinstance(read, Skeleton | Mesh)
            for name, each in zip(self.names(own.tolist()), _each(read, own), strict=True):
                if isinstance(each, Skeleton):
                    write_swc(place / name, each.positions, each.parents, each.attributes)
                else:
                    writer.write_one(place / name, each)
            done += len(some)
            step(done / len(there))
        return done


def _names(objects: ObjectTable, there: Ints, folder: Path) -> list[str]:
    """What the files are called, without their ending; warns where that does not say all that is known of objects."""
    ids, given = objects.ids[there], objects.attributes.get(_NAME)
    names = [] if given is None or given.ndim != 1 else [str(each) for each in given[there].tolist()]
    usable = len({each.casefold() for each in names}) == len(there) and all(map(_is_name, names))
    others = [name for name in objects.attributes if name != _NAME]
    warn_names(others, folder, "of objects the names are kept")
    if not usable:
        if given is not None:
            warn(folder, "files are called by the ids of objects: their names are not such of files, each another one")
        return [str(each) for each in ids.tolist()]
    if names != [str(each) for each in ids.tolist()] and not np.array_equal(ids, np.arange(len(ids))):
        warn(folder, "the ids of objects cannot be kept: files are called by their names")
    return names


def _is_name(text: str) -> bool:
    """Whether a file can be called so anywhere."""
    plain = text.isprintable() and not set('/\\:*?"<>|') & set(text)
    return plain and 0 < len(text.encode()) <= _LONGEST and text[0] not in ". " and text[-1] not in ". "


def _together(objects: ObjectTable, there: Ints) -> Iterator[Ints]:
    """Numbers of objects that are read together."""
    behind = np.cumsum(objects.fragment_counts[there])
    first = 0
    while first < len(there):
        before = int(behind[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(behind, before + _FRAGMENTS, side="right")))
        yield np.arange(first, last)
        first = last


def _each(read: Skeleton | Mesh, ids: Ints) -> Iterator[Skeleton | Mesh]:
    """The objects of ``ids``, in that order, each with its own vertices and links."""
    assert read.object_ids is not None
    order = np.argsort(read.object_ids, kind="stable")
    owners = read.object_ids[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    faces = place[read.faces] if isinstance(read, Mesh) else np.zeros((0, 3), np.int64)
    by_owner = np.argsort(faces[:, 0], kind="stable")
    for start, stop in zip(np.searchsorted(owners, ids, "left"), np.searchsorted(owners, ids, "right"), strict=True):
        rows = order[start:stop]
        values = {name: each[rows] for name, each in read.attributes.items()}
        if isinstance(read, Skeleton):
            parents = read.parents[rows]
            parents = np.where(parents >= 0, place[parents], -1)
            inside = (parents >= start) & (parents < stop)
            yield Skeleton(read.positions[rows], np.where(inside, parents - start, -1), values)
            continue
        mine = np.sort(by_owner[slice(*np.searchsorted(faces[by_owner, 0], [start, stop]))])
        mine = mine[((faces[mine] >= start) & (faces[mine] < stop)).all(axis=1)]
        of_faces = {name: each[mine] for name, each in read.face_attributes.items()}
        yield Mesh(read.positions[rows], faces[mine] - start, values, of_faces)


__all__ = ["ObjectFiles"]
