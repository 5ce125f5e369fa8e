"""What a format of another program cannot hold: errors and warnings that name it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EINVAL
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, ZardineError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.columns import check_name
from zardine.vectors.format.documents import ROOT
from zardine.vectors.format.layouts import SHARDED_NOTE
from zardine.vectors.outside import needing, warn, without_steps
from zardine.vectors.storing.store import VectorStore

LINES = ("line", "polyline", "streamline")
_TAKEN_BY = {
    "point_cloud": "csv, feather, las, laz, ply, geojson, gpkg, shp, parquet, precomputed",
    **dict.fromkeys(LINES, "trk, tck, trx, geojson, gpkg, shp, parquet, geff, precomputed"),
    "graph": "geff, precomputed",
    "skeleton": "swc, geff, precomputed",
    "mesh": "ply, obj, stl, precomputed",
}
"""Which formats have a geometry."""
_USUAL: Final = ("x", "y", "z")
"""What axes are in formats that do not name them."""
_FAMILIES = ("vertex_attributes", "fragment_attributes", "link_attributes", "object_attributes", "group_attributes")


@contextmanager
def reading(source: Path | str) -> Iterator[None]:
    """Let what a library says of a file that it cannot read become a :class:`DataError`."""
    with needing(source):
        try:
            yield
        except BaseException as error:
            if not _is_of_content(error):
                raise
            raise DataError(f"{source} cannot be read: {error}") from error


def _is_of_content(error: BaseException) -> bool:
    """Whether an error tells of what is in a file, not of the machine, a missing package, or by whom it was stopped."""
    if isinstance(error, OSError):
        return error.errno in (None, EINVAL)  # of a library, or of a place before the beginning
    if not isinstance(error, Exception):
        return type(error).__name__ == "PanicException"  # of a library in Rust
    return not isinstance(error, (ZardineError, ImportError, MemoryError))


def check_store(
    path: StoreLike,
    target: Path | str,
    level: int,
    kinds: Collection[str],
    kept: Collection[str],
    *,
    groups: bool = False,
    crs: bool = False,
    axes: bool = False,
) -> str:
    """The geometry of the store, if it is one of ``kinds``; ``kept`` are the families of attributes that are kept.

    Warns of others, and of groups unless ``groups`` are kept; of the reference system and of axes unless ``crs`` and
    ``axes`` say that these are kept, or told of elsewhere. Raises :class:`DataError` for other geometries.
    """
    owner = VectorStore.open(path)
    kind = (owner.root.geometry_types or ("point_cloud",))[0]
    if kind not in kinds:
        raise DataError(
            f"{target}: {owner.name} holds a {kind}; this format is for {', '.join(kinds)}. "
            f"A {kind} can be exported to {_TAKEN_BY.get(kind, 'none')}"
        )
    opened = owner.level(level)
    for family in _FAMILIES:
        names = [] if family in kept else opened.names(family)
        if names:
            warn(target, f"{family.replace('_', ' ')} cannot be kept: {', '.join(names)}")
    if not groups and opened.table("groups") is not None:
        warn(target, "groups cannot be kept")
    if not crs and without_steps(owner.root.block.get("crs")):
        warn_crs(target, "the format has no place for it")
    if not axes:
        warn_axes(owner.root.axes, target)
    warn_root(owner, target)
    return kind


def warn_root(store: VectorStore, target: Path | str) -> None:
    """Warn of what the root says beside what zardine and Zarr Vectors say there."""
    own = (ROOT, "multiscales", "ome")
    told = {name: each for name, each in store.root.attributes.items() if name not in own}
    names = [name for name, each in told.items() if name[:8] != "zardine_" and each != SHARDED_NOTE]
    if names:
        warn(target, f"attributes of the store cannot be kept: {', '.join(map(repr, names))}")


def warn_crs(target: Path | str, why: str) -> None:
    """Warn of the reference system of a store."""
    warn(target, f"the store's reference system cannot be kept: {why}")


def columns_in_order(axes: Sequence[Mapping[str, Any]]) -> list[int] | None:
    """Return which columns are x, y and z, where axes are called so in another order; else ``None``."""
    names = [str(axis.get("name")).lower() for axis in axes]
    usual = list(_USUAL[: len(names)])
    return None if names == usual or sorted(names) != usual else [names.index(each) for each in usual]


def warn_axes(axes: Sequence[Mapping[str, Any]], target: Path | str, *, units: bool = False) -> None:
    """Warn of what a format does not say of axes, which are x, y and z there; ``units`` are kept, or told elsewhere."""
    if len(axes) > len(_USUAL):  # which is an error there
        return
    names = ", ".join(str(axis.get("name")) for axis in axes)
    usual = ", ".join(_USUAL[: len(axes)])
    if columns_in_order(axes) is not None:
        warn(target, f"coordinates are written in the order {usual}, and come back so: the store has axes {names}")
    elif names != usual:
        warn(target, f"the names of axes cannot be kept: {names} come back as {usual}")
    told = [str(axis["unit"]) for axis in axes if axis.get("unit")]
    if told and not units:
        warn(target, f"units of axes cannot be kept: {', '.join(dict.fromkeys(told))}")


def check_rank(rank: int, target: Path | str, ranks: Collection[int] = (3,)) -> None:
    """Raise :class:`DataError` for positions of another number of coordinates than the format has."""
    if rank not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise DataError(f"{target}: the store has {rank} axes; positions of this format have {wanted}")


def is_rounded(positions: npt.NDArray[Any]) -> bool:
    """Return whether float32 does not hold all positions."""
    with np.errstate(over="ignore"):
        return not np.array_equal(positions.astype(np.float32), positions)


def warn_rounded(rounded: bool, target: Path | str) -> None:
    """Warn where float32 does not hold the positions."""
    if rounded:
        warn(target, "positions are rounded to float32, which is all that this format has")


def storable(columns: Mapping[Any, Any], source: Path | str) -> dict[str, Any]:
    """Columns under names that attributes can have; warns of those that are changed."""
    found: dict[str, Any] = {}
    for given, values in columns.items():
        name = str(given)
        try:
            check_name(name)
        except DataError:
            name = "_" + name.replace("/", "_").replace("\0", "_").encode(errors="replace").decode().lstrip("_")
            warn(source, f"the attribute {given!r} is called {name!r} in the store")
        while name in found:
            name += "_"
        found[name] = values
    return found


def tell_of_missing(source: Path | str, integers: Sequence[str], flags: Sequence[str]) -> None:
    """Warn of columns of integers, and of truth values, that are float64 in the store as it has no missing ones."""
    if integers:
        told = ", ".join(map(repr, integers))
        warn(source, f"integers are stored as float64, since values are missing, which are NaN: {told}")
    if flags:
        told = ", ".join(map(repr, flags))
        warn(source, f"truth values are stored as 1.0 and 0.0, since values are missing, which are NaN: {told}")


def metadata_in(schema: Any) -> list[str]:
    """Return what metadata of Arrow say beside the columns, in which no store has a place for it.

    Without what PROJ knows of geometries (``geo``), and what libraries say there of types and of an index.
    """
    given, found = dict(schema.metadata or {}), list[str]()
    for name, what in (("pandas", "attributes"), ("geo", "columns")):
        try:
            told = json.loads(given.pop(name.encode(), b"{}")).get(what) or {}
        except (ValueError, AttributeError, RecursionError):
            continue  # those who need it say what is wrong
        if name == "pandas":
            found += [repr(each) for each in told]
        else:
            found += [f"{each!r} of {column!r}" for column, about in told.items() for each in _lost(about)]
    found += [repr(name.decode("utf-8", "replace")) for name in given if not name.startswith(_OF_LIBRARIES)]
    for field in schema:
        names = [name.decode("utf-8", "replace") for name in field.metadata or {} if not name.startswith(_OF_LIBRARIES)]
        found += [f"{name!r} of the column {field.name!r}" for name in names]
    return found


_OF_LIBRARIES: Final = (b"ARROW:", b"PARQUET:", b"gdal:")


def _lost(about: Any) -> list[str]:
    """What GeoParquet says of geometries and a store does not: the time of the coordinates, and sides on a sphere."""
    about = about if isinstance(about, Mapping) else {}
    return ["epoch"] * ("epoch" in about) + ["edges"] * (about.get("edges", "planar") != "planar")


def tell_of_metadata(source: Path | str, names: Sequence[str]) -> None:
    """Warn of metadata of a file that a store does not hold."""
    if names:
        warn(source, f"left out, as a store has no place for it: {', '.join(names)}")


def tell_of_times(source: Path | str, names: Sequence[str]) -> None:
    """Warn of columns of times, which are text in the store."""
    if names:
        warn(source, f"dates and times are stored as text (ISO 8601): {', '.join(map(repr, names))}")


def bounds_of_nothing(source: Path | str, options: Mapping[str, Any], rank: int = 3) -> dict[str, Any]:
    """The bounds of a store of a file that says that it holds nothing, and nothing of where; with a warning."""
    if options.get("bounds") is not None:
        return {}
    warn(source, "it holds nothing, and so will the store, with bounds from 0 to 1: bounds= gives it others")
    return {"bounds": (np.zeros(rank), np.ones(rank))}


def warn_kind(kind: str, becomes: str, target: Path | str) -> None:
    """Warn where a geometry becomes another one, which is what reading the file gives."""
    if kind != becomes:
        warn(target, f"each {kind} becomes a {becomes}, and is read back as one")
