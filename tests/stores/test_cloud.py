"""Clouds from a user's point of view: URLs, credentials, what goes wrong, and several writers at once."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from base64 import b64encode
from datetime import timedelta

import numpy as np
import pytest

import zardine
from servers import servers
from zardine.errors import ConditionFailedError, ReadOnlyError, StoreError, UnsupportedError
from zardine.storage import Condition, ObjectStore
from zardine.stores.object.urls import object_store_of_url
from zardine.stores.resolve import resolve_store

CLOUDS = pytest.mark.parametrize("cloud", ["s3", "az"])
FEW = {"max_retries": 0, "retry_timeout": 1.0}


def place(cloud: str) -> tuple[str, dict]:
    """The URL of an empty bucket, and storage options."""
    if cloud == "s3":
        return f"s3://{servers.new_bucket()}", servers.s3_options()
    return f"az://{servers.new_container()}", servers.azure_options()


@CLOUDS
def test_an_array_by_its_url(cloud):
    url, options = place(cloud)
    values = np.arange(64).reshape(8, 8)
    array = zardine.create_array(
        f"{url}/data/a.zarr", shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="i4", storage_options=options
    )
    array[...] = values
    array[3, 3] = values[3, 3] = 5
    again = zardine.open(f"{url}/data/a.zarr", mode="r", storage_options=options)
    assert (again[...] == values).all()
    assert (again[::3, 1:7] == values[::3, 1:7]).all()
    with pytest.raises(ReadOnlyError):
        again[0, 0] = 1
    group = zardine.open_group(f"{url}/g.zarr", mode="w", storage_options=options)
    group.create_array("x/y", shape=(3,), dtype="f8")[...] = 2
    inner = zardine.open(f"{url}/g.zarr::x/y", storage_options=options)
    assert inner[...].tolist() == [2, 2, 2]
    assert sorted(group.store.list()) == ["x/y/c/0", "x/y/zarr.json", "x/zarr.json", "zarr.json"]
    zardine.open_group(f"{url}/g.zarr", mode="w", storage_options=options)
    assert list(group.store.list()) == ["zarr.json"]


_WRITER = """
    import sys, warnings
    import numpy as np
    import zardine
    from servers import servers
    url, number, service = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    options = (servers.s3_options if url.startswith("s3") else servers.azure_options)(service)
    array = zardine.open_array(url, mode="r+", storage_options=options)
    for turn in range(4):
        for place in range(number, 64, 4):
            row, column = divmod(place, 8)
            array[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = place + 1
        array.attrs[f"writer-{number}"] = turn
"""


@CLOUDS
def test_four_processes_lose_nothing(cloud):
    """Each writes its own inner chunks of one shard, again and again, and its own attribute."""
    url, options = place(cloud)
    array = zardine.create_array(
        f"{url}/a", shape=(16, 16), chunks=(2, 2), shards=(16, 16), dtype="i4", storage_options=options
    )
    service = (servers.s3() if cloud == "s3" else servers.azure()).url
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(_WRITER), f"{url}/a", str(number), service],
            env=environment,
        )
        for number in range(4)
    ]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    expected = np.repeat(np.repeat(np.arange(1, 65).reshape(8, 8), 2, 0), 2, 1)
    array = zardine.open_array(f"{url}/a", storage_options=options)
    assert (array[...] == expected).all()
    assert dict(array.attrs) == {f"writer-{number}": 3 for number in range(4)}


@CLOUDS
def test_stores_are_values(cloud):
    url, options = place(cloud)
    store = resolve_store(f"{url}/a", storage_options=options)[0]
    twin = pickle.loads(pickle.dumps(store))
    assert (twin, hash(twin), str(twin)) == (store, hash(store), f"{url}/a")
    twin.set("k", b"x")
    assert store.get("k") == b"x"
    assert store.with_read_only(True) != store
    assert store != resolve_store(f"{url}/b", storage_options=options)[0]
    assert isinstance(resolve_store(store.store)[0], ObjectStore)
    assert resolve_store(store.store)[0] == store
    assert store.cost.requests == 64


def test_a_forked_child_gets_an_error_and_does_not_wait_for_ever():
    url, options = place("s3")
    store = resolve_store(url, storage_options=options)[0]
    assert store.get("k") is None
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.get("k")
        except StoreError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"spawn" in os.read(read, 10_000)


def test_errors_of_s3_say_what_to_do(monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(StoreError, match="no such bucket"):
        zardine.open("s3://no-such-bucket/a", storage_options=servers.s3_options())
    with pytest.raises(StoreError, match="no such bucket"):
        zardine.create_array("s3://no-such-bucket/a", shape=3, dtype="i4", storage_options=servers.s3_options())
    with pytest.raises(StoreError, match="no such bucket"):
        list(resolve_store("s3://no-such-bucket/a", storage_options=servers.s3_options())[0].list())
    with pytest.raises(StoreError, match="cannot be reached"):
        zardine.open("s3://b/a", mode="r", storage_options=servers.s3_options("http://127.0.0.1:1", **FEW))
    with pytest.raises(StoreError, match=r"no credentials.*AWS_ACCESS_KEY_ID.*anon=True"):
        zardine.open("s3://b/a", mode="r", storage_options={"metadata_endpoint": "http://127.0.0.1:1", **FEW})
    with pytest.raises(StoreError, match="profile 'me'"):
        zardine.open("s3://b/a", storage_options={"profile": "me"})


def test_a_profile_gives_credentials(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    bucket = servers.new_bucket()
    (tmp_path / "credentials").write_text(
        "[me]\naws_access_key_id = a\naws_secret_access_key = b\n[sso]\nsso_session = x\n"
    )
    (tmp_path / "config").write_text(f"[profile me]\nregion = us-east-1\nendpoint_url = {servers.s3().url}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "me")
    store = resolve_store(f"s3://{bucket}/a")[0]
    store.set("k", b"x")
    assert store.get("k") == b"x"
    with pytest.raises(StoreError, match="export-credentials"):
        resolve_store(f"s3://{bucket}/a", storage_options={"profile": "sso"})


@pytest.mark.parametrize(("status", "text"), [(403, "forbidden"), (401, "not authenticated"), (429, "throttling")])
def test_refusals(status, text):
    from servers.fault_proxy import FaultProxy

    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.faults = [status] * 9
    store = resolve_store("s3://b/a", storage_options=servers.s3_options(proxy.url, **FEW))[0]
    for call in (lambda: store.get("k"), lambda: store.set("k", b""), lambda: list(store.list())):
        with pytest.raises(StoreError, match=text):
            call()
    proxy.close()


def test_errors_of_azure_say_what_to_do(monkeypatch):
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    with pytest.raises(StoreError, match="no such bucket or container"):
        zardine.open("az://no-such-container/a", storage_options=servers.azure_options())
    with pytest.raises(StoreError, match="account_name"):
        zardine.open("az://container/a")
    wrong = servers.azure_options(account_key="d3Jvbmc=")
    with pytest.raises(StoreError, match="forbidden"):
        zardine.open(f"az://{servers.new_container()}/a", storage_options=wrong)
    with pytest.raises(StoreError, match="connection string"):
        zardine.open("az://container/a", storage_options={"connection_string": "x=y"})
    text = f"AccountName={servers.AZURE_ACCOUNT};AccountKey={servers.AZURE_KEY};BlobEndpoint={servers.azure().url}"
    store = resolve_store(f"az://{servers.new_container()}", storage_options={"connection_string": text})[0]
    store.set("k", b"x")
    assert store.get("k") == b"x"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert resolve_store(f"az://{servers.new_container()}")[0].get("k") is None
    by_host = resolve_store("abfs://c@acc.dfs.core.windows.net/p", storage_options={"account_key": "Zm9v"})[0]
    assert by_host.store.config["account_name"] == "acc"
    assert str(by_host) == "az://c/p"


def test_options():
    for service, options, known in (
        ("s3", {"endpoint_urll": "x"}, "did you mean 'endpoint_url'"),
        ("gs", {"project_name": 1}, "service_account"),
        ("gs", {"token": "cache"}, "gcloud auth application-default login"),
        ("gs", {"token": 5}, "not int"),
        ("az", {"credential": 5, "account_name": "a"}, "client_id"),
        ("s3", {"timeout": "abc"}, "timeout is a number of seconds, or a text such as '10s'"),
        ("s3", {"retry_timeout": [1]}, "retry_timeout is a number of seconds"),
        ("s3", {"max_retries": "many"}, "cannot be opened"),
        ("s3", {"config_kwargs": {"s3": {"payload": 1}}}, "unknown name 's3'"),
        ("az", {"nonsense": 1}, "account_key"),
        ("s3", {"client_options": {"tiemout": 1}}, "client_options.tiemout"),
        ("s3", {"key": "a", "access_key_id": "b"}, "both give"),
        ("s3", {"s3_additional_kwargs": {"ACL": "public-read"}}, "cannot send ACL .*s3fs.S3FileSystem"),
        ("s3", {"s3_additional_kwargs": {"StorageClass": "GLACIER_IR"}}, "cannot send StorageClass "),
        ("s3", {"s3_additional_kwargs": {"Tagging": "a=b", "ServerSideEncryption": "AES256"}}, "cannot send Tagging "),
        ("s3", {"s3_additional_kwargs": {"ChecksumAlgorithm": "CRC32"}}, "cannot send ChecksumAlgorithm='CRC32'"),
        ("s3", {"s3_additional_kwargs": ["ACL"]}, "s3_additional_kwargs is a mapping"),
        ("gs", {"s3_additional_kwargs": {"ACL": "private"}}, "no meaning for gs://"),
    ):
        with pytest.raises(TypeError, match=known):
            object_store_of_url(service, "bucket/a", options)
    with pytest.raises(TypeError, match=r"http:// and https://.*headers"):
        zardine.open("https://localhost:1/a", storage_options={"key": "x"})
    for bad in ("anon", ["anon"], 5):
        for url in ("s3://bucket/a", "https://localhost:1/a", "memory://", "simplecache::memory://a"):
            with pytest.raises(TypeError, match="storage_options is a mapping"):
                zardine.open(url, storage_options=bad)
    with pytest.raises(StoreError, match=r"no service account file '/no/such\.json'"):
        object_store_of_url("gs", "bucket/a", {"token": "/no/such.json"})
    with pytest.raises(TypeError, match="no meaning"):
        zardine.open("memory://", storage_options={"key": "x"})
    with pytest.raises(StoreError, match="names no bucket"):
        zardine.open("s3://")
    store = object_store_of_url("gs", "bucket/a", {"token": "anon", "timeout": 3})
    assert store.store.config["skip_signature"]
    assert str(store) == "gs://bucket/a"


@pytest.mark.parametrize("time", [10, 10.0, "10", "10s", "10 s", "0.1m 4s", "10000ms", timedelta(seconds=10)])
def test_times(time):
    options = {"timeout": time, "retry_timeout": time, "connect_timeout": time, "read_timeout": time}
    inner = object_store_of_url("s3", "bucket/a", {"anon": True, **options}).store
    assert inner.retry_config["retry_timeout"] == timedelta(seconds=10)
    assert {inner.client_options[name] for name in ("timeout", "connect_timeout", "read_timeout")} == {"10s"}


@pytest.mark.parametrize(
    ("service", "given", "config"),
    [
        # as s3fs takes them
        ("s3", {"key": "a", "secret": "b", "token": "c"}, {"access_key_id": "a", "session_token": "c"}),
        ("s3", {"anon": True, "client_kwargs": {"region_name": "x", "endpoint_url": "http://h:1/"}}, {"region": "x"}),
        ("s3", {"anon": True, "use_ssl": False, "endpoint_url": "h:1"}, {"endpoint": "http://h:1"}),
        ("s3", {"anon": True, "use_ssl": True, "endpoint_url": "h:1"}, {"endpoint": "https://h:1"}),
        ("s3", {"anon": True, "use_ssl": False}, {"skip_signature": "true"}),
        (
            "s3",
            {"anon": True, "config_kwargs": {"s3": {"addressing_style": "virtual"}, "signature_version": "s3v4"}},
            {"virtual_hosted_style_request": "true"},
        ),
        ("s3", {"anon": True, "use_listings_cache": False, "version_aware": True, "cache_regions": True}, {}),
        (
            "s3",
            {"anon": True, "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn:k"}},
            {"server_side_encryption": "aws:kms", "sse_kms_key_id": "arn:k"},
        ),
        (
            "s3",
            {"anon": True, "s3_additional_kwargs": {"ServerSideEncryption": "AES256", "RequestPayer": "requester"}},
            {"server_side_encryption": "AES256", "request_payer": "true"},
        ),
        (
            "s3",
            {"anon": True, "s3_additional_kwargs": {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}},
            {"server_side_encryption": "sse-c", "sse_customer_key_base64": b64encode(b"k" * 32).decode()},
        ),
        ("s3", {"anon": True, "s3_additional_kwargs": {"ChecksumAlgorithm": "SHA256"}}, {}),
        # gcsfs
        ("gs", {"token": "anon", "project": "p", "access": "read_only", "consistency": "none"}, {}),
        ("gs", {"token": "ya29.abc"}, {"bearer_token": "ya29.abc"}),
        ("gs", {"token": "cloud"}, {}),
        ("gs", {"token": "google_default", "requests_timeout": 5}, {}),
        # adlfs
        ("az", {"account_name": "x", "credential": "Zm9v"}, {"account_key": "Zm9v"}),
        ("az", {"account_name": "x", "credential": "?sv=1&sig=abc"}, {}),
        (
            "az",
            {"account_name": "x", "account_host": "x.blob.core.windows.net", "anon": True},
            {"endpoint": "https://x.blob.core.windows.net"},
        ),
    ],
)
def test_names_of_other_libraries(service, given, config):
    found = object_store_of_url(service, "bucket/a", given).store.config
    assert {name: found.get(name) for name in config} == config


def test_without_the_package_the_error_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    for url in ("s3://bucket/a", "gs://bucket/a", "az://c/a", "https://localhost/a"):
        with pytest.raises(UnsupportedError, match=r"pip install 'zardine\[cloud\]'"):
            zardine.open(url)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.registry", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'zardine\[fsspec\]'"):
        zardine.open("sftp://host/a")


def test_archives_in_object_stores_and_on_web_servers(tmp_path):
    with zardine.storage.ZipStore(tmp_path / "a.zip") as store:
        group = zardine.open_group(store, mode="w")
        group.create_array("x", shape=(3,), chunks=(1,), shards=(3,), dtype="i4")[...] = [4, 5, 6]
    url, options = place("s3")
    resolve_store(url, storage_options=options)[0].set("deep/a.zip", (tmp_path / "a.zip").read_bytes())
    assert zardine.open(f"{url}/deep/a.zip::x", mode="r", storage_options=options)[1:].tolist() == [5, 6]
    server = servers.nginx()
    (server.root / "a.zip").write_bytes((tmp_path / "a.zip").read_bytes())
    assert list(zardine.open_group(f"{server.url}/a.zip", mode="r")) == ["x"]


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
def test_urls_of_fsspec(tmp_path):
    fsspec = servers.package("fsspec")
    values = np.arange(16).reshape(4, 4)
    mapper = fsspec.get_mapper("memory://data/place")
    array = zardine.create_array(mapper, shape=(4, 4), chunks=(1, 1), shards=(2, 2), dtype="i4")
    array[...] = values
    array[1, 1] = 50
    again = zardine.open(zardine.storage.FsspecStore.from_url("memory://data/place"), mode="r")
    assert again[1].tolist() == [4, 50, 6, 7]
    mapped = zardine.open(fsspec.get_mapper(f"file://{tmp_path}/m"), mode="w", shape=(2,), dtype="i4")
    mapped[...] = 3
    cached = zardine.open(f"simplecache::file://{tmp_path}/m")
    assert cached[...].tolist() == [3, 3]


def test_google_compares_generations():
    """Against a stand-in: Google's conditional puts go by the generation, not by the ETag."""
    from servers.gcs_server import GcsServer

    server = GcsServer()
    options = {"endpoint_url": server.url, "bearer_token": "t"}
    store = resolve_store("gs://bucket/a", storage_options=options)[0]
    first = store.set("k", b"1", condition=Condition(None))
    assert store.version("k") == first
    assert store.read("k", ((0, 1), (-1, None))).version == first
    second = store.set("k", b"2", condition=Condition(first))
    for stale in (None, first):
        with pytest.raises(ConditionFailedError):
            store.set("k", b"3", condition=Condition(stale))
    assert (store.get("k"), store.version("k")) == (b"2", second)
    array = zardine.create_array(
        "gs://bucket/b", shape=(8,), chunks=(2,), shards=(8,), dtype="i4", storage_options=options
    )
    array[2:4] = 5
    server.requests.clear()
    array[0] = 7
    assert [method for method, path, _ in server.requests if path.endswith("c/0")] == ["GET", "PUT"]
    assert [condition is not None for method, _, condition in server.requests if method == "PUT"] == [True]
    assert array[...].tolist() == [7, 0, 5, 5, 0, 0, 0, 0]
    server.close()
