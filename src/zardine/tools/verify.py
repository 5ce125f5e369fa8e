"""``zardine.verify`` and ``zardine.plan_verify``: every fault of what is stored, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zardine.hierarchy.place import find_place, is_inside
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.jobs.running import ExecutorLike
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.checking.work import Verification, VerifyWork, plan_described, plan_listed
from zardine.tools.progress import Progress
from zardine.tools.running import run_through

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def verify(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    deep: bool = True,
    records: StoreLike | None = None,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Verification:
    """Look at all that is stored at and below a node, and report every fault with its place.

    Looks at documents of every version of Zarr, consolidated metadata, keys that belong to nothing, the index of each
    shard (size, checksum, bounds, overlaps), and every chunk: with ``deep`` it is decoded, else only sizes and
    checksums that are outermost are checked. Faulty data never raises an error. Nothing is written.

    ``executor``, ``workers`` and ``progress`` are those of :meth:`zardine.jobs.Plan.run`. With ``records``, a place
    for what is done and found, the same call goes on after it was interrupted. About ``window_bytes`` of memory are
    used by each worker. Raises :class:`~zardine.errors.NodeNotFoundError` where nothing at all is stored.
    """
    if records is None:
        found, inner = place_of(store, path, storage_options=storage_options)
        plan = Plan(plan_listed(Place.of(found, inner, store), deep=deep))
    else:
        plan = plan_verify(store, path=path, deep=deep, records=records, storage_options=storage_options)
        assert isinstance(plan.work, VerifyWork)
        if not plan.is_under_way():
            plan.work.forget(plan.id)
    run_through(plan, executor, workers=workers, progress=progress)
    report = plan.result()
    assert isinstance(report, Verification)
    return report


def plan_verify(
    store: StoreLike | Array | Group,
    *,
    path: str | None = None,
    deep: bool = True,
    records: StoreLike | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan that :func:`zardine.verify` runs, with the same arguments; ``plan.result()`` gives the report.

    Without ``records`` what jobs find is kept in the memory of the process that runs the plan, so that it cannot be
    saved.
    """
    found, inner = place_of(store, path, storage_options=storage_options)
    place = None
    if records is not None:
        place = Place.of(*find_place(records, mode="a"), records)
        if is_inside(place.store, place.path, found, inner):
            raise ValueError("the records lie inside of what is verified: give records another place")
    return Plan(plan_described(Place.of(found, inner, store), place, deep=deep))


__all__ = ["Verification", "plan_verify", "verify"]
