from fractions import Fraction

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zardine.codecs import BitRoundCodec
from zardine.codecs.numcodecs import BitRound


def encode(h, array, keepbits, name=None):
    spec = h.spec(name or array.dtype, array.shape)
    codec = BitRoundCodec(keepbits)
    assert codec.check(spec) is None
    encoded = codec.encode(array, spec)
    assert encoded.dtype == array.dtype
    assert encoded.shape == array.shape
    assert codec.decode(encoded, spec) is encoded
    return encoded


@given(data=st.data(), width=st.sampled_from([16, 32, 64]))
def test_floats_as_numcodecs_rounds_them(h, data, width):
    array = data.draw(hnp.arrays(f"f{width // 8}", hnp.array_shapes(min_dims=0, min_side=0)))
    array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    keepbits = data.draw(st.integers(1, {16: 10, 32: 23, 64: 52}[width]))
    expected = numcodecs.BitRound(keepbits).encode(np.atleast_1d(array)).view(array.dtype).reshape(array.shape)
    assert encode(h, array, keepbits).tobytes() == expected.tobytes()


def test_the_samples_of_the_specification(h):
    floats = np.array([0, 0.1, 1.2, 12.3, 123.4, 1234.5, np.nan, np.inf, -np.inf], np.float32)
    expected = [0, 0.1015625, 1.25, 12, 120, 1280, np.nan, np.inf, -np.inf]
    assert np.array_equal(encode(h, floats, 3), np.array(expected, np.float32), equal_nan=True)
    integers = np.array([0, 1, 10, 11, 100, 123, 200, 208, 209, 255], np.uint8)
    assert encode(h, integers, 3).tolist() == [0, 1, 10, 12, 96, 128, 192, 192, 224, 224]


def rounded(value: int, keep: int, low: int, high: int) -> int:
    drop = max(abs(value).bit_length() - keep, 0)
    step = 1 << drop
    magnitude = round(Fraction(abs(value), step)) * step  # ties to even
    result = -magnitude if value < 0 else magnitude
    return result if low <= result <= high else (-1 if value < 0 else 1) * (abs(value) // step * step)


@given(data=st.data(), kind=st.sampled_from("iu"), width=st.sampled_from([1, 2, 4, 8]), keep=st.integers(1, 64))
def test_integers_are_rounded_by_magnitude(h, data, kind, width, keep):
    limits = np.iinfo(f"{kind}{width}")
    edges = st.sampled_from([limits.min, limits.max, limits.max - 1, 0, 1])
    values = data.draw(st.lists(st.one_of(edges, st.integers(int(limits.min), int(limits.max))), max_size=20))
    array = np.array(values, f"{kind}{width}")
    expected = [rounded(int(value), keep, int(limits.min), int(limits.max)) for value in array]
    assert encode(h, array, keep).tolist() == expected


def test_nan_stays_nan(h):
    for bits in (0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001, 0x7FC00000):
        array = np.array([bits], np.uint32).view(np.float32)
        assert encode(h, array, 1).tobytes() == array.tobytes()


def test_other_types(h):
    times = np.array(["NaT", "1970-01-01T00:00:00.001234567"], "M8[ns]")
    assert encode(h, times, 3).view(np.int64).tolist() == [np.iinfo(np.int64).min, rounded(1234567, 3, 0, 2**63)]
    pair = np.array([1.2 - 12.3j], np.complex64)
    assert encode(h, pair, 3).tolist() == [1.25 - 12j]
    spec = h.spec("bfloat16", (2,))
    brain = np.array([1.2, 123.4], np.float32).astype(spec.dtype)
    assert encode(h, brain, 3, "bfloat16").astype(float).tolist() == [1.25, 120]
    assert BitRoundCodec(2).encoded_spec(h.spec("uint8", (1,), 11)).fill == 12


def test_configuration(h):
    document = {"name": "bitround", "configuration": {"keepbits": 10}}
    assert h.read(document) == BitRoundCodec(10)
    assert BitRoundCodec(keepbits=10).to_json() == document
    assert h.problems_of("bitround") == ["codecs[0].configuration.keepbits: required member is missing"]
    (problem,) = h.problems_of({"name": "bitround", "configuration": {"keepbits": 0}})
    assert "codecs[0].configuration.keepbits: expected an integer from 1" in problem
    old = {"name": "numcodecs.bitround", "configuration": {"keepbits": 0}}
    assert h.read(old) == BitRound(0)
    assert BitRound(0).to_json() == old


@pytest.mark.parametrize(
    ("keepbits", "name", "text"),
    [
        (3, "bool", "cannot round data type bool"),
        (3, "string", "cannot round data type string"),
    ],
)
def test_check(h, keepbits, name, text):
    assert text in BitRoundCodec(keepbits).check(h.spec(name, (1,)))


@pytest.mark.parametrize(
    ("keepbits", "name", "text"),
    [
        (11, "float16", "cannot keep 11 bits of float16, whose mantissa has 10"),
        (53, "complex128", "whose mantissa has 52"),
    ],
)
def test_more_bits_than_there_are_leave_all_as_it_is(h, keepbits, name, text):
    codec, spec = BitRoundCodec(keepbits), h.spec(name, (3,))
    assert codec.check(spec) is None
    assert text in codec.remark(spec)
    array = np.array([1 / 3, -2 / 3, 0.1], spec.dtype)
    assert codec.encode(array, spec).tobytes() == array.tobytes()
    assert BitRoundCodec(keepbits - 1).remark(spec) is None


def test_old_name_without_bits_is_for_floats_only(h):
    assert BitRound(0).check(h.spec("float32", (1,))) is None
    assert "at least 1 bit" in BitRound(0).check(h.spec("int32", (1,)))
    assert BitRound(0).encode(np.array([1.2, 1.6], np.float32), h.spec("float32", (2,))).tolist() == [1, 2]
