import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for
from zardine.json_document import Problems

GOLDEN = [
    ("float16", "NaN", 0x7E00),
    ("float32", "NaN", 0x7FC00000),
    ("float64", "NaN", 0x7FF8000000000000),
    ("float16", "Infinity", 0x7C00),
    ("float32", "-Infinity", 0xFF800000),
    ("float32", "0x7fc00001", 0x7FC00001),
    ("float32", "0xFFC00000", 0xFFC00000),
    ("float32", "0x7f800001", 0x7F800001),  # a signalling NaN
    ("float32", "0x3f800000", 0x3F800000),
    ("float16", "0xfe01", 0xFE01),
    ("float64", "0x7ff8000000000123", 0x7FF8000000000123),
    ("float64", 1, 0x3FF0000000000000),
    ("float64", -0.0, 0x8000000000000000),
    ("float32", -0.0, 0x80000000),
    ("float32", 0.1, 0x3DCCCCCD),
    ("float32", 16777217, 0x4B800000),
    ("float64", 2**53 + 1, 0x4340000000000000),
    ("float32", 3.4028235677973362e38, 0x7F7FFFFF),  # just below half a step over the largest
    ("float16", 65519, 0x7BFF),
    ("float32", 1e-50, 0),
]

REFUSED = [
    ("float32", math.inf, "expected a number within the range of float32, found Infinity"),
    ("float64", math.inf, "expected a number within the range of float64"),  # 1e400, after json.loads
    ("float64", math.nan, "expected a number within the range of float64"),
    ("float32", "0x7fc0", 'expected "0x" and 8 hexadecimal digits for float32, found "0x7fc0"'),
    ("float16", "0x7fc00000", 'expected "0x" and 4 hexadecimal digits'),
    ("float32", "0x", 'expected a number, "NaN"'),
    ("float32", "0x7fc0000g", 'expected a number, "NaN"'),
    ("float32", "0x７fc00000", 'expected a number, "NaN"'),
    ("float32", "0X7fc00000", 'expected a number, "NaN"'),
    ("float32", "nan", 'expected a number, "NaN"'),
    ("float32", "1.5", 'expected a number, "NaN"'),
    ("float32", True, 'expected a number, "NaN"'),
    ("float32", None, 'expected a number, "NaN"'),
    ("float32", [1.0], 'expected a number, "NaN"'),
]


@pytest.mark.parametrize(("name", "fill", "bits"), GOLDEN)
def test_fill(fill_bytes, name, fill, bits):
    data = fill_bytes(name, fill)
    assert int.from_bytes(data, sys.byteorder) == bits


@pytest.mark.parametrize(("name", "fill", "text"), REFUSED)
def test_fill_refused(fill_faults, name, fill, text):
    ((place, message),) = fill_faults(name, fill)
    assert place == "fill_value"
    assert message.startswith(text)


@pytest.mark.parametrize("size", [2, 4, 8])
@given(data=st.data())
def test_every_bit_pattern_survives(size, data):
    bits = data.draw(st.integers(0, 256**size - 1))
    data_type, problems = data_type_for(f"float{8 * size}"), Problems()
    fill = np.array(bits, f"u{size}").view(data_type.dtype)
    again = data_type.parse_fill(data_type.fill_to_json(fill), "", problems)
    assert again is not None
    assert again.tobytes() == fill.tobytes()
    assert data_type.cast_fill(fill[()]).tobytes() == fill.tobytes()


def test_json_form():
    data_type = data_type_for("float32")
    for bits, form in [(0x7FC00000, "NaN"), (0xFFC00000, "0xffc00000"), (0x7F800000, "Infinity"), (0, 0.0)]:
        assert data_type.fill_to_json(np.array(bits, "u4").view("f4")) == form
    assert math.copysign(1, data_type.fill_to_json(np.array(-0.0, "f4"))) == -1
    assert data_type.fill_to_json(np.array(0.1, "f4")) == float(np.float32(0.1))


def test_cast():
    data_type = data_type_for("float32")
    for value in (1.5, np.float64(1.5), np.float16(1.5), np.array(1.5), np.longdouble(1.5)):
        assert data_type.cast_fill(value).tobytes() == np.float32(1.5).tobytes()
    for value in (np.nan, "NaN", np.float64("nan"), np.float16("nan")):
        assert data_type.cast_fill(value).view("u4") == 0x7FC00000
    assert data_type.cast_fill("0x7fc00001").view("u4") == 0x7FC00001
    assert data_type.cast_fill(-np.inf)[()] == -np.inf
    assert data_type.cast_fill(True)[()] == 1
    for wrong in (1e39, 10**400, "one", "1.5"):
        with pytest.raises(ValueError, match="float32"):
            data_type.cast_fill(wrong)
    for wrong in (1j, None, b"1", (1,), np.zeros(2), np.datetime64("NaT")):
        with pytest.raises(TypeError):
            data_type.cast_fill(wrong)


def test_form():
    forms = [(data_type_for(f"f{size}").words, data_type_for(f"f{size}").bits) for size in (2, 4, 8)]
    assert forms == [(((2, 1),), 16), (((4, 1),), 32), (((8, 1),), 64)]
