"""``zardine.convert``: arrays and hierarchies of any version of Zarr, stored anew or described anew."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from zardine.creation.attribute_conventions import reads_fill_as_missing
from zardine.creation.options import ChunksLike, CodecLike, CodecsLike, KeyEncodingLike, ShardsLike
from zardine.errors import (
    ReadOnlyError,
    StoreError,
    UnsupportedError,
    ZardineError,
    ZarrUserWarning,
)
from zardine.hierarchy.create import erase_node
from zardine.hierarchy.find import describe, document_key, load_node
from zardine.hierarchy.place import check_new_place, find_place, overlap
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan
from zardine.jobs.running import ExecutorLike
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import can_be_named, explain_bad_name, join_path
from zardine.nodes.argument_hints import with_hints
from zardine.nodes.array import Array
from zardine.sources.opening import foreign_store, is_foreign_file
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.tools.arguments import place_of
from zardine.tools.converting.foreign import lost_nodes, lost_text, remarks_of, with_remarks
from zardine.tools.converting.in_place import InPlace, prepare_in_place
from zardine.tools.converting.jobs import ConvertWork, plan_jobs
from zardine.tools.converting.nodes import read_nodes
from zardine.tools.converting.options import ConvertKeywords, ConvertOptions, is_for
from zardine.tools.converting.plan import NodePlan, Planned, fingerprint, plan_nodes, refuse, to_consolidate
from zardine.tools.converting.to_older import array_to_older
from zardine.tools.converting.to_v3 import array_to_v3
from zardine.tools.copying.new_place import Target
from zardine.tools.progress import Progress
from zardine.tools.running import run_through
from zardine.user_warnings import warn_user

if TYPE_CHECKING:
    from zardine.nodes.group import Group

_SMALL = 2**24
"""Bytes of an array that may be stored in full for the sake of xarray."""


@with_hints
def convert(
    source: StoreLike | Array | Group,
    target: StoreLike = None,
    *,
    source_path: str | None = None,
    target_path: str | None = None,
    zarr_format: int = 3,
    chunks: ChunksLike = "keep",
    shards: ShardsLike = "auto",
    filters: CodecsLike = "auto",
    serializer: CodecLike = "auto",
    compressors: CodecsLike = "auto",
    codecs: Iterable[CodecLike] | None = None,
    checksum: bool | None = None,
    chunk_key_encoding: KeyEncodingLike = None,
    objects: str | None = None,
    leave_out: bool = False,
    metadata_only: bool = False,
    remove_old: bool = False,
    verify: bool = False,
    overwrite: bool = False,
    resume: bool = True,
    max_memory: int | str | None = None,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> Array | Group:
    """Store an array, or a group and all below it, in another version of Zarr: by default as sharded arrays of v3.

    The source is a place or an opened node, of any version, or a file of HDF5 or NetCDF (see
    :func:`zardine.sources.open`), and is never changed. Elements, fill values, attributes and
    names of dimensions stay what they are; what was never written stays empty. All nodes are planned before anything
    is written.

    - ``zarr_format``: 3, or 2 or 1 where that can say what the source says.
    - ``chunks``: of the new arrays, within their shards. ``"keep"``: those of the source, of which very large ones are
      cut into equal parts, unless they are compressed ones of HDF5 (see below); ``"auto"``, or lengths as for
      :func:`create_array`. Lengths are for the arrays of as many dimensions; others keep theirs.
    - ``shards``: ``"auto"`` keeps those of the source, or chooses; ``None`` for none; lengths as for ``chunks``.
    - ``filters``, ``serializer``, ``compressors``, ``codecs``, ``checksum``: as for :func:`create_array`. ``"auto"``
      keeps what a source of v3 has; of an older one the order of elements, and its compressor if all programs for v3
      have it, else zstd. ``"keep"`` keeps all of an older one, as codecs ``numcodecs.*``. Compressed chunks of HDF5 and
      NetCDF are copied as they are where there are codecs for them (not all programs have ``numcodecs.zlib``, which is
      told), unless these options or ``chunks`` ask for something else.
    - ``objects="string"``: arrays of Python objects, all of which have to be text, become arrays of text.
    - ``leave_out``: convert the rest of a file of HDF5 where Zarr has no form for something in it.
    - ``metadata_only``: write documents of v3 beside those of an older source, in place, for the same chunks; there is
      no ``target``. ``remove_old`` then removes the old documents.
    - ``verify``: read everything again, and compare it, before the target becomes visible.
    - ``overwrite``: erase what is stored at the target first.
    - ``resume``: continue where an earlier run of the same call was cut off; until the last run is through, nothing is
      found at the target.
    - ``max_memory``: what a worker may hold of elements, in bytes or as ``"256 MiB"`` (default: 1 GiB, more where one
      chunk or new object takes more, and less where the setting ``window_bytes`` says so). Where no blocks of that size
      read every source object twice at most, these go by way of arrays between: uncompressed, in a hidden folder of the
      target. ``ValueError`` where a chunk or a new object does not fit.
    - ``executor``, ``workers``: who does it, as for :meth:`zardine.jobs.Plan.run`; without, threads of this process.
    - ``progress``: called with the bytes of elements that are done and to be done (comparing them counts as well; in
      place, so do documents), from any thread, never twice at once.
    - ``storage_options``, ``target_options``: settings of the stores behind URLs, of the source and of the target.

    Gives the converted node. Raises :class:`~zardine.errors.ConversionError`, before anything is written, with every
    reason why nodes cannot be expressed, and where ``verify`` finds elements that differ.
    """
    options = ConvertOptions(
        zarr_format=zarr_format,
        chunks=chunks,
        shards=shards,
        filters=filters,
        serializer=serializer,
        compressors=compressors,
        codecs=codecs,
        checksum=checksum,
        chunk_key_encoding=chunk_key_encoding,
        objects=objects,
    )
    if metadata_only:
        if target is not None or target_path is not None:
            raise ValueError("metadata_only=True converts in place, so there is no target")
        check_in_place(options)
        described = prepare_metadata(source, source_path, overwrite=overwrite, storage_options=storage_options)
        warn_of_remarks(described.plans)
        described.run(verify=verify, remove_old=remove_old, report=progress)
        return open_node(described.store, described.path)
    if target is None:
        raise ValueError("target is missing: where to convert to; metadata_only=True converts in place")
    if remove_old:
        raise ValueError("remove_old is for metadata_only=True; a source that is copied stays as it is")
    conversion = prepare_conversion(
        source,
        target,
        options,
        source_path=source_path,
        target_path=target_path,
        leave_out=leave_out,
        max_memory=max_memory,
        storage_options=storage_options,
        target_options=target_options,
    )
    warn_of_remarks(conversion.plans)
    conversion.run(
        verify=verify, overwrite=overwrite, resume=resume, executor=executor, workers=workers, report=progress
    )
    return open_node(conversion.target.store, conversion.target.path)


def plan_convert(
    source: StoreLike | Array | Group,
    target: StoreLike,
    *,
    source_path: str | None = None,
    target_path: str | None = None,
    leave_out: bool = False,
    verify: bool = False,
    overwrite: bool = False,
    max_memory: int | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    **options: Unpack[ConvertKeywords],
) -> Plan:
    """Return the plan that :func:`zardine.convert` runs, with the same arguments. Nothing is written.

    The target has to be empty when it begins. With ``overwrite`` all that is stored there is erased at once, as soon as
    the conversion is known to be possible, and not by workers, of which none could tell what is old there from what is
    new. Raises as :func:`zardine.convert`.
    """
    conversion = prepare_conversion(
        source,
        target,
        ConvertOptions(**options),
        source_path=source_path,
        target_path=target_path,
        leave_out=leave_out,
        max_memory=max_memory,
        storage_options=storage_options,
        target_options=target_options,
    )
    if overwrite:
        erase_node(conversion.target.store, conversion.target.path)
    conversion.target.look(overwrite=False, resume=True, way="overwrite=True erases all of it")
    return conversion.plan(verify=verify)


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """A conversion that was found to be possible."""

    source: Place
    plans: tuple[NodePlan, ...]
    """Parents first."""
    target: Target
    work: ConvertWork

    def plan(self, *, verify: bool = False) -> Plan:
        """Return it as a plan of jobs."""
        compares = verify or any(not plan.exact for plan in self.plans if isinstance(plan.source, ArrayMetadata))
        return Plan(replace(self.work, compares=compares))

    def run(
        self,
        *,
        verify: bool = False,
        overwrite: bool = False,
        resume: bool = True,
        executor: ExecutorLike | None = None,
        workers: int | None = None,
        report: Progress | None = None,
    ) -> dict[str, Any]:
        """Convert, and return what was done. Afterwards the target is complete and visible."""
        resumed = self.target.look(overwrite=overwrite, resume=resume)
        if not resumed:
            self.target.begin(overwrite=overwrite)
        try:
            done = run_through(self.plan(verify=verify), executor, workers=workers, progress=report).result or {}
        except OSError as error:
            if isinstance(error, ZardineError) and not isinstance(error, StoreError):
                raise
            text = f"{error}\nThe conversion to {self.target} is not finished; the same call again continues it"
            failure = StoreError(text)
            failure.errno, failure.filename = error.errno, error.filename
            raise failure from error
        return {"objects": 0, "compared": False, **done, "resumed": resumed}


def prepare_conversion(
    source: StoreLike | Array | Group,
    target: StoreLike,
    options: ConvertOptions,
    *,
    source_path: str | None = None,
    target_path: str | None = None,
    leave_out: bool = False,
    max_memory: int | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> Conversion:
    """Read all documents of the source and plan the target; nothing is written. Raises as :func:`convert`."""
    given = source
    if is_foreign_file(source):
        source, storage_options = foreign_store(source, storage_options=storage_options), None  # type: ignore[arg-type]
    found, inner = place_of(source, source_path, storage_options=storage_options)
    found = found.with_read_only(True)
    store, path = find_place(target, target_path, storage_options=target_options)
    if overlap(found, inner, store, path):
        raise ValueError(
            f"the source, {describe(found, inner)}, and the target, {describe(store, path)}, are one place, or one is "
            "inside of the other: convert to another place"
        )
    if store.read_only:
        raise ReadOnlyError(f"cannot convert to {describe(store, path)}: it was opened read-only")
    check_new_place(store, path, options.zarr_format)
    nodes = read_nodes(found, inner)
    _check_names(nodes, options.zarr_format)
    _check_dimensions(nodes, options)

    def plan_array(relative: str, metadata: ArrayMetadata) -> Planned:
        if options.zarr_format == 3:
            return array_to_v3(relative, metadata, options, foreign=found.is_foreign)
        complete = reads_fill_as_missing(metadata) and _may_be_whole(Array(found, join_path(inner, relative), metadata))
        return array_to_older(relative, metadata, options, complete=complete)

    lost = lost_nodes(found, inner, nodes)
    bare = lost_text(found, inner, nodes)
    nodes = {path: node for path, node in nodes.items() if f"/{path}" not in {each.place for each in bare}}
    if not nodes:  # the only array that was asked for
        refuse(bare, len(bare), options.zarr_format)
    lost += bare
    plans = plan_nodes(nodes, plan_array, options.zarr_format, () if leave_out else lost)
    if found.is_foreign:
        plans = to_consolidate(plans)
    plans = with_remarks(plans, [*remarks_of(found, inner), *((p.place[1:], p.message) for p in lost if leave_out)])
    name = describe(found, inner)
    version = found.version(document_key(inner)) if found.is_foreign else None
    request = fingerprint(name, plans, version)
    made = Target(store, path, name, request, options.in_words(), zarr_format=options.zarr_format)
    where = _named(found, inner, given)
    return Conversion(where, plans, made, plan_jobs(where, plans, made, Place.of(store, path, target).url, max_memory))


def _named(store: Store, path: str, given: object) -> Place:
    """Return the place of the source; of a file of another format with its own name."""
    if store.is_foreign and isinstance(given, (str, os.PathLike)):
        text = os.fspath(given)
        return Place(store, path, text if "://" in text else os.path.abspath(text))
    return Place.of(store, path, given)


def prepare_metadata(
    source: StoreLike | Array | Group,
    path: str | None = None,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> InPlace:
    """Read all documents and plan those of v3 beside them; nothing is written. Raises as :func:`convert`."""
    store, inner = place_of(source, path, storage_options=storage_options)
    check_new_place(store, inner, 3)
    return prepare_in_place(store, inner, overwrite=overwrite)


def check_in_place(options: ConvertOptions) -> None:
    """Refuse options that have no meaning where chunks stay as they are."""
    if options.zarr_format != 3:
        raise ValueError("metadata_only=True is for zarr_format=3")
    if options.changed():
        raise ValueError(f"metadata_only=True leaves chunks as they are: {', '.join(options.changed())} cannot change")


def warn_of_remarks(plans: Sequence[NodePlan]) -> None:
    """Warn once of everything that the new documents say in other words."""
    found: dict[str, list[str]] = {}
    for plan in plans:
        for remark in plan.remarks:
            found.setdefault(remark, []).append(f"/{plan.path}")
    if found:
        text = "".join(f"\n  - {_names(paths)}: {remark}" for remark, paths in found.items())
        warn_user(f"not all of the documents could be taken over as it is{text}", ZarrUserWarning)


def _names(paths: Sequence[str]) -> str:
    """Return the paths of which one thing is said, on one line."""
    most = 5
    return ", ".join(paths[:most]) + (f" and {len(paths) - most:,} more" if len(paths) > most else "")


def open_node(store: Store, path: str) -> Array | Group:
    """Return the node that was made."""
    from zardine.nodes.group import Group

    metadata: NodeMetadata = load_node(store, path)
    return Array(store, path, metadata) if isinstance(metadata, ArrayMetadata) else Group(store, path, metadata)


def _may_be_whole(array: Array) -> bool:
    """Whether all objects of an array are stored, or it is so small that they may be."""
    try:
        return array.nbytes <= _SMALL or array.nshards_initialized == array.nshards
    except UnsupportedError:
        return False


def _check_names(nodes: Mapping[str, NodeMetadata], zarr_format: int) -> None:
    """Refuse nodes of the source whose names no node of the wanted version may have."""
    for path in nodes:
        for name in path.split("/") if path else ():
            reason = explain_bad_name(name, zarr_format)
            if reason is None and not can_be_named(name, zarr_format):
                reason = f"the name {name!r} contains a backslash, which stands for '/' there"
            if reason is not None:
                raise ValueError(f"node {path!r} of the source cannot be a node of Zarr v{zarr_format}: {reason}")


def _check_dimensions(nodes: Mapping[str, NodeMetadata], options: ConvertOptions) -> None:
    """Refuse chunks and shards that fit none of the arrays."""
    arrays = [node for node in nodes.values() if isinstance(node, ArrayMetadata)]
    for name in ("chunks", "shards"):
        sizes = getattr(options, name)
        if arrays and not any(is_for(sizes, array.ndim) for array in arrays):
            raise ValueError(f"{name} {sizes} fit no array of the source: none has so many dimensions")
