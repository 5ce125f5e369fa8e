"""What all writers of objects share: options of the new store, ids, attributes and groups of objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import NewStore, checked_bounds, grid_of, write_store
from zardine.vectors.content.arguments import checked_ids, checked_shapes, plain_array
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.content import Content, Groups, Objects
from zardine.vectors.content.point_content import groups_of
from zardine.vectors.format.documents import plain_axes
from zardine.vectors.format.layouts import Layout, layout_from

_Corners = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Options of every writer; see :func:`zardine.vectors.write_points`."""

    chunk_shape: Any = None
    shard_shape: Any = None
    codec_config: Any = None
    compressor: Any = None
    checksum: bool | None = None
    bounds: Any = None
    axes: Any = None
    crs: Any = None
    overwrite: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> StoreOptions:
        """The options that a user gave by name. Raises ``TypeError`` for others."""
        unknown = sorted(set(options) - set(cls.__dataclass_fields__))
        if unknown:
            raise TypeError(f"unexpected argument {unknown[0]!r}; there are {', '.join(cls.__dataclass_fields__)}")
        return cls(**options)

    @property
    def rank(self) -> int | None:
        """Axes of space, where the options tell."""
        return None if self.bounds is None else np.atleast_2d(plain_array(self.bounds, "bounds")).shape[-1]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Options, checked against the positions."""

    chunk_shape: tuple[float, ...]
    bounds: _Corners
    layout: Layout
    axes: list[dict[str, Any]]


def prepare(positions: npt.NDArray[Any], options: StoreOptions) -> Prepared:
    """Check the options. Raises :class:`~zardine.errors.DataError`."""
    rank = positions.shape[1]
    bounds, _ = checked_bounds(options.bounds, positions, "raise")
    chunks, _ = checked_shapes(options.chunk_shape, None, bounds, len(positions))
    layout = layout_from(options.shard_shape, options.compressor, options.codec_config, options.checksum, rank)
    return Prepared(chunks, bounds, layout, plain_axes(options.axes, rank))


def new_objects(
    ids: npt.ArrayLike | None,
    count: int,
    attributes: Mapping[str, Any] | None,
    groups: Any,
    group_attributes: Mapping[str, Any] | None,
) -> tuple[Objects, Groups | None]:
    """Objects without fragments, one for each of ``count``, and groups. Raises :class:`~zardine.errors.DataError`."""
    found = np.arange(count) if ids is None else checked_ids(ids, count, "object_ids")
    if len(np.unique(found)) != count:
        raise DataError("object_ids: each id can be there once")
    none = np.zeros(0, np.int64)
    objects = Objects(found, none, none, columns_of(attributes, count, "objects"))
    return objects, groups_of(groups, group_attributes, found)


def object_rows(
    ids: npt.ArrayLike | None,
    count: int,
    attributes: Mapping[str, Any] | None,
    groups: Any,
    group_attributes: Mapping[str, Any] | None,
) -> tuple[Objects, npt.NDArray[np.int64], Groups | None]:
    """Objects for vertices with these ids (``None``: all are object 0), and the row of each vertex's object.

    Attributes have a row for each distinct id, ascending.
    """
    given = np.zeros(count, np.int64) if ids is None else checked_ids(ids, count, "object_ids")
    distinct, row = np.unique(given, return_inverse=True)
    if count == 0 and ids is None and not checked_mapping(attributes):
        distinct = np.zeros(1, np.int64)
    objects, found = new_objects(distinct, len(distinct), attributes, groups, group_attributes)
    return objects, row.reshape(-1).astype(np.int64), found


def store_content(path: StoreLike, content: Content, kind: str, prepared: Prepared, options: StoreOptions) -> None:
    """Write a new store of one level."""
    new = NewStore(
        kind=kind,
        chunk_shape=prepared.chunk_shape,
        bin_shape=None,
        bounds=prepared.bounds,
        grid=grid_of(content, prepared.bounds, prepared.chunk_shape, prepared.layout),
        axes=prepared.axes,
        crs=options.crs,
    )
    write_store(path, content, new, overwrite=options.overwrite)
