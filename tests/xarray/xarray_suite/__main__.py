"""Run xarray's own tests of its Zarr backend with zardine in its place, and print what came of them.

::

    python tests/xarray/xarray_suite [WORDS] [--plain] [--all]

These are the tests of ``xarray.tests.test_backends``, which the package brings, that ``-k Zarr`` picks; ``WORDS`` pick
others. Needs xarray, Dask, zarr, pytest and pytest-asyncio. They run twice: with xarray's own backend (or once, with
``--plain``), and under the shim (``shim.py``). ``reasons.toml`` tells why others fail that
pass with its own.
``--all`` lists every failure with its message.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
REASONS = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))
TITLES = {
    "inside": "It looks at the inside of zarr-python:",
    "on_purpose": "Fails on purpose:",
    "open": "Open:",
}


def run(words: str, plain: bool) -> dict[str, tuple[str, str]]:
    """Return for each test what came of it, and why."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        here = [str(HERE), str(HERE.parents[2] / "src")]
        environment = {**os.environ, "XARRAY_SUITE_NOTES": str(notes), "PYTHONPATH": os.pathsep.join(here)}
        environment["XARRAY_SUITE_PLAIN"] = "1" if plain else ""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "shim", "-p", "no:cacheprovider", "-o", "addopts="]
        command += ["-p", "no:warnings", "--tb=no", "--pyargs", "xarray.tests.test_backends", "-k", words]
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return {note["test"]: (note["outcome"], note["why"]) for note in map(json.loads, lines)}


def reason_of(test: str, why: str) -> tuple[str, str]:
    """Return which kind of reason a failure has, and which one."""
    for kind, reasons in REASONS.items():
        for each in reasons:
            if any(re.search(pattern, f"{test} {why}", re.DOTALL) for pattern in each["patterns"]):
                return kind, each["reason"]
    return "open", "no reason is known"


def main(arguments: list[str]) -> None:
    words = next((each for each in arguments if not each.startswith("--")), "Zarr")
    print(f"xarray {version('xarray')}, zarr {version('zarr')}, Python {sys.version.split()[0]}")
    own = run(words, True)
    counted = [test for test, (outcome, _) in own.items() if outcome == "passed"]
    print(f"{len(counted):,} pass with xarray's own backend", flush=True)
    if "--plain" in arguments:
        return
    ours = run(words, False)
    failed = {test: ours.get(test, ("", "not run"))[1] for test in counted if ours.get(test, ("",))[0] != "passed"}
    reasons = {test: reason_of(test, why) for test, why in failed.items()}
    passed = len(counted) - len(failed)
    print(f"{passed:,} of them pass with zardine: {100 * passed / max(1, len(counted)):.1f} %")
    for kind, title in TITLES.items():
        listed = Counter(reason for each, reason in reasons.values() if each == kind)
        if listed:
            print(
                f"\n| {title} | |\n|---|---|", *(f"| {why} | {many} |" for why, many in listed.most_common()), sep="\n"
            )
    for test, why in failed.items():
        if "--all" in arguments or reasons[test][0] == "open":
            print(f"\n{test}\n    {why[:400]}")


if __name__ == "__main__":
    main(sys.argv[1:])
