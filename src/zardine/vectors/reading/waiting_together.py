"""Calls that wait together for a store that is far away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from zardine.engine.freshness import is_far
from zardine.engine.workers import for_each, most_requests
from zardine.stores.base import Store


def begun(store: Store, calls: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
    """Return what gives the results of ``calls``, one for each. Where ``store`` is far away all are made now, together.

    Elsewhere each is made when its result is asked for. Raises what the calls raise.
    """
    if not is_far(store):
        return list(calls)
    results: list[Any] = [None] * len(calls)

    def make(number: int) -> None:
        results[number] = calls[number]()

    for_each(make, range(len(calls)), len(calls), most_requests(store))
    return [partial(results.__getitem__, number) for number in range(len(calls))]


__all__ = ["begun"]
