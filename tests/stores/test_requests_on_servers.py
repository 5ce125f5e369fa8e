"""How many requests things cost, counted here and in the servers' own logs."""

from __future__ import annotations

import time

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.storage import CountingStore, HTTPStore
from zardine.stores.object_urls import object_store_of_url

VALUES = np.arange(1, 64 * 64 + 1, dtype="i4").reshape(64, 64)


@pytest.fixture(scope="module")
def bucket():
    """Arrays of 64 shards of 16 inner chunks, and a hierarchy of 300 arrays with consolidated metadata."""
    name = servers.new_bucket()
    root = f"s3://{name}"
    options = servers.s3_options()
    made = zardine.create_array(
        f"{root}/a.zarr", shape=(64, 64), chunks=(2, 2), shards=(8, 8), dtype="i4", storage_options=options
    )
    made[...] = VALUES
    old = zardine.create_array(
        f"{root}/v2.zarr", shape=(64, 64), chunks=(8, 8), dtype="i4", zarr_format=2, storage_options=options
    )
    old[...] = VALUES
    old.attrs["a"] = 1
    group = zardine.open_group(f"{root}/many.zarr", mode="w", storage_options=options)
    for i in range(300):
        group.create_array(f"a{i}", shape=(4,), chunks=(2,), dtype="f4")
    zardine.consolidate_metadata(group.store)
    servers.s3().log()
    return name


def opened(bucket: str, path: str = "a.zarr", **more) -> tuple[CountingStore, zardine.Array]:
    store = CountingStore(object_store_of_url("s3", f"{bucket}/{path}", servers.s3_options()))
    array = zardine.open_array(store, mode="r+", **more)
    servers.s3().log()
    store.reset()
    return store, array


def asked(store: CountingStore | None = None) -> list[str]:
    """The requests in the server's log since the last look, as ``METHOD key``; as many as were counted here."""
    lines = servers.s3().log()
    if store is not None:
        counts = store.reset()
        assert counts.ranges + counts.writes + counts.lists + counts.erases <= len(lines)
    return [f"{line.split()[0]} {line.split()[1].split('/', 2)[2]}" for line in lines]


def test_opening_with_the_format_known_is_one_request(bucket):
    options = servers.s3_options()
    zardine.open_array(f"s3://{bucket}/a.zarr", zarr_format=3, mode="r", storage_options=options)
    assert asked() == ["GET a.zarr/zarr.json"]


def test_opening_an_array_is_three_requests_at_most_at_the_same_time(bucket):
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.latency = 0.1
    for path in ("a.zarr", "v2.zarr"):
        proxy.most_under_way = 0
        array = zardine.open_array(f"s3://{bucket}/{path}", mode="r", storage_options=servers.s3_options(proxy.url))
        assert array.shape == (64, 64)
        assert sorted(asked()) == [f"GET {path}/{name}" for name in (".zarray", ".zattrs", "zarr.json")]
        assert proxy.most_under_way == 3
    zardine.open(f"s3://{bucket}/a.zarr", mode="r", storage_options=servers.s3_options(proxy.url))
    assert asked() == ["GET a.zarr/zarr.json"]
    zardine.open(f"s3://{bucket}/v2.zarr", mode="r", storage_options=servers.s3_options(proxy.url))
    assert len(asked()) == 3
    proxy.close()


def test_a_consolidated_hierarchy_is_one_request(bucket):
    group = zardine.open_group(f"s3://{bucket}/many.zarr", mode="r", storage_options=servers.s3_options())
    assert len(list(group.arrays())) == 300
    assert group["a7"].shape == (4,)
    assert asked() == ["GET many.zarr/zarr.json"]


def test_an_inner_chunk_is_two_requests_cold_and_one_warm(bucket):
    store, array = opened(bucket)
    assert array[0, 0] == 1
    assert asked(store) == ["GET a.zarr/c/0/0"] * 2
    assert (array[2:4, 2:4] == VALUES[2:4, 2:4]).all()
    assert asked(store) == ["GET a.zarr/c/0/0"]


def test_a_whole_shard_is_one_request(bucket):
    store, array = opened(bucket)
    assert (array[:8, :8] == VALUES[:8, :8]).all()
    assert asked(store) == ["GET a.zarr/c/0/0"]
    assert (array[...] == VALUES).all()
    assert len(asked(store)) == 64


