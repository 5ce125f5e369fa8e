"""A level of skeletons or meshes as a folder: a file for each object, some objects at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from zardine.buffers import Ints
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.level_parts import LevelParts
from zardine.vectors.exchange.losses import check_rank, check_store, warn_names
from zardine.vectors.exchange.meshes_out import KEPT, MeshWriter
from zardine.vectors.exchange.swc import check_swc
from zardine.vectors.exchange.targets import writing_folder
from zardine.vectors.inspecting import ObjectTable, read_objects
from zardine.vectors.outside import warn
from zardine.vectors.results import Mesh, Skeleton
from zardine.vectors.selecting import Selection
from zardine.vectors.swc import write_swc

_NAME: Final = "name"
"""The attribute of objects that files are called by."""
_FRAGMENTS: Final = 4096
"""Of objects that are read together, about."""
_LONGEST: Final = 200
"""Bytes of the name of a file."""


def objects_out(path: StoreLike, folder: Path, level: int, step: Step, ending: str) -> None:
    """Write each object to a file of ``folder``, called by its attribute ``name``, or by its id.

    In memory are the objects of some thousand fragments. What the format of ``ending`` cannot hold is told of all.
    """
    kind = "skeleton" if ending == ".swc" else "mesh"
    check_store(path, folder, level, (kind,), (*KEPT.get(ending, ("vertex_attributes",)), "object_attributes"))
    parts: Any = LevelParts[Any](path, level, lambda share: step(share / 2), ways=1)
    check_rank(parts.rank, folder)
    objects = read_objects(path, level=level)
    there = np.flatnonzero(objects.fragment_counts > 0)
    if len(there) < len(objects.ids):
        warn(folder, f"{len(objects.ids) - len(there)} objects without vertices are left out")
    names = _names(objects, there, folder)
    write, crossing = _writer(parts, folder, ending)
    if crossing:
        warn(folder, f"what leads from one object to another, {crossing} times, cannot be kept")
    done = 0
    with writing_folder(folder) as place:
        for some in _together(objects, there):
            read = Selection(path, kind, level=level, object_ids=objects.ids[there[some]].tolist()).read()
            assert isinstance(read, Skeleton | Mesh)
            parts.check()
            for number, each in zip(some.tolist(), _each(read, objects.ids[there[some]]), strict=True):
                write(place / f"{names[number]}{ending}", each)
            done += len(some)
            step(0.5 + done / len(there) / 2)


def _writer(parts: Any, folder: Path, ending: str) -> tuple[Callable[[Path, Any], None], int]:
    """Go through the level, and warn of what the format does not hold; gives what writes a file, and lost links."""
    crossing = 0

    def looked() -> Iterator[Any]:
        nonlocal crossing
        for part in parts:
            links: Ints = part.edges if isinstance(part, Skeleton) else part.faces
            if part.object_ids is not None and len(links):
                owners = part.object_ids[links]
                crossing += int((owners != owners[:, :1]).any(axis=1).sum())
            yield part

    if ending == ".swc":
        check_swc(looked(), folder)
        return lambda file, found: write_swc(file, found.positions, found.parents, found.attributes), crossing
    writer = MeshWriter(looked(), folder, ending, of_objects=True)
    return writer.write_one, crossing


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


__all__ = ["objects_out"]
