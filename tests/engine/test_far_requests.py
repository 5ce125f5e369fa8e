"""The requests of operations on a store far away, one by one, and what each of them is for."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np
import pytest

import zardine
from engine.far_store import FarStore
from zardine.engine import freshness
from zardine.errors import ArrayChangedError, ArrayNotFoundError, ContainsArrayError, ContainsGroupError
from zardine.kernel import KERNEL
from zardine.storage import MemoryStore
from zardine.stores.base import FAR, ReadCost

VALUES = np.arange(1, 65, dtype="i4").reshape(8, 8)
SHARDED: dict[str, Any] = {"chunks": (2, 2), "shards": (4, 4)}
PLAIN: dict[str, Any] = {"chunks": (4, 4)}
LOOK = "read zarr.json"


class Far(FarStore):
    """A store that is asked by requests, which it writes down."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.asked: list[str] = []

    @property
    def cost(self) -> ReadCost:
        return FAR

    def note(self, what: str, key: str) -> None:
        self.asked.append(f"{what} {key}")

    def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
        self.note("read", key)
        return self.store.read(key, ranges)

    def read_up_to(self, key: str, most: int) -> Any:
        self.note("read", key)
        return self.store.read_up_to(key, most)

    def version(self, key: str) -> Any:
        self.note("look at", key)
        return self.store.version(key)

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self.note("put" if condition is None else "put on condition", key)
        return super().set(key, value, condition=condition)

    def erase(self, key: str) -> None:
        self.note("erase", key)
        super().erase(key)

    def taken(self) -> list[str]:
        """What was asked since the last call."""
        found, self.asked = self.asked, []
        return found


@pytest.fixture(autouse=True)
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LEASE", 600.0)  # however slow this machine is
    monkeypatch.setattr(freshness, "GRACE", 0.0)


def opened(kind: type[Far] = Far, **how: Any) -> tuple[Far, zardine.Array]:
    inner = MemoryStore()
    zardine.create_array(inner, shape=(8, 8), dtype="i4", **how)[...] = VALUES
    store = kind(inner)
    array = zardine.open_array(store, mode="r+", zarr_format=3)
    assert store.taken() == [LOOK]
    return store, array


def opened_long_ago(kind: type[Far] = Far, **how: Any) -> tuple[Far, zardine.Array]:
    """As :func:`opened`; what was seen then does not count any more."""
    store, array = opened(kind, **how)
    array._handle.watch.forget()
    return store, array


@pytest.mark.parametrize("how", [PLAIN, SHARDED])
def test_who_has_just_opened_or_made_an_array_writes_without_a_look(how: dict[str, Any]) -> None:
    store, array = opened(**how)
    array[:4, :4] = -1
    assert store.taken() == ["put c/0/0"]
    array[4, 4] = -2
    assert store.taken() == ["read c/1/1", "put on condition c/1/1"]
    group = zardine.open_group(store, mode="w")
    made = group.create_array("a", shape=(8, 8), dtype="i4", **how)
    store.taken()
    made[...] = VALUES
    assert sorted(store.taken()) == [f"put a/c/{i}/{j}" for i in range(2) for j in range(2)]
    member = group["a"]
    store.taken()
    member[:4, :4] = -1
    assert store.taken() == ["put a/c/0/0"]


def test_what_was_not_read_just_now_is_looked_at_before_the_first_put() -> None:
    """Of handles by consolidated metadata, and of those whose document came with them, nobody knows how old it is."""
    store = Far(MemoryStore())
    group = zardine.open_group(store, mode="w")
    made = group.create_array("a", shape=(8, 8), dtype="i4", **PLAIN)
    zardine.consolidate_metadata(store)
    member = zardine.open_group(store)["a"]
    sent = zardine.Array(store, "a", made.metadata)
    store.taken()
    for array in (member, sent):
        array[:4, :4] = VALUES[:4, :4]
        assert store.taken() == ["read a/zarr.json", "put a/c/0/0"]


