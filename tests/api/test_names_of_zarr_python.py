"""Names that programs on top of zarr-python look for, with their meaning there."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import pickle
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import codecs, dtype, errors
from zardine.abc.codec import ArrayArrayCodec, BaseCodec, BytesBytesCodec, Codec
from zardine.abc.store import Store
from zardine.data_types import DataType
from zardine.storage import FsspecStore, LocalStore, MemoryStore, PrefixStore, ZipStore

EVERY_CODEC = [
    codecs.BytesCodec(endian="big"),
    codecs.BloscCodec(cname="zstd", clevel=3, typesize=4, shuffle="shuffle", blocksize=0),
    codecs.GzipCodec(level=3),
    codecs.ZstdCodec(level=1),
    codecs.Crc32cCodec(),
    codecs.TransposeCodec(order=(1, 0)),
    codecs.VLenUTF8Codec(),
    codecs.ShardingCodec(chunk_shape=(2, 2), codecs=[codecs.BytesCodec(), codecs.ZstdCodec()]),
]


@pytest.mark.parametrize("codec", EVERY_CODEC, ids=lambda codec: codec.name)
def test_codecs_as_dictionaries(codec: Codec) -> None:
    assert codec.to_dict()["name"] == codec.name
    assert type(codec).from_dict(json.loads(json.dumps(codec.to_dict()))) == codec
    with pytest.raises(errors.MetadataError, match="found"):
        type(codec).from_dict({**codec.to_dict(), "name": "other"})


def test_numcodecs_as_dictionaries_and_faults_by_name() -> None:
    delta = codecs.codec_from({"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}})
    assert type(delta).from_dict(delta.to_dict()) == delta
    assert codecs.BytesCodec.from_dict({"name": "endian", "configuration": {"endian": "little"}}).endian == "little"
    with pytest.raises(errors.MetadataError, match=r"configuration\.level"):
        codecs.GzipCodec.from_dict({"name": "gzip", "configuration": {"level": 99}})


def test_base_classes() -> None:
    assert issubclass(MemoryStore, Store)
    assert issubclass(codecs.GzipCodec, BytesBytesCodec)
    assert issubclass(codecs.TransposeCodec, ArrayArrayCodec)
    assert BaseCodec is Codec


def test_names_of_axes_are_of_version_3_only() -> None:
    for version in (2, 1):
        old = zardine.create_array(None, shape=(2, 3), dtype="i4", zarr_format=version)
        assert not hasattr(old.metadata, "dimension_names")
        assert old.dimension_names is None
    new = zardine.create_array(None, shape=(2, 3), dtype="i4", dimension_names=("y", None))
    assert new.metadata.dimension_names == ("y", None)
    assert zardine.create_array(None, shape=2, dtype="i4").metadata.dimension_names is None
    assert not hasattr(new.metadata, "order")


def test_metadata_of_version_2() -> None:
    import numcodecs

    array = zardine.create_array(
        None,
        shape=(4, 6),
        chunks=(2, 3),
        dtype="i4",
        zarr_format=2,
        order="F",
        compressors=numcodecs.Zlib(1),
        filters=[numcodecs.Delta("<i4")],
    )
    assert (array.metadata.order, array.metadata.dimension_separator) == ("F", ".")
    assert array.metadata.compressor == array.compressor == numcodecs.Zlib(1)
    assert array.metadata.filters == (numcodecs.Delta("<i4"),)
    assert zardine.ArrayMetadata.from_dict(array.metadata.to_dict()) == array.metadata


def test_grids_and_keys_tell_their_configuration() -> None:
    array = zardine.create_array(None, shape=(8, 6), dtype="i4", chunks=(2, 3), shards=(4, 6))
    grid = array.metadata.chunk_grid
    assert grid.chunk_shape == (4, 6)
    assert array.metadata.chunk_key_encoding.separator == "/"
    assert array.metadata.codecs[0].to_dict()["name"] == "sharding_indexed"
    assert array.metadata.codecs[0].chunk_shape == (2, 3)
    for twin in (copy.copy(grid), copy.deepcopy(grid), pickle.loads(pickle.dumps(grid))):
        assert twin == grid
    with pytest.raises(AttributeError, match="no 'other'"):
        grid.other  # noqa: B018


@pytest.mark.parametrize("version", [2, 3])
def test_consolidated_metadata(version: Any) -> None:
    store = MemoryStore()
    root = zardine.create_group(store, zarr_format=version)
    root.create_group("g").create_array("a", shape=3, dtype="i4")
    root.create_array("b", shape=2, dtype="f4")
    assert root.metadata.consolidated_metadata is None
    found = zardine.consolidate_metadata(store).metadata.consolidated_metadata
    assert found is not None
    assert sorted(found.metadata) == ["b", "g"]
    inner = found.metadata["g"].consolidated_metadata
    assert sorted(inner.metadata) == ["a"]
    assert inner.metadata["a"].shape == (3,)
    assert sorted(found.flattened_metadata) == ["b", "g", "g/a"]
    assert (found.kind, found.must_understand) == ("inline", False)
    assert found.to_dict()["kind"] == "inline"
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict()))) == found
    opened = zardine.open_consolidated(store)
    assert opened.metadata.consolidated_metadata.metadata["b"].dtype == np.dtype("f4")
    assert zardine.GroupMetadata.from_dict(opened.metadata.to_dict()).node_type == "group"


def test_data_types() -> None:
    for kind, text in ((dtype.Int16(), "i2"), (dtype.Float64(), "f8"), (dtype.Bool(), "?"), (dtype.Complex64(), "c8")):
        array = zardine.create_array(None, shape=2, dtype=kind)
        assert array.dtype == array.metadata.data_type.to_native_dtype() == np.dtype(text)
        assert isinstance(array.metadata.data_type, (type(kind), dtype.ZDType, DataType))
    text = zardine.create_array(None, data=np.array(["a", "bc"], "T")).metadata.data_type
    assert isinstance(text, dtype.VariableLengthUTF8)
    assert not isinstance(text, dtype.VariableLengthBytes)
    assert dtype.FixedLengthUTF32(length=3).to_native_dtype() == np.dtype("U3")
    assert dtype.NullTerminatedBytes(length=3).to_native_dtype() == np.dtype("S3")
    assert dtype.RawBytes(length=3).to_native_dtype() == np.dtype("V3")
    assert dtype.DateTime64(unit="ms", scale_factor=10).to_native_dtype() == np.dtype("M8[10ms]")
    assert dtype.TimeDelta64(unit="s").to_native_dtype() == np.dtype("m8[s]")
    struct = dtype.Struct(fields=[("x", dtype.Int8()), ("y", "f4")])
    assert struct.to_native_dtype() == np.dtype([("x", "i1"), ("y", "f4")])
    assert isinstance(struct, dtype.Structured)
    assert isinstance(dtype.parse_dtype("uint8", zarr_format=3), dtype.UInt8)
    assert (dtype.Int8().default_scalar(), dtype.Int8().cast_scalar(5)) == (0, 5)
    for name in dtype.__all__:
        assert getattr(dtype, name)


def test_stores(tmp_path: Path) -> None:
    wrapped = PrefixStore(MemoryStore(), "below")
    for store in (MemoryStore.open(), LocalStore.open(tmp_path / "a"), ZipStore.open(tmp_path / "a.zip"), wrapped):
        assert store.is_empty("")
        store.set("a/b", b"12")
        store.set("a/c", b"345")
        store.set("ab", b"6")
        store.set_if_not_exists("ab", b"7")
        assert bytes(store.get("ab") or b"") == b"6"
        assert (store.getsize("a/c"), store.getsize_prefix("a"), store.getsize_prefix("")) == (3, 5, 6)
        assert (store.is_empty("a"), store.is_empty("b")) == (False, True)
        with pytest.raises(FileNotFoundError):
            store.getsize("nothing")
        store.delete("a/b")
        store.delete("nothing")
        assert list(store.list()) == ["a/c", "ab"]
        store.delete_dir("a")
        assert list(store.list()) == ["ab"]
        store.clear()
        assert list(store.list()) == []
        assert store.supports_writes
        assert store.supports_deletes
        assert store.supports_listing
        assert store.supports_consolidated_metadata
        assert not store.supports_partial_writes
        assert not store.with_read_only(True).supports_writes
        store.close()


def test_modes_of_zip_stores(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with pytest.raises(errors.StoreError, match="no zip archive"):
        ZipStore(path, mode="r")
    with ZipStore(path, mode="x") as store:
        store.set("a", b"1")
    with pytest.raises(FileExistsError):
        ZipStore(path, mode="x")
    with ZipStore(path, mode="a") as store:
        store.set("b", b"2")
    with ZipStore(path, mode="r") as store:
        assert list(store.list()) == ["a", "b"]
        with pytest.raises(errors.ReadOnlyError):
            store.set("c", b"3")
    with ZipStore(path, mode="w") as store:
        assert list(store.list()) == []
        store.set("d", b"4")
    assert list(ZipStore(path).list()) == ["d"]
    assert ZipStore(path, mode="w", read_only=False).supports_writes
    with pytest.raises(ValueError, match="mode"):
        ZipStore(path, mode="r+")  # type: ignore[arg-type]


def test_fsspec_stores_that_refuse_writes(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    store = FsspecStore.from_url(f"file://{tmp_path}", read_only=True)
    with pytest.raises(errors.ReadOnlyError):
        store.set("a", b"1")
    FsspecStore.from_url(f"file://{tmp_path}").set("a", b"1")
    assert bytes(store.get("a") or b"") == b"1"


def test_stores_of_others_are_refused_by_name() -> None:
    class Other:
        async def get(self, key: str, prototype: object) -> None: ...

    Other.__module__, Other.__qualname__ = "zarr.storage._memory", "MemoryStore"
    for use in (
        zardine.open_group,
        zardine.create_group,
        lambda store: zardine.create_array(store, shape=1, dtype="i4"),
    ):
        with pytest.raises(TypeError, match=r"zarr\.storage\._memory\.MemoryStore.*zardine\.storage"):
            use(Other())


def test_arrays_in_annotations() -> None:
    assert zardine.Array[Any] == zardine.Array[Any]
    assert zardine.AsyncArray[Any].__origin__ is zardine.AsyncArray


def test_descriptions_have_fields(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path, zarr_format=2)
    array = group.create_array("a", data=np.arange(6).reshape(2, 3), chunks=(1, 3))
    info: Any = array.info
    assert (info._zarr_format, info.zarr_format, info._shape, info._chunk_shape) == (2, 2, (2, 3), (1, 3))
    assert (info._type, info._store_type, info._read_only, info._count_bytes) == ("Array", "LocalStore", False, 48)
    complete: Any = array.info_complete()
    assert complete._count_chunks_initialized == 2
    assert complete._count_bytes_stored == array.nbytes_stored()
    about: Any = group.info_complete()
    assert (about._type, about._zarr_format, about._count_members, about._count_arrays) == ("Group", 2, 1, 1)
    assert not hasattr(info, "_nothing")
    assert pickle.loads(pickle.dumps(info)) == info


def test_errors() -> None:
    assert issubclass(errors.ContainsArrayAndGroupError, errors.ContainsArrayError)
    assert issubclass(errors.ContainsArrayAndGroupError, errors.ContainsGroupError)
    assert issubclass(errors.NegativeStepError, IndexError)
    assert issubclass(errors.DataTypeValidationError, ValueError)
    pickled = zardine.create_array(None, shape=1, dtype="O", filters=[{"id": "pickle", "protocol": 4}], zarr_format=2)
    pickled[0] = {"a": 1}
    with pytest.raises(errors.PickleCodecDisabledError, match="allow_unsafe_pickle_decode"):
        pickled[0]


def test_functions_for_event_loops(tmp_path: Path) -> None:
    from zardine.api import asynchronous, synchronous

    assert set(asynchronous.__all__) == set(synchronous.__all__)
    for name in synchronous.__all__:
        assert getattr(synchronous, name) is getattr(zardine, name)

    async def main() -> None:
        array = await asynchronous.create_array(tmp_path / "a", data=np.arange(4))
        assert isinstance(array, zardine.AsyncArray)
        assert (await (await asynchronous.open_array(tmp_path / "a")).getitem(2)) == 2
        assert isinstance(await asynchronous.zeros_like(array), zardine.AsyncArray)
        group = await asynchronous.group(tmp_path / "g")
        assert isinstance(group, zardine.AsyncGroup)
        await group.setitem("x", [1])
        assert str(await asynchronous.tree(group)) == "/\n└── x (1,) int64"
        nodes = {"g": zardine.GroupMetadata()}
        made = [path async for path, _ in asynchronous.create_hierarchy(store=MemoryStore(), nodes=nodes)]
        assert "g" in made
        await asynchronous.save(tmp_path / "s", np.arange(3))
        assert (await asynchronous.load(tmp_path / "s")).tolist() == [0, 1, 2]
        with pytest.raises(errors.ArrayNotFoundError):
            await asynchronous.open_array(tmp_path / "nothing", mode="r")

    asyncio.run(main())


STAND_IN = """
import sys, zardine
assert zardine.__version__ == "0.1.0", zardine.__version__
sys.modules["zarr"] = zardine
import zarr, zarr.errors, zarr.codecs, zarr.storage, zarr.abc.store, zarr.abc.codec, zarr.dtype, zarr.registry
from zarr.codecs import BytesCodec
from zarr.codecs.bytes_codec import BytesCodec as Deep
from zarr.errors import ContainsArrayError
from zarr.core.dtype import VariableLengthUTF8
from zarr.core.sync import SyncMixin, sync
from zarr.core.chunk_key_encodings import DefaultChunkKeyEncoding, V2ChunkKeyEncoding
from zarr.core.buffer import default_buffer_prototype
from zarr.experimental.cache_store import CacheStore
assert CacheStore is __import__("zardine.experimental.cache_store").experimental.cache_store.CacheStore
assert default_buffer_prototype() is None and SyncMixin()._sync(5) == 5
slashes = V2ChunkKeyEncoding(separator="/").to_dict()
assert slashes == {"name": "v2", "configuration": {"separator": "/"}}
for format in (2, 3):
    kept = {}
    zarr.create_array(kept, data=[[1]], chunk_key_encoding=slashes, zarr_format=format)
    assert "0/0" in kept
