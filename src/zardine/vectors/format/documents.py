"""The geometries of the format, and the documents of a store and of its levels: attributes of groups to frozen values.

No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np

from zardine.errors import DataError, MetadataError, Problem
from zardine.metadata.attributes import attributes_to_json
from zardine.vectors.format.grids import bins_per_chunk


@dataclass(frozen=True, slots=True)
class Kind:
    """A geometry: its name in documents, and how its vertices are connected."""

    name: str
    conventions: tuple[str, ...]
    """``links_convention`` of stores that hold it; the first is what is written."""
    links: bool
    """Whether every store of it has explicit links."""
    reader: str
    """The function that reads it."""


IMPLICIT, BRANCHES, EXPLICIT = "implicit_sequential", "implicit_sequential_with_branches", "explicit"

KINDS = {
    kind.name: kind
    for kind in (
        Kind("point_cloud", (IMPLICIT, BRANCHES, EXPLICIT), False, "read_points"),
        Kind("line", (IMPLICIT,), False, "read_lines"),
        Kind("polyline", (IMPLICIT,), False, "read_polylines"),
        Kind("streamline", (IMPLICIT,), False, "read_polylines"),
        Kind("skeleton", (BRANCHES, EXPLICIT), True, "read_skeleton"),
        Kind("graph", (EXPLICIT,), True, "read_graph"),
        Kind("mesh", (EXPLICIT,), True, "read_mesh"),
    )
}

CONVENTIONS = (EXPLICIT, IMPLICIT, BRANCHES)


FORMAT_VERSION = "0.9.2"
"""Of the layout that is written."""

ROOT, LEVEL = "zarr_vectors", "zarr_vectors_level"
AXIS_NAMES = "xyzw"


@dataclass(frozen=True, slots=True)
class RootDocument:
    """What the root group says, in physical units of the axes."""

    chunk_shape: tuple[float, ...]
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    """Lowest and highest corner, both included."""
    geometry_types: tuple[str, ...]
    bin_shape: tuple[float, ...]
    """The same as ``chunk_shape`` where there are no bins."""
    links_convention: str
    axes: tuple[Mapping[str, Any], ...]
    attributes: Mapping[str, Any] = field(compare=False)
    """All attributes of the group, as they are stored."""

    @property
    def ndim(self) -> int:
        """How many axes space has."""
        return len(self.axes)

    @property
    def block(self) -> Mapping[str, Any]:
        """The ``zarr_vectors`` block."""
        found: Mapping[str, Any] = self.attributes[ROOT]
        return found


@dataclass(frozen=True, slots=True)
class LevelDocument:
    """What the group of a level says."""

    level: int
    vertex_count: int
    chunk_shape: tuple[float, ...]
    chunk_dims: tuple[str, ...]
    """Names of the axes of the chunk grid: those of space, and perhaps first that of an attribute."""
    tiles: bool
    """Whether it claims that fragments cut each cell in pieces, in order."""
    attributes: Mapping[str, Any] = field(compare=False)

    @property
    def block(self) -> Mapping[str, Any]:
        """The ``zarr_vectors_level`` block."""
        found: Mapping[str, Any] = self.attributes[LEVEL]
        return found


def parse_root(attributes: Mapping[str, Any], place: str) -> RootDocument:
    """The document in the root group's ``attributes``. Raises :class:`MetadataError` with every fault."""
    problems: list[Problem] = []
    block = attributes.get(ROOT)
    if not isinstance(block, Mapping):
        raise MetadataError(f"{place} is no Zarr Vectors store: its root group has no {ROOT!r} attribute")
    axes = _axes(attributes, problems)
    rank = len(axes)
    if not isinstance(block.get("zv_version"), str):
        problems.append(Problem(f"{ROOT}.zv_version", "a version such as '0.9.2' is required"))
    chunk_shape = _numbers(block, "chunk_shape", rank, problems, positive=True)
    bounds = block.get("bounds")
    corners: list[tuple[float, ...]] = []
    if not isinstance(bounds, Sequence) or len(bounds) != 2:
        problems.append(Problem(f"{ROOT}.bounds", "the lowest and the highest corner are required"))
    else:
        corners = [_numbers({"bounds": each}, "bounds", rank, problems) for each in bounds]
        if all(corners) and any(a > b for a, b in zip(*corners, strict=True)):
            problems.append(Problem(f"{ROOT}.bounds", f"the lowest corner {corners[0]} is above {corners[1]}"))
    kinds = block.get("geometry_types")
    if not isinstance(kinds, Sequence) or isinstance(kinds, str) or not all(isinstance(each, str) for each in kinds):
        problems.append(Problem(f"{ROOT}.geometry_types", "a list of names is required"))
        kinds = ()
    bins = chunk_shape
    if block.get("base_bin_shape") is not None:
        bins = _numbers(block, "base_bin_shape", rank, problems, positive=True)
        try:
            if chunk_shape and bins:
                bins_per_chunk(chunk_shape, bins)
        except DataError as error:
            problems.append(Problem(f"{ROOT}.base_bin_shape", error.reason))
    convention = block.get("links_convention", CONVENTIONS[1])
    if convention not in CONVENTIONS:
        problems.append(Problem(f"{ROOT}.links_convention", f"{convention!r} is none of {', '.join(CONVENTIONS)}"))
    if problems:
        raise MetadataError(f"the root document of {place} is invalid", problems)
    return RootDocument(
        chunk_shape, (corners[0], corners[1]), tuple(kinds), bins, str(convention), tuple(axes), attributes
    )


