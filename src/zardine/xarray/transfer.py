"""Values on their way into arrays: those in memory at once, those of Dask in its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import sleep
from typing import Any

from zardine.nodes.array import Array
from zardine.tools.progress import Progress, Steps

Index = tuple[slice, ...]

_EVERY = 0.2
"""Seconds between two questions to a cluster."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Values, of NumPy or Dask, and the place in an array where they go."""

    values: Any
    array: Array
    region: Index

    @property
    def is_lazy(self) -> bool:
        """Whether Dask computes the values."""
        return hasattr(self.values, "dask")


def write_values(transfers: Sequence[Transfer], progress: Progress | None, options: Mapping[str, Any]) -> None:
    """Write all values; ``progress`` is called with the number of pieces done, and of all.

    A piece is what one task of Dask writes, or a variable in memory. ``options`` go to :func:`dask.compute`.
    """
    ready = [each for each in transfers if not each.is_lazy]
    lazy = [each for each in transfers if each.is_lazy]
    values = delayed_store(lazy) if lazy else None
    tasks = [] if values is None else [key for key in values.__dask_graph__() if _is_piece(key)]
    steps = Steps(progress, len(ready) + len(tasks))
    if progress is not None:
        steps(0)
    for each in ready:
        write_now(each)
        steps()
    if values is None:
        return
    if progress is None:
        values.compute(**options)
    else:
        _compute(values, tasks, steps, options)


def write_now(transfer: Transfer) -> None:
    """Write values that are in memory."""
    transfer.array[transfer.region or ...] = transfer.values


def delayed_store(transfers: Sequence[Transfer]) -> Any:
    """Return a ``Delayed`` that writes the values of Dask; those in memory must have been written."""
    from zardine.dask import store

    sources, targets = [each.values for each in transfers], [each.array for each in transfers]
    return store(sources, targets, regions=[each.region for each in transfers], compute=False)


def _compute(values: Any, tasks: Sequence[tuple[Any, ...]], steps: Steps, options: Mapping[str, Any]) -> None:
    """Compute the writing, counting the tasks that are done: here in a callback, of a cluster by asking it."""
    from dask.callbacks import Callback

    client = _client() if "scheduler" not in options else None
    if client is not None:
        future = client.compute(values, **options)
        groups, known = {str(key[0]) for key in tasks}, 0
        while not future.done():
            sleep(_EVERY)
            done = min(len(tasks), client.run_on_scheduler(_done, groups=groups))
            steps(max(0, done - known))
            known = max(done, known)
        future.result()
        steps(len(tasks) - known)
        return

    def count(key: Any, *_: Any) -> None:
        if _is_piece(key):
            steps()

    with Callback(posttask=count):
        values.compute(**options)


def _done(dask_scheduler: Any, groups: set[str]) -> int:
    """Return how many tasks of some names a scheduler has done; it runs this."""
    found = [group.states for name, group in dask_scheduler.task_groups.items() if name in groups]
    return sum(states["memory"] + states["released"] + states["forgotten"] for states in found)


def _client() -> Any:
    """Return the client of a cluster that computes by default, if there is one."""
    try:
        from distributed import default_client

        return default_client()  # type: ignore[no-untyped-call]
    except (ImportError, ValueError):
        return None


def _is_piece(key: Any) -> bool:
    return isinstance(key, tuple) and str(key[0]).startswith("zardine-write-")
