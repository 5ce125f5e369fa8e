"""Writers far away, whose requests go side by side: killed at any of them, met by others, and how much they hold."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from effort import some
from vectors.geometry_samples import Killed, MortalStore, Unlocked, copy_of
from vectors.stores_of_all_kinds import at_once
from zardine import vectors
from zardine.errors import (
    ConditionFailedError,
    CorruptionError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
    UnfinishedError,
)
from zardine.storage import CountingStore, MemoryStore, Store
from zardine.stores.base import ReadCost
from zardine.vectors.storing import cell_bytes, claims, logs, node_writing
from zardine.vectors.storing.claims import LostClaimError, OvertakenError
from zardine.vectors.storing.held_values import HeldValues
from zardine.vectors.storing.transactions import carry_out

PLACE: dict[str, Any] = {"chunk_shape": 10, "shard_shape": 2, "bounds": ((0, 0, 0), (59, 19, 9))}
COST = ReadCost(latency=0.03, requests=4)


class FarMortal(MortalStore):
    """A store far away, for who is killed after so many changes."""

    cost = COST  # type: ignore[assignment]
    has_cheap_looks = False  # type: ignore[assignment]
    lock_is_exclusive = False  # type: ignore[assignment]

    def __init__(self, store: Store, changes: int = 10**6) -> None:
        super().__init__(store, changes)
        self._turn = threading.Lock()
        self.written: list[str] = []

    def lock(self, key: str) -> AbstractContextManager[object]:
        return nullcontext()  # as on machines that are far from each other: who comes between may run in any thread

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        with self._turn:
            self._live()
            self.written.append(key)
            return self._store.set(key, value, condition=condition)


class FarUnlocked(Unlocked):
    """A store far away, in which others come between."""

    cost = COST  # type: ignore[assignment]
    has_cheap_looks = False  # type: ignore[assignment]


def lines_along(count: int, first: int = 0) -> list[np.ndarray[Any, Any]]:
    """Lines of four vertices, each through two cells of 10 along the first axis."""
    number = np.arange(first, first + count)
    starts = np.stack([number * 7.0 % 41, number * 3.0 % 15, number % 9], axis=1)
    return [start + np.arange(4)[:, None] * np.array([4.0, 0, 0]) for start in starts]


def write_lines(store: Store, count: int = 8) -> None:
    lines = lines_along(count)
    values = {"fa": [each[:, 0] for each in lines]}
    vectors.write_polylines(store, lines, vertex_attributes=values, **PLACE)


def append_lines(store: Store, count: int = 2, first: int = 8) -> None:
    lines = lines_along(count, first)
    vectors.append_polylines(store, lines, vertex_attributes={"fa": [each[:, 0] for each in lines]})


def state_of(store: Store) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


def test_who_is_killed_while_a_store_is_written_is_followed_by_the_next() -> None:
    whole = MemoryStore()
    write_lines(whole)
    changes, died = 0, True
    while died:
        store = MemoryStore()
        mortal = FarMortal(store, changes)
        try:
            write_lines(mortal)
        except Killed:
            with pytest.raises((NodeNotFoundError, UnfinishedError)):
                vectors.read_polylines(store)
        died = mortal.dead
        if died:
            write_lines(FarMortal(store))
        assert state_of(store).keys() == state_of(whole).keys()
        assert len(vectors.read_polylines(store)) == 8
        assert vectors.validate(store).findings == ()
        changes += 1
    assert changes > 20


def test_what_fails_while_a_store_is_written_leaves_nothing() -> None:
    class Failing(FarMortal):
        def _live(self) -> None:
            if self.left == 0:
                self.left -= 1
                raise StoreError("no answer")
            self.left -= 1

    for changes in range(99):
        store = MemoryStore()
        try:
            write_lines(Failing(store, changes))
        except StoreError:
            assert state_of(store) == {}
        else:
            assert changes > 20
            return
    raise AssertionError("never")


@pytest.mark.parametrize("most", [0, 2**20], ids=["log", "document"])
def test_who_is_killed_while_something_is_added_leaves_old_or_new(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_MOST_BESIDE", most)
    whole = MemoryStore()
    write_lines(whole)
    vectors.append_polylines(FarMortal(whole), lines_along(2, 20))  # tables are ready to grow
    changes, died, seen = 0, True, list[int]()
    while died:
        store = copy_of(whole)
        mortal = FarMortal(store, changes)
        with suppress(Killed):
            append_lines(mortal)
        died = mortal.dead
        found = vectors.read_polylines(store)
        seen.append(len(found))
        assert vectors.validate(store).ok
        if len(found) == 12:
            wanted = [line.tolist() for line in (*lines_along(8), *lines_along(2, 20), *lines_along(2, 8))]
            assert [line.tolist() for line in found.lines] == wanted
        append_lines(FarMortal(store), 1, 31)
        append_lines(FarMortal(store), 1, 32)  # removes logs that the one before could have come to
        assert len(vectors.read_polylines(store)) == len(found) + 2
        assert not [key for key in store.list() if "zardine_log" in key]
        assert vectors.validate(store).findings == ()
        changes += 1
    assert sorted(seen) == seen
    assert set(seen) == {10, 12}
    assert seen.count(10) == (1 if most else 2)


def test_contents_come_before_documents() -> None:
    store = FarMortal(MemoryStore())
    write_lines(store)
    assert store.written[0] == store.written[-1] == "zarr.json"  # marked first; what it leads to comes in between
    assert "0/zarr.json" in store.written
    store.written.clear()
    append_lines(store)
    first = next(
        number for number, key in enumerate(store.written) if key.endswith("zarr.json") and key != "0/zarr.json"
    )
    assert store.written[0] == store.written[-1] == "0/zarr.json"  # agreed on, and carried out
    assert not [key for key in store.written[first:] if "/c/" in key]


@pytest.mark.parametrize("when", [1, 2, 10, 26])
def test_who_is_overtaken_while_a_store_is_written_says_so(when: int) -> None:
    """Another writer takes what is there for what one that was killed has left, right before one of the puts."""

    class Overtaken(FarMortal):
        def _live(self) -> None:
            self.left -= 1
            if self.left == 0:
                write_lines(FarMortal(self._store), 5)

    store = MemoryStore()
    with pytest.raises((StoreError, NodeExistsError)):
        write_lines(Overtaken(store, when))
    if when > 1:  # what was on its way may be among what the other has stored: as documented, that is not kept apart
        assert store.exists("zarr.json")
    else:
        assert len(vectors.read_polylines(store)) == 5


def test_what_is_being_written_is_not_read_and_can_be_written_again() -> None:
    store = MemoryStore()
    with suppress(Killed):
        write_lines(FarMortal(store, 9))
    for path in (store, FarMortal(store)):
        with pytest.raises(UnfinishedError, match=r"is being written by zardine\.vectors"):
            vectors.read_polylines(path)
        with pytest.raises(UnfinishedError):
            vectors.open(path)
    write_lines(store)  # near, by whom it is taken for what it is
    assert len(vectors.read_polylines(store)) == 8
    assert vectors.validate(store).findings == ()


@pytest.mark.parametrize("most", [0, 2**20], ids=["log", "document"])
def test_writers_overtake_each_other_anywhere(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)
    monkeypatch.setattr(logs, "_MOST_BESIDE", most)
    waits, met = 0, True
    while met:
        store = FarUnlocked()
        write_lines(store)
        append_lines(store, 2, 20)
        store.waits, store.other = waits, lambda: append_lines(store, 2, 40)  # noqa: B023
        append_lines(store)
        met = store.other is None
        store.other = None
        wanted = [*lines_along(8), *lines_along(2, 20), *lines_along(2), *(lines_along(2, 40) if met else [])]
        wanted[10:12] = lines_along(2, 8)
        found = vectors.read_polylines(store)
        assert sorted(line.tolist() for line in found.lines) == sorted(line.tolist() for line in wanted)
        assert vectors.validate(store).findings == ()
        waits += 1
    assert waits > 10


def test_a_lease_that_is_over_is_looked_after_before_each_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write that agrees on a change is a look at the level for as long as any other."""
    looks = []

    class Watched(FarMortal):
        def read_up_to(self, key: str, most: int) -> Any:
            if self.written[-1:] and self.written[0] == "0/zarr.json" and key == "0/zarr.json":
                looks.append(key)
            return super().read_up_to(key, most)

    def looks_of(lease: float) -> int:
        inner = MemoryStore()
        write_lines(inner)
        looks.clear()
        monkeypatch.setattr("zardine.vectors.storing.applying.LEASE", lease)
        append_lines(Watched(inner))
        assert vectors.validate(inner).findings == ()
        return len(looks)

    assert looks_of(600.0) == 0
    assert looks_of(-1.0) > 5


