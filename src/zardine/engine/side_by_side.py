"""Calls that go to a store that is far away side by side, and elsewhere one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final, Generic, TypeVar

from zardine.engine.freshness import is_far
from zardine.engine.workers import for_each, most_requests
from zardine.stores.base import Store

T = TypeVar("T")
R = TypeVar("R")

_MOST_AHEAD: Final = 4096
"""Nodes of a hierarchy that are held before they are wanted."""


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
    failed: list[Exception] = []

    def make(call: Callable[[], Any]) -> Callable[[], Any]:
        return call if failed else made(call, failed)  # the others, perhaps: after an error as a rule nobody wants them

    return side_by_side(store, [partial(make, call) for call in calls])


def made(call: Callable[[], R], failed: list[Exception] | None = None) -> Callable[[], R]:
    """Make a call now, and return what gives its result, or raises what it has raised, which ``failed`` gets, too."""
    try:
        found = call()
    except Exception as error:
        fault = error
        if failed is not None:
            failed.append(error)

        def fail() -> R:
            raise fault

        return fail
    return lambda: found


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


class Descent(Generic[T, R]):
    """What is directly below the nodes of a hierarchy, one after the other; far away those of a depth wait together.

    What is found ahead is held until it is wanted: some thousand nodes, and then no more is asked for ahead.
    """

    def __init__(
        self,
        store: Store,
        first: T,
        look: Callable[[T], R],
        inner: Callable[[T, R], Iterable[T]],
        *,
        name: Callable[[T], str],
        size: Callable[[R], int],
        most: int = _MOST_AHEAD,
    ) -> None:
        """Begin at ``first``.

        ``look``: finds what is below a node; ``inner``: those of it that have something below them; ``name``: of a
        node; ``size``: how many nodes were found; ``most``: how many are held before they are wanted, about.
        """
        self._look, self._name = look, name
        self._found: dict[str, Callable[[], R]] = {}
        if is_far(store):
            nodes, held, step = [first], 0, 4 * most_requests(store)
            while nodes:
                below: list[T] = []
                for start in range(0, len(nodes), step):
                    if held > most:
                        return
                    some = nodes[start : start + step]
                    for node, result in zip(some, begun(store, [partial(look, node) for node in some]), strict=True):
                        found = self._found[name(node)] = cache(result)
                        with suppress(Exception):  # it is raised to who asks for it
                            below += inner(node, found())
                            held += size(found())
                nodes = below

    def of(self, node: T) -> R:
        """Return what is below a node. Raises what looking for it raised."""
        found = self._found.pop(self._name(node), None)
        return self._look(node) if found is None else found()


__all__ = ["Descent", "begun", "each_begun", "made", "side_by_side"]
