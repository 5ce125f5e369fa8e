"""Creating arrays in the manner of NumPy: ``zeros``, ``ones``, ``full``, ``array`` and the ``_like`` forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from zardine.array import Array
from zardine.create import copy_values, create_group, create_like, from_array
from zardine.engine.array_config import ArrayConfigLike, parse_array_config
from zardine.errors import UnsupportedError
from zardine.group import Group
from zardine.metadata.node_names import join_path, normalize_path
from zardine.new_array import DEFAULT, new_array_metadata
from zardine.nodes import create_node
from zardine.stores.resolve import Mode, StoreLike, resolve_store


def create(
    shape: Any = None,
    *,
    chunks: Any = None,
    dtype: Any = None,
    compressor: Any = "auto",
    fill_value: Any = DEFAULT,
    order: str | None = None,
    store: StoreLike = None,
    synchronizer: Any = None,
    overwrite: bool = False,
    path: str | None = None,
    chunk_store: StoreLike = None,
    filters: Any = None,
    cache_metadata: bool | None = None,
    cache_attrs: bool | None = None,
    read_only: bool | None = None,
    object_codec: Any = None,
    dimension_separator: str | None = None,
    write_empty_chunks: bool | None = None,
    zarr_format: int | None = None,
    meta_array: Any = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_shape: Any = None,
    chunk_key_encoding: Any = None,
    codecs: Iterable[Any] | None = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: ArrayConfigLike = None,
    mode: Mode | None = None,
    data: Any = None,
    shards: Any = None,
    compressors: Any = "auto",
    serializer: Any = "auto",
    checksum: bool | None = None,
) -> Array:
    """Create an array; :func:`create_array` says the same in fewer words.

    ``codecs`` is the whole codec chain. ``compressor`` counts as ``compressors``. The other arguments that only Zarr v2
    has (``dimension_separator``, ``object_codec``) are refused; ``synchronizer``, ``cache_metadata``, ``cache_attrs``
    and ``meta_array`` have no effect.
    """
    if compressor != "auto":
        compressors = compressor
    for name, value, instead in (
        ("dimension_separator", dimension_separator, "chunk_key_encoding"),
        ("object_codec", object_codec, "serializer"),
        ("chunk_store", chunk_store, "store"),
    ):
        if value is not None:
            raise UnsupportedError(f"{name} belongs to Zarr v2, which this version does not write yet; use {instead}")
    if data is not None:
        data = data if hasattr(data, "shape") and hasattr(data, "dtype") else np.asarray(data)
        shape = data.shape if shape is None else shape
        dtype = data.dtype if dtype is None else dtype
    if shape is None:
        raise ValueError("an array needs a shape, or data that has one")
    settings = parse_array_config(config)
    changes = {"write_empty_chunks": write_empty_chunks, "order": order}
    settings = settings.changed({name: value for name, value in changes.items() if value is not None})
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
        zarr_format=zarr_format,
    )
    found, inner = resolve_store(store, mode=mode)
    inner = join_path(inner, normalize_path(path))
    made = Array(found, inner, metadata, settings)
    create_node(found, inner, metadata, overwrite=overwrite or mode == "w")
    if data is not None:
        copy_values(data, made)
    return made


def array(data: Any, **kwargs: Any) -> Array:
    """Create an array that holds ``data``; ``kwargs`` are those of :func:`create`."""
    if isinstance(data, Array) and not kwargs.keys() - {"store", "path", "overwrite"}:
        return from_array(
            kwargs.get("store"), data=data, name=kwargs.get("path"), overwrite=kwargs.get("overwrite", False)
        )
    if "chunks" not in kwargs and not hasattr(data, "dtype"):
        data = np.asarray(data)
    return create(data=data, **kwargs)


def empty(shape: Any, **kwargs: Any) -> Array:
    """Create an array of the default fill value."""
    return create(shape, **kwargs)


def zeros(shape: Any, **kwargs: Any) -> Array:
    """Create an array of fill value 0."""
    return create(shape, fill_value=0, **kwargs)


def ones(shape: Any, **kwargs: Any) -> Array:
    """Create an array of fill value 1."""
    return create(shape, fill_value=1, **kwargs)


def full(shape: Any, fill_value: Any, **kwargs: Any) -> Array:
    """Create an array of ``fill_value``."""
    return create(shape, fill_value=fill_value, **kwargs)


def empty_like(a: Any, **kwargs: Any) -> Array:
    """Create an array of the default fill value like ``a`` in shape, dtype, chunks and shards."""
    return _like(a, kwargs)


def zeros_like(a: Any, **kwargs: Any) -> Array:
    """Create an array of fill value 0 like ``a`` in shape, dtype, chunks and shards."""
    return _like(a, {**kwargs, "fill_value": 0})


def ones_like(a: Any, **kwargs: Any) -> Array:
    """Create an array of fill value 1 like ``a`` in shape, dtype, chunks and shards."""
    return _like(a, {**kwargs, "fill_value": 1})


def full_like(a: Any, **kwargs: Any) -> Array:
    """Create an array like ``a`` in shape, dtype, chunks and shards, and in fill value unless one is given."""
    return _like(a, kwargs)


def open_like(a: Any, path: str, **kwargs: Any) -> Array:
    """Open the array at ``path``, or create it there like ``a``."""
    from zardine.errors import ArrayNotFoundError
    from zardine.open import open_array

    try:
        return open_array(path)
    except ArrayNotFoundError:
        return _like(a, {**kwargs, "store": path})


def group(
    store: StoreLike = None,
    *,
    overwrite: bool = False,
    path: str | None = None,
    zarr_format: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Group:
    """Open the group at ``store``, or create it there; with ``overwrite`` what is there is erased."""
    from zardine.open import open_group

    if overwrite:
        return create_group(store, path=path, zarr_format=zarr_format, overwrite=True, attributes=attributes)
    return open_group(store, path=path, zarr_format=zarr_format, attributes=attributes)


def _like(a: Any, kwargs: dict[str, Any]) -> Array:
    arguments = dict(kwargs)
    store, path = arguments.pop("store", None), arguments.pop("path", None)
    return create_like(store, a, name=path, **arguments)


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
