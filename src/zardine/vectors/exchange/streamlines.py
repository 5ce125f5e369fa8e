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
from zardine.vectors.polylines import read_polylines, write_polylines


def streamlines_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Values of points and of streamlines become attributes of vertices and of objects."""
    nibabel: Any = import_module("nibabel.streamlines")
    with reading(source):
        tracts = nibabel.load(str(source)).tractogram
        lines = [np.asarray(line) for line in tracts.streamlines]
    vertex = {name: _flat(np.concatenate(list(values))) for name, values in tracts.data_per_point.items()}
    whole = {name: _flat(np.asarray(values)) for name, values in tracts.data_per_streamline.items()}
    given = {"vertex_attributes": storable(vertex, source), "object_attributes": storable(whole, source), **options}
    write_polylines(path, lines, **given)


def streamlines_out(path: StoreLike, target: Path, level: int) -> None:
    """Both formats hold float32; of attributes TRK keeps numbers, TCK none."""
    nibabel: Any = import_module("nibabel.streamlines")
    plain = target.suffix.lower() == ".tck"
    check_store(path, target, level, LINES, () if plain else ("vertex_attributes", "object_attributes"))
    found = read_polylines(path, level=level)
    check_space(found.positions, target)
    warn_rounded(found.positions, target)
    tracts = nibabel.Tractogram(found.lines, affine_to_rasmm=np.eye(4))
    objects = with_ids({} if plain else found.object_attributes, found.object_ids, target)
    if plain:
        warn_names(objects, target, "the format has no place for them")
    else:
        for name, values in _short(objects, target).items():
            tracts.data_per_streamline[name] = values.reshape(len(found), -1)
        for name, values in _short(found.attributes, target).items():
            tracts.data_per_point[name] = np.split(values.reshape(len(values), -1), found.starts[1:-1])
    try:
        nibabel.save(tracts, str(target))
    except ValueError as error:
        target.unlink(missing_ok=True)
        raise DataError(f"{target}: {error}") from error


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
