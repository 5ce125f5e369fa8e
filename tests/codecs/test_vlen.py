from contextlib import suppress

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zardine
from zardine.codecs import VLenBytesCodec, VLenUTF8Codec
from zardine.errors import ChunkDecodeError, CorruptionError, EncodeError
from zardine.kernel import KERNEL

TEXT, BYTES = VLenUTF8Codec(), VLenBytesCodec()
SHAPES = [(), (0,), (1,), (4,), (2, 2), (0, 3)]


def objects(values: list, shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


@given(data=st.data(), shape=st.sampled_from(SHAPES))
def test_text_round_trip(h, data, shape):
    size = int(np.prod(shape, dtype=int))
    characters = st.characters(codec="utf-8")
    values = data.draw(st.lists(st.text(characters, max_size=20), min_size=size, max_size=size))
    spec = h.spec("string", shape)
    encoded = TEXT.encode(np.array(values, np.dtypes.StringDType()).reshape(shape), spec)
    assert TEXT.encode(objects(values, shape), spec) == encoded
    decoded = TEXT.decode(encoded, spec)
    assert decoded.dtype == np.dtypes.StringDType()
    assert decoded.shape == shape
    assert decoded.reshape(-1).tolist() == values
    assert bytes(numcodecs.VLenUTF8().encode(objects(values, (size,)))) == encoded


@given(data=st.data(), shape=st.sampled_from(SHAPES))
def test_bytes_round_trip(h, data, shape):
    size = int(np.prod(shape, dtype=int))
    values = data.draw(st.lists(st.binary(max_size=20), min_size=size, max_size=size))
    spec = h.spec("bytes", shape)
    encoded = BYTES.encode(objects(values, shape), spec)
    decoded = BYTES.decode(memoryview(encoded), spec)
    assert decoded.dtype == object
    assert decoded.shape == shape
    assert decoded.reshape(-1).tolist() == values
    assert bytes(numcodecs.VLenBytes().encode(objects(values, (size,)))) == encoded


def test_golden_bytes(h):
    stored = b"\x03\0\0\0" + b"\x01\0\0\0a" + b"\0\0\0\0" + b"\x02\0\0\0\xc3\xa4"
    spec = h.spec("string", (3,))
    assert TEXT.encode(np.array(["a", "", "ä"], "U1"), spec) == stored
    assert TEXT.decode(stored, spec).tolist() == ["a", "", "ä"]
    assert BYTES.decode(stored, h.spec("bytes", (3,))).tolist() == [b"a", b"", b"\xc3\xa4"]


@pytest.mark.parametrize("filled", [0, 1, 7, 300])
@pytest.mark.parametrize("last", [b"", b"a", b"\0", bytes(9)])
def test_a_table_with_room_at_its_end(h, filled, last):
    values = [b"ab\0", b""] * filled + [last] + [b""] * 200
    spec = h.spec("bytes", (len(values),))
    encoded = BYTES.encode(objects(values, spec.shape), spec)
    assert encoded == bytes(numcodecs.VLenBytes().encode(objects(values, spec.shape)))
    assert BYTES.decode(encoded, spec).tolist() == values
    for damaged in (encoded[:-1], encoded[:-4], encoded + b"\0", encoded + bytes(4)):
        with pytest.raises(ChunkDecodeError):
            BYTES.decode(damaged, spec)


def test_c_order(h):
    array = np.array([["a", "b"], ["c", "d"]], np.dtypes.StringDType()).T
    decoded = TEXT.decode(TEXT.encode(array, h.spec("string", (2, 2))), h.spec("string", (2, 2)))
    assert decoded.tolist() == [["a", "c"], ["b", "d"]]


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (b"", "0 bytes are too few"),
        (b"\2\0\0", "3 bytes are too few"),
        (b"\3\0\0\0" + bytes(12), "3 elements, expected 2"),
        (b"\xff\xff\xff\xff", "4294967295 elements, expected 2"),
        (b"\2\0\0\0" + b"\0\0\0\0", "8 bytes are too few for 2 elements"),
        (b"\2\0\0\0" + b"\2\0\0\0ab" + b"\0\0", "before the length of element 1"),
        (b"\2\0\0\0" + b"\0\0\0\0" + b"\2\0\0\0a", "element 1 goes 1 bytes past the end"),
        (b"\2\0\0\0" + b"\xff\xff\xff\xff" + b"\0\0\0\0", "past the end"),
        (b"\2\0\0\0" + b"\0\0\0\0" + b"\1\0\0\0a" + b"x", "1 bytes follow the last element"),
    ],
)
def test_hostile_data(h, stored, text):
    for codec, name in ((TEXT, "string"), (BYTES, "bytes")):
        with pytest.raises(ChunkDecodeError, match=text) as raised:
            codec.decode(stored, h.spec(name, (2,)))
        assert raised.value.codec == codec.name


def test_damage_never_gives_another_error(h):
    spec = h.spec("string", (2,))
    for wrong in h.damaged(TEXT.encode(np.array(["ab", "ö"], "U2"), spec)):
        with suppress(ChunkDecodeError):
            assert TEXT.decode(wrong, spec).shape == (2,)


