"""The metadata of a new array of Zarr v2 or v1, from what its creator asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from zardine.chunk_grids.regular import RegularGrid
from zardine.codecs.base import Codec
from zardine.codecs.registry import codec_class, codec_from
from zardine.creation.chunk_shapes import choose_grid
from zardine.creation.options import is_word
from zardine.data_types import DataType, data_type_for, numpy_dtype
from zardine.data_types.v2_fill_values import fill_to_json
from zardine.data_types.v2_names import dtype_to_json, has_name
from zardine.json_document import JSON, Extension, Problems
from zardine.metadata import v1
from zardine.metadata.attributes import attributes_to_json
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import parse_words_of_v2
from zardine.metadata.numcodecs_objects import build_codec
from zardine.metadata.v2_codecs import Storage, from_codecs, to_codecs
from zardine.settings import config

DEFAULT_COMPRESSORS: Final[Mapping[int, Mapping[str, JSON]]] = {
    2: {"id": "zstd", "level": 0},
    1: {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
}
"""What chunks of new arrays of v2 and v1 are compressed with, by version."""


def new_older_metadata(
    *,
    shape: tuple[int, ...],
    dtype: Any,
    chunks: Any,
    filters: Any,
    compressors: Any,
    fill_value: Any,
    fill_is_given: bool,
    attributes: Mapping[str, Any] | None,
    chunk_keys: Extension | None,
    order: str | None,
    zarr_format: int,
) -> ArrayMetadata:
    """Work out and check the metadata of a new array; ``fill_value=None`` leaves the value undefined (``null``).

    Raises ``ValueError`` or ``TypeError`` for arguments that do not fit together.
    """
    listed = (
        []
        if is_word(filters, "auto") or filters is None
        else [numcodecs_json(each, "filters") for each in _many(filters)]
    )
    stored, listed = _stored_dtype(dtype, listed)
    if is_word(compressors, "auto"):
        compressor: Mapping[str, JSON] | None = DEFAULT_COMPRESSORS[zarr_format]
    else:
        chosen = [] if compressors is None else [numcodecs_json(each, "compressors") for each in _many(compressors)]
        if len(chosen) > 1:
            raise ValueError(f"Zarr v{zarr_format} has one compressor at most; more codecs go into filters")
        compressor = chosen[0] if chosen else None
    if order not in (None, "C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    storage = Storage(stored, order or config["array.order"], tuple(listed), compressor)
    if stored.kind == "O" and not listed:
        raise ValueError(
            "elements of dtype object need an object codec as the first of filters, such as numcodecs.JSON(); for text "
            'use dtype="string", for bytes dtype="bytes"'
        )
    data_type, _ = to_codecs(storage)
    grid, _ = choose_grid(shape, data_type.item_size or 16, chunks, None)
    if not isinstance(grid, RegularGrid):
        raise ValueError(f"chunks of different lengths need zarr_format=3; Zarr v{zarr_format} has regular grids only")
    document = {
        "zarr_format": zarr_format,
        "shape": list(shape),
        "chunks": list(grid.chunk_shape),
        "dtype": dtype_to_json(stored),
        "compressor": compressor,
        "fill_value": _fill(data_type, stored, fill_value, fill_is_given),
        "order": storage.order,
        "filters": listed or None,
        **_separator(chunk_keys, zarr_format),
    }
    problems = Problems(with_notes=True)
    metadata = parse_words_of_v2(document, attributes_to_json(attributes or {}), problems, zarr_format)
    problems.found += problems.notes  # what is read of others is not made anew
    problems.raise_if_any("such an array cannot be made")
    assert metadata is not None
    if zarr_format == 1 and (reasons := v1.explain_unfit(metadata)):
        raise ValueError(f"such an array cannot be made: {'; '.join(reasons)}")
    return metadata


def numcodecs_json(value: Any, what: str) -> Mapping[str, JSON]:
    """Return the configuration, with its ``id``, of a codec that a user gave in the argument ``what``."""
    if isinstance(getattr(value, "codec_id", None), str):
        configuration = value.get_config()
    elif isinstance(value, Mapping) and "id" in value:
        configuration = dict(value)
    else:
        if isinstance(value, str) and codec_class(value) is None and codec_class(f"numcodecs.{value}") is not None:
            value = f"numcodecs.{value}"  # as Zarr v2 calls it
        codec = value if isinstance(value, Codec) else codec_from(value)
        storage, reasons = from_codecs([codec.to_json()], data_type_for("uint8"), 1)
        if storage is None:
            raise ValueError(f"{what}: Zarr v2 has no such codec: {'; '.join(reasons)}")
        given = [*storage.filters, *([storage.compressor] if storage.compressor else [])]
        if len(given) != 1:
            raise ValueError(f"{what}: {codec.name} is no codec of Zarr v2")
        configuration = dict(given[0])
    try:
        if configuration["id"] != "pickle":  # which is written without an object of it
            build_codec(configuration)
    except Exception as error:  # code of other packages
        raise ValueError(f"{what}: numcodecs refuses {configuration}: {error}") from None
    return {name: _plain(each) for name, each in configuration.items() if name != "typesize"}


def _plain(value: Any) -> JSON:
    if isinstance(value, np.dtype):
        return value.str
    return value.item() if isinstance(value, np.generic) else value


def _stored_dtype(dtype: Any, filters: list[Mapping[str, JSON]]) -> tuple[np.dtype[Any], list[Mapping[str, JSON]]]:
    """Return the dtype as stored, byte order included, and the filters with the object codec that it needs."""
    if isinstance(dtype, list):
        dtype = numpy_dtype(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind != "T" and dtype.kind in "biufcmMSUVO":
        stored = dtype
    elif dtype in (object, "O", "|O"):
        stored = np.dtype(object)
    else:
        data_type = data_type_for(dtype)
        name = data_type.object_codec
        if name is not None:
            filters = filters if filters and filters[0]["id"] in (name, "categorize") else [{"id": name}, *filters]
            return np.dtype(object), filters
        try:
            stored = np.dtype(dtype)
        except TypeError:
            stored = data_type.dtype
        if not has_name(stored):
            raise ValueError(f"Zarr v2 has no data type {data_type.name}; use zarr_format=3")
    return stored, filters


def _fill(data_type: DataType, stored: np.dtype[Any], value: Any, is_given: bool) -> JSON:
    if is_given and value is None:
        return None
    fill = data_type.cast_fill(value) if is_given else data_type.default_fill()
    return fill_to_json(fill, data_type, stored)


def _separator(keys: Extension | None, zarr_format: int) -> dict[str, JSON]:
    if keys is None:
        return {"dimension_separator": "."} if zarr_format == 2 else {}
    if keys.name != "v2":
        raise ValueError(f'Zarr v{zarr_format} has chunk key encoding "v2" only, not {keys.name!r}')
    return {"dimension_separator": (keys.configuration or {}).get("separator", ".")}


def _many(value: Any) -> list[Any]:
    if isinstance(value, (Codec, str, Mapping)) or not isinstance(value, Iterable):
        return [value]
    return list(value)
