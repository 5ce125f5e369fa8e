import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for
from zardine.json_document import Problems


def test_fill(fill_bytes):
    assert fill_bytes("complex64", [1, 2]) == np.complex64(1 + 2j).tobytes()
    assert fill_bytes("complex64", ["0x7fc00001", -0.0]) == np.array([0x7FC00001, 0x80000000], "u4").tobytes()
    assert fill_bytes("complex128", ["-Infinity", "NaN"]) == np.array([-np.inf, np.nan]).tobytes()
    assert fill_bytes("complex_float32", [1, 2]) == np.complex64(1 + 2j).tobytes()
    assert fill_bytes("complex_float16", [1, "0x7e01"]) == np.array([0x3C00, 0x7E01], "u2").tobytes()


@pytest.mark.parametrize(
    ("fill", "place", "text"),
    [
        (1.0, "fill_value", "expected an array of two numbers"),
        ([1], "fill_value", "expected an array of two numbers"),
        ([1, 2, 3], "fill_value", "expected an array of two numbers"),
        ("NaN", "fill_value", "expected an array of two numbers"),
        ([1, "x"], "fill_value[1]", 'expected a number, "NaN"'),
        ([float("inf"), 0], "fill_value[0]", "expected a number within the range of float32"),
    ],
)
def test_fill_refused(fill_faults, fill, place, text):
    ((found, message),) = fill_faults("complex64", fill)
    assert found == place
    assert message.startswith(text)


def test_both_parts_are_looked_at(fill_faults):
    assert [place for place, _ in fill_faults("complex64", [None, None])] == ["fill_value[0]", "fill_value[1]"]


@given(st.binary(min_size=16, max_size=16))
def test_every_bit_pattern_survives(data):
    data_type, problems = data_type_for("complex128"), Problems()
    fill = np.frombuffer(data, "c16").reshape(())
    again = data_type.parse_fill(data_type.fill_to_json(fill), "", problems)
    assert again is not None
    assert again.tobytes() == data
    assert data_type.cast_fill(fill[()]).tobytes() == data


def test_names_and_forms():
    for name, dtype, size in [("complex64", "c8", 4), ("complex_float32", "c8", 4), ("complex_float64", "c16", 8)]:
        data_type = data_type_for(name)
        assert (data_type.to_json(), data_type.dtype) == (name, np.dtype(dtype))
        assert (data_type.words, data_type.components, data_type.bits) == (((size, 2),), 2, 8 * size)
    half = data_type_for("complex_float16")
    assert half.dtype == np.dtype([("real", "f2"), ("imag", "f2")])
    assert (half.words, half.components, half.bits) == (((2, 2),), 2, 16)
    assert data_type_for("complex64") != data_type_for("complex_float32")


def test_cast():
    data_type = data_type_for("complex64")
    for value in (1 + 2j, np.complex128(1 + 2j), (1, 2), [1.0, np.int8(2)], np.array(1 + 2j)):
        assert data_type.cast_fill(value)[()] == 1 + 2j
    assert data_type.cast_fill(3)[()] == 3
    assert data_type_for("complex_float16").cast_fill(1 + 2j).tolist() == (1, 2)
    with pytest.raises(ValueError, match="range"):
        data_type.cast_fill(complex(0, 1e39))
    for wrong in ("1+2j", None, (1, 2, 3)):
        with pytest.raises(TypeError):
            data_type.cast_fill(wrong)
