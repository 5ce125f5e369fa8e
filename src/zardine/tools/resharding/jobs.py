"""Resharding as jobs: an array is copied into new objects, which count once no old one has changed since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Final

from zardine.engine.freshness import generation_of
from zardine.engine.layout import prepare_layout
from zardine.errors import ArrayNotFoundError, MetadataError, NodeExistsError, PlanError
from zardine.hierarchy.find import find_node, load_array
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.records import Done
from zardine.metadata.documents import ArrayMetadata
from zardine.settings import parse_bytes
from zardine.stores.file_seam import files_to_edit
from zardine.tools.copying.array_blocks import blocks_for, item_size_of, least_memory, share_of, with_more_jobs
from zardine.tools.copying.between import default_between
from zardine.tools.copying.move import moves_encoded
from zardine.tools.copying.work import CopyWork, parts_of
from zardine.tools.resharding.elsewhere import Elsewhere
from zardine.tools.resharding.in_place import InPlace
from zardine.tools.resharding.rest import Rest
from zardine.tools.resharding.run import Resharding, Run
from zardine.tools.resharding.state import (
    BegunMeanwhileError,
    Journal,
    is_same_about,
    is_same_storage,
    load_journal,
    members,
)
from zardine.tools.seen import Buckets

_JOB_BYTES: Final = 2**26
"""Bytes of elements that a job handles at least, where there are as many; more where it has to."""
_LEAST_JOBS: Final = 16
"""Jobs of an array that is smaller."""
_MOST_JOBS: Final = 2**20
_MEMORY: Final = 2**30
"""Bytes of memory of a worker, where the user says nothing else; more where one new object takes more."""


@dataclass
class _Look:
    """What the process that finishes has seen of the source, and has made itself. No part of the plan."""

    rest: Rest
    known: Buckets
    passes: int = 0
    before: Done = field(default_factory=lambda: Done(""))
    """What earlier runs had done."""


@dataclass(frozen=True)
class ReshardWork(CopyWork):
    """The array at ``source``, to be stored in other shards at ``target``: the same place, or another one.

    ``new`` is, in place, of keys of another encoding. The source may be written, and resized, meanwhile.
    """

    kind: ClassVar[str] = "reshard"

    grace: float | None = None

    _CHANGED: ClassVar[str] = (
        "the plan was made for {} as it was: since then its chunks have been stored in another way; cancel this plan, "
        "and make it again"
    )

    @property
    def in_place(self) -> bool:
        """Whether the new objects replace the old ones."""
        return self.source == self.target

    @property
    def encoded(self) -> bool:
        return self._encoded

    @cached_property
    def _encoded(self) -> bool:
        return moves_encoded(self._old_layout, self._new_layout)

    @property
    def looks(self) -> int:
        return 3 if self.in_place else 1  # before and after writers are kept away, and before erasing

    @property
    def _watches(self) -> bool:
        return False

    def describe(self) -> str:
        return f"reshard {self.source} {'in place' if self.in_place else f'to {self.target}'}"

    # the jobs

    def run(self, job: Job) -> JobDone:
        return super().run(replace(job, is_wanted=_both(job.is_wanted, self._is_open)))

    def _is_open(self) -> bool:
        """Whether the new objects do not count yet."""
        journal = load_journal(self.target.store, self.target.path)
        return journal is not None and journal.phase in ("copying", "closing") and self._is_ours(journal)

    def _is_ours(self, journal: Journal) -> bool:
        return is_same_about(journal.about, self._about(), self.old.ndim)

    def _about(self) -> dict[str, Any]:
        return self._runner().about(self.old)

    @cached_property
    def _look(self) -> _Look:
        return _Look(Rest(self.old.shape), Buckets())

    def _new_look(self) -> Buckets:
        self._look.passes += 1
        self._look.known = Buckets()
        return self._look.known

    # before and after

    def _runner(self) -> Run:
        request = {"planned": self.new}
        if self.in_place:
            return InPlace(self.source.store, self.source.path, request, self.grace)
        return Elsewhere(self.source.store, self.source.path, request, self.target.store, self.target.path)

    def check(self) -> None:
        try:
            now = load_array(self.source.store, self.source.path)
        except (ArrayNotFoundError, MetadataError) as error:
            raise PlanError(f"the plan was made for {self.source}, which cannot be read any more: {error}") from None
        if not self._is_as_planned(now):
            raise PlanError(self._CHANGED.format(self.source))

    def _is_as_planned(self, now: ArrayMetadata) -> bool:
        is_same = is_same_storage(members(self.old), members(now), now.ndim)
        return is_same and generation_of(now) == generation_of(self.old)

    def begin(self, plan: str) -> None:
        runner = self._runner()
        journal = load_journal(self.target.store, self.target.path)
        if journal is not None and journal.phase != "beginning" and self._is_ours(journal):
            return
        if isinstance(runner, InPlace):
            runner.refuse_older_documents()
        while True:
            with suppress(BegunMeanwhileError), runner.lock():
                journal = load_journal(self.target.store, self.target.path)
                now = load_array(self.source.store, self.source.path)
                if journal is None and self.in_place:
                    self._refuse_changed(now)
                runner.begin(journal, now)
                return

    def _refuse_changed(self, now: ArrayMetadata) -> None:
        """Refuse to begin where another has finished the same since the last look, or has resharded in another way."""
        if is_same_storage(members(now), members(self.new), now.ndim):
            raise NodeExistsError(f"{self.target} was resharded just now, as planned: there is nothing left to do")
        if not self._is_as_planned(now):
            raise PlanError(self._CHANGED.format(self.source))

    def is_finished(self, plan: str) -> bool:
        store, path = self.target.store, self.target.path
        try:
            node = find_node(store, path, 3)
        except MetadataError:
            return False
        return isinstance(node, ArrayMetadata) and is_same_storage(members(node), members(self.new), node.ndim)

    def close(self, plan: str) -> bool:
        runner = self._runner()
        with runner.lock():
            if self.is_finished(plan):
                return False
            now = load_array(self.source.store, self.source.path)
            source = runner.handle(self.source.store, self.source.path, now)
            target = runner.handle(self.target.store, self.target.path, runner.target(now))
            self._note_ends(now.shape)
            made = self._look.rest.make(source, target, encoded=self.encoded)
            return runner.close() or made

    def _note_ends(self, shape: tuple[int, ...]) -> None:
        """Note in the journal at which ends no job makes the objects, for who goes on after this process."""
        rest, journal = self._look.rest, load_journal(self.target.store, self.target.path)
        if journal is None:
            return
        rest.look(shape, journal.moved)
        if any(rest.moved) and journal.moved != rest.moved:
            journal.moved = rest.moved
            journal.save(self.target.store, self.target.path)

    def reopen(self, plan: str) -> None:
        self._runner().reopen()

    def finish(self, plan: str, done: Done) -> Resharding:
        if not self.is_finished(plan):
            self.compare_sums(done.found)
        look = self._look
        late = self._runner().finish(look.rest, look.known)
        return Resharding(self._made_since(look.before, done) + look.rest.made, self.encoded, look.passes, late)

    def clean(self, plan: str) -> None:
        journal = load_journal(self.target.store, self.target.path)
        if journal is not None and self._is_ours(journal):
            self._runner().finish(self._look.rest, self._look.known)

    def lock(self) -> AbstractContextManager[object]:
        return self._runner().lock()  # in which zardine.reshard runs its plan

    def count_from(self, before: Done) -> None:
        """Count as made what was not done ``before``."""
        self._look.before = before

    def _made_since(self, before: Done, done: Done) -> int:
        last = len(self.stages) - 1
        old, new = before.found.get(last, {}), done.found.get(last, {})
        seen = [each.seen.get(last, {}) for each in (before, done)]
        made = (job for job in new if job not in old or seen[0].get(job) != seen[1].get(job))
        return sum(new[job][1] for job in made)

    def cancel(self, plan: str) -> None:
        self._runner().cancel()

    # JSON

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "grace": self.grace}

    def identity(self) -> dict[str, Any]:
        """Return what tells this work from others: waiting, and attributes, which others may change, do not."""
        found = {name: each for name, each in self.to_json().items() if name != "grace"}
        for name in ("old", "new"):
            found[name] = {**found[name], "attributes": None}
        return found

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> ReshardWork:
        in_place = places.named["source"] == places.named["target"]
        source = places.source(mode="r+" if in_place else "r")
        target = source if in_place else places.target()
        between, grace = places.named["between"], document["grace"]
        if between is not None:
            between = Place(source.store, between["path"], source.url) if in_place else places.target("between")
        if grace is not None and not (isinstance(grace, (int, float)) and 0 <= grace < 10**6):
            raise PlanError(f"grace is a number of seconds, not {grace!r}")
        return cls(source, target, between, **parts_of(document), grace=grace)


def plan_jobs(
    source: Place,
    target: Place,
    old: ArrayMetadata,
    new: ArrayMetadata,
    grace: float | None = None,
    max_memory: int | str | None = None,
) -> ReshardWork:
    """Return the work, cut into jobs. Nothing is written.

    Raises ``ValueError`` where ``max_memory`` is given, and a chunk or a new object does not fit.
    """
    before, after = prepare_layout(old), prepare_layout(new)
    encoded, share = moves_encoded(before, after), share_of((source.store, target.store))
    memory = _MEMORY if max_memory is None else parse_bytes(max_memory)
    nbytes = prod(old.shape) * item_size_of(before)
    wanted = max(nbytes // _MOST_JOBS, min(_JOB_BYTES, nbytes // _LEAST_JOBS))
    appends = files_to_edit(target.store) is not None
    if max_memory is None:
        memory = max(memory, least_memory(before, after, share, appends=appends, encoded=encoded))
    blocks = blocks_for(before, after, memory, share, appends=appends, encoded=encoded)
    blocks = with_more_jobs(before, after, blocks, wanted, encoded=encoded)
    between = default_between(target) if blocks.between else None
    return ReshardWork(source, target, between, old, new, blocks, memory, grace)


def _both(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() and other()


__all__ = ["ReshardWork", "plan_jobs"]
