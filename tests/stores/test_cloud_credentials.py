"""Credentials from where each cloud keeps them: what is sent is looked at, or checked by the service."""

from __future__ import annotations

import base64
import json
import os

import pytest

import zardine
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.errors import StoreError
from zardine.stores.resolve import resolve_store


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def proxy():
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    yield proxy
    proxy.close()


def use(store) -> None:
    store.set("k", b"x")
    assert store.get("k") == b"x"
    assert list(store.list()) == ["k"]


def test_keys_of_s3_in_the_environment(proxy, monkeypatch):
    bucket = servers.new_bucket()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFROMTHEENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "the-session")
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    use(resolve_store(f"s3://{bucket}/a")[0])
    for headers in proxy.headers:
        assert "Credential=AKIAFROMTHEENVIRONMENT/" in headers["authorization"]
        assert "/eu-west-3/s3/" in headers["authorization"]
        assert headers["x-amz-security-token"] == "the-session"
    proxy.headers.clear()
    use(resolve_store(f"s3://{bucket}/a", storage_options={"key": "AKIAGIVEN", "secret": "s", "token": "t"})[0])
    assert all("Credential=AKIAGIVEN/" in headers["authorization"] for headers in proxy.headers)
    assert all(headers["x-amz-security-token"] == "t" for headers in proxy.headers)


def test_anonymous_requests_to_s3_are_not_signed(proxy, monkeypatch):
    bucket = servers.new_bucket(x_amz_acl="public-read")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    options = {"endpoint_url": proxy.url, "anon": True, "max_retries": 0}
    assert list(resolve_store(f"s3://{bucket}/a", storage_options=options)[0].list()) == []
    assert not any("authorization" in headers for headers in proxy.headers)


def test_an_account_of_azure_in_the_environment(monkeypatch):
    """Azurite checks the signature."""
    container = servers.new_container()
    endpoint = {"endpoint": servers.azure().url, "max_retries": 0}
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", servers.AZURE_ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", servers.AZURE_KEY)
    use(resolve_store(f"az://{container}/a", storage_options=endpoint)[0])
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"another").decode())
    with pytest.raises(StoreError, match="forbidden"):
        resolve_store(f"az://{container}/a", storage_options=endpoint)[0].get("k")


@pytest.fixture(scope="module")
def service_account():
    """A service account with a key of its own."""
    servers.package("moto.server")  # and with it:
    rsa = servers.package("cryptography.hazmat.primitives.asymmetric.rsa")
    serialization = servers.package("cryptography.hazmat.primitives.serialization")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return {
        "type": "service_account",
        "client_email": "me@project.iam.gserviceaccount.com",
        "private_key_id": "7",
        "private_key": pem,
        "token_uri": "https://oauth2.googleapis.com/token",
    }


def sender(headers: dict[str, str]) -> str:
    """Who signed the token of a request."""
    kind, token = headers["authorization"].split()
    assert kind == "Bearer"
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["iss"]


def test_a_service_account_of_google(proxy, monkeypatch, tmp_path, service_account):
    """Against moto, which speaks enough like Google to get, put and list."""
    bucket = servers.new_bucket()
    file = tmp_path / "account.json"
    file.write_text(json.dumps(service_account))
    endpoint = {"endpoint_url": proxy.url, "max_retries": 0}
    for options in ({"token": str(file)}, {"token": service_account}, {"token": file}, {"service_account": str(file)}):
        proxy.headers.clear()
        use(resolve_store(f"gs://{bucket}/a", storage_options={**endpoint, **options})[0])
        assert {sender(headers) for headers in proxy.headers} == {"me@project.iam.gserviceaccount.com"}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    proxy.headers.clear()
    use(resolve_store(f"gs://{bucket}/a", storage_options=endpoint)[0])
    use(resolve_store(f"gs://{bucket}/a", storage_options={**endpoint, "token": "google_default"})[0])
    assert {sender(headers) for headers in proxy.headers} == {"me@project.iam.gserviceaccount.com"}
    proxy.headers.clear()
    use(resolve_store(f"gs://{bucket}/a", storage_options={**endpoint, "token": "ya29.an-access-token"})[0])
    assert {headers["authorization"] for headers in proxy.headers} == {"Bearer ya29.an-access-token"}


def test_credentials_are_not_shown(service_account):
    for url, options in (
        ("s3://bucket/a", {"key": "AKIA", "secret": "S3cret", "token": "S3cret"}),
        ("az://container/a", {"account_name": "x", "account_key": base64.b64encode(b"S3cret").decode()}),
        ("az://container/a", {"account_name": "x", "sas_token": "?sv=1&sig=S3cret"}),
        ("gs://bucket/a", {"token": "S3cret.token"}),
        ("gs://bucket/a", {"token": service_account}),
    ):
        options = {**options, "endpoint_url": "http://127.0.0.1:1", "max_retries": 0}
        store = resolve_store(url, storage_options=options)[0]
        with pytest.raises(StoreError) as caught:
            zardine.open(store, mode="r")
        told = [str(store), repr(store), str(caught.value), str(caught.value.__cause__)]
        for secret in ("S3cret", "UzNjcmV0", "BEGIN PRIVATE KEY"):
            assert not any(secret in text for text in told)
