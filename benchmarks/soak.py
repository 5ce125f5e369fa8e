"""Run all campaigns in full, then again with new seeds: ``make soak``.

A campaign is a test file that asks ``tests/effort.py`` how much to try, has hypothesis draw its examples, or tries a
store by our conformance suite, whose threads do more then. The first round runs all of them, however long it takes;
others follow until the time is over, each with a fresh hypothesis seed. The first failing round stops the run and
prints the command that repeats it. ``ZARDINE_SOAK=1`` is set: nothing is left out, and more is tried.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("property", "corrupt", "fuzz", "concurrency", "crash")
"""Campaigns as a whole; elsewhere single files are."""


def campaigns() -> list[str]:
    """Return the folders and files to run, relative to the repository."""
    tests = ROOT / "tests"
    files = sorted(
        file.relative_to(ROOT)
        for file in tests.rglob("test_*.py")
        if file.relative_to(tests).parts[0] not in FOLDERS
        and any(
            f"\nfrom {name} import" in file.read_text() for name in ("effort", "hypothesis", "zardine.testing.store")
        )
    )
    return [*(f"tests/{name}" for name in FOLDERS), *map(str, files)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    places = campaigns()
    end = time.monotonic() + options.minutes * 60
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        seed = secrets.randbits(32)
        command = ["-m", "pytest", "-n", str(options.jobs), "-x", f"--hypothesis-seed={seed}", *places]
        print(
            f"soak: round {rounds + 1}, seed {seed}, {max(0.0, end - time.monotonic()) / 60:.1f} min left", flush=True
        )
        result = subprocess.run([sys.executable, *command], cwd=ROOT, env=os.environ | {"ZARDINE_SOAK": "1"})
        if result.returncode not in (0, 5):  # 5: nothing was collected
            print(f"soak: failed; to repeat: ZARDINE_SOAK=1 python {' '.join(command)}")
            return result.returncode
        rounds += 1
    print(f"soak: {rounds} rounds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
