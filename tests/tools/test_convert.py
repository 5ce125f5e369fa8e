"""``zardine.convert``: what becomes of chunks, codecs, fill values, attributes and names; what is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tensorstore
import xarray
import zarr
from numcodecs.msgpacks import MsgPack

import zardine
from zardine.codecs import BloscCodec, ShardingCodec, ZstdCodec
from zardine.errors import ConversionError, EncodeError, NodeNotFoundError, ZarrUserWarning
from zardine.storage import CountingStore, MemoryStore

VALUES = np.arange(60 * 50, dtype="i4").reshape(60, 50)


def older(store: Any = None, **more: Any) -> Any:
    """An array of Zarr v2."""
    store = MemoryStore() if store is None else store
    arguments = {"shape": VALUES.shape, "dtype": "i4", "chunks": (7, 6), "zarr_format": 2, "fill_value": 5} | more
    zardine.create_array(store, **arguments)[...] = VALUES[tuple(map(slice, arguments["shape"]))]
    return store


def document(store: Any, key: str = "zarr.json") -> dict[str, Any]:
    return json.loads(bytes(store.get(key)))


def converted(source: Any, **options: Any) -> Any:
    """The converted node, in memory."""
    return zardine.convert(source, MemoryStore(), **options)


def test_what_is_made_by_default(tmp_path: Path) -> None:
    older(tmp_path / "old", attributes={"units": "m"}, compressors=numcodecs.Zlib(3))
    array = zardine.convert(tmp_path / "old", tmp_path / "new")
    assert (array.metadata.zarr_format, array.chunks, array.shards) == (3, (7, 6), (63, 54))
    assert [codec.name for codec in array.compressors] == ["zstd", "crc32c"]
    assert array.attrs.asdict() == {"units": "m"}
    assert array.fill_value == 5
    np.testing.assert_array_equal(array[...], VALUES)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "new", mode="r")[...], VALUES)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/new/"}}
    np.testing.assert_array_equal(tensorstore.open(spec, open=True).result()[...].read().result(), VALUES)
    assert sorted(file.name for file in (tmp_path / "new").rglob("*") if file.is_file()) == ["0", "zarr.json"]


def test_what_was_never_written_stays_empty() -> None:
    store = MemoryStore()
    array = zardine.create_array(store, shape=(100, 100), chunks=(5, 5), dtype="f4", zarr_format=2, fill_value=-1)
    array[14:16, 7:9] = 3
    array[90, 90] = 4
    array[50:60, 50:60] = -1  # what is stored may be the fill value
    new = zardine.convert(store, MemoryStore(), shards=(20, 20), verify=True)
    assert sorted(new.store.list_prefix("c/")) == ["c/0/0", "c/4/4"]
    assert new.nchunks_initialized == 3
    np.testing.assert_array_equal(new[...], array[...])


@pytest.mark.parametrize(
    ("options", "chunks", "shards"),
    [
        ({"shards": None}, (7, 6), None),
        ({"chunks": (10, 5)}, (10, 5), (60, 50)),
        ({"chunks": "auto"}, (60, 50), (60, 50)),
        ({"chunks": 10, "shards": 20}, (10, 10), (20, 20)),
        ({"shards": (14, 12)}, (7, 6), (14, 12)),
        ({"chunks": (10, 10), "shards": {"shape": (20, 20), "index_location": "start"}}, (10, 10), (20, 20)),
        ({"chunks": (4, 4), "shards": None}, (4, 4), None),
        ({"chunks": -1, "shards": None}, (60, 50), None),
        ({"codecs": ["bytes", "gzip"]}, (7, 6), None),
    ],
)
def test_chunks_and_shards(options: dict[str, Any], chunks: Any, shards: Any) -> None:
    for source in (older(), zardine.convert(older(), MemoryStore()).store):
        array = converted(source, verify=True, **options)
        assert (array.chunks, array.shards) == (chunks, shards)
        np.testing.assert_array_equal(array[...], VALUES)
        if isinstance(options.get("shards"), dict):
            assert array.codecs[0].index_location == "start"


def test_shards_of_the_source_are_kept() -> None:
    store = MemoryStore()
    how: dict[str, Any] = {"shards": {"shape": (14, 12), "index_location": "start"}, "compressors": BloscCodec()}
    source = zardine.create_array(store, data=VALUES, chunks=(7, 6), checksum=False, **how)
    array = converted(store)
    assert (array.chunks, array.shards) == ((7, 6), (14, 12))
    assert [codec.name for codec in array.compressors] == ["blosc", "crc32c"]
    assert array.compressors[0] == source.compressors[0]
    assert array.codecs[0].index_location == "start"


def test_large_chunks_are_cut_and_shards_hold_few_enough() -> None:
    from zardine.tools.converting.chunks import inner_chunks, shard_shape

    assert inner_chunks((1000, 1000), 4) == (1000, 1000)  # 4 MB
    assert inner_chunks((2048, 2048), 4) == (512, 512)
    assert inner_chunks((4001, 4001), 8) == (4001, 4001)  # primes
    assert inner_chunks((1, 9973, 4096), 4) == (1, 9973, 16)
    assert shard_shape((10**6,), (1,), (1,), 8) == (2**15,)
    assert shard_shape((8192, 8192), (2048, 2048), (512, 512), 4) == (4096, 4096)
    assert shard_shape((10, 10), (4, 4), (4, 4), 4) == (12, 12)
    assert shard_shape((0, 5), (1, 5), (1, 5), 4) == (1, 5)
    large = older(shape=(60, 50), chunks=(60, 50), dtype="i4")
    assert converted(large).chunks == (60, 50)


def test_lengths_are_for_arrays_of_as_many_dimensions(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "old", zarr_format=2)
    for name, shape in {"a": (20, 20), "b": (20,), "c": ()}.items():
        root.create_array(name, data=np.ones(shape), chunks=(5,) * len(shape))
    group = zardine.convert(tmp_path / "old", tmp_path / "new", chunks=(2, 2), shards=(10, 10))
    assert {name: (array.chunks, array.shards) for name, array in group.arrays()} == {
        "a": ((2, 2), (10, 10)),
        "b": ((5,), (20,)),
        "c": ((), None),
    }
    with pytest.raises(ValueError, match=r"chunks .* fit no array of the source"):
        converted(tmp_path / "old", chunks=(1, 1, 1))


@pytest.mark.parametrize(
    ("compressor", "filters", "auto", "keep"),
    [
        (numcodecs.Blosc("lz4", 3, -1), None, ["blosc"], ["blosc"]),
        (numcodecs.Blosc("snappy"), None, ["zstd"], ["blosc"]),
        (numcodecs.GZip(2), [numcodecs.Delta("<i4")], ["gzip"], ["numcodecs.delta", "gzip"]),
        (numcodecs.LZMA(), [numcodecs.CRC32()], ["zstd"], ["numcodecs.crc32", "numcodecs.lzma"]),
        (None, None, [], []),
        (numcodecs.Zstd(3), [numcodecs.Shuffle(4)], ["zstd"], ["numcodecs.shuffle", "zstd"]),
    ],
    ids=str,
)
def test_codecs(compressor: Any, filters: Any, auto: list[str], keep: list[str]) -> None:
    if zardine.__kernel__ is None and getattr(compressor, "cname", "") == "snappy":
        pytest.skip("needs the native kernel")
    for order in "CF":
        source = older(compressors=compressor, filters=filters, order=order)
        for options, names in (({}, auto), ({"filters": "keep", "compressors": "keep"}, keep)):
            array = converted(source, verify=True, **options)
            found = [codec.name for codec in (*array.filters, *array.compressors)]
            assert found == ["transpose"] * (order == "F") + [*names, "crc32c"]
            np.testing.assert_array_equal(array[...], VALUES)
    assert getattr(array.compressors[0], "typesize", 4) == 4
    array = converted(source, compressors=["gzip"], filters=None, checksum=False)
    assert [codec.name for codec in array.compressors] == ["gzip"]


def test_codecs_that_lose_something_are_always_compared() -> None:
    store = MemoryStore()
    filters = [numcodecs.FixedScaleOffset(0, 10, "<f8", "u1")]
    array = zardine.create_array(
        store, shape=8, chunks=4, dtype="f8", zarr_format=2, filters=filters, fill_value=-999.0
    )
    array[:4] = [0.1, 0.2, 0.3, 0.4]
    assert converted(store, filters="keep")[...].tolist() == array[...].tolist()
    assert converted(store, chunks=8)[...].tolist() == array[...].tolist()
    target = MemoryStore()
    with pytest.raises(ConversionError, match=r"region \[0:8\]: 4 of 8 elements differ, the first at \(4,\)") as error:
        zardine.convert(store, target, chunks=8, filters="keep")  # the fill value cannot go through the filter
    assert error.value.problems[0].place == "/"
    assert "zarr.json" not in target.list()


def test_fill_values() -> None:
    payload = np.array([0x7FC01234], "u4").view("f4")[0]
    v3 = MemoryStore()
    zardine.create_array(v3, shape=3, dtype="f4", fill_value=payload)
    assert converted(v3).metadata.fill.tobytes() == payload.tobytes()
    with pytest.raises(ConversionError, match=r"fill value nan: its bits \(3412c07f\) would be lost"):
        converted(v3, zarr_format=2)
    cases = [
        ("f8", np.nan),
        ("f4", -0.0),
        ("i8", -(2**63)),
        ("M8[s]", "NaT"),
        ("S3", b"a\0b"),
        ("U2", "ü"),
        ("V2", b"xy"),
    ]
    for dtype, fill in [*cases, ("c8", complex(-0.0, np.nan)), ([("a", "i2"), ("b", "f4")], (1, -0.0))]:
        old = MemoryStore()
        fill = np.array(fill, dtype)[()]
        zardine.create_array(old, shape=3, dtype=dtype, fill_value=fill, zarr_format=2)
        array = converted(old)
        assert array.metadata.fill.tobytes() == np.array(fill, dtype).tobytes()
        back = zardine.convert(array.store, MemoryStore(), zarr_format=2, shards=None)
        assert document(back.store, ".zarray")["fill_value"] == document(old, ".zarray")["fill_value"] or "f" in dtype
        assert back.metadata.fill.tobytes() == array.metadata.fill.tobytes()
    undefined = older(fill_value=None)
    assert document(converted(undefined).store)["fill_value"] == 0


def test_xarray_opens_bytes_and_text_that_are_marked_as_missing(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "old", zarr_format=2)
    for name, dtype, fill in [("bytes", "S2", b"no"), ("text", "U2", "no")]:
        attributes = {"_ARRAY_DIMENSIONS": ["x"], "long_name": name}
        root.create_array(name, shape=4, dtype=dtype, fill_value=fill, attributes=attributes)[:3] = ["a", "no", "b"]
    zardine.consolidate_metadata(tmp_path / "old")
    with pytest.warns(zardine.errors.ZarrUserWarning, match="xarray reads none of") as caught:
        zardine.convert(tmp_path / "old", tmp_path / "new")
    assert "equal b'no' no longer count as missing" in str(caught[0].message)
    assert "'no' became a missing_value" in str(caught[0].message)
    old = xarray.open_zarr(tmp_path / "old", chunks=None)
    new = xarray.open_zarr(tmp_path / "new", chunks=None)
    xarray.testing.assert_identical(old[["text"]], new[["text"]])
    assert new["bytes"].values.tolist() == [b"a", b"no", b"b", b"no"]


def test_names_of_dimensions_and_missing_values(tmp_path: Path) -> None:
    source = tmp_path / "old"
    root = zardine.create_group(source, zarr_format=2, attributes={"title": "t"})
    for name, dtype, fill in [("a", "f4", np.nan), ("b", "i2", -9), ("c", "f8", None), ("d", "S2", b"no")]:
        attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "long_name": name}
        root.create_array(name, shape=(4, 3), dtype=dtype, fill_value=fill, attributes=attributes)[0] = 1
    root.create_array("scalar", shape=(), dtype="i4", fill_value=None, attributes={"_ARRAY_DIMENSIONS": []})
    root.create_array("other", shape=3, dtype="i4", attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
    zardine.consolidate_metadata(source)
    with pytest.warns(zardine.errors.ZarrUserWarning, match=r"/d: attribute _FillValue: xarray reads none of bytes"):
        new = zardine.convert(source, tmp_path / "new")
    for reader in (zardine, zarr):
        group = reader.open_group(tmp_path / "new", mode="r")
        assert group["a"].metadata.dimension_names == ("y", "x")
        assert dict(group["a"].attrs) == {"long_name": "a", "_FillValue": "AAAAAAAA+H8="}
        assert dict(group["b"].attrs) == {"long_name": "b", "_FillValue": -9}
        assert dict(group["c"].attrs) == {"long_name": "c"}
        assert dict(group["d"].attrs) == {"long_name": "d"}
        assert dict(group["other"].attrs) == {"_ARRAY_DIMENSIONS": ["y", "x"]}
        assert not group["scalar"].attrs
    assert new["scalar"].metadata.dimension_names == ()
    back = zardine.convert(tmp_path / "new", tmp_path / "back", zarr_format=2, shards=None)
    for path in sorted(source.rglob(".z*")):
        old, found = (
            json.loads((base / path.relative_to(source)).read_bytes()) for base in (source, tmp_path / "back")
        )
        assert old == found or path.name == ".zmetadata"
    assert back.metadata.consolidated_metadata is not None
    np.testing.assert_array_equal(back["a"][...], root["a"][...])


def test_xarray_would_take_fill_values_for_missing_ones_in_v2() -> None:
    store = MemoryStore()
    large = zardine.create_array(store, name="large", shape=2**25, dtype="u1", chunks=2**24, dimension_names=["x"])
    large[0] = 1
    zardine.create_array(store, name="small", shape=4, dtype="i4", chunks=2, shards=None, dimension_names=["x"])
    zardine.create_array(store, name="seven", shape=4, dtype="i4", fill_value=7, dimension_names=["x"])
    with pytest.warns(ZarrUserWarning) as told:
        new = zardine.convert(store, MemoryStore(), zarr_format=2)
    text = str(told[0].message)
    assert "/large: in v2 xarray takes elements that equal the fill value" in text
    assert "/seven: in v2 xarray takes elements that equal the fill value" in text
    assert "/small" not in text
    assert document(new.store, "small/.zarray")["fill_value"] is None  # so all of it is stored
    assert new["small"].nchunks_initialized == 2
    assert document(new.store, "large/.zarray")["fill_value"] == 0
    assert new["large"].nchunks_initialized == 1


def test_attributes_that_are_no_json() -> None:
    values = older()
    values.set(".zattrs", b'{"a": NaN, "b": [1, {"c": -Infinity}]}')
    with pytest.warns(ZarrUserWarning, match=r'/: attributes.a: NaN is no JSON, and became the text "NaN"'):
        array = converted(values)
    assert array.attrs.asdict() == {"a": "NaN", "b": [1, {"c": "-Infinity"}]}
    assert b"NaN," not in bytes(array.store.get("zarr.json")).replace(b'"NaN",', b"")


def test_members_that_nobody_knows() -> None:
    store = older()
    known = document(store, ".zarray")
    store.set(".zarray", json.dumps({**known, "_nc": {"dims": ["x"]}, "odd": 1}).encode())
    with pytest.warns(ZarrUserWarning, match="the member 'odd', which zardine does not know, is left out"):
        array = converted(store)
    assert document(array.store)["_nc"] == {"dims": ["x"], "must_understand": False}


def test_ome_attributes_stay_as_they_are(tmp_path: Path) -> None:
    multiscales = [
        {"version": "0.4", "axes": [{"name": "y"}, {"name": "x"}], "datasets": [{"path": "0"}, {"path": "1"}]}
    ]
    root = zardine.create_group(tmp_path / "old", zarr_format=2, attributes={"multiscales": multiscales})
    for level in (0, 1):
        keys = ("v2", "/")
        root.create_array(str(level), data=VALUES[:: 2**level], chunks=(16, 16), chunk_key_encoding=keys)
    new = zardine.convert(tmp_path / "old", tmp_path / "new", verify=True)
    assert new.attrs.asdict() == {"multiscales": multiscales}
    np.testing.assert_array_equal(new["1"][...], VALUES[::2])


def test_every_reason_of_every_node_is_listed(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "old")
    bitround = {"name": "bitround", "configuration": {"keepbits": 3}}
    root.create_array("fine", data=VALUES, dimension_names=["y", "x"])
    root.create_array("sharded", shape=(8, 8), dtype="bfloat16", chunks=2, shards=4, dimension_names=["y", None])
    root.create_array(
        "deep/codecs",
        shape=8,
        dtype="f4",
        filters=bitround,
    )
    root.create_array("deep/uneven", shape=(3, 3), dtype="i4", chunks=((1, 2), (2, 1)))
    nested = ShardingCodec(chunk_shape=(2,), codecs=["bytes"])
    root.create_array("deep/nested", shape=8, dtype="i4", chunks=4, shards=8, serializer=nested, compressors=None)
    with pytest.raises(ConversionError) as error:
        zardine.convert(tmp_path / "old", tmp_path / "new", zarr_format=2)
    text = str(error.value)
    assert text.startswith("nothing was converted: 4 of the 7 nodes cannot be expressed in Zarr v2\n")
    found = [(problem.place, problem.message) for problem in error.value.problems]
    assert [place for place, _ in found] == sorted(place for place, _ in found)
    for place, part in {
        ("/sharded", "shards: there are none before v3; shards=None stores its 16 chunks one by one"),
        ("/sharded", "data type bfloat16: there is none before v3"),
        ("/sharded", "dimension names ['y', None]"),
        ("/deep/codecs", "codec bitround"),
        ("/deep/uneven", "chunks of differing lengths"),
        ("/deep/nested", "shards within shards"),
    }:
        assert any(where == place and part in message for where, message in found), part
    assert not (tmp_path / "new").exists()
    with pytest.raises(ConversionError, match="nothing was converted: 7 of the 7 nodes cannot be expressed in Zarr v1"):
        zardine.convert(tmp_path / "old", tmp_path / "new", zarr_format=1, shards=None)


def test_broken_documents_are_all_listed(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "old", zarr_format=2)
    for name in ("a", "b", "c"):
        root.create_array(name, shape=3, dtype="i4")
    (tmp_path / "old/a/.zarray").write_text("nonsense")
    (tmp_path / "old/c/.zarray").write_text("{}")
    (tmp_path / "old/__d").mkdir()
    (tmp_path / "old/__d/.zgroup").write_text('{"zarr_format": 2}')
    with pytest.raises(ConversionError, match="documents of the source cannot be read") as error:
        converted(tmp_path / "old")
    assert {problem.place for problem in error.value.problems} == {"/a", "/c", "/__d"}
    with pytest.raises(NodeNotFoundError, match="looked for"):
        converted(tmp_path / "nothing")


def test_to_v2_and_v1(tmp_path: Path) -> None:
    store = MemoryStore()
    source = zardine.create_array(store, data=VALUES, chunks=(7, 6), compressors=ZstdCodec(level=3), fill_value=1)
    array = zardine.convert(store, tmp_path / "v2", zarr_format=2, verify=True)
    assert document(array.store, ".zarray") == {
        "zarr_format": 2,
        "shape": [60, 50],
        "chunks": [7, 6],
        "dtype": "<i4",
        "compressor": {"id": "zstd", "level": 3},
        "filters": None,
        "fill_value": 1,
        "order": "C",
        "dimension_separator": ".",
    }
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "v2", mode="r")[...], VALUES)
    spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/v2/"}}
    np.testing.assert_array_equal(tensorstore.open(spec, open=True).result()[...].read().result(), VALUES)
    how: dict[str, Any] = {"zarr_format": 2, "compressors": numcodecs.Zlib(), "filters": [numcodecs.Delta("<i4")]}
    other = converted(store, chunks=(10, 10), chunk_key_encoding=("v2", "/"), **how)
    assert (other.chunks, other.metadata.older.dimension_separator) == ((10, 10), "/")
    np.testing.assert_array_equal(other[...], source[...])
    with pytest.raises(ConversionError, match="v1 has no compression zstd"):
        converted(store, zarr_format=1)
    first = converted(store, zarr_format=1, compressors=numcodecs.Zlib(5))
    assert first.metadata.zarr_format == 1
    again = converted(converted(first.store, zarr_format=2).store)
    np.testing.assert_array_equal(again[...], VALUES)
    nan = zardine.create_array(MemoryStore(), data=np.array([1, np.nan]), fill_value=np.nan, compressors=None)
    old = converted(nan, zarr_format=1, verify=True)
    assert [each[0] for each in (converted(old, verify=True), zardine.convert(old, metadata_only=True))] == [1, 1]
    text = zardine.create_array(MemoryStore(), data=np.array(["a", "bc", ""]), dtype=None)
    words = zardine.create_array(MemoryStore(), shape=3, dtype="string")
    words[...] = ["x", "", "yz"]
    for each in (text, words):
        back = converted(converted(each.store, zarr_format=2, verify=True).store, verify=True)
        assert back[...].tolist() == each[...].tolist()
        assert back.metadata.data_type == each.metadata.data_type


def test_objects_that_are_text() -> None:
    for codec in (numcodecs.JSON(), MsgPack()):
        store = MemoryStore()
        how: dict[str, Any] = {"dtype": object, "object_codec": codec, "zarr_format": 2, "fill_value": None}
        array = zardine.create(6, chunks=2, store=store, **how)
        array[:3] = np.array(["a", "ü" * 9, "€"], object)
        with pytest.raises(ConversionError, match="objects that are all text can become 'string'"):
            converted(store)
        new = converted(store, objects="string", verify=True)
        assert new[...].tolist() == ["a", "ü" * 9, "€", "", "", ""]
        assert new.metadata.data_type.name == "string"
        assert converted(store, objects="string", chunks=6)[...].tolist() == ["a", "ü" * 9, "€", "", "", ""]
        array[5] = {"b": 1}
        with pytest.raises(EncodeError, match=r"the object at \(5,\) is no text but \{'b': 1\}"):
            converted(store, objects="string")
        same = converted(store, zarr_format=2, chunks=3, verify=True)
        assert same[...].tolist() == array[...].tolist()


def test_unusual_grids_are_kept() -> None:
    from zardine.codecs import BytesCodec, GzipCodec

    uneven = MemoryStore()
    array = zardine.create_array(uneven, data=VALUES, chunks=((10, 20, 30), (25, 25)))
    new = converted(uneven, verify=True)
    assert new.metadata.chunk_grid == array.metadata.chunk_grid
    np.testing.assert_array_equal(new[...], VALUES)
    assert converted(uneven, chunks=(6, 5)).chunks == (6, 5)
    with pytest.raises(ConversionError, match="give chunks, too"):
        converted(uneven, shards=(20, 25))
    shards = MemoryStore()
    zardine.create_array(shards, data=VALUES, chunks=(5, 5), shards=((10, 20, 30), (25, 25)))
    assert converted(shards, verify=True).metadata.chunk_grid == array.metadata.chunk_grid
    around = MemoryStore()
    inner = ShardingCodec(chunk_shape=(6, 5), codecs=[BytesCodec(), GzipCodec()])
    zardine.create_array(around, data=VALUES, chunks=(30, 25), serializer=inner, compressors=["gzip"])
    new = converted(around, verify=True)
    assert [codec.name for codec in new.codecs] == ["sharding_indexed", "gzip"]
    assert [codec.name for codec in converted(around, chunks=(6, 5)).compressors] == ["zstd", "crc32c"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"zarr_format": 4}, "there is no Zarr format 4"),
        ({"zarr_format": 2, "shards": (1, 1)}, "shards needs zarr_format=3; Zarr v2 has none"),
        ({"zarr_format": 2, "codecs": ["bytes"]}, "codecs needs zarr_format=3"),
        ({"zarr_format": 2, "serializer": "bytes"}, "serializer needs zarr_format=3"),
        ({"zarr_format": 2, "checksum": True}, "checksum needs zarr_format=3"),
        ({"codecs": ["bytes"], "compressors": None}, "give either codecs, which is the whole chain, or compressors"),
        ({"chunks": "many"}, "chunks is 'keep', 'auto' or lengths"),
        ({"shards": "keep"}, "shards is 'auto', None or lengths"),
        ({"objects": "json"}, "objects is 'string'"),
        ({"remove_old": True}, "remove_old is for metadata_only=True"),
        ({"metadata_only": True}, "so there is no target"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        converted(older(), **options)


def test_lengths_that_do_not_fit_are_told_by_node() -> None:
    with pytest.raises(ConversionError, match=r"chunks \(7, 6\) do not evenly divide shards \(20, 20\)"):
        converted(older(), shards=(20, 20))
    with pytest.raises(ValueError, match="target is missing"):
        zardine.convert(older())


def test_each_chunk_is_read_once_and_each_object_written_once() -> None:
    source, target = CountingStore(older()), CountingStore(MemoryStore())
    with zardine.config.set({"threads": 2}):
        zardine.convert(source, target, shards=(14, 12))
    chunks = {key: count for key, count in source.counts.keys.items() if key[0].isdigit()}
    assert (len(chunks), set(chunks.values())) == (81, {1})
    shards = {key: count for key, count in target.counts.keys.items() if key.startswith("c/")}
    assert (len(shards), set(shards.values())) == (25, {1})
    whole, small = CountingStore(older(chunks=(60, 50))), CountingStore(MemoryStore())
    zardine.convert(whole, small, chunks=(6, 5), shards=None)
    assert whole.counts.keys["0.0"] == 1
    assert sum(count for key, count in small.counts.keys.items() if key.startswith("c/")) == 100


def test_opened_nodes_can_be_converted() -> None:
    root = zardine.create_group(MemoryStore(), zarr_format=2)
    array = root.create_array("deep/a", data=VALUES)
    assert sorted(converted(root).members(None)[i][0] for i in (0, 1)) == ["deep", "deep/a"]
    np.testing.assert_array_equal(converted(array)[...], VALUES)
    zardine.convert(root, metadata_only=True)
    assert zardine.open_array(array.store, path="deep/a", zarr_format=3).shape == VALUES.shape


def test_progress() -> None:
    seen: list[tuple[int, int]] = []
    for verify in (False, True):
        seen.clear()
        converted(older(), shards=(14, 12), verify=verify, progress=lambda done, total: seen.append((done, total)))
        assert seen == sorted(seen)
        assert {total for _, total in seen} == {zardine.open_array(older()).nbytes * (1 + verify)}
        assert seen[-1][0] == seen[-1][1]


def test_settings_of_the_process_do_not_matter() -> None:
    changes = {"array.order": "F", "array.write_empty_chunks": True, "array.read_missing_chunks": False}
    store = MemoryStore()
    zardine.create_array(store, shape=(20, 20), chunks=(5, 5), dtype="i4", zarr_format=2)[:3, :3] = 1
    plain = converted(store)
    with zardine.config.set(changes), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert converted(store, verify=True).store.get("c/0/0") == plain.store.get("c/0/0")
