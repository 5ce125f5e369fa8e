"""Names in a file tree: which ones are zardine's own and never keys."""

from __future__ import annotations

import os
from typing import Final

from zardine.errors import InvalidKeyError
from zardine.stores.base import check_key

_START: Final = ".zardine-"
_END: Final = ".tmp"
_WINDOWS: Final = os.name == "nt"


def temporary_name() -> str:
    """A new name for a file or directory that is not, or no longer, part of the store."""
    return f"{_START}{os.urandom(8).hex()}{_END}"


def is_temporary(name: str) -> bool:
    """Whether ``name`` (one part of a path) is one of ours: no key has such a part, and no listing shows it."""
    return name.startswith(_START) and name.endswith(_END)


def check_file_key(key: str) -> str:
    """``key`` if it is well formed and can name a file below the base directory, else ``InvalidKeyError``."""
    check_key(key)
    if _START in key and any(map(is_temporary, key.split("/"))):
        raise InvalidKeyError(f"invalid store key {key!r}: names {_START}*{_END} are kept for unfinished writes")
    if _WINDOWS and any(character in key for character in '\\:*?"<>|'):
        raise InvalidKeyError(f"invalid store key {key!r}: not a file name on Windows")
    return key


__all__ = ["check_file_key", "is_temporary", "temporary_name"]
