"""What names a store, and file URIs."""

from __future__ import annotations

import os
import pathlib
import re

import pytest

import zardine
from servers import servers
from zardine.errors import InvalidKeyError, ReadOnlyError, StoreError, UnsupportedError
from zardine.storage import (
    FsspecStore,
    LocalStore,
    ManagedMemoryStore,
    MemoryStore,
    ObjectStore,
    StorePath,
    ZipStore,
)
from zardine.stores.resolve import resolve_store
from zardine.stores.url_text import path_of_uri, uri_of_path


@pytest.mark.parametrize(
    ("uri", "windows", "path"),
    [
        ("file:///data", False, "/data"),
        ("file:/data", False, "/data"),
        ("FILE:///data", False, "/data"),
        ("file://localhost/data", False, "/data"),
        ("file://LOCALHOST/data", False, "/data"),
        ("file:///my%20data", False, "/my data"),
        ("file:///a%2Fb%25c%23d%3Fe", False, "/a/b%c#d?e"),
        ("file:///gr%C3%BC%C3%9Fe", False, "/grüße"),
        ("file:///grüße", False, "/grüße"),
        ("file:///a+b", False, "/a+b"),
        ("file:///", False, "/"),
        ("file:///c:/x", False, "/c:/x"),
        ("file:///c:/my%20data", True, "c:/my data"),
        ("file:/c:/x", True, "c:/x"),
        ("file://localhost/C:/x", True, "C:/x"),
        ("file:///c|/x", True, "c:/x"),
        ("file:///c:", True, "c:/"),
        ("file:///no/drive", True, "/no/drive"),
    ],
)
def test_file_uris(uri, windows, path):
    assert path_of_uri(uri, windows=windows) == path


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("file://server/data", UnsupportedError),
        ("file://relative", UnsupportedError),
        ("file://./relative", UnsupportedError),
        ("file://127.0.0.1/data", UnsupportedError),
        ("file:data", StoreError),
        ("file:", StoreError),
        ("file://", StoreError),
        ("file:///a?b", StoreError),
        ("file:///a#b", StoreError),
        ("file:///a%00b", StoreError),
        ("file:///a%zz", StoreError),
        ("file:///a%", StoreError),
    ],
)
def test_bad_file_uris(uri, error):
    with pytest.raises(error):
        path_of_uri(uri)


def test_uris_round_trip(tmp_path):
    for name in ("plain", "my data", "a%20b", "a#b?c", "grüße", "a+b;c=d,e", "x\udcff", "a:b@c"):
        path = str(tmp_path / name)
        assert path_of_uri(uri_of_path(path)) == path
        store = LocalStore(tmp_path / name)
        assert resolve_store(str(store)) == (store, "")
    assert str(LocalStore("/my data")) == "file:///my%20data"
    assert str(LocalStore("/")) == "file:///"


def test_paths(tmp_path):
    store = LocalStore(tmp_path / "a")
    for like in (str(tmp_path / "a"), tmp_path / "a", f"{tmp_path}/a/", f"file://{tmp_path}/a"):
        assert resolve_store(like) == (store, "")
        assert resolve_store(like, path="/x//y/") == (store, "x/y")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="is a file"):
        resolve_store(tmp_path / "file")
    assert resolve_store(tmp_path / "a.zip") == (ZipStore(tmp_path / "a.zip"), "")
    assert resolve_store(f"zip://{tmp_path}/a.b") == (ZipStore(tmp_path / "a.b"), "")
    for text, inner in ((f"{tmp_path}/a", "x/y"), (f"file://{tmp_path}/a", "/x/y/"), (f"{tmp_path}/a", "x//y")):
        assert resolve_store(f"{text}::{inner}") == (store, "x/y")
    assert resolve_store(f"{tmp_path}/a.zip::x", path="y") == (ZipStore(tmp_path / "a.zip"), "x/y")
    assert resolve_store(pathlib.Path("/a::b"))[0].root == pathlib.Path("/a::b")


def test_schemes_without_a_store():
    for text in ("nothing://host/a", "zip+file://x"):
        with pytest.raises(UnsupportedError, match=re.escape(text)):
            resolve_store(text)


