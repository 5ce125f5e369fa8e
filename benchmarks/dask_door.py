"""Dask through ``zardine.dask`` beside ``dask.array.to_zarr`` and ``from_zarr`` (zarr-python), in turns in one run.

``python benchmarks/dask_door.py [MiB] [rounds]`` prints a table in Markdown: the median time of each, and the most
memory of a process that does it alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from statistics import median

WORK = {
    "write, a Dask chunk is a shard": ("write", 1000),
    "write, 25 Dask chunks are a shard": ("write", 200),
    "read, a task a shard": ("read", 1000),
    "read 2 rows": ("rows", 1000),
}


def main() -> None:
    """Run everything and print the table."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print("| work | zardine | Dask and zarr-python | ratio | memory: zardine | Dask and zarr-python |")
    print("| --- | --- | --- | --- | --- | --- |")
    for title, (what, block) in WORK.items():
        found: dict[str, list[tuple[float, float]]] = {"zardine": [], "dask": []}
        for _ in range(rounds):
            for door, results in found.items():
                with tempfile.TemporaryDirectory() as place:
                    command = [sys.executable, __file__, "--one", door, what, str(block), str(size), place]
                    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                seconds, memory = map(float, text.split())
                results.append((seconds, memory))
        times = {door: median(seconds for seconds, _ in results) for door, results in found.items()}
        memory = {door: median(most for _, most in results) for door, results in found.items()}
        print(
            f"| {title} | {times['zardine']:.2f} s | {times['dask']:.2f} s | {times['dask'] / times['zardine']:.1f} "
            f"| {memory['zardine']:.0f} MiB | {memory['dask']:.0f} MiB |",
            flush=True,
        )


def one(door: str, what: str, block: int, size: int, place: str) -> None:
    """Do one thing by one door; print seconds, and the most memory in MiB."""
    import resource

    import dask.array as da
    import zarr

    import zardine
    import zardine.dask

    rows = max(1, round(size * 2**20 / (2000 * 8) / 1000)) * 1000
    source = da.arange(rows, chunks=block, dtype="f8")[:, None] + da.arange(2000, chunks=block)
    new = {"shape": (rows, 2000), "shards": (1000, 1000), "chunks": (100, 100), "dtype": "f8"}
    path = f"{place}/a.zarr"
    if what != "write":
        zardine.dask.to_zarr(source, path, shards=(1000, 1000), chunks=(100, 100))
    start = time.perf_counter()
    if what == "write" and door == "zardine":
        zardine.dask.to_zarr(source, zardine.create_array(path, **new))
    elif what == "write":
        da.to_zarr(source, zarr.create_array(path, **new))
    else:
        stored = zardine.dask.from_zarr(path) if door == "zardine" else da.from_zarr(path, chunks=(1000, 1000))
        (stored[5:7] if what == "rows" else stored).sum().compute()
    seconds = time.perf_counter() - start
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
    else:
        main()
