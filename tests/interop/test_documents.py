"""One document, three programs: each writes, all read; each edits what another wrote.

``LIMITS`` names what a peer refuses, with words of its refusal. A limit that no longer holds fails its test.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import zarrista

import zardine
from effort import SOAK
from interop.programs import (
    BIG,
    BYTES,
    CRC,
    GZIP,
    LITTLE,
    PEERS,
    ZARR_PYTHON,
    ZSTD,
    ZSTD_SUM,
    Zardine,
    array_document,
    blosc,
    create,
    same,
    sample,
    sharding,
    transpose,
)
from zardine.codecs import BloscCodec, GzipCodec, ZstdCodec

Case = tuple[dict[str, Any], Any]
"""A document and the NumPy dtype of its values."""

SHAPE = (7, 10)
SHARD = (4, 6)
CHUNK = (2, 3)


def with_codecs(codecs: list[Any], chunk: tuple[int, ...] = SHARD, **more: Any) -> Case:
    return array_document(SHAPE, "int32", codecs, chunk, -7, **more), "int32"


def layouts() -> dict[str, Case]:
    """Ways to store one kind of array: codecs, shards, keys."""
    inner: dict[str, list[Any]] = {
        "raw": [LITTLE],
        "crc": [LITTLE, CRC],
        "big": [BIG, CRC],
        "gzip": [LITTLE, GZIP],
        "zstd": [LITTLE, ZSTD],
        "zstd-sum": [LITTLE, ZSTD_SUM, CRC],
        "transpose": [transpose(1, 0), LITTLE, ZSTD],
        "crc-twice": [LITTLE, CRC, GZIP, CRC],
    }
    for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd"):
        for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
            inner[f"blosc-{cname}-{shuffle}"] = [LITTLE, blosc(cname, shuffle)]
    inner["blosc-stored"] = [LITTLE, blosc("lz4", "shuffle", clevel=0)]
    inner["blosc-blocks"] = [LITTLE, blosc("zstd", "shuffle", blocksize=16)]
    inner["blosc-typesize"] = [LITTLE, blosc("lz4", "shuffle", typesize=3)]
    cases = {f"chunk-{name}": with_codecs(codecs) for name, codecs in inner.items()}
    for name, codecs in inner.items():
        if not name.startswith("blosc") or name.endswith(("-shuffle", "stored")):
            cases[f"shard-{name}"] = with_codecs([sharding(CHUNK, codecs)])
    raw, crc = [LITTLE], [LITTLE, CRC]
    cases |= {
        "index-start": with_codecs([sharding(CHUNK, [LITTLE, ZSTD, CRC], "start")]),
        "index-big": with_codecs([sharding(CHUNK, raw, "end", [BIG, CRC])]),
        "index-big-start": with_codecs([sharding(CHUNK, [BIG], "start", [BIG])]),
        "index-unchecked": with_codecs([sharding(CHUNK, raw, "end", [LITTLE])]),
        "index-transposed": with_codecs([sharding(CHUNK, raw, "end", [transpose(2, 0, 1), LITTLE, CRC])]),
        "chunk-is-shard": with_codecs([sharding(SHARD, crc)]),
        "one-element-chunks": with_codecs([sharding((1, 1), [LITTLE, CRC])]),
        "transpose-before-shards": with_codecs([transpose(1, 0), sharding(CHUNK[::-1], crc)]),
        "transpose-before-squares": with_codecs([transpose(1, 0), sharding((2, 2), crc)], (4, 4)),
        "transpose-before-and-inside": with_codecs([transpose(1, 0), sharding(CHUNK[::-1], [transpose(1, 0), BIG])]),
        "compressed-shards": with_codecs([sharding(CHUNK, raw), GZIP]),
        "checked-shards": with_codecs([sharding(CHUNK, raw), CRC]),
        "nested": with_codecs([sharding((4, 3), [sharding((2, 1), crc)])]),
        "nested-start-end": with_codecs([sharding((4, 3), [sharding((2, 1), [LITTLE, GZIP], "end")], "start")]),
        "nested-thrice": with_codecs([sharding((4, 3), [sharding((2, 3), [sharding((1, 3), crc, "start")])])]),
        "nested-transposed": with_codecs([sharding((4, 3), [transpose(1, 0), sharding((1, 2), [LITTLE, ZSTD])])]),
    }
    for name, separator in (("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")):
        keys = {"name": name, "configuration": {"separator": separator}}
        cases[f"keys-{name}-{ {'/': 'slash', '.': 'dot'}[separator] }".replace(" ", "")] = with_codecs(
            [LITTLE], chunk_key_encoding=keys
        )
        cases[f"shard-keys-{name}-{ {'/': 'slash', '.': 'dot'}[separator] }"] = with_codecs(
            [sharding(CHUNK, crc)], chunk_key_encoding=keys
        )
    cases["keys-shortest"] = with_codecs(raw, chunk_key_encoding={"name": "default"})
    cases["short-names"] = with_codecs([LITTLE, "crc32c"])
    cases["dimension-names"] = with_codecs([sharding(CHUNK, crc)], dimension_names=["Breite", None])
    attributes = {"Größe": {"日本": [1, 2.5, None, True, {"🐟": ""}]}, "big": 2**53, "float": 1e300}
    cases["attributes"] = with_codecs(raw, attributes=attributes)
    cases["ignorable-member"] = with_codecs(raw, extra={"must_understand": False, "x": 1})
    return cases


def shapes() -> dict[str, Case]:
    """Shapes out of the ordinary."""
    crc, dtype = [LITTLE, CRC], "uint16"

    def make(shape: tuple[int, ...], chunk: tuple[int, ...], codecs: list[Any]) -> Case:
        return array_document(shape, dtype, codecs, chunk), dtype

    return {
        "0-d": make((), (), crc),
        "0-d-sharded": make((), (), [sharding((), crc)]),
        "1-d": make((1,), (1,), crc),
        "1-d-sharded": make((100,), (30,), [sharding((5,), crc)]),
        "larger-chunk": make((3,), (100,), crc),
        "larger-shard": make((3, 3), (40, 40), [sharding((2, 2), crc)]),
        "no-length": make((0,), (3,), crc),
        "no-length-on-one-axis": make((4, 0, 3), (2, 2, 2), [sharding((1, 2, 2), crc)]),
        "5-d-sharded": make((3, 2, 4, 1, 5), (2, 2, 4, 1, 4), [sharding((1, 2, 2, 1, 2), [LITTLE, ZSTD])]),
        "rectilinear": (
            array_document(
                (7, 10),
                dtype,
                crc,
                chunk_grid={
                    "name": "rectilinear",
                    "configuration": {"kind": "inline", "chunk_shapes": [[[2, 3], 1], [4, 6]]},
                },
            ),
            dtype,
        ),
        "many-shards": make((40, 41), (4, 4), [sharding((2, 2), crc)]),
    }


def types() -> dict[str, Case]:
    """Data types and fill values; the values hold the fill value in some chunks."""
    cases: dict[str, Case] = {}

    def add(name: str, data_type: Any, dtype: Any, fill: Any, codecs: list[Any] | None = None) -> None:
        codecs = [LITTLE, CRC] if codecs is None else codecs
        cases[f"{name}-chunk"] = array_document(SHAPE, data_type, codecs, SHARD, fill), dtype
        cases[f"{name}-shard"] = array_document(SHAPE, data_type, [sharding(CHUNK, codecs)], SHARD, fill), dtype

    add("bool", "bool", "?", True, [BYTES, CRC])
    for bits in (8, 16, 32, 64):
        codecs = [BYTES, CRC] if bits == 8 else [LITTLE, CRC]
        add(f"int{bits}", f"int{bits}", f"i{bits // 8}", -(2 ** (bits - 1)), codecs)
        add(f"uint{bits}", f"uint{bits}", f"u{bits // 8}", 2**bits - 1, codecs)
    add("int64-big", "int64", "i8", 2**63 - 1, [BIG, CRC])
    for bits, payload in ((16, "0x7e01"), (32, "0xffc00123"), (64, "0x7ff8000000000bad")):
        for name, fill in {"nan": "NaN", "inf": "-Infinity", "zero": -0.0, "number": 0.1}.items():
            add(f"float{bits}-{name}", f"float{bits}", f"f{bits // 8}", fill, [BIG if name == "inf" else LITTLE])
        add(f"float{bits}-payload", f"float{bits}", f"f{bits // 8}", payload)
    add("complex64", "complex64", "c8", ["NaN", -1.5])
    add("complex128", "complex128", "c16", ["-Infinity", "0x7ff8000000000bad"], [BIG])
    add("r16", "r16", "V2", [1, 255], [BYTES])
    add("raw_bytes", {"name": "raw_bytes", "configuration": {"length_bytes": 3}}, "V3", "AAEC", [BYTES])
    add("string", "string", "string", "né", [{"name": "vlen-utf8"}, ZSTD])
    add("bytes", "bytes", "bytes", "Y2E=", [{"name": "vlen-bytes"}, CRC])
    add("bytes-list", "bytes", "bytes", [97, 0], [{"name": "vlen-bytes"}, CRC])
    add("variable_length_bytes", "variable_length_bytes", "bytes", "AMNh", [{"name": "vlen-bytes"}])
    add("variable_length_bytes-nul", "variable_length_bytes", "bytes", "YQA=", [{"name": "vlen-bytes"}])
    add("U", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}}, "U4", "fü")
    add("U-big", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}}, "U4", "", [BIG])
    add("S", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}, "S4", "YWI=", [BYTES])
    for kind, code in (("datetime64", "M8"), ("timedelta64", "m8")):
        time = {"name": f"numpy.{kind}", "configuration": {"unit": "ns", "scale_factor": 10}}
        add(f"{kind}-count", time, f"{code}[10ns]", -5)
        add(f"{kind}-nat", time, f"{code}[10ns]", -(2**63))
    fields = [("a", "<i2"), ("b", "<f4"), ("c", "<u8")]
    named = [{"name": name, "data_type": np.dtype(kind).name} for name, kind in fields]
    add("struct", {"name": "struct", "configuration": {"fields": named}}, fields, {"a": -1, "b": "NaN", "c": 2**64 - 1})
    pairs = [[name, np.dtype(kind).name] for name, kind in fields]
    add("structured", {"name": "structured", "configuration": {"fields": pairs}}, fields, "AQAAAAAAAAAAAAAAAAA=")
    for name in (
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e4m3b11fnuz",
    ):
        add(name, name, getattr(ml_dtypes, name), "NaN", [LITTLE if name == "bfloat16" else BYTES, ZSTD])
    for name in ("int4", "int2", "uint4"):
        add(name, name, getattr(ml_dtypes, name), 1, [BYTES, CRC])
    add("float4_e2m1fn", "float4_e2m1fn", ml_dtypes.float4_e2m1fn, 0.5, [BYTES])
    return cases


CASES = {**layouts(), **shapes(), **types()}

LIMITS: dict[str, dict[str, str]] = {
    "zarr-python": {
        "transpose-before-shards": "divisible by the shard's inner",
        "transpose-before-and-inside": "divisible by the shard's inner",
        "short-names": "Expected dict, got <class 'str'>",
        "bytes-list-*": "Expected a string",
        "r16-*": "No Zarr data type found that matches",
        "bfloat16-*": "No Zarr data type found that matches",
        "float8_*": "No Zarr data type found that matches",
        "float4_*": "No Zarr data type found that matches",
        "int4-*": "No Zarr data type found that matches",
        "int2-*": "No Zarr data type found that matches",
        "uint4-*": "No Zarr data type found that matches",
    },
    "tensorstore": {
        "compressed-shards": "bytes -> bytes codecs",
        "checked-shards": "bytes -> bytes codecs",
        "short-names": "Expected object, but received",
        "rectilinear": 'Expected "regular", but received: "rectilinear"',
        "r16-*": "base64-encoded string for raw_bytes fill_value",
        "string-*": "string data type is not one of the supported data types",
        "bytes-*": "bytes data type is not one of the supported data types",
        "variable_length_bytes-*": "variable_length_bytes data type is not one of the supported",
        "U-*": "fixed_length_utf32 data type is not one of the supported",
        "S-*": "null_terminated_bytes data type is not one of the supported",
        "datetime64-*": "numpy.datetime64 data type is not one of the supported",
        "timedelta64-*": "numpy.timedelta64 data type is not one of the supported",
        "struct-*": 'Must specify a "field"',
        "structured-*": 'Must specify a "field"',
        "uint4-*": "uint4 data type is not one of the supported",
    },
}
OLDER_LIMITS = {
    "rectilinear": "Unknown chunk grid. Got rectilinear",
    "raw_bytes-shard": "unhashable type: 'writeable void-scalar'",
    "structured-shard": "unhashable type: 'writeable void-scalar'",
    "struct-*": "No Zarr data type found that matches",
}
if ZARR_PYTHON < (3, 2):
    LIMITS["zarr-python"] |= OLDER_LIMITS
"""For each peer: cases (or their beginnings, ending with ``*``) and words with which it refuses to read them."""

FAULTS: dict[str, dict[str, str]] = {
    "zarr-python": {
        "float16-payload-*": "the payload of a NaN fill value is lost",
        "variable_length_bytes-nul-*": "zeros at the end of a fill value are lost",
    },
    "tensorstore": {"raw_bytes-*": "elements become an axis of single bytes"},
}
if ZARR_PYTHON < (3, 2):
    FAULTS["zarr-python"]["0-d-sharded"] = "writes fail: too many indices for array"
"""For each peer: cases that it reads otherwise, or cannot write. The tests assert that they still do."""


def limit(peer: str, name: str, table: dict[str, dict[str, str]] = LIMITS) -> str | None:
    for case, words in table[peer].items():
        if name == case or (case.endswith("*") and name.startswith(case[:-1])):
            return words
    return None


def values_of(name: str) -> np.ndarray[Any, Any]:
    """Random values, of which one inner chunk, one shard and single elements are the fill value."""
    document, dtype = CASES[name]
    values = sample(dtype, tuple(document["shape"]), seed=len(name))
    fill = fill_of(name)
    if values.ndim == 2 and values.size:
        values[:4, 6:] = fill
        values[4:6, :3] = fill
        values[0, 0] = fill
    return values


def fill_of(name: str) -> Any:
    return zardine.open_array(
        zardine.storage.MemoryStore({"zarr.json": json.dumps(CASES[name][0]).encode()}), mode="r"
    ).fill_value


def edit(name: str, values: np.ndarray[Any, Any], seed: int) -> tuple[Any, np.ndarray[Any, Any]]:
    """A region that cuts chunks, new values for it."""
    region = tuple(slice(length // 3, -(-length * 2 // 3)) for length in values.shape) if values.ndim else ()
    shape = tuple(part.stop - part.start for part in region)
    return region, sample(CASES[name][1], shape, seed)


def edit_and_compare(program: Any, path: Path, region: Any, new: Any, values: Any) -> None:
    """Let a peer read the array, and zardine read what the peer has made of it."""
    assert same(program.read(path), values)
    program.write(path, region, new)
    changed = values.copy()
    changed[region] = new
    assert same(Zardine.read(path), changed)


MET = [
    (name, peer) for turn, name in enumerate(CASES) for place, peer in enumerate(PEERS) if SOAK or (turn + place) % 2
]
"""Every other program for each case, by turns."""


@pytest.mark.parametrize(("name", "peer"), MET)
def test_both_ways(name: str, peer: str, tmp_path: Path) -> None:
    document, _ = CASES[name]
    other: Any = PEERS[peer]
    values = values_of(name)
    ours = create(tmp_path / "ours", document)
    Zardine.write(ours, ..., values)
    assert same(Zardine.read(ours), values)
    words = limit(peer, name)
    if words is not None:
        with pytest.raises(Exception, match=re.escape(words)):
            other.read(ours)
        return
    if limit(peer, name, FAULTS) is not None:
        with pytest.raises((AssertionError, IndexError)):
            edit_and_compare(other, ours, *edit(name, values, 1), values)
        return
    edit_and_compare(other, ours, *edit(name, values, 1), values)

    theirs = create(tmp_path / "theirs", document)
    other.write(theirs, ..., values)
    assert same(Zardine.read(theirs), values)
    region, new = edit(name, values, 2)
    Zardine.write(theirs, region, new)
    changed = values.copy()
    changed[region] = new
    assert same(Zardine.read(theirs), changed)
    assert same(other.read(theirs), changed)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", ["shard-crc", "nested", "index-start", "chunk-zstd", "float64-payload-shard"])
def test_nothing_stored(name: str, peer: str, tmp_path: Path) -> None:
    """Only fill values: read before anything is written, and after they were written, which stores nothing."""
    document, _ = CASES[name]
    expected = np.broadcast_to(fill_of(name), tuple(document["shape"])).copy()
    for writer in (Zardine, PEERS[peer]):
        path = create(tmp_path / writer.name, document)
        for program in (Zardine, PEERS[peer]):
            assert same(program.read(path), expected)
        writer.write(path, ..., expected)
        for program in (Zardine, PEERS[peer]):
            assert same(program.read(path), expected)
        if writer is Zardine:
            assert [file.name for file in path.rglob("*") if file.is_file()] == ["zarr.json"]


@pytest.mark.parametrize("name", sorted(shapes() | layouts()))
def test_many_small_edits_by_turns(name: str, tmp_path: Path) -> None:
    """All programs that know the array edit it by turns, and then agree."""
    document, dtype = CASES[name]
    path = create(tmp_path / "shared", document)
    programs = [Zardine, *(PEERS[peer] for peer in PEERS if not limit(peer, name) and not limit(peer, name, FAULTS))]
    rng = np.random.default_rng(3)
    expected = np.broadcast_to(fill_of(name), tuple(document["shape"])).copy()
    for turn in range(9):
        bounds = [np.sort(rng.integers(0, length + 1, 2)).tolist() for length in expected.shape]
        region = tuple(slice(start, stop) for start, stop in bounds)
        values = sample(dtype, tuple(stop - start for start, stop in bounds), turn)
        programs[turn % len(programs)].write(path, region, values)
        expected[region] = values
    for program in programs:
        assert same(program.read(path), expected), program.name


@pytest.mark.parametrize("compressors", ["auto", None, GzipCodec(), BloscCodec(), ZstdCodec()])
@pytest.mark.parametrize("shards", [None, (10, 15)])
def test_what_is_written_by_default_is_read_by_programs_of_zarrs(
    tmp_path: Path, shards: tuple[int, ...] | None, compressors: Any
) -> None:
    values = np.arange(600, dtype="i4").reshape(20, 30)
    options: Any = {"chunks": (5, 5), "shards": shards, "compressors": compressors}
    zardine.create_array(tmp_path / "a.zarr", data=values, **options)
    array = zarrista.Array.open(zarrista.store.FilesystemStore(str(tmp_path / "a.zarr")))
    np.testing.assert_array_equal(np.asarray(array[0:20, 0:30]), values)
