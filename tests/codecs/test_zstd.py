import pytest
import zstandard

from zardine.codecs import ZstdCodec
from zardine.codecs.base import SizeLimit
from zardine.codecs.zstd_frames import zstd_frames
from zardine.errors import ChecksumError, ChunkDecodeError

DATA = bytes(range(251)) * 40
EXACT = SizeLimit(len(DATA), True)
SKIPPABLE = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"


def streamed(data: bytes) -> bytes:
    """One frame that does not say its size."""
    writer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return (
        writer.compress(data[:999])
        + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        + writer.compress(data[999:])
        + writer.flush()
    )


def test_frames_of_unknown_size():
    encoded = streamed(DATA)
    assert zstandard.get_frame_parameters(encoded).content_size == zstandard.CONTENTSIZE_UNKNOWN
    assert ZstdCodec().decode(encoded, EXACT) == DATA
    assert ZstdCodec().decode(encoded, SizeLimit(len(DATA), False)) == DATA
    for limit in (SizeLimit(len(DATA) - 1, False), SizeLimit(0, False), SizeLimit(len(DATA) + 1, True)):
        with pytest.raises(ChunkDecodeError):
            ZstdCodec().decode(encoded, limit)
    assert ZstdCodec().decode(streamed(b""), SizeLimit(0, True)) == b""


def test_several_and_skippable_frames():
    first, second = ZstdCodec().encode(DATA[:500]), streamed(DATA[500:])
    both = SKIPPABLE + bytes(first) + SKIPPABLE + second + SKIPPABLE + bytes(ZstdCodec().encode(b""))
    assert ZstdCodec().decode(both, EXACT) == DATA
    assert [frame.nbytes for frame in zstd_frames(both)] == [500, None, 0]
    assert ZstdCodec().decode(SKIPPABLE, SizeLimit(0, True)) == b""
    for wrong in (both[:-1], both + b"\0", both + SKIPPABLE[:-1], SKIPPABLE[:6]):
        with pytest.raises(ChunkDecodeError):
            ZstdCodec().decode(wrong, EXACT)


def test_checksum_is_verified():
    encoded = bytearray(ZstdCodec(checksum=True).encode(DATA))
    encoded[-1] ^= 1
    with pytest.raises(ChecksumError, match="checksum"):
        ZstdCodec().decode(encoded, EXACT)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65791, 65792, 70000, 300000])
def test_frame_headers_of_every_length(size):
    data = bytes(size)
    for level in (-7, 1, 22):
        encoded = ZstdCodec(level, True).encode(data)
        (frame,) = zstd_frames(encoded)
        assert (frame.start, frame.stop, frame.nbytes) == (0, len(encoded), size)
        assert ZstdCodec().decode(encoded, SizeLimit(size, True)) == data


def test_a_size_that_the_blocks_do_not_have_is_refused():
    encoded = bytearray(zstandard.ZstdCompressor().compress(bytes(200)))
    (frame,) = zstd_frames(encoded)
    at = encoded.index(200, 4)
    encoded[at] = 201
    with pytest.raises(ChunkDecodeError):
        ZstdCodec().decode(encoded, SizeLimit(1000, False))
    assert frame.nbytes == 200


def test_frames_that_need_a_dictionary_are_refused():
    samples = [f"{i} sardines in tin {i % 7}".encode() * 3 for i in range(2000)]
    dictionary = zstandard.train_dictionary(4096, samples)
    encoded = zstandard.ZstdCompressor(dict_data=dictionary).compress(samples[0])
    with pytest.raises(ChunkDecodeError, match="dictionary"):
        ZstdCodec().decode(encoded, SizeLimit(1000, False))


def test_configuration(h):
    assert h.read({"name": "zstd", "configuration": {"level": 3, "checksum": False}}) == ZstdCodec(3)
    assert ZstdCodec(-131072).to_json() == {"name": "zstd", "configuration": {"level": -131072, "checksum": False}}
    assert ZstdCodec(3, True).to_json() == {"name": "zstd", "configuration": {"level": 3, "checksum": True}}


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, ["codecs[0].configuration.level: required member is missing"]),
        ({"level": 23}, ["codecs[0].configuration.level: expected an integer from -131072 to 22, found 23"]),
        (
            {"level": "3", "checksum": 1},
            [
                'codecs[0].configuration.level: expected an integer from -131072 to 22, found "3"',
                "codecs[0].configuration.checksum: expected true or false, found 1",
            ],
        ),
    ],
)
def test_refusals(h, configuration, expected):
    assert h.problems_of({"name": "zstd", "configuration": configuration}) == expected
