"""What the page asks for: pictures against NumPy, hostile questions, meters against the log of a real S3 server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import zardine
from servers import servers
from zardine import vectors
from zardine.server.viewer.canvas import DAMAGED, FILL, GUESSED, MISSING, NAN, VALUE, Canvas, Frame, numbers_of, spread
from zardine.server.viewer.geometry import share_of
from zardine.server.viewer.snapshot import ChangedError
from zardine.server.viewer.steady import NobodyWaits, SteadyStore
from zardine.storage import MemoryStore, ZipStore


class Asker:
    """Asks a server as the page does."""

    def __init__(self, server: Any) -> None:
        self.server, self.meter = server, {}

    def raw(self, address: str) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        connection.request("GET", f"/{self.server.token}/view/{address}")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body, dict(answer.getheaders())

    def ask(self, what: str, path: str = "", **query: Any) -> tuple[int, bytes]:
        name = quote(self.server.names[0])
        status, body, headers = self.raw(f"api/{name}/{what}?{urlencode({'path': path, **query})}")
        self.meter = json.loads(headers.get("zardine-meter", "{}"))
        return status, body

    def json(self, what: str, path: str = "", **query: Any) -> Any:
        status, body = self.ask(what, path, **query)
        assert status == 200, body
        return json.loads(body)

    def picture(self, path: str = "", **query: Any) -> tuple[dict[str, Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """A picture, asked for until it is finished."""
        while True:
            status, body = self.ask("picture", path, **query)
            assert status == 200, body
            head, _, rest = body.partition(b"\n")
            facts = json.loads(head)
            if facts["finished"]:
                break
        arrays = []
        for each in facts["arrays"]:
            count = int(np.prod(each["shape"]))
            array = np.frombuffer(rest, f"<{each['type']}", count).reshape(each["shape"])
            arrays.append(array)
            rest = rest[-(-array.nbytes // 8) * 8 :]
        return facts, arrays[0], arrays[1]


@pytest.fixture
def asker(tmp_path: Path) -> Iterator[Any]:
    running = []

    def serve(node: Any, **options: Any) -> Asker:
        running.append(zardine.view({"data": node}, **options))
        return Asker(running[-1].server)

    yield serve
    for each in running:
        each.stop()


def kinds() -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(1)
    shape = (3, 50, 70)
    return {
        "bool": rng.random(shape) < 0.5,
        "int16": rng.integers(-9999, 9999, shape, dtype="i2"),
        "uint32": rng.integers(0, 2**32, shape, dtype="u4"),
        "int64": rng.integers(-(2**53), 2**53, shape),
        "float16": rng.normal(size=shape).astype("f2"),
        "float64": rng.normal(size=shape),
        "big-endian": rng.normal(size=shape).astype(">f4"),
        "bfloat16": rng.normal(size=shape).astype(ml_dtypes.bfloat16),
        "complex64": (rng.normal(size=shape) + 1j).astype("c8"),
        "times": np.datetime64("2026-01-01", "s") + rng.integers(0, 10**6, shape),
    }


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_every_type_in_every_kind_of_store(asker: Any, tmp_path: Path, zarr_format: int) -> None:
    store: Any = MemoryStore() if zarr_format == 3 else ZipStore(tmp_path / "a.zip", mode="w")
    for name, values in kinds().items():
        if zarr_format == 3 or name != "bfloat16":
            zardine.create_array(store, name=name, data=values, chunks=(2, 16, 16), zarr_format=zarr_format)
    store.close()
    ask = asker(store if zarr_format == 3 else tmp_path / "a.zip")
    for name, values in kinds().items():
        if zarr_format == 2 and name == "bfloat16":
            continue
        plane = np.abs(values[1]) if name == "complex64" else values[1]
        expected = plane.astype("i8") if name == "times" else plane
        _, pixels, states = ask.picture(name, axes="1,2", at="1,0,0", box="0,50,0,70", step="1,1")
        np.testing.assert_array_equal(pixels.astype("f8"), expected.astype("f8"), err_msg=name)
        assert (states == VALUE).all()
        turned = ask.picture(name, axes="2,1", at="1,0,0", box="8,70,4,50", step="1,1")[1]
        np.testing.assert_array_equal(turned.astype("f8"), expected.T[8:, 4:].astype("f8"), err_msg=name)
        cell = ask.json("value", name, at="1,7,9")
        assert cell["text"] == str(values[1, 7, 9])


@pytest.mark.parametrize("step", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("reduction", ["nearest", "mean", "max", "min"])
def test_reductions_are_numpys(asker: Any, reduction: str, step: int) -> None:
    values = np.random.default_rng(2).normal(size=(61, 83)).astype("f4")
    values[5:9, 3:40] = np.nan
    values[20:30, 60:64] = -5
    ask = asker(zardine.create_array(MemoryStore(), data=values, chunks=(9, 17), shards=(18, 34), fill_value=-5))
    for top, left in ((0, 0), (step, 2 * step)):
        if top >= 61 or left >= 83:
            continue
        box = f"{top},61,{left},83"
        _, pixels, states = ask.picture(axes="0,1", at="0,0", box=box, step=f"{step},{step}", reduce=reduction)
        part = values[top:, left:].astype("f8")
        for i, j in np.ndindex(pixels.shape):
            block = part[i * step : (i + 1) * step, j * step : (j + 1) * step]
            if reduction == "nearest":
                middle = part[min(i * step + step // 2, len(part) - 1), min(j * step + step // 2, part.shape[1] - 1)]
                assert states[i, j] == (NAN if np.isnan(middle) else FILL if middle == -5 else VALUE)
                assert np.isnan(middle) or middle == -5 or pixels[i, j] == middle
                continue
            good = block[~np.isnan(block) & (block != -5)]
            assert states[i, j] == (VALUE * bool(good.size) | NAN * np.isnan(block).any() | FILL * (block == -5).any())
            if good.size:
                function = {"mean": np.mean, "max": np.max, "min": np.min}[reduction]
                assert pixels[i, j] == pytest.approx(function(good), rel=1e-6)


def test_what_is_not_there_and_what_is_damaged(asker: Any, tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a.zarr", shape=(40, 40), chunks=(10, 10), shards=(20, 20), dtype="i4")
    array[:, :20] = 3
    shard = bytearray((tmp_path / "a.zarr/c/0/0").read_bytes())
    shard[1] ^= 1
    (tmp_path / "a.zarr/c/0/0").write_bytes(shard)
    cut = (tmp_path / "a.zarr/c/1/0").read_bytes()[:-1]
    (tmp_path / "a.zarr/c/1/0").write_bytes(cut)
    ask = asker(tmp_path / "a.zarr")
    facts, _, states = ask.picture(axes="0,1", at="0,0", box="0,40,0,40", step="1,1")
    expected = np.full((40, 40), VALUE)
    expected[:, 20:], expected[:10, :10], expected[20:, :20] = MISSING, DAMAGED, DAMAGED
    np.testing.assert_array_equal(states, expected)
    assert (facts["damaged"], facts["missing"]) == (5, 8)
    assert ask.json("value", at="0,0")["state"] == "damaged"
    assert ask.json("value", at="0,30") == {"state": "missing", "text": "0", "labels": [None, None]}
    assert ask.json("table", axes="0,1", at="8,8", count="4,4")["cells"][0] == [None, None, "3", "3"]
    assert ask.ask("npy", axes="0,1", at="0,0", box="0,40,0,40", step="1,1")[0] == 500
    status, body = ask.ask("npy", axes="1,0", at="0,0", box="12,30,0,15", step="1,1")
    (tmp_path / "saved.npy").write_bytes(body)
    np.testing.assert_array_equal(np.load(tmp_path / "saved.npy"), array[0:15, 12:30].T)
    assert ask.ask("picture", axes="0,1", at="0,0", box="0,40,0,40", step="1,1")[0] == status == 200


@pytest.mark.parametrize(
    ("what", "query"),
    [
        ("picture", {}),
        ("picture", {"at": "0,0", "axes": "0,0", "box": "0,4,0,4", "step": "1,1"}),
        ("picture", {"at": "0,0", "axes": "0,2", "box": "0,4,0,4", "step": "1,1"}),
        ("picture", {"at": "0,0", "axes": "0,1", "box": "0,41,0,4", "step": "1,1"}),
        ("picture", {"at": "0,0", "axes": "0,1", "box": "4,4,0,4", "step": "1,1"}),
        ("picture", {"at": "0,0", "axes": "0,1", "box": "0,4,0,4", "step": "0,1"}),
        ("picture", {"at": "0,40", "axes": "0,1", "box": "0,4,0,4", "step": "1,1"}),
        ("picture", {"at": "-1,0", "axes": "0,1", "box": "0,4,0,4", "step": "1,1"}),
        ("picture", {"at": "٣,0", "axes": "0,1", "box": "0,4,0,4", "step": "1,1"}),
        ("picture", {"at": "9" * 5000, "axes": "0,1", "box": "0,4,0,4", "step": "1,1"}),
        ("picture", {"at": "0,0", "axes": "0,1", "box": "0,4,0,4", "step": "1,1", "reduce": "median"}),
        ("picture", {"at": "0,0", "axes": "0,1", "box": "0,4,0,4", "step": "1,1", "field": "x"}),
        ("picture", {"at": "0,0", "axes": "0,1", "box": "0,4,0,4", "step": "1,1", "snapshot": "x"}),
        ("value", {"at": "0"}),
        ("table", {"at": "0,0", "axes": "7", "count": "4"}),
        ("table", {"at": "0,0", "axes": "0,1", "count": "4"}),
        ("chunk", {"at": "0,99"}),
        ("objects", {"at": "0,0"}),
        ("members", {"start": "x"}),
        ("advice", {"axes": "0,x"}),
        ("advice", {"axes": "0,9"}),
    ],
)
def test_questions_that_make_no_sense(asker: Any, what: str, query: dict[str, str]) -> None:
    ask = asker(zardine.create_array(MemoryStore(), shape=(40, 40), chunks=(10, 10), dtype="i4"))
    assert ask.ask(what, **query)[0] == 400


@pytest.mark.parametrize("path", ["../", "..", "x", "%00", "a\\b", "/etc/passwd", "__zardine", "." * 300])
@pytest.mark.parametrize("what", ["node", "members", "picture", "value", "chunk", "verify"])
def test_paths_that_lead_nowhere(asker: Any, tmp_path: Path, what: str, path: str) -> None:
    zardine.create_array(tmp_path / "outside.zarr", data=np.arange(4))
    zardine.create_group(tmp_path / "a.zarr")
    status, body = asker(tmp_path / "a.zarr").ask(what, path, at="0", axes="0", box="0,4", step="1")
    assert status in (400, 404, 500) or b"error" in body
    assert b"passwd:" not in body


@pytest.mark.parametrize(
    "name", ["../facts.py", "..%2fendpoints.py", "%2e%2e/facts.py", "page", "vendor", "x.js", "main.py"]
)
def test_files_that_are_not_of_the_page(asker: Any, name: str) -> None:
    ask = asker(zardine.create_group(MemoryStore()))
    assert ask.raw(name)[0] == 404
    status, _, headers = ask.raw("main.js")
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]


def test_where_nothing_is_listed_there_is_no_page(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path / "a.zarr")
    for listing in (False, True):
        with zardine.serve({"data": group}, listing=listing) as server:
            ask = Asker(server)
            for address in ("", "main.js", "nodes.json", "api/data/node?path="):
                assert ask.raw(address)[0] == (200 if listing else 404)


def test_arrays_without_pictures(asker: Any) -> None:
    root = zardine.create_group(MemoryStore())
    root.create_array("scalar", data=np.float64(0.5))
    root.create_array("empty", shape=(0, 4), dtype="i4")
    root.create_array("text", data=np.array(["a"], "T"))
    ask = asker(root)
    for path, at in (("scalar", ""), ("empty", "0,0"), ("text", "0")):
        axes = ",".join(str(axis) for axis in range(at.count(",") + 1))
        assert ask.ask("picture", path, at=at, axes=axes, box="0,1", step="1")[0] == 400
        assert ask.json("node", path)["kind"] == "array"
    assert ask.json("table", "scalar", at="", axes="", count="")["cells"] == ["0.5"]
    assert ask.json("table", "empty", at="0,0", axes="0,1", count="4,4")["cells"] == []


def test_the_meter_is_what_the_server_logged(asker: Any) -> None:
    """Requests and bytes of a cold picture of an array on S3, and none of a warm one."""
    bucket, options = servers.new_bucket(), servers.s3_options()
    zardine.create_group(f"s3://{bucket}", storage_options=options)
    values = np.random.default_rng(1).integers(0, 99, (64, 64))
    zardine.create_array(
        f"s3://{bucket}/a",
        data=values,
        chunks=(16, 16),
        shards=(32, 32),
        storage_options=options,
        dimension_names=("y", "x"),
    )
    zardine.create_array(f"s3://{bucket}/y", data=np.arange(64), storage_options=options, dimension_names=("y",))
    ask = asker(f"s3://{bucket}", storage_options=options)
    number = ask.json("node", "a")["snapshot"]
    before = ask.meter
    servers.s3().log()
    question = {"axes": "0,1", "at": "0,0", "box": "0,64,0,64", "step": "1,1", "snapshot": number}
    _, pixels, _ = ask.picture("a", **question)
    logged = [line for line in servers.s3().log() if "GET" in line or "HEAD" in line]
    np.testing.assert_array_equal(pixels, values)
    assert ask.meter["requests"] - before["requests"] == len(logged) > 0
    assert ask.meter["decoded"] - before["decoded"] == 16
    warm = ask.meter
    ask.picture("a", **question)
    assert ask.meter == warm
    assert ask.json("value", "a", at="5,6", snapshot=number)["labels"] == ["5", None]
    assert servers.s3().log() == []


def test_each_page_has_a_meter_of_its_own(asker: Any) -> None:
    """Requests of one page are none of another's, also where an object store counts what it sends itself."""
    bucket, options = servers.new_bucket(), servers.s3_options()
    values = np.random.default_rng(1).integers(0, 99, (8, 8))
    zardine.create_array(f"s3://{bucket}", data=values, chunks=(4, 4), storage_options=options)
    ask = asker(f"s3://{bucket}", storage_options=options)
    question = {"axes": "0,1", "at": "0,0", "box": "0,8,0,8", "step": "1,1"}
    ask.json("node", page="one")
    first = ask.meter
    ask.json("node", page="two")
    servers.s3().log()
    ask.picture(page="two", **question)
    logged = [line for line in servers.s3().log() if "GET" in line or "HEAD" in line]
    assert ask.meter["decoded"] == 4
    assert ask.meter["requests"] >= len(logged) >= 4
    ask.json("table", page="one", at="0,0", axes="0", count="1")
    assert ask.meter["decoded"] == 1
    assert first["requests"] < ask.meter["requests"] < first["requests"] + len(logged)


