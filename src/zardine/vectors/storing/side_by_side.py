"""Calls that go to a store that is far away side by side, and elsewhere one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


__all__ = ["side_by_side"]
