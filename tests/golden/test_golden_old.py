"""Files of Zarr v2, v1 and the sharding draft, by other programs and byte by byte: see ``golden_files_old.py``."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_files_old import document_bytes, load_expected, same_elements

import zardine
from zardine.storage import MemoryStore

HERE = Path(__file__).parent
DATA = HERE / "data"
CASES: list[dict[str, Any]] = json.loads((HERE / "manifest_old.json").read_text(encoding="utf-8"))
DOCUMENTS: dict[str, Any] = json.loads((HERE / "bad_documents_old.json").read_text(encoding="utf-8"))
VERSIONS = {"1": 1, "2": 2, "3-draft": 3}


@pytest.fixture(autouse=True)
def pickles_are_trusted() -> Iterator[None]:
    with zardine.config.set({"array.allow_unsafe_pickle_decode": True}):
        yield


def cases(kind: str) -> list[Any]:
    """The wanted entries as parameters named by their path."""
    return [pytest.param(case, id=case["path"]) for case in CASES if case["kind"] == kind and "store" not in case]


def region(case: dict[str, Any]) -> Any:
    return tuple(slice(*each) for each in case["region"]) if "region" in case else ...


def expected_of(case: dict[str, Any], array: zardine.Array) -> np.ndarray[Any, Any]:
    """The right elements; those that are undefined are the default of the data type here.

    Where readers differ we follow the specification: chunks of order F in v1 hold F order, whatever zarr-python 1 did.
    """
    by_text = case["writer"] == "zarr-python" and case["version"] == "1.1.0"
    expected = load_expected(case, "others_read" if "disputed" in case and by_text else "expected")
    for chunk in case.get("undefined_chunks", ()):
        expected[tuple(slice(i * n, (i + 1) * n) for i, n in zip(chunk, case["chunks"], strict=True))] = (
            array.metadata.fill[()]
        )
    return expected


def as_array(values: Any, case: dict[str, Any]) -> np.ndarray[Any, Any]:
    if isinstance(values, np.ndarray) and values.dtype.kind != "T":
        return values
    if isinstance(values, np.ndarray):
        return values.astype(object)
    kept = np.empty((), object if case["dtype"] in ("string", "bytes", "object") else values.dtype)
    kept[()] = values
    return kept


@pytest.mark.parametrize("case", cases("array"))
def test_array(case: dict[str, Any]) -> None:
    if "zfpy" in case.get("needs", ()):  # its wheels do not work with current releases of NumPy
        with pytest.raises(zardine.errors.MetadataError, match="zfpy"):
            zardine.open_array(DATA / case["path"], mode="r")
        return
    array = zardine.open_array(DATA / case["path"], mode="r")
    if "optional" in case and zardine.__kernel__ is None:  # snappy
        with pytest.raises(zardine.errors.ChunkDecodeError, match="needs the native kernel"):
            array[...]
        return
    assert array.metadata.zarr_format == VERSIONS[case["zarr_format"]]
    assert array.is_draft == (case["zarr_format"] == "3-draft" and "no shards" not in case.get("about", ""))
    assert array.shape == tuple(case["shape"])
    assert array.attrs.asdict() == case.get("attributes", {}) or "NaN" in json.dumps(case["attributes"])
    expected = as_array(expected_of(case, array), case)
    found = as_array(array[region(case)], case)
    assert same_elements(found, expected, case["dtype"]), (found, expected)
    assert "Array" in repr(array.info)
    if "region" in case:
        return
    rng = random.Random(case["path"])
    for _ in range(3):
        box = tuple(slice(*sorted((rng.randint(0, n), rng.randint(0, n)))) for n in expected.shape)
        assert same_elements(as_array(array[box], case), as_array(expected[box], case), case["dtype"])


@pytest.mark.parametrize("case", cases("group"))
def test_group(case: dict[str, Any]) -> None:
    for use in (None, False):
        group = zardine.open_group(DATA / case["path"], mode="r", use_consolidated=use)
        found = {path: "array" if isinstance(node, zardine.Array) else "group" for path, node in group.members(None)}
        assert found == case["members"]
        for path, attributes in case.get("member_attributes", {}).items():
            assert group[path].attrs.asdict() == attributes or "NaN" in json.dumps(attributes)
    assert (group.metadata.consolidated_metadata is None) or not case.get("consolidated")


@pytest.mark.parametrize("case", DOCUMENTS["bad"], ids=lambda case: case["about"])
def test_bad_document(case: dict[str, Any]) -> None:
    with (
        zardine.config.set({"array.allow_unsafe_pickle_decode": False}),
        pytest.raises((zardine.errors.ZardineError, ValueError)) as error,
    ):
        use(case)
    assert type(error.value).__module__ == "zardine.errors" or "not consolidated" in str(error.value)
    member = case["reason"].partition(":")[0].partition("[")[0].strip(".")
    named = OTHERWISE.get(case["about"], member.rpartition("/.")[0] or member)
    assert named.split(" ")[0] in str(error.value), (named, str(error.value))


OTHERWISE = {
    "chunks whose size in bytes overflows": "16 bytes, expected",
    "pickled objects without permission": "pickle",
    "nothing at all": "looked for",
    "5000 structures within each other": "deep",
    "no .zmetadata": "not consolidated",
    "v1 without zarr_format": "looked for",
}
"""What is named where the reason does not begin with a member of a document."""


@pytest.mark.parametrize("case", DOCUMENTS["accepted"], ids=lambda case: case["about"])
def test_accepted_document(case: dict[str, Any]) -> None:
    node = use(case)
    expect = case["expect"]
    if "shape" in expect:
        assert node.shape == tuple(expect["shape"])
    if "fill" in expect and expect["fill"] is not None and node.dtype.kind not in "OT":
        assert node.metadata.fill.tobytes().hex() == expect["fill"]


def use(case: dict[str, Any]) -> Any:
    store = MemoryStore({key: document_bytes(content) for key, content in case["files"].items()})
    how = {"array": zardine.open_array, "group": zardine.open_group, "consolidated": zardine.open_consolidated}
    node = how[case["open"]](store, mode="r")
    if isinstance(node, zardine.Group):
        list(node.members(None))
    elif case.get("when") == "read":
        node[(0,) * node.ndim]
    return node