def test_pages_that_a_server_knows_are_bounded(asker: Any) -> None:
    """Whoever makes up names makes the server forget old pages; what these knew is told to be gone, not mixed up."""
    ask = asker(zardine.create_array(MemoryStore(), data=np.arange(12).reshape(3, 4)))
    number = ask.json("node", page="first")["snapshot"]
    for i in range(70):
        ask.json("node", page=f"{i}" * 1000)
    status, body = ask.ask("value", page="first", at="0,0", snapshot=number)
    assert (status, json.loads(body)) == (409, {"changed": "the server has another state of it by now"})
    assert ask.json("value", page="first", at="1,1")["text"] == "5"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_that_are_changed_are_told_of(asker: Any, tmp_path: Path, zarr_format: int) -> None:
    root = zardine.create_group(tmp_path / "g", zarr_format=zarr_format)
    root.create_group("a")
    ask = asker(tmp_path / "g")
    seen = []
    for change in (
        lambda: None,
        lambda: root.create_array("b", data=np.arange(3)),
        lambda: root.attrs.update(title="new"),
        lambda: zardine.consolidate_metadata(tmp_path / "g"),
        lambda: root["a"].attrs.update(inner=1),
    ):
        state = ask.json("node")["state"]
        change()
        seen.append(ask.ask("changes", state=state)[0])
    assert seen == [200, 409, 409, 409, 200]  # a look at a group is not one at all below it
    state = ask.json("node", "a")["state"]
    del root["a"]
    zardine.create_array(root.store, name="a", data=np.arange(3), zarr_format=zarr_format)
    assert ask.ask("changes", "a", state=state)[0] == 409


