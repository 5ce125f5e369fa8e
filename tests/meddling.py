"""Others who come in at chosen moments: tasks of which one runs at a time, and who goes on is drawn by a seed.

A :class:`Stage` runs functions as tasks, each in a thread of its own. Before each operation of a store that
:meth:`Stage.store` gives, another task may go on, and a task may be killed: then it does no more, until what started it
says that it is :meth:`Stage.revived`. Locks and writers are known to the stage, so that who waits for them is passed
over, and time is the stage's own, so that nobody waits in truth. One seed is one order, whatever the machine does.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine import freshness
from zardine.errors import ArrayChangedError
from zardine.jobs import records
from zardine.stores import attempts
from zardine.stores.base import WHOLE, ReadCost
from zardine.stores.wrappers.wrapper import WrappedFiles
from zardine.tools.checking import outside
from zardine.tools.resharding import in_place
from zardine.vectors.storing import applying, claims, logs

FAR = ReadCost(latency=0.03, bandwidth=5e7, requests=1)


class KilledError(BaseException):
    """What a task that is killed does no more."""


class StuckError(BaseException):
    """All tasks wait for each other."""


class _Task:
    def __init__(self, number: int) -> None:
        self.number = number
        self.turn = threading.Semaphore(0)
        self.waits: Callable[[], bool] | None = None
        """What has to be true before it goes on."""
        self.wakes = 0.0
        self.is_done = self.is_dead = False
        self.is_unbroken = self.lives = 0
        self.error: BaseException | None = None


class Stage:
    """Tasks over one store, which take turns as ``seed`` will have it."""

    def __init__(self, seed: int, inner: Any, *, kills: int = 0, far: bool = False) -> None:
        self.chosen = random.Random(seed * 7919 + 17)
        self.inner, self.far, self.kills = inner, far, kills
        self.often = self.chosen.choice([0.02, 0.1, 0.3, 0.7])
        self.deadly = self.chosen.choice([0.01, 0.05, 0.2])
        self.now = 1000.0
        self.tasks: list[_Task] = []
        self.by_thread: dict[int, _Task] = {}
        self.held: dict[Any, tuple[_Task, int]] = {}
        self.writers: list[tuple[str, _Task]] = []
        self.closed: dict[str, _Task | None] = {}
        """Prefixes into which a task lets no others write."""
        self.log: list[str] = []

    def store(self, *, kills: bool = False, read_only: bool = False) -> StagedStore:
        """Return the store as one process sees it, in which a task may be killed with ``kills``."""
        return StagedStore(self, kills, read_only)

    def run(self, *works: Callable[[], object]) -> None:
        """Run tasks to their ends; raises what the first of them that failed has raised."""
        self.tasks = [_Task(number) for number in range(len(works))]
        self.is_over = threading.Semaphore(0)

        def body(task: _Task, work: Callable[[], object]) -> None:
            self.by_thread[threading.get_ident()] = task
            task.turn.acquire()
            try:
                if task.error is None:
                    work()
            except BaseException as error:
                task.error = error
            task.is_done = True
            del self.by_thread[threading.get_ident()]  # a thread of the library may get its name
            self.held = {key: each for key, each in self.held.items() if each[0] is not task}
            self.writers = [each for each in self.writers if each[1] is not task]
            self.closed = {prefix: each for prefix, each in self.closed.items() if each is not task}
            self._go_on(None)

        threads = [
            threading.Thread(target=body, args=each, daemon=True) for each in zip(self.tasks, works, strict=True)
        ]
        with zardine.config.set({"threads": 1}):
            for thread in threads:
                thread.start()
            self._go_on(None)
            self.is_over.acquire()
            for thread in threads:
                thread.join()
        for task in self.tasks:
            if task.error is not None:
                raise task.error

    def _runnable(self) -> list[_Task]:
        waiting = [each for each in self.tasks if not each.is_done]
        ready = [each for each in waiting if each.waits is None or each.waits()]
        awake = [each for each in ready if each.wakes <= self.now]
        if ready and not awake:
            self.now = min(each.wakes for each in ready)
            awake = [each for each in ready if each.wakes <= self.now]
        return awake

    def _go_on(self, task: _Task | None) -> None:
        """Let one of the tasks that can go on; ``task`` is who asks, which may be that."""
        waiting = [each for each in self.tasks if not each.is_done]
        if not waiting:
            self.is_over.release()
            return
        found = self._runnable()
        if not found:
            for each in waiting:
                each.error = StuckError([str(one.waits) for one in waiting])
                each.waits, each.is_dead = None, True
            found = waiting
        new = self.chosen.choice(found)
        if new is not task:
            new.turn.release()
            if task is not None:
                task.turn.acquire()
                if isinstance(task.error, StuckError):
                    raise task.error

    @property
    def has_killed(self) -> bool:
        """Whether any task was killed."""
        return any(each.lives or each.is_dead for each in self.tasks)

    @property
    def task(self) -> _Task | None:
        return self.by_thread.get(threading.get_ident())

    def point(self, what: str = "", *, kills: bool = False) -> None:
        """A moment in which others may go on, and this task may be killed."""
        task = self.task
        if task is None:
            return
        if task.is_dead:
            raise task.error if isinstance(task.error, StuckError) else KilledError
        self.now += 0.0001
        if not task.is_unbroken and self.chosen.random() < self.often:
            if self.far and self.chosen.random() < 0.1:
                self.now += self.chosen.choice([0.1, 1.0, 3.0])
            self._go_on(task)
        if kills and self.kills and self.chosen.random() < self.deadly:
            self.kills -= 1
            task.is_dead = True
            self.log.append(f"{task.number} is killed before {what}")
            raise KilledError
        self.log.append(f"{task.number} {what}")

    def revived(self) -> None:
        """The task that was killed begins anew, as another process that holds nothing."""
        task = self.task
        assert task is not None
        assert not isinstance(task.error, StuckError)
        task.is_dead = False
        task.lives += 1
        task.is_unbroken = 0
        self.held = {key: each for key, each in self.held.items() if each[0] is not task}
        self.writers = [each for each in self.writers if each[1] is not task]
        self.closed = {prefix: each for prefix, each in self.closed.items() if each is not task}

    def wait(self, until: Callable[[], bool]) -> None:
        """Go on when something is true."""
        task = self.task
        if task is None or until():
            return
        task.waits = until
        self._go_on(task)
        task.waits = None

    def sleep(self, seconds: float) -> None:
        """Go on later."""
        task = self.task
        if task is None:
            self.now += seconds
            return
        task.wakes = self.now + seconds
        self._go_on(task)

    @contextmanager
    def unbroken(self) -> Iterator[None]:
        """What this task does within the context nobody comes between, unless it has to wait."""
        task = self.task
        assert task is not None
        task.is_unbroken += 1
        try:
            yield
        finally:
            task.is_unbroken -= 1

    def until_done(self, work: Callable[[], Any]) -> Callable[[], Any]:
        """Return a task that does ``work`` again whenever it was killed."""

        def run() -> Any:
            while True:
                try:
                    return work()
                except KilledError:
                    self.revived()

        return run

    def clock(self) -> SimpleNamespace:
        """What stands for the module ``time``."""
        return SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.now)


class _Lock:
    def __init__(self, stage: Stage, key: Any, kills: bool) -> None:
        self.stage, self.key, self.kills = stage, key, kills

    def __enter__(self) -> _Lock:
        stage, task = self.stage, self.stage.task
        if task is None:
            return self
        stage.point(f"locks {self.key}", kills=self.kills)
        stage.wait(lambda: stage.held.get(self.key, (task, 0))[0] is task)
        stage.held[self.key] = task, stage.held.get(self.key, (task, 0))[1] + 1
        return self

    def __exit__(self, *error: object) -> None:
        stage, task = self.stage, self.stage.task
        if task is not None and stage.held.get(self.key, (None, 0))[0] is task:
            depth = stage.held.pop(self.key)[1] - 1
            if depth:
                stage.held[self.key] = task, depth
            elif not task.is_dead and error[0] is None:
                stage.point(f"unlocked {self.key}", kills=self.kills)


class _Writer:
    def __init__(self, stage: Stage, prefix: str, known: bool) -> None:
        self.stage, self.prefix, self.known = stage, prefix, known

    def __enter__(self) -> bool:
        task = self.stage.task
        if task is None or not self.known:
            return self.known
        self.stage.wait(lambda: self.stage.closed.get(self.prefix, task) is task)
        self.entry = self.prefix, task
        self.stage.writers.append(self.entry)
        return True

    def __exit__(self, *error: object) -> None:
        if self.stage.task is not None and self.known and self.entry in self.stage.writers:
            self.stage.writers.remove(self.entry)


class _NoWriter:
    def __init__(self, stage: Stage, prefix: str, kills: bool) -> None:
        self.stage, self.prefix, self.kills = stage, prefix, kills

    def __enter__(self) -> bool:
        stage, task = self.stage, self.stage.task
        if task is None or stage.far:
            return not stage.far
        stage.point(f"waits for writers of {self.prefix}, and keeps them out", kills=self.kills)
        inside = [each for each in stage.writers if each[0] == self.prefix and each[1] is task]
        stage.wait(
            lambda: (
                stage.closed.get(self.prefix, task) is task
                and not any(each[0] == self.prefix and each[1] is not task for each in stage.writers)
            )
        )
        stage.closed[self.prefix] = task
        return not inside

    def __exit__(self, *error: object) -> None:
        if self.stage.closed.get(self.prefix) is self.stage.task:
            del self.stage.closed[self.prefix]


class _StagedFiles(WrappedFiles):
    def open(self, key: str) -> Any:
        self._store._point("opens", key)
        return self._inner.open(key)

    def edit(self, key: str) -> Any:
        self._store._point("edits", key)
        return self._inner.edit(key)


class StagedStore(zardine.storage.WrapperStore):
    """A store whose operations are moments of a stage."""

    files_class = _StagedFiles

    def __init__(self, stage: Stage, kills: bool, read_only: bool = False) -> None:
        super().__init__(stage.inner, read_only=read_only)
        self.stage, self.kills = stage, kills
        self.process = object()
        """What no other store has: who comes later knows nothing of what this one has remembered."""

    def _point(self, *what: object) -> None:
        self.stage.point(" ".join(map(str, what)), kills=self.kills)

    def read(self, key: str, ranges: Sequence[Any] = (WHOLE,)) -> Any:
        self._point("reads", key, ranges)
        return self._store.read(key, ranges)

    def read_up_to(self, key: str, most: int) -> Any:
        self._point("reads", key)
        return self._store.read_up_to(key, most)

    def exists(self, key: str) -> bool:
        self._point("looks for", key)
        return self._store.exists(key)

    def size(self, key: str) -> Any:
        self._point("asks for the size of", key)
        return self._store.size(key)

    def version(self, key: str) -> Any:
        self._point("asks for the version of", key)
        return self._store.version(key)

    def is_unchanged(self, key: str, version: Any) -> bool:
        self._point("looks at", key)
        return self._store.is_unchanged(key, version)

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self._check_writable()
        self._point("sets", key)
        return self._store.set(key, value, condition=condition)

    def set_partial_values(self, key_start_values: Iterable[Any]) -> None:
        self._check_writable()
        for each in key_start_values:
            self._point("sets a part of", each[0])
            self._store.set_partial_values([each])

    def erase(self, key: str) -> None:
        self._check_writable()
        self._point("erases", key)
        self._store.erase(key)

    def erase_version(self, key: str, version: Any) -> None:
        self._check_writable()
        self._point("erases", key, "of a version")
        self._store.erase_version(key, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        for key in sorted(self._store.list_prefix(prefix)):
            self.erase(key)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        self._point("lists", prefix)
        return iter(list(self._store.list_prefix(prefix)))

    def list_versions(self, prefix: str) -> Any:
        self._point("lists", prefix)
        found = self._store.list_versions(prefix)
        return None if found is None else iter(list(found))

    def list_dir(self, prefix: str) -> Any:
        self._point("lists", prefix)
        return self._store.list_dir(prefix)

    def version_of_names(self, prefix: str) -> Any:
        self._point("lists", prefix)
        return self._store.version_of_names(prefix)

    def lock(self, key: str) -> AbstractContextManager[object]:
        if self.stage.far:
            return nullcontext()
        return _Lock(self.stage, key, self.kills)

    def is_locked(self, key: str) -> bool:
        held = self.stage.held.get(key)
        return held is not None and held[0] is not self.stage.task

    def writer(self, prefix: str) -> Any:
        return _Writer(self.stage, prefix, not self.stage.far)

    def wait_for_writers(self, prefix: str) -> bool:
        stage, task = self.stage, self.stage.task
        if stage.far:
            return False
        stage.point(f"waits for writers of {prefix}", kills=self.kills)
        inside = [each for each in stage.writers if each[0] == prefix]
        others = [each for each in inside if each[1] is not task]
        stage.wait(lambda: not any(one is each for one in stage.writers for each in others))
        return len(others) == len(inside)

    def without_writers(self, prefix: str) -> Any:
        return _NoWriter(self.stage, prefix, self.kills)

    @property
    def lock_is_exclusive(self) -> bool:
        return not self.stage.far

    @property
    def has_cheap_looks(self) -> bool:
        return not self.stage.far

    @property
    def cost(self) -> ReadCost:
        return FAR if self.stage.far else self._store.cost

    def with_read_only(self, read_only: bool = False) -> Any:
        twin = StagedStore(self.stage, self.kills, read_only)
        twin.process = self.process
        return twin

    def _parts(self) -> tuple[object, ...]:
        return self._store, self.read_only, self.process


def let_play(monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
    """Let the library take the time of a stage, one thread for each call, and each task for a process of its own."""

    def process() -> tuple[int, int]:
        task = stage.task
        return (-1, 0) if task is None else (task.number, task.lives)

    for module in (freshness, attempts, in_place, outside, claims, applying):
        monkeypatch.setattr(module, "time", stage.clock())
    numbers = itertools.count(1)
    monkeypatch.setattr(attempts, "random", random.Random(1))
    tokens = SimpleNamespace(token_hex=lambda n: f"{next(numbers):0{2 * n}x}")
    for module in (logs, claims):
        monkeypatch.setattr(module, "secrets", tokens)
    monkeypatch.setattr(records, "os", SimpleNamespace(getpid=process))


ONE: list[dict[str, Any]] = [
    {"chunks": (7,)},
    {"chunks": (8,)},
    {"chunks": (8,), "shards": (16,)},
    {"chunks": (8,), "shards": (24,)},
    {"chunks": (8,), "shards": (64,)},
]
TWO: list[dict[str, Any]] = [
    {"chunks": (7, 5)},
    {"chunks": (8, 4)},
    {"chunks": (8, 4), "shards": (16, 12)},
    {"chunks": (8, 4), "shards": (24, 4)},
    {"chunks": (4, 16), "shards": (64, 16)},
]


class Others:
    """A task that writes, appends and resizes, through new handles and old ones; ``values`` is what must be there."""

    def __init__(self, stage: Stage, chosen: random.Random, path: str, times: int, does: Sequence[str]) -> None:
        self.stage, self.chosen, self.path, self.times, self.does = stage, chosen, path, times, does
        self.store = stage.store()
        self.handles: list[zardine.Array] = []
        self.number = 0
        self.history = [zardine.open_array(stage.inner, path=path)[...]]
        self.ends: list[int] = []
        """Where the log of the stage was when each of its works was done."""

    @property
    def values(self) -> Any:
        return self.history[-1]

    def run(self) -> None:
        for _ in range(self.times):
            self.number += 1000
            does = self.chosen.choice(self.does)
            again = random.Random(self.chosen.random())
            for last in range(100, -1, -1):  # until it was let do it
                state = again.getstate()
                try:
                    made = getattr(self, does)(self.handle(), self.values, again)
                    break
                except ArrayChangedError:
                    if not last:
                        raise
                    self.handles.clear()
                    again.setstate(state)
                    self.stage.sleep(0.5)
            self.history.append(made)
            self.ends.append(len(self.stage.log))

    def handle(self) -> zardine.Array:
        if not self.handles or self.chosen.random() < 0.5:
            self.handles.append(zardine.open_array(self.store, path=self.path, mode="r+"))
        return self.chosen.choice(self.handles)

    def append(self, array: zardine.Array, values: Any, chosen: random.Random) -> Any:
        axis = chosen.randrange(values.ndim)
        shape = list(values.shape)
        shape[axis] = chosen.randint(1, 12)
        more = np.full(shape, self.number, "i4")
        array.append(more, axis=axis)
        return np.concatenate((values, more), axis=axis)

    def resize(self, array: zardine.Array, values: Any, chosen: random.Random) -> Any:
        sizes = [chosen.choice([n, chosen.randint(1, n + 6)]) for n in values.shape]
        array.resize(sizes)
        kept = values[tuple(map(slice, sizes))]
        made = np.zeros(sizes, "i4")
        made[tuple(map(slice, kept.shape))] = kept
        return made

    def write(self, array: zardine.Array, values: Any, chosen: random.Random) -> Any:
        array.refresh()
        box = tuple(slice(chosen.randrange(n), n) for n in values.shape)
        array[box] = self.number
        written = values.copy()
        written[box] = self.number
        return written

    def check_copy(self, values: Any, looked: int) -> None:
        """Check that a copy has what was written before its last look at the source, and nothing that never was."""
        done = sum(end <= looked for end in self.ends)
        allowed = [each for each in self.history[done:] if each.shape == values.shape]
        assert allowed, f"it is of shape {values.shape}, which the source has not had since that look"
        assert np.logical_or.reduce([values == each for each in allowed]).all()


def check_beyond(array: zardine.Array) -> None:
    """Check that what an array shows when it grows is the fill value, and that there is no fault in it."""
    assert zardine.verify(array).faults == ()
    shape = array.shape
    array.resize(tuple(n + 70 for n in shape))
    values = array[...]
    values[tuple(map(slice, shape))] = 0
    assert not values.any(), "what lies beyond the array is there again"


__all__ = [
    *("FAR", "ONE", "TWO"),
    *("KilledError", "Others", "Stage", "StagedStore", "StuckError"),
    *("check_beyond", "let_play"),
]
