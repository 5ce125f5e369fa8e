import gzip
import time

import pytest

from zardine.codecs import GzipCodec
from zardine.codecs.base import SizeLimit
from zardine.errors import ChecksumError, ChunkDecodeError

DATA = b"sardines " * 30
EXACT = SizeLimit(len(DATA), True)


def test_several_members_are_joined():
    halves = gzip.compress(DATA[:100]) + gzip.compress(b"") + gzip.compress(DATA[100:])
    assert GzipCodec().decode(halves, EXACT) == DATA
    with pytest.raises(ChunkDecodeError, match="more than 150 bytes"):
        GzipCodec().decode(halves, SizeLimit(150, False))


def test_checksum_and_length_are_verified():
    encoded = bytearray(GzipCodec().encode(DATA))
    encoded[-8] ^= 1
    with pytest.raises(ChecksumError, match="incorrect data check"):
        GzipCodec().decode(encoded, EXACT)
    encoded[-8] ^= 1
    encoded[-1] ^= 1
    with pytest.raises(ChunkDecodeError, match="incorrect length check"):
        GzipCodec().decode(encoded, EXACT)


def test_many_empty_members_take_linear_time():
    data = gzip.compress(b"") * 20000
    start = time.perf_counter()
    assert GzipCodec().decode(data, SizeLimit(0, True)) == b""
    assert time.perf_counter() - start < 3


def test_equal_data_give_equal_bytes():
    encoded = bytes(GzipCodec().encode(DATA))
    assert encoded[:4] == b"\x1f\x8b\x08\x00"
    assert encoded[4:8] == bytes(4)
    assert gzip.decompress(encoded) == DATA


def test_configuration(h):
    document = {"name": "gzip", "configuration": {"level": 1}}
    assert h.read(document) == GzipCodec(1)
    assert GzipCodec(level=1).to_json() == document


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, "codecs[0].configuration.level: required member is missing"),
        ({"level": 10}, "codecs[0].configuration.level: expected an integer from 0 to 9, found 10"),
        ({"level": -1}, "codecs[0].configuration.level: expected an integer from 0 to 9, found -1"),
        ({"level": 1.0}, "codecs[0].configuration.level: expected an integer from 0 to 9, found 1.0"),
        ({"level": True}, "codecs[0].configuration.level: expected an integer from 0 to 9, found true"),
        ({"level": 1, "mtime": 0}, 'codecs[0].configuration.mtime: unknown member; known are: "level"'),
    ],
)
def test_refusals(h, configuration, expected):
    assert h.problems_of({"name": "gzip", "configuration": configuration}) == [expected]


def test_constructor_refuses():
    with pytest.raises(ValueError, match="GzipCodec: level: expected an integer from 0 to 9, found 10"):
        GzipCodec(10)
