"""Object stores by their URLs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from zardine.errors import StoreError
from zardine.stores.aws_profile import profile_options
from zardine.stores.extras import need
from zardine.stores.object_options import connection_options, object_options
from zardine.stores.object_runtime import RUNTIME
from zardine.stores.object_store import ObjectStore
from zardine.stores.path import normalize_path

_SERVICES: Final[Mapping[str, str]] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
}

OBJECT_SCHEMES: Final = frozenset(_SERVICES)
"""URL schemes that :func:`object_store_of_url` takes."""


def object_store_of_url(scheme: str, rest: str, storage_options: Mapping[str, Any] | None = None) -> ObjectStore:
    """The store whose root is ``{scheme}://{rest}``, a bucket or container and a path in it.

    - ``s3://bucket/path``, ``gs://bucket/path``, ``az://container/path``;
    - ``abfs://container@account.dfs.core.windows.net/path``, with ``abfss`` the same.

    Credentials: ``storage_options``, or else each cloud's environment variables, files and instance roles.
    """
    service = _SERVICES[scheme]
    url = f"{scheme}://{rest}"
    modules = need("obstore.store", f"{url!r}")
    bucket, _, path = rest.partition("/")
    options = object_options(service, storage_options)
    config = options.config
    if "@" in bucket and service == "az":
        bucket, _, host = bucket.partition("@")
        config.setdefault("account_name", host.partition(".")[0])
    if not bucket:
        raise StoreError(f"{url!r} names no bucket: {scheme}://bucket/path is meant")
    if service == "s3":
        config = {**profile_options(options.profile, config), **config}
        if config.get("endpoint", os.environ.get("AWS_ENDPOINT_URL", "")).startswith("http://"):
            options.client.setdefault("allow_http", True)
    if service == "az":
        config = {**_azure_environment(config), **config}
        if str(config.get("endpoint", "")).startswith("http://") or config.get("use_emulator"):
            options.client.setdefault("allow_http", True)
    kind = {"s3": modules.S3Store, "gs": modules.GCSStore, "az": modules.AzureStore}[service]
    prefix = normalize_path(unquote(path) if "%" in path else path) or None
    try:
        with RUNTIME:
            inner = kind(
                bucket, prefix=prefix, config=config, client_options=options.client, retry_config=options.retry
            )
    except Exception as error:
        text = str(error).partition("\n")[0]
        if "ccount" in text and service == "az":
            text = "no storage account is named: give account_name in storage_options or AZURE_STORAGE_ACCOUNT_NAME"
        raise StoreError(f"{url!r} cannot be opened: {text}") from error
    return ObjectStore(inner)


def _azure_environment(config: Mapping[str, Any]) -> dict[str, Any]:
    """What AZURE_STORAGE_CONNECTION_STRING says, which obstore does not read."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    return connection_options(text) if text and "account_name" not in config else {}


__all__ = ["OBJECT_SCHEMES", "object_store_of_url"]
