import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.data_types import data_type_for, parse_data_type
from zardine.json_document import Problems

POINT = {"name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "float32"}, ["y", "float32"]]}}


def struct(*fields, name="struct"):
    return {"name": name, "configuration": {"fields": [{"name": n, "data_type": t} for n, t in fields]}}


NESTED = struct(("id", "int32"), ("flags", "uint8"), ("p", POINT), ("z", "complex128"), ("s", "r24"))
LEGACY = {"name": "structured", "configuration": {"fields": [["a", "int32"], ["b", "float64"]]}}


def test_layout(parse):
    data_type = parse(NESTED)
    assert data_type.words == ((4, 1), (1, 1), (4, 2), (8, 2), (1, 3))
    assert data_type.item_size == data_type.dtype.itemsize == 32
    assert data_type.needs_endian
    assert not parse(struct(("a", "uint8"), ("b", "bool"))).needs_endian
    assert parse(struct(("a", "uint8"), ("b", "bool"), ("c", "r8"))).words == ((1, 3),)
    assert parse(data_type.to_json()) == data_type


def test_fill(fill_bytes):
    fill = {"id": -1, "flags": 7, "p": {"x": "0x7fc00001", "y": -0.0}, "z": [1, 2], "s": [1, 2, 3]}
    data = np.int32(-1).tobytes() + b"\7" + np.array([0x7FC00001, 0x80000000], "u4").tobytes()
    data += np.complex128(1 + 2j).tobytes() + b"\1\2\3"
    assert fill_bytes(NESTED, fill) == data


@given(st.binary(min_size=32, max_size=32))
def test_every_bit_pattern_survives(data):
    problems = Problems()
    data_type = parse_data_type(NESTED, "", problems)
    fill = np.frombuffer(data, data_type.dtype).reshape(())
    assert data_type.parse_fill(data_type.fill_to_json(fill), "", problems).tobytes() == data
    assert data_type.cast_fill(fill[()]).tobytes() == data
    assert data_type.parse_fill(base64.b64encode(data).decode(), "", problems).tobytes() == data


@pytest.mark.parametrize(
    ("fill", "places"),
    [
        ({"x": 1.0}, ["fill_value.y"]),
        ({"x": 1.0, "y": 2.0, "z": 3.0}, ["fill_value.z"]),
        ({"x": "a", "y": None}, ["fill_value.x", "fill_value.y"]),
        ([1.0, 2.0], ["fill_value"]),
        (0, ["fill_value"]),
        (None, ["fill_value"]),
        ("AAAA", ["fill_value"]),
        ("?", ["fill_value"]),
    ],
)
def test_fill_refused(fill_faults, fill, places):
    assert [place for place, _ in fill_faults(POINT, fill)] == places


def test_place_of_a_nested_fault(fill_faults):
    outer = struct(("p", POINT), ("z", "complex64"))
    faults = fill_faults(outer, {"p": {"x": 1, "y": True}, "z": [0, "q"]})
    assert [place for place, _ in faults] == ["fill_value.p.y", "fill_value.z[1]"]


@pytest.mark.parametrize(
    ("document", "place", "text"),
    [
        ("struct", ".configuration.fields", "the member is missing; expected an array of one field or more"),
        (struct(), ".configuration.fields", "expected an array of one field or more"),
        ({"name": "struct", "configuration": {"fields": {"x": 1}}}, ".configuration.fields", "expected an array"),
        (struct(("x", "int8"), ("x", "int8")), ".configuration.fields[1]", 'a second field with the name "x"'),
        (struct(("", "int8")), ".configuration.fields[0].name", "expected a non-empty string"),
        (struct((3, "int8")), ".configuration.fields[0].name", "expected a non-empty string"),
        (struct(("x", "string")), ".configuration.fields[0].data_type", "string varies in length"),
        (struct(("x", "int9")), ".configuration.fields[0].data_type", 'unknown data type "int9"'),
        (struct(("x", None)), ".configuration.fields[0].data_type", "expected a name or an object"),
        ({"name": "struct", "configuration": {"fields": [["x"]]}}, ".configuration.fields[0]", "expected an object"),
        (
            struct(*((name, {"name": "raw_bytes", "configuration": {"length_bytes": 2**24}}) for name in "ab")),
            ".configuration.fields",
            "the fields take 33554432 bytes together",
        ),
    ],
)
def test_type_refused(type_faults, document, place, text):
    ((found, message),) = type_faults(document)
    assert found == f"data_type{place}"
    assert message.startswith(text)


def test_deep_nesting(parse, type_faults):
    document = "int8"
    for _ in range(32):
        document = struct(("x", document))
    assert parse(document).item_size == 1
    for more in (1, 50, 10_000):
        for _ in range(more):
            document = struct(("x", document))
        ((_, text),) = type_faults(document)
        assert text == "structs are nested more than 32 deep"


def test_legacy_spelling_is_kept(parse):
    data_type = parse(LEGACY)
    assert data_type.name == "structured"
    assert data_type.to_json() == LEGACY
    fill = data_type.parse_fill({"a": 1, "b": 2.0}, "", Problems())
    text = data_type.fill_to_json(fill)
    assert text == "AQAAAAAAAAAAAABA"
    assert data_type.parse_fill(text, "", Problems()).tolist() == (1, 2.0)
    assert data_type_for([("a", "i4"), ("b", "f8")]).name == "struct"


def test_cast(parse):
    data_type = parse(POINT)
    aligned = np.zeros((), np.dtype([("y", ">f4"), ("x", "f8")], align=True))
    aligned["x"], aligned["y"] = 1, 2
    for value in ((1, 2), [1, 2.0], {"y": 2, "x": 1}, np.array((1, 2), data_type.dtype), aligned, aligned[()]):
        assert data_type.cast_fill(value).tolist() == (1, 2)
    assert data_type.cast_fill(0).tolist() == (0, 0)
    assert data_type.cast_fill(bytes(8)).tolist() == (0, 0)
    for wrong in ((1,), (1, 2, 3), {"x": 1}, {"x": 1, "y": 1, "z": 1}, bytes(7), (1, 1e39)):
        with pytest.raises(ValueError, match="cannot be a fill value"):
            data_type.cast_fill(wrong)
    for wrong in (None, "x", (1, None)):
        with pytest.raises(TypeError):
            data_type.cast_fill(wrong)


def test_repair(parse):
    data_type = parse(struct(("n", "int32"), ("in", struct(("ok", "bool"), ("x", "float32")))))
    clean = np.zeros(3, data_type.dtype)
    assert data_type.repair_bits(clean) is clean
    stored = np.frombuffer(bytes([1, 0, 0, 0, 9, 0, 0, 0, 0]) * 2, data_type.dtype)
    repaired = data_type.repair_bits(stored)
    assert repaired["in"]["ok"].view(np.uint8).tolist() == [1, 1]
    assert repaired["n"].tolist() == [1, 1]
    assert stored.tobytes()[4] == 9
    numbers = parse(POINT)
    array = np.zeros(2, numbers.dtype)
    assert numbers.repair_bits(array) is array


def test_default(parse):
    data_type = parse(
        struct(("a", "int8"), ("t", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}))
    )
    assert data_type.fill_to_json(data_type.default_fill()) == {"a": 0, "t": "NaT"}
