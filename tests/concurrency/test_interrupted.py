"""Ctrl-C at any moment: no lock stays, and each chunk is old or new."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import some
from zardine import vectors
from zardine.contexts import SureStack, sure_context
from zardine.kernel import KERNEL
from zardine.storage import CountingStore, LocalStore, MemoryStore, Store, ZipStore

pytestmark = pytest.mark.skipif(KERNEL is None, reason="what is written in Python is interrupted")


class Interrupt:
    """Raises ``KeyboardInterrupt`` at one of the moments at which Python looks for signals.

    That is where a function begins, and after each call of one that is not written in Python.
    """

    def __init__(self, at: int | str) -> None:
        self.left = at if isinstance(at, int) else 0
        self.name = None if isinstance(at, int) else at

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_return") and self.name in (None, getattr(argument, "__name__", "")):
            self.left -= 1
            if self.left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt


def interrupted(work: Callable[[], object], at: int | str) -> list[BaseException] | None:
    """Run ``work`` with Ctrl-C at a moment, the first one after a call of what has a name, or that of a number.

    Gives what was raised, with all that it keeps alive.
    An empty list where it came while an object was collected, where Python ignores it; ``None`` where work was done.
    """
    interrupt, raised = Interrupt(at), []
    sys.setprofile(interrupt)
    try:
        work()
    except KeyboardInterrupt as error:
        raised.append(error)
    finally:
        sys.setprofile(None)
    return raised if interrupt.left < 0 else None


def ends(work: Callable[[], object]) -> bool:
    """Whether another thread does it in time."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def enter(context: AbstractContextManager[object]) -> None:
    with context:
        pass


@sure_context
def several(store: Store) -> Iterator[None]:
    with SureStack() as stack:
        stack.enter(store.lock("a/b"))
        stack.enter(store.without_writers("a/"))
        yield


def look_at_several(store: Store) -> None:
    enter(store.lock("a/b"))
    enter(store.writer("a/"))


CONTEXTS: dict[str, tuple[Callable[[Store], Any], Callable[[Store], object]]] = {
    "lock": (lambda store: store.lock("a/b"), lambda store: enter(store.lock("a/b"))),
    "lock of nothing": (lambda store: store.lock("a/new"), lambda store: enter(store.lock("a/new"))),
    "edit": (lambda store: store.files.edit("a/b"), lambda store: enter(store.lock("a/b"))),
    "writer": (lambda store: store.writer("a/"), lambda store: store.wait_for_writers("a/")),
    "no writer": (lambda store: store.without_writers("a/"), lambda store: enter(store.writer("a/"))),
    "several": (several, look_at_several),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in ("local", "counted") for name in CONTEXTS),
        ("memory", "lock"),
        ("memory", "writer"),
        ("memory", "no writer"),
        ("memory", "several"),
    ],
)
def test_no_lock_stays(tmp_path: Path, kind: str, name: str) -> None:
    store: Store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    store = CountingStore(store) if kind == "counted" else store
    store.set("a/b", b"1")
    context, look = CONTEXTS[name]
    for at in count():
        kept = interrupted(lambda: enter(context(store)), at)
        assert ends(lambda: look(store)), at
        if kept is None:
            break
    assert at > 5


