import asyncio
import lzma
import sys
import tracemalloc
from contextlib import suppress

import numcodecs
import numpy as np
import pytest
import zarr.codecs.numcodecs
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.codecs import numcodecs as adapters
from zardine.codecs.base import BytesBytesCodec, SizeLimit
from zardine.codecs.registry import CODECS
from zardine.errors import ChecksumError, ChunkDecodeError, EncodeError

RAW_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1}]
BYTES = [
    adapters.BZ2(level=3),
    adapters.LZMA(),
    adapters.LZMA(format=lzma.FORMAT_ALONE, preset=1),
    adapters.LZMA(format=lzma.FORMAT_RAW, filters=RAW_FILTERS),
    adapters.Zlib(level=4),
    adapters.GZip(level=1),
    adapters.Zstd(level=2, checksum=True),
    adapters.Blosc(cname="lz4", clevel=4, shuffle=2, blocksize=0),
    adapters.LZ4(acceleration=2),
    adapters.Shuffle(elementsize=4),
]
CHECKSUMS = [
    adapters.CRC32(),
    adapters.CRC32(location="end"),
    adapters.CRC32C(),
    adapters.Adler32(),
    adapters.Fletcher32(),
    adapters.JenkinsLookup3(),
    adapters.JenkinsLookup3(initval=5),
]
both = pytest.mark.parametrize("codec", BYTES + CHECKSUMS, ids=repr)
SAMPLE = np.arange(80, dtype="<u4").tobytes()


@both
@settings(max_examples=examples(30))
@given(part=st.binary(min_size=4, max_size=4), times=st.integers(1, 300))
def test_round_trip(codec, part, times):
    data = part * times
    encoded = codec.encode(memoryview(bytearray(data)))
    assert len(encoded) <= codec.encoded_limit(len(data))
    assert codec.encoded_size(len(data)) in (None, len(encoded))
    assert bytes(codec.decode(encoded, SizeLimit(len(data), True))) == data
    assert bytes(codec.decode(memoryview(encoded), SizeLimit(len(data), False))) == data
    for limit in (SizeLimit(len(data) - 1, False), SizeLimit(len(data) + 1, True)):
        with pytest.raises(ChunkDecodeError):
            codec.decode(encoded, limit)


@both
def test_damage_is_noticed_or_gives_data_of_the_right_size(h, codec):
    encoded = bytes(codec.encode(SAMPLE))
    assert h.count_refusals(codec, encoded, len(SAMPLE)) > len(encoded)


@pytest.mark.parametrize("codec", CHECKSUMS, ids=repr)
def test_checksums_are_verified(codec):
    encoded = bytearray(codec.encode(SAMPLE))
    encoded[20] ^= 4
    with pytest.raises(ChecksumError):
        codec.decode(encoded, SizeLimit(len(SAMPLE), True))


@both
def test_numcodecs_reads_what_is_written(codec):
    other = numcodecs.get_codec({"id": codec.name.removeprefix("numcodecs."), **codec.configuration()})
    assert (
        np.asarray(other.decode(codec.encode(SAMPLE))).tobytes() == SAMPLE
        or bytes(other.decode(codec.encode(SAMPLE))) == SAMPLE
    )
    encoded = other.encode(SAMPLE)
    assert bytes(codec.decode(memoryview(encoded).cast("B"), SizeLimit(len(SAMPLE), True))) == SAMPLE


@both
def test_configuration_comes_back(h, codec):
    document = codec.to_json()
    assert document["name"].startswith("numcodecs.")
    assert h.read(document) == codec
    assert h.read(document).to_json() == document
    assert hash(h.read(document)) == hash(codec)


def test_sizes_in_headers_are_checked_first():
    claims = (2**31 - 1).to_bytes(4, "little")
    memory = 64 * 2**20
    alone = bytearray(lzma.compress(b"abc", format=lzma.FORMAT_ALONE))
    alone[1:5] = (2**32 - 1).to_bytes(4, "little")  # the size of the dictionary
    bomb = numcodecs.BZ2(9).encode(bytes(2**25))
    for codec, data in (
        (adapters.LZ4(), claims + bytes(20)),
        (adapters.LZ4(), b"\xff\xff\xff\xff" + bytes(20)),
        (adapters.LZMA(format=lzma.FORMAT_ALONE), bytes(alone)),
        (adapters.BZ2(), bomb),
        (adapters.LZMA(), lzma.compress(bytes(2**25))),
        (adapters.Zlib(), numcodecs.Zlib(9).encode(bytes(2**25))),
    ):
        tracemalloc.start()
        with pytest.raises(ChunkDecodeError):
            codec.decode(data, SizeLimit(2**20, False))
        assert tracemalloc.get_traced_memory()[1] < memory
        tracemalloc.stop()


def test_lz4_of_nothing():
    encoded = adapters.LZ4().encode(b"")
    assert adapters.LZ4().decode(encoded, SizeLimit(0, True)) == b""
    with pytest.raises(ChunkDecodeError):
        adapters.LZ4().decode(bytes(4) + b"\x10\x00", SizeLimit(0, True))


# --- array -> array

