"""The names in ``storage_options``: those of obstore, and what the usual ones of s3fs, gcsfs and adlfs mean there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


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
"""Options of each service; some are ours, or another library's, and :mod:`object_options` sees to their meaning."""

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


__all__ = ["ALIASES", "CLIENT", "KNOWN", "RETRY", "WITHOUT_EFFECT"]
