"""Arrays of zarr-python on a server of S3: by s3fs and by obstore, from several processes."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.storage

import zardine.zarr_python
from servers import servers
from zardine.stores.fsspec.store import FsspecStore
from zardine.stores.object.store import ObjectStore
from zardine.zarr_python.stores import store_of

pytestmark = pytest.mark.filterwarnings("error:.*no conditional writes")

_OPEN = """
import sys
import numpy as np, zarr, zarr.storage

def store_at(kind, url, bucket):
    if kind == "s3fs":
        options = {"key": "test", "secret": "test", "client_kwargs": {"endpoint_url": url}}
        return zarr.storage.FsspecStore.from_url(f"s3://{bucket}/root", storage_options=options)
    import obstore.store
    inner = obstore.store.S3Store(
        bucket, prefix="root", endpoint=url, access_key_id="test", secret_access_key="test", region="us-east-1",
        client_options={"allow_http": True})
    return zarr.storage.ObjectStore(inner)
"""
_WRITE = f"""{_OPEN}
import zardine.zarr_python
zardine.zarr_python.enable(strict=True)
array = zarr.open_array(store_at(*sys.argv[2:]), path="a")
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[1]), 16, 2):
    row, column = divmod(number, 4)
    array[row * 4 : row * 4 + 4, column * 4 : column * 4 + 4] = number + 1
"""
_made: dict[str, Any] = {}
exec(_OPEN, _made)
store_at = _made["store_at"]


@pytest.fixture(autouse=True)
def ours() -> Iterator[None]:
    """Zardine's pipeline, where anything that it does not know is an error."""
    with zardine.zarr_python.enable(strict=True):
        yield


@pytest.fixture(params=["s3fs", "obstore"])
def kind(request: pytest.FixtureRequest) -> str:
    """What zarr-python reaches the server by."""
    servers.s3()
    servers.package(request.param)
    return str(request.param)


def test_selections(kind: str) -> None:
    store = store_at(kind, servers.s3().url, servers.new_bucket())
    d = np.arange(64 * 64, dtype="i4").reshape(64, 64)
    a = zarr.create_array(store, name="a", shape=(64, 64), shards=(32, 64), chunks=(8, 8), dtype="i4")
    a[:] = d
    a[3:50, 7] = d[3:50, 7] = 1
    a.vindex[[1, 40], [2, 60]] = d[[1, 40], [2, 60]] = 5
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        plain = zarr.open_array(store, path="a")[:]
    for found in (a[:], plain, zarr.open_array(store, path="a", mode="r")[:]):
        np.testing.assert_array_equal(found, d)
    servers.s3().log()
    assert a[3, 7] == 1
    ranges = [line.split()[2] for line in servers.s3().log() if "/c/" in line]
    assert ranges
    assert all(each != "-" for each in ranges)  # an index and an inner chunk, or the chunk alone; never the shard


def test_two_processes_write_chunks_of_one_shard_and_nothing_is_lost(kind: str) -> None:
    where = kind, servers.s3().url, servers.new_bucket()
    a = zarr.create_array(store_at(*where), name="a", shape=(16, 16), shards=(16, 16), chunks=(4, 4), dtype="i4")
    command = [sys.executable, "-c", _WRITE]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, str(i), *where], **pipes) for i in range(2)]
    assert [each.stdout.readline() for each in writers if each.stdout] == ["ready\n"] * 2
    for each in writers:
        each.communicate("go\n", timeout=60)
    assert [each.returncode for each in writers] == [0, 0]
    np.testing.assert_array_equal(a[::4, ::4].reshape(-1), np.arange(1, 17))
    assert (a[:] == np.arange(1, 17).reshape(4, 4).repeat(4, 0).repeat(4, 1)).all()
    conditions = [line.split()[-1] for line in servers.s3().log() if line.startswith("PUT ") and "/c/" in line]
    assert len(conditions) >= 16
    assert set(conditions) <= {"IF_MATCH", "IF_NONE_MATCH"}


def test_filesystems_of_s3fs_are_buckets_where_keys_and_place_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    package = servers.package("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)

    def found(path: str = "bucket/root", **options: Any) -> Any:
        fs = package.S3FileSystem(asynchronous=True, skip_instance_cache=True, **options)
        return store_of(zarr.storage.FsspecStore(fs, path=path))

    keys, place = {"key": "a", "secret": "b"}, {"endpoint_url": "http://127.0.0.1:1"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(found(**keys, **place), ObjectStore)
        assert isinstance(found(anon=True, client_kwargs={"region_name": "eu-west-1"}), ObjectStore)
        for options in (
            keys,
            place,
            {**keys, **place, "s3_additional_kwargs": {"ACL": "private"}},
            {**place, "profile": "work"},
        ):
            assert isinstance(found(**options), FsspecStore), options
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        assert isinstance(found(), ObjectStore)
        assert found().store.prefix == "root"