def test_invalid_utf8_is_refused(h):
    with pytest.raises(ChunkDecodeError, match="not UTF-8"):
        TEXT.decode(b"\1\0\0\0\1\0\0\0\xff", h.spec("string", (1,)))


@pytest.mark.parametrize("value", [None, 0, b"a", 1.5, float("nan")])
def test_what_is_no_text_is_not_encoded(h, value):
    with pytest.raises(EncodeError, match="expected strings"):
        TEXT.encode(objects(["a", value], (2,)), h.spec("string", (2,)))


def test_lone_surrogates_are_not_encoded(h):
    with pytest.raises(EncodeError, match="no UTF-8 form"):
        TEXT.encode(objects(["\ud800"], (1,)), h.spec("string", (1,)))


@pytest.mark.parametrize("value", [None, "a", 5, [1]])
def test_what_is_not_bytes_is_not_encoded(h, value):
    with pytest.raises(EncodeError, match="expected bytes"):
        BYTES.encode(objects([b"a", value], (2,)), h.spec("bytes", (2,)))
    assert BYTES.encode(objects([bytearray(b"a")], (1,)), h.spec("bytes", (1,))) == b"\1\0\0\0\1\0\0\0a"


def test_configuration(h):
    for codec, name, other in ((TEXT, "vlen-utf8", "bytes"), (BYTES, "vlen-bytes", "string")):
        assert h.read(name) == codec
        assert codec.to_json() == {"name": name}
        assert h.problems_of({"name": name, "configuration": {"a": 1}}) == [
            "codecs[0].configuration.a: unknown member; known are: none"
        ]
        assert f"not {other}" in codec.remark(h.spec(other, (1,)))
        assert "not int8" in codec.check(h.spec("int8", (1,)))
        assert codec.encoded_size(h.spec(other, (1,))) is codec.encoded_limit(h.spec(other, (1,))) is None
    assert TEXT.check(h.spec("string", (1,))) is TEXT.remark(h.spec("string", (1,))) is None
    assert BYTES.check(h.spec("variable_length_bytes", (1,))) is None


@pytest.mark.skipif(KERNEL is None, reason="without the kernel all elements are decoded")
@given(data=st.data())
def test_elements_are_replaced_as_they_are_stored(h, data):
    values = data.draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=9), min_size=1, max_size=12))
    start = data.draw(st.integers(0, len(values) - 1))
    new = data.draw(st.lists(st.text(max_size=3).map(ascii), min_size=1, max_size=len(values) - start))
    wanted = [*values[:start], *new, *values[start + len(new) :]]
    text, blobs = h.spec("string", (len(values),)), h.spec("bytes", (len(values),))
    stored = TEXT.encode(np.array(values, np.dtypes.StringDType()), text)
    assert TEXT.replaced(stored, text, start, np.array(new, np.dtypes.StringDType())) == TEXT.encode(
        np.array(wanted, np.dtypes.StringDType()), text
    )
    more = objects([each.encode() for each in new], (len(new),))
    replaced = BYTES.replaced(memoryview(stored), blobs, start, more)
    assert BYTES.decode(replaced, blobs).tolist() == [each.encode() for each in wanted]
    for bad in (stored[:-1], stored + b"\0", b"\xff" + stored[1:], stored[:2], b""):
        assert BYTES.replaced(bad, blobs, start, more) is None
    assert BYTES.replaced(stored, blobs, len(values), more) is None
    assert BYTES.replaced(stored, blobs, start, more[:0]) is None


@pytest.mark.parametrize("compressor", [None, zardine.codecs.ZstdCodec(), zardine.codecs.GzipCodec()])
@pytest.mark.parametrize("dtype", ["string", "bytes"])
def test_rows_of_a_chunk_are_written(tmp_path, compressor, dtype):
    fill = "" if dtype == "string" else b""

    def rows(numbers):
        found = ["x" * (number % 7) + str(number) for number in numbers]
        return objects(found if dtype == "string" else [each.encode() for each in found], (len(found),))

    array = zardine.create_array(tmp_path, shape=(50,), chunks=(20,), dtype=dtype, compressors=compressor)
    wanted = objects([fill] * 50, (50,))
    rng = np.random.default_rng(0)
    for _ in range(40):
        start, stop = sorted(rng.integers(0, 51, 2).tolist())
        wanted[start:stop] = rows(rng.integers(0, 99, stop - start).tolist()) if rng.random() < 0.8 else fill
        array[start:stop] = wanted[start:stop]
        assert array[...].tolist() == wanted.tolist()
    array[3:4] = objects([fill], (1,))
    array[...] = objects([fill] * 50, (50,))
    assert not [each for each in (tmp_path / "c").rglob("*") if each.is_file()]
    array[0:20] = rows(range(20))
    (chunk,) = [each for each in (tmp_path / "c").rglob("*") if each.is_file()]
    chunk.write_bytes(chunk.read_bytes()[:-3])
    with pytest.raises(CorruptionError, match="c/0"):
        array[2:5] = rows(range(3))
    array[0:20] = rows(range(20))
    assert array[:20].tolist() == rows(range(20)).tolist()
