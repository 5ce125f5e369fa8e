"""``make bench``: zardine beside its peers, each workload in processes of its own, in turn, several rounds.

Only the standard library is needed to start this; everything else is installed into a virtual environment of its own.
With ``--only`` or ``--quick`` nothing is written unless ``--out`` says where; results that are there already are then
kept, and what was measured again is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import environment
from implementations import VARIANTS, Variant
from workloads import Workload, chosen

HERE = Path(__file__).resolve().parent
LIMIT = "limit"
TIMEOUT = 300
LONG = {
    "jobs/two": ["jobs.py", "two"],
    "jobs/rechunk": ["jobs.py", "beside", "--gib", "1", "--memory", "128 MiB"],
    "far/s3": ["far.py", "--latency", "0.03"],
    "far/errors": ["far.py", "--latency", "0.1", "--errors", "0.01"],
    "far/http": ["far.py", "--latency", "0.03", "--over", "http"],
    "appending/memory": ["appending.py", "--folder", "/dev/shm"],
    "appending/disk": ["appending.py"],
    "vectors/points": ["vectors.py", "points"],
    "vectors/changes": ["vectors.py", "changes"],
    "vectors/near": ["vectors_beside.py", "near"],
    "vectors/far": ["vectors_beside.py", "far", "--limit", "25"],
    "vectors/wanted-changes": ["vectors_wanted.py", "changes"],
    "vectors/wanted-pyramid": ["vectors_wanted.py", "pyramid"],
    "vectors/wanted-import": ["vectors_wanted.py", "import"],
    "vectors/wanted-shards": ["vectors_wanted.py", "shards"],
    "vectors/wanted-handle": ["vectors_wanted.py", "handle"],
}
"""Works with scripts of their own, each with what that is told. A short look is at the first alone."""


def main() -> int:
    options = arguments()
    python = environment.prepare(upgrade=options.upgrade)
    workloads = chosen(options.only, quick=options.quick)
    variants = [VARIANTS[name] for name in options.variants or VARIANTS]
    works = [name for name in LONG if any(fnmatch(name, each) for each in options.only or ["*"])]
    works = works[:1] if options.quick and not options.only else [] if options.variants else works
    if not workloads and not works:
        print(f"no workload matches {' '.join(options.only)}", file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"this machine is busy (load {load:.1f}): the figures will be too", file=sys.stderr)
    out = options.out or (None if options.only or options.quick or options.variants else HERE)
    with tempfile.TemporaryDirectory(prefix="zardine-bench-") as temporary:
        data = (options.data or Path(temporary)).resolve()
        bench = Bench(python, data, options)
        results = bench.run(workloads, variants) | {"long": {name: bench.long(name) for name in works}}
        place = out or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        store(place / "results.json", results)
        report = [str(python), str(HERE / "report.py"), str(place), *([] if out else ["--print"])]
        return subprocess.run(report, check=False).returncode


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="workloads, such as 'read/lz4/*'"
    )
    parser.add_argument("--variants", action="append", metavar="NAME", choices=list(VARIANTS), help="implementations")
    parser.add_argument("--rounds", type=int, help="processes for each workload and implementation (5; quick: 1)")
    parser.add_argument("--quick", action="store_true", help="only what has a wanted ratio, and short")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="processors to use")
    parser.add_argument("--data", type=Path, help="folder for the stored arrays, kept (a temporary one)")
    parser.add_argument("--out", type=Path, help="folder for RESULTS.md, results.png, results.json (benchmarks)")
    parser.add_argument("--upgrade", action="store_true", help="install the newest releases of the peers first")
    parser.add_argument("--list", action="store_true", help="name the workloads and stop")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    if options.list:
        for workload in chosen(options.only, quick=options.quick):
            wanted = f"  (wanted: {workload.wanted:g} ×)" if workload.wanted else ""
            print(f"{workload.name:<24}{workload.title}{wanted}")
        for name in LONG:
            print(f"{name:<24}by benchmarks/{' '.join(LONG[name])}")
        sys.exit(0)
    return options


class Bench:
    """One run of the suite."""

    def __init__(self, python: Path, data: Path, options: argparse.Namespace) -> None:
        self.python, self.data, self.options = python, data, options
        hidden = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME")
        self.settings = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(self, workloads: list[Workload], variants: list[Variant]) -> dict[str, Any]:
        """All records, by workload and variant, and about what they are."""
        if workloads:
            self._run(HERE / "data.py", self.data, "volume")
        records: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for number, workload in enumerate(workloads):
            takers = [variant for variant in variants if variant.takes(workload.name)]
            self._make(workload, takers)
            started = time.monotonic()
            records[workload.name] = self._measure(workload, takers)
            print(f"[{number + 1}/{len(workloads)}] {workload.title} ({time.monotonic() - started:.0f} s)")
            print("    " + ", ".join(map(_told, *zip(*records[workload.name].items(), strict=True))), flush=True)
        about = json.loads(self._run(HERE / "about.py", str(self.options.threads)))
        build = environment.build()
        about |= {"rounds": self.options.rounds, "build": build}
        return {"about": about, "records": records, "builds": dict.fromkeys(records, build)}

    def long(self, name: str) -> str:
        """What the script of a long work prints."""
        started = time.monotonic()
        script, *told = LONG[name]
        told += [] if script == "vectors.py" else ["--rounds", str(min(3, self.options.rounds))]
        command = [str(self.python), str(HERE / script), *told]
        run = subprocess.run(command, env=self.settings, stdout=subprocess.PIPE, text=True, check=False)
        print(f"{name} ({time.monotonic() - started:.0f} s)", flush=True)
        return run.stdout.strip() if run.returncode == 0 else "It could not be measured."

    def _measure(self, workload: Workload, takers: list[Variant]) -> dict[str, list[dict[str, Any]]]:
        names = [variant.name for variant in takers]
        if workload.has_limit:
            names.append(LIMIT)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        rounds = self.options.rounds * (3 if workload.kind == "import" else 1)
        for turn in range(min(rounds, workload.rounds or rounds)):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:  # nobody always comes after the same one
                before = found[name]
                if not (before and "seconds" not in before[-1]):  # what failed once is not tried again
                    before.append(self._once(workload, name, verify=turn == 0))
        return found

    def _once(self, workload: Workload, name: str, *, verify: bool) -> dict[str, Any]:
        threads = str(self.options.threads)
        if name == LIMIT and workload.kind == "import":
            command = [HERE / "importing.py"]
        elif name == LIMIT:
            command = [HERE / "limits.py", self.data, workload.name, threads]
        elif workload.kind == "import":
            command = [HERE / "importing.py", VARIANTS[name].module]
        else:
            command = [HERE / "worker.py", workload.name, name, "--data", self.data, "--threads", threads]
            command += ["--verify"] if verify else []
            command += ["--budget", "0.3"] if self.options.quick and workload.kind != "fill" else []
        try:
            return json.loads(self._run(*command).splitlines()[-1])
        except (subprocess.SubprocessError, ValueError, IndexError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            return {"error": reason[-1][:300] if reason else type(error).__name__}

    def _make(self, workload: Workload, takers: list[Variant]) -> None:
        names = {workload.source(checksum=variant.checksum) for variant in takers} | {workload.layout}
        names |= {"group"} if workload.kind == "list" else set()
        names |= {"variety"} if workload.kind == "variety" else set()
        if workload.kind not in ("append", "fill", "write-shard"):
            self._run(HERE / "data.py", self.data, *sorted(names - {""}))

    def _run(self, *command: object) -> str:
        line = [str(self.python), *map(str, command)]
        call = subprocess.run(line, env=self.settings, capture_output=True, text=True, timeout=TIMEOUT, check=True)
        return call.stdout


def _told(name: str, records: list[dict[str, Any]]) -> str:
    last = records[0]
    if "seconds" not in last:
        return f"{name} – ({last['error']})" if "error" in last else f"{name} –"
    wrong = " WRONG" if last.get("wrong") else ""
    middle = sorted(record["seconds"] for record in records if "seconds" in record)[len(records) // 2]
    return f"{name} {middle * 1000:.3g}{wrong}"


def store(path: Path, results: dict[str, Any]) -> None:
    """Write the results, over those of the same workloads that are there already."""
    if path.exists():
        before = json.loads(path.read_text())
        old = before["records"]
        for workload, found in results["records"].items():
            old[workload] = {**old.get(workload, {}), **found}
        results["about"] = results["about"] if results["records"] else before["about"]
        results["records"] = old
        results["builds"] = before.get("builds", {}) | results["builds"]
        results["long"] = before.get("long", {}) | results["long"]
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
