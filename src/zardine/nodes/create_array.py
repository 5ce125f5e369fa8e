"""Creating arrays, of a shape and data type or from values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.codecs.sharding_indexed import CHUNK_ORDERS, ShardingCodec
from zardine.creation.likeness import like_arguments, like_attributes
from zardine.creation.options import (
    ChunksLike,
    CodecLike,
    CodecsLike,
    DTypeLike,
    KeyEncodingLike,
    ShapeLike,
    ShardsLike,
    is_word,
)
from zardine.creation.v3 import DEFAULT, new_array_metadata, parse_shape
from zardine.data_types.missing import as_array, first_missing, with_missing_as
from zardine.engine.array_config import ArrayConfig, ArrayConfigLike, parse_array_config
from zardine.engine.freshness import note_seen
from zardine.engine.nested_objects import boxes_together, objects_together
from zardine.engine.read_ahead import window_bytes
from zardine.engine.workers import for_each, most_between
from zardine.errors import MetadataError
from zardine.hierarchy.create import create_node, erase_documents
from zardine.hierarchy.find import describe
from zardine.hierarchy.place import find_place
from zardine.indexing.boxes import box_of, ranges_of
from zardine.indexing.selection import GridSelection
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, format_of_new
from zardine.nodes.argument_hints import with_hints
from zardine.nodes.array import Array
from zardine.nodes.arrays_behind import behind_at
from zardine.nodes.incomplete import erased_if_incomplete
from zardine.nodes.older_arguments import warn_of_order
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike


@with_hints
def create_array(
    store: StoreLike,
    *,
    name: str | None = None,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    data: npt.ArrayLike | None = None,
    chunks: ChunksLike = "auto",
    shards: ShardsLike = None,
    filters: CodecsLike = "auto",
    compressors: CodecsLike = "auto",
    serializer: CodecLike = "auto",
    fill_value: object = DEFAULT,
    order: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: KeyEncodingLike = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    config: ArrayConfigLike = None,
    write_data: bool = True,
    checksum: bool | None = None,
) -> Array:
    """Create an array and store its metadata; give ``shape`` and ``dtype``, or ``data`` to be written at once.

    - ``name``: path of the array in the store; groups above it are created where they are missing.
    - ``chunks``: shape of what is compressed as one piece; with ``shards``, of the inner chunks. ``"auto"`` chooses.
    - ``shards``: shape of one stored object, a whole multiple of ``chunks`` on every axis; ``"auto"`` chooses;
      ``None``: every chunk is an object. A mapping ``{"shape": ..., "index_location": "start"}`` also says where the
      index goes.
    - ``filters``, ``serializer``, ``compressors``: codecs before, at and after the step from array to bytes.
    - ``checksum``: whether every chunk ends with a crc32c, so that damage is noticed (default: yes).
    - ``fill_value``: what elements read as that were never written (default: zero, false or empty).
    - ``order``: with ``zarr_format=2`` the order of elements in stored chunks, ``"C"`` or ``"F"`` (default: that of
      ``config``). It has no effect on arrays of v3, and a warning says so: ``config={"order": "F"}`` chooses the memory
      layout of arrays that reading returns.
    - ``zarr_format``: 3, or 2 or 1 for programs that cannot read better. There ``filters`` and ``compressors`` are
      codecs of numcodecs, and ``fill_value=None`` leaves what was never written undefined.
    - ``overwrite``: erase what is stored at this place first.

    Of ``data`` that is an ``xarray.DataArray`` the names of its dimensions are stored (in v3), and neither its
    coordinates nor its attributes: :func:`zardine.xarray.to_zarr` stores all of it.

    Raises :class:`~zardine.errors.ContainsArrayError` or :class:`~zardine.errors.ContainsGroupError` if the place is
    taken, ``ValueError`` or ``TypeError`` for arguments that do not fit together. Where ``data`` cannot be stored (a
    full disk, Ctrl-C), the array is erased again, and a note of the error says so.
    """
    version = format_of_new(zarr_format)
    found, path = find_place(store, name, storage_options=storage_options, zarr_format=version)
    values = None if data is None else as_values(data)
    if values is not None:
        if shape is not None or dtype is not None:
            raise ValueError("give either data, or shape and dtype; for another dtype, data=np.asarray(data, dtype)")
        shape, dtype = values.shape, dtype_of(values)
        dimension_names = dimension_names_of(values, version) if dimension_names is None else dimension_names
    if shape is None or dtype is None:
        if shape is not None:
            parse_shape(shape)
        missing = "shape" if shape is None else "dtype"
        raise ValueError(f"{missing} is missing: an array needs a shape and a dtype, or data that has both")
    settings = in_order_of(serializer, parse_array_config(config))
    metadata = new_array_metadata(
        shape=shape,
        dtype=dtype,
        chunks=chunks,
        shards=shards,
        filters=filters,
        compressors=compressors,
        serializer=serializer,
        fill_value=fill_value,
        attributes=attributes,
        chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names,
        checksum=checksum,
        order=order_of_chunks(order, settings, version),
        zarr_format=zarr_format,
    )
    if overwrite and write_data:
        check_source_stays(values, found, path)
    array = store_new_array(found, path, metadata, settings, overwrite=overwrite)
    if values is not None and write_data:
        with erased_if_incomplete(array, replaced=overwrite):
            copy_values(values, array)
    return array


@with_hints
def from_array(
    store: StoreLike,
    *,
    data: npt.ArrayLike,
    write_data: bool = True,
    name: str | None = None,
    chunks: ChunksLike = "keep",
    shards: ShardsLike = "keep",
    filters: CodecsLike = "keep",
    compressors: CodecsLike = "keep",
    serializer: CodecLike = "keep",
    fill_value: object = DEFAULT,
    order: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: KeyEncodingLike = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    config: ArrayConfigLike = None,
    checksum: bool | None = None,
) -> Array:
    """Create an array like ``data`` and copy its values, some stored objects at a time.

    ``"keep"`` takes chunks, shards, codecs and all the rest from ``data`` where that is an :class:`Array`, and chooses
    them as :func:`create_array` does where it is not. So is ``zarr_format``, if it is left out; in another version what
    that has no form for is chosen anew, and shards become their inner chunks.
    """
    values = as_values(data)
    source = values if isinstance(values, Array) else None
    automatic: dict[str, Any] = {
        "chunks": "auto",
        "shards": None,
        "filters": "auto",
        "serializer": "auto",
        "compressors": "auto",
    }
    kept = automatic if source is None else {**automatic, **like_arguments(source._handle.layout, zarr_format)}
    given: dict[str, Any] = {
        "chunks": chunks,
        "shards": shards,
        "filters": filters,
        "serializer": serializer,
        "compressors": compressors,
    }
    if source is not None:
        zarr_format = kept["zarr_format"]
        fill_value = kept["fill_value"] if fill_value is DEFAULT else fill_value
        chunk_key_encoding = kept.get("chunk_key_encoding") if chunk_key_encoding is None else chunk_key_encoding
        order = kept.get("order") if order is None else order
        checksum = kept.get("checksum") if checksum is None and is_word(compressors, "keep") else checksum
        known, names = like_attributes(source._handle.layout, zarr_format)
        attributes = known if attributes is None else attributes
        dimension_names = names if dimension_names is None else dimension_names
    elif dimension_names is None:
        dimension_names = dimension_names_of(values, format_of_new(zarr_format))
    if overwrite and write_data:
        check_source_stays(values, *find_place(store, name, storage_options=storage_options, zarr_format=zarr_format))
    array = create_array(
        store,
        name=name,
        shape=values.shape,
        dtype=kept.get("dtype", dtype_of(values)),
        **{key: kept[key] if is_word(value, "keep") else value for key, value in given.items()},
        fill_value=fill_value,
        order=order,
        zarr_format=zarr_format,
        attributes=attributes,
        chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names,
        storage_options=storage_options,
        overwrite=overwrite,
        config=config,
        checksum=checksum,
    )
    if write_data:
        with erased_if_incomplete(array, replaced=overwrite):
            copy_values(values, array)
    return array


def as_values(data: object) -> Any:
    """Return a user's ``data``: an :class:`Array`, or something with a shape, a dtype and square brackets.

    Raises ``TypeError`` for groups and mappings, of which NumPy would make an array of objects, and ``ValueError`` for
    arrays of objects and for missing elements that their dtype cannot hold.
    """
    if isinstance(data, Array):
        return data
    if data is None or isinstance(data, (Mapping, set, frozenset)) or hasattr(data, "create_array"):
        shown = "None" if data is None else f"a {type(data).__name__}"
        raise TypeError(f"{shown} is not an array; give an array or a (nested) list of numbers")
    ready = hasattr(data, "__array__") and hasattr(data, "shape") and isinstance(getattr(data, "dtype", None), np.dtype)
    try:
        values: Any = data if ready else as_array(data)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            "data is a list of lists of different lengths: an array needs lists of the same length"
        ) from None
    if values.dtype.kind == "O":
        missing = first_missing(values) if isinstance(values, np.ndarray) else None
        found = "" if missing is None else f", and {missing}"
        raise ValueError(
            f"data of dtype object can hold anything{found}: create the array with dtype='string' or dtype='bytes' "
            "and assign the data to it, or convert the data to another dtype"
        )
    if isinstance(values, np.ndarray):  # before anything is stored, or erased
        values = with_missing_as(values, values.dtype if values.dtype.kind != "T" else np.dtypes.StringDType())
    return values


def create_like(store: StoreLike, like: npt.ArrayLike, *, name: str | None = None, **kwargs: Any) -> Array:
    """Create an array that agrees with ``like`` in all that ``kwargs`` do not say.

    Codecs are those of ``like`` where both are of one version of Zarr, else what new arrays have.
    """
    if isinstance(like, Array):
        arguments = like_arguments(like._handle.layout, kwargs.get("zarr_format"))
        kwargs["zarr_format"] = arguments["zarr_format"]
        if (arguments["zarr_format"] == 3) != (like.metadata.zarr_format == 3):
            arguments = {name: value for name, value in arguments.items() if name not in _OF_ONE_VERSION}
    else:
        arguments = {"chunks": getattr(as_values(like), "chunks", None) or "auto"}
    values = as_values(like)
    arguments = {"shape": values.shape, "dtype": dtype_of(values), **arguments}
    return create_array(store, name=name, **{**arguments, **kwargs})


_OF_ONE_VERSION = frozenset({"filters", "serializer", "compressors", "order", "checksum"})


def copy_values(source: Any, target: Array) -> None:
    """Copy all elements: at a time those new objects that lie in one of the source, as far as memory allows."""
    if not isinstance(source, Array):
        target[...] = source
        return
    old, new = source._handle.layout, target._handle.layout
    at_once = most_between(source.store, target.store)
    together = objects_together(old, new, window_bytes() // (_COPIES * at_once))
    fitting = window_bytes() // (_COPIES * max(1, prod(together) * new.object_nbytes))

    def copy(box: GridSelection) -> None:
        region = tuple(slice(*each) for each in ranges_of(box))
        target[region] = source[region]

    whole = box_of([(0, length) for length in target.shape])
    boxes = boxes_together(new, together, whole) if target.size else ()
    for_each(copy, boxes, prod(axis.count for axis in new.grids.storage), max(1, min(fitting, at_once)))


_COPIES = 3
"""Elements are in memory that often while they are copied, at most: as such, as they are stored there and here."""


def check_source_stays(source: Any, store: Store, path: str) -> None:
    """Raise ``ValueError`` where replacing what is stored at ``path`` would erase what ``source`` is or reads."""
    behind = behind_at(source, store, path)
    if behind is not None:
        raise ValueError(
            f"{describe(store, path)} cannot be replaced by a copy of {behind}, which would be erased first; "
            "read it into memory (array[...], dataset.load(), dask_array.persist()), or write to another place"
        )


def order_of_chunks(order: str | None, settings: ArrayConfig, zarr_format: int) -> str | None:
    """The order of elements in the chunks of an array of Zarr v2 or v1; those of v3 have codecs for that.

    Raises ``ValueError`` for what is no order, and warns of one that is given in vain.
    """
    if order not in (None, "C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    if zarr_format != 3:
        return settings.order if order is None else order
    if order is not None:
        warn_of_order()
    return None


def in_order_of(codec: object, settings: ArrayConfig) -> ArrayConfig:
    """Return ``settings`` with the order of inner chunks that a codec of the user asks for, if nothing else does."""
    order = codec.subchunk_write_order if isinstance(codec, ShardingCodec) else None
    if order is None or settings.chunk_order != "as_written":
        return settings
    return settings.changed({"chunk_order": CHUNK_ORDERS[order]})


def store_new_array(
    store: Store, path: str, metadata: ArrayMetadata, settings: ArrayConfig, *, overwrite: bool
) -> Array:
    """Check that the array can be read and written, then store its document. After Ctrl-C that is erased again."""
    array = possible_array(store, path, metadata, settings)
    begun: list[NodeMetadata] = []
    try:
        stored, version, when = create_node(store, path, metadata, overwrite=overwrite, begun=begun)
        assert isinstance(stored, ArrayMetadata)
        if stored is not metadata:
            array = Array(store, path, stored, settings)
        note_seen(array._handle, version, stored, when)
        return array
    except Exception:
        raise
    except BaseException:
        with suppress(Exception):
            for each in begun:
                erase_documents(store, path, each, None)
        raise


def possible_array(store: Store, path: str, metadata: ArrayMetadata, settings: ArrayConfig) -> Array:
    """Return an array that is not stored, if it could be read and written. Raises as :func:`create_array`."""
    try:
        return Array(store, path, metadata, settings)
    except MetadataError as error:
        raise type(error)("such an array cannot be made", error.problems) from None


def dimension_names_of(data: Any, zarr_format: int) -> tuple[str, ...] | None:
    """Return the names of the dimensions of an ``xarray.DataArray``; ``None`` for other data, and before Zarr v3."""
    names = getattr(data, "dims", None)
    if zarr_format != 3 or not isinstance(names, tuple) or len(names) != len(data.shape):
        return None
    return names if all(isinstance(each, str) for each in names) else None


def dtype_of(data: Any) -> Any:
    """Return the data type of an :class:`Array`, or the dtype of another array."""
    return data.metadata.data_type if isinstance(data, Array) else data.dtype
