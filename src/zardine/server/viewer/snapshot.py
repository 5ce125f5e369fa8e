"""An array as a page sees it: of one state of what is stored, so that nothing old is mixed with anything new."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any, Final, TypeVar

from zardine.engine.freshness import check_fresh
from zardine.engine.read_each import SeenChunk, read_each
from zardine.errors import ArrayChangedError
from zardine.indexing.plan import GridPart, plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection
from zardine.nodes.array import Array
from zardine.server.viewer.kept import Kept
from zardine.server.viewer.values import Marks
from zardine.stores.base import Version

T = TypeVar("T")

_serial = count(1)

_OF_A_CHUNK: Final = 512
_MOST_LOOKED: Final = 64
"""Objects that are looked at to tell whether something was changed."""
_MOST_ASKED: Final = 8
"""The same where a look is a request."""


class ChangedError(Exception):
    """What is stored is not any more what the snapshot has seen."""


class Tally:
    """A number that many threads add to."""

    def __init__(self) -> None:
        self.number = 0
        self._guard = Lock()

    def add(self) -> None:
        """Count one more."""
        with self._guard:
            self.number += 1


@dataclass(slots=True, eq=False)
class Snapshot:
    """One state of an ``array``: the versions of all objects that were read of it since a page opened it."""

    array: Array
    kept: Kept
    number: int = field(default_factory=lambda: next(_serial))
    is_old: bool = False
    """Whether something is known to have changed since."""
    marks: Marks = field(init=False)
    decoded: Tally = field(default_factory=Tally)
    """Chunks that were decoded for the page."""
    companions: dict[str, Snapshot] = field(default_factory=dict)
    """Of arrays that are seen together with this one: the other levels of a pyramid, by their paths."""
    _once: dict[str, Any] = field(default_factory=dict)
    _seen: dict[str, Version | None] = field(default_factory=dict)
    _guard: Any = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.marks = Marks(self.array.metadata)

    def parts(self, starts: tuple[int, ...], stops: tuple[int, ...]) -> Iterator[GridPart]:
        """Yield the parts, one for each stored object, of a plan that takes a block of elements."""
        axes = tuple(AxisSlice(start, 1, stop - start) for start, stop in zip(starts, stops, strict=True))
        nothing = (False,) * len(axes)
        yield from plan_grid(GridSelection(axes, nothing, nothing), self.array._handle.layout.grids).parts()

    def read(self, part: GridPart) -> Iterator[SeenChunk]:
        """Yield the chunks of a part, decoded, out of what is kept where it is there.

        Raises :class:`ChangedError` where an object is another one than before, or the array is.
        """
        known = [self.kept.chunks.get((self.number, part.chunk(i))) for i in range(part.count)]
        kept = [each for each in known if each is not None]
        if len(kept) == part.count and (
            not self.array.store.has_cheap_looks or self.array.store.version(kept[0].key) == kept[0].version
        ):
            yield from kept
            return
        try:
            for each in read_each(self.array._handle, part):
                self._note(each.key, each.version)
                nbytes = 0
                if each.values is not None:
                    nbytes = each.values.nbytes
                    self.decoded.add()
                self.kept.chunks.put((self.number, each.place), each, nbytes + _OF_A_CHUNK)
                yield each
        except ArrayChangedError as error:
            self.is_old = True
            raise ChangedError(str(error)) from None

    def once(self, name: str, find: Callable[[], T]) -> T:
        """Return what ``find`` gave when it was first called for this name."""
        if name not in self._once:
            self._once[name] = find()
        found: T = self._once[name]
        return found

    def check(self) -> None:
        """Raise :class:`ChangedError` where an object that was read lately is another one now."""
        if self.is_old:
            raise ChangedError("it was changed before")
        try:
            check_fresh(self.array._handle, surely=True)
        except ArrayChangedError as error:
            self.is_old = True
            raise ChangedError(str(error)) from None
        with self._guard:
            lately = list(self._seen)[-(_MOST_LOOKED if self.array.store.has_cheap_looks else _MOST_ASKED) :]
        for key in lately:
            self._note(key, self.array.store.version(key))
        for each in list(self.companions.values()):
            try:
                each.check()
            except ChangedError:
                self.is_old = True
                raise

    def _note(self, key: str, version: Version | None) -> None:
        with self._guard:
            known = self._seen.pop(key, version)
            self._seen[key] = known
        if known != version:
            self.is_old = True
            raise ChangedError(f"what is stored at {key!r} was changed")


__all__ = ["ChangedError", "Snapshot", "Tally"]
