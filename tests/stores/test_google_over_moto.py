"""Google's XML API is like that of S3, so moto stands behind its client: for reading, listing and plain writes.

What moto does not have is generations, by which Google compares: for conditional puts there is ``gcs_server``.
"""

from __future__ import annotations

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.errors import StoreError
from zardine.stores.object.urls import object_store_of_url
from zardine.testing.store import StoreConformance


def options(url: str | None = None, **more) -> dict:
    return {"endpoint_url": url or servers.s3().url, "bearer_token": "t", **more}


class TestGoogle(StoreConformance):
    versions = False
    rounds = 4

    def make_store(self):
        return object_store_of_url("gs", f"{servers.new_bucket()}/a b/root", options())

    def open_again(self, store):
        return object_store_of_url("gs", str(store).removeprefix("gs://"), options())

    def test_many_ranges_of_one_value(self):
        store = self.make_store()
        store.set("k", bytes(range(256)))
        reading = store.read("k", ((0, 2), (5, 0), (250, 100), (-1, None), (300, 1)))
        assert [bytes(part) for part in reading.parts] == [b"\0\1", b"", bytes(range(250, 256)), b"\xff", b""]

    def test_readers_see_no_mixtures(self):
        """Only where there are versions."""


def test_anonymous_reading():
    values = np.arange(64).reshape(8, 8)
    public, private = servers.new_bucket(x_amz_acl="public-read"), servers.new_bucket()
    for bucket in (public, private):
        store = object_store_of_url("s3", f"{bucket}/a", servers.s3_options())
        zardine.create_array(store, shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="i4")[...] = values
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    given = {"endpoint_url": proxy.url, "token": "anon", "max_retries": 0}
    with pytest.raises(StoreError, match="forbidden"):
        zardine.open(f"gs://{private}/a", mode="r", storage_options=given)
    found = zardine.open(f"gs://{public}/a", mode="r", storage_options=given)
    assert (found[...] == values).all()
    assert (found[1:6, 3] == values[1:6, 3]).all()
    assert found.nchunks_initialized > 0
    assert not any("authorization" in headers for headers in proxy.headers)
    proxy.close()


@pytest.mark.parametrize("speculative", [False, True])
def test_a_shard_is_read_by_ranges(speculative):
    """Or by one, of all of it, where it is small."""
    bucket = servers.new_bucket()
    array = zardine.create_array(
        f"gs://{bucket}/a", data=np.arange(64), chunks=(2,), shards=(64,), storage_options=options()
    )
    array = zardine.open_array(array.store, mode="r", zarr_format=3)
    servers.s3().log()
    with zardine.config.set({"speculative_read": speculative}):
        assert array[5] == 5
    lines = [line.split() for line in servers.s3().log()]
    assert [(line[0], line[3]) for line in lines] == [("GET", "206")] * (1 if speculative else 2)


@pytest.mark.parametrize("fault", ["drop", 503, 429, "truncate", "stall"])
def test_google_after_one_fault(fault):
    bucket = servers.new_bucket()
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.stall = 0.8
    quick = {"max_retries": 4, "backoff": {}, "read_timeout": 0.5}
    store = object_store_of_url("gs", f"{bucket}/a", options(proxy.url, **quick))
    store.set("k", b"0123456789" * 100)
    for ask, expected in (
        (lambda: store.get("k"), b"0123456789" * 100),
        (lambda: store.read("k", ((-5, None),)).parts[0], b"56789"),
        (lambda: store.get("nope"), None),
        (lambda: list(store.list()), ["k"]),
        (lambda: store.erase("k"), None),
        (lambda: list(store.list()), []),
    ):
        proxy.faults = [fault]
        assert ask() == expected
    proxy.close()
