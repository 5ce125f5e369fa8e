"""Running the plan of a tool from within its function, which raises the error of a job as if there were no jobs."""

from __future__ import annotations

from zardine.errors import JobsFailedError
from zardine.jobs.plan import Plan, PlanStatus
from zardine.jobs.running import ExecutorLike
from zardine.tools.progress import Progress


def run_through(
    plan: Plan,
    executor: ExecutorLike | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    finish: bool = True,
) -> PlanStatus:
    """Run a plan to its end, or to that of its jobs.

    Raises what the first job that failed has raised, with its number in a note.
    """
    try:
        return plan.run(executor, workers=workers, progress=progress, finish=finish)
    except JobsFailedError as error:
        cause = error.__cause__
        if cause is None or not error.jobs:
            raise
        if executor is not None or workers not in (None, 1):
            cause.add_note(str(error))
        raise cause from None


__all__ = ["run_through"]
