"""A short run of the fuzzer; ``make soak`` runs it for longer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from effort import SOAK

pytest.importorskip("zardine._kernel")

ENTRIES = [
    *("decode, bytes", "decode, file", "decode_points, bytes", "decode_points, file"),
    *("decode_box, bytes", "decode_box, file"),
    *("encode, bytes", "encode, file", "Python codecs", "shard index"),
]


def test_hostile_bytes(tmp_path: Path) -> None:
    script, trace = Path(__file__).with_name("fuzz_kernel.py"), tmp_path / "batch"
    effort = ["--seconds", "60"] if SOAK else ["--inputs", "40000", "--seed", "1"]
    run = subprocess.run(
        [sys.executable, script, *effort, "--trace", trace], capture_output=True, text=True, timeout=300
    )
    batch = trace.read_text() if trace.exists() else "before the first batch"
    assert run.returncode == 0, f"{batch}\n{run.stdout}{run.stderr}"
    for entry in ENTRIES:
        counts = re.search(rf"([\d,]+) {entry} +([\d,]+) accepted", run.stdout)
        assert counts, run.stdout
        given, accepted = (int(count.replace(",", "")) for count in counts.groups())
        assert given > 500
        assert 0.1 < accepted / given < 0.9
