"""Arrays that are replaced, erased and moved while others write into them through handles that they have opened before.

Each array is full of a number of its own, and each writer writes numbers that tell of the array that it read before.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from meddling import Stage, let_play
from zardine.errors import ArrayChangedError, ArrayNotFoundError, DataError
from zardine.storage import LocalStore, MemoryStore, WrapperStore

LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (8,), "shards": (16,)},
    {"chunks": (8,)},
    {"chunks": (4,), "shards": (12,)},
]
LENGTH, EACH = 24, 10000
FOUND_REPLACED = [77, 129, 205, 414, 553, 638, 706]
FOUND_MOVED = [1, 4, 7, 11]
"""Seeds that have once found something: values of an array that was replaced in the next; writes that were lost."""


class Play:
    """An array ``a`` or ``b``, and who writes into it."""

    def __init__(self, seed: int, *, far: bool) -> None:
        self.chosen = random.Random(seed)
        self.inner = MemoryStore()
        zardine.create_group(self.inner)
        self.stage = Stage(seed, self.inner, far=far)
        self.far = far
        self.layouts = LAYOUTS[: self.chosen.choice([1, 3])]
        self.number = 0
        self.may_come_back = False
        """Whether one is created where another was erased, from which it cannot be told if it has the same layout."""
        self.written: dict[tuple[int, int], int] = {}
        """By array and element what was written last."""
        self.create(self.inner)

    def create(self, store: Any) -> None:
        self.number += EACH
        values = np.full(LENGTH, self.number, "i4")
        with suppress(ArrayChangedError):  # another one has replaced it already
            zardine.create_array(store, name="a", data=values, overwrite=True, **self.chosen.choice(self.layouts))

    def creator(self) -> None:
        store = self.stage.store()
        for _ in range(self.chosen.randint(1, 4)):
            self.create(store)

    def eraser(self) -> None:
        group = zardine.open_group(self.stage.store())
        for _ in range(self.chosen.randint(1, 4)):
            with suppress(KeyError):
                del group["a"]

    def mover(self) -> None:
        group = zardine.open_group(self.stage.store())
        for _ in range(self.chosen.randint(1, 4)):
            group.move(*("ab" if "a" in group else "ba"))

    def writer(self, element: int) -> Callable[[], None]:
        store = self.stage.store()

        def run() -> None:
            array: zardine.Array | None = None
            for number in range(1, self.chosen.randint(2, 7)):
                try:
                    if array is None:
                        array = zardine.open_array(store, path=self.chosen.choice("ab"), mode="r+")
                    value = int(array[0]) // EACH * EACH
                    if not value or (array[...] // EACH * EACH != value).any():
                        array = None  # its values are just being stored
                        continue
                    self.written.pop((value, element), None)  # of what is not told of, nobody knows whether it is there
                    array[element] = value + number
                    self.written[value, element] = value + number
                except (ArrayChangedError, ArrayNotFoundError):
                    array = None
                except DataError:  # far away, what is read by an old layout may be late
                    assert self.far or self.may_come_back
                    array = None

        return run

    def check(self) -> None:
        group = zardine.open_group(self.inner)
        (name,) = group
        values = group[name][...]
        arrays = set((values // EACH * EACH).tolist()) - {0}  # what a creator that came too late has not stored is 0
        assert len(arrays) == 1, f"there are values of {arrays}"
        for element in (3, 17):
            expected = self.written.get((*arrays, element))
            assert expected is None or values[element] == expected
        assert zardine.verify(self.inner).faults == ()


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("seed", [*range(3000 if SOAK else 60), *FOUND_REPLACED])
def test_an_array_that_is_replaced(monkeypatch: pytest.MonkeyPatch, seed: int, far: bool) -> None:
    play = Play(seed, far=far)
    let_play(monkeypatch, play.stage)
    play.stage.run(play.creator, play.creator, play.writer(3), play.writer(17))
    play.check()


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("seed", [*range(3000 if SOAK else 60), *FOUND_MOVED])
def test_an_array_that_is_moved(monkeypatch: pytest.MonkeyPatch, seed: int, far: bool) -> None:
    play = Play(seed, far=far)
    let_play(monkeypatch, play.stage)
    play.stage.run(play.mover, play.writer(3), play.writer(17))
    play.check()


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("seed", [*range(3000 if SOAK else 30)])
def test_an_array_that_is_erased_and_created_again(monkeypatch: pytest.MonkeyPatch, seed: int, far: bool) -> None:
    play = Play(seed, far=far)
    play.layouts, play.may_come_back = LAYOUTS, True
    let_play(monkeypatch, play.stage)
    play.stage.run(play.creator, play.creator, play.eraser, play.writer(3), play.writer(17))
    if "a" not in zardine.open_group(play.inner):
        assert list(play.inner.list()) == ["zarr.json"]
    assert zardine.verify(play.inner).faults == ()


class _LateWriter(WrapperStore):
    """A store in which an array is created just before one is erased, and somebody begins to write into it."""

    def __init__(self, store: Any, path: str) -> None:
        super().__init__(store)
        self.path, self.has_begun, self.writer = path, False, threading.Thread(target=self.writes)
        self.late: list[bool] = []

    def erase_prefix(self, prefix: str) -> None:
        if not self.has_begun:
            self.has_begun = True
            zardine.create_array(self._store, name=self.path, shape=8, chunks=4, dtype="i4")
            self.writer.start()
            self.writer.join(0.2)
            self.late = [self.writer.is_alive()]
        super().erase_prefix(prefix)

    def writes(self) -> None:
        with suppress(ArrayChangedError, ArrayNotFoundError):
            zardine.open_array(self._store, path=self.path, mode="r+")[0] = 1

    def _parts(self) -> tuple[object, ...]:
        return self._store, id(self)


@pytest.mark.parametrize("kind", ["memory", "local"])
@pytest.mark.parametrize("path", ["a", "g/a"])
def test_nobody_begins_to_write_while_an_array_is_erased(tmp_path: Path, kind: str, path: str) -> None:
    inner = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    zardine.create_group(inner)
    zardine.create_array(inner, name=path, shape=8, chunks=4, dtype="i4")
    inner.set(f"{path}/note", b"1")  # so that there is a directory; over chunks no array is created
    store = _LateWriter(inner, path)
    erased = path.partition("/")[0]
    del zardine.open_group(store)[erased]
    assert store.late == [True]
    store.writer.join()
    assert list(inner.list()) == ["zarr.json"]


def test_a_writer_into_an_empty_array_is_waited_for(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    zardine.create_group(store)
    zardine.create_array(store, name="a", shape=8, chunks=4, dtype="i4")
    again: Callable[[], object] = lambda: zardine.create_array(  # noqa: E731
        LocalStore(tmp_path), name="a", shape=8, chunks=4, dtype="i4", overwrite=True
    )
    waiting = threading.Thread(target=again)
    with store.writer("a/"):
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join()
    with LocalStore(tmp_path).writer("a/") as is_known:
        assert is_known


def test_a_store_with_writers_of_its_own_knows_of_all(tmp_path: Path) -> None:
    class Knowing(LocalStore):
        prefixes: list[str] = []  # noqa: RUF012 - of all that are made here

        def writer(self, prefix: str) -> Any:
            self.prefixes.append(prefix)
            return super().writer(prefix)

    array = zardine.create_array(Knowing(tmp_path), name="a", shape=8, chunks=4, dtype="i4")
    for change in (lambda: array.append(np.ones(4, "i4")), lambda: array.__setitem__(0, 1)) * 2:
        Knowing.prefixes.clear()
        change()
        assert set(Knowing.prefixes) == {"a/"}


def test_a_node_with_two_names_is_erased(tmp_path: Path) -> None:
    """A link to a folder beside it: whoever keeps writers out of both does not wait for himself."""
    store = LocalStore(tmp_path)
    zardine.create_group(store)
    zardine.create_array(store, name="g/a", data=np.ones(8, "i4"), chunks=(4,))
    (tmp_path / "g" / "b").symlink_to("a")
    erasing = threading.Thread(target=lambda: zardine.open_group(store).__delitem__("g"), daemon=True)
    erasing.start()
    erasing.join(20)
    assert not erasing.is_alive()
    assert list(store.list()) == ["zarr.json"]


def test_a_thread_that_keeps_writers_out_may_write(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/k", b"one")
    done = []

    def nested() -> None:
        with store.without_writers("a/") as first, store.without_writers("a/") as second, store.writer("a/") as third:
            done.append((first, second, third, store.wait_for_writers("a/")))
        with store.writer("a/"):
            done.append(None)

    thread = threading.Thread(target=nested, daemon=True)
    thread.start()
    thread.join(20)
    assert done == [(True, True, True, True), None]


class _LockedStore(WrapperStore):
    """Notes which keys are locked, and how many at a time."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.keys: list[str] = []
        self.now = self.most = 0

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        self.keys.append(key)
        with super().lock(key):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                yield
            finally:
                self.now -= 1


