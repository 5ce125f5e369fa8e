"""Other programs read what is served: as it lies there, by ranges, and as plain v3, out of every kind of store."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import obstore
import pytest
import tensorstore

import zardine
from effort import SOAK, some
from servers import servers
from zardine.storage import MemoryStore, ZipStore

HERE = Path(__file__).parent
STORES = ("folder", "zip", "s3", "memory")
NUMBERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?")
NESTED, RARE = "nested", ("f2", "c8", "c16", ">i4", ">f8", "M8[s]", "U5", "T")


def arrays() -> Iterator[tuple[str, Callable[[Any], npt.NDArray[Any]]]]:
    """Fifty arrays: names, and what writes one into a group and gives its values. A name says what is special."""
    rng = np.random.default_rng(7)

    def values(dtype: str, shape: tuple[int, ...] = (11, 13)) -> npt.NDArray[Any]:
        found = rng.random(shape) * 100
        return (found + 1j * found).astype(dtype) if dtype[0] == "c" else found.astype(dtype)

    def plain(name: str, data: npt.NDArray[Any], **options: Any) -> tuple[str, Callable[[Any], npt.NDArray[Any]]]:
        def write(group: Any) -> npt.NDArray[Any]:
            group.create_array(name, data=data, **options)
            return data

        return name, write

    for dtype in NUMBERS:
        yield plain(f"sharded-{np.dtype(dtype).name}", values(dtype), chunks=(2, 3), shards=(6, 6))
    for dtype in NUMBERS[::2]:
        yield plain(f"unsharded-{np.dtype(dtype).name}", values(dtype), chunks=(4, 5), compressors=[{"name": "gzip"}])
    for name, options in {
        "zstd": {"compressors": [{"name": "zstd", "configuration": {"level": 3}}]},
        "blosc": {"compressors": [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5}}]},
        "raw": {"compressors": None, "checksum": False},
        "crc32c": {"compressors": None, "checksum": True},
        "transposed": {"filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
        "gzip-in-shards": {"compressors": [{"name": "gzip"}], "shards": (8, 10)},
        "blosc-zstd": {"compressors": [{"name": "blosc", "configuration": {"cname": "zstd", "shuffle": "shuffle"}}]},
        "v2-keys": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    }.items():
        yield plain(name, values("i4"), chunks=(4, 5), **options)
    for rank, (shape, chunks, shards) in enumerate(
        [((1,), (1,), (1,)), ((17,), (3,), (9,)), ((5, 7), (2, 3), None), ((3, 4, 5), (2, 2, 2), (4, 4, 4)),
         ((2, 3, 4, 5), (1, 2, 2, 3), (2, 2, 4, 6)), ((2, 2, 2, 3, 3), (1, 1, 2, 2, 2), None)]
    ):  # fmt: skip
        yield plain(f"shape-{rank}", values("f4", shape), chunks=chunks, shards=shards)
    yield plain("no-axis", np.array(2.5))
    yield plain("empty", np.zeros((0, 3), "i4"))
    yield plain("one-chunk", values("f8"), chunks=(11, 13))
    yield plain("tiny-chunks", values("u1", (6, 6)), chunks=(1, 1), shards=(6, 6))
    yield plain("nan", np.where(values("f8") > 50, np.nan, 1.5), chunks=(4, 5), fill_value=float("nan"))
    yield plain("negative-zero", np.where(values("f4") > 50, -0.0, 0.0).astype("f4"), chunks=(4, 5))
    yield plain("ends", np.array([np.iinfo("i8").min, -1, 0, 2**53 + 1, np.iinfo("i8").max]), chunks=(2,))

    def in_part(group: Any, name: str, fill: int, **options: Any) -> npt.NDArray[Any]:
        array = group.create_array(name, shape=(20, 20), chunks=(2, 2), dtype="i4", fill_value=fill, **options)
        array[3:7, 3:7] = 5
        found = np.full((20, 20), fill, "i4")
        found[3:7, 3:7] = 5
        return found

    yield "in-part", lambda group: in_part(group, "in-part", -9, shards=(10, 10))
    yield "in-part-unsharded", lambda group: in_part(group, "in-part-unsharded", 7)

    def index_first(group: Any) -> npt.NDArray[Any]:
        inner = {"chunk_shape": [2, 2], "codecs": ["bytes", "zstd"], "index_codecs": ["bytes", "crc32c"]}
        sharding = {"name": "sharding_indexed", "configuration": inner | {"index_location": "start"}}
        group.create_array(
            "index-first", shape=(9, 9), chunks=(8, 8), dtype="u2", serializer=sharding, compressors=None
        )
        group["index-first"][:] = np.arange(81).reshape(9, 9)
        return np.arange(81, dtype="u2").reshape(9, 9)

    yield "index-first", index_first

    def nested(group: Any) -> npt.NDArray[Any]:
        inner = {"chunk_shape": [2, 2], "codecs": ["bytes", "crc32c"], "index_codecs": ["bytes", "crc32c"]}
        outer = {"chunk_shape": [4, 4], "codecs": [{"name": "sharding_indexed", "configuration": inner}]}
        sharding = {"name": "sharding_indexed", "configuration": outer | {"index_codecs": ["bytes", "crc32c"]}}
        group.create_array(NESTED, shape=(9, 9), chunks=(8, 8), dtype="i4", serializer=sharding, compressors=None)
        group[NESTED][:] = np.arange(81).reshape(9, 9)
        return np.arange(81, dtype="i4").reshape(9, 9)

    yield NESTED, nested
    for dtype in RARE:
        data = values("i8").astype(dtype) if dtype[0] in "MUT" else values(dtype)
        yield plain(f"rare-{dtype}", data, chunks=(4, 5))


def write(group: Any, one_in: int = 1) -> dict[str, npt.NDArray[Any]]:
    """Write the arrays, or some of them, and give their values by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of types that have no specification
        return {name: make(group) for name, make in some(arrays(), one_in)}


