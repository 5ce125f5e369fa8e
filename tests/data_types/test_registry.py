from importlib import metadata

import pytest

from zardine.data_types import DataType, data_type_for, parse_data_type, register_data_type, registry
from zardine.json_document import Problems

NAMES = [
    "bool",
    "int8",
    "uint64",
    "float16",
    "complex128",
    "string",
    "bytes",
    "variable_length_bytes",
    "complex_float16",
]


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry._OTHERS, "_ready", {})


@pytest.mark.parametrize("name", NAMES)
def test_short_and_long_spelling(parse, name):
    assert parse(name) is parse({"name": name}) is parse({"name": name, "configuration": {}})
    assert parse(name).to_json() == name


@pytest.mark.parametrize(
    ("value", "place", "text"),
    [
        ("flaot32", "data_type", 'unknown data type "flaot32"; did you mean "float32"'),
        ({"name": "int33"}, "data_type", 'unknown data type "int33"'),
        (7, "data_type", "expected a name or an object"),
        (None, "data_type", "expected a name or an object"),
        (["int8"], "data_type", "expected a name or an object"),
        ("", "data_type.name", "expected a non-empty string"),
        ({}, "data_type.name", "the member is missing; expected a non-empty string"),
        ({"name": ["int8"]}, "data_type.name", "expected a non-empty string"),
        ({"name": "int8", "must_understand": False}, "data_type.must_understand", "false is not allowed here"),
        ({"name": "int8", "configuration": {"x": 1}}, "data_type.configuration.x", "unknown member"),
        ({"name": "int8", "configuration": []}, "data_type.configuration", "expected an object"),
        ({"name": "int8", "extra": 1}, "data_type.extra", "unknown member"),
        ("<f4", "data_type", 'unknown data type "<f4"'),
    ],
)
def test_refused(type_faults, value, place, text):
    ((found, message),) = type_faults(value)
    assert found == place
    assert message.startswith(text)


def test_unknown_is_marked():
    problems = Problems()
    parse_data_type("x" * 10_000, "data_type", problems)
    assert problems.unknown_extension
    assert len(problems.found[0].message) < 200


class Decimal32(DataType):
    name = "decimal32"
    dtype = data_type_for("uint32").dtype
    to_json = parse_fill = fill_to_json = default_fill = lambda self, *arguments: self.name


def test_register(registered):
    seen = []

    def factory(configuration, place, problems):
        seen.append((configuration, place))
        return Decimal32()

    register_data_type("decimal32", factory)
    for value in ("decimal32", {"name": "decimal32", "configuration": {"x": 1}}):
        assert isinstance(parse_data_type(value, "data_type", Problems()), Decimal32)
    assert isinstance(data_type_for("decimal32"), Decimal32)
    assert seen[:2] == [(None, "data_type"), ({"x": 1}, "data_type")]


@pytest.mark.parametrize("name", ["", "int8", "r24", "struct", "bfloat16", "raw_bytes"])
def test_register_refused(name):
    with pytest.raises(ValueError, match="cannot be registered"):
        register_data_type(name, lambda *arguments: None)


def test_entry_point(registered, monkeypatch):
    calls = []

    def entry_points(*, group, name):
        calls.append(name)
        value = {"decimal32": f"{__name__}:make", "broken": "no_such_module_here:make"}.get(name)
        return [metadata.EntryPoint(name, value, group)] if value else []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    monkeypatch.setattr(metadata.EntryPoint, "load", load)
    for _ in range(2):
        assert isinstance(parse_data_type("decimal32", "data_type", Problems()), Decimal32)
    parse_data_type("int8", "data_type", Problems())
    assert calls == ["decimal32"]
    problems = Problems()
    assert parse_data_type("broken", "data_type", problems) is None
    assert "cannot be loaded" in problems.found[0].message


def load(self):
    if self.name == "broken":
        raise ImportError("no such module")
    return lambda configuration, place, problems: Decimal32()


def test_equality_and_hash():
    one, other = data_type_for("U5"), data_type_for("<U5")
    assert one == other
    assert hash(one) == hash(other)
    assert one != data_type_for("U6")
    assert data_type_for("int8") != "int8"
