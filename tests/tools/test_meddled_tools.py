"""Tools that others come between at chosen moments: they write, append and resize, and the tool is killed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from meddling import ONE, TWO, Others, Stage, check_beyond, let_play
from zardine.errors import ConversionError, MetadataError, NodeExistsError, PlanError
from zardine.storage import MemoryStore

FOUND_IN_PLACE = [77, 143, 150, 158, 161]
FOUND_COPIES = [236, 342, 532, 737]
"""Seeds that have once found something: lengths of chunks that grow meanwhile; values beyond the end of a copy."""


def made(store: Any, chosen: random.Random, name: str | None = None, *, differing: bool) -> tuple[zardine.Array, bool]:
    """Return a new array, with ``differing`` now and then of chunks of many lengths; and whether it has two axes."""
    wide = chosen.random() < 0.5
    shape: tuple[int, ...] = (chosen.randint(2, 50), *([chosen.randint(2, 20)] if wide else []))
    how = dict(chosen.choice(TWO if wide else ONE))
    if differing and not wide and chosen.random() < 0.25:
        how = {"chunks": (lengths(chosen, shape[0]),)}
    array = zardine.create_array(store, name=name, shape=shape, dtype="i4", **how)
    array[...] = np.arange(array.size).reshape(shape) + 1
    return array, wide


def lengths(chosen: random.Random, length: int) -> tuple[int, ...]:
    found: list[int] = []
    while sum(found) < length:
        found.append(min(chosen.randint(1, 12), length - sum(found)))
    return tuple(found)


def reshard(store: Any, new: dict[str, Any], pieces: tuple[int, ...] | None) -> None:
    """Reshard to ``new``, or to chunks of those lengths, of which the last is repeated as the array grows."""
    for _ in range(20):
        ends = list(pieces or ())
        while pieces and sum(ends) < zardine.open_array(store).shape[0]:
            ends.append(ends[-1])
        try:
            zardine.reshard(store, **({"chunks": (tuple(ends),), "shards": None} if pieces else new))
            return
        except (ValueError, MetadataError) as error:
            if "add up" not in str(error):  # it has grown just now
                raise
    raise AssertionError("the lengths never fit")


def in_place(monkeypatch: pytest.MonkeyPatch, seed: int, *, far: bool) -> None:
    chosen = random.Random(seed)
    inner = MemoryStore()
    _, wide = made(inner, chosen, differing=True)
    stage = Stage(seed, inner, kills=chosen.choice([0, 0, 1, 3]), far=far)
    let_play(monkeypatch, stage)
    store = stage.store(kills=True)
    others = Others(stage, chosen, "", chosen.randint(1, 6), ["write"] if far else ["append", "resize", "write"])
    new = {"shards": None, **chosen.choice(TWO if wide else ONE)}
    pieces = None if wide or chosen.random() < 0.75 else lengths(chosen, 40)
    tools = [chosen.choice(["compact", "repair", "verify", "reshard", "reshard"]) for _ in range(3)]

    def work() -> None:
        for tool in tools:
            if tool == "compact":
                assert all("resharded" in each.message for each in zardine.compact(store, order="morton").faults)
            elif tool == "repair":
                assert zardine.repair(store, older_than=0).actions == ()
            elif tool == "verify":
                assert zardine.verify(store, deep=True).faults == ()
            else:
                reshard(store, new, pieces)

    stage.run(stage.until_done(work), others.run)
    array = zardine.open_array(inner, mode="r+")
    np.testing.assert_array_equal(array[...], others.values)
    check_beyond(array)


@pytest.mark.parametrize("seed", [*range(4000 if SOAK else 60), *FOUND_IN_PLACE])
def test_an_array_that_tools_go_through(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    in_place(monkeypatch, seed, far=False)


@pytest.mark.parametrize("seed", [*range(1500 if SOAK else 30)])
def test_the_same_far_away(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    in_place(monkeypatch, seed, far=True)


@pytest.mark.parametrize("seed", [*range(4000 if SOAK else 60), *FOUND_COPIES])
def test_a_copy_is_of_one_state(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chosen = random.Random(seed)
    inner = MemoryStore()
    array, wide = made(inner, chosen, "src", differing=False)
    stage = Stage(seed, inner, kills=chosen.choice([0, 0, 1, 3]))
    let_play(monkeypatch, stage)
    store = stage.store(kills=True)
    does = chosen.choice([["write"], ["append", "write"], ["append", "resize", "write"]])
    others = Others(stage, chosen, "src", chosen.randint(0, 6), does)
    new = {"shards": None, **chosen.choice(TWO if wide else ONE)}
    tool = chosen.choice(["rechunk", "convert", "reshard"])
    largest = max(int(np.prod(each)) for each in (new["shards"] or new["chunks"], array.shards or array.chunks))
    memory = chosen.choice([256 * largest, "1 GiB"])  # with little of it, by way of arrays between
    refused: list[Exception] = []

    def work() -> None:
        try:
            if tool == "rechunk":
                zardine.rechunk(store, store, path="src", target_path="out", max_memory=memory, **new)
            elif tool == "convert":
                zardine.convert(store, store, source_path="src", target_path="out", max_memory=memory, **new)
            else:
                zardine.reshard(store, path="src", target=store, target_path="out", **new)
        except (NodeExistsError, PlanError, ConversionError) as error:
            refused.append(error)

    stage.run(stage.until_done(work), others.run)
    if refused:
        text = str(refused[-1])
        resized = any(each in text for each in ("have changed", "changed while", "since then"))
        assert resized or (stage.has_killed and "already stored" in text), text
        if resized:
            return
    looks = [
        max((i for i, each in enumerate(stage.log) if each.startswith(start)), default=0)
        for start in ("0 lists src/", "0 reads src/zarr.json")
    ]
    copy = zardine.open_array(inner, path="out", mode="r+")
    others.check_copy(copy[...], min(looks))
    check_beyond(copy)
