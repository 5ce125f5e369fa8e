"""Zarr v2 and v1 and the sharding draft: created, opened, changed, beside zarr-python."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from numcodecs.msgpacks import MsgPack

import zardine
from effort import SOAK
from zardine.errors import (
    ArrayNotFoundError,
    ChunkDecodeError,
    ContainsArrayError,
    ContainsGroupError,
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    UnsupportedError,
    ZarrUserWarning,
)
from zardine.storage import MemoryStore

DTYPES = [
    "|b1",
    "|i1",
    "<i4",
    ">i4",
    ">u8",
    "<f2",
    "<f8",
    ">f4",
    "<c16",
    ">c8",
    "<M8[ns]",
    ">m8[10us]",
    "|S5",
    "<U4",
    ">U4",
]
COMPRESSORS = [
    None,
    numcodecs.Blosc("zstd", 3, 2),
    numcodecs.Zlib(),
    numcodecs.LZ4(),
    numcodecs.Zstd(),
    numcodecs.LZMA(),
]


def values(dtype: str, shape: tuple[int, ...] = (7, 5)) -> np.ndarray[Any, Any]:
    numbers = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    return numbers.astype("S3" if dtype[1] in "SU" else "u1").astype(dtype.replace("V", "u"))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_v2_both_ways_with_zarr_python(dtype: str, order: str, tmp_path: Path) -> None:
    data = values(dtype)
    for number, compressor in enumerate(COMPRESSORS):
        if not SOAK and (number + list(DTYPES).index(dtype) + (order == "F")) % 3:
            continue
        ours, theirs = tmp_path / f"ours{number}", tmp_path / f"theirs{number}"
        array = zardine.create_array(
            ours,
            shape=data.shape,
            dtype=dtype,
            chunks=(3, 2),
            order=order,
            zarr_format=2,
            compressors=compressor,
            chunk_key_encoding=("v2", "/" if number % 2 else "."),
        )
        array[1:] = data[1:]
        array[:2] = data[:2]
        assert (array.order, array.metadata.zarr_format, array.read_only) == (order, 2, False)
        assert array.compressor == compressor
        read = zarr.open_array(ours, mode="r")
        assert read.metadata.zarr_format == 2
        np.testing.assert_array_equal(read[...], data)
        written = zarr.create_array(
            theirs, shape=data.shape, dtype=dtype, chunks=(3, 2), order=order, zarr_format=2, compressors=compressor
        )
        written[...] = data
        opened = zardine.open_array(theirs)
        assert opened.dtype == np.dtype(dtype).newbyteorder("=")
        np.testing.assert_array_equal(opened[...], data)
        np.testing.assert_array_equal(opened[5:1:-2, 1:4], data[5:1:-2, 1:4])


FILTERS = [
    [numcodecs.Delta("<i4")],
    [numcodecs.Delta("<i4", astype="<i8"), numcodecs.Shuffle(8)],
    [numcodecs.FixedScaleOffset(0, 1, "<i4", "u1")],
    [numcodecs.CRC32()],
    [numcodecs.Shuffle(4), numcodecs.Zlib()],
    [numcodecs.AsType("<i8", "<i4")],
    [numcodecs.Fletcher32(), numcodecs.Delta("<u1")],
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("filters", FILTERS, ids=lambda filters: "-".join(each.codec_id for each in filters))
def test_filters_of_v2(filters: list[Any], order: str, tmp_path: Path) -> None:
    data = values("<i4")
    array = zardine.create(
        data.shape, chunks=(3, 2), dtype="<i4", zarr_format=2, filters=filters, order=order, store=tmp_path / "ours"
    )
    array[...] = data
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "ours")[...], data)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "ours", mode="r")[...], data)
    theirs = zarr.create(
        shape=data.shape, chunks=(3, 2), dtype="<i4", zarr_format=2, filters=filters, order=order, store=tmp_path / "b"
    )
    theirs[...] = data
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "b")[...], data)


def test_text_and_bytes_of_any_length(tmp_path: Path) -> None:
    text = np.array([["a", "ü" * 9, ""], ["x", "yz", "€"]], dtype=object)
    for order in "CF":
        array = zardine.create(text.shape, chunks=(1, 2), dtype=str, zarr_format=2, store=tmp_path / order, order=order)
        array[...] = text
        assert json.loads((tmp_path / order / ".zarray").read_text())["filters"] == [{"id": "vlen-utf8"}]
        assert zarr.open_array(tmp_path / order, mode="r")[...].tolist() == text.tolist()
        assert zardine.open_array(tmp_path / order)[...].tolist() == text.tolist()
    data = np.array([b"\0", b"", b"abc"], dtype=object)
    array = zardine.create(3, chunks=2, dtype=bytes, zarr_format=2, store=MemoryStore())
    array[...] = data
    assert array[...].tolist() == data.tolist()


def test_objects_of_any_kind() -> None:
    objects = np.empty(3, object)
    objects[:] = [{"a": [1, 2]}, None, "text"]
    for codec in (numcodecs.JSON(), MsgPack()):
        store = MemoryStore()
        array = zardine.create(
            3, chunks=2, dtype=object, object_codec=codec, zarr_format=2, store=store, fill_value=None
        )
        array[...] = objects
        assert zardine.open_array(store)[...].tolist() == objects.tolist()
        array[1] = {"b": 1}
        assert zardine.open_array(store)[1] == {"b": 1}
    ragged = np.empty(3, object)
    ragged[:] = [np.arange(n, dtype="i4") for n in (3, 0, 2)]
    array = zardine.create(3, chunks=2, dtype=object, filters=[numcodecs.VLenArray("<i4")], zarr_format=2)
    array[...] = ragged
    assert [each.tolist() for each in array[...]] == [[0, 1, 2], [], [0, 1]]


def test_pickles_are_read_only_when_that_is_allowed() -> None:
    objects = np.empty(2, object)
    objects[:] = [{1, 2}, 3j]
    array = zardine.create(2, dtype=object, object_codec=numcodecs.Pickle(), zarr_format=2, fill_value=None)
    array[...] = objects
    with pytest.raises(ChunkDecodeError, match="can run any program"):
        array[...]
    with zardine.config.set({"array.allow_unsafe_pickle_decode": True}):
        assert array[...].tolist() == objects.tolist()


def test_filters_that_numcodecs_cannot_make_are_shown(tmp_path: Path) -> None:
    filters: Any = [{"id": "fixedscaleoffset", "offset": 0, "scale": 10, "dtype": "<f8", "astype": "<i4"}]
    zardine.create_array(tmp_path, data=np.arange(6) / 10, chunks=2, filters=filters, zarr_format=2)
    document = json.loads((tmp_path / ".zarray").read_text())
    del document["filters"][0]["dtype"]
    (tmp_path / ".zarray").write_text(json.dumps(document))
    array = zardine.open_array(tmp_path, mode="r")
    assert array[...].tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert "fixedscaleoffset" in str(array.info)
    [shown] = array.filters
    assert shown.get_config() == document["filters"][0]
    for _ in range(3):
        with pytest.raises(UnsupportedError, match=r"fixedscaleoffset.*dtype") as refused:
            shown.decode(b"")
    assert [each.name for each in refused.traceback].count("decode") == 1  # nothing of earlier calls is held
    with pytest.raises(ValueError, match="dtype"):
        zardine.zeros_like(array)


def test_fill_values_of_v2(tmp_path: Path) -> None:
    cases: list[tuple[Any, Any, Any]] = [
        ("<f8", np.nan, "NaN"),
        ("<f4", -np.inf, "-Infinity"),
        ("<i4", 7, 7),
        ("|b1", True, True),
        ("|S3", b"ab", "YWI="),
        ("<U3", "ab", "ab"),
        ("<c8", 1 + 2j, [1.0, 2.0]),
        ("<M8[s]", np.datetime64("NaT"), -(2**63)),
        ([("a", "<i2"), ("b", "|u1")], (258, 3), "AgED"),
        ("<i4", None, None),
    ]
    for number, (dtype, fill, stored) in enumerate(cases):
        place = tmp_path / str(number)
        array = zardine.create_array(place, shape=3, dtype=dtype, zarr_format=2, fill_value=fill)
        assert json.loads((place / ".zarray").read_text())["fill_value"] == stored
        again = zardine.open_array(place)
        expected = np.zeros((), again.dtype) if fill is None else np.array(fill, again.dtype)
        assert again.metadata.fill.tobytes() == expected.tobytes()
        assert array.metadata == again.metadata


def test_an_undefined_fill_value_stores_every_chunk() -> None:
    for fill, count in ((None, 2), (0, 0)):
        array = zardine.create_array(MemoryStore(), shape=4, chunks=2, dtype="i4", zarr_format=2, fill_value=fill)
        array[...] = 0
        assert array.nchunks_initialized == count


def test_groups_attributes_and_consolidated_metadata_of_v2(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path, zarr_format=2, attributes={"title": "root"})
    array = root.create_array("deep/er/a", shape=(4,), dtype="i4", attributes={"units": "m"})
    assert array.metadata.zarr_format == 2
    assert root.create_group("other").metadata.zarr_format == 2
    for path in ("", "deep", "deep/er"):
        assert json.loads((tmp_path / path / ".zgroup").read_text()) == {"zarr_format": 2}
    array.attrs["more"] = [1]
    del array.attrs["units"]
    array.append(np.arange(3, dtype="i4"))
    array.resize(6)
    root.attrs["title"] = "changed"
    theirs = zarr.open_group(tmp_path, mode="r", use_consolidated=False)
    assert dict(theirs.attrs) == {"title": "changed"}
    assert dict(theirs["deep/er/a"].attrs) == {"more": [1]}
    assert theirs["deep/er/a"][...].tolist() == [0, 0, 0, 0, 0, 1]
    del array.attrs["more"]
    assert json.loads((tmp_path / "deep/er/a/.zattrs").read_text()) == {}
    zardine.consolidate_metadata(tmp_path)
    assert (tmp_path / ".zmetadata").exists()
    theirs = zarr.open_consolidated(tmp_path)
    assert sorted(path for path, _ in theirs.members(max_depth=None)) == ["deep", "deep/er", "deep/er/a", "other"]
    ours = zardine.open_consolidated(tmp_path)
    assert sorted(path for path, _ in ours.members(max_depth=None)) == ["deep", "deep/er", "deep/er/a", "other"]
    assert ours["deep/er/a"][5] == 1
    zarr.consolidate_metadata(tmp_path, zarr_format=2)
    assert zardine.open_consolidated(tmp_path)["deep/er"].metadata.zarr_format == 2


def test_v1_is_written_and_read() -> None:
    for number, compressor in enumerate((None, "auto", numcodecs.Zlib(3), numcodecs.BZ2(2), numcodecs.LZMA())):
        store = MemoryStore()
        data = values(">f4" if number % 2 else "<i2")
        array = zardine.create_array(
            store, data=data, chunks=(4, 2), zarr_format=1, compressors=compressor, order="F" if number % 3 else "C"
        )
        assert sorted(store.list_dir("")[0])[-2:] == ["attrs", "meta"]
        assert json.loads(bytes(store.get("attrs") or b"")) == {}
        array.attrs["a"] = 1
        again = zardine.open(store)
        assert (again.metadata.zarr_format, dict(again.attrs)) == (1, {"a": 1})
        np.testing.assert_array_equal(again[...], data)
        again.resize((9, 5))
        assert zardine.open_array(store, zarr_format=1).shape == (9, 5)
    meta = json.loads(bytes(store.get("meta") or b""))
    assert meta["compression"] == "lzma"


_SHAPED = [
    [("a", "<f4", (2,)), ("b", "<i4")],
    [("a", "<i2"), ("b", ">f8", (2, 3))],
    [("a", [("x", "<f4", (2,))]), ("b", "<i4")],
    [("a", [("x", [("y", "|u1", (1,))])])],
]


@pytest.mark.parametrize("dtype", _SHAPED, ids=str)
def test_structs_with_shaped_fields_are_refused_in_v1(dtype: Any, tmp_path: Path) -> None:
    """v1 has fields of two parts; nothing is stored that no reader of v1 opens."""
    data = np.zeros(4, np.dtype(dtype))
    older = zardine.from_array(MemoryStore(), data=data, zarr_format=2, compressors=None)
    group = zardine.create_group(MemoryStore(), zarr_format=2)
    store = MemoryStore()
    for make in (
        lambda: zardine.create_array(store, shape=4, dtype=data.dtype, zarr_format=1),
        lambda: zardine.create_array(store, shape=4, dtype=dtype, zarr_format=1),
        lambda: zardine.create_array(store, data=data, zarr_format=1),
        lambda: zardine.from_array(store, data=data, zarr_format=1),
        lambda: zardine.from_array(store, data=older, zarr_format=1),
        lambda: zardine.zeros_like(older, store=store, zarr_format=1),
        lambda: zardine.zeros(4, dtype=data.dtype, store=store, zarr_format=1),
        lambda: zardine.save_array(store, data, zarr_format=1),
        lambda: zardine.save(store, data, zarr_format=1),
        lambda: zardine.open_array(store, mode="w", shape=4, dtype=data.dtype, zarr_format=1),
        lambda: zardine.convert(older.store, store, zarr_format=1),
    ):
        with pytest.raises(ValueError, match=r"dtype: the field '[axyb]' has a shape"):
            make()
        assert list(store.list()) == []
    del group


_FIELDS: list[tuple[Any, Any]] = [
    ([["x", "<f4"]], [("x", "<f4")]),
    ([["x", "<f4"], ["y", ">i2"]], [("x", "<f4"), ("y", ">i2")]),
    ([["t", "<M8[ns]"], ["s", "<U3"]], [("t", "<M8[ns]"), ("s", "<U3")]),
    ([["a", [["x", "<f4"], ["y", "|u1"]]], ["b", "<f8"]], [("a", [("x", "<f4"), ("y", "|u1")]), ("b", "<f8")]),
    ([("a", [["x", "<f4"]])], [("a", [("x", "<f4")])]),
    ([["z", "<f4", [2, 2]]], [("z", "<f4", (2, 2))]),
    ([["a", [["z", "<f4", [2]]]]], [("a", [("z", "<f4", (2,))])]),
]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("fields", "meant"), _FIELDS, ids=str)
def test_fields_as_documents_of_v2_have_them(fields: Any, meant: Any, version: int) -> None:
    """``dtype=`` takes lists in lists as NumPy's list of tuples, for every function that makes an array."""
    dtype = np.dtype(meant)
    makers: list[Callable[[Any], zardine.Array]] = [
        lambda dtype: zardine.create_array(MemoryStore(), shape=4, dtype=dtype, zarr_format=version),
        lambda dtype: zardine.create(4, dtype=dtype, zarr_format=version),
        lambda dtype: zardine.zeros(4, dtype=dtype, zarr_format=version),
        lambda dtype: zardine.ones(4, dtype=dtype, zarr_format=version),
        lambda dtype: zardine.empty(4, dtype=dtype, zarr_format=version),
        lambda dtype: zardine.zeros_like(np.zeros(4), dtype=dtype, zarr_format=version),
        lambda dtype: zardine.open_array(MemoryStore(), mode="w", shape=4, dtype=dtype, zarr_format=version),
    ]
    if version > 1:
        group = zardine.create_group(MemoryStore(), zarr_format=version)
        makers.append(lambda dtype: group.create_array("x", shape=4, dtype=dtype, overwrite=True))
        makers.append(lambda dtype: group.require_array("y", shape=4, dtype=dtype))
        makers.append(lambda dtype: group.require_array("y", shape=4, dtype=dtype, exact=True))
    refused = version != 2 and "(2" in str(dtype)
    for make in makers:
        if refused:
            with pytest.raises((TypeError, ValueError), match=r"'z'.*shape"):
                make(fields)
            continue
        expected, made = make(dtype), make(fields)
        assert made.metadata.data_type == expected.metadata.data_type
        assert made.metadata.older == expected.metadata.older  # the stored dtype, with its byte order
        assert made.dtype == dtype.newbyteorder("=")
        made[1:] = np.ones(3, dtype)
        np.testing.assert_array_equal(made[1:], np.ones(3, dtype).astype(made.dtype))


