"""Rechunking the worst case, time-major to space-major, beside rechunker, cubed, and xarray with Dask.

    python benchmarks/jobs.py [--gib 4] [--memory "256 MiB"] [--rounds 1] [--folder FOLDER]

An array of float32 in planes of 4 MB (Zarr v2, blosc lz4) is stored anew in columns: unsharded, and in shards where a
program can write them. Every program gets two workers of one thread; zardine gets ``--memory`` for each of them, the
others twice that. All run in turns, each in processes of its own. The table has, for each: the time (the median of the
rounds, least and most), the peak memory of the largest worker beside what an idle one takes, bytes read and written by
all processes (``/proc/PID/io``, in times of the raw array), and the most files that were in the working folder at a
time.

    python benchmarks/jobs.py two [--rounds 3] [--folder FOLDER]

converts an array of Zarr v2 of 2 GB in 2,500 objects to shards: two workers of one thread, bound to a core each, beside
one of them, in turns. The table has the time, and the peak memory of the largest worker beside an idle one. Below it
stands how much faster two processes are that only count: what the machine allows.

``make bench`` runs both, the first with 1 GiB; then zardine is the one that is built and installed for it, else that of
this folder. The others are installed into ``.bench-venv-jobs`` and, since it takes an older zarr-python,
``.bench-venv-rechunker``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tables import spread

ROOT = Path(__file__).resolve().parent.parent
JOBS = ("cubed", "xarray", "dask[array,distributed]", "zarr>=3.1", "psutil")
RECHUNKER = ("rechunker", "dask[array,distributed]", "zarr<3", "numcodecs<0.16", "psutil")
SIDE, COLUMN, SHARD = 1024, 32, 128
OBJECTS, ROWS, COLUMNS = 2500, 512, 400
"""Of the array that is converted: 2,048,000,000 bytes."""
WORKERS = 2
OWN = "" if Path(sys.prefix) == ROOT / ".bench-venv" else str(ROOT / "src")
"""Where zardine is, unless it is installed."""
PROGRAMS = {
    "zardine": ("zardine", True),
    "rechunker": ("rechunker", False),
    "cubed": ("jobs", False),
    "xarray, Dask tasks": ("jobs", True),
    "xarray, Dask p2p": ("jobs", True),
}
"""The environment of each, and whether it writes shards."""


# what each program does, in a process of its own


def make_source(path: str, steps: int, rows: int = SIDE, columns: int = SIDE) -> None:
    """Store the source: a field that changes slowly, with noise in the last bits; an object for each step."""
    import numpy as np

    import zardine

    root = zardine.create_group(path, zarr_format=2)
    array = root.create_array(
        "a",
        shape=(steps, rows, columns),
        chunks=(1, rows, columns),
        dtype="f4",
        compressors={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        attributes={"_ARRAY_DIMENSIONS": ["time", "y", "x"]},
    )
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:rows, :columns].astype("f4") / 100
    for step in range(steps):
        noise = rng.integers(0, 64, (rows, columns)).astype("f4") / 64
        array[step] = np.round(280 + 20 * np.sin(y + step / 50) * np.cos(x), 1) + noise
    zardine.consolidate_metadata(root.store)


def convert_bound(source: str, target: str, workers: int) -> None:
    """Convert the source to shards, each worker bound to a core, with one thread; print what was seen as JSON."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import zardine

    cores = sorted(os.sched_getaffinity(0))[:workers]
    context = multiprocessing.get_context("spawn")
    places: Any = context.Queue()
    for core in cores:
        places.put(core)
    start = time.perf_counter()
    plan = zardine.plan_convert(source, target, source_path="a")
    with ProcessPoolExecutor(workers, context, initializer=bind, initargs=(places,)) as executor:
        status = plan.run(executor)
        seconds = time.perf_counter() - start
        peaks = dict(executor.map(peak_here, range(8 * workers)))
    assert status, str(status)
    print(json.dumps({"seconds": seconds, "peak": max(peaks.values()), "memory": plan.memory, "jobs": len(plan)}))


