"""Run zarr-python's own tests with zardine in its place, and print what came of them, as tables of Markdown.

::

    python tests/interop/zarr_suite [FOLDER] [--part=indexing] [--all]

FOLDER is the unpacked source package of the installed zarr-python; without one it is fetched from the package index.
Needs Python 3.12 or newer, zarr and the packages of its tests: pytest, pytest-asyncio, pytest-benchmark, hypothesis,
moto, s3fs, tomlkit, and hatchling with hatch-vcs to fetch it.

Each file runs twice: zarr-python by itself, and zardine under the shim (``shim.py``). Of what passes by itself two
kinds of tests are not counted: those in which no code of zardine runs (they test zarr-python's helpers), and those that
cannot be had without zarr-python's inside, listed in ``reasons.toml``. Where an error has other words than there, or a
test of something else waits for a warning that zardine does not give, that alone is no failure. ``--all`` lists every
failure with its message.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REASONS = tomllib.loads((HERE / "reasons.toml").read_text(encoding="utf-8"))
TITLES = {"inside": "Not counted: the test", "on_purpose": "Fails on purpose:", "open": "Open:"}

PARTS = {
    "indexing": ["tests/test_indexing.py"],
    "array": ["tests/test_array.py"],
    "group": ["tests/test_group.py"],
    "api": ["tests/test_api.py", "tests/test_api"],
    "codecs": ["tests/test_codecs"],
    "attributes": ["tests/test_attributes.py"],
    "v2": ["tests/test_v2.py"],
    "resize": ["tests/test_resize.py"],
}


def fetch(folder: Path) -> Path:
    """The unpacked source package of the zarr-python that is installed."""
    wanted = f"zarr=={version('zarr')}"
    options = ["--no-binary", ":all:", "--no-deps", "-d", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options, wanted], check=True)
    (archive,) = folder.glob("zarr-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def run(source: Path, paths: list[str], plain: bool) -> dict[str, dict[str, Any]]:
    """What came of each test."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        here = [str(HERE), str(HERE.parents[2] / "src")]
        environment = {**os.environ, "ZARR_SUITE_NOTES": str(notes), "PYTHONPATH": os.pathsep.join(here)}
        environment["ZARR_SUITE_PLAIN"] = "1" if plain else ""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "shim", "-p", "no:cacheprovider", "-o", "addopts="]
        command += ["--continue-on-collection-errors", "--tb=no", *paths]
        subprocess.run(command, cwd=source, env=environment, stdout=subprocess.DEVNULL, check=False)
        lines = notes.read_text(encoding="utf-8").splitlines()
    return {note.pop("test"): note for note in map(json.loads, lines)}


def reason_of(test: str, why: str) -> tuple[str, str]:
    """Which kind of reason a failure has, and which one."""
    for kind, reasons in REASONS.items():
        for each in reasons:
            if any(re.search(pattern, f"{test} {why}", re.DOTALL) for pattern in each["patterns"]):
                return kind, each["reason"]
    return "open", re.sub(r"0x[0-9a-f]+|\d{5,}", "#", why.strip().replace("\n", " "))[:100]


def main(arguments: list[str]) -> None:
    every = "--all" in arguments
    only = [each.removeprefix("--part=") for each in arguments if each.startswith("--part=")] or list(PARTS)
    given = [each for each in arguments if not each.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(given[0]).resolve() if given else fetch(Path(folder))
        print(f"zarr-python {version('zarr')}, Python {sys.version.split()[0]}\n")
        print("| | pass by themselves | counted | pass with zardine | | with other words |\n|---|---|---|---|---|---|")
        reasons: Counter[tuple[str, str]] = Counter()
        failures: list[str] = []
        sums: Counter[str] = Counter()
        for part in only:
            alone, here = run(source, PARTS[part], True), run(source, PARTS[part], False)
            names = [name for name, note in alone.items() if note["outcome"] == "passed"]
            counted = passed = words = 0
            for name in names:
                note = here.get(name, {"outcome": "error", "why": "not collected", "touched": True})
                good = note["outcome"] == "passed"
                if good and note.get("silent") and "warn" in name:  # a test of nothing but warnings
                    good, note = False, {**note, "why": "DID NOT WARN"}
                if good and not note.get("touched"):
                    continue
                if not good:
                    kind, reason = reason_of(name, note["why"])
                    reasons[kind, reason] += 1
                    if every or kind == "open":
                        failures.append(f"{name}: {note['why'].strip().splitlines()[0][:200] if note['why'] else ''}")
                    if kind == "inside":
                        continue
                counted += 1
                passed += good
                words += bool(good and note.get("other_words"))
            sums.update(alone=len(names), counted=counted, passed=passed, words=words)
            print_row(part, len(names), counted, passed, words)
        print_row("all", sums["alone"], sums["counted"], sums["passed"], sums["words"])
        for kind, title in TITLES.items():
            print(f"\n| {title} | |\n|---|---|")
            for (each, reason), number in reasons.most_common():
                if each == kind:
                    print(f"| {reason} | {number} |")
        if failures:
            print("\nFailures:", *failures, sep="\n  ")


def print_row(part: str, alone: int, counted: int, passed: int, words: int) -> None:
    share = f"{100 * passed / counted:.1f} %" if counted else ""
    print(f"| {part} | {alone:,} | {counted:,} | {passed:,} | {share} | {words:,} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
