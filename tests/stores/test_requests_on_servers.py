"""How many requests things cost, counted here and in the servers' own logs."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.engine import freshness
from zardine.storage import Condition, CountingStore, HTTPStore
from zardine.stores.object.urls import object_store_of_url

VALUES = np.arange(1, 64 * 64 + 1, dtype="i4").reshape(64, 64)


@pytest.fixture(autouse=True)
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LEASE", 600.0)  # however slow this machine is


@pytest.fixture(scope="module")
def bucket():
    """Arrays of 64 shards of 16 inner chunks, and a hierarchy of 60 arrays with consolidated metadata."""
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
    for i in range(60):
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
        assert counts.requests == len(lines)
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
    assert len(list(group.arrays())) == 60
    assert group["a7"].shape == (4,)
    assert asked() == ["GET many.zarr/zarr.json"]


BY_RANGES = pytest.mark.parametrize("by_ranges", [False, True], ids=["small shards whole", "by ranges"])


@BY_RANGES
def test_an_inner_chunk_is_one_request_or_two_cold_and_one_warm(bucket, by_ranges):
    """A small shard comes along with its index."""
    store, array = opened(bucket)
    with zardine.config.set({"speculative_read": not by_ranges}):
        assert array[0, 0] == 1
    assert asked(store) == ["GET a.zarr/c/0/0"] * (1 + by_ranges)
    assert (array[2:4, 2:4] == VALUES[2:4, 2:4]).all()
    assert asked(store) == ["GET a.zarr/c/0/0"]


def test_a_whole_shard_is_one_request(bucket):
    store, array = opened(bucket)
    assert (array[:8, :8] == VALUES[:8, :8]).all()
    assert asked(store) == ["GET a.zarr/c/0/0"]
    assert (array[...] == VALUES).all()
    assert len(asked(store)) == 64


def test_writing_an_inner_chunk_is_a_get_and_a_conditional_put(bucket):
    """And one look at the document a lease, of which opening is the first."""
    store, array = opened(bucket)
    array[0:2, 0:2] = VALUES[0:2, 0:2]
    assert asked(store) == ["GET a.zarr/c/0/0", "PUT a.zarr/c/0/0"]
    array._handle.watch.forget()  # as after a lease
    array[0:2, 0:2] = VALUES[0:2, 0:2]
    lines = [line.split() for line in servers.s3().log()]
    looks = [line[0] for line in lines if line[1].endswith("/a.zarr/zarr.json")]
    lines = [line for line in lines if not line[1].endswith("/a.zarr/zarr.json")]
    assert looks == ["GET"]
    assert [(line[0], line[3], line[5]) for line in lines] == [("GET", "200", "-"), ("PUT", "200", "IF_MATCH")]
    assert all(line[1].endswith("/a.zarr/c/0/0") for line in lines)
    store.reset()
    array[0, 0] = 5
    assert (store.counts.reads, store.counts.writes) == (1, 1)
    assert asked(store) == ["GET a.zarr/c/0/0", "PUT a.zarr/c/0/0"]
    array[0, 0] = VALUES[0, 0]


def test_writing_whole_shards_is_a_put_each(bucket):
    """And one look at the document a lease, of which opening is the first."""
    store, array = opened(bucket)
    array[...] = VALUES
    puts = asked(store)
    assert len(puts) == len(set(puts)) == 64
    assert all(line.startswith("PUT a.zarr/c/") for line in puts)
    array._handle.watch.forget()  # as after a lease
    array[...] = VALUES
    assert sorted(asked(store)) == sorted([*puts, "GET a.zarr/zarr.json"])


@BY_RANGES
def test_a_chunk_from_each_of_64_shards_is_one_request_each_or_two(bucket, by_ranges):
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    store = CountingStore(object_store_of_url("s3", f"{bucket}/a.zarr", servers.s3_options(proxy.url)))
    array = zardine.open_array(store, mode="r", zarr_format=3)
    store.reset()
    proxy.reset()
    with zardine.config.set({"speculative_read": not by_ranges}):
        assert (array[::8, ::8] == VALUES[::8, ::8]).all()
    assert len(proxy.requests) == store.counts.ranges == store.counts.requests == 64 * (1 + by_ranges)
    assert proxy.most_under_way > 16
    proxy.close()


@BY_RANGES
@pytest.mark.parametrize("axis", [0, 1])
def test_a_plane_of_several_chunks_of_each_shard(bucket, axis, by_ranges):
    """Four chunks of each of eight shards: the index of each, and the chunks in one range, since they are near."""
    store, array = opened(bucket)
    selection = (3, slice(None)) if axis == 0 else (slice(None), 3)
    with zardine.config.set({"speculative_read": not by_ranges}):
        assert (array[selection] == VALUES[selection]).all()
    assert len(asked(store)) == 8 * (1 + by_ranges)
    assert (array[selection] == VALUES[selection]).all()
    assert len(asked(store)) == 8


def test_a_plane_of_chunks_that_are_far_apart():
    """Of each shard the chunks of the plane, and nothing of what lies between: far more bytes than a request costs."""
    bucket, options = servers.new_bucket(), servers.s3_options()
    values = np.random.default_rng(0).integers(0, 255, (1, 4, 2**21), "u1")
    values = np.concatenate([values, values + 1])
    array = zardine.create_array(
        f"s3://{bucket}/far",
        data=values,
        chunks=(1, 1, 2**20),
        shards=(2, 4, 2**20),
        compressors=None,
        storage_options=options,
    )
    store = CountingStore(object_store_of_url("s3", f"{bucket}/far", options))
    array = zardine.open_array(store, mode="r", zarr_format=3)
    store.reset()
    servers.s3().log()
    assert (array[:, 2] == values[:, 2]).all()
    lines = servers.s3().log()
    assert len(lines) == store.counts.requests == 2 + 2 * 2
    assert sum(int(line.split()[4]) for line in lines) < 4 * 2**20 + 2000


OPERATIONS = {
    "set": lambda store: store.set("k", b"abcdef"),
    "replace": lambda store: store.set("k", b"abcdef", condition=Condition(store.version("k"))),
    "create": lambda store: store.set("c", b"x", condition=Condition(None)),
    "get": lambda store: store.get("k"),
    "get what is missing": lambda store: store.get("nope"),
    "the end": lambda store: store.read("k", ((-3, None),)),
    "ranges": lambda store: store.read("k", ((0, 1), (2, 2), (-1, None))),
    "nothing": lambda store: store.read("k", ((0, 0),)),
    "beyond": lambda store: store.read("k", ((10, 5),)),
    "facts": lambda store: (store.size("k"), store.exists("nope"), store.version("k")),
    "lists": lambda store: (list(store.list()), store.list_dir(""), list(store.list_prefix("no/"))),
    "set much": lambda store: store.set("big", bytes(65 * 2**20)),
    "several": lambda store: store.get_partial_values([("big", (5, 5)), ("k", (0, 1)), ("big", (-5, None))]),
    "erase": lambda store: store.erase("k"),
    "erase all": lambda store: store.erase_prefix(""),
}


@pytest.mark.parametrize("kind", ["s3", "az"])
def test_the_counts_are_those_of_the_servers_log(kind):
    if kind == "s3":
        server, place, options = servers.s3(), servers.new_bucket(), servers.s3_options()
    else:
        server, place, options = servers.azure(), servers.new_container(), servers.azure_options()
    store = CountingStore(object_store_of_url(kind, f"{place}/r", options))
    for name, operation in OPERATIONS.items():
        server.log()
        store.reset()
        operation(store)
        lines = [line for line in server.log() if kind == "s3" or "HTTP/1.1" in line]
        assert store.counts.requests == len(lines), (name, lines)
    assert list(store.list()) == []


def test_many_names_are_several_requests():
    bucket = servers.new_bucket()
    store = CountingStore(object_store_of_url("s3", bucket, servers.s3_options()))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.set(f"n{number:04}", b""), range(1001)))
    servers.s3().log()
    store.reset()
    assert len(list(store.list())) == 1001
    assert len(store.list_dir("")[0]) == 1001
    assert store.counts.requests == len(servers.s3().log()) == 4
    store.reset()
    store.erase_values(f"n{number:04}" for number in range(1001))
    assert store.counts.requests == len(servers.s3().log()) == 2


def test_copying_asks_for_many_objects_at_a_time(bucket):
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    options = {"storage_options": servers.s3_options(proxy.url)}
    source = zardine.open_array(f"s3://{bucket}/a.zarr", mode="r", **options)
    proxy.reset()
    proxy.latency = 0.02
    made = zardine.from_array(f"s3://{bucket}/copied.zarr", data=source, **options)
    assert len(proxy.requests) == 2 + 2 * 64  # a list and the document, and each shard there and here
    assert proxy.rounds() < 40
    assert (made[...] == VALUES).all()
    proxy.reset()
    proxy.latency = 0.02
    places = [f"s3://{bucket}/{name}.zarr" for name in ("a", "raw-copy")]
    how = {name: servers.s3_options(proxy.url) for name in ("storage_options", "target_options")}
    assert zardine.copy_store(*places, **how)[:2] == (65, 0)
    assert len(proxy.requests) == 4 + 2 * 65  # two look whether nodes may be there
    assert proxy.rounds() < 40
    assert (zardine.open_array(places[1], **options)[...] == VALUES).all()
    servers.s3().log()
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


@BY_RANGES
def test_64_chunks_of_64_shards_take_one_round_trip_or_two(web, by_ranges):
    """All shards at the same time; or all indices, then all chunks: told by which requests waited for others."""
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    store = HTTPStore(f"{proxy.url}/a.zarr")
    array = zardine.open_array(store, mode="r", zarr_format=3)
    assert array[0, 0] == 1  # connections and threads are there
    seen = []
    for _ in range(15):
        fresh = zardine.open_array(store, mode="r", zarr_format=3)
        proxy.reset()
        proxy.latency = 0.1
        with zardine.config.set({"speculative_read": not by_ranges}):
            assert (fresh[::8, ::8] == VALUES[::8, ::8]).all()
        assert len(proxy.requests) == 64 * (1 + by_ranges)
        seen.append((proxy.rounds(), proxy.most_under_way))
        if seen[-1] == (1 + by_ranges, 64):
            break
    # fewer than 64 at a time would take twice as many rounds; with 64 a busy machine may begin some late
    assert min(rounds for rounds, _ in seen) == 1 + by_ranges, seen
    assert max(most for _, most in seen) == 64, seen
    proxy.close()


def test_stores_of_one_web_server_share_their_connections(web):
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    stores = [HTTPStore(f"{proxy.url}/{path}") for path in ("", "a.zarr", "g.zarr/x/y")]
    assert len({id(store._inner) for store in stores}) == 1
    assert stores[1] == HTTPStore.of(stores[1].store) == HTTPStore(f"{proxy.url}/a.zarr/")
    assert stores[1] != stores[2]
    assert HTTPStore(proxy.url, storage_options={"headers": {"X-A": "b"}})._inner is not stores[0]._inner
    proxy.close()


@pytest.mark.parametrize(
    "path",
    [
        "/a",
        "/a/b.zarr",
        "/a=1/b+c@d~e",
        "/a%20b",
        "/a%2Fb/c",
        "/a//b",
        "/a/%2E%2E/b",
        "/a:b;c,d",
        "/ä",
        "/~%41",
        "/..a/b.",
    ],
)
def test_the_path_of_a_url_is_asked_for_as_it_stands(web, path):
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    store = HTTPStore(f"{proxy.url}{path}")
    assert store.get("k/0") is None
    encoded = path.replace("ä", "%C3%A4").replace("/%2E%2E/b", "/b").replace("/a/b", "/b" if "%2E" in path else "/a/b")
    assert proxy.requests == [f"GET {encoded}/k/0"]
    assert str(store) == f"{proxy.url}{encoded}"
    proxy.close()


def test_http_by_ranges(web):
    array = zardine.open_array(f"{web.url}/a.zarr", mode="r", zarr_format=3)
    web.log()
    assert array[0, 0] == 1
    assert [line.split()[3] for line in web.log()] == ["206"]  # all of it by one range, since it is small
    with zardine.config.set({"speculative_read": False}):
        assert array[8, 8] == VALUES[8, 8]
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


# Azure


@pytest.fixture(scope="module")
def container():
    """As :func:`bucket`, and an array whose indices are at the start of the shards."""
    name = servers.new_container()
    options = servers.azure_options()
    for path, location in (("a.zarr", "end"), ("start.zarr", "start")):
        made = zardine.create_array(
            f"az://{name}/{path}",
            shape=(64, 64),
            chunks=(2, 2),
            shards={"shape": (8, 8), "index_location": location},
            dtype="i4",
            storage_options=options,
        )
        made[...] = VALUES
    group = zardine.open_group(f"az://{name}/many.zarr", mode="w", storage_options=options)
    for i in range(30):
        group.create_array(f"a{i}", shape=(4,), chunks=(2,), dtype="f4")
    zardine.consolidate_metadata(group.store)
    servers.azure().log()
    return name


def asked_azure() -> list[str]:
    """The requests in Azurite's log since the last look, as ``METHOD key``."""
    lines = [line.split('"')[1] for line in servers.azure().log() if "HTTP/1.1" in line]
    return [f"{line.split()[0]} {line.split()[1].split('/', 3)[3]}" for line in lines]


