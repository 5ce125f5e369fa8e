"""Documents, indexes and headers that claim to be enormous: refused at once, without the memory they ask for.

Each case runs in a process of its own, so that the peak of its memory can be told.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from corrupt.hostile import CASES

MEGABYTES = 32
SECONDS = 0.1  # of processor time, so that a busy machine does not fail the test


@pytest.fixture(scope="module")
def reports() -> dict[str, dict[str, object]]:
    """What each case gave, from one process for all of them: it measures each by itself."""
    run = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, 'tests'); from corrupt.hostile import main; main()"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    return {report["case"]: report for report in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("case", CASES)
def test_hostile_claim(case, reports):
    report = reports[case]
    assert report["outcome"] in CASES[case].outcomes, report
    assert report["megabytes"] < MEGABYTES, report
    assert report["seconds"] < SECONDS, report