def test_writing_an_inner_chunk_is_a_get_and_a_conditional_put(bucket):
    store, array = opened(bucket)
    array[8:10, 0:2] = VALUES[8:10, 0:2]  # the first write looks at the array's document as well
    asked(store)
    array[0:2, 0:2] = VALUES[0:2, 0:2]
    lines = [line.split() for line in servers.s3().log()]
    assert [(line[0], line[3], line[5]) for line in lines] == [("GET", "200", "-"), ("PUT", "200", "IF_MATCH")]
    assert all(line[1].endswith("/a.zarr/c/0/0") for line in lines)
    store.reset()
    array[0, 0] = 5
    assert (store.counts.reads, store.counts.writes) == (1, 1)
    array[0, 0] = VALUES[0, 0]


def test_a_chunk_from_each_of_64_shards_takes_two_round_trips(bucket):
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    store = CountingStore(object_store_of_url("s3", f"{bucket}/a.zarr", servers.s3_options(proxy.url)))
    array = zardine.open_array(store, mode="r", zarr_format=3)
    store.reset()
    proxy.reset()
    assert (array[::8, ::8] == VALUES[::8, ::8]).all()
    assert len(proxy.requests) == store.counts.ranges == 128
    assert proxy.most_under_way > 16
    proxy.close()


def test_nothing_is_listed_where_metadata_answers(bucket):
    options = servers.s3_options()
    group = zardine.open_group(f"s3://{bucket}/many.zarr", mode="r", storage_options=options)
    list(group.keys()), list(group.arrays()), group["a1"], "a2" in group, len(group)
    zardine.open_array(f"s3://{bucket}/a.zarr", mode="r", storage_options=options)[0, 0]
    assert not any("list-type" in line for line in asked())


@pytest.fixture(scope="module")
def web():
    """The arrays of :func:`bucket` as files that nginx serves."""
    server = servers.nginx()
    made = zardine.create_array(
        server.root / "a.zarr", shape=(64, 64), chunks=(2, 2), shards=(8, 8), dtype="i4", overwrite=True
    )
    made[...] = VALUES
    group = zardine.open_group(server.root / "g.zarr", mode="w")
    group.create_array("x/y", shape=(4,), dtype="i4")[...] = 5
    zardine.consolidate_metadata(group.store)
    server.log()
    return server


def test_64_chunks_of_64_shards_at_50_ms_a_request(web):
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy.latency = 0.05
    store = HTTPStore(f"{proxy.url}/a.zarr")
    array = zardine.open_array(store, mode="r", zarr_format=3)
    assert array[0, 0] == 1  # connections and threads are there
    times = []
    for _ in range(3):
        fresh = zardine.open_array(store, mode="r", zarr_format=3)
        begin = time.perf_counter()
        assert (fresh[::8, ::8] == VALUES[::8, ::8]).all()
        times.append(time.perf_counter() - begin)
    assert min(times) < 0.05 * 2 * 4, times  # two round trips, and what two busy processors take for 128 requests
    assert proxy.most_under_way > 32
    proxy.close()


def test_http_by_ranges(web):
    array = zardine.open_array(f"{web.url}/a.zarr", mode="r", zarr_format=3)
    web.log()
    assert array[0, 0] == 1
    assert [line.split()[3] for line in web.log()] == ["206", "206"]
    assert (array[...] == VALUES).all()
    group = zardine.open(f"{web.url}/g.zarr", mode="r")
    assert group["x/y"][0] == 5
    assert list(group) == ["x"]
    array = zardine.open(f"{web.url}/g.zarr::x/y", mode="r")
    assert array.shape == (4,)
    with pytest.raises(zardine.errors.UnsupportedError, match="consolidate_metadata"):
        list(zardine.open_group(f"{web.url}/g.zarr", mode="r", use_consolidated=False))
    with pytest.raises(zardine.errors.ReadOnlyError):
        zardine.open(f"{web.url}/g.zarr")["x/y"][0] = 1


def test_http_without_ranges(web):
    array = zardine.open_array(f"{web.url}/no-ranges/a.zarr", mode="r", zarr_format=3)
    with pytest.warns(UserWarning, match="byte ranges"):
        assert array[0, 0] == 1
    web.log()
    assert (array[:8, :8] == VALUES[:8, :8]).all()
    assert (array[2:4, 2:4] == VALUES[2:4, 2:4]).all()
    assert [line.split()[0] for line in web.log() if line.endswith(" 0")].count("HEAD") >= 1
    assert not any(line.startswith("GET") for line in web.log())
