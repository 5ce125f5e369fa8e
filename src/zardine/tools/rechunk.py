"""``zardine.rechunk`` and ``zardine.plan_rechunk``: any chunks to any chunks and shards, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Required, TypedDict, Unpack

from zardine.creation.likeness import like_arguments, like_attributes
from zardine.creation.options import ChunksLike, CodecsLike, ShardsLike
from zardine.creation.v3 import new_array_metadata
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.hierarchy.find import load_array
from zardine.hierarchy.place import check_new_place, find_place, overlap
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan, PlanStatus
from zardine.jobs.running import ExecutorLike
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.argument_hints import unknown_argument
from zardine.settings import parse_bytes
from zardine.stores.file_seam import files_to_edit
from zardine.stores.resolve import StoreLike
from zardine.tools.advise import shards_for
from zardine.tools.arguments import place_of
from zardine.tools.rechunking.cells import blocks_for, item_size_of, share_of
from zardine.tools.rechunking.copying import default_between
from zardine.tools.rechunking.work import RechunkWork, own_folder, refuse_taken

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


class RechunkKeywords(TypedDict, total=False):
    """What :func:`rechunk` and :func:`plan_rechunk` are asked for, beside source and target; see the former."""

    path: str | None
    target_path: str | None
    chunks: Required[ChunksLike]
    shards: ShardsLike
    compressors: CodecsLike
    max_memory: int | str
    between: StoreLike | None
    storage_options: Mapping[str, Any] | None
    target_options: Mapping[str, Any] | None


def rechunk(
    source: StoreLike | Array | Group,
    target: StoreLike,
    *,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Unpack[RechunkKeywords],
) -> PlanStatus:
    """Store an array anew, in other chunks and shards, however those lie to the old ones, in bounded memory.

    ``chunks`` (needed) and ``shards`` are as in :func:`zardine.create_array`, lists of lengths too: without ``shards``
    every chunk is an object. Codecs, fill value and attributes stay, but for ``compressors`` where they are given.
    ``path`` and ``target_path`` are those of the arrays in their stores, ``storage_options`` and ``target_options``
    settings of the stores behind URLs.

    No worker holds more than ``max_memory`` (default: ``"1 GiB"``) of elements, and about a tenth of that beside.
    No source object is read more than twice. Where no blocks of that size do that, they go by way of uncompressed
    arrays ``between`` (default: in a hidden folder of the target), of the size of the source as it is in memory.

    ``executor``, ``workers`` and ``progress`` are those of :meth:`zardine.jobs.Plan.run`. Interrupted or killed, the
    same call goes on. No array is at the target before all of it. What others write to the source meanwhile is in it.

    Raises :class:`~zardine.errors.NodeExistsError` where the target is taken, ``ValueError`` where a chunk of the
    source or an object of the target does not fit into ``max_memory``.
    """
    return run_rechunk(plan_rechunk(source, target, **options), executor, workers=workers, progress=progress)


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


def plan_rechunk(source: StoreLike | Array | Group, target: StoreLike, **options: Unpack[RechunkKeywords]) -> Plan:
    """Return the plan that :func:`zardine.rechunk` runs, with the same arguments. Nothing is written."""
    unknown = set(options) - set(RechunkKeywords.__annotations__)
    if unknown:
        raise unknown_argument("rechunk", min(unknown), RechunkKeywords.__annotations__)
    if "chunks" not in options:
        raise TypeError("chunks is missing: lengths as for create_array, or 'auto'")
    found, inner = place_of(source, options.get("path"), storage_options=options.get("storage_options"))
    to_options = options.get("target_options")
    place, place_path = find_place(target, options.get("target_path"), mode="a", storage_options=to_options)
    if overlap(found, inner, place, place_path):
        raise ValueError("the target is the array itself, or one is inside of the other: give another place")
    check_new_place(place, place_path, 3)
    memory = parse_bytes(options.get("max_memory", "1 GiB"))
    old = load_array(found, inner)
    layout = prepare_layout(old)
    new = _new_metadata(layout, options["chunks"], options.get("shards"), options.get("compressors", "keep"))
    where, to = Place.of(found, inner, source), Place.of(place, place_path, target)
    blocks = blocks_for(
        layout, prepare_layout(new), memory, share_of((found, place)), appends=files_to_edit(place) is not None
    )
    halfway, between = None, options.get("between")
    if blocks.between:
        halfway = default_between(to)
        if between is not None:
            store, folder = find_place(between, mode="a", storage_options=to_options)
            halfway = Place.of(store, own_folder(folder, where, to), between)
    return Plan(RechunkWork(where, to, halfway, old, new, blocks, memory))


def shards_of_small_chunks(plan: Plan) -> tuple[int, ...] | None:
    """Return shards for a plan without any whose chunks are below 1 MB, so that these are not a file each.

    They are those that :func:`zardine.advise` proposes, and fit into the memory of the plan. ``None`` for none.
    """
    work = plan.work
    assert isinstance(work, RechunkWork)
    layout = prepare_layout(work.new)
    shape, axes = layout.metadata.shape, layout.grids.chunks
    is_large = layout.sharding is not None or layout.object_nbytes >= SMALL_CHUNK
    if is_large or not shape or 0 in shape or not all(axis.is_regular for axis in axes):
        return None
    store = work.target.store
    most = work.max_memory // share_of((work.source.store, store))
    chunks = tuple(axis.longest for axis in axes)
    return shards_for(shape, item_size_of(layout), chunks, cost=store.cost, most=most)


SMALL_CHUNK: Final = 10**6
"""Bytes of a chunk in memory, below which chunks are worth shards."""


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


__all__ = ["RechunkKeywords", "plan_rechunk", "rechunk"]