def parse_level(attributes: Mapping[str, Any], level: int, root: RootDocument, place: str) -> LevelDocument:
    """The document in a level group's ``attributes``. Raises :class:`MetadataError` with every fault."""
    problems: list[Problem] = []
    block = attributes.get(LEVEL)
    if not isinstance(block, Mapping):
        raise MetadataError(f"level {level} of {place} has no {LEVEL!r} attribute")
    count = block.get("vertex_count")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        problems.append(Problem(f"{LEVEL}.vertex_count", f"a number of vertices is required, not {count!r}"))
    if block.get("level") != level:
        problems.append(Problem(f"{LEVEL}.level", f"{block.get('level')!r}, and the group is {level}"))
    if not isinstance(block.get("arrays_present"), Sequence):
        problems.append(Problem(f"{LEVEL}.arrays_present", "a list of names is required"))
    sparsity = block.get("object_sparsity", 1.0)
    if isinstance(sparsity, bool) or not isinstance(sparsity, (int, float)) or not 0 <= sparsity <= 1:
        problems.append(Problem(f"{LEVEL}.object_sparsity", f"{sparsity!r} is no share from 0 to 1"))
    chunk_shape = root.chunk_shape
    if block.get("chunk_shape") is not None:
        chunk_shape = _numbers(block, "chunk_shape", root.ndim, problems, positive=True)
        for a, b in zip(chunk_shape, root.chunk_shape, strict=False):
            if abs(a / b - round(a / b)) > 1e-6 or round(a / b) < 1:
                problems.append(Problem(f"{LEVEL}.chunk_shape", f"{a} is no multiple of {b}, that of level 0"))
    names = tuple(str(axis.get("name")) for axis in root.axes)
    dims = block.get("chunk_dims") or names
    if not isinstance(dims, Sequence) or tuple(dims)[-root.ndim :] != names or len(dims) > root.ndim + 1:
        problems.append(Problem(f"{LEVEL}.chunk_dims", f"{dims!r} does not end with the axes {names}"))
    if problems:
        raise MetadataError(f"the document of level {level} of {place} is invalid", problems)
    assert isinstance(count, int)
    return LevelDocument(level, count, chunk_shape, tuple(dims), bool(block.get("fragments_tile")), attributes)


def new_root(
    *,
    name: str,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None,
    bounds: tuple[Sequence[float], Sequence[float]],
    kind: str,
    convention: str,
    axes: Sequence[Mapping[str, Any]],
    crs: Mapping[str, Any] | None = None,
    notes: str | None = None,
) -> dict[str, Any]:
    """The attributes of a new store's root group, with level 0 and no other."""
    chunk, low, high = _floats(chunk_shape), _floats(bounds[0]), _floats(bounds[1])
    block: dict[str, Any] = {
        "zv_version": FORMAT_VERSION,
        "format_capabilities": [],
        "chunk_shape": chunk,
        "bounds": [low, high],
        "geometry_types": [kind],
        "links_convention": convention,
        "object_index_convention": "standard",
        "cross_chunk_strategy": "explicit_links",
    }
    if bin_shape is not None:
        block["base_bin_shape"] = _floats(bin_shape)
    if crs is not None and not isinstance(crs, Mapping):
        raise DataError(f"crs is a table of what describes a coordinate reference system, not {crs!r}")
    if crs is not None:
        block["crs"] = as_json(crs, "crs")
    plain = [dict(axis) for axis in axes]
    attributes: dict[str, Any] = {ROOT: block}
    if notes is not None:
        attributes["notes"] = notes
    bins = _floats(bin_shape or chunk_shape)
    attributes["multiscales"] = [
        {
            "version": "0.4",
            "name": "default",
            "axes": plain,
            "datasets": [dataset(0, bins, bins)],
            "metadata": {"format": "zarr_vectors"},
        }
    ]
    attributes["ome"] = ome(name, plain, [0])
    return attributes


