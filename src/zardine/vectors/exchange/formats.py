"""Files of other formats, to and from Zarr Vectors stores, through the libraries that know them.

``pip install 'zardine[vectors]'`` installs the libraries; each is imported when a file needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

from zardine.errors import UnsupportedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import Attributes, Lengths
from zardine.vectors.exchange.features import features_in, features_out
from zardine.vectors.exchange.meshes import mesh_in, mesh_out
from zardine.vectors.exchange.scans import scan_in, scan_out
from zardine.vectors.exchange.streamlines import streamlines_in, streamlines_out
from zardine.vectors.exchange.swc import swc_in, swc_out
from zardine.vectors.polylines import LineOptions

__all__ = ["export_vectors", "import_vectors"]


class ImportOptions(LineOptions, total=False):
    """Options of all writers; a file has those of the one for its geometry."""

    geometry_type: Literal["streamline", "polyline", "line"]
    bin_shape: Lengths
    out_of_bounds: Literal["raise", "ignore", "expand"]
    link_attributes: Attributes
    face_attributes: Attributes


def import_vectors(source: str | Path, path: StoreLike, **options: Unpack[ImportOptions]) -> None:
    """Write what is in the file ``source`` to a new store at ``path``.

    The ending of the name says the format: ``.trk``, ``.tck`` (streamlines), ``.swc`` (skeletons), ``.ply``, ``.obj``,
    ``.stl`` (meshes; points of a ``.ply`` without faces), ``.las``, ``.laz`` (points), ``.geojson``, ``.gpkg``,
    ``.shp``, ``.parquet`` (lines or points).
    ``options`` are those of the writer: ``chunk_shape``, ``shard_shape``, ``compressor``, …

    What the store cannot hold is told by a :class:`~zardine.errors.ZarrUserWarning`. Raises
    :class:`~zardine.errors.UnsupportedError` for another ending, :class:`~zardine.errors.DataError` for points together
    with lines, and where some positions have two coordinates and others three.
    """
    _reader(Path(source))(Path(source), path, options)


def export_vectors(path: StoreLike, target: str | Path, *, level: int = 0) -> None:
    """Write a level of the store at ``path`` to the file ``target``, in the format that its ending names.

    What the format cannot hold is told by a :class:`~zardine.errors.ZarrUserWarning`. Raises
    :class:`~zardine.errors.UnsupportedError` for an ending that :func:`import_vectors` does not know,
    :class:`~zardine.errors.DataError` for a geometry, or a number of axes, that the format does not have.
    """
    suffix = Path(target).suffix.lower()
    writer = _WRITERS.get(suffix)
    if writer is None:
        raise UnsupportedError(f"{target}: the ending is none of {', '.join(_WRITERS)}")
    writer(path, Path(target), level)


def _reader(source: Path) -> Callable[[Path, StoreLike, Mapping[str, Any]], None]:
    reader = _READERS.get(source.suffix.lower())
    if reader is None:
        raise UnsupportedError(f"{source}: the ending is none of {', '.join(_READERS)}")
    return reader


_FEATURES = (".geojson", ".gpkg", ".shp", ".parquet")
_READERS: dict[str, Callable[[Path, StoreLike, Mapping[str, Any]], None]] = {
    ".trk": streamlines_in,
    ".tck": streamlines_in,
    ".swc": swc_in,
    ".ply": mesh_in,
    ".obj": mesh_in,
    ".stl": mesh_in,
    ".las": scan_in,
    ".laz": scan_in,
    **dict.fromkeys(_FEATURES, features_in),
}
_WRITERS: dict[str, Callable[[StoreLike, Path, int], None]] = {
    ".trk": streamlines_out,
    ".tck": streamlines_out,
    ".swc": swc_out,
    ".ply": mesh_out,
    ".obj": mesh_out,
    ".stl": mesh_out,
    ".las": scan_out,
    ".laz": scan_out,
    **dict.fromkeys(_FEATURES, features_out),
}
