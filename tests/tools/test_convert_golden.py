"""Every golden array of v2, v1 and the sharding draft, converted: compared here and by what other programs read."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from golden_files_old import same_elements
from test_golden_old import DATA, as_array, cases, expected_of, region

import zardine
from effort import SOAK, some
from zardine.errors import ConversionError
from zardine.storage import MemoryStore

CORE = {"bytes", "transpose", "blosc", "gzip", "zstd", "crc32c", "sharding_indexed"}

ARRAYS = list(some((each for each in cases("array") if zardine.__kernel__ or "optional" not in each.values[0]), 6))
"""Without the native kernel, those that need it (snappy) are left out."""


@pytest.fixture(autouse=True)
def pickles_are_trusted() -> Iterator[None]:
    with zardine.config.set({"array.allow_unsafe_pickle_decode": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NaN in attributes
        yield


def stored_dtype(case: dict[str, Any]) -> str:
    return json.dumps(case["stored_dtype"])


def has_sub_arrays(dtype: Any) -> bool:
    return isinstance(dtype, list) and any(len(field) > 2 or has_sub_arrays(field[1]) for field in dtype)


def refusal(case: dict[str, Any]) -> str | None:
    """Why a case has no form in v3, as far as the data type goes; a part of the text of the error."""
    if "zfpy" in case.get("needs", ()):
        return "the installed numcodecs has no codec 'zfpy'"
    if has_sub_arrays(case["stored_dtype"]):
        return "v3 has no fields that are arrays"
    return "data type object: v3 has none" if case["dtype"] == "object" else None


def refusal_in_place(case: dict[str, Any]) -> str | None:
    """Why its chunks have no description in v3."""
    filters = case.get("filters") or []
    if reason := refusal(case):
        return reason
    if case["zarr_format"] == "2" and case["compressor"] in ("base64", "delta", "packbits", "pcodec"):
        return f"compressor {case['compressor']}: v3 has no such codec"
    if found := [name for name in filters if name in ("base64", "categorize")]:
        return f"filters {found[0]}"
    if isinstance(case["stored_dtype"], list) and len({"<", ">"} & set(stored_dtype(case))) == 2:
        return f"filters {filters[0]}" if filters else "v3 has no codec for fields of different byte orders"
    return None


def zarr_python_fails(case: dict[str, Any], array: zardine.Array) -> bool:
    """Whether zarr-python 3.1 reads no array of v3 that holds this."""
    unknown = array.metadata.data_type.name == "struct"  # zarr-python 3.2 is the first to know it
    shards_of_raw_bytes = array.dtype.kind == "V" and array.shards is not None  # TypeError: unhashable type
    own = (
        "blosc-snappy" in case["path"]  # the c-blosc of numcodecs has none
        or case["path"].endswith("lzma-delta")  # "Cannot specify filters except with FORMAT_RAW", from numcodecs
        or "filters/quantize-smaller" in case["path"]  # forgets that the filter changes the data type
    )
    return unknown or shards_of_raw_bytes or (own and array.shards is None)


def tensorstore_reads(array: zardine.Array) -> bool:
    """Whether tensorstore knows data type and codecs."""

    def core(codecs: Any) -> bool:
        return all(each.name in CORE and core(getattr(each, "codecs", ())) for each in codecs)

    nested = any(codec.name == "sharding_indexed" for codec in array.codecs) and array.shards is None
    snappy = any(getattr(codec, "cname", "") == "snappy" for codec in array.codecs)
    return array.dtype.kind in "biufc" and core(array.codecs) and not nested and not snappy


def check(path: Path, array: zardine.Array, expected: np.ndarray[Any, Any], case: dict[str, Any]) -> None:
    """All programs read the expected elements from an array of v3."""
    box = region(case)
    assert array.metadata.zarr_format == 3
    assert same_elements(as_array(array[box], case), expected, case["dtype"])
    assert json.loads((path / "zarr.json").read_bytes())["node_type"] == "array"
    if not zarr_python_fails(case, array):
        theirs = zarr.open_array(path, mode="r")
        found = np.asarray(theirs[box] if theirs.ndim else theirs[()])
        objects = case["dtype"] in ("string", "bytes", "object")
        found = found.astype(object if objects else found.dtype.newbyteorder("=")).reshape(expected.shape)
        assert same_elements(found, expected, case["dtype"])
    if tensorstore_reads(array):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        found = np.asarray(tensorstore.open(spec, open=True).result()[box].read().result())
        assert same_elements(found, expected, case["dtype"])


@pytest.mark.parametrize("case", ARRAYS)
def test_stored_anew(case: dict[str, Any], tmp_path: Path) -> None:
    before = contents(DATA / case["path"])
    if reason := refusal(case):
        with pytest.raises(ConversionError) as error:
            zardine.convert(DATA / case["path"], tmp_path)
        assert reason in str(error.value)
        assert list(tmp_path.iterdir()) == []
        return
    source = zardine.open_array(DATA / case["path"], mode="r")
    converted = zardine.convert(DATA / case["path"], tmp_path)
    assert isinstance(converted, zardine.Array)
    check(tmp_path, converted, as_array(expected_of(case, source), case), case)
    assert contents(DATA / case["path"]) == before
    assert not converted.is_draft
    assert "gzip-outside" in case["path"] or (converted.shards is not None) == (converted.ndim > 0)
    assert '{"name": "crc32c"}]' in json.dumps(converted.metadata.to_dict()["codecs"])
    assert converted.metadata.fill.tobytes() == source.metadata.fill.tobytes() or source.dtype.kind in "TO"
    fill = source.metadata.fill[()]
    assert converted.fill_value == fill or converted.fill_value != converted.fill_value
    assert converted.nshards_initialized <= max(1, source.nshards_initialized)


@pytest.mark.parametrize("case", ARRAYS if SOAK else ARRAYS[1::2])
def test_described_anew(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a"
    shutil.copytree(DATA / case["path"], path)
    before = contents(path)
    if reason := refusal_in_place(case):
        with pytest.raises(ConversionError) as error:
            zardine.convert(path, metadata_only=True)
        assert reason in str(error.value)
        assert contents(path) == before
        return
    source = zardine.open_array(DATA / case["path"], mode="r")
    converted = zardine.convert(path, metadata_only=True, verify=True, remove_old=len(case["path"]) % 2 == 0)
    assert isinstance(converted, zardine.Array)
    check(path, converted, as_array(expected_of(case, source), case), case)
    old = {"2": {".zarray", ".zattrs"}, "1": {"meta", "attrs"}, "3-draft": set()}[case["zarr_format"]]
    kept = {name: data for name, data in before.items() if name not in ("zarr.json", *old)}
    assert {name: data for name, data in contents(path).items() if name not in ("zarr.json", *old)} == kept
    assert old.isdisjoint(contents(path)) == (len(case["path"]) % 2 == 0 or not old)


@pytest.mark.parametrize("case", ARRAYS if SOAK else ARRAYS[::2])
def test_there_and_back(case: dict[str, Any]) -> None:
    """From an older version to v3, to v2, and to v3 again."""
    if refusal(case) or "region" in case:
        pytest.skip("not to be expressed in v3, or too large")
    source = zardine.open_array(DATA / case["path"], mode="r")
    first, second, third = MemoryStore(), MemoryStore(), MemoryStore()
    zardine.convert(source.store, first)
    if case["path"].endswith(("gzip-outside", "layout/nested")):
        with pytest.raises(ConversionError, match="shards within shards, or codecs around shards"):
            zardine.convert(first, second, zarr_format=2, shards=None)
        return
    back = zardine.convert(first, second, zarr_format=2, shards=None, filters="keep")
    again = zardine.convert(second, third, verify=True)
    assert isinstance(back, zardine.Array)
    assert isinstance(again, zardine.Array)
    wanted = as_array(source[...], case)
    assert same_elements(as_array(back[...], case), wanted, case["dtype"])
    assert same_elements(as_array(again[...], case), wanted, case["dtype"])
    made = zardine.open_array(first)
    assert again.metadata == replace(made.metadata, unknown={}) or case["zarr_format"] == "3-draft"
    assert back.metadata.zarr_format == 2


@pytest.mark.parametrize("case", cases("group"))
def test_hierarchies(case: dict[str, Any], tmp_path: Path) -> None:
    converted = zardine.convert(DATA / case["path"], tmp_path / "new", verify=True)
    assert isinstance(converted, zardine.Group)
    for use in (None, False):
        group = zardine.open_group(tmp_path / "new", mode="r", use_consolidated=use)
        found = {path: node.metadata.node_type for path, node in group.members(None)}
        assert found == case["members"]
    assert (converted.metadata.consolidated_metadata is not None) == case["consolidated"]
    source = zardine.open_group(DATA / case["path"], mode="r")
    for path, kind in case["members"].items():
        wanted = {name: each for name, each in source[path].attrs.items() if name != "_ARRAY_DIMENSIONS"}
        found = {name: each for name, each in converted[path].attrs.items() if name in wanted or name != "_FillValue"}
        assert found == json.loads(json.dumps(wanted).replace(" NaN", ' "NaN"').replace(" Infinity", ' "Infinity"'))
        if kind == "array" and converted[path].metadata.data_type.name != "struct":
            theirs = zarr.open_array(tmp_path / "new", path=path, mode="r")
            np.testing.assert_array_equal(np.asarray(theirs[...]), np.asarray(converted[path][...]))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
