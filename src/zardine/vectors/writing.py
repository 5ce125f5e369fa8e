"""Writing values to new stores: where space is, how it is stored, and one function for every geometry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from zardine.errors import DataError
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import GivenObjects, StoreOptions, checked_bounds, rank_of
from zardine.vectors.changing.values import write_value
from zardine.vectors.content.arguments import Attributes, Box, GroupsLike, Lengths, OutOfBounds, checked_shapes
from zardine.vectors.format.documents import KINDS, plain_axes
from zardine.vectors.format.layouts import CodecsLike, Shards, layout_from
from zardine.vectors.results import Geometry, Graph, Mesh, Points, Polylines, Skeleton

P = ParamSpec("P")
R = TypeVar("R")

_PLURALS = {
    "points": "point_cloud",
    "lines": "line",
    "polylines": "polyline",
    "streamlines": "streamline",
    "graphs": "graph",
    "skeletons": "skeleton",
    "meshes": "mesh",
}


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a store is cut and stored; each as in :func:`zardine.vectors.write_points`. ``None``: what is usual."""

    chunk_shape: Lengths = None
    """Size of a chunk in the units of the positions: a number, or one for each axis."""
    bin_shape: Lengths = None
    """Size of a bin, which divides that of a chunk: a coarser level has a vertex for each, so many times as large."""
    shard_shape: Shards = None
    """Chunks in one stored object: a number, or one for each axis; ``None``: one."""
    compressor: CodecsLike = None
    codec_config: CodecsLike = None
    checksum: bool | None = None

    def __post_init__(self) -> None:
        """Raise :class:`~zardine.errors.DataError` for what can be no layout, whatever is stored."""
        ranks = {name: _length(getattr(self, name)) for name in ("chunk_shape", "bin_shape", "shard_shape")}
        rank = _rank({name: each for name, each in ranks.items() if each is not None})
        if self.bin_shape is not None and self.chunk_shape is None:
            raise DataError("bin_shape needs a chunk_shape that it divides")
        if self.chunk_shape is not None:
            checked_shapes(self.chunk_shape, self.bin_shape, ((0.0,) * rank, (0.0,) * rank), 0)
        shards = 1 if self.shard_shape is None else self.shard_shape  # codec_config may say it, for axes unknown yet
        layout_from(shards, self.compressor, self.codec_config, self.checksum, rank)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Where the positions of a store are."""

    bounds: Box = None
    """The lowest and the highest corner, both included; ``None``: those of the positions."""
    out_of_bounds: OutOfBounds = "raise"
    """Whether positions outside are an error, let the bounds grow (``"expand"``) or, of points alone, are left out."""
    axes: Sequence[str | Mapping[str, Any]] | None = None
    """Names of the axes, or a table for each, with ``unit``."""
    crs: Mapping[str, Any] | None = None
    """What the coordinates are, such as ``{"wkt": "…"}``."""

    def __post_init__(self) -> None:
        """Raise :class:`~zardine.errors.DataError` for what can be no space, whatever lies in it."""
        ranks = {
            "bounds": rank_of({"bounds": self.bounds}),
            "axes": len(self.axes) if isinstance(self.axes, str) else _length(self.axes),
        }
        rank = _rank({name: each for name, each in ranks.items() if each is not None})
        checked_bounds(
            ((0.0,) * rank,) * 2 if self.bounds is None else self.bounds, np.zeros((0, rank)), self.out_of_bounds
        )
        if self.axes is not None:
            plain_axes(self.axes, rank)
        if self.crs is not None and not isinstance(self.crs, Mapping):
            raise DataError(f"crs is a table of what the coordinates are, such as {{'epsg': 4326}}, not {self.crs!r}")


def _length(value: Any) -> int | None:
    """How many axes a user's value is about; ``None`` where it does not tell."""
    try:
        return None if value is None or isinstance(value, str) else len(value)
    except TypeError:
        return None


def _rank(ranks: Mapping[str, int]) -> int:
    """How many axes all of these are about; 3 where none tells. Raises :class:`DataError` for different numbers."""
    wrong = [f"{name} is about {rank}" for name, rank in ranks.items()]
    if len(set(ranks.values())) > 1:
        raise DataError(f"different numbers of axes: {', '.join(wrong)}")
    rank = next(iter(ranks.values()), 3)
    if not 1 <= rank <= 4:
        raise DataError(f"space has 1 to 4 axes; {wrong[0]}")
    return rank


