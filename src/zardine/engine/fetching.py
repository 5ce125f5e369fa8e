"""Fetching objects from a store that is far: the look at the document that is due is a request beside the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import is_known
from zardine.engine.workers import for_each
from zardine.indexing.plan import ObjectPart


def fetch_each(
    handle: ArrayHandle, parts: Sequence[ObjectPart], keys: Sequence[str], fetch: Callable[[int], object], requests: int
) -> None:
    """Call ``fetch`` with the number of each of ``parts``, so many at a time, and look at the document if that is due.

    It is not where all indexes are remembered: what was fetched may say that nothing has changed. Raises as
    :func:`~zardine.engine.freshness.check_fresh`, and what ``fetch`` raises.
    """
    due = not (handle.store.has_cheap_looks or handle.watch.is_recent) and not is_known(handle, parts, keys)

    def work(number: int) -> None:
        if number < 0:
            check_fresh(handle)
        else:
            fetch(number)

    numbers = range(-1 if due else 0, len(parts))
    for_each(work, numbers, len(numbers), max(requests, 2) if due else requests)


__all__ = ["fetch_each"]
