"""An array as a page sees it: of one state of what is stored, so that nothing old is mixed with anything new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from threading import Lock
from typing import Any, Final, TypeVar

from zardine.buffers import Ints
from zardine.engine.freshness import check_fresh
from zardine.engine.read_each import SeenChunk, read_each
from zardine.engine.stored import MOST_LISTED, stored_objects
from zardine.errors import ArrayChangedError, StoreError
from zardine.indexing.plan import GridPart, PointPart, PointPlan, plan_grid, plan_points
from zardine.indexing.selection import AxisSlice, GridSelection, PointSelection
from zardine.nodes.array import Array
from zardine.server.viewer.kept import Kept
from zardine.server.viewer.values import Marks

T = TypeVar("T")

_serial = count(1)

_OF_A_CHUNK: Final = 512
_MOST_NOTED: Final = 2**14
"""Objects whose versions are known; those read longest ago are forgotten."""
_MOST_LOOKED: Final = 64
"""Objects that are looked at to tell whether something was changed."""
_MOST_ASKED: Final = 8
"""The same where a look is a request."""


_ABSENT: Final = object()
"""The version of an object that is not stored; ``None`` is that of stored objects in a store without versions."""


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
    _seen: OrderedDict[str, object] = field(default_factory=OrderedDict)
    _guard: Any = field(default_factory=Lock)
    _looking: Any = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.marks = Marks(self.array.metadata)

    def parts(self, starts: tuple[int, ...], stops: tuple[int, ...]) -> Iterator[GridPart]:
        """Yield the parts, one for each stored object, of a plan that takes a block of elements."""
        axes = tuple(AxisSlice(start, 1, stop - start) for start, stop in zip(starts, stops, strict=True))
        nothing = (False,) * len(axes)
        yield from plan_grid(GridSelection(axes, nothing, nothing), self.array._handle.layout.grids).parts()

    def plan(self, coordinates: tuple[Ints, ...]) -> PointPlan:
        """Return the plan of the chunks that have the elements at ``coordinates``, grouped by stored object."""
        points = PointSelection(coordinates, coordinates[0].shape)
        return plan_points(points, self.array._handle.layout.grids)

    def is_absent(self, coordinates: tuple[int, ...]) -> bool:
        """Return whether an object of the grid is known not to be stored."""
        key = self.array._handle.key(coordinates)
        with self._guard:
            if key in self._seen:
                return self._seen[key] is _ABSENT
        listed: frozenset[tuple[int, ...]] | None = self._once.get("listed")
        return listed is not None and coordinates not in listed

    def listed(self) -> frozenset[tuple[int, ...]] | None:
        """Return the grid coordinates of all stored objects, found by one listing when this is first called.

        ``None`` if the store lists nothing, or more than :data:`~zardine.engine.stored.MOST_LISTED` are stored.
        """
        with self._looking:
            return self.once("listed", self._list)

    def _list(self) -> frozenset[tuple[int, ...]] | None:
        if not self.array.store.supports_listing:
            return None
        try:
            found = {place for _, place in islice(stored_objects(self.array._handle), MOST_LISTED + 1)}
        except StoreError:  # one may read, and not list
            return None
        return frozenset(found) if len(found) <= MOST_LISTED else None

    def read(self, part: GridPart | PointPart) -> Generator[SeenChunk]:
        """Yield the chunks of a part, decoded; from the cache if they are there.

        An object that was not stored once is not asked for again. Raises :class:`ChangedError` if an object has another
        version than before, or the array is another one.
        """
        handle = self.array._handle
        if self.is_absent(part.object):
            key = handle.key(part.object)
            yield from (SeenChunk(part.chunk(i), key, None, False) for i in range(part.count))
            return
        known = [self.kept.chunks.get((self.number, part.chunk(i))) for i in range(part.count)]
        kept = [each for each in known if each is not None]
        if len(kept) == part.count and (
            not self.array.store.has_cheap_looks or self.array.store.version(kept[0].key) == kept[0].version
        ):
            yield from kept
            return
        try:
            if not self.array.store.has_cheap_looks:
                with self._looking:  # one thread asks for the document, and the others need not
                    check_fresh(handle)
            for each in read_each(handle, part):
                self._note(each.key, each.version if each.object_is_stored else _ABSENT)
                nbytes = 0
                if each.values is not None:
                    nbytes = each.values.nbytes
                    self.decoded.add()
                if each.object_is_stored:
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
            most = _MOST_LOOKED if self.array.store.has_cheap_looks else _MOST_ASKED
            lately = list(self._seen.items())[-most:]
        for key, known in lately:
            version = self.array.store.version(key)
            self._note(key, _ABSENT if version is None and known is _ABSENT else version)
        for each in list(self.companions.values()):
            try:
                each.check()
            except ChangedError:
                self.is_old = True
                raise

    def _note(self, key: str, version: object) -> None:
        """Raise :class:`ChangedError` if an object has another version than before."""
        with self._guard:
            known = self._seen.pop(key, version)
            self._seen[key] = known
            if len(self._seen) > _MOST_NOTED:
                self._seen.popitem(last=False)
        if known != version:
            self.is_old = True
            raise ChangedError(f"what is stored at {key!r} was changed")


__all__ = ["ChangedError", "Snapshot", "Tally"]
