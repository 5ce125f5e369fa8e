import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for
from zardine.json_document import Problems


@given(st.binary(max_size=20))
def test_round_trips(data):
    for name in ("bytes", "variable_length_bytes"):
        data_type, problems = data_type_for(name), Problems()
        fill = data_type.cast_fill(data)
        assert fill.dtype == object
        text = data_type.fill_to_json(fill)
        assert isinstance(text, str)
        for form in (text, list(data)):
            again = data_type.parse_fill(form, "", problems)
            assert again is not None
            assert again.shape == ()
            assert again[()] == data


def test_form():
    data_type = data_type_for("bytes")
    assert (data_type.words, data_type.item_size) == ((), None)
    assert data_type.default_fill()[()] == b""
    assert data_type_for("variable_length_bytes").to_json() == "variable_length_bytes"


@pytest.mark.parametrize(
    ("fill", "place", "text"),
    [
        ("a", "fill_value", "expected base64 text"),
        ([0, -1], "fill_value[1]", "expected an integer from 0 to 255, found -1"),
        (None, "fill_value", "expected base64 text or an array of integers from 0 to 255, found null"),
    ],
)
def test_fill_refused(fill_faults, fill, place, text):
    ((found, message),) = fill_faults("bytes", fill)
    assert found == place
    assert message.startswith(text)


def test_cast_refused():
    for wrong in ("abc", 0, None, [1]):
        with pytest.raises(TypeError):
            data_type_for("bytes").cast_fill(wrong)