def test_trees_with_one_writer_are_locked_from_above_and_never_all_of_many() -> None:
    """As the fields of view of a plate: each lock takes open files."""
    store = _LockedStore(MemoryStore())
    zardine.create_group(store)
    zardine.create_group(store, path="g/-/0")
    zardine.create_group(store, path="g/0")
    zardine.create_group(store, path="g/0/-/0")
    store.keys.clear()
    del zardine.open_group(store)["g"]
    wanted = ["g/0/zarr.json", "g/-/0/zarr.json", "g/0/-/0/zarr.json"]
    assert [key for key in store.keys if key in wanted][:3] == wanted
    for number in range(200):
        zardine.create_group(store, path=f"plate/{number}/0")
    store.keys.clear()
    store.most = 0
    del zardine.open_group(store)["plate"]
    assert 2 <= store.most <= 70
    assert {f"plate/{number}/0/zarr.json" for number in range(200)} <= set(store.keys)
    assert list(store.list()) == ["zarr.json"]


@pytest.mark.parametrize("kind", ["local", "memory", "wrapper"])
def test_a_store_that_knows_of_other_writers_is_asked_for_them(tmp_path: Path, kind: str) -> None:
    bases: dict[str, Any] = {"local": LocalStore, "memory": MemoryStore, "wrapper": WrapperStore}
    asked: list[str] = []

    def wait_for_writers(self: Any, prefix: str) -> bool:
        asked.append(prefix)
        return True

    knowing = type("Knowing", (bases[kind],), {"wait_for_writers": wait_for_writers})
    store = knowing(*{"local": (tmp_path,), "memory": (), "wrapper": (MemoryStore(),)}[kind])
    zardine.create_group(store)
    zardine.create_array(store, name="a", data=np.ones(8, "i4"), chunks=(4,))
    asked.clear()
    with store.without_writers("a/") as known:
        assert known
    assert asked == ["a/"]
    del zardine.open_group(store)["a"]
    assert asked.count("a/") >= 3  # before anything but the documents is erased, and after it
