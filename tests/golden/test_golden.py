"""Files written by other programs, and shards made by hand, read back: see ``golden_files.py`` for the manifest."""

from __future__ import annotations

import importlib
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import errors

HERE = Path(__file__).parent
DATA = HERE / "data"
CASES: list[dict[str, Any]] = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
OLD_CASES: list[dict[str, Any]] = json.loads((HERE / "manifest_old.json").read_text(encoding="utf-8"))
SUB_BYTE = ("int2", "int4", "uint2", "uint4")


def cases(kind: str, *, damaged: bool = False) -> list[Any]:
    """The wanted entries as parameters named by their path."""
    able = zardine.__kernel__ is not None  # without it, what is optional is tested to be refused by name
    chosen = [
        case
        for case in CASES
        if case["kind"] == kind and ("damage" in case) == damaged and (able or "optional" not in case)
    ]
    return [pytest.param(case, id=case["path"]) for case in chosen]


def open_case(case: dict[str, Any]) -> Any:
    return zardine.open_array(str(DATA / case["path"]), mode="r")


def expected_of(case: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The right elements; objects for the variable-length types."""
    file = HERE / "expected" / case["expected"]
    dtype = case["dtype"]
    if dtype in ("string", "bytes"):
        items = json.loads(file.read_text(encoding="utf-8"))
        flat = np.empty(len(items), dtype=object)
        flat[:] = [bytes(item) if dtype == "bytes" else item for item in items]
        return flat.reshape(case["shape"])
    values = np.load(file)
    if "ml_dtypes" in case.get("needs", ()):
        values = values.view(getattr(importlib.import_module("ml_dtypes"), dtype))
    return values


def assert_same(actual: Any, expected: np.ndarray[Any, Any], dtype: str) -> None:
    """Equal shapes and elements, bit for bit."""
    found = np.asarray(actual)
    assert found.shape == expected.shape
    if dtype in ("string", "bytes"):
        assert found.dtype.kind in "OT"
        assert found.astype(object).tolist() == expected.tolist()
        return
    assert found.dtype == expected.dtype
    if dtype in SUB_BYTE:  # what the unused bits of a byte hold in memory is nobody's business
        assert found.astype("int8").tolist() == expected.astype("int8").tolist()
    elif found.tobytes() != expected.tobytes():
        np.testing.assert_array_equal(found, expected)
        pytest.fail("equal numbers with different bits (NaN payloads or signs of zero)")


def random_slice(length: int, rng: random.Random) -> slice:
    start, stop = sorted((rng.randint(0, length), rng.randint(0, length)))
    return slice(start, stop, rng.choice((None, 1, 2, 3)))


@pytest.mark.parametrize("case", cases("array"))
def test_whole_array(case: dict[str, Any]) -> None:
    array = open_case(case)
    expected = expected_of(case)
    assert array.shape == expected.shape
    assert_same(array[...], expected, case["dtype"])


@pytest.mark.parametrize("case", cases("array"))
def test_fill_value(case: dict[str, Any]) -> None:
    array = open_case(case)
    fill, dtype = array.fill_value, case["dtype"]
    if dtype == "string":
        assert str(fill) == case.get("fill", "")
    elif dtype == "bytes":
        assert bytes(fill) == bytes(case.get("fill", ()))
    elif dtype in SUB_BYTE:
        right = np.frombuffer(bytes.fromhex(case["fill"]), "u1").view(array.dtype)
        assert int(fill) == int(right[0])
    else:
        one = np.asarray(fill, array.dtype)
        assert one.tobytes().hex() == case["fill"]


@pytest.mark.parametrize("case", cases("array"))
def test_selections(case: dict[str, Any]) -> None:
    array = open_case(case)
    expected, dtype = expected_of(case), case["dtype"]
    rng = random.Random(case["path"])
    for _ in range(6):
        box = tuple(random_slice(length, rng) for length in expected.shape)
        assert_same(array[box], expected[box], dtype)
    if not expected.size or not expected.ndim:
        return
    points = tuple(np.array([rng.randrange(length) for _ in range(5)]) for length in expected.shape)
    assert_same(array.get_coordinate_selection(points), expected[points], dtype)
    axes = [np.array(sorted(rng.sample(range(length), rng.randint(1, length)))) for length in expected.shape]
    assert_same(array.get_orthogonal_selection(tuple(axes)), expected[np.ix_(*axes)], dtype)


@pytest.mark.parametrize("case", cases("array", damaged=True))
def test_damaged_shard(case: dict[str, Any]) -> None:
    """Reading what is damaged raises the right error, reading anything else gives the right values."""
    array = open_case(case)
    expected, damage = expected_of(case), case["damage"]
    error = getattr(errors, damage["error"])
    bad = {tuple(chunk) for chunk in damage["chunks"]}
    lengths = array.chunks
    for chunk in itertools.product(*(range(-(-n // c)) for n, c in zip(array.shape, lengths, strict=True))):
        region = tuple(slice(i * c, (i + 1) * c) for i, c in zip(chunk, lengths, strict=True))
        if chunk in bad:
            with pytest.raises(error) as caught:
                array[region]
            assert caught.value.key is not None
            assert caught.value.key.endswith("c/0/0")
        else:
            assert_same(array[region], expected[region], case["dtype"])
    with pytest.raises(error):
        array[...]


@pytest.mark.parametrize("case", cases("group"))
def test_group(case: dict[str, Any]) -> None:
    group = zardine.open_group(str(DATA / case["path"]), mode="r")
    assert dict(group.attrs) == case["attributes"]
    members = dict(group.members(max_depth=None))
    kinds = {path: "array" if isinstance(node, zardine.Array) else "group" for path, node in members.items()}
    assert kinds == case["members"]
    for path, kind in kinds.items():
        if kind == "array":
            assert dict(group[path].attrs) == {"member": path}
    assert (group.metadata.consolidated_metadata is not None) == case["consolidated"]


@pytest.mark.parametrize("case", [case for case in cases("group") if case.values[0]["consolidated"]])
def test_consolidated_group_needs_no_other_document(case: dict[str, Any], tmp_path: Path) -> None:
    document = (DATA / case["path"] / "zarr.json").read_bytes()
    (tmp_path / "zarr.json").write_bytes(document)
    group = zardine.open_consolidated(str(tmp_path), mode="r")
    assert {path for path, _ in group.members(max_depth=None)} == set(case["members"])


@pytest.mark.parametrize("name", ["zarr-python-3.1.6", "zarr-python-3.4.2", "tensorstore-0.1.86"])
def test_names_and_attributes(name: str) -> None:
    array = zardine.open_array(str(DATA / name / "shapes/named"), mode="r")
    document = json.loads((DATA / name / "shapes/named/zarr.json").read_text(encoding="utf-8"))
    assert tuple(array.metadata.dimension_names) == ("Zeit ⏱", None)
    assert dict(array.attrs) == document["attributes"]


def test_every_stored_array_is_in_the_manifest() -> None:
    stored = {file.parent.relative_to(DATA).as_posix() for file in DATA.rglob("zarr.json")}
    listed = {case["path"] for case in CASES}
    groups = [case for case in CASES if case["kind"] == "group"]
    inner = {f"{case['path']}/{path}" for case in groups for path, kind in case["members"].items() if kind == "group"}
    assert stored - {case["path"] for case in OLD_CASES} == listed | inner
    assert len(CASES) > 400


def test_every_file_of_expected_elements_is_used() -> None:
    used = {case.get(field) for case in CASES + OLD_CASES for field in ("expected", "others_read")} - {None}
    assert {file.name for file in (HERE / "expected").iterdir()} == used


@pytest.mark.parametrize("case", [case for case in CASES if "optional" in case], ids=lambda case: case["path"])
def test_what_needs_the_kernel_says_so_without(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    array = open_case(case)
    monkeypatch.setattr("zardine.codecs.blosc.in_kernel.KERNEL", None)
    python_path = array.with_config({"cache": 1})
    try:
        values = python_path[...]
    except errors.ChunkDecodeError as error:
        values = str(error)
    if isinstance(values, str):
        assert case["optional"] in values
    else:  # small blocks are stored as they are, whatever the compressor
        assert_same(values, expected_of(case), case["dtype"])
