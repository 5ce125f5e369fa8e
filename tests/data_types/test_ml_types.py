import pickle
import subprocess
import sys

import numpy as np
import pytest

from zardine.data_types import data_type_for, ml_types, parse_data_type
from zardine.json_document import Problems

ml_dtypes = pytest.importorskip("ml_dtypes")

NAN = {
    "bfloat16": 0x7FC0,
    "float8_e3m4": 0x78,
    "float8_e4m3": 0x7C,
    "float8_e4m3b11fnuz": 0x80,
    "float8_e4m3fn": 0x7F,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2": 0x7E,
    "float8_e5m2fnuz": 0x80,
    "float8_e8m0fnu": 0xFF,
}
WITHOUT_NAN = ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"]
WITH_INFINITY = ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e5m2"]


def stored(fill):
    return int(fill.view(f"u{fill.dtype.itemsize}"))


@pytest.mark.parametrize("name", sorted(ml_types.NAMES))
def test_every_name(parse, name):
    data_type = parse(name)
    assert data_type.to_json() == name
    assert pickle.loads(pickle.dumps(data_type)) == data_type
    if not name.startswith("complex_"):
        assert data_type.dtype == np.dtype(getattr(ml_dtypes, name))
        assert data_type_for(data_type.dtype) == data_type
        assert data_type_for(getattr(ml_dtypes, name)) == data_type


@pytest.mark.parametrize("name", sorted(ml_types.FLOAT_BITS))
def test_every_bit_pattern_survives(parse, name):
    data_type = parse(name)
    size = data_type.dtype.itemsize
    patterns = range(0, 256**size, 1 if size == 1 else 251)
    for pattern in patterns:
        fill = np.array(pattern, f"u{size}").view(data_type.dtype)
        fill = data_type.repair_bits(fill)
        again = data_type.parse_fill(data_type.fill_to_json(fill), "", Problems())
        assert again is not None
        assert again.tobytes() == fill.tobytes()


@pytest.mark.parametrize("name", [*NAN, *WITHOUT_NAN])
def test_special_values(parse, fill_faults, name):
    data_type = parse(name)
    if name in NAN:
        assert stored(data_type.parse_fill("NaN", "", Problems())) == NAN[name]
        assert stored(data_type.cast_fill(np.nan)) == NAN[name]
    else:
        assert fill_faults(name, "NaN")[0][1].startswith("expected a number or ")
        with pytest.raises(ValueError, match="no NaN"):
            data_type.cast_fill(np.nan)
    if name in WITH_INFINITY:
        assert np.isinf(float(data_type.parse_fill("-Infinity", "", Problems())))
        assert np.isinf(float(data_type.parse_fill(1e39, "", Problems())))
    else:
        assert "found" in fill_faults(name, "Infinity")[0][1]
        with pytest.raises(ValueError, match="no infinity"):
            data_type.cast_fill(np.inf)
        assert "within the range" in fill_faults(name, 1e39)[0][1]


def test_format_without_zero(parse, fill_faults):
    data_type = parse("float8_e8m0fnu")
    assert stored(data_type.default_fill()) == 0
    assert stored(data_type.parse_fill(0, "", Problems())) == 0
    assert stored(data_type.parse_fill(1, "", Problems())) == 127
    assert "within the range" in fill_faults("float8_e8m0fnu", -1)[0][1]


@pytest.mark.parametrize(("name", "low", "high"), [("int2", -2, 1), ("int4", -8, 7), ("uint2", 0, 3), ("uint4", 0, 15)])
def test_integers(fill_bytes, fill_faults, parse, name, low, high):
    data_type = parse(name)
    assert (data_type.bits, data_type.words) == (int(name[-1]), ((1, 1),))
    for value in range(low, high + 1):
        assert fill_bytes(name, value) == np.array(value).astype(data_type.dtype).tobytes()
        assert int(data_type.cast_fill(value)[()]) == value
    for wrong in (low - 1, high + 1):
        assert fill_faults(name, wrong)[0][1].startswith(f"expected an integer from {low} to {high}")
        with pytest.raises(ValueError, match="range"):
            data_type.cast_fill(wrong)
    clean = np.arange(low, high + 1).astype(data_type.dtype)
    assert data_type.repair_bits(clean) is clean
    dirty = (clean.view(np.uint8) ^ np.uint8(0xFF << data_type.bits & 0xFF)).view(data_type.dtype)
    assert data_type.repair_bits(dirty).tobytes() == clean.tobytes()


def test_sign_extension_where_the_library_wants_it():
    from zardine.data_types.sub_byte import keep_low_bits

    array = np.array([0x0F, 0xFF, 0x07, 0xF7, 0x08], np.uint8)
    assert keep_low_bits(array, 4, extend_sign=True).tolist() == [0xFF, 0xFF, 0x07, 0x07, 0xF8]
    regular = np.array([0xFF, 0x07], np.uint8)
    assert keep_low_bits(regular, 4, extend_sign=True) is regular


def test_high_bits_of_short_floats(parse, fill_bytes):
    data_type = parse("float6_e2m3fn")
    dirty = np.array([0xC1, 0x3F], np.uint8).view(data_type.dtype)
    assert data_type.repair_bits(dirty).view(np.uint8).tolist() == [1, 0x3F]
    pairs = parse("complex_float4_e2m1fn")
    assert (pairs.bits, pairs.components, pairs.words) == (4, 2, ((1, 2),))
    dirty = np.array([0xF1, 0x03], np.uint8).view(pairs.dtype)
    assert pairs.repair_bits(dirty).view(np.uint8).tolist() == [1, 3]
    assert fill_bytes("float4_e2m1fn", "0x0f") == b"\x0f"
    assert fill_bytes("complex_bfloat16", [1, "0x7fc1"]) == np.array([0x3F80, 0x7FC1], "u2").tobytes()


def test_in_a_struct():
    data_type = data_type_for([("a", ml_dtypes.bfloat16), ("b", ml_dtypes.int4)])
    fill = data_type.cast_fill((1.5, -3))
    assert data_type.fill_to_json(fill) == {"a": 1.5, "b": -3}
    assert data_type.words == ((2, 1), (1, 1))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    ml_types.ml_data_type.cache_clear()
    for name in ("bfloat16", "complex_float8_e5m2", "int4"):
        problems = Problems()
        assert parse_data_type(name, "data_type", problems) is None
        assert problems.unknown_extension
        assert 'pip install "zardine[ml]"' in problems.found[0].message
    ml_types.ml_data_type.cache_clear()


def test_imported_only_when_needed():
    code = "import sys, zardine.data_types as d; d.data_type_for('f4'); assert 'ml_dtypes' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
