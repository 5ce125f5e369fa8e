"""Arrays and groups made by the functions of one program, read and changed by the others."""

from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from effort import some
from interop.programs import PEERS, ZARR_PYTHON, TensorStore, Zardine, same, sample

pytestmark = pytest.mark.filterwarnings("ignore:.*(specification|Consolidated metadata|vlen|stable).*")

DTYPES: dict[str, Any] = {
    "bool": "?",
    "i1": "i1",
    "u8": "u8",
    "f2": "f2",
    "f8": "f8",
    "big-f4": ">f4",
    "c16": "c16",
    "U5": "U5",
    "S3": "S3",
    "V3": "V3",
    "M8": "M8[s]",
    "m8": "m8[25us]",
    "string": "string",
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "automatic": {},
    "chunks": {"chunks": (3, 4)},
    "shards": {"chunks": (3, 4), "shards": (6, 8)},
    "index-start": {"chunks": (3, 4), "shards": {"shape": (6, 8), "index_location": "start"}},
    "uncompressed": {"chunks": (3, 4), "compressors": None},
    "dots": {"chunks": (3, 4), "chunk_key_encoding": {"name": "default", "separator": "."}},
    "v2-keys": {"chunks": (3, 4), "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "named": {"chunks": (3, 4), "dimension_names": ["x", "ÿ"], "attributes": {"größe": [1, {"🐟": None}]}},
}
NOT_TENSORSTORE = ("U5", "S3", "V3", "M8", "m8", "string")
"""tensorstore 0.1 does not know these data types, see test_documents."""


def shards_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same for zarr-python 3.1, which takes the index location as an enumeration."""
    shards = arguments.get("shards")
    if not isinstance(shards, dict) or ZARR_PYTHON >= (3, 2):
        return arguments
    return arguments | {"shards": shards | {"index_location": zarr.codecs.ShardingCodecIndexLocation.start}}


def native_order(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in the byte order of this machine, which zardine always gives."""
    return values.copy() if values.dtype.kind == "T" else values.astype(values.dtype.newbyteorder("="))


@pytest.mark.parametrize(("dtype", "name"), list(some(product(DTYPES, ARGUMENTS), 2)))
def test_created_by_zardine(dtype: str, name: str, tmp_path: Path) -> None:
    values = sample(DTYPES[dtype], (13, 9), 1)
    array = zardine.create_array(tmp_path, shape=values.shape, dtype=values.dtype, **ARGUMENTS[name])
    array[...] = values
    native = native_order(values)
    assert same(array[...], native)
    theirs = zarr.open_array(tmp_path, mode="r+")
    if dtype == "V3" and array.shards and ZARR_PYTHON < (3, 2):
        with pytest.raises(TypeError, match="unhashable type: 'writeable void-scalar'"):
            theirs[...]
        return
    found = theirs[...]
    assert same(native_order(found), native)
    assert (theirs.shape, theirs.chunks, theirs.shards) == (array.shape, array.chunks, array.shards)
    assert dict(theirs.attrs) == dict(array.attrs)
    assert theirs.metadata.dimension_names == array.metadata.dimension_names
    assert theirs.fill_value == array.fill_value or str(theirs.fill_value) == str(array.fill_value)
    theirs[2:5, 1:7] = values[7:10, 3:9]
    native[2:5, 1:7] = native[7:10, 3:9].copy()
    assert same(array[...], native)
    if dtype not in NOT_TENSORSTORE:
        assert same(TensorStore.read(tmp_path), native)
    else:
        with pytest.raises(Exception, match=r"not one of the supported data types|raw_bytes|dtype"):
            assert TensorStore.read(tmp_path).dtype == native.dtype, "dtype"


@pytest.mark.parametrize(("dtype", "name"), list(some(product(DTYPES, ARGUMENTS), 2)))
def test_created_by_zarr_python(dtype: str, name: str, tmp_path: Path) -> None:
    values = sample(DTYPES[dtype], (13, 9), 2)
    arguments = shards_of(ARGUMENTS[name])
    if dtype == "V3" and "shards" in arguments and ZARR_PYTHON < (3, 2):
        with pytest.raises(TypeError, match="unhashable"):
            zarr.create_array(tmp_path, shape=values.shape, dtype=values.dtype, **arguments)[...] = values
        return
    theirs = zarr.create_array(tmp_path, shape=values.shape, dtype=values.dtype, **arguments)
    theirs[...] = values
    native = native_order(values)
    array = zardine.open_array(tmp_path, mode="r+")
    assert same(array[...], native)
    assert (theirs.shape, theirs.chunks, theirs.shards) == (array.shape, array.chunks, array.shards)
    assert dict(theirs.attrs) == dict(array.attrs)
    assert theirs.metadata.dimension_names == array.metadata.dimension_names
    array[2:5, 1:7] = values[7:10, 3:9]
    native[2:5, 1:7] = native[7:10, 3:9].copy()
    found = theirs[...]
    assert same(native_order(found), native)


def test_reopened_documents_say_the_same(tmp_path: Path) -> None:
    """What zarr-python writes after it has opened our document means what ours means, and the other way round."""
    array = zardine.create_array(
        tmp_path / "ours", shape=(5, 6), dtype="f4", chunks=(1, 2), shards=(5, 6), fill_value=np.float32("nan")
    )
    theirs = zarr.open_array(tmp_path / "ours", mode="r+")
    theirs.attrs["x"] = [1]
    again = zardine.open_array(tmp_path / "ours")
    assert spelled_out(again.metadata) == spelled_out(array.metadata) | {"attributes": {"x": [1]}}
    theirs = zarr.create_array(tmp_path / "theirs", shape=(5, 6), dtype="f4", chunks=(1, 2), shards=(5, 6))
    zardine.open_array(tmp_path / "theirs").attrs["x"] = [1]
    found = zarr.open_array(tmp_path / "theirs")
    assert found.metadata.to_dict() == theirs.metadata.to_dict() | {"attributes": {"x": [1]}}


def spelled_out(document: Any) -> dict[str, Any]:
    """A document with the defaults that zarr-python spells out and zardine leaves out, or the other way round."""
    text = json.dumps(document if isinstance(document, dict) else document.to_dict())
    spelled: dict[str, Any] = json.loads(text.replace(', "checksum": false', ""))
    spelled.pop("consolidated_metadata", None)
    return {"storage_transformers": []} | spelled


def build(module: Any, path: Path, **more: Any) -> Any:
    """A hierarchy of groups and arrays, by names that both modules have."""
    root = module.create_group(path, attributes={"title": "Wärme", "nested": {"a": [1, 2.5, None, True]}})
    a = root.create_group("a")
    b = a.create_group("b", attributes={"depth": 2})
    for group, name in ((root, "x"), (a, "y"), (b, "z")):
        array = group.create_array(name, shape=(4, 4), chunks=(2, 2), dtype="i4", attributes={"name": name}, **more)
        array[...] = np.arange(16).reshape(4, 4) + len(name)
    root.create_group("empty")
    return root


def summary(group: Any) -> dict[str, Any]:
    """Everything that a hierarchy holds."""
    found: dict[str, Any] = {"": dict(group.attrs)}
    for path, node in group.members(max_depth=None):
        found[path] = (dict(node.attrs), node[...].tolist() if hasattr(node, "shape") else None)
    return found


@pytest.mark.parametrize("consolidated", [False, True])
def test_hierarchies_both_ways(consolidated: bool, tmp_path: Path) -> None:
    for writer, reader in ((zardine, zarr), (zarr, zardine)):
        path = tmp_path / writer.__name__
        wanted = summary(build(writer, path))
        if consolidated:
            writer.consolidate_metadata(path)
            opened = reader.open_consolidated(path)
        else:
            opened = reader.open_group(path, mode="r")
        assert summary(opened) == wanted
        assert set(wanted) == {"", "a", "a/b", "a/b/z", "a/y", "empty", "x"}
        assert sorted(opened.keys()) == ["a", "empty", "x"]
        assert sorted(opened.group_keys()) == ["a", "empty"]
        assert sorted(opened.array_keys()) == ["x"]
        assert ("a/b/z" in opened, "a/b/q" in opened, "q" in opened) == (True, False, False)
        assert opened["a/b/z"].shape == (4, 4)
        assert summary(opened["a"])["b"][0] == {"depth": 2}


def test_consolidated_metadata_is_the_same_document(tmp_path: Path) -> None:
    """Both programs consolidate the same nodes to the same members."""
    build(zardine, tmp_path / "a")
    zardine.consolidate_metadata(tmp_path / "a")
    ours = json.loads((tmp_path / "a" / "zarr.json").read_text())["consolidated_metadata"]
    zarr.consolidate_metadata(tmp_path / "a")
    theirs = json.loads((tmp_path / "a" / "zarr.json").read_text())["consolidated_metadata"]
    assert (ours["kind"], ours["must_understand"]) == (theirs["kind"], theirs["must_understand"])
    assert ours["metadata"].keys() == theirs["metadata"].keys()
    for path, document in theirs["metadata"].items():
        assert spelled_out(ours["metadata"][path]) == spelled_out(document), path


def test_groups_changed_by_turns(tmp_path: Path) -> None:
    build(zardine, tmp_path)
    theirs = zarr.open_group(tmp_path, mode="r+")
    theirs.attrs["by"] = "zarr-python"
    theirs["a"].create_array("new", shape=(3,), dtype="f8", chunks=(2,))[...] = [1, 2, 3]
    del theirs["x"]
    ours = zardine.open_group(tmp_path, mode="r+")
    assert ours.attrs["by"] == "zarr-python"
    assert ours.attrs["title"] == "Wärme"
    assert "x" not in ours
    assert ours["a/new"][...].tolist() == [1, 2, 3]
    ours["a/new"].append([4.0])
    ours["a/b"].attrs.update({"more": {"x": 1}})
    del ours["empty"]
    theirs = zarr.open_group(tmp_path, mode="r")
    assert theirs["a/new"][...].tolist() == [1, 2, 3, 4]
    assert theirs["a/b"].attrs.asdict() == {"depth": 2, "more": {"x": 1}}
    assert "empty" not in theirs


def test_resized_by_turns(tmp_path: Path) -> None:
    ours = zardine.create_array(tmp_path, shape=(5, 7), dtype="u2", chunks=(1, 2), shards=(4, 4), fill_value=9)
    ours[...] = np.arange(35).reshape(5, 7)
    zarr.open_array(tmp_path, mode="r+").resize((9, 3))
    ours.refresh()
    assert ours.shape == (9, 3)
    assert ours[:5].tolist() == np.arange(35).reshape(5, 7)[:, :3].tolist()
    assert (ours[5:] == 9).all()
    ours.resize((2, 2))
    ours.resize((6, 6))
    expected = np.full((6, 6), 9, "u2")
    expected[:2, :2] = [[0, 1], [7, 8]]
    for program in (Zardine, *PEERS.values()):
        assert same(program.read(tmp_path), expected)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 0.1, 5e-324, np.float64(1e300)])