def bind(places: Any) -> None:
    """Let this process have one core, and one thread for work."""
    os.sched_setaffinity(0, {places.get()})
    import zardine

    zardine.config.set({"threads": 1})


def peak_here(_: int) -> tuple[int, int]:
    """Return the id of this process and its peak memory."""
    return os.getpid(), peak_of("self")


def peak_of(process: object) -> int:
    """Return the peak memory of a process in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0) * 1024


def count_up(core: int) -> float:
    """Do nothing but count, on one core, and return the seconds."""
    os.sched_setaffinity(0, {core})
    start = time.perf_counter()
    sum(range(100_000_000))
    return time.perf_counter() - start


def zardine_runs(source: str, target: str, work: str, memory: int, shards: bool) -> None:
    """Rechunk with zardine."""
    import zardine

    steps = zardine.open_array(source, path="a").shape[0]
    plan = zardine.plan_rechunk(
        source,
        target,
        path="a",
        chunks=(steps, COLUMN, COLUMN),
        shards=(steps, SHARD, SHARD) if shards else None,
        max_memory=memory,
        between=work,
    )
    print(json.dumps({"plan": str(plan), "memory": plan.memory, "read": plan.bytes_read}), file=sys.stderr)
    plan.run(workers=WORKERS)


def rechunker_runs(source: str, target: str, work: str, memory: int, shards: bool) -> None:
    """Rechunk with rechunker, on Dask."""
    import zarr
    from dask.distributed import Client, LocalCluster
    from rechunker import rechunk

    array = zarr.open(source, mode="r")["a"]
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, memory_limit=memory * 2) as cluster, Client(cluster):
        chunks = (array.shape[0], COLUMN, COLUMN)
        rechunk(array, chunks, memory, target, temp_store=work).execute()


def cubed_runs(source: str, target: str, work: str, memory: int, shards: bool) -> None:
    """Rechunk with cubed, in processes."""
    import cubed
    from cubed.runtime.create import create_executor

    spec = cubed.Spec(work_dir=work, allowed_mem=memory, reserved_mem=0)
    array = cubed.from_zarr(source, path="a", spec=spec)
    columns = array.rechunk((array.shape[0], COLUMN, COLUMN))
    cubed.to_zarr(columns, target, executor=create_executor("processes", {"max_workers": WORKERS}))


def xarray_runs(source: str, target: str, work: str, memory: int, shards: bool, method: str = "tasks") -> None:
    """Rechunk with xarray and Dask."""
    import dask
    import xarray as xr
    from dask.distributed import Client, LocalCluster

    with (
        dask.config.set(
            {"array.rechunk.method": method, "temporary-directory": work, "distributed.worker.memory.terminate": False}
        ),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, memory_limit=memory) as cluster,
        Client(cluster),
    ):
        data = xr.open_zarr(source, chunks={"time": 8})
        steps = data.sizes["time"]
        outer = (steps, SHARD, SHARD) if shards else (steps, COLUMN, COLUMN)
        data = data.chunk(dict(zip(("time", "y", "x"), outer, strict=True)))
        data["a"].encoding = {}
        encoding: dict[str, Any] = {"chunks": (steps, COLUMN, COLUMN)}
        if shards:
            encoding["shards"] = outer
        data.to_zarr(target, zarr_format=3, encoding={"a": encoding}, consolidated=False)


def one(program: str, source: str, target: str, work: str, memory: int, shards: bool) -> None:
    """Run one program and print its seconds."""
    start = time.perf_counter()
    if program == "zardine":
        zardine_runs(source, target, work, memory, shards)
    elif program == "rechunker":
        rechunker_runs(source, target, work, memory, shards)
    elif program == "cubed":
        cubed_runs(source, target, work, memory, shards)
    else:
        xarray_runs(source, target, work, memory, shards, program.split()[-1])
    print(time.perf_counter() - start)


# what is seen of it from outside


class Watch:
    """The most memory, bytes and files of a process and all below it, looked at ten times a second."""

    def __init__(self, process: int, folder: Path) -> None:
        self._process, self._folder = process, folder
        self.peaks: dict[int, int] = {}
        self.io: dict[int, tuple[int, int]] = {}
        self.files = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        looks = 0
        while not self._ended.wait(0.1):
            for process in _below(self._process):
                try:
                    peak = peak_of(process)
                    counts = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
                except (OSError, ValueError):
                    continue
                self.peaks[process] = peak
                self.io[process] = int(counts["rchar"]), int(counts["wchar"])
            looks += 1
            if looks % 10 == 0:
                self.files = max(self.files, sum(len(files) for _, _, files in os.walk(self._folder)))


def _below(process: int) -> list[int]:
    """Processes without children, begun by a process, by those that it began, and so on; or itself.

    What those that have ended did is counted with their parent, so that parents would count it twice.
    """
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry))
    found, waiting = [], [process]
    while waiting:
        each = waiting.pop()
        waiting += parents.get(each, [])
        if each not in parents:
            found.append(each)
    return found


def environments() -> dict[str, str]:
    """The interpreters: this one for zardine, others made where they are missing."""
    from environment import newest_python

    found = {"zardine": sys.executable}
    for name, packages in (("jobs", JOBS), ("rechunker", RECHUNKER)):
        folder = ROOT / f".bench-venv-{name}"
        if not (folder / ".ready").exists():
            print(f"making {folder.name}", flush=True)
            subprocess.run([newest_python(), "-m", "venv", folder], check=True)
            subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *packages], check=True)
            (folder / ".ready").touch()
        found[name] = str(folder / "bin" / "python")
    return found


def measure(
    python: str, program: str, source: Path, folder: Path, memory: int, shards: bool, limit: float
) -> dict[str, float]:
    """Run one program once, check what it has written, and return what was seen; ``limit``: its seconds."""
    work, target = folder / "work", folder / "target"
    for each in (work, target):
        shutil.rmtree(each, ignore_errors=True)
    work.mkdir()
    command = [python, __file__, "--one", program, str(source), str(target), str(work), str(memory), str(int(shards))]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ_of(program),
        cwd=folder,
        start_new_session=True,
    )
    with Watch(process.pid, work) as watch:
        try:
            out, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise RuntimeError(f"not done after {limit:g} s") from None
    if process.returncode:
        print(errors[-2000:], file=sys.stderr)
        raise RuntimeError("failed")
    subprocess.run(
        [sys.executable, __file__, "--check", str(source), str(target)],
        check=True,
        env=environ_of("zardine"),
    )
    moved = [each for number, each in watch.io.items() if number != process.pid or len(watch.io) == 1]
    return {
        "seconds": float(out.split()[-1]),
        "peak": max(watch.peaks.values()),
        "read": sum(each[0] for each in moved),
        "written": sum(each[1] for each in moved),
        "files": watch.files,
    }


def environ_of(program: str) -> dict[str, str]:
    """Return the environment in which a program runs: a thread in each process, and compiled Python is kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLOSC")},
        "PYTHONPATH": OWN if program == "zardine" else "",
    }


