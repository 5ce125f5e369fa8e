"""Files of other formats, to and from Zarr Vectors stores, through the libraries that know them.

``pip install 'zardine[vectors]'`` installs the libraries; each is imported when a file needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, cast

import numpy as np

from zardine.codecs.base import Codec
from zardine.errors import ArrayChangedError, DataError, UnsupportedError
from zardine.hierarchy.place import find_place
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.stores.base import Store
from zardine.stores.file_seam import local_folder
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress, Shares
from zardine.tools.running import run_through
from zardine.vectors.changing.creating import StoreOptions, check_options, check_room
from zardine.vectors.content.arguments import Attributes, Lengths
from zardine.vectors.content.parts import AT_ONCE, WHOLE
from zardine.vectors.exchange import features, geff, meshes, scans, streamlines, swc, tables, trx
from zardine.vectors.exchange.export_folder import check_complete
from zardine.vectors.exchange.export_work import planned_export
from zardine.vectors.exchange.feature_parts import FeatureParts
from zardine.vectors.exchange.features_out import features_out
from zardine.vectors.exchange.file_lists import files_of
from zardine.vectors.exchange.file_parts import FileParts, FolderParts, PartDamagedError, Step, import_parts
from zardine.vectors.exchange.format_features import Fates, fates
from zardine.vectors.exchange.geff import is_geff
from zardine.vectors.exchange.geff_work import planned_geff
from zardine.vectors.exchange.import_work import (
    PARTS,
    ImportWork,
    document_digest,
    telling,
)
from zardine.vectors.exchange.meshes_out import mesh_out
from zardine.vectors.exchange.precomputed import reading as precomputed
from zardine.vectors.exchange.precomputed.folder import PREFIX
from zardine.vectors.exchange.precomputed.reading import is_precomputed
from zardine.vectors.exchange.precomputed.work import planned_precomputed
from zardine.vectors.exchange.scans import scan_out
from zardine.vectors.exchange.sources import Source, SourceFile, SourceFolder
from zardine.vectors.exchange.streamlines import streamlines_out
from zardine.vectors.exchange.swc import swc_out
from zardine.vectors.exchange.tables import TABLE_OPTIONS
from zardine.vectors.exchange.tables_out import csv_out, feather_out, parquet_table_out
from zardine.vectors.exchange.targets import check_apart, check_files, files_of_target
from zardine.vectors.exchange.trx import trx_out
from zardine.vectors.exchange.unfinished import discard
from zardine.vectors.format.layouts import layout_from
from zardine.vectors.polylines import LineOptions
from zardine.vectors.reading.kept import kind_of
from zardine.vectors.storing.store import VectorStore

__all__ = [
    "FORMATS",
    "ExportOptions",
    "Format",
    "export_vectors",
    "format_of",
    "import_vectors",
    "plan_export",
    "plan_import",
]


class ImportOptions(LineOptions, total=False):
    """Options of all writers; a file has those of the one for its geometry."""

    geometry_type: Literal["streamline", "polyline", "line"]
    bin_shape: Lengths
    out_of_bounds: Literal["raise", "ignore", "expand"]
    x: str
    """Of tables: the column that is the first coordinate; so are ``y``, ``z`` and ``time`` the others."""
    y: str
    z: str | None
    time: str | None
    delimiter: str | None
    """Of CSV: what is between values."""
    link_attributes: Attributes
    face_attributes: Attributes


class ExportOptions(TypedDict, total=False):
    """Options of formats."""

    overwrite: bool
    """Whether to replace files, or what is in the folder."""
    sharded: bool | None
    """Of ``precomputed``: whether values are packed into shards; ``None``: where there are more than 1,000."""
    annotation_type: Literal["point", "line", "axis_aligned_bounding_box"] | None
    """Of ``precomputed``: what lines of two vertices are; ``None``: boxes if they were such when they came."""
    vertices_per_file: int
    """Of folders of files that are parts of a level: how many vertices each has, about."""


FileWriter: TypeAlias = Callable[[StoreLike, Path, int, Step], None]
"""Is told the store, the file, the level, and what to call with the share of the work that is done."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of other programs."""

    name: str
    endings: tuple[str, ...]
    """Of names of files, or of folders, that are of it."""
    write: Callable[..., None] | None = None
    """A :data:`FileWriter`; of a folder it takes options, too. ``None``: only by a plan of jobs."""
    is_folder: bool = False
    """Whether it is many values, in a folder of any store."""
    of_folders: bool = False
    """Whether a folder of such files can be read as one, each file an object."""
    of_parts: bool = False
    """Whether a folder of such files can be read, and written, as one, each file a part of it."""
    unpacked: bool = False
    """Whether a file may be unpacked, as a folder."""
    fates: Fates = field(default_factory=fates)
    """What becomes of features of a file, or of a store."""

    @property
    def takes_folders(self) -> bool:
        """Whether a folder of such files can be read as one."""
        return self.of_folders or self.of_parts


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("trk", (".trk",), streamlines_out, of_parts=True, fates=streamlines.TRK),
        Format("tck", (".tck",), streamlines_out, of_parts=True, fates=streamlines.TCK),
        Format("trx", (".trx",), trx_out, of_parts=True, unpacked=True, fates=trx.FATES),
        Format("swc", (".swc",), swc_out, of_folders=True, fates=swc.FATES),
        Format("ply", (".ply",), mesh_out, of_folders=True, fates=meshes.PLY),
        Format("obj", (".obj",), mesh_out, of_folders=True, fates=meshes.OBJ),
        Format("stl", (".stl",), mesh_out, of_folders=True, fates=meshes.STL),
        *(Format(name, (f".{name}",), scan_out, of_parts=True, fates=scans.FATES) for name in ("las", "laz")),
        Format("geojson", (".geojson",), features_out, fates=features.GEOJSON),
        Format("gpkg", (".gpkg",), features_out, fates=features.GPKG),
        Format("shp", (".shp",), features_out, fates=features.SHP),
        Format("parquet", (".parquet",), features_out, of_parts=True, fates=features.PARQUET),
        Format("csv", (".csv", ".tsv"), csv_out, of_parts=True, fates=tables.CSV),
        Format("feather", (".feather", ".arrow"), feather_out, of_parts=True, fates=tables.ARROW),
        Format("parquet-table", (".parquet",), parquet_table_out, fates=tables.ARROW),
        Format("geff", (".geff",), is_folder=True, fates=geff.FATES),
        Format("precomputed", (".precomputed",), is_folder=True, fates=precomputed.FATES),
    )
}
"""All of them, by their names."""


