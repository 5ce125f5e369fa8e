"""Zarr arrays as Dask arrays."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Literal

import dask.array as da
import numpy as np
from dask.array.core import graph_from_arraylike
from dask.base import tokenize

from zardine.api.open import open_array
from zardine.creation.options import is_word
from zardine.dask.alignment import Lengths
from zardine.engine.array_config import ArrayConfigLike
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.stores.memory import MemoryStore
from zardine.stores.resolve import StoreLike

DaskChunks = Any
"""What Dask takes for ``chunks``: lengths, tuples of lengths for each axis, ``"auto"``, a number of bytes."""


def from_zarr(
    store: StoreLike | Array | Group,
    path: str | None = None,
    *,
    chunks: Literal["shards", "chunks", "auto"] | DaskChunks = "shards",
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    config: ArrayConfigLike = None,
    name: str | Literal[False] | None = None,
) -> da.Array:
    """Return a stored array as a Dask array, of which every chunk is read by a task of its own.

    - ``store``: an :class:`~zardine.Array`, a :class:`~zardine.Group` that has one at ``path``, or a path, URL or store
      as :func:`zardine.open_array` takes them, with ``storage_options`` and ``zarr_format``.
    - ``chunks``: ``"shards"`` (a task for each stored object), ``"chunks"`` (for each inner chunk), ``"auto"`` (whole
      numbers of shards, or parts of them, of about ``array.chunk-size`` of Dask's configuration), or what Dask takes.
    - ``config``: how tasks read, see :class:`zardine.ArrayConfig`.
    - ``name``: of the Dask array; ``None`` makes it of the array and the version of its data (see
      :meth:`Array.__dask_tokenize__ <zardine.Array.__dask_tokenize__>`), ``False`` makes a new one each time.

    Raises :class:`~zardine.errors.ArrayNotFoundError` where no array is stored.
    """
    array = open_source(store, path, storage_options=storage_options, zarr_format=zarr_format, config=config)
    if isinstance(array.store, MemoryStore):  # which workers of other processes get as a copy, if it refuses writes
        array = open_array(array.store.with_read_only(True), path=array.path, mode="r", config=array.config)
    lengths = dask_chunks(array, chunks)
    if name is None or name is False:
        name = f"from-zarr-{uuid.uuid4().hex if name is False else tokenize(array, lengths)}"
    meta = np.empty((0,) * array.ndim, array.dtype)
    graph = graph_from_arraylike(array, lengths, array.shape, name, dtype=array.dtype, inline_array=True)
    return da.Array(graph, name, lengths, meta=meta)


def open_source(
    store: StoreLike | Array | Group,
    path: str | None = None,
    *,
    mode: Literal["r", "r+"] = "r",
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    config: ArrayConfigLike = None,
) -> Array:
    """Return the stored array that the first arguments of this module's functions mean."""
    if isinstance(store, Group):
        if storage_options is not None:
            raise TypeError("storage_options are for paths and URLs; the group is open already")
        return open_array(
            store.store, path=join_path(store.path, path or ""), mode=mode, zarr_format=zarr_format, config=config
        )
    if not isinstance(store, Array):
        return open_array(
            store, path=path, mode=mode, storage_options=storage_options, zarr_format=zarr_format, config=config
        )
    for what, given in (("path", path), ("storage_options", storage_options), ("zarr_format", zarr_format)):
        if given is not None:
            raise TypeError(f"{what} is for paths, URLs and stores; the array is open already")
    return store if config is None else store.with_config(config)


def dask_chunks(array: Array, chunks: DaskChunks = "shards") -> Lengths:
    """Return the lengths of the Dask chunks on each axis that ``chunks`` asks for.

    Raises ``ValueError`` where they do not fit the array.
    """
    if is_word(chunks, "shards", "chunks"):
        found = array.write_chunk_sizes if chunks == "shards" else array.read_chunk_sizes
        return tuple(lengths or (0,) for lengths in found)
    previous = tuple(lengths or (0,) for lengths in array.write_chunk_sizes)
    dtype = array.dtype
    try:
        lengths: Lengths = da.core.normalize_chunks(
            chunks, shape=array.shape, dtype=None if dtype.hasobject else dtype, previous_chunks=previous
        )
    except ValueError as error:
        raise ValueError(
            f"chunks={chunks!r} is none of 'shards', 'chunks', 'auto', and no lengths or number of bytes for {array!r} "
            f"({error})"
        ) from None
    return lengths


__all__ = ["dask_chunks", "from_zarr", "open_source"]
