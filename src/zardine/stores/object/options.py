"""From ``storage_options`` to the configuration of an obstore store.

Names are those of obstore; the usual ones of s3fs, gcsfs and adlfs are understood as well.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import urlsplit

from zardine.errors import StoreError
from zardine.shown_text import without_secrets


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLIENT: Final = _names(
    """allow_http allow_invalid_certificates connect_timeout default_content_type default_headers http1_only
    http2_only pool_idle_timeout pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes
    randomize_addresses read_timeout root_certificate timeout user_agent"""
)
"""Options of obstore's HTTP client."""

RETRY: Final = frozenset(("max_retries", "retry_timeout", "backoff"))
"""Options of its repetitions."""

KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "s3": _names("""access_key_id checksum_algorithm conditional_put container_authorization_token_file
        container_credentials_full_uri container_credentials_relative_uri copy_if_not_exists default_region
        disable_bulk_delete disable_tagging endpoint imdsv1_fallback metadata_endpoint profile region request_payer
        role_arn role_session_name s3_express secret_access_key server_side_encryption session_token skip_signature
        sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id sts_endpoint unsigned_payload use_ssl
        virtual_hosted_style_request web_identity_token_file"""),
    "gs": _names(
        "application_credentials base_url bearer_token service_account service_account_key skip_signature token"
    ),
    "az": _names("""account_host account_key account_name authority_host client_id client_secret connection_string
        credential credential_type disable_tagging encryption_key endpoint federated_token_file msi_endpoint
        msi_resource_id object_id sas_key skip_signature tenant_id token use_azure_cli use_emulator
        use_fabric_endpoint"""),
    "http": frozenset(),
}
"""Options of each service; some are ours, or another library's, and :func:`object_options` sees to their meaning."""

ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": {
        "key": "access_key_id",
        "username": "access_key_id",
        "aws_access_key_id": "access_key_id",
        "secret": "secret_access_key",
        "password": "secret_access_key",
        "aws_secret_access_key": "secret_access_key",
        "token": "session_token",
        "aws_session_token": "session_token",
        "anon": "skip_signature",
        "endpoint_url": "endpoint",
        "aws_endpoint": "endpoint",
        "aws_endpoint_url": "endpoint",
        "region_name": "region",
        "aws_region": "region",
        "requester_pays": "request_payer",
    },
    "gs": {
        "anon": "skip_signature",
        "endpoint": "base_url",
        "endpoint_url": "base_url",
        "google_application_credentials": "application_credentials",
        "service_account_path": "service_account",
        "requests_timeout": "timeout",
    },
    "az": {
        "anon": "skip_signature",
        "sas_token": "sas_key",
        "endpoint_url": "endpoint",
        "azure_storage_account_name": "account_name",
        "azure_storage_account_key": "account_key",
        "connection_timeout": "connect_timeout",
    },
    "http": {"headers": "default_headers"},
}
"""Other names of the same."""

WITHOUT_EFFECT: Final = _names(
    """access assume_container_exists batch_size blocksize cache_regions cache_timeout check_connection consistency
    default_block_size default_cache_type default_fill_cache default_location fixed_upload_size listings_expiry_time
    location_mode loop max_concurrency max_paths project secure_serialize skip_instance_cache use_listings_cache
    version_aware"""
)
"""Options of s3fs, gcsfs and adlfs about what there is none of here: caches of listings, buffers, coroutines, and
projects, which are needed only to make buckets."""


@dataclass(frozen=True, slots=True)
class ObjectOptions:
    """What an obstore store is made with: its own configuration, that of its HTTP client, and of its retries."""

    config: dict[str, Any]
    client: dict[str, Any]
    retry: dict[str, Any]
    profile: str | None = None


def object_options(service: str, given: Mapping[str, Any] | None) -> ObjectOptions:
    """``storage_options`` for the ``service`` ``"s3"``, ``"gs"``, ``"az"`` or ``"http"``.

    ``TypeError`` for unknown names, which names the known ones, and for values that cannot be; :class:`StoreError` for
    an endpoint that is no URL.
    """
    options = _flat(service, dict(given or {}))
    aliases, known = ALIASES[service], KNOWN[service] | CLIENT | RETRY
    named: dict[str, Any] = {}
    for name, value in options.items():
        own = aliases.get(name, name)
        if own not in known:
            if name in WITHOUT_EFFECT:
                continue
            raise TypeError(_unknown(service, name, known | aliases.keys()))
        if own in named:
            raise TypeError(f"storage_options: {name!r} and another name both give {own!r}")
        if value is not None:
            named[own] = value
    _fill_in(service, named)
    retry = {"max_retries": 6, "retry_timeout": timedelta(seconds=90), "backoff": _BACKOFF}
    client: dict[str, Any] = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "600s"}
    retry.update((name, _time(name, named.pop(name))) for name in RETRY & named.keys())
    client.update((name, _time(name, named.pop(name))) for name in CLIENT & named.keys())
    for name in ("endpoint", "base_url"):
        if named.get(name):
            named[name] = check_endpoint(str(named[name]), f"storage_options: {name}")
            if named[name].startswith("http://"):
                client.setdefault("allow_http", True)
    return ObjectOptions(named, client, retry, named.pop("profile", None))


