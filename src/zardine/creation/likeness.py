"""What a new array has to be like to be stored as another one is, also in another version of Zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zardine.codecs.base import Codec
from zardine.codecs.chain import split_chain
from zardine.codecs.v2_filters import V2Compressor, V2Filters
from zardine.creation.attribute_conventions import names_to_attribute, names_to_member, strict_attributes
from zardine.creation.v2 import numcodecs_json
from zardine.engine.layout import ArrayLayout
from zardine.json_document import JSON
from zardine.metadata.v1 import has_compression
from zardine.metadata.v2 import stored_dtype
from zardine.metadata.v2_codecs import Storage, from_codecs


def like_arguments(layout: ArrayLayout, zarr_format: int | None = None) -> dict[str, Any]:
    """Return what :func:`zardine.create_array` has to be told to make an array that is stored as one of ``layout`` is.

    Where it is to be of another version of Zarr, what that has no form for becomes what new arrays have: codecs, and
    chunks of differing lengths. Shards become their inner chunks.
    """
    version = layout.metadata.zarr_format if zarr_format is None else zarr_format
    if version == 3:
        return _from_v3(layout) if layout.metadata.older is None else _older_as_v3(layout)
    return _v3_as_older(layout, version) if layout.metadata.older is None else _from_older(layout, version)


def like_attributes(layout: ArrayLayout, zarr_format: int) -> tuple[dict[str, JSON], tuple[str | None, ...] | None]:
    """Return attributes and dimension names for a copy of an array, with the conventions of xarray."""
    metadata = layout.metadata
    attributes: Mapping[str, JSON] = metadata.attributes
    names = metadata.axis_names
    if zarr_format == 3 and metadata.older is not None:
        attributes, names, _ = names_to_member(attributes, metadata)
    elif zarr_format != 3 and metadata.older is None:
        (attributes, _), names = names_to_attribute(metadata), None
    return strict_attributes(attributes)[0], names


def _from_v3(layout: ArrayLayout) -> dict[str, Any]:
    objects: Any = layout.object_shape
    if objects is None:
        objects = tuple(axis.lengths() for axis in layout.grids.storage)
    filters, serializer, compressors = split_chain(layout.chunk_codecs)
    return {
        "chunks": objects if layout.sharding is None else layout.sharding.chunk_shape,
        "shards": {"shape": objects, "index_location": layout.sharding.codec.index_location}
        if layout.sharding is not None
        else None,
        "filters": filters or None,
        "serializer": serializer,
        "compressors": compressors or None,
        "fill_value": layout.metadata.fill_value,
        "chunk_key_encoding": layout.keys,
        "zarr_format": 3,
        "checksum": False,  # codecs are kept as they are
    }


def _from_older(layout: ArrayLayout, version: int) -> dict[str, Any]:
    older = layout.metadata.older
    assert older is not None
    return {
        "dtype": stored_dtype(layout.metadata),
        "chunks": layout.object_shape,
        "shards": None,
        "filters": (list(older.filters or ()) or None) if version == 2 else None,
        "compressors": older.compressor if version == 2 or has_compression(older.compressor) else "auto",
        "fill_value": layout.metadata.fill_value,
        "chunk_key_encoding": layout.keys if version == 2 else None,
        "order": older.order,
        "zarr_format": version,
    }


def _older_as_v3(layout: ArrayLayout) -> dict[str, Any]:
    older = layout.metadata.older
    assert older is not None
    chain = split_chain(layout.chunk_codecs)
    own = any(
        isinstance(codec, (V2Filters, V2Compressor)) for codec in layout.codecs
    )  # no document of v3 may name them
    return {
        "chunks": layout.object_shape,
        "shards": None,
        "filters": None if own else chain.filters or None,
        "serializer": "auto" if own else chain.serializer,
        "compressors": "auto" if own else chain.compressors or None,
        "fill_value": layout.metadata.fill_value,
        "zarr_format": 3,
    }


def _v3_as_older(layout: ArrayLayout, version: int) -> dict[str, Any]:
    chunks: Any = layout.object_shape if layout.sharding is None else layout.sharding.chunk_shape
    storage = _storage(layout)
    return {
        "chunks": "auto" if chunks is None else chunks,
        "shards": None,
        "filters": None if storage is None or version == 1 else list(storage.filters) or None,
        "compressors": "auto"
        if storage is None or (version == 1 and not has_compression(storage.compressor))
        else storage.compressor,
        "fill_value": layout.metadata.fill_value,
        "chunk_key_encoding": layout.keys if layout.keys.name == "v2" and version == 2 else None,
        "order": "C" if storage is None else storage.order,
        "zarr_format": version,
    }


def _storage(layout: ArrayLayout) -> Storage | None:
    """Return the codecs of a v3 array in the words of v2, but for checksums; ``None`` where v2 has no such codecs."""
    codecs = without_checksum(layout.chunk_codecs)
    storage, _ = from_codecs(codecs, layout.metadata.data_type, layout.metadata.ndim)
    if storage is not None:
        try:
            for codec in (*storage.filters, *([storage.compressor] if storage.compressor else [])):
                numcodecs_json(codec, "codecs")
        except ValueError:  # numcodecs has no such one
            return None
    return storage


def without_checksum(codecs: Sequence[Codec]) -> list[Mapping[str, JSON]]:
    """Return the codecs of a chunk as JSON, without the crc32c at their end that few programs for v2 know."""
    kept = list(codecs)
    while kept and kept[-1].name == "crc32c":
        kept.pop()
    return [codec.to_json() for codec in kept]
