"""The golden files of older formats themselves: complete, without strays, made again byte for byte; no zardine here."""

from __future__ import annotations

import bz2
import importlib
import itertools
import json
import lzma
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numcodecs.blosc
import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # the generators import each other by name
old = importlib.import_module("golden_files_old")

CASES: list[dict[str, Any]] = json.loads((HERE / "manifest_old.json").read_text(encoding="utf-8"))
DOCUMENTS: dict[str, list[dict[str, Any]]] = json.loads((HERE / "bad_documents_old.json").read_text(encoding="utf-8"))
ARRAYS = [case for case in CASES if case["kind"] == "array"]
GROUPS = [case for case in CASES if case["kind"] == "group"]
ATTRIBUTES = {"1": "attrs", "2": ".zattrs"}


def chunk_keys(case: dict[str, Any]) -> set[str]:
    """Keys that chunks of an array may have."""
    counts = [-(-length // size) if length else 0 for length, size in zip(case["shape"], case["chunks"], strict=True)]
    draft = case["zarr_format"] == "3-draft"
    separator = "/" if draft else case.get("separator") or "."
    names = [separator.join(map(str, place)) for place in itertools.product(*map(range, counts))]
    return {"/".join(filter(None, ("c", name))) if draft else name or "0" for name in names}


def files_of_array(case: dict[str, Any]) -> set[str]:
    names = {old.DOCUMENT[case["zarr_format"]], ATTRIBUTES.get(case["zarr_format"], "zarr.json"), *chunk_keys(case)}
    return {f"{case['path']}/{name}" for name in names}


def files_of_group(case: dict[str, Any]) -> set[str]:
    if case.get("store") == "zip":
        return {case["path"]}
    groups = [case["path"]] + [f"{case['path']}/{name}" for name, kind in case["members"].items() if kind == "group"]
    return {f"{group}/{name}" for group in groups for name in (".zgroup", ".zattrs")} | {f"{case['path']}/.zmetadata"}


@pytest.mark.parametrize("case", ARRAYS, ids=lambda case: case["path"])
def test_array(case: dict[str, Any]) -> None:
    """The document and the expected elements are there and agree with the entry."""
    path = HERE / "data" / case["path"]
    assert (path / old.DOCUMENT[case["zarr_format"]]).is_file()
    expected = old.load_expected(case)
    assert list(expected.shape) == [stop - start for start, stop in case.get("region", [[0, n] for n in case["shape"]])]
    kind = case["dtype"]
    assert expected.dtype.kind == "O" if kind in ("string", "bytes", "object") else str(expected.dtype) == kind
    assert old.native(expected.dtype) == expected.dtype
    facts = old.strict_json(old.document_facts(path, case["zarr_format"]))
    assert {name: case[name] for name in facts} == facts
    if "attributes" in case:
        text = (path / ATTRIBUTES[case["zarr_format"]]).read_text(encoding="utf-8")
        assert old.strict_json(json.loads(text)) == case["attributes"]
    undefined = case.get("undefined_chunks", [])
    assert not undefined or case["fill"] is None
    for place in undefined:
        assert not (path / ((case.get("separator") or ".").join(map(str, place)) or "0")).exists()


@pytest.mark.parametrize("case", GROUPS, ids=lambda case: case["path"])
def test_group(case: dict[str, Any]) -> None:
    path = HERE / "data" / case["path"]
    if case.get("store") == "zip":
        assert path.is_file()
        return
    assert (path / ".zgroup").is_file()
    assert (path / ".zmetadata").exists() == case["consolidated"]
    for name, kind in case["members"].items():
        assert (path / name / {"group": ".zgroup", "array": ".zarray"}[kind]).is_file()
    listed = {entry["path"] for entry in ARRAYS}
    assert {f"{case['path']}/{name}" for name, kind in case["members"].items() if kind == "array"} <= listed


def test_no_file_is_astray() -> None:
    allowed = {name for case in ARRAYS for name in files_of_array(case)}
    allowed |= {name for case in GROUPS for name in files_of_group(case)}
    folders = {case["path"].split("/")[0] for case in CASES}
    stored = (file for folder in folders for file in (HERE / "data" / folder).rglob("*") if file.is_file())
    assert {file.relative_to(HERE / "data").as_posix() for file in stored} <= allowed


def test_expected_elements_are_all_used() -> None:
    newer = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    assert {file.name for file in (HERE / "expected").iterdir()} == old.files_of(CASES + newer)


def decompressed(content: bytes, case: dict[str, Any], document: dict[str, Any]) -> bytes:
    """The bytes of a chunk, by the standard library and blosc alone."""
    name = case["compressor"]
    if name == "blosc":
        return bytes(numcodecs.blosc.decompress(content))
    if name == "lzma":
        options = document["compressor"] if case["zarr_format"] == "2" else document["compression_opts"]
        raw = options["filters"] if options["format"] == lzma.FORMAT_RAW else None
        return lzma.decompress(content, format=options["format"], filters=raw)
    return {"zlib": zlib.decompress, "bz2": bz2.decompress}.get(name, bytes)(content)


PLAIN = [
    case
    for case in ARRAYS
    if case["zarr_format"] in ("1", "2")
    and case["compressor"] in (None, "none", "zlib", "bz2", "lzma", "blosc")
    and not case.get("filters")
    and "region" not in case
    and "optional" not in case
]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["path"])
def test_chunks_hold_the_expected_elements(case: dict[str, Any]) -> None:
    """What NumPy alone makes of the chunks of arrays without filters."""
    path = HERE / "data" / case["path"]
    document = json.loads((path / old.DOCUMENT[case["zarr_format"]]).read_text(encoding="utf-8"))
    by_the_text = "others_read" in case and case["version"] == "1.1.0"
    expected = old.load_expected(case, "others_read" if by_the_text else "expected")
    stored = numpy_type(document["dtype"])
    for key in chunk_keys(case):
        if not (path / key).exists():
            continue
        content = decompressed((path / key).read_bytes(), case, document)
        chunk = np.frombuffer(content, stored).reshape(case["chunks"], order=case["order"])
        place = [int(number) for number in key.split(case.get("separator") or ".")][: expected.ndim]
        box = tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, case["chunks"], strict=True))
        part = expected[box]
        inside = chunk[tuple(slice(length) for length in part.shape)]
        if stored.kind in "mM":  # conversions of times without a unit forget the byte order
            inside, part = inside.view(stored.str[0] + "i8"), part.view("i8")
        assert inside.astype(part.dtype).tobytes() == part.tobytes(), key


