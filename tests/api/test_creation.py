"""Creating arrays: every form of each argument, and what becomes of it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zardine.storage import MemoryStore, StorePath


def new(**arguments: Any) -> zardine.Array:
    return zardine.create_array(MemoryStore(), **{"shape": (4, 6), "dtype": "i4", **arguments})


def names(codecs: Any) -> list[str]:
    return [codec.name for codec in codecs]


DTYPES: list[tuple[Any, str, Any, Any]] = [
    # what a user says, the Zarr data type, the dtype in memory, what is read before anything is written
    ("i4", "int32", "i4", 0),
    (">i4", "int32", "i4", 0),
    ("float64", "float64", "f8", 0.0),
    (np.float32, "float32", "f4", 0.0),
    (np.dtype("u2"), "uint16", "u2", 0),
    (int, "int64", "i8", 0),
    (float, "float64", "f8", 0.0),
    (bool, "bool", "?", False),
    (complex, "complex128", "c16", 0j),
    ("f2", "float16", "f2", 0.0),
    ("<U5", "fixed_length_utf32", "U5", ""),
    ("S5", "null_terminated_bytes", "S5", b""),
    ("V3", "raw_bytes", "V3", np.void(b"\0\0\0")),
    ("r24", "r24", "V3", np.void(b"\0\0\0")),
    ("M8[ns]", "numpy.datetime64", "M8[ns]", np.datetime64("NaT")),
    ("m8[10s]", "numpy.timedelta64", "m8[10s]", np.timedelta64("NaT")),
    (str, "string", np.dtypes.StringDType(), ""),
    ("str", "string", np.dtypes.StringDType(), ""),
    ("string", "string", np.dtypes.StringDType(), ""),
    (np.dtypes.StringDType(), "string", np.dtypes.StringDType(), ""),
    (bytes, "bytes", object, b""),
    ("bytes", "bytes", object, b""),
    (
        {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}},
        "numpy.datetime64",
        "M8[s]",
        None,
    ),
    ([("x", "i4"), ("y", ">f8")], "struct", [("x", "i4"), ("y", "f8")], np.void((0, 0.0), [("x", "i4"), ("y", "f8")])),
    (np.dtype([("x", "i4"), ("y", "U2")]), "struct", [("x", "i4"), ("y", "U2")], None),
]


@pytest.mark.parametrize(("asked", "name", "dtype", "empty"), DTYPES, ids=lambda value: str(value)[:30])
def test_dtype(asked: Any, name: str, dtype: Any, empty: Any) -> None:
    array = new(dtype=asked)
    assert array.metadata.data_type.name == name
    assert array.dtype == np.dtype(dtype)
    if empty is not None:
        np.testing.assert_array_equal(np.asarray(array[0, 0]), np.asarray(empty, array.dtype))


SAMPLES: list[Any] = [
    np.arange(-3, 3).reshape(2, 3),
    np.array([1.5, np.nan, -0.0, np.inf]),
    np.array([True, False]),
    np.array([1 + 2j], "c8"),
    np.array(["a", "", "ŵx\0y", "bb"]),
    np.array([b"a", b"", b"bb"]),
    np.array([b"\0ab", b"xyz"], "V3"),
    np.array(["2020-01-01", "NaT"], "M8[D]"),
    np.array([5, "NaT"], "m8[s]"),
    np.array(["a", "", "x\0", "long" * 50], np.dtypes.StringDType()),
    np.array([(1, 2.5, "a"), (3, -0.0, "")], [("x", "i2"), ("y", "f8"), ("z", "U3")]),
    np.array(7),
    np.zeros((0, 3)),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(5, dtype=">u4"),
]


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda value: f"{value.dtype}-{value.shape}"[:30])
def test_data_comes_back(sample: Any, sharded: bool) -> None:
    array = zardine.create_array({}, data=sample, chunks=1, shards=4 if sharded else None)
    np.testing.assert_array_equal(array[...], sample)
    np.testing.assert_array_equal(np.asarray(zardine.array(sample)), sample)
    kept = zardine.from_array({}, data=array)
    assert (kept.chunks, kept.shards, kept.dtype) == (array.chunks, array.shards, array.dtype)
    np.testing.assert_array_equal(kept[...], sample)


def test_data_forms() -> None:
    np.testing.assert_array_equal(zardine.create_array({}, data=[[1, 2], [3, 4]])[:], [[1, 2], [3, 4]])
    assert zardine.create_array({}, data=5.5)[()] == 5.5
    assert zardine.create_array({}, data=["a", "bb"])[1] == "bb"
    assert zardine.create_array({}, data=np.arange(3), write_data=False)[:].tolist() == [0, 0, 0]
    assert zardine.create(data=[1, 2, 3]).shape == (3,)
    assert zardine.array(zardine.ones((4, 4), chunks=2)).chunks == (2, 2)


CHUNKS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"chunks": 3}, (3, 3), None),
    ({"chunks": (2, 3)}, (2, 3), None),
    ({"chunks": [2, 3]}, (2, 3), None),
    ({"chunks": np.array([2, 3])}, (2, 3), None),
    ({"chunks": -1}, (4, 6), None),
    ({"chunks": (2, -1)}, (2, 6), None),
    ({"chunks": (2, None)}, (2, 6), None),
    ({"chunks": False}, (4, 6), None),
    ({"chunks": (10, 10)}, (10, 10), None),
    ({"chunks": "auto"}, (4, 6), None),
    ({"chunks": None}, (4, 6), None),
    ({}, (4, 6), None),
    ({"chunks": 2, "shards": 4}, (2, 2), (4, 4)),
    ({"chunks": (2, 3), "shards": (4, 6)}, (2, 3), (4, 6)),
    ({"chunks": (2, 3), "shards": (8, 9)}, (2, 3), (8, 9)),
    ({"chunks": (2, 3), "shards": "auto"}, (2, 3), (4, 6)),
    ({"chunks": (2, 3), "shards": -1}, (2, 3), (4, 6)),
    ({"shards": (4, 6)}, (4, 6), (4, 6)),
    ({"chunks": (2, 3), "shards": {"shape": (4, 6), "index_location": "start"}}, (2, 3), (4, 6)),
]


@pytest.mark.parametrize(("arguments", "chunks", "shards"), CHUNKS, ids=str)
def test_chunks_and_shards(arguments: dict[str, Any], chunks: Any, shards: Any) -> None:
    array = new(**arguments)
    assert (array.chunks, array.shards) == (chunks, shards)
    array[...] = np.arange(24).reshape(4, 6)
    assert array[...].sum() == 276


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (10**6, 10**6), (3, 10**9)])
def test_automatic_sizes(shape: tuple[int, ...]) -> None:
    plain, sharded = new(shape=shape), new(shape=shape, shards="auto")
    assert np.prod(plain.chunks, dtype=object) * 4 <= 2**20
    assert np.prod(sharded.chunks, dtype=object) * 4 <= 2**17
    assert np.prod(sharded.shards, dtype=object) * 4 <= 2**26
    assert all(outer % inner == 0 for outer, inner in zip(sharded.shards or (), sharded.chunks, strict=True))


def test_chunks_of_differing_lengths() -> None:
    array = new(chunks=((1, 3), (2, 4)))
    assert array.read_chunk_sizes == ((1, 3), (2, 4))
    shards = new(chunks=(1, 2), shards=((1, 3), (2, 4)))
    assert (shards.chunks, shards.write_chunk_sizes) == ((1, 2), ((1, 3), (2, 4)))
    shards[...] = np.arange(24).reshape(4, 6)
    assert shards[...].sum() == 276


COMPRESSORS: list[tuple[Any, list[str]]] = [
    ("auto", ["zstd", "crc32c"]),
    (None, ["crc32c"]),
    ([], ["crc32c"]),
    ((), ["crc32c"]),
    (GzipCodec(level=1), ["gzip", "crc32c"]),
    ([GzipCodec(level=1), ZstdCodec()], ["gzip", "zstd", "crc32c"]),
    ("gzip", ["gzip", "crc32c"]),
    (["gzip", "crc32c"], ["gzip", "crc32c"]),
    ({"name": "zstd", "configuration": {"level": 3}}, ["zstd", "crc32c"]),
    (BloscCodec(cname="lz4", shuffle="bitshuffle"), ["blosc", "crc32c"]),
    (numcodecs.Blosc(cname="lz4"), ["blosc", "crc32c"]),
    (numcodecs.Zstd(3), ["zstd", "crc32c"]),
    ([numcodecs.LZ4()], ["numcodecs.lz4", "crc32c"]),
    ({"id": "zlib", "level": 1}, ["numcodecs.zlib", "crc32c"]),
]


@pytest.mark.parametrize(("asked", "found"), COMPRESSORS, ids=str)
def test_compressors(asked: Any, found: list[str]) -> None:
    for array in (
        new(compressors=asked),
        new(compressors=asked, chunks=2, shards=6),
        zardine.group().create_array("a", shape=(4, 6), dtype="i4", compressor=asked),
        zardine.create((4, 6), dtype="i4", compressor=asked),
    ):
        assert names(array.compressors) == found
        array[...] = np.arange(24).reshape(4, 6)
        assert array[...].sum() == 276


def test_checksum() -> None:
    assert names(new(checksum=False).compressors) == ["zstd"]
    assert names(new(checksum=True, compressors=None).compressors) == ["crc32c"]
    with zardine.config.set({"array.checksum": False}):
        assert names(new().compressors) == ["zstd"]
        assert names(new(checksum=True).compressors) == ["zstd", "crc32c"]


def test_filters_and_serializer() -> None:
    assert new().filters == ()
    assert new(filters=None).filters == new(filters=[]).filters == ()
    transpose = TransposeCodec(order=(1, 0))
    assert new(filters=transpose).filters == new(filters=[transpose]).filters == (transpose,)
    assert new(filters=[{"name": "transpose", "configuration": {"order": [1, 0]}}]).filters == (transpose,)
    assert new(serializer=BytesCodec(endian="big")).serializer == BytesCodec(endian="big")
    assert new(serializer={"name": "bytes", "configuration": {"endian": "big"}}).serializer == BytesCodec(endian="big")
    nested = new(serializer=ShardingCodec(chunk_shape=(2, 3), codecs=[BytesCodec(), ZstdCodec()]), compressors=None)
    assert (nested.chunks, nested.shards) == ((2, 3), (4, 6))
    whole = zardine.create((4, 6), codecs=[BytesCodec(endian="big"), GzipCodec(level=1), Crc32cCodec()])
    assert names(whole.codecs) == ["bytes", "gzip", "crc32c"]


FILLS: list[tuple[Any, Any, Any]] = [
    ("i4", 5, 5),
    ("i4", 5.0, 5),
    ("i4", np.int8(5), 5),
    ("i4", None, 0),
    ("f4", 1, 1.0),
    ("f4", np.nan, np.nan),
    ("f4", "NaN", np.nan),
    ("f8", "-Infinity", -np.inf),
    ("?", True, True),
    ("?", 1, True),
    ("c8", 1, 1),
    ("c8", 1 + 2j, 1 + 2j),
    ("M8[s]", "2020-01-01", np.datetime64("2020-01-01")),
    ("M8[s]", np.datetime64("2020-01-01"), np.datetime64("2020-01-01")),
    ("M8[s]", "NaT", np.datetime64("NaT")),
    ("U3", "ab", "ab"),
    ("S3", b"ab", b"ab"),
    ("string", "ab", "ab"),
    ("bytes", b"ab", b"ab"),
]


@pytest.mark.parametrize(("dtype", "asked", "found"), FILLS)
def test_fill_value(dtype: str, asked: Any, found: Any) -> None:
    array = new(dtype=dtype, fill_value=asked)
    reopened = zardine.open_array(array.store)
    for each in (array.fill_value, reopened.fill_value, reopened[0, 0]):
        np.testing.assert_array_equal(each, found)


def test_struct_fill_values() -> None:
    for asked in ((1, 2.5), {"x": 1, "y": 2.5}, np.array((1, 2.5), [("x", "i4"), ("y", "f8")])[()]):
        array = new(dtype=[("x", "i4"), ("y", "f8")], fill_value=asked)
        assert array[0, 0].tolist() == (1, 2.5)


@pytest.mark.parametrize("dtype", ["i4", "f8", "?", "c8", "U3", "S3", "M8[s]", "m8[s]", "string", "i4,U2"])
def test_zeros_and_ones_as_numpy(dtype: str) -> None:
    numpy_dtype = np.dtypes.StringDType() if dtype == "string" else np.dtype(dtype)
    group = zardine.group()
    for name in ("zeros", "ones"):
        expected = getattr(np, name)(3, numpy_dtype)
        like = zardine.empty(3, dtype=dtype)
        for found in (
            getattr(zardine, name)(3, dtype=dtype),
            getattr(zardine, f"{name}_like")(like),
            getattr(group, name)(name=name, shape=3, dtype=dtype),
            getattr(group, f"{name}_like")(name=f"{name}_like", data=expected),
        ):
            np.testing.assert_array_equal(found[:], expected)
            assert found.dtype == numpy_dtype


def test_numpy_manner() -> None:
    assert zardine.zeros(3).dtype == np.float64
    assert zardine.full(3, 7, dtype="i2")[:].tolist() == [7, 7, 7]
    assert zardine.full_like(zardine.full(3, 7))[:].tolist() == [7, 7, 7]
    assert zardine.full_like(np.arange(3), fill_value=7)[:].tolist() == [7, 7, 7]
    like = zardine.zeros_like(zardine.ones((4, 6), chunks=2, shards=4, attributes={"a": 1}), dtype="u1")
    assert (like.chunks, like.shards, like.dtype, dict(like.attrs)) == ((2, 2), (4, 4), np.uint8, {})
    assert zardine.zeros_like([[1, 2, 3]]).shape == (1, 3)


def test_open_like(tmp_path: Path) -> None:
    pattern = zardine.ones((4, 6), chunks=2)
    made = zardine.open_like(pattern, tmp_path / "a")
    made[:] = 3
    assert zardine.open_like(pattern, str(tmp_path / "a"))[0, 0] == 3
    assert zardine.open_like(pattern, "inner", store=tmp_path / "b").path == "inner"
    assert zardine.open_like(pattern, tmp_path / "a", mode="w")[0, 0] == 1
    with pytest.raises(zardine.errors.ArrayNotFoundError):
        zardine.open_like(pattern, tmp_path / "c", mode="r")


def test_other_arguments() -> None:
    assert new(config={"order": "F"}).order == "F"
    assert new(config={"order": "F"})[:].flags.f_contiguous
    assert new(config=zardine.ArrayConfig(write_empty_chunks=True)).config.write_empty_chunks
    with pytest.warns(zardine.errors.ZarrRuntimeWarning):
        assert zardine.create(3, write_empty_chunks=True).config.write_empty_chunks
    assert zardine.create(data=[1, 2], read_only=True).read_only
    assert new(dimension_names=("y", None)).dimension_names == ("y", None)
    assert new(attributes={"n": np.float32(1.5), "list": np.arange(2)}).attrs.asdict() == {"n": 1.5, "list": [0, 1]}
    for encoding in ("v2", ("v2", "."), {"name": "v2", "separator": "."}, {"name": "v2"}):
        array = new(chunk_key_encoding=encoding)
        array[...] = 1
        assert sorted(array.store.list()) == ["0.0", "zarr.json"]


STORES: dict[str, Any] = {
    "path": lambda path: str(path / "x"),
    "pathlib": lambda path: path / "x",
    "uri": lambda path: (path / "x").as_uri(),
    "mapping": lambda path: {},
    "memory": lambda path: MemoryStore(),
    "store path": lambda path: StorePath(MemoryStore(), "x/y"),
    "local store": lambda path: zardine.storage.LocalStore(path / "x"),
    "none": lambda path: None,
}


@pytest.mark.parametrize("kind", STORES)
def test_stores(kind: str, tmp_path: Path) -> None:
    place = STORES[kind](tmp_path)
    array = zardine.create_array(place, name="/a//b/", data=np.arange(3))
    assert array.path.endswith("a/b")
    assert array.name == f"/{array.path}"
    assert array.basename == "b"
    if place is not None:
        assert zardine.open(place, path="a/b")[2] == 2
        assert zardine.open_group(place)["a"]["b"] == array


def test_save_and_load(tmp_path: Path) -> None:
    values = np.arange(6).reshape(2, 3)
    zardine.save(tmp_path / "one", values)
    np.testing.assert_array_equal(zardine.load(tmp_path / "one"), values)
    zardine.save(tmp_path / "two", values, extra=values * 2)
    loaded = zardine.load(tmp_path / "two")
    assert sorted(loaded) == ["arr_0", "extra"]
    np.testing.assert_array_equal(loaded["extra"], values * 2)
    zardine.save(tmp_path / "three", values, path="deep/down")
    np.testing.assert_array_equal(zardine.load(tmp_path / "three")["deep"]["down"], values)
    zardine.save_array(tmp_path / "four", np.float64(4.5))
    assert zardine.load(tmp_path / "four") == 4.5
    with pytest.raises(zardine.errors.ContainsArrayError):
        zardine.save(tmp_path / "one", values)
    zardine.save_array(tmp_path / "one", values[0], mode="w", chunks=1)
    zardine.save_array(tmp_path / "one", values[1], overwrite=True)
    np.testing.assert_array_equal(zardine.load(tmp_path / "one"), values[1])
    zardine.save_group(tmp_path / "two", only=values)
    assert sorted(zardine.load(tmp_path / "two")) == ["only"]


def test_create_hierarchy() -> None:
    array, group = new().metadata, zardine.group(attributes={"a": 1}).metadata
    store = MemoryStore()
    made = dict(zardine.create_hierarchy(store=store, nodes={"x/y/z": array, "x/g": group, "/b": array}))
    assert sorted(made) == ["", "b", "x", "x/g", "x/y", "x/y/z"]
    assert made["x/g"].attrs["a"] == 1
    assert isinstance(zardine.open(store, path="x/y/z"), zardine.Array)
    inside = dict(zardine.open_group(store, path="x").create_hierarchy({"new/a": array}))
    assert sorted(inside) == ["new", "new/a"]
    with pytest.raises(zardine.errors.ContainsArrayError):
        list(zardine.create_hierarchy(store=store, nodes={"b": group}))
    list(zardine.create_hierarchy(store=store, nodes={"b": group}, overwrite=True))
    assert isinstance(zardine.open(store, path="b"), zardine.Group)


def test_require(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path)
    made = group.require_array("a", shape=(4,), dtype="i4", chunks=2)
    assert group.require_array("a", shape=4) == made
    assert group.require_array("a", shape=(4,), dtype="f8") == made  # every int32 is a float64
    assert group.require_dataset("a", shape=4, config={"order": "F"}).order == "F"
    for wrong in ({"shape": 5}, {"shape": 4, "dtype": "i2"}, {"shape": 4, "dtype": "f8", "exact": True}):
        with pytest.raises(TypeError, match="array 'a' is there with"):
            group.require_array("a", **wrong)
    assert group.require_group("g") == group.require_group("g")
    assert [each.path for each in group.require_groups("g", "h/i")] == ["g", "h/i"]


def test_equality_and_copies(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a", data=np.arange(5), chunks=2)
    again, locked = zardine.open_array(tmp_path / "a"), zardine.open_array(tmp_path / "a", mode="r")
    assert array == again == locked
    assert len({array, again, locked}) == 1
    assert array != zardine.create_array(tmp_path / "b", data=np.arange(5), chunks=2)
    assert array != 0
    array.attrs["changed"] = True
    assert array != again  # another document
    assert array == again.refresh()
    for twin in (copy.copy(array), copy.deepcopy(array), pickle.loads(pickle.dumps(array))):
        assert twin == array
        np.testing.assert_array_equal(twin[:], np.arange(5))
    group = zardine.create_group(tmp_path / "g")
    group["a"] = np.arange(3)
    assert pickle.loads(pickle.dumps(group))["a"][2] == 2
    assert group == zardine.open_group(tmp_path / "g", mode="r")
    assert hash(group) == hash(zardine.open_group(tmp_path / "g", mode="r"))


def test_pickled_memory_is_the_same_and_a_deep_copy_is_not() -> None:
    array = zardine.array([1, 2, 3])
    pickle.loads(pickle.dumps(array))[0] = 9
    deep = copy.deepcopy(array)
    deep[0] = 8
    assert (array[0], deep[0]) == (9, 8)
    shallow = copy.copy(array)
    shallow[0] = 7
    assert array[0] == 7


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_in_the_folder_of_its_source_is_replaced_unless_chunks_lie_there(tmp_path, zarr_format):
    values = np.arange(20).reshape(4, 5)
    separator = {"name": "v2", "separator": "/"} if zarr_format == 2 else "default"
    source = zardine.create_array(
        tmp_path, data=values, chunks=(2, 2), zarr_format=zarr_format, chunk_key_encoding=separator
    )
    for _ in range(2):
        made = zardine.from_array(tmp_path / "other", data=source, overwrite=True)
        np.testing.assert_array_equal(made[...], values)
    for name in (".", "0", "1") if zarr_format == 2 else (".", "c", "c/0"):
        with pytest.raises(ValueError, match="cannot be replaced by a copy"):
            zardine.from_array(tmp_path / name, data=source, overwrite=True)
    np.testing.assert_array_equal(source[...], values)
