"""What services refuse, and what becomes of it: the right error, with the service's own reason, and at once."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import zardine
from effort import SOAK
from servers import servers
from servers.fault_proxy import FaultProxy, answer, refusal
from zardine.errors import ConditionFailedError, StoreError, UnsupportedError
from zardine.storage import Condition, ObjectStore
from zardine.stores.object.urls import object_store_of_url
from zardine.stores.resolve import resolve_store

QUICK = {"max_retries": 2, "backoff": {}}


@pytest.fixture
def proxy(s3_proxy):
    s3_proxy.reset()
    return s3_proxy


@pytest.fixture(scope="module")
def bucket():
    return servers.new_bucket()


def store_of(proxy, bucket, **more):
    return object_store_of_url("s3", f"{bucket}/a", servers.s3_options(proxy.url, **{**QUICK, **more}))


def calls(store):
    return (
        lambda: store.get("k"),
        lambda: store.size("k"),
        lambda: store.set("k", b"x"),
        lambda: store.set("k", b"x", condition=Condition(None)),
        lambda: store.erase("k"),
        lambda: list(store.list()),
        lambda: store.list_dir(""),
    )


# the region of a bucket


def redirect(region: str | None) -> bytes:
    """As S3 answers: a redirection that says where to only by the name of the region."""
    named = {"x-amz-bucket-region": region} if region else {}
    return refusal(301, "PermanentRedirect", "The bucket you are attempting to access must be addressed ...", **named)


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (redirect("eu-west-1"), r"is in the region 'eu-west-1': give region='eu-west-1' in storage_options"),
        (redirect(None), r"is in another region: give region in storage_options, or AWS_REGION"),
        (
            refusal(
                400, "AuthorizationHeaderMalformed", "... the region 'us-east-1' is wrong; expecting 'eu-central-1'"
            ),
            r"is in the region 'eu-central-1'",
        ),
    ],
)
def test_a_bucket_in_another_region(proxy, bucket, refused, text):
    proxy.always = lambda method, path, headers: refused
    for number, call in enumerate(calls(store_of(proxy, bucket))):
        if number == 1 and b" 400 " in refused:
            continue  # the answer to HEAD has no body
        with pytest.raises(StoreError, match=text):
            call()


def test_a_malformed_key_is_no_region(proxy, bucket):
    proxy.always = lambda *_: refusal(400, "AuthorizationHeaderMalformed", "a non-empty Access Key must be provided")
    with pytest.raises(StoreError, match=r"AuthorizationHeaderMalformed \(status 400\): a non-empty Access Key"):
        store_of(proxy, bucket).get("k")


# the service's own words


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (400, "ExpiredToken", r"ExpiredToken \(status 400\): The provided token has expired"),
        (400, "InvalidToken", r"InvalidToken \(status 400\)"),
        (403, "SignatureDoesNotMatch", r"forbidden \(SignatureDoesNotMatch\)"),
        (403, "RequestTimeTooSkewed", r"forbidden \(RequestTimeTooSkewed\)"),
        (405, "MethodNotAllowed", r"MethodNotAllowed \(status 405\)"),
        (409, "InvalidBucketState", r"InvalidBucketState \(status 409\)"),
        (412, "SomethingElse", r"SomethingElse \(status 412\)|it changed since it was read"),
    ],
)
def test_the_code_and_the_message_are_told(proxy, bucket, status, code, text):
    proxy.always = lambda *_: refusal(status, code, "The provided\n token has expired")
    store = store_of(proxy, bucket)
    for number, call in enumerate(calls(store)):
        if number == 1:
            continue  # the answer to HEAD has no body
        proxy.requests.clear()
        with pytest.raises(StoreError, match=text) as caught:
            call()
        assert "xml" not in str(caught.value)
        assert len(proxy.requests) <= 2
        assert isinstance(caught.value, ConditionFailedError) == (status == 412 and number == 3)


# 409 and 412 that are not another writer


def test_a_leased_blob_is_an_error_at_once():
    container = servers.new_container()
    options = servers.azure_options()
    array = zardine.create_array(
        f"az://{container}/a", shape=(8,), chunks=(2,), shards=(8,), dtype="i4", storage_options=options
    )
    array[...] = 1
    servers.azure_request(
        "PUT", f"{container}/a/c/0", "comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1"
    )
    store = array.store
    servers.azure().log()
    begin = time.monotonic()
    reason = "(LeaseIdMissing.*412|no lease ID was specified)"
    for call in (
        lambda: array.__setitem__(0, 5),
        lambda: store.set("c/0", b"x"),
        lambda: store.set("c/0", b"x", condition=Condition(store.version("c/0"))),
        lambda: store.erase("c/0"),
        lambda: store.erase_prefix("c/"),
    ):
        with pytest.raises(StoreError, match=reason) as caught:
            call()
        assert not isinstance(caught.value, ConditionFailedError)
    assert len(servers.azure().log()) < 15
    assert time.monotonic() - begin < 20  # asked for again and again: minutes
    assert array[...].tolist() == [1] * 8
    with pytest.raises(ConditionFailedError):
        store.set("c/0", b"x", condition=Condition(None))  # a blob that is there: lease or not, this is a lost race


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
def test_a_request_that_met_another_is_made_again(proxy, bucket, code):
    store = store_of(proxy, bucket, max_retries=4)
    version = store.set(code, b"old")
    proxy.matching = lambda method, path: method == "PUT"
    conflict = refusal(409, code, "The conditional request cannot succeed due to a conflicting operation")
    for condition in (Condition(version), None):
        proxy.faults = [conflict] * 2
        new = store.set(code, b"new", condition=condition)
        assert (store.get(code), store.version(code)) == (b"new", new)
    proxy.faults = [conflict]
    assert store.set(f"{code}/k", b"new", condition=Condition(None)) is not None
    if code == "OperationAborted" and not SOAK:
        return  # what follows waits, and is the same for both
    proxy.faults = [conflict] * 100
    proxy.requests.clear()
    with pytest.raises(ConditionFailedError):
        store.set(code, b"newer", condition=Condition(new))
    assert len([each for each in proxy.requests if each.startswith("PUT")]) < 40
    with pytest.raises(StoreError, match=f"{code}.*conflicting"):
        store.set(code, b"newer")


# services without conditional puts


def without_conditions(*buckets):
    """A proxy to an S3 server that refuses conditional puts into some buckets."""
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.always = lambda method, path, headers: (
        refusal(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
        if ("if-match" in headers or "if-none-match" in headers) and path.split("/")[1] in buckets
        else None
    )
    return proxy


@pytest.fixture
def risky():
    with zardine.config.set({"allow_lost_updates": True}):
        yield


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("risky")
def test_a_service_without_conditional_puts_is_told_of_once(bucket):
    """It answers 501, which obstore would ask for again and again: once is enough, for all stores of the process."""
    proxy = without_conditions(bucket)
    options = servers.s3_options(proxy.url)
    begin = time.monotonic()
    with pytest.warns(UserWarning, match="no conditional writes"):
        array = zardine.create_array(
            f"s3://{bucket}/501", shape=(4,), chunks=(2,), shards=(4,), dtype="i4", storage_options=options
        )
    array[0] = 1  # no second warning, which would be an error
    array[3] = 2
    assert array[...].tolist() == [1, 0, 0, 2]
    asked = [each for each in proxy.headers if "if-match" in each or "if-none-match" in each]
    assert len(asked) == 1
    for number in range(5):
        with pytest.warns(UserWarning, match="no conditional writes"):
            zardine.open_array(f"s3://{bucket}/501", mode="r+", storage_options=options)[number % 4] = number
    assert array[...].tolist() == [4, 1, 2, 3]
    asked = [each for each in proxy.headers if "if-match" in each or "if-none-match" in each]
    assert len(asked) == 1
    assert time.monotonic() - begin < 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = store_of(proxy, bucket)
        version = store.set("k", b"1", condition=Condition(None))
        with pytest.raises(ConditionFailedError):
            store.set("k", b"2", condition=Condition(None))
        assert store.set("k", b"2", condition=Condition(version)) != version
    proxy.close()


SHARDED = {"chunks": (2,), "shards": (4,)}


@pytest.mark.parametrize("layout", [SHARDED, {"chunks": (4,)}], ids=["shards", "chunks"])
def test_what_could_undo_the_updates_of_others_is_refused(bucket, layout):
    """Whole shards and chunks are written, up to the end of the array; documents too, with a warning."""
    proxy = without_conditions(bucket)
    place = {"store": f"s3://{bucket}/{len(layout)}", "storage_options": servers.s3_options(proxy.url)}
    values = np.arange(1, 11)
    with pytest.warns(UserWarning, match="no conditional writes"):
        array = zardine.create_array(**place, shape=(10,), dtype="i4", **layout)
    array[...] = values  # the last object reaches beyond the array
    array[4:8] = values[4:8] = [9, 9, 9, 9]
    array[8:] = values[8:] = [7, 7]
    refused = [
        lambda: array.__setitem__(0, 3),
        lambda: array.__setitem__(slice(1, 4), 3),
        lambda: array.__setitem__(slice(2, 6), 3),
        lambda: array.vindex.__setitem__([3, 8], 3),
        lambda: array.append([1]),
    ]
    for change in refused:
        with pytest.raises(UnsupportedError, match=r"no conditional writes.*c/\d.*allow_lost_updates"):
            change()
        assert zardine.open_array(**place).shape == array.shape == (10,)
    buffered = zardine.open_array(**place, mode="r+")
    with pytest.raises(UnsupportedError, match="allow_lost_updates"), buffered.buffered():
        buffered[0] = 3
    assert array[...].tolist() == values.tolist()
    with pytest.warns(UserWarning, match="no conditional writes"):
        zardine.open_array(**place, mode="r+").attrs["a"] = 1
    array.resize((12,))
    array.resize((7,))
    assert array[...].tolist() == values[:7].tolist()
    array.resize((10,))
    assert array[...].tolist() == [*values[:7], 0, 0, 0]
    with zardine.config.set({"allow_lost_updates": True}):
        array[0] = 3
    assert array[:2].tolist() == [3, 2]
    proxy.close()


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
def test_that_a_bucket_has_no_conditional_puts_says_nothing_of_others(bucket):
    proxy = without_conditions(bucket)
    refusing, other = (
        zardine.create_array(
            f"s3://{each}/a", shape=(4,), dtype="i4", storage_options=servers.s3_options(proxy.url), **SHARDED
        )
        for each in (bucket, servers.new_bucket())
    )
    with pytest.raises(UnsupportedError, match="allow_lost_updates"):
        refusing[0] = 1
    other[0] = 1
    other[3] = 1
    asked = [each for each in proxy.headers if "if-match" in each or "if-none-match" in each]
    assert len(asked) == 4  # one was refused
    proxy.close()


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
def test_writers_of_one_shard_without_conditional_puts_lose_nothing_unasked(bucket):
    """Two programs that write different chunks of one shard: each is told, and nothing that was stored is lost."""
    proxy = without_conditions(bucket)
    place = {"store": f"s3://{bucket}/two", "storage_options": servers.s3_options(proxy.url)}
    first = zardine.create_array(**place, shape=(4,), dtype="i4", **SHARDED)
    first[...] = 5
    second = zardine.open_array(**place, mode="r+")
    for array, at in ((first, 0), (second, 3)):
        with pytest.raises(UnsupportedError, match="allow_lost_updates"):
            array[at] = 1
    assert first[...].tolist() == [5, 5, 5, 5]
    shard = bytes(first.store.get("c/0"))
    first.store.set("c/0", shard[:-36] + b"unused" + shard[-36:])
    with pytest.raises(UnsupportedError, match="allow_lost_updates"):
        zardine.compact(**place)
    with zardine.config.set({"allow_lost_updates": True}):
        assert zardine.compact(**place).bytes_after == len(shard)
    proxy.close()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fault", ["drop", "drop_after", 503, "503_after", 500])
def test_a_fault_at_the_first_conditional_put_is_not_taken_for_that(bucket, fault):
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    store = store_of(proxy, bucket)
    proxy.matching = lambda method, path: method == "PUT"
    proxy.faults = [fault]
    first = store.set(f"first/{fault}", b"1", condition=Condition(None))
    assert store.version(f"first/{fault}") == first
    with pytest.raises(ConditionFailedError):
        store.set(f"first/{fault}", b"2", condition=Condition(None))
    proxy.close()


# endpoints that are none


@pytest.mark.parametrize(
    "endpoint", ["localhost:9000", "//host", "http://", "ftp://host", "http://a b", "http://x:99999"]
)
@pytest.mark.parametrize("service", ["s3", "gs", "az"])
def test_an_endpoint_without_a_scheme(service, endpoint, capfd):
    more = {"account_name": "x", "anon": True} if service == "az" else {"anon": True}
    with pytest.raises(StoreError, match=r"URL of a service, such as 'http://localhost:9000'"):
        zardine.open(f"{service}://bucket/a", storage_options={"endpoint_url": endpoint, **more})
    assert "panicked" not in capfd.readouterr().err


def test_an_endpoint_in_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    with pytest.raises(StoreError, match=r"AWS_ENDPOINT_URL is the URL of a service"):
        zardine.open("s3://bucket/a", storage_options={"anon": True})
    bucket = servers.new_bucket()
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        monkeypatch.setenv(name, servers.s3().url)
        store = resolve_store(f"s3://{bucket}/{name}", storage_options={"key": "a", "secret": "b"})[0]
        store.set("k", b"x")
        assert store.get("k") == b"x"


def test_an_endpoint_on_the_command_line():
    command = [sys.executable, "-m", "zardine", "info", "s3://b/a", "--storage-option", "endpoint_url=localhost:9000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "URL of a service" in done.stderr
    assert "panicked" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_panic_of_obstore_is_an_error_of_ours():
    inner = servers.package("obstore.store").S3Store("b", endpoint="localhost:9000", skip_signature=True, region="x")
    with pytest.raises(StoreError, match=r"obstore broke down.*endpoint"):
        ObjectStore(inner).get("k")


@pytest.mark.parametrize("name", ["b b", "b\tc", "..", ".", "b\n"])
def test_buckets_that_cannot_be(name):
    with pytest.raises(StoreError, match="names no bucket"):
        zardine.open(f"s3://{name}/a", storage_options=servers.s3_options())


def test_credentials_in_a_url_are_refused_and_not_shown():
    for url in ("s3://AKIA:S3cret@bucket/a", "gs://me:S3cret@bucket/a", "s3://AKIA:S3cret@bucket/a.zip"):
        with pytest.raises(StoreError, match="given in storage_options") as caught:
            zardine.open(url)
        assert "S3cret" not in str(caught.value)


# answers that are none


def test_a_service_that_is_a_web_site(proxy, bucket):
    page = b"<!DOCTYPE html><html><body>log in</body></html>"
    proxy.always = lambda *_: answer(200, page, etag='"x"', last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
    with pytest.raises(zardine.errors.MetadataError, match="HTML page"):
        zardine.open(f"s3://{bucket}/a", mode="r", storage_options=servers.s3_options(proxy.url))


@pytest.mark.parametrize(
    ("options", "proxy", "without"),
    [
        ({"endpoint_url": "http://localhost:1", "key": "k", "secret": "s"}, None, True),
        ({"endpoint_url": "http://localhost:1", "key": "k", "secret": "s"}, "http://proxy", True),
        ({"endpoint_url": "http://localhost:1", "key": "k", "secret": "s"}, "https://proxy", False),
        ({"endpoint_url": "http://localhost:1", "key": "k", "secret": "s", "proxy_url": "https://proxy"}, None, False),
        ({"endpoint_url": "http://localhost:1", "anon": True}, None, False),
        ({"endpoint_url": "https://localhost:1", "key": "k", "secret": "s"}, None, False),
        ({"key": "k", "secret": "s"}, None, False),
    ],
)
def test_certificates_are_left_out_only_where_tls_is_not_used(options, proxy, without, monkeypatch):
    """By who asks a bucket first whether it has conditional puts: of plain HTTP, with keys, by no proxy with TLS."""
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    if proxy is not None:
        monkeypatch.setenv("ALL_PROXY", proxy)
    client = object_store_of_url("s3", "bucket/a", options)._client
    assert "allow_invalid_certificates" not in client.inner.client_options
    found = client.without_repetitions().inner
    assert found.client_options.get("allow_invalid_certificates", "false") == ("true" if without else "false")
    assert found.retry_config["max_retries"] == 0
