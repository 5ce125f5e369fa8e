"""``numpy.datetime64`` and ``numpy.timedelta64``: a 64-bit count of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.json_document import JSON, MISSING, Problems, check_members, is_integer, parse_choice, parse_integer

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")
_NAT = -(2**63)


class Time(DataType):
    """Points in time (``datetime64``) or durations (``timedelta64``) as multiples of ``scale_factor`` units.

    The least 64-bit integer is not-a-time, "NaT", which is also what is recorded where no fill value is named.
    """

    bits = 64

    def __init__(self, kind: str, unit: str, scale_factor: int) -> None:
        self.kind = kind
        self.unit = "us" if unit == "μs" else unit
        self.scale_factor = scale_factor
        self.name = f"numpy.{kind}"
        self.dtype = np.dtype(f"{kind}[{scale_factor}{self.unit}]")
        self.words = ((8, 1),)

    def _to_json(self) -> JSON:
        return {"name": self.name, "configuration": {"unit": self.unit, "scale_factor": self.scale_factor}}

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if isinstance(value, str) and value == "NaT":
            return self._count(_NAT)
        if not is_integer(value) or not -(2**63) <= value < 2**63:
            problems.expected(place, f'"NaT" or an integer of 64 bits for {self.name}', value)
            return None
        return self._count(value)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        count = int(fill.view(np.int64)[()])
        return "NaT" if count == _NAT else count

    def default_fill(self) -> npt.NDArray[Any]:
        return self._count(_NAT)

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        """Takes a count (an integer), "NaT" or a time as text, and times of Python and NumPy that fit without loss."""
        value = unwrap(value)
        if isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] == "generic":
            value = int(value.view(np.int64))
        number = None if isinstance(value, (np.datetime64, np.timedelta64)) else real_number(value)
        if isinstance(number, int) and not isinstance(value, (bool, np.bool_)):
            if not -(2**63) <= number < 2**63:
                raise ValueError(refusal(value, self.name, "the count does not fit 64 bits"))
            return self._count(number)
        moment = self._moment(value)
        if np.isnat(moment):
            return self._count(_NAT)
        if self.unit == "generic":
            raise ValueError(refusal(value, self.name, "the type has no unit, so give a count or NaT"))
        converted = moment.astype(self.dtype, casting="same_kind")
        if np.isnat(converted) or converted.astype(moment.dtype) != moment:
            raise ValueError(refusal(value, self.name, f"it is not a whole number of {self.scale_factor} {self.unit}"))
        return np.asarray(converted)

    def _moment(self, value: Any) -> Any:
        if self.kind == "datetime64":
            known: tuple[type, ...] = (np.datetime64, date)
            if isinstance(value, datetime) and value.tzinfo is not None:
                raise TypeError(refusal(value, self.name, "convert to UTC and drop the time zone first"))
        else:
            known = (np.timedelta64, timedelta)
        if not isinstance(value, (str, *known)):
            raise TypeError(refusal(value, self.name, "expected an integer, a time, or text"))
        try:
            return known[0](str(value) if isinstance(value, str) else value)
        except ValueError as error:
            raise ValueError(refusal(value, self.name, str(error))) from None

    def _count(self, count: int) -> npt.NDArray[Any]:
        return np.array(count, np.int64).view(self.dtype)


def parse_time(kind: str, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> DataType | None:
    """``numpy.datetime64`` or ``numpy.timedelta64`` with unit and scale factor, both required."""
    place = f"{place}.configuration"
    members = check_members(configuration, ("unit", "scale_factor"), place, problems)
    unit = parse_choice(members.get("unit", MISSING), UNITS, f"{place}.unit", problems)
    scale = parse_integer(
        members.get("scale_factor", MISSING), f"{place}.scale_factor", problems, low=1, high=2**31 - 1
    )
    return None if unit is None or scale is None else Time(kind, unit, scale)
