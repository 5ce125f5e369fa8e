import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.codecs import Crc32cCodec
from zardine.codecs.base import SizeLimit
from zardine.codecs.crc32c import crc32c
from zardine.errors import ChecksumError, ChunkDecodeError

CODEC = Crc32cCodec()


@given(data=st.binary(max_size=100))
def test_round_trip(data):
    for given_data in (data, bytearray(data), memoryview(bytearray(data))):
        encoded = CODEC.encode(given_data)
        assert len(encoded) == CODEC.encoded_size(len(data)) == CODEC.encoded_limit(len(data))
        assert bytes(CODEC.decode(encoded, SizeLimit(len(data), True))) == data
        assert crc32c(given_data) == crc32c(data)


@pytest.mark.parametrize(
    ("data", "checksum"),
    # RFC 3720, B.4, and the check value of the catalogue of CRC algorithms
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_known_checksums(data, checksum):
    assert CODEC.encode(data) == data + checksum.to_bytes(4, "little")


def test_every_change_is_noticed(h):
    encoded = CODEC.encode(b"a small sardine")
    assert h.count_refusals(CODEC, encoded, 15) == sum(1 for _ in h.damaged(encoded))


def test_the_error_names_both_checksums():
    with pytest.raises(ChecksumError, match="stored checksum e3069282, computed e3069283"):
        CODEC.decode(b"123456789\x82\x92\x06\xe3", SizeLimit(9, True))
    with pytest.raises(ChunkDecodeError, match="3 bytes are too few for a checksum"):
        CODEC.decode(b"abc", SizeLimit(9, False))
    with pytest.raises(ChunkDecodeError, match="expected 8"):
        CODEC.decode(CODEC.encode(b"123456789"), SizeLimit(8, True))


def test_decoding_copies_nothing():
    encoded = bytearray(CODEC.encode(b"abc"))
    view = CODEC.decode(encoded, SizeLimit(3, True))
    assert isinstance(view, memoryview)
    assert view.obj is encoded


def test_configuration(h):
    assert h.read("crc32c") == CODEC
    assert h.read({"name": "crc32c", "configuration": {}}) == CODEC
    assert CODEC.to_json() == {"name": "crc32c"}
    (problem,) = h.problems_of({"name": "crc32c", "configuration": {"location": "start"}})
    assert problem == "codecs[0].configuration.location: unknown member; known are: none"
