"""Points that two processes add in turns, each with what it keeps, between other changes: all are there, no more."""

from __future__ import annotations

import multiprocessing
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from effort import SOAK, new_seed
from zardine import vectors

STEPS = 4000 if SOAK else 60


def points(rng: np.random.Generator, number: int) -> tuple[Any, Any]:
    """Some points, mostly of one cell, and their numbers."""
    places = rng.uniform(0, 9, (int(rng.integers(0, 4)), 2)) + 10 * rng.integers(0, 4, (1, 2))
    return places.astype("f4"), np.full(len(places), number)


def add(path: str, places: Any, numbers: Any) -> None:
    vectors.append_points(path, places, vertex_attributes={"n": numbers})


OTHERS: list[Callable[[str], object]] = [
    lambda path: vectors.build_pyramid(path, factors=[(2, 1)]),
    lambda path: vectors.reshard(path, shard_shape=2),
    lambda path: vectors.reshard(path, shard_shape=8),
    lambda path: zardine.open_group(path).attrs.update({"mine": 1}),
    lambda path: zardine.open_group(path, path="0").attrs.update({"mine": 1}),
    lambda path: zardine.open_array(path, path="0/vertices").attrs.update({"mine": 1}),
    lambda path: zardine.consolidate_metadata(path),
    vectors.repair,
]


def change(path: str, which: int) -> None:
    OTHERS[which](path)


def test_all_points_are_there(tmp_path: Path) -> None:
    seed = new_seed(21)
    print("seed", seed)
    rng, chooser = np.random.default_rng(seed), random.Random(seed)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as another:
        for start in range(0, STEPS, 30):
            path = str(tmp_path / f"{start}")
            first = rng.uniform(0, 40, (300, 2)).astype("f4")
            options = {"shard_shape": chooser.choice([2, 4]), "bounds": ([0, 0], [40, 40])}
            vectors.write_points(path, first, chunk_shape=10, vertex_attributes={"n": np.full(300, -1)}, **options)
            there, is_ours = Counter({-1: 300}), True
            for number in range(start, start + 30):
                is_ours = chooser.random() < 0.7 or not is_ours
                if chooser.random() < 0.8:
                    call: tuple[Any, ...] = (add, path, *points(rng, number))
                    there[number] += len(call[-1])
                else:
                    call = change, path, chooser.randrange(len(OTHERS))
                if is_ours:
                    call[0](*call[1:])
                else:
                    another.submit(*call).result()
                found = vectors.read_points(path)
                assert Counter(found.attributes["n"].tolist()) == +there, number
            assert vectors.validate(path).ok