_BACKOFF: Final = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=10), "base": 2}

_GROUPS: Final[Mapping[str, frozenset[str] | None]] = {
    "client_options": CLIENT,
    "retry_config": RETRY,
    "config": None,
    "client_kwargs": None,
    "config_kwargs": None,
    "s3_additional_kwargs": None,
}


def _flat(service: str, options: dict[str, Any]) -> dict[str, Any]:
    """Nested groups of options (obstore's and s3fs's) spread out."""
    for group, members in _GROUPS.items():
        inner = options.pop(group, None)
        if inner is None:
            continue
        if not isinstance(inner, Mapping):
            raise TypeError(f"storage_options: {group} is a mapping, not {type(inner).__name__}")
        for name in inner:
            if members is not None and name not in members:
                raise TypeError(_unknown(service, f"{group}.{name}", members))
        if group in ("client_kwargs", "config_kwargs"):
            inner = _of_botocore(inner)
        elif group == "s3_additional_kwargs":
            inner = _of_requests(service, inner)
        options.update(inner)
    return options


_OF_BOTOCORE: Final = {"max_pool_connections", "request_checksum_calculation", "response_checksum_validation"}


def _of_botocore(given: Mapping[str, Any]) -> dict[str, Any]:
    """What arguments of botocore's clients and its ``Config`` mean in obstore."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "verify" and isinstance(value, bool):
            found["allow_invalid_certificates"] = not value
        elif name == "signature_version":
            if value not in ("s3v4", "v4"):
                found["skip_signature"] = True  # botocore.UNSIGNED; there are no older ones in obstore
        elif name == "s3" and isinstance(value, Mapping) and value.keys() <= {"addressing_style"}:
            found["virtual_hosted_style_request"] = value.get("addressing_style") == "virtual"
        elif name == "retries" and isinstance(value, Mapping) and value.keys() <= {"max_attempts", "mode"}:
            found["max_retries"] = value.get("max_attempts")
        elif name not in _OF_BOTOCORE:
            found[name] = value
    return found


_OF_REQUESTS: Final[Mapping[str, str]] = {
    "BucketKeyEnabled": "sse_bucket_key_enabled",
    "ChecksumAlgorithm": "checksum_algorithm",
    "ContentType": "default_content_type",
    "RequestPayer": "request_payer",
    "SSECustomerKey": "sse_customer_key_base64",
    "SSEKMSKeyId": "sse_kms_key_id",
    "ServerSideEncryption": "server_side_encryption",
}
"""Parameters of requests to S3, and obstore's options of the same meaning."""


