"""Object stores against the shipped suite: S3 (moto), Azure (Azurite), and obstore's own."""

from __future__ import annotations

from servers import servers
from zardine.storage import ObjectStore
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
