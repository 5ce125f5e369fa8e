"""What a user is told of damage: which array, which key, which chunk, which codec, which bytes."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

import zardine
from corrupt.specimens import CHUNK, CRC, GZIP, LITTLE, TRANSPOSE, ZSTD, ZSTD_SUM, blosc, make, sharding
from zardine import errors

PLACE = r"array 'a', chunk \(1, 1\), key 'a/c/0/0'"
BARE = r"array 'a', chunk \(0, 0\), key 'a/c/0/0', bytes 0 to \d+ \(exclusive\)"
SHARD = r"array 'a', key 'a/c/0/0'"


def shard(codecs: list[Any], index: list[Any] | None = None, location: str = "end") -> list[Any]:
    return [sharding(CHUNK, codecs, location, index)]


CASES: dict[str, tuple[list[Any], Any, str, str, dict[str, Any]]] = {
    "chunk sum in a shard": (
        shard([LITTLE, CRC]),
        lambda data: data[:45] + b"!" + data[46:],
        "ChecksumError",
        rf"stored checksum [0-9a-f]{{8}}, computed [0-9a-f]{{8}} \[{PLACE}, bytes 40 to 60 \(exclusive\), "
        r"codec 'crc32c'\]",
        {"chunk": (1, 1), "byte_range": (40, 20), "codec": "crc32c"},
    ),
    "index sum": (
        shard([LITTLE, CRC]),
        lambda data: data[:-20] + b"!" + data[-19:],
        "ChecksumError",
        rf"the shard index is damaged: stored checksum .{{8}}, computed .{{8}} \[{SHARD}, bytes 60 to 128 "
        r"\(exclusive\), codec 'crc32c'\]",
        {"chunk": None, "byte_range": (60, 68), "codec": "crc32c"},
    ),
    "no room for the index": (
        shard([LITTLE, CRC]),
        lambda data: data[:50],
        "ShardIndexError",
        rf"the shard has 50 bytes, too few for its index of 68 \[{SHARD}\]",
        {"chunk": None},
    ),
    "entry outside": (
        shard([LITTLE, CRC], location="start"),
        lambda data: data[:-1],
        "ShardIndexError",
        rf"the shard index places inner chunk \(1, 1\) of the shard at offset 108, length 20: outside the data of a "
        rf"shard of 127 bytes \[{SHARD}\]",
        {"chunk": None},
    ),
    "transposed": (
        [TRANSPOSE, sharding(CHUNK[::-1], [LITTLE, CRC])],
        lambda data: data[:45] + b"!" + data[46:],
        "ChecksumError",
        rf"stored checksum .* \[{PLACE}, bytes 40 to 60",
        {"chunk": (1, 1)},
    ),
    "gzip": (
        [LITTLE, GZIP],
        lambda data: b"\0" + data[1:],
        "ChunkDecodeError",
        rf"not valid compressed data: .*incorrect header check \[{BARE}, codec 'gzip'\]",
        {"chunk": (0, 0), "codec": "gzip"},
    ),
    "gzip sum": (
        [LITTLE, GZIP],
        lambda data: data[:-5] + b"\0" + data[-4:],
        "ChecksumError",
        rf"not valid compressed data: .*incorrect data check \[{BARE}, codec 'gzip'\]",
        {"codec": "gzip"},
    ),
    "zstd": (
        [LITTLE, ZSTD],
        lambda data: data[:-3],
        "ChunkDecodeError",
        rf"not valid Zstandard data: a frame ends too early \[{BARE}, codec 'zstd'\]",
        {"codec": "zstd"},
    ),
    "zstd sum": (
        [LITTLE, ZSTD_SUM],
        lambda data: data[:-1] + b"!",
        "ChecksumError",
        rf"not valid Zstandard data: .*checksum.* \[{BARE}, codec 'zstd'\]",
        {"codec": "zstd"},
    ),
    "blosc": (
        [LITTLE, blosc("lz4")],
        lambda data: data + b"x",
        "ChunkDecodeError",
        rf"the blosc header says \d+ bytes, \d+ are stored \[{BARE}, codec 'blosc'\]",
        {"codec": "blosc"},
    ),
    "too short": (
        [LITTLE],
        lambda data: data[:7],
        "ChunkDecodeError",
        rf"7 bytes, expected 64 \[{BARE}, codec 'bytes'\]",
        {"codec": "bytes"},
    ),
    "in a nested shard": (
        [sharding(CHUNK, [sharding((1, 4), [LITTLE, CRC])])],
        lambda data: data[:130] + b"!" + data[131:],
        "ChecksumError",
        rf"inner chunk 0: stored checksum .* \[{PLACE}, bytes 120 to 180 \(exclusive\), codec 'crc32c'\]",
        {"chunk": (1, 1)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_text_and_fields(name):
    codecs, damage, kind, text, fields = CASES[name]
    specimen = make(codecs, grid=(2, 2))
    array = zardine.open_array(specimen.store(damage(specimen.data)), path="a", mode="r")
    with pytest.raises(getattr(errors, kind)) as caught:
        array[...]
    error = caught.value
    assert type(error) is getattr(errors, kind)
    assert re.match(text, str(error)), str(error)
    assert (error.array, error.key) == ("a", "a/c/0/0")
    assert {field: getattr(error, field) for field in fields} == fields
    assert len(str(error)) < 300
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.chunk) == (type(error), str(error), error.chunk)


def test_the_root_array_is_called_so():
    specimen = make([LITTLE, CRC])
    store = {key.removeprefix("a/"): specimen.store().get(key) for key in ("a/zarr.json", "a/c/0/0")}
    store["c/0/0"] = bytes(store["c/0/0"])[:-1] + b"!"
    with pytest.raises(errors.ChecksumError, match=r"\[root array, chunk \(0, 0\), key 'c/0/0', bytes 0 to 68 "):
        zardine.open_array(zardine.storage.MemoryStore(store), mode="r")[...]


def test_a_document_is_named_by_its_place(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array", "shape": [-1]}')
    with pytest.raises(errors.MetadataError) as caught:
        zardine.open_array(tmp_path, path="x", mode="r")
    text = str(caught.value)
    assert str(tmp_path) in text
    for line in (
        "shape[0]: expected an integer from 0 to 9223372036854775807, found -1",
        "codecs: the member is missing; it is required",
    ):
        assert f"\n  - {line}" in text


@pytest.mark.parametrize("kind", [zardine.storage.MemoryStore, zardine.storage.LocalStore, zardine.storage.ZipStore])
def test_names_with_line_breaks_are_in_one_line(tmp_path, kind):
    options = {} if kind is zardine.storage.MemoryStore else {"root": tmp_path / "a\nb.zip"}
    if kind is zardine.storage.ZipStore:
        options = {"path": tmp_path / "a\nb.zip", "mode": "w"}
    store = kind(**options)
    group = zardine.create_group(store)
    array = group.create_array("v\nw", shape=1, dtype="i4")
    for attempt in (
        lambda: group["x\ny"],
        lambda: zardine.open(store, path="x\ny", mode="r"),
        lambda: group.create_array("v\nw", shape=1, dtype="i4"),
        lambda: group.create_group("v\nw/x"),
        lambda: group.require_group("v\nw"),
        lambda: zardine.open_group(store, path="v\nw"),
        lambda: array.attrs.update({"x\ny": 1j}),
    ):
        with pytest.raises((zardine.errors.ZardineError, TypeError)) as caught:
            attempt()
        assert "\n" not in str(caught.value)
        assert r"\n" in str(caught.value)
    assert repr(array).count("\n") == 0
