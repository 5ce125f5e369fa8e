import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zardine.codecs import BytesCodec, Endian
from zardine.errors import ChunkDecodeError

ENDIANS = ("little", "big")
SCALARS = st.one_of(
    hnp.integer_dtypes(endianness="="),
    hnp.unsigned_integer_dtypes(endianness="="),
    hnp.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="=", sizes=(64, 128)),
    hnp.boolean_dtypes(),
    hnp.unicode_string_dtypes(endianness="=", min_len=1),
)
STRUCTS = st.lists(SCALARS, min_size=1, max_size=4).map(
    lambda types: np.dtype([(f"f{i}", t) for i, t in enumerate(types)])
)


@given(
    array=hnp.arrays(st.one_of(SCALARS, STRUCTS), hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=5)),
    endian=st.sampled_from(ENDIANS),
)
def test_round_trip_as_numpy_stores_it(h, array, endian):
    spec, codec = h.spec_like(array), BytesCodec(endian)
    encoded = codec.encode(array, spec)
    assert bytes(encoded) == array.astype(array.dtype.newbyteorder(endian)).tobytes()
    assert len(encoded) == codec.encoded_size(spec) == codec.encoded_limit(spec)
    decoded = codec.decode(encoded, spec)
    assert decoded.dtype == array.dtype
    assert decoded.shape == array.shape
    assert decoded.tobytes() == array.tobytes()


def test_golden_bytes(h):
    array = np.array([[1, 258]], np.int16)
    spec = h.spec_like(array)
    assert bytes(BytesCodec("little").encode(array, spec)) == b"\x01\x00\x02\x01"
    assert bytes(BytesCodec("big").encode(array, spec)) == b"\x00\x01\x01\x02"
    pair = np.array([1 + 2j], np.complex64)
    assert bytes(BytesCodec("big").encode(pair, h.spec_like(pair))) == b"\x3f\x80\x00\x00\x40\x00\x00\x00"
    record = np.array([(1, 2, 3)], [("a", "<i4"), ("b", "u1"), ("c", "<i2")])
    assert bytes(BytesCodec("big").encode(record, h.spec_like(record))) == b"\0\0\0\1\2\0\3"


@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_are_stored_in_c_order_whatever_the_memory(h, order):
    array = np.asarray(np.arange(6, dtype=np.uint8).reshape(2, 3), order=order)
    assert bytes(BytesCodec().encode(array, h.spec_like(array))) == bytes(range(6))
    assert bytes(BytesCodec().encode(array[:, ::-1], h.spec_like(array))) == b"\2\1\0\5\4\3"


def test_nothing_is_copied_without_a_swap(h):
    array = np.arange(4, dtype=np.int32)
    spec, codec = h.spec_like(array), BytesCodec()
    assert np.shares_memory(np.frombuffer(codec.encode(array, spec), np.uint8), array)
    stored = array.astype("<i4").tobytes()
    decoded = codec.decode(stored, spec)
    assert not decoded.flags.writeable
    assert np.shares_memory(decoded, np.frombuffer(stored, np.uint8))


@pytest.mark.parametrize("length", [0, 11, 13, 24])
def test_wrong_length_is_refused_before_anything_else(h, length):
    with pytest.raises(ChunkDecodeError, match=f"{length} bytes, expected 12") as raised:
        BytesCodec().decode(bytes(length), h.spec("int32", (3,)))
    assert raised.value.codec == "bytes"


def test_unaligned_data_can_be_decoded(h):
    data = memoryview(b"x" + np.arange(3, dtype="<f8").tobytes())[1:]
    assert BytesCodec().decode(data, h.spec("float64", (3,))).tolist() == [0, 1, 2]


def test_ignored_bits_become_regular(h):
    assert BytesCodec().decode(b"\0\1\2\xff", h.spec("bool", (4,))).tolist() == [False, True, True, True]
    pytest.importorskip("ml_dtypes")
    decoded = BytesCodec(None).decode(b"\x0f\xf7", h.spec("int4", (2,)))
    assert decoded.astype(int).tolist() == [-1, 7]


def test_configuration(h):
    assert h.read({"name": "bytes"}) == BytesCodec(endian=None)
    assert h.read("bytes").to_json() == {"name": "bytes"}
    assert h.read({"name": "endian", "configuration": {"endian": "big"}}) == BytesCodec("big")
    assert BytesCodec().to_json() == {"name": "bytes", "configuration": {"endian": "little"}}
    assert BytesCodec(Endian.big) == BytesCodec("big")
    assert type(BytesCodec(Endian.big).endian) is str


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"endian": "middle"}, 'codecs[0].configuration.endian: expected one of "big", "little", found "middle"'),
        ({"endian": None}, "codecs[0].configuration.endian: expected one of"),
        ({"order": 1}, "codecs[0].configuration.order: unknown member"),
    ],
)
def test_refusals(h, configuration, expected):
    (problem,) = h.problems_of({"name": "bytes", "configuration": configuration})
    assert expected in problem


def test_constructor_refuses():
    with pytest.raises(ValueError, match="BytesCodec: endian: expected one of"):
        BytesCodec("middle")


def test_check(h):
    assert BytesCodec(None).check(h.spec("uint8", (1,))) is None
    assert BytesCodec(None).check(h.spec([("a", "u1"), ("b", "?")], (1,))) is None
    assert 'needs "endian"' in BytesCodec(None).check(h.spec("int16", (1,)))
    assert 'needs "endian"' in BytesCodec(None).check(h.spec([("a", "u1"), ("b", "i2")], (1,)))
    assert "varying length" in BytesCodec().check(h.spec("string", (1,)))


def test_legacy_struct_without_byte_order_is_little_endian(h):
    legacy = {"name": "structured", "configuration": {"fields": [["a", "int16"]]}}
    spec = h.spec(legacy, (1,))
    with pytest.warns(UserWarning, match="little endian is assumed"):
        assert BytesCodec(None).resolve(spec) == BytesCodec("little")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BytesCodec("big").resolve(spec) == BytesCodec("big")