def test_what_is_asked_ahead_is_answered_once() -> None:
    inner = MemoryStore()
    inner.set("a/zarr.json", b"{}")
    inner.set("a/c/0", b"value")
    counted = CountingStore(inner)
    held = HeldValues(FarMortal(counted))
    held.ask(["a/zarr.json", "b/zarr.json"], ["a/"], ["a/c/0", "a/c/1"])
    counted.reset()
    for _ in range(2):
        assert held.read("a/c/0") is not None
        assert held.read("a/c/1", ((-4, None),)) is None
        assert held.hold(["a/c/1"]) == [None]
    assert held.list_dir("a/") == (["a/zarr.json"], ["a/c/"])
    assert held.read_up_to("a/zarr.json", 99) is not None
    assert held.read("b/zarr.json") is None
    assert counted.counts.requests == 0
    assert held.list_dir("a/") == (["a/zarr.json"], ["a/c/"])
    assert held.read_up_to("a/zarr.json", 99) is not None
    assert held.read("b/zarr.json") is None
    assert counted.counts.requests == 3
    held.ask(["a/zarr.json", "b/zarr.json"], ["a/"])
    held.set("a/zarr.json", b"[]")
    held.set("a/c/1", b"other")
    held.erase("a/c/0")
    assert bytes(held.read("a/zarr.json").parts[0]) == b"[]"  # type: ignore[union-attr]
    assert bytes(held.read("a/c/1").parts[0]) == b"other"  # type: ignore[union-attr]
    assert held.read("a/c/0") is None
    held.ask(["b/zarr.json"], ["a/"])
    inner.set("b/zarr.json", b"{}")
    held.forget()
    assert held.read("b/zarr.json") is not None


