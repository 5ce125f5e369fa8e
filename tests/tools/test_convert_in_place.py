"""``metadata_only=True``: documents of v3 beside older ones, for the same chunks."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import zardine
from zardine.errors import ConversionError, NodeExistsError, ReadOnlyError, StoreError, ZarrUserWarning
from zardine.storage import CountingStore, LocalStore, MemoryStore, WrapperStore

VALUES = np.arange(40 * 30, dtype="i4").reshape(40, 30)


@pytest.fixture(autouse=True)
def two_versions_in_one_place() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).* is stored in Zarr v3 and in Zarr v2", ZarrUserWarning)
        yield


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A consolidated hierarchy of v2 with two arrays, and a folder that is a group without a document."""
    path = tmp_path / "old"
    root = zardine.create_group(path, zarr_format=2, attributes={"title": "t"})
    how: dict[str, Any] = {"compressors": numcodecs.Zlib(), "filters": [numcodecs.Delta("<i4")]}
    keys = {"_ARRAY_DIMENSIONS": ["y", "x"]}
    root.create_array("deep/a", data=VALUES, chunks=(7, 6), order="F", fill_value=-1, attributes=keys, **how)
    root.create_array("implied/b", data=VALUES[0], chunks=7, chunk_key_encoding=("v2", "/"))
    zardine.consolidate_metadata(path)
    (path / "implied/.zgroup").unlink()
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def check(path: Path) -> None:
    for reader in (zardine, zarr):
        for use in (True, False):
            root = reader.open_group(path, mode="r", zarr_format=3, use_consolidated=use)
            assert dict(root.attrs) == {"title": "t"}
            np.testing.assert_array_equal(root["deep/a"][...], VALUES)
            np.testing.assert_array_equal(root["implied/b"][...], VALUES[0])
            assert root["deep/a"].metadata.dimension_names == ("y", "x")
            assert dict(root["deep/a"].attrs) == {"_FillValue": -1}
            assert root["implied"].metadata.zarr_format == 3


def test_documents_beside_the_old_ones(old: Path) -> None:
    before = contents(old)
    seen: list[tuple[int, int]] = []
    made = zardine.convert(old, metadata_only=True, verify=True, progress=lambda *done: seen.append(done))
    assert all(done <= total for done, total in seen)
    assert seen[-1][0] == seen[-1][1]
    after = contents(old)
    new = {"zarr.json", "deep/zarr.json", "deep/a/zarr.json", "implied/zarr.json", "implied/b/zarr.json"}
    assert set(after) - set(before) == new
    assert {name: after[name] for name in before} == before
    assert made.metadata.consolidated_metadata is not None
    document = json.loads(after["deep/a/zarr.json"])
    assert document["chunk_key_encoding"] == {"name": "v2", "configuration": {"separator": "."}}
    assert [codec["name"] for codec in document["codecs"]] == [
        "transpose",
        "numcodecs.delta",
        "bytes",
        "numcodecs.zlib",
    ]
    check(old)
    seven = zardine.open_group(old, mode="r", zarr_format=2)
    assert seven["deep/a"].metadata.zarr_format == 2
    made["deep/a"][0, 0] = 77
    assert seven["deep/a"][0, 0] == 77


def test_again_and_then_without_the_old_ones(old: Path) -> None:
    before = contents(old)
    zardine.convert(old, metadata_only=True)
    zardine.open_group(old, mode="r+")["deep/a"].attrs["more"] = 1
    after = contents(old)
    zardine.convert(old, metadata_only=True)
    assert contents(old) == after
    seen: list[tuple[int, int]] = []
    zardine.convert(old, metadata_only=True, remove_old=True, progress=lambda *done: seen.append(done))
    left = contents(old)
    assert not [name for name in left if "/.z" in f"/{name}"]
    assert {name: data for name, data in after.items() if name in left} == left
    assert seen[-1] == (len(seen), len(seen))
    assert len(before) + 5 - len(left) == len(seen)
    zardine.open_group(old, mode="r+")["deep/a"].attrs.put({"_FillValue": -1})
    check(old)
    zardine.convert(old, metadata_only=True, remove_old=True)
    assert set(contents(old)) == set(left)


class Failing(WrapperStore):
    """Refuses every change from the ``after``-th on."""

    def __init__(self, store: Any, after: int) -> None:
        super().__init__(store)
        self.left = after

    def _count(self) -> None:
        if self.left == 0:
            raise StoreError("No space left on device")
        self.left -= 1

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self._count()
        return super().set(key, value, condition=condition)

    def erase(self, key: str) -> None:
        self._count()
        super().erase(key)


@pytest.mark.parametrize("after", range(12))
def test_cut_off_anywhere_and_run_again(old: Path, after: int) -> None:
    with pytest.raises(StoreError):
        zardine.convert(Failing(LocalStore(old), after), metadata_only=True, remove_old=True)
    assert (old / "zarr.json").exists() == (after >= 5)
    either = zardine.open_group(old, mode="r")  # the whole, in one version or the other
    assert either.metadata.zarr_format == (3 if after >= 5 else 2)
    np.testing.assert_array_equal(either["deep/a"][...], VALUES)
    np.testing.assert_array_equal(either["implied/b"][...], VALUES[0])
    zardine.convert(old, metadata_only=True, remove_old=True)
    check(old)
    assert not [name for name in contents(old) if "/.z" in f"/{name}"]


