"""Processes that work on one array at the same time until the time is over, and what they report."""

from __future__ import annotations

import multiprocessing
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 240
"""Seconds that a run may take longer to come to the fewest of each kind: machines may be busy with other things."""
CHANGES = ("writes", "appends")


@dataclass(frozen=True)
class Crew:
    """How many work, and how long: ``seconds``, and on until so many of each kind are done."""

    processes: int = 4
    threads: int = 4
    readers: int = 2
    seconds: float = 3.0
    fewest: Mapping[str, int] = field(default_factory=dict)
    """By the names that reports have for what is done; ``changes`` are writes and appends."""


@dataclass
class Report:
    """What a process did and saw. Faults are ``(kind, text)``: lost, mixed, or an error that should not have been."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """What the checks at the end need to know."""

    def fault(self, kind: str, text: str) -> None:
        """Note a fault; the same one only once."""
        fault = kind, text[:500]
        if fault not in self.faults[:1000]:
            self.faults.append(fault)
            self.counts[kind] += 1

    def error(self, who: str) -> None:
        """Note the exception that is being handled."""
        self.fault("error", f"{who}: {traceback.format_exc(limit=-4)}")

    def add(self, other: Report) -> None:
        """Take over what another one says, but for the notes."""
        self.counts += other.counts
        self.faults += other.faults


class Clock:
    """Says when the work is over; shared by all processes."""

    def __init__(self, crew: Crew, context: Any) -> None:
        self._numbers = {kind: number for number, kind in enumerate(crew.fewest)}
        self._fewest = list(crew.fewest.values())
        self._done = context.Array("q", len(self._fewest))
        self._stop = time.monotonic() + crew.seconds
        self._last = self._stop + PATIENCE

    def did(self, kind: str, report: Report) -> None:
        """One more of a kind."""
        report.counts[kind] += 1
        for each in (kind, "changes") if kind in CHANGES else (kind,):
            if each in self._numbers:
                with self._done.get_lock():
                    self._done[self._numbers[each]] += 1

    def goes_on(self) -> bool:
        """Whether there is more to do."""
        now = time.monotonic()
        return now < self._stop or (now < self._last and any(map(int.__lt__, self._done, self._fewest)))


Work = Callable[[Clock, Report], None]


def run_together(crew: Crew, jobs: list[Work]) -> list[Report]:
    """Run each job in a process of its own; gives their reports in this order."""
    context = multiprocessing.get_context("fork")
    clock = Clock(crew, context)
    results = context.Queue()

    def run(number: int) -> None:
        report = Report()
        try:
            jobs[number](clock, report)
        except BaseException:
            report.error("process")
        results.put((number, report))

    processes = [context.Process(target=run, args=(number,)) for number in range(len(jobs))]
    for process in processes:
        process.start()
    answers = dict(results.get(timeout=crew.seconds + PATIENCE + 120) for _ in processes)
    for process in processes:
        process.join()
    return [answers[number] for number in range(len(jobs))]


def run_threads(work: Callable[[int], None], count: int, report: Report) -> None:
    """Run ``work`` with 0, 1, … each in a thread of its own, to the end of all; errors go to the report."""

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException:
            report.error(f"thread {number}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
