"""``zardine.verify`` from a page: lines of JSON, how far it is, then what was found. It ends when nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import Event
from typing import Any, Final

import zardine
from zardine.nodes.array import Array
from zardine.server.served import Served
from zardine.server.threads import in_thread
from zardine.server.viewer.facts import as_json
from zardine.tools.checking.coordinates import touched
from zardine.tools.report import Fault

_BETWEEN: Final = 0.1
"""Seconds between two lines."""
_MOST_FAULTS: Final = 1000


class _Gone(Exception):  # noqa: N818 - no fault: the client went away
    """Nobody waits for the result."""


async def verification(served: Served, path: str) -> AsyncIterator[bytes]:
    """Yield lines of JSON: ``{"done": 3, "total": 10}``, and at the end ``faults`` with their places in the array."""
    gone = Event()
    steps = [0, 0]

    def advance(done: int, total: int) -> None:
        steps[:] = done, total
        if gone.is_set():
            raise _Gone

    def work() -> dict[str, Any]:
        try:
            found = zardine.verify(served.store, path=served.key(path), progress=advance)
        except _Gone:
            return {}
        faults = [_placed(served, each) for each in found.faults[:_MOST_FAULTS]]
        return {
            "done": steps[0],
            "total": steps[1],
            "faults": faults,
            "fault_count": len(found.faults),
            "notes": [str(each) for each in found.notes[:_MOST_FAULTS]],
            "objects": found.objects,
            "chunks": found.chunks,
            "nbytes": found.nbytes,
        }

    task = asyncio.ensure_future(in_thread(work))
    try:
        while not (await asyncio.wait({task}, timeout=_BETWEEN))[0]:
            yield as_json({"done": steps[0], "total": steps[1]}) + b"\n"
        error = task.exception()
        yield as_json(task.result() if error is None else {"error": f"{type(error).__name__}: {error}"}) + b"\n"
    finally:
        gone.set()


def _placed(served: Served, fault: Fault) -> dict[str, Any]:
    """Return a fault, with the block of elements that it touches where that is known."""
    facts: dict[str, Any] = {"text": str(fault), "kind": fault.kind, "path": fault.place.strip("/"), "key": fault.key}
    inner = fault.place.strip("/")
    if served.path:
        inner = inner.removeprefix(served.path).strip("/")
    facts["path"] = inner
    array = served.node(inner)
    if not isinstance(array, Array):
        return facts
    block = touched(array._handle.layout, array.path, fault)
    if block is not None:
        facts["start"] = [part.start for part in block]
        facts["shape"] = [part.stop - part.start for part in block]
    return facts


__all__ = ["verification"]
