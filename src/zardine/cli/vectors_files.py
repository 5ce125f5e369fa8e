"""``zardine vectors import`` and ``export``: files of other formats."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click

from zardine.cli.base import Command
from zardine.cli.errors import arguments
from zardine.cli.options import (
    ShapeType,
    decorated,
    json_option,
    node_option,
    path_argument,
    quiet_option,
    storage_option,
)
from zardine.cli.output import counted, say
from zardine.cli.paths import missing, store_at
from zardine.cli.signals import interruptible
from zardine.cli.vectors import CELLS, level_counts
from zardine.shown_text import printable

_FORMAT = click.option(
    "--format",
    "name",
    metavar="NAME",
    help="The format, where the ending of FILE does not say it: precomputed (neuroglancer), trk, laz, ...",
)

_ROLES = {"x": "x, or lon", "y": "y, or lat", "z": "z, or depth", "time": "times, as one more axis"}


class StoreWords(TypedDict):
    """What a user says of the new store on the command line."""

    x: str | None
    y: str | None
    z: str | None
    time: str | None
    delimiter: str | None
    chunk_shape: float | tuple[float, ...] | None
    shard_shape: int | tuple[int, ...] | None
    compressor: str | None
    overwrite: bool


def import_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command FILE and PATH, and what is said of the new store there."""
    return decorated(
        command,
        path_argument("file"),
        path_argument(),
        node_option(),
        _FORMAT,
        *(
            click.option(f"--{role}", metavar="COLUMN", help=f"Of tables (.csv, ...): the column of {what}.")
            for role, what in _ROLES.items()
        ),
        click.option("--delimiter", metavar="TEXT", help="Of .csv: what is between values (default: as it looks)."),
        click.option(
            "--chunks",
            "--chunk-shape",
            "chunk_shape",
            type=ShapeType(above=0, number=float, example="50, or 50,50,12.5"),
            metavar="SIZES",
            help="Size of a chunk in the units of FILE: 50, or 50,50,12.",
        ),
        click.option(
            "--shards",
            "--shard-shape",
            "shard_shape",
            type=CELLS,
            metavar="CELLS",
            help="Cells of a shard: 8, or 4,4,16 (default: no shards).",
        ),
        click.option(
            "--compressor", metavar="NAME", help="Compress cells by this codec, such as zstd (default: by none)."
        ),
        click.option("--overwrite", is_flag=True, help="Replace what is stored at PATH."),
        storage_option(store="the store at PATH"),
        storage_option("source", "the folder FILE"),
    )


def check_file(file: str) -> None:
    """Raise where nothing is at the path ``file``."""
    if "://" not in file and not os.path.exists(file):
        raise click.ClickException(f"{file!r} does not exist")


def writer_options(words: StoreWords) -> dict[str, Any]:
    """Return what the writer is given."""
    of_tables = {*_ROLES, "delimiter"}
    given = {name: value for name, value in words.items() if value is not None or name not in of_tables}
    return {**given, "compressor": None if words["compressor"] == "none" else words["compressor"]}


