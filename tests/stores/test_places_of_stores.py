"""Which stores are in one place: the same URL at two services is not."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import zardine
from servers import servers
from zardine.hierarchy.place import overlap
from zardine.storage import CachedStore, FsspecStore, LocalStore, MemoryStore, PrefixStore, Store, WrapperStore
from zardine.stores.object.kinds import service_of
from zardine.stores.resolve import resolve_store


def store(url: str, **options):
    return resolve_store(url, storage_options={} if url.startswith("http") else {"anon": True, **options})[0]


def at(endpoint: str):
    return store("s3://b/a", endpoint_url=endpoint)


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        (store("s3://b/a"), store("s3://b/a", region="eu-west-1"), True),
        (store("s3://b/a"), store("s3://b/a/x"), True),
        (store("s3://b/a"), store("s3://b/ab"), False),
        (store("s3://b/a"), store("s3://c/a"), False),
        (store("s3://b/a"), store("gs://b/a"), False),
        (at("http://one:9000"), at("http://two:9000"), False),
        (at("http://one:9000"), at("http://one:9001"), False),
        (at("http://one:9000"), at("https://one:9000/"), True),
        (
            at("http://localhost:1"),
            at("http://127.0.0.1:1"),
            True,
        ),
        (store("s3://b/a"), at("https://s3.eu-west-1.amazonaws.com"), True),
        (store("s3://b/a"), at("http://one:9000"), False),
        (store("az://b/a", account_name="one"), store("az://b/a", account_name="two"), False),
        (store("az://b/a", account_name="one"), store("abfs://b/a", account_name="one"), True),
        (LocalStore("/a"), store("s3://b/a"), False),
        (MemoryStore(), MemoryStore(), False),
        (store("http://host/a"), store("http://host/a/b"), True),
        (store("http://host/a"), store("https://host/a"), False),
    ],
)
def test_two_stores(first, second, one):
    for a, b in ((first, second), (second, first)):
        assert overlap(a, "", b, "") is one
        assert overlap(a.with_read_only(True), "", CachedStore(b), "") is one
        assert overlap(PrefixStore(a, "x"), "", b, "x/y") is overlap(a, "x", PrefixStore(b, "x"), "y")


def test_filesystems_and_urls():
    kind = servers.package("s3fs").S3FileSystem
    here = FsspecStore(kind(anon=True, client_kwargs={"endpoint_url": "http://one:9000"}), "b/a")
    there = FsspecStore(kind(anon=True, endpoint_url="http://two:9000"), "b/a")
    assert overlap(here, "", at("http://one:9000"), "x")
    assert not overlap(here, "", there, "")
    assert not overlap(here, "", store("s3://b/a"), "")


def test_services():
    assert service_of("http://LOCALHOST:9000/") == service_of("127.0.0.1:9000") == "127.0.0.1:9000"
    assert service_of("https://user:pw@host") == "host"
    assert service_of("https://storage.googleapis.com") == service_of("") == ""


def test_convert_between_two_services():
    """The same URL at both, by the options of source and target; at one it is refused."""
    here, there = servers.s3(), servers.s3(1)
    bucket = servers.new_bucket(here)
    urllib.request.urlopen(urllib.request.Request(f"{there.url}/{bucket}", method="PUT")).read()
    url = f"s3://{bucket}/a.zarr"
    options = {name: servers.s3_options(server.url) for name, server in (("storage", here), ("target", there))}
    values = np.arange(16).reshape(4, 4)
    zardine.create_array(url, data=values, chunks=(2, 2), zarr_format=2, storage_options=options["storage"])

    def convert(**given) -> subprocess.CompletedProcess:
        more = [f"--{kind}-option={name}={value}" for kind, each in given.items() for name, value in each.items()]
        command = [sys.executable, "-m", "zardine", "convert", url, url, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "NO_COLOR": "1"})

    refused = convert(storage=options["storage"], target=options["storage"])
    assert refused.returncode != 0
    assert "one place" in refused.stderr
    done = convert(**options)
    assert done.returncode == 0, done.stderr
    found = zardine.open(url, mode="r", storage_options=options["target"])
    assert (found[...] == values).all()
    assert found.metadata.zarr_format == 3
    source = resolve_store(url, storage_options=options["storage"])[0]
    assert json.loads(bytes(source.get(".zarray")))["zarr_format"] == 2
    assert source.get("zarr.json") is None


def test_a_key_of_a_bucket_has_one_name_and_one_at_another_service_has_another():
    def name(made, path):
        inner, place = made.beneath(path)
        return f"{inner.unique_name}/{place}"

    assert (
        name(store("s3://b/a"), "x/y")
        == name(store("s3://b/a/x"), "y")
        == name(PrefixStore(store("s3://b"), "a"), "x/y")
    )
    names = [
        name(made, "x") for made in (store("s3://b/a"), store("gs://b/a"), store("s3://c/a"), at("http://one:9000"))
    ]
    names += [name(at(f"http://one:9001{path}"), "x") for path in ("", "/there")]
    assert len(set(names)) == len(names)
    obstore = pytest.importorskip("obstore.store")
    assert len({zardine.storage.ObjectStore(obstore.MemoryStore()).unique_name for _ in range(20)}) == 20


def test_two_filesystems_of_fsspec_with_the_same_text_have_two_names():
    kind = pytest.importorskip("s3fs").S3FileSystem
    here = FsspecStore(kind(anon=True, endpoint_url="http://one:9000"), "b/a")
    there = FsspecStore(kind(anon=True, endpoint_url="http://two:9000"), "b/a")
    assert str(here) == str(there)
    assert here.unique_name != there.unique_name
    assert here.unique_name == FsspecStore(here._fs, "b/a").unique_name == pickle.loads(pickle.dumps(here)).unique_name
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem

    class Mine(memory):
        cachable = False

        def __init__(self) -> None:
            super().__init__()
            self.store: dict[str, object] = {}

    first, second = FsspecStore(Mine(), "/a"), FsspecStore(Mine(), "/a")
    erasing, other = (zardine.create_group(each, zarr_format=2) for each in (first, second))
    array = other.create_array("x", shape=(4,), dtype="i4")
    erasing.create_array("x", shape=(4,), dtype="i4")
    del erasing["x"]
    array[...] = 1
    assert zardine.open_group(second)["x"][0] == 1
    assert FsspecStore(memory(), "/a").unique_name == FsspecStore(memory(skip_instance_cache=True), "/a").unique_name


def test_a_store_of_another_program_has_a_name_of_its_own():
    class Theirs(WrapperStore):
        def __str__(self) -> str:
            return "theirs"

        def beneath(self, path: str):
            return self, path

        unique_name = Store.unique_name

    first, second = Theirs(MemoryStore()), Theirs(MemoryStore())
    assert first.unique_name != second.unique_name
    assert first.unique_name == first.unique_name == first.with_read_only(True).unique_name
    assert copy.deepcopy(first).unique_name not in (first.unique_name, second.unique_name)
    uninitialised = object.__new__(Theirs)
    assert uninitialised.unique_name == uninitialised.unique_name != first.unique_name
    assert first.__dict__["_unique_number"] == second.__dict__["_unique_number"]  # for who compares all attributes
