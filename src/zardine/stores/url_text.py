"""``file:`` URIs as text (RFC 8089; "File system store", Canonical URI)."""

from __future__ import annotations

import os
import re
from typing import Final

from zardine.errors import StoreError, UnsupportedError

_DRIVE: Final = re.compile(r"/?([A-Za-z]):(?=[/\\]|$)|/?([A-Za-z])\|(?=[/\\]|$)")


def is_file_uri(text: str) -> bool:
    """Whether ``text`` begins like a URI of the ``file`` scheme: ``file:/``."""
    return text[:6].lower() == "file:/"


def path_of_uri(uri: str, *, windows: bool = os.name == "nt") -> str:
    """The absolute path that a ``file:`` URI names.

    ``file:///data``, ``file:/data`` and ``file://localhost/data`` mean the same; percent escapes are decoded.
    :class:`UnsupportedError` for another host (so also for ``file://relative/path``), :class:`StoreError` for a URI
    with a query, a fragment, or an escape that cannot be part of a path. With ``windows``, ``file:///c:/data`` is
    ``c:/data``.
    """
    from urllib.parse import unquote_to_bytes  # here: slow to import, and rarely needed

    if not is_file_uri(uri):
        raise StoreError(f"{uri!r} is not an absolute file URI; write file:///path")
    rest = uri[5:]
    if "?" in rest or "#" in rest:
        raise StoreError(f"{uri!r}: a file URI has no query or fragment; write '?' as %3F and '#' as %23")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            raise UnsupportedError(
                f"{uri!r} names the host {host.rpartition('@')[2]!r}: only files of this machine can be opened (file:///absolute/path)"
            )
        rest = slash + path
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest):
        raise StoreError(f"{uri!r}: '%' is not followed by two hexadecimal digits; write it as %25")
    decoded = unquote_to_bytes(rest)
    if not decoded or b"\0" in decoded:
        raise StoreError(f"{uri!r} names no path")
    path = decoded.decode("utf-8", "surrogateescape")
    if windows:
        drive = _DRIVE.match(path)
        if drive:
            return f"{drive[1] or drive[2]}:{path[drive.end() :] or '/'}"
    return path


def uri_of_path(path: str) -> str:
    """The canonical URI of an absolute path."""
    from urllib.parse import quote_from_bytes

    path = path.replace(os.sep, "/")
    start = "" if path.startswith("/") else "/"
    return "file://" + start + quote_from_bytes(path.encode("utf-8", "surrogateescape"), safe="/:@!$&'()*+,;=~")


__all__ = ["is_file_uri", "path_of_uri", "uri_of_path"]