def numpy_type(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, str):
        return np.dtype(dtype)
    return np.dtype([(name, numpy_type(inner), *map(tuple, shape)) for name, inner, *shape in dtype])


def test_breadth() -> None:
    """Every kind of type, codec and layout is there."""
    by_format = {number: [case for case in ARRAYS if case["zarr_format"] == number] for number in old.DOCUMENT}
    assert {number: len(cases) > 60 for number, cases in by_format.items()} == dict.fromkeys(by_format, True)
    second = by_format["2"]
    kinds = {case["stored_dtype"][:2] for case in second if isinstance(case["stored_dtype"], str)}
    assert kinds >= {order + kind for order in "<>" for kind in "iufcmMU"} | {"|b", "|S", "|V", "|O"}
    codecs = {case["compressor"] for case in second} | {name for case in second for name in case["filters"] or ()}
    assert codecs >= {None, "blosc", "zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "delta", "fixedscaleoffset"}
    assert codecs >= {"quantize", "astype", "packbits", "bitround", "shuffle", "categorize", "crc32", "fletcher32"}
    assert codecs >= {"vlen-utf8", "vlen-bytes", "vlen-array", "json2", "msgpack2", "pickle", "adler32"}
    layouts = {(len(case["shape"]), case["order"], case["separator"]) for case in second}
    assert layouts >= set(itertools.product(range(5), "CF", (None, ".", "/")))
    assert {case["compressor"] for case in by_format["1"]} >= {"blosc", "zlib", "bz2", "lzma", "none"}


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_made_by_hand_again(tmp_path: Path) -> None:
    """The generator writes the same bytes, the same entries and no other expected elements."""
    made_with = {case["version"] for case in CASES if case["writer"] == "by hand"}
    here = f"zlib {zlib.ZLIB_RUNTIME_VERSION}, blosc {numcodecs.blosc.VERSION_STRING}"
    if made_with != {here}:
        pytest.skip(f"made with {made_with.pop()}; {here} may compress to other bytes")
    for name in ("manifest.json", "manifest_old.json"):
        (tmp_path / name).write_bytes((HERE / name).read_bytes())
    (tmp_path / "expected").mkdir()
    for file in (HERE / "expected").iterdir():
        (tmp_path / "expected" / file.name).write_bytes(file.read_bytes())
    subprocess.run([sys.executable, HERE / "make_hand_made_old.py", tmp_path], check=True, capture_output=True)
    assert contents(tmp_path / "data/hand-made-old") == contents(HERE / "data/hand-made-old")
    assert contents(tmp_path / "expected") == contents(HERE / "expected")
    assert (tmp_path / "manifest_old.json").read_bytes() == (HERE / "manifest_old.json").read_bytes()


def test_bad_documents_made_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, HERE / "make_bad_documents_old.py", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "bad_documents_old.json").read_bytes() == (HERE / "bad_documents_old.json").read_bytes()


def test_bad_documents() -> None:
    assert len(DOCUMENTS["bad"]) >= 80
    for kind, cases in DOCUMENTS.items():
        assert len({(case["about"], case["open"]) for case in cases}) == len(cases)
        for case in cases:
            assert case["open"] in ("array", "group", "consolidated")
            assert case["reason"] if kind == "bad" else case["meaning"] and case["expect"]
            assert all(isinstance(old.document_bytes(content), bytes) for content in case["files"].values())