@click.command("import", cls=Command)
@import_options
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read FILE in so many processes, to a directory.",
)
@quiet_option()
@json_option()
def import_file(
    file: str,
    path: str,
    node: str | None,
    name: str | None,
    storage_options: dict[str, Any],
    source_options: dict[str, Any],
    workers: int | None,
    quiet: bool,
    as_json: bool,
    **words: Unpack[StoreWords],
) -> None:
    """Write what is in FILE to a new Zarr Vectors store at PATH.

    The ending of FILE says the format: .trk, .tck and .trx (streamlines), .swc (skeletons), .ply, .obj and .stl
    (meshes), .las and .laz (points), .geojson, .gpkg, .shp and .parquet (points or lines), .csv, .tsv, .feather, .arrow
    and .parquet without geometries (points: --x and --y name the columns of coordinates that are not called x and y, or
    lon and lat). FILE may be a directory of .swc, .ply, .obj or .stl, each of which is an object, a folder or URL of
    neuroglancer (precomputed), or a graph of GEFF (.geff). What a store cannot hold is told. Most formats need other
    packages: pip install 'zardine[vectors]'. Where the import of something large to a directory was cut off, the same
    command goes on.
    """
    from zardine.cli.progress import progress
    from zardine.hierarchy.place import find_place
    from zardine.stores.path import StorePath
    from zardine.vectors import describe_store
    from zardine.vectors.exchange.formats import check_table_options, format_of, import_vectors, source_of

    check_file(file)
    if "://" not in file and os.path.isdir(file) and not _is_folder(file, name):
        raise click.ClickException(f"{file!r} is a directory, not a file")
    with arguments():
        chosen = format_of(file, name, stored=True, storage_options=source_options or None)
        check_table_options(words, chosen)
        source_of(file, chosen, source_options or None)
        store = StorePath(*find_place(path, node, mode="a", storage_options=storage_options or None))
    if not words["overwrite"]:
        _check_room(store, path if node is None else f"{path.rstrip('/')}/{node}")
    options = writer_options(words)
    show = not (as_json or quiet)
    with interruptible(), packages(), _remarks(quiet), progress("Reading files", show=show) as advance:
        more: dict[str, Any] = {"storage_options": source_options or None, "progress": advance.report}
        import_vectors(file, store, format=name, workers=workers, **more, **options)
    facts = describe_store(store)
    level = facts["levels"][0]
    names = ("objects", "groups", "links", "chunks")
    counts = {each: level[each] for each in ("vertex_count", *names, "links_counted")}
    if as_json:
        from zardine.cli.output import print_json

        print_json({"path": facts["path"], "geometry_types": facts["geometry_types"], **counts})
    elif not quiet:
        say(", ".join(level_counts(level, *names)))


_LEVEL = click.option(
    "--level", type=click.IntRange(min=0), default=0, metavar="N", help="The level (default: 0, all vertices)."
)
_PER_FILE = click.option(
    "--vertices-per-file",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of a folder of .csv, .las, .parquet, .trk, ...: how many each file has, about (default: 4,194,304).",
)


