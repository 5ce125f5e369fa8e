import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zardine
from zardine.data_types import data_type_for
from zardine.json_document import Problems

FIXED = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_round_trips(text):
    data_type, problems = data_type_for("string"), Problems()
    fill = data_type.parse_fill(text, "", problems)
    assert fill is not None
    assert data_type.fill_to_json(fill) == text
    assert data_type.fill_to_json(data_type.cast_fill(text)) == text


def test_string_form():
    data_type = data_type_for("string")
    assert data_type.dtype == np.dtypes.StringDType()
    assert (data_type.words, data_type.item_size, data_type.needs_endian) == ((), None, False)
    assert data_type.default_fill()[()] == ""


def test_fixed_length(fill_bytes, parse):
    assert fill_bytes(FIXED, "hé") == "hé\0".encode("utf-32-le" if np.little_endian else "utf-32-be")
    assert fill_bytes(FIXED, "a\U0001f41fb")
    data_type = parse(FIXED)
    assert (data_type.dtype, data_type.words, data_type.needs_endian) == (np.dtype("U3"), ((4, 3),), True)
    assert data_type.to_json() == FIXED


@pytest.mark.parametrize(
    ("data_type", "fill", "text"),
    [
        ("string", 0, "expected a string"),
        ("string", None, "expected a string"),
        ("string", "\ud800", "expected a string without lone surrogates"),
        (FIXED, "abcd", "expected at most 3 code points, found 4"),
        (FIXED, 0, "expected a string"),
    ],
)
def test_fill_refused(fill_faults, data_type, fill, text):
    ((place, message),) = fill_faults(data_type, fill)
    assert place == "fill_value"
    assert message.startswith(text)


def test_length_not_a_multiple_of_4(type_faults):
    ((place, text),) = type_faults({"name": "fixed_length_utf32", "configuration": {"length_bytes": 10}})
    assert place == "data_type.configuration.length_bytes"
    assert text == "expected a multiple of 4, found 10"


def test_cast():
    for name in ("string", "U3"):
        data_type = data_type_for(name)
        for value in ("abc", np.str_("abc"), np.array("abc"), np.array("abc", np.dtypes.StringDType())):
            assert data_type.cast_fill(value)[()] == "abc"
        for wrong in (b"abc", 0, None):
            with pytest.raises(TypeError):
                data_type.cast_fill(wrong)
    with pytest.raises(ValueError, match="at most 3"):
        data_type_for("U3").cast_fill("abcd")
    with pytest.raises(ValueError, match="surrogates"):
        data_type_for("string").cast_fill("\udc00")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "write",
    [
        lambda array, values: array.set_basic_selection(slice(None), values),
        lambda array, values: array.set_coordinate_selection([0, 1], values),
        lambda array, values: array.append(np.asarray(values)),
    ],
)
@pytest.mark.parametrize(
    "values",
    [
        ["ab", "abcd"],
        np.array(["ab", "abcd"]),
        np.array([b"ab", b"abcd"]),
        np.array(["ab", "abcd"], object),
        np.array(["ab", "abcd"], np.dtypes.StringDType()),
        [12, 1234],
        np.array([12, 1234]),
        ["ab", "ab\0d"],
    ],
)
@pytest.mark.parametrize("dtype", ["<U3", "|S3"])
def test_longer_text_is_refused_with_its_place(dtype, values, write, zarr_format):
    array = zardine.create_array(None, shape=2, chunks=2, dtype=dtype, zarr_format=zarr_format)
    with pytest.raises(ValueError, match=r"element \[1\], .* is 4 long, and dtype .* holds 3"):
        write(array, values)
    assert set(array[:].tolist()) <= {"", b""}
    array[:] = np.asarray(values).astype(dtype)  # cut by the caller
    assert array.shape == (2,)


@pytest.mark.parametrize("values", [[("abcd", 1)], np.array([("abcd", 1)], [("name", "U4"), ("n", "i8")])])
def test_longer_text_is_refused_in_fields(values):
    array = zardine.create_array(None, shape=1, dtype=[("name", "U3"), ("n", "i4")])
    with pytest.raises(ValueError, match=r"field 'name': element \[0\], 'abcd', is 4 long, and dtype <U3 holds 3"):
        array[:] = values
    array[:] = [("abc", 1)]
    with pytest.raises(ValueError, match="'abcd', is 4 long"):
        array["name"] = "abcd"
    assert array[:].tolist() == [("abc", 1)]


def test_nuls_at_the_end_are_not_longer():
    array = zardine.create_array(None, shape=1, dtype="<U3")
    for value in ("abc\0", np.array(["abc\0"], "U9"), np.array(["abc\0"], object), b"abc\0"):
        array[:] = value
        assert array[0] == "abc"
