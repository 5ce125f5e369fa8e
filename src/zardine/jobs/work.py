"""What a tool supplies for a plan: stages, what a job does, and how the result comes to count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, TypeAlias

from zardine.errors import MetadataError
from zardine.hierarchy.find import find_node
from zardine.jobs.job import Job, JobDone
from zardine.jobs.places import Place, Places
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done
from zardine.jobs.stages import Stage
from zardine.registry_table import ExtensionTable


@dataclass(frozen=True)
class Forecast:
    """What a plan will take, as far as can be told beforehand."""

    objects: int
    """Stored objects that are written, those in between among them."""
    requests: int
    """Requests for chunks and shards; documents and records come to a few more for each job."""
    bytes_read: int
    bytes_written: int
    sample: str = ""
    """What of it was looked at to say how much is written; empty where that follows from what is stored."""

    def __add__(self, other: Forecast) -> Forecast:
        """Return what both take together."""
        return Forecast(
            self.objects + other.objects,
            self.requests + other.requests,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            "; ".join(filter(None, (self.sample, other.sample))),
        )


def holds_node(place: Place) -> bool:
    """Whether there is a node at a place, be it one that cannot be read."""
    try:
        return find_node(place.store, place.path) is not None
    except MetadataError:
        return True


_COUNTED: Final = 2**16
"""Jobs whose bytes are added one by one."""

Found: TypeAlias = Mapping[int, Mapping[int, Any]]
"""What jobs found, by stage and number."""


class Work(ABC):
    """A long work. A value: it pickles, and holds nothing that changes."""

    kind: ClassVar[str]
    """Its name in files of plans."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what was worked out of them is worked out anew in other processes."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """Jobs by stage. All of one stage are done before the first of the next."""

    @property
    @abstractmethod
    def home(self) -> Place:
        """The node beside which it is recorded what is done."""

    @property
    def is_recorded_here(self) -> bool:
        """Whether records are in the memory of the process that runs the plan: workers give back what they did."""
        return False

    @abstractmethod
    def places(self) -> tuple[Place, ...]:
        """Return all places that are read or written."""

    @abstractmethod
    def check(self) -> None:
        """Raise :class:`~zardine.errors.PlanError` where something is not as it was when this was planned."""

    @abstractmethod
    def begin(self, plan: str) -> None:
        """Prepare the place of the result; ``plan`` is its id. Called again where an earlier call was cut off."""

    @abstractmethod
    def is_finished(self, plan: str) -> bool:
        """Whether the result is there."""

    def may_be_finished(self, plan: str) -> bool:
        """Whether the result may have been there, though others have changed or replaced it since."""
        return self.is_finished(plan)

    @abstractmethod
    def run(self, job: Job) -> JobDone:
        """Do one job. What it writes goes to a store that is :meth:`~zardine.jobs.job.Job.guarded`."""

    @property
    def uses_findings(self) -> bool:
        """Whether jobs are given what those of the stage before found."""
        return False

    def given(self, stage: int, job: int, found: Found) -> Any:
        """Return what a job needs of what those of earlier stages found; pickles."""
        return None

    def idle(self, stage: int, found: Found) -> Ranges:
        """Return the jobs that have nothing to do, by what those of earlier stages found: nobody runs them."""
        return Ranges()

    def seen(self, stage: int, jobs: Ranges, *, surely: bool) -> Iterable[tuple[int, str]]:
        """Yield what jobs would see of the source now, of the stages where that counts; see :class:`JobDone`.

        A job that saw something else, ``surely``, is run again before the result counts. An idle one saw an empty
        text.
        """
        return ()

    def after(self, stage: int, jobs: Ranges) -> dict[int, Ranges]:
        """Return the jobs of other stages that have to run again if these do."""
        return {later: Ranges([(0, len(self.stages[later]))]) for later in range(stage + 1, len(self.stages))}

    def close(self, plan: str) -> bool:
        """Keep writers away from the source until the result counts; whether they were not kept away before.

        Where they were not, what they wrote last is looked for once more; called where nothing is left to do again, and
        where that does not become less. Nothing is done where the source stays.
        """
        return False

    def reopen(self, plan: str) -> None:  # noqa: B027 - most works keep nobody away
        """Let writers in again, after an error."""

    @abstractmethod
    def finish(self, plan: str, done: Done) -> Any:
        """Make the result count, and remove what lay in between; called again where an earlier call was cut off.

        Gives what is to be said of it. Raises :class:`~zardine.jobs.job.OvertakenError` where something has changed
        since the last look: then all is looked at once more.
        """

    def clean(self, plan: str) -> None:  # noqa: B027 - most works leave nothing then
        """Remove what is left of a finished plan where that was cut off when its records were gone already."""

    def lock(self) -> AbstractContextManager[object]:
        """Return a lock of its own, for who finishes or cancels: it is taken before that of the records."""
        return nullcontext()

    def result(self, plan: str) -> Any:
        """Return what a finished plan gives."""
        return None

    @abstractmethod
    def cancel(self, plan: str) -> None:
        """Remove what the jobs have written, so that all is as before; nothing where nothing is begun."""

    @abstractmethod
    def forecast(self) -> Forecast:
        """Say what it takes."""

    @abstractmethod
    def job_bytes(self, stage: int, job: int) -> int:
        """Return decoded bytes that a job handles, for progress."""

    def jobs_bytes(self, stage: int, jobs: Ranges) -> int:
        """Return those of some jobs, which may be millions; about."""
        if len(jobs) <= _COUNTED:
            return sum(self.job_bytes(stage, job) for job in jobs)
        return len(jobs) * self.job_bytes(stage, 0)

    def stage_bytes(self, stage: int) -> int:
        """Return those of all jobs of a stage."""
        return self.jobs_bytes(stage, Ranges([(0, len(self.stages[stage]))]))

    def identity(self) -> dict[str, Any]:
        """Return JSON that tells this work from others: plans of which it is the same go on with one another's jobs."""
        return self.to_json()

    @abstractmethod
    def describe(self) -> str:
        """Say in one line what is made of what."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return it as JSON; the member ``places`` has those of :meth:`places`, and nothing else tells of them."""

    @classmethod
    @abstractmethod
    def from_json(cls, document: Mapping[str, Any], places: Places) -> Work:
        """Return the work that :meth:`to_json` wrote; errors are :class:`~zardine.errors.PlanError`."""


WORKS: Final[ExtensionTable[type[Work]]] = ExtensionTable(
    "plan",
    "zardine.plans",
    {
        "cells": "zardine.vectors.changing.cell_jobs:CellsWork",
        "convert": "zardine.tools.converting.jobs:ConvertWork",
        "export": "zardine.vectors.exchange.export_work:ExportWork",
        "geff": "zardine.vectors.exchange.geff_work:GeffWork",
        "import": "zardine.vectors.exchange.import_work:ImportWork",
        "precomputed": "zardine.vectors.exchange.precomputed.work:PrecomputedWork",
        "rechunk": "zardine.tools.rechunk:RechunkWork",
        "reshard": "zardine.tools.resharding.jobs:ReshardWork",
        "verify": "zardine.tools.checking.work:VerifyWork",
    },
)
"""Kinds of works by name."""

__all__ = ["WORKS", "Forecast", "Found", "Work", "holds_node"]
