import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for
from zardine.json_document import Problems

NAMES = [f"{prefix}int{bits}" for prefix in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("name", NAMES)
def test_form(name):
    data_type = data_type_for(name)
    info = np.iinfo(name)
    assert data_type.dtype == np.dtype(name)
    assert data_type.words == ((info.bits // 8, 1),)
    assert data_type.bits == info.bits
    assert data_type.needs_endian == (info.bits > 8)
    assert data_type.to_json() == name


@pytest.mark.parametrize("name", NAMES)
def test_limits(fill_bytes, fill_faults, name):
    info = np.iinfo(name)
    for value in (info.min, info.max, 0):
        assert fill_bytes(name, value) == np.array(value, name).tobytes()
    for value in (info.min - 1, info.max + 1, 10**400):
        ((place, text),) = fill_faults(name, value)
        assert place == "fill_value"
        assert text.startswith(f"expected an integer from {info.min} to {info.max} for {name}, found ")
        with pytest.raises(ValueError, match="range"):
            data_type_for(name).cast_fill(value)


@pytest.mark.parametrize("fill", [1.0, True, "1", "NaN", None, [1], {}, float("nan")])
def test_fill_refused(fill_faults, fill):
    ((place, text),) = fill_faults("int16", fill)
    assert place == "fill_value"
    assert text.startswith("expected an integer from -32768 to 32767")


@given(st.integers(0, 2**64 - 1))
def test_64_bits_survive(number):
    data_type, problems = data_type_for("uint64"), Problems()
    fill = data_type.parse_fill(number, "", problems)
    assert fill is not None
    assert data_type.fill_to_json(fill) == number
    assert data_type.fill_to_json(data_type.cast_fill(np.uint64(number))) == number


def test_cast():
    uint8 = data_type_for("uint8")
    for value in (7, 7.0, np.int64(7), np.float32(7), np.array(7), np.longdouble(7)):
        assert uint8.cast_fill(value)[()] == 7
    for wrong in (300, -1, 0.5, np.nan, np.inf, np.float16(0.5)):
        with pytest.raises(ValueError, match="uint8"):
            uint8.cast_fill(wrong)
    for wrong in ("7", np.str_("7")):  # as zarr-python has it
        with pytest.raises(ValueError, match="uint8: expected a whole number"):
            uint8.cast_fill(wrong)
    for wrong in (None, 1j, b"7", [7], np.array([7]), np.datetime64(7, "s")):
        with pytest.raises(TypeError):
            uint8.cast_fill(wrong)


def test_repair_is_free():
    array = np.arange(3)
    assert data_type_for("int64").repair_bits(array) is array
