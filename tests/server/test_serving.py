"""A real server, asked by real clients over sockets."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr

import zardine
from vectors.stores_of_all_kinds import WRITERS, read_all, store_of
from zardine import vectors
from zardine.storage import MemoryStore, ZipStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    array = root.create_array("x/y", shape=(30, 40), chunks=(5, 8), shards=(10, 16), dtype="i8", fill_value=-1)
    array[:20] = np.arange(800).reshape(20, 40)
    (tmp_path / "a.zarr" / "secret.txt").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    os.symlink(tmp_path / "outside.txt", tmp_path / "a.zarr" / "x" / "y" / "c" / "7")
    return tmp_path / "a.zarr"


@pytest.fixture
def server(folder: Path) -> Iterator[Any]:
    with zardine.serve(folder) as running:
        yield running


def ask(server: Any, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path if path.startswith("//") else f"/{server.token}/{path}", headers=named)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def test_bytes_as_they_lie_there(server: Any, folder: Path) -> None:
    key = "x/y/c/0/0"
    stored = (folder / key).read_bytes()
    status, headers, body = ask(server, f"data/a.zarr/{key}")
    assert (status, body) == (200, stored)
    assert headers["content-length"] == str(len(stored))
    assert headers["cache-control"] == "no-cache"
    assert headers["accept-ranges"] == "bytes"
    assert "content-encoding" not in headers
    assert re.fullmatch(r'"[0-9a-f]{32}"', headers["etag"])
    status, headers, body = ask(server, f"data/a.zarr/{key}", Range="bytes=3-7")
    assert (status, body, headers["content-range"]) == (206, stored[3:8], f"bytes 3-7/{len(stored)}")
    status, headers, body = ask(server, f"data/a.zarr/{key}", Range="bytes=-16")
    assert (status, body) == (206, stored[-16:])
    assert ask(server, f"data/a.zarr/{key}", If_None_Match=headers["etag"])[0] == 304
    status, headers, body = ask(server, f"data/a.zarr/{key}", "HEAD", Range="bytes=3-7")
    assert (status, headers["content-length"], body) == (200, str(len(stored)), b"")
    document = ask(server, "data/a.zarr/zarr.json")
    assert document[1]["content-type"] == "application/json"
    assert document[2] == (folder / "zarr.json").read_bytes()


def test_an_etag_is_of_one_value(server: Any, folder: Path) -> None:
    before = ask(server, "data/a.zarr/x/y/c/0/0")[1]["etag"]
    assert ask(server, "data/a.zarr/x/y/c/0/0")[1]["etag"] == before
    zardine.open_array(folder / "x/y")[0, 0] = 7
    assert ask(server, "data/a.zarr/x/y/c/0/0")[1]["etag"] != before
    assert ask(server, "data/a.zarr/x/y/c/0/0", Range="bytes=0-1", If_Range=before)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "data/a.zarr/../outside.txt",
        "data/a.zarr/%2e%2e/outside.txt",
        "data/a.zarr/x/y/c/..%2f..%2f..%2f..%2foutside.txt",
        "data/a.zarr/zarr.json%00.txt",
        "data/a.zarr//etc/passwd",
        "data/a.zarr/x/y/c/7",
        "data/a.zarr/x/y/c/0/0/zarr.json",
        "data/a.zarr/x/y/c/00/0",
        "data/a.zarr/x/y/c/99/99",
        "data/other/zarr.json",
        "data/a.zarr/secret.txt",
        "data/a.zarr/x%5c..%5csecret.txt",
        "data/a.zarr/info",
        "v3/a.zarr/secret.txt",
        "v3/a.zarr/attributes.json",
        "data/a.zarr/",
        "data/a.zarr/x/",
        "v3/a.zarr/../outside.txt",
        "v3/a.zarr/x/y/c/00/0",
        "v3/a.zarr/x/y/c/9/0",
        "v3/a.zarr/x/y/c/" + "9" * 5000 + "/0",
        "%ff%fe",
    ],
)
def test_nothing_else_is_found(server: Any, path: str) -> None:
    status, _, body = ask(server, path)
    assert status == 404
    assert b"secret\n" not in body
    assert body != b"secret"


@pytest.mark.parametrize(
    "path",
    [
        "data/a.zarr/no/such/c/0/0",
        "v3/a.zarr/no/such/c/0/0",
        "v3/a.zarr/x?y/c/0/0",
        "v3/a.zarr/x/y%ff/c/0/0",
        "data/a.zarr/x/y%ff/c/0/0",
    ],
)
def test_what_is_no_chunk_of_a_stored_array_is_refused(server: Any, path: str) -> None:
    """Programs take "not found" for fill values, so only a chunk of an array that is stored is not found."""
    status, _, body = ask(server, path)
    assert status == 400
    assert body != b"secret"


def test_who_is_let_in(server: Any) -> None:
    def raw(path: str, method: str = "GET", **headers: str) -> int:
        return ask(server, f"//{path}".replace("///", "//"), method, **headers)[0]

    assert ask(server, "data/a.zarr/zarr.json")[0] == 200
    for path in ("", "data/a.zarr/zarr.json", f"{server.token}x/", f"{server.token[:-1]}/", "é/"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/" + urllib.request.quote(path))
        response = connection.getresponse()
        assert response.status == 404
        assert b"use all of the address that zardine printed" in response.read()
    assert ask(server, "data/a.zarr/zarr.json", Host="evil.example")[0] == 421
    assert ask(server, "data/a.zarr/zarr.json", Host=f"localhost:{server.port}")[0] == 200
    assert ask(server, "data/a.zarr/zarr.json", Host=f"[::1]:{server.port}")[0] == 200
    status, headers, _ = ask(server, "data/a.zarr/zarr.json", Origin="https://evil.example")
    assert status == 403
    assert "access-control-allow-origin" not in headers
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        status, headers, _ = ask(server, "data/a.zarr/zarr.json", method)
        assert (status, headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_pages_of_other_origins_where_they_may(folder: Path) -> None:
    origin = "https://viewer.example"
    with zardine.serve(folder, cors=[origin]) as server:
        status, headers, _ = ask(server, "data/a.zarr/x/y/c/0/0", Origin=origin, Range="bytes=0-3")
        assert (status, headers["access-control-allow-origin"]) == (206, origin)
        assert {"Content-Range", "ETag"} <= set(headers["access-control-expose-headers"].split(", "))
        status, headers, _ = ask(server, "data/a.zarr/nothing", Origin=origin)
        assert (status, headers["access-control-allow-origin"]) == (404, origin)
        asked = {"Access_Control_Request_Method": "GET", "Access_Control_Request_Headers": "range"}
        status, headers, _ = ask(server, "data/a.zarr/zarr.json", "OPTIONS", Origin=origin, **asked)
        assert status == 204
        assert "GET" in headers["access-control-allow-methods"]
        assert "Range" in headers["access-control-allow-headers"]
        status, headers, _ = ask(server, "data/a.zarr/zarr.json", "OPTIONS", Origin="https://evil.example", **asked)
        assert "access-control-allow-origin" not in headers
    with zardine.serve(folder, cors="*", token="abc") as server:
        assert ask(server, "nodes.json", Origin="https://any.example")[1]["access-control-allow-origin"] == "*"


def test_only_with_a_token_for_other_machines(folder: Path) -> None:
    with pytest.raises(ValueError, match="takes a token"):
        zardine.serve(folder, host="0.0.0.0", token=False)
    with zardine.serve(folder, token=False) as server:
        assert urllib.request.urlopen(f"http://127.0.0.1:{server.port}/").status == 200
        taken = server.port
        with pytest.raises(OSError, match=f"port {taken}"):
            zardine.serve(folder, port=taken)
    with pytest.raises(zardine.errors.NodeNotFoundError):
        zardine.serve(folder / "nothing")


@pytest.mark.parametrize("origin", ["foo", "example.org", "https://example.org/page", "https://", "null"])
def test_what_is_no_origin(folder: Path, origin: str) -> None:
    with pytest.raises(ValueError, match="an origin is"):
        zardine.serve(folder, cors=[origin])


def test_listing_where_it_is_wanted(folder: Path) -> None:
    with zardine.serve(folder, listing=True) as server:
        page = ask(server, "data/a.zarr/")[2].decode()
        assert 'href="x/"' in page
        assert 'href="zarr.json"' in page
        assert "secret" not in page


def kinds() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    day = np.datetime64("2026-01-01T00:00:00", "s")
    return {
        "int64": rng.integers(-(2**62), 2**62, (7, 9)),
        "float32": rng.normal(size=(7, 9)).astype("f4"),
        "float16": rng.normal(size=(7, 9)).astype("f2"),
        "bool": rng.random((7, 9)) < 0.5,
        "big-endian": rng.normal(size=(7, 9)).astype(">f8"),
        "complex64": (rng.normal(size=(7, 9)) + 1j).astype("c8"),
        "bfloat16": rng.normal(size=(7, 9)).astype(ml_dtypes.bfloat16),
        "int4": rng.integers(-8, 8, (7, 9)).astype(ml_dtypes.int4),
        "times": day + rng.integers(0, 10**6, (7, 9)),
        "uint8": rng.integers(0, 255, (7, 9), np.uint8),
    }


@pytest.mark.parametrize("kind", sorted(kinds()))
@pytest.mark.parametrize("zarr_format", [1, 2, 3])
def test_plain_v3_of_every_version(kind: str, zarr_format: int) -> None:
    values = kinds()[kind]
    if zarr_format < 3 and kind in ("bfloat16", "int4"):
        values = values.astype("f4")
    options = {"shards": (4, 6)} if zarr_format == 3 else {}
    source = zardine.create_array(MemoryStore(), data=values, chunks=(2, 3), zarr_format=zarr_format, **options)
    with zardine.serve({"it": source}) as server:
        address = f"{server.url}v3/it"
        found = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "http", "base_url": address}}).result()
        assert found.chunk_layout.read_chunk.shape == (2, 3)
        got = found.read().result()
        twin = zardine.open_array(address)
        assert twin.metadata.attributes == ({"units": "seconds since 1970-01-01"} if kind == "times" else {})
        assert twin.shards is None
        assert [codec.name for codec in twin.metadata.codecs] == ["bytes"]
    expected = {"float16": "f4", "bfloat16": "f4", "int4": "i1"}.get(kind)
    wanted = values.view("i8") if kind == "times" else values if expected is None else values.astype(expected)
    np.testing.assert_array_equal(got, wanted)


def test_plain_v3_of_texts_and_structs() -> None:
    root = zardine.group(MemoryStore())
    texts = np.array(["a", "ü", "", "long text"])
    root.create_array("fixed", data=texts, chunks=(3,))
    root.create_array("any", data=texts.astype(np.dtypes.StringDType()), chunks=(3,))
    root.create_array("bytes", data=np.array([b"ab", b"c\xff"]), chunks=(1,))
    pairs = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root.create_array("struct", data=pairs, chunks=(2,))
    with zardine.serve({"it": root}) as server:
        back = zardine.open_group(f"{server.url}v3/it", mode="r")
        assert back["fixed"][:].tolist() == texts.tolist()
        assert back["any"][:].tolist() == texts.tolist()
        assert back["bytes"][:].tolist() == ["ab", "c\\xff"]
        assert back["struct"][:].tobytes() == pairs.tobytes()


@pytest.mark.parametrize("shards", [None, (4,)])
def test_plain_v3_of_byte_strings(shards: tuple[int, ...] | None) -> None:
    """As zarr-python calls them, in groups that hold others, too."""
    root = zardine.group(MemoryStore())
    given = np.array([b"", b"a\xff", b"b" * 300, b"c"], object)
    array = root.create_array("blobs", shape=(6,), chunks=(2,), shards=shards, dtype="bytes", fill_value=b"none")
    array[:4] = given
    root["numbers"] = np.arange(3)
    with zardine.serve({"it": root}) as server:
        back = zardine.open_group(f"{server.url}v3/it", mode="r")
        assert sorted(back.metadata.consolidated_metadata) == ["blobs", "numbers"]
        assert back["blobs"][:].tolist() == [*given, b"none", b"none"]
        assert ask(server, "v3/it/blobs/c/2")[0] == 200
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr-python says that the name is not in the specification
            assert zarr.open_array(f"{server.url}v3/it/blobs", mode="r")[:].tolist() == [*given, b"none", b"none"]


@pytest.mark.parametrize("kind", WRITERS)
def test_plain_v3_of_vectors(kind: str) -> None:
    """Cells are given as they are, unsharded; all that reads the store reads what is served."""
    store = store_of(kind, shard_shape=2)
    with zardine.serve({"it": store}) as server:
        address = f"{server.url}v3/it"
        assert read_all(address, kind) == read_all(store, kind)
        assert all(each["shard_shape"] is None for each in vectors.get_shard_info(address).values())


def test_what_v3_has_no_type_for_harms_no_other() -> None:
    root = zardine.group(MemoryStore(), zarr_format=2)
    table = root.create_array("table", shape=(2,), dtype=object, filters=[numcodecs.JSON()])
    table[:] = [{"a": 1}, None]
    root["numbers"] = np.arange(3)
    with zardine.serve({"it": root}) as server:
        back = zardine.open_group(f"{server.url}v3/it", mode="r")
        assert sorted(back.metadata.consolidated_metadata) == ["numbers"]
        assert back["numbers"][:].tolist() == [0, 1, 2]
        for key in ("zarr.json", "c/0"):
            status, _, text = ask(server, f"v3/it/table/{key}")
            assert (status, text.startswith(b"UnsupportedError: /table holds Python objects")) == (501, True)
        stored = zardine.open_array(f"{server.url}data/it/table", mode="r")
        assert stored[:].tolist() == table[:].tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_plain_v3_of_a_group_tells_of_all_below(tmp_path: Path, zarr_format: int) -> None:
    """So programs that cannot list find everything; where that is not known for sure, nothing is claimed."""
    root = zardine.create_group(tmp_path / "g", zarr_format=zarr_format, attributes={"title": "t"})
    root.create_group("a").create_array("b/x", data=np.arange(6.0), chunks=(4,))
    root.create_array("y", data=np.arange("2026-01-01", 3, dtype="M8[s]"))
    root["a"].attrs["inner"] = 1
    with zardine.serve({"g": tmp_path / "g"}) as server:
        found = zardine.open_group(f"{server.url}v3/g", mode="r")
        assert found.attrs.asdict() == {"title": "t"}
        assert sorted(found.metadata.consolidated_metadata) == ["a", "a/b", "a/b/x", "y"]
        assert found["a"].attrs.asdict() == {"inner": 1}
        np.testing.assert_array_equal(found["a/b/x"][:], np.arange(6.0))
        assert found["y"].attrs["units"] == "seconds since 1970-01-01"
        before = json.loads(ask(server, "v3/g/a/zarr.json")[2])
        assert sorted(before["consolidated_metadata"]["metadata"]) == ["b", "b/x"]
        broken = next(path for path in (tmp_path / "g/a/b/x").iterdir() if path.name in ("zarr.json", ".zarray"))
        broken.write_text("{}")
    with zardine.serve({"g": tmp_path / "g"}) as server:
        document = json.loads(ask(server, "v3/g/zarr.json")[2])
        assert "consolidated_metadata" not in document
        assert ask(server, "v3/g/a/b/x/zarr.json")[0] == 500
        assert ask(server, "v3/g/y/zarr.json")[0] == 200


def test_plain_v3_of_a_group_with_too_much_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zardine.server.plain_v3._MOST_BELOW", 1)
    with zardine.serve(folder) as server:
        assert "consolidated_metadata" not in json.loads(ask(server, "v3/a.zarr/zarr.json")[2])
        assert "consolidated_metadata" in json.loads(ask(server, "v3/a.zarr/x/zarr.json")[2])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_opens_what_is_served(tmp_path: Path, zarr_format: int) -> None:
    """Out of an archive, by the addresses alone: names of variables come with the group, those of axes of v2, too."""
    import xarray

    with ZipStore(tmp_path / "a.zip", mode="w") as archive:
        root = zardine.create_group(archive, zarr_format=zarr_format)
        for name, values, axes in (
            ("t2m", np.arange(12.0).reshape(3, 4), ["time", "x"]),
            ("time", np.arange(3), ["time"]),
        ):
            named = {"dimension_names": axes} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": axes}}
            root.create_array(name, data=values, chunks=(2,) * values.ndim, **named)
        root["time"].attrs["units"] = "days since 2026-01-01"
    with zardine.serve({"a": tmp_path / "a.zip"}) as server:
        found = xarray.open_zarr(f"{server.url}v3/a").load()
    assert found.t2m.dims == ("time", "x")
    assert found.t2m.attrs == {}
    assert found.time.values[2] == np.datetime64("2026-01-03")
    np.testing.assert_array_equal(found.t2m, np.arange(12.0).reshape(3, 4))


def test_plain_v3_compressed(folder: Path) -> None:
    with zardine.serve(folder, gzip=True) as server:
        found = zardine.open_array(f"{server.url}v3/a.zarr/x/y", mode="r")
        assert [codec.name for codec in found.metadata.codecs] == ["bytes", "gzip"]
        np.testing.assert_array_equal(found[:], zardine.open_array(folder / "x/y")[:])


@pytest.mark.parametrize("kind", ["folder", "zip", "memory"])
def test_other_programs_read_from_any_store(folder: Path, tmp_path: Path, kind: str) -> None:
    expected = zardine.open_array(folder / "x/y")[:]
    if kind == "folder":
        node: Any = folder / "x/y"
    elif kind == "zip":
        with ZipStore(tmp_path / "a.zip", mode="w") as archive:
            zardine.copy(zardine.open_group(folder)["x/y"], zardine.group(archive), "y")
        node = f"{tmp_path / 'a.zip'}::y"
    else:
        memory = zardine.group(MemoryStore())
        zardine.copy(zardine.open_group(folder)["x/y"], memory, "y")
        node = memory["y"]
    with zardine.serve({"it": node}) as server:
        for below in ("data", "v3"):
            found = zardine.open_array(f"{server.url}{below}/it", mode="r")
            np.testing.assert_array_equal(found[:], expected)
            spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": f"{server.url}{below}/it"}}
            np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), expected)


def test_zarr_python_reads(server: Any, folder: Path) -> None:
    import zarr

    expected = zardine.open_array(folder / "x/y")[:]
    for below in ("data", "v3"):
        found = zarr.open_array(f"{server.url}{below}/a.zarr/x/y", mode="r")
        np.testing.assert_array_equal(found[:], expected)


def test_damage_is_no_missing_chunk(server: Any, folder: Path) -> None:
    shard = folder / "x/y/c/0/0"
    bad = bytearray(shard.read_bytes())
    bad[5] ^= 1
    shard.write_bytes(bad)
    status, _, body = ask(server, "v3/a.zarr/x/y/c/0/0")
    assert status == 500
    assert b"c/0/0" in body
    assert ask(server, "v3/a.zarr/x/y/c/3/3")[0] == 200  # never written: fill values


def test_an_array_that_is_replaced_meanwhile(server: Any, folder: Path) -> None:
    assert zardine.open_array(f"{server.url}v3/a.zarr/x/y").shape == (30, 40)
    zardine.create_array(folder, name="x/y", data=np.arange(6.0), chunks=(4,), overwrite=True)
    end = time.monotonic() + 10
    while True:
        status, _, body = ask(server, "v3/a.zarr/x/y/c/1")
        if status == 200 or time.monotonic() > end:
            break
        assert status in (404, 500)
    np.testing.assert_array_equal(np.frombuffer(body, "f8")[:2], [4.0, 5.0])


def test_large_values_are_sent_in_pieces_and_end_early_when_replaced(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 255, 48 * 2**20, np.uint8)
    zardine.create_array(tmp_path / "b.zarr", data=values, chunks=values.shape, compressors=None)
    with zardine.serve(tmp_path / "b.zarr") as server:
        body = ask(server, "data/b.zarr/c/0")[2]
        assert body == (tmp_path / "b.zarr/c/0").read_bytes()
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**18)
        connection.sendall(f"GET /{server.token}/data/b.zarr/c/0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        got = connection.recv(1000)
        zardine.open_array(tmp_path / "b.zarr")[:] = 7
        total = len(got)
        try:
            while piece := connection.recv(2**20):
                total += len(piece)
        except ConnectionResetError:
            pass
        assert total < len(body)


def test_half_a_request_is_given_up(server: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("zardine.server.running._HEAD_PATIENCE", 0.5)
    begun = time.monotonic()
    with zardine.serve(folder) as impatient:
        for start in (b"", b"GET / HTTP/1.1\r\nHost: local", b"GET /"):
            connection = socket.create_connection(("127.0.0.1", impatient.port), timeout=20)
            connection.sendall(start)
            assert connection.recv(100) == b""
            connection.close()
        connection = socket.create_connection(("127.0.0.1", impatient.port), timeout=20)
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000)
        assert connection.recv(100).startswith((b"HTTP/1.1 400", b""))
        connection.close()
        assert ask(impatient, "")[0] == 200
    assert time.monotonic() - begun < 15


def test_many_at_a_time(server: Any, folder: Path) -> None:
    expected = (folder / "x/y/c/0/0").read_bytes()
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    for each in slow:
        each.sendall(b"GET /half")
    with ThreadPoolExecutor(32) as pool:
        got = list(pool.map(lambda _: ask(server, "data/a.zarr/x/y/c/0/0")[2], range(400)))
    assert all(each == expected for each in got)
    for each in slow:
        each.close()


def test_mounted_below_another_path(folder: Path) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    inner = zardine.serve.app({"it": folder}, cors="*")
    outer = Starlette(routes=[Mount("/user/me/proxy", app=inner)])
    from zardine.server.running import Server

    with Server({"it": None}, outer, "127.0.0.1", 0, None) as server:
        base = f"http://127.0.0.1:{server.port}/user/me/proxy"
        assert urllib.request.urlopen(f"{base}/nodes.json").status == 200
        np.testing.assert_array_equal(
            zardine.open_array(f"{base}/v3/it/x/y", mode="r")[:], zardine.open_array(folder / "x/y")[:]
        )


def test_the_command(folder: Path, tmp_path: Path) -> None:
    import zardine.vectors

    spaced = tmp_path / "points é 100%.zv"
    zardine.vectors.write_points(spaced, np.ones((3, 3), "f4"), chunk_shape=(2.0, 2.0, 2.0))
    command = [sys.executable, "-m", "zardine", "serve", str(folder), str(spaced), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while not (lines and lines[-1].startswith("}")):
            lines.append(process.stdout.readline())
            assert lines[-1], "the command ended"
        import json

        facts = json.loads("".join(lines))
        assert urllib.request.urlopen(f"{facts['data']['a.zarr']}/zarr.json").status == 200
        assert zardine.open_array(f"{facts['v3']['a.zarr']}/x/y", mode="r").shape
        assert list(facts["precomputed"]) == [spaced.name]
        assert facts["precomputed"][spaced.name].endswith("/precomputed/points%20%C3%A9%20100%25.zv")
        for kind in ("data", "precomputed"):
            document = {"data": "zarr.json", "precomputed": "info"}[kind]
            assert urllib.request.urlopen(f"{facts[kind][spaced.name]}/{document}").status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{facts['port']}/")
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_servers_end(folder: Path) -> None:
    before = threading.active_count()
    for _ in range(3):
        zardine.serve(folder).stop()
    assert threading.active_count() <= before + 1


def test_without_starlette(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None\nimport zardine\n"
        "try:\n    zardine.serve('x')\nexcept zardine.errors.UnsupportedError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'zardine[serve]'" in done.stdout
