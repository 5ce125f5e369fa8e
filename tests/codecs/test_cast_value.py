"""Every cast is compared with one in exact fractions over the list of values of the target."""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.codecs import CastValue
from zardine.codecs.cast.casting import CastError, Rounding, cast_numbers, plain_numbers
from zardine.data_types import data_type_for
from zardine.errors import ChunkDecodeError, EncodeError

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)]
SMALL = [
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16", "float16",
]  # fmt: skip
FLOATS = [*SMALL, "float32", "float64"]
ROUNDINGS = [str(mode) for mode in Rounding]


@cache
def small_values(name):
    """All finite values of a float format of at most 16 bits in order, with whether the last digit is even."""
    data_type = data_type_for(name)
    size = data_type.dtype.itemsize
    width = data_type.bits if data_type.bits and data_type.bits < 8 else 8 * size
    codes = np.arange(1 << width, dtype=f"u{size}")
    with np.errstate(invalid="ignore"):
        values = codes.view(data_type.dtype).astype(float)
    even = {float(value): int(code) % 2 == 0 for code, value in zip(codes, values, strict=True) if math.isfinite(value)}
    return sorted(even), even


def enclose(name, value):
    """The neighbours of a fraction in a format, the first one at or below; and whether that one is even."""
    if name in SMALL:
        values, even = small_values(name)
        at = bisect_right(values, value) - 1
        step = values[-1] - values[-2] if values[0] <= 0 else values[-1]
        top = Fraction(values[-1]) + Fraction(step)
        if abs(value) >= top:  # rounding knows no limit of the exponent: this stays beyond the range
            return value, value, True
        low = Fraction(values[at]) if at >= 0 else (-top if values[0] <= 0 else None)
        high = Fraction(values[at + 1]) if at + 1 < len(values) else top
        return low, high, (even[values[at]] if at >= 0 else not even[values[0]])
    digits, least = {"float32": (24, -149), "float64": (53, -1074)}[name]
    if value == 0:
        return Fraction(0), Fraction(2) ** least, True
    exponent = max(math.floor(math.log2(abs(value))) - digits + 1, least)
    while abs(value) / Fraction(2) ** exponent >= 2**digits:
        exponent += 1
    while exponent > least and abs(value) / Fraction(2) ** exponent < 2 ** (digits - 1):
        exponent -= 1
    unit = Fraction(2) ** exponent
    steps = math.floor(value / unit)
    return steps * unit, (steps + 1) * unit, steps % 2 == 0


def choose(value, low, high, even, rounding):
    if low is not None and value == low:
        return low
    if rounding == "towards-zero":
        return low if value > 0 else high
    if rounding == "towards-positive":
        return high
    if rounding == "towards-negative":
        return low
    if low is None:
        return None
    if value - low != high - value:
        return low if value - low < high - value else high
    if rounding == "nearest-even":
        return low if even else high
    return high if value > 0 else low


def limits(name):
    if "int" in name:
        data_type = data_type_for(name)
        return data_type.low, data_type.high
    if name in SMALL:
        values, _ = small_values(name)
        return Fraction(values[0]), Fraction(values[-1])
    top = Fraction(float(np.finfo(name).max))
    return -top, top


def expected(value, target, rounding, out_of_range):
    """What casting a Python number has to give: a number, or ``None`` for an error."""
    integer = "int" in target
    special = {"float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3", "float8_e3m4"}
    if isinstance(value, float) and math.isnan(value):
        return value if target in special or "fnuz" in target or "e8m0" in target else None
    if isinstance(value, float) and math.isinf(value):
        return value if target in special else None
    exact = Fraction(value)
    low, high = limits(target)
    if not integer and low > 0 and exact < low:
        result = None  # a format without zero: below its lowest value there is nothing to round to
        below = True
    else:
        neighbours = (Fraction(math.floor(exact)), Fraction(math.floor(exact) + 1), math.floor(exact) % 2 == 0)
        result = choose(exact, *(neighbours if integer else enclose(target, exact)), rounding)
        below = result < low
    if result is not None and low <= result <= high:
        return result
    if out_of_range == "clamp":
        if target in special:
            return -math.inf if below else math.inf
        return low if below else high
    if out_of_range == "wrap":
        span = high - low + 1
        return (result - low) % span + low
    return None


def cast(value, source, target, rounding, out_of_range):
    source, target = data_type_for(source), data_type_for(target)
    array = np.array([value]).astype(source.dtype) if "int" not in source.name else np.array([value], source.dtype)
    result = cast_numbers(array, source, target, rounding, out_of_range)
    assert result.dtype == target.dtype
    assert result.shape == (1,)
    return plain_numbers(result, target)[0]


