"""Missing values are stored as missing where the dtype can hold them, and refused with their place where it cannot."""

from decimal import Decimal

import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import zardine

StringDType = np.dtypes.StringDType

TEXT = {
    "StringDType of None": np.array(["Ulm", None], dtype=StringDType(na_object=None)),
    "StringDType of NaN": np.array(["Ulm", np.nan], dtype=StringDType(na_object=np.nan)),
    "StringDType of pandas.NA": np.array(["Ulm", pd.NA], dtype=StringDType(na_object=pd.NA)),
    "objects": np.array(["Ulm", None], dtype=object),
    "objects with NaN": np.array(["Ulm", np.nan], dtype=object),
    "pandas": pd.Series(["Ulm", None], dtype="string[pyarrow]"),
    "Arrow": pa.array(["Ulm", None]),
    "Arrow in chunks": pa.chunked_array([["Ulm"], [None]]),
    "masked": np.ma.array(["Ulm", "Bonn"], mask=[False, True]),
    "list": ["Ulm", None],
    "list with NaN": ["Ulm", float("nan")],
    "list with NaT": ["Ulm", np.datetime64("NaT")],
    "list with a masked element": ["Ulm", np.ma.masked],
}
NUMBERS = {
    "floats": np.array([1.0, np.nan]),
    "half floats": np.array([1, np.nan], "float16"),
    "complex": np.array([1, complex(0, np.nan)]),
    "list": [1, None],
    "bfloat16": np.array([1, np.nan], ml_dtypes.bfloat16),
    "float8": np.array([1, np.nan], ml_dtypes.float8_e4m3fn),
    "pandas Int64": pd.array([1, None], dtype="Int64"),
    "pandas objects": np.array([1, pd.NA], dtype=object),
    "Arrow": pa.array([1, None]),
    "elements of Arrow": list(pa.array([1, None])),
    "decimals": [1, Decimal("NaN")],
    "masked": np.ma.array([1, 7], mask=[False, True]),
}


def append(array, values):
    array.append(values)


def assign(array, values):
    array.resize(2)
    array[...] = values


def assign_points(array, values):
    array.resize(2)
    array.vindex[[0, 1]] = values


@pytest.mark.parametrize("write", [append, assign, assign_points])
@pytest.mark.parametrize("dtype", ["string", "<U3", "|S3"])
@pytest.mark.parametrize("name", TEXT)
def test_missing_text_is_refused_with_its_place(name, dtype, write):
    array = zardine.create_array(None, shape=0, chunks=2, dtype=dtype)
    with pytest.raises((ValueError, TypeError), match=r"element \[1\].* missing"):
        write(array, TEXT[name])
    assert set(array[...].reshape(-1).tolist()) <= {"", b""}


@pytest.mark.parametrize("name", TEXT)
def test_missing_text_creates_nothing_and_replaces_nothing(name):
    group = zardine.open_group({}, mode="w")
    group.create_array("kept", data=np.array(["old"]))
    for make in (
        lambda: group.create_array("new", data=TEXT[name]),
        lambda: group.create_array("kept", data=TEXT[name], overwrite=True),
        lambda: group.__setitem__("new", TEXT[name]),
    ):
        with pytest.raises((ValueError, TypeError), match=r"element \[1\].* missing"):
            make()
    assert list(group) == ["kept"]
    assert group["kept"][...].tolist() == ["old"]


def test_text_without_missing_values_is_stored_whatever_its_dtype_could_hold():
    for missing in (None, np.nan):
        array = zardine.create_array(None, data=np.array(["Ulm", "nan"], dtype=StringDType(na_object=missing)))
        assert array[...].tolist() == ["Ulm", "nan"]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "|S4", "<U4"])
@pytest.mark.parametrize("name", NUMBERS)
def test_missing_numbers_are_refused_where_nothing_means_missing(name, dtype):
    array = zardine.create_array(None, shape=2, dtype=dtype)
    with pytest.raises(ValueError, match=r"element \[1\] is missing"):
        array[...] = NUMBERS[name]


@pytest.mark.parametrize("name", sorted(set(NUMBERS) - {"complex"}))
def test_missing_numbers_are_nan_in_floats_and_nat_in_times(name):
    array = zardine.create_array(None, shape=2, dtype="float32")
    array[...] = NUMBERS[name]
    assert array[0] == 1
    assert np.isnan(array[1])
    if name not in ("half floats", "bfloat16", "float8", "elements of Arrow"):
        times = zardine.create_array(None, shape=2, dtype="datetime64[s]")
        times[...] = NUMBERS[name]
        assert times[...].astype(str).tolist() == ["1970-01-01T00:00:01", "NaT"]


@pytest.mark.parametrize("dtype", ["int64", "int32", "float64", "bool", "<U30"])
def test_missing_times_do_not_become_numbers_or_words(dtype):
    array = zardine.create_array(None, shape=2, dtype=dtype)
    for kind in ("datetime64[s]", "timedelta64[ms]"):
        with pytest.raises(ValueError, match=r"element \[1\] is missing"):
            array[...] = np.array([5, "NaT"], kind)


