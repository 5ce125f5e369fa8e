"""User attributes: a dictionary whose changes are stored at once."""

import json
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import zardine
from zardine.errors import ReadOnlyError
from zardine.storage import CountingStore, MemoryStore


@pytest.fixture(params=["array", "group"])
def node(request: Any) -> Any:
    store = MemoryStore()
    if request.param == "array":
        return zardine.create_array(store, name="n", shape=(2,), dtype="i4", attributes={"a": 1})
    return zardine.create_group(store, path="n", attributes={"a": 1})


def stored(node: Any) -> dict[str, Any]:
    return json.loads(bytes(node.store.get("n/zarr.json")))["attributes"]


def test_a_dictionary_that_is_stored(node: Any) -> None:
    attrs = node.attrs
    attrs["b"] = [1, {"x": None}]
    assert stored(node) == {"a": 1, "b": [1, {"x": None}]} == attrs.asdict() == dict(attrs)
    assert (attrs["b"], attrs.get("c", 3), len(attrs), "a" in attrs, sorted(attrs)) == (
        [1, {"x": None}],
        3,
        2,
        True,
        ["a", "b"],
    )
    del attrs["a"]
    assert stored(node) == {"b": [1, {"x": None}]}
    attrs.update({"c": 1}, d=2)
    assert attrs.pop("c") == 1
    assert attrs.setdefault("e", 5) == 5
    assert stored(node) == {"b": [1, {"x": None}], "d": 2, "e": 5}
    attrs.put({"z": 0})
    assert stored(node) == {"z": 0}
    attrs.clear()
    assert stored(node) == {}
    assert repr(attrs) == "{}"
    for missing in (lambda: attrs["q"], lambda: attrs.__delitem__("q")):
        with pytest.raises(KeyError):
            missing()
    assert node.update_attributes({"m": 1}) is node
    assert stored(node) == {"m": 1}


def test_numpy_values_become_numbers_and_lists(node: Any) -> None:
    node.attrs["x"] = {"a": np.float32(1.5), "b": np.arange(3), "c": (np.int64(2), np.bool_(True)), "d": np.str_("s")}
    assert stored(node)["x"] == {"a": 1.5, "b": [0, 1, 2], "c": [2, True], "d": "s"}
    node.attrs["x"] = [np.longdouble(2), np.float16(0.1), np.ma.array([1, 2]), 2**70, IntEnum("Number", "one").one]
    assert stored(node)["x"] == [2.0, 0.0999755859375, [1, 2], 2**70, 1]


@pytest.mark.parametrize(
    ("value", "error", "place"),
    [
        (float("nan"), ValueError, "attributes.x"),
        ([1, float("inf")], ValueError, "attributes.x[1]"),
        ({"y": {1: 2}}, TypeError, "attributes.x.y"),
        ({"y": {1, 2}}, TypeError, "attributes.x.y"),
        (object(), TypeError, "attributes.x"),
        (b"bytes", TypeError, "attributes.x"),
        (np.array([1j]), TypeError, "attributes.x"),
        (np.complex64(1j), TypeError, "attributes.x"),
        ([{"y": np.datetime64("2024-10-02", "ns")}], TypeError, "attributes.x[0].y"),
        (np.array(["2020-01-01"], "M8[s]"), TypeError, "attributes.x"),
        (np.array([1], "m8[ns]"), TypeError, "attributes.x"),
        (np.bytes_(b"x"), TypeError, "attributes.x"),
        (bytearray(b"x"), TypeError, "attributes.x"),
        (np.array([(1, 2.0)], "i4,f8")[0], TypeError, "attributes.x"),
        (np.void(b"ab"), TypeError, "attributes.x"),
        (np.ma.masked, ValueError, "attributes.x"),
        (np.ma.array([1, 2], mask=[0, 1]), ValueError, "attributes.x"),
        (np.array([1, np.datetime64("2020", "ns")], object), TypeError, "attributes.x[1]"),
        (datetime.now(UTC), TypeError, "attributes.x"),
        (timedelta(1), TypeError, "attributes.x"),
        (Decimal("1.5"), TypeError, "attributes.x"),
        (UUID(int=1), TypeError, "attributes.x"),
        (Path("a"), TypeError, "attributes.x"),
        (Enum("Colour", "red").red, TypeError, "attributes.x"),
        ({"y": -(10**5000)}, ValueError, "attributes.x.y"),
        ([1, 10**5000], ValueError, "attributes.x[1]"),
        *([(np.longdouble(1) / 3, ValueError, "attributes.x")] if np.finfo(np.longdouble).nmant > 52 else []),
    ],
)
def test_values_without_a_json_form_change_nothing(node: Any, value: Any, error: type, place: str) -> None:
    with pytest.raises(error) as raised:
        node.attrs["x"] = value
    assert str(raised.value).startswith(f"{place}: ")
    assert any(word in str(raised.value) for word in ("; give ", "; store ", "must be strings"))
    with pytest.raises(TypeError):
        node.attrs[1] = 2
    assert stored(node) == {"a": 1}


