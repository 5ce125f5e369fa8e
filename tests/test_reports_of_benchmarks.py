"""The reports of ``make bench``: what stands in them is what was measured, and long works are called as they can be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from effort import SOAK

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=BENCHMARKS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def rounds(*milliseconds: float, memory: int = 30_000_000, **more: Any) -> list[dict[str, Any]]:
    return [{"seconds": each / 1000, "memory": memory, **more} for each in milliseconds]


def reported(folder: Path, records: dict[str, Any], long: dict[str, str] | None = None) -> str:
    about: dict[str, Any] = {"system": "Linux", "threads": 2, "python": "3", "kernel": "in use", "rounds": 3}
    about |= {"versions": {"zardine": "1"}, "build": "b"}
    stored = {"about": about, "records": records, "builds": dict.fromkeys(records, "b"), "long": long or {}}
    (folder / "results.json").write_text(json.dumps(stored))
    return run("report.py", str(folder), "--print")


def lines_with(text: str, begin: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(begin)]


def test_medians_have_least_and_most_beside_them_and_memory_is_of_all(tmp_path: Path) -> None:
    peer = rounds(50, 40, 45, memory=1_400_000)
    records = {"read/lz4/64k": {"zardine": rounds(20, 30, 25), "tensorstore": peer, "limit": rounds(20, 21, 22)}}
    text = reported(tmp_path, records)
    wanted, limit, memory = lines_with(text, "| read all, 64 KB, lz4 |")
    assert "| **25** (20 – 30) | 45 (40 – 50) | 1.80 × (tensorstore) | ≥ 1.5 | PASS |" in wanted
    assert "| 21 (20 – 22) | 1.19 | 2.14 |" in limit
    assert memory.endswith("| 30 | 1 |")
    assert "Geometric mean of the 1 ratios: 1.80, least 1.80." in text
    assert "What is missed" not in text


def test_what_is_missed_is_told_by_what_was_measured(tmp_path: Path) -> None:
    peer = rounds(26, 24, 25)
    records = {
        "read/lz4/64k": {"zardine": rounds(20, 25, 20), "zarrs": peer, "limit": rounds(19)},
        "read/lz4/8k": {"zardine": rounds(20), "zarrs": rounds(100)},
    }
    told = lines_with(reported(tmp_path, records), "- **read all")
    assert told == [
        "- **read all, 64 KB, lz4**: 1.25 × instead of 1.5, against zarrs; by rounds from 0.96 to 1.30. zardine takes"
        " 1.05 times the limit, and the limit itself would be 1.32 ×: what is wanted takes decoding less."
    ]
    records["read/lz4/64k"]["zardine"] = rounds(5, wrong="all of it")
    assert "its result was wrong: all of it." in reported(tmp_path, records)


def test_one_round_has_no_spread(tmp_path: Path) -> None:
    text = reported(tmp_path, {"append/lz4": {"zardine": rounds(1), "zarr": rounds(3)}})
    assert lines_with(text, "| append a row, lz4 |")[0].startswith("| append a row, lz4 | **1** | 3 |")


def test_works_with_scripts_of_their_own_are_in_the_report(tmp_path: Path) -> None:
    long = {"far/s3": "a table of far", "appending/disk": "of appends", "jobs/two": "of jobs", "vectors/near": "-"}
    text = reported(tmp_path, {}, long)
    for title, said in (("Far away", "a table of far"), ("Appending", "of appends"), ("Long works", "of jobs")):
        assert said in text[text.index(f"## {title}") :]
    code = (
        "import json, report, run; groups = {name.partition('/')[0] for name in run.LONG} - {'vectors'}; "
        "assert groups == set(report.LONG), groups; print(json.dumps(run.LONG))"
    )
    for script, *told in json.loads(run("-c", code)).values():
        assert (BENCHMARKS / script).exists()
        text = (BENCHMARKS / script).read_text()
        for option in told:
            assert not option.startswith("--") or f'"{option}"' in text


def test_figures_that_are_wanted_of_vectors(tmp_path: Path) -> None:
    """Small, and in one process: nothing is said of times and memory."""
    pytest.importorskip("zarr_vectors")
    code = (
        "import sys, json, vectors_wanted as w; from pathlib import Path; w.LINES = w.LEVELLED = 400; "
        "w.APPENDS = w.REPEATS = 2; w.alone = lambda name, *args, **options: w._call(name, args, options); "
        "w.POINTS, w.SIDE, w.HELD = 500, 9, 8; w.OF_A_FILE = {'LAZ': 300, 'TRK': 400}; folder = Path(sys.argv[1]); "
        "[print(json.dumps(each)) for name in w.CASES for each in w.CASES[name][1](folder, 2)]"
    )
    found: dict[str, Any] = {}
    for line in run("-W", "ignore", "-c", code, str(tmp_path)).splitlines():
        found |= json.loads(line)
    assert {"the next ones, bytes of documents read", "a pyramid of four levels of 500 points, memory"} <= set(found)
    assert sum(name.startswith("import of") for name in found) == 8
    assert found["the next ones, bytes of documents read"][0] == 0
    for name in ("ten lines added to a million, requests", "9 x 9 x 9 cells into shards, memory"):
        value, _, most = found[name]
        assert value >= 0
        assert most
    code = (
        "from vectors_wanted import *; print(said([2.0, 1, 3], 's'), wanted(1e9, 'B'), verdict([1.0, 3], 2), sep='|')"
    )
    assert run("-c", code).strip() == "2 s (1 – 3)|≤ 1000 MB|PASS"
    text = reported(tmp_path, {}, {"vectors/wanted-shards": "### In and out of shards"})
    assert "## What is wanted in figures" in text


def test_times_are_shown_with_their_units() -> None:
    code = (
        "from tables import *; print(shown(5.1e-5), shown(0.00052), shown(0.0345), shown(0.1234), shown(0.9999), "
        "shown(12.34), spread([0.03, 0.05, 0.04]), spread([0.9, 1.2, 0.8]), spread([0.02]), sep=', ')"
    )
    expected = "51 µs, 520 µs, 34.5 ms, 123 ms, 1 s, 12.3 s, 40 ms (30 – 50), 900 ms (800 ms – 1.2 s), 20 ms"
    assert run("-c", code).strip() == expected


@pytest.mark.skipif(not SOAK, reason="a part of `make soak`")
def test_requests_far_away_are_counted() -> None:
    """The table of ``docs/stores.md``, of a few steps and of zardine alone: against the log of the server."""
    pytest.importorskip("moto")
    pytest.importorskip("obstore")
    steps = ("known", "cold", "warm", "kept", "line")
    text = run(
        "far.py",
        "--python",
        sys.executable,
        "--only",
        "zardine",
        "--server",
        "moto",
        "--latency",
        "0.005",
        "--steps",
        *steps,
    )
    for step, (requests, size) in {
        "open an array, format known": (1, "1.0 KB"),
        "one inner chunk, cold": (1, "262.8 KB"),
        "another one of the same shard": (1, "8.2 KB"),
        "the same one again, where chunks are kept": (1, "0 B"),
        "a line through 12 shards": (12, "3.2 MB"),
    }.items():
        cells = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith(f"| {step} |")]
        assert cells[0].startswith(f"{requests}, {size}, "), (step, cells)
        assert cells[1].isdigit()  # the peak memory
