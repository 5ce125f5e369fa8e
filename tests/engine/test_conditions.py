"""Another writer comes between reading and writing: each write that depends on what was read says so to the store."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zardine
from engine.test_writers_that_meet import Meeting
from zardine.errors import MetadataError, NodeExistsError, UnknownExtensionError
from zardine.hierarchy.find import UNFINISHED
from zardine.storage import MemoryStore


@pytest.mark.parametrize(("zarr_format", "shards"), [(2, None), (3, None), (3, (4,))], ids=["v2", "v3", "shards"])
@pytest.mark.parametrize("kind", ["i4", "str"], ids=["kernel", "python"])
@pytest.mark.parametrize("before", [True, False], ids=["stored", "new"])
@pytest.mark.parametrize("when", ["read", "set"])
def test_parts_of_a_chunk_are_kept(when: str, before: bool, kind: Any, zarr_format: Any, shards: Any) -> None:
    inner = MemoryStore()
    store = Meeting(inner)
    name = "0" if zarr_format == 2 else "c/0"
    a, b, c = (1, 7, 9) if kind == "i4" else ("one", "seven", "nine")
    array = zardine.create_array(store, shape=(4,), chunks=(4,), shards=shards, dtype=kind, zarr_format=zarr_format)
    if before:
        array[...] = a
    other = zardine.open_array(inner)
    store.plan(when, name, lambda: other.__setitem__(slice(2, 4), c))
    array[:2] = b
    if before or when == "set":
        assert store.between is None
        assert zardine.open_array(inner)[...].tolist() == [b, b, c, c]


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("order", [None, "f"])
@pytest.mark.parametrize("when", ["read", "set"])
def test_compact_packs_no_data_with_the_index_of_other_ones(when: str, order: str | None, location: str) -> None:
    """A write between the index and the data, or before the shard is replaced, is in what is packed."""
    inner = MemoryStore()
    where: Any = {"shape": (4, 4), "index_location": location}
    array = zardine.create_array(inner, shape=(4, 4), chunks=(1, 2), shards=where, dtype="i4", compressors=None)
    values = np.arange(16).reshape(4, 4)
    array[...] = values
    data = bytes(inner.get("c/0/0") or b"")
    gap = b"\xaa" * 24  # which no entry names, so that there is something to do
    inner.set("c/0/0", data[:-132] + gap + data[-132:] if location == "end" else data + gap)
    assert {note.kind for note in zardine.verify(inner).notes} == {"unused"}
    store = Meeting(inner)

    def write() -> None:
        zardine.open_array(inner)[:2, :2] = 0  # one chunk goes, another changes: everything behind them moves
        zardine.open_array(inner)[3, 2:] = 77

    store.plan(when, "c/0/0", write)
    done = zardine.compact(store, order=order)
    assert store.between is None
    assert (done.bytes_before, done.bytes_after) == (inner.size("c/0/0"),) * 2  # of what others wrote, which is packed
    values[:2, :2] = 0
    values[3, 2:] = 77
    assert zardine.open_array(inner)[...].tolist() == values.tolist()
    report = zardine.verify(inner)
    assert report.faults == report.notes == ()


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("reads", [1, 2, 3])
@pytest.mark.parametrize("tool", ["write", "compact"])
def test_a_shard_that_is_read_by_pieces_is_of_one_version(tool: str, reads: int, location: str) -> None:
    """One with much unused space is: what another writer puts there between index and chunks is no damage."""
    inner = MemoryStore()
    where: Any = {"shape": (8,), "index_location": location}
    array = zardine.create_array(inner, shape=(8,), chunks=(2,), shards=where, dtype="i4", compressors=None)
    array[...] = np.arange(1, 9)
    data = bytes(inner.get("c/0") or b"")
    gap = bytes(2000)
    inner.set("c/0", data[:-68] + gap + data[-68:] if location == "end" else data + gap)
    store = Meeting(inner)
    opened = zardine.open_array(store)

    def write() -> None:
        zardine.open_array(inner)[...] = [0, 0, 0, 0, 5, 6, 0, 0]

    def after(reads: int) -> None:
        store.plan("read", "c/0", write if reads == 1 else lambda: after(reads - 1))

    with zardine.config.set({"limits.unused_bytes": 0}):
        after(reads)
        if tool == "write":
            opened[2] = 77
        else:
            zardine.compact(store)
    assert store.between is None
    assert zardine.open_array(inner)[...].tolist() == [0, 0, 77 if tool == "write" else 0, 0, 5, 6, 0, 0]


def test_of_two_conversions_that_begin_at_once_one_is_refused() -> None:
    source = zardine.create_array(None, shape=(4,), dtype="i4", chunks=(2,))
    source[...] = 5
    inner = MemoryStore()
    store = Meeting(inner)
    mark = b'{"fingerprint": "of another one", "source": "elsewhere"}'
    store.plan("set", UNFINISHED, lambda: inner.set(UNFINISHED, mark))
    with pytest.raises(NodeExistsError, match=r"another conversion to .* has just begun"):
        zardine.convert(source, store)
    assert list(inner.list()) == [UNFINISHED]
    with pytest.raises(NodeExistsError, match="unfinished conversion of elsewhere"):
        zardine.convert(source, store)


def test_a_fault_beside_an_unknown_extension_is_a_fault_of_the_document() -> None:
    """Whoever installs the extension would still not read the array."""
    document = dict(zardine.create_array(None, shape=(4,), dtype="i4").metadata.to_dict())
    codecs = [*document["codecs"], {"name": "of-somebody"}]

    def error(**changes: Any) -> MetadataError:
        with pytest.raises(MetadataError) as raised:
            zardine.open_array(MemoryStore({"zarr.json": json.dumps(document | changes).encode()}))
        return raised.value

    assert type(error(new={"a": 1})) is UnknownExtensionError
    both = error(new={"a": 1}, shape=[-4])
    assert type(both) is MetadataError
    assert len(both.problems) == 2
    assert type(error(codecs=codecs)) is UnknownExtensionError