def test_vectors_are_seen_in_one_state(asker: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    vectors.write_points(tmp_path / "p", rng.random((50, 3)) * 10, chunk_shape=(5, 5, 5))
    ask = asker(tmp_path / "p")
    number = ask.json("node")["snapshot"]
    assert ask.ask("geometry", level=0, snapshot=number)[0] == 200
    assert ask.ask("changes", snapshot=number)[0] == 200
    vectors.append_points(tmp_path / "p", rng.random((5, 3)) * 10)
    assert ask.ask("geometry", level=0, snapshot=number)[0] == 409
    assert ask.ask("changes", snapshot=number)[0] == 409
    number = ask.json("node")["snapshot"]
    status, body = ask.ask("geometry", level=0, snapshot=number)
    assert (status, json.loads(body.partition(b"\n")[0])["vertices"]) == (200, 55)
    assert ask.ask("geometry", level=7, snapshot=number)[0] == 400


def test_a_steady_store_reads_nothing_for_nobody() -> None:
    inner = MemoryStore()
    inner.set("a", b"1")
    steady = SteadyStore(inner)
    waiting = [True]
    twin = steady.while_waited_for(lambda: not waiting[0])
    assert bytes(twin.get("a")) == b"1"
    waiting[0] = False
    with pytest.raises(NobodyWaits):
        twin.get("a")
    steady.check()
    inner.set("a", b"2")
    for look in (steady.check, lambda: steady.get("a"), lambda: steady.get_partial_values([("a", (0, 1))])):
        with pytest.raises(ChangedError, match="'a' was changed"):
            look()


def test_the_page_knows_whom_the_server_lets_in(asker: Any) -> None:
    ask = asker(zardine.group(MemoryStore()), cors=["https://browzarr.io"])
    assert json.loads(ask.raw("nodes.json")[1]) == {"nodes": ["data"], "origins": ["https://browzarr.io"]}


def test_a_client_that_went_away_is_read_nothing_for(asker: Any) -> None:
    """The picture of a hundred chunks stops where nobody waits for it."""
    array = zardine.create_array(MemoryStore(), shape=(100, 2**21), chunks=(1, 2**21), dtype="u1")
    array[...] = np.random.default_rng(1).integers(0, 255, 2**21, dtype="u1")
    ask = asker(array)
    number = ask.json("node")["snapshot"]
    query = urlencode({"axes": "0,1", "at": "0,0", "box": f"0,100,0,{2**21}", "step": "1,4096", "reduce": "max"})
    connection = http.client.HTTPConnection("127.0.0.1", ask.server.port, timeout=30)
    connection.request("GET", f"/{ask.server.token}/view/api/data/picture?{query}&snapshot={number}&seconds=2")
    connection.sock.close()
    connection.close()
    import time

    last = -1
    while last != (now := ask.json("changes", snapshot=number) and ask.meter["decoded"]):
        last = now
        time.sleep(0.3)
    assert last < 100


def test_a_file_of_netcdf(asker: Any, tmp_path: Path) -> None:
    import netCDF4

    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 6)
        file.createVariable("v", "i4", ("x",))[:] = np.arange(6)
    ask = asker(str(tmp_path / "a.nc"))
    assert [each["name"] for each in ask.json("members")["members"]] == ["v"]
    assert ask.picture("v", axes="0", at="0", box="0,6", step="1")[1].tolist() == [[0, 1, 2, 3, 4, 5]]


