"""What a tool supplies for a plan: stages, what a job does, and how the result comes to count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from zardine.jobs.places import Place
from zardine.jobs.ranges import Ranges
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

    @abstractmethod
    def run(self, stage: int, job: int) -> str:
        """Do one job. Gives what it saw of the source (see :meth:`seen`), or an empty text."""

    def seen(self, stage: int, jobs: Iterable[int]) -> dict[int, str]:
        """Return what each of some jobs would see of the source now, of the stages where that counts; see :meth:`run`.

        A job that saw something else is run again before the result counts.
        """
        return {}

    def after(self, stage: int, jobs: Ranges) -> dict[int, Ranges]:
        """Return the jobs of later stages that have to run again if these do."""
        return {later: Ranges([(0, len(self.stages[later]))]) for later in range(stage + 1, len(self.stages))}

    @abstractmethod
    def finish(self, plan: str) -> None:
        """Make the result count, and remove what lay in between. Called again where an earlier call was cut off."""

    @abstractmethod
    def cancel(self, plan: str) -> None:
        """Remove what the jobs have written, so that all is as before; nothing where nothing is begun."""

    @abstractmethod
    def forecast(self) -> Forecast:
        """Say what it takes."""

    @abstractmethod
    def job_bytes(self, stage: int, job: int) -> int:
        """Return decoded bytes that a job handles, for progress."""

    @abstractmethod
    def describe(self) -> str:
        """Say in one line what is made of what."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return it as JSON; the member ``places`` has those of :meth:`places`, and nothing else tells of them."""

    @classmethod
    @abstractmethod
    def from_json(
        cls,
        document: Mapping[str, Any],
        *,
        storage_options: Mapping[str, Any] | None,
        target_options: Mapping[str, Any] | None,
    ) -> Work:
        """Return the work that :meth:`to_json` wrote; errors are :class:`~zardine.errors.PlanError`."""


WORKS: Final[ExtensionTable[type[Work]]] = ExtensionTable(
    "plan", "zardine.plans", {"rechunk": "zardine.tools.rechunking.work:RechunkWork"}
)
"""Kinds of works by name."""

__all__ = ["WORKS", "Forecast", "Work"]