@pytest.mark.parametrize(
    ("text", "store", "path"),
    [
        ("s3://bucket/key/a.zarr", "s3://bucket/key/a.zarr", ""),
        ("s3://bucket/a%20b::x/y", "s3://bucket/a%20b", "x/y"),
        ("s3://bucket/a b#c?d::x%20y", "s3://bucket/a b#c?d", "x%20y"),
        ("gs://bucket/50%", "gs://bucket/50%", ""),
        ("az://container/%2F", "az://container/%2F", ""),
        ("https://host/a%20b::x%20y", "https://host/a%20b", "x%20y"),
        ("https://host/a b/%2F", "https://host/a%20b/%2F", ""),
        ("S3A://bucket", "s3://bucket", ""),
        ("gs://bucket/a", "gs://bucket/a", ""),
        ("az://container/a", "az://container/a", ""),
        ("https://host/a.zarr", "https://host/a.zarr", ""),
        ("http://host:81/a//::b", "http://host:81/a", "b"),
        ("memory://name/a::b", "memory://name", "a/b"),
        ("simplecache::memory://k", "simplecache://", ""),
    ],
)
def test_urls(text, store, path, monkeypatch):
    servers.package("obstore")
    servers.package("fsspec")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    found, inner = resolve_store(text)
    assert (str(found).partition("://")[0], inner) == (store.partition("://")[0], path)
    if not text.startswith("simplecache"):
        assert str(found) == store
        assert resolve_store(str(found))[0] == found


def test_stores_of_other_libraries(tmp_path):
    obstore = servers.package("obstore.store")
    fsspec = servers.package("fsspec")
    memory = obstore.MemoryStore()
    assert resolve_store(memory) == (ObjectStore(memory), "")
    assert resolve_store(obstore.LocalStore(tmp_path)) == (LocalStore(tmp_path), "")
    assert resolve_store(fsspec.get_mapper(f"file://{tmp_path}")) == (LocalStore(tmp_path), "")
    found, _ = resolve_store(fsspec.get_mapper("memory://place"))
    assert isinstance(found, FsspecStore)
    with pytest.raises(TypeError, match="of the package obstore"):
        ObjectStore({})
    with pytest.raises(TypeError, match="LocalStore promises more"):
        ObjectStore(obstore.LocalStore(tmp_path))

    class Own(obstore.MemoryStore):
        pass

    own = Own()
    assert resolve_store(own) == (ObjectStore(own), "")
    assert resolve_store(own, path="a/b") == (ObjectStore(own), "a/b")
    for bad in (object(), obstore, fsspec):
        with pytest.raises(TypeError, match="a mapper or filesystem of fsspec"):
            resolve_store(bad)


def test_keys_of_object_stores_are_taken_as_they_are():
    """Percent signs and all, as the command lines of the clouds do; what a store is called opens it again."""
    bucket, options = servers.new_bucket(), servers.s3_options()
    root = resolve_store(f"s3://{bucket}", storage_options=options)[0]
    root.set("precious", b"x")
    names = ["a%20b", "a b", "50%", "%2F", "grüße", "x+y", "#x", "q?x", "%", "a&b=c"]
    for number, name in enumerate(names):
        array = zardine.create_array(f"s3://{bucket}/{name}", data=[number], storage_options=options)
        assert str(array.store) == f"s3://{bucket}/{name}"
    for number, name in enumerate(names):
        assert zardine.open(f"s3://{bucket}/{name}", mode="r", storage_options=options)[0] == number
        assert zardine.open(f"s3://{bucket}::{name}", mode="r", storage_options=options)[0] == number
    zardine.open_group(f"s3://{bucket}/%2F", mode="w", storage_options=options)
    assert root.get("precious") == b"x"
    assert sorted({key.partition("/")[0] for key in root.list()}) == sorted([*names, "precious"])


