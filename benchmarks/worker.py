"""Runs one workload with one implementation in this process and prints what it took, as JSON on the last line."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

FEWEST = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("variant")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--budget", type=float, help="seconds of repetitions; default: the workload's own")
    parser.add_argument("--verify", action="store_true", help="compare a result with the truth, untimed")
    options = parser.parse_args()
    keep_to(options.threads)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    try:
        record = measure(options)
    except BaseException as error:
        from implementations.protocol import UnsupportedError

        if isinstance(error, (UnsupportedError, NotImplementedError)):
            record = {"unsupported": str(error)}
        elif isinstance(error, Exception):
            record = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        else:
            raise
    print("\n" + json.dumps(record))
    return 0


def keep_to(threads: int) -> None:
    """Let this process use that many processors, whatever the implementations do."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    from implementations import VARIANTS
    from workloads import WORKLOADS

    workload, variant = WORKLOADS[options.workload], VARIANTS[options.variant]
    if options.budget is None:
        options.budget = workload.budget
    implementation = variant.load(options.threads)
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=in_memory() if workload.in_memory else options.data))
    try:
        if workload.kind == "variety":
            from variety import measure_variety

            return measure_variety(implementation, variant.name, options, scratch)
        import layouts
        from operations import Setting

        source = workload.source(checksum=variant.checksum)
        layout = layouts.named(source) if source else None
        return timed(workload, Setting(implementation, layout, options.data, scratch, variant.name), options)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def in_memory() -> str:
    """A folder of a file system in memory."""
    from implementations.protocol import UnsupportedError

    if not os.path.ismount("/dev/shm"):
        raise UnsupportedError("this machine has no file system in memory")
    return "/dev/shm"


def timed(workload: Any, setting: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Repeat the workload until its time is used up; a record of the times and of memory."""
    from workloads import operation

    if workload.cold:
        forget(Path(setting.source))
    elif setting.layout is not None:
        remember(Path(setting.source))
    do = operation(workload.kind, setting)
    os.sync() if workload.kind.startswith("write") else None
    gc.collect()
    times: list[float] = []
    start_memory = reset_peak()
    begin, n, result = time.perf_counter(), 0, None
    while n < do.warm_up + min(FEWEST, do.most) or time.perf_counter() - begin < options.budget:
        if len(times) >= do.most:
            break
        if n == do.warm_up:
            begin = time.perf_counter()
        result = None
        do.before(n)
        start = time.perf_counter()
        result = do.run(n)
        took = time.perf_counter() - start
        if n >= do.warm_up:
            times.append(took)
        n += 1
    do.close()
    each = sum(times) / len(times) if workload.kind == "fill" else median(times)
    record = {"seconds": each, "least": min(times), "count": len(times), "memory": peak() - start_memory}
    if options.verify:
        record["wrong"] = do.wrong(n - 1, result)
    return record


def forget(folder: Path) -> None:
    """Drop the files of a folder from the page cache; no privilege is needed."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def remember(folder: Path) -> None:
    """Have the files of a folder in the page cache, so that who reads them first does not do that for all others."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(2**20):
                    pass


def reset_peak() -> int:
    """Bytes of memory now; from here on :func:`peak` tells the most."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    """The most memory since :func:`reset_peak`."""
    return _status("VmHWM")


def _status(name: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if name == "VmHWM" else 0


if __name__ == "__main__":
    sys.exit(main())
