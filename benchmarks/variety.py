"""The workload ``variety``: 25 arrays of 1 to 16 bytes an element in 1 to 5 dimensions, each read and written whole."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from statistics import median
from typing import Any

import layouts
import numpy as np
from implementations.protocol import Implementation
from operations import Operation, Read, Setting, WriteAll
from worker import peak, reset_peak

MOST_REPEATS = 5


def measure_variety(use: Implementation, name: str, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Median seconds of each case, ``read`` and ``write``, and the most memory of any."""
    repeats = MOST_REPEATS if options.budget >= 1 else 2
    cases: dict[str, float] = {}
    wrong: list[str] = []
    failed: list[str] = []
    memory = 0
    for layout in layouts.variety():
        for what, kind in (("read", Read), ("write", WriteAll)):
            place = scratch / f"{what}-{layout.name}"
            place.mkdir()
            case = f"{what} {layout.name}"
            try:
                do = kind(Setting(use, layout, options.data, place, name))
                before = reset_peak()
                cases[case] = _time(do, repeats)
                memory = max(memory, peak() - before)
                if options.verify and (problem := do.wrong(repeats, do.run(repeats))) is not None:
                    wrong.append(f"{case}: {problem}")
            except Exception as error:
                failed.append(f"{case}: {type(error).__name__}: {error}".splitlines()[0][:200])
            shutil.rmtree(place)
    return {
        "seconds": float(np.exp(np.mean(np.log(list(cases.values()))))),
        "count": repeats,
        "memory": memory,
        "cases": cases,
        "failed": failed,
        "wrong": "; ".join(wrong) or None,
    }


def _time(do: Operation, repeats: int) -> float:
    times = []
    for n in range(repeats + 1):
        do.before(n)
        start = time.perf_counter()
        result = do.run(n)
        times.append(time.perf_counter() - start)
        del result
    return median(times[1:])
