"""A store as one state of what lies in it: what was read once is never read as something else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from threading import Lock
from typing import Final

from zardine.buffers import BytesLike
from zardine.server.viewer.snapshot import ChangedError
from zardine.storage import WrapperStore
from zardine.stores.base import WHOLE, ByteRange, Reading, Store, Version

_serial = count(1)

_MOST_NOTED: Final = 2**16
"""Values whose versions are known; those read longest ago are forgotten."""
_MOST_LOOKED: Final = 256
"""Values that are looked at to tell whether something was changed."""
_MOST_ASKED: Final = 8
"""The same where a look is a request."""


class NobodyWaits(Exception):  # noqa: N818 - no fault: the client went away
    """What is being read is wanted no more."""


class SteadyStore(WrapperStore):
    """Another store, of whose values the versions are noted as they are read.

    Reading raises :class:`ChangedError` where a value is another one than when it was read first, and
    :class:`NobodyWaits` where nobody waits for it.
    """

    def __init__(self, store: Store, gone: Callable[[], bool] | None = None) -> None:
        super().__init__(store, read_only=True)
        self.number = next(_serial)
        self._gone = gone
        self._seen: OrderedDict[str, Version | None] = OrderedDict()
        self._guard = Lock()

    def while_waited_for(self, gone: Callable[[], bool]) -> SteadyStore:
        """Return this state for one who waits until ``gone()``: what that reads is noted here, too."""
        twin = SteadyStore(self._store, gone)
        twin.number, twin._seen, twin._guard = self.number, self._seen, self._guard
        return twin

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        if self._gone is not None and self._gone():
            raise NobodyWaits
        reading = super().read(key, ranges)
        self._note(key, None if reading is None else reading.version)
        return reading

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange]]) -> list[BytesLike | None]:
        return Store.get_partial_values(self, key_ranges)  # by way of our own read

    def check(self) -> None:
        """Raise :class:`ChangedError` where a value that was read first, or lately, is another one now."""
        with self._guard:
            keys = list(self._seen)
        most = _MOST_LOOKED if self.has_cheap_looks else _MOST_ASKED
        chosen = keys if len(keys) <= most else [*keys[: most // 2], *keys[-(most // 2) :]]
        for key in chosen:
            self._note(key, self._store.version(key))

    def _note(self, key: str, version: Version | None) -> None:
        with self._guard:
            known = self._seen.setdefault(key, version)
            if len(self._seen) > _MOST_NOTED:
                self._seen.popitem(last=False)
        if known != version:
            raise ChangedError(f"what is stored at {key!r} was changed")


__all__ = ["NobodyWaits", "SteadyStore"]
