"""What forks keep of locks, and what is told of a value that is replaced between two requests."""

import errno
import os
from pathlib import Path

import pytest

from servers import servers
from zardine.storage import LocalStore, ObjectStore
from zardine.stores import locks
from zardine.stores.locks import FileLock, KeyedLock


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("what", ["a/k", "a"])
def test_a_fork_keeps_no_descriptor_of_a_lock(tmp_path: Path, what: str) -> None:
    """Neither of a file that is locked, nor of a directory that is written in."""
    store = LocalStore(tmp_path)
    store.set("a/k", b"x")

    def held() -> list[str]:
        links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
        return [link for link in links if os.path.exists(link) and os.path.samefile(link, tmp_path / what)]

    with store.lock("a/k") if what == "a/k" else store.writer("a/"):
        assert len(held()) == 1
        child = os.fork()
        if child == 0:
            os._exit(len(held()))
        assert os.waitpid(child, 0)[1] == 0
        assert len(held()) == 1
    assert held() == []


def test_a_value_that_is_replaced_by_one_as_long_between_the_requests() -> None:
    """Ranges beyond the end are cut to the size, which is asked for first: all of one version, and that is told."""
    obstore = servers.package("obstore")
    store = ObjectStore(obstore.store.MemoryStore())
    store.set("k", b"old-old-")
    head, answers = store._head, []

    def replaced(key: str) -> object:
        answers.append(head(key))
        if len(answers) == 1:
            store.set("k", b"new-new-")
        return answers[-1]

    store._head = replaced  # type: ignore[method-assign]
    for wanted in (((4, 100),), ((0, 4), (4, 100))):
        answers.clear()
        store.set("k", b"old-old-")
        reading = store._read_beyond("k", wanted)
        assert reading is not None
        assert b"".join(map(bytes, reading.parts)) == b"new-new-"[-len(wanted) * 4 :]
        assert reading.version == head("k")[0]


@pytest.mark.skipif(not locks.HAS_LOCKS, reason="needs flock")
def test_where_a_lock_cannot_be_asked_for_it_counts_as_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    store.set("k", b"x")
    assert not store.is_locked("k")

    def fails(file: int, *, alone: bool, wait: bool = True) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(locks, "lock_file", fails)
    assert store.is_locked("k")
    monkeypatch.undo()
    monkeypatch.setattr(locks, "HAS_LOCKS", False)
    assert store.is_locked("k")


def test_a_file_is_opened_for_writing_only_to_be_edited(tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(b"x")
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with FileLock(directory, "k") as lock:
            assert lock.file is None
            assert lock.status is not None
        with FileLock(directory, "k", editing=True) as lock:
            assert lock.file is not None
            assert os.pwrite(lock.file, b"y", 0) == 1
        with FileLock(directory, "nothing", editing=True) as lock:
            assert (lock.file, lock.status) == (None, None)
    finally:
        os.close(directory)
    assert (tmp_path / "k").read_bytes() == b"y"


def test_an_interrupt_of_who_waits_for_a_lock_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def acquire(self) -> bool:
            raise KeyboardInterrupt

        def release(self) -> None:
            raise RuntimeError("it is not ours")

    entered = []
    with monkeypatch.context() as changed:
        changed.setattr(locks.threading, "RLock", Interrupted)
        with pytest.raises(KeyboardInterrupt), KeyedLock("interrupted"):
            entered.append(True)
    assert not entered
    with KeyedLock("interrupted"):  # nothing is left of it
        assert locks._entries["interrupted"].users == 1
