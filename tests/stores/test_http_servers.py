"""Web servers that know little, ask for a password, or answer with something else: nginx, set up so."""

from __future__ import annotations

import base64
import contextlib
import gzip
import pickle
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy, answer
from zardine.errors import MetadataError, StoreError
from zardine.storage import HTTPStore, ZipStore
from zardine.stores.http import store as http_store
from zardine.stores.http.encodings import CompressedAnswerError
from zardine.stores.http.plain import PlainError, PlainHTTP
from zardine.stores.resolve import resolve_store

VALUES = np.arange(1, 10_001, dtype="i4").reshape(100, 100)
QUIET = pytest.mark.filterwarnings("ignore:.*byte ranges")


@pytest.fixture(scope="module")
def web():
    server = servers.nginx()
    zardine.create_array(
        server.root / "less.zarr", data=VALUES, chunks=(10, 10), shards=(50, 50), compressors=None, overwrite=True
    )
    server.log()
    return server


def asked(web, method: str) -> list[str]:
    return [line for line in web.log() if line.startswith(method)]


def read_all_chunks_of_one_shard(array) -> None:
    for row in range(0, 50, 10):
        for column in range(0, 50, 10):
            part = np.s_[row : row + 10, column : column + 10]
            assert (array[part] == VALUES[part]).all()


@QUIET
@pytest.mark.parametrize(
    ("place", "by_ranges", "along"),
    [
        ("", (26, 0), (25, 0)),  # the index, and each chunk; the first one along with the index
        ("no-ranges/", (2, 25), (2, 24)),  # one that shows it, the whole; then whether it is still so
        ("nothing/", (2, 0), (2, 0)),  # neither ETag nor date: nothing to be asked
        ("no-head/", (26, 0), (25, 0)),
        ("no-head-no-ranges/", (2, 1), (2, 1)),
        ("no-length/", (3, 0), (3, 0)),  # one more for the answer that obstore does not take
        ("no-length-but-etag/", (3, 50), (3, 48)),
        ("away/", (52, 0), (50, 0)),  # each with a redirection
    ],
)
@pytest.mark.parametrize("speculative", [False, True], ids=["by ranges", "along"])
def test_requests_for_the_chunks_of_one_shard(web, place, by_ranges, along, speculative):
    """What is asked for, by method: of the first chunk, index and chunk are one request where so much is small."""
    array = zardine.open_array(f"{web.url}/{place}less.zarr", mode="r", zarr_format=3)
    web.log()
    with zardine.config.set({"speculative_read": speculative}):
        read_all_chunks_of_one_shard(array)
    lines = web.log()
    asked_for = tuple(sum(line.startswith(method) for line in lines) for method in ("GET", "HEAD"))
    assert asked_for == (along if speculative else by_ranges)
    store = array.store
    assert store.exists("c/0/0")
    assert not store.exists("c/0/7")
    assert store.size("c/0/0") == (web.root / "less.zarr/c/0/0").stat().st_size
    assert (array[...] == VALUES).all()


@QUIET
@pytest.mark.parametrize("form", ["the whole", "the range", "the range, which is not said"])
@pytest.mark.parametrize("speculative", [False, True], ids=["by ranges", "along"])
def test_a_proxy_that_compresses_ranges_is_an_error_that_says_so_or_does_no_harm(web, form, speculative):
    """Of a range it compresses the whole value, or the part, and tells another length than it has."""
    shard = (web.root / "less.zarr/c/0/0").read_bytes()
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))

    def compressed(method, path, headers):
        if not path.endswith("c/0/0") or "range" not in headers:
            return None
        wanted = headers["range"].removeprefix("bytes=")
        start = max(0, len(shard) + int(wanted)) if wanted.startswith("-") else int(wanted.partition("-")[0])
        stop = len(shard) if wanted.startswith("-") else min(len(shard), int(wanted.partition("-")[2]) + 1)
        if form == "the whole":
            return answer(200, gzip.compress(shard), content_encoding="gzip", etag='"a"')
        length = {"content_range": f"bytes {start}-{stop - 1}/{len(shard)}"} if form == "the range" else {}
        return answer(206, gzip.compress(shard[start:stop]), content_encoding="gzip", etag='"a"', **length)

    proxy.always = compressed
    array = zardine.open_array(f"{proxy.url}/less.zarr", mode="r", zarr_format=3)
    with zardine.config.set({"speculative_read": speculative}):
        if form == "the whole":  # then that is asked for, which it leaves as it is
            assert array[3, 4] == VALUES[3, 4]
        else:
            told = r"compressed the answer \(Content-Encoding: gzip\)" if form == "the range" else "ontent-?Range"
            with pytest.raises(StoreError, match=f"'c/0/0' of .*{told}"):
                array[3, 4]
    proxy.close()


