"""Arrays like others, also of another version of Zarr: ``zeros_like`` and the rest, ``from_array``, ``copy``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zardine
from zardine.codecs import BitRoundCodec, GzipCodec, TransposeCodec
from zardine.storage import CountingStore, LocalStore, MemoryStore

DATA = np.arange(48, dtype="f4").reshape(6, 8)

MADE: dict[str, dict[str, Any]] = {
    "v3": {"zarr_format": 3, "data": DATA, "chunks": (3, 4)},
    "v3 sharded": {"zarr_format": 3, "data": DATA, "chunks": (3, 2), "shards": (6, 4)},
    "v3 other codecs": {
        "zarr_format": 3,
        "data": DATA,
        "filters": [TransposeCodec(order=(1, 0))],
        "compressors": [GzipCodec(level=2)],
        "chunks": (2, 4),
    },
    "v3 lossy": {"zarr_format": 3, "data": DATA, "filters": [BitRoundCodec(keepbits=20)], "chunks": (2, 4)},
    "v3 rectilinear": {"zarr_format": 3, "data": DATA, "chunks": ((1, 5), (8,))},
    "v3 text": {"zarr_format": 3, "data": np.array([["a", "bc"]], np.dtypes.StringDType())},
    "v2": {"zarr_format": 2, "data": DATA, "chunks": (3, 4)},
    "v2 order F": {"zarr_format": 2, "data": DATA, "chunks": (3, 4), "order": "F", "fill_value": None},
    "v2 own codecs": {
        "zarr_format": 2,
        "data": DATA.astype(">f4"),
        "filters": [numcodecs.Delta(">f4")],
        "compressors": numcodecs.BZ2(),
        "chunks": (6, 2),
    },
    "v2 that no v3 has": {"zarr_format": 2, "data": DATA, "compressors": numcodecs.Base64(), "chunks": (6, 2)},
    "v2 text": {"zarr_format": 2, "data": np.array([["a", "bc"]], np.dtypes.StringDType())},
    "v1": {"zarr_format": 1, "data": DATA, "chunks": (3, 4)},
}


@pytest.fixture(params=MADE)
def source(request: Any) -> zardine.Array:
    return zardine.create_array(None, **{**MADE[request.param], "attributes": {"k": 1}})


def inner(array: zardine.Array) -> Any:
    return array._handle.layout.sharding.chunk_shape if array.shards else array.chunks


def check_chunks(source: zardine.Array, made: zardine.Array, version: int) -> None:
    assert made.metadata.zarr_format == version
    if source._handle.layout.object_shape is None:
        return
    assert inner(made) == inner(source)
    assert made.shards == (source.shards if version == 3 else None)


@pytest.mark.parametrize("version", [None, 3, 2, 1])
def test_like(source: zardine.Array, version: int | None) -> None:
    wanted = source.metadata.zarr_format if version is None else version
    text = source.dtype.kind == "T"
    if version == 1 and text:
        with pytest.raises(ValueError, match=r"v1|dtype"):
            zardine.empty_like(source, zarr_format=1)
        return
    for like in (zardine.zeros_like, zardine.ones_like, zardine.empty_like, zardine.full_like):
        made = like(source, zarr_format=version)
        check_chunks(source, made, wanted)
        assert (made.shape, made.dtype) == (source.shape, source.dtype)
    assert zardine.full_like(source, zarr_format=version, fill_value="x" if text else 5)[0, 0] == ("x" if text else 5)
    opened = zardine.open_like(source, "p", store=MemoryStore(), zarr_format=version)
    assert opened.metadata.zarr_format == (3 if version is None else version)


def test_a_copy_in_smaller_chunks_reads_each_object_once() -> None:
    store = CountingStore(MemoryStore())
    source = zardine.create_array(store, shape=(40, 60), dtype="i4", chunks=(20, 60))
    source[...] = np.arange(2400).reshape(40, 60)
    store.reset()
    made = zardine.from_array(MemoryStore(), data=source, chunks=(4, 6))
    assert store.counts.reads <= 2 + 1  # the chunks, and the document
    np.testing.assert_array_equal(made[...], source[...])


@pytest.mark.parametrize("version", [None, 3, 2, 1])
def test_from_array(source: zardine.Array, version: int | None, tmp_path: Path) -> None:
    wanted = source.metadata.zarr_format if version is None else version
    if version == 1 and source.dtype.kind == "T":
        return
    made = zardine.from_array(tmp_path, data=source, name="x", zarr_format=version)
    check_chunks(source, made, wanted)
    np.testing.assert_array_equal(zardine.open_array(tmp_path, path="x")[...], source[...])
    assert dict(made.attrs) == {"k": 1}
    assert wanted == 3 or source.metadata.zarr_format == 3 or made.metadata.older.dtype == source.metadata.older.dtype
    if wanted == 3 and source.metadata.older is not None:
        assert made.compressors[-1].name == "crc32c"


def test_codecs_are_kept_where_both_versions_have_them() -> None:
    source = zardine.create_array(None, **MADE["v3 other codecs"])
    older = zardine.from_array(None, data=source, zarr_format=2)
    assert (older.order, older.compressor, older.metadata.older.filters) == ("F", numcodecs.GZip(2), None)
    back = zardine.from_array(None, data=older, zarr_format=3)
    assert [codec.name for codec in back.codecs] == ["transpose", "bytes", "gzip", "crc32c"]
    own = zardine.from_array(None, data=zardine.create_array(None, **MADE["v2 own codecs"]), zarr_format=3)
    assert [codec.name for codec in own.codecs] == ["numcodecs.delta", "bytes", "numcodecs.bz2", "crc32c"]
    other = zardine.from_array(None, data=zardine.create_array(None, **MADE["v2 that no v3 has"]), zarr_format=3)
    assert [codec.name for codec in other.codecs] == ["bytes", "zstd", "crc32c"]
    given = zardine.from_array(None, data=source, zarr_format=2, compressors=numcodecs.Zlib(3), chunks=(6, 8))
    assert (given.compressor, given.chunks) == (numcodecs.Zlib(3), (6, 8))


def test_names_of_dimensions_follow_the_conventions_of_xarray() -> None:
    new = zardine.create_array(None, data=DATA, dimension_names=("y", "x"), attributes={"k": 1})
    old = zardine.from_array(None, data=new, zarr_format=2)
    assert dict(old.attrs) == {"k": 1, "_ARRAY_DIMENSIONS": ["y", "x"]}
    again = zardine.from_array(None, data=old, zarr_format=3)
    assert again.dimension_names == ("y", "x")
    assert "_ARRAY_DIMENSIONS" not in again.attrs


def test_what_the_other_version_cannot_hold_is_an_error() -> None:
    objects = zardine.create(2, dtype=object, object_codec=numcodecs.JSON(), zarr_format=2)
    with pytest.raises((ValueError, TypeError)):
        zardine.zeros_like(objects, zarr_format=3)
    pytest.importorskip("ml_dtypes")
    narrow = zardine.zeros(3, dtype="bfloat16")
    with pytest.raises(ValueError, match="bfloat16"):
        zardine.from_array(None, data=narrow, zarr_format=2)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_groups_hold_their_own_version(source: zardine.Array, version: int, kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    group = zardine.create_group(store, zarr_format=version)
    group["assigned"] = source
    group.zeros_like(name="a/zeros", data=source)
    group.ones_like(name="ones", data=source)
    group.empty_like(name="empty", data=source)
    group.full_like(name="full", data=source, fill_value="x" if source.dtype.kind == "T" else 2)
    group.create_array("data", data=source)
    zardine.copy(source, group, name="b/copied")
    hierarchy = zardine.create_group(None, zarr_format=max(2, source.metadata.zarr_format), attributes={"title": 1})
    hierarchy["deep/er"] = source
    zardine.copy(hierarchy, group, name="tree")
    zardine.copy_all(hierarchy, group)
    found = {path: node.metadata.zarr_format for path, node in group.members(max_depth=None)}
    assert set(found.values()) == {version}
    assert set(found) >= {"a", "a/zeros", "b/copied", "deep/er", "tree/deep/er", "tree/deep"}
    unwanted = "zarr.json" if version == 2 else ".z"
    assert not [key for key in store.list() if unwanted in key]
    for path in ("assigned", "data", "b/copied", "deep/er", "tree/deep/er"):
        np.testing.assert_array_equal(group[path][...], source[...])
    assert dict(group["b/copied"].attrs) == dict(source.attrs)
    assert dict(group["tree"].attrs) == {"title": 1}


def test_another_version_when_asked() -> None:
    group = zardine.create_group(None, zarr_format=2)
    source = zardine.create_array(None, **MADE["v3 sharded"])
    assert group.ones_like(name="x", data=source, zarr_format=3).shards == (6, 4)
    zardine.copy(source, group, name="y", zarr_format=3)
    assert group["y"].shards == (6, 4)
