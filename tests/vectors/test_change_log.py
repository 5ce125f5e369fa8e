"""Changes by cells: the log they go through, what it costs, and what a writer that was killed leaves of it."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import Killed, MortalStore, copy_of, rows
from zardine import vectors
from zardine.codecs.crc32c import crc32c
from zardine.errors import CorruptionError
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


@pytest.mark.parametrize(("shard", "requests"), [(None, 57), (8, 35)])
def test_an_append_asks_as_much_of_a_store_of_any_size(shard: int | None, requests: int) -> None:
    """Ten lines in five cells; the second append, since the first makes small tables ready to grow."""
    for count in (50, 300):
        store = CountingStore(MemoryStore())
        vectors.write_polylines(store, lines_in(10, count), shard_shape=shard, **OPTIONS)
        asked = []
        for number in range(4):
            store.reset()
            vectors.append_polylines(store, lines_in(5, 10, 10 * number))
            asked.append(store.counts.requests)
        assert asked[1:] == [requests] * 3
        assert len(vectors.read_polylines(store).lines) == count + 40
        assert vectors.validate(store).findings == ()


def logs_in(store: Store) -> list[str]:
    return [key for key in store.list_dir("0/vertices/")[0] if "zardine_log" in key]


def test_what_killed_writers_leave_of_logs_goes() -> None:
    whole = MemoryStore()
    vectors.write_polylines(whole, lines_in(10, 20), **OPTIONS)
    left, changes = set(), 0
    while True:
        store = copy_of(whole)
        try:
            vectors.append_polylines(MortalStore(store, changes), lines_in(5, 2))
            break
        except Killed:
            changes += 1
        left.add((len(logs_in(store)), len(vectors.read_polylines(store).lines)))
        assert vectors.validate(store).ok
        vectors.append_polylines(store, lines_in(5, 1))
        assert len(vectors.read_polylines(store).lines) in (21, 23)
        assert logs_in(store) == []
    assert left == {(0, 20), (1, 20), (1, 22), (0, 22)}


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