class ExportWords(TypedDict):
    """What a user says on the command line of a level, and of what is written of it."""

    name: str | None
    level: int
    vertices_per_file: int | None
    sharded: bool | None
    annotation_type: str | None
    overwrite: bool


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command PATH and FILE, and what is said of what goes there."""
    return decorated(
        command,
        path_argument(),
        path_argument("file"),
        node_option(),
        _FORMAT,
        _LEVEL,
        _PER_FILE,
        click.option(
            "--sharded/--files",
            default=None,
            help="Of precomputed: pack values into shards, or not (default: where there are more than 1,000).",
        ),
        click.option(
            "--annotation-type",
            type=click.Choice(("point", "line", "axis_aligned_bounding_box")),
            help="Of precomputed: what lines of two vertices are (default: lines, or what they were when they came).",
        ),
        click.option("--overwrite", is_flag=True, help="Replace FILE."),
        storage_option(),
    )


def export_request(store: Any, file: str, words: ExportWords) -> dict[str, Any]:
    """Return what is asked for, for :func:`~zardine.vectors.export_vectors` and its plan.

    Raises ``click.UsageError`` for what the format does not have.
    """
    from zardine.vectors.exchange.formats import export_format, is_folder_of_parts

    chosen = export_format(store, file, words["name"])
    given: dict[str, Any] = {"sharded": words["sharded"], "annotation_type": words["annotation_type"]}
    options = {name: value for name, value in given.items() if value is not None}
    if options and chosen.name != "precomputed":
        raise click.UsageError(f"the format {chosen.name} has no option --{next(iter(options)).replace('_', '-')}")
    if words["vertices_per_file"]:
        if not is_folder_of_parts(file, chosen):
            raise click.UsageError("--vertices-per-file is of folders of files that are parts of a level")
        options["vertices_per_file"] = words["vertices_per_file"]
    return {"format": words["name"], "level": words["level"], "overwrite": words["overwrite"], **options}


@click.command("export", cls=Command)
@export_options
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Write a folder in so many processes.")
@quiet_option()
@json_option()
def export_file(
    path: str,
    file: str,
    node: str | None,
    storage_options: dict[str, Any],
    workers: int | None,
    quiet: bool,
    as_json: bool,
    **words: Unpack[ExportWords],
) -> None:
    """Write a level of the Zarr Vectors store at PATH to FILE.

    The ending of FILE says the format, as for 'zardine vectors import'. What the format cannot hold is told. After an
    error FILE is as it was. If FILE is a folder, or ends in /, it gets a SWC file for each object of skeletons, and
    with --format ply, obj or stl such of meshes. With --format csv, feather, las, laz, parquet, trk, tck or trx it gets
    files that are parts of the level. With --format precomputed FILE is a folder, or a URL, for neuroglancer: points
    and straight lines become annotations, other lines and graphs skeletons; its document is written last, and so is
    that of GEFF. Where one of these folders was cut off, the same command goes on.
    """
    from zardine.cli.progress import progress
    from zardine.vectors.exchange.formats import export_format, export_vectors, is_by_jobs, is_folder_of
    from zardine.vectors.exchange.targets import files_of_target

    target = Path(file)
    with arguments():
        store = store_at(path, storage_options, node=node)
        chosen = export_format(store, file, words["name"])
        request = export_request(store, file, words)
    if workers and not is_by_jobs(file, chosen):
        raise click.UsageError("--workers is of folders that are written by jobs")
    to_folder = chosen.is_folder or is_folder_of(file, chosen) or is_by_jobs(file, chosen)
    files = [] if to_folder else files_of_target(target)
    if not to_folder:
        _check_target(target, files, words["overwrite"])
    show = not (as_json or quiet)
    with (
        interruptible(),
        missing(path),
        packages(),
        _remarks(quiet),
        progress("Writing values", show=show) as advance,
    ):
        export_vectors(store, file, workers=workers, progress=advance.report, **request)
    size = sum(each.stat().st_size for each in files if each.exists())
    if as_json:
        from zardine.cli.output import print_json

        facts: dict[str, Any] = {"file": file, "level": words["level"]}
        print_json(facts if to_folder else {**facts, "bytes": size})
    elif not quiet:
        say(printable(file) if to_folder else f"{printable(file)}: {counted(size, 'byte')}")


def _is_folder(file: str, name: str | None) -> bool:
    """Whether a directory is of a format that is a folder, or of files that are read together."""
    from zardine.errors import UnsupportedError
    from zardine.vectors.exchange.formats import format_of

    try:
        found = format_of(file, name, stored=True)
        return found.is_folder or found.takes_folders
    except UnsupportedError:
        return name is not None


def _check_room(store: Any, path: str) -> None:
    """Raise before a file is read for nothing; the writer looks again."""
    from zardine.hierarchy.find import find_node

    if find_node(store.store, store.path) is not None:
        raise click.ClickException(f"something is stored at {path!r} already: --overwrite replaces it")


def _check_target(target: Path, files: Sequence[Path], overwrite: bool) -> None:
    if not target.parent.is_dir():
        raise click.ClickException(f"the directory {str(target.parent)!r} does not exist")
    for each in files:
        if each.is_dir():
            raise click.ClickException(f"{str(each)!r} is a directory, not a file")
        if each.exists() and not overwrite:
            raise click.ClickException(f"{str(each)!r} exists already: --overwrite replaces it")


@contextmanager
def packages() -> Iterator[None]:
    """Say how a package that the block misses is installed: that is no fault of zardine."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "zardine":
            raise
        hint = "" if "pip install" in str(error) else ": pip install 'zardine[vectors]'"
        raise click.ClickException(f"{error}{hint}") from error


@contextmanager
def _remarks(quiet: bool) -> Iterator[None]:
    """Show each warning of the block, or none."""
    with warnings.catch_warnings():
        from zardine.errors import ZarrUserWarning

        if quiet:
            warnings.simplefilter("ignore")
        else:
            warnings.simplefilter("always", ZarrUserWarning)
        yield
