"""A web server against the shipped suite: what is written into its directory is read over HTTP."""

from __future__ import annotations

import pickle
import uuid
import warnings

import pytest

from servers import servers
from zardine.errors import StoreError, UnsupportedError
from zardine.storage import HTTPStore, LocalStore, WrapperStore
from zardine.stores.base import WHOLE
from zardine.testing.store import StoreConformance


class Served(WrapperStore):
    """Reads go to the server, everything else to the directory that it serves."""

    def __init__(self, store, web):
        super().__init__(store)
        self.web = web

    def read(self, key, ranges=(WHOLE,)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return self.web.read(self._key(key), ranges)

    def get_partial_values(self, key_ranges):
        return super(WrapperStore, self).get_partial_values(key_ranges)

    def exists(self, key):
        return self.web.exists(key)

    def size(self, key):
        return self.web.size(key)

    def version(self, key):
        return self.web.version(key)

    def erase_version(self, key, version):
        return super(WrapperStore, self).erase_version(key, version)  # of the server's versions

    @property
    def files(self):
        return None

    def set_partial_values(self, key_start_values):
        return self._store.set_partial_values(key_start_values)


class TestHTTP(StoreConformance):
    versions = False  # nginx's ETags are seconds and sizes
    below = ""

    def make_store(self):
        name = uuid.uuid4().hex
        server = servers.nginx()
        return Served(LocalStore(server.root / name), HTTPStore(f"{server.url}/{self.below}{name}"))

    def test_missing_keys(self):
        """Of a directory the server says that it is forbidden; of all else that it is missing."""
        store = self.make_store()
        store.set("a/b", b"x")
        for key in ("b", "a/c", "a/bb"):
            assert store.read(key) is None
            assert store.get(key) is None
            assert not store.exists(key)
            assert store.size(key) is None
            assert store.version(key) is None
        with pytest.raises(StoreError, match="forbidden"):
            store.get("a")

    def test_many_ranges_of_one_value(self):
        store = self.make_store()
        store.set("k", bytes(range(256)))
        reading = store.read("k", ((0, 2), (5, 0), (250, 100), (-1, None), (300, 1)))
        assert [bytes(part) for part in reading.parts] == [b"\0\1", b"", bytes(range(250, 256)), b"\xff", b""]
        assert reading.version is not None

    def test_readers_see_no_mixtures(self):
        """Only where each version has a date or size of its own."""


class TestHTTPWithoutRanges(TestHTTP):
    below = "no-ranges/"

    def test_values_of_any_size(self):
        """Its versions of one size and second are taken for the same."""

    def test_ranges(self):
        store = self.make_store()
        store.set("k", bytes(range(256)))
        with pytest.warns(UserWarning, match="byte ranges"):
            assert store.web.read("k", ((5, 3),)).parts[0] == b"\5\6\7"
        assert store.read("k", ((-2, None), (0, 1))).parts == (b"\xfe\xff", b"\0")
        servers.nginx().log()
        assert store.read("k", ((7, 1),)).parts == (b"\7",)
        assert [line.split()[0] for line in servers.nginx().log()] == ["HEAD"]


def test_it_can_be_read_only():
    url = servers.nginx().url
    store = HTTPStore(f"{url}/a b/")
    assert str(store) == f"{url}/a%20b"
    assert store.read_only
    assert store.with_read_only(False) is store
    assert pickle.loads(pickle.dumps(store)) == store
    for call in (lambda: list(store.list()), lambda: store.list_dir("a/")):
        with pytest.raises(UnsupportedError, match="consolidate_metadata"):
            call()
    for bad in ("ftp://host/a", "https:///a", "https://host/a?b=c", "https://host/a#b"):
        with pytest.raises(StoreError):
            HTTPStore(bad)
