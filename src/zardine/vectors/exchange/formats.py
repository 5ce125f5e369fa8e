"""Files of other formats, to and from Zarr Vectors stores, through the libraries that know them.

``pip install 'zardine[vectors]'`` installs the libraries; each is imported when a file needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from zardine.errors import UnsupportedError
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress, Steps
from zardine.vectors.content.arguments import Attributes, Lengths
from zardine.vectors.exchange.features import features_in, features_out
from zardine.vectors.exchange.geff import geff_in, geff_out, is_geff
from zardine.vectors.exchange.meshes import mesh_in, mesh_out
from zardine.vectors.exchange.precomputed.folder import PREFIX
from zardine.vectors.exchange.precomputed.reading import is_precomputed, precomputed_in
from zardine.vectors.exchange.precomputed.writing import precomputed_out
from zardine.vectors.exchange.scans import scan_in, scan_out
from zardine.vectors.exchange.streamlines import streamlines_in, streamlines_out
from zardine.vectors.exchange.swc import swc_in, swc_out
from zardine.vectors.exchange.trx import trx_in, trx_out
from zardine.vectors.polylines import LineOptions

__all__ = ["FORMATS", "ExportOptions", "Format", "export_vectors", "format_of", "import_vectors"]


class ImportOptions(LineOptions, total=False):
    """Options of all writers; a file has those of the one for its geometry."""

    geometry_type: Literal["streamline", "polyline", "line"]
    bin_shape: Lengths
    out_of_bounds: Literal["raise", "ignore", "expand"]
    link_attributes: Attributes
    face_attributes: Attributes


class ExportOptions(TypedDict, total=False):
    """Options of formats that are folders."""

    overwrite: bool
    """Whether to replace what is in the folder."""
    sharded: bool | None
    """Of ``precomputed``: whether values are packed into shards; ``None``: where there are more than 1,000."""
    annotation_type: Literal["point", "line", "axis_aligned_bounding_box"] | None
    """Of ``precomputed``: what lines of two vertices are; ``None``: boxes if they were such when they came."""


FileReader: TypeAlias = Callable[[Path, StoreLike, Mapping[str, Any]], None]
FileWriter: TypeAlias = Callable[[StoreLike, Path, int], None]
FolderReader: TypeAlias = Callable[[StoreLike, StoreLike, Mapping[str, Any], Progress | None], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of other programs."""

    name: str
    endings: tuple[str, ...]
    """Of names of files, or of folders, that are of it."""
    read: Callable[..., None]
    """A :data:`FileReader`, or of a folder a :data:`FolderReader`."""
    write: Callable[..., None]
    """A :data:`FileWriter`; of a folder it takes options, too."""
    is_folder: bool = False
    """Whether it is many values, in a folder of any store."""


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        *(Format(name, (f".{name}",), streamlines_in, streamlines_out) for name in ("trk", "tck")),
        Format("trx", (".trx",), trx_in, trx_out),
        Format("swc", (".swc",), swc_in, swc_out),
        *(Format(name, (f".{name}",), mesh_in, mesh_out) for name in ("ply", "obj", "stl")),
        *(Format(name, (f".{name}",), scan_in, scan_out) for name in ("las", "laz")),
        *(Format(name, (f".{name}",), features_in, features_out) for name in ("geojson", "gpkg", "shp", "parquet")),
        Format("geff", (".geff",), geff_in, geff_out, is_folder=True),
        Format("precomputed", (".precomputed",), precomputed_in, precomputed_out, is_folder=True),
    )
}
"""All of them, by their names."""


def format_of(place: StoreLike, name: str | None = None, *, stored: bool = False) -> Format:
    """Return the format called ``name``, or else the one that the ending of ``place`` names.

    ``stored``: a folder of any name is looked at. Raises :class:`UnsupportedError` for none.
    """
    if name is not None:
        if name not in FORMATS:
            raise UnsupportedError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
        return FORMATS[name]
    text = str(place)
    if text.startswith(PREFIX):
        return FORMATS["precomputed"]
    ending = Path(text.rstrip("/")).suffix.lower()
    for each in FORMATS.values():
        if ending in each.endings:
            return each
    if stored and not Path(text).is_file():
        for known, is_it in (("precomputed", is_precomputed), ("geff", is_geff)):
            if is_it(place):
                return FORMATS[known]
    endings = [ending for each in FORMATS.values() for ending in each.endings]
    raise UnsupportedError(f"{place}: the ending is none of {', '.join(endings)}: format= names the format")


def import_vectors(
    source: StoreLike,
    path: StoreLike,
    *,
    format: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[ImportOptions],
) -> None:
    """Write what is in the file or folder ``source`` to a new store at ``path``.

    ``format``, or the ending of the name, says the format: ``.trk``, ``.tck``, ``.trx`` (streamlines), ``.swc``
    (skeletons), ``.ply``, ``.obj``, ``.stl`` (meshes; points of a ``.ply`` without faces), ``.las``, ``.laz`` (points),
    ``.geojson``, ``.gpkg``, ``.shp``, ``.parquet`` (lines or points). ``precomputed``, a folder or URL of neuroglancer
    with annotations, skeletons or meshes, and ``geff``, a graph of GEFF, are known by their documents. ``options`` are
    those of the writer: ``chunk_shape``, ``shard_shape``, ``compressor``, …

    ``progress(done, total)`` counts files. What the store cannot hold is told by a
    :class:`~zardine.errors.ZarrUserWarning`. Raises :class:`~zardine.errors.UnsupportedError` for other formats,
    :class:`~zardine.errors.DataError` for points together with lines, and where some positions have two coordinates and
    others three.
    """
    chosen = format_of(source, format, stored=True)
    if chosen.is_folder:
        chosen.read(source, path, options, progress)
        return
    steps = Steps(progress, 1)
    chosen.read(_file(source), path, options)
    steps()


def export_vectors(
    path: StoreLike,
    target: StoreLike,
    *,
    level: int = 0,
    format: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[ExportOptions],
) -> None:
    """Write a level of the store at ``path`` to the file or folder ``target``, in the format that its ending names.

    ``format`` names it otherwise, as in :func:`import_vectors`. What the format cannot hold is told by a
    :class:`~zardine.errors.ZarrUserWarning` before anything is written. ``progress(done, total)`` counts values of a
    folder. A file that is there is replaced, a folder with something in it only by ``overwrite=True``.

    Raises :class:`~zardine.errors.UnsupportedError` for formats that :func:`import_vectors` does not know,
    :class:`~zardine.errors.DataError` for a geometry, or a number of axes, that the format does not have,
    :class:`~zardine.errors.NodeExistsError` for a folder that is not empty, and ``TypeError`` for options that the
    format does not have.
    """
    chosen = format_of(target, format)
    if chosen.is_folder:
        chosen.write(path, target, level, progress=progress, **options)
        return
    unknown = [name for name in options if name != "overwrite"]
    if unknown:
        raise TypeError(f"the format {chosen.name} has no option {unknown[0]!r}")
    steps = Steps(progress, 1)
    chosen.write(path, _file(target), level)
    steps()


def _file(place: StoreLike) -> Path:
    if not isinstance(place, str | Path):
        raise TypeError(f"this format is a file: a path is needed, not {type(place).__name__}")
    return Path(place)
