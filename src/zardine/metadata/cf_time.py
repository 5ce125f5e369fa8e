"""Show numbers of time units since a reference date as dates, in all calendars of CF (4.4). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

_UNITS: Final = re.compile(
    r"\s*(?P<unit>[a-z]+)\s+since\s+"
    r"(?P<year>[+-]?\d{1,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
    r"(?:(?:T|\s+)(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d*)?))?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?\s*",
    re.ASCII | re.IGNORECASE,
)
UNITS_OF_TIME: Final = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")
"""The units in which xarray encodes times, and decodes numbers without a reference date as durations."""
_SECOND: Final = 1_000_000
"""Microseconds, as all lengths here."""
_DAY: Final = 86_400 * _SECOND
_LENGTHS: Final = {
    **dict.fromkeys(("microsecond", "microsec", "us"), 1),
    **dict.fromkeys(("millisecond", "millisec", "msec", "ms"), 1000),
    **dict.fromkeys(("second", "sec", "s"), _SECOND),
    **dict.fromkeys(("minute", "min"), 60 * _SECOND),
    **dict.fromkeys(("hour", "hr", "h"), 3600 * _SECOND),
    **dict.fromkeys(("day", "d"), _DAY),
    "week": 7 * _DAY,
}
_MONTHS: Final = {"month": 1, "year": 12, "yr": 12, "common_year": 12}
_CLOCK_STEPS: Final = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200)
"""Seconds between two round times of a day."""
_MONTH_STEPS: Final = (1, 2, 3, 6)
_MOST_YEARS: Final = 10**6
_BEFORE_MONTH: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days by number: ``before_year`` counts the days before January 1 of a year; year 0 comes before year 1.

    Without ``has_year_zero`` dates are shown with the year -1 before year 1.
    """

    before_year: Callable[[int], int]
    has_equal_months: bool = False
    has_year_zero: bool = True

    def number_of(self, year: int, month: int, day: int) -> int:
        """Return the number of a day."""
        return self.before_year(year) + self._before_month(year, month) + day - 1

    def date_of(self, number: int) -> tuple[int, int, int]:
        """Return year, month and day of a day's number."""
        year = number // 366 if number >= 0 else number // 360
        while self.before_year(year + 1) <= number:
            year += max(1, (number - self.before_year(year + 1)) // 366)
        while self.before_year(year) > number:
            year -= 1
        rest = number - self.before_year(year)
        month = next(each for each in range(12, 0, -1) if self._before_month(year, each) <= rest)
        return year, month, rest - self._before_month(year, month) + 1

    def length_of_month(self, year: int, month: int) -> int:
        """Return how many days a month has."""
        return self._before_month(year, month + 1) - self._before_month(year, month)

    def _before_month(self, year: int, month: int) -> int:
        if self.has_equal_months:
            return 30 * (month - 1)
        is_leap = self.before_year(year + 1) - self.before_year(year) == 366
        return _BEFORE_MONTH[month - 1] + (is_leap and month > 2)


class _Mixed(Calendar):
    """The Julian calendar up to 1582-10-04, the Gregorian one from 1582-10-15, the day after it."""

    __slots__ = ()

    def number_of(self, year: int, month: int, day: int) -> int:
        if (year, month, day) >= (1582, 10, 15):
            return _GREGORIAN.number_of(year, month, day)
        return _JULIAN.number_of(year, month, day) + _JULIAN_TO_GREGORIAN

    def date_of(self, number: int) -> tuple[int, int, int]:
        if number >= _REFORM:
            return _GREGORIAN.date_of(number)
        return _JULIAN.date_of(number - _JULIAN_TO_GREGORIAN)

    def length_of_month(self, year: int, month: int) -> int:
        return (_GREGORIAN if (year, month) >= (1582, 10) else _JULIAN).length_of_month(year, month)


_JULIAN: Final = Calendar(lambda year: 365 * year + (year + 3) // 4, has_year_zero=False)
_GREGORIAN: Final = Calendar(lambda year: 365 * year + (year + 3) // 4 - (year + 99) // 100 + (year + 399) // 400)
_REFORM: Final = _GREGORIAN.number_of(1582, 10, 15)
_JULIAN_TO_GREGORIAN: Final = _REFORM - _JULIAN.number_of(1582, 10, 5)
_MIXED: Final = _Mixed(_GREGORIAN.before_year, has_year_zero=False)
_NO_LEAP: Final = Calendar(lambda year: 365 * year)
_ALL_LEAP: Final = Calendar(lambda year: 366 * year)
CALENDARS: Final = {
    "standard": _MIXED,
    "gregorian": _MIXED,
    "proleptic_gregorian": _GREGORIAN,
    "julian": _JULIAN,
    "noleap": _NO_LEAP,
    "365_day": _NO_LEAP,
    "all_leap": _ALL_LEAP,
    "366_day": _ALL_LEAP,
    "360_day": Calendar(lambda year: 360 * year, has_equal_months=True),
}


@dataclass(frozen=True, slots=True)
class _Scale:
    calendar: Calendar
    year: int
    month: int
    day: int
    clock: int
    """Microseconds of the reference after midnight, in UTC."""
    length: int
    """Microseconds of a unit; 0 for months."""
    months: int


def date_of(value: Any, attributes: Mapping[str, Any]) -> str | None:
    """Return a coordinate as a date by its attributes ``units`` and ``calendar``; ``None`` if it is no time."""
    units = attributes.get("units")
    return as_date(value, units, str(attributes.get("calendar", "standard"))) if isinstance(units, str) else None


def as_date(value: Any, units: str, calendar: str) -> str | None:
    """Return a number in ``units`` ("hours since 1900-01-01") as ``YYYY-MM-DD HH:MM:SS``, in UTC.

    Midnight is left out. Months and years are those of the calendar, and a fraction is that of the month it falls in.
    ``None`` for numbers that are not finite, and for units and calendars that CF does not define.
    """
    scale = _scale(units, calendar.strip().lower())
    if scale is None or not np.isfinite(value) or abs(float(value)) > 1e18:
        return None
    number: Any = int(value) if isinstance(value, (int, np.integer)) else float(value)
    near = 0.0 if isinstance(number, int) else float(np.spacing(np.abs(value)))
    year, month, length = scale.year, scale.month, scale.length
    if not length:
        whole = int(number // 1) * scale.months
        part = (number % 1) * scale.months
        whole, number = whole + int(part // 1), part % 1
        year, month = year + (month - 1 + whole) // 12, (month - 1 + whole) % 12 + 1
        if abs(year) > _MOST_YEARS:
            return None
        near *= scale.months
        length = scale.calendar.length_of_month(year, month) * _DAY
    day = scale.calendar.number_of(year, month, min(scale.day, scale.calendar.length_of_month(year, month)))
    moment = _rounded(scale.clock + _product(number, length), near * length)
    if abs(moment) > _MOST_YEARS * 360 * _DAY:
        return None
    days, clock = divmod(moment, _DAY)
    year, month, date = scale.calendar.date_of(day + days)
    text = _date_text(scale.calendar, year, month, date)
    return f"{text} {_clock_text(clock)}" if clock else text


def date_ticks(low: float, high: float, count: int, units: str, calendar: str) -> list[tuple[float, str]]:
    """Return round dates between two numbers in ``units``, about ``count`` of them, each as its number and its text.

    None for units of months and years, and for units and calendars that CF does not define.
    """
    scale = _scale(units, calendar.strip().lower())
    if scale is None or not scale.length or not (as_date(low, units, calendar) and as_date(high, units, calendar)):
        return []
    kind = scale.calendar
    reference = kind.number_of(scale.year, scale.month, scale.day) * _DAY + scale.clock
    first, last = (reference + _product(float(each), scale.length) for each in (low, high))
    least = max(1, -((first - last) // max(1, count)))
    found: list[tuple[int, str]] = []
    step = next((each for each in _CLOCK_STEPS if each * _SECOND >= least), None)
    if step is not None:
        step *= _SECOND
        for moment in range(-(-first // step) * step, last + 1, step):
            clock = (
                _clock_text(moment % _DAY).removesuffix(":00") if step >= 60 * _SECOND else _clock_text(moment % _DAY)
            )
            found.append(
                (moment, _date_text(kind, *kind.date_of(moment // _DAY)) + (f" {clock}" if moment % _DAY else ""))
            )
    else:
        months = next((each for each in _MONTH_STEPS if each * 33 * _DAY >= least), 0)
        years = 0 if months else next(n * 10**e for e in range(9) for n in (1, 2, 5) if n * 10**e * 400 * _DAY >= least)
        days = next((each for each in (1, 2, 5, 10) if each * _DAY >= least), 0)
        year, month, _ = kind.date_of(first // _DAY)
        number = (year * 12 + month - 1) // (years * 12 or months) * (years * 12 or months)
        while (start := kind.number_of(number // 12, number % 12 + 1, 1)) * _DAY <= last:
            year, month = number // 12, number % 12 + 1
            length = kind.length_of_month(year, month)
            for day in range(1, length + 1, days or length):
                date = kind.date_of(start + day - 1)
                if date[1] == month and (day == 1 or length - date[2] >= days // 2):
                    text = _date_text(kind, *date)
                    found.append(((start + day - 1) * _DAY, text if days else text[: -6 if years else -3]))
            number += years * 12 or months
    return [((moment - reference) / scale.length, text) for moment, text in found if first <= moment <= last]


def _date_text(calendar: Calendar, year: int, month: int, day: int) -> str:
    year -= year <= 0 and not calendar.has_year_zero
    return f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"


def seconds_of(values: Any, units: str, calendar: str) -> Any:
    """Return numbers in ``units`` as seconds after the midnight before their reference date, as ``float64``.

    ``None`` for months, years and time zones, and for units and calendars that CF does not define.
    """
    scale = _scale(units, calendar.strip().lower())
    found = _UNITS.fullmatch(units[:200])
    if scale is None or not scale.length or found is None or _zone(found["zone"] or ""):
        return None
    return np.asarray(values, np.float64) * (scale.length / _SECOND) + scale.clock / _SECOND


def is_mixed(calendar: str) -> bool:
    """Return whether dates since 1582-10-15 are those of everyday life."""
    return CALENDARS.get(calendar.strip().lower()) in (_MIXED, _GREGORIAN)


def _product(number: float, length: int) -> int:
    if isinstance(number, int):
        return number * length
    whole, part = divmod(number, 1.0)
    return int(whole) * length + round(part * length)


def _rounded(moment: int, near: float) -> int:
    """Return a moment; the whole second that is as near as two numbers of its type can be, if one is."""
    second = (moment + _SECOND // 2) // _SECOND * _SECOND
    return second if abs(moment - second) <= near else moment


def _clock_text(clock: int) -> str:
    seconds, rest = divmod(clock, _SECOND)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{rest:06}".rstrip("0") if rest else text


@lru_cache(64)
def _scale(units: str, calendar: str) -> _Scale | None:
    found = _UNITS.fullmatch(units[:200].replace("common_year", "year"))
    kind = CALENDARS.get(calendar)
    if found is None or kind is None:
        return None
    unit = found["unit"].lower()
    unit = unit if unit in _LENGTHS or unit in _MONTHS else unit.removesuffix("s")
    if unit not in _LENGTHS and unit not in _MONTHS:
        return None
    year, month, day = int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)
    hour, minute, second = int(found["hour"] or 0), int(found["minute"] or 0), float(found["second"] or 0)
    if not (1 <= month <= 12 and hour <= 24 and minute < 60 and second < 61):
        return None
    if not kind.has_year_zero and year <= 0:
        if year == 0:
            return None
        year += 1
    if not 1 <= day <= kind.length_of_month(year, month) or kind.date_of(kind.number_of(year, month, day))[2] != day:
        return None  # of which the second is one of the days that the reform of 1582 left out
    clock = (hour * 60 + minute) * 60 * _SECOND + round(second * _SECOND) - _zone(found["zone"] or "")
    return _Scale(kind, year, month, day, clock, _LENGTHS.get(unit, 0), _MONTHS.get(unit, 0))


def _zone(text: str) -> int:
    """Return the microseconds by which a time zone is ahead of UTC."""
    if text[:1] not in ("+", "-"):
        return 0
    digits = text[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    return (-1 if text[0] == "-" else 1) * (hours * 60 + minutes) * 60 * _SECOND


__all__ = ["CALENDARS", "UNITS_OF_TIME", "Calendar", "as_date", "date_of", "date_ticks", "is_mixed", "seconds_of"]
