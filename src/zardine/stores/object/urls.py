"""Object stores by their URLs, with the credentials that the clouds' own programs have left on the machine."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from zardine.errors import StoreError
from zardine.shown_text import mask_error, without_secrets
from zardine.stores.extras import need
from zardine.stores.object.buckets import BucketOptions
from zardine.stores.object.kinds import BUCKETS
from zardine.stores.object.options import check_endpoint, connection_options, object_options
from zardine.stores.object.runtime import RUNTIME
from zardine.stores.object.store import ObjectStore, store_in_bucket
from zardine.stores.path import normalize_path

_OPTIONS: Final[Mapping[str, str]] = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}


def profile_options(profile: str | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the wanted profile: ``profile``, or AWS_PROFILE, or ``default``; nothing where none is needed.

    None is needed where ``config`` or the environment has keys already, or says that requests are not signed.
    :class:`StoreError` for a profile that was asked for and is missing, or has no keys but a way to get some.
    """
    named = profile or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    own = config.keys() & {"access_key_id", "skip_signature", "web_identity_token_file"}
    if own or (profile is None and "AWS_ACCESS_KEY_ID" in os.environ):
        return {}
    found: dict[str, str] = {}
    for variable, file, start in (
        ("AWS_CONFIG_FILE", "~/.aws/config", "profile "),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", ""),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(os.path.expanduser(os.environ.get(variable, file)), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{os.environ.get(variable, file)} cannot be read: {error}") from None
        for section in {named or "default", f"{start}{named or 'default'}"}:
            if parser.has_section(section):
                found.update(parser.items(section))
    if named and not found:
        raise StoreError(f"there is no AWS profile {named!r} in ~/.aws/config or ~/.aws/credentials")
    if named and "aws_access_key_id" not in found:
        raise StoreError(
            f"the AWS profile {named!r} has no keys of its own (but perhaps a role or a sign-on): make temporary ones, "
            "for example by the command: aws configure export-credentials, and give them as key, secret and token"
        )
    return {own: found[name] for name, own in _OPTIONS.items() if name in found}


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


_SIGNED: Final = re.compile(r"[?&](sig|signature|x-amz-signature|x-goog-signature)=", re.IGNORECASE)


def object_store_of_url(scheme: str, rest: str, storage_options: Mapping[str, Any] | None = None) -> ObjectStore:
    """The store whose root is ``{scheme}://{rest}``, a bucket or container and a path in it.

    - ``s3://bucket/path``, ``gs://bucket/path``, ``az://container/path``;
    - ``abfs://container@account.dfs.core.windows.net/path``, with ``abfss`` the same.

    The path is the key as it is: ``%`` is a percent sign, as for the command lines of these clouds. Credentials:
    ``storage_options``, or else each cloud's environment variables, files and instance roles.
    """
    service = _SERVICES[scheme]
    url = without_secrets(f"{scheme}://{rest}")
    need("obstore.store", f"{url!r}")
    bucket, _, path = rest.partition("/")
    options = object_options(service, storage_options)
    config = options.config
    if "@" in bucket and service == "az":
        bucket, _, host = bucket.partition("@")
        config.setdefault("account_name", host.partition(".")[0])
    if "@" in bucket:
        raise StoreError(f"{url!r}: no bucket has an '@' in its name; credentials are given in storage_options")
    if _SIGNED.search(path):
        raise StoreError(
            f"{url!r}: the keys of a bucket have no signature in their names; give it in storage_options (sas_token of "
            "az://), or open an https:// URL that is signed as a file"
        )
    if not bucket or bucket in (".", "..") or re.search(r"[\s\x00-\x1f\x7f]", bucket):
        raise StoreError(f"{url!r} names no bucket: {scheme}://bucket/path is meant")
    if service == "s3":
        config = {**profile_options(options.profile, config), **config}
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
            if os.environ.get(name):
                config.setdefault("endpoint", check_endpoint(os.environ[name], name))
    if service == "az":
        config = {**_azure_environment(config), **config}
        if config.get("use_emulator"):
            options.client.setdefault("allow_http", True)
    if "endpoint" in config:
        config["endpoint"] = check_endpoint(str(config["endpoint"]), "the endpoint")
        if config["endpoint"].startswith("http://"):
            options.client.setdefault("allow_http", True)
    kind = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore"}[service]
    shared = BucketOptions(kind, {**config, BUCKETS[kind]: bucket}, options.client, options.retry)
    try:
        with RUNTIME:
            return store_in_bucket(shared, normalize_path(path))
    except Exception as error:
        mask_error(error)
        text = str(error).partition("\n")[0]
        if "ccount" in text and service == "az":
            text = "no storage account is named: give account_name in storage_options or AZURE_STORAGE_ACCOUNT_NAME"
        kind_of_error = TypeError if isinstance(error, TypeError) else StoreError
        raise kind_of_error(f"{url!r} cannot be opened: {text}") from error


def _azure_environment(config: Mapping[str, Any]) -> dict[str, Any]:
    """What AZURE_STORAGE_CONNECTION_STRING says, which obstore does not read."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    return connection_options(text) if text and "account_name" not in config else {}


__all__ = ["object_store_of_url", "profile_options"]
