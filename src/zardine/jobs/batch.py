"""Which part of a plan is meant by the array variables of batch systems: Slurm, PBS, Grid Engine, LSF, AWS Batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from zardine.errors import PlanError

_SYSTEMS: Final = (
    ("Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"),
    ("Grid Engine", "SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"),
    ("LSF", "LSB_JOBINDEX", "", "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP"),
    ("PBS", "PBS_ARRAY_INDEX", "", "", ""),
    ("Torque", "PBS_ARRAYID", "", "", ""),
)
"""Names of the variables: the number of this job; the first, the last and the step of all."""
_AWS: Final = ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE")


_SLURM_COUNT: Final = "SLURM_ARRAY_TASK_COUNT"


def part_of(environment: Mapping[str, str], count: int | None = None) -> tuple[int, int] | None:
    """Return the number of this job, counted from 1, and how many there are; ``None`` outside of a job array.

    With ``count`` there are so many, whatever the batch system says, and the number is the one that it gives: so some
    jobs of an array can be run again, and systems that do not say how many there are can be used.
    Raises :class:`~zardine.errors.PlanError` where a batch system does not say how many there are, or its jobs are a
    list with gaps.
    """
    if all(environment.get(name, "").isdigit() for name in _AWS):
        return int(environment[_AWS[0]]) + 1, int(environment[_AWS[1]]) if count is None else count
    for system, own, first, last, step in _SYSTEMS:
        number = environment.get(own, "")
        if not number.isdigit() or (system == "LSF" and number == "0"):
            continue
        if count is not None:
            return int(number), count
        end = environment.get(last, "")
        if not end.isdigit():
            raise PlanError(
                f"{system} says that this is job {number} ({own}), and not of how many: give --part /N, where N is "
                "the number of parts, and number the jobs from 1 on"
            )
        begin, stride = environment.get(first, "1"), environment.get(step, "1")
        start = int(begin) if begin.isdigit() else 1
        each = int(stride) if stride.isdigit() and int(stride) else 1
        part, parts = (int(number) - start) // each + 1, (int(end) - start) // each + 1
        listed = environment.get(_SLURM_COUNT, "")
        if system == "Slurm" and listed.isdigit() and int(listed) != parts:
            raise PlanError(
                f"Slurm runs {listed} jobs of the array, a list with gaps, so that nobody knows of how many parts job "
                f"{number} is one: give --part /N, where N is the number of parts, and number the jobs from 1 on"
            )
        return part, parts
    return None


__all__ = ["part_of"]
