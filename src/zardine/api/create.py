"""Creating arrays in the manner of NumPy: ``create``, ``array``, ``empty``, ``zeros``, ``ones`` and ``full``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from zardine.creation.options import (
    ChunksLike,
    CodecLike,
    CodecsLike,
    DTypeLike,
    KeyEncodingLike,
    ShapeLike,
    ShardsLike,
)
from zardine.creation.v3 import DEFAULT, new_array_metadata, parse_shape
from zardine.engine.array_config import ArrayConfigLike, parse_array_config
from zardine.hierarchy.place import find_place
from zardine.metadata.formats import format_of_new
from zardine.nodes.argument_hints import with_hints
from zardine.nodes.array import Array
from zardine.nodes.create_array import (
    as_values,
    check_source_stays,
    copy_values,
    dimension_names_of,
    dtype_of,
    from_array,
    in_order_of,
    order_of_chunks,
    store_new_array,
)
from zardine.nodes.create_like import plain_fill
from zardine.nodes.incomplete import erased_if_incomplete
from zardine.nodes.older_arguments import (
    compressors_of,
    key_encoding_of,
    refuse_chunk_store,
    warn_of_ignored,
    warn_of_write_empty_chunks,
)
from zardine.nodes.options import ArrayOfDataOptions, CreateAnywhereOptions
from zardine.stores.resolve import Mode, StoreLike


@with_hints
def create(
    shape: ShapeLike | None = None,
    *,
    chunks: ChunksLike = None,
    dtype: DTypeLike | None = None,
    compressor: CodecsLike = "auto",
    fill_value: object = DEFAULT,
    order: str | None = None,
    store: StoreLike = None,
    synchronizer: object = None,
    overwrite: bool = False,
    path: str | None = None,
    chunk_store: StoreLike = None,
    filters: CodecsLike = None,
    cache_metadata: bool | None = None,
    cache_attrs: bool | None = None,
    read_only: bool | None = None,
    object_codec: CodecLike | None = None,
    dimension_separator: str | None = None,
    write_empty_chunks: bool | None = None,
    zarr_format: int | None = None,
    meta_array: object = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_shape: ChunksLike = None,
    chunk_key_encoding: KeyEncodingLike = None,
    codecs: Iterable[CodecLike] | None = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: ArrayConfigLike = None,
    mode: Mode | None = None,
    data: npt.ArrayLike | None = None,
    shards: ShardsLike = None,
    compressors: CodecsLike = "auto",
    serializer: CodecLike = "auto",
    checksum: bool | None = None,
) -> Array:
    """Create an array; :func:`create_array` says the same in fewer words.

    ``codecs`` is the whole codec chain. ``compressor`` counts as ``compressors``. Arguments that only Zarr v2 has
    (``dimension_separator``, ``object_codec``) are refused without ``zarr_format=2``; ``synchronizer``,
    ``cache_metadata``, ``cache_attrs`` and ``meta_array`` have no effect, and a warning says so. ``write_empty_chunks``
    is better given in ``config``. ``read_only`` gives an array that refuses
    writes, after ``data`` is written.

    The ``dtype`` is ``float64`` if it is left out, as in zarr-python, also with ``data`` (:func:`array` takes the dtype
    of its data, as :func:`create_array` does); raises ``ValueError`` for integers that ``float64`` would round. Data
    that are no real numbers keep their dtype.
    """
    compressors = compressors_of(compressor, compressors)
    refuse_chunk_store(chunk_store)
    chunk_key_encoding = key_encoding_of(dimension_separator, chunk_key_encoding, format_of_new(zarr_format))
    if object_codec is not None:
        if format_of_new(zarr_format) == 3:
            raise ValueError("object_codec belongs to Zarr v2: use serializer, or zarr_format=2")
        filters = [object_codec, *([] if filters is None else filters if isinstance(filters, Iterable) else [filters])]
    values = None if data is None else as_values(data)
    if values is not None:
        shape = values.shape if shape is None else shape
        dtype = _dtype_for(values) if dtype is None else dtype
        version = format_of_new(zarr_format)
        dimension_names = dimension_names_of(values, version) if dimension_names is None else dimension_names
        if parse_shape(shape) != tuple(values.shape):
            raise ValueError(f"data has shape {tuple(values.shape)}, and shape={shape} was asked for: leave out shape")
    if shape is None:
        raise ValueError("shape is missing: an array needs a shape, or data that has one")
    if chunks is not None and chunk_shape is not None:
        raise ValueError("give either chunks or chunk_shape, not both")
    warn_of_ignored(
        synchronizer=synchronizer, cache_metadata=cache_metadata, cache_attrs=cache_attrs, meta_array=meta_array
    )
    settings = parse_array_config(config)
    if write_empty_chunks is not None:
        warn_of_write_empty_chunks()
        settings = settings.changed({"write_empty_chunks": write_empty_chunks})
    codecs = list(codecs) if isinstance(codecs, Iterable) and not isinstance(codecs, str) else codecs
    for codec in (serializer, *(codecs if isinstance(codecs, list) else ())):
        settings = in_order_of(codec, settings)
    metadata = new_array_metadata(
        shape=shape,
        dtype="float64" if dtype is None else dtype,
        chunks=_first(chunk_shape, chunks, "auto"),
        shards=shards,
        filters="auto" if filters is None else filters,
        compressors=compressors,
        serializer=serializer,
        codecs=codecs,
        fill_value=fill_value,
        attributes=attributes,
        chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names,
        checksum=checksum,
        order=order_of_chunks(order, settings, format_of_new(zarr_format)),
        zarr_format=zarr_format,
    )
    found, inner = find_place(store, path, mode=mode, storage_options=storage_options, zarr_format=metadata.zarr_format)
    overwrite = mode == "w" or (overwrite and mode != "w-")  # "w-" is never talked out of keeping what is there
    if overwrite:
        check_source_stays(values, found, inner)
    made = store_new_array(found, inner, metadata, settings, overwrite=overwrite)
    if values is not None:
        with erased_if_incomplete(made, replaced=overwrite):
            copy_values(values, made)
    return Array(found.with_read_only(True), inner, metadata, settings) if read_only else made


def array(data: npt.ArrayLike, **kwargs: Unpack[ArrayOfDataOptions]) -> Array:
    """Create an array that holds ``data``; ``kwargs`` are those of :func:`create`."""
    if isinstance(data, Array) and not kwargs.keys() - {"store", "path", "overwrite"}:
        return from_array(
            kwargs.get("store"), data=data, name=kwargs.get("path"), overwrite=kwargs.get("overwrite", False)
        )
    if data is not None:
        data = as_values(data)
        kwargs = {**kwargs, "dtype": dtype_of(data) if kwargs.get("dtype") is None else kwargs["dtype"]}
    return create(data=data, **kwargs)


def empty(shape: ShapeLike, **kwargs: Unpack[CreateAnywhereOptions]) -> Array:
    """Create an array of the default fill value."""
    return create(shape, **kwargs)


def zeros(shape: ShapeLike, **kwargs: Unpack[CreateAnywhereOptions]) -> Array:
    """Create an array of fill value 0, or what ``numpy.zeros`` holds for the dtype: false, the empty string."""
    return create(shape, fill_value=plain_fill(np.zeros, kwargs.get("dtype")), **kwargs)


def ones(shape: ShapeLike, **kwargs: Unpack[CreateAnywhereOptions]) -> Array:
    """Create an array of fill value 1, or what ``numpy.ones`` holds for the dtype."""
    return create(shape, fill_value=plain_fill(np.ones, kwargs.get("dtype")), **kwargs)


def full(shape: ShapeLike, fill_value: object, **kwargs: Unpack[CreateAnywhereOptions]) -> Array:
    """Create an array of ``fill_value``."""
    return create(shape, fill_value=fill_value, **kwargs)


def _dtype_for(data: Any) -> Any:
    """Return the dtype of an array made by :func:`create` for ``data`` alone."""
    kind, size = getattr(data.dtype, "kind", "V"), getattr(data.dtype, "itemsize", 16)
    if kind not in "biuf" or size > 8:
        return dtype_of(data)
    if kind in "iu" and size == 8:
        values = np.asarray(data)
        if values.size and not -_EXACT <= int(values.min()) <= int(values.max()) <= _EXACT:
            raise ValueError(
                "dtype is float64 where none is given, and that would round integers beyond 2^53: give "
                f"dtype={values.dtype.name!r}"
            )
    return "float64"


_EXACT = 2**53
"""Integers up to this are the same in ``float64``."""


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
