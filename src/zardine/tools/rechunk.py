"""``zardine.rechunk`` and ``zardine.plan_rechunk``: any chunks to any chunks and shards, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from zardine.creation.likeness import like_arguments, like_attributes
from zardine.creation.options import ChunksLike, CodecsLike, ShardsLike
from zardine.creation.v3 import new_array_metadata
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.errors import UnsupportedError
from zardine.hierarchy.find import load_array
from zardine.hierarchy.place import find_place, overlap
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan, PlanStatus
from zardine.jobs.running import ExecutorLike
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import parse_bytes
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.rechunking.blocks import Blocks, choose_blocks, volume
from zardine.tools.rechunking.work import RechunkWork, default_between, own_folder, refuse_taken, share_of

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def rechunk(
    source: StoreLike | Array | Group,
    target: StoreLike,
    *,
    path: str | None = None,
    target_path: str | None = None,
    chunks: ChunksLike,
    shards: ShardsLike = None,
    compressors: CodecsLike = "keep",
    max_memory: int | str = "1 GiB",
    between: StoreLike | None = None,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> PlanStatus:
    """Store an array anew, in other chunks and shards, however those lie to the old ones, in bounded memory.

    ``chunks`` and ``shards`` are as in :func:`zardine.create_array`; codecs, fill value and attributes stay, but for
    ``compressors`` where they are given. No worker holds more than ``max_memory`` of elements, and about a tenth of
    that beside. Where no block of that size reads source objects about once, blocks go by way of an uncompressed array
    ``between`` (default: in a hidden folder of the target), of the size of the source as it is in memory.

    ``executor``, ``workers`` and ``progress`` are those of :meth:`zardine.jobs.Plan.run`. Interrupted or killed, the
    same call goes on. No array is at the target before all of it. What others write to the source meanwhile is in it.

    Raises :class:`~zardine.errors.NodeExistsError` where the target is taken, ``ValueError`` where a chunk of the
    source or an object of the target does not fit into ``max_memory``.
    """
    plan = plan_rechunk(
        source,
        target,
        path=path,
        target_path=target_path,
        chunks=chunks,
        shards=shards,
        compressors=compressors,
        max_memory=max_memory,
        between=between,
        storage_options=storage_options,
        target_options=target_options,
    )
    return run_rechunk(plan, executor, workers=workers, progress=progress)


def run_rechunk(
    plan: Plan,
    executor: ExecutorLike | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> PlanStatus:
    """Run a plan that may be begun, but not finished: an array at its target is refused, be it its own."""
    if not plan.is_under_way():
        refuse_taken(plan.work.home)
    return plan.run(executor, workers=workers, progress=progress)


def plan_rechunk(
    source: StoreLike | Array | Group,
    target: StoreLike,
    *,
    path: str | None = None,
    target_path: str | None = None,
    chunks: ChunksLike,
    shards: ShardsLike = None,
    compressors: CodecsLike = "keep",
    max_memory: int | str = "1 GiB",
    between: StoreLike | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan that :func:`zardine.rechunk` runs, with the same arguments. Nothing is written."""
    found, inner = place_of(source, path, storage_options=storage_options)
    place, place_path = find_place(target, target_path, mode="a", storage_options=target_options)
    if overlap(found, inner, place, place_path):
        raise ValueError("the target is the array itself, or one is inside of the other: give another place")
    memory = parse_bytes(max_memory)
    old = load_array(found, inner)
    layout = prepare_layout(old)
    new = _new_metadata(layout, chunks, shards, compressors)
    where = Place.of(found, inner, source)
    to = Place.of(place, place_path, target)
    blocks = _blocks(layout, prepare_layout(new), memory, share_of((found, place)), appends=place.edits_files)
    halfway = None
    if blocks.between:
        halfway = default_between(to)
        if between is not None:
            store, folder = find_place(between, mode="a", storage_options=target_options)
            halfway = Place.of(store, own_folder(folder, where, to), between)
    return Plan(RechunkWork(where, to, halfway, old, new, blocks, memory))


def _new_metadata(layout: ArrayLayout, chunks: Any, shards: Any, compressors: Any) -> ArrayMetadata:
    kept = like_arguments(layout, 3)
    attributes, names = like_attributes(layout, 3)
    kept.pop("zarr_format")
    keys = kept.pop("chunk_key_encoding", None)
    if compressors != "keep":
        kept["compressors"] = compressors
        kept.pop("checksum", None)
    return new_array_metadata(
        shape=layout.metadata.shape,
        dtype=layout.metadata.data_type,
        attributes=attributes,
        dimension_names=names,
        chunk_key_encoding=keys,
        **{**kept, "chunks": chunks, "shards": shards},
    )


def _blocks(old: ArrayLayout, new: ArrayLayout, memory: int, share: int, *, appends: bool) -> Blocks:
    nbytes = memory // share
    item_size = old.metadata.data_type.item_size or 16
    most = nbytes // item_size
    shape = old.metadata.shape
    target = new.object_shape
    if target is None:
        raise UnsupportedError(
            "chunks of differing lengths cannot be the target of rechunking: give one length an axis"
        )
    axes = old.grids.storage
    unit = _largest(axes, shape)
    if volume(unit, shape) > most and old.sharding is not None:
        axes = old.grids.chunks
        unit = _largest(axes, shape)
    inner = new.sharding.chunk_shape if appends and new.sharding is not None else None
    for what, each in (("a chunk of the source", unit), _smallest(target, inner)):
        if volume(each, shape) > most:
            needed = volume(each, shape) * item_size
            raise ValueError(
                f"{what} of shape {each} takes {needed:,} bytes, more than a block, which is 1/{share} of max_memory: "
                f"give a max_memory of {needed * share:,} bytes or more"
            )
    return choose_blocks(axes, unit, target, most, item_size, inner=inner)


def _smallest(target: tuple[int, ...], inner: tuple[int, ...] | None) -> tuple[str, tuple[int, ...]]:
    return ("an object of the target", target) if inner is None else ("an inner chunk of the target", inner)


def _largest(axes: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max((size for size, _ in axis.runs), default=1) for axis in axes)


__all__ = ["plan_rechunk", "rechunk"]
