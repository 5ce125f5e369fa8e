"""Values that NumPy would change or not compare: they are stored and found as they are, or refused before a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from zardine import vectors
from zardine.errors import DataError, SelectionError
from zardine.storage import MemoryStore
from zardine.vectors.reading.conditions import holds

P = np.arange(12.0).reshape(4, 3)
LINES = [P[:2], P[:0]]
HUGE = 10**400
NOT_SHOWN = 10**5000  # Python has no text for it


def points(attributes: Any = None, **options: Any) -> MemoryStore:
    store = MemoryStore()
    vectors.write_points(store, P, vertex_attributes=attributes, **options)
    return store


def lines(given: Any = LINES, **options: Any) -> MemoryStore:
    store = MemoryStore()
    vectors.write_polylines(store, given, **options)
    return store


def found(values: Any, condition: Any) -> list[Any]:
    values = np.asarray(values)
    return list(values[holds(values, condition, "a")].tolist())


RANGES: list[tuple[str, list[Any], range]] = [
    ("u1", list(range(10)), range(9, 0, -3)),
    ("f2", [5, 12], range(100000, 0, -7)),
    ("u1", list(range(10)), range(300, 0, -3)),
    ("f4", [16777216, 16777218, 1, 2], range(16777217, 0, -2)),
    ("i8", [0, 5, -3, 2**63 - 1, -(2**63)], range(-(2**63), 2**63, 3)),
    ("u8", [0, 5, 2**63 + 1, 2**64 - 1], range(2**64 - 1, -HUGE, -2)),
    ("i8", [0, 5, -3], range(-HUGE, HUGE, 2**63)),
    ("i8", [0, 5, -3], range(5, HUGE, 2**70)),
    ("i8", [0, 5, -3], range(5, 5)),
    ("i1", [0, 5, -3], range(200, 300)),
    ("f8", [2.0**63, 2.0**70, 1e300, 3.0], range(0, 2**71, 2**63)),
    ("?", [True, False], range(1, 9)),
]


@pytest.mark.parametrize(("dtype", "values", "wanted"), RANGES)
def test_ranges_are_those_of_python(dtype: str, values: list[Any], wanted: range) -> None:
    assert found(np.array(values, dtype), wanted) == [each for each in values if int(each) in wanted]


def test_ranges_hold_whole_numbers_only() -> None:
    values = np.array([0.5, np.nan, np.inf, -np.inf, 2.0, -0.0])
    assert found(values, range(-HUGE, HUGE)) == [2.0, 0.0]


def test_long_conditions_are_quick() -> None:
    texts = np.array([f"t{each}" for each in range(1000)] * 200, np.dtypes.StringDType())
    begin = perf_counter()
    assert len(found(np.arange(10), range(0, 10**12, 2))) == 5
    assert len(found(texts, [f"t{each}" for each in range(500)])) == 100_000
    assert len(found(np.arange(200_000), range(1000))) == len(found(np.arange(200_000), list(range(1000))))
    assert perf_counter() - begin < 10  # each text with each: 10^8 comparisons


def counted() -> Iterator[int]:
    yield from (3, 0)


LISTS: list[Callable[[], Any]] = [
    lambda: {3: "x", 0: "y"}.keys(),
    lambda: {"x": 3, "y": 0}.values(),
    lambda: iter([3, 0]),
    counted,
    lambda: pd.Series([3, 0, 9, 8]),
    lambda: pd.Index([0, 3]),
    lambda: np.array([3, 0, 7, 7]),
    lambda: np.array([3, 0], np.uint64),
    lambda: {3.0, 0, 1.5, np.nan, None, "x"},
]


@pytest.mark.parametrize("make", LISTS)
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
def test_whatever_can_be_gone_through_is_a_list(make: Callable[[], Any], dtype: str) -> None:
    read = vectors.read_points(points({"n": np.arange(4).astype(dtype)}), where={"n": make()})
    assert read.attributes["n"].tolist() == [0, 3]


def test_lists_of_texts() -> None:
    values = np.array(["a", None, "b", "c"], object)
    assert found(values, {"a": 1, "c": 2}.keys()) == ["a", "c"]
    assert found(values, pd.Series(["c", "b", "x", "x"])) == ["b", "c"]
    assert found(values, [None, np.str_("b"), 1]) == [None, "b"]


def test_lists_are_compared_as_their_values_would_be() -> None:
    assert found(np.array([0.1, 0.2], "f4"), [0.1]) == [np.float32(0.1)]
    assert found(np.array([2**60, 2**60 + 1]), [2**60 + 1]) == [2**60 + 1]
    assert found(np.array([1, 2]), [1.5, 2.0, HUGE, 2 + 0j, "1", None, object()]) == [2]
    assert found(np.array([1, 2]), np.array(2)) == [2]


@pytest.mark.parametrize(
    "condition",
    [np.ma.masked_equal([1, 2], 2), {1: 0}, [[1, 2]], [np.arange(4)], [{1: 2}], pd.NA, [pd.NA], np.zeros((2, 2))],
)
def test_what_is_no_condition(condition: Any) -> None:
    with pytest.raises(SelectionError, match="where"):
        vectors.read_points(points({"n": np.arange(4)}), where={"n": condition})


@pytest.mark.parametrize("condition", [HUGE, slice(0, HUGE), slice(-HUGE, None), [HUGE], [1.0, HUGE]])
def test_integers_that_no_float_holds(condition: Any) -> None:
    with pytest.raises(SelectionError, match="where"):
        vectors.read_points(points({"n": np.arange(4.0)}), where={"n": condition})


@pytest.mark.parametrize("value", [HUGE, NOT_SHOWN], ids=["huge", "not shown"])
def test_huge_lengths(value: int) -> None:
    with pytest.raises(SelectionError, match="bbox"):
        vectors.read_points(points(), bbox=([0] * 3, [value] * 3))
    for options in ({"chunk_shape": value}, {"chunk_shape": 2, "bin_shape": (1, 1, value)}):
        with pytest.raises(DataError, match="_shape") as caught:
            points(**options)
        assert len(str(caught.value)) < 400


PARTS: list[tuple[Any, str, list[Any]]] = [
    ([[2**60 + 1, 2], []], "int64", [2**60 + 1, 2]),
    ([[True, False], []], "bool", [True, False]),
    ([[2**63 + 5, 1], []], "uint64", [2**63 + 5, 1]),
    ([np.zeros((2, 3), "u1"), []], "uint8", [[0, 0, 0]] * 2),
    ([["x", "y"], []], "StringDType()", ["x", "y"]),
]


@pytest.mark.parametrize(("parts", "dtype", "values"), PARTS)
def test_parts_without_rows_say_nothing_of_the_type(parts: Any, dtype: str, values: list[Any]) -> None:
    read = vectors.read_polylines(lines(vertex_attributes={"n": parts}))
    assert str(read.attributes["n"].dtype) == dtype
    assert read.attributes["n"].tolist() == values


def test_parts_of_integers_of_both_signs() -> None:
    given = [np.array([2**63 + 5, 1], "u8"), np.array([3, 4])]
    read = vectors.read_polylines(lines([P[:2], P[:2]], vertex_attributes={"n": given}))
    assert read.attributes["n"].tolist() == [2**63 + 5, 1, 3, 4]


WRONG_PARTS: list[tuple[Any, str]] = [
    ([np.zeros((2, 3)), np.zeros((2, 2))], "different shapes"),
    ([[[1], [1, 2]], [1, 2]], "no array"),
    ([["x", "y"], [1, 2]], "mixes text"),
    ([[2**60 + 1, 2], [0.5, 1]], "round integers"),
    ([[2**63 + 5, 2], [-1, 1]], "round integers"),
    ([np.array([1, 2]), np.array(["2000", "2001"], "M8[Y]")], "do not go together"),
]


@pytest.mark.parametrize(("parts", "message"), WRONG_PARTS)
def test_parts_that_do_not_go_together(parts: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        lines([P[:2], P[2:]], vertex_attributes={"n": parts})


@pytest.mark.parametrize("line", [np.zeros((2, 3), "M8[s]"), [["1", "2", "3"]], [[1j, 0, 0]], [[HUGE, 0.5, 0]]])
def test_lines_that_are_no_numbers(line: Any) -> None:
    with pytest.raises(DataError, match=r"numbers|no array"):
        lines([P, line])


def test_rows_of_different_lengths_in_one_part() -> None:
    with pytest.raises(DataError, match="no array"):
        lines([P[:2]], vertex_attributes={"n": [[[1], [1, 2]]]})


LISTED: list[tuple[list[Any], str]] = [
    ([2**63 + 5, 1, 2, 3], "uint64"),
    ([np.uint64(2**63 + 5), 1, np.int64(2), True], "uint64"),
    ([2**53, 1.5, 2, 3], "float64"),
    ([1e300, 1, 2, 3], "float64"),
]


@pytest.mark.parametrize(("values", "dtype"), LISTED)
def test_lists_of_integers_stay_integers(values: list[Any], dtype: str) -> None:
    read = vectors.read_points(points({"a": values})).attributes["a"]
    assert str(read.dtype) == dtype
    assert sorted(read.tolist()) == sorted(values)


WRONG_VALUES: list[tuple[Any, str]] = [
    ([2**63 + 5, -1, 2, 3], "exactly"),
    ([2**60 + 1, 1.5, 2, 3], "exactly"),
    ([1, None, 2, 3], "'a' lacks values among its numbers: row 1 has None"),
    ([2**64, 1, 2, 3], "does not fit in 64 bits"),
    ([HUGE, 1.5, 2, 3], "64 bits|too large"),
    (np.arange(4).astype(object), "dtype of its numbers"),
    ([1, "a", 2, None], "mixes text with other values: row 0 has 1"),
    ([1, "a", 2, 3], "mixes text with other values: row 0 has 1"),
    ([{}, {}, {}, {}], "neither a number, a truth value nor text: row 0 has {}"),
    (np.ma.masked_equal(np.arange(4), 2), "'a': values are masked, the first in row 2"),
    (np.ma.array([["a", "b"], [1, 2], [3, "c"], ["d", "e"]], dtype=object, mask=[[0, 0]] * 4), "row 1 has 1"),
    (pd.array([1, 2**53 + 1, None, 4], "Int64"), "'a' lacks values among its integers: row 2"),
    (pa.array([1, 2, None, 2**60]), "'a' lacks values among its integers: row 2"),
    (pd.array([True, None, True, True], "boolean"), "'a' lacks values among its numbers: row 1 has <NA>"),
    (np.array(["2020-01-01", "NaT"] * 2, "M8[D]"), r"'a' is of dtype datetime64\[D\]"),
    (np.array([1.5, pd.NaT, 2, 3], object), "row 1 has NaT"),
]


@pytest.mark.parametrize(("values", "message"), WRONG_VALUES)
def test_attributes_that_are_refused_say_why(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        points({"a": values})


MISSING_TEXT: list[Any] = [
    ["x", None, "y", "x"],
    ["x", float("nan"), "y", "x"],
    ["x", pd.NA, "y", "x"],
    ["x", pd.NaT, "y", "x"],
    np.array(["x", np.datetime64("NaT"), "y", "x"], object),
    np.array(["x", None, "y", "x"], np.dtypes.StringDType(na_object=None)),
    np.array(["x", np.nan, "y", "x"], np.dtypes.StringDType(na_object=np.nan)),
    np.array(["x", pd.NA, "y", "x"], np.dtypes.StringDType(na_object=pd.NA)),
    np.ma.array(["x", "z", "y", "x"], mask=[0, 1, 0, 0]),
    np.ma.array(["x", None, "y", "x"], dtype=object, mask=[0, 0, 0, 0]),
    pd.Series(["x", None, "y", "x"], dtype="str"),
    pd.Series(["x", None, "y", "x"], dtype="string"),
    pd.Series(["x", None, "y", "x"], dtype="category"),
    pa.array(["x", None, "y", "x"]),
    pa.chunked_array([["x", None], ["y", "x"]]),
    pd.Series(["x", None, "y", "x"], dtype="string[pyarrow]"),
]


@pytest.mark.parametrize("values", MISSING_TEXT)
def test_missing_text_is_missing(values: Any) -> None:
    store = points({"a": values})
    read = vectors.read_points(store).attributes["a"].tolist()
    assert sorted(read, key=str) == [None, "x", "x", "y"]
    vectors.set_attribute(store, "b", values)
    assert sorted(vectors.read_points(store).attributes["b"].tolist(), key=str) == [None, "x", "x", "y"]
    vectors.append_points(store, np.zeros((4, 3)), vertex_attributes={"a": values})
    assert vectors.read_points(store).attributes["a"].tolist().count(None) == 2


@pytest.mark.parametrize("values", [[None] * 4, [np.nan] * 4, pd.array([None] * 4, "string"), [pd.NA] * 4])
def test_text_that_is_missing_everywhere(values: Any) -> None:
    assert vectors.read_points(points({"a": np.array(values, object)})).attributes["a"].tolist() == [None] * 4


APPENDED: list[tuple[str, Any]] = [
    ("f8", [2**60 + 1]),
    ("f4", [2**24 + 1]),
    ("f8", [2**63 - 1]),
    ("f2", [2**62]),
    ("i8", [2.0**63]),
    ("i8", [2**63 + 5]),
    ("u8", [-1]),
    ("f4", [1e300]),
]


@pytest.mark.parametrize(("dtype", "values"), APPENDED)
def test_appended_numbers_are_not_rounded(dtype: str, values: Any) -> None:
    store = points({"a": np.zeros(4, dtype)})
    with pytest.raises(DataError, match="cannot hold"):
        vectors.append_points(store, P[:1], vertex_attributes={"a": values})
    assert len(vectors.read_points(store)) == 4


@pytest.mark.parametrize(("dtype", "value"), [("f8", 2**53), ("f4", 0.1), ("f4", np.nan), ("i8", 2.0), ("u8", 5)])
def test_appended_numbers_that_can_be_held(dtype: str, value: Any) -> None:
    store = points({"a": np.zeros(4, dtype)})
    vectors.append_points(store, P[:1], vertex_attributes={"a": [value]})
    read = vectors.read_points(store).attributes["a"]
    np.testing.assert_array_equal(np.sort(read), np.array([0, 0, 0, 0, value], dtype))


@pytest.mark.parametrize("values", [[["x", "y"]], np.array([["x", "y"]], np.dtypes.StringDType()), [1]])
def test_appended_text_of_another_shape_or_kind(values: Any) -> None:
    store = points({"a": list("abcd")}, object_ids=[0, 0, 1, 1], object_attributes={"a": ["x", "y"]})
    for options in ({"vertex_attributes": {"a": values}}, {"object_attributes": {"a": values}}):
        with pytest.raises(DataError, match="'a'"):
            vectors.append_points(store, P[:1], object_ids=[7], **options)
    assert len(vectors.read_points(store)) == 4


@pytest.mark.parametrize("given", [np.zeros(1), [1], "a"])
def test_object_attributes_that_are_no_mapping(given: Any) -> None:
    with pytest.raises(DataError, match="mapping"):
        vectors.append_points(points(), P[:1], object_attributes=given)


PLANE = vectors.ParametricObject("plane", np.arange(4.0), "a")


def plane(coefficients: Any = (0.0, 1.0, 2.0, 3.0), **changes: Any) -> vectors.ParametricObject:
    return vectors.ParametricObject(**{"type": "plane", "coefficients": coefficients, "name": "", **changes})


WRONG_OBJECTS: list[Any] = [
    *(3, None, [("plane", [0, 1, 2, 3], "a")], [None], [plane(name=None)], [plane(name="\ud800")], [plane(name=b"a")]),
    *([plane(each)] for each in ("abcd", list("abcd"), ["1"] * 4, [1j] * 4, [[1], [1, 2]], [HUGE, 1, 2, 3], None)),
    *([plane(each)] for each in ([1, 2, 3, np.nan], [1, 2, 3], [[1, 2, 3, 4]], np.ma.masked_equal([0, 1, 2, 3], 2))),
    *([plane(type=each)] for each in (None, ["plane"], "cube", 1)),
]


@pytest.mark.parametrize("objects", WRONG_OBJECTS)
def test_wrong_parametric_objects(objects: Any) -> None:
    store = points()
    vectors.write_parametric_objects(store, [PLANE])
    with pytest.raises(DataError, match="object"):
        vectors.write_parametric_objects(store, objects)
    assert [each.name for each in vectors.read_parametric_objects(store)] == ["a"]


@pytest.mark.parametrize(
    "types", [None, 3, "plane", ["plane"], {1: ("A",)}, {"plane": 4}, {"plane": "ABCD"}, {"\ud800": ()}, {"a": [1]}]
)
def test_wrong_types_of_parametric_objects(types: Any) -> None:
    with pytest.raises(DataError, match="types"):
        vectors.write_parametric_objects(points(), [PLANE], types=types)


def test_parametric_objects_of_a_generator() -> None:
    store = points()
    vectors.write_parametric_objects(store, (plane(name=each) for each in "abc"))
    assert [each.name for each in vectors.read_parametric_objects(store)] == ["a", "b", "c"]


def test_bounds_without_corners() -> None:
    for bounds in (np.zeros((0, 3)), [], 3, [[0, 0, 0]]):
        with pytest.raises(DataError):
            lines([], bounds=bounds)


def test_slices_of_lines() -> None:
    read = vectors.read_polylines(lines([P[:2], P[1:], P[:1]]))
    assert [len(each) for each in read[0:2]] == [2, 3]
    assert [len(each) for each in read[::-1]] == [1, 3, 2]
    assert read[5:] == []
    assert len(read[np.int64(-1)]) == 1
    wrong: Any
    for wrong in ("a", 1.0, None, [0]):
        with pytest.raises(TypeError, match="slice"):
            read[wrong]
    with pytest.raises(IndexError, match="3 lines"):
        read[3]


@pytest.mark.parametrize("dtype", [">f4", ">f8", "<f4"])
def test_byte_order_does_not_matter(dtype: str) -> None:
    kind = np.dtype(dtype).newbyteorder("=")
    store = MemoryStore()
    vectors.write_points(store, P.astype(dtype))
    assert vectors.read_points(store).positions.dtype == kind
    vectors.write_points(store, P, dtype=dtype, overwrite=True)
    assert vectors.read_points(store).positions.dtype == kind
    vectors.append_points(store, P.astype(dtype))
    assert sorted(vectors.read_points(store).positions.tolist()) == sorted(P.tolist() * 2)
    assert vectors.read_polylines(lines([P.astype(dtype)])).positions.dtype == kind


def test_masked_positions() -> None:
    masked = np.ma.array(P, mask=P == 4)
    with pytest.raises(DataError, match="masked"):
        vectors.write_points(MemoryStore(), masked)
    with pytest.raises(DataError, match="masked"):
        lines([P, masked])
    vectors.write_points(MemoryStore(), np.ma.array(P))


def test_ids_up_to_the_highest() -> None:
    top = 2**63 - 2
    store = lines([P], object_ids=[top])
    vectors.append_polylines(store, [P])
    assert vectors.read_polylines(store).object_ids.tolist() == [top, top + 1]
    vectors.append_polylines(store, [])
    with pytest.raises(DataError, match="no ids are left"):
        vectors.append_polylines(store, [P])
    graph = MemoryStore()
    vectors.write_graph(graph, P, [[0, 1]], object_ids=np.full(4, top))
    vectors.append_graph(graph, P, [[0, 1]])
    assert set(vectors.read_graph(graph).object_ids.tolist()) == {top, top + 1}  # type: ignore[union-attr]


NOTHING: dict[str, tuple[Callable[[MemoryStore], Any], Callable[[MemoryStore], Any]]] = {
    "points": (lambda s: vectors.write_points(s, P), lambda s: vectors.append_points(s, P[:0])),
    "points_of_objects": (
        lambda s: vectors.write_points(s, P, object_ids=np.zeros(4, int)),
        lambda s: vectors.append_points(s, P[:0], object_ids=[]),
    ),
    "polylines": (lambda s: vectors.write_polylines(s, [P]), lambda s: vectors.append_polylines(s, [])),
    "graph": (lambda s: vectors.write_graph(s, P, [[0, 1]]), lambda s: vectors.append_graph(s, P[:0], [])),
    "mesh": (lambda s: vectors.write_mesh(s, P, [[0, 1, 2]]), lambda s: vectors.append_mesh(s, P[:0], [])),
    "skeleton": (
        lambda s: vectors.write_skeleton(s, P, [-1, 0, 1, 2]),
        lambda s: vectors.append_skeleton(s, P[:0], []),
    ),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_where_nothing_is_added_nothing_changes(kind: str) -> None:
    write, append = NOTHING[kind]
    store = MemoryStore()
    write(store)
    vectors.build_pyramid(store)
    before = contents(store)
    append(store)
    assert contents(store) == before


def contents(store: MemoryStore) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}
