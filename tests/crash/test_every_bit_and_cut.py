"""Small shards with every bit flipped and cut at every byte, whose last write was killed at every byte, or was not.

Not killed: what is read is what was stored last, or an error; never what was stored before, nor anything else. Killed:
what is read is what was before that write or after it. The same holds after the next write, which changes nothing else.

Here are plain shards and shards in shards, with equally many chunks on both levels (so that the index of one may be
taken for that of the other), each index at either end, and each strategy. Bits and cuts are drawn by a seed;
``ZARDINE_SOAK`` draws twenty times as many (most of all there are), and others every time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from crash.torn import State, bits, cuts, killed_states, put_state, state_of
from effort import SOAK, new_seed
from zardine.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zardine.errors import CorruptionError, TornShardWarning
from zardine.storage import LocalStore

SEED = new_seed(0)
LOCATIONS = ("end", "start")
STRATEGIES = ("rewrite", "append", "in_place")
SHARD = "c/0"
Values = np.ndarray[Any, Any]
ERROR = "error"


@dataclass(frozen=True)
class Form:
    """Of one shard of four chunks, and what is done to it."""

    places: tuple[str, ...]
    """Where the index is, of the shard and of those in it."""
    strategy: str = "append"
    durable: bool = False

    def __str__(self) -> str:
        return f"{'-in-'.join(self.places)}-{self.strategy}{'-durable' * self.durable}"

    @property
    def chunk(self) -> int:
        """Elements of what is read and written."""
        return 2 * 4 ** (len(self.places) - 1)

    def make(self, path: Path) -> zardine.Array:
        """The array, with a shard that was edited once; its second chunk is empty, the others have empty ones."""
        codecs: Any = (BytesCodec(), Crc32cCodec())
        for level, place in enumerate(reversed(self.places)):
            codecs = (ShardingCodec(chunk_shape=(2 * 4**level,), codecs=codecs, index_location=place),)
        array = zardine.create(
            (4 * self.chunk,),
            chunks=(4 * self.chunk,),
            dtype="i2",
            codecs=list(codecs),
            store=LocalStore(path, durable=self.durable),
            config={"write_strategy": self.strategy, "most_unused": 1.0},
            fill_value=0,
        )
        array[...] = self.before(100)
        array[...] = self.before(0)
        part = slice(0, 2)
        array[part] = self.first(array)[part]
        return array

    def before(self, first: int) -> Values:
        values = np.arange(first + 1, first + 1 + 4 * self.chunk, dtype="i2")
        values[self.chunk : 2 * self.chunk] = 0
        if len(self.places) > 1:
            for start in range(2, 4 * self.chunk, self.chunk):
                values[start : start + 2] = 0
        return values

    def first(self, array: zardine.Array) -> Values:
        """What is stored, after the first edit."""
        values = self.before(0)
        values[:2] = 71, 72
        return values

    def edit(self, array: zardine.Array) -> None:
        """The second edit."""
        array[2 * self.chunk - 1 : 2 * self.chunk + 1] = 73, 74

    def second(self, array: zardine.Array) -> Values:
        values = self.first(array)
        values[2 * self.chunk - 1 : 2 * self.chunk + 1] = 73, 74
        return values


PLAIN = [(place,) for place in LOCATIONS]
NESTED = list(product(LOCATIONS, LOCATIONS))
FORMS = [Form(places, strategy) for places in (*PLAIN, *NESTED) for strategy in STRATEGIES]
EDITED = [
    *(form for form in FORMS if form.strategy != "rewrite"),
    *(Form(places, strategy, True) for places in (*PLAIN, NESTED[0]) for strategy in STRATEGIES[1:]),
]
DEEP = [Form((place,) * 3, strategy) for place in LOCATIONS for strategy in ("rewrite", "append")]


def some(states: list[Any], count: int, seed: int) -> list[Any]:
    """So many of them, drawn by a seed; more in a soak."""
    count *= 20 if SOAK else 1
    if len(states) <= count:
        return states
    print(f"drawn by the seed {SEED}")
    rng = np.random.default_rng([seed, SEED])
    return [states[i] for i in sorted(rng.choice(len(states), count, replace=False).tolist())]


def damages(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Some flipped bits and some cuts; ``count`` of each."""
    yield from some(list(bits(data)), count, seed)
    yield from some(list(cuts(data)), count, seed)


def read(array: zardine.Array, form: Form) -> list[Any]:
    """Each chunk by itself, or that it cannot be read; together they read as they do alone."""
    found: list[Any] = []
    for start in range(0, 4 * form.chunk, form.chunk):
        try:
            found.append(array[start : start + form.chunk])
        except CorruptionError:
            found.append(ERROR)
    try:
        whole = array[...]
        assert all(chunk is not ERROR for chunk in found)
        assert (whole == np.concatenate(found)).all()
    except CorruptionError:
        assert ERROR in [chunk for chunk in found if isinstance(chunk, str)]
    return found


def agrees(found: list[Any], values: Values, form: Form, *, errors: bool = True) -> bool:
    """Whether these are chunks of ``values``, as far as they can be read."""
    wanted = values.reshape(4, form.chunk)
    pairs = zip(found, wanted, strict=True)
    return all((errors if isinstance(chunk, str) else (chunk == right).all()) for chunk, right in pairs)


