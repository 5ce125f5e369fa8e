"""S3 services whose answers lack ETags, or have weak ones: no update is lost without a word."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.errors import UnsupportedError
from zardine.storage import Condition
from zardine.stores.object.urls import object_store_of_url

_ETAG = re.compile(rb"\r\netag: *([^\r]*)", re.IGNORECASE)


@pytest.fixture
def proxy(s3_proxy: FaultProxy) -> Iterator[FaultProxy]:
    s3_proxy.reset()
    yield s3_proxy
    s3_proxy.reset()


def new_array(proxy: FaultProxy, shards: tuple[int, ...] | None) -> zardine.Array:
    array = zardine.create_array(
        f"s3://{servers.new_bucket()}/a",
        shape=(16,),
        chunks=(4,),
        shards=shards,
        dtype="i4",
        storage_options=servers.s3_options(proxy.url),
    )
    array[...] = 1
    return array


def without(*methods: str):
    """Rewrite answers to these methods so that they tell no ETag."""
    return lambda method, head: _ETAG.sub(b"", head) if method in methods else head


def weak(method: str, head: bytes) -> bytes:
    """Rewrite answers so that they tell weak ETags."""
    return _ETAG.sub(rb"\r\nETag: W/\1", head)


@pytest.mark.parametrize("shards", [None, (8,)])
@pytest.mark.parametrize("rewrite", [without("GET"), without("GET", "HEAD", "PUT"), weak])
def test_changing_a_part_is_refused(proxy, rewrite, shards) -> None:
    array = new_array(proxy, shards)
    proxy.rewrite = rewrite
    with pytest.raises(UnsupportedError, match=r"no versions \(no strong ETags\).*allow_lost_updates"):
        array[0] = 5
    with pytest.warns(UserWarning, match="no versions"):
        array.attrs["x"] = 1
    array[8:] = np.arange(8)  # whole chunks and shards
    assert array[...].tolist() == [1] * 8 + list(range(8))
    with zardine.config.set({"allow_lost_updates": True}):
        array[0] = 5
    assert array[:2].tolist() == [5, 1]
    assert dict(array.attrs) == {"x": 1}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("methods", [("PUT",), ("HEAD",), ("PUT", "HEAD")])
def test_etags_of_values_suffice(proxy, methods) -> None:
    array = new_array(proxy, (8,))
    proxy.rewrite = without(*methods)
    for number in range(3):
        array[number] = 5 + number
        array.attrs["x"] = number
    array.append(np.array([9], "i4"))
    assert array[...].tolist() == [5, 6, 7, *[1] * 13, 9]
    assert dict(array.attrs) == {"x": 2}


def test_a_put_without_an_etag_is_done(proxy) -> None:
    store = object_store_of_url("s3", f"{servers.new_bucket()}/a", servers.s3_options(proxy.url))
    proxy.rewrite = without("PUT")
    assert store.set("k", b"x") is None
    version = store.set("l", b"y", condition=Condition(None))
    assert store.get("k") == b"x"
    assert store.read("l").version == version
