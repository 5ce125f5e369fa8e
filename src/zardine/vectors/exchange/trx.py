"""TRX, files of streamlines, through trx-python."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.losses import (
    LINES,
    check_space,
    check_store,
    numbers,
    reading,
    storable,
    warn_names,
    with_ids,
    writing,
)
from zardine.vectors.exchange.streamlines import as_space
from zardine.vectors.format.ragged import ranges
from zardine.vectors.inspecting import read_groups
from zardine.vectors.outside import needing, warn
from zardine.vectors.polylines import read_polylines, write_polylines
from zardine.vectors.storing.store import VectorStore

_NAME = "name"
"""The attribute of groups that says what they are called."""


def trx_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Values of vertices and of streamlines become attributes, groups of streamlines groups with a ``name``.

    The image becomes ``crs``, as that of TRK files. Positions of 16 bits are stored as float32. Raises
    :class:`DataError` for a file whose parts do not fit together, and for one without vertices unless ``options`` have
    ``bounds``.
    """
    with needing(source):
        files: Any = import_module("trx.trx_file_memmap")
    with reading(source):
        loaded = files.load(str(source))
        try:
            told = {name: np.array(loaded.header[name]) for name in ("VOXEL_TO_RASMM", "DIMENSIONS")}
            lines = loaded.streamlines
            positions, starts = np.array(lines._data), np.array(lines._offsets, np.int64)
            lengths = np.array(lines._lengths, np.int64)
            vertex = {name: np.array(each._data) for name, each in loaded.data_per_vertex.items()}
            whole = {name: np.array(each) for name, each in loaded.data_per_streamline.items()}
            groups = {name: np.array(each).reshape(-1) for name, each in loaded.groups.items()}
            of_groups = {
                name: {key: np.array(each).reshape(-1) for key, each in table.items()}
                for name, table in loaded.data_per_group.items()
            }
        finally:
            loaded.close()
    count = len(starts)
    fits = len(lengths) == count and (lengths >= 0).all() and (starts >= 0).all()
    if not fits or positions.ndim != 2 or (count and int((starts + lengths).max()) > len(positions)):
        raise DataError(f"{source}: streamlines name vertices that are not there: {len(positions)} are")
    for name, values in (*vertex.items(), *whole.items()):
        if len(values) != (count if name in whole else len(positions)):
            raise DataError(f"{source}: {len(values)} values of {name!r} do not fit {count} streamlines")
    chosen = np.flatnonzero(lengths > 0)
    if not len(chosen) and options.get("bounds") is None:
        raise DataError(f"{source} holds no vertices: give bounds=(lowest, highest corner) for an empty store")
    if len(chosen) < count:
        warn(source, f"{count - len(chosen)} lines without vertices are left out")
    rows = ranges(starts[chosen], lengths[chosen])
    if positions.dtype not in (np.float32, np.float64):
        positions = positions.astype(np.float32)
    given: dict[str, Any] = {
        "vertex_attributes": storable({name: _flat(values[rows]) for name, values in vertex.items()}, source),
        "object_attributes": storable({name: _flat(values[chosen]) for name, values in whole.items()}, source),
        "object_ids": chosen,
    }
    if groups:
        given |= _groups_in(groups, of_groups, chosen, count, source)
    if "crs" not in options:
        given["crs"] = _space_in(told)
    cuts = np.cumsum(lengths[chosen])[:-1]
    write_polylines(path, np.split(positions[rows], cuts) if len(chosen) else [], **{**given, **options})


def trx_out(path: StoreLike, target: Path, level: int) -> None:
    """Attributes of numbers are kept, and groups, called as their ``name`` says. Empty lines are left out."""
    with needing(target):
        files: Any = import_module("trx.trx_file_memmap")
        sequences: Any = import_module("nibabel.streamlines.array_sequence")
    check_store(path, target, level, LINES, ("vertex_attributes", "object_attributes", "group_attributes"), groups=True)
    found = read_polylines(path, level=level)
    groups = read_groups(path, level=level)
    check_space(found.positions, target)
    lengths = np.diff(found.starts)
    chosen = np.flatnonzero(lengths > 0)
    if len(chosen) < len(found):
        warn(target, f"{len(found) - len(chosen)} lines without vertices are left out")
    whole = {name: each[chosen] for name, each in found.object_attributes.items()}
    whole = _named(with_ids(whole, found.object_ids[chosen], target), target)
    vertex = _named(found.attributes, target)
    names = _names_of_groups(groups.attributes, len(groups.members), target)
    order = np.argsort(found.object_ids[chosen])
    ids = found.object_ids[chosen][order]
    members = {
        name: order[np.searchsorted(ids, each[np.isin(each, ids)])].astype(np.uint32)
        for name, each in zip(names, groups.members, strict=True)
    }
    offsets = found.starts[chosen].astype(np.uint64)
    trx = files.TrxFile(nb_vertices=len(found.positions), nb_streamlines=len(chosen))
    try:
        trx.streamlines = _sequence(sequences, found.positions, offsets, lengths[chosen])
        trx.data_per_vertex = {
            name: _sequence(sequences, each, offsets, lengths[chosen]) for name, each in vertex.items()
        }
        trx.data_per_streamline = {name: each.reshape(len(chosen), -1) for name, each in whole.items()}
        trx.groups = members
        space = _space_out(path, target)
        if space is not None:
            trx.header["VOXEL_TO_RASMM"] = np.asarray(space["voxel_to_rasmm"], np.float32)
            trx.header["DIMENSIONS"] = np.asarray(space["dimensions"], np.uint16)
        with writing(target):
            files.save(trx, str(target))
    finally:
        trx.close()


