"""Resharding, what both ways have in common: what is begun, taken up, forgotten, and left behind by jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from zardine.chunk_keys import parse_chunk_key_encoding
from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.engine.stored import stored_objects
from zardine.errors import NodeExistsError, UnsupportedError
from zardine.hierarchy.find import HIDDEN, describe
from zardine.jobs.places import Place
from zardine.jobs.records import erase_all
from zardine.json_document import Problems
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.tools.report import Outcome
from zardine.tools.resharding.plan import new_metadata
from zardine.tools.resharding.rest import Rest
from zardine.tools.resharding.state import Journal, is_same_about, journal_key, key_encodings, load_journal
from zardine.tools.seen import Buckets

_TOGETHER: Final = 2**14
"""Keys that are erased together."""


@dataclass(frozen=True, slots=True)
class Resharding(Outcome):
    """What :func:`zardine.reshard` did.

    ``bool(report)`` is false if a program that had the array open before wrote to old objects after the switch: see
    ``late``.
    """

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


class Run(ABC):
    """One call. Objects of the array at ``store`` and ``path`` are made anew at ``target`` and ``target_path``."""

    def __init__(
        self,
        store: Store,
        path: str,
        request: dict[str, Any],
        target: Store,
        target_path: str,
        make: Callable[[ArrayMetadata, ArrayMetadata], Resharding] | None = None,
    ) -> None:
        self.store, self.path, self.request = store, path, request
        self.target_store, self.target_path = target, target_path
        self.make = make
        """Makes the second array of the first, to the end."""

    def wanted(self, old: ArrayMetadata) -> ArrayMetadata:
        """Return the metadata that the array is to have."""
        planned = self.request.get("planned")
        if planned is not None:
            grid = prepare_layout(planned).grid.resized(old.shape)
            return replace(old, chunk_grid=grid.to_extension(), codecs=planned.codecs)
        try:
            return new_metadata(prepare_layout(old), **self.request)
        except ValueError:
            if load_journal(self.target_store, self.target_path) is None:
                raise
            return new_metadata(prepare_layout(old), **self.request, has_grown=True)

    def target(self, old: ArrayMetadata) -> ArrayMetadata:
        """Return the metadata by which new objects are written."""
        return self.wanted(old)

    @abstractmethod
    def lock(self) -> AbstractContextManager[object]:
        """Return the lock of the journal."""

    @abstractmethod
    def about(self, metadata: ArrayMetadata) -> dict[str, Any]:
        """Return what the journal has to say for this call to go on with it."""

    @abstractmethod
    def begin(self, journal: Journal | None, metadata: ArrayMetadata) -> Journal:
        """Return the journal to go on with; a new one is stored before anything else is."""

    @abstractmethod
    def cancel(self) -> Resharding:
        """Erase what was begun, so that all is as before. Raises where it is too late."""

    @abstractmethod
    def close(self) -> bool:
        """Keep writers away, where the old objects are to go; whether they were not kept away before."""

    @abstractmethod
    def reopen(self) -> None:
        """Let writers in again."""

    @abstractmethod
    def finish(self, rest: Rest, known: Buckets) -> tuple[str, ...]:
        """Make the new objects count, and remove what is not needed any more. Gives what was written too late.

        Raises :class:`~zardine.jobs.job.OvertakenError` where the array is not what the new objects were made of.
        """

    def take_up(self, journal: Journal, wanted: dict[str, Any], ndim: int) -> None:
        """Go on with what an earlier run has begun, if that is what is ``wanted`` now."""
        if not is_same_about(journal.about, wanted, ndim):
            raise NodeExistsError(
                f"{describe(self.target_store, self.target_path)} is being resharded in another way, or that was "
                "interrupted: call zardine.reshard as before to finish it, with restart=True to begin anew, or with "
                "cancel=True to take it back"
            )

    def make_all(self, journal: Journal | None, metadata: ArrayMetadata) -> Resharding:
        """Go on from the journal, or begin. Where that fails before anything is made nothing is left behind."""
        assert self.make is not None
        fresh = journal is None
        self.begin(journal, metadata)
        try:
            return self.make(metadata, self.target(metadata))
        except BaseException:
            if fresh and not self.has_made(metadata):
                self.cancel()
            raise

    def has_made(self, metadata: ArrayMetadata) -> bool:
        """Whether any new objects are stored, or what they are made of."""
        target = self.handle(self.target_store, self.target_path, self.target(metadata))
        between = self.target_store.list_prefix(self.between)
        return any(next(iter(each), None) is not None for each in (stored_objects(target), between))

    @staticmethod
    def handle(store: Store, path: str, metadata: ArrayMetadata) -> ArrayHandle:
        """Return a handle that looks at no document."""
        settings = replace(ArrayConfig(), cache=0)
        return ArrayHandle(store, path, prepare_layout(metadata), settings, is_shared=False)

    def drop_beyond(self, new: ArrayMetadata) -> None:
        """Erase new objects that the array, smaller by now, does not have."""
        target = self.handle(self.target_store, self.target_path, new)
        counts = [axis.count for axis in target.layout.grids.storage]

        def beyond() -> Iterator[str]:
            for key, coordinates in stored_objects(target):
                if any(i >= count for i, count in zip(coordinates, counts, strict=True)):
                    yield key

        with suppress(UnsupportedError):
            erase_some(self.target_store, beyond)

    def forget(self, journal: Journal, keys: Callable[[], Iterable[str]]) -> None:
        """Erase new objects under these ``keys``, and then the journal."""
        journal.phase = "copying"
        journal.save(self.target_store, self.target_path)
        self.drop_traces()
        erase_some(self.target_store, keys)
        self.target_store.erase(journal_key(self.target_path))

    @property
    def between(self) -> str:
        """What keys of arrays between begin with."""
        return join_path(self.target_path, f"{HIDDEN}/between/")

    def drop_traces(self) -> None:
        """Erase what jobs have recorded, and then what lies between, which means nothing without."""
        erase_all(Place(self.target_store, self.target_path))
        self.target_store.erase_prefix(self.between)


def erase_some(store: Store, keys: Callable[[], Iterable[str]]) -> None:
    """Erase all ``keys``, some thousands at a time: asked for anew each time, since erasing may disturb a listing."""
    while some := list(islice(iter(keys()), _TOGETHER)):
        store.erase_values(some)


def keys_elsewhere(store: Store, path: str, journal: Journal, metadata: ArrayMetadata) -> Iterator[str]:
    """Yield stored keys of chunks by the encodings of the journal, but not of the document."""
    for extension in key_encodings(journal):
        if extension != metadata.chunk_key_encoding:
            keys = parse_chunk_key_encoding(extension, Problems())
            if keys is not None:
                source = ArrayHandle(store, path, replace(prepare_layout(metadata), keys=keys), ArrayConfig())
                yield from (key for key, _ in stored_objects(source))


__all__ = ["Resharding", "Run"]
