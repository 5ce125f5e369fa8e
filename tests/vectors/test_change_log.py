"""Changes by cells: the log they go through, what it costs, and what a writer that was killed leaves of it."""

from __future__ import annotations

import json
import multiprocessing
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import Killed, MortalStore, Unlocked, copy_of, rows
from vectors.stores_of_all_kinds import at_once
from zardine import vectors
from zardine.codecs.crc32c import crc32c
from zardine.errors import CorruptionError, DataError, SelectionError
from zardine.storage import CountingStore, MemoryStore, Store
from zardine.vectors.content.columns import Column, column_of, join_columns
from zardine.vectors.format.change_log import Changed, ChangeLog, decode_log, encode_log

RNG = np.random.default_rng(5)
TOKEN = "3-0123456789abcdef"
LOG = ChangeLog(
    TOKEN,
    {"object_index": {"zarr_format": 3, "node_type": "group", "attributes": {"num_objects": 4}}},
    {"vertices": Changed(np.array([[0, -1], [2, 3]]), [b"abc", b""]), "links": Changed(np.zeros((0, 2), np.int64), [])},
    {"object_index/manifests": Changed(np.array([[7]]), [b"\0\1"])},
)


def plain(log: ChangeLog) -> Any:
    """A log as it can be compared."""
    cells, rows_ = (
        {path: (each.places.tolist(), list(each.values)) for path, each in table.items()}
        for table in (log.cells, log.rows)
    )
    return log.token, log.documents, cells, rows_


def test_a_log_comes_back_as_it_was() -> None:
    assert plain(decode_log(encode_log(LOG), TOKEN)) == plain(LOG)
    nothing = ChangeLog("1-0000000000000000")
    assert plain(decode_log(encode_log(nothing), nothing.token)) == plain(nothing)


def test_a_damaged_log_is_told() -> None:
    data = encode_log(LOG)
    for place in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_log(data[:place], TOKEN)
        with pytest.raises(CorruptionError):
            decode_log(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], TOKEN)
    with pytest.raises(CorruptionError, match="expected"):
        decode_log(data, "4-0123456789abcdef")


HEAD = {"token": TOKEN, "documents": {}, "cells": [], "rows": []}


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ([], b""),
        ({**HEAD, "documents": 3}, b""),
        ({**HEAD, "documents": {"a": 3}}, b""),
        ({**HEAD, "cells": 3}, b""),
        ({**HEAD, "cells": [["a", -1, 2]]}, b""),
        ({**HEAD, "cells": [["a", 1, 0]]}, bytes(8)),
        ({**HEAD, "cells": [["a", 2**62, 2**62]]}, b""),
        ({**HEAD, "cells": [["a", 1, 2]]}, struct.pack("<3q", 0, 0, 2**62)),
        ({**HEAD, "cells": [["a", 1, 2]]}, struct.pack("<3q", 0, 0, -1)),
        ({**HEAD, "cells": [["a", 2, 1]]}, struct.pack("<4q", 5, 5, 0, 0)),
        ({**HEAD, "rows": [["a", 1, 1]]}, struct.pack("<2q", 0, 0) + b"more"),
    ],
    ids=str,
)
def test_a_log_that_makes_no_sense(head: Any, body: bytes) -> None:
    text = json.dumps(head).encode()
    data = b"ZARDLOG1" + struct.pack("<I", len(text)) + text + body
    with pytest.raises(CorruptionError):
        decode_log(data + struct.pack("<I", crc32c(data)), TOKEN)


def lines_in(cells: int, count: int, first: int = 0) -> list[np.ndarray[Any, Any]]:
    """Lines of three vertices, each within one of so many cells of 10."""
    number = np.arange(first, first + count)
    starts = np.stack([number % cells * 10.0 + 1, number % 7, number % 5], axis=1)
    return [start + np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]]) for start in starts]


OPTIONS: dict[str, Any] = {"chunk_shape": 10, "bounds": ([0, 0, 0], [99, 9, 9])}


@pytest.mark.parametrize(("shard", "requests"), [(None, 40), (8, 24)])
def test_an_append_asks_as_much_of_a_store_of_any_size(shard: int | None, requests: int) -> None:
    """Ten lines in five cells."""
    for count in (50, 300):
        store = CountingStore(MemoryStore())
        vectors.write_polylines(store, lines_in(10, count), shard_shape=shard, **OPTIONS)
        asked = []
        for number in range(4):
            store.reset()
            vectors.append_polylines(store, lines_in(5, 10, 10 * number))
            asked.append(store.counts.requests)
        assert asked == [requests] * 4
        assert len(vectors.read_polylines(store).lines) == count + 40
        assert vectors.validate(store).findings == ()