def test_an_array_that_another_process_is_about_to_change_is_not_written_after_opening() -> None:
    inner = MemoryStore()
    array = zardine.create_array(inner, shape=(8, 8), dtype="i4", **PLAIN)
    document = json.loads(bytes(inner.get("zarr.json")))
    inner.set("zarr.json", json.dumps({**document, freshness.CLOSING: {"must_understand": False}}).encode())
    store = Far(inner)
    array = zardine.open_array(store)
    with pytest.raises(ArrayChangedError, match="about to change"):
        array[:4, :4] = -1
    assert "put c/0/0" not in store.taken()


@pytest.mark.parametrize("how", [PLAIN, SHARDED])
def test_writing_a_part_reads_and_puts_and_looks_once_a_lease(how: dict[str, Any]) -> None:
    store, array = opened_long_ago(**how)
    array[0, 0] = -1
    first = store.taken()
    assert sorted(first) == sorted([LOOK, "read c/0/0", "put on condition c/0/0"])
    assert first[-1] == "put on condition c/0/0"
    array[1, 1] = -2
    array[5, 5] = -3
    assert store.taken() == ["read c/0/0", "put on condition c/0/0", "read c/1/1", "put on condition c/1/1"]
    assert (array[0, 0], array[1, 1], array[5, 5]) == (-1, -2, -3)


@pytest.mark.parametrize("how", [PLAIN, SHARDED])
def test_writing_what_is_whole_is_a_put(how: dict[str, Any]) -> None:
    store, array = opened_long_ago(**how)
    array[:4, :4] = -1
    assert store.taken() == [LOOK, "put c/0/0"]
    array[:4, 4:] = -2
    assert store.taken() == ["put c/0/1"]
    array[...] = VALUES
    assert sorted(store.taken()) == ["put c/0/0", "put c/0/1", "put c/1/0", "put c/1/1"]
    with array.buffered():
        array[:4, :2] = 7
        array[:4, 2:4] = 8
    assert store.taken() == [LOOK, "put c/0/0"]  # whether the array has grown while they waited


def test_a_shard_that_was_changed_is_known() -> None:
    store, array = opened(**SHARDED)
    array[0, 0] = -1
    store.taken()
    assert array[2, 2] == VALUES[2, 2]
    assert store.taken() == ["read c/0/0"]


def test_what_is_read_after_a_look_takes_no_other() -> None:
    store, array = opened(**PLAIN)
    array._handle.watch.forget()
    assert array[0, 0] == 1
    assert sorted(store.taken()) == ["read c/0/0", LOOK]
    array[0, 0] = 5
    assert store.taken() == ["read c/0/0", "put on condition c/0/0"]


