"""Servers that are slow, hang up, refuse or cut answers short: right data after a retry, or a clear error."""

from __future__ import annotations

import random
import re
import threading
import time

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.errors import StoreError
from zardine.storage import Condition, HTTPStore
from zardine.stores.object.urls import object_store_of_url

QUICK = {"max_retries": 4, "backoff": {}, "read_timeout": 0.5, "connect_timeout": 0.5}
VALUE = random.Random(1).randbytes(100_000)


@pytest.fixture
def proxy(s3_proxy):
    s3_proxy.reset()
    s3_proxy.stall = 1.5
    return s3_proxy


@pytest.fixture(scope="module")
def bucket():
    return servers.new_bucket()


def store_through(proxy, bucket, **options):
    return object_store_of_url("s3", f"{bucket}/faults", servers.s3_options(proxy.url, **{**QUICK, **options}))


QUICK_FAULTS = ["drop", "drop_after", 500, 503, 429, "truncate", "stall", "503_after"]
READ_FAULTS = ["drop", "drop_after", 500, 502, 503, 504, 429, "truncate", "stall", "503_after", "slow"]


@pytest.mark.parametrize("fault", READ_FAULTS)
def test_reads_are_right_after_one_fault(proxy, bucket, fault):
    store = store_through(proxy, bucket)
    store.set("k", VALUE)
    proxy.faults = [fault]
    for ranges in (((0, None),), ((10, 50_000), (-5, None), (70_000, 10))):
        reading = store.read("k", ranges)
        expected = [VALUE[start:] if length is None else VALUE[start : start + length] for start, length in ranges]
        assert [bytes(part) for part in reading.parts] == expected
        proxy.faults = [fault]
    assert list(store.list()) == ["k"]


@pytest.mark.parametrize("fault", ["drop", 503, 429, "truncate", "stall"])
@pytest.mark.parametrize("retries", [0, 1])
def test_a_fault_that_stays_is_a_clear_error(proxy, bucket, fault, retries):
    store = store_through(proxy, bucket, max_retries=retries)
    store.set("k", VALUE)
    proxy.requests.clear()
    proxy.faults = [fault] * 40
    with pytest.raises(StoreError) as caught:
        store.get("k")
    text = str(caught.value)
    assert "'k'" in text
    assert "s3://" in text
    if fault in (503, 429):
        assert "throttling" in text
    if fault == "drop":
        assert "cannot be reached" in text
    made = len(proxy.requests)
    assert (re.search(r" in \d+ tries within [\d.]+ s", text) is not None) == (made > 1), text
    assert (made > 1) == (retries > 0)


@pytest.fixture(params=["s3", "az"])
def faulty(request, proxy, bucket):
    """A proxy, a store behind it, and the same store without the proxy."""
    if request.param == "s3":
        proxy.stall = 0.8
        yield proxy, store_through(proxy, bucket), object_store_of_url("s3", f"{bucket}/faults", servers.s3_options())
        return
    other = FaultProxy(int(servers.azure().url.rpartition(":")[2].partition("/")[0]))
    other.stall = 0.8
    container = servers.new_container()
    options = servers.azure_options(f"{other.url}/{servers.AZURE_ACCOUNT}", **QUICK)
    direct = object_store_of_url("az", f"{container}/faults", servers.azure_options())
    yield other, object_store_of_url("az", f"{container}/faults", options), direct
    other.close()


@pytest.mark.parametrize("fault", QUICK_FAULTS)
def test_what_is_missing_is_missing_after_one_fault(faulty, fault):
    """The answer that says so has a body, too."""
    proxy, store, direct = faulty
    direct.set("there", b"x")
    for ask, expected in (
        (lambda: store.get("nope"), None),
        (lambda: store.read("nope", ((0, 1), (-1, None))), None),
        (lambda: store.exists("nope"), False),
        (lambda: list(store.list_prefix("nope/")), []),
        (lambda: store.list_dir("nope/"), ([], [])),
    ):
        proxy.faults = [fault]
        assert ask() == expected
        assert proxy.faults == []


@pytest.mark.parametrize("fault", QUICK_FAULTS)
def test_what_is_erased_is_erased_after_one_fault(faulty, fault):
    proxy, store, direct = faulty
    for number in range(3):
        direct.set(f"e/{number}", b"x")
    proxy.faults = [fault]
    store.erase("e/0")
    assert list(direct.list_prefix("e/")) == ["e/1", "e/2"]
    proxy.faults = [fault]
    store.erase("e/0")  # which is not there
    proxy.faults = [None, fault]
    store.erase_prefix("e/")
    assert list(direct.list_prefix("e/")) == []


