"""Warnings of arguments that zarr-python has and zardine takes, though they have no effect or a newer name.

They begin with the words of zarr-python, so that filters of warnings find them.
"""

from __future__ import annotations

from typing import Any

from zardine.errors import ZarrRuntimeWarning
from zardine.user_warnings import warn_user


def warn_of_ignored(**arguments: Any) -> None:
    """Say which of the ``arguments`` were given, that is, are not ``None``: they have no effect."""
    for name, value in arguments.items():
        if value is not None:
            _warn(f"{name} is not yet implemented: it is taken so that older code runs, and has no effect")


def warn_of_order() -> None:
    """Say that ``order`` was given for an array of Zarr v3."""
    _warn(
        "The `order` keyword argument has no effect for Zarr format 3 arrays: config={'order': 'F'} chooses the memory "
        "layout of what is read, filters=[TransposeCodec(...)] that of chunks"
    )


def warn_of_write_empty_chunks() -> None:
    """Say where ``write_empty_chunks`` is given in newer code."""
    _warn("The `write_empty_chunks` keyword argument is an older name: give config={'write_empty_chunks': ...}")


def _warn(text: str) -> None:
    warn_user(text, ZarrRuntimeWarning)
