"""Resharding, what both ways have in common: new objects made out of old ones, until no old one has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any, Final, TypeAlias

from zardine.chunk_keys import parse_chunk_key_encoding
from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.engine.read_ahead import window_bytes
from zardine.engine.stored import stored_objects
from zardine.engine.workers import for_each
from zardine.errors import NodeExistsError, UnsupportedError
from zardine.hierarchy.find import describe
from zardine.jobs.places import Place
from zardine.jobs.records import erase_all
from zardine.json_document import Problems
from zardine.limits import check_size, within_memory
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import thread_count
from zardine.stores.base import Store
from zardine.tools.report import Outcome
from zardine.tools.resharding.move import (
    Box,
    block_shape,
    blocks_of,
    box_of,
    move,
    object_bytes,
    region_of,
    sources_of,
)
from zardine.tools.resharding.plan import moves_encoded, new_metadata
from zardine.tools.resharding.state import Journal, Sources, journal_key, key_encodings

MOST_PASSES: Final = 20
_UNKNOWN: Final[Sources] = {"": "unknown"}


@dataclass(frozen=True, slots=True)
class Resharding(Outcome):
    """What :func:`zardine.reshard` did. False where others wrote to old objects when it was too late."""

    objects: int
    """New objects made, those of an earlier run not among them."""
    encoded: bool
    """Whether chunks were moved as they were encoded."""
    passes: int
    """How often old objects were looked at; more than two if others wrote meanwhile."""
    late: tuple[str, ...] = ()
    """Old objects that programs wrote after the switch, which had opened the array before. They are kept."""
    outcome: str = "resharded"
    """``resharded``; ``unchanged`` (it was stored so already); ``finished`` (an earlier run had left nothing to do but
    erase old objects); ``cancelled``; ``nothing`` (there was nothing to cancel)."""

    @property
    def ok(self) -> bool:
        """Whether nobody wrote to old objects when it was too late."""
        return not self.late


def without_copying(outcome: str, late: tuple[str, ...] = ()) -> Resharding:
    """Return the report of a call that made no new objects."""
    return Resharding(0, False, 0, late, outcome)


Noted: TypeAlias = Callable[[ArrayHandle, ArrayHandle, Sources], dict[str, Sources]]
"""Given old and new handle, and what is stored: what went into which new objects, of those that need no second look."""

FirstPass: TypeAlias = Callable[[ArrayMetadata, ArrayMetadata], tuple[int, Noted]]
"""Makes the objects of the second array of the first; gives how many."""


class Run:
    """One call. Objects of the array at ``store`` and ``path`` are made anew at ``target`` and ``target_path``."""

    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        target: Store,
        target_path: str,
    ) -> None:
        self.store, self.path, self.request = store, path, request
        self.target_store, self.target_path = target, target_path
        self.made = self.passes = 0
        self.encoded = False
        self.resumes = False
        self.has_begun = False
        """Whether objects are being made by this run."""
        self.first: FirstPass | None = None
        """Makes the new objects as jobs, before the first pass looks which old ones have changed since."""
        self.noted: Noted | None = None
        """What these jobs noted."""

    def wanted(self, old: ArrayMetadata) -> ArrayMetadata:
        """Return the metadata that the array is to have."""
        planned = self.request.get("planned")
        if planned is not None:
            return replace(old, chunk_grid=planned.chunk_grid, codecs=planned.codecs)
        return new_metadata(prepare_layout(old), **self.request)

    def report(self) -> Resharding:
        """Return what was done."""
        return Resharding(self.made, self.encoded, self.passes)

    def take_up(self, journal: Journal, wanted: dict[str, Any]) -> None:
        """Go on with what an earlier run has begun, if that is what is ``wanted`` now."""
        if journal.about != wanted:
            raise NodeExistsError(
                f"{describe(self.target_store, self.target_path)} is being resharded in another way, or that was "
                "interrupted: call zardine.reshard as before to finish it, with restart=True to begin anew, or with "
                "cancel=True to take it back"
            )
        self.resumes = True

    def copy(self, journal: Journal, old: ArrayMetadata, new: ArrayMetadata) -> int:
        """Make every new object that is not made yet of the old ones as they are now; gives how many."""
        settings = replace(ArrayConfig(), cache=0)
        source = ArrayHandle(self.store, self.path, prepare_layout(old), settings, watched=False)
        target = ArrayHandle(self.target_store, self.target_path, prepare_layout(new), settings, watched=False)
        self.encoded = moves_encoded(source.layout, target.layout)
        if self.resumes and not self.passes:
            _compare(journal, target)
        stored, journal.outside = versions(source)
        if self.noted is not None:
            journal.done |= self.noted(source, target, stored)
            _compare(journal, target)  # jobs may have made what the array, smaller by now, has no more
            self.noted = None
        prefix = f"{source.path}/" if source.path else ""
        changed = 0
        shape = block_shape(source, target, window_bytes() // (2 * thread_count()))
        nbytes = prod(shape) * object_bytes(target)
        at_once = max(1, min(thread_count(), window_bytes() // (2 * nbytes)))

        def exists(coordinates: tuple[int, ...]) -> bool:
            return source.key(coordinates)[len(prefix) :] in stored

        def work(box: Box) -> None:
            place = {"array": target.path, "key": target.key(tuple(each[0] for each in box))}
            with within_memory("new objects", nbytes, **place):
                move(source, target, box, encoded=self.encoded, exists=exists)

        check_size(
            "the list of the new objects", 40 * max((axis.count for axis in target.layout.grids.storage), default=0)
        )
        blocks = blocks_of(target, shape)
        while batch := list(islice(blocks, 4 * at_once)):
            todo: dict[tuple[int, ...], Sources] = {}
            boxes: list[Box] = []
            for block in batch:
                units = list(product(*block))
                more = {unit: what_goes_into(source, target, unit, stored) for unit in units}
                more = {unit: each for unit, each in more.items() if journal.done.get(name_of(unit), {}) != each}
                boxes += [block] if len(more) == len(units) else map(box_of, more)
                todo |= more
            self.has_begun |= bool(todo)
            for_each(work, boxes, len(boxes), at_once)
            for unit, sources in todo.items():
                journal.done[name_of(unit)] = sources
            changed += len(todo)
            self.made += len(todo)
            if todo:
                journal.save_sometimes(self.target_store, self.target_path)
        self.passes += 1
        return changed

    def drop_beyond(self, journal: Journal, new: ArrayMetadata) -> None:
        """Erase new objects that a smaller array no longer has."""
        target = ArrayHandle(self.target_store, self.target_path, prepare_layout(new), ArrayConfig())
        for name in list(journal.done):
            unit = tuple(map(int, name.split("."))) if name else ()
            if not is_inside(target, unit):
                target.store.erase(target.key(unit))
                del journal.done[name]

    def forget(self, journal: Journal, keys: list[str]) -> None:
        """Erase new objects under these ``keys``, and then the journal."""
        journal.phase, journal.done = "copying", {}
        journal.save(self.target_store, self.target_path)
        self.drop_records()
        self.target_store.erase_values(keys)
        self.target_store.erase(journal_key(self.target_path))

    def drop_records(self) -> None:
        """Erase what jobs have recorded, before the journal goes without which it means nothing."""
        erase_all(Place(self.target_store, self.target_path))

    def make_first(self, journal: Journal, old: ArrayMetadata, new: ArrayMetadata) -> None:
        """Make the new objects as jobs."""
        if self.first is None:
            return
        try:
            self.made, self.noted = self.first(old, new)
        finally:
            target = ArrayHandle(self.target_store, self.target_path, prepare_layout(new), ArrayConfig())
            self.has_begun |= next(stored_objects(target), None) is not None


def what_goes_into(source: ArrayHandle, target: ArrayHandle, unit: tuple[int, ...], stored: Sources) -> Sources:
    """Return what goes into a new object, with its shape under ``""``; nothing where nothing of it is stored."""
    box = box_of(unit)
    sources = {key: stored[key] for key in sources_of(source, target, box) if key in stored}
    return {**sources, "": str(region_of(target, box).full_shape)} if sources else {}


def _compare(journal: Journal, target: ArrayHandle) -> None:
    """Set ``journal.done`` right: what is not stored is not done, and of the rest nobody knows what it is made of.

    The journal is written now and then only: a run that was killed may have made more objects than it says.
    """
    stored = {name_of(coordinates) for _, coordinates in stored_objects(target)}
    for name in [name for name in journal.done if name not in stored]:
        del journal.done[name]
    for name in stored:
        journal.done.setdefault(name, _UNKNOWN)


def versions(source: ArrayHandle) -> tuple[Sources, Sources]:
    """Return the versions of all stored objects of an array, by key relative to it; and of those outside its shape."""
    prefix = f"{source.path}/" if source.path else ""
    inside: Sources = {}
    outside: Sources = {}
    try:
        for key, coordinates in stored_objects(source):
            found = inside if is_inside(source, coordinates) else outside
            found[key[len(prefix) :]] = source.store.version(key)
    except UnsupportedError:  # nothing can be listed there: each is asked for
        for coordinates in product(*(range(axis.count) for axis in source.layout.grids.storage)):
            reading = source.store.read(source.key(coordinates), ((0, 0),))
            if reading is not None:
                inside[source.key(coordinates)[len(prefix) :]] = reading.version
    return inside, outside


def keys_elsewhere(store: Store, path: str, journal: Journal, metadata: ArrayMetadata) -> list[str]:
    """Return stored keys of chunks by the encodings of the journal, but not of the document."""
    found: list[str] = []
    for extension in key_encodings(journal):
        if extension != metadata.chunk_key_encoding:
            keys = parse_chunk_key_encoding(extension, Problems())
            if keys is not None:
                source = ArrayHandle(store, path, replace(prepare_layout(metadata), keys=keys), ArrayConfig())
                found += [key for key, _ in stored_objects(source)]
    return found


def is_inside(source: ArrayHandle, coordinates: tuple[int, ...]) -> bool:
    """Whether an object holds elements of the array."""
    return all(i < axis.count for i, axis in zip(coordinates, source.layout.grids.storage, strict=True))


def name_of(unit: tuple[int, ...]) -> str:
    """Return a new object, as the journal calls it."""
    return ".".join(map(str, unit))


__all__ = ["FirstPass", "Noted", "Resharding", "Run"]