def logs_in(store: Store) -> list[str]:
    return [key for key in store.list_dir("0/vertices/")[0] if "zardine_log" in key]


def test_what_killed_writers_leave_of_logs_goes() -> None:
    whole = MemoryStore()
    vectors.write_polylines(whole, lines_in(2, 4), **OPTIONS)
    left, changes = set(), 0
    while True:
        store = copy_of(whole)
        try:
            vectors.append_polylines(MortalStore(store, changes), lines_in(2, 2))
            break
        except Killed:
            changes += 1
        left.add((len(logs_in(store)), len(vectors.read_polylines(store).lines)))
        assert vectors.validate(store).ok
        vectors.append_polylines(store, lines_in(2, 1))
        assert len(vectors.read_polylines(store).lines) in (5, 7)
        assert logs_in(store) == []
    assert left == {(0, 4), (1, 4), (1, 6)}


def test_a_log_that_counts_and_is_damaged_or_lost() -> None:
    whole = MemoryStore()
    vectors.write_points(whole, lines_in(5, 1)[0], **OPTIONS)
    changes = 0
    while len(vectors.read_points(whole)) == 3:
        store = copy_of(whole)
        with pytest.raises(Killed):
            vectors.append_points(MortalStore(store, changes), [[3.0, 3, 3]])
        if len(vectors.read_points(store)) == 4:
            break
        changes += 1
    (key,) = logs_in(store)
    data = bytes(store.get(key) or b"")
    store.set(key, data[:-9] + b"?" + data[-8:])
    for question in (vectors.read_points, vectors.describe_store, lambda s: vectors.append_points(s, [[1.0, 1, 1]])):
        with pytest.raises(CorruptionError, match="log of a change is damaged"):
            question(store)
    store.erase(key)
    with pytest.raises(CorruptionError, match="log of a change that was agreed on is lost"):
        vectors.read_points(store)
    store.set(key, data)
    assert len(vectors.read_points(store)) == 4
    vectors.repair(store)
    assert logs_in(store) == []
    assert rows(vectors.read_points(store).positions) == rows([*lines_in(5, 1)[0], [3.0, 3, 3]])


def test_categories_are_added_behind_those_that_are_there() -> None:
    old = column_of("t", ["b", "c", "b"], 3, "rows")
    joined = join_columns("t", old, np.array(["a", "c", None], object), 3)
    assert joined.categories == ("b", "c", "a")
    assert joined.values[:3].tolist() == old.values.tolist()
    assert joined.decoded().tolist() == ["b", "c", "b", "a", "c", None]
    again = join_columns("t", joined, None, 1)
    assert again.categories == joined.categories
    assert again.decoded().tolist()[-1] is None
    taken = Column(np.array([0, 2], np.uint8), ("x", "y"), 2)
    wider = join_columns("t", taken, np.array(["z"], object), 1)
    assert wider.decoded().tolist() == ["x", None, "z"]
    many = join_columns("t", old, np.array([f"{n:03}" for n in range(300)], object), 300)
    assert many.decoded().tolist() == ["b", "c", "b", *(f"{n:03}" for n in range(300))]


def test_appended_text_keeps_the_codes_of_what_is_there() -> None:
    store = MemoryStore()
    points = np.stack([np.arange(50) * 2.0, np.zeros(50), np.zeros(50)], axis=1)
    vectors.write_points(store, points, vertex_attributes={"t": ["m", "n"] * 25}, **OPTIONS)
    before = {key: bytes(store.get(key) or b"") for key in store.list_prefix("0/vertex_attributes/t/c/")}
    vectors.append_points(store, [[3.0, 3, 3]], vertex_attributes={"t": ["a"]})
    after = {key: bytes(store.get(key) or b"") for key in store.list_prefix("0/vertex_attributes/t/c/")}
    assert [key for key in before if before[key] != after[key]] == ["0/vertex_attributes/t/c/0/0/0"]
    found = vectors.read_points(store)
    assert sorted(found.attributes["t"].tolist()) == ["a", *["m"] * 25, *["n"] * 25]
    assert vectors.validate(store).findings == ()


