"""``zardine convert``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.tools.convert import prepare_conversion
from zardine.tools.converting.options import ConvertOptions

VALUES = np.arange(40 * 30, dtype="i4").reshape(40, 30)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A hierarchy of v2."""
    path = tmp_path / "old.zarr"
    root = zardine.create_group(path, zarr_format=2, attributes={"title": "t"})
    attributes = {"_ARRAY_DIMENSIONS": ["y", "x"]}
    root.create_array("deep/a", data=VALUES, chunks=(7, 6), compressors=numcodecs.Zlib(), attributes=attributes)
    root.create_array("b", data=VALUES[0], chunks=7)
    return path


def test_everything_at_once(run: Any, old: Path, tmp_path: Path) -> None:
    result = run("convert", old, tmp_path / "new.zarr", "--verify")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"2 arrays and 2 groups, 2 objects, compared: file://{tmp_path}/new.zarr\n"
    new = zardine.open_group(tmp_path / "new.zarr", mode="r")
    assert (new["deep/a"].chunks, new["deep/a"].shards, new["deep/a"].dimension_names) == ((7, 6), (42, 30), ("y", "x"))
    np.testing.assert_array_equal(new["deep/a"][...], VALUES)
    again = run("convert", old, tmp_path / "new.zarr")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr.startswith(f"Error: a group is already stored at file://{tmp_path}/new.zarr")
    assert run("convert", old, tmp_path / "new.zarr", "--overwrite", "-q").output == ""


def test_what_each_array_becomes(run: Any, old: Path, tmp_path: Path) -> None:
    (old / "b/.zattrs").write_text('{"scale": NaN}')
    words = ["--dry-run", "--chunks", "5,5", "--compressor", "gzip"]
    result = run("convert", old, tmp_path / "new", *words, columns=500)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        f"From     file://{old}\n"
        f"To       file://{tmp_path}/new\n"
        "/b       (30,) int32: v2 chunks (7,), zstd\n"
        "           → v3 shards (35,) of (7,), gzip, crc32c\n"
        '           attributes.scale: NaN is no JSON, and became the text "NaN"\n'
        "/deep/a  (y: 40, x: 30) int32: v2 chunks (7, 6), numcodecs.zlib\n"
        "           → v3 shards (40, 30) of (5, 5), gzip, crc32c\n"
    )
    assert not (tmp_path / "new").exists()
    told = run("convert", old, tmp_path / "new", columns=500)
    assert told.stderr == (
        "Warning: not all of the documents could be taken over as it is\n"
        '  - /b: attributes.scale: NaN is no JSON, and became the text "NaN"\n'
    )
    taken = run("convert", old, tmp_path / "new", "--dry-run")
    assert (taken.exit_code, taken.stdout) == (1, "")
    same = run("convert", tmp_path / "new", "--metadata-only", "--dry-run")
    assert "stays as it is" in same.stdout


def test_json(run: Any, old: Path, tmp_path: Path) -> None:
    dry = json.loads(run("convert", old, tmp_path / "new", "--json", "--dry-run").stdout)
    result = run("convert", old, tmp_path / "new", "--json", "--verify")
    done = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert {name: done[name] for name in ("dry_run", "resumed", "compared", "objects", "metadata_only")} == {
        "dry_run": False,
        "resumed": False,
        "compared": True,
        "objects": 2,
        "metadata_only": False,
    }
    assert dry["nodes"] == done["nodes"]
    assert [node["path"] for node in done["nodes"]] == ["/", "/b", "/deep", "/deep/a"]
    before, after = done["nodes"][1]["from"], done["nodes"][1]["to"]
    assert (before["zarr_format"], before["fill_value"], before["shards"]) == (2, 0, None)
    assert (after["zarr_format"], after["fill_value"], after["shards"]) == (3, 0, [35])
    assert after["codecs"][-1] == {"name": "crc32c"}
    assert done["target"] == f"file://{tmp_path}/new"


