"""How often, and for how long, what came to nothing is tried again."""

from __future__ import annotations

import pytest

from zardine.stores import attempts as module
from zardine.stores.attempts import REQUESTS, WRITES, Patience, attempts


class Clock:
    """Time that passes only when somebody waits, or works."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def failing(patience: Patience | None, clock: Clock, seconds: float = 0.0) -> int:
    """Return the number of attempts that take ``seconds`` each and come to nothing, of which the last one says so."""
    for made, last in enumerate(attempts(patience), start=1):
        clock.now += seconds
        if last:
            return made
    raise AssertionError("no attempt was the last one")


def test_writes_are_tried_for_a_minute(clock: Clock) -> None:
    made = failing(None, clock)
    assert made > 1000
    assert 1060 <= clock.now < 1060.1
    assert max(clock.waits) <= WRITES.longest_wait
    assert len(clock.waits) == made - 1


def test_writes_are_tried_ten_times_however_long_it_takes(clock: Clock) -> None:
    assert failing(None, clock, seconds=100.0) == 10


def test_requests_are_tried_a_few_times_and_not_for_ever(clock: Clock) -> None:
    assert failing(REQUESTS, clock) == 7
    assert failing(REQUESTS, clock, seconds=100.0) == 2
    assert failing(REQUESTS, clock, seconds=500.0) == 1  # the time that the attempt itself takes counts


def test_waits_grow_up_to_the_longest(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.random, "uniform", lambda _, most: most)
    failing(Patience(most=6, first_wait=1.0, longest_wait=5.0), clock)
    assert clock.waits == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_waits_are_random(clock: Clock) -> None:
    failing(REQUESTS, clock)
    first = clock.waits
    clock.waits = []
    failing(REQUESTS, clock)
    assert first != clock.waits


def test_there_is_nothing_after_the_last_one(clock: Clock) -> None:
    assert len(list(attempts(Patience(most=3)))) == 3
    assert len(list(attempts(Patience(most=1)))) == 1
    assert len(clock.waits) == 2


def test_time_that_runs_out_after_the_question(clock: Clock) -> None:
    """The loop goes on until somebody was told that it was the last time."""
    told = []
    for last in attempts(Patience(seconds=1.0)):
        told.append(bool(last))
        clock.now += 2.0
    assert told == [False, True]
