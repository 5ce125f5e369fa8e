"""In which region a bucket of S3 is: the service says so to anybody, in the head of each answer."""

from __future__ import annotations

import contextlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

_HEADER: Final = "x-amz-bucket-region"
_PATIENCE: Final = 5.0
"""Seconds that an error text may wait for the name of a region."""


def region_of(config: Mapping[str, Any]) -> str:
    """The region of the bucket of an ``S3Store`` of this ``config``; empty if the service does not say."""
    service = str(config.get("endpoint") or "https://s3.amazonaws.com").rstrip("/")
    request = urllib.request.Request(f"{service}/{quote(str(config.get('bucket', '')))}", method="HEAD")
    found: str | None = None
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                found = answer.headers.get(_HEADER)
        except urllib.error.HTTPError as refusal:
            with refusal:
                found = refusal.headers.get(_HEADER)
    return found or ""


__all__ = ["region_of"]
