"""Whole values over HTTP by Python's own client, for answers that obstore does not take: those of no stated length."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

from zardine.shown_text import without_secrets
from zardine.stores.http.encodings import check_encoding
from zardine.stores.object.options import seconds_of

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE: Final = 60.0
_PIECE: Final = 2**20

_PASSING: Final = (429, 500, 502, 503, 504)


class PlainError(Exception):
    """A request that failed; the text is such as :mod:`zardine.stores.object.errors` understands.

    ``passing``: whether the same request may well succeed if it is made again now.
    """

    def __init__(self, text: str, *, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


class PlainHTTP:
    """Requests for what lies below ``url``, with obstore's ``options`` as far as they have a meaning here."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self._url = url.rstrip("/")
        self._headers = {
            name: value.decode("latin-1") if isinstance(value, bytes) else str(value)
            for name, value in dict(options.get("default_headers") or {}).items()
        }
        if options.get("user_agent"):
            self._headers["User-Agent"] = str(options["user_agent"])
        self._longest = seconds_of(options.get("timeout"))
        """Seconds within which the whole answer has to be there."""
        silence = seconds_of(options.get("read_timeout")) or _PATIENCE
        self._silence = min(silence, self._longest or silence)
        """Seconds without a byte after which nothing more is waited for."""
        self._safe = str(options.get("allow_invalid_certificates", False)).lower() != "true"
        self._proxy = options.get("proxy_url")
        self._opener: urllib.request.OpenerDirector | None = None

    def get(self, key: str, most: int | None = None) -> tuple[dict[str, Any], bytes]:
        """What the server tells of a value, and the value; of one of more than ``most`` bytes, a part that is longer.

        The size that is told is that of the bytes given.
        """
        return self._ask("GET", key, most)

    def head(self, key: str) -> dict[str, Any]:
        """What the server tells of a value; ``size`` is not in it."""
        meta, _ = self._ask("HEAD", key)
        del meta["size"]
        return meta

    def _ask(self, method: str, key: str, most: int | None = None) -> tuple[dict[str, Any], bytes]:
        url = f"{self._url}/{quote(key, safe='/~')}"
        request = urllib.request.Request(url, headers=self._headers, method=method)
        shown = f"{method} {without_secrets(url)}"
        end = None if self._longest is None else time.monotonic() + self._longest
        try:
            with self._open().open(request, timeout=self._silence) as answer:
                check_encoding(None if method == "HEAD" else answer.headers["Content-Encoding"])
                data = b"" if method == "HEAD" else _body(answer, end, most)
                return _meta(answer.headers, len(data)), data
        except urllib.error.HTTPError as error:
            with error:
                if error.code in (404, 410):
                    raise FileNotFoundError(key) from None
                text = f"{shown}: status code: {error.code} {error.reason}"
                raise PlainError(text, passing=error.code in _PASSING) from None
        except TimeoutError:
            raise PlainError(f"{shown}: timed out") from None
        except (OSError, http.client.HTTPException) as error:
            raise PlainError(f"{shown}: error sending request, or reading the response body: {error}") from None

    def _open(self) -> urllib.request.OpenerDirector:
        if self._opener is not None:
            return self._opener
        context = ssl.create_default_context()
        if not self._safe:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context), _Redirects()]
        if self._proxy:
            handlers.append(urllib.request.ProxyHandler({"http": str(self._proxy), "https": str(self._proxy)}))
        self._opener = urllib.request.build_opener(*handlers)
        return self._opener

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opener": None}


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Credentials do not follow to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            new.remove_header("Authorization")
        return new


def _body(answer: http.client.HTTPResponse, end: float | None, most: int | None) -> bytes:
    """What an answer holds; ``TimeoutError`` if not all of it has come when the clock says ``end``.

    No more is waited for once there are more than ``most`` bytes.
    """
    length, parts, size = answer.length, [], 0
    connection = getattr(getattr(answer.fp, "raw", None), "_sock", None)  # nothing public leads to it
    while length is None or size < length:
        if end is not None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if connection is not None:
                connection.settimeout(min(left, connection.gettimeout() or left))
        part = answer.read1(_PIECE if length is None else min(_PIECE, length - size))
        if not part:
            break
        parts.append(part)
        size += len(part)
        if most is not None and size > most:
            return b"".join(parts)
    data = b"".join(parts)
    if length is not None and size < length:
        raise http.client.IncompleteRead(data, length - size)
    return data


def _meta(headers: Message, size: int) -> dict[str, Any]:
    changed = _NEVER
    if headers["Last-Modified"]:
        try:
            changed = parsedate_to_datetime(headers["Last-Modified"])
        except ValueError:
            changed = _NEVER
    return {"e_tag": headers["ETag"], "last_modified": changed, "size": size}


__all__ = ["PlainError", "PlainHTTP"]
