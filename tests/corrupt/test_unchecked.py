"""Chunks and indexes without checksums: damage may show as other values, never as a crash or a foreign exception."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zardine
from corrupt.specimens import (
    BIG,
    CRC,
    GRID,
    GZIP,
    LITTLE,
    TRANSPOSE,
    ZSTD,
    ZSTD_SUM,
    Outcomes,
    blosc,
    byte_changes,
    cut_ends,
    cut_fronts,
    longer_ends,
    longer_fronts,
    make,
    read_damaged,
    scrambled,
    sharding,
)
from effort import SOAK, some
from zardine.errors import CorruptionError

CHUNK = (2, 4)
CASES: dict[str, list[Any]] = {
    "chunk-raw": [LITTLE],
    "chunk-big": [BIG],
    "chunk-gzip": [LITTLE, GZIP],
    "chunk-zstd": [LITTLE, ZSTD],
    **{f"chunk-blosc-{cname}": [LITTLE, blosc(cname)] for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")},
    "raw": [sharding(CHUNK, [LITTLE], "end", [LITTLE])],
    "raw-start": [sharding(CHUNK, [LITTLE], "start", [BIG])],
    "gzip": [sharding(CHUNK, [LITTLE, GZIP], "end", [LITTLE])],
    "zstd-sum": [sharding(CHUNK, [LITTLE, ZSTD_SUM], "end", [LITTLE])],
    "blosc-bits": [sharding(CHUNK, [LITTLE, blosc("lz4", "bitshuffle")], "end", [LITTLE])],
    "index-alone-checked": [sharding(CHUNK, [TRANSPOSE, LITTLE])],
    "chunks-alone-checked": [sharding(CHUNK, [LITTLE, CRC], "end", [LITTLE])],
    "compressed-outside": [sharding(CHUNK, [LITTLE], "end", [LITTLE]), ZSTD],
}
NESTED = [sharding(CHUNK, [sharding((1, 2), [LITTLE], "start", [LITTLE])], "end", [LITTLE])]


@pytest.mark.parametrize("name", [*CASES, "nested"])
def test_damage_is_survived(name):
    specimen = make(NESTED, grid=(1, 2)) if name == "nested" else make(CASES[name], grid=(1, 2))
    data = specimen.data
    for change in (byte_changes, cut_ends, cut_fronts, longer_ends, longer_fronts):
        for damaged in some(change(data), 6):
            read_damaged(specimen, damaged)
    for damaged in scrambled(data, np.random.default_rng(6), 2000 if SOAK else 20):
        read_damaged(specimen, damaged)


def test_checked_chunks_are_never_wrong_but_an_unchecked_index_can_mix_them_up():
    specimen = make(CASES["chunks-alone-checked"])
    outcomes = Outcomes()
    for damaged in some(byte_changes(specimen.data), 2):
        read_damaged(specimen, damaged, outcomes)
    assert "wrong" not in outcomes
    assert outcomes["moved"] > 0


def variable(dtype: str, values: list[Any], codecs: list[Any]) -> tuple[dict[str, bytes], Any]:
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [len(values)],
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(values)]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": "" if dtype == "string" else [],
        "codecs": codecs,
    }
    store = {"zarr.json": json.dumps(document).encode()}
    array = zardine.open_array(zardine.storage.MemoryStore(store), mode="r+")
    array[...] = np.array(values, dtype=array.dtype)
    return store, array[...].tolist()


WORDS = ["", "a", "Zürich", "日本語", "tin 🐟", "x" * 20]


@pytest.mark.parametrize("checked", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("shards", [False, True], ids=["chunk", "shard"])
@pytest.mark.parametrize("dtype", ["string", "bytes"])
def test_elements_of_varying_length(dtype, shards, checked):
    codecs: list[Any] = [{"name": "vlen-utf8" if dtype == "string" else "vlen-bytes"}, *([CRC] if checked else [])]
    if shards:
        codecs = [sharding((3,), codecs, "end", [LITTLE, CRC] if checked else [LITTLE])]
    values = WORDS if dtype == "string" else [word.encode() for word in WORDS]
    store, right = variable(dtype, values, codecs)
    data = bytes(store["c/0"])
    refused = 0
    for change in (byte_changes, cut_ends, longer_ends):
        for damaged in some(change(data), 5):
            store["c/0"] = damaged
            try:
                found = zardine.open_array(zardine.storage.MemoryStore(store), mode="r")[...].tolist()
            except CorruptionError as error:
                refused += error.key == "c/0"
            else:
                assert len(found) == len(right)
                assert found == right or not checked or damaged.endswith(data)
    assert refused > len(data) // 5


def test_random_bytes_for_a_shard():
    rng = np.random.default_rng(7)
    for codecs in (*CASES.values(), NESTED):
        specimen = make(codecs, grid=(1, 2))
        for number in range(300 if SOAK else 12):
            read_damaged(specimen, rng.bytes(int(rng.integers(0, 300))) if number else b"")


def test_random_indexes_before_whole_data():
    """Entries of every kind: inside, reaching out, overflowing, half empty, at each other's place."""
    rng = np.random.default_rng(8)
    interesting = np.array(
        [0, 1, 8, 16, 17, 48, 63, 64, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 2, 2**64 - 1], "<u8"
    )
    for location in ("start", "end"):
        specimen = make([sharding(CHUNK, [LITTLE], location, [LITTLE])])
        size = 16 * int(np.prod(GRID))
        body = specimen.data[size:] if location == "start" else specimen.data[:-size]
        for _ in range(2000 if SOAK else 200):
            index = rng.choice(interesting, (int(np.prod(GRID)), 2)).tobytes()
            read_damaged(specimen, index + body if location == "start" else body + index)
