"""Vectors beside other programs: the same lines and points, written and asked for by all of them, in one run.

    python benchmarks/vectors_beside.py [--rounds 5] [--lines 10000] [--points 1000000]
    python benchmarks/vectors_beside.py far [--latency 0.03]

The programs are zardine and zarr-vectors 0.9.2, both with and without shards, trx-python (lines), geopandas with
GeoParquet, and laspy (points); what each does is told in ``vector_programs.py``. Each round runs all of them, in turn,
and starts with another one, each in a process of its own that has done every step on a few elements before. A step is
repeated for half a second, 20 times at most, and gives its median; tables have the median over the rounds, and the
least and the most. What boxes and ids find is compared. *Memory* is the most resident memory during a step beyond what
was held before it. The files are in ``--folder`` (``/dev/shm`` where that is).

``far`` does the same with a bucket of S3, behind a proxy in which each request waits; it also counts the requests. Each
step has a process of its own, which has read nothing before. The server is versitygw, or moto where that could not be
built (``far_server.py``), on the same processors. trx-python and laspy have no way into a bucket.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import far_server
from distance import Distance
from tables import megabytes, spread
from tables import table as markdown
from vector_programs import FAR, PROGRAMS, STEPS, TAKES, Lines, Points, Program
from worker import peak, reset_peak

ROOT = Path(__file__).resolve().parent.parent
OWN = "" if "bench-venv" in sys.prefix else str(ROOT / "src")
"""Where zardine is, unless it is installed."""
NOUNS = {"lines": "lines of 50 vertices with a value each", "points": "points with an intensity"}
REPEATS = {"write": 3, "pyramid": 1}
"""Of other steps at most 20."""
BUDGET = 0.5
"""Seconds for one step in a round."""
Found = dict[str, list[dict[str, Any]]]
"""What was seen of each step in each round."""


def data_of(kind: str, count: int, seed: int = 0) -> Lines | Points:
    return (Lines if kind == "lines" else Points)(count, seed)


def work(name: str, kind: str, count: int, folder: Path, steps: list[str], bucket: tuple[str, str] | None) -> None:
    """Do steps in this process; a line of JSON tells of each, and the next begins when a line comes in."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=folder) as small:
        _warm(PROGRAMS[name](Path(small), data_of(kind, 200), None), steps)
    program = PROGRAMS[name](folder, data_of(kind, count), bucket)
    for step in steps:
        if program.takes(step, lines=program.lines):
            print("ready", flush=True)
            sys.stdin.readline()
            try:
                told: dict[str, Any] = _timed(program, step, once=bucket is not None)
            except Exception as error:
                told = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps({"step": step} | told), flush=True)
            sys.stdin.readline()


def _warm(program: Program, steps: list[str]) -> None:
    """Do the steps with a few elements: what is loaded with the first use is no matter of size or distance."""
    program.write()
    for step in steps:
        if step != "write" and program.takes(step, lines=program.lines):
            getattr(program, step)()


def _timed(program: Program, step: str, *, once: bool) -> dict[str, Any]:
    seconds: list[float] = []
    found = None
    before = reset_peak()
    most = 1 if once else REPEATS.get(step, 20)
    while len(seconds) < most and sum(seconds) < BUDGET:
        if step == "write" and not once:
            program.clear()
        begin = time.perf_counter()
        found = getattr(program, step)()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": median(seconds), "memory": max(0, peak() - before), "found": found}


def measure(command: list[str], found: Found, limit: float, proxy: Any = None) -> None:
    """Run one worker for so many seconds, and note what it says, with the requests that came to a proxy meanwhile."""
    environment = os.environ | ({"PYTHONPATH": OWN} if OWN else {})
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        timer = threading.Timer(limit, process.kill)
        timer.start()
        for line in process.stdout:
            if line.startswith("{"):
                told = json.loads(line)
                if proxy is not None:
                    told["requests"] = len(proxy.requests)
                if "error" in told:
                    print(f"{command[3]}, {told['step']}: {told['error']}", file=sys.stderr)
                found.setdefault(told["step"], []).append(told)
            if proxy is not None:
                proxy.requests.clear()
            process.stdin.write("\n")
            process.stdin.flush()
        timer.cancel()
        errors = process.stderr.read()
        if code := process.wait():
            print(f"{command[3]}, {command[4]}: ended with {code}\n{errors[-1500:]}", file=sys.stderr)


