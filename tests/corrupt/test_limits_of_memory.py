"""What the settings ``limits.*`` refuse, what stays readable all the same, and documents that ask too much."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import zstandard

import zardine
from corrupt import hostile_codecs
from corrupt.hostile import array
from corrupt.hostile_bytes import Runs, Sparse, write
from corrupt.specimens import CRC, GZIP, LITTLE, ZSTD, sharding
from zardine.codecs.crc32c import crc32c
from zardine.errors import ChunkDecodeError, ChunkTooLargeError, MetadataError, ShardIndexError, ZardineError
from zardine.storage import LocalStore, MemoryStore, ObjectStore, WrapperStore, ZipStore
from zardine.stores.base import Store

VALUES = np.arange(10, dtype="u1")
SKIPPABLE = b"\x50\x2a\x4d\x18"


def stored(codecs, chunk, *, shape=10, **more):
    return MemoryStore({"zarr.json": json.dumps(array(shape, shape, codecs, **more)).encode(), "c/0": chunk})


def v2(chunk, *, shape=10, **more):
    document = {"zarr_format": 2, "shape": [shape], "chunks": [shape], "dtype": "|u1", "fill_value": None, "order": "C"}
    document |= {"compressor": None, "filters": None}
    return MemoryStore({".zarray": json.dumps(document | more).encode(), "0": chunk})


def index_of(entries, *, checksum=True):
    table = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    return table + struct.pack("<I", crc32c(table)) * checksum


def padded(codec, nbytes):
    """The values encoded, with so many bytes that mean nothing."""
    if codec is ZSTD:
        return SKIPPABLE + struct.pack("<I", nbytes) + bytes(nbytes) + zstandard.compress(VALUES.tobytes())
    extra = zlib.compressobj(0, zlib.DEFLATED, 31)
    member = extra.compress(b"") + extra.flush()
    return member * (nbytes // len(member)) + zlib.compress(VALUES.tobytes(), wbits=31)


# what means nothing is legal, and bounded


@pytest.mark.parametrize("codec", [ZSTD, GZIP], ids=["zstd", "gzip"])
def test_bytes_that_mean_nothing_in_compressed_data(codec):
    store = stored([LITTLE, codec], padded(codec, 100_000))
    np.testing.assert_array_equal(zardine.open_array(store)[...], VALUES)
    with zardine.config.set({"limits.unused_bytes": 1000}), pytest.raises(ChunkTooLargeError, match="unused_bytes"):
        zardine.open_array(store)[...]


def test_unused_space_in_a_shard_behind_a_compressor():
    gap = 10 * 2**20
    shard = VALUES.tobytes() + bytes(gap) + index_of([(0, 5), (5, 5)])
    codecs = [sharding((5,), [LITTLE], "end", [LITTLE, CRC]), GZIP]
    store = stored(codecs, zlib.compress(shard, wbits=31))
    np.testing.assert_array_equal(zardine.open_array(store)[...], VALUES)
    assert zardine.verify(store)
    with zardine.config.set({"limits.unused_bytes": 2**20}):
        with pytest.raises(ChunkTooLargeError, match=r"limits\.unused_bytes.*chunk \(0,\), key 'c/0'"):
            zardine.open_array(store)[...]
        assert [fault.kind for fault in zardine.verify(store).faults] == ["memory"]
        zardine.repair(store, drop_unreadable=True)  # it may be sound: left alone
    np.testing.assert_array_equal(zardine.open_array(store)[...], VALUES)


class Ranges(WrapperStore):
    """Counts the bytes that are read."""

    nbytes = 0

    def read(self, key, ranges=((0, None),)):
        reading = super().read(key, ranges)
        if reading is not None:
            self.nbytes += sum(map(len, reading.parts))
        return reading


def sparse_shard(folder, gap):
    """A sound shard with ``gap`` unused bytes between its two inner chunks."""
    document = array(10, 10, [sharding((5,), [LITTLE, CRC], "end", [LITTLE, CRC])])
    write(folder / "zarr.json", json.dumps(document).encode())
    chunks = [half.tobytes() + struct.pack("<I", crc32c(half.tobytes())) for half in (VALUES[:5], VALUES[5:])]
    index = index_of([(0, 9), (gap, 9)])
    write(folder / "c" / "0", Sparse(gap + 9 + len(index), chunks[0], chunks[1] + index))


@pytest.mark.parametrize("action", ["read", "write", "compact", "verify", "repair", "reshard"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_sound_shard_with_much_unused_space_is_used_by_ranges(tmp_path, action, wrapped):
    sparse_shard(tmp_path, 2**30)
    store: Store = LocalStore(tmp_path)
    if wrapped:
        store = Ranges(store)
    with zardine.config.set({"limits.chunk_bytes": 2**20, "limits.unused_bytes": 2**16}):
        opened = zardine.open_array(store, mode="r+")
        expected = VALUES.copy()
        if action == "write":
            opened[2:4] = expected[2:4] = 77
        elif action == "reshard":
            zardine.reshard(opened, shards=None, grace=0)
        elif action != "read":
            assert getattr(zardine, action)(store)
        np.testing.assert_array_equal(zardine.open_array(store)[...], expected)
    if action in ("compact", "write"):
        assert (tmp_path / "c" / "0").stat().st_size < 100
    if wrapped:
        assert store.nbytes < 2**17


def test_carrying_over_an_impossible_chunk_is_refused(tmp_path):
    document = array(10, 10, [sharding((5,), [LITTLE], "end", [LITTLE, CRC])])
    write(tmp_path / "zarr.json", json.dumps(document).encode())
    index = index_of([(0, 5), (0, 2**30)])
    write(tmp_path / "c" / "0", Sparse(2**30 + len(index), VALUES.tobytes(), index))
    opened = zardine.open_array(tmp_path, mode="r+")
    np.testing.assert_array_equal(opened[:5], VALUES[:5])
    with pytest.raises(ShardIndexError, match=r"nothing was written: inner chunk \(1,\).*expected 5"):
        opened[:2] = 9
    opened[5:] = 9  # what is impossible is replaced
    assert opened[...].tolist() == [0, 1, 2, 3, 4, 9, 9, 9, 9, 9]
    assert (tmp_path / "c" / "0").stat().st_size < 100


@pytest.mark.parametrize("shape", [(8,), (6,)])
def test_what_is_impossible_heals_when_nothing_of_it_stays(shape):
    store = stored([LITTLE, CRC], bytes(100_000), shape=8)
    document = json.loads(bytes(store.get("zarr.json")))
    store.set("zarr.json", json.dumps(document | {"shape": list(shape)}).encode())
    opened = zardine.open_array(store, mode="r+")
    with pytest.raises(ChunkDecodeError, match="100000 bytes, expected 12"):
        opened[:3] = 1
    opened[...] = 5
    assert set(opened[...].tolist()) == {5}


# the settings


def test_the_settings_can_be_raised_and_the_error_says_how_far():
    text = np.array(["a" * 1000, "b" * 3000], dtype="T")
    store = MemoryStore()
    zardine.create_array(store, data=text, chunks=2, compressors=ZSTD)
    with zardine.config.set({"limits.text_bytes": 1000}):
        with pytest.raises(
            ChunkTooLargeError, match=r"takes 4012 bytes, more than the 1000 .*'limits.text_bytes': 4012"
        ):
            zardine.open_array(store)[...]
        with zardine.config.set({"limits.text_bytes": 4012}):
            assert zardine.open_array(store)[...].tolist() == text.tolist()
    for name in ("limits.chunk_bytes", "limits.text_bytes", "limits.unused_bytes", "limits.document_bytes"):
        with pytest.raises((TypeError, ValueError)):
            zardine.config.set({name: "much"})


def test_a_chunk_that_the_settings_forbid_is_not_written_either():
    store = MemoryStore()
    created = zardine.create_array(store, shape=10_000, chunks=10_000, dtype="f8")
    with zardine.config.set({"limits.chunk_bytes": 1000}):
        for selection in (slice(None), slice(3, 4)):
            with pytest.raises(ChunkTooLargeError, match=r"takes 80000 bytes.*limits\.chunk_bytes.*key 'c/0'"):
                created[selection] = 1
    created[...] = 1
    with zardine.config.set({"limits.chunk_bytes": 1000}):
        for selection in (slice(None), slice(3, 4)):
            with pytest.raises(ChunkTooLargeError, match=r"takes 80000 bytes.*limits\.chunk_bytes.*key 'c/0'"):
                created[selection]


@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata", "meta", "attrs"])
def test_documents_are_bounded(name, tmp_path):
    v1 = {"zarr_format": 1, "shape": [4], "chunks": [4], "dtype": "|u1", "compression": None, "compression_opts": None}
    v2 = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None, "filters": None}
    beside = {
        ".zattrs": {".zarray": v2 | {"fill_value": 0, "order": "C"}},
        ".zmetadata": {".zgroup": {"zarr_format": 2}},
        "attrs": {"meta": v1 | {"fill_value": 0, "order": "C"}},
    }.get(name, {})
    long = b'{"zarr_format": 1, "a": "' + b"x" * 3000 + b'"}'
    documents = {other: json.dumps(document).encode() for other, document in beside.items()} | {name: long}
    (tmp_path / "dir").mkdir()
    for other, document in documents.items():
        (tmp_path / "dir" / other).write_bytes(document)
    with ZipStore(tmp_path / "a.zip") as archive:
        for other, document in documents.items():
            archive.set(other, document)
    obstore = pytest.importorskip("obstore")
    remote = ObjectStore(obstore.store.MemoryStore())
    for other, document in documents.items():
        remote.set(other, document)
    stores = [LocalStore(tmp_path / "dir"), ZipStore(tmp_path / "a.zip"), MemoryStore(documents), remote]
    with zardine.config.set({"limits.document_bytes": 2000}):
        for store in (*stores, *map(WrapperStore, stores), *map(zardine.storage.CountingStore, stores)):
            with pytest.raises(ChunkTooLargeError, match=rf"takes 30\d\d bytes.*limits\.document_bytes.*key '{name}'"):
                zardine.open(store, mode="r")
            faults = zardine.verify(store).faults
            assert faults
            assert name == "meta" or any("limits.document_bytes" in each.message for each in faults)


# errors of documents that ask for what cannot be


@pytest.mark.parametrize("count", [64, 65, 70, 1000])
def test_dimensions(count):
    document = array(1, 1, [LITTLE]) | {"shape": [1] * count, "dimension_names": None}
    del document["dimension_names"]
    document["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [1] * count}}
    v2_document = {"zarr_format": 2, "shape": [1] * count, "chunks": [1] * count, "dtype": "|u1", "compressor": None}
    v2_document |= {"filters": None, "fill_value": 3, "order": "C"}
    sharded = document | {"codecs": [sharding((1,) * count, [LITTLE])]}
    reshaped = array(1, 1, [{"name": "reshape", "configuration": {"shape": [1] * count}}, LITTLE])
    for name, each in (
        ("zarr.json", document),
        (".zarray", v2_document),
        ("zarr.json", sharded),
        ("zarr.json", reshaped),
    ):
        store = MemoryStore({name: json.dumps(each).encode()})
        if count == 64 and each is not sharded:
            opened = zardine.open_array(store)
            assert opened[...].size == 1
            opened[...] = 4
            assert zardine.open_array(store)[...].reshape(-1).tolist() == [4]
            continue
        with pytest.raises(MetadataError, match=r"more than NumPy can hold|NumPy can hold 64"):
            zardine.open_array(store)
        assert not zardine.verify(store)


@pytest.mark.parametrize("name", ["..", ".", "a/..", "", "a//b", "\0", "x\0", "__zardine", "__zardine/x", "./a"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_of_members_in_consolidated_documents(name, zarr_format):
    child = array(4, 4, [LITTLE])
    if zarr_format == 3:
        group = {"zarr_format": 3, "node_type": "group"}
        group["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {name: child}}
        documents = {"zarr.json": group}
    else:
        child = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None, "filters": None}
        inside = {".zgroup": {"zarr_format": 2}, f"{name}/.zarray": child | {"fill_value": 0, "order": "C"}}
        documents = {".zgroup": {"zarr_format": 2}, ".zmetadata": {"zarr_consolidated_format": 1, "metadata": inside}}
    store = MemoryStore({key: json.dumps(document).encode() for key, document in documents.items()})

    def use():
        group = zardine.open_group(store, mode="r")
        list(group.members(None))
        for each in group:
            group[each]
        str(group.tree())
        zardine.verify(store)
        zardine.convert(store, MemoryStore())

    with suppress(ZardineError):
        use()


def test_options_of_codecs_that_cannot_be():
    large = {"encode_dtype": "|V2147483647", "decode_dtype": "|u1"}
    for codecs in (
        [{"name": "numcodecs.astype", "configuration": large}, LITTLE],
        [{"name": "numcodecs.astype", "configuration": {"encode_dtype": "|V8", "decode_dtype": "|u1"}}, LITTLE],
        [LITTLE, {"name": "numcodecs.lzma", "configuration": {"format": -1}}],
        [LITTLE, {"name": "numcodecs.lzma", "configuration": {"format": 2**31}}],
        [LITTLE, {"name": "numcodecs.lzma", "configuration": {"format": 1.5}}],
        [
            LITTLE,
            {"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": 33, "dict_size": 2**31}]}},
        ],
        [LITTLE, {"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": "x"}]}}],
    ):
        with pytest.raises((MetadataError, ChunkDecodeError)):
            zardine.open_array(stored(codecs, b"abc"))[...]
    fields = {"id": "astype", "encode_dtype": "|V8", "decode_dtype": "|V8"}
    for filters in ([fields], [fields, fields], [{"id": "delta", "dtype": "<i4", "astype": {"name": "x"}}]):
        for dtype in ("|V8", "<i4", [["a", "<i4"]]):
            with pytest.raises(ZardineError):
                zardine.open_array(v2(b"abc", dtype=dtype, filters=filters))[...]


TOO_MUCH = """
import resource, sys
import numpy as np
import zardine

