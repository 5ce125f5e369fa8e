"""What opening costs where there is no document to answer: in the server's own log, and over a slow line."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.engine import freshness
from zardine.errors import (
    ArrayChangedError,
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    NodeNotFoundError,
    StoreError,
)
from zardine.stores.object.urls import object_store_of_url

CHILDREN = 40


@pytest.fixture(scope="module")
def bucket():
    """A group of many arrays without consolidated metadata, an implied group, and many keys that are no nodes."""
    name = servers.new_bucket()
    store = object_store_of_url("s3", name, servers.s3_options())
    group = zardine.open_group(store, path="group", mode="w")
    for i in range(CHILDREN):
        group.create_array(f"a{i:02}", shape=(4,), chunks=(2,), dtype="f4")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: store.set(f"other/{i % 5}/{i}", b"x"), range(200)))
        zardine.create_array(store, name="implied/deep/a", shape=(1100,), chunks=(1,), dtype="i1")
        list(pool.map(lambda i: store.set(f"implied/deep/a/c/{i}", b"x"), range(1100)))
    store.erase("implied/zarr.json")
    store.erase("implied/deep/zarr.json")
    servers.s3().log()
    return name


def asked() -> list[str]:
    return [" ".join(line.split()[:2]) for line in servers.s3().log()]


def test_nothing_is_asked_for_twice_where_nothing_is(bucket):
    for call, error in ((zardine.open, NodeNotFoundError), (zardine.open_array, ArrayNotFoundError)):
        with pytest.raises(error):
            call(f"s3://{bucket}/other", mode="r", storage_options=servers.s3_options())
        requests = asked()
        documents = [request for request in requests if "list-type" not in request]
        assert 0 < len(documents) == len(set(documents)) <= 8
        assert len(requests) - len(documents) <= 6  # the folder and the five in it, a page each


def test_an_implied_group_is_found_without_listing_chunks(bucket):
    group = zardine.open(f"s3://{bucket}/implied", mode="r", storage_options=servers.s3_options())
    assert isinstance(group, zardine.Group)
    assert len([request for request in asked() if "list-type" in request]) == 3


def test_a_group_is_one_request(bucket):
    for call in (zardine.open, zardine.open_group):
        group = call(f"s3://{bucket}/group", mode="r", zarr_format=3, storage_options=servers.s3_options())
        assert len(asked()) == 1
        assert isinstance(group, zardine.Group)


def test_members_are_asked_for_at_the_same_time(bucket):
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    group = zardine.open_group(f"s3://{bucket}/group", mode="r", storage_options=servers.s3_options(proxy.url))
    proxy.latency, proxy.most_under_way = 0.1, 0
    assert [name for name, _ in group.arrays()] == [f"a{i:02}" for i in range(CHILDREN)]
    assert proxy.most_under_way >= CHILDREN // 2  # all of them, where the machine has nothing else to do
    proxy.close()


def test_a_known_shard_is_one_request_however_long_after(bucket, monkeypatch):
    root, options = f"s3://{bucket}/long", servers.s3_options()
    array = zardine.create_array(root, shape=(16,), chunks=(2,), shards=(8,), dtype="i4", storage_options=options)
    array[...] = range(16)
    array = zardine.open_array(root, mode="r", zarr_format=3, storage_options=options)
    assert array[0] == 0
    monkeypatch.setattr(freshness, "LEASE", 0.0)
    asked()
    assert array[3] == 3
    assert asked() == [f"GET /{bucket}/long/c/0"]
    assert array[9] == 9  # a shard that was not read before: the array may have been resharded
    assert sorted(set(asked())) == [f"GET /{bucket}/long/c/1", f"GET /{bucket}/long/zarr.json"]
    zardine.reshard(root, shards=(16,), grace=0, storage_options=options)
    with pytest.raises(ArrayChangedError):
        array[3]


# servers that forbid to look for what is not there


@pytest.fixture
def proxy():
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    yield proxy
    proxy.close()


def forbidding(but: tuple[str, ...]):
    """As S3 answers whoever may not list the bucket: 403 for every key but some."""
    return lambda method, path, headers: None if path.partition("?")[0].endswith(but) else 403


@pytest.mark.parametrize("latency", [0, 0.03])
def test_what_is_forbidden_does_not_matter_where_a_document_is(bucket, proxy, latency):
    options = servers.s3_options(proxy.url)
    proxy.latency = latency
    proxy.always = forbidding(("zarr.json",))
    place = f"s3://{bucket}/group"
    for call in (zardine.open, zardine.open_array):
        assert call(f"{place}/a01", mode="r", storage_options=options).shape == (4,)
    for call in (zardine.open, zardine.open_group):
        assert call(place, mode="r", storage_options=options)["a02"].shape == (4,)
    with pytest.raises(ContainsArrayError):
        zardine.open_group(f"{place}/a01", mode="r", storage_options=options)
    with pytest.raises(ContainsGroupError):
        zardine.open_array(place, mode="r", storage_options=options)
    proxy.always = lambda method, path, headers: 500 if "/.z" in path else None
    quick = {**options, "max_retries": 0}
    assert zardine.open_array(f"{place}/a01", mode="r", storage_options=quick).shape == (4,)


def test_an_older_array_where_all_else_is_forbidden(bucket, proxy):
    options = servers.s3_options(proxy.url)
    array = zardine.create_array(f"s3://{bucket}/v2", shape=(4,), dtype="i4", zarr_format=2, storage_options=options)
    array.attrs["a"] = 1
    proxy.always = forbidding((".zarray", ".zattrs"))
    for call in (zardine.open, zardine.open_array):
        assert call(f"s3://{bucket}/v2", mode="r", storage_options=options).attrs["a"] == 1
    proxy.always = forbidding((".zarray",))  # attributes that may be there are not taken for none
    with pytest.raises(StoreError, match=r"key '\.zattrs' of .*: forbidden"):
        zardine.open_array(f"s3://{bucket}/v2", mode="r", storage_options=options)


def test_nothing_but_what_is_forbidden_is_told(bucket, proxy):
    options = servers.s3_options(proxy.url)
    proxy.always = forbidding(())
    for call in (zardine.open, zardine.open_array, zardine.open_group):
        with pytest.raises(StoreError, match=r"key 'zarr\.json' of .*: forbidden"):
            call(f"s3://{bucket}/group", mode="r", storage_options=options)
    proxy.always = forbidding(("zarr.json",))
    with pytest.raises(StoreError, match=r"key '\.zarray' of .*: forbidden"):
        zardine.open_array(f"s3://{bucket}/other", mode="r", storage_options=options)


def test_creating_where_documents_of_older_versions_are_forbidden(bucket, proxy):
    options = servers.s3_options(proxy.url)
    proxy.always = lambda method, path, headers: 403 if "/.z" in path else None
    zardine.create_array(f"s3://{bucket}/new", shape=(4,), dtype="i4", storage_options=options)
    with pytest.raises(ContainsArrayError):
        zardine.create_array(f"s3://{bucket}/new", shape=(4,), dtype="i4", storage_options=options)


def test_a_web_server_that_hides_names_with_dots():
    web = servers.nginx()
    zardine.create_array(web.root / "hidden.zarr", shape=(4,), dtype="i4", overwrite=True)
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy.always = lambda method, path, headers: 403 if "/." in path else None
    for call in (zardine.open, zardine.open_array):
        assert call(f"{proxy.url}/hidden.zarr", mode="r").shape == (4,)
    proxy.close()


# options for every function that takes a URL


def test_options_of_stores_wherever_a_url_is_taken(bucket):
    options = {"storage_options": servers.s3_options()}
    place = f"s3://{bucket}/options"
    zardine.save(f"{place}/saved", np.array([1, 2]), **options)
    assert zardine.load(f"{place}/saved", **options).tolist() == [1, 2]
    nodes = {"g": zardine.GroupMetadata()}
    assert "g" in dict(zardine.create_hierarchy(store=place, nodes=nodes, **options))
    zardine.Group.from_store(f"{place}/g/h", **options)
    assert zardine.consolidate_metadata(place, **options).metadata.consolidated_metadata
    assert sorted(zardine.Group.open(place, **options)) == ["g", "saved"]
    copy = {**options, "target_options": servers.s3_options()}
    assert zardine.copy_store(place, f"s3://{bucket}/copied", **copy)[0] > 3
    assert zardine.load(f"s3://{bucket}/copied/saved", **options).tolist() == [1, 2]