def _sequence(sequences: Any, data: npt.NDArray[Any], offsets: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Any:
    found = sequences.ArraySequence()
    found._data = data if data.ndim == 2 else data.reshape(len(data), -1)
    found._offsets, found._lengths = offsets, lengths.astype(np.uint32)
    return found


def _groups_in(groups: Mapping[str, Any], of_groups: Mapping[str, Any], chosen: Any, count: int, source: Path) -> Any:
    """Groups and their attributes, as far as all groups have them."""
    for name, rows in groups.items():
        if len(rows) and int(rows.max()) >= count:
            raise DataError(f"{source}: the group {name!r} names streamline {int(rows.max())}; there are {count}")
    members = [np.intersect1d(rows.astype(np.int64), chosen) for rows in groups.values()]
    attributes: dict[str, Any] = {_NAME: list(groups)}
    for key in dict.fromkeys(key for table in of_groups.values() for key in table):
        values = [of_groups.get(name, {}).get(key) for name in groups]
        if key == _NAME or any(each is None or len(each) != len(values[0]) for each in values):
            warn(source, f"the values {key!r} of groups are left out: not all groups have them")
        else:
            attributes[key] = _flat(np.stack(values))
    return {"groups": members, "group_attributes": attributes}


def _names_of_groups(attributes: Mapping[str, Any], count: int, target: Path) -> list[str]:
    given = attributes.get(_NAME)
    others = [name for name in attributes if name != _NAME]
    warn_names(others, target, "of groups the names are kept")
    names = [] if given is None or given.ndim != 1 else [str(each) for each in given.tolist()]
    usable = len(set(names)) == count and all(each and not set("./\\\0") & set(each) for each in names)
    if count and not usable:
        warn(target, "groups are called group_0, group_1, ...: they have no attribute 'name', each another plain name")
    return names if usable else [f"group_{number}" for number in range(count)]


def _named(columns: Mapping[str, Any], target: Path) -> dict[str, Any]:
    """Columns of numbers whose names can be those of files."""
    found = numbers(columns, target)
    wrong = [name for name in found if set("./\\") & set(name)]
    warn_names(wrong, target, "names have no dots, which separate them from their types")
    truths = [name for name, each in found.items() if each.dtype.kind == "b"]
    if truths:
        warn(target, f"truth values are written as numbers, 0 and 1: {', '.join(truths)}")
    kept = {name: each for name, each in found.items() if name not in wrong}
    return {name: each.astype(np.uint8) if name in truths else each for name, each in kept.items()}


def _space_in(told: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any] | None:
    """What a file says of its image, as a table ``trk``; ``None`` where it says nothing."""
    affine, dimensions = told["VOXEL_TO_RASMM"].astype(np.float64), told["DIMENSIONS"]
    if affine.shape != (4, 4) or (np.array_equal(affine, np.eye(4)) and (dimensions == 1).all()):
        return None
    nibabel: Any = import_module("nibabel")
    order = [each or "?" for each in nibabel.aff2axcodes(affine)]
    table = {
        "voxel_to_rasmm": affine.tolist(),
        "dimensions": dimensions.tolist(),
        "voxel_sizes": nibabel.affines.voxel_sizes(affine).tolist(),
        "voxel_order": "".join(order),
    }
    return {"trk": table} if as_space(table) is not None else None


def _space_out(path: StoreLike, target: Path) -> dict[str, Any] | None:
    stored = VectorStore.open(path).root.block.get("crs")
    if not stored:
        return None
    space = as_space(stored.get("trk")) if isinstance(stored, Mapping) else None
    if space is None:
        warn(target, "the store's reference system cannot be kept: it has no usable 'trk' table")
    return space


def _flat(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


__all__ = ["trx_in", "trx_out"]