def test_opening_on_azure(container):
    options = servers.azure_options()
    zardine.open_array(f"az://{container}/a.zarr", zarr_format=3, mode="r", storage_options=options)
    assert asked_azure() == ["GET a.zarr/zarr.json"]
    zardine.open_array(f"az://{container}/a.zarr", mode="r", storage_options=options)
    assert sorted(asked_azure()) == [f"GET a.zarr/{name}" for name in (".zarray", ".zattrs", "zarr.json")]
    group = zardine.open_group(f"az://{container}/many.zarr", mode="r", storage_options=options)
    assert len(list(group.arrays())) == 30
    assert asked_azure() == ["GET many.zarr/zarr.json"]


@pytest.mark.parametrize(("path", "of_the_index"), [("a.zarr", ["HEAD", "GET"]), ("start.zarr", ["GET"])])
def test_reading_and_writing_on_azure(container, path, of_the_index):
    """Azure has no ranges counted from the end, so that an index there costs one request more: for the size."""
    store = CountingStore(object_store_of_url("az", f"{container}/{path}", servers.azure_options()))
    array = zardine.open_array(store, mode="r+", zarr_format=3)
    key = f"{path}/c/0/0"

    def requests() -> list[str]:
        lines = asked_azure()
        assert store.reset().requests == len(lines)
        return lines

    requests()
    assert array[0, 0] == 1
    assert requests() == [f"{method} {key}" for method in of_the_index]  # the small shard came along with it
    assert (array[2:4, 2:4] == VALUES[2:4, 2:4]).all()
    assert requests() == [f"GET {key}"]
    array = zardine.open_array(store, mode="r+", zarr_format=3)
    requests()
    assert (array[:8, :8] == VALUES[:8, :8]).all()
    assert requests() == [f"GET {key}"]
    assert (array[::8, ::8] == VALUES[::8, ::8]).all()
    assert len(requests()) == 63 * len(of_the_index) + 1  # one index is known
    assert (array[3] == VALUES[3]).all()
    assert len(requests()) == 8
    array[8:10, 0:2] = VALUES[8:10, 0:2]  # the first write looks at the array's document as well
    requests()
    array[0, 0] = VALUES[0, 0]
    assert [line for line in requests() if line.endswith(key)] == [f"GET {key}", f"PUT {key}"]


