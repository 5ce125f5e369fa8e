"""Shards that are files of another format with an index behind: what no index names is not unused."""

import struct

import google_crc32c
import numpy as np
import pytest

import zardine
from zardine.codecs import ShardingCodec
from zardine.storage import LocalStore, MemoryStore

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(range(92))
HEADS = [HDF5, b"CDF\x01" + bytes(40), b"II*\0" + bytes(60), b"PK\x03\x04" + bytes(30)]


def array_around(store, head, *, strategy="rewrite"):
    """An array of one shard: ``head``, chunks 1 and 0 with something between them and behind, the index."""
    a = zardine.create_array(
        store,
        shape=(8,),
        chunks=(8,),
        dtype="i2",
        serializer=ShardingCodec(chunk_shape=(4,)),
        compressors=None,
        config={"write_strategy": strategy},
    )
    one, two = (np.arange(start, start + 4, dtype="<i2").tobytes() for start in (0, 4))
    between, behind = b"B-tree" * 20, b"heap" * 90
    places = struct.pack("<4Q", len(head) + 8 + len(between), 8, len(head), 8)
    body = head + two + between + one + behind
    store.set("c/0", body + places + struct.pack("<I", google_crc32c.value(places)))
    return a, body


@pytest.mark.parametrize("head", HEADS, ids=["hdf5", "netcdf", "tiff", "zip"])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_verify_and_compact(tmp_path, kind, head):
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    a, _ = array_around(store, head)
    before = bytes(store.get("c/0"))
    assert a[...].tolist() == list(range(8))
    report = zardine.verify(store)
    assert (report.faults, report.notes) == ((), ())
    for order in (None, "c", "f"):
        assert zardine.compact(store, order=order).bytes_won == 0
        assert bytes(store.get("c/0")) == before


@pytest.mark.parametrize("strategy", ["append", "in_place"])
def test_edits_leave_the_file_as_it_is(tmp_path, strategy):
    store = LocalStore(tmp_path)
    a, body = array_around(store, HDF5, strategy=strategy)
    rest = body.replace(np.arange(4, 8, dtype="<i2").tobytes(), b"").replace(np.arange(4, dtype="<i2").tobytes(), b"")
    for value in range(20):
        a[1] = value
    assert zardine.open_array(store)[...].tolist() == [0, 19, *range(2, 8)]
    after = bytes(store.get("c/0"))
    assert after.startswith(HDF5)
    assert rest.removeprefix(HDF5)[:120] in after
    assert zardine.verify(store).notes == ()


@pytest.mark.parametrize("head", [b"\x89HDF\r\n\x1a", b"nothing known" * 4, bytes(64)])
def test_other_bytes_are_unused(head):
    store = MemoryStore()
    array_around(store, head)
    assert [note.kind for note in zardine.verify(store).notes] == ["unused"]
    assert zardine.compact(store).bytes_won > 300


def test_a_chunk_that_looks_like_a_file_is_a_chunk():
    store = MemoryStore()
    a = zardine.create_array(
        store,
        shape=(16,),
        chunks=(16,),
        dtype="u1",
        serializer=ShardingCodec(chunk_shape=(8,)),
        compressors=None,
        checksum=False,
    )
    a[...] = np.frombuffer(HDF5[:16], np.uint8)
    shard = bytes(store.get("c/0"))
    places = struct.pack("<4Q", 0, 8, 40, 8)
    body = shard[:8] + bytes(32) + shard[8:16]
    store.set("c/0", body + places + struct.pack("<I", google_crc32c.value(places)))
    assert bytes(a[...]) == HDF5[:16]
    assert [note.kind for note in zardine.verify(store).notes] == ["unused"]
    assert zardine.compact(store).bytes_won == 32