def agree(value, source, target, rounding, out_of_range):
    wanted = expected(value, target, rounding, out_of_range)
    if wanted is None:
        with pytest.raises(CastError):
            cast(value, source, target, rounding, out_of_range)
        return
    found = cast(value, source, target, rounding, out_of_range)
    if isinstance(wanted, float):
        assert found == wanted or (math.isnan(found) and math.isnan(wanted))
    else:
        assert Fraction(found.item()) == wanted


modes = given(
    data=st.data(),
    target=st.sampled_from(INTEGERS + FLOATS),
    rounding=st.sampled_from(ROUNDINGS),
    out_of_range=st.sampled_from([None, "clamp", "wrap"]),
)


def near_limits(target):
    """Numbers at, halfway between, and beyond values of the target."""
    if "int" in target:
        low, high = limits(target)
        edge = st.sampled_from([float(low), float(high), float(high + 1), float(low - 1)])
        return st.builds(lambda number, part: number + part, edge, st.sampled_from([0, 0.25, 0.5, 0.75, -0.5, 1, 2.5]))
    if target in SMALL:
        values, _ = small_values(target)
        pairs = st.integers(0, len(values) - 2)
        parts = st.sampled_from([0, 0.25, 0.5, 0.75])
        inner = st.builds(lambda at, part: values[at] + part * (values[at + 1] - values[at]), pairs, parts)
        step = values[-1] - values[-2]
        outer = st.sampled_from([values[-1] + part * step for part in (0.25, 0.5, 0.75, 1, 1.5)])
        return st.one_of(inner, outer, outer.map(lambda number: -number))
    return st.floats(width=32).flatmap(
        lambda number: st.sampled_from([number, number * (1 + 2**-24), number * 1.0000001])
    )


@settings(max_examples=examples(150), deadline=None)
@modes
def test_floats(data, target, rounding, out_of_range):
    if out_of_range == "wrap" and "int" not in target:
        out_of_range = None
    value = float(data.draw(st.one_of(st.floats(), near_limits(target), st.floats(-300, 300))))
    agree(value, "float64", target, rounding, out_of_range)


@settings(max_examples=examples(150), deadline=None)
@modes
def test_integers(data, target, rounding, out_of_range):
    if out_of_range == "wrap" and "int" not in target:
        out_of_range = None
    source = data.draw(st.sampled_from(INTEGERS))
    low, high = limits(source)
    powers = st.builds(lambda exponent, more: (1 << exponent) + more, st.integers(0, 64), st.integers(-1025, 1025))
    values = st.one_of(st.integers(low, high), powers, powers.map(lambda number: -number), st.integers(-20, 20))
    value = data.draw(values.filter(lambda number: low <= number <= high))
    agree(value, source, target, rounding, out_of_range)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_edges_of_64_bits(rounding):
    for target in ("int64", "uint64"):
        for value in (
            2.0**63,
            np.nextafter(2.0**63, 0),
            2.0**64,
            np.nextafter(2.0**64, 0),
            -(2.0**63),
            -1.0,
            -0.5,
            1e300,
        ):
            for out_of_range in (None, "clamp", "wrap"):
                agree(float(value), "float64", target, rounding, out_of_range)
    for source, values in (("int64", (2**63 - 1, -(2**63), 2**53 + 1)), ("uint64", (2**64 - 1, 2**63, 2**53 + 3))):
        for value in values:
            for target in ("float64", "float32", "float16", "int64", "uint64", "int8"):
                for out_of_range in (None, "clamp"):
                    agree(value, source, target, rounding, out_of_range)


def test_signed_zero_is_kept():
    for target in ("float32", "float16", "bfloat16", "float8_e5m2", "float4_e2m1fn"):
        for value in (-0.0, -1e-300):
            assert math.copysign(1, cast(value, "float64", target, "nearest-even", None)) == -1
    assert cast(-0.0, "float64", "float8_e5m2fnuz", "nearest-even", None) == 0


def test_shapes_and_empty_arrays(h):
    codec = CastValue(data_type="int8")
    for shape in ((), (0,), (2, 3), (0, 4)):
        array = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape, order="F")
        spec = h.spec_like(array)
        encoded = codec.encode(array, spec)
        assert encoded.shape == shape
        assert encoded.dtype == np.int8
        assert np.array_equal(codec.decode(encoded, spec), array)


NUMPY_LIKE = {
    "data_type": "uint8",
    "rounding": "towards-zero",
    "out_of_range": "wrap",
    "scalar_map": {"encode": [["NaN", 0], ["Infinity", 0], ["-Infinity", 0]]},
}