_PLACES: Mapping[str, type[Layout] | type[Space]] = {"layout": Layout, "space": Space}


def with_hints_of_place(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function``, which says of options of :class:`Layout` and :class:`Space` that these take them."""
    own = signature(function).parameters
    homes = {
        each.name: (argument, kind)
        for argument, kind in _PLACES.items()
        for each in fields(kind)
        if each.name not in own
    }

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in homes:
                argument, kind = homes[name]
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {name!r}: it is part of "
                    f"{argument}={kind.__name__}({name}=...)"
                )
        return function(*args, **kwargs)

    return call


@with_hints_of_place
def write(
    path: StoreLike,
    geometry: Geometry,
    *,
    layout: Layout | None = None,
    space: Space | None = None,
    kind: str | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
    group_attributes: Attributes = None,
    overwrite: bool = False,
) -> None:
    """Write :class:`Points`, :class:`Polylines`, a :class:`Graph`, :class:`Skeleton` or :class:`Mesh` to a new store.

    What reading gives can be written as it is. ``kind`` is ``"streamline"`` (the default), ``"polyline"`` or ``"line"``
    for :class:`Polylines`, and needed for nothing else. ``object_attributes`` have a row for each distinct object id,
    ascending; those of :class:`Polylines` are part of the value. Groups as in :func:`write_points`.

    Raises :class:`~zardine.errors.DataError` for values that do not fit together, before anything is written, and
    :class:`~zardine.errors.NodeExistsError` where something is stored and ``overwrite`` is false.
    """
    if not isinstance(geometry, Geometry):
        reason = "Points, Polylines, a Graph, a Skeleton or a Mesh can be written"
        raise DataError(f"{reason}, not {type(geometry).__name__}: write_points and its kin take arrays")
    options = options_of(layout, space, overwrite)
    if isinstance(geometry, Points | Polylines) and options.get("crs") is None:
        options["crs"] = geometry.crs
    named = _kinds_of(geometry)[-1] if kind is None else kind_named(kind)
    if named not in _kinds_of(geometry):
        raise DataError(f"a {type(geometry).__name__} is {' or '.join(_kinds_of(geometry))}, not {named}")
    value = geometry._fitting() if isinstance(geometry, Polylines) else geometry.checked()
    if isinstance(value, Polylines):
        if object_attributes:
            raise DataError("object_attributes of lines are part of the Polylines")
        if len(value) == 0 and options.get("bounds") is None:
            raise DataError("there are no lines: give space=Space(bounds=(lowest, highest corner)) for an empty store")
    given = GivenObjects(None, object_attributes, groups, group_attributes)
    write_value(path, value, named, given, options)


def kind_named(kind: str) -> str:
    """Return the name that the format has for a geometry, of that or of its plural. Raises :class:`DataError`."""
    named = _PLURALS.get(kind, kind) if isinstance(kind, str) else ""
    if named not in KINDS:
        raise DataError(f"kind is one of {', '.join(_PLURALS)} ({', '.join(_PLURALS.values())}), not {kind!r}")
    return named


def _kinds_of(geometry: Geometry) -> tuple[str, ...]:
    names = {Points: "point_cloud", Graph: "graph", Skeleton: "skeleton", Mesh: "mesh"}
    return (names[type(geometry)],) if type(geometry) in names else ("line", "polyline", "streamline")


def options_of(layout: Layout | None, space: Space | None, overwrite: bool) -> StoreOptions:
    """Return the options that writers take."""
    for (argument, kind), given in zip(_PLACES.items(), (layout, space), strict=True):
        if given is not None and not isinstance(given, kind):
            raise DataError(f"{argument} is a {kind.__name__}, {kind.__name__}(...), not {type(given).__name__}")
    chosen, where = layout or Layout(), space or Space()
    return {
        "chunk_shape": chosen.chunk_shape,
        "bin_shape": chosen.bin_shape,
        "shard_shape": chosen.shard_shape,
        "compressor": chosen.compressor,
        "codec_config": chosen.codec_config,
        "checksum": chosen.checksum,
        "bounds": where.bounds,
        "out_of_bounds": where.out_of_bounds,
        "axes": where.axes,
        "crs": where.crs,
        "overwrite": overwrite,
    }


__all__ = ["Layout", "Space", "write"]
