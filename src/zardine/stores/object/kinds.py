"""Which of obstore's stores something is."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import urlsplit

from zardine.stores.extras import need

_KINDS: Final = ("S3Store", "GCSStore", "AzureStore", "HTTPStore", "MemoryStore", "LocalStore")

SCHEMES: Final = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az", "HTTPStore": "http", "MemoryStore": "memory"}
"""URL schemes of the kinds that an :class:`ObjectStore` is made of."""

BUCKETS: Final = {"S3Store": "bucket", "GCSStore": "bucket", "AzureStore": "container_name"}
"""What the buckets are called in the configuration of each kind."""

_ENDPOINTS: Final = {
    "S3Store": ("endpoint", "AWS_ENDPOINT_URL"),
    "GCSStore": ("base_url", ""),
    "AzureStore": ("endpoint", "AZURE_STORAGE_ENDPOINT"),
}
"""What the URL of the service is called there, and in the environment."""


def kind_of(thing: object) -> str | None:
    """The name of the class of obstore that ``thing`` is an instance of, also by way of a subclass; or ``None``."""
    modules = need("obstore.store", "an object store")
    return next((kind for kind in _KINDS if isinstance(thing, getattr(modules, kind))), None)


def origin_of(inner: Any, kind: str) -> tuple[str, str, str]:
    """Where the buckets of a store are: scheme, the host of the service (empty for the cloud's own), and account.

    Credentials are no part of it, nor is the bucket.
    """
    if kind in ("MemoryStore", "LocalStore"):
        return "memory", str(id(inner)), ""
    if kind == "HTTPStore":
        parts = urlsplit(inner.url)
        return parts.scheme, parts.netloc.rpartition("@")[2].lower(), ""
    account = ""
    if kind == "AzureStore":
        account = inner.config.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME") or ""
    return SCHEMES[kind], service_of(endpoint_of(inner, kind)), account


def endpoint_of(inner: Any, kind: str) -> str:
    """The URL of the service of a store of buckets; empty for the cloud's own, and for what has no buckets."""
    name, variable = _ENDPOINTS.get(kind, ("", ""))
    return (name and inner.config.get(name)) or os.environ.get(variable) or ""


def bucket_of(inner: Any, kind: str) -> str:
    """The name of the bucket or container; empty for what has none."""
    name = "" if kind in ("MemoryStore", "LocalStore", "HTTPStore") else inner.config.get(BUCKETS.get(kind, ""))
    return str(name or "")


def service_of(endpoint: str) -> str:
    """Host and port of an endpoint's URL, in one way of writing; empty for those of the clouds themselves."""
    host = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}").netloc.rpartition("@")[2].lower()
    own = host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".googleapis.com", ".core.windows.net"))
    if own:
        return ""
    name, colon, port = host.partition(":")
    return f"{'127.0.0.1' if name == 'localhost' else name}{colon}{port}"


__all__ = ["BUCKETS", "SCHEMES", "bucket_of", "endpoint_of", "kind_of", "origin_of", "service_of"]
