"""TRK and TCK, files of streamlines, through nibabel."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

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
    warn_rounded,
    with_ids,
)
from zardine.vectors.outside import needing, warn
from zardine.vectors.polylines import read_polylines, write_polylines
from zardine.vectors.results import Polylines
from zardine.vectors.storing.store import VectorStore

_SPACE = ("voxel_to_rasmm", "dimensions", "voxel_sizes", "voxel_order")
_AXES = ("LR", "AP", "IS")


def streamlines_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Values of points and of streamlines become attributes of vertices and of objects.

    The image that a TRK file belongs to becomes ``crs``: a table ``trk`` of ``voxel_to_rasmm``, ``dimensions``,
    ``voxel_sizes`` and ``voxel_order``. Raises :class:`DataError` for a TRK file that ends before the last streamline
    of its header, and for a file without vertices unless ``options`` have ``bounds``.
    """
    with needing(source):
        nibabel: Any = import_module("nibabel.streamlines")
    with reading(source):
        told = _told(nibabel.load(str(source), lazy_load=True).header)
        loaded = nibabel.load(str(source))
        tracts = loaded.tractogram
        lines = [np.asarray(line) for line in tracts.streamlines]
        there = int(loaded.header.get("nb_streamlines", len(lines)))
        if told and told != there:
            raise DataError(
                f"{source} is cut short: its header tells of {told} streamlines, and {there} are there; "
                "get the whole file"
            )
        vertex = {name: _flat(np.concatenate(list(values))) for name, values in tracts.data_per_point.items() if lines}
        whole = {name: _flat(np.asarray(values)) for name, values in tracts.data_per_streamline.items() if lines}
    if not lines and options.get("bounds") is None:
        raise DataError(f"{source} holds no vertices: give bounds=(lowest, highest corner) for an empty store")
    if there > len(lines):
        warn(source, f"{there - len(lines)} lines without vertices are left out")
    crs = {} if "crs" in options else {"crs": _space_in(loaded.header, source)}
    columns = {"vertex_attributes": storable(vertex, source), "object_attributes": storable(whole, source)}
    write_polylines(path, lines, **{**columns, **crs, **options})


def streamlines_out(path: StoreLike, target: Path, level: int) -> None:
    """Both formats hold float32; of attributes TRK keeps numbers, TCK none. Lines without vertices are left out.

    Raises :class:`DataError` for positions beyond float32.
    """
    with needing(target):
        nibabel: Any = import_module("nibabel.streamlines")
    plain = target.suffix.lower() == ".tck"
    check_store(path, target, level, LINES, () if plain else ("vertex_attributes", "object_attributes"))
    found = read_polylines(path, level=level)
    check_space(found.positions, target)
    header = _space_out(path, target, plain)
    _check_range(found.positions, header, target)
    warn_rounded(found.positions, target)
    chosen = np.flatnonzero(np.diff(found.starts) > 0)
    if len(chosen) < len(found):
        warn(target, f"{len(found) - len(chosen)} lines without vertices are left out")
    tracts = nibabel.Tractogram([found[number] for number in chosen.tolist()], affine_to_rasmm=np.eye(4))
    _give_columns(tracts, found, chosen, target, plain)
    try:
        nibabel.save(tracts, str(target), header=header)
    except ValueError as error:
        target.unlink(missing_ok=True)
        raise DataError(f"{target}: {error}") from error


def _told(header: Mapping[str, Any]) -> int:
    """How many streamlines a TRK header tells of; 0 where it does not. TCK files have a mark at their end instead."""
    return int(header.get("nb_streamlines", 0))


def _give_columns(tracts: Any, found: Polylines, chosen: Any, target: Path, plain: bool) -> None:
    """The attributes of the vertices and of the ``chosen`` lines, as far as the format has them."""
    columns = {} if plain else {name: values[chosen] for name, values in found.object_attributes.items()}
    objects = with_ids(columns, None if found.object_ids is None else found.object_ids[chosen], target)
    if plain:
        warn_names(objects, target, "the format has no place for them")
    elif len(chosen):
        for name, values in _short(objects, target).items():
            tracts.data_per_streamline[name] = values.reshape(len(chosen), -1)
        for name, values in _short(found.attributes, target).items():
            tracts.data_per_point[name] = np.split(values.reshape(len(values), -1), found.starts[chosen][1:])


def _check_range(positions: Any, header: Mapping[str, Any] | None, target: Path) -> None:
    """Raise :class:`DataError` for positions that float32 does not hold, there or in the space of the file."""
    moved = positions.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if header is not None:
            affine = _to_trackvis(header)
            moved = moved @ affine[:3, :3].T + affine[:3, 3]
        beyond = ~(np.isfinite(positions.astype(np.float32)) & np.isfinite(moved.astype(np.float32))).all(axis=1)
    if beyond.any():
        raise DataError(
            f"{target}: {int(beyond.sum())} positions are beyond float32 (3.4e38), which is all that this format has; "
            "use other units"
        )