def near(kind: str, count: int, options: argparse.Namespace) -> dict[str, Found]:
    """All rounds of all programs on a local file system."""
    names = [name for name in TAKES[kind] if not options.only or name in options.only]
    columns: dict[str, Found] = {name: {} for name in names}
    for turn in range(options.rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                steps = ",".join(step for step in STEPS if not options.steps or step in options.steps)
                about = [name, kind, str(count), folder, steps]
                measure([sys.executable, __file__, "--work", *about], columns[name], options.limit)
    return columns


def far(kind: str, count: int, options: argparse.Namespace, server: Any) -> dict[str, Found]:
    """All rounds of the programs that can, on a bucket far away."""
    names = [name for name in TAKES[kind] if name in FAR and (not options.only or name in options.only)]
    columns: dict[str, Found] = {name: {} for name in names}
    for turn in range(options.rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            proxy = Distance(int(server.url.rpartition(":")[2]), options.latency)
            bucket = server.new_bucket()
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                for step in STEPS:
                    # all else is done with what is written
                    wanted = not options.steps or step in ("write", *options.steps)
                    if not wanted or not PROGRAMS[name].takes(step, lines=kind == "lines"):
                        continue
                    about = [name, kind, str(count), folder, step, proxy.url, bucket]
                    measure([sys.executable, __file__, "--work", *about], columns[name], options.limit, proxy)
                    if step == "write" and not any("seconds" in each for each in columns[name].get(step, [])):
                        break  # what is there is a part
            proxy.close()
    return columns


def check(columns: dict[str, Found]) -> None:
    """See that all programs found the same; zarr-vectors gives whole cells of lines, which are more."""
    for step in ("all", "one", "many", "objects"):
        counts = {name: found[step][0].get("found") for name, found in columns.items() if step in found}
        exact = {number for name, number in counts.items() if not name.startswith("zarr-vectors")}
        assert len(exact) <= 1, (step, counts)
        assert not exact or all(number is None or number >= max(exact) for number in counts.values()), (step, counts)


def table(columns: dict[str, Found], title: str, kind: str, options: argparse.Namespace) -> str:
    """Times as Markdown: median (least to most), the best of the others over ours, and whether that is not behind."""
    rows = []
    for step, says in STEPS.items():
        if options.steps and step not in options.steps:
            continue
        cells, middles = [], {}
        for name, found in columns.items():
            told = [each for each in found.get(step, []) if "seconds" in each]
            seconds = [each["seconds"] for each in told]
            if not seconds:
                takes = PROGRAMS[name].takes(step, lines=kind == "lines")
                cells.append("failed" if step in found else f"none in {options.limit:g} s" if takes else "—")
                continue
            middles[name] = median(seconds)
            cell = spread(seconds)
            cell += f", {max(each['requests'] for each in told)} requests" if "requests" in told[0] else ""
            cells.append(cell)
        others = [each for name, each in middles.items() if not name.startswith("zardine")]
        ratio = min(others) / middles["zardine"] if others and "zardine" in middles else None
        if set(cells) != {"—"}:
            told = ["—", ""] if ratio is None else [f"{ratio:.2f}", "PASS" if ratio >= 1 else "MISS"]
            rows.append([says, *cells, *told])
    return markdown([title, *columns, "best peer / zardine", "wanted ≥ 1"], rows)


def memory(columns: dict[str, Found], title: str) -> str:
    """The most memory of each step in MB, as Markdown."""
    rows = []
    for step, says in STEPS.items():
        told = [[each["memory"] for each in found.get(step, []) if "memory" in each] for found in columns.values()]
        if any(told):
            rows.append([says, *(megabytes(max(each, default=None)) for each in told)])
    return markdown([title, *columns], rows)


def versions() -> str:
    from importlib.metadata import version

    names = ("zarr-vectors", "trx-python", "geopandas", "pyarrow", "laspy", "numpy")
    return ", ".join(f"{name} {version(name)}" for name in names) + f", Python {sys.version.split()[0]}"


def main() -> None:
    """Measure and print a section of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["near", "far"], default="near")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, help="how many (10,000; far 2,000)")
    parser.add_argument("--points", type=int, help="how many (1,000,000; far 100,000)")
    parser.add_argument("--latency", type=float, default=0.03, help="seconds that each request waits, far away")
    parser.add_argument("--only", action="append", choices=list(PROGRAMS), default=[])
    parser.add_argument("--steps", action="append", choices=list(STEPS), default=[])
    parser.add_argument("--limit", type=float, default=300, help="seconds for a process, which is ended then")
    parser.add_argument("--folder", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    far_server.add_option(parser)
    options = parser.parse_args()
    counts = {
        "lines": options.lines or (10_000 if options.what == "near" else 2_000),
        "points": options.points or (1_000_000 if options.what == "near" else 100_000),
    }
    where = "files in memory" if options.what == "near" else f"S3 at {options.latency * 1e3:g} ms a request"
    print(f"## Beside other programs, {where}\n")
    print("1,000 cells of 100 units, shards of 8 x 8 x 8. Medians of the rounds (least – most).")
    print(f"Made by `benchmarks/vectors_beside.py`, which says how. {versions()}.")
    server = far_server.start(options.server) if options.what == "far" else None
    if server:
        print(f"The server is {server.about}, on the same processors.")
    try:
        for kind, count in counts.items():
            columns = far(kind, count, options, server) if server else near(kind, count, options)
            title = f"{count:,} {NOUNS[kind]}"
            print(f"\n{table(columns, title, kind, options)}", flush=True)
            print(memory(columns, "peak memory, MB"), flush=True)
            check(columns)
    finally:
        if server:
            server.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        name, kind, count, folder, steps, *bucket = sys.argv[2:]
        place = (bucket[0], bucket[1]) if bucket else None
        work(name, kind, int(count), Path(folder), steps.split(","), place)
    else:
        main()
