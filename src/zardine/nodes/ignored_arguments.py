"""Warnings of arguments that zarr-python has and zardine takes, though they have no effect or a newer name."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from zardine.errors import ZarrRuntimeWarning


def warn_of_ignored(**arguments: Any) -> None:
    """Say which of the ``arguments`` were given, that is, are not ``None``: they have no effect."""
    for name, value in arguments.items():
        if value is not None:
            _warn(f"{name} has no effect: it is taken so that older code runs")


def warn_of_order() -> None:
    """Say that ``order`` was given for an array of Zarr v3."""
    _warn(
        "order has no effect on arrays of Zarr v3: config={'order': 'F'} chooses the memory layout of what is read, "
        "filters=[TransposeCodec(...)] that of chunks"
    )


def warn_of_write_empty_chunks() -> None:
    """Say where ``write_empty_chunks`` is given in newer code."""
    _warn("write_empty_chunks is an older name: give config={'write_empty_chunks': ...}")


def _warn(text: str) -> None:
    """Warn at the line outside of this package that called into it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "zardine":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, ZarrRuntimeWarning, stacklevel=level)
