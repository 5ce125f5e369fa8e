"""Arrays and hierarchies are made as zarr-python makes them: dtypes, orders, codecs, versions, warnings, errors."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.codecs import BloscCodec, ScaleOffset
from zardine.errors import ZarrRuntimeWarning
from zardine.metadata.documents import GroupMetadata
from zardine.storage import MemoryStore


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "f2", "f4", "f8", "i8", "u8"])
def test_create_makes_float64_where_no_dtype_is_given(dtype: str) -> None:
    data = np.array([0, 1, 1], dtype)
    for made in (zardine.create(data=data), zardine.create(3, data=zardine.array(data))):
        assert made.dtype == np.float64
        np.testing.assert_array_equal(made[...], data)
    assert zardine.create(data=data, dtype="f4").dtype == np.float32
    assert zardine.open_array(None, data=data).dtype == np.float64
    for made in (zardine.array(data), zardine.array(data, chunks=2), zardine.create_array(None, data=data)):
        assert made.dtype == data.dtype
    assert zardine.array(data, dtype="f4").dtype == np.float32


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_create_rounds_no_integers(value: int) -> None:
    for data in (np.array([0, value]), zardine.array([0, value]), [value]):
        store = MemoryStore()
        with pytest.raises(ValueError, match="dtype='int64'"):
            zardine.create(data=data, store=store)
        assert not [*store.list()]
    with pytest.raises(ValueError, match="dtype='uint64'"):
        zardine.create(data=np.array([2**64 - 1], "u8"))
    assert zardine.create(data=[value], dtype="i8")[0] == value
    assert zardine.create(data=[2**53, -(2**53)])[...].tolist() == [2**53, -(2**53)]
    assert zardine.create(data=np.empty(0, "i8")).shape == (0,)


@pytest.mark.parametrize("data", [["a", "b"], [1j], np.array(["2000-01-01"], "M8[s]"), np.zeros(2, "i4, f4")])
def test_create_keeps_the_dtype_of_what_is_no_real_number(data: Any) -> None:
    made = zardine.create(data=data)
    assert made.dtype == np.asarray(data).dtype
    np.testing.assert_array_equal(made[...], data)


@pytest.mark.parametrize("make", [zardine.create, zardine.create_array])
@pytest.mark.parametrize("order", ["C", "F", None])
@pytest.mark.parametrize("chosen", ["C", "F", None])
def test_order(make: Any, order: Any, chosen: Any) -> None:
    where = {"store": None, "shape": (2, 3), "dtype": "i4", "config": {"order": chosen} if chosen else None}
    older = make(**where, order=order, zarr_format=2)
    assert older.order == older.metadata.order == (order or chosen or "C")
    if order is None:
        new = make(**where)
    else:
        with pytest.warns(ZarrRuntimeWarning, match="^The `order` keyword argument has no effect") as found:
            new = make(**where, order=order)
        assert found[0].filename == __file__
    assert new.order == (chosen or "C")
    assert new[...].flags.f_contiguous == (new.order == "F")
    for version in (3, 2):
        with pytest.raises(ValueError, match="order is 'C' or 'F'"):
            make(**where, order="K", zarr_format=version)


@pytest.mark.parametrize("name", ["synchronizer", "cache_metadata", "cache_attrs", "meta_array", "write_empty_chunks"])
def test_arguments_without_effect_give_a_warning(name: str, tmp_path: Path) -> None:
    calls: list[Any] = [zardine.create, zardine.zeros]
    if name in ("synchronizer", "cache_attrs", "meta_array"):
        calls += [zardine.group, zardine.open_group]
    for number, call in enumerate(calls):
        what = {"store": tmp_path / str(number), **({} if number > 1 else {"shape": 1})}
        text = f"^The `{name}`" if name == "write_empty_chunks" else f"^{name} is not yet implemented"
        with pytest.warns(ZarrRuntimeWarning, match=text) as found:
            call(**what, **{name: True})
        assert [warning.filename for warning in found] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(**what, **{"mode": "w"} if number != 2 else {})


@pytest.mark.parametrize("version", [2, 3])
def test_a_hierarchy_is_of_one_version(version: int) -> None:
    store = MemoryStore()
    nodes = {"old": GroupMetadata(zarr_format=2), "new": GroupMetadata(zarr_format=3)}
    with pytest.raises(ValueError, match="'old' is to be of v2, and 'new' of v3"):
        list(zardine.create_hierarchy(store=store, nodes=nodes))
    assert not [*store.list()]
    group = zardine.create_group(store, zarr_format=version, attributes={"kept": 1})
    before = {key: bytes(store.get(key) or b"") for key in store.list()}
    for name, wrong in {"a": GroupMetadata(zarr_format=5 - version), "": GroupMetadata(zarr_format=version)}.items():
        with pytest.raises(ValueError, match="a hierarchy is of one version" if name else "is no name"):
            list(group.create_hierarchy({"b": GroupMetadata(zarr_format=version), name: wrong}, overwrite=True))
        assert {key: bytes(store.get(key) or b"") for key in store.list()} == before
    array = zardine.zeros(3, store=None, zarr_format=1 if version == 2 else 3).metadata
    made = dict(group.create_hierarchy({"deep/a": array, "g": GroupMetadata(zarr_format=version)}))
    assert made["deep"].metadata.zarr_format == version
    assert zardine.open_group(store).attrs.asdict() == {"kept": 1}


def test_codecs_are_those_of_the_source_in_its_own_version_only() -> None:
    old = zardine.create_array(
        None,
        shape=(4, 6),
        dtype="i4",
        zarr_format=2,
        compressors=None,
        filters=[numcodecs.Delta("<i4")],
        order="F",
        fill_value=7,
    )
    new = zardine.create_array(
        None, shape=(4, 6), dtype="i4", compressors=BloscCodec(), checksum=False, fill_value=7, chunks=2, shards=4
    )
    for like in (zardine.empty_like, zardine.zeros_like, zardine.ones_like, zardine.full_like):
        same = like(old)
        assert (same.compressors, same.filters, same.order) == (old.compressors, old.filters, "F")
        assert like(new).codecs == new.codecs
        plain = zardine.create_array(None, shape=(4, 6), dtype="i4")
        for found in (like(old, zarr_format=3), zardine.create_array(None, shape=1, dtype="i4")):
            assert (found.compressors, found.filters, found.order) == (plain.compressors, plain.filters, "C")
        older = like(new, zarr_format=2)
        assert older.compressors == zardine.create_array(None, shape=1, dtype="i4", zarr_format=2).compressors
        assert (older.chunks, older.order, older.filters) == ((2, 2), "C", ())
    assert zardine.full_like(old, zarr_format=3).fill_value == zardine.empty_like(new, zarr_format=2).fill_value == 7


@pytest.mark.parametrize("version", [2, 3])
def test_open_like_takes_over_no_version(version: int) -> None:
    source = zardine.zeros(4, dtype="i4", zarr_format=version, store=None)
    assert zardine.open_like(source, "new", store=MemoryStore()).metadata.zarr_format == 3
    with zardine.config.set({"default_zarr_format": 2}):
        assert zardine.open_like(source, "new", store=MemoryStore()).metadata.zarr_format == 2
    store = MemoryStore()
    zardine.create_array(store, name="there", shape=4, dtype="i4", zarr_format=5 - version)
    assert zardine.open_like(source, "there", store=store).metadata.zarr_format == 5 - version
    with pytest.raises(zardine.errors.ArrayNotFoundError):
        zardine.open_like(source, "there", store=store, zarr_format=version, mode="r")


def test_classes_of_errors() -> None:
    for wrong in ("yes", None, 2):
        with pytest.raises(ValueError, match="read_missing_chunks is True or False"):
            zardine.create(1, config={"read_missing_chunks": wrong})
    with pytest.raises(ValueError, match="expected a whole number"):
        zardine.create(1, dtype="i4", fill_value="not a number")
    with pytest.raises(TypeError, match="expected a whole number"):
        zardine.create(1, dtype="i4", fill_value=[])
    for name in ("offset", "scale"):
        with pytest.raises(TypeError, match=re.escape(f"{name} is a number, or a string that stands for one, not [1]")):
            ScaleOffset(**{name: [1]})


def test_save_group_keeps_what_is_there_where_an_array_cannot_be_stored(tmp_path: Path) -> None:
    zardine.save_group(tmp_path, a=np.arange(3))
    with pytest.raises(ValueError, match="dtype object"):
        zardine.save_group(tmp_path, a=np.arange(2), b=np.array([object()]))
    assert zardine.load(tmp_path)["a"].tolist() == [0, 1, 2]
