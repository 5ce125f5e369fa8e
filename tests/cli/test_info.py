"""``zardine info``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine


def lines(text: str) -> dict[str, str]:
    """Values by label; those of several lines are joined by bars."""
    found: dict[str, str] = {}
    label = ""
    margin = re.search(r"^Type +", text, re.MULTILINE).end()  # type: ignore[union-attr]
    for line in text.splitlines():
        label = line[:margin].strip() or label
        found[label] = f"{found[label]} | {line[margin:]}" if label in found else line[margin:]
    return found


def test_a_sharded_array(run: Any, sharded: Path) -> None:
    result = run("info", sharded, columns=300)
    assert result.exit_code == 0
    found = lines(result.stdout)
    assert found.pop("Store") == f"file://{sharded}"
    assert found.pop("Attributes").count("|") == 8
    assert found == {
        "Type": "array",
        "Path": "/",
        "Zarr format": "3",
        "Data type": "float32",
        "NumPy dtype": "float32",
        "Fill value": "NaN",
        "Shape": "(y: 40, x: 60), 2,400 elements",
        "Bytes in memory": "9,600 (9.4 KiB)",
        "Shards": "(20, 30), a grid of 2 × 2 = 4 objects",
        "Inner chunks": "(5, 10), 12 in each shard, a grid of 8 × 6 = 48",
        "Chunk keys": "default separator=/",
        "Codecs": "bytes endian=little | zstd level=0, checksum=false | crc32c",
        "Shard index": "at the end of each shard",
        "Index codecs": "bytes endian=little | crc32c",
        "Checksum": "crc32c on every chunk",
    }
    assert "… and 4 more: --attributes shows all" in result.stdout


def test_narrow_terminals(run: Any, sharded: Path) -> None:
    for columns in (40, 80):
        for line in run("info", sharded, columns=columns).stdout.splitlines():
            assert len(line) <= columns
            assert line == line.rstrip()


def test_everything_that_array_info_knows_is_there(run: Any, sharded: Path) -> None:
    """``Order`` and ``Read-only`` are about how this process opened the array, and others are in other words."""
    differ = {"Codecs", "Fill value", "Order", "Read-only", "Shards", "Type"}
    text = run("info", sharded, "--complete", columns=500).stdout
    for label, value in zardine.open_array(str(sharded), mode="r").info_complete().items:
        assert value in text or label in differ, label


def test_all_attributes(run: Any, sharded: Path) -> None:
    result = run("info", sharded, "--attributes", columns=500)
    assert 'long = "' in result.stdout
    assert "x" * 200 in result.stdout
    assert "a9 = 9" in result.stdout
    assert "more" not in result.stdout


def test_nested_attributes_in_full(run: Any, sharded: Path) -> None:
    value = {"a": ["ä" * 30, "[red]", "\x1b[31m"], "b": 1.5}
    zardine.open_array(str(sharded)).attrs.put({"deep": value})
    text = run("info", sharded, "--attributes").stdout
    body = text[text.index("deep = ") + len("deep = ") :]
    assert json.loads(body) == value
    assert "\x1b" not in text


def test_json_of_a_sharded_array(run: Any, sharded: Path) -> None:
    result = run("info", sharded, "--json", "--complete", "--requests")
    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts.pop("store").endswith("/heights.zarr")
    requests = facts.pop("requests")
    assert requests["requests"] == requests["reads"] + requests["lists"] > 0
    assert requests["keys"]["zarr.json"] >= 1
    assert requests["bytes_read"] > 0
    stored = facts.pop("stored")
    size = sum(file.stat().st_size for file in sharded.rglob("*") if file.is_file())
    assert stored == {
        "objects": 1,
        "object_count": 4,
        "chunks": 12,
        "chunk_count": 48,
        "bytes": size,
        "nbytes": 9600,
        "ratio": 9600 / size,
    }
    attributes = facts.pop("attributes")
    assert attributes == zardine.open_array(str(sharded)).attrs.asdict()
    assert facts == {
        "name": "",
        "path": "/",
        "kind": "array",
        "shape": [40, 60],
        "dimension_names": ["y", "x"],
        "data_type": "float32",
        "dtype": "float32",
        "chunks": [5, 10],
        "shards": [20, 30],
        "zarr_format": 3,
        "fill_value": "NaN",
        "size": 2400,
        "nbytes": 9600,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [20, 30]}},
        "chunk_grid_shape": [8, 6],
        "chunk_count": 48,
        "chunks_per_shard": 12,
        "object_grid_shape": [2, 2],
        "object_count": 4,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
            {"name": "crc32c"},
        ],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "end",
        "checksum": True,
        "order": None,
    }


def test_what_is_stored(run: Any, sharded: Path) -> None:
    found = lines(run("info", sharded, "--complete").stdout)
    assert found["Shards stored"] == "1 of 4"
    assert found["Chunks stored"] == "12 of 48"
    assert int(found["Bytes stored"].split(" ")[0].replace(",", "")) > 700
    assert float(found["Ratio"]) > 1


def test_requests(run: Any, sharded: Path) -> None:
    found = lines(run("info", sharded, "--requests").stdout)
    assert "read" in found["Requests"]
    assert int(found["Bytes read"].split(" ")[0].replace(",", "")) >= (sharded / "zarr.json").stat().st_size
    assert "CountingStore" not in found["Store"]


def test_a_group(run: Any, hierarchy: Path) -> None:
    found = lines(run("info", hierarchy, columns=300).stdout)
    assert found == {
        "Type": "group",
        "Path": "/",
        "Store": f"file://{hierarchy}",
        "Zarr format": "3",
        "Consolidated": "no",
        "Arrays below": "4",
        "Groups below": "2",
        "Attributes": 'title = "Example"',
    }
    zardine.consolidate_metadata(str(hierarchy))
    facts = json.loads(run("info", hierarchy, "--json", "--complete").stdout)
    assert facts["consolidated"] is True
    assert (facts["kind"], facts["arrays_below"], facts["groups_below"], facts["broken_below"]) == ("group", 4, 2, 0)
    assert facts["stored"]["objects"] == 1


def test_a_node_inside(run: Any, hierarchy: Path) -> None:
    for words in (
        (hierarchy, "--path", "[red]/[b]:fish:"),
        (hierarchy / "raw", "--path", "/counts/"),
        (f"file://{hierarchy}/raw/counts",),
    ):
        facts = json.loads(run("info", *words, "--json").stdout)
        assert facts["shape"] in ([3], [4, 6])
        assert facts["path"] in ("/[red]/[b]:fish:", "/counts", "/")


def test_rectilinear_chunks_and_structs(run: Any, hierarchy: Path) -> None:
    found = lines(run("info", hierarchy, "--path", "uneven").stdout)
    assert found["Chunks"] == "rectilinear (10, 20, 70; 50, 150), a grid of 3 × 2 = 6 objects"
    assert found["Data type"] == "struct(x: float32, n: int16)"
    assert found["Fill value"] == '{"x": 0.0, "n": 0}'
    facts = json.loads(run("info", hierarchy, "--path", "uneven", "--json").stdout)
    assert (facts["chunks"], facts["shards"], facts["object_grid_shape"]) == (None, None, [3, 2])


def test_shards_of_differing_shape(run: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "r.zarr")
    zardine.create_array(path, shape=(30, 10), dtype="i4", chunks=(5, 5), shards=((10, 20), (10,)))
    found = lines(run("info", path).stdout)
    assert found["Shards"] == "rectilinear (10, 20; 10), a grid of 2 × 1 = 2 objects"
    assert found["Inner chunks"] == "(5, 5), a grid of 6 × 2 = 12"
    assert json.loads(run("info", path, "--json").stdout)["index_location"] == "end"
    assert "shards" in run("tree", path).stdout


def test_shards_in_shards(run: Any, tmp_path: Path) -> None:
    inner = zardine.codecs.ShardingCodec(chunk_shape=(4,), codecs=("bytes", "crc32c"))
    outer = zardine.codecs.ShardingCodec(chunk_shape=(16,), codecs=(inner,), index_location="start")
    zardine.create_array(str(tmp_path / "n.zarr"), shape=64, dtype="u1", chunks=32, serializer=outer)
    found = lines(run("info", tmp_path / "n.zarr").stdout)
    assert found["Codecs"] == (
        "sharding_indexed chunk_shape=(4,), index_location=end |   codecs: |     bytes endian=little |     crc32c"
        " |   index_codecs: |     bytes endian=little |     crc32c"
    )
    assert found["Shard index"] == "at the start of each shard"
    assert found["Checksum"] == "crc32c on every chunk"


@pytest.mark.parametrize(
    ("dtype", "fill", "shown"),
    [
        ("string", "NaN", '"NaN"'),
        ("f8", -np.inf, "-Infinity"),
        ("M8[s]", np.datetime64("NaT"), "NaT"),
        ("i1", -1, "-1"),
        ("c8", complex(1, np.nan), '[1.0, "NaN"]'),
        ("S3", b"a\n", r"b'a\n'"),
    ],
)
def test_fill_values(run: Any, tmp_path: Path, dtype: str, fill: object, shown: str) -> None:
    zardine.create_array(str(tmp_path / "f.zarr"), shape=3, dtype=dtype, fill_value=fill)
    result = run("info", tmp_path / "f.zarr")
    assert lines(result.stdout)["Fill value"] == shown


def test_an_array_without_axes(run: Any, tmp_path: Path) -> None:
    zardine.create_array(str(tmp_path / "s.zarr"), data=np.float32(3), checksum=False)
    found = lines(run("info", tmp_path / "s.zarr", "--complete").stdout)
    assert found["Shape"] == "(), 1 element"
    assert found["Chunks"] == "(), in all 1 object"
    assert found["Checksum"] == "none"
    assert found["Objects stored"] == "1 of 1"


def test_a_group_with_broken_nodes(run: Any, broken: Path) -> None:
    result = run("info", broken)
    assert result.exit_code == 1
    found = lines(result.stdout)
    assert (found["Arrays below"], found["Broken below"]) == ("1", "2 (see zardine tree)")


def test_zarr_v2(run: Any, tmp_path: Path) -> None:
    array = {"shape": (10, 4), "dtype": "f4", "chunks": 3, "fill_value": None, "order": "F", "zarr_format": 2}
    zardine.create_array(str(tmp_path / "v2.zarr"), **array)
    found = lines(run("info", tmp_path / "v2.zarr").stdout)
    assert found["Zarr format"] == "2"
    assert found["Fill value"] == "none stored, reads as 0.0"
    assert found["Chunk keys"] == "v2 separator=."
    assert found["Order in chunks"] == "F"
    facts = json.loads(run("info", tmp_path / "v2.zarr", "--zarr-format", 2, "--json").stdout)
    assert (facts["zarr_format"], facts["fill_value"], facts["order"]) == (2, None, "F")
    assert run("info", tmp_path / "v2.zarr", "--zarr-format", 3).exit_code == 1
