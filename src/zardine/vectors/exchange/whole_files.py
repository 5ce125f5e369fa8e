"""Whether files of GDAL are all there, by what they say of their lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HEADER: Final = 100
"""Bytes at the start of the files of a Shapefile, which say how long these are."""


def is_cut_off(place: Path, *, is_ours: bool = False) -> bool:
    """Whether the end of a file is missing.

    ``is_ours``: GDAL has just written it, so that nothing is behind what it says of itself either, and GeoJSON ends in
    a certain way.
    """
    suffix, size = place.suffix.lower(), place.stat().st_size
    with place.open("rb") as file:
        start = file.read(_HEADER)
        file.seek(max(0, size - _HEADER))
        end = file.read()
    if suffix in (".shp", ".shx"):
        told = 2 * int.from_bytes(start[24:28], "big")
        return len(start) < _HEADER or size < told or (is_ours and size > told)
    if suffix == ".dbf":
        count, header, row = (int.from_bytes(start[a:b], "little") for a, b in ((4, 8), (8, 10), (10, 12)))
        return header == 0 or size < header + count * row
    if suffix == ".geojson" and is_ours:
        return not end.rstrip().endswith(b"]\n}")
    return is_ours and size == 0


__all__ = ["is_cut_off"]
