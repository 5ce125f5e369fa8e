"""An array of any version as a new array of Zarr v2 or v1: its metadata, or every reason why there is none. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zardine.chunk_grids.regular import RegularGrid
from zardine.codecs.base import Codec
from zardine.codecs.chain import equals_fill
from zardine.creation.attribute_conventions import names_to_attribute, reads_fill_as_missing, strict_attributes
from zardine.creation.chunk_shapes import choose_grid
from zardine.creation.likeness import without_checksum
from zardine.creation.options import is_word
from zardine.creation.v2 import numcodecs_json
from zardine.creation.v3 import parse_key_encoding
from zardine.data_types import DataType
from zardine.data_types.structs import Struct
from zardine.data_types.v2_fill_values import fill_to_json
from zardine.data_types.v2_names import dtype_to_json
from zardine.errors import MetadataError
from zardine.json_document import JSON, Problems
from zardine.metadata import v1
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import parse_words_of_v2
from zardine.metadata.v2_codecs import Storage, from_codecs
from zardine.metadata.v2_dtypes import parse_dtype
from zardine.nodes.array import Array
from zardine.stores.memory import MemoryStore
from zardine.tools.converting.codecs import has_shards, is_exact
from zardine.tools.converting.options import ConvertOptions
from zardine.tools.converting.plan import NodePlan, Planned, bits, other_members


def array_to_older(path: str, metadata: ArrayMetadata, options: ConvertOptions, *, complete: bool = False) -> Planned:
    """Return what a re-encoded array is to be. Raises :class:`~zardine.errors.MetadataError` for a wrong source.

    ``complete`` says that all of the array is stored or may be, so that no element depends on the fill value.
    """
    source = Array(MemoryStore(), path, metadata)
    attributes, reasons = names_to_attribute(metadata)
    attributes, remarks = strict_attributes(attributes)
    unknown, found = other_members(metadata, options.zarr_format)
    changes = reads_fill_as_missing(metadata)
    undefined = changes and complete and equals_fill(metadata.fill, metadata.data_type.default_fill())
    if changes and not undefined:
        found.append(f"in v2 xarray takes elements that equal the fill value {metadata.fill_value!r} for missing ones")
    if metadata.storage_transformers:
        found.append("its storage transformers, which may be ignored, are left out")
    try:
        chunks, more = _chunks(source, options)
        storage, others = _storage(source, options)
        reasons += more + others
        if storage is None or chunks is None:
            return reasons
        document = {
            "zarr_format": options.zarr_format,
            "shape": list(metadata.shape),
            "chunks": list(chunks),
            "dtype": dtype_to_json(storage.dtype),
            "compressor": storage.compressor,
            "filters": [dict(each) for each in storage.filters] or None,
            "order": storage.order,
            "fill_value": None if undefined else _fill(metadata, storage.dtype),
            **_separator(source, options),
        }
    except MetadataError as error:
        return [*reasons, *(map(str, error.problems) or [str(error)])]
    except (TypeError, ValueError) as error:
        return [*reasons, str(error)]
    problems = Problems()
    target = parse_words_of_v2(document, attributes, problems, options.zarr_format)
    reasons += map(str, problems.found)
    if target is not None:
        reasons += _explain_difference(metadata, target)
        if options.zarr_format == 1:
            reasons += v1.explain_unfit(target)
    if reasons or target is None:
        return reasons
    target = replace(target, unknown=unknown)
    try:
        made = Array(MemoryStore(), path, target)
    except MetadataError as error:
        return [str(problem) for problem in error.problems]
    return NodePlan(
        path=path,
        source=metadata,
        target=target,
        remarks=(*remarks, *found),
        exact=is_exact(made.codecs),
        everything=undefined,
    )


def _chunks(source: Array, options: ConvertOptions) -> tuple[tuple[int, ...] | None, list[str]]:
    reasons = []
    layout = source._handle.layout
    if has_shards(source.codecs) and options.shards is not None:
        count = f"its {source.nchunks:,} chunks" if layout.sharding is not None else "its chunks"
        reasons.append(f"shards: there are none before v3; shards=None stores {count} one by one")
    wanted = options.chunks_for(source.ndim)
    if is_word(wanted, "keep"):
        if layout.sharding is not None:
            return layout.sharding.chunk_shape, reasons
        if all(axis.is_regular for axis in layout.grids.storage):
            return source.chunks, reasons
        return None, [*reasons, "chunks of differing lengths: there are none before v3; chunks=... gives others"]
    grid, _ = choose_grid(source.shape, source.metadata.data_type.item_size or 16, wanted, None)
    if not isinstance(grid, RegularGrid):
        return None, [*reasons, "chunks of differing lengths: there are none before v3"]
    return grid.chunk_shape, reasons


def _storage(source: Array, options: ConvertOptions) -> tuple[Storage | None, list[str]]:
    """Return data type, order, filters and compressor in the words of v2."""
    filters = None if is_word(options.filters, "auto", "keep") else _given(options.filters, "filters")
    compressors = None
    if not is_word(options.compressors, "auto", "keep"):
        compressors = _given(options.compressors, "compressors")
        if len(compressors) > 1:
            return None, [f"{len(compressors)} compressors: before v3 there is one at most; others go into filters"]
    older = source.metadata.older
    if older is None:
        replaced: list[Codec] = [*(source._inner_chain().filters if filters is not None else ())]
        replaced += source._inner_chain().compressors if compressors is not None else ()
        storage, reasons = _storage_of_v3(source, replaced)
    else:
        dtype = parse_dtype(older.dtype, "dtype", Problems())
        assert dtype is not None  # it was parsed before
        storage, reasons = Storage(dtype, older.order, older.filters or (), older.compressor), []
    if storage is not None and filters is not None:
        object_codec = storage.filters[:1] if storage.dtype.kind == "O" else ()
        storage = replace(storage, filters=(*object_codec, *filters))
    if storage is not None and compressors is not None:
        storage = replace(storage, compressor=next(iter(compressors), None))
    return storage, reasons


def _storage_of_v3(source: Array, replaced: Sequence[Codec]) -> tuple[Storage | None, list[str]]:
    reasons = _explain_type(source.metadata.data_type)
    codecs = source._inner_codecs()
    if has_shards(codecs):
        return None, [*reasons, "shards within shards, or codecs around shards: there are none before v3"]
    chain = [codec for codec in codecs if codec not in replaced]
    storage, more = from_codecs(without_checksum(chain), source.metadata.data_type, source.ndim)
    return (None if reasons else storage), reasons + more


def _given(value: Any, what: str) -> list[Mapping[str, JSON]]:
    if value is None:
        return []
    one = isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__")
    return [numcodecs_json(each, what) for each in ([value] if one else value)]


def _explain_type(data_type: DataType) -> list[str]:
    """Return why v2 has no such data type."""
    if isinstance(data_type, Struct):
        return [reason for _, each in data_type.fields for reason in _explain_type(each)]
    plain = data_type.dtype.kind in "TO" or data_type.dtype.type.__module__ == "numpy"
    if not plain or (data_type.name.startswith("complex_") and data_type.dtype.kind != "c"):
        return [f"data type {data_type.name}: there is none before v3"]
    return []


def _fill(metadata: ArrayMetadata, dtype: np.dtype[Any]) -> JSON:
    if metadata.older is not None:
        return metadata.older.fill_value
    return fill_to_json(metadata.fill, metadata.data_type, dtype)


def _separator(source: Array, options: ConvertOptions) -> dict[str, JSON]:
    if options.zarr_format == 1:
        return {}
    keys = source.metadata.chunk_key_encoding
    if options.chunk_key_encoding is not None:
        keys = parse_key_encoding(options.chunk_key_encoding)
        if keys.name != "v2":
            raise ValueError(f'Zarr v2 has chunk key encoding "v2" only, not {keys.name!r}')
    older = source.metadata.older
    if older is not None and options.chunk_key_encoding is None and older.dimension_separator is None:
        return {}
    return {"dimension_separator": (keys.configuration or {}).get("separator", ".") if keys.name == "v2" else "."}


def _explain_difference(source: ArrayMetadata, target: ArrayMetadata) -> list[str]:
    """Return what the document in the words of v2 would say otherwise."""
    if target.dtype != source.dtype:
        return [f"data type {source.data_type.name}: elements would be read as {target.dtype}"]
    if source.older is None and bits(target) != bits(source):
        return [f"fill value {source.fill_value}: its bits ({source.fill.tobytes().hex()}) would be lost"]
    return []
