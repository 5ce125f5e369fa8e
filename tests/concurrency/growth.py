"""Processes that append to one array and write in it, one that resizes it, and readers.

Every thread appends blocks of :data:`ROWS` rows that name their writer and its count. The resizer grows and shrinks
the array all the time. Its n-th call makes a length of which the rest, divided by ``ROWS``, is n more than at the
start; so the length that an ``append`` returns says after which resizing, and after how many other blocks, it came.
That gives the one order in which everything happened, and with it what has to be stored in the end, row by row. What
readers saw has to be there at some moment of their reading.

The rows in front, which the resizer leaves, are written meanwhile, by openings of the array that know its first length
only; and each process counts in an attribute of its own.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from chunks import check_stored
from crew import Clock, Crew, Report, Work, run_threads, run_together
from growth_history import HEAD, ROWS, Appended, History, Read, Resized

import zardine

CHUNK, SHARD = 90, 720
CELLS = [(start, min(start + CHUNK, HEAD)) for start in range(0, HEAD, CHUNK)]
"""Rows in front that are written together; the last are a part of a chunk, whose other rows are appended."""
LAST_SHARD = (HEAD // SHARD * SHARD, HEAD)
LONGEST = 60 * ROWS


@dataclass(frozen=True)
class Growth:
    """An array and how it is written."""

    strategies: tuple[str, ...]
    """Of the processes, in turn."""
    location: str

    def run(self, folder: str, crew: Crew) -> Report:
        """Let them work on a new array; gives what happened and what was lost."""
        zardine.create_array(
            folder,
            shape=(HEAD, 2),
            dtype="u4",
            chunks=(CHUNK, 2),
            shards={"shape": (SHARD, 2), "index_location": self.location},
            overwrite=True,
        )
        jobs: list[Work] = [partial(work, self, folder, crew, number) for number in range(crew.processes)]
        jobs += [partial(read, folder)] * crew.readers
        jobs += [partial(resize, folder, self.strategies[0])]
        reports = run_together(crew, jobs)
        total = Report()
        for report in reports:
            total.add(report)
        if total.counts["error"]:
            return total  # of a call that failed nobody knows how far it came
        appended = [each for report in reports for each in report.notes.get("appended", ())]
        history = History(appended, reports[-1].notes["resized"])
        history.check_order(total)
        for report in reports[crew.processes : -1]:
            for each in report.notes["reads"]:
                history.check_read(each, total)
        array = zardine.open_array(folder, mode="r")
        history.check_end(array[HEAD:], total)
        check_head(array, reports[: crew.processes], total)
        check_stored(folder, total)
        return total


def work(growth: Growth, folder: str, crew: Crew, number: int, clock: Clock, report: Report) -> None:
    strategy = growth.strategies[number % len(growth.strategies)]
    first = zardine.open_array(folder, mode="r+", config={"write_strategy": strategy})
    appended: list[Appended] = []
    written: dict[tuple[int, int], int] = {}
    report.notes |= {"appended": appended, "written": written, "attribute": 0}

    def append(thread: int) -> None:
        name, count = number * crew.threads + thread + 1, 0
        array = first.with_config({})
        while clock.goes_on():
            block = np.full((ROWS, 2), (name, count + 1), "u4")
            start = time.monotonic_ns()
            length = array.append(block)[0]
            appended.append(Appended(name, count + 1, length, start, time.monotonic_ns()))
            count += 1
            clock.did("appends", report)

    def write(thread: int) -> None:
        mine = [cell for cell in CELLS[number :: crew.processes] if cell[1] <= LAST_SHARD[0]]
        if number == 0:  # the last rows in front, alone and with all in front of them that is in their shard
            mine += [CELLS[-1], LAST_SHARD]
        chosen, count = random.Random(number), 0
        if not mine:  # more processes than places
            return
        old = first.with_config({})  # a change of attributes tells only ``first`` of the length
        while clock.goes_on():
            cell = chosen.choice(mine)
            count += 1
            old[slice(*cell)] = (number, count)
            written[cell] = count
            clock.did("writes", report)
            if chosen.random() < 0.2:
                first.attrs[f"of {number}"] = count
                report.notes["attribute"] = count
                clock.did("attributes", report)
            time.sleep(chosen.uniform(0, 0.02))  # most of the time is for those who append

    run_threads(lambda thread: (append if thread else write)(thread), max(2, crew.threads), report)


def resize(folder: str, strategy: str, clock: Clock, report: Report) -> None:
    array = zardine.open_array(folder, mode="r+", config={"write_strategy": strategy})
    resized: list[Resized] = []
    report.notes["resized"] = resized
    chosen = random.Random(1)
    while clock.goes_on():
        time.sleep(chosen.uniform(0, 0.04))
        length = array.refresh().shape[0]
        kind = chosen.random()
        if length > LONGEST:
            wanted = HEAD + chosen.randrange(LONGEST // 4)
        elif kind < 0.2:
            wanted = length + chosen.randrange(3 * ROWS)
        elif kind < 0.8:
            wanted = length - chosen.randrange(6 * ROWS)
        else:
            wanted = HEAD + chosen.randrange(max(1, length - HEAD))
        number = len(resized) + 1
        wanted = max(HEAD, wanted)
        wanted += (HEAD + number - wanted) % ROWS
        start = time.monotonic_ns()
        array.resize((wanted, 2))
        resized.append(Resized(wanted, start, time.monotonic_ns()))
        clock.did("resizes", report)


def read(folder: str, clock: Clock, report: Report) -> None:
    reads: list[Read] = []
    report.notes["reads"] = reads
    array = zardine.open_array(folder, mode="r")
    while clock.goes_on():
        start = time.monotonic_ns()
        try:
            length = array.refresh().shape[0]
            rows = array[:length]
        except Exception:
            report.error("reader")
            break
        end = time.monotonic_ns()
        clock.did("reads", report)
        for cell in CELLS:
            if (rows[slice(*cell)] != rows[cell[0]]).any():
                report.fault("mixed", f"rows {cell}: {np.unique(rows[slice(*cell)], axis=0).tolist()}")
        reads.append(Read.of(rows[HEAD:], start, end))


def check_head(array: zardine.Array, reports: list[Report], total: Report) -> None:
    """That the rows in front and the attributes are what was written last."""
    for number, report in enumerate(reports):
        written: dict[tuple[int, int], int] = report.notes["written"]
        last: dict[int, int] = {}
        for cell, count in sorted(written.items(), key=lambda item: item[1]):
            last |= dict.fromkeys(range(*cell), count)
        rows = array[:HEAD]
        for row, count in last.items():
            if rows[row].tolist() != [number, count]:
                total.fault("lost", f"row {row} holds {rows[row].tolist()}, {[number, count]} was written last")
        found: Any = array.attrs.get(f"of {number}", 0)
        if found != report.notes["attribute"]:
            total.fault("lost", f"the attribute of {number} is {found}, not {report.notes['attribute']}")