class Weighed(FarMortal):
    """A store that knows how many bytes are on their way to it, and how many values."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.under_way = self.most = self.count = self.most_at_once = 0
        self._scale = threading.Lock()

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        with self._scale:
            self.under_way, self.count = self.under_way + len(value), self.count + 1
            self.most, self.most_at_once = max(self.most, self.under_way), max(self.most_at_once, self.count)
        threading.Event().wait(0.03)
        with self._scale:
            self.under_way, self.count = self.under_way - len(value), self.count - 1
        return super().set(key, value, condition=condition)


@pytest.mark.parametrize("compressor", [None, "zstd"])
def test_what_is_under_way_has_a_limit(compressor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here of 20 KB, beside one portion of an array, which has another."""
    monkeypatch.setattr(node_writing, "_TOGETHER", 20000)
    monkeypatch.setattr(cell_bytes, "_PACKED_AT_ONCE", 8000)
    points = np.random.default_rng(0).uniform(0, 59, (3000, 3)) * np.array([1, 0.3, 0.15])
    store = Weighed(MemoryStore())
    made: list[int] = []
    make = node_writing._make

    def noted(store: Store, calls: list[Callable[[], object]]) -> None:
        made.append(sum(len(call.args[1]) for call in calls if len(call.args) == 2))  # type: ignore[attr-defined]
        make(store, calls)

    monkeypatch.setattr(node_writing, "_make", noted)
    vectors.write_points(store, points, vertex_attributes={"a": points[:, 0]}, compressor=compressor, **PLACE)
    assert len(made) > 2
    assert max(made) < 20000 + 8000 + 12000  # a shard is made whole
    assert store.most <= max(made) + 4096  # and documents
    assert store.most_at_once > 1
    assert sorted(vectors.read_points(store).positions.tolist()) == sorted(points.tolist())