def mixed(found: list[Any], worlds: list[Values], form: Form) -> bool:
    """Whether each chunk is of one of the ``worlds``, as an edit in place may leave them."""
    if form.strategy != "in_place":
        return any(agrees(found, world, form) for world in worlds)
    rows = [world.reshape(4, form.chunk) for world in worlds]
    return all(
        isinstance(chunk, str) or any((chunk == world[i]).all() for world in rows) for i, chunk in enumerate(found)
    )


def write_one(array: zardine.Array, worlds: list[Values], form: Form) -> list[Values]:
    """Change a chunk in part, if that is possible; what may be stored then."""
    try:
        array[3 * form.chunk + 1] = 99
    except CorruptionError:
        return worlds
    after = [world.copy() for world in worlds]
    for world in after:
        world[3 * form.chunk + 1] = 99
    return after


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TornShardWarning)
        yield


@pytest.mark.parametrize("form", [*FORMS, *DEEP], ids=str)
def test_nobody_was_killed(form: Form, quick_path: Path) -> None:
    """No older value comes back, and no other, by reading or by writing; and nothing says that a write was cut off."""
    array = form.make(quick_path / "a")
    form.edit(array)
    worlds = [form.second(array)]
    reader = zardine.open_array(quick_path / "a", mode="r")
    assert agrees(read(reader, form), worlds[0], form, errors=False)
    path = quick_path / "a" / SHARD
    good = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, bad in enumerate(damages(good, 40 if len(form.places) < 3 else 20, len(good))):
            path.write_bytes(bad)
            found = read(reader, form)
            assert agrees(found, worlds[0], form), (number, found)
            if number % 5 == 0:
                after = write_one(array, worlds, form)
                found = read(reader, form)
                assert agrees(found, after[0], form), (number, found)
    assert [name for name in os.listdir(path.parent) if name != path.name] == []


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("form", [*EDITED, DEEP[1], DEEP[3]], ids=str)
def test_killed_at_every_byte(form: Form, quick_path: Path) -> None:
    """All is as before or as after, for a reader and after the next write; then no record is left."""
    root = quick_path / "a"
    array = form.make(root)
    states = killed_states(root, lambda: form.edit(array))
    assert len(states) > 80
    worlds = [form.first(array), form.second(array)]
    reader = zardine.open_array(root, mode="r")
    seen = set()
    now: State | None = state_of(root)
    states = [*some(states, 50 if len(form.places) < 3 else 40, 3), states[-1]]
    for number, state in enumerate(states):
        put_state(state, root, now)
        found = read(reader, form)
        torn = [i for i, chunk in enumerate(found) if isinstance(chunk, str)]
        assert mixed(found, worlds, form), (number, found)
        assert not torn or form.strategy == "in_place", (number, found)
        seen |= {i for i, world in enumerate(worlds) if agrees(found, world, form, errors=False)}
        if not torn and number % (1 if SOAK else 7) == 0:
            after = write_one(array, worlds, form)
            assert mixed(read(reader, form), after, form), number
            assert os.listdir(root / "c") == ["0"]
            assert not zardine.verify(root).faults
            now = None
        else:
            now = state
    assert seen == {0, 1}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("form", EDITED, ids=str)
def test_killed_and_damaged(form: Form, quick_path: Path) -> None:
    """What a killed writer leaves is damaged: the shard, or the record beside it."""
    root = quick_path / "a"
    array = form.make(root)
    states = killed_states(root, lambda: form.edit(array))
    worlds = [form.first(array), form.second(array)]
    reader = zardine.open_array(root, mode="r")
    for seed, state in enumerate(some(states, 5, 1)):
        for path in [path for path in state if path.startswith("c/")]:
            put_state(state, root)
            for number, bad in enumerate(damages(state[path], 5, seed)):
                (root / path).write_bytes(bad)
                found = read(reader, form)
                assert mixed(found, worlds, form), (seed, path, number, found)
                if number % 4 == 0:
                    after = write_one(array, worlds, form)
                    assert mixed(read(reader, form), after, form), (seed, path, number)
                    put_state(state, root)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("form", EDITED, ids=str)
def test_a_record_that_was_left_after_all_was_written(form: Form, quick_path: Path) -> None:
    """A flipped bit brings nothing back that was there before: the file says that the edit was done."""
    root = quick_path / "a"
    array = form.make(root)
    states = killed_states(root, lambda: form.edit(array))
    done = states[-1][SHARD]
    size = 68  # of an index, which is what else may change in the end: the one before becomes void
    part = slice(size) if form.places[0] == "start" else slice(len(done) - size, None)
    left = [state for state in states if len(state[SHARD]) == len(done) and state[SHARD][part] == done[part]]
    reader = zardine.open_array(root, mode="r")
    for state in (left[0], left[-2]):
        assert len(state) == len(states[-1]) + 1
        put_state(state, root)
        for bad in some(list(bits(state[SHARD])), 50, 2):
            (root / SHARD).write_bytes(bad)
            assert agrees(read(reader, form), form.second(array), form)
