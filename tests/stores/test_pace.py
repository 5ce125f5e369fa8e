"""How many requests go at a time: by the figures of simulated servers, without a clock."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from zardine.stores import pace
from zardine.stores.pace import FIRST, LEAST, MOST, SMALL, Flow, Pace, Turns, turns_of

UNIT = 1_000_000


class Simulated:
    """A server that answers after ``latency`` seconds, by ``workers`` each of whom takes ``work`` for a request."""

    def __init__(self, latency: float, workers: int, work: float, per_caller: float = 0.0) -> None:
        self.latency, self.work, self.per_caller = latency, work, per_caller
        self.free = [0.0] * workers

    def ends(self, begin: float, under_way: int) -> float:
        """When a request is answered that begins at this time."""
        start = max(begin + self.latency, heapq.heappop(self.free))
        end = start + self.work + self.per_caller * under_way
        heapq.heappush(self.free, end)
        return end


def run(
    pace: Pace,
    server: Simulated,
    count: int,
    nbytes: int = 0,
    refuses: Callable[[int, int], bool] = lambda number, under_way: False,
) -> float:
    """The seconds that ``count`` requests take, all of them wanted at once."""
    now, begun = 0.0, 0
    under_way: list[tuple[float, int, bool]] = []
    while begun < count or under_way:
        while begun < count and len(under_way) < pace.limit:
            refused = refuses(begun, len(under_way))
            end = now + server.latency if refused else server.ends(now, len(under_way))
            heapq.heappush(under_way, (end, begun, refused))
            begun += 1
        now, _, refused = heapq.heappop(under_way)
        pace.note(now, 0 if refused else nbytes, crowded=begun < count, refused=refused)
    return now


def test_it_grows_while_that_gives_more() -> None:
    pace = Pace(UNIT)
    server = Simulated(latency=0.1, workers=1000, work=0.0)
    seconds = run(pace, server, 20_000)
    assert pace.limit > FIRST
    assert seconds < 0.8 * 20_000 / FIRST * 0.1
    assert pace.limit <= MOST


@pytest.mark.parametrize("nbytes", [0, 10 * UNIT])
def test_a_server_that_does_one_thing_at_a_time_is_asked_for_no_more_than_it_can_do(nbytes: int) -> None:
    """4 milliseconds of work for each, 30 on the way: nine at a time keep it busy."""
    pace = Pace(UNIT)
    seconds = run(pace, Simulated(0.03, 1, 0.004), 20_000, nbytes)
    assert seconds < 1.05 * 20_000 * 0.004
    assert 8 <= pace.limit <= 24


def test_a_server_that_many_make_slow_is_asked_by_few() -> None:
    pace = Pace(UNIT)
    server = Simulated(0.01, 4, 0.002, per_caller=0.001)
    run(pace, server, 20_000)
    assert pace.limit <= 16


def test_refusals_halve_it_once_for_all_that_was_under_way() -> None:
    pace = Pace(UNIT)
    for number in range(FIRST):
        pace.note(number * 0.001, 0, crowded=True, refused=True)
    assert pace.limit == FIRST // 2
    for number in range(10_000):
        pace.note(1 + number * 0.001, 0, crowded=True, refused=True)
    assert pace.limit == LEAST


def test_a_server_that_refuses_more_than_it_can_take_gets_less() -> None:
    pace = Pace(UNIT)
    server = Simulated(0.03, 1000, 0.0)
    refused: list[int] = []

    def refuses(number: int, under_way: int) -> bool:
        if under_way >= 20:
            refused.append(number)
        return under_way >= 20

    run(pace, server, 10_000, refuses=refuses)
    assert pace.limit <= 40
    assert len([number for number in refused if number >= 1000]) < 0.3 * 9000


def test_a_web_server_is_asked_by_few_until_it_is_known_to_be_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones that are near refuse connections, and each that is refused waits for a second or more."""
    now = [0.0]
    monkeypatch.setattr("zardine.stores.pace.time", SimpleNamespace(monotonic=lambda: now[0]))

    def answers(*seconds: float) -> Turns:
        turns = Turns(Pace(UNIT), may_be_small=True)
        assert turns.limit == SMALL
        for each in seconds:
            with turns.turn(0) as turn:
                now[0] += each
                turn.answered = 0
        return turns

    assert answers(0.03).limit == FIRST
    assert answers(0.008, 0.008, 0.008).limit == SMALL
    assert answers(0.008, 0.008, 0.008, 0.008).limit == FIRST
    near = answers(0.3, 0.001)
    assert near.limit == SMALL
    for number in range(10_000):  # nor is it tried whether more are worth while
        near.pace.note(1 + number * 0.001, 0, crowded=True)
        assert near.limit <= SMALL
    assert answers(0.001, 0.03, 0.03, 0.03, 0.001, 0.03).limit == SMALL
    assert answers(0.001, 0.03, 0.03, 0.03, 0.03, 0.001).limit == FIRST  # it was near a cache, say


def test_what_is_not_limited_teaches_nothing() -> None:
    pace = Pace(UNIT)
    for number in range(100_000):
        pace.note(number * 0.001, number % 7, crowded=False)
    assert pace.limit == FIRST


