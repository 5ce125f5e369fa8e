"""Arrays that are replaced, erased and moved while others write into them through handles that they have opened before.

Each array is full of a number of its own, and each writer writes numbers that tell of the array that it read before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from meddling import Stage, let_play
from zardine.errors import ArrayChangedError, ArrayNotFoundError, DataError
from zardine.storage import MemoryStore

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
                    assert self.far
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
