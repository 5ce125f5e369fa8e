"""Dask arrays into Zarr arrays."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias, Unpack

import dask.array as da
import numpy as np
from dask.array.optimization import optimize
from dask.base import get_scheduler
from dask.core import flatten
from dask.delayed import Delayed
from dask.graph_manipulation import checkpoint
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from zardine.creation.block_shapes import shapes_for_blocks
from zardine.creation.options import ChunksLike, ShardsLike, is_word
from zardine.dask.alignment import merged_chunks
from zardine.dask.reading import from_zarr, open_source
from zardine.errors import ReadOnlyError, SelectionError, StoreError
from zardine.hierarchy.place import find_place
from zardine.metadata.formats import format_of_new
from zardine.metadata.node_names import join_path
from zardine.nodes.argument_hints import unknown_argument
from zardine.nodes.array import Array
from zardine.nodes.create_array import check_source_stays, create_array
from zardine.nodes.group import Group
from zardine.nodes.options import BlockwiseOptions
from zardine.settings import config as settings
from zardine.stores.memory import MemoryStore
from zardine.stores.resolve import StoreLike

RegionLike: TypeAlias = Any
"""A slice, one for each axis (``...`` among them stands for whole axes), or ``None`` for the whole array."""


_KNOWN: Final = {
    *BlockwiseOptions.__annotations__,
    *("path", "chunks", "shards", "region", "overwrite", "compute", "return_stored", "storage_options"),
    "compute_kwargs",
}


def to_zarr(
    darr: da.Array,
    store: StoreLike | Array | Group,
    path: str | None = None,
    *,
    chunks: ChunksLike = "auto",
    shards: ShardsLike = "auto",
    region: RegionLike = None,
    overwrite: bool = False,
    compute: bool = True,
    return_stored: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    compute_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Unpack[BlockwiseOptions],
) -> Any:
    """Store a Dask array: in a new array, or in one that exists.

    - ``store``: where a new array is made, as :func:`zardine.create_array` takes it, with ``path`` in it and
      ``storage_options``; or an :class:`~zardine.Array`, which is written to. With a ``region`` of it (``...`` for all)
      an array that exists at a path or URL is written to as well.
    - ``chunks``, ``shards``: of a new array. ``"auto"`` makes a shard of one Dask chunk, or of several side by side, up
      to about 64 MiB, so that each shard is written by one task, and divides it into inner chunks. ``shards=None``
      makes every Dask chunk a chunk. ``kwargs`` are the other options of :func:`zardine.create_array`.
    - ``overwrite``: erase what is stored at this place first.
    - ``compute``: write now, with ``compute_kwargs`` for :func:`dask.compute` (``{"scheduler": "processes"}``); else
      return a ``Delayed`` that does. The metadata is stored before either.
    - ``return_stored``: return a Dask array that reads what is stored; without ``compute`` it writes first.

    Dask chunks that share shards lose nothing: each is written under the lock of the shard, as any writer is. They are
    joined where that makes whole shards and fits into ``window_bytes`` of :data:`zardine.config`.

    Raises :class:`~zardine.errors.ContainsArrayError` where something is stored already, ``ValueError`` and
    ``TypeError`` for arguments that do not fit together, or that would erase what is to be stored, and
    :class:`~zardine.errors.SelectionError` for a region of another shape.
    """
    _check_source(darr)
    for name in kwargs:
        if name not in BlockwiseOptions.__annotations__:
            raise unknown_argument("to_zarr", name, _KNOWN)
    if isinstance(store, Array) or region is not None:
        config, zarr_format = kwargs.get("config"), kwargs.get("zarr_format")
        for name in sorted(kwargs.keys() - {"config", "zarr_format"}):
            _refuse(name)
        for name, given in (("chunks", chunks), ("shards", shards)):
            if not is_word(given, "auto"):
                _refuse(name)
        if overwrite:
            _refuse("overwrite")
        target = open_source(
            store, path, mode="r+", storage_options=storage_options, zarr_format=zarr_format, config=config
        )
    else:
        chunks, shards = shapes_for_blocks(
            darr.chunks, darr.dtype.itemsize, chunks, shards, sharded=format_of_new(kwargs.get("zarr_format")) == 3
        )
        place = (store.store, join_path(store.path, path or "")) if isinstance(store, Group) else (store, path)
        version = format_of_new(kwargs.get("zarr_format"))
        found, inner = find_place(*place, storage_options=storage_options, zarr_format=version)
        if overwrite:
            check_source_stays(darr, found, inner)
        target = create_array(
            found,
            name=inner,
            shape=darr.shape,
            dtype=darr.dtype,
            chunks=chunks,
            shards=shards,
            overwrite=overwrite,
            **kwargs,
        )
    where = _slices(region, target, darr.shape)
    tasks = _writes(darr, target, where)
    if not return_stored:
        return _all_of([tasks], [target], compute, compute_kwargs)
    if not compute:
        return tasks.map_blocks(
            _read_back, target, ArraySliceDep(tasks.chunks), where, name=_new_name("stored"), meta=_meta(darr, target)
        )
    _all_of([tasks], [target], True, compute_kwargs)
    return from_zarr(target)[where]


def store(
    sources: da.Array | Sequence[da.Array],
    targets: Array | Sequence[Array],
    regions: RegionLike | Sequence[RegionLike] = None,
    compute: bool = True,
    **compute_kwargs: Any,
) -> Delayed | None:
    """Store Dask arrays in arrays that exist, all in one computation.

    ``regions``: for each target the region that its source is written to; a single one, or ``None``, is for all. Gives
    ``None`` when everything is stored, or without ``compute`` a ``Delayed``. ``compute_kwargs`` go to
    :func:`dask.compute`. See :func:`to_zarr` for Dask chunks that share shards.
    """
    if isinstance(sources, da.Array):
        sources = [sources]
    if isinstance(targets, Array):
        targets = [targets]
    for word, given, kind in (("sources", sources, "Dask arrays"), ("targets", targets, "arrays of zardine")):
        if not isinstance(given, (list, tuple)):
            hint = "; for others see dask.array.store" if word == "targets" else ""
            raise TypeError(f"{word} are {kind}, one or a list of them, not a {type(given).__name__}{hint}")
    several = isinstance(regions, Sequence) and not isinstance(regions, tuple)
    listed: list[RegionLike] = list(regions) if several else [regions] * len(targets)
    if not len(sources) == len(targets) == len(listed):
        raise ValueError(f"there are {len(sources)} sources, {len(targets)} targets and {len(listed)} regions")
    tasks = []
    for source, target, region in zip(sources, targets, listed, strict=True):
        _check_source(source)
        if not isinstance(target, Array):
            raise TypeError(
                f"the targets are arrays of zardine, not {type(target).__name__}; for others see dask.array.store"
            )
        tasks.append(_writes(source, target, _slices(region, target, source.shape)))
    return _all_of(tasks, targets, compute, compute_kwargs)


def _writes(source: da.Array, target: Array, region: tuple[slice, ...]) -> da.Array:
    """Return a Dask array of which each chunk, once computed, is stored; its values are of no use."""
    if target.read_only:
        raise ReadOnlyError(f"cannot write to {target!r}: it was opened read-only")
    largest = np.prod([max(axis, default=0) for axis in source.chunks], dtype=object) * source.dtype.itemsize
    most = max(int(settings["window_bytes"]), int(largest))
    objects = target._handle.layout.grids.storage
    chunks = merged_chunks(source.chunks, objects, region, source.dtype.itemsize, most)
    if chunks != source.chunks:  # by one task for each, which joins its chunks, and no step between
        source = source.rechunk(chunks, method="tasks", threshold=2**62)
    return source.map_blocks(
        _write, target, ArraySliceDep(source.chunks), region, name=_new_name("write"), meta=_meta(source, target)
    )


def _write(block: Any, target: Array, where: tuple[slice, ...], region: tuple[slice, ...]) -> None:
    """Store ``block``, which is at ``where`` in its source, in its part of the ``region``. A task."""
    if block.size:
        target[_within(region, where)] = block


def _read_back(_: None, target: Array, where: tuple[slice, ...], region: tuple[slice, ...]) -> Any:
    """Return what is stored in that part of the ``region``. A task."""
    return np.asarray(target[_within(region, where)])


def _within(region: tuple[slice, ...], where: tuple[slice, ...]) -> tuple[slice, ...]:
    return tuple(
        slice(outer.start + inner.start * outer.step, outer.start + inner.stop * outer.step, outer.step)
        for outer, inner in zip(region, where, strict=True)
    )


def _all_of(
    tasks: list[da.Array], targets: Sequence[Array], compute: bool, compute_kwargs: Mapping[str, Any] | None
) -> Delayed | None:
    """Return a ``Delayed`` that is done when all of ``tasks`` are, or wait for it. Nothing else is kept or sent."""
    if compute:
        _check_reach(targets, (compute_kwargs or {}).get("scheduler"))
    done = checkpoint(*_optimized(tasks))
    if not compute:
        return done
    done.compute(**(compute_kwargs or {}))
    return None


def _check_reach(targets: Sequence[Array], scheduler: Any) -> None:
    """Raise :class:`~zardine.errors.StoreError` where other processes would write to the memory of this one.

    They could not unpickle their tasks, and workers of a cluster that cannot are waited for without end.
    """
    inside = [target for target in targets if isinstance(target.store, MemoryStore)]
    if not inside:
        return
    get = get_scheduler(scheduler=scheduler)
    client: Any = getattr(get, "__self__", None)  # of a cluster
    if hasattr(client, "scheduler_info"):
        apart = any(not address.startswith("inproc:") for address in client.scheduler_info()["workers"])
    else:
        apart = getattr(get, "__module__", "") == "dask.multiprocessing"
    if apart:
        raise StoreError(
            f"{inside[0]!r} is in the memory of one process, and this scheduler writes from others: keep it in files "
            "instead, or use scheduler='threads'"
        )


def _optimized(tasks: list[da.Array]) -> list[da.Array]:
    """Return the arrays with one graph for all of them, so that what several are made of is computed once."""
    graph = HighLevelGraph.merge(*(each.__dask_graph__() for each in tasks))
    graph = optimize(graph, list(flatten([each.__dask_keys__() for each in tasks])))
    return [da.Array(graph, each.name, each.chunks, meta=each._meta) for each in tasks]


def _slices(region: RegionLike, target: Array, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return ``region`` as one slice for each axis, of which start, stop and step are numbers.

    Raises :class:`~zardine.errors.SelectionError` where it is not of ``shape``.
    """
    given = () if region is None else region if isinstance(region, tuple) else (region,)
    if any(each is not Ellipsis and not isinstance(each, slice) for each in given):
        raise SelectionError(f"a region has a slice for each axis, not {region!r}")
    before, after = given, ()
    if Ellipsis in given:
        cut = given.index(Ellipsis)
        before, after = given[:cut], given[cut + 1 :]
    rest = target.ndim - len(before) - len(after)
    if rest < 0 or Ellipsis in after:
        raise SelectionError(f"the region {region!r} has more axes than {target!r}")
    slices = []
    for each, length in zip((*before, *[slice(None)] * rest, *after), target.shape, strict=True):
        start, stop, step = each.indices(length)
        if step < 1:
            raise SelectionError(f"a region goes forwards, and the step of {each} is {step}")
        slices.append(slice(start, max(start, stop), step))
    found = tuple(len(range(each.start, each.stop, each.step)) for each in slices)
    if found != shape:
        place = "" if region is None else f"the region {region!r} of "
        raise SelectionError(f"the Dask array has the shape {shape}, and {place}{target!r} the shape {found}")
    return tuple(slices)


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"{name} is for new arrays, and this call writes to one that exists")


def _check_source(source: object) -> None:
    if not isinstance(source, da.Array):
        raise TypeError(
            f"a Dask array is stored here, not {type(source).__name__}: make one with dask.array.from_array, or store "
            "it with zardine.create_array(..., data=...); what xarray has, zardine.xarray.to_zarr stores"
        )
    if any(np.isnan(length) for length in source.shape):
        raise ValueError("the lengths of the Dask array are not known: call its compute_chunk_sizes() first")


def _meta(source: da.Array, target: Array) -> Any:
    return np.empty((0,) * source.ndim, target.dtype)


def _new_name(what: str) -> str:
    """Return a name that no other has: what is written is written anew each time."""
    return f"zardine-{what}-{uuid.uuid4().hex}"


__all__ = ["store", "to_zarr"]