def test_two_openings_of_one_node_change_different_names(node: Any) -> None:
    other = zardine.open(node.store, path="n")
    other.attrs["theirs"] = 1
    node.attrs["ours"] = 2
    assert stored(node) == {"a": 1, "theirs": 1, "ours": 2}
    assert node.attrs["theirs"] == 1


def test_one_write_for_many_names() -> None:
    store = CountingStore(MemoryStore())
    group = zardine.create_group(store)
    store.reset()
    group.attrs.update({str(i): i for i in range(50)})
    assert store.counts.writes == 1


def test_read_only(node: Any) -> None:
    opened = zardine.open(node.store, path="n", mode="r")
    for change in (
        lambda: opened.attrs.update(b=1),
        lambda: opened.attrs.put({}),
        lambda: opened.attrs.__delitem__("a"),
        lambda: opened.attrs.__setitem__("a", 2),
    ):
        with pytest.raises(ReadOnlyError):
            change()
    assert stored(node) == {"a": 1}


def test_a_node_that_was_erased_is_not_brought_back() -> None:
    group = zardine.create_group(None)
    array = group.create_array("a", shape=(1,), dtype="i4")
    del group["a"]
    with pytest.raises(zardine.errors.ArrayNotFoundError):
        array.attrs["x"] = 1
    assert list(group) == []


@pytest.mark.parametrize(("value", "dtype"), [(-9.0, "f8"), (-9, "f4"), ([1.0, 0.0], "c16")])
def test_a_missing_value_as_a_plain_number_is_kept_with_one_warning(value: object, dtype: str) -> None:
    store = zardine.storage.MemoryStore()
    for number, create in enumerate(
        (
            lambda **how: zardine.create_array(store, name="0", shape=3, dtype=dtype, **how),
            lambda **how: zardine.create(3, store=store, path="1", dtype=dtype, **how),
            lambda **how: zardine.open_group(store).create_array("2", shape=3, dtype=dtype, **how),
            lambda **how: zardine.create_array(store, name="3", shape=3, dtype=dtype).attrs.update(how["attributes"]),
            lambda **how: zardine.create_array(store, name="4", shape=3, dtype=dtype).attrs.put(how["attributes"]),
        )
    ):
        with pytest.warns(zardine.errors.ZarrUserWarning, match=r"base64 text that .*FillValueCoder\.encode") as caught:
            create(attributes={"_FillValue": value})
        assert len(caught) == 1
        array = zardine.open_array(store, path=str(number))
        assert array.attrs["_FillValue"] == value
    array.attrs["other"] = 1  # and not again


def test_a_missing_value_that_xarray_reads_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zardine.create_array(None, shape=3, dtype="i4", attributes={"_FillValue": -9})
        zardine.create_array(None, shape=3, dtype="f8", attributes={"_FillValue": "AAAAAAAAIsA="})
        zardine.create_array(None, shape=3, dtype="f8", attributes={"_FillValue": -9.0}, zarr_format=2)
        zardine.create_group(None, attributes={"_FillValue": -9.0})


class _Named(str):
    pass


def test_text_of_any_class_is_plain_text(tmp_path: Any) -> None:
    group = zardine.create_group(tmp_path)
    group.attrs.update({"a": np.str_("é"), np.str_("b"): [np.str_("c"), _Named("d")], "e": {_Named("f"): 1}})
    array = group.create_array("n", shape=2, dtype="i4", attributes={"u": np.str_("m")})
    for opened in (group, zardine.open_group(tmp_path)):
        assert dict(opened.attrs) == {"a": "é", "b": ["c", "d"], "e": {"f": 1}}
        assert type(opened.attrs["a"]) is str
        opened.attrs["b"] = ["c", "d"]
    assert dict(zardine.open_array(array.store_path).attrs) == {"u": "m"}


def test_long_doubles_are_numbers_and_times_are_none(node: Any) -> None:
    node.attrs["x"] = [np.longdouble(0.5), np.array([0.25], np.longdouble)]
    assert stored(node)["x"] == [0.5, [0.25]]
    before = stored(node)
    for value in (np.datetime64("2000-01-01", "ns"), np.array(["2000"], "M8[ns]"), np.timedelta64(1, "ns")):
        with pytest.raises(TypeError, match=r"attributes\.y.*has no JSON form"):
            node.attrs["y"] = value
    with pytest.raises(TypeError, match=r"attributes\.y"):
        node.attrs["y"] = np.clongdouble(1j)
    assert stored(node) == before


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_is_nested_too_deeply_to_be_read_is_not_stored(tmp_path: Any, zarr_format: Any) -> None:
    group = zardine.create_group(tmp_path, zarr_format=zarr_format)
    for levels in range(180, 220, 5):
        value: Any = 1
        for _ in range(levels):
            value = [value]
        if levels > 190:
            with pytest.raises(ValueError, match="nested at most 190 levels"):
                group.attrs["deep"] = value
        else:
            group.attrs["deep"] = value
            group.require_group("g").attrs["deep"] = value
        assert "deep" in zardine.consolidate_metadata(tmp_path)["g"].attrs
        assert "deep" in zardine.open_group(tmp_path).attrs
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="hold themselves"):
        group.attrs["endless"] = endless