_OF_TABLES = ("csv", "feather", "parquet", "parquet-table")
"""Formats of columns, some of which are coordinates."""
_OF_LINES = ("trk", "tck", "trx", "geojson", "gpkg", "shp", "parquet")
"""Formats whose lines can be of several kinds."""


def format_of(
    place: StoreLike,
    name: str | None = None,
    *,
    stored: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Format:
    """Return the format called ``name``, or else the one that the ending of ``place`` names.

    ``stored``: a folder of any name is looked at, with ``storage_options`` of a URL. Raises :class:`UnsupportedError`
    for none, and :class:`DataError` for a folder of files of several formats.
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
        where = StorePath(*find_place(place, mode="r", storage_options=storage_options)) if storage_options else place
        for known, is_it in (("precomputed", is_precomputed), ("geff", is_geff)):
            if is_it(where):
                return FORMATS[known]
        there = {each.suffix.lower() for each in files_of(Path(text))} if Path(text).is_dir() else set()
        found = [each for each in FORMATS.values() if each.takes_folders and there.intersection(each.endings)]
        if len(found) == 1:
            return found[0]
        if found:
            names = " or ".join(each.name for each in found)
            raise DataError(f"{place} holds files of several formats: format= says which are read: {names}")
    if stored and Path(text).is_dir():
        check_complete(Path(text))  # half an export may have no file yet
    endings = [ending for each in FORMATS.values() for ending in each.endings]
    raise UnsupportedError(f"{place}: the ending is none of {', '.join(endings)}: format= names the format")


def import_vectors(
    source: StoreLike,
    path: StoreLike,
    *,
    format: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[ImportOptions],
) -> None:
    """Write what is in the file or folder ``source`` to a new store at ``path``.

    ``format``, or the ending of the name, says the format: ``.trk``, ``.tck``, ``.trx`` (streamlines), ``.swc``
    (skeletons), ``.ply``, ``.obj``, ``.stl`` (meshes; points of a ``.ply`` without faces), ``.las``, ``.laz`` (points),
    ``.geojson``, ``.gpkg``, ``.shp``, ``.parquet`` (lines or points), ``.csv``, ``.tsv``, ``.feather``, ``.arrow`` and
    ``.parquet`` without geometries (points: ``x``, ``y``, and if there are such ``z`` and ``time``, name the columns of
    coordinates, unless these are called as usual; ``delimiter`` is what is between values of CSV). A folder of
    ``.swc``, ``.ply``, ``.obj`` or ``.stl`` is read as one: each file is an object with the attribute ``name``, and
    with the id that it is called by where all are called by numbers. One of tables, ``.las``, ``.laz``, ``.parquet``,
    ``.trk``, ``.tck`` or ``.trx`` is read as one, too, its files one behind the other. ``precomputed``, a folder or URL
    of neuroglancer with annotations, skeletons or meshes, and ``geff``, a graph of GEFF, are known by their documents.
    ``options`` are those of the writer: ``chunk_shape``, ``shard_shape``, ``compressor``, …

    What is large, to a store in a directory, is imported by the plan of :func:`plan_import`: who is killed goes on by
    the same call. ``workers``: so many processes read it, of any size. ``storage_options`` are those of a ``source`` at
    a URL.

    ``progress(done, total)`` counts thousandths of reading and of writing, or files. What the store cannot hold is told
    by a :class:`~zardine.errors.ZarrUserWarning`. Raises :class:`~zardine.errors.UnsupportedError` for other formats,
    :class:`~zardine.errors.DataError` for points together with lines, and where some positions have two coordinates and
    others three.
    """
    chosen = format_of(source, format, stored=True, storage_options=storage_options)
    check_table_options(options, chosen)
    given = source_of(source, chosen, storage_options)
    check_room(path, options.get("overwrite", False))
    if options.get("overwrite"):
        _check_stays(given, find_place(path, mode="a"))
    parts = _opened(given, chosen, options)
    plan = _plan_for(given, path, chosen, options, workers, parts)
    if plan is None and workers is not None:
        parts.close()
        raise UnsupportedError(f"{source} cannot be read by several processes: leave workers out")
    try:
        if plan is not None:
            _run(plan, workers, progress)
            return
        target = Place.of(*find_place(path, mode="a"), given=path)
        discard(target, "import", str(given) if isinstance(given, Place) else str(given.absolute()))
        import_parts(parts, str(source), path, options, progress)
    except UnsupportedError:  # of a file that is not what its metadata tell
        if plan is not None:
            plan.cancel()
        if chosen.name != "parquet" or _file(source).is_dir():
            raise
        import_parts(FeatureParts(_file(source), options, AT_ONCE), str(source), path, options, progress)


def plan_import(
    source: StoreLike,
    path: StoreLike,
    *,
    format: str | None = None,
    target_path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    **options: Unpack[ImportOptions],
) -> Plan:
    """Return the plan of :func:`import_vectors` of a file, folder or URL. Nothing is written.

    Jobs read parts, and keep them in a hidden folder of the new store, which is there when the plan is finished. Parts
    are half a million vertices of ``.las``, ``.laz``, ``.tck``, ``.trk``, ``.trx`` and GEFF, as much of ``precomputed``
    (some of its files, or of the minishards of a shard), 16 MiB of ``.csv``, batches of ``.feather``, row groups of
    ``.parquet``, some features of ``.gpkg`` and ``.shp``, and some files of a folder of ``.swc``, ``.ply``, ``.obj`` or
    ``.stl``. A single file of these, ``.geojson``, and ``.parquet`` whose columns or geometries have to be seen
    together, are one part. ``options`` are ``chunk_shape``, ``bin_shape``, ``shard_shape``, ``compressor``,
    ``codec_config``, ``checksum``, ``bounds``, ``out_of_bounds``, ``axes``, ``crs``, ``dtype``, ``overwrite``, of lines
    ``geometry_type``, and of tables ``x``, ``y``, ``z``, ``time`` and ``delimiter``; ``target_path`` names a node in
    the store at ``path``, and ``target_options`` are those of a store at a URL, as ``storage_options`` are of a
    ``source`` there.

    Raises :class:`~zardine.errors.UnsupportedError` for other files, :class:`~zardine.errors.NodeExistsError` where
    something is stored at ``path`` and ``overwrite`` is false, ``TypeError`` for other options, and as
    :func:`import_vectors` for what is wrong with the file.
    """
    chosen = format_of(source, format, stored=True, storage_options=storage_options)
    check_table_options(options, chosen)
    given = source_of(source, chosen, storage_options)
    target = Place.of(*find_place(path, target_path, mode="a", storage_options=target_options), given=path)
    if options.get("overwrite"):
        _check_stays(given, (target.store, target.path))
    return _planned(given, target, chosen, options, None)


def check_table_options(options: Mapping[str, Any], chosen: Format) -> None:
    """Raise ``TypeError`` where options of tables are given for another format."""
    for name in TABLE_OPTIONS:
        known = ("csv",) if name == "delimiter" else _OF_TABLES
        if options.get(name) is not None and chosen.name not in known:
            raise TypeError(f"the format {chosen.name} has no option {name!r}, which is of {', '.join(known)}")


def _check_stays(given: Path | Place, target: tuple[Store, str]) -> None:
    """Raise :class:`~zardine.errors.NodeExistsError` where a source would go with the store that is replaced."""
    source = StorePath(given.store, given.path) if isinstance(given, Place) else given
    check_apart(target, source, "import to another place, or without overwrite")


def _planned(
    given: Path | Place, target: Place, chosen: Format, options: Mapping[str, Any], parts: FileParts | None
) -> Plan:
    """The plan of an import of a file or folder; ``parts``: it is opened already."""
    plain = _plain_options(options, chosen.name)
    replaced = document_digest(target)
    if replaced is not None and not options.get("overwrite"):
        check_room(StorePath(target.store, target.path), False)
    parts = _opened(given, chosen, plain) if parts is None else parts
    try:
        numbers = AT_ONCE, parts.count, parts.vertices, parts.memory
        if isinstance(given, Path):
            look: Source = SourceFile.of(given)
        else:
            folder = cast(FolderParts, parts)
            look = SourceFolder(given, folder.nbytes, folder.seen)
        return Plan(ImportWork(look, chosen.name, target, plain, replaced, *numbers, parts.outline))
    finally:
        parts.close()


def _plain_options(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The options of a plan, as JSON. Raises ``TypeError`` for others, and :class:`DataError` for wrong codecs."""
    own = ("dtype", *(("geometry_type",) if name in _OF_LINES else ()), *(TABLE_OPTIONS if name in _OF_TABLES else ()))
    stored = cast(StoreOptions, {each: value for each, value in options.items() if each not in own})
    check_options(stored)
    layout_from(1, stored.get("compressor"), stored.get("codec_config"), stored.get("checksum"), 1)
    return {each: _as_json(each, value) for each, value in options.items() if each != "overwrite"}


def _as_json(name: str, value: Any) -> Any:
    """A user's value as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return _as_json(name, value.tolist())
    if isinstance(value, Codec):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(each): _as_json(name, found) for each, found in value.items()}
    if isinstance(value, np.dtype | type) and name == "dtype":
        return np.dtype(value).str
    if isinstance(value, Iterable):
        return [_as_json(name, each) for each in value]
    raise DataError(f"{name} cannot be kept in a plan: {value!r}")


def _plan_for(
    given: Path | Place,
    path: StoreLike,
    chosen: Format,
    options: Mapping[str, Any],
    workers: int | None,
    parts: FileParts,
) -> Plan | None:
    """The plan of an import that is worth one; ``None`` for others."""
    if set(options) - {*StoreOptions.__annotations__, "dtype", "geometry_type", *TABLE_OPTIONS}:
        return None
    store, inner = find_place(path, mode="a")
    if local_folder(store) is None or (workers is None and parts.vertices <= WHOLE):
        return None
    return _planned(given, Place.of(store, inner, given=path), chosen, options, parts)


def _run(plan: Plan, workers: int | None, progress: Progress | None) -> None:
    steps = Shares(progress, 2)
    step = steps.part()
    try:
        run_through(plan, workers=workers, progress=lambda done, total: step(done / max(1, total)), finish=False)
        with telling(steps.part()):
            plan.finish()
    except PartDamagedError:
        raise
    except (DataError, ArrayChangedError):  # of the source: going on would not help
        plan.cancel()
        raise


def export_vectors(
    path: StoreLike,
    target: StoreLike,
    *,
    level: int = 0,
    format: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[ExportOptions],
) -> None:
    """Write a level of the store at ``path`` to the file or folder ``target``, in the format that its ending names.

    ``format`` names it otherwise, as in :func:`import_vectors`. What the format cannot hold is told by a
    :class:`~zardine.errors.ZarrUserWarning`; by folders when they are complete, but for a geometry or a family of
    attributes that is lost. Half a million vertices are in memory at a time, with ids, lengths and attributes of whole
    objects.

    A folder (there, or with a ``/`` at its end) of SWC, or with ``format`` of PLY, OBJ or STL, gets a file for each
    object, called by its attribute ``name`` or its id, by the plan of :func:`plan_export`, too. A folder (there, or
    with a ``/``) of ``format`` ``csv``, ``feather``, ``las``, ``laz``, ``parquet``, ``trk``, ``tck`` or ``trx`` gets
    files of about ``vertices_per_file`` (4,194,304) by the plan of :func:`plan_export`: ``workers`` processes write
    them, and who is killed goes on by the same call. :func:`import_vectors` reads the folder as one. ``precomputed``, a
    folder or URL for neuroglancer, is written so, too: ``sharded`` says whether values are packed into shards
    (``None``: where there are more than 1,000 of a kind; meshes never are), ``annotation_type`` what lines of two
    vertices are. GEFF is written so as well.

    ``progress(done, total)`` counts thousandths. Files that are there, and folders with something in them, are replaced
    only by ``overwrite=True``; files, and folders of such, when the new ones are complete, so that after an error they
    are as they were. What is to be replaced by ``precomputed`` or GEFF goes first.

    Raises :class:`~zardine.errors.UnsupportedError` for formats that :func:`import_vectors` does not know,
    :class:`~zardine.errors.DataError` for a geometry, or a number of axes, that the format does not have,
    :class:`~zardine.errors.NodeExistsError` for files, and folders that are not empty, without ``overwrite``, and where
    ``target`` is the store, or one is inside of the other, and ``TypeError`` for options that the format does not have.
    """
    chosen = export_format(path, target, format)
    check_apart(find_place(path), target, "export to another place")
    if is_by_jobs(target, chosen):
        _run_export(plan_export(path, target, level=level, format=format, **options), workers, progress)
        return
    if workers is not None:
        raise UnsupportedError(
            f"{target} is written by one process: workers= are of folders, with format= one of {_named_parts()}"
        )
    assert chosen.write is not None
    file, overwrite = _file(target), _known(options, chosen, ("overwrite",)).get("overwrite", False)
    check_files(files_of_target(file), overwrite)
    step = Shares(progress, 1).part()
    chosen.write(path, file, level, step)
    step(1)


def plan_export(
    path: StoreLike,
    target: StoreLike,
    *,
    level: int = 0,
    format: str | None = None,
    source_path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[ExportOptions],
) -> Plan:
    """Return the plan of :func:`export_vectors` to a folder that several jobs write. Nothing is written.

    Of files that are parts of a level, the first job goes through that, to see what files have and what the format does
    not hold, which is told in the end; the others write a file each, ``part-00000.laz``, …, of about
    ``vertices_per_file`` vertices: points of some chunks, lines that begin in some. Files are made in a hidden folder
    of ``target``, and put there when all are: then ``_parts.json`` names them. With ``overwrite=True`` files of the
    format that are in the folder are removed in the end. Of files of objects (``swc``, ``ply``, ``obj``, ``stl``) each
    job writes those that begin in some chunks, half a million vertices.

    Of ``precomputed``, the first job goes through the level; others sort half a million vertices each into runs, in the
    same hidden folder; and as many put together what all runs have for a shard, or for some files, and write that to
    its place. Each value is the same whoever writes it, and when. The document ``info`` comes last: without it nothing
    counts. With ``overwrite=True`` what is of the format is removed when the plan begins.

    Of ``geff``, the first job goes through the level and creates arrays; each of the others writes whole shards of
    them, and reads the chunks that have rows of these. What the graph is comes last: without it there is none.

    ``source_path`` names a node in the store at ``path``, and ``storage_options`` are those of a store at a URL.

    Raises :class:`~zardine.errors.UnsupportedError` for other formats and for single files,
    :class:`~zardine.errors.NodeExistsError` for a folder with other files in it, or with any without ``overwrite``, and
    ``TypeError`` for other options.
    """
    place = Place.of(*find_place(path, source_path, mode="r", storage_options=storage_options), given=path)
    source = StorePath(place.store, place.path)
    chosen = export_format(source, target, format)
    check_apart((place.store, place.path), target, "export to another place")
    if not is_by_jobs(target, chosen):
        raise UnsupportedError(
            f"{target} is written by one process: jobs write to a folder (there, or with a / at the end), with format= "
            f"one of {_named_parts()}, and to GEFF and precomputed"
        )
    if chosen.is_folder:
        named = target.removeprefix(PREFIX) if isinstance(target, str) else target
        goal = Place.of(*find_place(named, mode="a"), given=named)
        if chosen.name == "geff":
            return planned_geff(place, level, goal, **_known(options, chosen, ("overwrite",)))
        return planned_precomputed(place, level, goal, **_known(options, chosen, _OF_PRECOMPUTED))
    known = ("overwrite",) if chosen.of_folders else ("overwrite", "vertices_per_file")
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"folders of {chosen.name} have no option {unknown[0]!r}")
    count = options.get("vertices_per_file", AT_ONCE if chosen.of_folders else WHOLE)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise DataError(f"vertices_per_file is a number from 1 on, not {count!r}")
    return planned_export(place, level, chosen.name, _file(target), int(count), options.get("overwrite", False))


_OF_PRECOMPUTED: Final = ("overwrite", "sharded", "annotation_type")


def _known(options: Mapping[str, Any], chosen: Format, names: Collection[str]) -> dict[str, Any]:
    """The options, if all are among ``names``. Raises ``TypeError`` for others."""
    unknown = [name for name in options if name not in names]
    if unknown:
        raise TypeError(f"the format {chosen.name} has no option {unknown[0]!r}")
    return dict(options)


def is_by_jobs(target: StoreLike, chosen: Format) -> bool:
    """Return whether an export is a plan of jobs."""
    return chosen.write is None or is_folder_of_parts(target, chosen) or is_folder_of(target, chosen)


def _run_export(plan: Plan, workers: int | None, progress: Progress | None) -> None:
    step = Shares(progress, 1).part()
    try:
        run_through(plan, workers=workers, progress=lambda done, total: step(done / max(1, total)))
    except (DataError, ArrayChangedError, ImportError):  # of the level, or no such library: going on would not help
        plan.cancel()
        raise
    step(1)


def _named_parts() -> str:
    return ", ".join(each.name for each in FORMATS.values() if each.takes_folders)


def is_folder_of_parts(target: StoreLike, chosen: Format) -> bool:
    """Return whether ``target`` is, or is to be, a folder of files of a format that are parts of a level."""
    return chosen.of_parts and _is_folder(target, chosen)


def export_format(path: StoreLike, target: StoreLike, name: str | None) -> Format:
    """Return the format that :func:`export_vectors` writes: :func:`format_of`, of a folder of skeletons SWC."""
    try:
        return format_of(target, name)
    except UnsupportedError:
        if name is not None or not is_folder_of(target, FORMATS["swc"]):
            raise
        if kind_of(VectorStore.open(path).root) != "skeleton":
            raise
        return FORMATS["swc"]


def is_folder_of(target: StoreLike, chosen: Format) -> bool:
    """Return whether ``target`` is, or is to be, a folder with a file of a format for each object."""
    return chosen.of_folders and _is_folder(target, chosen)


def _is_folder(target: StoreLike, chosen: Format) -> bool:
    if not isinstance(target, str | Path):
        return False
    return str(target).endswith("/") or (Path(target).is_dir() and Path(target).suffix.lower() not in chosen.endings)


def source_of(source: StoreLike, chosen: Format, storage_options: Mapping[str, Any] | None) -> Path | Place:
    """Where a file or folder is, which can be read. Raises :class:`~zardine.errors.DataError` for others."""
    if chosen.is_folder:
        named = source.removeprefix(PREFIX) if isinstance(source, str) else source
        return Place.of(*find_place(named, mode="r", storage_options=storage_options), given=named)
    path = _file(source)
    if storage_options:
        raise TypeError(f"storage_options are of folders at a URL: leave them out for {path}")
    if path.is_dir() and not (chosen.takes_folders or chosen.unpacked):
        known = ", ".join(each.name for each in FORMATS.values() if each.takes_folders)
        raise DataError(f"{path} is a directory, not a file; directories are read of files of the formats {known}")
    return path


def _opened(given: Path | Place, chosen: Format, options: Mapping[str, Any]) -> FileParts:
    source = given if isinstance(given, Path) else StorePath(given.store, given.path)
    return PARTS[chosen.name](source, options, AT_ONCE, None)


def _file(place: StoreLike) -> Path:
    if not isinstance(place, str | Path):
        raise TypeError(f"this format is a file: a path is needed, not {type(place).__name__}")
    if isinstance(place, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", place):
        raise UnsupportedError(
            f"{place} is behind a URL, where folders of neuroglancer and GEFF are read and written, no single "
            "files: copy it from or to a disk"
        )
    return Path(place)
