"""A plugin of pytest that runs zarr-python's own tests with another codec pipeline, and notes what came of each.

``ZARR_SUITE_PIPELINE`` names the pipeline (empty: zarr-python's default), ``ZARR_SUITE_NOTES`` the file to write: a
line of JSON for each test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

PIPELINE = os.environ["ZARR_SUITE_PIPELINE"]
NOTES = Path(os.environ["ZARR_SUITE_NOTES"])

if PIPELINE:
    import zarr

    if PIPELINE.startswith("zardine."):
        import zardine.zarr_python

        zardine.zarr_python.enable()
    zarr.config.set({"codec_pipeline.path": PIPELINE})
    defaults = zarr.config.defaults[0]["codec_pipeline"]
    defaults["path"] = PIPELINE  # what a test resets the configuration to


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A warning of a fallback is no failure, where tests make errors of warnings."""
    if PIPELINE.startswith("zardine."):
        for item in items:
            item.add_marker(pytest.mark.filterwarnings("ignore:an array is read and written by zarr-python's own"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):  # type: ignore[no-untyped-def]
    """Note the outcome of the test, or of what it is set up with."""
    report = (yield).get_result()
    if report.when == "call" or report.outcome != "passed":
        why = "" if call.excinfo is None else f"{call.excinfo.typename}: {call.excinfo.value}"
        xfailed = hasattr(report, "wasxfail")
        note = {"test": item.nodeid, "outcome": "xfailed" if xfailed else report.outcome, "why": why[:2000]}
        with NOTES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