def given(name: str, values: npt.NDArray[Any], below: str) -> npt.NDArray[Any]:
    """What a client gets: below ``/v3`` other types for those that few know."""
    if below == "v3" and name.startswith("rare-"):
        if values.dtype.kind in "MUT":
            return values.view("i8") if values.dtype.kind == "M" else values
        return values.astype(np.float32 if values.dtype == "f2" else values.dtype.newbyteorder("="))
    return values


def test_there_are_fifty() -> None:
    assert len({name for name, _ in arrays()}) == 50


EVERYWHERE = pytest.mark.parametrize(
    ("served", "below"),
    [
        (store, below)
        for turn, store in enumerate(STORES)
        for below in ("data", "v3")
        if SOAK or store == "folder" or (below == "v3") == bool(turn % 2)
    ],
    indirect=["served"],
    scope="module",
)
"""Each store, and both forms of what is served, which meet in full for one of them."""


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server, and what was written into the store that it serves."""
    folder, options = tmp_path_factory.mktemp("served"), None
    if request.param == "folder":
        node: Any = folder / "a.zarr"
        written = write(zardine.open_group(node, mode="w"))
    elif request.param == "zip":
        node = str(folder / "a.zip")
        with ZipStore(node, mode="w") as archive:
            written = write(zardine.group(archive), 4)
    elif request.param == "s3":
        node, options = f"s3://{servers.new_bucket()}/a.zarr", servers.s3_options()
        written = write(zardine.open_group(node, mode="w", storage_options=options), 6)
    else:
        node = zardine.group(MemoryStore())
        written = write(node, 4)
    with zardine.serve({"a": node}, storage_options=options) as server:
        yield server, written


CANNOT = {
    ("zarrita", "data"): {
        NESTED,
        "index-first",
        "empty",
        *(f"rare-{each}" for each in RARE),
    },  # that is what /v3 is for
    ("zarrita", "v3"): {"empty", "rare-c8", "rare-c16"},
    ("tensorstore", "data"): {"rare-M8[s]", "rare-U5", "rare-T"},
    ("tensorstore", "v3"): {"rare-U5", "rare-T"},
}
"""Arrays that a program may have an error for; all others it reads."""


def compare(program: str, below: str, written: dict[str, npt.NDArray[Any]], read: Callable[[str], Any]) -> None:
    """Read each array, and compare it with what was written."""
    failed = {}
    for name, values in written.items():
        try:
            got = read(name)
        except Exception as error:
            failed[name] = error
        else:
            np.testing.assert_array_equal(got, given(name, values, below), err_msg=name)
    assert set(failed) <= CANNOT.get((program, below), set()), failed


@EVERYWHERE
def test_zarrita(served: Any, below: str) -> None:
    server, written = served
    node, modules = servers.zarrita()
    script = shutil.copy(HERE / "zarrita_reads.mjs", modules)
    urls = [f"{server.url}{below}/a/{quote(name)}" for name in written]
    done = subprocess.run([node, script], input=json.dumps(urls), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = dict(zip(written, map(json.loads, done.stdout.splitlines()), strict=True))

    def read(name: str) -> Any:
        found = answers[name]
        if "error" in found:
            raise ValueError(found["error"])
        if "values" in found:
            return np.array(found["values"], dtype=given(name, written[name], below).dtype).reshape(found["shape"])
        kind = {"bool": "?", "float16": "f2"}.get(found["dtype"], found["dtype"])
        flat = np.frombuffer(base64.b64decode(found["bytes"]), kind)
        return np.lib.stride_tricks.as_strided(flat, found["shape"], [n * flat.itemsize for n in found["stride"]])

    compare("zarrita", below, written, read)


@EVERYWHERE
def test_tensorstore(served: Any, below: str) -> None:
    server, written = served

    def read(name: str) -> Any:
        address = f"{server.url}{below}/a/{quote(name)}"
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": address}}
        return tensorstore.open(spec).result().read().result()

    compare("tensorstore", below, written, read)


@EVERYWHERE
@pytest.mark.parametrize("through", ["fsspec", "obstore"])
def test_zarr_python(served: Any, below: str, through: str) -> None:
    import zarr

    server, written = served
    address = f"{server.url}{below}/a"
    if through == "obstore":
        store: Any = zarr.storage.ObjectStore(
            obstore.store.HTTPStore.from_url(address, client_options={"allow_http": True}), read_only=True
        )
    else:
        store = zarr.storage.FsspecStore.from_url(address, read_only=True)
    if through == "obstore":  # another way to the same bytes
        written = dict(some(written.items(), 3))
    compare(f"zarr-python by {through}", below, written, lambda name: zarr.open_array(store, path=name, mode="r")[...])


def test_zarrita_lists_what_is_below_a_group(tmp_path: Path) -> None:
    """As Browzarr does: by the consolidated metadata of the plain form."""
    root = zardine.open_group(tmp_path / "a.zarr", mode="w")
    root.create_array("g/x", data=np.arange(4))
    root.create_array("y", data=np.arange(4), zarr_format=3)
    node, modules = servers.zarrita()
    script = shutil.copy(HERE / "zarrita_reads.mjs", modules)
    with zardine.serve({"a": tmp_path / "a.zarr"}) as server:
        asked = json.dumps([{"group": f"{server.url}v3/a"}])
        done = subprocess.run([node, script], input=asked, capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)["contents"]
    assert sorted(each["path"] for each in found if each["kind"] == "array") == ["/g/x", "/y"]


def test_damage_is_an_error_in_other_programs(tmp_path: Path) -> None:
    """zarrita.js does not look at checksums: from ``/v3`` it gets none of the wrong values."""
    array = zardine.create_array(tmp_path / "a.zarr", data=np.arange(64, dtype="i4"), chunks=(8,), shards=(64,))
    shard = bytearray((tmp_path / "a.zarr/c/0").read_bytes())
    shard[3] ^= 0x10
    (tmp_path / "a.zarr/c/0").write_bytes(shard)
    node, modules = servers.zarrita()
    script = shutil.copy(HERE / "zarrita_reads.mjs", modules)
    with zardine.serve({"a": array}) as server:
        done = subprocess.run(
            [node, script], input=json.dumps([f"{server.url}v3/a"]), capture_output=True, text=True, timeout=60
        )
    assert "500" in json.loads(done.stdout)["error"]