def test_a_rate_that_falls_is_looked_into() -> None:
    """The server becomes one that does one thing at a time, and then again one that can do more."""
    pace = Pace(UNIT)
    run(pace, Simulated(0.03, 1000, 0.0), 5000)
    high = pace.limit
    run(pace, Simulated(0.03, 1, 0.004), 20_000)
    low = pace.limit
    run(pace, Simulated(0.03, 1000, 0.0), 20_000)
    assert low < 32 < pace.limit
    assert high > 32


# threads


def test_as_many_go_at_a_time_as_the_pace_says() -> None:
    turns = Turns(Pace(UNIT, limit=3))
    inside, most = [0], [0]
    lock = threading.Lock()
    full = threading.Barrier(3)

    def work() -> None:
        with turns.turn(0):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            full.wait(60)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]  # too few to learn from
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [3]


def test_bytes_on_their_way_are_bounded_and_what_is_larger_goes_alone() -> None:
    turns = Turns(Pace(UNIT), most_bytes=100)
    under_way, seen = [0, 0], []
    lock = threading.Lock()

    def work(nbytes: int) -> None:
        with turns.turn(nbytes):
            with lock:
                under_way[0] += nbytes
                under_way[1] += 1
                seen.append(tuple(under_way))
            with lock:
                under_way[0] -= nbytes
                under_way[1] -= 1

    sizes = [60, 30, 10, 200, 40, 60, 1, 99] * 20
    threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == len(sizes)
    assert all(nbytes <= 100 or number == 1 for nbytes, number in seen)


def test_answers_of_unknown_length_count_as_the_usual_ones() -> None:
    turns = Turns(Pace(UNIT), most_bytes=1000)
    for _ in range(100):
        with turns.turn(None) as turn:
            turn.nbytes = 600
    with turns.turn(None):
        assert not turns._may_go(500)
        assert turns._may_go(300)


def test_an_error_ends_a_turn() -> None:
    turns = Turns(Pace(UNIT, limit=1))
    with pytest.raises(OSError, match="broken"), turns.turn(5):
        raise OSError("broken")
    with turns.turn(5):
        pass
    assert turns._nbytes == turns._under_way == 0


def test_one_place_has_one_pace() -> None:
    assert turns_of("a place", UNIT) is turns_of("a place", UNIT)
    assert turns_of("a place", UNIT) is not turns_of("another", UNIT)


def test_before_anything_is_measured_a_guess_says_how_much_flows_in_the_time_of_a_request() -> None:
    assert turns_of(("guess",), UNIT).spare == (UNIT, UNIT)
    flow = Flow(UNIT)
    flow.note(0.1, 500_000, 500_000)  # nobody knows how much of this is the time of any request
    flow.note(0.05, 100, 100)
    flow.note(0.1, 500_000, 500_000)  # once may be by chance
    assert flow.spare == (UNIT, UNIT)


@pytest.mark.parametrize(("latency", "bandwidth", "spare"), [(0.03, 5e7, 1.5e6), (0.1, 2e6, 2e5), (0.001, 1e7, 1e5)])
def test_how_much_flows_in_the_time_of_a_request_is_measured(latency: float, bandwidth: float, spare: float) -> None:
    flow = Flow(UNIT)
    for nbytes in (1000, 300_000, 300_000, 300_000):
        flow.note(latency + nbytes / bandwidth, nbytes, nbytes)
    assert flow.spare == (pytest.approx(spare, rel=0.05), UNIT)
    for _ in range(2):
        for ended in (600_000, 1_800_000, 3_000_000):  # of several at a time, the last of which ends when all have
            flow.note(latency + 3_000_000 / bandwidth, 300_000, ended)
    assert flow.spare == (pytest.approx(spare, rel=0.05), pytest.approx(spare, rel=0.05))


def test_what_was_on_its_way_before_is_not_taken_for_what_flows_in_no_time() -> None:
    flow = Flow(UNIT)
    flow.note(0.03, 100, 100)
    for _ in range(4):  # of a stream of answers of which one ends every millisecond, each a little later than at best
        flow.note(0.0301, 100_000, 3_000_000)
    assert flow.spare[1] <= 2 * 3_000_000


def test_measurements_of_long_ago_do_not_count() -> None:
    """Else a place that was slow once is taken for slow until something large is read there."""
    flow = Flow(UNIT)
    for nbytes in (1000, 300_000, 300_000, 300_000):
        flow.note(0.03 + nbytes / 1e6, nbytes, nbytes)
    assert flow.spare[0] < 50_000
    for _ in range(128):
        flow.note(0.03, 1000, 1000)
    assert flow.spare == (UNIT, UNIT)


def test_a_measurement_that_was_held_up_does_not_count_one_after_the_other_does() -> None:
    flow = Flow(UNIT)
    for seconds in (0.04, 0.5, 0.5, 0.04, 0.5):
        flow.note(0.03, 100, 100)
        flow.note(seconds, 500_000, 500_000)
    assert flow.spare[0] == pytest.approx(1.5e6, rel=0.01)
    for _ in range(4):
        flow.note(0.5, 500_000, 500_000)
    assert flow.spare[0] < 50_000


def test_answers_of_a_place_are_measured_and_what_is_sent_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: now[0]))
    turns = Turns(Pace(UNIT))
    for nbytes, answered in [(0, 0), *2 * [(10**6, None)], *3 * [(10**6, 10**6)]]:
        with turns.turn(nbytes) as turn:
            now[0] += 0.03 + (nbytes if answered is not None else 100 * nbytes) / 1e8
            turn.answered = answered
    assert turns.spare == (pytest.approx(3e6, rel=0.01), UNIT)
