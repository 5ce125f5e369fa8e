import numpy as np
import pytest

from zardine.data_types import data_type_for

BOOL = data_type_for("bool")


def test_fill(fill_bytes):
    assert fill_bytes("bool", True) == b"\1"
    assert fill_bytes("bool", False) == b"\0"
    assert BOOL.default_fill()[()] == np.False_


@pytest.mark.parametrize("fill", [0, 1, "true", None, [True], 1.0])
def test_fill_refused(fill_faults, fill):
    ((place, text),) = fill_faults("bool", fill)
    assert place == "fill_value"
    assert text.startswith("expected true or false, found ")


def test_cast():
    for value in (True, 1, np.True_, np.uint8(1), np.array(True)):
        assert BOOL.cast_fill(value).tobytes() == b"\1"
    for wrong in (2, -1, 0.5, 1.0):
        with pytest.raises(ValueError, match="True or False"):
            BOOL.cast_fill(wrong)
    for wrong in ("true", None, [True]):
        with pytest.raises(TypeError):
            BOOL.cast_fill(wrong)


def test_repair():
    regular = np.array([True, False])
    assert BOOL.repair_bits(regular) is regular
    stored = np.array([[0, 1], [2, 255]], np.uint8).view(bool)
    repaired = BOOL.repair_bits(stored)
    assert repaired.dtype == bool
    assert repaired.view(np.uint8).tolist() == [[0, 1], [1, 1]]
    assert BOOL.repair_bits(stored[::-1, ::-1]).tolist() == [[True, True], [True, False]]
    assert BOOL.repair_bits(np.zeros((0, 3), bool)).shape == (0, 3)
    stored.flags.writeable = False
    assert BOOL.repair_bits(stored).all(axis=1).tolist() == [False, True]


def test_form():
    assert (BOOL.words, BOOL.bits, BOOL.item_size, BOOL.needs_endian) == (((1, 1),), 1, 1, False)