def test_all_that_has_no_form_in_v3_is_listed(old: Path) -> None:
    root = zardine.open_group(old, use_consolidated=False)
    root.create_array("text", shape=3, dtype=object, filters=[numcodecs.JSON()], fill_value=None)
    root.create_array("deep/codec", shape=3, dtype="i4", compressors={"id": "pcodec"})
    root.create_array("deep/mixed", shape=3, dtype=np.dtype([("a", "<i4"), ("b", ">i4")]))
    root.create_array("deep/arrays", shape=3, dtype="i4")
    document = json.loads((old / "deep/arrays/.zarray").read_text())
    document |= {"dtype": [["a", "<i4", [2]]], "fill_value": None}
    (old / "deep/arrays/.zarray").write_text(json.dumps(document))
    before = contents(old)
    with pytest.raises(ConversionError) as error:
        zardine.convert(old, metadata_only=True)
    assert str(error.value).startswith("nothing was converted: 4 of the 9 nodes cannot be expressed in Zarr v3")
    assert [(problem.place, problem.message) for problem in error.value.problems] == [
        ("/deep/arrays", "data type [('a', '<i4', (2,))]: v3 has no fields that are arrays"),
        ("/deep/codec", "compressor pcodec: v3 has no such codec"),
        (
            "/deep/mixed",
            'elements of [["a", "<i4"], ["b", ">i4"]]: v3 has no codec for fields of different byte orders',
        ),
        (
            "/text",
            "data type object: v3 has none; objects that are all text can become 'string' (objects=\"string\")",
        ),
        ("/text", 'filters json2 on elements of "|O": v3 has no codecs that do this'),
    ]
    assert contents(old) == before


def test_documents_of_v3_that_say_something_else(old: Path) -> None:
    document = zardine.create_array(MemoryStore(), shape=(40, 30), chunks=(7, 6), dtype="i4").metadata.to_dict()
    (old / "deep/a/zarr.json").write_text(json.dumps(document))
    before = contents(old)
    with pytest.raises(ConversionError, match=r"/deep/a: zarr.json is there already, and says something else"):
        zardine.convert(old, metadata_only=True)
    assert contents(old) == before
    zardine.convert(old, metadata_only=True, overwrite=True)
    check(old)


def test_another_program_that_is_faster(old: Path) -> None:
    from zardine.tools.convert import prepare_metadata

    prepared = prepare_metadata(old)
    (old / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(NodeExistsError, match="has just been written by another program"):
        prepared.run()


def test_options_and_stores_that_make_no_sense(old: Path) -> None:
    for options, said in (
        ({"zarr_format": 2}, "metadata_only=True is for zarr_format=3"),
        ({"chunks": 5, "checksum": False}, "leaves chunks as they are: chunks, checksum cannot change"),
        ({"target": old}, "so there is no target"),
    ):
        with pytest.raises(ValueError, match=said):
            zardine.convert(old, metadata_only=True, **options)
    with pytest.raises(ReadOnlyError):
        zardine.convert(LocalStore(old, read_only=True), metadata_only=True)


def test_what_is_v3_already_is_left_alone() -> None:
    store = MemoryStore()
    zardine.create_array(store, name="a", data=VALUES)
    zardine.consolidate_metadata(store)
    before = {key: store.get(key) for key in store.list()}
    counting = CountingStore(store)
    assert zardine.convert(counting, metadata_only=True, verify=True)["a"].shape == (40, 30)
    assert (counting.counts.writes, {key: store.get(key) for key in store.list()}) == (0, before)


def test_hierarchies_of_both_versions(old: Path) -> None:
    document = zardine.create_group(MemoryStore(), attributes={"title": "t"}).metadata.to_dict()
    (old / "zarr.json").write_text(json.dumps(document))
    for name in (".zgroup", ".zattrs", ".zmetadata"):
        (old / name).unlink()
    zardine.convert(old, metadata_only=True)
    zardine.consolidate_metadata(old)
    check(old)


class Unversioned(WrapperStore):
    """A store that cannot tell one version of a value from another."""

    def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
        reading = super().read(key, ranges)
        return None if reading is None else replace(reading, version=None)


@pytest.mark.parametrize("wrap", [CountingStore, Unversioned])
def test_the_sharding_draft_gets_the_accepted_words(wrap: Any) -> None:
    inner = [{"name": "endian", "configuration": {"endian": "big"}}]
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": inner}}
    draft = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 9,
        "codecs": [sharding],
        "attributes": {"a": 1},
    }
    index = np.array([0, 4, 2**64 - 1, 2**64 - 1], "<u8").tobytes()
    store = MemoryStore({"a/zarr.json": json.dumps(draft).encode(), "a/c/0": bytes([0, 1, 0, 2]) + index})
    zardine.create_group(store)
    zardine.consolidate_metadata(store)
    assert zardine.open_array(store, path="a").is_draft
    group = zardine.convert(wrap(store), metadata_only=True, verify=True)
    for array in (group["a"], zardine.open_array(store, path="a")):
        assert not array.is_draft
        assert array[...].tolist() == [1, 2, 9, 9]
        assert array.codecs[0].to_json()["configuration"] == {
            "chunk_shape": [2],
            "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "index_location": "end",
        }
    array[2] = 5
    assert array[...].tolist() == [1, 2, 5, 9]
