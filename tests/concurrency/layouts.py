"""Processes that write, read and append while one reshards the array again and again, and another runs the tools.

Each element says where it is and which write it comes from, so that a read by a wrong layout is seen at once. The rows
in front belong to one writer each, which knows what it was told to be stored; the rows behind belong to the one that
appends and resizes. Writers keep handles for long: what comes of a stale one is right, or ``ArrayChangedError``.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from crew import Clock, Crew, Report, Work, run_together

import zardine
from zardine.errors import ArrayChangedError

WRITERS, BAND, WIDTH = 4, 16, 48
HEAD = WRITERS * BAND
LONGEST = HEAD + 64
LAYOUTS: list[dict[str, Any]] = [
    {"shards": None, "chunks": (8, 16)},
    {"shards": None, "chunks": (16, 8)},
    {"shards": (32, 16), "chunks": (8, 16)},
    {"shards": (16, 48), "chunks": (8, 8)},
    {"shards": (64, 48), "chunks": (8, 8)},
    {"shards": (24, 40), "chunks": (8, 8)},
    {"shards": None, "chunks": (7, 11)},
]
MEMORY = (None, "64 KiB", "52 KiB")
"""So little that some ways lead through arrays between, and that some blocks are appended."""
STRATEGIES = ("rewrite", "append", "in_place")


def places(first: int, stop: int) -> Any:
    """What the elements of some rows say of where they are."""
    return np.arange(first * WIDTH + 1, stop * WIDTH + 1).reshape(stop - first, WIDTH)


@dataclass(frozen=True)
class Layouts:
    """An array that changes its layout all the time."""

    def run(self, folder: str, crew: Crew) -> Report:
        """Let them work on a new array; gives what happened and what was lost."""
        array = zardine.create_array(folder, shape=(HEAD, WIDTH), dtype="i8", overwrite=True, **LAYOUTS[0])
        array[...] = places(0, HEAD)
        jobs: list[Work] = [partial(write, folder, number) for number in range(WRITERS)]
        jobs += [partial(grow, folder), partial(reshard, folder), partial(use_tools, folder), partial(read, folder)]
        reports = run_together(crew, jobs)
        total = Report()
        for report in reports:
            total.add(report)
        stored = zardine.open_array(folder, mode="r")[...]
        for number, report in enumerate(reports[:WRITERS]):
            band = stored[number * BAND : (number + 1) * BAND]
            check(band, number * BAND, report.notes["known"], report.notes["perhaps"], "in the end", total)
        rows = reports[WRITERS].notes["rows"]
        wrong = (
            (stored[HEAD:] >> 16) != np.array(rows, "i8").reshape(-1, 1) if len(stored) == HEAD + len(rows) else True
        )
        if np.any(wrong):
            total.fault("lost", f"appended rows: {(stored[HEAD:, 0] >> 16).tolist()}, not {rows}")
        for fault in zardine.verify(folder).faults:
            total.fault("error", f"verify in the end: {fault}")
        return total


def check(found: Any, first: int, known: Any, perhaps: dict[tuple[int, int], set[int]], when: str, to: Report) -> None:
    """That elements are where they belong, and say the last write that returned, or one after it that raised."""
    if ((found & 0xFFFF) != places(first, first + len(found))).any():
        to.fault("mixed", f"{when}: rows {first}…: elements of other places: {(found & 0xFFFF).tolist()}")
        return
    for row, column in zip(*np.nonzero((found >> 16) != known), strict=True):
        number = int(found[row, column] >> 16)
        if number not in perhaps.get((int(row), int(column)), ()):
            to.fault("lost", f"{when}: row {first + row}, column {column}: {number}, not {known[row, column]}")


def write(folder: str, me: int, clock: Clock, report: Report) -> None:
    """Write boxes of the rows of number ``me``, and read them, by handles that become stale."""
    chosen = random.Random(me)
    first = me * BAND
    known = np.zeros((BAND, WIDTH), "i8")
    perhaps: dict[tuple[int, int], set[int]] = {}
    report.notes |= {"known": known, "perhaps": perhaps}
    handles = [zardine.open_array(folder, mode="r+", config={"write_strategy": each}) for each in STRATEGIES]
    number = 0
    while clock.goes_on():
        which = chosen.randrange(len(handles))
        top, left = chosen.randrange(BAND), chosen.randrange(WIDTH)
        box = slice(top, chosen.randint(top + 1, BAND)), slice(left, chosen.randint(left + 1, WIDTH))
        place = slice(first + box[0].start, first + box[0].stop), box[1]
        try:
            if chosen.random() < 0.6:
                number += 1
                values = places(0, HEAD)[place] + (number << 16)
                cells = [
                    (row, column) for row in range(*box[0].indices(BAND)) for column in range(*box[1].indices(WIDTH))
                ]
                try:
                    handles[which][place] = values
                except ArrayChangedError:
                    for cell in cells:
                        perhaps.setdefault(cell, set()).add(number)
                    raise
                known[box] = number
                for cell in cells:
                    perhaps.pop(cell, None)
                clock.did("writes", report)
            else:
                found = np.zeros((BAND, WIDTH), "i8") + places(first, first + BAND) + (known << 16)
                found[box] = handles[which][place]
                check(found, first, known, perhaps, f"read by {me}", report)
                clock.did("reads", report)
        except ArrayChangedError:
            clock.did("refused", report)
            if chosen.random() < 0.5:
                handles[which] = zardine.open_array(folder, mode="r+", config={"write_strategy": STRATEGIES[which]})
            else:
                handles[which].refresh()
        except Exception:
            report.error(f"writer {me}")
            return


def grow(folder: str, clock: Clock, report: Report) -> None:
    """Append and resize; nobody else does."""
    chosen = random.Random(99)
    rows: list[int] = []
    report.notes["rows"] = rows
    array = zardine.open_array(folder, mode="r+")
    number = 0
    while clock.goes_on():
        number += 1
        try:
            if array.shape[0] < LONGEST - 8 and chosen.random() < 0.7:
                count = chosen.randint(1, 8)
                start = HEAD + len(rows)
                new = rows + [number] * count
                array.append(places(start, start + count) + (number << 16))
                clock.did("appends", report)
            else:
                new = rows[: chosen.randint(0, len(rows))]
                array.resize((HEAD + len(new), WIDTH))
                clock.did("resizes", report)
            rows[:] = new
        except ArrayChangedError:
            clock.did("refused", report)
            array = zardine.open_array(folder, mode="r+")
            if array.shape[0] == HEAD + len(new):
                rows[:] = new
        except Exception:
            report.error("grower")
            return
        time.sleep(chosen.uniform(0, 0.02))


def reshard(folder: str, clock: Clock, report: Report) -> None:
    """Give the array another layout, and often one that it had before."""
    chosen = random.Random(7)
    while clock.goes_on():
        try:
            done = zardine.reshard(folder, **chosen.choice(LAYOUTS), max_memory=chosen.choice(MEMORY))
            clock.did("reshards", report)
            if done.late:
                report.fault("lost", f"too late: {done.late}")
        except Exception:
            report.error("reshard")
            return
        time.sleep(chosen.uniform(0, 0.3))


def use_tools(folder: str, clock: Clock, report: Report) -> None:
    """Verify and compact; a fault that is found is none."""
    while clock.goes_on():
        try:
            for fault in zardine.verify(folder).faults:
                report.fault("error", f"verify: {fault}")
            clock.did("verify", report)
            for fault in zardine.compact(folder).faults:
                if "resharded" not in fault.message:  # which compact leaves alone, and says so
                    report.fault("error", f"compact: {fault}")
            clock.did("compact", report)
        except Exception:
            report.error("tools")
            return


def read(folder: str, clock: Clock, report: Report) -> None:
    """Read all of the array by one handle, as long as that goes."""
    array = zardine.open_array(folder, mode="r")
    while clock.goes_on():
        try:
            rows = array[:HEAD]
            if ((rows & 0xFFFF) != places(0, HEAD)).any():
                report.fault("mixed", f"a reader saw elements of other places: {(rows & 0xFFFF).tolist()}")
            clock.did("reads", report)
        except ArrayChangedError:
            clock.did("refused", report)
            array.refresh()
        except Exception:
            report.error("reader")
            return
