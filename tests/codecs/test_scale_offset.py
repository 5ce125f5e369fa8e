from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.codecs import ScaleOffset
from zardine.errors import ChunkDecodeError, EncodeError

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)]


@given(data=st.data(), name=st.sampled_from(INTEGERS))
def test_integers_are_exact_or_refused(h, data, name):
    spec = h.spec(name, (3,))
    low, high = spec.data_type.low, spec.data_type.high
    number = st.one_of(st.integers(low, high), st.integers(max(low, -3), min(high, 3)), st.sampled_from([low, high]))
    offset, scale = data.draw(number), data.draw(number.filter(bool))
    values = data.draw(st.lists(number, min_size=3, max_size=3))
    codec = ScaleOffset(offset=offset, scale=scale)
    array = np.array(values).astype(spec.dtype) if "int2" in name or "int4" in name else np.array(values, spec.dtype)
    steps = [step for value in values for step in (value - offset, (value - offset) * scale)]
    if all(low <= step <= high for step in steps):
        encoded = codec.encode(array, spec)
        assert [int(value) for value in encoded] == steps[1::2]
        assert codec.decode(encoded, spec).tobytes() == array.tobytes()
    else:
        with pytest.raises(EncodeError, match="is out of the range of"):
            codec.encode(array, spec)
    quotients = [Fraction(value, scale) for value in values]
    results = [quotient + offset for quotient in quotients]
    if all(part.denominator == 1 and low <= part <= high for part in quotients + results):
        assert [int(value) for value in codec.decode(array, spec)] == results
    else:
        with pytest.raises(ChunkDecodeError):
            codec.decode(array, spec)


@given(values=st.lists(st.floats(-1e6, 1e6, width=32)), offset=st.floats(-100, 100, width=16))
def test_floats_use_the_arithmetic_of_their_type(h, values, offset):
    array = np.array(values, np.float32)
    spec = h.spec_like(array)
    codec = ScaleOffset(offset=offset, scale=0.1)
    encoded = codec.encode(array, spec)
    assert encoded.dtype == np.float32
    assert np.array_equal(encoded, (array - np.float32(offset)) * np.float32(0.1))
    assert np.array_equal(codec.decode(encoded, spec), encoded / np.float32(0.1) + np.float32(offset))


def test_short_floats(h):
    spec = h.spec("bfloat16", (2,))
    array = np.array([1.0, 3.0]).astype(spec.dtype)
    codec = ScaleOffset(offset=1, scale=0.5)
    assert codec.encode(array, spec).astype(float).tolist() == [0, 1]
    assert codec.decode(codec.encode(array, spec), spec).astype(float).tolist() == [1, 3]
    half = np.array([60000, np.inf, np.nan], np.float16)
    assert np.array_equal(ScaleOffset(scale=0.5).encode(half, h.spec_like(half)), half / 2, equal_nan=True)
    with pytest.raises(EncodeError, match="out of the range of float16"):
        ScaleOffset(scale=2).encode(half, h.spec_like(half))
    with pytest.raises(EncodeError, match="out of range"):
        ScaleOffset(scale=1e30).encode(np.array([1e30], np.float32), h.spec("float32", (1,)))


def test_fill_value_is_encoded(h):
    spec = h.spec("uint16", (2, 2), 1005)
    codec = ScaleOffset(offset=1000)
    assert codec.encoded_spec(spec).fill == 5
    assert codec.encoded_spec(spec).fill.shape == ()
    assert codec.check(spec) is None
    assert "cannot encode the fill value" in codec.check(h.spec("uint16", (1,), 3))
    assert np.isnan(ScaleOffset(offset=1, scale=2).encoded_spec(h.spec("float64", (1,), np.nan)).fill)


def test_shapes(h):
    array = np.asfortranarray(np.arange(6).reshape(2, 3))
    codec = ScaleOffset(offset=1, scale=3)
    assert np.array_equal(codec.encode(array, h.spec_like(array)), (array - 1) * 3)
    for shape in ((), (0,)):
        empty = np.full(shape, 4)
        assert np.array_equal(codec.decode(codec.encode(empty, h.spec_like(empty)), h.spec_like(empty)), empty)


def test_configuration(h):
    document = {"name": "scale_offset", "configuration": {"offset": 5, "scale": 0.1}}
    assert h.read(document) == ScaleOffset(offset=5, scale=0.1)
    assert h.read(document).to_json() == document
    assert h.read("scale_offset") == ScaleOffset()
    assert ScaleOffset().to_json() == {"name": "scale_offset"}
    assert ScaleOffset(scale=np.float64(2)).to_json()["configuration"] == {"scale": 2.0}
    hexadecimal = {"name": "scale_offset", "configuration": {"scale": "0x40000000"}}
    assert h.read(hexadecimal).to_json() == hexadecimal
    assert h.read(hexadecimal).encode(np.array([3], np.float32), h.spec("float32", (1,))).tolist() == [6]


@pytest.mark.parametrize(
    ("configuration", "place"),
    [({"offset": None}, "offset"), ({"scale": [1]}, "scale"), ({"scale": True}, "scale"), ({"dtype": "f4"}, "dtype")],
)
def test_refusals(h, configuration, place):
    (problem,) = h.problems_of({"name": "scale_offset", "configuration": configuration})
    assert problem.startswith(f"codecs[0].configuration.{place}: ")


@pytest.mark.parametrize(
    ("codec", "name", "text"),
    [
        (ScaleOffset(), "bool", "cannot compute with data type bool"),
        (ScaleOffset(offset=0.5), "int32", "offset: expected an integer"),
        (ScaleOffset(offset=-1), "uint8", "offset: expected an integer from 0 to 255"),
        (ScaleOffset(scale=0), "int8", "scale: 0 cannot be undone"),
        (ScaleOffset(scale=0.0), "float32", "scale: 0 cannot be undone"),
        (ScaleOffset(scale="much"), "float32", "scale: expected a number"),
    ],
)
def test_check(h, codec, name, text):
    assert text in codec.check(h.spec(name, (1,)))