def _to_trackvis(header: Mapping[str, Any]) -> Any:
    """The map of positions to the space that TRK files have them in. Raises what NumPy and nibabel raise."""
    trk: Any = import_module("nibabel.streamlines.trk")
    return np.asarray(trk.get_affine_rasmm_to_trackvis(header), np.float64)


def _space_in(header: Mapping[str, Any], source: Path) -> dict[str, Any] | None:
    """What a TRK header says of the image, as the store has it; ``None`` for TCK, and where it says nothing."""
    if not set(_SPACE) <= set(header):
        return None
    told = {name: np.asarray(header[name]).tolist() for name in _SPACE[:3]}
    order = header["voxel_order"]
    told["voxel_order"] = bytes(order).decode("latin-1").upper() if not isinstance(order, str) else order
    space = as_space(told)
    if space is None:
        warn(source, "the space of the image (voxel_to_rasmm, dimensions, voxel sizes, order) is left out: it is none")
        return None
    trk: Any = import_module("nibabel.streamlines.trk")
    empty = trk.TrkFile.create_empty_header()
    usual = all(np.array_equal(space[name], empty[name]) for name in _SPACE)
    return None if usual else {"trk": told}


def _space_out(path: StoreLike, target: Path, plain: bool) -> dict[str, Any] | None:
    """The fields of a TRK header from the store's ``crs``; ``None``, with a warning, where something else is there."""
    stored = VectorStore.open(path).root.block.get("crs")
    if not stored:
        return None
    space = None if plain or not isinstance(stored, Mapping) else as_space(stored.get("trk"))
    if space is None:
        why = "the format has no place for it" if plain else f"it has no usable 'trk' table of {', '.join(_SPACE)}"
        warn(target, f"the store's reference system cannot be kept: {why}")
    return space


def as_space(told: Any) -> dict[str, Any] | None:
    """Stored values as fields of a TRK header, if they are such."""
    if not isinstance(told, Mapping) or not isinstance(told.get("voxel_order"), str):
        return None
    try:
        affine, sizes = (np.array(told[name], np.float64) for name in ("voxel_to_rasmm", "voxel_sizes"))
        counts = np.array(told["dimensions"], np.float64)
        if (affine.shape, sizes.shape, counts.shape) != ((4, 4), (3,), (3,)):
            return None
        order = told["voxel_order"].upper()
        axes = {pair for letter in order for pair in _AXES if letter in pair}
        whole = np.array_equal(counts, np.round(counts)) and counts.min() >= 0 and counts.max() < 2**15
        if len(order) != 3 or axes != set(_AXES) or not whole or not (sizes > 0).all():
            return None
        if not np.array_equal(affine[3], (0, 0, 0, 1)):
            return None
        with np.errstate(all="ignore"):
            header = {
                "voxel_to_rasmm": affine.astype(np.float32),
                "dimensions": counts.astype(np.int16),
                "voxel_sizes": sizes.astype(np.float32),
                "voxel_order": order.encode("ascii"),
            }
            fit = np.isfinite(_to_trackvis(header)).all() and np.isfinite(np.linalg.inv(_to_trackvis(header))).all()
    except (KeyError, TypeError, ValueError, OverflowError, np.linalg.LinAlgError):
        return None
    return header if fit else None


def _flat(values: Any) -> Any:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _short(columns: Mapping[str, Any], target: Path) -> dict[str, Any]:
    """Those that TRK holds: float32, names of up to 20 bytes (18 for several values), ten of them."""
    found = numbers(columns, target)
    named = {
        name for name, values in found.items() if len(name.encode("latin-1", "replace")) > 20 - 2 * (values.ndim > 1)
    }
    named |= {name for name in found if not name.isascii()}
    warn_names(sorted(named), target, "names have up to 20 letters without accents, 18 where there are several values")
    with np.errstate(over="ignore"):
        wide = {name for name in set(found) - named if not _fits(found[name])}
    warn_names(sorted(wide), target, "float32, which is all that the format has, does not hold the values")
    left = [name for name in found if name not in named and name not in wide]
    warn_names(left[10:], target, "the format has ten at most")
    return {name: found[name].astype(np.float32) for name in left[:10]}


def _fits(values: Any) -> bool:
    """Whether float32 holds integers exactly, and other numbers at all."""
    cast = values.astype(np.float32)
    if values.dtype.kind == "f":
        return not bool((np.isinf(cast) & ~np.isinf(values)).any())
    return bool(
        np.array_equal(cast.astype(np.float64), values.astype(np.float64)) and np.abs(cast).max(initial=0) < 2**53
    )
