"""Appending along the first axis in many shapes, beside other programs: ``python benchmarks/appending.py``.

What is appended is less than a chunk, one, or several chunks and shards; values are written over what is stored of a
chunk in part, or into chunks and files of their own. Each round runs every program once on every shape, each in a
process of its own, and starts with another one. Prints, for each folder, two tables in Markdown: the time of an append
of each program (the median of a process; of the rounds the median, least and most), the time of processors that zardine
takes for one (of all threads), and the best other program's time over zardine's; and the peak memory of all appends,
beyond what was held before them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from statistics import geometric_mean, median

import data
import numpy as np
from implementations import OURS, VARIANTS
from layouts import Layout
from tables import megabytes, shown, spread, table
from worker import peak, reset_peak

SHAPES = (
    # name, shape, dtype, chunk, shard, codec, checksum; elements of an append
    (Layout("1-d, part of a chunk, raw", (0,), "float32", (16384,), None, "raw"), 1000),
    (Layout("1-d, part of a chunk, sharded, lz4", (0,), "float64", (4096,), (65536,), "lz4"), 1000),
    (Layout("1-d, many chunks and shards, zstd", (0,), "int32", (4096,), (32768,), "zstd"), 100_000),
    (Layout("2-d, a row in 4 chunks, zstd", (0, 1000), "float32", (100, 250), None, "zstd"), 1),
    (Layout("2-d, a row in 8 chunks of a shard, lz4", (0, 4096), "float32", (16, 512), (256, 4096), "lz4"), 1),
    (Layout("2-d, a row in 4 shards, zstd", (0, 4096), "uint16", (8, 256), (64, 1024), "zstd"), 1),
    (Layout("2-d, a row of chunks in 4 shards, raw", (0, 4096), "uint16", (8, 256), (64, 1024), "raw"), 8),
    (Layout("3-d, a frame that is a chunk, lz4", (0, 256, 256), "uint16", (1, 256, 256), None, "lz4"), 1),
    (Layout("3-d, a frame of 4 chunks of a shard, raw", (0, 128, 128), "uint8", (1, 64, 64), (32, 128, 128), "raw"), 1),
    (Layout("3-d, a part of 16 chunks, raw", (0, 128, 128), "uint8", (8, 32, 32), None, "raw"), 1),
    (Layout("3-d, a part of 8 chunks of 2 shards, lz4", (0, 96, 96), "float32", (4, 48, 24), (32, 96, 48), "lz4"), 3),
)
PROGRAMS = (OURS, "tensorstore", "zarrista")
SECONDS = 1.0
"""For which one shape is appended to in one process."""
MOST = 400
"""Appends in one process."""


def main() -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", action="append", default=[], help="where arrays are stored; may be given again")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="shapes, by their names")
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(VARIANTS))
    args = parser.parse_args()
    wanted = [
        number
        for number, (layout, _) in enumerate(SHAPES)
        if not args.only or any(fnmatch(layout.name, pattern) for pattern in args.only)
    ]
    for folder in args.folder or [tempfile.gettempdir()]:
        rows, memory, ratios = [], [], []
        for number in wanted:
            found: dict[str, list[dict[str, float]]] = {name: [] for name in args.programs}
            for turn in range(args.rounds):
                shift = turn % len(args.programs)
                for name in args.programs[shift:] + args.programs[:shift]:
                    command = [sys.executable, __file__, "--one", name, str(number), folder]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                    if not done.returncode or name == OURS:  # what another one said is shown
                        found[name].append(json.loads(done.stdout))
            times = {name: [each["seconds"] for each in told] for name, told in found.items() if told}
            others = [median(each) for name, each in times.items() if name != OURS]
            ratio = min(others) / median(times[OURS]) if others and OURS in times else None
            ratios += [] if ratio is None else [ratio]
            cells = [spread(times[name]) if name in times else "failed" for name in args.programs]
            cells.append(shown(median(each["processors"] for each in found[OURS])) if OURS in times else "–")
            name = SHAPES[number][0].name
            rows.append([name, *cells, "–" if ratio is None else f"{ratio:.2f} ×"])
            most = [max((each["memory"] for each in told), default=None) for told in found.values()]
            memory.append([name, *map(megabytes, most)])
        print(f"### Appending in {'memory' if folder.startswith('/dev/shm') else folder}\n")
        print(table(["an append", *args.programs, "zardine, processors", "best peer / zardine"], rows))
        print(table(["peak memory, MB", *args.programs], memory), flush=True)
        if ratios:
            print(f"Geometric mean of the ratios: {geometric_mean(ratios):.2f}, least {min(ratios):.2f}.\n", flush=True)


def one(name: str, number: int, folder: str) -> None:
    """Append with one program to one shape; print the medians, and the most memory, as JSON."""
    layout, count = SHAPES[number]
    use = VARIANTS[name].load(threads=len(os.sched_getaffinity(0)))
    block = np.random.default_rng(number).integers(1, 200, (count, *layout.shape[1:])).astype(layout.dtype)
    place = Path(tempfile.mkdtemp(prefix="zardine-appending-", dir=folder))
    try:
        data.create(place / "array", layout)
        array = use.open(str(place / "array"), write=True)
        before = reset_peak()
        times, processors, end = [], [], time.perf_counter() + SECONDS
        while len(times) < MOST and (len(times) < 40 or time.perf_counter() < end):
            spent, start = time.process_time(), time.perf_counter()
            array = use.append(array, block)
            times.append(time.perf_counter() - start)
            processors.append(time.process_time() - spent)
        memory = max(0, peak() - before)
        reader = "tensorstore" if name == OURS else OURS
        again = VARIANTS[reader].load(threads=2)
        expected = np.concatenate([block] * len(times))
        found = again.read_all(again.open(str(place / "array")), expected.shape)
        if not np.array_equal(found, expected):
            raise ValueError(f"{name} stored other values: {layout.name}")
    finally:
        shutil.rmtree(place)
    print(json.dumps({"seconds": median(times), "processors": median(processors), "memory": memory}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
