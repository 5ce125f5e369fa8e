"""URLs as they may be printed."""

from __future__ import annotations

import re
from typing import Final

_USER: Final = re.compile(r"(?<=://)[^/?#\s'\"]*@")


def without_password(text: str) -> str:
    """A URL, or a text with URLs in it, with ``***`` for what stands between a user's name and the ``@``.

    ``abfs://container@account...`` has no password, nor has ``user@host``: they stay.
    """
    return _USER.sub(_hidden, text)


def _hidden(found: re.Match[str]) -> str:
    user, colon, _ = found[0].partition(":")
    return f"{user}:***@" if colon else found[0]


__all__ = ["without_password"]
