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


def part_of(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the number of this job, counted from 1, and how many there are; ``None`` outside of a job array.

    Raises :class:`~zardine.errors.PlanError` where a batch system does not say how many there are.
    """
    if all(environment.get(name, "").isdigit() for name in _AWS):
        return int(environment[_AWS[0]]) + 1, int(environment[_AWS[1]])
    for system, own, first, last, step in _SYSTEMS:
        number = environment.get(own, "")
        if not number.isdigit() or (system == "LSF" and number == "0"):
            continue
        end = environment.get(last, "")
        if not end.isdigit():
            raise PlanError(
                f"{system} says that this is job {number} ({own}), and not of how many: give --part {number}/N"
            )
        begin, stride = environment.get(first, "1"), environment.get(step, "1")
        start = int(begin) if begin.isdigit() else 1
        each = int(stride) if stride.isdigit() and int(stride) else 1
        return (int(number) - start) // each + 1, (int(end) - start) // each + 1
    return None


__all__ = ["part_of"]