@pytest.mark.parametrize("options", [{}, {"headers": {"accept-encoding": "gzip"}}])
def test_bytes_are_asked_for_as_they_are_stored(web, options):
    """A server that compresses for who does not say that he takes none, and one that does so for everybody."""
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))

    def compressed(method, path, headers):
        if method == "HEAD" or headers.get("accept-encoding") == "identity":
            return None
        return answer(200, gzip.compress((web.root / path[1:]).read_bytes()), content_encoding="gzip")

    proxy.always = compressed
    store = HTTPStore(f"{proxy.url}/less.zarr", storage_options=options)
    if not options:
        assert (zardine.open_array(store, mode="r", zarr_format=3)[...] == VALUES).all()
    else:
        with pytest.raises(StoreError, match=r"'zarr.json' of .*: the server has compressed the answer .*gzip off"):
            zardine.open_array(store, mode="r", zarr_format=3)
    with pytest.raises(CompressedAnswerError):
        PlainHTTP(f"{proxy.url}/less.zarr", {"default_headers": {"Accept-Encoding": "br"}}).get("c/0/0")
    assert PlainHTTP(f"{proxy.url}/less.zarr", {}).get("c/0/0")[1] == (web.root / "less.zarr/c/0/0").read_bytes()
    proxy.close()


@QUIET
def test_many_threads_read_a_whole_value_once(web):
    array = zardine.open_array(f"{web.url}/nothing/less.zarr", mode="r", zarr_format=3)
    web.log()
    store = array.store
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(16) as pool:
        parts = list(pool.map(lambda start: bytes(store.read("c/0/0", ((start, 10),)).parts[0]), range(64)))
    whole = (web.root / "less.zarr/c/0/0").read_bytes()
    assert parts == [whole[start : start + 10] for start in range(64)]
    sizes = [int(line.split()[4]) for line in asked(web, "GET")]
    assert sum(size == len(whole) for size in sizes) <= 17  # 16 threads that do not know the server yet, and once
    assert not asked(web, "GET")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda start: store.read("c/1/1", ((start, 10),)), range(64)))
    assert len(asked(web, "GET")) == 1


@QUIET
@pytest.mark.parametrize("place", ["nothing/", "no-head-no-ranges/", "no-length/"])
def test_what_cannot_be_asked_for_is_read_again_in_time(web, place, monkeypatch):
    value = web.root / "changing"
    value.write_bytes(b"0123456789")
    store = HTTPStore(f"{web.url}/{place[:-1]}")
    assert store.read("changing", ((2, 3),)).parts[0] == b"234"
    value.write_bytes(b"9876543210")
    monkeypatch.setattr(http_store, "_FRESH", 0.0)
    assert store.read("changing", ((2, 3),)).parts[0] == b"765"


@QUIET
@pytest.mark.parametrize("place", ["no-ranges", "no-length-but-etag"])
def test_what_can_be_asked_for_is_never_old(web, place):
    value = web.root / "changing"
    value.write_bytes(b"0123456789")
    store = HTTPStore(f"{web.url}/{place}")
    assert store.read("changing", ((2, 3),)).parts[0] == b"234"
    value.write_bytes(b"98765432101")  # nginx tells versions by second and size
    assert store.read("changing", ((2, 3),)).parts[0] == b"765"
    value.unlink()
    assert store.read("changing", ((2, 3),)) is None


@QUIET
@pytest.mark.parametrize("place", ["no-length", "nothing", "no-head-no-ranges"])
def test_missing_and_empty_values(web, place):
    (web.root / "empty").write_bytes(b"")
    store = pickle.loads(pickle.dumps(HTTPStore(f"{web.url}/{place}")))
    assert store.get("empty") == b""
    assert store.read("empty", ((0, 5), (-3, None))).parts == (b"", b"")
    assert store.size("empty") == 0
    for key in ("missing", "less.zarr/missing"):
        assert store.get(key) is None
        assert store.read(key, ((0, 5),)) is None
        assert not store.exists(key)


