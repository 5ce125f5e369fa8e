"""Writers of chunks, readers, and tools, all on the same shards.

Each thread owns some inner chunks, scattered over all shards, and fills one of them with a number that only grows; a
part of the writes is in two halves, so that what is stored has to be read, and some wait in a buffer. Readers look that
every chunk is one number, or halves of two that follow each other, and that no number goes back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from crew import Clock, Crew, Report, Work, run_threads, run_together

import zardine

SIDE, CHUNK, SHARD = 64, 8, 32
Place = tuple[int, int]
PLACES: list[Place] = [(row, column) for row in range(0, SIDE, CHUNK) for column in range(0, SIDE, CHUNK)]


@dataclass(frozen=True)
class Party:
    """An array and how it is written."""

    strategies: tuple[str, ...]
    """Of the processes, in turn."""
    location: str
    plain: bool = False
    """Neither compressed nor with checksums: chunks of one size that are read whatever they hold."""
    tools: bool = False
    """Whether verify, repair and compact run meanwhile, and some writes wait in buffers."""

    def run(self, folder: str, crew: Crew) -> Report:
        """Let them work on a new array; gives what happened and what was lost."""
        more: dict[str, Any] = {"compressors": None, "checksum": False} if self.plain else {}
        zardine.create_array(
            folder,
            shape=(SIDE, SIDE),
            dtype="u4",
            chunks=(CHUNK, CHUNK),
            shards={"shape": (SHARD, SHARD), "index_location": self.location},
            overwrite=True,
            **more,
        )
        jobs: list[Work] = [partial(write, self, folder, crew, number) for number in range(crew.processes)]
        jobs += [partial(read, folder, number) for number in range(crew.readers)]
        jobs += [partial(use_tools, folder)] if self.tools else []
        reports = run_together(crew, jobs)
        total = Report()
        for report in reports:
            total.add(report)
        last: dict[Place, int] = {}
        for report in reports[: crew.processes]:
            last |= report.notes.get("last", {})
        whole = zardine.open_array(folder, mode="r")[...]
        for place, value in last.items():
            found = np.unique(whole[box(place)]).tolist()
            if found != [value]:
                total.fault("lost", f"chunk {place} holds {found}, {value} was written last")
        check_stored(folder, total)
        return total


def check_stored(folder: str, report: Report) -> None:
    """That in the end nothing is damaged, and nothing is left beside."""
    verified = zardine.verify(folder)
    for fault in (*verified.faults, *(note for note in verified.notes if note.kind != "unused")):
        report.fault("error", f"verify at the end: {fault}")
    for path in zardine.storage.LocalStore(folder).leftovers(0):
        report.fault("error", f"left beside: {path}")


def box(place: Place) -> tuple[slice, slice]:
    return slice(place[0], place[0] + CHUNK), slice(place[1], place[1] + CHUNK)


def write(party: Party, folder: str, crew: Crew, number: int, clock: Clock, report: Report) -> None:
    strategy = party.strategies[number % len(party.strategies)]
    shared = zardine.open_array(folder, mode="r+", config={"write_strategy": strategy})
    last: dict[Place, int] = {}
    report.notes["last"] = last

    def work(thread: int) -> None:
        mine = PLACES[number * crew.threads + thread :: crew.processes * crew.threads]
        chosen = random.Random(number * 100 + thread)
        last.update(dict.fromkeys(mine, 0))
        waits = party.tools and thread == 0
        array = shared.with_config({}) if waits else shared
        while clock.goes_on():
            if waits:
                with array.buffered():
                    some = chosen.sample(mine, min(len(mine), 3))
                    for place in some:
                        fill(array, place, last[place] + 1, chosen)
                for place in some:
                    last[place] += 1
            else:
                place = chosen.choice(mine)
                fill(array, place, last[place] + 1, chosen)
                last[place] += 1
            clock.did("writes", report)

    run_threads(work, min(crew.threads, len(PLACES) // crew.processes), report)


def fill(array: zardine.Array, place: Place, value: int, chosen: random.Random) -> None:
    rows, columns = box(place)
    if chosen.random() < 0.3:
        middle = rows.start + CHUNK // 2
        array[rows.start : middle, columns] = value
        array[middle : rows.stop, columns] = value
    else:
        array[rows, columns] = value


def read(folder: str, number: int, clock: Clock, report: Report) -> None:
    last = dict.fromkeys(PLACES, 0)
    array = zardine.open_array(folder, mode="r")
    chosen = random.Random(number)
    while clock.goes_on() and len(report.faults) < 5:
        try:
            if chosen.random() < 0.5:
                found = {place: array[box(place)] for place in chosen.sample(PLACES, 4)}
            else:
                whole = array[...]
                found = {place: whole[box(place)] for place in PLACES}
        except Exception:
            report.error("reader")
            continue
        clock.did("reads", report)
        for place, values in found.items():
            low, high = int(values.min()), int(values.max())
            halves = [np.unique(values[: CHUNK // 2]), np.unique(values[CHUNK // 2 :])]
            if any(len(half) != 1 for half in halves) or high - low > 1:
                report.fault("mixed", f"reader: chunk {place} holds {np.unique(values).tolist()}")
            elif low < last[place] - 1:
                report.fault("lost", f"reader: chunk {place} holds {low} after {last[place]}")
            last[place] = max(last[place], low)


def use_tools(folder: str, clock: Clock, report: Report) -> None:
    """Verify, repair and compact again and again: nothing is damaged, so there is nothing to find or to mend."""
    while clock.goes_on() and len(report.faults) < 5:
        for name in ("verify", "compact", "repair"):
            try:
                found: Any = getattr(zardine, name)(folder)
            except Exception:
                report.error(name)
                continue
            clock.did(name, report)
            faults = (*getattr(found, "faults", ()), *getattr(found, "actions", ()), *getattr(found, "left", ()))
            for fault in faults:
                report.fault("error", f"{name}: {fault}")
