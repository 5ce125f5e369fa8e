"""What gzip, zstd and blosc have in common."""

import asyncio
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numcodecs
import numpy as np
import pytest
import zarr.codecs
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.codecs import BloscCodec, GzipCodec, ZstdCodec
from zardine.codecs.base import SizeLimit
from zardine.errors import ChunkDecodeError

CODECS = [
    GzipCodec(),
    GzipCodec(0),
    GzipCodec(level=9),
    ZstdCodec(),
    ZstdCodec(-5),
    ZstdCodec(level=19, checksum=True),
    BloscCodec(),
    BloscCodec(cname="lz4", shuffle="shuffle", typesize=4),
    BloscCodec(cname="blosclz", shuffle="bitshuffle", typesize=2),
    BloscCodec(cname="lz4hc", shuffle="noshuffle", clevel=0),
    BloscCodec(cname="zlib", shuffle="shuffle", typesize=8, blocksize=512),
]
codecs = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: str(codec.to_json()["configuration"]))
SAMPLE = bytes(range(7)) * 20


@codecs
@settings(max_examples=examples(40))
@given(data=st.one_of(st.binary(max_size=300), st.binary(min_size=1, max_size=3).map(lambda part: part * 5000)))
def test_round_trip(codec, data):
    for given_data in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        encoded = codec.encode(given_data)
        assert len(encoded) <= codec.encoded_limit(len(data))
        for limit in (SizeLimit(len(data), True), SizeLimit(len(data) + 1, False), SizeLimit(2**40, False)):
            assert bytes(codec.decode(encoded, limit)) == data
            assert bytes(codec.decode(memoryview(bytearray(encoded)), limit)) == data
    assert codec.encoded_size(len(data)) is None


@codecs
def test_size_limits(codec):
    encoded = codec.encode(SAMPLE)
    for limit in (SizeLimit(139, False), SizeLimit(139, True), SizeLimit(141, True), SizeLimit(0, True)):
        with pytest.raises(ChunkDecodeError) as raised:
            codec.decode(encoded, limit)
        assert raised.value.codec == codec.name


@codecs
def test_damage_is_noticed_or_gives_data_of_the_right_size(h, codec):
    encoded = codec.encode(SAMPLE)
    assert h.count_refusals(codec, encoded, len(SAMPLE)) > len(encoded)


@codecs
def test_appended_bytes_are_refused(codec):
    for extra in (b"\0", b"garbage", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"):
        with pytest.raises(ChunkDecodeError):
            codec.decode(codec.encode(SAMPLE) + extra, SizeLimit(1000, False))


@codecs
def test_empty_data_are_refused(codec):
    for data in (b"", b"\0", bytes(16), bytes(100)):
        with pytest.raises(ChunkDecodeError):
            codec.decode(data, SizeLimit(0, False))


@codecs
def test_same_bytes_from_many_threads(codec):
    data = np.arange(20000, dtype="<u4").tobytes()
    encoded = codec.encode(data)
    with ThreadPoolExecutor(8) as pool:
        assert all(bytes(other) == bytes(encoded) for other in pool.map(codec.encode, [data] * 32))
        limit = SizeLimit(len(data), True)
        assert all(bytes(back) == data for back in pool.map(lambda one: codec.decode(one, limit), [encoded] * 32))


@codecs
def test_agrees_with_zarr_python(codec):
    """Each reads what the other wrote."""
    from zarr.core.array_spec import ArrayConfig, ArraySpec
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.dtype import UInt8

    document = codec.to_json()
    theirs = {"gzip": zarr.codecs.GzipCodec, "zstd": zarr.codecs.ZstdCodec, "blosc": zarr.codecs.BloscCodec}
    other = theirs[codec.name].from_dict(document)
    prototype = default_buffer_prototype()
    spec = ArraySpec((140,), UInt8(), 0, ArrayConfig("C", True), prototype)

    async def run(operation, data):
        (result,) = await operation([(prototype.buffer.from_bytes(bytes(data)), spec)])
        return result.to_bytes()

    assert asyncio.run(run(other.decode, codec.encode(SAMPLE))) == SAMPLE
    assert bytes(codec.decode(asyncio.run(run(other.encode, SAMPLE)), SizeLimit(140, True))) == SAMPLE


@pytest.mark.parametrize(
    ("codec", "writer"),
    [
        (GzipCodec(), numcodecs.GZip(3)),
        (ZstdCodec(), numcodecs.Zstd(3, checksum=True)),
        (BloscCodec(), numcodecs.Blosc("zlib", 9, 2)),
    ],
)
def test_agrees_with_numcodecs(codec, writer):
    assert bytes(codec.decode(writer.encode(SAMPLE), SizeLimit(140, True))) == SAMPLE
    assert bytes(writer.decode(codec.encode(SAMPLE))) == SAMPLE


def memory_of(action) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def bombs():
    """Small data that claim to be, or become, very large."""
    import zlib

    import zstandard

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(2**24)
    gzip = b"".join([*(packer.compress(zeros) for _ in range(8)), packer.flush()])
    writer = zstandard.ZstdCompressor(level=3).compressobj()
    unknown = b"".join([*(writer.compress(zeros) for _ in range(8)), writer.flush()])
    claim = b"\x28\xb5\x2f\xfd\xe0" + (2**60).to_bytes(8, "little") + b"\x01\x00\x00"
    window = b"\x28\xb5\x2f\xfd\x00\xff" + b"\x01\x00\x00"
    runs = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\x00" * 10000 + b"\x01\x00\x00"
    header = b"\x02\x01\x01\x04" + (2**31 - 17).to_bytes(4, "little") + (2**16).to_bytes(4, "little")
    return {
        "gzip of 128 MiB": (GzipCodec(), gzip),
        "zstd of 128 MiB, size unknown": (ZstdCodec(), unknown),
        "zstd that claims 2**60": (ZstdCodec(), claim),
        "zstd with the largest window": (ZstdCodec(), window),
        "zstd of 10000 runs": (ZstdCodec(), runs),
        "blosc that claims 2**31": (BloscCodec(), header + (20).to_bytes(4, "little") + bytes(4)),
    }


@pytest.mark.parametrize("exact", [True, False])
def test_bombs_are_refused_without_much_memory(bombs, exact):
    for codec, data in bombs.values():

        def refuse(codec=codec, data=data):
            with pytest.raises(ChunkDecodeError):
                codec.decode(data, SizeLimit(2**20, exact))

        assert memory_of(refuse) < 4 * 2**20


@codecs
def test_levels_and_names_come_back(h, codec):
    assert h.read(codec.to_json()) == codec.resolve(h.spec("uint8", (1,)))
    assert hash(h.read(codec.to_json())) == hash(h.read(codec.to_json()))