def test_one_missing_value():
    array = zardine.create_array(None, shape=(2, 2), dtype="int32")
    for value in (None, np.nan, np.ma.masked, np.datetime64("NaT"), pd.NA, pa.scalar(None), Decimal("NaN")):
        with pytest.raises(ValueError, match="the value is missing"):
            array[0, 1] = value


def test_fields_of_structs():
    array = zardine.create_array(None, shape=1, dtype=[("n", "i4"), ("ok", "?"), ("x", "f4"), ("name", "S4")])
    for values, field in (
        ([(1, None, 2, b"a")], "ok"),
        ([(1, True, 2, None)], "name"),
        (np.array([(np.nan, True, 2, b"a")], [("n", "f8"), ("ok", "?"), ("x", "f4"), ("name", "S4")]), "n"),
    ):
        with pytest.raises(ValueError, match=rf"field '{field}': element \[0\] is missing"):
            array[...] = values
    array[...] = [(1, True, None, b"a")]
    assert np.isnan(array["x"][0])


def test_masked_data_is_stored_as_missing_or_refused():
    data = np.ma.array([1.5, 2.5], mask=[False, True])
    stored = zardine.create_array(None, data=data)[...]
    assert stored[0] == 1.5
    assert np.isnan(stored[1])
    with pytest.raises(ValueError, match=r"element \[1\] is missing \(masked\), and dtype int64"):
        zardine.create_array(None, data=data.astype("int64"))
    assert zardine.create_array(None, data=np.ma.array([1, 2]))[...].tolist() == [1, 2]


@pytest.mark.parametrize("values", [pa.array([1, None]), pd.array([1, None], dtype="Int64"), np.array([1, np.nan])])
def test_one_array_for_all_fields_of_structs(values):
    array = zardine.create_array(None, shape=2, dtype=[("n", "i4"), ("x", "f4")])
    with pytest.raises(ValueError, match="missing"):
        array[...] = values


TIMES = [
    ("datetime64[ns]", np.array(["2020", "3000"], "datetime64[D]")),
    ("datetime64[ns]", [np.datetime64("2020"), np.datetime64("1500")]),
    ("timedelta64[ns]", np.array([1, 400], "timedelta64[Y]").astype("timedelta64[D]")),
    ("timedelta64[ps]", np.array([0, 2**40], "timedelta64[s]")),
    ("int32", np.array(["2020", "2900"], "datetime64[s]")),
    ("uint8", np.array([0, -1], "timedelta64[s]")),
]


@pytest.mark.parametrize(("dtype", "values"), TIMES)
def test_times_beyond_the_range_are_refused_with_the_value(dtype, values):
    array = zardine.create_array(None, shape=2, dtype=dtype)
    with pytest.raises(OverflowError, match=r"element \[1\], .* is beyond the range of dtype"):
        array[...] = values
    array[0] = values[0]
    with pytest.raises(OverflowError, match="the value, "):
        array[0] = values[1]


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e30, -1.0, 256.0, np.float16(np.inf)])
def test_floats_beyond_the_range_of_integers_are_refused_with_the_value(value):
    array = zardine.create_array(None, shape=3, dtype="uint8")
    for given in (value, [1.0, 2.0, value], np.array([1.0, 2.0, value])):
        with pytest.raises(OverflowError, match=r", is beyond the range of uint8: 0 to 255"):
            array[...] = given
    records = zardine.create_array(None, shape=1, dtype=[("n", "u1")])
    with pytest.raises(OverflowError, match="field 'n': element "):
        records[...] = np.array([(value,)], [("n", "f8")])
    assert not np.asarray(array[...]).any()


def test_floats_at_the_ends_of_the_range_of_integers_are_stored():
    for dtype, values in {"u1": [-0.5, 255.9], "i8": [-(2.0**63), 2.0**63 - 1024], "u8": [0.0, 2.0**64 - 2048]}.items():
        array = zardine.create_array(None, shape=2, dtype=dtype)
        array[...] = values
        assert array[...].tolist() == [int(value) for value in values]


def test_dates_are_no_durations():
    dates, durations = np.array(["2020", "NaT"], "datetime64[D]"), np.array([5, "NaT"], "timedelta64[s]")
    array = zardine.create_array(None, shape=2, dtype="timedelta64[s]")
    with pytest.raises(TypeError, match="holds durations"):
        array[...] = dates
    array[...] = dates[1]
    assert np.isnat(array[...]).all()
    array = zardine.create_array(None, shape=2, dtype="datetime64[s]")
    with pytest.raises(TypeError, match="holds dates"):
        array[...] = durations


@pytest.mark.parametrize("unit", ["s", "ms", "ns", "h"])
def test_times_of_other_units_are_cast_as_numpy_does(unit):
    values = np.array(["2020-02-03T04", "1970", "NaT", "1969-12-31T23"], f"datetime64[{unit}]")
    array = zardine.create_array(None, shape=4, dtype="datetime64[s]")
    array[...] = values
    np.testing.assert_array_equal(array[...], values.astype("datetime64[s]"))
