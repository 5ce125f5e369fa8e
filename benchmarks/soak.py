"""Run the randomised tests again and again with new seeds: ``make soak``.

Each round runs the folders below, and the kernel's fuzzer, with a fresh hypothesis seed; the first failing round stops
the run and prints the command that repeats it. ``ZARDINE_SOAK=1`` is set, for tests that then want to try more.
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
FOLDERS = ("property", "corrupt", "fuzz", "concurrency", "crash", "tools")
FUZZER = "kernel/test_fuzz_kernel.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    places = [f"tests/{name}" for name in (*FOLDERS, FUZZER) if (ROOT / "tests" / name).exists()]
    if not places:
        print("soak: no randomised tests yet")
        return 0
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