def dataset(level: int, bins: Sequence[float], base: Sequence[float]) -> dict[str, Any]:
    """The entry of a level in ``multiscales``: the size of its bins, relative to level 0, and half of it."""
    scale = [a / b for a, b in zip(bins, base, strict=True)]
    return {
        "path": str(level),
        "coordinateTransformations": [
            {"type": "scale", "scale": scale},
            {"type": "translation", "translation": [size / 2 for size in bins]},
        ],
    }


def ome(name: str, axes: Sequence[Mapping[str, Any]], levels: Sequence[int]) -> dict[str, Any]:
    """The ``ome`` block, which says again what the others say."""
    scene = {"coordinateSystems": [{"name": "world", "axes": list(axes)}], "coordinateTransformations": []}
    nodes = [{"type": "zv:level", "name": str(level)} for level in levels]
    return {"version": "0.6", "type": "collection", "name": name, "attributes": {"scene": scene}, "nodes": nodes}


class LevelBlock(TypedDict, total=False):
    """What a level says of itself beside its number, its vertices and its arrays; what is ``None`` is left out."""

    object_sparsity: float | None
    coarsening_method: str | None
    parent_level: int | None
    chunk_shape: Sequence[float] | None
    preserves_object_ids: bool | None
    inherited_num_objects: int | None
    shared_fragments: bool | None
    fragments_tile: bool | None


def new_level(level: int, vertex_count: int, present: Sequence[str], **more: Unpack[LevelBlock]) -> dict[str, Any]:
    """The attributes of a level's group; of ``more``, what is ``None`` is left out."""
    block: dict[str, Any] = {
        "level": level,
        "object_sparsity": 1.0,
        "vertex_count": vertex_count,
        "coarsening_method": "none",
        "parent_level": None,
        "arrays_present": list(present),
    }
    return {LEVEL: {**block, **{key: value for key, value in more.items() if value is not None}}}


def as_json(value: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A user's table as a document can hold it. Raises :class:`DataError`."""
    try:
        return attributes_to_json(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: {error}") from None


def plain_axes(axes: Any, rank: int) -> list[dict[str, Any]]:
    """A user's ``axes=``: names or mappings; ``None``: ``x``, ``y``, ``z``, ``w``. Raises :class:`DataError`."""
    if axes is None:
        if rank > len(AXIS_NAMES):
            raise DataError(f"positions of {rank} axes need names: axes=(...)")
        axes = AXIS_NAMES[:rank]
    try:
        tables = [{"name": each} if isinstance(each, str) else dict(each) for each in axes]
    except (TypeError, ValueError):
        raise DataError(f"axes are names, or tables with a name, not {axes!r}") from None
    found = [as_json({"type": "space", **each}, f"axis {number}") for number, each in enumerate(tables)]
    names = [each.get("name") for each in found]
    if not all(isinstance(name, str) and name for name in names) or not rank == len(names) == len(set(names)):
        raise DataError(f"axes {names} do not name the {rank} axes of the positions")
    return found


def _axes(attributes: Mapping[str, Any], problems: list[Problem]) -> Sequence[Mapping[str, Any]]:
    scales = attributes.get("multiscales")
    first = scales[0] if isinstance(scales, Sequence) and len(scales) else None
    axes = first.get("axes") if isinstance(first, Mapping) else None
    if not isinstance(axes, Sequence) or not axes or not all(isinstance(each, Mapping) for each in axes):
        problems.append(Problem("multiscales[0].axes", "a list of axes is required"))
        return ()
    return axes


def _numbers(
    block: Mapping[str, Any], name: str, rank: int, problems: list[Problem], *, positive: bool = False
) -> tuple[float, ...]:
    values = block.get(name)
    good = isinstance(values, Sequence) and all(
        isinstance(each, (int, float)) and not isinstance(each, bool) and np.isfinite(each) for each in values
    )
    if not good or not isinstance(values, Sequence) or (rank and len(values) != rank):
        problems.append(Problem(f"{ROOT}.{name}", f"{rank} numbers are required, not {values!r}"))
        return ()
    if positive and any(each <= 0 for each in values):
        problems.append(Problem(f"{ROOT}.{name}", f"numbers above 0 are required, not {values!r}"))
        return ()
    return tuple(float(each) for each in values)


def _floats(values: Sequence[float]) -> list[float]:
    return [float(each) for each in values]