@pytest.mark.parametrize(
    "fields", [[["x"]], [["x", "<f4", "a", 1]], [[]], [["x", "<q9"]], [[1, "<f4"]], [["x", [["y"]]]]], ids=str
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_wrong_fields_are_named(fields: Any, version: int) -> None:
    with pytest.raises(TypeError, match=r"is not a data type: "):
        zardine.create_array(MemoryStore(), shape=4, dtype=fields, zarr_format=version)


@pytest.mark.parametrize("dtype", [*DTYPES, [("a", "<i2"), ("b", [("c", ">f8"), ("d", "|S3")])]], ids=str)
def test_every_array_of_v1_that_is_made_opens(dtype: Any) -> None:
    store = MemoryStore()
    made = zardine.create_array(store, shape=4, chunks=2, dtype=dtype, zarr_format=1)
    opened = zardine.open_array(store)
    assert opened.dtype == made.dtype
    np.testing.assert_array_equal(opened[...], made[...])


def test_what_is_there_is_found_without_being_told(tmp_path: Path) -> None:
    for version in (1, 2, 3):
        zardine.create_array(tmp_path / str(version), data=np.arange(3) + version, zarr_format=version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for version in (1, 2, 3):
            array = zardine.open(tmp_path / str(version), mode="r")
            assert (array.metadata.zarr_format, array[0]) == (version, version)
            assert zardine.open_array(tmp_path / str(version), zarr_format=version)[0] == version
    for version, other in ((1, 2), (2, 3), (3, 2)):
        with pytest.raises(ArrayNotFoundError, match="looked for"):
            zardine.open_array(tmp_path / str(version), zarr_format=other, mode="r")
    with pytest.raises(NodeNotFoundError, match=r"looked for zarr\.json, \.zarray, \.zgroup, meta"):
        zardine.open(tmp_path / "nothing", mode="r")


def test_two_versions_in_one_place(tmp_path: Path) -> None:
    zardine.create_array(tmp_path, data=np.arange(3), zarr_format=3)
    (tmp_path / ".zarray").write_text(
        json.dumps(zardine.create_array(MemoryStore(), shape=3, dtype="i8", zarr_format=2).metadata.to_dict())
    )
    with pytest.warns(ZarrUserWarning, match="stored in Zarr v3 and in Zarr v2: v3 is opened"):
        assert zardine.open(tmp_path, mode="r").metadata.zarr_format == 3
    assert zardine.open(tmp_path, mode="r", zarr_format=2).metadata.zarr_format == 2


@pytest.mark.parametrize("inner", ["", "a/b"])
@pytest.mark.parametrize("older", [".zarray", ".zgroup"])
def test_either_document_of_the_older_version_is_noticed_beside_a_newer_one(
    tmp_path: Path, inner: str, older: str
) -> None:
    zardine.create_array(tmp_path / "array" / inner, shape=3, dtype="i4")
    zardine.create_group(tmp_path / "group" / inner)
    openers: dict[str, tuple[Any, ...]] = {
        "array": (zardine.open, zardine.open_array),
        "group": (zardine.open, zardine.open_group),
    }
    for kind, ways in openers.items():
        place = tmp_path / kind / inner
        for open_it in ways:
            for beside in (False, True):
                if beside:
                    (place / older).write_text("{}")
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    node = open_it(tmp_path / kind, path=inner, mode="r")
                assert node.metadata.zarr_format == 3
                assert [str(each.message).partition(": ")[2] for each in caught] == beside * [
                    "v3 is opened; zarr_format=2 opens the other"
                ]
                (place / older).unlink(missing_ok=True)


def test_a_place_that_is_taken_by_another_version(tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "a", shape=3, dtype="i4", zarr_format=2)
    zardine.create_group(tmp_path / "g", zarr_format=2)
    for version in (2, 3):
        with pytest.raises(ContainsArrayError):
            zardine.create_array(tmp_path / "a", shape=3, dtype="i4", zarr_format=version)
        with pytest.raises(ContainsGroupError):
            zardine.create_array(tmp_path / "g", shape=3, dtype="i4", zarr_format=version)
        with pytest.raises(ContainsArrayError):
            zardine.create_group(tmp_path / "a", zarr_format=version)
    zardine.create_array(tmp_path / "a", shape=3, dtype="i4", zarr_format=3, overwrite=True)
    assert not (tmp_path / "a/.zarray").exists()


DRAFT: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 9,
    "attributes": {},
}


LITTLE = {"name": "endian", "configuration": {"endian": "little"}}


def draft_store(configuration: dict[str, Any], chunks: list[bytes | None]) -> MemoryStore:
    document = {**DRAFT, "codecs": [{"name": "sharding_indexed", "configuration": configuration}]}
    shard, index = b"", b""
    for chunk in chunks:
        entry = (2**64 - 1, 2**64 - 1) if chunk is None else (len(shard), len(chunk))
        index += np.array(entry, "<u8").tobytes()
        shard += chunk or b""
    return MemoryStore({"zarr.json": json.dumps(document).encode(), "c/0/0": shard + index})


@pytest.mark.parametrize(
    "codecs",
    [
        ...,
        [],
        [{"name": "endian", "configuration": {"endian": "big"}}],
        [
            {"name": "transpose", "configuration": {"order": "F"}},
            {"name": "endian", "configuration": {"endian": "little"}},
        ],
        [{"name": "transpose", "configuration": {"order": "C"}}, {"name": "gzip", "configuration": {"level": 1}}],
        [{"name": "gzip", "configuration": {"level": 1}}],
    ],
)
def test_the_draft_of_2023_is_read_and_never_written(codecs: Any) -> None:
    import gzip

    configuration = {"chunk_shape": [2, 3]} if codecs is ... else {"chunk_shape": [2, 3], "codecs": codecs}
    data = np.arange(24, dtype="<u2").reshape(4, 6)
    names = [] if codecs is ... else [codec["name"] for codec in codecs]
    parts: list[bytes | None] = []
    for row in (0, 2):
        for column in (0, 3):
            part = data[row : row + 2, column : column + 3]
            if codecs is not ... and codecs and codecs[0].get("configuration") == {"order": "F"}:
                part = part.T
            if names == ["endian"]:
                part = part.astype(">u2")
            raw = np.ascontiguousarray(part).tobytes()
            parts.append(gzip.compress(raw) if "gzip" in names else raw)
    parts[3] = None
    expected = data.copy()
    expected[2:, 3:] = 9
    store = draft_store(configuration, parts)
    array = zardine.open_array(store)
    np.testing.assert_array_equal(array[...], expected)
    assert array[3, 2] == expected[3, 2]
    assert array.is_draft
    assert array.read_only
    assert "draft" in str(array.info)
    before = dict(store._values) if hasattr(store, "_values") else None
    for attempt in (
        lambda: array.__setitem__(0, 1),
        lambda: array.resize((8, 6)),
        lambda: array.append(data),
        lambda: array.attrs.update(a=1),
    ):
        with pytest.raises(ReadOnlyError, match="draft"):
            attempt()
    assert before is None or dict(store._values) == before


def test_internal_codecs_are_not_for_v3_documents() -> None:
    document = {**DRAFT, "codecs": [{"name": "zardine.v2_filters", "configuration": {"dtype": "<u2", "filters": []}}]}
    with pytest.raises(MetadataError, match="no v3 document may name it"):
        zardine.open_array(MemoryStore({"zarr.json": json.dumps(document).encode()}))


@pytest.mark.parametrize("zarr_format", [2, 1])
@pytest.mark.parametrize("dtype", ["i4", "f8", "bool", "S3", "M8[s]", "c8"])
def test_a_fill_value_of_null_is_none_and_reads_as_the_default(zarr_format: int, dtype: str) -> None:
    store = MemoryStore()
    made = zardine.create_array(
        store, shape=(4,), chunks=(2,), dtype=dtype, fill_value=None, zarr_format=zarr_format, compressors=None
    )
    array = zardine.open_array(store)
    for each in (made, array, zardine.open(store), array.with_config({}), array.async_array):
        assert each.fill_value is None
        assert each.metadata.fill_value is None
    default = np.zeros(4, dtype) if dtype != "M8[s]" else np.full(4, "NaT", dtype)
    np.testing.assert_array_equal(array[...], default)
    assert ("Fill value", "None") in array.info.items
    array[:2] = array[:2]
    assert array.nchunks_initialized == 1  # others may read anything in its place
    assert zardine.full_like(array, zarr_format=zarr_format).fill_value is None
    assert zardine.from_array(None, data=array).fill_value is None


def test_a_fill_value_of_null_through_a_group(tmp_path: Path) -> None:
    zardine.create_group(tmp_path, zarr_format=2).create_array("x", shape=2, dtype="f4", fill_value=None)
    assert zardine.open_group(tmp_path)["x"].fill_value is None
    zardine.consolidate_metadata(tmp_path)
    assert zardine.open_consolidated(tmp_path)["x"].fill_value is None
    with pytest.warns(zardine.errors.ZarrUserWarning, match="/x: fill value null"):
        new = zardine.convert(tmp_path, MemoryStore())
    assert new["x"].fill_value == 0


@pytest.mark.parametrize(("text", "value"), [("é", b"\xe9"), ("a", b"a"), ("é\x7f", b"\xe9\x7f"), ("", b"")])
def test_fill_values_of_v1_are_plain_text(text: str, value: bytes) -> None:
    """Every byte is one character of Latin-1, in both directions."""
    store = MemoryStore()
    made = zardine.create_array(store, shape=(4,), chunks=(2,), dtype="S2", fill_value=value, zarr_format=1)
    assert json.loads(bytes(store.get("meta") or b""))["fill_value"] == text
    made[:2] = b"xy"
    array = zardine.open_array(store)
    assert array[...].tolist() == [b"xy", b"xy", value, value]
    array.resize(6)
    assert json.loads(bytes(store.get("meta") or b""))["fill_value"] == text
    assert zardine.open_array(store)[4:].tolist() == [value, value]
    assert zardine.from_array(None, data=array, zarr_format=2).fill_value == value


@pytest.mark.parametrize(("stored", "value"), [("YQA=", b"a"), ("YQ==", b"a"), ("AAA=", b""), ("AGI=", b"\0b")])
def test_fill_values_of_v2_with_nuls(stored: str, value: bytes) -> None:
    """``S2`` fills with NULs at their ends are the same with and without these."""
    store = MemoryStore()
    zardine.create_array(store, shape=(4,), chunks=(2,), dtype="S2", zarr_format=2, fill_value=b"")
    document = json.loads(bytes(store.get(".zarray") or b""))
    store.set(".zarray", json.dumps({**document, "fill_value": stored}).encode())
    array = zardine.open_array(store)
    assert array[...].tolist() == [value] * 4
    assert array.fill_value == value
    array[:2] = value
    assert array.nchunks_initialized == 0
    array[:2] = b"zz"
    array[:2] = value
    assert array.nchunks_initialized == 0
    array.resize(5)
    assert json.loads(bytes(store.get(".zarray") or b""))["fill_value"] == stored
    again = zardine.create_array(None, shape=2, dtype="S2", zarr_format=2, fill_value=value)
    assert again[...].tolist() == [value] * 2


def test_an_empty_text_fills_bytes_without_meaning_with_zeros(tmp_path: Path) -> None:
    """So it is read by zarr-python; of fields, and of another length, it is an error."""
    zardine.create_array(tmp_path, shape=2, dtype="V3", zarr_format=2)
    path = tmp_path / ".zarray"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "fill_value": ""}))
    assert zardine.open_array(tmp_path)[...].tobytes() == zarr.open_array(tmp_path)[:].tobytes() == bytes(6)
    for wrong in ({"fill_value": "YQ=="}, {"fill_value": "", "dtype": [["a", "|u1"], ["b", "<u2"]]}):
        path.write_text(json.dumps({**document, **wrong}))
        with pytest.raises(MetadataError, match=r"fill_value: expected base64 text of 3 bytes"):
            zardine.open_array(tmp_path)


def test_a_handle_of_a_new_array_with_filters_stays_right_when_others_change_the_shape() -> None:
    """What it was made of and what is read of its document say the same in other types."""
    store = MemoryStore()
    made = zardine.create(2, dtype=object, object_codec=numcodecs.JSON(), zarr_format=2, store=store)
    made[...] = np.array(["a", "b"], object)
    zardine.open_array(store).resize(3)
    assert made[...].tolist() == ["a", "b"]
    made[0] = "c"
    assert zardine.open_array(store)[:2].tolist() == ["c", "b"]
