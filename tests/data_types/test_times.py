from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for
from zardine.data_types.times import UNITS
from zardine.json_document import Problems

NAT = -(2**63)


def spelled(kind, unit, scale_factor=1):
    return {"name": f"numpy.{kind}64", "configuration": {"unit": unit, "scale_factor": scale_factor}}


@pytest.mark.parametrize("kind", ["datetime", "timedelta"])
@pytest.mark.parametrize("unit", UNITS)
def test_units(parse, kind, unit):
    data_type = parse(spelled(kind, unit, 10))
    assert np.datetime_data(data_type.dtype) == (unit.replace("μ", "u"), 10)
    assert data_type.words == ((8, 1),)
    assert data_type_for(data_type.dtype) == data_type
    assert parse(data_type.to_json()) == data_type


@given(st.integers(-(2**63), 2**63 - 1))
def test_counts_survive(count):
    for unit in ("ns", "generic"):
        data_type, problems = data_type_for(spelled("datetime", unit)), Problems()
        fill = data_type.parse_fill(count, "", problems)
        assert fill is not None
        assert int(fill.view("i8")) == count
        again = data_type.parse_fill(data_type.fill_to_json(fill), "", problems)
        assert again is not None
        assert int(again.view("i8")) == count


def test_not_a_time(parse):
    data_type = parse(spelled("timedelta", "s"))
    fill = data_type.parse_fill("NaT", "", Problems())
    assert np.isnat(fill)
    assert data_type.fill_to_json(fill) == "NaT"
    assert np.isnat(data_type.parse_fill(NAT, "", Problems()))
    assert np.isnat(data_type.default_fill())


@pytest.mark.parametrize("fill", [1.0, True, "nat", "2020-01-01", 2**63, None, [0]])
def test_fill_refused(fill_faults, fill):
    ((place, text),) = fill_faults(spelled("datetime", "s"), fill)
    assert place == "fill_value"
    assert text.startswith('expected "NaT" or an integer of 64 bits')


@pytest.mark.parametrize(
    ("configuration", "places"),
    [
        (None, ["unit", "scale_factor"]),
        ({"unit": "s"}, ["scale_factor"]),
        ({"unit": "fortnight", "scale_factor": 1}, ["unit"]),
        ({"unit": ["s"], "scale_factor": 0}, ["unit", "scale_factor"]),
        ({"unit": "s", "scale_factor": 2**31}, ["scale_factor"]),
    ],
)
def test_type_refused(type_faults, configuration, places):
    document = {"name": "numpy.datetime64"} | ({"configuration": configuration} if configuration else {})
    assert [place for place, _ in type_faults(document)] == [f"data_type.configuration.{place}" for place in places]


def test_cast_moments():
    data_type = data_type_for("M8[s]")
    moment = np.datetime64("2020-01-01T12", "s")
    for value in (moment, "2020-01-01T12", datetime(2020, 1, 1, 12), moment.astype("M8[ns]"), int(moment.view("i8"))):
        fill = data_type.cast_fill(value)
        assert fill.dtype == data_type.dtype
        assert fill[()] == moment
    assert data_type.cast_fill(date(2020, 1, 1))[()] == np.datetime64("2020-01-01")
    for nat in ("NaT", np.datetime64("NaT"), np.datetime64("NaT", "ns"), NAT):
        assert np.isnat(data_type.cast_fill(nat))
    for lossy in ("2020-01-01T12:00:00.5", datetime(2020, 1, 1, 1, 1, 1, 1)):
        with pytest.raises(ValueError, match="whole number"):
            data_type.cast_fill(lossy)
    with pytest.raises(ValueError, match="whole number"):
        data_type_for("M8[ns]").cast_fill(np.datetime64("30000-01-01"))
    with pytest.raises(ValueError, match="64 bits"):
        data_type.cast_fill(2**63)
    for wrong in (1.5, True, timedelta(1), None, datetime(2020, 1, 1, tzinfo=UTC)):
        with pytest.raises(TypeError):
            data_type.cast_fill(wrong)


def test_cast_durations():
    data_type = data_type_for("m8[10s]")
    for value in (6, timedelta(minutes=1), np.timedelta64(1, "m"), np.timedelta64(6)):
        assert data_type.cast_fill(value)[()] == np.timedelta64(1, "m")
    with pytest.raises(ValueError, match="whole number of 10 s"):
        data_type.cast_fill(timedelta(seconds=5))
    for wrong in (np.datetime64("2020"), date(2020, 1, 1), np.timedelta64(1, "Y")):
        with pytest.raises(TypeError):
            data_type.cast_fill(wrong)


def test_cast_without_unit():
    for name in ("M8", "m8"):
        data_type = data_type_for(name)
        assert int(data_type.cast_fill(5).view("i8")) == 5
        assert np.isnat(data_type.cast_fill("NaT"))
    with pytest.raises(ValueError, match="no unit"):
        data_type_for("M8").cast_fill("2020-01-01")
