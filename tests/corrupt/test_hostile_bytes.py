"""Nothing that is stored makes anything of zardine take gigabytes, run a program, or fail with a foreign error.

Everything is done with specimens of each kind in one process with a limit of memory, once with the kernel and once
without.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import zardine
from corrupt.hostile_bytes import actions, specimens
from effort import SOAK

NAMES = [name for name, _ in specimens("unused")]


@pytest.fixture(scope="module", params=("kernel", "python"))
def reports(request, tmp_path_factory):
    """What came of each specimen and action, and how much memory it took."""
    if (request.param == "kernel") != (zardine.__kernel__ is not None) and not SOAK:
        pytest.skip("`make test` tries this in its other run, with the kernel or without it")
    folder = tmp_path_factory.mktemp("hostile")
    code = "import sys; sys.path.insert(0, 'tests'); from corrupt.hostile_bytes import main; main(sys.argv[1])"
    environment = {**os.environ, "ZARDINE_KERNEL": "1" if request.param == "kernel" else "0"}
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=900, env=environment
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "SystemError" not in run.stderr, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_everything_was_tried(reports):
    assert {report["specimen"] for report in reports} == set(NAMES)
    assert {report["action"] for report in reports} == set(actions())


def test_no_foreign_error(reports):
    assert [report for report in reports if report["outcome"].startswith("foreign")] == []


def test_memory_is_bounded(reports):
    assert [report for report in reports if report["megabytes"] > report["most"]] == []


def test_no_program_is_run(reports):
    assert [report for report in reports if report["ran"]] == []


def test_what_is_refused_says_where_and_why(reports):
    for report in reports:
        if report["action"] not in ("read", "partial") or report["outcome"] == "ok":
            continue
        assert report["outcome"] in report["refused"], report
        if report["outcome"] == "ChunkTooLargeError":
            assert "limits." in report["text"], report
            assert "takes" in report["text"], report
            assert "key '" in report["text"], report


def test_a_hostile_chunk_is_never_read(reports):
    """But for a few that hold right values all the same, and documents without any."""
    read = {report["specimen"] for report in reports if report["action"] == "read" and report["outcome"] == "ok"}
    assert read <= {"text-count"}, read