def test_who_reads_keeps_no_writer_out(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/b", b"1")

    def read() -> None:
        file = store.files.open("a/b")
        assert file is not None
        with file:
            file.wait()

    for at in count():
        kept = interrupted(read, at)
        assert ends(lambda: enter(store.files.edit("a/b"))), at
        if kept is None:
            break
    assert at > 5


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("durable", [False, True], ids=["", "durable"])
@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
def test_a_write_of_a_part_of_a_shard_leaves_each_chunk_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: Any, durable: bool, location: Any
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda about: None)  # it may come while an object is collected
    store = LocalStore(tmp_path, durable=durable)
    shards: Any = {"shape": (64,), "index_location": location}
    config: Any = {"write_strategy": strategy}
    array = zardine.create_array(store, name="a", shape=64, dtype="i4", chunks=(16,), shards=shards, config=config)
    noise = np.random.default_rng(0).integers(0, 2**31, (2, 64), dtype="i4")
    array[...] = noise[0]
    check_interrupts(array, slice(8, 40), lambda at: noise[at % 2][8:40] * (np.arange(32) // 8 % 2 == at % 3), 16)
    assert zardine.verify(tmp_path)


def test_a_write_of_chunks_that_are_files_leaves_each_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda about: None)  # it may come while an object is collected
    array = zardine.create_array(tmp_path / "a", data=np.arange(8), chunks=(2,))
    check_interrupts(array, slice(1, 6), lambda at: np.full(5, -at), 2)
    assert zardine.verify(tmp_path)


def check_interrupts(
    array: zardine.Array, where: slice, values: Callable[[int], np.ndarray[Any, Any]], unit: int
) -> None:
    """Interrupt writes at one moment after the other; the values of a moment are those that ``values`` returns."""
    moments = next(at for at in count(100, 100) if interrupted(lambda: array.__setitem__(where, values(0)), at) is None)
    for at in some(range(moments), 7):
        expected = array[...]
        new = expected.copy()
        new[where] = values(at)
        kept = interrupted(lambda new=new: array.__setitem__(where, new[where]), at)
        found = array[...]
        for start in range(0, len(found), unit):
            part = slice(start, start + unit)
            assert (found[part] == expected[part]).all() or (found[part] == new[part]).all(), (at, found)
        if array.shards is not None:
            assert (found == expected).all() or (found == new).all(), (at, found)
        del kept
        assert ends(partial(array.__setitem__, where, values(at + 1))), at
        assert (array[where] == values(at + 1)).all()


def test_an_archive_can_be_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda about: None)  # it may come while an object is collected
    for at in count():
        path = tmp_path / f"{at}.zip"

        def write(path: Path = path, value: bytes = b"1") -> None:
            with ZipStore(path, mode="a") as store:
                store.set("a", value)

        if at % 2:
            write()
        kept = interrupted(write, at // 2)
        write(value=b"2")
        with ZipStore(path, mode="r") as store:
            assert store.get("a") == b"2", at
        if kept is None:
            break
    assert at > 50


@pytest.mark.parametrize("layout", [{"chunks": (4, 8)}, {"chunks": (2, 4), "shards": (4, 8)}])
def test_an_append_is_done_or_not_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Any
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda about: None)  # it may come while an object is collected
    path = tmp_path / "a"
    zardine.create_array(path, shape=(0, 16), dtype="i4", **layout).append(np.zeros((1, 16)))
    ours, theirs = (zardine.open_array(path, mode="r+") for _ in range(2))
    added = 0
    most = next(at for at in count(50, 50) if _is_appended(tmp_path / "other", layout, at))
    for number, at in enumerate(some(range(most), 6), 1):
        kept = interrupted(partial(ours.append, np.full((1, 16), number)), at)
        assert ends(partial(theirs.append, np.full((1, 16), -1))), at
        added += 1
        del kept
    found = zardine.open_array(path)[:]
    assert (found == found[:, :1]).all()
    assert (found[:, 0] == -1).sum() == added
    rows = found[found[:, 0] > 0, 0]
    assert len(set(rows.tolist())) == len(rows)
    assert zardine.verify(str(path))


def _is_appended(path: Path, layout: Any, at: int) -> bool:
    array = zardine.create_array(path, shape=(1, 16), dtype="i4", overwrite=True, **layout)
    return interrupted(partial(array.append, np.ones((1, 16))), at) is None


def test_points_are_added_or_not_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda about: None)  # it may come while an object is collected
    path = str(tmp_path / "a.zv")
    positions = np.random.default_rng(5).uniform(0, 100, (600, 2)).astype("f4")
    vectors.write_points(path, positions, chunk_shape=10, shard_shape=4, vertex_attributes={"n": np.zeros(600, "i4")})
    added = 0

    def add(number: int) -> None:
        vectors.append_points(path, positions[:5], vertex_attributes={"n": np.full(5, number, "i4")})

    most = next(at for at in count(100, 100) if interrupted(partial(add, 0), at) is None)
    for number, at in enumerate(["extend_shards", *some(range(most), 8)], 1):
        kept = interrupted(partial(add, number), at)
        assert kept is not None or isinstance(at, int), at
        assert ends(partial(add, -1)), at
        del kept
        added += 5
    found = vectors.read_points(path).attributes["n"]
    assert (found == -1).sum() == added
    assert set(np.unique(found[found > 0], return_counts=True)[1].tolist()) <= {5}
    assert vectors.validate(path).ok


def test_no_file_is_closed_twice(tmp_path: Path) -> None:
    """What is closed a second time may be another thread's."""
    for at in count():
        store = LocalStore(tmp_path / str(at))
        kept = interrupted(partial(store.set, "a/b/c", b"1"), at)  # raises nothing else
        store.set("a/b/c", b"2")
        if kept is None:
            break
    assert at > 20