def test_fill_values_of_floats(value: float, tmp_path: Path) -> None:
    for module, path in ((zardine, tmp_path / "a"), (zarr, tmp_path / "b")):
        module.create_array(path, shape=(3,), dtype="f8", chunks=(3,), fill_value=value)
        expected = np.full(3, value)
        for program in (Zardine, *PEERS.values()):
            assert same(program.read(path), expected), program.name


def test_attributes_that_json_does_not_have(tmp_path: Path) -> None:
    """zarr-python writes NaN and Infinity as bare words, which only lenient parsers read; zardine reads them too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.create_group(tmp_path, attributes={"x": [float("nan"), float("-inf")]})
    found = zardine.open_group(tmp_path).attrs["x"]
    assert np.isnan(found[0])
    assert found[1] == float("-inf")
    with pytest.raises(ValueError, match=r"attributes\.x"):
        zardine.create_group(tmp_path, overwrite=True, attributes={"x": float("nan")})
    zardine.open_group(tmp_path, mode="r+").attrs["y"] = 1


def test_zarr_python_alone_writes_none_fill_values(tmp_path: Path) -> None:
    """``fill_value=None`` in zarr-python stands for the default, which it spells out in v3 documents."""
    zarr.create_array(tmp_path, shape=(2,), dtype="i4", fill_value=None)
    assert zardine.open_array(tmp_path).fill_value == 0


def test_implied_groups_are_seen_by_zardine_alone(tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "g" / "h", shape=(2,), dtype="i4")
    assert sorted(zardine.open_group(tmp_path, mode="r").keys()) == ["g"]
    with pytest.raises(Exception, match=r"zarr\.json|No group|not found|Unable"):
        zarr.open_group(tmp_path, mode="r")
