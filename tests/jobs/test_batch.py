"""What the array variables of batch systems mean."""

from __future__ import annotations

import pytest

from zardine.errors import PlanError
from zardine.jobs.batch import part_of


@pytest.mark.parametrize(
    ("environment", "part"),
    [
        ({}, None),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "64"}, (3, 64)),
        ({"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "9"}, (1, 10)),
        (
            {
                "SLURM_ARRAY_TASK_ID": "7",
                "SLURM_ARRAY_TASK_MIN": "1",
                "SLURM_ARRAY_TASK_MAX": "9",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
            (4, 5),
        ),
        ({"SGE_TASK_ID": "undefined"}, None),
        ({"SGE_TASK_ID": "2", "SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "4", "SGE_TASK_STEPSIZE": "1"}, (2, 4)),
        ({"LSB_JOBINDEX": "0"}, None),
        ({"LSB_JOBINDEX": "5", "LSB_JOBINDEX_END": "8"}, (5, 8)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "0", "AWS_BATCH_JOB_ARRAY_SIZE": "12"}, (1, 12)),
    ],
)
def test_the_part(environment: dict[str, str], part: tuple[int, int] | None) -> None:
    assert part_of(environment) == part


SLURM = {"SLURM_ARRAY_TASK_ID": "17", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "17"}


@pytest.mark.parametrize(
    ("environment", "part"),
    [
        ({}, None),
        ({"PBS_ARRAY_INDEX": "3"}, (3, 64)),
        ({"PBS_ARRAYID": "64"}, (64, 64)),
        (SLURM | {"SLURM_ARRAY_TASK_COUNT": "2"}, (17, 64)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "0", "AWS_BATCH_JOB_ARRAY_SIZE": "12"}, (1, 64)),
    ],
)
def test_the_part_of_so_many(environment: dict[str, str], part: tuple[int, int] | None) -> None:
    assert part_of(environment, 64) == part


def test_lists_of_jobs_with_gaps_are_refused() -> None:
    assert part_of(SLURM | {"SLURM_ARRAY_TASK_COUNT": "15"}) == (15, 15)
    with pytest.raises(PlanError, match=r"runs 2 jobs of the array.* job 17 .*give --part /N"):
        part_of(SLURM | {"SLURM_ARRAY_TASK_COUNT": "2"})


def test_pbs_does_not_say_how_many_there_are() -> None:
    with pytest.raises(PlanError, match=r"job 3 \(PBS_ARRAY_INDEX\).* give --part /N"):
        part_of({"PBS_ARRAY_INDEX": "3"})
