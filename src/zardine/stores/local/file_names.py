"""Which keys can be names in a file tree."""

from __future__ import annotations

import os
from typing import Final

from zardine.errors import InvalidKeyError
from zardine.stores.base import check_key
from zardine.stores.local.temporary_names import START, is_temporary

_WINDOWS: Final = os.name == "nt"


def check_file_key(key: str) -> str:
    """``key`` if it is well formed and can name a file below the base directory, else ``InvalidKeyError``."""
    check_key(key)
    if START in key and any(map(is_temporary, key.split("/"))):
        raise InvalidKeyError(f"invalid store key {key!r}: names {START}*.tmp are kept for unfinished writes")
    if _WINDOWS and any(character in key for character in '\\:*?"<>|'):
        raise InvalidKeyError(f"invalid store key {key!r}: not a file name on Windows")
    return key


__all__ = ["check_file_key"]
