"""Other programs read what is served: as it lies there, by ranges, and as plain v3, out of every kind of store."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
import tensorstore

import zardine
from servers import servers
from zardine.storage import MemoryStore, ZipStore

HERE = Path(__file__).parent
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?")
STORES = ("folder", "zip", "s3", "memory")


def write(group: Any, dtypes: tuple[str, ...] = DTYPES) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    written = {}
    for dtype in dtypes:
        values = (rng.random((11, 13)) * 100).astype(dtype)
        name = f"sharded-{np.dtype(dtype).name}"
        group.create_array(name, data=values, chunks=(2, 3), shards=(6, 6))
        written[name] = values
    group.create_array("unsharded", data=values, chunks=(4, 5), compressors=[{"name": "gzip"}])
    written["unsharded"] = values
    part = group.create_array("in-part", shape=(20, 20), chunks=(2, 2), shards=(10, 10), dtype="i4", fill_value=-9)
    part[3:7, 3:7] = 5
    written["in-part"] = part[:]
    inner = {"chunk_shape": [2, 2], "codecs": ["bytes", "crc32c"], "index_codecs": ["bytes", "crc32c"]}
    outer = {"chunk_shape": [4, 4], "codecs": [{"name": "sharding_indexed", "configuration": inner}]}
    sharding = {"name": "sharding_indexed", "configuration": outer | {"index_codecs": ["bytes", "crc32c"]}}
    nested = group.create_array(
        "nested", shape=(9, 9), chunks=(8, 8), dtype="i4", serializer=sharding, compressors=None
    )
    nested[:] = written["nested"] = np.arange(81, dtype="i4").reshape(9, 9)
    return written


@pytest.fixture(scope="module", params=STORES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server, and what was written into the store that it serves."""
    folder, options = tmp_path_factory.mktemp("served"), None
    if request.param == "folder":
        node: Any = folder / "a.zarr"
        written = write(zardine.open_group(node, mode="w"))
    elif request.param == "zip":
        node = str(folder / "a.zip")
        with ZipStore(node, mode="w") as archive:
            written = write(zardine.group(archive))
    elif request.param == "s3":
        node, options = f"s3://{servers.new_bucket()}/a.zarr", servers.s3_options()
        written = write(zardine.open_group(node, mode="w", storage_options=options), DTYPES[::3])
    else:
        node = zardine.group(MemoryStore())
        written = write(node)
    with zardine.serve({"a": node}, storage_options=options) as server:
        yield server, written


@pytest.mark.parametrize("below", ["data", "v3"])
def test_zarrita(served: Any, below: str, tmp_path: Path) -> None:
    server, written = served
    node, modules = servers.zarrita()
    script = shutil.copy(HERE / "zarrita_reads.mjs", modules)
    urls = [f"{server.url}{below}/a/{name}" for name in written]
    done = subprocess.run([node, script], input=json.dumps(urls), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for (name, values), line in zip(written.items(), done.stdout.splitlines(), strict=True):
        found = json.loads(line)
        if (name, below) == ("nested", "data"):
            assert "sharding_indexed" in found["error"]  # it knows no shards in shards: that is what /v3 is for
            continue
        assert "error" not in found, f"{name}: {found}"
        assert found["shape"] == list(values.shape)
        got = np.frombuffer(base64.b64decode(found["bytes"]), values.dtype).reshape(values.shape)
        np.testing.assert_array_equal(got, values, err_msg=name)


@pytest.mark.parametrize("below", ["data", "v3"])
def test_tensorstore(served: Any, below: str) -> None:
    server, written = served
    for name, values in written.items():
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": f"{server.url}{below}/a/{name}"}}
        np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), values, err_msg=name)


@pytest.mark.parametrize("below", ["data", "v3"])
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
    for name, values in written.items():
        found = zarr.open_array(store, path=name, mode="r")
        np.testing.assert_array_equal(found[:], values, err_msg=name)


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
