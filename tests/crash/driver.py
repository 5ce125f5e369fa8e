"""Forks a writer again and again and kills it at every system call in turn; prints what the files hold afterwards.

``python driver.py FOLDER STRATEGY [durable]``: in FOLDER lies the array ``start.zarr``. Each child writes to a copy of
it, with the functions of :mod:`os` that change files wrapped: the n-th call of the n-th child kills the process, before
the call or when half of the bytes are written. One JSON line for each point: what was called, and what a reader saw.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from zardine.engine.index_cache import INDEXES

CALLS = (
    *("write", "pwritev", "replace", "link", "unlink", "ftruncate", "fsync", "utime", "copy_file_range", "fchmod"),
    *("open", "close", "mkdir"),
)
PARTIAL = ("write", "pwritev", "copy_file_range")


def wrap(at: int, half: bool, log: int) -> None:
    """Let call number ``at`` of :data:`CALLS` kill this process."""
    count = 0

    def wrapper(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            if count == at:
                write(log, name.encode())
                if half and name in PARTIAL:
                    do_half(name, call, args)
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return call(*args, **kwargs)

        return wrapped

    write = os.write
    for name in CALLS:
        setattr(os, name, wrapper(name, getattr(os, name)))


def do_half(name: str, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if name == "write":
        call(args[0], memoryview(args[1])[: len(args[1]) // 2])
    elif name == "pwritev":
        data = b"".join(bytes(part) for part in args[1])
        call(args[0], [data[: len(data) // 2]], args[2])
    else:
        call(args[0], args[1], args[2] // 2, *args[3:])


def change(array: zardine.Array) -> None:
    """One chunk wholly and three in part, all in one shard."""
    array[4:8, 4:8] = 77
    array[9:15, 9:15] = 78


def main() -> None:
    folder, strategy = Path(sys.argv[1]), sys.argv[2]
    durable = "durable" in sys.argv[3:]
    start, target = folder / "start.zarr", folder / "target.zarr"
    stages = [zardine.open_array(start, mode="r")[...]]
    for region, value in (((slice(4, 8),) * 2, 77), ((slice(9, 15),) * 2, 78)):
        after = stages[-1].copy()
        after[region] = value
        stages.append(after)
    warnings.simplefilter("ignore")
    for half in (False, True):
        for point in range(100_000):
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(start, target)
            read, log = os.pipe()
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    store = zardine.storage.LocalStore(target, durable=durable)
                    array = zardine.open_array(store, mode="r+", config={"write_strategy": strategy})
                    wrap(point, half, log)
                    change(array)
                os._exit(0)
            os.close(log)
            killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) < 0
            name = os.read(read, 100).decode()
            os.close(read)
            print(
                json.dumps({"half": half, "point": point, "call": name, **look(target, stages, strategy)}), flush=True
            )
            if not killed:
                break


def look(target: Path, stages: list[np.ndarray[Any, Any]], strategy: str) -> dict[str, Any]:
    """Which of the stages each inner chunk is at, and the same after one more write."""
    INDEXES.clear()
    array = zardine.open_array(target, mode="r+", config={"write_strategy": strategy})
    seen: dict[str, Any] = {"chunks": chunk_stages(array, stages)}
    torn = [place for place, stage in seen["chunks"].items() if stage == "torn"]
    for place in torn:
        row, column = map(int, place.split(","))
        array[row : row + 4, column : column + 4] = stages[-1][row : row + 4, column : column + 4]
    array[0, 31] = 5
    INDEXES.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = zardine.open_array(target, mode="r")[...]
    seen["last"] = int(again[0, 31])
    seen["left"] = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    return seen


def chunk_stages(array: zardine.Array, stages: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    found = {}
    for row in range(0, 32, 4):
        for column in range(0, 32, 4):
            box = (slice(row, row + 4), slice(column, column + 4))
            try:
                values = array[box]
            except zardine.errors.ChecksumError:
                found[f"{row},{column}"] = "torn"
                continue
            matching = [n for n, stage in enumerate(stages) if (stage[box] == values).all()]
            if not matching:
                found[f"{row},{column}"] = "mixed"
            elif len(matching) < len(stages):
                found[f"{row},{column}"] = matching[0]
    return found


if __name__ == "__main__":
    main()