from zarr.core.group import Group, GroupMetadata
from zarr.core.array import Array, AsyncArray
from zarr.core.config import config
from zarr.core.metadata import ArrayMetadata
import zarr.core.group
assert zarr.core.group.Group is Group is zardine.Group and Array is zardine.Array and config is zardine.config
assert GroupMetadata is zardine.GroupMetadata and ArrayMetadata is zardine.ArrayMetadata
from packaging.version import Version
import zardine.codecs, zardine.errors, zardine.storage, asyncio
assert zarr.errors is zardine.errors and zarr.codecs is zardine.codecs and zarr.storage is zardine.storage
assert zardine.errors.__spec__.name == "zardine.errors" and zarr.errors.__name__ == "zardine.errors"
assert BytesCodec is Deep is zardine.codecs.BytesCodec
assert ContainsArrayError is zardine.errors.ContainsArrayError
assert zarr.Array.__module__.startswith("zardine")
assert Version("3.4.2") <= Version(zarr.__version__) < Version("3.5"), zarr.__version__
assert "zardine" in zarr.__version__
async def three(): return 3
assert (sync(three()), sync(4)) == (3, 4)
async def inside(): return sync(three())
assert asyncio.run(inside()) == 3
for name in ("zarr.core.indexing", "zarr.nothing", "zarr.core"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert name in str(error) and "zardine" in str(error), error
    else:
        assert name == "zarr.core", name
del sys.modules["zarr"]
assert zardine.__version__ == "0.1.0"
"""


def test_groups_make_arrays_with_the_separator_of_v2() -> None:
    for make, options in (("zeros", {}), ("ones", {}), ("empty", {}), ("full", {"fill_value": 3})):
        kept: dict[str, Any] = {}
        older = zardine.create_group(kept, zarr_format=2)
        made = getattr(older, make)(name="a", shape=(2, 2), dimension_separator="/", **options)
        made[:] = 5
        assert "a/0/0" in kept
        with pytest.raises(ValueError, match="belongs to Zarr v2"):
            getattr(zardine.create_group({}), make)(name="a", shape=2, dimension_separator="/", **options)
        with pytest.raises(ValueError, match="not both"):
            older.zeros(name="b", shape=2, dimension_separator="/", chunk_key_encoding=("v2", "."))


def test_standing_in_for_zarr() -> None:
    ran = subprocess.run([sys.executable, "-c", STAND_IN], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_zarr_python_beside_it_is_left_alone() -> None:
    code = (
        "import zardine, sys; import zarr, zarr.errors, zarr.core.sync; "
        "assert 'site-packages' in zarr.__file__ and zarr.errors is not zardine.errors; "
        "assert zardine.__version__ == '0.1.0'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("asked", "meant"), [("morton", "morton"), ("lexicographic", "c"), ("colexicographic", "f")])
def test_order_of_inner_chunks_by_the_codec(asked: Any, meant: str) -> None:
    codec = codecs.ShardingCodec(chunk_shape=(1, 1), codecs=[codecs.BytesCodec()], subchunk_write_order=asked)
    values = np.arange(16, dtype="u1").reshape(4, 4) + 1
    made = []
    for array in (
        zardine.create_array(None, shape=(4, 4), chunks=(4, 4), dtype="u1", serializer=codec, checksum=False),
        zardine.create((4, 4), chunks=(4, 4), dtype="u1", codecs=[codec]),
        zardine.create_array(
            None,
            shape=(4, 4),
            chunks=(1, 1),
            shards=(4, 4),
            dtype="u1",
            config={"chunk_order": meant},
            compressors=None,
            checksum=False,
        ),
    ):
        array[...] = values
        assert array.config.chunk_order == meant
        assert "subchunk_write_order" not in json.dumps(array.metadata.to_dict())
        made.append(bytes(array.store.get("c/0/0") or b"")[:16])
    assert len(set(made)) == 1
    with pytest.raises(errors.MetadataError, match="subchunk_write_order"):
        codecs.ShardingCodec(chunk_shape=(1, 1), subchunk_write_order="other")  # type: ignore[arg-type]


def test_arrays_are_opened_as_one_version() -> None:
    store = MemoryStore()
    zardine.create_array(store, shape=1, dtype="i4", zarr_format=2)
    assert zardine.Array.open(store, 2) == zardine.Array.open(store, zarr_format=None)
    with pytest.raises(errors.ArrayNotFoundError):
        zardine.Array.open(store, zarr_format=3)
    with pytest.raises(errors.ArrayNotFoundError):
        asyncio.run(zardine.AsyncArray.open(store, zarr_format=3))


def test_choices_as_members_of_any_enum() -> None:
    class Old(Enum):
        little = "little"

    assert codecs.BytesCodec(endian=Old.little) == codecs.BytesCodec(endian="little")
    with pytest.raises(ValueError, match="endian"):
        codecs.BytesCodec(endian=Enum("Other", {"middle": "middle"}).middle)  # type: ignore[attr-defined]


def test_modules_are_there_without_importing_them() -> None:
    code = (
        "import zardine as zarr; zarr.api.asynchronous.open; zarr.api.synchronous.open; zarr.abc.store.Store; "
        "zarr.abc.codec.Codec; zarr.codecs.numcodecs.LZ4(); zarr.storage.StorePath; zarr.dtype.Int8"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match=r"zardine\.api.*nothing"):
        zardine.api.nothing  # noqa: B018


def test_settings_are_printed_anywhere() -> None:
    to = io.StringIO()
    zardine.config.pprint(stream=to, width=60)
    assert "array.order" in to.getvalue()