@pytest.mark.parametrize("fault", ["drop", "drop_after", 500, 503, 429, "503_after", "truncate", "stall"])
@pytest.mark.parametrize("conditional", [False, True])
def test_writes_happen_once_or_are_an_error(proxy, bucket, fault, conditional):
    store = store_through(proxy, bucket)
    direct = object_store_of_url("s3", f"{bucket}/faults", servers.s3_options())
    version = direct.set("w", b"old")
    proxy.faults = [fault]
    proxy.matching = lambda method, path: method == "PUT"
    new = store.set("w", b"new", condition=Condition(version) if conditional else None)
    assert direct.get("w") == b"new"
    assert direct.version("w") == new


@pytest.mark.parametrize("fault", ["drop", "drop_after", 503, 429, "503_after", "truncate", "stall"])
def test_azure_after_one_fault(fault):
    proxy = FaultProxy(int(servers.azure().url.rpartition(":")[2].partition("/")[0]))
    proxy.stall = 1.5
    container = servers.new_container()
    direct = object_store_of_url("az", container, servers.azure_options())
    store = object_store_of_url("az", container, servers.azure_options(f"{proxy.url}/{servers.AZURE_ACCOUNT}", **QUICK))
    version = direct.set("k", VALUE)
    for ranges, expected in ((((0, None),), VALUE), (((-50, None),), VALUE[-50:]), (((9, 5),), VALUE[9:14])):
        proxy.faults = [fault]
        assert store.read("k", ranges).parts[0] == expected
    proxy.faults = [fault]
    new = store.set("k", b"new", condition=Condition(version))
    assert (direct.get("k"), direct.version("k")) == (b"new", new)
    proxy.faults = [fault]
    assert list(store.list()) == ["k"]
    proxy.close()


def test_arrays_survive_a_bad_day(proxy, bucket):
    """Random faults in a third of all requests: what comes back is right."""
    url = f"s3://{bucket}/bad-day.zarr"
    options = servers.s3_options(proxy.url, max_retries=10, read_timeout=0.5)
    array = zardine.create_array(
        url, shape=(32, 32), chunks=(4, 4), shards=(16, 16), dtype="i4", storage_options=options
    )
    values = np.random.default_rng(0).integers(0, 1000, (32, 32), "i4")
    proxy.stall = 0.7
    dice = random.Random(0)
    proxy.faults = [dice.choice([*READ_FAULTS[:8], *[None] * 16]) for _ in range(400)]
    kept = 0
    for _ in range(12):
        row, column = dice.randrange(28), dice.randrange(28)
        try:
            array[row : row + 4, column : column + 4] = values[row : row + 4, column : column + 4]
            kept += 1
        except StoreError:
            continue
        try:
            fresh = zardine.open_array(url, mode="r", storage_options=options)
            found = fresh[row : row + 4, column : column + 4]
        except StoreError:
            continue
        assert (found == values[row : row + 4, column : column + 4]).all()
    assert kept > 4
    whole = zardine.open_array(url, mode="r", storage_options=servers.s3_options())[...]
    assert ((whole == 0) | (whole == values)).all()


@pytest.mark.parametrize("fault", ["drop", 503, 429, "truncate", "stall"])
def test_http_reads_are_right_after_one_fault(fault):
    server = servers.nginx()
    (server.root / "value").write_bytes(VALUE)
    proxy = FaultProxy(int(server.url.rpartition(":")[2]))
    proxy.stall = 1.5
    store = HTTPStore(proxy.url, storage_options=QUICK)
    proxy.faults = [fault]
    assert store.get("value") == VALUE
    proxy.faults = [fault]
    assert store.read("value", ((5, 7),)).parts[0] == VALUE[5:12]
    proxy.close()


def test_a_value_replaced_between_two_ranges_is_read_whole(proxy, bucket):
    store = store_through(proxy, bucket)
    direct = object_store_of_url("s3", f"{bucket}/faults", servers.s3_options())
    direct.set("r", b"a" * 1000)
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            direct.set("r", bytes([number % 250]) * 1000)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            reading = store.read("r", ((0, 1), (500, 1), (-1, None)))
            assert len({bytes(part) for part in reading.parts}) == 1
    finally:
        stop.set()
        thread.join()
