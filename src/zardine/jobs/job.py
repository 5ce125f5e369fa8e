"""One job as a work sees it: what it is given, what it says of itself, and a target that refuses what is late."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, PlanError, ZardineError
from zardine.json_document import JSON
from zardine.stores.base import Condition, Reading, Store, Version
from zardine.stores.wrappers.wrapper import WrapperStore


class OvertakenError(ZardineError):
    """Another worker, or an earlier one, has written what this job was about to: it has to be done anew."""


class NotWantedError(ZardineError):
    """The plan was finished or cancelled while the job ran: what it made is dropped."""


def _ignore(nbytes: int) -> None:
    """Tell nobody."""


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class JobDone:
    """What a job gives back."""

    seen: str = ""
    """What it saw of the source, where that counts; see :meth:`~zardine.jobs.work.Work.seen`."""
    found: JSON = None
    """What it found out, for jobs of the next stage and for ``finish``."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as it is run."""

    stage: int
    number: int
    given: Any = None
    """What :meth:`~zardine.jobs.work.Work.given` gave it of what the stage before found."""
    advance: Callable[[int], object] = _ignore
    """Told of the decoded bytes that are done within the job, where it runs in the process that shows progress."""
    is_wanted: Callable[[], bool] = _always
    """Whether the plan is under way still."""
    looks: bool = False
    """Whether there may be objects of an earlier run of the job: then the versions of these are looked up first."""
    targets: list[GuardedStore] = field(default_factory=list, compare=False, repr=False)
    """Through which it has written until now."""

    def share(self) -> Any:
        """Return what the job was given. Raises :class:`~zardine.errors.PlanError` where that is nothing at all."""
        if self.given is None:
            raise PlanError(
                f"job {self.number} of stage {self.stage + 1} was not given what the stage before has found: run it as "
                "plan.job(number), or by plan.run_part"
            )
        return self.given

    def guarded(self, store: Store, keys: Iterable[str]) -> GuardedStore:
        """Return ``store`` for what this job writes under ``keys``: to be asked for before the source is read.

        What is written takes the place of nothing that was stored since then, and is stored only while the plan is
        under way: whoever finishes a plan may remove what a late job reads, so it must not write what it read.
        """
        there = {key: store.read(key, ((0, 0),)) for key in keys} if self.looks else {}
        guarded = GuardedStore(store, self, there)
        self.targets.append(guarded)
        return guarded

    def take_back(self, is_cancelled: Callable[[], bool]) -> None:
        """Remove what was stored through :meth:`guarded`, as far as nobody has replaced it."""
        for each in self.targets:
            each.take_back(is_cancelled)


class GuardedStore(WrapperStore):
    """The target of a part of a job. Looks once whether that is wanted: when the first value is written."""

    def __init__(self, store: Store, job: Job, there: dict[str, Reading | None]) -> None:
        super().__init__(store)
        self._job, self._there, self._looked = job, there, False
        self._written: list[tuple[str, Version | None]] = []  # which threads may add to at the same time

    @property
    def stored(self) -> int:
        """How many values were stored."""
        return len(self._written)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        self._look()
        old = self._there.get(key)
        if condition is None:
            condition = self.condition_on(key, old)
        try:
            version = super().set(key, value, condition=condition)
        except ConditionFailedError as error:
            raise OvertakenError(str(error)) from error
        self._written.append((key, version))
        return version

    def erase(self, key: str) -> None:
        self._look()
        old = self._there.get(key)
        try:
            if old is not None:
                super().erase_version(key, old.version)
            elif self.exists(key):
                raise OvertakenError(f"{key} of {self.store} was stored meanwhile")
        except ConditionFailedError as error:
            raise OvertakenError(str(error)) from error

    def take_back(self, is_cancelled: Callable[[], bool]) -> None:
        """Remove the values that were stored, where the store tells their versions and they are there still.

        Where locks are not exclusive the same bytes, stored anew, may have the same version. They are not removed from
        there once the plan is begun again, which is looked for before each.
        """
        for key, version in self._written:
            if version is None:
                continue
            if not self._store.lock_is_exclusive and not is_cancelled():
                return
            with suppress(ConditionFailedError), self._store.lock(key):
                self._store.erase_version(key, version)

    def _look(self) -> None:
        if not self._looked:
            if not self._job.is_wanted():
                raise NotWantedError("the plan was finished or cancelled meanwhile")
            self._looked = True


MOST_TRIES: Final = 8
"""How often a job is begun anew since others write what it does."""

__all__ = ["MOST_TRIES", "GuardedStore", "Job", "JobDone", "NotWantedError", "OvertakenError"]