def test_a_fill_value_that_v3_cannot_leave_undefined(run: Any, tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "old", data=VALUES[0], chunks=7, fill_value=None, zarr_format=2)
    told = run("convert", tmp_path / "old", tmp_path / "new", "--json")
    assert told.stderr.startswith(
        "Warning: not all of the documents could be taken over as it is\n  - /: fill value null"
    )
    (node,) = json.loads(told.stdout)["nodes"]
    assert (node["from"]["fill_value"], node["to"]["fill_value"]) == (None, 0)
    assert run("convert", tmp_path / "old", "--metadata-only").stderr == told.stderr


def test_options(run: Any, old: Path, tmp_path: Path) -> None:
    def made(*words: object) -> Any:
        result = run("convert", old, tmp_path / "new", "--path", "deep/a", "--overwrite", "--no-resume", *words)
        assert result.exit_code == 0, result.stderr
        return zardine.open_array(tmp_path / "new", mode="r")

    assert made("--shards", "none").shards is None
    array = made("--chunks", "auto", "--shards", "20,30", "--no-checksum")
    assert (array.shards, [codec.name for codec in array.compressors]) == ((20, 30), ["zstd"])
    blosc = '{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 2}}'
    assert made("--compressor", blosc).compressors[0].cname == "lz4"
    assert [codec.name for codec in made("--compressor", "keep").compressors] == ["numcodecs.zlib", "crc32c"]
    assert made("--compressor", "none", "--no-checksum").compressors == ()
    assert [codec.name for codec in made("--filter", "numcodecs.delta").filters] == ["numcodecs.delta"]
    v2 = made("--zarr-format", 2, "--compressor", '{"id": "bz2", "level": 3}', "--chunks", 5)
    assert (v2.metadata.zarr_format, v2.chunks, v2.compressor) == (2, (5, 5), numcodecs.BZ2(3))
    result = run("convert", old, tmp_path / "more", "--path", "b", "--target-path", "x/y")
    assert result.exit_code == 0
    assert zardine.open_array(tmp_path / "more", path="x/y", mode="r").shape == (30,)
    objects = zardine.create(2, dtype=object, object_codec=numcodecs.JSON(), zarr_format=2, store=tmp_path / "objects")
    objects[...] = np.array(["a", "b"], object)
    assert run("convert", tmp_path / "objects", tmp_path / "text").exit_code == 1
    assert run("convert", tmp_path / "objects", tmp_path / "text", "--objects-as-text").exit_code == 0
    assert zardine.open_array(tmp_path / "text", mode="r")[...].tolist() == ["a", "b"]


def test_in_place(run: Any, old: Path) -> None:
    result = run("convert", old, "--metadata-only", "--verify")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"2 arrays and 2 groups: 4 documents written, compared: file://{old}\n"
    result = run("convert", old, "--metadata-only", "--remove-old", "--json")
    done = json.loads(result.stdout)
    assert (done["documents"], done["removed"], done["metadata_only"]) == (0, 6, True)
    assert sorted(file.name for file in old.rglob("*") if "z" in file.name) == ["zarr.json"] * 4


