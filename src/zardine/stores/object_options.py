"""From ``storage_options`` to the configuration of an obstore store.

Names are those of obstore; the usual ones of s3fs, gcsfs and adlfs are understood as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final

from zardine.errors import StoreError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLIENT: Final = _names(
    """allow_http allow_invalid_certificates connect_timeout default_content_type default_headers http1_only
    http2_only pool_idle_timeout pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes
    randomize_addresses read_timeout root_certificate timeout user_agent"""
)
_RETRY: Final = frozenset(("max_retries", "retry_timeout", "backoff"))

_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "s3": _names("""access_key_id checksum_algorithm conditional_put container_authorization_token_file
        container_credentials_full_uri container_credentials_relative_uri copy_if_not_exists default_region
        disable_bulk_delete disable_tagging endpoint imdsv1_fallback metadata_endpoint profile region request_payer
        role_arn role_session_name s3_express secret_access_key server_side_encryption session_token skip_signature
        sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id sts_endpoint unsigned_payload
        virtual_hosted_style_request web_identity_token_file"""),
    "gs": _names(
        "application_credentials base_url bearer_token service_account service_account_key skip_signature token"
    ),
    "az": _names("""account_key account_name authority_host client_id client_secret connection_string credential_type
        disable_tagging encryption_key endpoint federated_token_file msi_endpoint msi_resource_id object_id sas_key
        skip_signature tenant_id token use_azure_cli use_emulator use_fabric_endpoint"""),
    "http": frozenset(),
}

_ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
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
    },
    "az": {
        "anon": "skip_signature",
        "sas_token": "sas_key",
        "endpoint_url": "endpoint",
        "account_host": "endpoint",
        "azure_storage_account_name": "account_name",
        "azure_storage_account_key": "account_key",
    },
    "http": {"headers": "default_headers"},
}


@dataclass(frozen=True, slots=True)
class ObjectOptions:
    """What an obstore store is made with: its own configuration, that of its HTTP client, and of its retries."""

    config: dict[str, Any]
    client: dict[str, Any]
    retry: dict[str, Any]
    profile: str | None = None


def object_options(service: str, given: Mapping[str, Any] | None) -> ObjectOptions:
    """``storage_options`` for the ``service`` ``"s3"``, ``"gs"``, ``"az"`` or ``"http"``.

    ``TypeError`` for unknown names, which names the known ones.
    """
    options = _flat(service, dict(given or {}))
    aliases, known = _ALIASES[service], _KNOWN[service] | _CLIENT | _RETRY
    named: dict[str, Any] = {}
    for name, value in options.items():
        own = aliases.get(name, name)
        if own not in known:
            raise TypeError(_unknown(service, name, known | aliases.keys()))
        if own in named:
            raise TypeError(f"storage_options: {name!r} and another name both give {own!r}")
        if value is not None:
            named[own] = value
    _fill_in(service, named)
    retry = {"max_retries": 6, "retry_timeout": timedelta(seconds=90), "backoff": _BACKOFF}
    client: dict[str, Any] = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "600s"}
    retry.update((name, _time(name, named.pop(name))) for name in _RETRY & named.keys())
    client.update((name, _time(name, named.pop(name))) for name in _CLIENT & named.keys())
    if str(named.get("endpoint") or named.get("base_url") or "").startswith("http://"):
        client.setdefault("allow_http", True)
    return ObjectOptions(named, client, retry, named.pop("profile", None))


_BACKOFF: Final = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=10), "base": 2}


_GROUPS: Final[Mapping[str, frozenset[str] | None]] = {
    "client_options": _CLIENT,
    "retry_config": _RETRY,
    "config": None,
    "client_kwargs": None,
}


def _flat(service: str, options: dict[str, Any]) -> dict[str, Any]:
    """Nested groups of options (obstore's and s3fs's) spread out."""
    for group, members in _GROUPS.items():
        inner = options.pop(group, None)
        if inner is None:
            continue
        if not isinstance(inner, Mapping):
            raise TypeError(f"storage_options: {group} is a mapping, not {inner!r}")
        for name in inner:
            if members is not None and name not in members:
                raise TypeError(_unknown(service, f"{group}.{name}", members))
        options.update(inner)
    return options


def _fill_in(service: str, named: dict[str, Any]) -> None:
    """What follows from options of other libraries that have none of the same meaning in obstore."""
    if service == "az" and "connection_string" in named:
        named.update(connection_options(str(named.pop("connection_string"))))
    token = named.pop("token", None) if service == "gs" else None
    if token == "anon":
        named["skip_signature"] = True
    elif isinstance(token, Mapping):
        named["service_account_key"] = json.dumps(dict(token))
    elif isinstance(token, str) and token != "google_default":
        named["service_account"] = token
    elif token not in (None, "google_default"):
        raise TypeError(
            f"storage_options: token is 'anon', the path of a service account file or its contents, not {token!r}"
        )


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


def _time(name: str, value: Any) -> Any:
    """A number of seconds as a time, where a time is wanted; everything else is left as it is."""
    return timedelta(seconds=value) if name.endswith("timeout") and isinstance(value, (int, float)) else value


def _unknown(service: str, name: str, known: frozenset[str] | set[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? Known" if close else "known"
    return f"storage_options: unknown name {name!r} for {service}://; {hint} are {', '.join(sorted(known))}"


__all__ = ["ObjectOptions", "connection_options", "object_options"]
