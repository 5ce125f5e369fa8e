"""The base class of stores; its methods are plain ones, called from threads."""

from __future__ import annotations

from zardine.stores.base import ByteRange, Condition, Reading, Store, Version

ByteRequest = ByteRange
"""zarr-python's name for a byte range."""

__all__ = ["ByteRange", "ByteRequest", "Condition", "Reading", "Store", "Version"]


def __dir__() -> list[str]:
    return sorted(__all__)
