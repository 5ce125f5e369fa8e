"""The one cache: what it keeps, what it lets go, and that threads and forks find it whole."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

from zardine.cache import Cache


def test_what_is_kept_is_within_the_limit_and_counted() -> None:
    rng = random.Random(0)
    cache: Cache[int, int] = Cache(1000)
    kept: dict[int, tuple[int, int]] = {}
    for step in range(20_000):
        key = rng.randrange(40)
        action = rng.randrange(10)
        if action < 5:
            size = rng.choice((0, 1, 50, 100, 400, 1000, 1001))
            gone = cache.put(key, step, size)
            kept.pop(key, None)
            assert [kept.pop(each)[0] for each, _ in gone] == [value for _, value in gone]
            if size <= 1000:
                kept[key] = step, size
        elif action < 9:
            assert cache.get(key) == (kept[key][0] if key in kept else None)
        else:
            assert cache.drop(key) == (kept.pop(key)[0] if key in kept else None)
        assert len(cache) == len(kept)
        assert cache.nbytes == sum(size for _, size in kept.values()) <= 1000
    assert sorted(cache.clear()) == sorted((key, value) for key, (value, _) in kept.items())
    assert (len(cache), cache.nbytes) == (0, 0)


def test_nothing_goes_while_there_is_room() -> None:
    cache: Cache[str, str] = Cache(30)
    assert [cache.put(key, key, 10) for key in "abc"] == [[], [], []]
    assert cache.put("b", "other", 10) == []
    assert [cache.get(key) for key in "abc"] == ["a", "other", "c"]


def test_what_was_not_used_lately_goes_first() -> None:
    cache: Cache[str, str] = Cache(30)
    for key in "abc":
        cache.put(key, key, 10)
    cache.get("a")
    assert cache.put("d", "d", 10) == [("b", "b")]
    assert cache.put("e", "e", 20) == [("c", "c"), ("a", "a")]
    cache.get("d")
    cache.get("e")
    assert cache.put("f", "f", 10) == [("d", "d")]  # all are in use: the one that came first


def test_a_value_that_is_too_large_takes_nobodys_place() -> None:
    cache: Cache[str, str] = Cache(30)
    cache.put("a", "a", 10)
    assert cache.put("b", "b", 31) == []
    assert cache.get("a") == "a"
    assert cache.put("a", "longer", 31) == []  # and the old one is not taken for it
    assert (cache.get("a"), cache.get("b"), cache.nbytes) == (None, None, 0)


def test_a_limit_that_changes() -> None:
    cache: Cache[int, int] = Cache(100)
    for key in range(10):
        cache.put(key, key, 10)
    cache.limit = 30
    cache.put(10, 10, 10)
    assert (len(cache), cache.nbytes) == (3, 30)


class Slow(str):
    """A key whose comparison lets other threads in."""

    def __hash__(self) -> int:
        time.sleep(0)
        return 1

    def __eq__(self, other: object) -> bool:
        time.sleep(0)
        return str.__eq__(self, str(other))


@pytest.mark.parametrize("kind", [str, Slow])
def test_threads(kind: type[str]) -> None:
    cache: Cache[str, str] = Cache(100)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(100 if kind is Slow else 5000):
                key = kind(rng.randrange(15))
                action = rng.randrange(20)
                if action < 10:
                    assert cache.get(key) in (None, key)
                elif action < 19:
                    assert all(name == value for name, value in cache.put(key, str(key), rng.randrange(40)))
                else:
                    cache.drop(key)
                assert cache.nbytes <= 100
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    gone = cache.clear()
    assert (cache.nbytes, len(cache)) == (0, 0)
    assert len({str(key) for key, _ in gone}) == len(gone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_finds_it_whole() -> None:
    cache: Cache[int, int] = Cache(100)
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            cache.put(number % 20, number, 10)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                sound = cache.nbytes == 10 * len(cache) <= 100
                cache.put(-1, -1, 10)
                os._exit(0 if sound and cache.get(-1) == -1 and cache.nbytes == 10 * len(cache) <= 100 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_count_that_an_interruption_left_wrong_comes_right() -> None:
    cache: Cache[str, int] = Cache(10)
    cache.put("a", 1, 5)
    cache.nbytes = 20  # as if Ctrl-C had come between taking a value out and counting that
    assert cache.put("b", 2, 6) == [("a", 1)]
    assert (list(cache), cache.nbytes) == (["b"], 6)