def check(source: str, target: str) -> None:
    """Compare a hundred columns with the source."""
    import numpy as np

    import zardine

    old = zardine.open_array(source, path="a")
    node = zardine.open(target, mode="r")
    new = node if isinstance(node, zardine.Array) else node["a"]
    rng = np.random.default_rng(1)
    y, x = rng.integers(0, SIDE, (2, 100))
    assert isinstance(new, zardine.Array)
    assert new.chunks == (old.shape[0], COLUMN, COLUMN), new.chunks
    for step in range(0, old.shape[0], max(1, old.shape[0] // 8)):
        plane = old[step]
        assert isinstance(plane, np.ndarray)
        assert (new.vindex[np.full(100, step), y, x] == plane[y, x]).all()


def idle(python: str, program: str) -> int:
    """Memory of a worker that has imported what it needs and done nothing."""
    imports = {
        "zardine": "import zardine.tools.rechunk, concurrent.futures.process",
        "rechunker": "import rechunker, zarr, distributed",
        "cubed": "import cubed, zarr",
    }.get(program, "import xarray, zarr, distributed")
    code = f"{imports}\nprint(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    run = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env=environ_of(program))
    return 1024 * int(run.stdout)


def two(place: Path, rounds: int) -> None:
    """Measure two bound workers beside one, and print a table."""
    from concurrent.futures import ProcessPoolExecutor

    source, target = place / "source.zarr", place / "target"
    make_source(str(source), OBJECTS, ROWS, COLUMNS)
    nothing = idle(sys.executable, "zardine")
    runs: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    counting: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers, found in runs.items():
            shutil.rmtree(target, ignore_errors=True)
            command = [sys.executable, __file__, "--convert", str(source), str(target), str(workers)]
            run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environ_of("zardine"))
            found.append(json.loads(run.stdout.splitlines()[-1]))
            with ProcessPoolExecutor(workers) as executor:
                cores = sorted(os.sched_getaffinity(0))[:workers]
                counting[workers].append(max(executor.map(count_up, cores)))
    planned = runs[1][0]["memory"] / 2**20
    print(f"\n| {OBJECTS:,} objects to shards | time | peak MiB, of {planned:.0f} planned |\n|---|---|---|")
    for workers, found in runs.items():
        peak = max(each["peak"] for each in found) - nothing
        seconds = [each["seconds"] for each in found]
        print(f"| {workers} worker{'s' if workers > 1 else ''} | {spread(seconds)} | {peak / 2**20:.0f} |")
    first, second = (min(each["seconds"] for each in found) for found in runs.values())
    allowed = 2 * min(counting[1]) / min(counting[2])
    print(f"\ntwo workers are {first / second:.2f} times as fast as one; two that only count {allowed:.2f} times")


def main() -> None:
    """Measure and print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["beside", "two"], default="beside")
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--memory", default="256 MiB")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a program may take")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--only", action="append", default=[], help="the name of a program; may be repeated")
    options = parser.parse_args()
    sys.path[:0] = [OWN] if OWN else []
    from zardine.settings import parse_bytes

    memory, steps = parse_bytes(options.memory), round(options.gib * 2**30 / (SIDE * SIDE * 4))
    raw = steps * SIDE * SIDE * 4
    if options.what == "two":
        with tempfile.TemporaryDirectory(dir=options.folder) as place:
            two(Path(place), options.rounds)
        return
    pythons = environments()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder, source = Path(place), Path(place) / "source.zarr"
        make_source(str(source), steps)
        stored = sum(file.stat().st_size for file in source.rglob("*") if file.is_file())
        print(f"{raw / 2**30:g} GiB, {stored / raw:.2f} of it stored; {options.memory} a worker of zardine", flush=True)
        for shards in (False, True):
            print(f"\n| {'sharded' if shards else 'unsharded'} | time | peak MiB | read | written | files between |")
            print("|---|---|---|---|---|---|", flush=True)
            for program, (environment, can_shard) in PROGRAMS.items():
                if (shards and not can_shard) or (options.only and program not in options.only):
                    continue
                python = pythons[environment]
                most = memory if program == "zardine" else 2 * memory
                try:
                    runs = [
                        measure(python, program, source, folder, most, shards, options.limit)
                        for _ in range(options.rounds)
                    ]
                except RuntimeError as error:
                    print(f"| {program} | {error} | | | | |", flush=True)
                    continue
                seconds = [each["seconds"] for each in runs]
                best = min(runs, key=lambda each: each["seconds"])
                peak = (max(each["peak"] for each in runs) - idle(python, program)) / 2**20
                print(
                    f"| {program} | {spread(seconds)} | {peak:.0f} | {best['read'] / raw:.2f} "
                    f"| {best['written'] / raw:.2f} | {best['files']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        program, source, target, work, memory, shards = sys.argv[2:]
        one(program, source, target, work, int(memory), shards == "1")
    elif sys.argv[1:2] == ["--convert"]:
        convert_bound(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    elif sys.argv[1:2] == ["--check"]:
        check(sys.argv[2], sys.argv[3])
    else:
        main()