# on the command line


def test_info_tells_the_requests(bucket, container, web):
    """As many as the server has in its log."""
    s3, azure = servers.s3_options(), servers.azure_options()
    for url, options, log in (
        (f"s3://{bucket}/a.zarr", s3, servers.s3()),
        (f"az://{container}/a.zarr", azure, servers.azure()),
        (f"{web.url}/a.zarr", {}, web),
    ):
        log.log()
        given = [f"--storage-option={name}={value}" for name, value in options.items()]
        command = [sys.executable, "-m", "zardine", "info", url, "--requests", "--json", "--complete", *given]
        if log is web:
            command.remove("--complete")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        lines = [line for line in log.log() if log is not servers.azure() or "HTTP/1.1" in line]
        assert json.loads(done.stdout)["requests"]["requests"] == len(lines) > 0


def test_a_web_server_that_is_asked_by_two_clients(web):
    store = CountingStore(HTTPStore(f"{web.url}/no-length/a.zarr"))
    array = zardine.open_array(store, mode="r", zarr_format=3)
    web.log()
    store.reset()
    with pytest.warns(UserWarning, match="byte ranges"):
        assert array[0, 0] == 1
    assert store.counts.requests == len(web.log()) == 3


@pytest.mark.parametrize("new", [b"B" * 300, b"B" * 3000, None], ids=["shorter", "longer", "removed"])
def test_a_value_that_changes_while_its_answer_breaks_off_is_read_anew(new):
    bucket = servers.new_bucket()
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    direct = object_store_of_url("s3", f"{bucket}/k", servers.s3_options())
    direct.set("v", b"A" * 1000)
    store = object_store_of_url("s3", f"{bucket}/k", servers.s3_options(proxy.url))
    asked = []

    def fault(method, path, headers):
        asked.append(method)
        if asked.count("GET") == 2:
            direct.erase("v") if new is None else direct.set("v", new)
        return "truncate" if asked.count("GET") == 1 else None

    proxy.always = fault
    found = store.get("v")
    assert (None if found is None else bytes(found)) == new
    proxy.close()
