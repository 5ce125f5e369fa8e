"""Filesystems of fsspec: the shipped suite over several, what they keep to themselves, and what they stand for."""

from __future__ import annotations

import base64
import http.server
import json
import os
import pathlib
import pickle
import tarfile
import threading
import uuid
import zipfile
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.errors import ReadOnlyError, StoreError, UnsupportedError
from zardine.storage import FsspecStore, HTTPStore, LocalStore, ZipStore
from zardine.stores.fsspec.filesystems import missing_package
from zardine.stores.object.urls import object_store_of_url
from zardine.stores.pace import turns_of
from zardine.stores.resolve import resolve_store
from zardine.testing.store import StoreConformance

fsspec = servers.package("fsspec")

QUIET = pytest.mark.filterwarnings("ignore:.*no conditional writes")


def s3fs_filesystem(**options):
    kind = servers.package("s3fs").S3FileSystem
    return kind(key="test", secret="test", client_kwargs={"endpoint_url": servers.s3().url}, **options)


def obstore_filesystem():
    kind = servers.package("obstore.fsspec").FsspecStore
    config = {"endpoint": servers.s3().url, "access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
    return kind("s3", config=config, client_options={"allow_http": True})


@QUIET
class TestFsspecLocal(StoreConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.root = tmp_path

    def make_store(self):
        return FsspecStore(fsspec.filesystem("file"), str(self.root))


@QUIET
class TestFsspecMemory(StoreConformance):
    def make_store(self):
        fs = fsspec.filesystem("memory")
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
        return FsspecStore(fs, "/root")


@QUIET
class TestDirectoryFilesystem(StoreConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.root = tmp_path

    def make_store(self):
        return FsspecStore(fsspec.filesystem("dir", path=str(self.root / "d"), fs=fsspec.filesystem("file")), "e")


@QUIET
class TestS3fs(StoreConformance):
    versions_of_content = True
    rounds = 3

    def make_store(self):
        return FsspecStore(s3fs_filesystem(), f"{servers.new_bucket()}/root")


@QUIET
class TestObstoresFilesystem(StoreConformance):
    versions_of_content = True
    rounds = 3

    def make_store(self):
        return FsspecStore(obstore_filesystem(), f"{servers.new_bucket()}/root")


# nothing that a filesystem keeps is believed


@QUIET
@pytest.mark.parametrize("make", [s3fs_filesystem, obstore_filesystem])
def test_what_another_program_writes_is_seen(make):
    bucket, options = servers.new_bucket(), servers.s3_options()
    mapper = make().get_mapper(f"{bucket}/a")
    array = zardine.create_array(mapper, shape=(6,), chunks=(2,), dtype="i4")
    array[:2] = 1
    assert array.nchunks_initialized == 1  # lists
    zardine.open_array(f"s3://{bucket}/a", mode="r+", storage_options=options)[2:] = 7
    assert array[...].tolist() == [1, 1, 7, 7, 7, 7]
    assert array.nchunks_initialized == 3
    new = zardine.open(mapper, mode="w", shape=(6,), chunks=(2,), dtype="i4")
    assert new[...].tolist() == [0] * 6
    direct = object_store_of_url("s3", f"{bucket}/a", options)
    assert list(direct.list()) == ["zarr.json"]


@QUIET
def test_listings_made_before_are_forgotten():
    """The filesystem was used, and listed, before it came to a store; so was a copy of the store."""
    bucket = servers.new_bucket()
    direct = object_store_of_url("s3", f"{bucket}/a", servers.s3_options())
    direct.set("x/old", b"1")
    fs = s3fs_filesystem(listings_expiry_time=3600)
    store = FsspecStore(fs, f"{bucket}/a")
    stored = pickle.dumps(store)
    type(fs).clear_instance_cache()
    fs = s3fs_filesystem(listings_expiry_time=3600)
    assert [each["name"] for each in fs.ls(f"{bucket}/a/x", detail=True)] == [f"{bucket}/a/x/old"]
    assert fs.dircache
    for number, each in enumerate((pickle.loads(stored), FsspecStore(fs, f"{bucket}/a"), store)):
        assert list(each.list()) == ["x/old"]
        direct.set(f"x/new{number}", b"2")
        assert each.get(f"x/new{number}") == b"2"
        assert list(each.list()) == [f"x/new{number}", "x/old"]
        direct.erase(f"x/new{number}")
        assert each.get(f"x/new{number}") is None


def test_copies_that_nobody_compares_are_only_read(tmp_path):
    zardine.create_array(tmp_path / "a", shape=(2,), dtype="i4")[...] = 3
    url = f"simplecache::file://{tmp_path}/a"
    array = zardine.open(url)
    assert array[...].tolist() == [3, 3]
    assert array.store.read_only
    assert array.store.with_read_only(False).read_only
    for mode in ("r+", "w", "w-"):
        with pytest.raises(ReadOnlyError):
            zardine.open_array(url, mode=mode)


# what a filesystem stands for


@QUIET
@pytest.mark.parametrize("make", [s3fs_filesystem, obstore_filesystem])
def test_a_filesystem_and_a_path(make):
    bucket, fs = servers.new_bucket(), make()
    values = np.arange(16).reshape(4, 4)
    array = zardine.create_array(
        store=fs, name=f"{bucket}/deep/a.zarr", shape=(4, 4), chunks=(1, 1), shards=(2, 2), dtype="i4"
    )
    array[...] = values
    assert (zardine.open(fs, path=f"{bucket}/deep/a.zarr", mode="r")[...] == values).all()
    direct = object_store_of_url("s3", bucket, servers.s3_options())
    assert all(key.startswith("deep/a.zarr/") for key in direct.list())  # and no documents of groups above
    zardine.open_group(fs, path=f"{bucket}/deep/g.zarr", mode="w").create_array("x", shape=(2,), dtype="i4")
    assert sorted(zardine.open_group(fs, path=f"{bucket}/deep/g.zarr")) == ["x"]
    assert (zardine.open(fs, path=f"{bucket}/deep/a.zarr", mode="r")[...] == values).all()


def bare_things():
    obstore = servers.package("obstore.store")
    return [fsspec.filesystem("file"), fsspec.filesystem("memory"), obstore.LocalStore()]


@pytest.mark.parametrize("number", range(3))
def test_a_filesystem_without_a_path_is_refused(number, tmp_path, monkeypatch):
    (tmp_path / "precious").write_text("x")
    monkeypatch.chdir(tmp_path)
    thing = bare_things()[number]
    for call in (
        lambda: zardine.open_group(thing, mode="w"),
        lambda: zardine.open_group(thing),
        lambda: zardine.open(thing),
        lambda: zardine.open(thing, path="", mode="w", shape=(2,), dtype="i4"),
        lambda: zardine.create_array(thing, shape=(2,), dtype="i4"),
        lambda: zardine.save_array(thing, np.zeros(2)),
    ):
        with pytest.raises(StoreError, match=r"name a directory"):
            call()
    assert os.listdir(tmp_path) == ["precious"]
    root = resolve_store(thing, mode="r")[0]
    assert root.read_only
    with pytest.raises(ReadOnlyError):
        root.set("x", b"")


def test_the_root_of_a_machine_can_be_read(tmp_path):
    zardine.create_array(tmp_path / "a", shape=(2,), dtype="i4")[...] = 3
    obstore = servers.package("obstore.store")
    for thing in (fsspec.filesystem("file"), obstore.LocalStore()):
        root = resolve_store(thing, mode="r")[0]
        assert root == LocalStore("/", read_only=True)
        found = zardine.open(thing, path=f"{tmp_path}/a", mode="r+")
        assert found.store == LocalStore(tmp_path / "a")
        found[0] += 1
    assert zardine.open(tmp_path / "a")[...].tolist() == [5, 3]
    assert FsspecStore(fsspec.filesystem("file"), read_only=True).path == ""
    with pytest.raises(StoreError, match="name a directory"):
        FsspecStore(fsspec.filesystem("file"))


def test_a_relative_path_is_the_filesystems(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zardine.open_group(fsspec.filesystem("file"), path="g", mode="w")
    assert os.listdir(tmp_path) == ["g"]


@QUIET
def test_filesystems_over_others(tmp_path):
    local = fsspec.filesystem("file")
    directory = fsspec.filesystem("dir", path=str(tmp_path / "d"), fs=local)
    group = zardine.open_group(directory, mode="w")
    assert group.store == LocalStore(tmp_path / "d")
    group.create_array("x", shape=(2,), dtype="i4")[...] = 4
    assert zardine.open(fsspec.filesystem("dir", path="d", fs=fsspec.filesystem("dir", path=str(tmp_path), fs=local)))[
        "x"
    ][...].tolist() == [4, 4]
    with zardine.storage.ZipStore(tmp_path / "a.zip") as store:
        zardine.create_array(store, shape=(3,), dtype="i4")[...] = 5
    assert zardine.open(fsspec.filesystem("zip", fo=str(tmp_path / "a.zip")), mode="r")[...].tolist() == [5] * 3

    class Own(type(fsspec.filesystem("memory"))):
        protocol = "own"

    zardine.open(Own(), path="place", mode="w", shape=(3,), dtype="i4")[...] = 1
    assert zardine.open(Own(), path="place", mode="r")[...].tolist() == [1, 1, 1]


def test_a_chain_and_a_node(tmp_path):
    zardine.open_group(tmp_path / "g.zarr", mode="w").create_array("x/y", shape=(2,), dtype="i4")[...] = 6
    for text, path in (("::x/y", ""), ("::x", "y"), ("", "x/y")):
        found = zardine.open(f"simplecache::file://{tmp_path}/g.zarr{text}", path=path, mode="r")
        assert found[...].tolist() == [6, 6]
    store, inner = resolve_store(f"simplecache::file://{tmp_path}/g.zarr::x/y")
    assert (store.path, inner) == (f"{tmp_path}/g.zarr", "x/y")


@pytest.mark.parametrize("ending", ["zip", "tar"])
@pytest.mark.parametrize("url", ["{}://::{}", "{}:///::{}", "{}::{}", "{}://::file://{}"])
def test_an_archive_as_fsspec_names_it(tmp_path, monkeypatch, ending, url):
    monkeypatch.chdir(tmp_path)
    group = zardine.open_group("g.zarr", mode="w", attributes={"is": "g"})
    group.create_array("n/x", shape=(2,), dtype="i4")[...] = 6
    archive = tmp_path / f"g.{ending}"
    names = sorted(LocalStore("g.zarr").list())
    if ending == "zip":
        with zipfile.ZipFile(archive, "w") as target:
            for name in names:
                target.write(f"g.zarr/{name}", name)
    else:
        with tarfile.open(archive, "w") as target:
            for name in names:
                target.add(f"g.zarr/{name}", name)
    text = url.format(ending, archive)
    assert zardine.open(text, mode="r").attrs["is"] == "g"
    assert zardine.open(f"{text}::n/x", mode="r")[...].tolist() == [6, 6]
    assert zardine.open(f"{ending}://n/x::{archive}", mode="r")[...].tolist() == [6, 6]
    archive.rename(tmp_path / "other")
    assert zardine.open(f"{ending}://n/x::other", mode="r")[...].tolist() == [6, 6]


def test_our_own_names_of_nodes_in_archives_are_no_chains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ZipStore("g.zip") as store:
        for name in ("raw", "raw.zip"):
            zardine.create_array(store, name=name, shape=(2,), dtype="i4")[...] = 6
    zardine.create_array("zip", name="raw.zip", shape=(2,), dtype="i4")[...] = 7
    (tmp_path / "raw").write_bytes(b"a file that is called as the node is")
    assert zardine.open("zip://g.zip::raw", mode="r")[...].tolist() == [6, 6]
    assert zardine.open("zip://g.zip::raw.zip", mode="r")[...].tolist() == [6, 6]
    assert zardine.open("zip::raw.zip", mode="r")[...].tolist() == [7, 7]
    store, inner = resolve_store("zip://new.zip::node")
    assert (str(store), inner) == (f"zip://{tmp_path}/new.zip", "node")


# buckets


def test_no_bucket_is_made_by_writing_to_it():
    filesystem = s3fs_filesystem(skip_instance_cache=True)
    name = f"mistyped-{uuid.uuid4().hex}"
    for mode in ("w", "a", "w-"):
        with pytest.raises(StoreError, match="there is no such bucket"):
            zardine.open_array(filesystem, path=f"{name}/a.zarr", mode=mode, shape=(3,), dtype="i4")
    store = FsspecStore(filesystem, f"{name}/a.zarr")
    for call in (
        lambda: store.set("k", b"x"),
        lambda: store.get("k"),
        lambda: store.list_dir(""),
        lambda: zardine.open_array(store.with_read_only(True), mode="r"),
    ):
        with pytest.raises(StoreError, match=f"s3://{name}/a.zarr: there is no such bucket"):
            call()
    assert not filesystem.exists(name)


# texts


def test_names_of_stores(tmp_path):
    web = fsspec.filesystem("http") if importable("aiohttp") else None
    assert str(FsspecStore(fsspec.filesystem("memory"), "/a/b")) == "memory://a/b"
    assert str(FsspecStore(fsspec.filesystem("file"), str(tmp_path))) == f"file://{tmp_path}"
    if web is not None:
        assert str(FsspecStore(web, "http://me:secret@host/a")) == "http://me:***@host/a"


def importable(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


@pytest.mark.parametrize(
    ("url", "module", "package"),
    [
        ("sftp://host/a", "paramiko", "paramiko"),
        ("smb://host/a", "smbclient", "smbprotocol"),
        ("hf://datasets/a/b", "huggingface_hub", "huggingface-hub"),
        ("simplecache::gs://bucket/a", "gcsfs", "gcsfs"),
        ("oss://bucket/a", "ossfs", "ossfs"),
    ],
)
def test_a_missing_package_is_named_with_the_command(url, module, package):
    if importable(module):
        pytest.skip(f"{module} is installed")
    with pytest.raises(UnsupportedError, match=f"run pip install {package}$"):
        zardine.open(url)
    assert missing_package("x://y", ImportError("of another kind")) == "'x://y' cannot be opened: of another kind"


def test_urls_that_cannot_be_opened_do_not_show_passwords():
    for url in ("ftp://me:S3cret@127.0.0.1:1/a", "nothing://me:S3cret@host/a", "simplecache::ftp://me:S3cret@[::1/a"):
        with pytest.raises((StoreError, UnsupportedError)) as caught:
            zardine.open(url)
        assert "S3cret" not in str(caught.value)
        assert "me:***@" in str(caught.value)
    with pytest.raises(TypeError, match="storage_options"):
        zardine.open("simplecache::memory://a", storage_options={"cache_storage": 5, "memory": {"nonsense": 1}, "x": 2})


# how many requests go at a time


@pytest.fixture
def proxy():
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    yield proxy
    proxy.close()


def by_s3fs(proxy, path: str) -> FsspecStore:
    kind = servers.package("s3fs").S3FileSystem
    options = {"client_kwargs": {"endpoint_url": proxy.url}, "skip_instance_cache": True}
    return FsspecStore(kind(key="test", secret="test", **options), path)


def test_a_bucket_has_one_pace_whoever_asks_it(proxy):
    bucket = servers.new_bucket()
    store = by_s3fs(proxy, f"{bucket}/a.zarr")
    near = object_store_of_url("s3", f"{bucket}/b.zarr", servers.s3_options(proxy.url))
    turns = near._client.turns
    assert turns_of(store._place, 1) is turns
    assert turns_of(by_s3fs(proxy, servers.new_bucket())._place, 1) is not turns
    turns.pace.limit = 3
    assert (store.cost.requests, near.cost.requests) == (3, 3)
    assert pickle.loads(pickle.dumps(store)).cost == store.cost
    web = FsspecStore(fsspec.filesystem("http"), f"{proxy.url}/{bucket}", read_only=True)
    assert turns_of(web._place, 1) is HTTPStore(f"{proxy.url}/other")._client.turns


@QUIET
def test_no_more_requests_go_at_a_time_than_the_pace_says(proxy):
    store = by_s3fs(proxy, f"{servers.new_bucket()}/a.zarr")
    values = np.arange(1, 25, dtype="i4")
    array = zardine.create_array(store, shape=(24,), chunks=(1,), dtype="i4")
    turns = turns_of(store._place, 1)
    turns.pace.limit = turns.pace.most = 5  # else more are tried
    proxy.reset()
    proxy.latency = 0.02
    array[...] = values
    assert 1 < proxy.most_under_way <= 5
    proxy.reset()
    proxy.latency = 0.02
    assert (array[...] == values).all()
    assert 1 < proxy.most_under_way <= 5


def test_ranges_of_a_value_are_asked_for_together(proxy):
    store = by_s3fs(proxy, f"{servers.new_bucket()}/a")
    store.set("value", bytes(range(100)))
    proxy.reset()
    proxy.latency = 0.05
    reading = store.read("value", ((0, 3), (10, 0), (20, 3), (-2, None), (50, 3)))
    assert [bytes(part) for part in reading.parts] == [b"\0\1\2", b"", b"\x14\x15\x16", b"bc", b"234"]
    assert len(proxy.requests) == 6  # and what the value is, before and after
    assert proxy.most_under_way == 4


def test_a_server_that_is_busy_is_asked_less(proxy):
    bucket = servers.new_bucket(x_amz_acl="public-read")
    by_s3fs(proxy, bucket).set("value", b"abc")
    store = FsspecStore(fsspec.filesystem("http", skip_instance_cache=True), f"{proxy.url}/{bucket}", read_only=True)
    turns = turns_of(store._place, 1)
    before = turns.limit
    assert bytes(store.get("value")) == b"abc"
    assert store.get("nothing") is None
    assert turns.limit == before
    proxy.faults = [503]
    proxy.matching = lambda method, path: method == "GET"
    with pytest.raises(StoreError, match="503"):
        store.get("value")
    assert turns.limit == before // 2


@QUIET
def test_filesystems_for_coroutines_are_called_from_threads(tmp_path):
    wrapper = servers.package("fsspec.implementations.asyn_wrapper").AsyncFileSystemWrapper
    wrapped = wrapper(fsspec.filesystem("file"), asynchronous=True)
    for fs in (wrapped, fsspec.filesystem("dir", path=str(tmp_path), fs=wrapped, asynchronous=True)):
        path = str(tmp_path / "a") if fs is wrapped else "b"
        zardine.create_array(FsspecStore(fs, path), data=np.arange(3))
        assert zardine.open_array(FsspecStore(fs, path), mode="r")[:].tolist() == [0, 1, 2]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    references = {name: (tmp_path / "a" / name).read_text() for name in ("zarr.json",)}
    references["c/0"] = [str(tmp_path / "a" / "c" / "0")]
    references["c/1"] = [str(tmp_path / "a" / "c" / "0")]
    of_files = {"remote_protocol": "file", "remote_options": {"auto_mkdir": False}, "skip_instance_cache": True}
    over = fsspec.filesystem("reference", fo=references, fs=wrapped, asynchronous=True, **of_files)
    assert zardine.open_array(FsspecStore(over, read_only=True), mode="r")[:].tolist() == [0, 1, 2]
    servers.package("aiohttp")
    options = {"remote_options": {"asynchronous": True}, "asynchronous": True}
    far = fsspec.filesystem("reference", fo={"a": "b"}, remote_protocol="http", **options)
    assert bytes(FsspecStore(far, read_only=True).get("a")) == b"b"
    assert not FsspecStore(
        fsspec.filesystem("http", asynchronous=True), "http://127.0.0.1/a", read_only=True
    ).fs.asynchronous


@pytest.mark.parametrize("cachable", [True, False])
def test_filesystems_for_nothing_but_coroutines_are_refused(cachable):
    class ForCoroutines(servers.package("fsspec.asyn").AsyncFileSystem):
        def __init__(self, **options):
            super().__init__(**{**options, "asynchronous": True})

    ForCoroutines.cachable = cachable
    with pytest.raises(TypeError, match="ForCoroutines can be used in coroutines only"):
        FsspecStore(ForCoroutines(), "a")


def test_what_a_web_server_cannot_give_is_not_missing(proxy):
    bucket = servers.new_bucket(x_amz_acl="public-read")
    written = by_s3fs(proxy, bucket)
    zardine.create_array(written, data=np.arange(1, 9), chunks=4)
    array = zardine.open_array(fsspec.get_mapper(f"{proxy.url}/{bucket}", skip_instance_cache=True), mode="r")
    for fault in (500, 503, 403, "drop"):
        proxy.always = lambda method, path, headers, fault=fault: fault if path.endswith("/c/1") else None
        assert array[:4].tolist() == [1, 2, 3, 4]
        with pytest.raises(StoreError, match="c/1"):
            array[:]
    for status in (404, 410):
        proxy.always = lambda method, path, headers, status=status: status if path.endswith("/c/1") else None
        assert array[:].tolist() == [1, 2, 3, 4, 0, 0, 0, 0]


def test_references_to_what_is_missing_are_errors(tmp_path):
    zardine.create_array(tmp_path / "a", data=np.arange(1, 9), chunks=4)
    references = {"zarr.json": (tmp_path / "a" / "zarr.json").read_text()}
    for number in range(2):
        references[f"c/{number}"] = [str(tmp_path / "a" / "c" / str(number))]
    fs = fsspec.filesystem("reference", fo=references, remote_protocol="file")
    array = zardine.open_array(FsspecStore(fs, read_only=True), mode="r")
    assert array[:].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    (tmp_path / "a" / "c" / "1").unlink()
    assert array[:4].tolist() == [1, 2, 3, 4]
    with pytest.raises(StoreError, match=r"c/1.*missing"):
        array[:]
    del references["c/1"]
    fs = fsspec.filesystem("reference", fo=references, remote_protocol="file")
    array = zardine.open_array(FsspecStore(fs, read_only=True), mode="r")
    assert array[:].tolist() == [1, 2, 3, 4, 0, 0, 0, 0]


def test_chunks_in_the_document_of_references(tmp_path):
    """fsspec tells the length of the base64 text of such, not of the bytes."""
    plain = np.arange(6, dtype="<i2")
    array = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<i2", "fill_value": -9, "order": "C"}
    document = json.dumps({**array, "compressor": None, "filters": None})
    chunk = "base64:" + base64.b64encode(plain.tobytes()).decode()
    references = {".zgroup": '{"zarr_format": 2}', "a/.zarray": document, "a/0": chunk}
    (tmp_path / "r.json").write_text(json.dumps({"version": 1, "refs": references}))
    group = zardine.open_group("reference://", mode="r", storage_options={"fo": str(tmp_path / "r.json")})
    assert group["a"][:].tolist() == plain.tolist()
    assert group["a"][2:4].tolist() == [2, 3]
    assert group.store.get("a/0") == plain.tobytes()
    assert zardine.verify(group.store).ok


@pytest.fixture
def parquet_references(tmp_path: pathlib.Path) -> fsspec.AbstractFileSystem:
    """References as Parquet, as kerchunk and VirtualiZarr write them: without ``zarr_consolidated_format``."""
    mapper = pytest.importorskip("fsspec.implementations.reference").LazyReferenceMapper
    parquet = pytest.importorskip("pyarrow.parquet")
    array = {"zarr_format": 2, "shape": [6], "chunks": [3], "dtype": "<i2", "fill_value": -9, "order": "C"}
    document = {**array, "compressor": None, "filters": None}
    metadata = {
        ".zgroup": {"zarr_format": 2},
        ".zattrs": {"title": "t"},
        "a/.zarray": document,
        "a/.zattrs": {"units": "K"},
        "scalar/.zarray": {**document, "shape": [], "chunks": []},
    }
    (tmp_path / "r.parquet/a").mkdir(parents=True)
    (tmp_path / "r.parquet/.zmetadata").write_text(json.dumps({"metadata": metadata, "record_size": 4}))
    np.arange(6, dtype="<i2").tofile(tmp_path / "values")
    columns = {"path": [str(tmp_path / "values"), None], "offset": [0, 0], "size": [6, 0], "raw": [None, b"abcdef"]}
    parquet.write_table(pytest.importorskip("pyarrow").table(columns), tmp_path / "r.parquet/a/refs.0.parq")
    references = mapper(str(tmp_path / "r.parquet"), fs=fsspec.filesystem("file"), engine="pyarrow")
    return fsspec.filesystem("reference", fo=references, remote_protocol="file", skip_instance_cache=True)


@pytest.mark.parametrize("consolidated", [None, True, False])
def test_references_as_parquet(parquet_references: fsspec.AbstractFileSystem, consolidated: bool | None) -> None:
    store = FsspecStore(parquet_references, read_only=True)
    group = zardine.open_group(store, mode="r", use_consolidated=consolidated)
    assert group.attrs.asdict() == {"title": "t"}
    assert "a" in list(group)  # fsspec lists arrays without values in consolidated metadata alone
    assert group["a"][:].tolist() == [0, 1, 2, *np.frombuffer(b"abcdef", "<i2").tolist()]
    assert group["a"].attrs.asdict() == {"units": "K"}
    assert group["scalar"].shape == ()


def test_references_as_parquet_are_verified(parquet_references: fsspec.AbstractFileSystem) -> None:
    """What their consolidated metadata lacks is said; no name is taken for the number of a chunk."""
    store = FsspecStore(parquet_references, read_only=True)
    assert store.get("a/zarr.json") is None
    assert store.get("scalar/zarr.json") is None
    report = zardine.verify(store, path="a")
    assert report.ok
    notes = [each.message for each in zardine.verify(store).notes if each.kind == "nonstandard"]
    assert any("zarr_consolidated_format: the member is missing" in each for each in notes)


NAMES_IN_URLS = ("a b", "a%20b", "a%2Fb", "%41", "100%", "q?x=1", "h#1", "[x]", "a+b", "a\\b", "ü", "p%25")
"""Names that a URL has to escape, and names that look escaped."""


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, pathlib.Path]]:
    """Python's web server, whose folders are HTML pages of links; its URL and its folder."""
    root = tmp_path_factory.mktemp("pages")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", root
    server.shutdown()
    server.server_close()


def test_names_over_http_are_escaped_in_urls(page_server: tuple[str, pathlib.Path]) -> None:
    servers.package("aiohttp")
    url, root = page_server
    group = zardine.create_group(root / "names")
    for number, name in enumerate(NAMES_IN_URLS):
        group.create_array(name, data=np.arange(4) + number, chunks=(2,))
        group.create_group(f"in {name}").create_array(name, data=np.arange(4) - number)
    filesystem = fsspec.filesystem("http")
    store = FsspecStore(filesystem, f"{url}/names")
    assert sorted(store.list_prefix("")) == sorted(LocalStore(root / "names").list_prefix(""))
    for door in (store, fsspec.get_mapper(f"{url}/names"), f"simplecache::{url}/names"):
        far = zardine.open_group(door, mode="r")
        assert sorted(far) == sorted([*NAMES_IN_URLS, *(f"in {name}" for name in NAMES_IN_URLS)])
        for number, name in enumerate(NAMES_IN_URLS):
            assert far[name][:].tolist() == [number, number + 1, number + 2, number + 3]
            assert far[f"in {name}"][name][3] == 3 - number
            assert zardine.open_array(door, path=name, mode="r")[0] == number
    for number, name in enumerate(NAMES_IN_URLS):
        escaped = f"{url}/names/{quote(name, safe='')}"
        assert zardine.open_array(FsspecStore(filesystem, escaped), mode="r")[0] == number


def test_names_on_a_web_server_are_escaped_in_urls() -> None:
    root = servers.nginx().root / uuid.uuid4().hex
    url = f"{servers.nginx().url}/{root.name}"
    for number, name in enumerate(NAMES_IN_URLS):
        zardine.create_array(root / name, data=np.arange(4) + number, chunks=(2,))
        assert zardine.open_array(HTTPStore(url), path=name, mode="r")[3] == 3 + number
        assert zardine.open_array(f"{url}/{quote(name, safe='')}", mode="r")[0] == number
        assert zardine.open_array(f"{url}::{name}", mode="r")[0] == number


def test_links_that_sort_a_page_are_no_names(page_server: tuple[str, pathlib.Path]) -> None:
    servers.package("aiohttp")
    url, root = page_server
    (root / "sorted").mkdir()
    links = ('<a href="?C=N;O=D">Name</a>', '<a href="#top">top</a>', '<a href="b%3F">b?</a>')
    (root / "sorted" / "index.html").write_text("".join(links))
    assert list(FsspecStore(fsspec.filesystem("http"), f"{url}/sorted").list_prefix("")) == ["b?"]


def test_what_is_empty_is_told_by_the_first_file() -> None:
    filesystem = fsspec.filesystem("memory")
    store = FsspecStore(filesystem, path="/empty-or-not")
    assert store.is_empty()
    assert store.is_empty("a")
    for number in range(3):
        store.set(f"a/b{number}/c", b"1")
    assert not store.is_empty()
    assert not store.is_empty("a/b1/")
    assert store.is_empty("a/c")
    looked: list[str] = []
    entries = store._entries
    store._entries = lambda prefix: looked.append(prefix) or entries(prefix)
    assert not store.is_empty("a")
    assert looked == ["a/", "a/b0/"]
    filesystem.rm("/empty-or-not", recursive=True)


def test_s3_additional_kwargs_reach_the_service() -> None:
    bucket = servers.new_bucket()
    asked = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn:aws:kms:us-east-1:1:key/k", "ContentType": "a/b"}
    options = servers.s3_options(s3_additional_kwargs=asked)
    zardine.create_array(f"s3://{bucket}/a.zarr", data=np.arange(3), storage_options=options)
    for name in ("zarr.json", "c/0"):
        told = s3fs_filesystem().call_s3("head_object", Bucket=bucket, Key=f"a.zarr/{name}")
        assert {each: told[each] for each in asked} == asked
