"""Writers and readers of one array at the same time: ``python party.py FOLDER STRATEGY LOCATION SECONDS [plain]``.

Four processes of four threads write: each thread owns some inner chunks, scattered over all shards, and fills one of
them with a number that only grows. Two more processes read all the time. Prints one JSON object: what was written, and
every mistake (a chunk that is no single number, a number that went back or that nobody wrote, an error).
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import threading
import time
from typing import Any

import numpy as np

import zardine

PROCESSES, THREADS, READERS = 4, 4, 2
SIDE, CHUNK, SHARD = 64, 8, 32
PLACES = [(row, column) for row in range(0, SIDE, CHUNK) for column in range(0, SIDE, CHUNK)]


def box(place: tuple[int, int]) -> tuple[slice, slice]:
    return slice(place[0], place[0] + CHUNK), slice(place[1], place[1] + CHUNK)


def write(folder: str, strategy: str, number: int, stop: float, results: Any) -> None:
    totals: dict[str, int] = {}
    errors: list[str] = []
    array = zardine.open_array(folder, mode="r+", config={"write_strategy": strategy})

    def work(thread: int) -> None:
        mine = PLACES[number * THREADS + thread :: PROCESSES * THREADS]
        chosen = random.Random(number * 100 + thread)
        values = dict.fromkeys(mine, 0)
        try:
            while time.time() < stop:
                place = chosen.choice(mine)
                values[place] += 1
                rows, columns = box(place)
                if chosen.random() < 0.3:  # in two halves: a part of a chunk has to be read to be written
                    middle = rows.start + CHUNK // 2
                    array[rows.start : middle, columns] = values[place]
                    array[middle : rows.stop, columns] = values[place]
                else:
                    array[rows, columns] = values[place]
        except Exception as error:
            errors.append(f"writer: {type(error).__name__}: {error}")
        totals.update({f"{row},{column}": value for (row, column), value in values.items()})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put({"totals": totals, "errors": errors})


def read(folder: str, stop: float, results: Any) -> None:
    errors: list[str] = []
    reads = 0
    last = dict.fromkeys(PLACES, 0)
    array = zardine.open_array(folder, mode="r")
    chosen = random.Random(7)
    while time.time() < stop and len(errors) < 5:
        try:
            if chosen.random() < 0.5:
                found = {place: array[box(place)] for place in chosen.sample(PLACES, 4)}
            else:
                whole = array[...]
                found = {place: whole[box(place)] for place in PLACES}
        except Exception as error:
            errors.append(f"reader: {type(error).__name__}: {error}")
            continue
        for place, values in found.items():
            reads += 1
            low, high = int(values.min()), int(values.max())
            halves = [np.unique(values[: CHUNK // 2]), np.unique(values[CHUNK // 2 :])]
            if any(len(half) != 1 for half in halves) or high - low > 1 or low < last[place] - 1:
                errors.append(f"reader: chunk {place} holds {np.unique(values).tolist()} after {last[place]}")
            last[place] = max(last[place], low)
    results.put({"reads": reads, "errors": errors})


def main() -> None:
    folder, strategy, location, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
    plain: dict[str, Any] = {"compressors": None, "checksum": False} if "plain" in sys.argv else {}
    zardine.create_array(
        folder,
        shape=(SIDE, SIDE),
        dtype="u4",
        chunks=(CHUNK, CHUNK),
        shards={"shape": (SHARD, SHARD), "index_location": location},
        overwrite=True,
        **plain,
    )
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    stop = time.time() + seconds
    writers = [context.Process(target=write, args=(folder, strategy, n, stop, results)) for n in range(PROCESSES)]
    readers = [context.Process(target=read, args=(folder, stop, results)) for _ in range(READERS)]
    for process in (*writers, *readers):
        process.start()
    answers = [results.get(timeout=seconds + 60) for _ in range(PROCESSES + READERS)]
    for process in (*writers, *readers):
        process.join()
    totals = {place: value for answer in answers for place, value in answer.get("totals", {}).items()}
    errors = [error for answer in answers for error in answer["errors"]]
    whole = zardine.open_array(folder, mode="r")[...]
    for name, value in totals.items():
        row, column = map(int, name.split(","))
        found = np.unique(whole[box((row, column))]).tolist()
        if found != [value]:
            errors.append(f"lost: chunk {name} holds {found}, {value} was written last")
    reads = sum(answer.get("reads", 0) for answer in answers)
    print(json.dumps({"writes": sum(totals.values()), "reads": reads, "errors": errors}))


if __name__ == "__main__":
    main()
