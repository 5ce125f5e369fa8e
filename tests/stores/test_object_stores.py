"""Object stores against the shipped suite: S3 (moto), Azure (Azurite), and obstore's own."""

from __future__ import annotations

import pickle

from servers import servers
from zardine.storage import ObjectStore
from zardine.stores.object import buckets
from zardine.stores.object.urls import object_store_of_url
from zardine.testing.store import StoreConformance

obstore_stores = servers.package("obstore.store")


class TestObstoreMemory(StoreConformance):
    def make_store(self):
        return ObjectStore(obstore_stores.MemoryStore())


class TestS3(StoreConformance):
    versions_of_content = True
    rounds = 6

    def make_store(self):
        return object_store_of_url("s3", f"{servers.new_bucket()}/a b/root", servers.s3_options())

    def open_again(self, store):
        url = str(store).removeprefix("s3://")
        return object_store_of_url("s3", url, servers.s3_options())


class TestAzure(StoreConformance):
    rounds = 6

    def make_store(self):
        return object_store_of_url("az", f"{servers.new_container()}/root", servers.azure_options())

    def open_again(self, store):
        url = str(store).removeprefix("az://")
        return object_store_of_url("az", url, servers.azure_options())


def test_stores_of_a_bucket_share_their_connections():
    bucket, options = servers.new_bucket(), servers.s3_options()
    one, other, beside = (object_store_of_url("s3", f"{bucket}/{path}", options) for path in ("a", "ab", "a/c"))
    assert one._inner is other._inner is beside._inner
    again = pickle.loads(pickle.dumps(one))
    assert again._inner is one._inner
    assert again == one != other
    assert str(again) == f"s3://{bucket}/a"
    for store, key in ((one, "x"), (one, "c/y"), (other, "z")):
        store.set(key, b"1")
    assert list(one.list_prefix("")) == ["c/y", "x"]
    assert one.list_dir("") == (["x"], ["c/"])
    assert one.list_dir("c/") == (["c/y"], [])
    assert list(beside.list_prefix("")) == ["y"]
    assert [key for key, _ in other.list_versions("")] == ["z"]
    one.erase_values(["c/y", "x"])
    assert list(one.list_prefix("")) == []
    assert other.get("z") == b"1"


def test_other_credentials_are_other_connections(monkeypatch):
    bucket, options = servers.new_bucket(), servers.s3_options()
    one = object_store_of_url("s3", f"{bucket}/a", options)
    assert object_store_of_url("s3", f"{bucket}/a", {**options, "key": "another"})._inner is not one._inner
    monkeypatch.setenv("AWS_SESSION_TOKEN", "given since")
    assert object_store_of_url("s3", f"{bucket}/a", options)._inner is not one._inner
    monkeypatch.undo()
    monkeypatch.setattr(buckets, "_KEPT", -1.0)  # files of credentials may have changed by then
    assert object_store_of_url("s3", f"{bucket}/a", options)._inner is not one._inner


def test_the_store_of_obstore_is_of_the_same_place():
    store = object_store_of_url("s3", f"{servers.new_bucket()}/a", servers.s3_options())
    store.set("k", b"1")
    wrapped = ObjectStore(store.store)
    assert store.store.prefix == "a"
    assert wrapped.get("k") == b"1"
    assert wrapped == store
    assert hash(wrapped) == hash(store)
