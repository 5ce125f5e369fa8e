"""zardine.vectors beside zarr-vectors 0.9.2, in one run on one machine: the same points, chunks, bins and shards.

    python benchmarks/vectors.py points
    python benchmarks/vectors.py changes

In a file system in memory, so that a disk's time to make files, which is the same for both, does not hide the rest.
Each operation runs ``REPEATS`` times, the two programs by turns: tables have the median, least and most (unsharding by
zarr-vectors, which takes a quarter of a minute, runs once), and the most memory beyond what was held before it.
``changes`` are of zardine alone: zarr-vectors has none of them. ``make bench`` runs both and puts them into
``benchmarks/VECTORS.md``.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr_vectors
from tables import megabytes, spread, table
from worker import peak, reset_peak
from zarr_vectors.sharding import shard_store as their_shard
from zarr_vectors.sharding import unshard_store as their_unshard
from zarr_vectors.types.points import read_points as their_read
from zarr_vectors.types.points import write_points as their_write

from zardine import vectors
from zardine.storage import CountingStore, LocalStore

REPEATS = 5
POINTS = 100_000
CHUNK = (100.0, 100.0, 100.0)
LAYOUTS: dict[str, dict[str, Any]] = {
    "flat": {},
    "with bins": {"bin_shape": (25.0, 25.0, 25.0)},
    "sharded": {"shard_shape": 8},
}
BOXES = {"1 chunk": ([110.0] * 3, [190.0] * 3), "216 chunks": ([110.0] * 3, [690.0] * 3)}
PROGRAMS = ("zarr-vectors", "zardine", "zardine, 1,000,000 points")


@dataclass
class Took:
    """Seconds of all runs, and the most memory of one."""

    seconds: list[float] = field(default_factory=list)
    memory: int = 0

    def run(self, action: Callable[[], object], before: Callable[[], object] = lambda: None) -> Took:
        """Run once more."""
        before()
        held = reset_peak()
        self.seconds.append(timed(action))
        self.memory = max(self.memory, peak() - held)
        return self


def points(count: int) -> np.ndarray[Any, Any]:
    """Evenly spread over 10 x 10 x 10 chunks."""
    return np.random.default_rng(0).uniform(0, 1000, (count, 3)).astype("float32")


def timed(action: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def by_turns(pairs: list[tuple[Callable[[], object], Callable[[], object]]], repeats: int = REPEATS) -> list[Took]:
    """What each action took; each pair is an action and what is to be done before it."""
    found = [Took() for _ in pairs]
    for _ in range(repeats):
        for took, (action, before) in zip(found, pairs, strict=True):
            took.run(action, before)
    return found


def measure(folder: Path) -> list[tuple[str, list[Took]]]:
    """What was seen of each operation: theirs, ours, and ours with a million points."""
    few, many = points(POINTS), points(10 * POINTS)
    rows: list[tuple[str, list[Took]]] = []

    def path(who: str, layout: str) -> str:
        return str(folder / f"{who} {layout}.zv")

    for layout, options in LAYOUTS.items():
        pairs = []
        for who, write, data in (
            ("theirs", their_write, few),
            ("ours", vectors.write_points, few),
            ("many", vectors.write_points, many),
        ):
            place = path(who, layout)
            pairs.append(
                (
                    lambda write=write, place=place, data=data, options=options: write(
                        place, data, chunk_shape=CHUNK, **options
                    ),
                    lambda place=place: shutil.rmtree(place, ignore_errors=True),
                )
            )
        rows.append((f"write, {layout}", by_turns(pairs)))

    def reads(layout: str, **question: Any) -> list[Took]:
        calls = [
            lambda: their_read(path("theirs", layout), **question),
            lambda: vectors.read_points(path("ours", layout), **question),
            lambda: vectors.read_points(path("many", layout), **question),
        ]
        counts = len(calls[0]()["positions"]), len(calls[1]())
        assert counts[0] == counts[1], counts
        return by_turns([(call, lambda: None) for call in calls])

    for layout in ("flat", "sharded"):
        rows.append((f"read all, {layout}", reads(layout)))
    for name, box in BOXES.items():
        for layout in LAYOUTS:
            theirs_box = tuple(np.array(corner) for corner in box)
            rows.append((f"box of {name}, {layout}", reads(layout, bbox=theirs_box)))

    def fresh(who: str, layout: str) -> Callable[[], object]:
        def copy() -> None:
            shutil.rmtree(path(who, "copy"), ignore_errors=True)
            shutil.copytree(path(who, layout), path(who, "copy"))

        return copy

    work = [
        (lambda: their_shard(path("theirs", "copy"), shard_shape=8), fresh("theirs", "flat")),
        (lambda: vectors.shard_store(path("ours", "copy"), shard_shape=8), fresh("ours", "flat")),
        (lambda: vectors.shard_store(path("many", "copy"), shard_shape=8), fresh("many", "flat")),
    ]
    rows.append(("shard_store, 2 x 1,000 cells", by_turns(work, 3)))
    work = [
        (lambda: vectors.unshard_store(path("ours", "copy")), fresh("ours", "sharded")),
        (lambda: vectors.unshard_store(path("many", "copy")), fresh("many", "sharded")),
    ]
    ours = by_turns(work, 3)
    slow = Took().run(lambda: their_unshard(path("theirs", "copy")), fresh("theirs", "sharded"))
    rows.append(("unshard_store, 2 x 1,000 cells", [slow, *ours]))
    return rows


def times(rows: list[tuple[str, list[Took]]]) -> str:
    """The times as Markdown."""
    lines = []
    for name, took in rows:
        ratio = median(took[0].seconds) / median(took[1].seconds)
        lines.append([name, *(spread(each.seconds) for each in took), f"{ratio:.1f} ×"])
    return table(["operation", *PROGRAMS, "zarr-vectors / zardine"], lines)


def memory(rows: list[tuple[str, list[Took]]]) -> str:
    """The most memory as Markdown."""
    lines = [[name, *(megabytes(each.memory) for each in took)] for name, took in rows]
    return table(["peak memory, MB", *PROGRAMS], lines)


LINES = (10_000, 1_000_000)
APPENDS = 1_000


def lines(count: int, seed: int) -> np.ndarray[Any, Any]:
    """Random walks of five vertices that begin anywhere in 10 x 10 x 10 chunks; all of one shape."""
    random = np.random.default_rng(seed)
    starts = random.uniform(0, 1000, (count, 1, 3))
    return (starts + np.cumsum(random.normal(0, 2, (count, 5, 3)), axis=1)).astype("f4")


def changes(folder: Path) -> str:
    """What changes take in stores of few and of many lines, as Markdown."""
    told: dict[str, list[str]] = {}

    def tell(name: str, value: str) -> None:
        told.setdefault(name, []).append(value)

    for count in LINES:
        path = str(folder / f"{count}.zv")
        columns = {"w": np.zeros(5 * count, "f4")}
        box = ([-100.0] * 3, [1100.0] * 3)
        vectors.write_polylines(
            path, list(lines(count, 0)), chunk_shape=CHUNK, shard_shape=8, bounds=box, vertex_attributes=columns
        )
        new = {"w": np.ones(50, "f4")}
        seconds, requests = [], []
        for number in range(APPENDS + 20):
            store = CountingStore(LocalStore(path))
            target: Any = store if number < 20 else path
            more = list(lines(10, number + 1))
            took = timed(lambda: vectors.append_polylines(target, more, vertex_attributes=new))  # noqa: B023
            (requests if number < 20 else seconds).append(store.counts.requests if number < 20 else took)
        tell("10 lines appended, requests", f"{median(requests):.0f}")
        tell("10 lines appended, the first 100 times", spread(seconds[:100]))
        tell(f"10 lines appended, the last 100 of {APPENDS:,} times", spread(seconds[-100:]))
        held = reset_peak()
        some = [
            timed(lambda: vectors.set_attribute(path, "w", np.full(5, 2.0), object_ids=[number]))  # noqa: B023
            for number in range(count // 2, count // 2 + 50)
        ]
        tell("an attribute of the vertices of one line set", spread(some))
        tell("peak memory of that, MB", megabytes(peak() - held))
    return (
        "## Changes\n\n"
        "Lines of five vertices with an attribute, anywhere in 1,000 chunks of 100 units, shards of 8 x 8 x\n"
        "8 chunks, with checksums; zardine alone. Most new lines are in cells of their own, some cross into others.\n"
        "Medians (least – most).\n\n"
        + table(["operation", *(f"{count:,} lines" for count in LINES)], [[name, *said] for name, said in told.items()])
    )


def main() -> None:
    """Measure, and print a section of Markdown."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        if sys.argv[1:] == ["changes"]:
            print(changes(Path(name)))
            return
        rows = measure(Path(name))
    print(
        f"{POINTS:,} points in float32, 1,000 chunks of 100 units, bins of 25 units, shards of 8 x 8 x 8 chunks; the\n"
        "median of several runs (least – most), by turns, files in memory (`/dev/shm`). Made by\n"
        "`benchmarks/vectors.py`, which says how.\n\n"
        f"{times(rows)}\n{memory(rows)}\n"
        f"zarr-vectors {zarr_vectors.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.system()} {platform.machine()}."
    )


if __name__ == "__main__":
    main()