def test_some_values_of_some_objects() -> None:
    store = CountingStore(MemoryStore())
    columns = {"q": np.arange(150.0), "t": [["m"] * 3] * 50}
    vectors.write_polylines(
        store, lines_in(10, 50), vertex_attributes=columns, object_attributes={"w": np.arange(50)}, **OPTIONS
    )
    store.reset()
    vectors.set_attribute(store, "q", [7.0] * 6, object_ids=[41, 3])
    written = {key for key, count in store.counts.keys.items() if "/c/" in key and key.startswith("0/vertex_attr")}
    assert written == {"0/vertex_attributes/q/c/1/0/0", "0/vertex_attributes/q/c/3/0/0"}
    vectors.set_attribute(store, "t", ["z", "m", None], object_ids=[5])
    vectors.set_attribute(store, "w", [-1, -2], kind="object", object_ids=[9, 2])
    found = vectors.read_polylines(store)
    q, w = np.arange(150.0).reshape(50, 3), np.arange(50)
    q[[41, 3]], w[[9, 2]] = 7, [-1, -2]
    assert found.attributes["q"].reshape(50, 3).tolist() == q.tolist()
    assert found.attributes["t"].reshape(50, 3)[4:7].tolist() == [["m"] * 3, ["z", "m", None], ["m"] * 3]
    assert found.object_attributes["w"].tolist() == w.tolist()
    assert vectors.validate(store).findings == ()
    for values, more, error, match in (
        ([1.0] * 3, {"object_ids": [99]}, SelectionError, "no object with the id 99"),
        ([1.0] * 2, {"object_ids": [9]}, DataError, "each of the 3 vertices"),
        ([1.0] * 6, {"object_ids": [9, 9]}, DataError, "once"),
        (["a"] * 3, {"object_ids": [9]}, DataError, "text cannot be added"),
        (None, {"object_ids": [9]}, DataError, "leave object_ids out"),
        ([1.0], {"object_ids": [9], "kind": "group"}, DataError, "'group'"),
        ([1.0], {"object_ids": [9], "kind": "object"}, SelectionError, "no object attribute 'q'"),
    ):
        with pytest.raises(error, match=match):
            vectors.set_attribute(store, "q", values, **more)  # type: ignore[arg-type]
    assert vectors.read_polylines(store).attributes["q"].tolist() == found.attributes["q"].tolist()


def _append_lines(path: str, who: int) -> None:
    for number in range(4):
        vectors.append_polylines(
            path, lines_in(5, 2, who), object_ids=[100 + 10 * who + 2 * number + k for k in (0, 1)]
        )


@pytest.mark.parametrize("shard", [None, 4])
def test_several_writers_that_append_lose_nothing(shard: int | None, tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_polylines(path, lines_in(10, 20), shard_shape=shard, **OPTIONS)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_lines, args=(path, who)) for who in range(3)]
    for writer in writers:
        writer.start()
    seen = 20
    while any(writer.is_alive() for writer in writers):
        found = vectors.read_polylines(path)
        assert len(found.lines) >= seen
        assert {len(line) for line in found.lines} == {3}
        seen = len(found.lines)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    found = vectors.read_polylines(path)
    wanted = [100 + 10 * who + n for who in range(3) for n in range(8)]
    assert sorted(found.object_ids.tolist()) == [*range(20), *wanted]
    assert vectors.validate(path).findings == ()


@pytest.mark.parametrize("shard", [None, 4])
def test_writers_without_locks_overtake_each_other_anywhere(shard: int | None) -> None:
    waits, met = 0, True
    while met:
        store = Unlocked()
        vectors.write_polylines(store, lines_in(3, 6), shard_shape=shard, **OPTIONS)
        vectors.append_polylines(store, lines_in(3, 2))  # tables are ready to grow
        store.waits, store.other = waits, lambda: vectors.append_polylines(store, lines_in(3, 2, 1))  # noqa: B023
        vectors.append_polylines(store, lines_in(3, 2))
        met = store.other is None
        store.other = None
        wanted = [*lines_in(3, 6), *lines_in(3, 2), *lines_in(3, 2), *(lines_in(3, 2, 1) if met else [])]
        found = vectors.read_polylines(store).lines
        assert sorted(line.tolist() for line in found) == sorted(line.tolist() for line in wanted)
        assert vectors.validate(store).findings == ()
        waits += 1
    assert waits > 10