FILTERS = [
    (adapters.Delta(dtype="<i4"), np.arange(24, dtype="i4").reshape(2, 3, 4), "int32"),
    (adapters.Delta(dtype=np.int32, astype=">i2"), np.arange(24, dtype="i4").reshape(2, 3, 4), "int16"),
    (adapters.FixedScaleOffset(offset=10, scale=2, dtype="f8", astype="u1"), np.arange(10, 20, 0.5), "uint8"),
    (adapters.Quantize(digits=1, dtype="f4"), np.arange(0, 3, 0.125, dtype="f4"), "float32"),
    (adapters.AsType(encode_dtype=">f4", decode_dtype="<f8"), np.arange(6.0).reshape(3, 2), "float32"),
    (adapters.PackBits(), np.arange(21).reshape(3, 7) % 3 == 0, "uint8"),
]
filters = pytest.mark.parametrize(("codec", "array", "stored"), FILTERS, ids=lambda value: repr(value)[:40])


@filters
def test_filters(h, codec, array, stored):
    spec = h.spec_like(array)
    assert codec.check(spec) is None
    for given_array in (array, np.asfortranarray(array)):
        encoded = codec.encode(given_array, spec)
        inner = codec.encoded_spec(spec)
        assert inner.data_type.name == stored
        assert encoded.dtype == inner.dtype == inner.fill.dtype
        assert encoded.shape == inner.shape
        decoded = codec.decode(encoded, spec)
        assert decoded.dtype == array.dtype
        assert decoded.shape == array.shape
        assert np.allclose(decoded.astype(float), array.astype(float), atol=0.1)
    assert h.read(codec.to_json()) == codec


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in")
@filters
def test_filters_agree_with_zarr_python(codec, array, stored):
    from zarr.core.array_spec import ArrayConfig, ArraySpec
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.dtype import parse_dtype

    other = getattr(zarr.codecs.numcodecs, type(codec).__name__).from_dict(codec.to_json())
    prototype = default_buffer_prototype()
    dtype = parse_dtype(array.dtype, zarr_format=3)
    spec = ArraySpec(array.shape, dtype, dtype.default_scalar(), ArrayConfig("C", True), prototype)

    async def encode():
        (result,) = await other.encode([(prototype.nd_buffer.from_numpy_array(array), spec)])
        return result.as_numpy_array()

    theirs = asyncio.run(encode())
    from zardine.codecs.base import ChunkSpec
    from zardine.data_types import data_type_for

    data_type = data_type_for(array.dtype)
    ours = codec.encode(array, ChunkSpec(array.shape, data_type, data_type.default_fill()))
    assert np.array_equal(ours.reshape(-1), theirs.reshape(-1))


def test_missing_data_types_are_recorded(h):
    assert adapters.Shuffle().resolve(h.spec("float64", (1,))).configuration() == {"elementsize": 8}
    quantize = adapters.Quantize(digits=2).resolve(h.spec("float64", (1,)))
    assert quantize.configuration() == {"digits": 2, "dtype": "<f8" if sys.byteorder == "little" else ">f8"}
    assert "dtype" in adapters.FixedScaleOffset(offset=0, scale=1).resolve(h.spec("int16", (1,))).configuration()
    assert "decode_dtype" in adapters.AsType(encode_dtype="i2").resolve(h.spec("int16", (1,))).configuration()


def test_filters_check_the_array(h):
    assert "is made for <i4, the array has float64" in adapters.Delta(dtype="<i4").check(h.spec("float64", (1,)))
    assert "stores bool" in adapters.PackBits().check(h.spec("uint8", (1,)))
    assert "cannot store data type string" in adapters.Delta(dtype="<i4").check(h.spec("string", (1,)))


def test_filters_take_empty_and_single_chunks(h):
    for codec, array, _ in FILTERS:
        for shape in ((0,), (), (1, 1)):
            spec = h.spec(array.dtype, shape)
            zeros = np.zeros(shape, array.dtype)
            assert codec.decode(codec.encode(zeros, spec), spec).shape == shape


def test_packbits_padding_is_checked(h):
    with pytest.raises(ChunkDecodeError, match="5 padding bits"):
        adapters.PackBits().decode(np.array([5, 0], np.uint8), h.spec("bool", (6,)))


# --- reading metadata


@pytest.mark.parametrize(
    ("name", "configuration", "text"),
    [
        ("numcodecs.lz4", {"speed": 1}, "numcodecs refuses"),
        ("numcodecs.delta", {"dtype": "nothing"}, "numcodecs refuses"),
        ("numcodecs.delta", {"dtype": "O"}, "object arrays are not supported"),
        ("numcodecs.quantize", {"digits": 1, "dtype": "i4"}, "only floating point"),
        ("numcodecs.crc32", {"location": "middle"}, "numcodecs refuses"),
    ],
)
def test_refusals(h, name, configuration, text):
    (problem,) = h.problems_of({"name": name, "configuration": configuration})
    assert problem.startswith("codecs[0].configuration: ")
    assert text in problem


def test_codecs_whose_package_is_missing_are_unknown(h):
    for name in ("numcodecs.pcodec", "numcodecs.zfpy"):
        identifier = name.removeprefix("numcodecs.")
        if identifier not in numcodecs.registry.codec_registry:
            with suppress(ValueError):
                numcodecs.get_codec({"id": identifier})
                continue
            (problem,) = h.problems_of({"name": name, "configuration": {}})
            assert "the installed numcodecs has no" in problem


def test_every_name_of_zarr_python_is_known():
    theirs = {
        value.codec_name
        for value in vars(zarr.codecs.numcodecs).values()
        if isinstance(getattr(value, "codec_name", None), str)
    }
    assert theirs <= set(CODECS)


def test_values_that_cannot_be_encoded():
    with pytest.raises(EncodeError, match="numcodecs failed"):
        adapters.Blosc(cname="snappy").encode(b"abc")


def test_kinds():
    assert all(isinstance(codec, BytesBytesCodec) for codec in BYTES + CHECKSUMS)
