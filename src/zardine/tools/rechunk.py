"""``zardine.rechunk`` and ``zardine.plan_rechunk``: any chunks to any chunks and shards, in bounded memory.

Elements are copied block by block to a new place, where nothing is found before all of it is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Required, TypedDict, Unpack

from zardine.chunk_grids.axis import Axis
from zardine.creation.likeness import like_arguments, like_attributes
from zardine.creation.options import ChunksLike, CodecsLike, ShardsLike
from zardine.creation.v3 import new_array_metadata
from zardine.engine.freshness import GENERATION, generation_of
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.stored import erase_stored
from zardine.errors import ContainsArrayError, MetadataError, NodeExistsError, PlanError
from zardine.hierarchy.find import describe, find_node, load_array
from zardine.hierarchy.place import check_new_place, find_place, overlap
from zardine.jobs.places import Place, Places
from zardine.jobs.plan import Plan, PlanStatus
from zardine.jobs.records import Done
from zardine.jobs.running import ExecutorLike
from zardine.jobs.work import holds_node
from zardine.json_document import JSON
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.argument_hints import unknown_argument
from zardine.settings import parse_bytes
from zardine.stores.file_seam import files_to_edit
from zardine.stores.resolve import StoreLike
from zardine.tools.advise import shards_for
from zardine.tools.arguments import place_of
from zardine.tools.copying.append import array_prefix
from zardine.tools.copying.array_blocks import blocks_for, item_size_of, share_of
from zardine.tools.copying.between import default_between
from zardine.tools.copying.new_place import OtherConversionError, Target
from zardine.tools.copying.work import CopyWork, parts_of

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

_WAY: Final = "a new array needs a place of its own, such as target_path='name' within a group"


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


@dataclass(frozen=True)
class RechunkWork(CopyWork):
    """The array at ``source``, to be stored in other chunks at ``target``."""

    kind: ClassVar[str] = "rechunk"

    def describe(self) -> str:
        how = "" if self.between is None else f" by way of {self.between}"
        return f"rechunk {self.source} to {self.target}{how}"

    # before and after

    def check(self) -> None:
        now = load_array(self.source.store, self.source.path)
        wrong = differences(self.old, now)
        if wrong:
            raise PlanError(
                f"the plan was made for {self.source} as it was: since then its {wrong[0]}; cancel this plan, and make "
                "it again"
            )

    def _mark(self, plan: str) -> Target:
        grids, sharding = self._new_layout.grids, self._new_layout.sharding
        options: dict[str, JSON] = {
            "chunks": _lengths(grids.storage) if sharding is None else list(sharding.chunk_shape),
            "shards": None if sharding is None else _lengths(grids.storage),
            "max_memory": self.max_memory,
        }
        return Target(self.target.store, self.target.path, str(self.source), plan, options, "rechunk")

    def begin(self, plan: str) -> None:
        try:
            self._mark(plan).take(_WAY)
        except OtherConversionError as error:
            anew = "cancelling its plan, or erasing what is there, and calling again"
            raise NodeExistsError(error.in_words(lambda name, value: f"{name}={value}", anew=anew)) from None

    def is_finished(self, plan: str) -> bool:
        try:
            node = find_node(self.target.store, self.target.path, 3)
        except MetadataError:
            return False
        return isinstance(node, ArrayMetadata) and generation_of(node) == plan

    def may_be_finished(self, plan: str) -> bool:
        return holds_node(self.target)  # which held none when the plan was begun

    def finish(self, plan: str, done: Done) -> None:
        member: JSON = {"must_understand": False, "id": plan}
        mark = self._mark(plan)
        if not self.is_finished(plan):
            self.compare_sums(done.found)
            mark.publish({"": replace(self.new, unknown={**self.new.unknown, GENERATION: member})})
        mark.unmark()
        self.erase_between()

    def cancel(self, plan: str) -> None:
        mark = self._mark(plan)
        if mark.is_begun():
            handle = self._target()
            if self.blocks.appends:
                handle.store.wait_for_writers(array_prefix(handle))  # who comes later is not wanted, and sees that
            erase_stored(handle)
            self.erase_between()
            mark.unmark()

    # JSON

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> RechunkWork:
        source, target = places.source(), places.target()
        between = None if places.named["between"] is None else places.target("between")
        return cls(source, target, between, **parts_of(document))


def _lengths(axes: Sequence[Axis]) -> list[JSON]:
    """Return the length of chunks of each axis, or a list of how many there are of which lengths."""
    return [axis.runs[0][0] if axis.is_regular else [list(run) for run in axis.runs] for axis in axes]


def differences(old: ArrayMetadata, now: ArrayMetadata) -> list[str]:
    """Return in words what of an array, as far as its elements and where they are, is not as it was."""
    wrong = []
    if now.shape != old.shape:
        wrong.append(f"shape has become {now.shape}, which was {old.shape}")
    if now.data_type != old.data_type:
        wrong.append(f"data type has become {now.data_type}, which was {old.data_type}")
    for name, words in (
        ("chunk_grid", "chunk grid"),
        ("chunk_key_encoding", "chunk key encoding"),
        ("codecs", "chain of codecs"),
        ("zarr_format", "version of Zarr"),
    ):
        if getattr(now, name) != getattr(old, name):
            wrong.append(f"{words} has become another one")
    if now.fill.tobytes() != old.fill.tobytes():
        wrong.append("fill value has become another one")
    if generation_of(now) != generation_of(old):
        wrong.append("contents were replaced as a whole")
    return wrong


def refuse_taken(target: Place) -> None:
    """Raise :class:`~zardine.errors.ContainsArrayError` where an array is at the place already."""
    try:
        node = find_node(target.store, target.path)
    except MetadataError:
        return
    if isinstance(node, ArrayMetadata):
        raise ContainsArrayError(f"an array is already stored at {describe(target.store, target.path)}: {_WAY}")


def own_folder(folder: str, source: Place, target: Place) -> str:
    """Return a path below ``folder`` that is for this work alone: several may have their arrays between there."""
    name = hashlib.sha256(f"{source}\n{target}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return join_path(folder, f"between-{name}")


__all__ = ["RechunkKeywords", "RechunkWork", "plan_rechunk", "rechunk"]