@QUIET
@pytest.mark.parametrize("fault", ["drop", 503, "truncate", "stall"])
def test_answers_without_a_length_that_break_off(web, fault):
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy.stall = 1.5
    (web.root / "value").write_bytes(bytes(range(256)) * 100)
    options = {"max_retries": 4, "read_timeout": 0.5}
    store = HTTPStore(f"{proxy.url}/no-length", storage_options=options)
    proxy.faults = [None, fault, fault]
    assert store.get("value") == bytes(range(256)) * 100
    proxy.close()


@pytest.mark.parametrize("fault", ["stall", "slow"])
@pytest.mark.parametrize("place", ["no-length/", ""])
def test_the_whole_answer_is_waited_for_no_longer_than_timeout(web, fault, place):
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy.stall = 20
    (web.root / "value").write_bytes(bytes(range(256)) * 100)
    store = HTTPStore(f"{proxy.url}/{place}", storage_options={"timeout": 2.5, "max_retries": 0})
    proxy.always = lambda *_: fault
    begin = time.monotonic()
    with pytest.raises(StoreError, match=r"no answer in time \(timeout and max_retries are in storage_options\)"):
        store.get("value")
    assert time.monotonic() - begin < 8
    proxy.close()


@QUIET
def test_half_an_answer_of_python_is_an_error(web):
    """An answer whose length is known only to the second request."""
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    (web.root / "value").write_bytes(bytes(range(256)) * 100)
    plain = PlainHTTP(proxy.url, {})
    proxy.faults = ["truncate"]
    with pytest.raises(PlainError, match="IncompleteRead"):
        plain.get("value")
    assert plain.get("value")[1] == bytes(range(256)) * 100
    proxy.close()


class _Endless(BaseHTTPRequestHandler):
    """Answers any request for a range with four bytes, as it says, and sends 256 MiB."""

    sent = 0

    def do_GET(self):
        self.send_response(206)
        self.send_header("Content-Range", "bytes 0-3/4")
        self.send_header("Content-Length", str(2**40))
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(256):
                self.wfile.write(bytes(2**20))
                type(self).sent += 2**20

    def log_message(self, *_):
        pass


def test_a_part_that_does_not_end_is_not_waited_for():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        store = HTTPStore(f"http://127.0.0.1:{server.server_port}/a", storage_options={"max_retries": 0})
        try:
            with pytest.raises(StoreError, match=r"cannot read key 'c' of .*: 4 bytes were announced, \d+ came"):
                store.read("c", ((0, 4),))
        finally:
            server.shutdown()
    assert _Endless.sent < 64 * 2**20  # what the sockets take


# redirections


def test_a_redirection_to_nowhere_is_no_matter_of_buckets(web):
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy.always = lambda *_: answer(301)
    with pytest.raises(StoreError, match=r"the server redirects, and does not say where to \(no Location\)"):
        zardine.open(f"{proxy.url}/less.zarr", mode="r")
    proxy.close()


# passwords


def test_a_user_and_a_password_in_the_url(web):
    host = web.url.removeprefix("http://")
    url = f"http://me:S3%2Fcret%40@{host}/private/less.zarr"
    array = zardine.open_array(url, mode="r")
    assert (array[:3, :3] == VALUES[:3, :3]).all()
    for text in (str(array.store), repr(array.store), repr(array), str(array.info), repr(array.store.store)):
        assert "S3" not in text
        assert "me:" not in text
    assert str(array.store) == f"{web.url}/private/less.zarr"
    again = pickle.loads(pickle.dumps(array))
    assert (again[:3, :3] == VALUES[:3, :3]).all()
    with pytest.raises(StoreError, match="not authenticated"):
        zardine.open_array(str(array.store), mode="r")


def test_refused_and_wrong_urls_do_not_show_passwords(web):
    host = web.url.removeprefix("http://")
    for url in (
        f"http://me:S3cret@{host}/private/less.zarr",  # the wrong one
        f"http://me:S3cret@{host}/missing.zarr",
        f"http://me:S3cret@{host}/missing.zip",
        f"http://me:S3cret@{host}/a?b=S3cret",
        "http://me:S3cret@[::1/a",
        "http://me:S3cret@host:port/a",
        "http://me:S3cret@/a",
    ):
        with pytest.raises((StoreError, FileNotFoundError)) as caught:
            zardine.open(url, mode="r")
        told: BaseException | None = caught.value
        while told is not None:
            assert "S3cret" not in str(told)
            told = told.__cause__
    with pytest.raises(StoreError, match=r"user:password@host.*headers"):
        zardine.open(f"{web.url}/private/less.zarr", mode="r")
    headers = {"Authorization": f"Basic {base64.b64encode(b'me:S3/cret@').decode()}"}
    assert zardine.open(f"{web.url}/private/less.zarr", mode="r", storage_options={"headers": headers}).ndim == 2


