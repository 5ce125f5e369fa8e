"""Calls that go to a store that is far away side by side, and elsewhere one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from zardine.engine.freshness import is_far
from zardine.engine.workers import for_each, most_requests
from zardine.stores.base import Store

R = TypeVar("R")


def side_by_side(store: Store, calls: Sequence[Callable[[], R]]) -> list[R]:
    """Make all calls, and return what they give. Raises the first error, when those that have begun are at their end.

    Where ``store`` is far away, as many at a time as there are requests worth while.
    """
    if not is_far(store):
        return [call() for call in calls]
    results: list[Any] = [None] * len(calls)

    def make(number: int) -> None:
        results[number] = calls[number]()

    for_each(make, range(len(calls)), len(calls), most_requests(store))
    return results


def begun(store: Store, calls: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
    """Return what gives the results of ``calls``, one for each. Where ``store`` is far away all are made now, together.

    Elsewhere each is made when its result is asked for. What a call raises is raised then, so that of several that fail
    it is the one that would have been raised if they had been made one after the other.
    """
    if len(calls) < 2 or not is_far(store):
        return list(calls)
    return side_by_side(store, [partial(made, call) for call in calls])


def made(call: Callable[[], R]) -> Callable[[], R]:
    """Make a call now, and return what gives its result, or raises what it has raised."""
    try:
        found = call()
    except Exception as error:
        fault = error

        def fail() -> R:
            raise fault

        return fail
    return lambda: found


__all__ = ["begun", "made", "side_by_side"]
