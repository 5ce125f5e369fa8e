"""Processes that append to and resize one array at the same time: ``python growth.py FOLDER SECONDS``.

Four processes of two threads append blocks of 3 rows that name their writer and its count; one more process resizes
another array up and down. A reader looks that no row is seen before it is written. Prints one JSON object.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
import time
from typing import Any

import numpy as np

import zardine

PROCESSES, THREADS, ROWS = 4, 2, 3


def append(folder: str, number: int, stop: float, results: Any) -> None:
    counts = [0] * THREADS
    errors: list[str] = []

    def work(thread: int) -> None:
        array = zardine.open_array(folder, mode="r+")
        name = number * THREADS + thread + 1
        try:
            while time.time() < stop:
                counts[thread] += 1
                array.append(np.full((ROWS, 2), (name, counts[thread]), "u4"))
        except Exception as error:
            errors.append(f"append: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put({"counts": {number * THREADS + n + 1: count for n, count in enumerate(counts)}, "errors": errors})


def watch(folder: str, stop: float, results: Any) -> None:
    errors: list[str] = []
    array = zardine.open_array(folder, mode="r")
    while time.time() < stop and not errors:
        try:
            length = array.refresh().shape[0]
            rows = array[:length]
            if (rows == 0).any() or length % ROWS:
                errors.append(f"watch: rows that nobody wrote among {length}")
        except Exception as error:
            errors.append(f"watch: {type(error).__name__}: {error}")
    results.put({"errors": errors})


def main() -> None:
    folder, seconds = sys.argv[1], float(sys.argv[2])
    zardine.create_array(folder, shape=(0, 2), dtype="u4", chunks=(16, 2), shards=(64, 2), overwrite=True)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    stop = time.time() + seconds
    processes = [context.Process(target=append, args=(folder, n, stop, results)) for n in range(PROCESSES)]
    processes.append(context.Process(target=watch, args=(folder, stop, results)))
    for process in processes:
        process.start()
    answers = [results.get(timeout=seconds + 60) for _ in processes]
    for process in processes:
        process.join()
    errors = [error for answer in answers for error in answer["errors"]]
    counts = {name: count for answer in answers for name, count in answer.get("counts", {}).items()}
    rows = zardine.open_array(folder, mode="r")[...]
    blocks = rows.reshape(-1, ROWS, 2)
    if (blocks != blocks[:, :1]).any():
        errors.append("a block is torn")
    for name, count in counts.items():
        found = blocks[blocks[:, 0, 0] == name][:, 0, 1].tolist()
        if found != list(range(1, count + 1)):
            errors.append(f"writer {name} appended {count} blocks, found {len(found)}")
    print(json.dumps({"blocks": sum(counts.values()), "errors": errors}))


if __name__ == "__main__":
    main()
