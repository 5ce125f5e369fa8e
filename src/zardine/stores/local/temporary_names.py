"""Names of files and directories that are not part of a store, and which no key may have."""

from __future__ import annotations

import os
from typing import Final

START: Final = ".zardine-"
_END: Final = ".tmp"
_EDIT: Final = f"{START}edit-"


def temporary_name() -> str:
    """A new name for a file or directory that is not, or no longer, part of the store."""
    return f"{START}{os.urandom(8).hex()}{_END}"


def edit_record_name(name: str) -> str:
    """Return the name of the record beside the file ``name``; see :mod:`zardine.stores.local.edit_record`."""
    return f"{_EDIT}{name}{_END}"


def edited_name(name: str) -> str | None:
    """The name of the file whose record has this ``name``; ``None`` if it is no record."""
    return name[len(_EDIT) : -len(_END)] if name.startswith(_EDIT) and name.endswith(_END) else None


def is_temporary(name: str) -> bool:
    """Whether ``name`` (one part of a path) is one of ours: no key has such a part, and no listing shows it."""
    return name.startswith(START) and name.endswith(_END)


__all__ = ["START", "edit_record_name", "edited_name", "is_temporary", "temporary_name"]
