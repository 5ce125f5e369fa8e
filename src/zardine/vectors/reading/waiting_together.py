"""Calls that wait together for a store that is far away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zardine.engine.freshness import is_far
from zardine.engine.workers import for_each, most_requests
from zardine.stores.base import Store


def begun(store: Store, calls: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
    """Return what gives the results of ``calls``, one for each. Where ``store`` is far away all are made now, together.

    Elsewhere each is made when its result is asked for. What a call raises is raised then, so that of several that fail
    it is the one that would have been raised if they had been made one after the other.
    """
    if not is_far(store) or len(calls) < 2:
        return list(calls)
    made: list[tuple[Any, Exception | None]] = [(None, None)] * len(calls)

    def make(number: int) -> None:
        try:
            made[number] = calls[number](), None
        except Exception as error:
            made[number] = None, error

    def result_of(number: int) -> Callable[[], Any]:
        def result() -> Any:
            found, error = made[number]
            if error is not None:
                raise error
            return found

        return result

    for_each(make, range(len(calls)), len(calls), most_requests(store))
    return [result_of(number) for number in range(len(calls))]


__all__ = ["begun"]