def test_a_password_does_not_follow_to_another_host(web):
    """Not even with the client that takes over where there is no length."""
    elsewhere = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy = FaultProxy(int(web.url.rpartition(":")[2]))
    proxy.always = lambda method, path, headers: answer(302, location=f"{elsewhere.url}/no-length{path}")
    store = HTTPStore(proxy.url.replace("http://", "http://me:S3cret@"))
    assert store.get("less.zarr/zarr.json") == (web.root / "less.zarr/zarr.json").read_bytes()
    assert all("authorization" in each for each in proxy.headers)
    assert not any("authorization" in each for each in elsewhere.headers)
    proxy.close()
    elsewhere.close()


# documents that are none


def test_what_is_there_in_place_of_a_document(web):
    with pytest.raises(MetadataError, match="HTML page"):
        zardine.open(f"{web.url}/page", mode="r")
    folder = web.root / "packed.zarr"
    folder.mkdir(exist_ok=True)
    (folder / "zarr.json.gz").write_bytes(gzip.compress((web.root / "less.zarr/zarr.json").read_bytes()))
    with pytest.raises(StoreError, match="has compressed the answer"):
        zardine.open(f"{web.url}/gzip/packed.zarr", mode="r", zarr_format=3)
    (folder / "zarr.json").write_bytes(b"")
    with pytest.raises(MetadataError, match="it is empty"):
        zardine.open(f"{web.url}/packed.zarr", mode="r", zarr_format=3)


# names


def test_urls_are_percent_encoded_and_come_round(web):
    names = ["plain", "my data", "a%20b", "50%", "grüße", "a+b", "a#b", "q?x", "%2F", "a&b=c;d", "(x)", "'y'"]
    from urllib.parse import quote

    for name in names:
        zardine.create_array(web.root / name, data=np.array([7]), overwrite=True)
        url = f"{web.url}/{quote(name, safe='')}"
        store = resolve_store(url)[0]
        assert zardine.open(url, mode="r")[0] == 7
        assert resolve_store(str(store))[0] == store
        assert zardine.open(str(store), mode="r")[0] == 7
        assert zardine.open(web.url, path=name, mode="r")[0] == 7  # the path of a node is taken as it is
        assert zardine.open(f"{web.url}::{name}", mode="r")[0] == 7
    assert zardine.open(f"{web.url}/my data", mode="r")[0] == 7
    assert zardine.open(f"{web.url}/50%", mode="r")[0] == 7
    assert zardine.open(f"{web.url}/grüße", mode="r")[0] == 7


def test_archives_with_such_names(web):
    for name, urls in (("my data.zip", ("my%20data.zip", "my data.zip")), ("a%20b.zip", ("a%2520b.zip",))):
        with ZipStore(web.root / name) as store, warnings.catch_warnings():
            zardine.create_array(store, data=np.array([8]), overwrite=True)
        for url in urls:
            assert zardine.open(f"{web.url}/{url}", mode="r")[0] == 8
    with pytest.raises(StoreError, match=r"no zip archive 'a b\.zip'"):
        zardine.open(f"{web.url}/a%20b.zip", mode="r")


def test_urls_that_are_none():
    for url in ("http://a b/c", "http://[::1/x", "http://x:99999/a", "http://", "http://x/\x00"):
        with pytest.raises(StoreError):
            zardine.open(url, mode="r")


def test_a_store_of_obstore(web):
    obstore = servers.package("obstore.store")

    class Own(obstore.HTTPStore):
        pass

    for kind in (obstore.HTTPStore, Own):
        inner = kind.from_url(f"{web.url}/less.zarr", client_options={"allow_http": True})
        array = zardine.open(inner)
        assert isinstance(array.store, HTTPStore)
        assert array.store.read_only
        assert (array[5] == VALUES[5]).all()
        web.log()
        with pytest.raises(zardine.errors.ReadOnlyError):
            array.store.set("x", b"")
        with pytest.raises(zardine.errors.UnsupportedError):
            list(array.store.list())
        for mode in ("w", "w-", "r+"):
            with pytest.raises(zardine.errors.ReadOnlyError):
                zardine.open_group(inner, mode=mode)
        assert web.log() == []
    with pytest.raises(TypeError, match=r"HTTPStore\.of"):
        zardine.storage.ObjectStore(inner)
