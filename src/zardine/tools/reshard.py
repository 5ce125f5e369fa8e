"""``zardine.reshard``: another shard shape, in place or to a new place, so that the array can be read at any moment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from zardine.creation.options import ChunksLike, CodecLike, CodecsLike, ShardsLike
from zardine.engine.layout import prepare_layout
from zardine.hierarchy.consolidated import outermost
from zardine.hierarchy.find import load_array
from zardine.hierarchy.place import find_place, overlap
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.jobs.records import Done, Records
from zardine.jobs.running import ExecutorLike
from zardine.metadata.documents import ArrayMetadata
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.progress import Progress
from zardine.tools.resharding.elsewhere import Elsewhere
from zardine.tools.resharding.in_place import InPlace
from zardine.tools.resharding.jobs import plan_jobs
from zardine.tools.resharding.plan import SAME, is_same, new_metadata
from zardine.tools.resharding.run import Resharding, without_copying
from zardine.tools.running import run_through

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def reshard(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    shards: ShardsLike = SAME,
    chunks: ChunksLike = None,
    codecs: Iterable[CodecLike] | None = None,
    compressors: CodecsLike = SAME,
    target: StoreLike | None = None,
    target_path: str | None = None,
    grace: float | None = None,
    max_memory: int | str | None = None,
    restart: bool = False,
    cancel: bool = False,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Resharding:
    """Give an array (of Zarr v3) other shards: a shape, ``"auto"``, or ``None`` for none; also other chunks or codecs.

    ``chunks`` is the shape of (inner) chunks, ``codecs`` their whole chain, ``compressors`` its last part; what is not
    given stays. Chunks that keep shape and codecs are moved as the encoded bytes they are. No worker holds more than
    ``max_memory`` (bytes, or a text such as ``"2 GB"``): 1 GiB, or more where one new object takes more.

    Without ``target`` the array changes in place. Whenever this is interrupted, the array reads as before or as after;
    the same call goes on where it was. After a kill at the very end nobody can write to the array until that call, or
    ``cancel``. ``restart`` forgets what was begun, and begins as asked now; ``cancel``, which
    is given alone, erases what was begun, so that all is as before (with ``target``: there, too). Chunks get other
    keys, by the other of the encodings ``default`` and ``v2``. zardine arrays opened before raise
    :class:`~zardine.errors.ArrayChangedError` once it matters. Those who are just writing are waited for; where the
    store does not know them (all but local files and memory), 2.5 seconds, twice. ``grace`` is that number of seconds,
    waited on every store; 0 is right where nobody else has the array open. Other programs must stop writing before, and
    open the array again after.

    ``executor``, ``workers`` and ``progress`` are those of :meth:`zardine.jobs.Plan.run`. What others write meanwhile
    is copied again at the end, at most 20 times: then a :class:`~zardine.errors.PlanError` asks for a pause.

    A ``target`` must be empty: :class:`~zardine.errors.NodeExistsError` is raised where anything is stored. Raises
    :class:`~zardine.errors.CorruptionError` for a shard that has no valid index: see :func:`zardine.repair`.
    """
    if grace is not None and not 0 <= grace < math.inf:
        raise ValueError(f"grace is a number of seconds, 0 or more, not {grace}")
    if cancel and (restart or shards is not SAME or compressors is not SAME or (chunks, codecs) != (None, None)):
        raise ValueError("cancel takes back what was begun: give no shards, chunks, codecs, compressors or restart")
    if not cancel and shards is SAME:
        raise TypeError("shards is missing: a shape, 'auto', or None for none")
    found, inner = place_of(store, path, writing=target is None, storage_options=storage_options)
    request = {"shards": shards, "chunks": chunks, "codecs": codecs, "compressors": compressors}
    run: Elsewhere | InPlace
    source, place = _places(store, found, inner, target, target_path)

    def make(old: ArrayMetadata, new: ArrayMetadata) -> Resharding:
        work = plan_jobs(source, place, old, new, grace, max_memory)
        plan = Plan(work)
        work.count_from(Records(work.home, plan.id).look(details=True) or Done(""))
        result: Resharding | None = run_through(plan, executor, workers=workers, progress=progress).result
        if result is None:  # another process has finished the same
            return without_copying("finished")
        return result

    if target is not None:
        run = Elsewhere(source.store, source.path, request, place.store, place.path, restart, make)
    else:
        run = InPlace(source.store, source.path, request, grace, restart, make)
    return run.cancel() if cancel else run.run()


def plan_reshard(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    shards: ShardsLike,
    chunks: ChunksLike = None,
    codecs: Iterable[CodecLike] | None = None,
    compressors: CodecsLike = SAME,
    target: StoreLike | None = None,
    target_path: str | None = None,
    grace: float | None = None,
    max_memory: int | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan that :func:`zardine.reshard` runs, with the same arguments. Nothing is written.

    Its ``finish`` copies again what others have written meanwhile, keeps writers away for a moment, and switches.
    """
    found, inner = place_of(store, path, writing=target is None, storage_options=storage_options)
    source, place = _places(store, found, inner, target, target_path)
    request: dict[str, Any] = {"shards": shards, "chunks": chunks, "codecs": codecs, "compressors": compressors}
    old = load_array(source.store, source.path)
    if target is None:
        run = InPlace(source.store, source.path, request, grace)
        run.refuse_older_documents()
        if is_same(old, run.wanted(old)):
            raise ValueError(f"{source} is stored so already: there is nothing to plan")
        new = run.target(old)
    else:
        new = new_metadata(prepare_layout(old), **request)
    return Plan(plan_jobs(source, place, old, new, grace, max_memory))


def _places(
    given: StoreLike | Array | Group, store: Store, path: str, target: StoreLike | None, target_path: str | None
) -> tuple[Place, Place]:
    """Return where the array is, and where it is to be."""
    if target is None:
        found = Place.of(*outermost(store, path), given)
        return found, found
    place, place_path = find_place(target, target_path, mode="a")
    if overlap(store, path, place, place_path):
        raise ValueError(
            "the target is the array itself, or one is inside of the other: leave the target out to change the "
            "array in place, or give another place"
        )
    return Place.of(store, path, given), Place.of(place, place_path, target)


__all__ = ["Resharding", "plan_reshard", "reshard"]
