"""Saying in a word that a directory is not there, which a mistyped path is as a rule."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def missing(path: str) -> Iterator[None]:
    """Where no node is found at ``path``, say that nothing at all is there, if that is so."""
    from zardine.errors import NodeNotFoundError

    try:
        yield
    except NodeNotFoundError:
        if "://" not in path and not path.lower().startswith("file:/") and not os.path.exists(path):
            raise NodeNotFoundError(f"{path!r} does not exist") from None
        raise
