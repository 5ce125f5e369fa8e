"""What a server lets its clients do, as one value that is handed on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zardine.server.entrance import Entrance


@dataclass(frozen=True, slots=True)
class Options:
    """Who may read, and what: see :class:`~zardine.server.access.Access` for the first three."""

    token: str | None = None
    hosts: frozenset[str] | None = None
    cors: tuple[str, ...] = ()
    listing: bool = False
    """Whether clients may list what is stored; then they may look at it, too."""
    gzip: bool = False
    """Whether the chunks of the plain form are compressed."""
    entrance: Entrance | None = None
    """What lets in the browser that :func:`zardine.view` starts."""
    page: bool = False
    """Whether there is the page that shows what is stored, also where keys may not be listed."""


def origins(cors: str | Iterable[str]) -> tuple[str, ...]:
    """Return origins as a tuple; a text is one of them."""
    return (cors,) if isinstance(cors, str) else tuple(cors)
