"""Writers, readers, appenders, a resizer and tools at the same time on the same shards: nothing lost, nothing mixed.

``python party.py --minutes 60`` runs all cases in turn for an hour in all and prints a line of JSON for each case and
one for all of them; ``--case NAME --seconds 3`` runs one. It needs nothing but an installed zardine, and works in a
folder that it removes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from chunks import Party
from crew import Crew, Report
from growth import Growth
from layouts import Layouts

import zardine

STRATEGIES = ("rewrite", "append", "in_place")
LOCATIONS = ("end", "start")
WORK = ("writes", "reads", "appends", "resizes", "attributes", "verify", "compact", "repair", "reshards", "refused")
FAULTS = ("lost", "mixed", "error")

CASES: dict[str, Party | Growth | Layouts] = {
    **{
        f"{strategy}-{location}-{kind}": Party((strategy,), location, plain=kind == "plain")
        for strategy in STRATEGIES
        for location in LOCATIONS
        for kind in ("checked", "plain")
    },
    **{f"all-{location}-tools": Party(STRATEGIES, location, tools=True) for location in LOCATIONS},
    **{f"growth-{location}": Growth(STRATEGIES, location) for location in LOCATIONS},
    "layouts": Layouts(),
}


def line(name: str, seconds: float, report: Report) -> dict[str, Any]:
    """What is printed of a case."""
    numbers = {each: report.counts[each] for each in (*WORK, *FAULTS)}
    faults = [f"{kind}: {text}" for kind, text in report.faults[:5]]
    return {"case": name, "seconds": round(seconds, 1), **numbers, "faults": faults}


def run_all(folder: str, crew: Crew, seconds: float, names: list[str]) -> bool:
    """Run the cases in turn, each for a short time, until the time is over. Whether all was well."""
    totals = {name: Report() for name in names}
    spent: Counter[str] = Counter()
    begun = time.monotonic()
    while not spent or time.monotonic() - begun < seconds:
        for name in names:
            start = time.monotonic()
            report = CASES[name].run(os.path.join(folder, "a.zarr"), crew)
            totals[name].add(report)
            spent[name] += time.monotonic() - start
            for kind, text in report.faults[:5]:
                print(f"{name}: {kind}: {text}", file=sys.stderr, flush=True)
            if time.monotonic() - begun >= seconds and len(spent) == len(names):
                break
    whole = Report()
    for name in names:
        print(json.dumps(line(name, spent[name], totals[name])), flush=True)
        whole.add(totals[name])
    print(json.dumps(line("all", time.monotonic() - begun, whole) | environment(crew)), flush=True)
    return not whole.faults


def environment(crew: Crew) -> dict[str, Any]:
    """What was run, where, by how many."""
    return {
        "zardine": zardine.__version__,
        "from": os.path.dirname(zardine.__file__),
        "cpus": len(os.sched_getaffinity(0)),
        "processes": crew.processes,
        "threads": crew.threads,
        "readers": crew.readers,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, help="run all cases in turn, for so long in all")
    parser.add_argument("--case", action="append", choices=CASES, help="only this one (may be given several times)")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long a case runs at a time")
    parser.add_argument("--fewest", type=json.loads, default={}, help="JSON: what a case goes on for until it is done")
    parser.add_argument("--processes", type=int, default=4, help="that write")
    parser.add_argument("--threads", type=int, default=4, help="of each of these")
    parser.add_argument("--readers", type=int, default=2, help="processes that read")
    parser.add_argument("--nice", type=int, default=0, help="lower the priority by so much")
    parser.add_argument("--folder", help="where the arrays are made, and stay")
    options = parser.parse_args()
    os.nice(options.nice)
    crew = Crew(options.processes, options.threads, options.readers, options.seconds, options.fewest)
    seconds = 0.0 if options.minutes is None else 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="zardine-party-") as folder:
        return 0 if run_all(options.folder or folder, crew, seconds, options.case or list(CASES)) else 1


if __name__ == "__main__":
    sys.exit(main())
