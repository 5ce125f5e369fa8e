"""Dates of every calendar of CF, compared with cftime."""

from __future__ import annotations

import cftime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.metadata.cf_time import CALENDARS, as_date, date_ticks

UNITS = {"days": 1, "hours": 24, "minutes": 1440, "seconds": 86400, "milliseconds": 86_400_000}
REFERENCES = [
    "1970-01-01",
    "1850-01-01 00:00:00",
    "0001-01-01",
    "1582-10-15 12:30",
    "2000-02-28T06:00:00",
    "1900-1-1 0:0:0.5",
]


def expected(number: float, units: str, calendar: str) -> str:
    """Return what cftime says, in our form."""
    date = cftime.num2date(number, units, calendar)
    clock = f"{date.hour:02}:{date.minute:02}:{date.second:02}"
    if date.microsecond:
        clock += f".{date.microsecond:06}".rstrip("0")
    sign = "-" if date.year < 0 else ""
    return f"{sign}{abs(date.year):04}-{date.month:02}-{date.day:02}{'' if clock == '00:00:00' else ' ' + clock}"


@given(
    st.sampled_from(sorted(CALENDARS)),
    st.sampled_from(sorted(UNITS)),
    st.sampled_from(REFERENCES),
    st.integers(-1_000_000, 1_000_000),
    st.integers(0, 95),
)
def test_dates_are_those_of_cftime(calendar: str, unit: str, reference: str, days: int, quarters: int) -> None:
    units = f"{unit} since {reference}"
    number: float | int = days * UNITS[unit] + quarters * UNITS[unit] // 96
    if unit == "days":
        number = days + quarters / 96
    assert as_date(number, units, calendar) == expected(number, units, calendar)


@pytest.mark.parametrize(
    ("number", "units", "calendar", "text"),
    [
        (0, "days since 2001-02-30", "360_day", "2001-02-30"),
        (59, "days since 2000-01-01", "noleap", "2000-03-01"),
        (59, "days since 2001-01-01", "366_day", "2001-02-29"),
        (1, "days since 1582-10-04", "standard", "1582-10-15"),
        (1, "days since 1582-10-04", "julian", "1582-10-05"),
        (1, "days since 1582-10-04", "proleptic_gregorian", "1582-10-05"),
        (1.5, "months since 1960-01-01", "360_day", "1960-02-16"),
        (13, "months since 1999-12-01", "standard", "2001-01-01"),
        (-1, "months since 2000-01-01", "standard", "1999-12-01"),
        (2, "years since 1999-01-01", "standard", "2001-01-01"),
        (0.5, "years since 2001-01-01", "360_day", "2001-07-01"),
        (3, "common_years since 2000-01-01", "noleap", "2003-01-01"),
        (2, "weeks since 2000-01-01", "standard", "2000-01-15"),
        (0, "hours since 2000-01-01 00:00 +2:00", "standard", "1999-12-31 22:00:00"),
        (0, "hours since 2000-01-01 00:00:00 UTC", "standard", "2000-01-01"),
        (0, "seconds since 1992-10-8 15:15:42.5 -6:00", "standard", "1992-10-08 21:15:42.5"),
        (np.float32(1 / 3), "days since 2000-01-01", "standard", "2000-01-01 08:00:00"),
        (np.uint64(2**63), "seconds since 1970-01-01", "standard", None),
        (-800_000, "days since 1970-01-01", "standard", "-0222-09-08"),
        (-800_000, "days since 1970-01-01", "julian", "-0222-09-21"),
        (-1, "days since 0001-01-01", "julian", "-0001-12-31"),
        (-1, "days since 0001-01-01", "proleptic_gregorian", "0000-12-31"),
        (1, "days since -0001-12-31", "standard", "0001-01-01"),
        (0, "days since 0000-01-01", "standard", None),
        (0, "days since 1582-10-10", "standard", None),
        (0, "days since 2001-02-30", "standard", None),
        (0, "days since 2001-02-29", "noleap", None),
        (0, "days", "standard", None),
        (0, "K since 2000-01-01", "standard", None),
        (0, "days since 2000-01-01", "none", None),
        (float("nan"), "days since 2000-01-01", "standard", None),
        (1e300, "days since 2000-01-01", "standard", None),
        (-1e17, "years since 2000-01-01", "standard", None),
        (0, "days since " + "1" * 1_000_000, "standard", None),
    ],
)
def test_dates_of_units_and_calendars(number: float, units: str, calendar: str, text: str | None) -> None:
    assert as_date(number, units, calendar) == text


@pytest.mark.parametrize(
    ("low", "high", "count", "units", "calendar", "texts"),
    [
        (0, 1079, 3, "days since 2001-01-01", "360_day", ["2001", "2002", "2003"]),
        (0, 89, 3, "days since 2001-01-01", "360_day", ["2001-01", "2001-02", "2001-03"]),
        (25, 35, 10, "days since 2001-02-01", "360_day", [f"2001-02-{day}" for day in range(26, 31)]
            + [f"2001-03-0{day}" for day in range(1, 7)]),
        (1, 400, 7, "days since 2000-01-01", "noleap", [f"2000-{month:02}" for month in (3, 5, 7, 9, 11)]
            + ["2001-01"]),
        (0, 24, 4, "hours since 2000-02-28 12:00", "noleap", ["2000-02-28 12:00", "2000-02-28 18:00", "2000-03-01",
            "2000-03-01 06:00", "2000-03-01 12:00"]),
        (0, 25, 3, "seconds since 2000-01-01", "standard", ["2000-01-01", "2000-01-01 00:00:15"]),
        (0, 40, 4, "days since 1582-10-01", "standard", ["1582-10-01", "1582-10-21", "1582-11-01", "1582-11-11"]),
        (0, 100 * 365, 4, "days since -0049-01-01", "julian", ["-0001", "0050"]),
        (0, 100, 4, "months since 2000-01-01", "360_day", []),
        (0, 1e300, 4, "days since 2000-01-01", "360_day", []),
        (0, 1e9, 4, "days since 2000-01-01", "nothing", []),
    ],
)  # fmt: skip
def test_round_dates(low: float, high: float, count: int, units: str, calendar: str, texts: list[str]) -> None:
    found = date_ticks(low, high, count, units, calendar)
    assert [text for _, text in found] == texts


@given(
    st.sampled_from(sorted(CALENDARS)),
    st.sampled_from(sorted(UNITS)),
    st.sampled_from(REFERENCES[:-1]),
    st.integers(-500_000, 500_000),
    st.floats(1e-3, 1e6),
    st.integers(1, 60),
)
def test_round_dates_are_dates_and_few(
    calendar: str, unit: str, reference: str, day: int, length: float, count: int
) -> None:
    units, factor = f"{unit} since {reference}", UNITS[unit]
    found = date_ticks(day * factor, (day + length) * factor, count, units, calendar)
    assert len(found) <= 3 * count + 2
    for number, text in found:
        assert day * factor <= number <= (day + length) * factor
        near = as_date(round(number * 86400 / factor) * factor / 86400, units, calendar)
        assert near is not None
        assert near.startswith(text)
