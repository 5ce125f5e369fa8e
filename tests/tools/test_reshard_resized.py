"""``zardine.reshard`` of an array that is written, resized and appended to meanwhile, at chosen moments, and killed.

Jobs cut new objects at the end that was planned; what the process that finishes makes at the end of now must outlast
them, whoever comes last.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from zardine.errors import ArrayChangedError
from zardine.stores.base import WHOLE

ONE: list[dict[str, Any]] = [
    {"chunks": (7,), "shards": None},
    {"chunks": (8,), "shards": None},
    {"chunks": (8,), "shards": (16,)},
    {"chunks": (8,), "shards": (24,)},
    {"chunks": (8,), "shards": (64,)},
]
TWO: list[dict[str, Any]] = [
    {"chunks": (7, 5), "shards": None},
    {"chunks": (8, 4), "shards": None},
    {"chunks": (8, 4), "shards": (16, 12)},
    {"chunks": (8, 4), "shards": (24, 4)},
    {"chunks": (4, 16), "shards": (64, 16)},
]
FOUND = [87, 206, 210, 284, 298, 304, 473, 2772]
"""Seeds that have once found something: rows lost, or seen again that had been cut off."""


class KilledError(BaseException):
    """What a process that is killed does no more."""


class Others:
    """Who uses the array meanwhile: what it holds by rights is known at every moment."""

    def __init__(self, chosen: random.Random, array: zardine.Array, kills: int) -> None:
        self.chosen, self.store, self.kills = chosen, array.store, kills
        self.history = [array[...]]
        self.number = 0

    def do(self) -> None:
        """Write, append, resize, or kill."""
        self.number += 1000
        what = self.chosen.choice([self.append, self.resize, self.write])
        if self.kills and self.chosen.random() < 0.3:
            self.kills -= 1
            raise KilledError
        with suppress(ArrayChangedError):  # for a moment nobody may
            self.history.append(what(zardine.open_array(self.store, mode="r+"), self.history[-1]))

    def append(self, array: zardine.Array, values: Any) -> Any:
        axis = self.chosen.randrange(values.ndim)
        shape = list(values.shape)
        shape[axis] = self.chosen.randint(1, 12)
        more = np.full(shape, self.number, "i4")
        array.append(more, axis=axis)
        return np.concatenate((values, more), axis=axis)

    def resize(self, array: zardine.Array, values: Any) -> Any:
        sizes = self.history[0].shape if self.chosen.random() < 0.4 else values.shape
        return self.resized(array, values, [self.chosen.choice([n, self.chosen.randint(1, n + 5)]) for n in sizes])

    def resized(self, array: zardine.Array, values: Any, sizes: Sequence[int]) -> Any:
        array.resize(sizes)
        kept = values[tuple(map(slice, sizes))]
        made = np.zeros(sizes, "i4")
        made[tuple(map(slice, kept.shape))] = kept
        return made

    def write(self, array: zardine.Array, values: Any) -> Any:
        box = tuple(slice(self.chosen.randrange(n), n) for n in values.shape)
        array[box] = self.number
        written = values.copy()
        written[box] = self.number
        return written

    def go_back(self) -> None:
        """Give the array the length that it had when its resharding was planned."""
        with suppress(ArrayChangedError):
            array = zardine.open_array(self.store, mode="r+")
            self.history.append(self.resized(array, self.history[-1], self.history[0].shape))


class Meddling(zardine.storage.WrapperStore):
    """Another store, in which others come in after some operations on chunks."""

    def __init__(self, inner: Any, others: Others, moments: Sequence[int]) -> None:
        super().__init__(inner)
        self.others, self.moments = others, moments
        self.step, self.is_busy = 0, False

    def _count(self, key: str) -> None:
        if "json" in key or self.is_busy:  # whoever writes a document holds its lock
            return
        self.step += 1
        if self.step in self.moments:
            self.is_busy = True
            try:
                self.others.do()
            finally:
                self.is_busy = False

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        result = super().set(key, value, condition=condition)
        self._count(key)
        return result

    def version(self, key: str) -> Any:
        result = super().version(key)
        self._count(key)
        return result

    def read(self, key: str, ranges: Sequence[Any] = (WHOLE,)) -> Any:
        result = super().read(key, ranges)
        self._count(key)
        return result


@pytest.mark.parametrize("seed", [*range(3000 if SOAK else 60), *FOUND])
def test_what_it_holds_in_the_end(seed: int) -> None:
    chosen = random.Random(seed)
    inner = zardine.storage.MemoryStore()
    wide = (chosen.randint(1, 20),) if chosen.random() < 0.5 else ()
    old, new = chosen.sample(TWO if wide else ONE, 2)
    array = zardine.create_array(inner, shape=(chosen.randint(1, 60), *wide), dtype="i4", **old)
    array[...] = np.arange(array.size).reshape(array.shape) + 1
    others = Others(chosen, array, kills=chosen.choice([0, 0, 1, 2]))
    store = Meddling(inner, others, chosen.sample(range(1, 40), chosen.randint(2, 6)))
    target = chosen.choice([None, zardine.storage.MemoryStore()])
    while True:
        try:
            assert zardine.reshard(store, **new, grace=0, target=target)
            break
        except KilledError:
            if chosen.random() < 0.6:
                others.go_back()
    made = zardine.open_array(inner if target is None else target, mode="r+")
    assert (made.chunks, made.shards) == (new["chunks"], new["shards"])
    if target is None:
        np.testing.assert_array_equal(made[...], others.history[-1])
    else:  # what comes after the last look at the source is not in it, and need not be
        assert any(np.array_equal(made[...], each) for each in others.history)
    shape = made.shape
    made.resize(tuple(n + 70 for n in shape))
    values = made[...]
    values[tuple(map(slice, shape))] = 0
    assert not values.any(), "what was cut off is there again"
    assert zardine.verify(made).faults == ()
