"""Short ways to parse a type and its fill values, and to look at the problems."""

from collections.abc import Callable
from typing import Any

import pytest

from zardine.data_types import DataType, parse_data_type
from zardine.json_document import Problems


@pytest.fixture
def parse() -> Callable[[Any], DataType]:
    """The data type for JSON that has to be right."""

    def run(value: Any) -> DataType:
        problems = Problems()
        data_type = parse_data_type(value, "data_type", problems)
        assert not problems.found
        assert data_type is not None
        return data_type

    return run


@pytest.fixture
def type_faults() -> Callable[[Any], list[tuple[str, str]]]:
    """Places and texts of the problems of a wrong data type."""

    def run(value: Any) -> list[tuple[str, str]]:
        problems = Problems()
        assert parse_data_type(value, "data_type", problems) is None
        return [(problem.place, problem.message) for problem in problems.found]

    return run


@pytest.fixture
def fill_faults(parse: Callable[[Any], DataType]) -> Callable[[Any, Any], list[tuple[str, str]]]:
    """Places and texts of the problems of a wrong fill value."""

    def run(value: Any, fill: Any) -> list[tuple[str, str]]:
        problems = Problems()
        assert parse(value).parse_fill(fill, "fill_value", problems) is None
        return [(problem.place, problem.message) for problem in problems.found]

    return run


@pytest.fixture
def fill_bytes(parse: Callable[[Any], DataType]) -> Callable[[Any, Any], bytes]:
    """Bytes of a fill value that has to be right, after checking shape, dtype and the way back through JSON."""

    def run(value: Any, fill: Any) -> bytes:
        data_type, problems = parse(value), Problems()
        array = data_type.parse_fill(fill, "fill_value", problems)
        assert not problems.found
        assert array is not None
        assert array.shape == ()
        assert array.dtype == data_type.dtype
        again = data_type.parse_fill(data_type.fill_to_json(array), "fill_value", problems)
        assert again is not None
        assert again.tobytes() == array.tobytes()
        return array.tobytes()

    return run