store = zardine.storage.MemoryStore()
array = zardine.create_array(store, shape=3 * 2**26, chunks=2**20, shards=3 * 2**26, dtype="f8", compressors=None)
values = np.broadcast_to(np.float64(1.5), array.shape)
zardine.config.set({"limits.chunk_bytes": 2**40})
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
try:
    array[...] = values
except zardine.errors.ChunkTooLargeError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the memory that a process has")
@pytest.mark.parametrize("kernel", ["0", "1"])
def test_where_there_is_no_memory_the_error_says_how_many_bytes_and_nothing_else_is_printed(kernel):
    run = subprocess.run(
        [sys.executable, "-c", TOO_MUCH],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "ZARDINE_KERNEL": kernel},
    )
    assert run.returncode == 0, run.stderr
    assert "1610612736 bytes does not fit into memory" in run.stdout
    assert "key 'c/0'" in run.stdout
    assert run.stderr == ""


# programs in data


CHAINS = {
    "compressor": {"compressor": {"id": "pickle"}},
    "text and compressor": {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pickle"}},
    "filter": {"filters": [{"id": "pickle"}]},
    "object codec": {"dtype": "|O", "filters": [{"id": "pickle"}]},
    "wrapped": {"compressor": {"id": "hostile_wrapper", "inner": {"id": "pickle"}}},
    "wrapped by name": {"compressor": {"id": "hostile_wrapper", "inner": "pickle"}},
    "subclass": {"compressor": {"id": "hostile_subclass"}},
    "own": {"compressor": {"id": "hostile_own"}},
    "helper": {"filters": [{"id": "hostile_helper"}]},
}


@pytest.mark.filterwarnings("ignore:not all of the documents")
@pytest.mark.parametrize("chain", CHAINS)
def test_programs_in_data_are_run_only_when_that_is_allowed(chain, tmp_path, monkeypatch):
    hostile_codecs.register()
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    mark = tmp_path / "ran"
    store = v2(pickle.dumps(Runs(str(mark))), **CHAINS[chain])
    opened = zardine.open_array(store, mode="r+")
    assert repr(opened)
    assert str(opened.info)
    shown = [codec for codec in (opened.metadata.compressor, *(opened.metadata.filters or ())) if codec is not None]
    assert not any(type(codec).__module__.startswith(("numcodecs.pickles", "corrupt.")) for codec in shown), shown
    for action in (
        lambda: opened[...],
        lambda: opened[:1],
        lambda: opened.__setitem__(slice(0, 1), "x" if opened.dtype.kind in "OT" else 1),
        lambda: zardine.open_array(store)[...],
    ):
        with pytest.raises(ZardineError, match="can run any program"):
            action()
    assert not zardine.verify(store)
    with pytest.raises(ZardineError):
        zardine.convert(store, MemoryStore())
    assert not mark.exists()
    with zardine.config.set({"array.allow_unsafe_pickle_decode": True}), pytest.raises(ChunkDecodeError):
        opened[...]  # the same handle
    assert mark.exists()


@pytest.mark.parametrize("chain", CHAINS)
def test_programs_in_data_are_not_run_since_that_was_allowed_once(chain, tmp_path, monkeypatch):
    hostile_codecs.register()
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    mark = tmp_path / "ran"
    stores = [v2(pickle.dumps(Runs(str(mark))), **CHAINS[chain]) for _ in range(2)]
    with zardine.config.set({"array.allow_unsafe_pickle_decode": True}):
        opened = zardine.open_array(stores[0])
        with pytest.raises(ZardineError):
            opened[...]
    assert mark.exists()
    mark.rmdir()
    for known in (opened, zardine.open_array(stores[1])):
        with pytest.raises(ZardineError, match="can run any program"):
            known[...]
    assert not mark.exists()


def test_codecs_of_numcodecs_that_run_programs_are_told_by_what_they_are():
    from zardine.metadata.numcodecs_objects import unsafe_codec

    hostile_codecs.register()
    unsafe = {name for name in numcodecs.registry.codec_registry if unsafe_codec({"id": name}) is not None}
    assert unsafe == {"pickle", "hostile_subclass", "hostile_own", "hostile_helper"}
    assert unsafe_codec({"id": "zlib", "x": [{"y": {"name": "numcodecs.pickle"}}]}) == "numcodecs.pickle"
    assert unsafe_codec({"id": "some", "allow_pickle": True}) == "some"
    assert unsafe_codec({"id": "some", "allow_pickle": False}) is None
    assert unsafe_codec({"id": "categorize", "labels": ["pickle", "a"], "dtype": "|O"}) is None


def test_a_leak_of_addresses_is_no_data():
    """Bytes of object arrays are addresses: a codec of objects where bytes are expected is an error."""
    for more in (
        {"compressor": {"id": "vlen-utf8"}},
        {"filters": [{"id": "base64"}], "compressor": {"id": "json2"}},
        {"compressor": {"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": "|u1"}},
    ):
        chunk = numcodecs.VLenUTF8().encode(np.array(["a", "b"], object))
        for data in (bytes(chunk), bytes(10), b'["a", "b", "|O", [2]]'):
            with pytest.raises(ZardineError):
                zardine.open_array(v2(data, **more))[...]


@pytest.mark.parametrize("shape", [(2**63 - 1,), (2**62, 2**62), (2**45,)])
@pytest.mark.parametrize("chunk", [2**10, 2**45])
@pytest.mark.parametrize("store", ["memory", "files"])
def test_a_result_of_any_size(shape, chunk, store, tmp_path):
    """A document claims it in a few bytes; NumPy says of such an array that memory, or the value, is at fault."""
    place = {} if store == "memory" else tmp_path
    array = zardine.create_array(place, name="a", shape=shape, chunks=(chunk, 8)[: len(shape)], dtype="float64")
    for read in (lambda: array[...], lambda: array[1:], lambda: array.oindex[...], lambda: np.asarray(array)):
        with pytest.raises(ChunkTooLargeError, match=r"the result, \d+ bytes of shape .* \[array 'a'"):
            read()


def test_the_path_of_a_specimen_is_used(tmp_path: Path):
    write(tmp_path / "x", Sparse(10**9, b"a", b"z"))
    assert (tmp_path / "x").stat().st_blocks < 100