@pytest.mark.parametrize("how", [PLAIN, SHARDED])
def test_without_a_lease_every_put_has_a_look_before_and_one_after(
    how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, array = opened(**how)
    monkeypatch.setattr(freshness, "LEASE", 0.0)
    array[:4, :4] = -1
    asked = store.taken()
    assert (asked[0], asked[-1]) == (LOOK, LOOK)
    assert asked.count("put c/0/0") == 1


@pytest.mark.parametrize("how", [PLAIN, SHARDED])
def test_the_look_is_under_way_beside_the_read(how: dict[str, Any]) -> None:
    meeting = threading.Barrier(2)

    class Meeting(Far):
        def note(self, what: str, key: str) -> None:
            super().note(what, key)
            if "c/0/0" in self.waits_for and (what, key) in (("read", "zarr.json"), ("read", "c/0/0")):
                meeting.wait(60)  # neither is answered before both are asked

        waits_for: tuple[str, ...] = ()

    store, array = opened_long_ago(Meeting, **how)
    store.waits_for = ("c/0/0",)
    with zardine.config.set({"threads": 2}):
        array[0, 0] = -1
    assert store.taken()[-1] == "put on condition c/0/0"


@pytest.mark.parametrize("how", [PLAIN, SHARDED])
@pytest.mark.parametrize("chosen", [(0, 0), (slice(0, 4), slice(0, 4)), (slice(None), slice(None))], ids=str)
def test_nothing_is_put_before_the_look_is_answered(how: dict[str, Any], chosen: Any) -> None:
    """By many threads through one handle, either: the array was replaced by a program that gives nobody time."""
    store, array = opened_long_ago(**how)
    other = zardine.create_array(MemoryStore(), shape=(8, 8), chunks=(8, 8), dtype="f8")
    store.store.set("zarr.json", other.store.get("zarr.json"))
    failures: list[BaseException] = []
    begin = threading.Barrier(3)

    def write() -> None:
        begin.wait(60)
        try:
            array[chosen] = -1
        except ArrayChangedError as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 3
    assert not [each for each in store.taken() if each.startswith(("put", "erase"))]
    assert array._handle.watch.pending is None


@pytest.mark.parametrize("change", ["overwrite", "erase", "move"])
def test_who_replaces_an_array_waits_for_the_leases_of_others(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a writer puts within its lease is there before the array is erased, and goes with it."""
    inner = MemoryStore()
    store = Far(inner)
    zardine.create_array(inner, name="a", shape=(8, 8), dtype="i4", **PLAIN)[...] = VALUES
    writer = zardine.open_array(store, path="a")
    writer[0, 0] = -1
    waited: list[bool] = []

    def sleep(seconds: float) -> None:
        assert inner.get("a/zarr.json") is None
        waited.append(True)
        handle = writer._handle.watch
        handle.changed = freshness._changed  # as another process, which does not know of the change
        writer[:4, :4] = -2
        assert inner.get("a/c/0/0") is not None

    monkeypatch.setattr(freshness.time, "sleep", sleep)
    if change == "overwrite":
        zardine.create_array(store, name="a", shape=(8, 8), chunks=(8, 8), dtype="i4", overwrite=True)
    elif change == "erase":
        del zardine.open_group(store)["a"]
    else:
        zardine.open_group(store).move("a", "b")
    assert waited == [True]
    assert not [key for key in inner.list() if key.startswith("a/c/")]
    with pytest.raises(ArrayChangedError):
        writer[0, 0] = 9


def test_nobody_waits_where_nothing_was() -> None:
    store = Far(MemoryStore())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(freshness.time, "sleep", lambda _: pytest.fail("waited"))
        zardine.create_array(store, name="a", shape=(8, 8), dtype="i4", overwrite=True, **PLAIN)


# documents that are changed by who knows them


def test_appending_reserves_the_place_by_one_put_and_reads_nothing() -> None:
    store, array = opened(chunks=(4, 8))
    for rows in (VALUES[:4], VALUES[4:]):
        array.append(rows)
        found = store.taken()
        assert found[0] == "put on condition zarr.json"
        assert found[1:] == [f"put c/{array.shape[0] // 4 - 1}/0"]
    assert (array[8:] == VALUES).all()
    assert zardine.open_array(store).shape == (16, 8)


def test_appending_after_others_have_reads_the_document_again() -> None:
    store, array = opened(chunks=(4, 8))
    zardine.open_array(store.store).append(VALUES[:4])
    array.append(-VALUES[:4])
    assert store.taken() == [
        *("put on condition zarr.json", LOOK, "put on condition zarr.json", "put c/3/0"),
    ]
    assert (zardine.open_array(store)[8:] == [*VALUES[:4], *-VALUES[:4]]).all()


def test_appending_to_what_another_process_is_about_to_change_changes_nothing() -> None:
    store, array = opened(chunks=(4, 8))
    before = json.loads(bytes(store.store.get("zarr.json")))
    marked = json.dumps({**before, freshness.CLOSING: {"must_understand": False}}).encode()
    store.store.set("zarr.json", marked)
    with pytest.raises(ArrayChangedError, match="about to change"):
        array.append(VALUES[:4])
    assert bytes(store.store.get("zarr.json")) == marked
    assert not any("c/" in each for each in store.taken())


def test_attributes_are_changed_by_one_put() -> None:
    store, array = opened(**PLAIN)
    for number in range(2):
        array.attrs["a"] = number
        assert store.taken() == ["put on condition zarr.json"]
    zardine.open_array(store.store).attrs["b"] = 5
    array.attrs["a"] = 7
    assert store.taken() == ["put on condition zarr.json", LOOK, "put on condition zarr.json"]
    assert dict(zardine.open_array(store.store).attrs) == {"a": 7, "b": 5}


def test_attributes_that_others_have_changed_are_stored_though_they_were_the_same_before() -> None:
    store, array = opened(**PLAIN)
    array.attrs["a"] = 1
    zardine.open_array(store.store).attrs["a"] = 2
    store.taken()
    array.attrs["a"] = 1
    assert store.taken() == [LOOK, "put on condition zarr.json"]
    assert dict(zardine.open_array(store.store).attrs) == {"a": 1}


# new nodes


class Listed(Far):
    """It writes down what is listed, too."""

    def list_dir(self, prefix: str) -> Any:
        self.note("list", prefix)
        return super().list_dir(prefix)

    def list_prefix(self, prefix: str) -> Any:
        self.note("list", prefix)
        return super().list_prefix(prefix)


def test_creating_an_array_is_a_list_and_a_put() -> None:
    for overwrite in (False, True):
        store = Listed(MemoryStore())
        zardine.create_array(store, shape=(8, 8), dtype="i4", overwrite=overwrite, **PLAIN)
        assert store.taken() == ["list ", "put on condition zarr.json"]


def test_creating_an_array_in_a_group_looks_at_both_at_a_time() -> None:
    """At the group above while the names at the place are listed."""
    together = threading.Barrier(2, timeout=60)

    class Waiting(Listed):
        def note(self, what: str, key: str) -> None:
            super().note(what, key)
            if what != "put on condition":
                together.wait()

    inner = MemoryStore()
    zardine.create_group(inner)
    store = Waiting(inner)
    zardine.create_array(store, name="a", shape=(8, 8), dtype="i4", **PLAIN)
    asked = store.taken()
    assert sorted(asked[:2]) == ["list a/", "read zarr.json"]
    assert asked[2:] == ["put on condition a/zarr.json"]


@pytest.mark.parametrize("there", ["zarr.json", ".zarray", ".zgroup", "b/zarr.json", "b/c/.zgroup"])
def test_a_place_that_is_taken_is_found_by_one_list(there: str) -> None:
    """And what is there is looked at as everywhere."""
    store = Listed(MemoryStore())
    path, _, name = there.rpartition("/")
    kind = zardine.create_array if name == ".zarray" else zardine.create_group
    how = {"shape": (4,), "dtype": "i4"} if name == ".zarray" else {}
    where = {"name": path} if name == ".zarray" else {"path": path}
    kind(MemoryStore(inner := {}), zarr_format=3 if name == "zarr.json" else 2, **where, **how)
    store.set(f"a/{there}", inner[there])
    store.taken()
    with pytest.raises((ContainsArrayError, ContainsGroupError)):
        zardine.create_array(store, name="a", shape=(4,), dtype="i4")
    assert not any(each.startswith("put") for each in store.taken())


def test_what_is_not_there_is_looked_for_by_its_document_and_one_list() -> None:
    store = Listed(MemoryStore())
    group = zardine.create_group(store)
    store.taken()
    assert "a" not in group
    assert store.taken() == ["read a/zarr.json", "list a/"]
    with pytest.raises(KeyError, match="looked for"):
        group["a"]
    assert store.taken() == ["read a/zarr.json", "list a/"]
    with pytest.raises(ArrayNotFoundError, match="looked for"):
        zardine.open_array(store, path="a", mode="r")
    assert sorted(store.taken()) == ["list a/", *(f"read a/{name}" for name in (".zarray", ".zattrs", "zarr.json"))]


def test_what_is_there_besides_is_found_as_everywhere() -> None:
    """Members of another version of Zarr, groups without a document, and works that were cut off."""
    store = Listed(MemoryStore())
    group = zardine.create_group(store)
    zardine.create_array(store.store, name="old", shape=(2,), dtype="i4", zarr_format=2)
    zardine.create_array(store.store, name="deep/er/a", shape=(2,), dtype="i4")
    store.store.erase("deep/zarr.json")
    store.store.erase("deep/er/zarr.json")
    store.store.set("cut/zardine-conversion.json", b'{"function": "rechunk"}')
    assert group["old"].metadata.zarr_format == 2
    store.taken()
    assert isinstance(group["deep"], zardine.Group)
    assert [each for each in store.taken() if "list" in each] == ["list deep/", "list deep/er/", "list deep/er/a/"]
    with pytest.raises(KeyError, match="rechunking to this place is not finished"):
        group["cut"]


# what is read


@pytest.mark.skipif(KERNEL is None, reason="without the kernel they are decoded when all are there")
def test_large_objects_are_decoded_while_others_are_under_way() -> None:
    values = np.arange(1, 512 * 256 + 1, dtype="i4").reshape(512, 256)
    out = np.zeros_like(values)
    seen = []

    class Waiting(Far):
        def read_up_to(self, key: str, most: int) -> Any:
            if key == "c/1/0":
                end = time.monotonic() + 60
                while not out[255].all() and time.monotonic() < end:
                    time.sleep(0.001)
                seen.append((out[:256] == values[:256]).all() and not out[256:].any())
            return super().read_up_to(key, most)

    inner = MemoryStore()
    zardine.create_array(inner, data=values, chunks=(256, 256))
    array = zardine.open_array(Waiting(inner))
    array.get_basic_selection(..., out=out)
    assert seen == [True]
    assert (out == values).all()


def test_what_was_decoded_early_is_not_given_when_the_array_was_changed() -> None:
    inner = MemoryStore()
    values = np.ones((512, 256), "i4")
    zardine.create_array(inner, data=values, chunks=(256, 256))
    array = zardine.open_array(Far(inner))
    zardine.create_array(inner, data=-values, chunks=(256, 256), overwrite=True)
    array._handle.watch.forget()
    with pytest.raises(ArrayChangedError):
        array[...]
    inner.erase("c/1/0")
    inner.set("c/0/0", b"damaged")
    array._handle.watch.forget()
    with pytest.raises(ArrayChangedError):
        array[...]


# copies of keys


def test_copying_keys_holds_no_more_than_the_window_at_a_time() -> None:
    """Values that are longer than what was seen before are read when there is room for them."""
    size, lock = 3 * 2**20, threading.Lock()
    held: dict[str, int] = {}
    most = []

    class Held(Far):
        def read_up_to(self, key: str, most_bytes: int) -> Any:
            reading = super().read_up_to(key, most_bytes)
            with lock:
                held[key] = sum(map(len, reading.parts))
                most.append(sum(held.values()))
            return reading

    class Target(Far):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            time.sleep(0.01)
            with lock:
                del held[key]
            return super().set(key, value, condition=condition)

    source, target = MemoryStore(), MemoryStore()
    for number in range(24):
        source.set(f"a{number:02}", b"x" * 10)
        source.set(f"b{number:02}", bytes(size))
    with zardine.config.set({"window_bytes": 4 * size}):
        assert zardine.copy_store(Held(source), Target(target)) == (48, 0, 24 * size + 240)
    assert {key: target.get(key) for key in target.list()} == {key: source.get(key) for key in source.list()}
    assert 2 * size <= max(most) <= 4 * size


def test_keys_that_are_there_are_found_by_one_list() -> None:
    source, target = MemoryStore(), Listed(MemoryStore())
    for number in range(8):
        source.set(f"a/{number}", b"x")
    assert zardine.copy_store(source, target, source_path="a", dest_path="b")[0] == 8
    assert target.taken() == ["list b/", *(f"put b/{number}" for number in range(8))]
    with pytest.raises(ContainsArrayError, match="b/0"):
        zardine.copy_store(source, target, source_path="a", dest_path="b")
    assert target.taken() == ["list b/"]
    source.set("a/8", b"x")
    assert zardine.copy_store(source, target, source_path="a", dest_path="b", if_exists="skip") == (1, 8, 1)
    assert target.taken() == ["list b/", "put b/8"]


def test_chunks_that_are_stored_are_counted_in_many_shards_at_a_time() -> None:
    together = threading.Barrier(4, timeout=60)

    class Waiting(Far):
        def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
            if key.startswith("c/"):
                together.wait()
            return super().read(key, ranges)

    _, array = opened(Waiting, **SHARDED)
    assert array.nchunks_initialized == 16
