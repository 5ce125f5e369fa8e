"""Worker processes of our own: when they start, and what they have by then."""

from __future__ import annotations

from typing import Any

import pytest

from zardine.jobs.running import runner_of

LOADED = "'{}' in __import__('sys').modules"


def test_all_workers_import_what_jobs_need_before_the_first_comes() -> None:
    """A stage may have one job: the others are not to begin with importing when the next stage does."""
    runner: Any
    with runner_of(None, 2, "zardine.tools.converting.jobs") as runner:
        assert runner._pool is None
        first = runner.submit(eval, LOADED.format("zardine.tools.converting.jobs"))
        assert len(runner._pool._processes) == 2
        assert first.result()
        assert not runner.submit(eval, LOADED.format("zardine.tools.resharding.jobs")).result()


@pytest.mark.parametrize("workers", [0, -1, 10**6, 10**20])
def test_numbers_of_workers_that_are_none(workers: int) -> None:
    """So many processes would all be begun, with the first job."""
    refused = pytest.raises(ValueError, match=f"processes of this machine, from 1 to 1024, not {workers}")
    with refused, runner_of(None, workers, "zardine.tools.converting.jobs"):
        pass
