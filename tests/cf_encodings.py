"""Random variables with every kind of encoding that files of NetCDF have, and what must become of them.

:func:`random_case` gives values, an encoding and whether the encoding can hold the values, worked out with exact
fractions. :func:`random_file` gives a dataset as a file holds it: stored numbers, and the attributes of CF that say
what they mean; ``xr.decode_cf`` makes of it what a program reads.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import cftime
import numpy as np
import xarray as xr

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8")
UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": Fraction(1, 1000)}
REFERENCES = ("1970-01-01", "1900-01-01", "2000-01-01 12:00:00", "1850-01-01T00:00:00Z")
CALENDARS = ("noleap", "360_day", "all_leap", "julian", "standard", "proleptic_gregorian")
WIDTH = 3
"""Elements of a variable."""


@dataclass
class Case:
    """A variable to be written, and what is promised."""

    values: Any
    encoding: dict[str, Any]
    fits: bool | None
    """Whether the encoding holds all values, to within ``step`` / 2; ``None`` if only floating point can tell."""
    step: float = 0.0
    attributes: dict[str, Any] = field(default_factory=dict)

    def dataset(self, lazily: bool) -> xr.Dataset:
        """Return the variable ``v`` in a dataset."""
        data = xr.Dataset({"v": ("x", self.values, self.attributes)})
        return data.chunk(x=2) if lazily else data


def random_case(rng: random.Random) -> Case:
    """Return a variable of a random kind."""
    return rng.choice((_packed, _packed, _whole, _dates, _dates, _dates_of_cftime, _durations, _text))(rng)


def _range(dtype: str, unsigned: str | None) -> tuple[int, int]:
    kind = {"true": "u", "false": "i"}.get(str(unsigned), dtype[0])
    info = np.iinfo(f"{kind}{dtype[1:]}")
    return int(info.min), int(info.max)


def _stored_fill(rng: random.Random, dtype: str) -> int:
    least, most = _range(dtype, None)
    return rng.choice((least, most, 0, rng.randint(least, most)))


def _meaning(fill: int, dtype: str, unsigned: str | None) -> int:
    """Return what a stored fill value is after ``_Unsigned``."""
    kind = {"true": "u", "false": "i"}.get(str(unsigned), dtype[0])
    return int(np.array(fill, dtype).view(f"{kind}{dtype[1:]}"))


def _marks(rng: random.Random, encoding: dict[str, Any]) -> int | None:
    """Add a fill value to the encoding, or not; returns the number that is then missing."""
    if rng.random() < 0.4:
        return None
    fill = _stored_fill(rng, encoding["dtype"])
    unsigned = encoding.get("_Unsigned")
    if unsigned == "false" and fill > _range(encoding["dtype"], unsigned)[1]:
        return None  # which xarray cannot read
    name = "_FillValue" if unsigned else rng.choice(("_FillValue", "missing_value", "both"))
    for each in ("_FillValue", "missing_value") if name == "both" else (name,):
        encoding[each] = np.array(fill, encoding["dtype"])[()]
    return _meaning(fill, encoding["dtype"], unsigned)


def _numbers(rng: random.Random, least: int, most: int) -> list[int]:
    """Return integers, of which one may lie outside."""
    span = min(most, 2**40) - max(least, -(2**40))
    numbers = [max(least, -(2**40)) + rng.randrange(span + 1) for _ in range(WIDTH - 1)]
    return [*numbers, rng.choice((least, most, least - 1, most + 1, numbers[0]))]


def _packed(rng: random.Random) -> Case:
    encoding: dict[str, Any] = {"dtype": rng.choice(INTEGERS[:6])}
    if rng.random() < 0.3:
        encoding["_Unsigned"] = rng.choice(("true", "false"))
    scale, offset = rng.choice((0.01, 0.5, 2.0, -0.25)), rng.choice((None, 273.15, -7.0))
    encoding["scale_factor"] = scale
    if offset is not None:
        encoding["add_offset"] = offset
    missing = _marks(rng, encoding)
    numbers = _numbers(rng, *_range(encoding["dtype"], encoding.get("_Unsigned")))
    values = np.array([number * scale + (offset or 0) + rng.uniform(-0.3, 0.3) * abs(scale) for number in numbers])
    least, most = _range(encoding["dtype"], encoding.get("_Unsigned"))
    fits = all(least <= number <= most and number != missing for number in numbers)
    if missing is not None and rng.random() < 0.5:
        values[0] = np.nan
        fits = all(least <= number <= most and number != missing for number in numbers[1:])
    if rng.random() < 0.3:
        return Case(values, encoding, fits, abs(scale), {"valid_range": np.array([least, most], "i8")})
    return Case(values, encoding, fits, abs(scale))


def _whole(rng: random.Random) -> Case:
    encoding: dict[str, Any] = {"dtype": rng.choice(INTEGERS)}
    if rng.random() < 0.3:
        encoding["_Unsigned"] = rng.choice(("true", "false"))
    missing = _marks(rng, encoding)
    least, most = _range(encoding["dtype"], encoding.get("_Unsigned"))
    numbers = _numbers(rng, max(least, -(2**62)), min(most, 2**62))
    fits = all(least <= number <= most and number != missing for number in numbers)
    return Case(np.array(numbers, "i8"), encoding, fits)


def _time_encoding(rng: random.Random, unit: str) -> tuple[dict[str, Any], int | None]:
    encoding: dict[str, Any] = {"units": unit, "dtype": rng.choice((*INTEGERS[2:], "f4", "f8"))}
    if encoding["dtype"][0] == "f":
        return encoding, None
    return encoding, _marks(rng, encoding) if rng.random() < 0.5 else None


def _times_fit(seconds: list[Fraction | None], unit: str, encoding: dict[str, Any], missing: int | None) -> bool | None:
    """Return whether every time is a whole number of the unit that the integers hold."""
    if encoding["dtype"][0] == "f":
        return None
    least, most = _range(encoding["dtype"], None)
    for each in seconds:
        if each is None:
            if missing is None and encoding["dtype"] != "i8":
                return False
            continue
        number = each / UNITS[unit]
        if number.denominator != 1:
            return None  # xarray may take a finer unit, which the integers hold or not
        if not least <= number <= most or number == missing:
            return False
    return True


def _spans(rng: random.Random) -> list[Fraction | None]:
    finest = rng.choice((86400, 3600, 1, Fraction(1, 1000)))
    most = int(rng.choice((100, 10**5, 4 * 10**9)) / finest)
    spans: list[Fraction | None] = [Fraction(rng.randint(0, max(1, most))) * finest for _ in range(WIDTH)]
    if rng.random() < 0.25:
        spans[1] = None
    return spans


def _as_milliseconds(spans: list[Fraction | None], kind: str) -> Any:
    return np.array(["NaT" if each is None else int(each * 1000) for each in spans], f"{kind}[ms]")


def _dates(rng: random.Random) -> Case:
    unit, reference = rng.choice(list(UNITS)), rng.choice(REFERENCES)
    spans = _spans(rng)
    encoding, missing = _time_encoding(rng, f"{unit} since {reference}")
    if rng.random() < 0.3:
        encoding["calendar"] = rng.choice(("standard", "gregorian", "proleptic_gregorian"))
    start = np.datetime64(reference.removesuffix("Z").replace(" ", "T"), "ms")
    values = start + _as_milliseconds(spans, "m8")
    resolution = rng.choice(("ms", "us"))
    return Case(values.astype(f"M8[{resolution}]"), encoding, _times_fit(spans, unit, encoding, missing))


def _durations(rng: random.Random) -> Case:
    unit, spans = rng.choice(list(UNITS)), _spans(rng)
    encoding, missing = _time_encoding(rng, unit)
    values = _as_milliseconds(spans, "m8").astype(f"m8[{rng.choice(('ms', 'us'))}]")
    return Case(values, encoding, _times_fit(spans, unit, encoding, missing))


def _dates_of_cftime(rng: random.Random) -> Case:
    unit, calendar = rng.choice(list(UNITS)), rng.choice(CALENDARS[:4])
    spans = [each for each in _spans(rng) if each is not None]
    start = cftime.datetime(1900, 1, 1, calendar=calendar)
    values = cftime.num2date(
        [int(each * 1000) for each in spans], "milliseconds since 1900-01-01", calendar, only_use_cftime_datetimes=True
    )
    encoding, missing = _time_encoding(rng, f"{unit} since {start.isoformat().replace('T', ' ')}")
    encoding["calendar"] = calendar
    return Case(np.asarray(values), encoding, _times_fit(list(spans), unit, encoding, missing))


def _text(rng: random.Random) -> Case:
    words = np.array(rng.choices(["", "a", "red", "naïve", "panchromatic", "日本語"], k=WIDTH))
    width = rng.choice((1, 3, 12))
    return Case(words, {"dtype": f"<U{width}"}, max(map(len, words)) <= width)


def random_file(rng: random.Random, variables: int = 6) -> xr.Dataset:
    """Return variables as a file holds them: stored numbers and attributes, nothing decoded."""
    found = {}
    for number in range(variables):
        kind = rng.choice(("packed", "whole", "times", "spans", "floats"))
        dtype = rng.choice(INTEGERS) if kind != "floats" else rng.choice(("f4", "f8"))
        attributes: dict[str, Any] = {}
        if kind == "floats":
            values = np.array([rng.uniform(-1e6, 1e6) for _ in range(WIDTH)], dtype)
            fill: Any = rng.choice((None, -9999.0, 1e20, float("nan")))
        else:
            least, most = _range(dtype, None)
            low, high = (max(least, 0), min(most, 30_000)) if kind in ("times", "spans") else (least, most)
            values = np.array([rng.randint(low, high) for _ in range(WIDTH)], dtype)
            fill = rng.choice((None, least, most, 0))
        if fill is not None:
            name = rng.choice(("_FillValue", "missing_value", "both"))
            name = "_FillValue" if np.isnan(fill) else name
            for each in ("_FillValue", "missing_value") if name == "both" else (name,):
                attributes[each] = np.array(fill, dtype)[()]
            if rng.random() < 0.5:
                values[0] = attributes[each]
        if kind == "packed":
            narrow = np.dtype(dtype).itemsize < 4  # xarray computes with as few digits as the factor has
            attributes["scale_factor"] = rng.choice((np.float32(0.1) if narrow else 0.1, 0.01, 2.0))
            if rng.random() < 0.5:
                attributes["add_offset"] = type(attributes["scale_factor"])(rng.choice((273.15, -5.0)))
        if kind in ("packed", "whole") and rng.random() < 0.3 and "missing_value" not in attributes:
            attributes["_Unsigned"] = "true" if dtype[0] == "i" else "false"
        if kind == "times":
            attributes["units"] = f"{rng.choice(list(UNITS))} since {rng.choice(REFERENCES[:3])}"
            if rng.random() < 0.6:
                attributes["calendar"] = rng.choice(CALENDARS)
        if kind == "spans":
            attributes["units"] = rng.choice(list(UNITS))
        if rng.random() < 0.3:
            attributes[rng.choice(("valid_min", "valid_max"))] = values[-1]
        found[f"v{number}"] = ("x", values, attributes)
    return xr.Dataset(found)


def random_dataset(rng: random.Random, source: str) -> tuple[xr.Dataset, dict[str, dict[str, Any]]]:
    """Return what a file of one engine (``scipy``, ``h5netcdf``, ``zarr``) may hold, and how the file stores it.

    Beside :func:`random_file` there are two dimensions, text, truth values, compression, chunks and shards.
    """
    raw = random_file(rng, 3)
    if source == "scipy":
        raw = raw.drop_vars([name for name in raw if raw[name].dtype.str[1:] in ("u1", "u2", "u4", "i8")])
    for name in list(raw.variables):
        if rng.random() < 0.3:
            raw[name] = raw[name].expand_dims(y=2, axis=rng.choice((0, 1)))
    words = rng.choices(["", "a", "red", "naïve", "日本語"], k=WIDTH)
    raw["words"] = ("x", np.array(words, rng.choice(("U", "O"))), {"long_name": "text"})
    raw["bytes"] = ("x", np.array([b"a", b"bcd", b""]))
    if source != "scipy":
        raw["truth"] = ("x", np.array([True, False, True]))
    encoding: dict[str, dict[str, Any]] = {name: {} for name in raw.variables}
    for name, each in raw.variables.items():
        if each.dtype.kind == "f" and "_FillValue" not in each.attrs:
            encoding[str(name)]["_FillValue"] = None
        if each.dtype.kind == "U" and source != "zarr" and rng.random() < 0.5:
            encoding[str(name)]["dtype"] = "S1"
        lengths = tuple(rng.randint(1, size) for size in each.shape)
        if source == "h5netcdf" and each.dtype.kind in "iuf":
            if rng.random() < 0.6:
                encoding[str(name)] |= {"chunksizes": lengths, "zlib": True, "shuffle": True, "complevel": 3}
            encoding[str(name)]["fletcher32"] = "chunksizes" in encoding[str(name)] and rng.random() < 0.5
        if source == "zarr" and rng.random() < 0.6:
            encoding[str(name)]["chunks"] = lengths
    return raw, encoding


def changed(rng: random.Random, data: xr.Dataset) -> tuple[xr.Dataset, str]:
    """Return what a program makes of a dataset that it has read, and in one word how. Encodings stay as they are."""
    how = rng.choice(("nothing", "isel", "point", "transpose", "concat", "expand", "chunk", "astype", "values"))
    found = {
        "isel": lambda: data.isel(x=rng.choice(([0], [2, 1], slice(1, None)))),
        "point": lambda: data.isel(x=0),
        "transpose": lambda: data.transpose("y", "x", missing_dims="ignore"),
        "concat": lambda: xr.concat([data, data], "x", data_vars="all"),
        "expand": lambda: data.expand_dims("z"),
        "chunk": lambda: data.chunk(x=2),
    }.get(how, lambda: data.copy(deep=True))()
    for name, each in found.variables.items():
        kind = each.dtype.kind
        if how == "astype" and kind in "biuf":
            with np.errstate(all="ignore"):
                to = rng.choice(("f4", "f8", "i2", "i4", "u1", "bool", "U12"))
                found[name] = each.dims, each.values.astype(to), each.attrs
        if how == "values" and kind in "if":
            found[name] = each.copy(data=(each.values * rng.choice((2, -1, 0.5))).astype(each.dtype))
        found[name].encoding = dict(data[name].encoding)
    return found, how
