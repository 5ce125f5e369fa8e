"""Answers that a web server compresses on their way: their bytes are not those that are stored (RFC 9110, 8.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

AS_STORED: Final = {"Accept-Encoding": "identity"}
"""The header that asks for bytes as they are stored; without it a server may do as it likes."""

_COMPRESSIONS: Final = frozenset(("br", "compress", "deflate", "dcb", "dcz", "gzip", "x-compress", "x-gzip", "zstd"))


class CompressedAnswerError(Exception):
    """The bytes of an answer are not those that are stored."""


def asking_as_stored(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return headers of requests with :data:`AS_STORED`, unless they say something of that themselves."""
    said = any(name.lower() == "accept-encoding" for name in headers)
    return {**({} if said else AS_STORED), **headers}


def check_encoding(encoding: str | None) -> None:
    """Raise :class:`CompressedAnswerError` for the ``Content-Encoding`` of an answer that is a compression."""
    if any(each.strip().lower() in _COMPRESSIONS for each in (encoding or "").split(",")):
        raise CompressedAnswerError(
            f"the server has compressed the answer (Content-Encoding: {encoding}), or says so: these are not the bytes "
            "that are stored. Have it send what lies there as it is (nginx: gzip off and gzip_static off; Apache: "
            "SetEnv no-gzip 1)"
        )


__all__ = ["AS_STORED", "CompressedAnswerError", "asking_as_stored", "check_encoding"]
