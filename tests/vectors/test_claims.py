"""Claims of stores where locks keep nobody out: held, waited for, taken over, and lost."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from meddling import KilledError, Stage, StagedStore, let_play
from zardine import vectors
from zardine.errors import StoreError
from zardine.hierarchy.find import find_node
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import GroupMetadata
from zardine.storage import MemoryStore
from zardine.stores.base import Condition
from zardine.vectors.storing.claims import (
    CLAIM,
    HELPED,
    PATIENCE,
    Claim,
    ClaimedStore,
    LostClaimError,
    OvertakenError,
    claim_of,
    claimed,
)

KEY = "0/zarr.json"
FIRST = np.array([[5.0, 5], [15, 5]])
BEHIND = np.array([[-35.0, -5]])
"""Before the grid, which begins elsewhere then: arrays are stored anew."""


def store_with_points() -> MemoryStore:
    inner = MemoryStore()
    vectors.write_points(inner, FIRST, chunk_shape=10, shard_shape=2)
    return inner


def attributes_of(inner: Any) -> dict[str, Any]:
    level = find_node(inner, "0", 3)
    assert isinstance(level, GroupMetadata)
    return dict(level.attributes)


def give(inner: Any, **more: Any) -> None:
    level = find_node(inner, "0", 3)
    assert isinstance(level, GroupMetadata)
    update_node(inner, "0", level, lambda old: old.with_attributes({**old.attributes, **more}))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(1, store_with_points(), far=True)
    made.often = 0.0
    let_play(monkeypatch, made)
    return made


class Dying(StagedStore):
    """A store of a process that is killed before it writes what tells so."""

    when = staticmethod(lambda key, value: False)

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        if type(self).when(key, bytes(value)):
            raise KilledError
        return super().set(key, value, condition=condition)


def killed(stage: Stage, when: Any) -> None:
    kind = type("Killed", (Dying,), {"when": staticmethod(when)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Claim, "let_go", lambda self: None)  # it does no more
        with pytest.raises(KilledError):
            vectors.append_points(kind(stage, False), BEHIND)


@pytest.mark.parametrize(
    ("when", "count"),
    [
        (lambda key, value: key.startswith("0/vertices/c."), 3),
        (lambda key, value: key == KEY and b'"zardine_pending"' in value, 3),
        (lambda key, value: key == "0/vertices/zarr.json", 4),
        (lambda key, value: key.startswith("0/vertices/c/"), 4),
    ],
)
def test_the_claim_of_who_was_killed_is_taken_over(stage: Stage, when: Any, count: int) -> None:
    """Before anything of it counts, and when it was agreed on: the next writer ends it, after it has waited."""
    killed(stage, when)
    assert CLAIM in attributes_of(stage.inner)
    assert "claimed" in vectors.validate(stage.inner).codes
    assert vectors.describe_store(stage.inner)["claimed"]
    assert len(vectors.read_points(stage.store())) == count - 1
    began = stage.now
    vectors.append_points(stage.store(), [[5.0, 6]])
    assert PATIENCE <= stage.now - began < PATIENCE + 5
    assert CLAIM not in attributes_of(stage.inner)
    assert len(vectors.read_points(stage.inner)) == count
    vectors.repair(stage.inner)
    assert vectors.validate(stage.inner).findings == ()
    assert not vectors.describe_store(stage.inner)["claimed"]


@pytest.mark.parametrize("far", [False, True])
def test_repair_takes_a_claim_away(stage: Stage, far: bool) -> None:
    """Also where locks keep others out, and the store was copied to."""
    give(stage.inner, **{CLAIM: {"writer": "somebody", "beat": 3}})
    store = stage.store() if far else stage.inner
    assert [each.kind for each in vectors.validate(store).findings] == ["claimed"]
    done = vectors.repair(store)
    assert [each.message for each in done.actions] == ["no writer that was killed has claimed the store any more"]
    assert vectors.validate(store).findings == ()


@pytest.mark.parametrize("told", ["x", 7, None, {}, [], {"beat": "no"}])
def test_what_is_no_claim_of_ours_is_waited_for_and_goes(stage: Stage, told: Any) -> None:
    give(stage.inner, **{CLAIM: told})
    vectors.append_points(stage.store(), [[5.0, 6]])
    assert CLAIM not in attributes_of(stage.inner)
    give(stage.inner, **{CLAIM: told})
    vectors.append_points(stage.inner, [[5.0, 6]])
    assert CLAIM not in attributes_of(stage.inner)
    assert len(vectors.read_points(stage.inner)) == 4


def test_who_beats_is_waited_for(stage: Stage) -> None:
    done: list[str] = []

    def holder() -> None:
        with claimed(stage.store(), "0") as store:
            for _ in range(100):
                stage.sleep(1.5)
                store.set("0/x", b"")
            store.erase("0/x")
            done.append("holder")

    def other() -> None:
        stage.sleep(1.0)
        vectors.append_points(stage.store(), [[5.0, 6]])
        done.append("other")

    stage.run(holder, other)
    assert done == ["holder", "other"]
    assert len(vectors.read_points(stage.inner)) == 3


def test_who_did_nothing_for_long_writes_no_more(stage: Stage) -> None:
    def holder() -> None:
        with claimed(stage.store(), "0") as store:
            stage.sleep(PATIENCE + 10)
            for change in (
                lambda: store.set("0/vertices/x", b""),
                lambda: store.set(KEY, b"{}"),
                lambda: store.erase("0/vertices/zarr.json"),
                lambda: store.erase_values(["0/vertices/zarr.json"]),
                lambda: store.erase_version("0/vertices/zarr.json", None),
                lambda: store.erase_prefix("0/"),
                lambda: store.set_partial_values([("0/vertices/zarr.json", 0, b" ")]),
                lambda: store.read(KEY),
            ):
                with pytest.raises(LostClaimError, match="another writer has taken over"):
                    change()

    def other() -> None:
        stage.sleep(0.5)
        vectors.append_points(stage.store(), BEHIND)

    stage.run(holder, other)
    assert len(vectors.read_points(stage.inner)) == 3
    assert vectors.validate(stage.inner).findings == ()


def test_small_changes_claim_nothing(stage: Stage) -> None:
    vectors.append_points(stage.store(), [[5.0, 6]])
    vectors.move_vertices(stage.store(), [0], [[6.0, 6]])
    assert sum(line.endswith(f"sets {KEY}") for line in stage.log) <= 4
    stage.log.clear()

    def other() -> None:
        level = stage.store()
        vectors.append_points(level, [[7.0, 7]])

    stage.run(other)
    assert sum(line.endswith(f"sets {KEY}") for line in stage.log) == 2  # that it is agreed on, and carried out


def test_who_comes_first_is_not_overwritten_by_a_claim(stage: Stage) -> None:
    store = stage.store()
    claim = Claim(store, "0")
    group = find_node(store, "0", 3)
    assert isinstance(group, GroupMetadata)
    version = store.version(KEY)
    vectors.append_points(stage.store(), [[5.0, 6]])
    with pytest.raises(OvertakenError, match="try again"):
        claim.take_as(group, version)
    assert not claim.is_held
    give(stage.inner, **{CLAIM: {"writer": "somebody", "beat": 1}})
    group = find_node(store, "0", 3)
    assert isinstance(group, GroupMetadata)
    with pytest.raises(OvertakenError):
        claim.take_as(group, store.version(KEY))


class Deaf(StagedStore):
    """A store that stores what it is given, and whose answer gets lost: what is asked again fails by the condition."""

    times = 0

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        found = super().set(key, value, condition=condition)
        if key == KEY and condition is not None and self.times:
            self.times -= 1
            super().set(key, value, condition=condition)  # by who tries again
        return found


def test_an_answer_that_got_lost_is_no_other_writer(stage: Stage) -> None:
    store = Deaf(stage, False)
    store.times = 5
    vectors.shard_store(store, 1)
    assert store.times < 5
    assert CLAIM not in attributes_of(stage.inner)
    assert vectors.validate(stage.inner).findings == ()


def test_who_claims_waits_for_who_has_helped(stage: Stage) -> None:
    give(stage.inner, **{HELPED: True})
    vectors.append_points(stage.store(), [[5.0, 6]])
    assert HELPED in attributes_of(stage.inner)  # it claims nothing
    began = stage.now
    vectors.shard_store(stage.store(), 1)
    assert stage.now - began >= 5
    assert HELPED not in attributes_of(stage.inner)


def test_damage_of_the_level_is_told_as_ever(stage: Stage) -> None:
    stage.inner.set(KEY, b"{")
    for store in (stage.store(), stage.inner):
        with pytest.raises(ValueError, match="is invalid"):
            vectors.append_points(store, [[5.0, 6]])
    vectors.write_points(stage.store(), FIRST, chunk_shape=10, overwrite=True)
    assert len(vectors.read_points(stage.inner)) == 2


def test_claims_are_made_where_locks_keep_nobody_out(stage: Stage) -> None:
    with claimed(stage.inner, "0") as store:
        assert claim_of(store) is None
    with claimed(stage.store(), "0") as store:
        assert isinstance(store, ClaimedStore)
        assert CLAIM in attributes_of(stage.inner)
        level = find_node(store, "0", 3)
        assert isinstance(level, GroupMetadata)
        assert CLAIM not in level.attributes
        with claimed(store, "0") as again:
            assert again is store
        assert CLAIM in attributes_of(stage.inner)
    assert CLAIM not in attributes_of(stage.inner)


def test_an_overwrite_waits_for_who_has_claimed(stage: Stage) -> None:
    give(stage.inner, **{CLAIM: {"writer": "somebody", "beat": 1}})
    began = stage.now
    vectors.write_points(stage.store(), FIRST[:1], chunk_shape=10, overwrite=True)
    assert stage.now - began >= PATIENCE
    assert CLAIM not in attributes_of(stage.inner)
    assert len(vectors.read_points(stage.inner)) == 1


def test_a_store_that_is_too_slow_is_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with claimed(stage.store(), "0") as store:
        write = Claim._write

        def slow(self: Claim, *args: Any, **named: Any) -> None:
            write(self, *args, **named)
            stage.now += 19

        monkeypatch.setattr(Claim, "_write", slow)
        stage.now += 19
        with pytest.raises(StoreError, match="too slow"):
            store.set("0/x", b"")
        monkeypatch.undo()


class Visited(StagedStore):
    """A store in which others convert everything just before a change is agreed on, by a document with its log."""

    visits = 1

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        if key == "0/zarr.json" and b"zardine_log" in bytes(value) and self.visits:
            self.visits -= 1
            vectors.shard_store(self.stage.store(), 4)
        return super().set(key, value, condition=condition)


def test_a_conversion_is_seen_where_versions_are_of_what_is_stored(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ETags are: the document of the level says the same before it and after."""

    def version(self: Any, key: str, value: Any) -> str:
        return hashlib.md5(bytes(value), usedforsecurity=False).hexdigest()

    monkeypatch.setattr(type(stage.inner._backing), "version", version)
    store = Visited(stage, False)
    vectors.append_points(store, [[5.0, 6]])
    assert store.visits == 0
    assert len(vectors.read_points(stage.inner)) == 3
    assert vectors.validate(stage.inner).findings == ()
    store.visits = 1
    with pytest.raises(OvertakenError):
        vectors.move_vertices(store, [0], [[6.0, 6]])
    assert vectors.validate(stage.inner).findings == ()