def test_archives_in_object_stores_are_named_as_they_are(tmp_path):
    bucket, options = servers.new_bucket(), servers.s3_options()
    root = resolve_store(f"s3://{bucket}", storage_options=options)[0]
    for number, name in enumerate(("x y.zip", "x%20y.zip")):
        with ZipStore(tmp_path / name) as store:
            zardine.create_array(store, data=[number])
        root.set(name, (tmp_path / name).read_bytes())
        found = zardine.open(f"s3://{bucket}/{name}", mode="r", storage_options=options)
        assert found[0] == number
        assert zardine.open(str(found.store), mode="r", storage_options=options)[0] == number


def test_memory_urls():
    first, path = resolve_store("memory://shared/a/b")
    assert (type(first), path) == (ManagedMemoryStore, "a/b")
    first.set("k", b"x")
    second, path = resolve_store("memory://shared", path="c")
    assert (second, path) == (first, "c")
    assert second.get("k") == b"x"
    assert resolve_store(str(first))[0] == first
    anonymous, _ = resolve_store("memory://")
    assert anonymous != resolve_store("memory://")[0]
    del first, second
    assert resolve_store("memory://shared")[0].get("k") == b"x"
    resolve_store("memory://shared")[0].erase("k")


def test_others():
    values = {}
    store, path = resolve_store(values)
    assert (store, path) == (MemoryStore(values), "")
    store.set("a", b"x")
    assert values == {"a": b"x"}
    assert resolve_store(store) == (store, "")
    assert resolve_store(StorePath(store, "a") / "b", path="c") == (store, "a/b/c")
    assert isinstance(resolve_store(None)[0], MemoryStore)
    assert isinstance(resolve_store()[0], MemoryStore)
    for bad in (5, b"bytes", ["list"]):
        with pytest.raises(TypeError):
            resolve_store(bad)
    with pytest.raises(InvalidKeyError):
        resolve_store(store, path="a/../b")
    with pytest.raises(StoreError):
        resolve_store("")
    with pytest.raises(ValueError, match="mode"):
        resolve_store(store, mode="x")


def test_read_only():
    store = MemoryStore()
    for keywords in ({"mode": "r"}, {"read_only": True}, {"mode": "a", "read_only": True}):
        opened, _ = resolve_store(store, **keywords)
        assert opened.read_only
        with pytest.raises(ReadOnlyError):
            opened.set("a", b"x")
    for keywords in ({"mode": "r+"}, {"read_only": False}, {}, {"mode": "r", "read_only": False}):
        assert resolve_store(store, **keywords)[0] is store
    closed = store.with_read_only(True)
    assert resolve_store(closed, mode="a")[0] is closed


def test_store_paths(tmp_path):
    place = StorePath(MemoryStore(), "/a//b/")
    assert place.path == "a/b"
    assert (place / "c/d").path == "a/b/c/d"
    assert str(StorePath(LocalStore(tmp_path), "a")) == f"file://{tmp_path}/a"
    assert str(StorePath(LocalStore(tmp_path))) == f"file://{tmp_path}"
    assert place == StorePath(place.store, "a/b")
    assert hash(place) == hash(StorePath(place.store, "a/b"))
    assert place != StorePath(place.store, "a")
    with pytest.raises(InvalidKeyError):
        place / ".."


@pytest.mark.parametrize("path", ["", "a\0b", "a\0b.zip", "a\ud800"])
def test_paths_that_nothing_can_have(path):
    for kind in (str, LocalStore) if not path else (str, pathlib.Path, LocalStore):
        with pytest.raises(StoreError, match="is not the path of a directory"):
            zardine.open(kind(path))
    with pytest.raises(StoreError, match=r"'' .*: '\.' is the current one, and None"):
        zardine.open_group("", mode="w")  # as from a variable that is not set: nothing is erased


@pytest.mark.parametrize(
    ("name", "hint"), [("a.json", "'reference://'"), ("a.NC", "zardine.sources.open"), ("a.h5", "zardine.sources.open")]
)
def test_files_that_are_opened_in_another_way(tmp_path, name, hint):
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(StoreError, match=rf"is a file: a store is a directory; .*{re.escape(hint)}"):
        zardine.open(tmp_path / name)
