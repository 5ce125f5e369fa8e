"""Processes that work on one array at the same time until the time is over, and what they report."""

from __future__ import annotations

import multiprocessing
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 10
"""How many times the given time a run may take to come to the fewest writes."""


@dataclass(frozen=True)
class Crew:
    """How many work, and how long: ``seconds``, and on until ``fewest`` writes are done."""

    processes: int = 4
    threads: int = 4
    readers: int = 2
    seconds: float = 3.0
    fewest: int = 0


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
        self._writes = context.Value("q", 0)
        self._fewest = crew.fewest
        self._stop = time.monotonic() + crew.seconds
        self._last = self._stop + PATIENCE * crew.seconds

    def wrote(self) -> None:
        """One more write."""
        with self._writes.get_lock():
            self._writes.value += 1

    def goes_on(self) -> bool:
        """Whether there is more to do."""
        now = time.monotonic()
        return now < self._stop or (now < self._last and self._writes.value < self._fewest)


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
    answers = dict(results.get(timeout=(PATIENCE + 1) * crew.seconds + 60) for _ in processes)
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