def test_the_numpy_example_of_the_specification(h):
    codec = h.read({"name": "cast_value", "configuration": NUMPY_LIKE})
    array = np.array([np.nan, np.inf, -np.inf, 300.7, -1.5, 7])
    assert codec.encode(array, h.spec_like(array)).tolist() == [0, 0, 0, 44, 255, 7]
    assert codec.to_json() == {"name": "cast_value", "configuration": NUMPY_LIKE}


def test_scalar_map(h):
    codec = CastValue(data_type="uint8", scalar_map={"encode": [["NaN", 0], [1, 9], [1, 8]], "decode": [[0, "NaN"]]})
    spec = h.spec("float64", (4,), np.nan)
    assert codec.check(spec) is None
    assert codec.encoded_spec(spec).fill == 0
    assert codec.encoded_spec(spec).data_type.name == "uint8"
    encoded = codec.encode(np.array([np.nan, 1, 2, 200]), spec)
    assert encoded.tolist() == [0, 9, 2, 200]
    assert np.array_equal(codec.decode(encoded, spec), [np.nan, 9, 2, 200], equal_nan=True)
    as_mapping = CastValue(data_type="uint8", scalar_map={"encode": {"NaN": 0}})
    assert as_mapping.configuration()["scalar_map"] == {"encode": [["NaN", 0]]}


def test_errors_name_the_value(h):
    spec = h.spec("float64", (2,))
    with pytest.raises(EncodeError, match=r"300\.0 is out of the range of uint8") as raised:
        CastValue(data_type="uint8").encode(np.array([1.0, 300.0]), spec)
    assert raised.value.codec == "cast_value"
    with pytest.raises(EncodeError, match="nan has no counterpart in uint8"):
        CastValue(data_type="uint8", out_of_range="clamp").encode(np.array([np.nan]), spec)
    with pytest.raises(ChunkDecodeError, match=r"300 is out of the range of uint8"):
        CastValue(data_type="int16").decode(np.array([300], np.int16), h.spec("uint8", (1,)))
    with pytest.raises(EncodeError, match="the fill value cannot be cast"):
        CastValue(data_type="uint8").encoded_spec(h.spec("float64", (1,), -1))


def test_check(h):
    codec = CastValue(data_type="uint8")
    assert codec.check(h.spec("float32", (1,), 3)) is None
    assert "cannot cast the fill value: -1.0 is out" in codec.check(h.spec("float32", (1,), -1))
    assert "turns the fill value 0.5 into 0.0" in codec.check(h.spec("float32", (1,), 0.5))
    assert "cannot cast from data type bool" in codec.check(h.spec("bool", (1,)))
    wrong = CastValue(data_type="uint8", scalar_map={"encode": [[1, 300]]})
    assert "scalar_map.encode[0][1]" in wrong.check(h.spec("float32", (1,)))


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({}, "data_type: required member is missing"),
        ({"data_type": "string"}, "data_type: expected a data type of integers or floats"),
        ({"data_type": "int9"}, "data_type"),
        ({"data_type": "int8", "rounding": "up"}, "rounding: expected one of"),
        ({"data_type": "int8", "out_of_range": None}, "out_of_range: expected one of"),
        ({"data_type": "float32", "out_of_range": "wrap"}, 'out_of_range: "wrap" is for integers, not for float32'),
        ({"data_type": "int8", "scalar_map": []}, "scalar_map: expected an object"),
        ({"data_type": "int8", "scalar_map": {"both": []}}, "scalar_map.both: unknown member"),
        ({"data_type": "int8", "scalar_map": {"encode": [[1]]}}, "scalar_map.encode[0]: expected an array of two"),
        ({"data_type": "int8", "scalar_map": {"decode": 3}}, "scalar_map.decode: expected an array"),
        ({"data_type": "int8", "more": 1}, "more: unknown member"),
    ],
)
def test_refusals(h, configuration, expected):
    (problem,) = h.problems_of({"name": "cast_value", "configuration": configuration})
    assert problem.startswith(f"codecs[0].configuration.{expected}")


def test_configuration(h):
    codec = CastValue(data_type=data_type_for("int16"))
    assert codec.to_json() == {
        "name": "cast_value",
        "configuration": {"data_type": "int16", "rounding": "nearest-even"},
    }
    assert h.read({"name": "cast_value", "configuration": {"data_type": "int16"}}) == codec
    assert hash(codec) == hash(CastValue(data_type="int16"))
    with pytest.raises(ValueError, match="CastValue: data_type"):
        CastValue(data_type="string")
