"""Codecs that the program zarrs has of its own. Files made by hand are in ``tests/golden``."""

import json
import struct
from contextlib import suppress

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.codecs.packbits import PackBitsCodec
from zardine.codecs.squeeze import SqueezeCodec
from zardine.codecs.vlen.offsets import VLenOffsetsCodec
from zardine.data_types import parse_data_type
from zardine.errors import ChunkDecodeError, EncodeError, MetadataError, UnknownExtensionError
from zardine.json_document import Problems
from zardine.storage import MemoryStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
VLEN = {
    "name": "zarrs.vlen",
    "configuration": {
        "index_codecs": [LITTLE, {"name": "crc32c"}],
        "data_codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}],
        "index_data_type": "uint32",
        "index_location": "end",
    },
}


def array_of(codecs, data_type, shape, chunk, fill=0):
    """A new array of exactly these codecs, which documents have and creation may not offer."""
    store = MemoryStore()
    store.set(
        "zarr.json",
        json.dumps(
            {
                "zarr_format": 3,
                "node_type": "array",
                "shape": shape,
                "data_type": data_type,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
                "chunk_key_encoding": "default",
                "fill_value": fill,
                "codecs": codecs,
            }
        ).encode(),
    )
    return zardine.open_array(store, mode="r+")


@pytest.mark.parametrize(
    ("shape", "left"), [((1, 3, 1), (3,)), ((2, 3), (2, 3)), ((1, 1), (1,)), ((), (1,)), ((4, 1, 2), (4, 2))]
)
def test_squeeze(h, shape, left):
    codec = h.read("zarrs.squeeze")
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    spec = h.spec_like(array)
    assert codec == SqueezeCodec()
    assert codec.to_json() == {"name": "zarrs.squeeze"}
    assert codec.encoded_spec(spec).shape == codec.encode(array, spec).shape == left
    assert np.array_equal(codec.decode(codec.encode(array, spec), spec), array)


@pytest.mark.parametrize("inner", [False, True])
def test_squeeze_before_and_inside_of_shards(inner):
    squeeze = {"name": "zarrs.squeeze"}
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1, 2] if inner else [2],
            "codecs": [squeeze, LITTLE] if inner else [LITTLE],
            "index_codecs": [LITTLE, {"name": "crc32c"}],
        },
    }
    a = array_of([sharding] if inner else [squeeze, sharding], "int16", [3, 7], [1, 4])
    values = np.arange(21, dtype="i2").reshape(3, 7)
    a[...] = values
    a[1, 3] = -1
    values[1, 3] = -1
    assert np.array_equal(a[...], values)
    assert np.array_equal(zardine.open_array(a.store)[1:, 2:5], values[1:, 2:5])


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("name", ["string", "bytes"])
def test_offsets_round_trip(h, name, location):
    codec = h.read(VLEN | {"configuration": {**VLEN["configuration"], "index_location": location}})
    assert codec.to_json()["configuration"]["index_location"] == location
    for values in (["", "a", "ä" * 70, "tin"], ["", ""], []):
        array = np.empty(len(values), object)
        array[:] = values if name == "string" else [value.encode() for value in values]
        spec = h.spec(name, (len(values),))
        assert codec.check(spec) is None
        assert codec.encoded_size(spec) is codec.encoded_limit(spec) is None
        assert codec.decode(codec.encode(array, spec), spec).tolist() == array.tolist()


def test_offsets_without_location_are_at_the_start(h):
    configuration = {name: value for name, value in VLEN["configuration"].items() if name != "index_location"}
    codec = h.read({"name": "zarrs.vlen", "configuration": configuration})
    assert codec.index_location == "start"
    for missing in configuration:
        rest = {name: value for name, value in configuration.items() if name != missing}
        (problem,) = h.problems_of({"name": "zarrs.vlen", "configuration": rest})
        assert problem == f"codecs[0].configuration.{missing}: required member is missing"


def test_offsets_check(h):
    codec = VLenOffsetsCodec()
    assert "elements of any length, not int8" in codec.check(h.spec("int8", (1,)))
    wrong = VLenOffsetsCodec(index_codecs=("bytes", "bytes"))
    assert "index_codecs: exactly one" in wrong.check(h.spec("bytes", (1,)))
    with pytest.raises(EncodeError, match="expected bytes"):
        codec.encode(np.array(["a"], object), h.spec("bytes", (1,)))


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (b"", "0 bytes are too few"),
        (struct.pack("<Q", 2**63) + bytes(24), "offsets of 9223372036854775808 bytes do not fit"),
        (struct.pack("<4Q", 24, 0, 2, 1) + b"a", "the offsets decrease"),
        (struct.pack("<4Q", 24, 0, 1, 2**62) + b"a", "at most"),
        (struct.pack("<4Q", 24, 0, 1, 9) + b"ab", "the elements:"),
        (struct.pack("<4Q", 24, 0, 0, 0) + b"ab", "2 bytes are stored for elements without any"),
        (struct.pack("<3Q", 16, 0, 0), "the offsets:"),
    ],
)
def test_hostile_offsets(h, stored, text):
    with pytest.raises(ChunkDecodeError, match=text):
        VLenOffsetsCodec().decode(stored, h.spec("bytes", (2,)))


