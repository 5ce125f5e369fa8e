"""What all exports by jobs have in common: a level, which must stay as it was, and a place that is written to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from zardine.errors import PlanError, ZardineError
from zardine.jobs.job import Job
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.jobs.work import Work
from zardine.stores.path import StorePath
from zardine.vectors.exchange.level_cuts import state_of
from zardine.vectors.exchange.unfinished import folder_of
from zardine.vectors.storing.store import Level, VectorStore

EXPORT: Final = "export"
"""What the hidden folder of exports is called."""


@dataclass(frozen=True)
class LevelWork(Work):
    """A level of a store, to be written in a format to ``target``."""

    source: Place
    level: int
    state: str
    """Digest of what the level was like."""
    format: str
    target: Place
    replaced: str | None
    """Digest of what is at the target now, which this takes the place of; ``None``: nothing."""

    @property
    def home(self) -> Place:
        return self.target

    def places(self) -> tuple[Place, ...]:
        return (self.source, self.target)

    def hidden(self, plan: str) -> str:
        """Return what the keys begin with of what is made in between."""
        return folder_of(self.target, EXPORT, plan)

    @property
    def path(self) -> StorePath:
        """Where the level is read."""
        return StorePath(self.source.store, self.source.path)

    @cached_property
    def plan_id(self) -> str:
        """The id of the plan."""
        return Plan(self).id

    def opened(self) -> Level:
        """Return the level as it is now."""
        return VectorStore.open(self.path).level(self.level)

    def changed(self) -> PlanError:
        """Return what is raised where the level is another one by now."""
        return PlanError(f"{self.source} has changed since its export was planned: plan it anew")

    def check(self) -> None:
        try:
            state = state_of(self.opened())
        except (OSError, ZardineError) as error:
            raise PlanError(f"{self.source} cannot be read any more ({error}): plan its export anew") from None
        if state != self.state:
            raise self.changed()

    @property
    def options(self) -> dict[str, Any]:
        """Say as JSON what is asked for."""
        return {"format": self.format}

    def facts(self) -> dict[str, Any]:
        """Return what is noted beside what is made in between."""
        source = {"path": str(self.source), "level": self.level, "state": self.state}
        return {"source": source, "options": self.options, "replaced": self.replaced}

    def identity(self) -> dict[str, Any]:
        return {name: each for name, each in self.to_json().items() if name != "memory"}

    def to_json(self) -> dict[str, Any]:
        return {
            "places": {"source": self.source.to_json(), "target": self.target.to_json()},
            "level": self.level,
            "state": self.state,
            "format": self.format,
            "replaced": self.replaced,
        }


def steps_of(job: Job, total: int) -> Callable[[float], None]:
    """What tells of a share of a job as the bytes that are done since it told last."""
    done = 0

    def step(share: float) -> None:
        nonlocal done
        now = int(total * min(1.0, share))
        if now > done:
            job.advance(now - done)
            done = now

    return step


__all__ = ["EXPORT", "LevelWork", "steps_of"]
