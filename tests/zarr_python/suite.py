"""Run zarr-python's own tests with zardine's codec pipeline beside its default, and print what differs.

::

    python tests/zarr_python/suite.py [FOLDER] [--pipeline=NAME] [--only=tests/test_array.py] [-n2]

FOLDER is the unpacked source package of the installed zarr-python; without one it is fetched from the package index.
Needs what ``tests/interop/zarr_suite`` needs. ``suite_reasons.toml`` lists the tests that pass by default and fail
here, with reasons; docs/zarr-python.md has the same list.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "interop"))
from zarr_suite.__main__ import fetch  # noqa: E402

OURS = "zardine.ZardineCodecPipeline"


def run(source: Path, paths: list[str], pipeline: str, processes: str) -> dict[str, dict[str, Any]]:
    """What came of each test."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        here = [str(HERE), str(HERE.parents[1] / "src")]
        environment = {**os.environ, "ZARR_SUITE_NOTES": str(notes), "PYTHONPATH": os.pathsep.join(here)}
        environment["ZARR_SUITE_PIPELINE"] = pipeline
        # new hypothesis examples would make a difference of their own
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "suite_plugin",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
        ]
        command += ["--continue-on-collection-errors", "--tb=no", "--benchmark-disable", "--hypothesis-seed=0"]
        command += [processes] if processes else []
        subprocess.run([*command, *paths], cwd=source, env=environment, stdout=subprocess.DEVNULL, check=False)
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return {note.pop("test"): note for note in map(json.loads, lines)}


def reasons() -> list[dict[str, Any]]:
    """The listed reasons, with the patterns of the tests that they are for."""
    listed: list[dict[str, Any]] = tomllib.loads((HERE / "suite_reasons.toml").read_text(encoding="utf-8"))["reason"]
    return listed


def main(arguments: list[str]) -> int:
    """Print the counts and the tests that differ; 1 if one of them has no reason."""
    paths = [each.removeprefix("--only=") for each in arguments if each.startswith("--only=")] or ["tests"]
    chosen = [each.removeprefix("--pipeline=") for each in arguments if each.startswith("--pipeline=")] or [OURS]
    processes = next((each for each in arguments if each.startswith("-n")), "")
    given = [each for each in arguments if not each.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(given[0]).resolve() if given else fetch(Path(folder))
        print(f"zarr-python {version('zarr')}, Python {sys.version.split()[0]}")
        default = run(source, paths, "", processes)
        passed = [name for name, note in default.items() if note["outcome"] == "passed"]
        print(f"pass by default: {len(passed):,}", flush=True)
        unlisted = 0
        for pipeline in chosen:
            here = run(source, paths, pipeline, processes)
            failed = [name for name in passed if here.get(name, {}).get("outcome") != "passed"]
            print(f"of these with {pipeline}: {len(passed) - len(failed):,} pass, {len(failed)} do not")
            for name in failed:
                note = here.get(name, {"outcome": "not run", "why": ""})
                reason = next((each["text"] for each in reasons() if re.search(each["pattern"], name)), None)
                unlisted += reason is None
                first = note["why"].strip().splitlines()[:1]
                print(f"  {name}: {note['outcome']}: {''.join(first)[:300]}" + (f" [{reason}]" if reason else ""))
    return int(unlisted > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
