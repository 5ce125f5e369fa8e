"""What the axes of an array are called, whichever way its document says it."""

from __future__ import annotations

from typing import Any, Final

from zardine.metadata.documents import ArrayMetadata

XARRAY: Final = "_ARRAY_DIMENSIONS"
"""The attribute that xarray keeps the names in, where the format has no place for them."""


def dimension_names(metadata: ArrayMetadata) -> list[str | None]:
    """Return the names of the axes: those of Zarr v3, or of the attribute that xarray keeps in v2."""
    names: Any = metadata.axis_names or metadata.attributes.get(XARRAY) or ()
    found = [name if isinstance(name, str) else None for name in names] if isinstance(names, list | tuple) else []
    return found if len(found) == metadata.ndim else [None] * metadata.ndim


__all__ = ["XARRAY", "dimension_names"]
