import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for
from zardine.json_document import Problems

RAW = {"name": "raw_bytes", "configuration": {"length_bytes": 3}}
TERMINATED = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}


def test_fill(fill_bytes):
    assert fill_bytes("r24", [1, 2, 255]) == b"\1\2\xff"
    assert fill_bytes("r24", "AQL/") == b"\1\2\xff"
    assert fill_bytes(RAW, "AQL/") == b"\1\2\xff"
    assert fill_bytes(RAW, [1, 2, 255]) == b"\1\2\xff"
    assert fill_bytes(TERMINATED, "YWI=") == b"ab\0"
    assert fill_bytes(TERMINATED, "") == b"\0\0\0"


@pytest.mark.parametrize(
    ("data_type", "fill", "place", "text"),
    [
        ("r24", [1, 2], "fill_value", "expected 3 bytes, found 2"),
        ("r24", [1, 2, 256], "fill_value[2]", "expected an integer from 0 to 255, found 256"),
        ("r24", [1, True, 3], "fill_value[1]", "expected an integer from 0 to 255, found true"),
        ("r24", 0, "fill_value", "expected base64 text or an array of integers"),
        (RAW, "AQ==", "fill_value", "expected 3 bytes, found 1"),
        (RAW, "A!L/", "fill_value", "expected base64 text"),
        (RAW, "é", "fill_value", "expected base64 text"),
        (TERMINATED, "AQIDBA==", "fill_value", "expected at most 3 bytes, found 4"),
        (TERMINATED, None, "fill_value", "expected base64 text"),
    ],
)
def test_fill_refused(fill_faults, data_type, fill, place, text):
    ((found, message),) = fill_faults(data_type, fill)
    assert found == place
    assert message.startswith(text)


@pytest.mark.parametrize("name", ["r", "r0", "r7", "r12", "r08", "r" + "9" * 5000, "r17179869184"])
def test_raw_bits_refused(type_faults, name):
    assert type_faults(name)[0][0] == "data_type"


@pytest.mark.parametrize("length", [0, -1, 2**24 + 1, 2**62, 1.0, True, "3", None, [3]])
@pytest.mark.parametrize("name", ["raw_bytes", "null_terminated_bytes", "fixed_length_utf32"])
def test_length_refused(type_faults, name, length):
    ((place, text),) = type_faults({"name": name, "configuration": {"length_bytes": length}})
    assert place == "data_type.configuration.length_bytes"
    assert text.startswith("expected an integer from 1 to 16777216")


def test_configuration_refused(type_faults):
    assert type_faults("raw_bytes")[0][0] == "data_type.configuration.length_bytes"
    ((place, text),) = type_faults({"name": "raw_bytes", "configuration": {"length_bytes": 3, "x": 1}})
    assert place == "data_type.configuration.x"
    assert text == 'unknown member; known are: "length_bytes"'


@given(st.binary(min_size=1, max_size=9))
def test_round_trips(data):
    for name in (f"r{8 * len(data)}", np.dtype(f"V{len(data)}")):
        data_type, problems = data_type_for(name), Problems()
        fill = data_type.cast_fill(data)
        again = data_type.parse_fill(data_type.fill_to_json(fill), "", problems)
        assert again is not None
        assert again.tobytes() == data
    terminated = data_type_for(f"S{len(data)}")
    assert terminated.fill_to_json(terminated.cast_fill(data)) == base64.b64encode(data.rstrip(b"\0")).decode()


def test_forms_are_small_for_long_elements(parse):
    data_type = parse({"name": "raw_bytes", "configuration": {"length_bytes": 2**24}})
    assert data_type.words == ((1, 2**24),)
    assert (data_type.item_size, data_type.needs_endian) == (2**24, False)
    assert data_type_for("r24").dtype == np.dtype("V3")
    assert data_type_for("r24") != data_type_for("V3")


def test_cast():
    for name in ("r24", "V3"):
        data_type = data_type_for(name)
        for value in (b"abc", bytearray(b"abc"), np.void(b"abc"), np.bytes_(b"abc")):
            assert data_type.cast_fill(value).tobytes() == b"abc"
        assert data_type.cast_fill(b"ab").tobytes() == b"ab\0"
        with pytest.raises(ValueError, match="expected 3 bytes, found 4"):
            data_type.cast_fill(b"abcd")
        with pytest.raises(TypeError):
            data_type.cast_fill("abc")
    terminated = data_type_for("S3")
    assert terminated.cast_fill("ab").tobytes() == b"ab\0"
    with pytest.raises(ValueError, match="at most 3"):
        terminated.cast_fill(b"abcd")
    with pytest.raises(TypeError):
        terminated.cast_fill("é")