def _of_requests(service: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return obstore's options for s3fs's ``s3_additional_kwargs``, which are parameters of every request to S3.

    ``TypeError`` for one that obstore does not send: data written without it would not be as the caller wants.
    """
    if service != "s3":
        raise TypeError(f"storage_options: s3_additional_kwargs has no meaning for {service}://")
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "SSECustomerAlgorithm" and value == "AES256" and "SSECustomerKey" in given:
            found["server_side_encryption"] = "sse-c"
        elif name == "SSECustomerKeyMD5":  # the client computes it
            continue
        elif name not in _OF_REQUESTS or (name == "ChecksumAlgorithm" and str(value).upper() != "SHA256"):
            shown = f"{name}={value!r}" if name == "ChecksumAlgorithm" else name
            raise TypeError(
                f"storage_options: s3_additional_kwargs: obstore, which sends the requests to S3, cannot send {shown} "
                f"(it can send {', '.join(sorted(_OF_REQUESTS))}): leave it out and set it for the bucket, or open the "
                "bucket by s3fs: zardine.open(s3fs.S3FileSystem(s3_additional_kwargs=...), path='bucket/data.zarr')"
            )
        else:
            found[_OF_REQUESTS[name]] = value
    if "request_payer" in found:
        found["request_payer"] = found["request_payer"] == "requester"
    if isinstance(key := found.get("sse_customer_key_base64"), (str, bytes)):
        found["sse_customer_key_base64"] = b64encode(key.encode() if isinstance(key, str) else key).decode()
        found.setdefault("server_side_encryption", "sse-c")
    return found


def _fill_in(service: str, named: dict[str, Any]) -> None:
    """What follows from options of other libraries that have none of the same meaning in obstore."""
    if service == "s3" and "use_ssl" in named:
        safe, endpoint = named.pop("use_ssl"), str(named.get("endpoint", ""))
        if endpoint and "://" not in endpoint:
            named["endpoint"] = f"{'https' if safe else 'http'}://{endpoint}"
    if service == "az":
        _fill_in_azure(named)
    token = named.pop("token", None) if service == "gs" else None
    if token == "anon":
        named["skip_signature"] = True
    elif isinstance(token, Mapping):
        named["service_account_key"] = json.dumps(dict(token))
    elif isinstance(token, (str, os.PathLike)) and token not in ("google_default", "cloud"):
        _fill_in_token(os.fspath(token), named)
    elif token not in (None, "google_default", "cloud"):
        raise TypeError(
            "storage_options: token is 'anon', 'google_default', 'cloud', the path of a service account file or its "
            f"contents, or an access token, not {type(token).__name__}"
        )


def _fill_in_token(token: str, named: dict[str, Any]) -> None:
    if token in ("browser", "cache"):
        raise TypeError(
            f"storage_options: token={token!r} is not supported: run 'gcloud auth application-default login', and "
            "leave it out"
        )
    if token.lstrip().startswith("{"):
        named["service_account_key"] = token
    elif os.path.exists(token):
        named["service_account"] = token
    elif "/" in token or token.endswith(".json"):
        shown = repr(token) if token.endswith(".json") else "of the name that is given, which looks like a path"
        raise StoreError(f"storage_options: token: there is no service account file {shown}")
    else:
        named["bearer_token"] = token


def _fill_in_azure(named: dict[str, Any]) -> None:
    if "connection_string" in named:
        named.update(connection_options(str(named.pop("connection_string"))))
    host = named.pop("account_host", None)
    if host:
        named.setdefault("endpoint", host if "://" in str(host) else f"https://{host}")
    credential = named.pop("credential", None)
    if isinstance(credential, str):
        named.setdefault("sas_key" if "sig=" in credential else "account_key", credential)
    elif credential is not None:
        raise TypeError(
            "storage_options: credential is an account key or a SAS token, not a "
            f"{type(credential).__name__}: give client_id, client_secret and tenant_id, or use_azure_cli=True"
        )


def check_endpoint(url: str, what: str) -> str:
    """``url`` without a slash at its end, if it is one of a service; ``what`` says where it was given."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine or re.search(r"[\s?#\\<>\"{}|^`]", url):
        raise StoreError(
            f"{what} is the URL of a service, such as 'http://localhost:9000' or 'https://host', not "
            f"{without_secrets(url)!r}"
        )
    return url.rstrip("/")


def connection_options(text: str) -> dict[str, Any]:
    """The options that an Azure connection string stands for."""
    parts = dict(each.partition("=")[::2] for each in text.strip().strip(";").split(";"))
    names = {"AccountName": "account_name", "AccountKey": "account_key", "BlobEndpoint": "endpoint"}
    found: dict[str, Any] = {own: parts[name] for name, own in names.items() if name in parts}
    if "SharedAccessSignature" in parts:
        found["sas_key"] = parts["SharedAccessSignature"]
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        found["use_emulator"] = True
    if not found:
        raise StoreError("storage_options: the connection string names no account (AccountName=...;AccountKey=...)")
    return found


_UNITS: Final = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(ms|s|sec|m|min|h)\s*")


def _time(name: str, value: Any) -> Any:
    """A time of seconds, or of a text such as ``"1m 30s"``, where a time is wanted; everything else as it is."""
    if not name.endswith("timeout") or isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return timedelta(seconds=value)
    if isinstance(value, str):
        if re.fullmatch(r"\d+(\.\d*)?", value.strip()):
            return timedelta(seconds=float(value))
        if re.fullmatch(f"({_DURATION.pattern})+", value):
            return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(value)))
    raise TypeError(f"storage_options: {name} is a number of seconds, or a text such as '10s' or '2m', not {value!r}")


def seconds_of(value: Any) -> float | None:
    """A time that obstore's client options hold, in seconds; ``None`` for ``None``."""
    found = None if value is None else _time("timeout", value)
    return found.total_seconds() if isinstance(found, timedelta) else None


_SCHEMES: Final = {"http": "http:// and https://"}


def _unknown(service: str, name: str, known: frozenset[str] | set[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? Known" if close else "known"
    where = _SCHEMES.get(service, f"{service}://")
    return f"storage_options: unknown name {name!r} for {where}; {hint} are {', '.join(sorted(known))}"


__all__ = [
    "ALIASES",
    "CLIENT",
    "KNOWN",
    "RETRY",
    "WITHOUT_EFFECT",
    "ObjectOptions",
    "check_endpoint",
    "connection_options",
    "object_options",
    "seconds_of",
]