@pytest.mark.parametrize(
    "told",
    [{}, {"token": "1-0123456789abcdef"}, {"token": "1-0123456789abcdef", "base64": "?"}, {"token": 7}, 7, "x"],
    ids=str,
)
def test_a_log_in_a_document_that_makes_no_sense(told: Any) -> None:
    store = MemoryStore()
    write_lines(store)
    document = json.loads(bytes(store.get("0/zarr.json") or b""))
    document["attributes"] |= {"zardine_pending": {}, "zardine_log": told}
    store.set("0/zarr.json", json.dumps(document).encode())
    for question in (vectors.read_polylines, append_lines):
        with pytest.raises(CorruptionError, match="zardine_log"):
            question(store)


def test_a_log_in_a_document_that_is_damaged() -> None:
    whole = MemoryStore()
    write_lines(whole)
    store = copy_of(whole)
    with pytest.raises(Killed):
        append_lines(FarMortal(store, 1))
    assert len(vectors.read_polylines(store)) == 10
    document = json.loads(bytes(store.get("0/zarr.json") or b""))
    log = document["attributes"]["zardine_log"]
    for place in (8, len(log["base64"]) // 2):
        other = "A" if log["base64"][place] != "A" else "B"
        damaged = {**log, "base64": log["base64"][:place] + other + log["base64"][place + 1 :]}
        document["attributes"]["zardine_log"] = damaged
        store.set("0/zarr.json", json.dumps(document).encode())
        for question in (vectors.read_polylines, append_lines):
            with pytest.raises(CorruptionError, match="log"):
                question(store)
    document["attributes"]["zardine_log"] = log
    store.set("0/zarr.json", json.dumps(document).encode())
    append_lines(store, 1, 31)  # where locks keep others out, too
    assert len(vectors.read_polylines(store)) == 11
    assert vectors.validate(store).findings == ()


class ReadMeanwhile(FarUnlocked):
    """A store far away, in which others come between two reads."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()

    def read_up_to(self, key: str, most: int) -> Any:
        other = None
        with self._turn:
            self.waits -= 1
            if self.waits < 0:
                other, self.other = self.other, None
        if other is not None:
            other()
        return super().read_up_to(key, most)

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        return MemoryStore.set(self, key, value, condition=condition)


def test_values_of_objects_are_given_beside_one_who_adds_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables may be longer than when the change began: then somebody else has changed the level, and nothing else."""
    at_once(monkeypatch)

    def add(store: Store, number: int) -> None:
        vectors.append_polylines(store, lines_along(1, number), object_attributes={"w": [float(number)]})

    waits, met, told = 0, True, 0
    while met:
        store = ReadMeanwhile()
        vectors.write_polylines(store, lines_along(8), object_attributes={"w": np.arange(8.0)}, **PLACE)
        add(store, 8)
        store.waits, store.other = waits, lambda: add(store, 9)  # noqa: B023
        given = 70.0
        try:
            vectors.set_attribute(store, "w", [given], kind="object", object_ids=[3])
        except OvertakenError:
            told, given = told + 1, 3.0
        met = store.other is None
        store.other = None
        wanted = [0.0, 1.0, 2.0, given, *np.arange(4.0, 10.0 if met else 9.0).tolist()]
        assert vectors.read_objects(store).attributes["w"].tolist() == wanted
        assert vectors.validate(store).findings == ()
        waits += 1
    assert told > 2


def test_vertices_are_moved_beside_one_who_removes_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of two states may fit nowhere: that is told as what it is."""
    at_once(monkeypatch)
    points = np.arange(60.0).reshape(20, 3) / 10
    waits, met, told = 0, True, 0
    while met:
        store = ReadMeanwhile()
        vectors.write_points(store, points, object_ids=np.arange(20) // 10, **PLACE)
        vectors.append_points(store, points[:1], object_ids=[1])
        store.waits, store.other = waits, lambda: vectors.delete(store, object_ids=[0])  # noqa: B023
        try:
            vectors.move_vertices(store, positions=points[:11] + 1, object_ids=[1])
        except OvertakenError:
            told += 1
        met = store.other is None
        store.other = None
        assert len(vectors.read_points(store)) == (11 if met else 21)
        assert vectors.validate(store).findings == ()
        waits += 1
    assert told > 2


class Lossy(FarUnlocked):
    """A store that keeps the answer to the write by which a change is agreed on, once, while others go on."""

    others: Callable[[], None] | None = None

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        version = super().set(key, value, condition=condition)
        others = self.others
        if key == "0/zarr.json" and b"zardine_log" in bytes(value) and others is not None:
            self.others = None
            others()
            raise ConditionFailedError("the answer was lost, and somebody else has written since")
        return version


@pytest.mark.parametrize("most", [0, 2**20], ids=["log", "document"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_change_whose_answer_is_lost_is_made_once(most: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)
    monkeypatch.setattr(logs, "_MOST_BESIDE", most)
    store = Lossy()
    write_lines(store)

    def others() -> None:
        for number in range(times):
            append_lines(store, 1, 20 + number)

    store.others = others
    append_lines(store, 2, 40)
    assert store.others is None
    found = sorted(map(str, (line.tolist() for line in vectors.read_polylines(store).lines)))
    wanted = [*lines_along(8), *lines_along(times, 20), *lines_along(2, 40)]
    assert found == sorted(str(line.tolist()) for line in wanted)
    assert vectors.validate(store).findings == ()


def build_levels(store: Store) -> None:
    vectors.build_pyramid(store, factors=[(2, 1), (2, 1)], anew=True)


@pytest.mark.parametrize("before", [0, 1], ids=["first", "anew"])
def test_who_is_killed_while_a_pyramid_is_built(before: int) -> None:
    """No level is half made: those that readers know are whole, and the next writer removes what else there is."""
    start = MemoryStore()
    write_lines(start)
    for _ in range(before):
        build_levels(start)
    whole = copy_of(start)
    build_levels(FarMortal(whole))
    lines = [line.tolist() for line in vectors.read_polylines(whole).lines]
    known = {number: vectors.read_polylines(whole, level=number).positions.tolist() for number in (1, 2)}
    assert vectors.validate(whole).findings == ()
    calls = FarMortal(copy_of(start))
    build_levels(calls)
    seen = set()
    for changes in some(range(10**6 - calls.left), 4):
        store = copy_of(start)
        with suppress(Killed):
            build_levels(FarMortal(store, changes))
        assert [line.tolist() for line in vectors.read_polylines(store).lines] == lines
        levels = vectors.open(store).levels
        seen.add(len(levels))
        assert levels == list(range(len(levels)))
        for number in levels[1:]:
            assert vectors.read_polylines(store, level=number).positions.tolist() == known[number]
        build_levels(store)
        assert vectors.validate(store).findings == ()
        assert vectors.read_polylines(store, level=2).positions.tolist() == known[2]
        assert state_of(store).keys() == state_of(whole).keys()
    assert seen == {1, 2, 3} if before else seen >= {1, 2}


class Unanswered(FarMortal):
    """A store that keeps the answer to one write, of which it stores what it is given."""

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        version = super().set(key, value, condition=condition)
        if len(self.written) == self.silent:
            raise StoreError("no answer")
        return version

    silent = 0


def test_a_pyramid_of_which_an_answer_is_lost_leaves_no_level_that_is_half_made() -> None:
    """What was put and not answered counts as neither there nor not there: it is looked for when it is removed."""
    start = MemoryStore()
    write_lines(start)
    calls = Unanswered(copy_of(start))
    build_levels(calls)
    assert len(calls.written) > 40
    for silent in range(2, len(calls.written)):  # the first one is the claim, the last gives it up
        store = copy_of(start)
        far = Unanswered(store)
        far.silent = silent
        with suppress(StoreError):
            build_levels(far)
        levels = vectors.open(store).levels
        assert {key.partition("/")[0] for key in store.list()} == {"zarr.json", *map(str, levels)}
        assert vectors.validate(store).findings == ()


class Unversioned(FarUnlocked):
    """A store far away that tells no versions: nobody can claim what is in it."""

    def read(self, key: str, *more: Any) -> Any:
        reading = super().read(key, *more)
        return None if reading is None else replace(reading, version=None)

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        super().set(key, value)

    def version(self, key: str) -> Any:
        return None


@pytest.mark.parametrize("change", ["build", "shard"])
def test_a_level_that_a_killed_writer_left_goes_where_nothing_can_be_claimed(change: str) -> None:
    """It stayed, hidden, and who built the pyramid took it for made."""
    store = Unversioned()
    write_lines(store)
    vectors.build_pyramid(store, factors=[(2, 1)])
    document = json.loads(bytes(store.get("1/zarr.json") or b""))
    document["attributes"]["zardine_unfinished"] = True
    store.set("1/zarr.json", json.dumps(document).encode())
    if change == "build":
        vectors.build_pyramid(store, factors=[(2, 1)])
    else:
        vectors.shard_store(store, 3)
    assert vectors.open(store).levels == ([0, 1] if change == "build" else [0])
    assert vectors.validate(store).findings == ()
    assert any(key.startswith("1/") for key in store.list()) == (change == "build")


def test_who_has_lost_the_claim_does_not_take_what_others_have_removed_for_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it holds is of the time before, and what it looks for is gone."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(sleep=sleep, monotonic=lambda: now[0])
    monkeypatch.setattr(claims, "time", clock)
    inner = MemoryStore()
    write_lines(inner)
    vectors.build_pyramid(inner, factors=[(2, 1)])

    class Slow(FarMortal):
        slept = False

        def list_prefix(self, prefix: str) -> Any:
            self.sleeps(prefix)
            return super().list_prefix(prefix)

        def list_dir(self, prefix: str = "") -> Any:
            self.sleeps(prefix)
            return super().list_dir(prefix)

        def sleeps(self, prefix: str) -> None:
            if prefix.startswith("1/vertices/c") and not self.slept:
                self.slept = True
                vectors.build_pyramid(FarMortal(inner), factors=[])

    slow = Slow(inner)
    with pytest.raises(LostClaimError):
        vectors.shard_store(slow, 3)
    assert slow.slept
    assert vectors.open(inner).levels == [0]
    assert vectors.validate(inner).findings == ()


def test_folders_that_look_like_many_levels_are_not_asked_for_ahead() -> None:
    class Asked(FarMortal):
        reads = 0

        def read(self, key: str, *more: Any) -> Any:
            self.reads += 1
            return super().read(key, *more)

        def read_up_to(self, key: str, most: int) -> Any:
            self.reads += 1
            return super().read_up_to(key, most)

    asked = []
    for many in (50, 250):
        inner = MemoryStore()
        write_lines(inner)
        for number in range(2, many):
            inner.set(f"{number}/other", b"")
        store = Asked(inner)
        vectors.build_pyramid(store, factors=[])
        asked.append(store.reads)
    assert asked[1] - asked[0] <= 4 * 200


def test_who_claims_a_store_holds_nothing_of_before_a_change_that_another_one_just_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other one agreed on it before, and stores documents, one after the other, while they are asked for."""
    monkeypatch.setattr(claims, "_LATE", 0)
    start = MemoryStore()
    write_lines(start)
    half = []
    for changes in range(1, 40):
        store = copy_of(start)
        with suppress(Killed):
            append_lines(FarMortal(store, changes))
        if b"zardine_log" in bytes(store.get("0/zarr.json") or b""):
            half.append(store)
    assert len(half) > 5

    class Met(FarMortal):
        reads = when = 0

        def read(self, key: str, *more: Any) -> Any:
            found = super().read(key, *more)
            with self._turn:
                self.reads += 1
                if self.reads == self.when:
                    carry_out(self._store, "0")
            return found

        def read_up_to(self, key: str, most: int) -> Any:
            reading = self.read(key)
            return reading if reading is None or reading.size <= most else replace(reading, parts=())

    for before in half[::3]:
        for when in range(2, 26, 2):
            store = copy_of(before)
            met = Met(store)
            met.when = when
            with suppress(OvertakenError):
                vectors.build_pyramid(met, factors=[(2, 1)])
                assert vectors.open(store).levels == [0, 1]
            assert len(vectors.read_polylines(store)) == 10
            assert vectors.validate(store).findings == ()