def test_damage_never_gives_another_error(h):
    spec = h.spec("bytes", (3,))
    array = np.array([b"ab", b"", b"cde"], object)
    for location in ("start", "end"):
        codec = h.read(VLEN | {"configuration": {**VLEN["configuration"], "index_location": location}})
        for wrong in h.damaged(codec.encode(array, spec)):
            with suppress(zardine.errors.CorruptionError):
                assert codec.decode(wrong, spec).shape == (3,)


@pytest.mark.parametrize("codec", ["zarrs.vlen_v2", "vlen-array", "vlen-utf8", "vlen-bytes", VLEN])
@pytest.mark.parametrize("name", ["string", "bytes"])
def test_arrays_of_variable_length(codec, name):
    a = array_of([codec], name, [5], [2], "" if name == "string" else [])
    values = ["a", "", "ä", "b" * 300, "c"]
    expected = values if name == "string" else [value.encode() for value in values]
    a[...] = np.array(expected, object)
    a[1:3] = np.array(expected[1:3][::-1], object)
    expected[1:3] = expected[1:3][::-1]
    assert zardine.open_array(a.store)[...].tolist() == expected


PARTS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("name", [*PARTS, "complex64", "complex128", *(f"complex_{part}" for part in PARTS)])
def test_pcodec_of_complex_numbers_is_that_of_their_parts(name):
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name.removeprefix("complex_"))
    numbers = (np.arange(24) * 0.75 - 3).astype(part)
    numbers[5] = np.nan
    codec = {"name": "numcodecs.pcodec", "configuration": {"level": 8}}
    count = 24 if part == name else 12
    a = array_of([codec], name, [count], [count], 0 if part == name else [0, 0])
    a.store.set("c/0", bytes(numcodecs.get_codec({"id": "pcodec"}).encode(numbers)))
    assert a[...].tobytes() == numbers.tobytes()
    a[3] = a[4]
    again = zardine.open_array(a.store)[...]
    assert again[3:4].tobytes() == again[4:5].tobytes()
    assert again[5:].tobytes() == a[...][5:].tobytes()


def test_pcodec_of_times_is_that_of_their_counts():
    time = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
    a = array_of([{"name": "numcodecs.pcodec", "configuration": {}}], time, [6], [6])
    a.store.set("c/0", bytes(numcodecs.get_codec({"id": "pcodec"}).encode(np.arange(6) * 10**9)))
    assert a[...].astype("i8").tolist() == (np.arange(6) * 10**9).tolist()
    a.store.set("c/0", bytes(numcodecs.get_codec({"id": "pcodec"}).encode(np.arange(6.0))))
    with pytest.raises(ChunkDecodeError, match="does not match chunk's number type"):
        a[...]


@pytest.mark.parametrize(
    "name", ["float16", "complex_float16", "float8_e5m2", "complex_float8_e4m3", "numpy.timedelta64"]
)
def test_packbits_of_types_that_its_text_leaves_out(h, name):
    value = {"name": name, "configuration": {"unit": "s", "scale_factor": 1}} if name.startswith("numpy") else name
    problems = Problems()
    data_type = parse_data_type(value, "data_type", problems)
    spec = h.spec_of(data_type, (5,))
    octets = np.arange(5 * data_type.item_size, dtype="u1")
    assert PackBitsCodec().check(spec) is None
    assert "does not name data type" in PackBitsCodec().remark(spec)
    assert PackBitsCodec().decode(octets.tobytes(), spec).tobytes() == octets.tobytes()
    assert bytes(PackBitsCodec().encode(octets.view(data_type.dtype), spec)) == octets.tobytes()


@pytest.mark.parametrize(
    ("codecs", "data_type", "words"),
    [
        (["bytes", "zarrs.gdeflate"], "uint8", '"zarrs.gdeflate": zardine does not read it: '),
        ([{"name": "zfp", "configuration": {"mode": "reversible"}}], "float32", '"zfp": zardine does not read it: '),
        ([{"name": "zarrs.optional", "configuration": {}}], "uint8", '"zarrs.optional": zardine does not read it: '),
        (
            ["bytes"],
            {"name": "zarrs.optional", "configuration": {"name": "uint8"}},
            'data type "zarrs.optional": zardine does not read it: ',
        ),
        (["bytes"], {"name": "optional", "configuration": {}}, 'data type "optional": zardine does not read it: '),
    ],
)
def test_what_is_not_read_is_named_with_the_reason(codecs, data_type, words):
    with pytest.raises(UnknownExtensionError, match=words):
        array_of(codecs, data_type, [2], [2])


@pytest.mark.parametrize(
    "arguments",
    [
        {"dtype": "f2", "serializer": "packbits", "compressors": None},
        {"dtype": "f2", "filters": [{"name": "bitround", "configuration": {"keepbits": 11}}]},
        {"dtype": "bytes", "serializer": "vlen-utf8"},
        {"dtype": "str", "serializer": "vlen-bytes"},
    ],
)
def test_what_other_programs_may_refuse_is_not_made(arguments):
    with pytest.raises(MetadataError, match="such an array cannot be made"):
        zardine.create_array(MemoryStore(), shape=4, **arguments)
