"""Which file or directory may be meant by a mistyped path."""

from __future__ import annotations

import os
from itertools import islice
from typing import Final

_MOST: Final = 10_000
"""Names that are compared, at most."""


def name_meant(path: str) -> str | None:
    """Return the path of what is there beside ``path``, which is not, and has the name that is most like it."""
    from difflib import get_close_matches

    folder, name = os.path.split(path.rstrip("/"))
    try:
        with os.scandir(folder or ".") as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST))
    except OSError:
        return None
    meant = get_close_matches(name, names, n=1)
    return os.path.join(folder, meant[0]) if meant else None


__all__ = ["name_meant"]