def test_meanings_of_values(asker: Any) -> None:
    attributes = {"flag_values": [0, 1], "flag_meanings": "land sea"}
    root = zardine.create_group(MemoryStore())
    root.create_array("mask", shape=(3,), dtype="u1", attributes=attributes)
    assert asker(root).json("node", "mask")["meanings"] == {"0": "land", "1": "sea"}


def test_coordinates(asker: Any) -> None:
    root = zardine.create_group(MemoryStore())
    root.create_array("t2m", shape=(3, 4), dtype="f4", dimension_names=("time", "lat"))
    root.create_array("time", data=np.array([0.0, 0.5, 31]), attributes={"units": "days since 2000-1-1 06:00"})
    root.create_array("lat", data=np.array([0, 30, 60, 90]), attributes={"units": "degrees_north"})
    ask = asker(root)
    assert ask.json("value", "t2m", at="1,2")["labels"] == ["2000-01-01 18:00:00", "60°N"]
    assert ask.json("value", "t2m", at="2,3")["labels"] == ["2000-02-01 06:00:00", "90°N"]
    assert [axis["coordinate"] for axis in ask.json("node", "t2m")["axes"]] == ["time", "lat"]


def test_the_share_of_a_box() -> None:
    bounds = [[0, 0, 5], [10, 20, 5]]
    assert share_of(None, bounds) == 1
    assert share_of([[-5, 5, 0], [5, 15, 9]], bounds) == 0.25
    assert share_of([[11, 0, 0], [12, 20, 9]], bounds) == 0


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 9), (7, 3), (16, 16), (33, 5)])
def test_a_sample_comes_to_every_place_once(rows: int, columns: int) -> None:
    numbers = numbers_of(rows, columns)
    places = spread(rows, columns, 0, numbers)
    assert sorted(places.tolist()) == [[i, j] for i in range(rows) for j in range(columns)]
    halves = [spread(rows, columns, start, 2) for start in range(0, numbers, 2)]
    np.testing.assert_array_equal(np.concatenate(halves), places)


def test_what_is_not_read_is_guessed_from_what_is_near() -> None:
    canvas = Canvas(Frame(0, 8, 1), Frame(0, 8, 1), "nearest", np.dtype("i4"))
    canvas.add(0, 0, np.full((2, 2), 5, "i4"))
    canvas.add(4, 4, np.full((2, 2), 6, "i4"))
    pixels, states = canvas.finished()
    assert (states[0, 0], states[3, 3], states[7, 7]) == (VALUE, VALUE | GUESSED, VALUE | GUESSED)
    assert (pixels[2, 0], pixels[7, 7], pixels[3, 7], pixels[7, 0], pixels[0, 7]) == (5, 6, 6, 6, 5)
