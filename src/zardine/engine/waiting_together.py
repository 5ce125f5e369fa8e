"""Calls that wait together for a store that is far away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from zardine.engine.freshness import is_far
from zardine.engine.workers import for_each, most_requests
from zardine.stores.base import Store

T = TypeVar("T")
R = TypeVar("R")


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


def each_begun(store: Store, call: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, Callable[[], R]]]:
    """Yield ``items``, each with what gives the result of ``call``: as :func:`begun`, far away after going through all.

    What going through them raises is raised when those before that were given.
    """
    if not is_far(store):
        yield from ((item, partial(call, item)) for item in items)
        return
    there: list[T] = []
    fault: Exception | None = None
    try:
        there.extend(items)
    except Exception as error:
        fault = error
    yield from zip(there, begun(store, [partial(call, item) for item in there]), strict=True)
    if fault is not None:
        raise fault


__all__ = ["begun", "each_begun"]
