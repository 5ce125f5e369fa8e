"""Documents that were seen before give the same array, and nothing that one user changes reaches another."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import zardine
from zardine.errors import MetadataError
from zardine.frozen import with_fields
from zardine.storage import MemoryStore


def test_attributes_of_equal_documents_are_apart() -> None:
    store = MemoryStore()
    for name in "ab":
        zardine.create_array(store, name=name, shape=(4,), dtype="i2", attributes={"list": [1, {"deep": 2}]})
    assert store.get("a/zarr.json") == store.get("b/zarr.json")
    first, second = (zardine.open_array(store, path=name) for name in "ab")
    first.attrs["list"][1]["deep"] = 3
    first.attrs["new"] = 1
    assert second.attrs.asdict() == zardine.open_array(store, path="b").attrs.asdict() == {"list": [1, {"deep": 2}]}


def test_attributes_of_equal_groups_are_apart() -> None:
    store = MemoryStore()
    for name in "ab":
        zardine.create_group(store, path=name, attributes={"list": [1, {"deep": 2}]})
        zardine.create_group(store, path=f"{name}/empty")
    first, second = (zardine.open_group(store, path=name) for name in "ab")
    first.attrs["list"][1]["deep"] = 3
    first.attrs["new"] = 1
    first["empty"].attrs["new"] = 1
    assert second.attrs.asdict() == zardine.open_group(store, path="b").attrs.asdict() == {"list": [1, {"deep": 2}]}
    assert second["empty"].attrs.asdict() == {}


def test_a_group_lists_the_documents_below_as_they_are() -> None:
    store = MemoryStore()
    zardine.create_array(zardine.create_group(store).store, name="a", shape=(4,), dtype="i2")
    zardine.consolidate_metadata(store)
    for _ in range(2):
        opened = zardine.open_group(store)
        consolidated = opened.metadata.consolidated_metadata
        assert consolidated is not None
        assert consolidated["a"]["shape"] == [4]
        consolidated["a"]["shape"][0] = 5


def test_arrays_of_equal_documents_are_apart() -> None:
    store = MemoryStore()
    for name in "ab":
        zardine.create_array(store, name=name, shape=(4,), dtype="i2", chunks=(2,), shards=(4,))
    for value, name in enumerate("ab"):
        zardine.open_array(store, path=name)[:] = value
    again = [zardine.open_array(store, path=name) for name in "ab"]
    assert [array[...].tolist() for array in again] == [[0] * 4, [1] * 4]
    again[0].resize(6)
    again[0].append(np.ones(1, "i2"))
    assert [array.shape for array in again] == [(7,), (4,)]
    assert zardine.open_array(store, path="b").shape == (4,)
    assert zardine.open_array(store, path="a")[...].tolist() == [0] * 6 + [1]


def test_a_document_that_changed_is_parsed_anew() -> None:
    store = MemoryStore()
    array = zardine.create_array(store, shape=(4,), dtype="i2", fill_value=3)
    assert zardine.open_array(store)[0] == 3
    document = store.get("zarr.json")
    assert document is not None
    store.set("zarr.json", bytes(document).replace(b'"fill_value": 3', b'"fill_value": 4'))
    assert zardine.open_array(store)[0] == 4
    assert array.refresh()[0] == 4


def test_arrays_of_one_document_share_what_is_worked_out() -> None:
    """From the first one on, where there are no attributes, of which each has its own."""
    store = MemoryStore()
    zardine.create_array(store, shape=(4,), dtype="i2", fill_value=11)
    first, second = (zardine.open_array(store) for _ in range(2))
    assert first.metadata is second.metadata
    assert first._handle.layout is second._handle.layout


def test_arrays_of_v2_share_all_but_attributes() -> None:
    store = MemoryStore()
    array = zardine.create_array(store, shape=(4,), dtype="i2", fill_value=12, zarr_format=2)
    first, second = (zardine.open_array(store) for _ in range(2))
    assert first.metadata is second.metadata
    assert first._handle.layout is second._handle.layout
    store.set(".zattrs", b'{"list": [1]}')
    first, second = (zardine.open_array(store) for _ in range(2))
    first.attrs["list"].append(2)
    first.attrs["new"] = 1
    assert second.attrs.asdict() == {"list": [1]}
    assert zardine.open_array(store).attrs.asdict() == {"list": [1], "new": 1}
    assert first._handle.layout.codecs is second._handle.layout.codecs
    store.erase(".zattrs")
    assert zardine.open_array(store).attrs.asdict() == array.refresh().attrs.asdict() == {}


def test_documents_of_v2_that_changed_are_parsed_anew() -> None:
    store = MemoryStore()
    array = zardine.create_array(store, shape=(4,), dtype="i2", fill_value=3, zarr_format=2)
    document = bytes(store.get(".zarray") or b"")
    assert zardine.open_array(store)[0] == 3
    store.set(".zarray", document.replace(b'"fill_value": 3', b'"fill_value": 4'))
    assert zardine.open_array(store)[0] == 4
    assert array.refresh()[0] == 4
    zardine.open_array(store).resize(6)
    assert zardine.open_array(store).shape == (6,)
    store.set(".zattrs", b"[]")
    for _ in range(2):
        with pytest.raises(MetadataError, match=r"\.zattrs"):
            zardine.open_array(store)


def test_nothing_that_a_user_changes_reaches_what_is_shared() -> None:
    store = MemoryStore()
    compressor = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    zardine.create_array(store, shape=(4,), dtype=[("a", "i2")], compressors=compressor, zarr_format=2)
    before = zardine.open_array(store).metadata.to_dict()
    given = zardine.open_array(store).metadata.to_dict()
    given["compressor"]["clevel"] = 1  # type: ignore[index,call-overload]
    given["dtype"][0][0] = "b"  # type: ignore[index,call-overload]
    given["attributes"]["c"] = 1  # type: ignore[index,call-overload]
    assert zardine.open_array(store).metadata.to_dict() == before != given


def test_copies_with_other_fields() -> None:
    """All fields but those that are named are the same, those that are not of ``__init__`` as well."""
    metadata = zardine.create_array(MemoryStore(), shape=(4,), dtype="i2").metadata
    attributes = {"a": 1}
    copy = with_fields(metadata, attributes=attributes)
    assert copy.attributes is attributes
    assert "a" not in metadata.attributes
    names = [field.name for field in fields(metadata) if field.name != "attributes"]
    assert all(getattr(copy, name) is getattr(metadata, name) for name in names)
    with pytest.raises(AttributeError):
        with_fields(metadata, no_field=1)


def test_what_was_parsed_is_shown_without_its_bytes() -> None:
    store = MemoryStore()
    zardine.create_array(store, shape=(4,), dtype="i2")
    for _ in range(2):  # as it was parsed, and as it is remembered
        shown = repr(zardine.open_array(store, mode="r").metadata)
        assert "shape=(4,)" in shown
        assert "attributes={}" in shown
        assert "document=" not in shown
