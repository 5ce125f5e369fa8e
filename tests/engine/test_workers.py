"""Threads that share the work of one call."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from zardine.engine import workers
from zardine.engine.workers import beside, for_each


@pytest.mark.parametrize("in_caller", [True, False])
def test_what_is_under_way_is_finished_when_the_items_fail(in_caller: bool) -> None:
    """Nothing goes on behind the back of who called, whichever thread the items fail in."""
    caller = threading.current_thread()
    begun, failed = threading.Event(), threading.Event()
    done: list[str] = []

    def items() -> Iterator[str]:
        yield "a"
        yield "b"
        begun.wait(30)
        failed.set()
        raise OSError("no more items")

    def work(item: str) -> None:
        if (threading.current_thread() is caller) == in_caller:
            if not begun.is_set():
                other.wait(30)
            return
        other.set()
        begun.set()
        failed.wait(30)
        time.sleep(0.05)
        done.append(item)

    other = threading.Event()
    with pytest.raises(OSError, match="no more items"):
        for_each(work, items(), 3, 2)
    assert len(done) == 1


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="a signal interrupts a thread that waits")
def test_what_is_under_way_is_finished_after_ctrl_c() -> None:
    """Who called may remove what was made so far, as a writer of vectors does."""
    caller, other = threading.current_thread(), threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        if threading.current_thread() is caller:
            other.wait(30)
            return
        other.set()
        if not done:
            time.sleep(0.05)  # until the caller waits
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.05)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        for_each(work, range(2), 2, 2)
    assert len(done) == 1
    time.sleep(0.1)
    assert len(done) == 1


def test_finding_the_first_item_needs_no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be all that there is to do, as where the kernel has written whatever there was."""
    monkeypatch.setattr(workers, "_pool", None)  # whose use would fail
    caller = threading.current_thread()
    found: list[threading.Thread] = []

    def items() -> Iterator[str]:
        found.append(threading.current_thread())
        yield from ()

    for_each(pytest.fail, items(), 5, 4)
    assert found == [caller]


def test_every_item_is_worked_on_once() -> None:
    done: list[int] = []
    for_each(done.append, iter(range(100)), 100, 4)
    assert sorted(done) == list(range(100))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="a signal interrupts a thread that waits")
def test_work_beside_other_work_is_finished_after_ctrl_c() -> None:
    """Who builds a level removes it then: nothing may be put into it after that."""
    begun = threading.Event()
    done: list[int] = []

    def work() -> None:
        begun.set()
        time.sleep(0.05)  # until the caller waits
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.05)
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        beside(work, lambda: begun.wait(30), 2)
    assert len(done) == 1


@pytest.mark.parametrize("which", ["work", "other", "both"])
def test_work_beside_other_work_that_fails(which: str) -> None:
    done: list[str] = []
    begun = threading.Event()

    def make(name: str) -> None:
        if name == "work":
            begun.set()
            time.sleep(0.02)
        else:
            begun.wait(30)
        done.append(name)
        if which in (name, "both"):
            raise OSError(name)

    with pytest.raises(OSError, match="work" if which == "work" else "other"):
        beside(lambda: make("work"), lambda: make("other"), 2)
    assert sorted(done) == ["other", "work"]