def test_all_reasons_and_no_traceback(run: Any, tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "new")
    root.create_array("a", shape=(4, 4), dtype="i4", chunks=2, shards=4, dimension_names=["x", None])
    root.create_array("b", shape=4, dtype="bfloat16")
    result = run("convert", tmp_path / "new", tmp_path / "old", "--zarr-format", 2)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: nothing was converted: 2 of the 3 nodes cannot be expressed in Zarr v2\n"
        "  - /a: dimension names ['x', None]: v2 has an attribute for them, in which all have names\n"
        "  - /a: shards: there are none before v3; --shards none stores its 4 chunks one by one\n"
        "  - /b: data type bfloat16: there is none before v3\n"
    )
    assert not (tmp_path / "old").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["SRC"], "Error: Give DST, or --metadata-only, which works in SRC."),
        (["SRC", "DST", "--metadata-only"], "Error: --metadata-only works in SRC: leave out DST."),
        (["SRC", "DST", "--remove-old"], "Error: --remove-old is for --metadata-only"),
        (["SRC", "SRC/deep"], "are one place, or one is inside of the other"),
        (["SRC", "DST", "--zarr-format", "5"], "Error: there is no Zarr format 5"),
        (["SRC", "DST", "--chunks", "many"], "'many' is not lengths such as 100,100"),
        (["SRC", "DST", "--shards", "keep"], "'keep' is not lengths such as 100,100"),
        (["SRC", "DST", "--chunks", "1,1,1"], "Error: chunks (1, 1, 1) fit no array of the source"),
        (["SRC", "DST", "--compressor", "{x"], "is neither a name nor JSON"),
        (["SRC", "DST", "--compressor", "none", "--compressor", "zstd"], "'none' stands alone"),
        (["SRC", "DST", "--zarr-format", "2", "--shards", "10"], "Error: shards needs --zarr-format 3"),
        (["SRC", "--metadata-only", "--chunks", "5"], "leaves chunks as they are: chunks cannot change"),
        (["SRC", "DST", "--storage-option", "a=1"], "storage_options"),
        (["SRC", "DST", "--target-option", "b"], "'b' is not KEY=VALUE"),
        ([], "Error: Missing argument 'SRC'."),
    ],
)
def test_wrong_usage(run: Any, old: Path, tmp_path: Path, words: list[str], said: str) -> None:
    places = {"SRC": str(old), "DST": str(tmp_path / "new"), "SRC/deep": str(old / "deep")}
    result = run("convert", *[places.get(word, word) for word in words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "new").exists()


def test_sources_that_are_not_there(run: Any, tmp_path: Path) -> None:
    result = run("convert", tmp_path / "none", tmp_path / "new")
    assert (result.exit_code, result.stderr) == (1, f"Error: '{tmp_path}/none' does not exist\n")
    result = run("convert", tmp_path, tmp_path.parent / "new")
    assert result.exit_code == 1
    assert "no array or group is stored at" in result.stderr


def test_ctrl_c_and_on(run: Any, old: Path, tmp_path: Path) -> None:
    code = """
import sys, time, zardine.cli
from zardine.storage import LocalStore
whole = LocalStore.set
def slow(self, key, value, **more):
    version = whole(self, key, value, **more)
    print(key, flush=True)
    if "/c/" in key:
        time.sleep(30)
    return version
LocalStore.set = slow
sys.argv = ["zardine", *sys.argv[1:]]
zardine.cli.main()
"""
    words = ["convert", str(old), str(tmp_path / "new"), "--shards", "7,6"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ZARDINE_THREADS": "1"},
    )
    assert process.stdout is not None
    keys = [process.stdout.readline().strip() for _ in range(2)]
    assert keys[0] == "zardine-conversion.json"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (
        130,
        f"What is done stays. To go on: zardine {' '.join(words)}\nInterrupted\n",
    )
    result = run(*words)
    assert result.exit_code == 0
    assert ", continued: file://" in result.stdout
    np.testing.assert_array_equal(zardine.open_group(tmp_path / "new", mode="r")["deep/a"][...], VALUES)


def test_a_run_that_is_not_continued_says_what_differs(run: Any, old: Path, tmp_path: Path) -> None:
    """In the words of the command line, whichever options differ."""
    target = tmp_path / "new"
    options = ConvertOptions(shards=(14, 12), compressors=["gzip"], checksum=False)
    conversion = prepare_conversion(old, target, options)
    conversion.target.begin(overwrite=False)  # cut off at once
    same = ("--shards", "14,12", "--compressor", "gzip", "--no-checksum")
    cases = [
        (("--compressor", "gzip", "--no-checksum"), "it had --shards 14,12, now it is --shards auto;"),
        ((*same[:2], "--no-checksum"), "it had --compressor gzip, now it is --compressor auto;"),
        (
            (*same[:2], "--compressor", '{"name": "zstd"}', "--no-checksum"),
            'it had --compressor gzip, now it is --compressor {"name": "zstd"};',
        ),
        ((*same[:4], "--checksum"), "it had --no-checksum, now it is --checksum;"),
        (same[:4], "it had --no-checksum, now it is neither --checksum nor --no-checksum;"),
        ((*same, "--chunks", "2,3"), "it had --chunks keep, now it is --chunks 2,3;"),
    ]
    for words, text in cases:
        result = run("convert", old, target, *words)
        assert result.exit_code == 1
        said = " ".join(result.stderr.split())
        assert text in said
        assert "the command as it was continues it, --overwrite begins anew" in said
    result = run("convert", old, target, *same)
    assert result.exit_code == 0, result.output