class Overwritten(MemoryStore):
    """A store of which another program, which asks for no lock, writes a value as soon as a change is agreed on."""

    key = ""
    value = b""

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        version = super().set(key, value, condition=condition)
        if key == "0/zarr.json" and self.value and b"zardine_log" in bytes(value):
            found, self.value = self.value, b""
            super().set(self.key, found)
        return version


@pytest.mark.parametrize("key", ["0/object_index/object_ids/c/0", "0/vertices/c/0/0/0"])
def test_what_others_write_without_a_lock_is_not_lost(key: str) -> None:
    """What was read before is not taken for what is there."""
    lines = lines_in(3, 6)
    changed = [lines[0] + 0.5, *lines[1:]] if "vertices" in key else lines
    ids = [0, 1, 2, 3, 7, 9] if "ids" in key else None
    other, store = MemoryStore(), Overwritten()
    vectors.write_polylines(other, changed, object_ids=ids, shard_shape=4, **OPTIONS)
    vectors.write_polylines(store, lines, object_ids=[0, 1, 2, 3, 4, 9], shard_shape=4, **OPTIONS)
    store.key, store.value = key, bytes(other.get(key) or b"")
    vectors.append_polylines(store, lines_in(1, 1, 1))
    assert store.value == b""
    found = vectors.read_polylines(store)
    if ids is not None:
        assert found.object_ids.tolist() == [*ids, 10]
    assert sorted(line.tolist() for line in found.lines[1:]) == sorted(
        line.tolist() for line in [*lines[1:], *lines_in(1, 1, 1)]
    )


def test_what_is_put_in_order_first_is_read_after_that() -> None:
    """An append removes levels that a killed writer has left, and links to them."""
    whole = MemoryStore()
    vectors.write_points(whole, np.concatenate(lines_in(3, 9)), **OPTIONS)
    vectors.build_pyramid(whole, factors=[(2, 1), (2, 1)])
    changes, unfinished, died = 0, 0, True
    while died:
        store = copy_of(whole)
        dying = MortalStore(store, changes)
        with suppress(Killed):
            vectors.build_pyramid(dying, factors=[(3, 1)], anew=True)
        died = dying.dead
        before = len(vectors.read_points(store))
        there = len(store.list_dir("")[1])
        vectors.append_points(store, [[3.0, 3, 3]])
        unfinished += len(store.list_dir("")[1]) < there
        assert len(vectors.read_points(store)) == before + 1
        assert {each.kind for each in vectors.validate(store).findings} <= {"levels-older"}
        changes += 5
    assert unfinished > 1


def agreed_on(whole: Store) -> MemoryStore:
    """A copy of a store in which an append was agreed on, and its writer killed."""
    for changes in range(1, 99):
        store = copy_of(whole)
        with suppress(Killed):
            vectors.append_polylines(MortalStore(store, changes), lines_in(2, 1))
        if b"zardine_log" in bytes(store.get("0/zarr.json") or b""):
            return store
    raise AssertionError("never")


def test_a_log_of_another_change_counts_for_nothing() -> None:
    """All logs of a level are stored at one place."""
    whole = MemoryStore()
    vectors.write_polylines(whole, lines_in(2, 4), **OPTIONS)
    first = agreed_on(whole)
    vectors.append_polylines(whole, lines_in(2, 1))
    second = agreed_on(whole)
    (key,) = logs_in(first)
    assert logs_in(second) == [key]
    assert len(vectors.read_polylines(second)) == 6
    second.set(key, bytes(first.get(key) or b""))
    with pytest.raises(CorruptionError, match="log of a change that was agreed on is lost"):
        vectors.read_polylines(second)


class Busy(MemoryStore):
    """A store to which something is appended while a reader reads, whenever the writers' lock is free."""

    appends = -1

    def read(self, key: str, *more: Any) -> Any:
        if self.appends >= 0 and key.startswith("0/vertices/c/"):
            before, self.appends = self.appends, -1
            with ThreadPoolExecutor(1) as thread:
                if not thread.submit(self.is_locked, "0/zarr.json").result():
                    thread.submit(vectors.append_points, self, [[3.0, 3, 3]]).result()
                    before += 1
            self.appends = before
        return super().read(key, *more)


def test_readers_come_to_an_end_beside_writers_that_are_always_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)
    store = Busy()
    vectors.write_points(store, lines_in(1, 1)[0], **OPTIONS)
    store.appends = 0
    found = vectors.read_points(store)
    count, store.appends = store.appends, -1
    assert count > 1
    assert len(found) == 3 + count
